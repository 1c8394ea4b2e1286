//! Type 8: a client asks for a challenge.

use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{Header, HeaderView, PacketType};
use super::ids::{ClientType, Nonce};
use super::layout::{self, Layout};
use crate::{EmitError, ErrorKind, ParseError};

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 6 | header |
/// | 6 | 8 | client_nonce |
/// | 14 | 50 | padding |
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    header: Header,
    client_nonce: U64,
    padding: [u8; 50],
}

const _: () = assert!(size_of::<Raw>() == Hello::LEN);

impl Layout for Raw {
    const NAME: &'static str = "Hello";
    const TYPE: PacketType = PacketType::HELLO;
}

/// A Hello to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// Which kind of client speaks (R3).
    pub client_type: ClientType,
    /// The number of the attempt.
    pub nonce: Nonce,
}

impl Hello {
    /// Bytes of every Hello: no answer to it is longer.
    pub const LEN: usize = 64;

    /// Writes the packet to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is shorter than [`Hello::LEN`].
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        let raw = Raw {
            header: Header::new(Raw::TYPE, self.client_type),
            client_nonce: self.nonce.0.into(),
            padding: [0; 50],
        };
        layout::put(&raw, &[], buf)
    }
}

/// A Hello in a datagram.
#[derive(Clone, Copy)]
pub struct HelloView<'a>(&'a Raw);

impl<'a> HelloView<'a> {
    /// Reads a datagram of exactly 64 bytes.
    ///
    /// # Errors
    /// Another length, magic, version or type.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        layout::exact(datagram).map(Self)
    }

    /// Reads a Hello of any version: its first 14 bytes are the same in all of them (R1).
    ///
    /// # Errors
    /// Another length, magic or type.
    pub fn parse_any_version(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let header = HeaderView::parse(datagram)?;
        if header.packet_type() != Raw::TYPE {
            return Err(ParseError {
                packet: Raw::NAME,
                kind: ErrorKind::PacketType,
                offset: 3,
                needed: Raw::TYPE.0.into(),
                got: header.packet_type().0.into(),
            });
        }
        let got = datagram.len();
        Raw::ref_from_bytes(datagram).map(Self).map_err(|_| match got < Hello::LEN {
            true => layout::too_short(Raw::NAME, Hello::LEN, got),
            false => layout::too_long(Raw::NAME, Hello::LEN, got),
        })
    }

    /// Which kind of client speaks.
    pub const fn client_type(self) -> ClientType {
        ClientType(self.0.header.client_type.get())
    }

    /// The number of the attempt.
    pub const fn nonce(self) -> Nonce {
        Nonce(self.0.client_nonce.get())
    }
}

impl core::fmt::Display for HelloView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Hello nonce={:016x}", self.nonce().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_stand_where_the_note_says() {
        let mut buf = [0xEE; 64];
        let hello = Hello { client_type: ClientType(3), nonce: Nonce(0x0102_0304_0506_0708) };
        assert_eq!(hello.emit(&mut buf), Ok(64));
        assert_eq!(buf[..14], [0x4C, 0x52, 1, 8, 3, 0, 8, 7, 6, 5, 4, 3, 2, 1]);
        assert_eq!(buf[14..], [0; 50]);
        assert_eq!(HelloView::parse(&buf).unwrap().nonce(), hello.nonce);
    }

    #[test]
    fn another_version_is_read_only_when_asked_for() {
        let mut buf = [7; 64];
        buf[..6].copy_from_slice(&[0x4C, 0x52, 2, 8, 0, 0]);
        assert_eq!(HelloView::parse(&buf).unwrap_err().kind, ErrorKind::Version);
        let hello = HelloView::parse_any_version(&buf).unwrap();
        assert_eq!(hello.nonce(), Nonce(0x0707_0707_0707_0707), "padding is ignored");
        assert!(HelloView::parse_any_version(&buf[..63]).is_err());
    }
}
