//! What every `emit` shares, whatever the protocol: a length check and one copy.

use crate::{EmitError, MAX_DATAGRAM};

/// Writes the fixed part and the tail, or nothing.
pub(crate) fn put(
    packet: &'static str,
    fixed: &[u8],
    tail: &[u8],
    buf: &mut [u8],
) -> Result<usize, EmitError> {
    let needed = fixed.len() + tail.len();
    limit(packet, "length", needed, MAX_DATAGRAM)?;
    let got = buf.len();
    let Some(room) = buf.get_mut(..needed) else {
        return Err(EmitError::Buffer { packet, needed, got });
    };
    let (head, rest) = room.split_at_mut(fixed.len());
    head.copy_from_slice(fixed);
    rest.copy_from_slice(tail);
    Ok(needed)
}

/// Refuses a field that is longer or larger than its place.
pub(crate) const fn limit(
    packet: &'static str,
    field: &'static str,
    got: usize,
    limit: usize,
) -> Result<(), EmitError> {
    if got > limit {
        return Err(EmitError::Field { packet, field, limit, got });
    }
    Ok(())
}
