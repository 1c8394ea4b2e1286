//! What a paged world remembers of its chunks: who is near, what is asked for, what is not saved yet.

use std::collections::{BTreeMap, BTreeSet};

use crate::coord::{ChunkPos, Pos};
use crate::generation::SPAWN;
use crate::record::Thing;
use crate::table::Counts;
use crate::terrain::Terrain;

/// Ticks that chunks are kept in memory after [`World::want_around`](crate::World::want_around): half a minute at
/// 10 Hz, several times what a disk and a greeting take.
pub const WANT_TICKS: u64 = 300;

/// Chunks that changed. A world that is not paged keeps none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Marks {
    kept: bool,
    /// Ascending: few at a time, and again and again, so that a set would only make garbage.
    chunks: Vec<ChunkPos>,
}

impl Marks {
    /// Marks that are kept until they are taken.
    pub(crate) fn kept() -> Marks {
        Marks { kept: true, chunks: Vec::new() }
    }

    pub(crate) fn add(&mut self, chunk: ChunkPos) {
        if self.kept
            && let Err(at) = self.chunks.binary_search(&chunk)
        {
            self.chunks.insert(at, chunk);
        }
    }

    pub(crate) fn add_if(&mut self, chunk: Option<ChunkPos>) {
        if let Some(chunk) = chunk {
            self.add(chunk);
        }
    }

    pub(crate) fn contains(&self, chunk: ChunkPos) -> bool {
        self.chunks.binary_search(&chunk).is_ok()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = ChunkPos> {
        self.chunks.iter().copied()
    }

    fn take(&mut self) -> impl Iterator<Item = ChunkPos> {
        self.chunks.drain(..)
    }
}

/// How far a change is from being safe. At least one of the two holds.
#[derive(Clone, Copy, Debug, Default)]
struct Unsaved {
    /// Since it was last taken.
    changed: bool,
    /// It was taken, and nobody has said yet how that went.
    saving: bool,
}

/// The books of a paged world.
///
/// A chunk is needed when it lies in the 5x5 of a player or in the 3x3 of the spawn, or is held for somebody who is
/// about to enter. Every needed chunk of the ground is in memory or asked for.
#[derive(Clone, Debug)]
pub(crate) struct Paging {
    /// Makes the chunks that nobody has visited.
    generator: u32,
    idle_limit: usize,
    /// In the 5x5 of how many players a chunk lies.
    near: Counts,
    /// Chunks that are held, until which tick.
    held: BTreeMap<ChunkPos, u64>,
    /// Not in memory, and not to be asked for again.
    asked: BTreeSet<ChunkPos>,
    /// Those of `asked` that nobody was told of yet.
    untold: Vec<ChunkPos>,
    unsaved: BTreeMap<ChunkPos, Unsaved>,
    /// Things of loaded chunks that this program does not know what to do with: kept as they came.
    strange: BTreeMap<ChunkPos, Vec<Thing>>,
    /// Something happened after which there may be more idle chunks than before.
    restless: bool,
}

impl Paging {
    pub(crate) fn new(generator: u32, idle_limit: usize) -> Paging {
        let mut paging = Paging {
            generator,
            idle_limit,
            near: Counts::default(),
            held: BTreeMap::new(),
            asked: BTreeSet::new(),
            untold: Vec::new(),
            unsaved: BTreeMap::new(),
            strange: BTreeMap::new(),
            restless: false,
        };
        SPAWN.chunk().around_wide()[..9].iter().for_each(|&chunk| paging.ask(chunk));
        paging
    }

    pub(crate) fn generator(&self) -> u32 {
        self.generator
    }

    /// A player is now in this chunk: what may be in its 3x3 after the next step is fetched ahead.
    pub(crate) fn enter(&mut self, pos: ChunkPos, terrain: &Terrain) {
        for chunk in pos.around_wide().into_iter().filter(|chunk| chunk.is_ground()) {
            self.near.add(chunk);
            if terrain.get(chunk).is_none() {
                self.ask(chunk);
            }
        }
        self.restless = true;
    }

    /// A player is no longer in this chunk.
    pub(crate) fn leave(&mut self, pos: ChunkPos) {
        for chunk in pos.around_wide() {
            self.near.take(chunk);
        }
        self.restless = true;
    }

    /// Somebody is about to enter here.
    pub(crate) fn hold(&mut self, pos: Pos, until: u64, terrain: &Terrain) {
        let around = pos.chunk().around_wide();
        for &chunk in around[..9].iter().filter(|chunk| chunk.is_ground()) {
            self.held.insert(chunk, until);
            if terrain.get(chunk).is_none() {
                self.ask(chunk);
            }
        }
    }

