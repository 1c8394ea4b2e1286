//! The ten bytes at the start of every datagram.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::layout::{too_long, too_short};
use crate::{ErrorKind, MAX_DATAGRAM, ParseError};

/// The magic, eight ASCII characters.
pub const MAGIC: [u8; 8] = *b"FERRAVEX";
/// The protocol version. Those of version 1 have to upgrade: their packets are refused.
pub const VERSION: u8 = 2;

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 8 | magic |
/// | 8 | 1 | version |
/// | 9 | 1 | kind |
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Header {
    magic: [u8; 8],
    version: u8,
    kind: u8,
}

const _: () = assert!(size_of::<Header>() == 10);

impl Header {
    pub(super) const fn new(kind: Kind) -> Self {
        Self { magic: MAGIC, version: VERSION, kind: kind.0 }
    }
}

/// Checks length, magic, version and kind, in this order.
pub(super) fn check(packet: &'static str, kind: Kind, datagram: &[u8]) -> Result<(), ParseError> {
    let header = HeaderView::parse(datagram).map_err(|error| ParseError { packet, ..error })?;
    if header.kind() != kind {
        return Err(ParseError {
            packet,
            kind: ErrorKind::PacketType,
            offset: 9,
            needed: kind.0.into(),
            got: header.kind().0.into(),
        });
    }
    Ok(())
}

/// The header of a datagram of this version, whatever its kind.
///
/// ```
/// use caves_wire::ferravex::{HeaderView, Kind};
///
/// assert_eq!(HeaderView::parse(b"FERRAVEX\x02\x01")?.kind(), Kind::HELLO);
/// # Ok::<(), caves_wire::ParseError>(())
/// ```
#[derive(Clone, Copy)]
pub struct HeaderView<'a>(&'a Header);

impl<'a> HeaderView<'a> {
    /// Reads the first ten bytes.
    ///
    /// # Errors
    /// More than 1200 bytes, fewer than ten, another magic or version.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        if datagram.len() > MAX_DATAGRAM {
            return Err(too_long("Header", datagram.len()));
        }
        let (header, _) = Header::ref_from_prefix(datagram)
            .map_err(|_| too_short("Header", size_of::<Header>(), datagram.len()))?;
        let wrong = |kind, offset, needed: u8, got: u8| ParseError {
            packet: "Header",
            kind,
            offset,
            needed: needed.into(),
            got: got.into(),
        };
        let pairs = MAGIC.into_iter().zip(header.magic).enumerate();
        if let Some((place, (needed, got))) = pairs.into_iter().find(|(_, (n, g))| n != g) {
            return Err(wrong(ErrorKind::Magic, place, needed, got));
        }
        if header.version != VERSION {
            return Err(wrong(ErrorKind::Version, 8, VERSION, header.version));
        }
        Ok(Self(header))
    }

    /// What follows.
    pub const fn kind(self) -> Kind {
        Kind(self.0.kind)
    }
}

impl core::fmt::Debug for HeaderView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("HeaderView").field(&self.kind()).finish()
    }
}

/// A kind of packet; a value that this crate does not know stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kind(pub u8);

impl Kind {
    /// Kind 1: a client asks for a session.
    pub const HELLO: Self = Self(1);
    /// Kind 2: what a player does.
    pub const INPUT: Self = Self(2);
    /// Kind 3: it has a session.
    pub const WELCOME: Self = Self(3);
    /// Kind 4: how everybody stands.
    pub const SNAPSHOT: Self = Self(4);
    /// Kind 5: something that has to arrive.
    pub const EVENT: Self = Self(5);
    /// Kind 6: one event was received.
    pub const EVENT_ACK: Self = Self(6);

    /// The name of a known kind.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::HELLO => "Hello",
            Self::INPUT => "Input",
            Self::WELCOME => "Welcome",
            Self::SNAPSHOT => "Snapshot",
            Self::EVENT => "Event",
            Self::EVENT_ACK => "EventAck",
            _ => return None,
        })
    }

    /// Whether a client sends this kind; the others come from servers.
    pub const fn is_from_client(self) -> bool {
        matches!(self, Self::HELLO | Self::INPUT | Self::EVENT_ACK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(bytes: &[u8]) -> (ErrorKind, usize) {
        let error = HeaderView::parse(bytes).unwrap_err();
        (error.kind, error.offset)
    }

    #[test]
    fn each_byte_of_the_header_counts() {
        assert_eq!(HeaderView::parse(b"FERRAVEX\x02\xFFtail").unwrap().kind(), Kind(255));
        assert_eq!(kind(b"FERRAVEX\x02"), (ErrorKind::TooShort, 9));
        assert_eq!(kind(b"FERRAVEx\x02\x01"), (ErrorKind::Magic, 7));
        assert_eq!(kind(b"fERRAVEX\x02\x01"), (ErrorKind::Magic, 0));
        for version in [0, 1, 3, 255] {
            let mut bytes = *b"FERRAVEX\x02\x01";
            bytes[8] = version;
            assert_eq!(kind(&bytes), (ErrorKind::Version, 8), "{version}");
        }
        assert_eq!(kind(&[0; 1201]), (ErrorKind::TooLong, 1200));
    }
}
