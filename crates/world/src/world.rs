//! The world: what one owns and drives, a tick at a time.
//!
//! ```
//! use caves_world::{Command, Direction, World, WorldConfig};
//!
//! let mut world = World::new(WorldConfig { seed: 7, ..WorldConfig::default() });
//! let ada = world.spawn_player(Some("Ada"));
//! let before = world.entity(ada).unwrap().pos;
//! let outcome = world.execute(ada, Command::Move(Direction::North));
//! world.step();
//! assert!(outcome.had_effect());
//! assert_eq!(world.entity(ada).unwrap().pos, before.step(Direction::North));
//! assert_eq!(world.tick(), 1);
//! ```

use std::collections::BTreeSet;

use crate::chunk::Chunk;
use crate::content::{Class, Content, KindId, TileId};
use crate::coord::{ChunkPos, Pos};
use crate::entity::{Body, Entity, EntityId, Monster, Player, STATUS_FIGHTING, STATUS_SAFE};
use crate::event::{Event, Notice};
use crate::generation::{Generator, SPAWN, Spawn, SpawnBody, is_safe};
use crate::hash::Fnv;
use crate::inventory::Inventory;
use crate::paging::Paging;
use crate::record::{PlayerRecord, WorldRecord};
use crate::rng::{Purpose, Roll};
use crate::store::Entities;
use crate::terrain::Terrain;

/// Events kept until they are taken. Further ones are dropped and counted.
pub const MAX_EVENTS: usize = 8192;

/// Chunks without edits that are kept in memory with no player near, unless configured otherwise: a megabyte.
pub const IDLE_CHUNKS: usize = 1024;

/// What a world is made from.
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// The seed of the caves.
    pub seed: u64,
    /// Chunks without edits that are kept in memory with no player near. It has no influence on what happens.
    pub idle_chunks: usize,
}

impl Default for WorldConfig {
    fn default() -> WorldConfig {
        WorldConfig { seed: 0, idle_chunks: IDLE_CHUNKS }
    }
}

/// All state of the caves.
///
/// Chunks in the 3x3 of some player are active: they are loaded, and what lives in them acts. All else sleeps and
/// costs nothing per tick. The same calls in the same order give the same world on any machine.
///
/// There are two kinds of worlds. One from [`World::new`] makes chunks when they are needed and keeps in memory all
/// that happens. A *paged* one, from [`World::restore`], is given its chunks by whoever stores them, and lets go of
/// those that nobody is near.
#[derive(Clone, Debug)]
pub struct World {
    pub(crate) seed: u64,
    pub(crate) tick: u64,
    pub(crate) content: Content,
    pub(crate) terrain: Terrain,
    pub(crate) entities: Entities,
    pub(crate) players: BTreeSet<EntityId>,
    pub(crate) paging: Option<Paging>,
    pub(crate) scratch: Scratch,
    events: Vec<Event>,
    dropped_events: u64,
}

/// Lists that every tick makes anew, kept for their room.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) monsters: Vec<EntityId>,
    pub(crate) players: Vec<EntityId>,
    pub(crate) mourning: Vec<ChunkPos>,
}

impl World {
    /// A new world, at tick 0, without players.
    pub fn new(config: WorldConfig) -> World {
        World {
            seed: config.seed,
            tick: 0,
            content: Content::core(),
            terrain: Terrain::new(config.seed, config.idle_chunks),
            entities: Entities::default(),
            players: BTreeSet::new(),
            paging: None,
            scratch: Scratch::default(),
            events: Vec::new(),
            dropped_events: 0,
        }
    }

    /// The seed of the caves.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Ticks that have ended.
    pub fn tick(&self) -> u64 {
        self.tick
    }

    /// What the caves are made of.
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// An entity, wherever it is. Whether somebody may know of it is [`World::visible`].
    pub fn entity(&self, id: EntityId) -> Option<&Entity> {
        self.entities.get(id)
    }

    /// The players, ascending by id.
    pub fn players(&self) -> impl ExactSizeIterator<Item = EntityId> {
        self.players.iter().copied()
    }

    /// How many entities exist, asleep ones included.
    pub fn entity_count(&self) -> usize {
        self.entities.len()
    }

    /// How many chunks are in memory.
    pub fn loaded_chunks(&self) -> usize {
        self.terrain.loaded()
    }

    /// A new player at the spawn; without a name it is `guest-` and its id. The name is taken as it is.
    ///
    /// All ids used up, four billion, it is [`EntityId::NONE`] and no player; so in a paged world as long as the
    /// chunks around the spawn are not in memory ([`World::is_ready`] of [`SPAWN`]).
    pub fn spawn_player(&mut self, name: Option<&str>) -> EntityId {
        let id = if self.is_ready(SPAWN) { self.entities.allot() } else { None };
        let Some(id) = id else {
            return EntityId::NONE;
        };
        let name = name.map_or_else(|| format!("guest-{id}"), str::to_owned);
        self.admit(id, SPAWN, Player { name, inventory: Inventory::default(), status: 0 });
        id
    }

