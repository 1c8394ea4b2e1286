//! A chunk: 32 by 32 tiles as a palette and one palette index per tile, with a version.
//!
//! ```
//! use caves_world::{Chunk, TileId};
//!
//! let mut chunk = Chunk::filled(TileId::ROCK);
//! assert_eq!(chunk.set(33, TileId::FLOOR), Ok(true));
//! assert_eq!(chunk.set(33, TileId::FLOOR), Ok(false));
//! assert_eq!(chunk.tile(33), TileId::FLOOR);
//! assert_eq!(chunk.palette(), [TileId::ROCK, TileId::FLOOR]);
//! ```

use thiserror::Error;

use crate::content::TileId;
use crate::coord::CHUNK_TILES;

/// Kinds of tiles that one chunk can hold (protocol, R27).
pub const MAX_PALETTE: usize = 64;

/// A 65th kind of tile was refused (protocol, R27).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the chunk holds 64 kinds of tiles already; tile {0} would be another")]
pub struct PaletteFull(
    /// The refused tile.
    pub u16,
);

/// 32 by 32 tiles.
///
/// The palette has 1 to 64 entries without repeats; every index is below its length. An entry may stand in
/// the palette without a tile that uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    palette: Vec<TileId>,
    indices: Box<[u8; CHUNK_TILES]>,
    version: u16,
}

impl Chunk {
    /// A chunk of one kind of tile, at version 1.
    pub fn filled(tile: TileId) -> Chunk {
        Chunk { palette: vec![tile], indices: Box::new([0; CHUNK_TILES]), version: 1 }
    }

    /// A chunk as it was kept; `None` when the palette is empty, repeats itself or has more than 64
    /// entries, an index is not below its length, or the version is 0.
    ///
    /// ```
    /// use caves_world::{Chunk, TileId};
    ///
    /// let chunk = Chunk::filled(TileId::ROCK);
    /// let indices = Box::new(*chunk.indices());
    /// assert_eq!(Chunk::from_parts(vec![TileId::ROCK], indices, 1), Some(chunk));
    /// assert_eq!(Chunk::from_parts(vec![TileId::ROCK], Box::new([1; 1024]), 1), None);
    /// ```
    pub fn from_parts(
        palette: Vec<TileId>,
        indices: Box<[u8; CHUNK_TILES]>,
        version: u16,
    ) -> Option<Chunk> {
        let mut sorted = palette.clone();
        sorted.sort_unstable();
        let repeats = sorted.windows(2).any(|pair| pair[0] == pair[1]);
        let within = indices.iter().all(|&index| usize::from(index) < palette.len());
        let valid = palette.len() <= MAX_PALETTE && within && !repeats && version != 0;
        valid.then_some(Chunk { palette, indices, version })
    }

    /// The kinds of tiles that the indices mean.
    pub fn palette(&self) -> &[TileId] {
        &self.palette
    }

    /// One palette index per tile, row-major.
    pub fn indices(&self) -> &[u8; CHUNK_TILES] {
        &self.indices
    }

    /// Counts the ticks in which this chunk changed, from 1; after 65535 comes 1, as 0 means "not held"
    /// (protocol, R10).
    pub fn version(&self) -> u16 {
        self.version
    }

    /// The tile at `index` (`y * 32 + x`); beyond the chunk it is [`TileId::UNKNOWN`].
    pub fn tile(&self, index: usize) -> TileId {
        let entry = self.indices.get(index).and_then(|&i| self.palette.get(usize::from(i)));
        entry.copied().unwrap_or(TileId::UNKNOWN)
    }

    /// Puts `tile` at `index` and says whether that changed anything. The version stays: the world raises
    /// it at the end of the tick.
    ///
    /// # Errors
    ///
    /// [`PaletteFull`] when the chunk would hold a 65th kind of tile. An `index` beyond the chunk changes nothing.
    pub fn set(&mut self, index: usize, tile: TileId) -> Result<bool, PaletteFull> {
        if index >= CHUNK_TILES || self.tile(index) == tile {
            return Ok(false);
        }
        let entry = match self.palette.iter().position(|&known| known == tile) {
            Some(entry) => entry,
            None => self.new_entry(index, tile)?,
        };
        self.indices[index] = entry as u8;
        Ok(true)
    }

    /// Called at most once a tick (protocol, R10).
    pub(crate) fn raise_version(&mut self) {
        self.version = self.version.checked_add(1).unwrap_or(1);
    }

