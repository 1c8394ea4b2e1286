//! One connected cave per chunk.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::noise::Natural;
use super::{Cave, SIDE, SPAWN, neighbours};
use crate::coord::{CHUNK_TILES, ChunkPos};
use crate::rng::{Purpose, Roll, pair};

/// Smaller pockets are filled rather than joined.
const SMALLEST_POCKET: usize = 12;

/// The same for pockets at the chunk's rim: they may be part of a large cave next door.
const SMALLEST_RIM_POCKET: usize = 4;

/// Cost of digging a tunnel through one tile, at least and at most, where walking costs 1. The spread makes
/// tunnels wind; the height makes them use the caves on their way.
const TUNNEL_COST: (u32, u32) = (5, 14);

/// Tunnels along the rim of a chunk would show where the chunks are.
const RIM_COST: u32 = 20;

/// How often a tunnel tile is widened by one neighbour, in a hundred.
const WIDER: u32 = 45;

/// Room around the spawn: tiles with dx^2 + dy^2 up to this.
const SPAWN_ROOM: i32 = 26;

/// The natural cave with the spawn's room, tunnels from all larger parts and all `gates` to the largest part,
/// and without what is still apart.
pub(super) fn carve(seed: u64, pos: ChunkPos, natural: &Natural, gates: &[usize]) -> Cave {
    let mut cave = natural.cave();
    if pos == SPAWN.chunk() {
        open_spawn(&mut cave);
    }
    let parts = Parts::of(&cave);
    let hub = hub(pos, &parts);
    cave[hub] = true;
    let ways = Ways::to(hub, &cave, seed, pos);
    let pockets = parts.list.iter().filter(|part| is_worth_joining(part));
    let nearest =
        pockets.filter_map(|part| part.iter().copied().min_by_key(|&tile| (ways.cost[tile], tile)));
    let mut roll = Roll::new(seed, Purpose::TunnelWidth, pair(pos.x, pos.y));
    for start in nearest.chain(gates.iter().copied()) {
        dig_way(&mut cave, &ways, start, &mut roll);
    }
    connected_with(hub, &cave)
}

fn open_spawn(cave: &mut Cave) {
    for (index, open) in cave.iter_mut().enumerate() {
        let tile = SPAWN.chunk().tile(index);
        let (dx, dy) = (tile.x - SPAWN.x, tile.y - SPAWN.y);
        *open |= dx * dx + dy * dy <= SPAWN_ROOM;
    }
}

/// Where all ways of the chunk lead: the spawn, or a tile of the largest part, or else the middle.
fn hub(pos: ChunkPos, parts: &Parts) -> usize {
    if pos == SPAWN.chunk() {
        return SPAWN.index();
    }
    let middle = SIDE / 2 * SIDE + SIDE / 2;
    // The first of equally large parts: `max_by_key` alone would take the last.
    let largest = parts.list.iter().rev().max_by_key(|part| part.len());
    let near_middle = |&tile: &usize| {
        let (dx, dy) = ((tile % SIDE).abs_diff(SIDE / 2), (tile / SIDE).abs_diff(SIDE / 2));
        (dx + dy, tile)
    };
    largest.and_then(|part| part.iter().copied().min_by_key(near_middle)).unwrap_or(middle)
}

fn is_worth_joining(part: &[usize]) -> bool {
    let at_rim = part.iter().any(|&tile| is_rim(tile));
    part.len() >= if at_rim { SMALLEST_RIM_POCKET } else { SMALLEST_POCKET }
}

fn is_rim(tile: usize) -> bool {
    let (x, y) = (tile % SIDE, tile / SIDE);
    x == 0 || y == 0 || x == SIDE - 1 || y == SIDE - 1
}

fn dig_way(cave: &mut Cave, ways: &Ways, start: usize, roll: &mut Roll) {
    let mut tile = start;
    loop {
        if !cave[tile] {
            cave[tile] = true;
            if roll.percent(WIDER) {
                widen(cave, tile, roll);
            }
        }
        match ways.next[tile] {
            Some(next) => tile = usize::from(next),
            None => return,
        }
    }
}

