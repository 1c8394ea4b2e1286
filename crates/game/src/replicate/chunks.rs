//! Chunks as packets, each written once for all who miss it.

use caves_wire::caves::{Chunk, ChunkEntry, MAX_PALETTE};
use caves_world::{ChunkPos, World};

use super::VersionOffset;
use crate::convert::chunk_to_wire;

/// ChunkPackets that are kept: a quarter of a megabyte.
const KEPT: usize = 256;
/// They lie like the chunks of a square of this side, so that neighbours never take each other's place.
const SIDE: i32 = 16;

/// The ChunkPackets that were written last.
#[derive(Debug)]
pub(crate) struct ChunkPackets(Box<[Packet]>);

#[derive(Debug, Clone)]
struct Packet {
    entry: ChunkEntry,
    /// 0 where there is none.
    len: usize,
    bytes: [u8; Chunk::MAX_LEN],
}

impl ChunkPackets {
    pub(crate) fn new() -> Self {
        let none = Packet { entry: ChunkEntry::default(), len: 0, bytes: [0; Chunk::MAX_LEN] };
        Self(vec![none; KEPT].into())
    }

    /// Writes a chunk into `buf`.
    pub(crate) fn emit(
        &mut self,
        world: &World,
        offset: VersionOffset,
        chunk: ChunkPos,
        buf: &mut [u8],
    ) -> Option<usize> {
        let version = offset.shown(world.loaded_chunk(chunk)?.version());
        let entry = ChunkEntry { id: chunk_to_wire(chunk), version };
        let place = chunk.y.rem_euclid(SIDE) * SIDE + chunk.x.rem_euclid(SIDE);
        let packet = self.0.get_mut(place as usize)?;
        if packet.len == 0 || packet.entry != entry {
            packet.len = 0;
            packet.len = emit_chunk(world, offset, chunk, chunk, &mut packet.bytes)?;
            packet.entry = entry;
        }
        buf.get_mut(..packet.len)?.copy_from_slice(&packet.bytes[..packet.len]);
        Some(packet.len)
    }
}

/// Writes the tiles of a chunk as the world stores them: palette and indices, without a search. `shown` is which
/// chunk they are said to be.
pub(super) fn emit_chunk(
    world: &World,
    offset: VersionOffset,
    chunk: ChunkPos,
    shown: ChunkPos,
    buf: &mut [u8],
) -> Option<usize> {
    let loaded = world.loaded_chunk(chunk)?;
    let mut palette = [0; MAX_PALETTE];
    let kinds = loaded.palette();
    for (place, tile) in palette.iter_mut().zip(kinds) {
        *place = tile.0;
    }
    let entry = ChunkEntry { id: chunk_to_wire(shown), version: offset.shown(loaded.version()) };
    let palette = palette.get(..kinds.len())?;
    Chunk { entry, palette, indices: loaded.indices() }.emit(buf).ok()
}
