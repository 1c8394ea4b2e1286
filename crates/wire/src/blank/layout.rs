//! What every layout's `parse` and `emit` share.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{HeaderView, PacketType};
use crate::{EmitError, ErrorKind, ParseError};

/// Checks length, tag and type, in this order.
pub(super) fn open<'a>(
    packet: &'static str,
    packet_type: PacketType,
    datagram: &'a [u8],
) -> Result<HeaderView<'a>, ParseError> {
    let header = HeaderView::parse(datagram).map_err(|error| ParseError { packet, ..error })?;
    if header.packet_type() != packet_type {
        return Err(ParseError {
            packet,
            kind: ErrorKind::PacketType,
            offset: 12,
            needed: packet_type.0.into(),
            got: header.packet_type().0.into(),
        });
    }
    Ok(header)
}

/// Writes the fixed part and what lies behind it, or nothing.
pub(super) fn put<L: IntoBytes + Immutable + KnownLayout + Unaligned + FromBytes>(
    packet: &'static str,
    layout: &L,
    tail: &[u8],
    buf: &mut [u8],
) -> Result<usize, EmitError> {
    let needed = size_of::<L>() + tail.len();
    let got = buf.len();
    let Some(room) = buf.get_mut(..needed) else {
        return Err(EmitError::Buffer { packet, needed, got });
    };
    let (fixed, rest) = room.split_at_mut(size_of::<L>());
    fixed.copy_from_slice(layout.as_bytes());
    rest.copy_from_slice(tail);
    Ok(needed)
}

/// Refuses a number that is infinite or none; `offset` counts from the start of the datagram.
pub(super) fn finite(
    packet: &'static str,
    offset: usize,
    values: &[zerocopy::little_endian::F32],
) -> Result<(), ParseError> {
    match values.iter().position(|value| !value.get().is_finite()) {
        None => Ok(()),
        Some(place) => Err(ParseError {
            packet,
            kind: ErrorKind::NonFinite,
            offset: offset + 4 * place,
            needed: 0,
            got: values[place].get().to_bits() as usize,
        }),
    }
}

pub(super) const fn too_short(packet: &'static str, needed: usize, got: usize) -> ParseError {
    ParseError { packet, kind: ErrorKind::TooShort, offset: got, needed, got }
}