fn widen(cave: &mut Cave, tile: usize, roll: &mut Roll) {
    let sides: Vec<usize> = neighbours(tile).filter(|&side| !is_rim(side)).collect();
    if let Some(&side) = sides.get(roll.below(sides.len() as u32) as usize) {
        cave[side] = true;
    }
}

/// The parts of a cave, each a list of its tiles, in the order of their first tiles.
struct Parts {
    list: Vec<Vec<usize>>,
}

impl Parts {
    fn of(cave: &Cave) -> Parts {
        let mut seen = [false; CHUNK_TILES];
        let mut list = Vec::new();
        for start in 0..CHUNK_TILES {
            if cave[start] && !seen[start] {
                list.push(flood(start, cave, &mut seen));
            }
        }
        Parts { list }
    }
}

fn connected_with(hub: usize, cave: &Cave) -> Cave {
    let mut seen = [false; CHUNK_TILES];
    flood(hub, cave, &mut seen);
    seen
}

fn flood(start: usize, cave: &Cave, seen: &mut Cave) -> Vec<usize> {
    let mut tiles = vec![start];
    seen[start] = true;
    let mut done = 0;
    while let Some(&tile) = tiles.get(done) {
        done += 1;
        for next in neighbours(tile) {
            if cave[next] && !seen[next] {
                seen[next] = true;
                tiles.push(next);
            }
        }
    }
    tiles
}

/// The cheapest way from every tile of the chunk to the hub.
struct Ways {
    cost: [u32; CHUNK_TILES],
    /// The next tile on the way; `None` at the hub.
    next: [Option<u16>; CHUNK_TILES],
}

impl Ways {
    fn to(hub: usize, cave: &Cave, seed: u64, pos: ChunkPos) -> Ways {
        let step_cost = step_costs(cave, seed, pos);
        let mut ways = Ways { cost: [u32::MAX; CHUNK_TILES], next: [None; CHUNK_TILES] };
        ways.cost[hub] = 0;
        // Ties are decided by the tile's number, so the result does not depend on the heap's insides.
        let mut open = BinaryHeap::from([Reverse((0, hub))]);
        while let Some(Reverse((cost, tile))) = open.pop() {
            if cost > ways.cost[tile] {
                continue;
            }
            for side in neighbours(tile) {
                let through = cost + step_cost[side];
                if through < ways.cost[side] {
                    ways.cost[side] = through;
                    ways.next[side] = Some(tile as u16);
                    open.push(Reverse((through, side)));
                }
            }
        }
        ways
    }
}

fn step_costs(cave: &Cave, seed: u64, pos: ChunkPos) -> [u32; CHUNK_TILES] {
    let mut roll = Roll::new(seed, Purpose::TunnelCost, pair(pos.x, pos.y));
    let (least, most) = TUNNEL_COST;
    std::array::from_fn(|tile| {
        let rock = least + roll.below(most - least + 1);
        match (cave[tile], is_rim(tile)) {
            (true, _) => 1,
            (false, true) => rock + RIM_COST,
            (false, false) => rock,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_apart_by_the_four_directions() {
        let mut cave = [false; CHUNK_TILES];
        // Two tiles that touch by a corner only, and the two ends of neighbouring rows.
        for tile in [0, 33, 63, 64] {
            cave[tile] = true;
        }
        let parts = Parts::of(&cave);
        assert_eq!(parts.list, [vec![0], vec![33], vec![63], vec![64]]);
    }

    #[test]
    fn ways_lead_to_the_hub_from_everywhere() {
        let cave = [false; CHUNK_TILES];
        let ways = Ways::to(500, &cave, 1, ChunkPos { x: 3, y: 4 });
        for start in 0..CHUNK_TILES {
            let (mut tile, mut steps) = (start, 0);
            while let Some(next) = ways.next[tile] {
                let next = usize::from(next);
                assert!(neighbours(tile).any(|side| side == next));
                assert!(ways.cost[next] < ways.cost[tile]);
                (tile, steps) = (next, steps + 1);
                assert!(steps <= CHUNK_TILES);
            }
            assert_eq!(tile, 500);
        }
    }
}
