//! A chunk to bytes and back.

use caves_benches::measure::{Aligned, Case, Group, Mismatch, Outcome, checksum_of_tiles};
use caves_benches::samples::Sample;
use caves_wire::bits::TILES;
use caves_wire::caves::{Chunk, ChunkEntry, ChunkId, ChunkVersion, ChunkView, Paletted};
use caves_wire_portable::caves as portable;

use crate::peers;

pub(crate) const MEMCPY: &str = "memcpy(2048)";
pub(crate) const PORTABLE: &str = "ours, portable";
pub(crate) const CHOSEN: &str = "ours, as chosen";
pub(crate) const RAW: &str = "ours, as chosen, from raw tiles";
pub(crate) const CACHED: &str = "ours, a packet kept from before";

const RAW_PORTABLE: &str = "ours, portable, from raw tiles";

pub(crate) const X: i16 = 3;
pub(crate) const Y: i16 = -2;
pub(crate) const VERSION: u16 = 41;

/// The longest datagram is what a caller has room for.
const ROOM: usize = caves_wire::MAX_DATAGRAM;

/// How the encode group of a sample is called.
pub(crate) fn encode_title(sample: &str) -> String {
    format!("chunk encode: {sample}")
}

/// How the decode group of a sample is called.
pub(crate) fn decode_title(sample: &str) -> String {
    format!("chunk decode to u16 tiles, all checks: {sample}")
}

/// Encoding.
pub(crate) fn encode(sample: &Sample) -> Result<Group, Mismatch> {
    let mut group = Group::new(encode_title(&sample.name));
    group.add(memcpy(sample))?;
    group.add(Case::new(PORTABLE, State::new(sample), State::emit_portable, State::look))?;
    group.add(Case::new(CHOSEN, State::new(sample), State::emit, State::look))?;
    group.add(Case::new(
        RAW_PORTABLE,
        State::new(sample),
        State::emit_raw_portable,
        State::look,
    ))?;
    group.add(Case::new(RAW, State::new(sample), State::emit_raw, State::look))?;
    group.add(cached(sample))?;
    peers::encode(sample, &mut group)?;
    Ok(group)
}

/// Decoding.
pub(crate) fn decode(sample: &Sample) -> Result<Group, Mismatch> {
    let mut group = Group::new(decode_title(&sample.name));
    group.add(memcpy(sample))?;
    let mut state = State::new(sample);
    state.len = state.emit_portable();
    state.tiles.0.fill(0);
    group.add(Case::new(PORTABLE, state.clone(), State::read_portable, State::look_at_tiles))?;
    group.add(Case::new(CHOSEN, state, State::read, State::look_at_tiles))?;
    peers::decode(sample, &mut group)?;
    Ok(group)
}

/// What the world keeps, and room for a packet and for tiles.
///
/// No two of the buffers lie a little more than a multiple of 4096 bytes apart: a processor takes a load for
/// one of the bytes just stored when only the upper bits of their addresses differ.
#[derive(Clone)]
#[repr(C)]
struct State {
    indices: Aligned<[u8; TILES]>,
    packet: Aligned<[u8; ROOM]>,
    tiles: Aligned<[u16; TILES]>,
    palette: Vec<u16>,
    len: usize,
}

impl State {
    fn new(sample: &Sample) -> State {
        State {
            indices: Aligned(*sample.indices),
            packet: Aligned([0; ROOM]),
            tiles: Aligned(*sample.tiles),
            palette: sample.palette.clone(),
            len: 0,
        }
    }

    fn emit(&mut self) -> usize {
        let entry = entry();
        let chunk = Chunk { entry, palette: &self.palette, indices: &self.indices.0 };
        chunk.emit(&mut self.packet.0).unwrap_or(0)
    }

    fn emit_portable(&mut self) -> usize {
        let entry = entry_portable();
        let chunk = portable::Chunk { entry, palette: &self.palette, indices: &self.indices.0 };
        chunk.emit(&mut self.packet.0).unwrap_or(0)
    }

    fn emit_raw(&mut self) -> usize {
        let Ok(made) = Paletted::from_tiles(&self.tiles.0) else { return 0 };
        made.with_entry(entry()).emit(&mut self.packet.0).unwrap_or(0)
    }

    fn emit_raw_portable(&mut self) -> usize {
        let Ok(made) = portable::Paletted::from_tiles(&self.tiles.0) else { return 0 };
        made.with_entry(entry_portable()).emit(&mut self.packet.0).unwrap_or(0)
    }

    fn read(&mut self) -> usize {
        let read = ChunkView::decode(&self.packet.0[..self.len], &mut self.tiles.0);
        if read.is_ok() { 2 * TILES } else { 0 }
    }

    fn read_portable(&mut self) -> usize {
        let read = portable::ChunkView::decode(&self.packet.0[..self.len], &mut self.tiles.0);
        if read.is_ok() { 2 * TILES } else { 0 }
    }

    fn look(&self, len: usize) -> Outcome {
        look(&self.packet.0[..len])
    }

    fn look_at_tiles(&self, bytes: usize) -> Outcome {
        Outcome { bytes, checksum: checksum_of_tiles(&self.tiles.0) }
    }
}

fn entry() -> ChunkEntry {
    ChunkEntry { id: ChunkId { x: X, y: Y }, version: ChunkVersion(VERSION) }
}

fn entry_portable() -> portable::ChunkEntry {
    let id = portable::ChunkId { x: X, y: Y };
    portable::ChunkEntry { id, version: portable::ChunkVersion(VERSION) }
}

/// The floor.
pub(crate) fn memcpy(sample: &Sample) -> Case {
    let state = [Aligned(*sample.tiles), Aligned([0; TILES])];
    let copy = |[from, to]: &mut [Aligned<[u16; TILES]>; 2]| to.0.copy_from_slice(&from.0);
    Case::new(MEMCPY, state, copy, |[_, to], ()| Outcome {
        bytes: 2 * TILES,
        checksum: checksum_of_tiles(&to.0),
    })
}

/// The packet was written when the chunk changed; sending it again copies it.
fn cached(sample: &Sample) -> Case {
    let mut state = State::new(sample);
    let len = state.emit_portable();
    let buffers = [state.packet, Aligned([0; ROOM])];
    let copy = move |[kept, packet]: &mut [Aligned<[u8; ROOM]>; 2]| {
        packet.0[..len].copy_from_slice(&kept.0[..len]);
        len
    };
    Case::new(CACHED, buffers, copy, |[_, packet], len| look(&packet.0[..len]))
}

/// The packet, read by offsets as the note has them and by nothing of ours.
fn look(packet: &[u8]) -> Outcome {
    let (head, tail) = packet.split_at(13);
    assert_eq!(head[..6], [0x4C, 0x52, 1, 2, 0, 0]);
    assert_eq!(head[6..8], X.to_le_bytes());
    assert_eq!(head[8..10], Y.to_le_bytes());
    assert_eq!(head[10..12], VERSION.to_le_bytes());
    let (palette, packed) = tail.split_at(2 * usize::from(head[12]));
    let tiles: Vec<_> = (0..TILES)
        .map(|tile| {
            let (byte, bit) = (tile * 6 / 8, tile * 6 % 8);
            let next = packed.get(byte + 1).copied().unwrap_or(0);
            let place = usize::from(u16::from_le_bytes([packed[byte], next]) >> bit & 63);
            u16::from_le_bytes([palette[2 * place], palette[2 * place + 1]])
        })
        .collect();
    Outcome { bytes: packet.len(), checksum: checksum_of_tiles(&tiles) }
}