    /// Holds nothing longer than it was to be held.
    pub(crate) fn release(&mut self, now: u64) {
        let before = self.held.len();
        self.held.retain(|_, until| *until > now);
        self.restless |= self.held.len() < before;
    }

    /// Moves what nobody was told of to the end of `out`: first what somebody waits for, then what is fetched ahead.
    pub(crate) fn tell(&mut self, out: &mut Vec<ChunkPos>) {
        let untold = std::mem::take(&mut self.untold);
        let urgent = |pos: &ChunkPos| self.held.contains_key(pos) || is_pinned(*pos);
        let (first, later): (Vec<ChunkPos>, Vec<ChunkPos>) = untold.into_iter().partition(urgent);
        for chunk in first.into_iter().chain(later) {
            if self.is_needed(chunk) {
                out.push(chunk);
            } else {
                self.asked.remove(&chunk);
            }
        }
    }

    /// A chunk came into memory.
    pub(crate) fn came(&mut self, pos: ChunkPos) {
        if self.asked.remove(&pos) {
            self.untold.retain(|&chunk| chunk != pos);
        }
        self.restless = true;
    }

    /// Keeps a thing of a loaded chunk as it is.
    pub(crate) fn carry(&mut self, chunk: ChunkPos, thing: Thing) {
        self.strange.entry(chunk).or_default().push(thing);
    }

    /// The things of a loaded chunk that are kept as they are.
    pub(crate) fn carried(&self, chunk: ChunkPos) -> &[Thing] {
        self.strange.get(&chunk).map_or(&[], Vec::as_slice)
    }

    /// A chunk goes out of memory.
    pub(crate) fn forget(&mut self, chunk: ChunkPos) {
        self.strange.remove(&chunk);
    }

    pub(crate) fn note(&mut self, marks: &mut Marks) {
        for chunk in marks.take() {
            self.unsaved.entry(chunk).or_default().changed = true;
        }
    }

    /// What changed since this was last called counts as being saved; in a fixed order.
    pub(crate) fn take_changed(&mut self) -> Vec<ChunkPos> {
        let changed = self.unsaved.iter_mut().filter(|(_, unsaved)| unsaved.changed);
        changed
            .map(|(&chunk, unsaved)| {
                *unsaved = Unsaved { changed: false, saving: true };
                chunk
            })
            .collect()
    }

    /// What was being saved is safe.
    pub(crate) fn saved(&mut self) {
        self.unsaved.values_mut().for_each(|unsaved| unsaved.saving = false);
        self.unsaved.retain(|_, unsaved| unsaved.changed);
        self.restless = true;
    }

    /// What was being saved is not safe, and counts as changed.
    pub(crate) fn not_saved(&mut self) {
        for unsaved in self.unsaved.values_mut() {
            *unsaved = Unsaved { changed: true, saving: false };
        }
    }

    /// How many chunks are not safe, with those of `marks`.
    pub(crate) fn unsaved(&self, terrain: &Marks, entities: &Marks) -> usize {
        let more = entities.iter().filter(|&chunk| !terrain.contains(chunk));
        let new = terrain.iter().chain(more).filter(|chunk| !self.unsaved.contains_key(chunk));
        self.unsaved.len() + new.count()
    }

    /// Whether it is worth looking for idle chunks beyond the limit.
    pub(crate) fn is_crowded(&mut self, loaded: usize) -> bool {
        // Chunks that are needed or not saved do not count: with many players, or as long as a disk is full, nothing
        // is gained by looking through all of them in every tick.
        let needed = self.near.len().saturating_sub(self.asked.len());
        let busy = needed.max(self.unsaved.len());
        std::mem::take(&mut self.restless) && loaded > self.idle_limit.saturating_add(busy)
    }

    /// How many of so many idle chunks are to go: a quarter of the limit more than need be, so that this is rare.
    pub(crate) fn excess(&self, idle: usize) -> usize {
        if idle <= self.idle_limit {
            return 0;
        }
        idle - (self.idle_limit - self.idle_limit / 4)
    }

    /// Whether nothing of this chunk would be lost or missed if it went.
    pub(crate) fn is_idle(&self, pos: ChunkPos) -> bool {
        !self.is_needed(pos) && !self.unsaved.contains_key(&pos)
    }

    fn is_needed(&self, pos: ChunkPos) -> bool {
        is_pinned(pos) || self.near.contains(pos) || self.held.contains_key(&pos)
    }

    fn ask(&mut self, pos: ChunkPos) {
        if self.asked.insert(pos) {
            self.untold.push(pos);
        }
    }
}

/// Whether this chunk stays for good: who dies is at the spawn in the same tick (protocol, R33).
fn is_pinned(pos: ChunkPos) -> bool {
    SPAWN.chunk().around().contains(&pos)
}
