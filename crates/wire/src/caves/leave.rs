//! Type 13: a session ends, either side.

use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{Header, PacketType};
use super::ids::{ClientType, Token};
use super::layout::{self, Layout};
use crate::{EmitError, ParseError};

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 6 | header |
/// | 6 | 8 | auth_token |
/// | 14 | 1 | reason |
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    header: Header,
    auth_token: U64,
    reason: u8,
}

const _: () = assert!(size_of::<Raw>() == Leave::LEN);

impl Layout for Raw {
    const NAME: &'static str = "Leave";
    const TYPE: PacketType = PacketType::LEAVE;
}

/// A reason to leave; a value that this crate does not know stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaveReason(pub u8);

impl LeaveReason {
    /// The player quit.
    pub const QUIT: Self = Self(0);
    /// The operator ended the session.
    pub const KICKED: Self = Self(1);
    /// The operator banned the player.
    pub const BANNED: Self = Self(2);
    /// Nothing was heard for too long.
    pub const IDLE: Self = Self(3);
    /// The server stops.
    pub const SHUTTING_DOWN: Self = Self(4);
    /// The player joined from elsewhere.
    pub const REPLACED: Self = Self(5);
    /// The peer broke the protocol.
    pub const PROTOCOL_ERROR: Self = Self(6);
    /// Events stayed unacknowledged for too long.
    pub const EVENTS_UNREAD: Self = Self(7);

    /// Whether a client comes back by itself after this (section 2).
    pub const fn may_return(self) -> bool {
        matches!(self, Self::SHUTTING_DOWN)
    }
}

impl core::fmt::Display for LeaveReason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match *self {
            Self::QUIT => "quit",
            Self::KICKED => "kicked",
            Self::BANNED => "banned",
            Self::IDLE => "idle",
            Self::SHUTTING_DOWN => "server shutting down",
            Self::REPLACED => "replaced by a newer login",
            Self::PROTOCOL_ERROR => "protocol error",
            Self::EVENTS_UNREAD => "events unread",
            Self(other) => return write!(f, "reason {other}"),
        })
    }
}

/// A Leave to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leave {
    /// Which kind of client leaves; 0 from a server.
    pub client_type: ClientType,
    /// The session that ends.
    pub token: Token,
    /// Why.
    pub reason: LeaveReason,
}

impl Leave {
    /// Bytes of every Leave.
    pub const LEN: usize = 15;

    /// Writes the packet to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is shorter than [`Leave::LEN`].
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        let raw = Raw {
            header: Header::new(Raw::TYPE, self.client_type),
            auth_token: self.token.0.into(),
            reason: self.reason.0,
        };
        layout::put(&raw, &[], buf)
    }
}

/// A Leave in a datagram.
#[derive(Clone, Copy)]
pub struct LeaveView<'a>(&'a Raw);

impl<'a> LeaveView<'a> {
    /// Reads a datagram of exactly 15 bytes.
    ///
    /// # Errors
    /// Another length, magic, version or type.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        layout::exact(datagram).map(Self)
    }

    /// The session that ends.
    pub const fn token(self) -> Token {
        Token(self.0.auth_token.get())
    }

    /// Why.
    pub const fn reason(self) -> LeaveReason {
        LeaveReason(self.0.reason)
    }
}

impl core::fmt::Display for LeaveView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Leave: {}", self.reason())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_stand_where_the_note_says() {
        let leave = Leave {
            client_type: ClientType(1),
            token: Token(0x0102),
            reason: LeaveReason::SHUTTING_DOWN,
        };
        let mut buf = [0; 15];
        assert_eq!(leave.emit(&mut buf), Ok(15));
        assert_eq!(buf, [0x4C, 0x52, 1, 13, 1, 0, 2, 1, 0, 0, 0, 0, 0, 0, 4]);
        let view = LeaveView::parse(&buf).unwrap();
        assert_eq!((view.token(), view.reason()), (leave.token, leave.reason));
    }
}
