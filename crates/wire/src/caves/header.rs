//! The six bytes at the start of every datagram (R1 to R3).

use zerocopy::little_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::ids::ClientType;
use super::layout::too_short;
use crate::{ErrorKind, ParseError};

/// The magic, `4C 52` on the wire (R2).
pub const MAGIC: u16 = 0x524C;
/// The protocol version that this crate speaks (R1).
pub const VERSION: u8 = 1;

/// The table of the note.
///
/// | offset | size | field |
/// |---|---|---|
/// | 0 | 2 | magic |
/// | 2 | 1 | version |
/// | 3 | 1 | packet_type |
/// | 4 | 2 | client_type |
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Header {
    pub(super) magic: U16,
    pub(super) version: u8,
    pub(super) packet_type: u8,
    pub(super) client_type: U16,
}

const _: () = assert!(size_of::<Header>() == 6);

impl Header {
    pub(super) const fn new(packet_type: PacketType, client_type: ClientType) -> Self {
        Self {
            magic: U16::new(MAGIC),
            version: VERSION,
            packet_type: packet_type.0,
            client_type: U16::new(client_type.0),
        }
    }
}

/// Checks length, magic, version and type, in this order.
pub(super) fn check(
    packet: &'static str,
    packet_type: PacketType,
    datagram: &[u8],
) -> Result<(), ParseError> {
    let header = HeaderView::parse(datagram).map_err(|error| ParseError { packet, ..error })?;
    // Refuse is the same in all versions (R1).
    if header.version() != VERSION && packet_type != PacketType::REFUSE {
        return Err(ParseError {
            packet,
            kind: ErrorKind::Version,
            offset: 2,
            needed: VERSION.into(),
            got: header.version().into(),
        });
    }
    if header.packet_type() != packet_type {
        return Err(ParseError {
            packet,
            kind: ErrorKind::PacketType,
            offset: 3,
            needed: packet_type.0.into(),
            got: header.packet_type().0.into(),
        });
    }
    Ok(())
}

/// The header of any datagram of this protocol, whatever its version and type.
///
/// ```
/// use caves_wire::caves::{HeaderView, PacketType};
///
/// let header = HeaderView::parse(&[0x4C, 0x52, 1, 6, 0, 0, 9, 9])?;
/// assert_eq!(header.packet_type(), PacketType::PING);
/// # Ok::<(), caves_wire::ParseError>(())
/// ```
#[derive(Clone, Copy)]
pub struct HeaderView<'a>(&'a Header);

impl<'a> HeaderView<'a> {
    /// Reads the first six bytes.
    ///
    /// # Errors
    /// Fewer than six bytes, or another magic.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let (header, _) = Header::ref_from_prefix(datagram)
            .map_err(|_| too_short("Header", size_of::<Header>(), datagram.len()))?;
        if header.magic.get() != MAGIC {
            return Err(ParseError {
                packet: "Header",
                kind: ErrorKind::Magic,
                offset: 0,
                needed: MAGIC.into(),
                got: header.magic.get().into(),
            });
        }
        Ok(Self(header))
    }

    /// The sender's protocol version.
    pub const fn version(self) -> u8 {
        self.0.version
    }

    /// What follows.
    pub const fn packet_type(self) -> PacketType {
        PacketType(self.0.packet_type)
    }

    /// Which kind of client sent it; servers send 0 (R3).
    pub const fn client_type(self) -> ClientType {
        ClientType(self.0.client_type.get())
    }
}

impl core::fmt::Debug for HeaderView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("HeaderView")
            .field("version", &self.version())
            .field("packet_type", &self.packet_type())
            .field("client_type", &self.client_type())
            .finish()
    }
}

/// A packet type; a value that this crate does not know stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PacketType(pub u8);

impl PacketType {
    /// Type 0: a tick's manifest and checksum.
    pub const STATE: Self = Self(0);
    /// Type 1: what a player does.
    pub const ACTION: Self = Self(1);
    /// Type 2: tiles.
    pub const CHUNK: Self = Self(2);
    /// Type 3: what a player sees.
    pub const ENTITIES: Self = Self(3);
    /// Type 4: a question about an entity.
    pub const QUERY: Self = Self(4);
    /// Type 5: its answer.
    pub const DETAIL: Self = Self(5);
    /// Type 6: a question for the round trip.
    pub const PING: Self = Self(6);
    /// Type 7: its answer.
    pub const PONG: Self = Self(7);
    /// Type 8: a stranger asks for a challenge.
    pub const HELLO: Self = Self(8);
    /// Type 9: the cookie.
    pub const CHALLENGE: Self = Self(9);
    /// Type 10: a client joins.
    pub const JOIN: Self = Self(10);
    /// Type 11: it is in.
    pub const WELCOME: Self = Self(11);
    /// Type 12: it is not.
    pub const REFUSE: Self = Self(12);
    /// Type 13: a session ends.
    pub const LEAVE: Self = Self(13);
    /// Type 14: chat, notices, combat.
    pub const EVENT: Self = Self(14);
    /// Type 16: one event was received.
    pub const EVENT_ACK: Self = Self(16);
    /// Type 18: a stranger asks about the server.
    pub const INFO_REQUEST: Self = Self(18);
    /// Type 19: its answer.
    pub const INFO: Self = Self(19);
}

impl PacketType {
    /// The name of a known type.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::STATE => "State",
            Self::ACTION => "Action",
            Self::CHUNK => "Chunk",
            Self::ENTITIES => "Entities",
            Self::QUERY => "Query",
            Self::DETAIL => "Detail",
            Self::PING => "Ping",
            Self::PONG => "Pong",
            Self::HELLO => "Hello",
            Self::CHALLENGE => "Challenge",
            Self::JOIN => "Join",
            Self::WELCOME => "Welcome",
            Self::REFUSE => "Refuse",
            Self::LEAVE => "Leave",
            Self::EVENT => "Event",
            Self::EVENT_ACK => "EventAck",
            Self::INFO_REQUEST => "InfoRequest",
            Self::INFO => "Info",
            _ => return None,
        })
    }

    /// Whether a client sends this type; [`PacketType::LEAVE`] goes both ways.
    pub const fn is_from_client(self) -> bool {
        matches!(
            self,
            Self::ACTION
                | Self::QUERY
                | Self::PING
                | Self::HELLO
                | Self::JOIN
                | Self::LEAVE
                | Self::EVENT_ACK
                | Self::INFO_REQUEST
        )
    }
}

impl core::fmt::Display for PacketType {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "type {}", self.0),
        }
    }
}
