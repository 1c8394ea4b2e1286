//! Types 6 and 7: ping and pong, one layout.

use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{Header, HeaderView, PacketType};
use super::ids::ClientType;
use super::layout::{self, Layout};
use crate::{EmitError, ParseError};

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 6 | header |
/// | 6 | 8 | timestamp_ms |
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw<const TYPE: u8> {
    header: Header,
    timestamp_ms: U64,
}

const _: () = assert!(size_of::<RawPing>() == Echo::LEN);

type RawPing = Raw<{ PacketType::PING.0 }>;
type RawPong = Raw<{ PacketType::PONG.0 }>;

impl Layout for RawPing {
    const NAME: &'static str = "Ping";
    const TYPE: PacketType = PacketType::PING;
}

impl Layout for RawPong {
    const NAME: &'static str = "Pong";
    const TYPE: PacketType = PacketType::PONG;
}

/// Which of the two an [`Echo`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EchoKind {
    /// Type 6, client to server.
    Ping,
    /// Type 7, server to client.
    Pong,
}

/// A PingPacket or PongPacket to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo {
    /// Which of the two.
    pub kind: EchoKind,
    /// Which kind of client speaks; 0 from a server.
    pub client_type: ClientType,
    /// Whatever the client put in: the server sends it back as it came.
    pub timestamp_ms: u64,
}

impl Echo {
    /// Bytes of every PingPacket and PongPacket.
    pub const LEN: usize = 14;

    /// A ping.
    pub const fn ping(client_type: ClientType, timestamp_ms: u64) -> Self {
        Self { kind: EchoKind::Ping, client_type, timestamp_ms }
    }

    /// The answer to a ping, under the server's own header (R22).
    pub const fn pong(timestamp_ms: u64) -> Self {
        Self { kind: EchoKind::Pong, client_type: ClientType::OFFICIAL, timestamp_ms }
    }

    /// Writes the packet to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is shorter than [`Echo::LEN`].
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        let timestamp_ms = self.timestamp_ms.into();
        match self.kind {
            EchoKind::Ping => {
                let header = Header::new(RawPing::TYPE, self.client_type);
                layout::put(&RawPing { header, timestamp_ms }, &[], buf)
            }
            EchoKind::Pong => {
                let header = Header::new(RawPong::TYPE, self.client_type);
                layout::put(&RawPong { header, timestamp_ms }, &[], buf)
            }
        }
    }
}

/// A PingPacket or PongPacket in a datagram.
#[derive(Clone, Copy)]
pub struct EchoView<'a> {
    kind: EchoKind,
    timestamp_ms: &'a U64,
}

impl<'a> EchoView<'a> {
    /// Reads a datagram of exactly 14 bytes.
    ///
    /// # Errors
    /// Another length, magic, version or type.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let packet_type = HeaderView::parse(datagram)?.packet_type();
        if packet_type == PacketType::PONG {
            let raw: &RawPong = layout::exact(datagram)?;
            return Ok(Self { kind: EchoKind::Pong, timestamp_ms: &raw.timestamp_ms });
        }
        let raw: &RawPing = layout::exact(datagram)?;
        Ok(Self { kind: EchoKind::Ping, timestamp_ms: &raw.timestamp_ms })
    }

    /// Which of the two.
    pub const fn kind(self) -> EchoKind {
        self.kind
    }

    /// Whatever the client put in.
    pub const fn timestamp_ms(self) -> u64 {
        self.timestamp_ms.get()
    }
}

impl core::fmt::Display for EchoView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:?} timestamp_ms={}", self.kind, self.timestamp_ms())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_stand_where_the_note_says() {
        let mut buf = [0; 14];
        assert_eq!(Echo::ping(ClientType(0x0605), 0x0102).emit(&mut buf), Ok(14));
        assert_eq!(buf, [0x4C, 0x52, 1, 6, 5, 6, 2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(EchoView::parse(&buf).unwrap().kind(), EchoKind::Ping);
        assert_eq!(Echo::pong(u64::MAX).emit(&mut buf), Ok(14));
        assert_eq!(buf, [0x4C, 0x52, 1, 7, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
        assert_eq!(EchoView::parse(&buf).unwrap().kind(), EchoKind::Pong);
        assert_eq!(EchoView::parse(&buf).unwrap().timestamp_ms(), u64::MAX);
    }
}
