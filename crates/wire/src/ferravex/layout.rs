//! What every layout's `parse` and `emit` share.

use zerocopy::little_endian::{F32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{self, Kind};
use super::ids::Cookie;
use crate::{EmitError, ErrorKind, MAX_DATAGRAM, ParseError, emit};

/// Where the session stands in every packet that has one, but for Welcome.
pub(super) const SESSION_AT: usize = 10;

/// A struct that is the table of the page: header first, no padding, any alignment.
pub(super) trait Layout:
    FromBytes + IntoBytes + KnownLayout + Immutable + Unaligned
{
    /// The name in errors and logs.
    const NAME: &'static str;
    /// The kind that the header must show.
    const KIND: Kind;
}

/// Reads the fixed part of a packet and leaves its tail.
pub(super) fn head<L: Layout>(datagram: &[u8]) -> Result<(&L, &[u8]), ParseError> {
    header::check(L::NAME, L::KIND, datagram)?;
    L::ref_from_prefix(datagram).map_err(|_| too_short(L::NAME, size_of::<L>(), datagram.len()))
}

/// Refuses bytes behind a packet of `needed` bytes.
pub(super) fn end<L: Layout>(datagram: &[u8], needed: usize) -> Result<(), ParseError> {
    let (packet, got) = (L::NAME, datagram.len());
    if got > needed {
        return Err(ParseError { packet, kind: ErrorKind::Trailing, offset: needed, needed, got });
    }
    Ok(())
}

/// Reads a tail of exactly `len` bytes that an earlier field announced.
pub(super) fn counted<'a, L: Layout>(
    datagram: &'a [u8],
    tail: &'a [u8],
    len: usize,
) -> Result<&'a [u8], ParseError> {
    let needed = size_of::<L>() + len;
    end::<L>(datagram, needed)?;
    tail.get(..len).ok_or_else(|| too_short(L::NAME, needed, datagram.len()))
}

/// Refuses a session of zero.
pub(super) fn cookie<L: Layout>(raw: U64, offset: usize) -> Result<Cookie, ParseError> {
    Cookie::new(raw.get()).ok_or(ParseError {
        packet: L::NAME,
        kind: ErrorKind::Zero,
        offset,
        needed: 1,
        got: 0,
    })
}

/// Refuses an infinite number and one that is none; `offset` is where the first of them stands.
pub(super) fn finite<L: Layout>(
    numbers: impl IntoIterator<Item = F32>,
    offset: usize,
) -> Result<(), ParseError> {
    for (place, number) in numbers.into_iter().enumerate() {
        if !number.get().is_finite() {
            return Err(ParseError {
                packet: L::NAME,
                kind: ErrorKind::NonFinite,
                offset: offset + place * size_of::<F32>(),
                // Bit patterns: the largest finite one has all but the last bit of its exponent.
                needed: f32::MAX.to_bits() as usize,
                got: number.get().to_bits() as usize,
            });
        }
    }
    Ok(())
}

/// A fault in a value that was read as a number.
pub(super) const fn wrong<L: Layout>(
    kind: ErrorKind,
    offset: usize,
    needed: usize,
    got: usize,
) -> ParseError {
    ParseError { packet: L::NAME, kind, offset, needed, got }
}

/// What the reader would say of a field that is about to be written.
pub(super) fn invalid<L: Layout>(field: &'static str, kind: ErrorKind) -> EmitError {
    EmitError::Invalid { packet: L::NAME, field, kind }
}

/// Writes the fixed part and the tail, or nothing.
pub(super) fn put<L: Layout>(layout: &L, tail: &[u8], buf: &mut [u8]) -> Result<usize, EmitError> {
    emit::put(L::NAME, layout.as_bytes(), tail, buf)
}

pub(super) const fn too_short(packet: &'static str, needed: usize, got: usize) -> ParseError {
    ParseError { packet, kind: ErrorKind::TooShort, offset: got, needed, got }
}

pub(super) const fn too_long(packet: &'static str, got: usize) -> ParseError {
    let needed = MAX_DATAGRAM;
    ParseError { packet, kind: ErrorKind::TooLong, offset: needed, needed, got }
}
