//! From open and closed to kinds of floor and stone.

use super::noise::smooth_noise;
use super::{Cave, SIDE, SPAWN, neighbours};
use crate::chunk::Chunk;
use crate::content::{Content, TileId};
use crate::coord::{CHUNK_TILES, ChunkPos, Pos};
use crate::rng::{Purpose, Roll, pair};

/// Tiles from one hashed value to the next, of each broad noise.
const STONE_SPACING: i32 = 22;
const DAMP_SPACING: i32 = 14;
const SEAM_SPACING: i32 = 6;

/// Above these values of their noises.
const GRANITE: u8 = 165;
const SEAM: u8 = 214;
const MOSS: u8 = 172;
const WATER: u8 = 208;

/// Tiles around the spawn that stay plain floor.
const PLAIN: i32 = 4;

/// Kinds by name, with a plain one where content lacks it.
struct Kinds {
    granite: TileId,
    crystal: TileId,
    coal: TileId,
    moss: TileId,
    gravel: TileId,
    mushrooms: TileId,
    water: TileId,
    stalagmite: TileId,
}

impl Kinds {
    fn of(content: &Content) -> Kinds {
        let closed = |name| match content.tile_id(name) {
            Some(id) if !content.is_walkable(id) => id,
            _ => TileId::ROCK,
        };
        let open = |name| match content.tile_id(name) {
            Some(id) if content.is_walkable(id) => id,
            _ => TileId::FLOOR,
        };
        Kinds {
            granite: closed("core:granite"),
            crystal: closed("core:crystal_vein"),
            coal: closed("core:coal_seam"),
            moss: open("core:moss"),
            gravel: open("core:gravel"),
            mushrooms: open("core:mushrooms"),
            water: open("core:shallow_water"),
            stalagmite: closed("core:stalagmite"),
        }
    }
}

/// The finished chunk. A stalagmite only stands where its eight neighbours stay open: whoever is stopped by it
/// walks around, so the cave stays connected.
pub(super) fn dress(seed: u64, pos: ChunkPos, cave: Cave, content: &Content) -> Chunk {
    let kinds = Kinds::of(content);
    let pillars = pillars(seed, pos, &cave);
    let mut chunk = Chunk::filled(TileId::ROCK);
    for index in 0..CHUNK_TILES {
        let tile = pos.tile(index);
        let roll = Roll::new(seed, Purpose::Dress, pair(tile.x, tile.y));
        let kind = match (cave[index], pillars[index]) {
            (true, true) => kinds.stalagmite,
            (true, false) => floor(seed, tile, roll, &kinds),
            (false, _) => stone(seed, tile, roll, &kinds, neighbours(index).any(|n| cave[n])),
        };
        // A dozen kinds never fill a palette of 64.
        let set = chunk.set(index, kind);
        debug_assert!(set.is_ok());
    }
    chunk
}

fn floor(seed: u64, tile: Pos, mut roll: Roll, kinds: &Kinds) -> TileId {
    if tile.distance(SPAWN) <= PLAIN {
        return TileId::FLOOR;
    }
    // A few steps of jitter, or the regions would have smooth outlines.
    let jitter = roll.below(24) as u8;
    let damp = smooth_noise(seed, Purpose::Damp, DAMP_SPACING, tile);
    let stone = smooth_noise(seed, Purpose::Stone, STONE_SPACING, tile);
    let chance = roll.below(100);
    if damp > WATER {
        kinds.water
    } else if damp.saturating_add(jitter) > MOSS {
        if chance < 9 { kinds.mushrooms } else { kinds.moss }
    } else if stone.saturating_add(jitter) > GRANITE {
        if chance < 55 { kinds.gravel } else { TileId::FLOOR }
    } else if chance < 4 {
        kinds.gravel
    } else {
        TileId::FLOOR
    }
}

fn stone(seed: u64, tile: Pos, mut roll: Roll, kinds: &Kinds, at_floor: bool) -> TileId {
    let jitter = roll.below(16) as u8;
    let seam = smooth_noise(seed, Purpose::Seam, SEAM_SPACING, tile);
    let stone = smooth_noise(seed, Purpose::Stone, STONE_SPACING, tile);
    let chance = roll.below(1000);
    if at_floor && chance < 14 {
        kinds.crystal
    } else if seam > SEAM && chance < 600 {
        kinds.coal
    } else if stone.saturating_add(jitter) > GRANITE {
        kinds.granite
    } else {
        TileId::ROCK
    }
}

fn pillars(seed: u64, pos: ChunkPos, cave: &Cave) -> Cave {
    let mut pillars = [false; CHUNK_TILES];
    for y in 1..SIDE - 1 {
        for x in 1..SIDE - 1 {
            let tile = pos.tile(y * SIDE + x);
            let block = || (y - 1..=y + 1).flat_map(|y| (x - 1..=x + 1).map(move |x| y * SIDE + x));
            let fits = tile.distance(SPAWN) > PLAIN
                && Roll::new(seed, Purpose::Pillar, pair(tile.x, tile.y)).percent(4)
                && block().all(|tile| cave[tile] && !pillars[tile]);
            pillars[y * SIDE + x] = fits;
        }
    }
    pillars
}
