//! What every layout's `parse` and `emit` share: length checks and one copy.

use zerocopy::little_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{self, PacketType};
use super::tag;
use crate::tlv::TlvBlock;
use crate::{EmitError, ErrorKind, MAX_DATAGRAM, ParseError, emit};

/// A struct that is the table of the note: header first, no padding, any alignment.
pub(super) trait Layout:
    FromBytes + IntoBytes + KnownLayout + Immutable + Unaligned
{
    /// The name in errors and logs.
    const NAME: &'static str;
    /// The packet type that the header must show.
    const TYPE: PacketType;
}

/// Reads a packet of one exact length.
pub(super) fn exact<L: Layout>(datagram: &[u8]) -> Result<&L, ParseError> {
    let (layout, tail) = head::<L>(datagram)?;
    if !tail.is_empty() {
        return Err(too_long(L::NAME, size_of::<L>(), datagram.len()));
    }
    Ok(layout)
}

/// Reads the fixed part of a packet and leaves its tail.
pub(super) fn head<L: Layout>(datagram: &[u8]) -> Result<(&L, &[u8]), ParseError> {
    if datagram.len() > MAX_DATAGRAM {
        return Err(too_long(L::NAME, MAX_DATAGRAM, datagram.len()));
    }
    header::check(L::NAME, L::TYPE, datagram)?;
    L::ref_from_prefix(datagram).map_err(|_| too_short(L::NAME, size_of::<L>(), datagram.len()))
}

/// Reads a tail of exactly `len` bytes that an earlier field announced.
pub(super) fn counted<L: Layout>(tail: &[u8], len: usize) -> Result<&[u8], ParseError> {
    let (needed, got) = (size_of::<L>() + len, size_of::<L>() + tail.len());
    match tail.len() {
        n if n < len => Err(too_short(L::NAME, needed, got)),
        n if n > len => Err(too_long(L::NAME, needed, got)),
        _ => Ok(tail),
    }
}

/// Reads the fixed part and the TLV block behind it, whose length `len` finds in the fixed part.
pub(super) fn with_meta<L: Layout>(
    datagram: &[u8],
    len: impl Fn(&L) -> U16,
) -> Result<(&L, TlvBlock<'_>), ParseError> {
    let (raw, tail) = head::<L>(datagram)?;
    let meta = counted::<L>(tail, len(raw).get().into())?;
    Ok((raw, tag::block(L::NAME, size_of::<L>(), meta)?))
}

/// UTF-8 behind a fixed part (R32). Forbidden characters are left in: the reader strips them.
pub(super) fn utf8<L: Layout>(bytes: &[u8]) -> Result<&str, ParseError> {
    core::str::from_utf8(bytes).map_err(|error| ParseError {
        packet: L::NAME,
        kind: ErrorKind::Utf8,
        offset: size_of::<L>() + error.valid_up_to(),
        needed: bytes.len(),
        got: error.valid_up_to(),
    })
}

/// Writes the fixed part and the tail, or nothing.
pub(super) fn put<L: Layout>(layout: &L, tail: &[u8], buf: &mut [u8]) -> Result<usize, EmitError> {
    emit::put(L::NAME, layout.as_bytes(), tail, buf)
}

/// Refuses a field that is longer than its place.
pub(super) fn limit<L: Layout>(
    field: &'static str,
    got: usize,
    limit: usize,
) -> Result<(), EmitError> {
    emit::limit(L::NAME, field, got, limit)
}

pub(super) fn too_short(packet: &'static str, needed: usize, got: usize) -> ParseError {
    ParseError { packet, kind: ErrorKind::TooShort, offset: got, needed, got }
}

pub(super) fn too_long(packet: &'static str, needed: usize, got: usize) -> ParseError {
    ParseError { packet, kind: ErrorKind::TooLong, offset: needed, needed, got }
}
