//! All entities, by id and by chunk, and who of them lives where.
//!
//! Whatever changes what is kept of a chunk ([`ChunkRecord`](crate::record::ChunkRecord)) goes through here or
//! through the terrain, and is marked here: no caller has to think of it.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use crate::content::Class;
use crate::coord::{ChunkPos, Pos};
use crate::entity::{Body, Entity, EntityId, Player};
use crate::paging::Marks;
use crate::record::Resident;
use crate::residents::{Dweller, Residents};

/// An entity as its chunk's bucket knows it: enough to decide most questions without looking it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) id: EntityId,
    pub(crate) pos: Pos,
    pub(crate) class: Class,
}

/// Owns the entities. Every entity has exactly one spot, in the bucket of its chunk; a bucket ascends by id
/// and is never empty. Every monster is the body of exactly one dweller of its home's chunk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entities {
    by_id: BTreeMap<EntityId, Entity>,
    buckets: BTreeMap<ChunkPos, Vec<Spot>>,
    residents: Residents,
    /// Chunks of which something else is to be kept than when this was last taken.
    pub(crate) marks: Marks,
    last: u32,
}

impl Entities {
    /// None yet, but ids up to `last` were given away; changes are marked.
    pub(crate) fn paged(last: u32) -> Entities {
        Entities { last, marks: Marks::kept(), ..Entities::default() }
    }

    /// A new id; `None` when all four billion are used up, as they are never reused.
    pub(crate) fn allot(&mut self) -> Option<EntityId> {
        self.last = self.last.checked_add(1)?;
        Some(EntityId(self.last))
    }

    /// A new entity. A monster becomes a resident of its home.
    pub(crate) fn insert(&mut self, entity: Entity) {
        if let Body::Monster(monster) = &entity.body {
            let resident = Resident {
                kind: entity.kind,
                home: monster.home,
                elo: entity.elo,
                dead_until: None,
            };
            let dweller = Dweller { resident, body: Some(entity.id) };
            self.residents.add(monster.home.chunk(), dweller);
        }
        self.mark(&entity);
        self.place(entity);
    }

    /// An entity is no more. A monster is no resident any longer.
    pub(crate) fn remove(&mut self, id: EntityId) -> Option<Entity> {
        let entity = self.take_away(id)?;
        if let Body::Monster(monster) = &entity.body {
            self.residents.take_out(monster.home, id);
        }
        self.mark(&entity);
        Some(entity)
    }

    /// A monster dies; its home awaits it from tick `until` on, with rating `elo`.
    pub(crate) fn bury(&mut self, id: EntityId, elo: u16, until: u64) -> Option<Entity> {
        let entity = self.take_away(id)?;
        if let Body::Monster(monster) = &entity.body {
            self.residents.bury(monster.home, id, elo, until);
        }
        self.mark(&entity);
        Some(entity)
    }

    /// The dead dweller number `at` of `chunk` is back, as `monster`.
    pub(crate) fn wake(&mut self, chunk: ChunkPos, at: usize, monster: Entity) {
        self.residents.wake(chunk, at, monster.id);
        self.mark(&monster);
        self.place(monster);
    }

    /// Those who live in a chunk, wherever they are; the dead in the order of their deaths.
    pub(crate) fn dwellers(&self, chunk: ChunkPos) -> &[Dweller] {
        self.residents.of(chunk)
    }

    /// All that wait to come back, and from when on.
    pub(crate) fn dead(&self) -> impl Iterator<Item = (&Resident, u64)> {
        self.residents.dead()
    }

    /// An id that is in use without having been allotted here.
    pub(crate) fn reserve(&mut self, id: EntityId) {
        self.last = self.last.max(id.0);
    }

    /// A thing as it was kept.
    pub(crate) fn restore_thing(&mut self, thing: Entity) {
        self.place(thing);
    }

    /// A resident as it was kept, and its body if it is to have one.
    pub(crate) fn restore_dweller(
        &mut self,
        chunk: ChunkPos,
        resident: Resident,
        body: Option<Entity>,
    ) {
        self.residents.add(chunk, Dweller { resident, body: body.as_ref().map(|body| body.id) });
        if let Some(body) = body {
            self.place(body);
        }
    }

    /// Forgets what is in a chunk and who lives there. Monsters from elsewhere that sleep in it go home.
    pub(crate) fn put_away(&mut self, chunk: ChunkPos) {
        for dweller in self.residents.remove_all(chunk) {
            dweller.body.and_then(|body| self.take_away(body));
        }
        for spot in self.in_chunk(chunk).to_vec() {
            match self.by_id.get(&spot.id).and_then(Entity::monster).map(|monster| monster.home) {
                Some(home) => _ = self.relocate(spot.id, home),
                None => _ = self.take_away(spot.id),
            }
        }
    }

    /// Moves an entity: the only way its position changes. Returns where it was.
    pub(crate) fn relocate(&mut self, id: EntityId, to: Pos) -> Option<Pos> {
        let entity = self.by_id.get_mut(&id)?;
        let from = std::mem::replace(&mut entity.pos, to);
        if entity.is_static() {
            self.marks.add(from.chunk());
            self.marks.add(to.chunk());
        }
        let spot = Spot { id, pos: to, class: entity.class() };
        self.take(id, from.chunk());
        self.put(spot);
        Some(from)
    }

    pub(crate) fn get(&self, id: EntityId) -> Option<&Entity> {
        self.by_id.get(&id)
    }

