//! A quiet place for tests of the rules.

use crate::content::TileId;
use crate::coord::{ChunkPos, Pos};
use crate::entity::{Entity, EntityId};
use crate::event::{Event, Notice};
use crate::world::{World, WorldConfig};

/// The middle of the arena, far from the spawn, in the middle of chunk (10,10).
pub(crate) const MIDDLE: Pos = Pos { x: 336, y: 336 };

/// Half of the arena's side.
const HALF: i32 = 20;

/// A world whose only entities are players in the middle of a square of floor, 41 by 41 tiles.
pub(crate) struct Arena {
    pub(crate) world: World,
    pub(crate) ada: EntityId,
    pub(crate) bob: EntityId,
}

impl Arena {
    pub(crate) fn new() -> Arena {
        let mut world = World::new(WorldConfig { seed: 1, ..WorldConfig::default() });
        let ada = world.spawn_player(Some("Ada"));
        let bob = world.spawn_player(Some("Bob"));
        for player in [ada, bob] {
            world.relocate(player, MIDDLE);
        }
        for x in -HALF..=HALF {
            for y in -HALF..=HALF {
                world.terrain.set(MIDDLE.offset(x, y), TileId::FLOOR).unwrap();
            }
        }
        let mut arena = Arena { world, ada, bob };
        arena.clear();
        arena
    }

    /// Removes all but players, and forgets what is yet to come back.
    pub(crate) fn clear(&mut self) {
        self.world.entities.clear_but_players();
    }

    pub(crate) fn monster(&mut self, name: &str, dx: i32, dy: i32) -> EntityId {
        let kind = self.world.content.kind_id(name).unwrap();
        self.world.add_monster(kind, MIDDLE.offset(dx, dy));
        EntityId(self.world.entities.last_id())
    }

    pub(crate) fn wall(&mut self, dx: i32, dy: i32, tile: &str) {
        let tile = self.world.content.tile_id(tile).unwrap();
        self.world.terrain.set(MIDDLE.offset(dx, dy), tile).unwrap();
    }

    pub(crate) fn put(&mut self, player: EntityId, dx: i32, dy: i32) {
        self.world.relocate(player, MIDDLE.offset(dx, dy));
    }

    pub(crate) fn get(&self, id: EntityId) -> &Entity {
        self.world.entity(id).unwrap()
    }

    pub(crate) fn set_hp(&mut self, id: EntityId, hp: u16) {
        self.world.entities.get_mut(id).unwrap().hp = hp;
    }

    pub(crate) fn steps(&mut self, ticks: u64) {
        for _ in 0..ticks {
            self.world.step();
        }
        self.world.entities.check();
    }

    pub(crate) fn events(&mut self) -> Vec<Event> {
        self.world.drain_events().collect()
    }

    /// The notices to `to`; all other events are dropped.
    pub(crate) fn notices(&mut self, to: EntityId) -> Vec<Notice> {
        let own = |event| match event {
            Event::Notice { to: whom, notice } if whom == to => Some(notice),
            _ => None,
        };
        self.world.drain_events().filter_map(own).collect()
    }
}

/// The version of the chunk of `pos`.
pub(crate) fn version(world: &World, pos: Pos) -> u16 {
    let chunk: ChunkPos = pos.chunk();
    world.loaded_chunk(chunk).unwrap().version()
}
