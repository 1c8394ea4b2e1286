//! Noise over absolute tiles: the same whichever chunk asks.

use super::{Cave, SIDE};
use crate::coord::{ChunkPos, Pos};
use crate::rng::{Purpose, Roll, pair};

/// Rounds of the cellular automaton. Each looks one tile further.
const ROUNDS: usize = 4;

/// Tiles computed beyond the chunk: one for the neighbour's edge, and one for each round.
const MARGIN: usize = ROUNDS + 1;

const GRID: usize = SIDE + 2 * MARGIN;

/// Broad regions of open caverns and of narrow ways, in tiles.
const REGION: i32 = 40;

/// Percent of rock before smoothing, in the closest and in the most open region.
const ROCK_CLOSED: u32 = 56;
const ROCK_OPEN: u32 = 43;

/// The caves as noise and smoothing leave them: one chunk, and one tile around it.
pub(super) struct Natural {
    rock: Box<[[bool; GRID]; GRID]>,
}

impl Natural {
    pub(super) fn new(seed: u64, pos: ChunkPos) -> Natural {
        let origin = pos.origin().offset(-(MARGIN as i32), -(MARGIN as i32));
        let mut rock = Box::new([[true; GRID]; GRID]);
        for (y, row) in rock.iter_mut().enumerate() {
            for (x, cell) in row.iter_mut().enumerate() {
                *cell = is_rock(seed, origin.offset(x as i32, y as i32));
            }
        }
        for round in 0..ROUNDS {
            rock = smooth(&rock, round + 1);
        }
        Natural { rock }
    }

    /// Whether a tile is open; x and y count from the chunk's north-west tile and may be -1..=32.
    pub(super) fn is_open(&self, x: i32, y: i32) -> bool {
        let at = |n: i32| usize::try_from(n + MARGIN as i32).ok();
        let row = at(y).and_then(|y| self.rock.get(y));
        row.zip(at(x)).and_then(|(row, x)| row.get(x)).is_some_and(|rock| !rock)
    }

    pub(super) fn cave(&self) -> Cave {
        std::array::from_fn(|i| self.is_open((i % SIDE) as i32, (i / SIDE) as i32))
    }
}

fn is_rock(seed: u64, tile: Pos) -> bool {
    if !tile.chunk().is_ground() {
        return true;
    }
    let openness = u32::from(smooth_noise(seed, Purpose::Openness, REGION, tile));
    let rock = ROCK_CLOSED - (ROCK_CLOSED - ROCK_OPEN) * openness / 255;
    Roll::new(seed, Purpose::Rock, pair(tile.x, tile.y)).percent(rock)
}

/// One round: a tile is rock when at least five of its block of nine are. Only tiles at least `from` away from
/// the rim are right afterwards.
fn smooth(rock: &[[bool; GRID]; GRID], from: usize) -> Box<[[bool; GRID]; GRID]> {
    let mut next = Box::new([[true; GRID]; GRID]);
    for y in from..GRID - from {
        for x in from..GRID - from {
            let block = rock[y - 1..=y + 1].iter().flat_map(|row| &row[x - 1..=x + 1]);
            next[y][x] = block.filter(|&&rock| rock).count() >= 5;
        }
    }
    next
}

/// A slowly changing number, 0..=255: hashed at the corners of a lattice of `spacing` tiles, eased in between.
pub(super) fn smooth_noise(seed: u64, purpose: Purpose, spacing: i32, tile: Pos) -> u8 {
    let (x, y) = (tile.x.div_euclid(spacing), tile.y.div_euclid(spacing));
    let corner = |dx, dy| (Roll::new(seed, purpose, pair(x + dx, y + dy)).next() >> 56) as i64;
    let along_x = ease(tile.x.rem_euclid(spacing), spacing);
    let along_y = ease(tile.y.rem_euclid(spacing), spacing);
    let north = between(corner(0, 0), corner(1, 0), along_x);
    let south = between(corner(0, 1), corner(1, 1), along_x);
    between(north, south, along_y) as u8
}

/// 0..=256 for 0..=`spacing`, flat at both ends (3t^2 - 2t^3).
fn ease(part: i32, spacing: i32) -> i64 {
    let t = i64::from(part) * 256 / i64::from(spacing);
    t * t * (3 * 256 - 2 * t) / (256 * 256)
}

fn between(a: i64, b: i64, part: i64) -> i64 {
    (a * (256 - part) + b * part) / 256
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_chunks_see_the_same_edge() {
        for (x, y) in [(0, 0), (-1, 5), (-1023, 1021), (400, -401)] {
            let west = Natural::new(3, ChunkPos { x, y });
            let east = Natural::new(3, ChunkPos { x: x + 1, y });
            let south = Natural::new(3, ChunkPos { x, y: y + 1 });
            for i in 0..32 {
                assert_eq!(west.is_open(32, i), east.is_open(0, i));
                assert_eq!(west.is_open(31, i), east.is_open(-1, i));
                assert_eq!(west.is_open(i, 32), south.is_open(i, 0));
                assert_eq!(west.is_open(i, 31), south.is_open(i, -1));
            }
        }
    }

    #[test]
    fn noise_reaches_its_lattice_values_and_has_no_jumps() {
        for x in -200..200 {
            let at = |x| i32::from(smooth_noise(9, Purpose::Damp, 16, Pos { x, y: 3 }));
            assert!((at(x) - at(x + 1)).abs() <= 26, "at {x}");
        }
        assert_eq!((ease(0, 16), ease(8, 16), ease(16, 16)), (0, 128, 256));
    }
}
