//! The chunks that are encoded and decoded.

use caves_world::{CHUNK_TILES, ChunkPos, Content, generate};

/// One chunk as the world keeps it, and the same as plain tiles.
#[derive(Clone, Debug)]
pub struct Sample {
    /// What the tables call it.
    pub name: String,
    /// The kinds of tiles that occur.
    pub palette: Vec<u16>,
    /// For each tile its place in the palette.
    pub indices: Box<[u8; CHUNK_TILES]>,
    /// For each tile its kind.
    pub tiles: Box<[u16; CHUNK_TILES]>,
}

impl Sample {
    /// A cave of six kinds, as the generator makes them; 16 and 64 kinds without any order.
    pub fn all() -> [Sample; 3] {
        [Sample::cave(6), Sample::random(16), Sample::random(64)]
    }

    /// The generated chunk nearest to the middle of the world whose kinds are `kinds`, or the richest of those
    /// that were looked at.
    fn cave(kinds: usize) -> Sample {
        let content = Content::core();
        let places = (0..32).flat_map(|y| (0..32).map(move |x| ChunkPos { x, y }));
        let mut best = Sample::new("cave", vec![0], [0; CHUNK_TILES]);
        for place in places {
            let chunk = generate(7, place, &content);
            let palette: Vec<_> = chunk.palette().iter().map(|tile| tile.0).collect();
            if palette.len() > best.palette.len() && palette.len() <= kinds {
                best = Sample::new("cave", palette, *chunk.indices());
            }
        }
        best
    }

    /// Each tile one of `kinds` kinds, by chance but the same in each run; all of them occur.
    fn random(kinds: usize) -> Sample {
        // Kinds that do not fit a byte, as one cannot count on small numbers.
        let palette = (0..kinds as u16).map(|kind| 7 + 37 * kind).collect();
        let mut state = 0x9E37_79B9_7F4A_7C15u64;
        let indices = std::array::from_fn(|i| {
            if i < kinds {
                return i as u8;
            }
            // xorshift64
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8 % kinds as u8
        });
        Sample::new("random", palette, indices)
    }

    fn new(name: &str, palette: Vec<u16>, indices: [u8; CHUNK_TILES]) -> Sample {
        let tiles = Box::new(indices.map(|index| palette[usize::from(index)]));
        let name = format!("{name}, {} kinds", palette.len());
        Sample { name, palette, indices: Box::new(indices), tiles }
    }
}
