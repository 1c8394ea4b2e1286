//! Four 6-bit values in three bytes, the first in the lowest bits: as tiles travel (protocol, R4).
//!
//! Plain code, for a few chunks a second: vector instructions would need this form beside them anyway.

use caves_world::CHUNK_TILES;

/// Bytes of a chunk's indices.
pub(super) const PACKED: usize = CHUNK_TILES / 4 * 3;

pub(super) fn pack(indices: &[u8; CHUNK_TILES]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(PACKED);
    for four in indices.chunks_exact(4) {
        let number = four.iter().rev().fold(0, |number, &index| number << 6 | u32::from(index));
        packed.extend_from_slice(&number.to_le_bytes()[..3]);
    }
    packed
}

/// `None` for another number of bytes.
pub(super) fn unpack(packed: &[u8]) -> Option<Box<[u8; CHUNK_TILES]>> {
    if packed.len() != PACKED {
        return None;
    }
    let mut indices = Box::new([0; CHUNK_TILES]);
    for (four, three) in indices.chunks_exact_mut(4).zip(packed.chunks_exact(3)) {
        let number = u32::from_le_bytes([three[0], three[1], three[2], 0]);
        for (place, index) in four.iter_mut().enumerate() {
            *index = (number >> (6 * place) & 63) as u8;
        }
    }
    Some(indices)
}
