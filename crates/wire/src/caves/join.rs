//! Type 10: a client joins, with the cookie of its Challenge.

use zerocopy::little_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{Header, PacketType};
use super::ids::{ClientType, Features, Nonce, Token};
use super::layout::{self, Layout};
use super::tag;
use crate::tlv::TlvBlock;
use crate::{EmitError, ParseError};

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 6 | header |
/// | 6 | 8 | client_nonce |
/// | 14 | 16 | cookie |
/// | 30 | 2 | meta_len |
/// | 32 | meta_len | meta |
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    header: Header,
    client_nonce: U64,
    cookie: [u8; 16],
    meta_len: U16,
}

const HEAD: usize = 32;
const _: () = assert!(size_of::<Raw>() == HEAD);

impl Layout for Raw {
    const NAME: &'static str = "Join";
    const TYPE: PacketType = PacketType::JOIN;
}

/// A Join to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Join<'a> {
    /// Which kind of client joins (R3, R37).
    pub client_type: ClientType,
    /// The number of the attempt.
    pub nonce: Nonce,
    /// The cookie of the attempt's Challenge.
    pub cookie: [u8; 16],
    /// A TLV block with what the client wants (section 2).
    pub meta: &'a [u8],
}

impl Join<'_> {
    /// Bytes that [`Join::emit`] writes.
    #[expect(clippy::len_without_is_empty, reason = "a packet is never empty")]
    pub const fn len(&self) -> usize {
        HEAD + self.meta.len()
    }

    /// Writes the packet to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is too short, or the packet would pass 1200 bytes.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        layout::limit::<Raw>("meta", self.meta.len(), usize::from(u16::MAX))?;
        let raw = Raw {
            header: Header::new(Raw::TYPE, self.client_type),
            client_nonce: self.nonce.0.into(),
            cookie: self.cookie,
            meta_len: (self.meta.len() as u16).into(),
        };
        layout::put(&raw, self.meta, buf)
    }
}

/// A Join in a datagram.
#[derive(Clone, Copy)]
pub struct JoinView<'a> {
    raw: &'a Raw,
    meta: TlvBlock<'a>,
}

impl<'a> JoinView<'a> {
    /// Reads a datagram of 32 bytes and the announced metadata.
    ///
    /// # Errors
    /// Another length, magic, version or type; metadata that is no TLV block (R24).
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let (raw, meta) = layout::with_meta(datagram, |raw: &Raw| raw.meta_len)?;
        Ok(Self { raw, meta })
    }

    /// Which kind of client joins.
    pub const fn client_type(self) -> ClientType {
        ClientType(self.raw.header.client_type.get())
    }

    /// The number of the attempt.
    pub const fn nonce(self) -> Nonce {
        Nonce(self.raw.client_nonce.get())
    }

    /// The cookie of the attempt's Challenge.
    pub const fn cookie(self) -> [u8; 16] {
        self.raw.cookie
    }

    /// The name wanted, as it came: the server judges it and answers a bad one.
    pub fn name(self) -> Option<&'a [u8]> {
        self.meta.first(tag::NAME)
    }

    /// The features wanted.
    pub fn features(self) -> Features {
        Features(self.meta.u32(tag::FEATURES).unwrap_or(0))
    }

    /// The token to resume, or a registered one.
    pub fn token(self) -> Option<Token> {
        self.meta.u64(tag::TOKEN).map(Token)
    }

    /// Everything the client wants.
    pub const fn meta(self) -> TlvBlock<'a> {
        self.meta
    }
}

impl core::fmt::Display for JoinView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Join nonce={:016x} features={:#x}", self.nonce().0, self.features().0)?;
        if self.token().is_some() {
            f.write_str(" resumes")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn bytes_stand_where_the_note_says() {
        let meta = [0x20, 2, b'A', b'b', 0x21, 4, 2, 0, 0, 0];
        let join =
            Join { client_type: ClientType(1), nonce: Nonce(9), cookie: [0xC0; 16], meta: &meta };
        let mut buf = [0; 42];
        assert_eq!(join.emit(&mut buf), Ok(42));
        assert_eq!(buf[..14], [0x4C, 0x52, 1, 10, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(buf[14..30], [0xC0; 16]);
        assert_eq!(buf[30..32], [10, 0]);
        assert_eq!(buf[32..], meta);
        let view = JoinView::parse(&buf).unwrap();
        assert_eq!(view.name(), Some(&b"Ab"[..]));
        assert_eq!(view.features(), Features::EVENTS);
        assert_eq!(view.token(), None);
    }

    #[test]
    fn a_token_of_another_length_is_refused() {
        let meta = [0x24, 7, 0, 0, 0, 0, 0, 0, 0];
        let join =
            Join { client_type: ClientType(0), nonce: Nonce(9), cookie: [0; 16], meta: &meta };
        let mut buf = [0; 41];
        join.emit(&mut buf).unwrap();
        assert_eq!(JoinView::parse(&buf).unwrap_err().kind, ErrorKind::TlvLength);
    }
}