    /// Gives a player another name. False when `id` is no player.
    pub fn rename_player(&mut self, id: EntityId, name: &str) -> bool {
        let Some(player) = self.entities.player_mut(id) else {
            return false;
        };
        name.clone_into(&mut player.name);
        true
    }

    /// Takes a player out of the world with all it carries. False when `id` is no player.
    pub fn remove_player(&mut self, id: EntityId) -> bool {
        if !self.players.remove(&id) {
            return false;
        }
        if let Some(entity) = self.entities.remove(id) {
            self.go_away(entity.pos.chunk());
        }
        true
    }

    /// What is kept of the world as a whole.
    pub fn record(&self) -> WorldRecord {
        WorldRecord {
            seed: self.seed,
            generator: self.paging.as_ref().map_or(Generator::NEWEST.version(), Paging::generator),
            tick: self.tick,
            last_id: self.entities.last_id(),
        }
    }

    /// What is kept of a player; `None` for what is none.
    pub fn player_record(&self, id: EntityId) -> Option<PlayerRecord> {
        let entity = self.entities.get(id)?;
        let player = entity.player()?;
        Some(PlayerRecord {
            name: player.name.clone(),
            pos: entity.pos,
            hp: entity.hp,
            elo: entity.elo,
            inventory: player.inventory.clone(),
        })
    }

    /// The chunk at `pos`, generated when it is not in memory. Beyond the ground it is bedrock (protocol, R8).
    ///
    /// The first load of a chunk gives it its inhabitants, so it counts as part of what happens to the world.
    ///
    /// A paged world generates nothing: there, what is not in memory is bedrock too. Rather ask
    /// [`World::loaded_chunk`].
    pub fn chunk(&mut self, pos: ChunkPos) -> &Chunk {
        self.load(pos);
        // Loaded above or beyond the ground; a world without it is not reachable.
        self.terrain.get(pos).unwrap_or_else(|| self.terrain.beyond())
    }

    /// The chunk at `pos`, if it is in memory: the 3x3 around every player always is, and so is all beyond the
    /// ground.
    pub fn loaded_chunk(&self, pos: ChunkPos) -> Option<&Chunk> {
        self.terrain.get(pos)
    }

    /// The tile at `pos`; [`TileId::UNKNOWN`] where no chunk is in memory.
    pub fn tile(&self, pos: Pos) -> TileId {
        self.terrain.tile(pos)
    }

    /// Changes a tile of a loaded chunk as if the chunk had changed in `steps` ticks, the present one
    /// included; 0 counts as 1.
    #[cfg(feature = "testing")]
    pub fn set_tile(&mut self, pos: Pos, tile: TileId, steps: u16) {
        self.terrain.set_counted(pos, tile, steps);
    }

    /// Moves all events since the last call to the end of `out`, in the order they happened.
    pub fn take_events(&mut self, out: &mut Vec<Event>) {
        out.append(&mut self.events);
    }

    /// All events since they were last taken, in the order they happened.
    pub fn drain_events(&mut self) -> impl Iterator<Item = Event> {
        self.events.drain(..)
    }

    /// How many events were dropped since the world began, as [`MAX_EVENTS`] were waiting.
    pub fn dropped_events(&self) -> u64 {
        self.dropped_events
    }

    /// A number for the whole state: entities, edited chunks, tick. Two worlds of equal history have the same;
    /// events that wait and chunks that can be generated again do not count. Of a paged world it is what is in
    /// memory, so it depends on when chunks were provided.
    pub fn hash(&self) -> u64 {
        let mut fnv = Fnv::new();
        fnv.u64(self.seed);
        fnv.u64(self.tick);
        fnv.u64(self.entities.last_id().into());
        fnv.u64(self.entities.len() as u64);
        for entity in self.entities.iter() {
            entity.hash_into(&mut fnv);
        }
        for (resident, until) in self.entities.dead() {
            fnv.u16(resident.kind.0);
            fnv.i32(resident.home.x);
            fnv.i32(resident.home.y);
            fnv.u64(until);
        }
        self.terrain.hash_into(&mut fnv);
        fnv.finish()
    }

    pub(crate) fn tell(&mut self, event: Event) {
        if self.events.len() < MAX_EVENTS {
            self.events.push(event);
        } else {
            self.dropped_events += 1;
        }
    }

    pub(crate) fn notice(&mut self, to: EntityId, notice: Notice) {
        self.tell(Event::Notice { to, notice });
    }

    /// A roll about one entity in this tick.
    pub(crate) fn roll(&self, purpose: Purpose, entity: EntityId) -> Roll {
        Roll::new(self.seed, purpose, (self.tick << 32) ^ u64::from(entity.0))
    }