    /// Whoever changes an entity through this leaves its id, position and class alone.
    pub(crate) fn get_mut(&mut self, id: EntityId) -> Option<Change<'_>> {
        let entity = self.by_id.get_mut(&id)?;
        Some(Change { elo: entity.elo, touched: false, entity, marks: &mut self.marks })
    }

    /// A player's own: it belongs to no chunk.
    pub(crate) fn player_mut(&mut self, id: EntityId) -> Option<&mut Player> {
        self.by_id.get_mut(&id)?.player_mut()
    }

    /// The entities of a chunk, ascending by id.
    pub(crate) fn in_chunk(&self, chunk: ChunkPos) -> &[Spot] {
        self.buckets.get(&chunk).map_or(&[], Vec::as_slice)
    }

    /// The entities on a tile, ascending by id.
    pub(crate) fn at(&self, pos: Pos) -> impl Iterator<Item = Spot> {
        self.in_chunk(pos.chunk()).iter().copied().filter(move |spot| spot.pos == pos)
    }

    /// The entities within a rectangle, both corners inclusive; by chunk, not ascending overall.
    pub(crate) fn within(&self, north_west: Pos, south_east: Pos) -> impl Iterator<Item = Spot> {
        let (first, last) = (north_west.chunk(), south_east.chunk());
        let chunks = (first.y..=last.y)
            .flat_map(move |y| (first.x..=last.x).map(move |x| ChunkPos { x, y }));
        chunks.flat_map(|chunk| self.in_chunk(chunk)).copied().filter(move |spot| {
            (north_west.x..=south_east.x).contains(&spot.pos.x)
                && (north_west.y..=south_east.y).contains(&spot.pos.y)
        })
    }

    /// All entities, ascending by id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entity> {
        self.by_id.values()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// The highest id given so far.
    pub(crate) fn last_id(&self) -> u32 {
        self.last
    }

    /// Something else is to be kept of the chunk that this entity belongs to.
    fn mark(&mut self, entity: &Entity) {
        self.marks.add_if(keeper(entity));
    }

    fn place(&mut self, entity: Entity) {
        let spot = Spot { id: entity.id, pos: entity.pos, class: entity.class() };
        self.put(spot);
        self.by_id.insert(entity.id, entity);
    }

    fn take_away(&mut self, id: EntityId) -> Option<Entity> {
        let entity = self.by_id.remove(&id)?;
        self.take(id, entity.pos.chunk());
        Some(entity)
    }

    fn put(&mut self, spot: Spot) {
        let bucket = self.buckets.entry(spot.pos.chunk()).or_default();
        match bucket.binary_search_by_key(&spot.id, |known| known.id) {
            Ok(at) => bucket[at] = spot,
            Err(at) => bucket.insert(at, spot),
        }
    }

    fn take(&mut self, id: EntityId, chunk: ChunkPos) {
        let Some(bucket) = self.buckets.get_mut(&chunk) else {
            return;
        };
        bucket.retain(|spot| spot.id != id);
        if bucket.is_empty() {
            self.buckets.remove(&chunk);
        }
    }

    /// Panics unless buckets and entities agree.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        let spots: usize = self.buckets.values().map(Vec::len).sum();
        assert_eq!(spots, self.by_id.len());
        for (chunk, bucket) in &self.buckets {
            assert!(bucket.is_sorted_by(|a, b| a.id < b.id) && !bucket.is_empty());
            for spot in bucket {
                let entity = &self.by_id[&spot.id];
                assert_eq!((entity.pos, entity.class()), (spot.pos, spot.class));
                assert_eq!(entity.pos.chunk(), *chunk);
            }
        }
        let mut bodies: Vec<EntityId> =
            self.residents.iter().filter_map(|dweller| dweller.body).collect();
        bodies.sort_unstable();
        let monsters = self.by_id.values().filter(|entity| entity.monster().is_some());
        assert_eq!(bodies, monsters.map(|entity| entity.id).collect::<Vec<_>>());
        for dweller in self.residents.iter() {
            let home = dweller.body.map(|body| self.by_id[&body].monster().map(|own| own.home));
            assert!(home.is_none_or(|home| home == Some(dweller.resident.home)));
        }
    }

    /// Removes all but players, and forgets who is yet to come back.
    #[cfg(test)]
    pub(crate) fn clear_but_players(&mut self) {
        self.residents.clear();
        let others = self.by_id.values().filter(|entity| entity.player().is_none());
        for id in others.map(|entity| entity.id).collect::<Vec<_>>() {
            self.take_away(id);
        }
    }
}

/// An entity that is being changed. When this ends, the chunk whose record it changes is marked.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    entity: &'a mut Entity,
    marks: &'a mut Marks,
    /// The rating before: all that is kept of a living monster and can change.
    elo: u16,
    touched: bool,
}

impl Deref for Change<'_> {
    type Target = Entity;

    fn deref(&self) -> &Entity {
        self.entity
    }
}

impl DerefMut for Change<'_> {
    fn deref_mut(&mut self) -> &mut Entity {
        self.touched = true;
        self.entity
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        // Monsters change all the time in ways that nobody keeps: where they are, hit points, moods.
        if self.touched && (self.entity.is_static() || self.entity.elo != self.elo) {
            self.marks.add_if(keeper(self.entity));
        }
    }
}

/// The chunk in whose record this entity stands: a thing where it lies, a monster where it lives.
fn keeper(entity: &Entity) -> Option<ChunkPos> {
    match &entity.body {
        Body::Player(_) => None,
        Body::Monster(monster) => Some(monster.home.chunk()),
        Body::Chest { .. } | Body::Sign { .. } | Body::Item { .. } => Some(entity.pos.chunk()),
    }
}