    fn new_entry(&mut self, index: usize, tile: TileId) -> Result<usize, PaletteFull> {
        if self.palette.len() < MAX_PALETTE {
            self.palette.push(tile);
            return Ok(self.palette.len() - 1);
        }
        let free = self.unused_entry_without(index).ok_or(PaletteFull(tile.0))?;
        self.palette[free] = tile;
        Ok(free)
    }

    /// An entry that no tile uses once the tile at `index` is overwritten.
    fn unused_entry_without(&self, index: usize) -> Option<usize> {
        let mut used = 0u64;
        for (at, &entry) in self.indices.iter().enumerate() {
            if at != index {
                used |= 1 << entry;
            }
        }
        (used != u64::MAX).then(|| used.trailing_ones() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sixty_fifth_kind_is_refused_and_changes_nothing() {
        let mut chunk = Chunk::filled(TileId(100));
        for i in 1..64 {
            assert_eq!(chunk.set(i, TileId(100 + i as u16)), Ok(true));
        }
        let before = chunk.clone();
        assert_eq!(chunk.set(64, TileId(200)), Err(PaletteFull(200)));
        assert_eq!(chunk, before);
        assert_eq!(chunk.palette().len(), 64);
    }

    #[test]
    fn freed_entry_is_used_again_when_the_palette_is_full() {
        let mut chunk = Chunk::filled(TileId(100));
        for i in 1..64 {
            chunk.set(i, TileId(100 + i as u16)).unwrap();
        }
        // The last tile of kind 105 goes, either by another kind...
        assert_eq!(chunk.set(5, TileId(100)), Ok(true));
        assert_eq!(chunk.set(64, TileId(200)), Ok(true));
        // ...or by the new kind itself.
        assert_eq!(chunk.set(7, TileId(201)), Ok(true));
        assert_eq!(chunk.set(70, TileId(107)), Err(PaletteFull(107)));
        assert_eq!(
            (chunk.tile(5), chunk.tile(64), chunk.tile(7)),
            (TileId(100), TileId(200), TileId(201))
        );
    }

    #[test]
    fn version_after_65535_is_1() {
        let mut chunk = Chunk::filled(TileId::ROCK);
        for _ in 0..65534 {
            chunk.raise_version();
        }
        assert_eq!(chunk.version(), 65535);
        chunk.raise_version();
        assert_eq!(chunk.version(), 1);
    }

    #[test]
    fn parts_that_are_no_chunk_are_refused() {
        let kinds = |n: u16| (0..n).map(TileId).collect::<Vec<_>>();
        let made = |palette, index, version| {
            Chunk::from_parts(palette, Box::new([index; CHUNK_TILES]), version)
        };
        assert!(made(kinds(64), 63, 65535).is_some());
        assert!(made(kinds(65), 0, 1).is_none(), "65 kinds");
        assert!(made(kinds(0), 0, 1).is_none(), "no kind");
        assert!(made(kinds(5), 5, 1).is_none(), "an index beyond");
        assert!(made(kinds(5), 4, 0).is_none(), "version 0 means not held");
        assert!(made(vec![TileId(3), TileId(9), TileId(3)], 0, 1).is_none(), "a kind twice");
    }

    #[test]
    fn beyond_the_chunk_nothing_is_known_or_changed() {
        let mut chunk = Chunk::filled(TileId::ROCK);
        assert_eq!(chunk.set(1024, TileId::FLOOR), Ok(false));
        assert_eq!(chunk.tile(1024), TileId::UNKNOWN);
        assert_eq!(chunk, Chunk::filled(TileId::ROCK));
    }

    proptest! {
        #[test]
        fn chunk_agrees_with_a_plain_array(
            edits in proptest::collection::vec((0usize..1024, 0u16..80), 0..400)
        ) {
            let mut chunk = Chunk::filled(TileId(0));
            let mut model = [0u16; 1024];
            for (index, tile) in edits {
                let mut after = model;
                after[index] = tile;
                let mut kinds = after.to_vec();
                kinds.sort_unstable();
                kinds.dedup();
                let result = chunk.set(index, TileId(tile));
                if kinds.len() > 64 {
                    prop_assert_eq!(result, Err(PaletteFull(tile)));
                } else {
                    prop_assert_eq!(result, Ok(model[index] != tile));
                    model = after;
                }
                prop_assert!(chunk.palette().len() <= 64);
            }
            for (index, &tile) in model.iter().enumerate() {
                prop_assert_eq!(chunk.tile(index), TileId(tile));
            }
        }
    }
}