    /// Moves an entity. A player takes its 3x3 along, and stays where it is (false) while a paged world does not
    /// have the new one in memory: no player ever stands where its surroundings are unknown.
    pub(crate) fn relocate(&mut self, id: EntityId, to: Pos) -> bool {
        let Some(entity) = self.entities.get(id) else {
            return false;
        };
        let (old, new) = (entity.pos.chunk(), to.chunk());
        let crosses = old != new && entity.player().is_some();
        if crosses && !self.is_ready(to) {
            return false;
        }
        self.entities.relocate(id, to);
        if crosses {
            // First in, then out: what is in both stays active.
            self.come_near(new);
            self.go_away(old);
            self.load_around(new);
        }
        true
    }

    pub(crate) fn refresh_status(&mut self, id: EntityId) {
        let now = self.tick;
        let Some(entity) = self.entities.get(id) else {
            return;
        };
        let fighting = if entity.is_fighting(now) { STATUS_FIGHTING } else { 0 };
        let safe = if is_safe(entity.pos) { STATUS_SAFE } else { 0 };
        if let Some(player) = self.entities.player_mut(id) {
            player.status = fighting | safe;
        }
    }

    pub(crate) fn add_monster(&mut self, kind: KindId, home: Pos) {
        if let Some(monster) = self.new_monster(kind, home) {
            self.entities.insert(monster);
        }
    }

    /// A monster at its home that nobody knows yet. `None` when the kind is undefined or all ids are used up.
    pub(crate) fn new_monster(&mut self, kind: KindId, home: Pos) -> Option<Entity> {
        let def = self.content.kind(kind)?;
        let id = self.entities.allot()?;
        // Monsters of one chunk do not all move in the same tick.
        let next_act_tick = self.tick + u64::from(id.0 % 8);
        let body = Body::Monster(Monster { home, next_act_tick, angry_at: None });
        Some(Entity::new(id, kind, def, home, body))
    }

    /// Puts items on a tile, onto a stack of the same kind where the count allows. False when that is not
    /// possible, as all ids are used up.
    pub(crate) fn lay_down(&mut self, item: KindId, count: u16, pos: Pos) -> bool {
        let stacks = self.entities.at(pos).filter(|spot| spot.class == Class::Item);
        let ids: Vec<EntityId> = stacks.map(|spot| spot.id).collect();
        for id in ids {
            if let Some(mut entity) = self.entities.get_mut(id)
                && entity.kind == item
                && let Body::Item { count: lying } = &mut entity.body
                && let Some(sum) = lying.checked_add(count)
            {
                *lying = sum;
                return true;
            }
        }
        let Some(id) = self.entities.allot() else {
            return false;
        };
        self.add(id, item, pos, Body::Item { count })
    }

    fn add(&mut self, id: EntityId, kind: KindId, pos: Pos, body: Body) -> bool {
        let Some(def) = self.content.kind(kind) else {
            return false;
        };
        self.entities.insert(Entity::new(id, kind, def, pos, body));
        true
    }

    /// Makes a player's figure. Its 3x3 is in memory, or is generated.
    pub(crate) fn admit(&mut self, id: EntityId, pos: Pos, player: Player) {
        self.add(id, KindId::PLAYER, pos, Body::Player(player));
        self.players.insert(id);
        self.come_near(pos.chunk());
        self.load_around(pos.chunk());
        self.refresh_status(id);
    }

    pub(crate) fn load_around(&mut self, pos: ChunkPos) {
        for chunk in pos.around() {
            self.load(chunk);
        }
    }

    /// A player is now in this chunk.
    fn come_near(&mut self, pos: ChunkPos) {
        for chunk in pos.around() {
            self.terrain.enter(chunk);
        }
        if let Some(paging) = &mut self.paging {
            paging.enter(pos, &self.terrain);
        }
    }

    /// A player is no longer in this chunk.
    fn go_away(&mut self, pos: ChunkPos) {
        for chunk in pos.around() {
            self.terrain.leave(chunk, self.tick);
        }
        if let Some(paging) = &mut self.paging {
            paging.leave(pos);
        }
    }

    fn load(&mut self, pos: ChunkPos) {
        if self.paging.is_none() && self.terrain.load(pos, self.tick, &self.content) {
            self.populate(pos, Generator::NEWEST);
        }
    }

    /// Gives a chunk that nobody has visited its inhabitants.
    fn populate(&mut self, pos: ChunkPos, generator: Generator) {
        let Some(chunk) = self.terrain.get(pos) else {
            return;
        };
        let spawns: Vec<Spawn> = generator.inhabitants(self.seed, pos, chunk, &self.content);
        for spawn in spawns {
            let body = match spawn.body {
                SpawnBody::Monster => {
                    self.add_monster(spawn.kind, spawn.pos);
                    continue;
                }
                SpawnBody::Chest(inventory) => Body::Chest { inventory },
                SpawnBody::Sign(text) => Body::Sign { text },
                SpawnBody::Item(count) => Body::Item { count },
            };
            if let Some(id) = self.entities.allot() {
                self.add(id, spawn.kind, spawn.pos, body);
            }
        }
    }
}

mod paged;
#[cfg(test)]
mod tests;
