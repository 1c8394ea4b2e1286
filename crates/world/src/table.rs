//! Tables by chunk and by entity, for questions that are asked many times a tick.
//!
//! A lookup must cost the same however much sleeps in the world, so these are hash tables. Nothing that happens may
//! depend on their order: whoever goes through one of them sorts what comes of it, or only counts.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::coord::ChunkPos;
use crate::entity::EntityId;

/// Something by chunk.
pub(crate) type ChunkMap<V> = HashMap<ChunkPos, V, BuildHasherDefault<Mix>>;

/// Something by entity.
pub(crate) type EntityMap<V> = HashMap<EntityId, V, BuildHasherDefault<Mix>>;

/// Mixes two small numbers: keys are places and ids that the world itself has given, and nobody outside chooses
/// many of them freely.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(byte.into()));
    }

    fn write_u32(&mut self, value: u32) {
        // An odd number without a pattern: 2^64 divided by the golden ratio.
        self.0 = (self.0.rotate_left(32) ^ u64::from(value)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write_i32(&mut self, value: i32) {
        self.write_u32(value.cast_unsigned());
    }

    fn finish(&self) -> u64 {
        // The high bits are the mixed ones; a table looks at both ends.
        self.0 ^ self.0 >> 32
    }
}

/// How many times each chunk was counted in and not yet out. Only those counted at least once are in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    by_chunk: ChunkMap<u32>,
    /// Room was made for twice so many. A table that is at most half full is cleaned up where it is when chunks
    /// come and go; it is never moved, so that walking allocates nothing.
    most: usize,
}

impl Counts {
    /// Counts a chunk in.
    pub(crate) fn add(&mut self, chunk: ChunkPos) {
        if self.by_chunk.len() >= self.most {
            self.most = 2 * self.by_chunk.len().max(32);
            self.by_chunk.reserve(2 * self.most);
        }
        *self.by_chunk.entry(chunk).or_default() += 1;
    }

    /// Counts a chunk out, if it is in. True when it is not in any more.
    pub(crate) fn take(&mut self, chunk: ChunkPos) -> bool {
        let Some(count) = self.by_chunk.get_mut(&chunk) else {
            return false;
        };
        *count -= 1;
        let last = *count == 0;
        if last {
            self.by_chunk.remove(&chunk);
        }
        last
    }

    pub(crate) fn contains(&self, chunk: ChunkPos) -> bool {
        self.by_chunk.contains_key(&chunk)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_chunk.len()
    }

    /// The chunks, in no order.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = ChunkPos> {
        self.by_chunk.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::hash::{BuildHasher, Hash};

    use proptest::prelude::*;

    proptest! {
        #[test]
        fn counts_agree_with_a_plain_map(
            operations in proptest::collection::vec((any::<bool>(), -2i32..2, -2i32..2), 0..300)
        ) {
            let mut counts = Counts::default();
            let mut model = BTreeMap::<ChunkPos, u32>::new();
            for (adds, x, y) in operations {
                let chunk = ChunkPos { x, y };
                let held = model.get(&chunk).copied().unwrap_or(0);
                if adds {
                    counts.add(chunk);
                    model.insert(chunk, held + 1);
                } else {
                    prop_assert_eq!(counts.take(chunk), held == 1);
                    model.insert(chunk, held.saturating_sub(1));
                }
                model.retain(|_, count| *count > 0);
                let mut chunks: Vec<ChunkPos> = counts.chunks().collect();
                chunks.sort_unstable();
                prop_assert!(chunks.iter().eq(model.keys()));
                prop_assert_eq!(counts.len(), model.len());
                prop_assert_eq!(counts.contains(chunk), model.contains_key(&chunk));
            }
        }
    }

    #[test]
    fn chunks_that_come_and_go_leave_the_table_where_it_is() {
        let mut counts = Counts::default();
        let at = |n: i32| ChunkPos { x: n % 911, y: n / 911 };
        (0..1000).for_each(|n| counts.add(at(n)));
        let room = counts.most;
        for n in 0..100_000 {
            assert!(counts.take(at(n)));
            counts.add(at(n + 1000));
        }
        assert_eq!((counts.len(), counts.most), (1000, room));
    }

    #[test]
    fn neighbouring_chunks_spread_over_a_table() {
        let hash = |x, y| BuildHasherDefault::<Mix>::default().hash_one(ChunkPos { x, y });
        // Of 4096 hashes in 4096 places about 1 - 1/e of the places are taken: 2589.
        for shift in [0, 25] {
            let mut taken = vec![false; 4096];
            (-32..32).for_each(|x| {
                (-32..32).for_each(|y| taken[(hash(x, y) >> shift) as usize % 4096] = true);
            });
            let taken = taken.iter().filter(|taken| **taken).count();
            assert!(taken > 2300, "{taken} places, bits from {shift}");
        }
        let mut bytes = Mix::default();
        [7u8].hash(&mut bytes);
        assert_ne!(bytes.finish(), 0);
    }
}
