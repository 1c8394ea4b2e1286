//! Types 18 and 19: what a server tells about itself to somebody who has not joined.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{Header, PacketType};
use super::ids::{ClientType, Nonce, Tick};
use super::layout::{self, Layout};
use crate::tlv::TlvBlock;
use crate::{EmitError, ErrorKind, ParseError};

/// The longest Info, in bytes: never longer than the request.
pub const MAX_INFO: usize = 256;

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 6 | header |
/// | 6 | 8 | client_nonce |
/// | 14 | 242 | padding |
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawRequest {
    header: Header,
    client_nonce: U64,
    padding: [u8; 242],
}

const _: () = assert!(size_of::<RawRequest>() == InfoRequest::LEN);

impl Layout for RawRequest {
    const NAME: &'static str = "InfoRequest";
    const TYPE: PacketType = PacketType::INFO_REQUEST;
}

/// An InfoRequest to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InfoRequest {
    /// Which kind of client asks.
    pub client_type: ClientType,
    /// A number that the answer repeats.
    pub nonce: Nonce,
}

impl InfoRequest {
    /// Bytes of every InfoRequest.
    pub const LEN: usize = 256;

    /// Writes the packet to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is shorter than [`InfoRequest::LEN`].
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        let raw = RawRequest {
            header: Header::new(RawRequest::TYPE, self.client_type),
            client_nonce: self.nonce.0.into(),
            padding: [0; 242],
        };
        layout::put(&raw, &[], buf)
    }
}

/// An InfoRequest in a datagram.
#[derive(Clone, Copy)]
pub struct InfoRequestView<'a>(&'a RawRequest);

impl<'a> InfoRequestView<'a> {
    /// Reads a datagram of exactly 256 bytes.
    ///
    /// # Errors
    /// Another length, magic, version or type.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        layout::exact(datagram).map(Self)
    }

    /// The number that the answer repeats.
    pub const fn nonce(self) -> Nonce {
        Nonce(self.0.client_nonce.get())
    }
}

impl core::fmt::Display for InfoRequestView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "InfoRequest nonce={:016x}", self.nonce().0)
    }
}

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 6 | header |
/// | 6 | 8 | client_nonce |
/// | 14 | 4 | tick |
/// | 18 | 2 | players |
/// | 20 | 2 | max_players |
/// | 22 | 2 | meta_len |
/// | 24 | meta_len | meta |
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    header: Header,
    client_nonce: U64,
    tick: U32,
    players: U16,
    max_players: U16,
    meta_len: U16,
}

const HEAD: usize = 24;
const _: () = assert!(size_of::<Raw>() == HEAD);

impl Layout for Raw {
    const NAME: &'static str = "Info";
    const TYPE: PacketType = PacketType::INFO;
}

/// An Info to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info<'a> {
    /// The request that is answered.
    pub nonce: Nonce,
    /// The server's present tick.
    pub tick: Tick,
    /// Players in the caves.
    pub players: u16,
    /// The most there can be.
    pub max_players: u16,
    /// A TLV block with server name and message of the day, at most 232 bytes.
    pub meta: &'a [u8],
}

impl Info<'_> {
    /// The most metadata that fits, in bytes.
    pub const MAX_META: usize = MAX_INFO - HEAD;

    /// Bytes that [`Info::emit`] writes.
    #[expect(clippy::len_without_is_empty, reason = "a packet is never empty")]
    pub const fn len(&self) -> usize {
        HEAD + self.meta.len()
    }

    /// Writes the packet to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is too short, or the packet would pass [`MAX_INFO`] bytes.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        layout::limit::<Raw>("meta", self.meta.len(), Self::MAX_META)?;
        let raw = Raw {
            header: Header::new(Raw::TYPE, ClientType::OFFICIAL),
            client_nonce: self.nonce.0.into(),
            tick: self.tick.get().into(),
            players: self.players.into(),
            max_players: self.max_players.into(),
            meta_len: (self.meta.len() as u16).into(),
        };
        layout::put(&raw, self.meta, buf)
    }
}

/// An Info in a datagram.
#[derive(Clone, Copy)]
pub struct InfoView<'a> {
    raw: &'a Raw,
    meta: TlvBlock<'a>,
}

impl<'a> InfoView<'a> {
    /// Reads a datagram of 24 bytes and the announced metadata.
    ///
    /// # Errors
    /// Another length, magic, version or type; more than 256 bytes; metadata that is no TLV block.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let (raw, meta) = layout::with_meta(datagram, |raw: &Raw| raw.meta_len)?;
        if meta.as_bytes().len() > Info::MAX_META {
            return Err(ParseError {
                packet: Raw::NAME,
                kind: ErrorKind::Range,
                offset: 22,
                needed: Info::MAX_META,
                got: meta.as_bytes().len(),
            });
        }
        Ok(Self { raw, meta })
    }

    /// The request that is answered.
    pub const fn nonce(self) -> Nonce {
        Nonce(self.raw.client_nonce.get())
    }

    /// The server's tick when it answered.
    pub const fn tick(self) -> Tick {
        Tick::new(self.raw.tick.get())
    }

    /// Players in the caves.
    pub const fn players(self) -> u16 {
        self.raw.players.get()
    }

    /// The most there can be.
    pub const fn max_players(self) -> u16 {
        self.raw.max_players.get()
    }

    /// Server name and message of the day.
    pub const fn meta(self) -> TlvBlock<'a> {
        self.meta
    }
}

impl core::fmt::Display for InfoView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "Info nonce={:016x} tick={} players={}/{}",
            self.nonce().0,
            self.tick().get(),
            self.players(),
            self.max_players(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caves::tag;

    #[test]
    fn bytes_stand_where_the_note_says() {
        let mut buf = [0xEE; 256];
        let request = InfoRequest { client_type: ClientType(0), nonce: Nonce(0x0102) };
        assert_eq!(request.emit(&mut buf), Ok(256));
        assert_eq!(buf[..14], [0x4C, 0x52, 1, 18, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(buf[14..], [0; 242]);

        let meta = [0x22, 1, b'S'];
        let info = Info {
            nonce: Nonce(0x0102),
            tick: Tick::new(3),
            players: 4,
            max_players: 5,
            meta: &meta,
        };
        assert_eq!(info.emit(&mut buf), Ok(27));
        assert_eq!(buf[..6], [0x4C, 0x52, 1, 19, 0, 0]);
        assert_eq!(buf[14..24], [3, 0, 0, 0, 4, 0, 5, 0, 3, 0]);
        let view = InfoView::parse(&buf[..27]).unwrap();
        assert_eq!((view.players(), view.max_players()), (4, 5));
        assert_eq!(view.meta().first(tag::SERVER_NAME), Some(&b"S"[..]));
    }

    #[test]
    fn an_info_is_never_longer_than_its_request() {
        let meta = [0; 233];
        let info =
            Info { nonce: Nonce(1), tick: Tick::new(0), players: 0, max_players: 0, meta: &meta };
        let mut buf = [0; 1200];
        assert!(info.emit(&mut buf).is_err());
        assert_eq!(Info { meta: &meta[..232], ..info }.emit(&mut buf), Ok(InfoRequest::LEN));
    }
}
