//! The chunks in memory.
//!
//! A chunk that a player is near (in whose 3x3 it lies) is active and stays; an edited one stays for good, as it
//! cannot be generated again; of the others a bounded number is kept, the longest unvisited go first.
//!
//! In a paged world nothing comes or goes by itself: chunks are put in and removed by the world.

use std::collections::BTreeSet;

use crate::chunk::{Chunk, PaletteFull};
use crate::content::{Content, TileId};
use crate::coord::{ChunkPos, Pos};
use crate::generation::Generator;
use crate::hash::Fnv;
use crate::paging::Marks;
use crate::table::{ChunkMap, Counts};

#[derive(Clone, Debug)]
struct Slot {
    chunk: Chunk,
    edited: bool,
    /// Who made it.
    generator: Generator,
    /// The tick in which it was loaded or last near a player.
    used: u64,
}

/// Owns the chunks.
#[derive(Clone, Debug)]
pub(crate) struct Terrain {
    seed: u64,
    chunks: ChunkMap<Slot>,
    /// How many players each active chunk is near to.
    near: Counts,
    /// Changed in this tick; ascending.
    dirty: Vec<ChunkPos>,
    /// Chunks whose inhabitants exist; it only grows.
    populated: BTreeSet<ChunkPos>,
    edited: usize,
    idle_limit: usize,
    /// Chunks whose tiles are others than when this was last taken.
    pub(crate) marks: Marks,
    /// What lies beyond the ground.
    bedrock: Chunk,
}

impl Terrain {
    pub(crate) fn new(seed: u64, idle_limit: usize) -> Terrain {
        Terrain {
            seed,
            chunks: ChunkMap::default(),
            near: Counts::default(),
            dirty: Vec::new(),
            populated: BTreeSet::new(),
            edited: 0,
            idle_limit,
            marks: Marks::default(),
            bedrock: Chunk::filled(TileId::BEDROCK),
        }
    }

    /// Nothing, until chunks are put in; changes are marked.
    pub(crate) fn paged(seed: u64) -> Terrain {
        // Nothing is loaded by itself, so nothing has to make room.
        Terrain { marks: Marks::kept(), ..Terrain::new(seed, usize::MAX) }
    }

    /// The chunk, if it is in memory. What lies beyond the ground always is.
    pub(crate) fn get(&self, pos: ChunkPos) -> Option<&Chunk> {
        if pos.is_ground() {
            self.chunks.get(&pos).map(|slot| &slot.chunk)
        } else {
            Some(&self.bedrock)
        }
    }

    /// The chunk that stands for all beyond the ground.
    pub(crate) fn beyond(&self) -> &Chunk {
        &self.bedrock
    }

    /// The tile, [`TileId::UNKNOWN`] where nothing is loaded.
    pub(crate) fn tile(&self, pos: Pos) -> TileId {
        self.get(pos.chunk()).map_or(TileId::UNKNOWN, |chunk| chunk.tile(pos.index()))
    }

    /// Brings a chunk into memory. True when this is the first time ever: then it wants its inhabitants.
    pub(crate) fn load(&mut self, pos: ChunkPos, now: u64, content: &Content) -> bool {
        if !pos.is_ground() || self.chunks.contains_key(&pos) {
            return false;
        }
        self.make_room();
        let generator = Generator::NEWEST;
        let chunk = generator.chunk(self.seed, pos, content);
        self.chunks.insert(pos, Slot { chunk, edited: false, generator, used: now });
        self.populated.insert(pos)
    }

    /// Puts in a chunk that nobody has visited: to keep that it was is a change.
    pub(crate) fn discover(
        &mut self,
        pos: ChunkPos,
        generator: Generator,
        now: u64,
        content: &Content,
    ) {
        self.restore(pos, generator, None, now, content);
        self.marks.add(pos);
    }

