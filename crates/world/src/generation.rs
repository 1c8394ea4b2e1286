//! The caves themselves: a chunk from a seed and a position alone.
//!
//! Any chunk can be made at any time, in any order, on any machine, and is the same: all randomness is a hash
//! of the seed, absolute coordinates and a purpose, in integers. Chunks fit together because each computes a
//! little more than itself:
//!
//! 1. hash noise over absolute tiles, smoothed by a cellular automaton: caves that run on across borders;
//! 2. gates: each chunk opens one edge towards the middle of the world, so all chunks are connected, and other
//!    edges by chance; where on the edge is a hash of the edge, the same from both sides;
//! 3. within the chunk, larger caves and gates are joined to the largest cave by tunnels along the cheapest
//!    way, and everything else is filled: all floor of a chunk is connected within the chunk;
//! 4. kinds of stone and floor by broad noise.
//!
//! ```
//! use caves_world::{ChunkPos, Content, SPAWN, TileId, generate};
//!
//! let content = Content::core();
//! let chunk = generate(7, ChunkPos { x: 0, y: 0 }, &content);
//! assert_eq!(chunk.tile(SPAWN.index()), TileId::FLOOR);
//! assert_eq!(chunk, generate(7, ChunkPos { x: 0, y: 0 }, &content));
//! ```

mod carve;
mod dress;
mod gates;
mod noise;
mod populate;

use thiserror::Error;

use crate::chunk::Chunk;
use crate::content::{Content, TileId};
use crate::coord::{CHUNK_SIDE, CHUNK_TILES, ChunkPos, Pos};

pub use populate::{Spawn, SpawnBody};

/// Raised whenever the same seed would give other chunks or inhabitants: edits are kept relative to it. The
/// old generator then stays beside the new one, as another [`Generator`].
pub const GENERATOR_VERSION: u32 = Generator::NEWEST.version();

/// Where players enter the world and where the dead return.
pub const SPAWN: Pos = Pos { x: 16, y: 16 };

/// Tiles around [`SPAWN`] (larger of dx, dy) in which nobody fights players and no hostile lives.
pub const SAFE_RADIUS: i32 = 8;

/// Whether this tile belongs to the safe zone around [`SPAWN`].
pub fn is_safe(pos: Pos) -> bool {
    pos.distance(SPAWN) <= SAFE_RADIUS
}

/// A way to make chunks. There is one for every version that any kept chunk may name: a chunk that somebody
/// visited never comes out differently.
///
/// ```
/// use caves_world::{ChunkPos, Content, GENERATOR_VERSION, Generator, UnknownGenerator, generate};
///
/// let (content, pos) = (Content::core(), ChunkPos { x: 3, y: -8 });
/// let newest = Generator::by_version(GENERATOR_VERSION).unwrap();
/// assert_eq!(newest.chunk(7, pos, &content), generate(7, pos, &content));
/// assert_eq!(Generator::by_version(40_000), Err(UnknownGenerator(40_000)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generator {
    /// Version 1.
    First,
}

impl Generator {
    /// The one that new worlds are made by.
    pub const NEWEST: Generator = Generator::First;

    /// The generator of this version.
    ///
    /// # Errors
    ///
    /// [`UnknownGenerator`] when this program has none.
    pub fn by_version(version: u32) -> Result<Generator, UnknownGenerator> {
        match version {
            1 => Ok(Generator::First),
            _ => Err(UnknownGenerator(version)),
        }
    }

    /// The number by which records name it.
    pub const fn version(self) -> u32 {
        match self {
            Generator::First => 1,
        }
    }

    /// The chunk at `pos` of the world of `seed`, at version 1. Outside the ground all is bedrock (protocol, R8).
    pub fn chunk(self, seed: u64, pos: ChunkPos, content: &Content) -> Chunk {
        match self {
            Generator::First => first(seed, pos, content),
        }
    }

    /// What lives and lies in the new chunk at `pos`, given its tiles. No monster is in the safe zone.
    pub fn inhabitants(
        self,
        seed: u64,
        pos: ChunkPos,
        chunk: &Chunk,
        content: &Content,
    ) -> Vec<Spawn> {
        match self {
            Generator::First => populate::first(seed, pos, chunk, content),
        }
    }
}

/// A chunk was made by a generator that this program does not have: it cannot be made again, and nothing else
/// may stand in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("generator {0} is not known here; the newest is {GENERATOR_VERSION}")]
pub struct UnknownGenerator(
    /// The version that was asked for.
    pub u32,
);

/// The chunk at `pos` by the newest generator.
pub fn generate(seed: u64, pos: ChunkPos, content: &Content) -> Chunk {
    Generator::NEWEST.chunk(seed, pos, content)
}

/// What lives and lies in the new chunk at `pos` by the newest generator, given its tiles.
pub fn populate(seed: u64, pos: ChunkPos, chunk: &Chunk, content: &Content) -> Vec<Spawn> {
    Generator::NEWEST.inhabitants(seed, pos, chunk, content)
}

fn first(seed: u64, pos: ChunkPos, content: &Content) -> Chunk {
    if !pos.is_ground() {
        return Chunk::filled(TileId::BEDROCK);
    }
    let natural = noise::Natural::new(seed, pos);
    let gates = gates::gates(seed, pos, &natural);
    let cave = carve::carve(seed, pos, &natural, &gates);
    dress::dress(seed, pos, cave, content)
}

/// Which tiles of one chunk are open.
type Cave = [bool; CHUNK_TILES];

const SIDE: usize = CHUNK_SIDE as usize;

/// The neighbours of a tile within its chunk, in the four directions.
fn neighbours(index: usize) -> impl Iterator<Item = usize> {
    let (x, y) = (index % SIDE, index / SIDE);
    [
        (y > 0).then(|| index - SIDE),
        (x + 1 < SIDE).then(|| index + 1),
        (y + 1 < SIDE).then(|| index + SIDE),
        (x > 0).then(|| index - 1),
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests;
