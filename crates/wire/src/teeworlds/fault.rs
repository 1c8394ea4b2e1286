//! What the layouts share: how a fault is told, and one copy into a buffer.

use crate::{EmitError, ErrorKind, ParseError};

pub(super) const fn too_short(packet: &'static str, needed: usize, got: usize) -> ParseError {
    ParseError { packet, kind: ErrorKind::TooShort, offset: got, needed, got }
}

pub(super) const fn too_long(packet: &'static str, needed: usize, got: usize) -> ParseError {
    ParseError { packet, kind: ErrorKind::TooLong, offset: needed, needed, got }
}

/// Refuses a field that is longer than its place.
pub(super) const fn limit(
    packet: &'static str,
    field: &'static str,
    got: usize,
    limit: usize,
) -> Result<(), EmitError> {
    if got > limit { Err(EmitError::Field { packet, field, limit, got }) } else { Ok(()) }
}

/// The first `needed` bytes of the caller's buffer.
pub(super) fn room<'b>(
    packet: &'static str,
    buf: &'b mut [u8],
    needed: usize,
) -> Result<&'b mut [u8], EmitError> {
    let got = buf.len();
    buf.get_mut(..needed).ok_or(EmitError::Buffer { packet, needed, got })
}

/// Writes the parts one behind the other to the start of `buf`, or nothing.
pub(super) fn put(
    packet: &'static str,
    parts: &[&[u8]],
    buf: &mut [u8],
) -> Result<usize, EmitError> {
    let needed = parts.iter().map(|part| part.len()).sum();
    let mut rest = room(packet, buf, needed)?;
    for part in parts {
        let (place, behind) = rest.split_at_mut(part.len());
        place.copy_from_slice(part);
        rest = behind;
    }
    Ok(needed)
}