    /// Puts in a chunk as it was kept.
    pub(crate) fn restore(
        &mut self,
        pos: ChunkPos,
        generator: Generator,
        edited: Option<Chunk>,
        now: u64,
        content: &Content,
    ) {
        let slot = match edited {
            Some(chunk) => Slot { chunk, edited: true, generator, used: now },
            None => {
                let chunk = generator.chunk(self.seed, pos, content);
                Slot { chunk, edited: false, generator, used: now }
            }
        };
        self.edited += usize::from(slot.edited);
        self.chunks.insert(pos, slot);
    }

    /// Takes a chunk out of memory.
    pub(crate) fn remove(&mut self, pos: ChunkPos) {
        if let Some(slot) = self.chunks.remove(&pos) {
            self.edited -= usize::from(slot.edited);
        }
    }

    /// Who made a loaded chunk, and the chunk itself where that cannot make it again.
    pub(crate) fn kept(&self, pos: ChunkPos) -> Option<(Generator, Option<&Chunk>)> {
        let slot = self.chunks.get(&pos)?;
        Some((slot.generator, slot.edited.then_some(&slot.chunk)))
    }

    /// All chunks in memory with the tick in which each was loaded or last near a player, in no order.
    pub(crate) fn used(&self) -> impl Iterator<Item = (u64, ChunkPos)> {
        self.chunks.iter().map(|(&pos, slot)| (slot.used, pos))
    }

    /// A player came near this chunk.
    pub(crate) fn enter(&mut self, pos: ChunkPos) {
        if pos.is_ground() {
            self.near.add(pos);
        }
    }

    /// A player that had come near is no longer.
    pub(crate) fn leave(&mut self, pos: ChunkPos, now: u64) {
        if self.near.take(pos)
            && let Some(slot) = self.chunks.get_mut(&pos)
        {
            slot.used = now;
        }
    }

    pub(crate) fn is_active(&self, pos: ChunkPos) -> bool {
        self.near.contains(pos)
    }

    /// The chunks near players, in no order.
    pub(crate) fn active(&self) -> impl Iterator<Item = ChunkPos> {
        self.near.chunks()
    }

    /// Changes a tile of a loaded chunk; false where none is loaded or nothing changed.
    pub(crate) fn set(&mut self, pos: Pos, tile: TileId) -> Result<bool, PaletteFull> {
        let chunk = pos.chunk();
        let Some(slot) = self.chunks.get_mut(&chunk) else {
            return Ok(false);
        };
        let changed = slot.chunk.set(pos.index(), tile)?;
        if changed {
            self.edited += usize::from(!slot.edited);
            slot.edited = true;
            if let Err(at) = self.dirty.binary_search(&chunk) {
                self.dirty.insert(at, chunk);
            }
            self.marks.add(chunk);
        }
        Ok(changed)
    }

    /// Changes a tile, and the version by `steps` once the tick ends.
    #[cfg(feature = "testing")]
    pub(crate) fn set_counted(&mut self, pos: Pos, tile: TileId, steps: u16) {
        assert_eq!(self.set(pos, tile), Ok(true), "a loaded chunk with another tile there");
        if let Some(slot) = self.chunks.get_mut(&pos.chunk()) {
            (1..steps).for_each(|_| slot.chunk.raise_version());
        }
    }

    /// Ends a tick: what changed in it gets its next version (protocol, R10).
    pub(crate) fn raise_versions(&mut self) {
        for pos in self.dirty.drain(..) {
            if let Some(slot) = self.chunks.get_mut(&pos) {
                slot.chunk.raise_version();
                self.marks.add(pos);
            }
        }
    }

    pub(crate) fn loaded(&self) -> usize {
        self.chunks.len()
    }

