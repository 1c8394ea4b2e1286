//! All entities, by id and by chunk.

use std::collections::BTreeMap;

use crate::content::Class;
use crate::coord::{ChunkPos, Pos};
use crate::entity::{Entity, EntityId};

/// An entity as its chunk's bucket knows it: enough to decide most questions without looking it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) id: EntityId,
    pub(crate) pos: Pos,
    pub(crate) class: Class,
}

/// Owns the entities. Every entity has exactly one spot, in the bucket of its chunk; a bucket ascends by id
/// and is never empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entities {
    by_id: BTreeMap<EntityId, Entity>,
    buckets: BTreeMap<ChunkPos, Vec<Spot>>,
    last: u32,
}

impl Entities {
    /// A new id; `None` when all four billion are used up, as they are never reused.
    pub(crate) fn allot(&mut self) -> Option<EntityId> {
        self.last = self.last.checked_add(1)?;
        Some(EntityId(self.last))
    }

    pub(crate) fn insert(&mut self, entity: Entity) {
        let spot = Spot { id: entity.id, pos: entity.pos, class: entity.class() };
        self.put(spot);
        self.by_id.insert(entity.id, entity);
    }

    pub(crate) fn remove(&mut self, id: EntityId) -> Option<Entity> {
        let entity = self.by_id.remove(&id)?;
        self.take(id, entity.pos.chunk());
        Some(entity)
    }

    /// Moves an entity: the only way its position changes. Returns where it was.
    pub(crate) fn relocate(&mut self, id: EntityId, to: Pos) -> Option<Pos> {
        let entity = self.by_id.get_mut(&id)?;
        let from = std::mem::replace(&mut entity.pos, to);
        let spot = Spot { id, pos: to, class: entity.class() };
        self.take(id, from.chunk());
        self.put(spot);
        Some(from)
    }

    pub(crate) fn get(&self, id: EntityId) -> Option<&Entity> {
        self.by_id.get(&id)
    }

    /// Whoever changes an entity through this leaves its id, position and class alone.
    pub(crate) fn get_mut(&mut self, id: EntityId) -> Option<&mut Entity> {
        self.by_id.get_mut(&id)
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
    }
}
