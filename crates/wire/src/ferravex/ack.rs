//! Kind 6: one event was received.

use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{Header, Kind};
use super::ids::{Cookie, EventSequence};
use super::layout::{self, Layout};
use crate::{EmitError, ParseError};

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 10 | header |
/// | 10 | 8 | session |
/// | 18 | 8 | sequence |
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    header: Header,
    session: U64,
    sequence: U64,
}

const _: () = assert!(size_of::<Raw>() == EventAck::LEN);

impl Layout for Raw {
    const NAME: &'static str = "EventAck";
    const KIND: Kind = Kind::EVENT_ACK;
}

/// An EventAck to be written. It speaks for this one event alone, whatever came before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventAck {
    /// The session.
    pub session: Cookie,
    /// The event's number.
    pub sequence: EventSequence,
}

impl EventAck {
    /// Bytes of every EventAck.
    pub const LEN: usize = 26;

    /// Writes the packet to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is shorter than [`EventAck::LEN`].
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        let raw = Raw {
            header: Header::new(Raw::KIND),
            session: self.session.get().into(),
            sequence: self.sequence.into(),
        };
        layout::put(&raw, &[], buf)
    }
}

/// An EventAck in a datagram.
#[derive(Clone, Copy)]
pub struct EventAckView<'a> {
    raw: &'a Raw,
    session: Cookie,
}

impl<'a> EventAckView<'a> {
    /// Reads a datagram of exactly 26 bytes.
    ///
    /// # Errors
    /// Another length, magic, version or kind; no session.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let (raw, _) = layout::head::<Raw>(datagram)?;
        let session = layout::cookie::<Raw>(raw.session, layout::SESSION_AT)?;
        layout::end::<Raw>(datagram, EventAck::LEN)?;
        Ok(Self { raw, session })
    }

    /// The session.
    pub const fn session(self) -> Cookie {
        self.session
    }

    /// The event's number.
    pub const fn sequence(self) -> EventSequence {
        self.raw.sequence.get()
    }
}

impl core::fmt::Display for EventAckView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "EventAck seq={}", self.sequence())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_stand_where_the_page_says() {
        let ack = EventAck { session: Cookie::new(5).unwrap(), sequence: u64::MAX - 1 };
        let mut buf = [0; 26];
        assert_eq!(ack.emit(&mut buf), Ok(26));
        let expected = b"FERRAVEX\x02\x06\x05\0\0\0\0\0\0\0\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF";
        assert_eq!(buf, *expected);
        assert_eq!(EventAckView::parse(&buf).unwrap().sequence(), u64::MAX - 1);
    }
}