    pub(crate) fn hash_into(&self, fnv: &mut Fnv) {
        let mut edited: Vec<_> = self.chunks.iter().filter(|(_, slot)| slot.edited).collect();
        edited.sort_unstable_by_key(|(pos, _)| **pos);
        for (pos, slot) in edited {
            fnv.i32(pos.x);
            fnv.i32(pos.y);
            fnv.u16(slot.chunk.version());
            // Tiles, not indices: how a palette is arranged is no part of the state.
            for index in 0..slot.chunk.indices().len() {
                fnv.u16(slot.chunk.tile(index).0);
            }
        }
        fnv.u64(self.dirty.len() as u64);
        fnv.u64(self.populated.len() as u64);
        for pos in self.dirty.iter().chain(&self.populated) {
            fnv.i32(pos.x);
            fnv.i32(pos.y);
        }
    }

    /// Drops idle chunks beyond the limit, a quarter of them more so that this is rare.
    fn make_room(&mut self) {
        if self.chunks.len() < self.idle_limit.saturating_add(self.near.len() + self.edited) {
            return;
        }
        let mut idle: Vec<(u64, ChunkPos)> = self
            .chunks
            .iter()
            .filter(|(pos, slot)| !slot.edited && !self.near.contains(**pos))
            .map(|(pos, slot)| (slot.used, *pos))
            .collect();
        idle.sort_unstable();
        let excess = idle.len().saturating_sub(self.idle_limit - self.idle_limit / 4);
        for (_, pos) in &idle[..excess] {
            self.chunks.remove(pos);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn far(n: i32) -> ChunkPos {
        ChunkPos { x: 100 + n, y: -100 }
    }

    #[test]
    fn idle_chunks_are_bounded_and_the_longest_unvisited_go_first() {
        let content = Content::core();
        let mut terrain = Terrain::new(1, 8);
        for n in 0..40 {
            assert!(terrain.load(far(n), n as u64, &content));
            assert!(terrain.loaded() <= 8);
            assert!(terrain.get(far(n)).is_some());
        }
        assert!(terrain.get(far(0)).is_none());
        assert!(!terrain.load(far(0), 50, &content), "its inhabitants exist already");
    }

    #[test]
    fn near_and_edited_chunks_stay() {
        let content = Content::core();
        let mut terrain = Terrain::new(1, 0);
        terrain.load(far(0), 0, &content);
        terrain.enter(far(0));
        terrain.load(far(1), 0, &content);
        let index = (0..1024).find(|&i| terrain.tile(far(1).tile(i)) == TileId::ROCK).unwrap();
        assert_eq!(terrain.set(far(1).tile(index), TileId::FLOOR), Ok(true));
        for n in 2..6 {
            terrain.load(far(n), 1, &content);
        }
        assert!(terrain.get(far(0)).is_some() && terrain.is_active(far(0)));
        assert_eq!(terrain.tile(far(1).tile(index)), TileId::FLOOR);
        terrain.leave(far(0), 2);
        terrain.load(far(6), 2, &content);
        terrain.load(far(7), 2, &content);
        assert!(terrain.get(far(0)).is_none());
    }

    #[test]
    fn version_rises_once_a_tick() {
        let content = Content::core();
        let mut terrain = Terrain::new(1, 8);
        terrain.load(far(0), 0, &content);
        for index in 0..5 {
            terrain.set(far(0).tile(index), TileId::BEDROCK).unwrap();
        }
        assert_eq!(terrain.get(far(0)).unwrap().version(), 1);
        terrain.raise_versions();
        assert_eq!(terrain.get(far(0)).unwrap().version(), 2);
        terrain.raise_versions();
        assert_eq!(terrain.get(far(0)).unwrap().version(), 2);
    }

    #[test]
    fn beyond_the_ground_lies_bedrock_without_loading() {
        let terrain = Terrain::new(1, 8);
        let beyond = ChunkPos { x: -1024, y: 3 };
        assert_eq!(terrain.get(beyond).unwrap(), &Chunk::filled(TileId::BEDROCK));
        assert_eq!(terrain.tile(beyond.tile(77)), TileId::BEDROCK);
        assert_eq!(terrain.tile(far(0).tile(0)), TileId::UNKNOWN);
    }
}
