//! Where one walks from a chunk into its neighbours for sure.

use super::SIDE;
use super::noise::Natural;
use crate::coord::{ChunkPos, Direction};
use crate::rng::{Purpose, Roll, pair};

/// How often an edge that no chunk needs is opened, in a hundred.
const EXTRA_EDGES: u32 = 60;

/// Gates stay this many tiles away from the corners.
const CORNER: u32 = 2;

/// The gate tiles of a chunk, by their index, one for each open edge.
pub(super) fn gates(seed: u64, pos: ChunkPos, natural: &Natural) -> Vec<usize> {
    let open = Direction::ALL.into_iter().filter(|&side| is_open(seed, pos, side));
    open.map(|side| tile_on(side, place(seed, pos, side, natural))).collect()
}

/// The neighbour towards the middle of the world, where all ways lead; `None` for chunk (0,0).
///
/// Every chunk opens the edge to its parent. A parent is nearer to (0,0), so by induction every chunk is
/// connected with it.
fn parent(seed: u64, pos: ChunkPos) -> Option<Direction> {
    let along_x = (pos.x != 0).then_some(if pos.x > 0 { Direction::West } else { Direction::East });
    let along_y =
        (pos.y != 0).then_some(if pos.y > 0 { Direction::North } else { Direction::South });
    match (along_x, along_y) {
        (Some(x), Some(y)) => {
            Some(if Roll::new(seed, Purpose::Parent, pair(pos.x, pos.y)).percent(50) {
                x
            } else {
                y
            })
        }
        (x, y) => x.or(y),
    }
}

fn is_open(seed: u64, pos: ChunkPos, side: Direction) -> bool {
    let other = pos.step(side);
    if !other.is_ground() {
        return false;
    }
    let leads_to = |from, to| parent(seed, from).is_some_and(|side| from.step(side) == to);
    leads_to(pos, other)
        || leads_to(other, pos)
        || Roll::new(seed, Purpose::EdgeOpen, edge(pos, side)).percent(EXTRA_EDGES)
}

/// How far along the edge the gate lies, 0..32: where both sides are open by nature, if that is anywhere.
fn place(seed: u64, pos: ChunkPos, side: Direction, natural: &Natural) -> usize {
    let mut roll = Roll::new(seed, Purpose::EdgePlace, edge(pos, side));
    let places = CORNER..SIDE as u32 - CORNER;
    let open: Vec<u32> = places.clone().filter(|&along| is_natural(natural, side, along)).collect();
    let anywhere = places.start + roll.below(places.len() as u32);
    let chosen = open.get(roll.below(open.len() as u32) as usize).copied();
    chosen.unwrap_or(anywhere) as usize
}

fn is_natural(natural: &Natural, side: Direction, along: u32) -> bool {
    let (along, last) = (along as i32, SIDE as i32 - 1);
    let (own, other) = match side {
        Direction::North => ((along, 0), (along, -1)),
        Direction::East => ((last, along), (last + 1, along)),
        Direction::South => ((along, last), (along, last + 1)),
        Direction::West => ((0, along), (-1, along)),
    };
    natural.is_open(own.0, own.1) && natural.is_open(other.0, other.1)
}

/// One number for an edge, the same from both of its chunks: that of its western or northern chunk, and one
/// bit for which of the two edges it is. Chunk coordinates are far below 2^31, so the bit is free.
fn edge(pos: ChunkPos, side: Direction) -> u64 {
    let (owner, bit) = match side {
        Direction::East => (pos, 0),
        Direction::South => (pos, 1),
        Direction::West => (pos.step(side), 0),
        Direction::North => (pos.step(side), 1),
    };
    pair(owner.x, owner.y << 1 | bit)
}

fn tile_on(side: Direction, along: usize) -> usize {
    match side {
        Direction::North => along,
        Direction::East => along * SIDE + SIDE - 1,
        Direction::South => (SIDE - 1) * SIDE + along,
        Direction::West => along * SIDE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_of_an_edge_agree() {
        for (x, y) in [(0, 0), (-1, -1), (5, -7), (-1023, -1023), (1021, 1021)] {
            for seed in 0..20 {
                let here = ChunkPos { x, y };
                for (side, back) in
                    [(Direction::East, Direction::West), (Direction::South, Direction::North)]
                {
                    let there = here.step(side);
                    let (a, b) = (Natural::new(seed, here), Natural::new(seed, there));
                    assert_eq!(is_open(seed, here, side), is_open(seed, there, back));
                    assert_eq!(place(seed, here, side, &a), place(seed, there, back, &b));
                }
            }
        }
    }

    #[test]
    fn every_parent_is_nearer_to_the_middle() {
        for x in -20..20i32 {
            for y in -20..20i32 {
                let pos = ChunkPos { x, y };
                match parent(1, pos) {
                    None => assert_eq!((x, y), (0, 0)),
                    Some(side) => {
                        let next = pos.step(side);
                        assert_eq!(next.x.abs() + next.y.abs(), x.abs() + y.abs() - 1);
                    }
                }
            }
        }
    }

    #[test]
    fn nothing_opens_into_bedrock() {
        for seed in 0..50 {
            let corner = ChunkPos { x: -1023, y: 1022 };
            assert!(!is_open(seed, corner, Direction::West));
            assert!(!is_open(seed, corner, Direction::South));
        }
    }
}
