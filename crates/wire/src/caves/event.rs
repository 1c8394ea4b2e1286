//! Types 14 and 16: chat, notices and combat, and their acknowledgement.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{Header, PacketType};
use super::ids::{ClientType, EntityId, Sequence, Token};
use super::layout::{self, Layout};
use crate::{EmitError, ErrorKind, ParseError};

/// The longest text of an event, in bytes.
pub const MAX_EVENT_TEXT: usize = 1000;

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 6 | header |
/// | 6 | 4 | sequence |
/// | 10 | 1 | kind |
/// | 11 | 4 | from |
/// | 15 | 2 | length |
/// | 17 | length | text |
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    header: Header,
    sequence: U32,
    kind: u8,
    from: U32,
    length: U16,
}

const HEAD: usize = 17;
const _: () = assert!(size_of::<Raw>() == HEAD);

impl Layout for Raw {
    const NAME: &'static str = "Event";
    const TYPE: PacketType = PacketType::EVENT;
}

/// What an event tells; a value that this crate does not know stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EventKind(pub u8);

impl EventKind {
    /// Somebody in view said something.
    pub const CHAT: Self = Self(1);
    /// The server tells this player something.
    pub const NOTICE: Self = Self(2);
    /// A blow, a death, a rating.
    pub const COMBAT: Self = Self(3);
}

/// An Event to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// Its number within the session.
    pub sequence: Sequence,
    /// What it tells.
    pub kind: EventKind,
    /// Who is the cause, or entity 0.
    pub from: EntityId,
    /// At most [`MAX_EVENT_TEXT`] bytes.
    pub text: &'a str,
}

impl Event<'_> {
    /// Bytes that [`Event::emit`] writes.
    #[expect(clippy::len_without_is_empty, reason = "a packet is never empty")]
    pub const fn len(&self) -> usize {
        HEAD + self.text.len()
    }

    /// Writes the packet to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is too short, or the text is longer than [`MAX_EVENT_TEXT`].
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        layout::limit::<Raw>("text", self.text.len(), MAX_EVENT_TEXT)?;
        let raw = Raw {
            header: Header::new(Raw::TYPE, ClientType::OFFICIAL),
            sequence: self.sequence.get().into(),
            kind: self.kind.0,
            from: self.from.0.into(),
            length: (self.text.len() as u16).into(),
        };
        layout::put(&raw, self.text.as_bytes(), buf)
    }
}

/// An Event in a datagram.
#[derive(Clone, Copy)]
pub struct EventView<'a> {
    raw: &'a Raw,
    text: &'a str,
}

impl<'a> EventView<'a> {
    /// Reads a datagram of 17 bytes and the announced text.
    ///
    /// # Errors
    /// Another length, magic, version or type; text over 1000 bytes or not UTF-8.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let (raw, tail) = layout::head::<Raw>(datagram)?;
        let length = usize::from(raw.length.get());
        let text = layout::counted::<Raw>(tail, length)?;
        if length > MAX_EVENT_TEXT {
            return Err(ParseError {
                packet: Raw::NAME,
                kind: ErrorKind::Range,
                offset: 15,
                needed: MAX_EVENT_TEXT,
                got: length,
            });
        }
        let text = layout::utf8::<Raw>(text)?;
        Ok(Self { raw, text })
    }

    /// Its number within the session.
    pub const fn sequence(self) -> Sequence {
        Sequence::new(self.raw.sequence.get())
    }

    /// What it tells.
    pub const fn kind(self) -> EventKind {
        EventKind(self.raw.kind)
    }

    /// Who is the cause, or entity 0.
    pub const fn from(self) -> EntityId {
        EntityId(self.raw.from.get())
    }

    /// What to show; strip it first ([`crate::text::clean`]).
    pub const fn text(self) -> &'a str {
        self.text
    }
}

impl core::fmt::Display for EventView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (sequence, kind, from) = (self.sequence().get(), self.kind().0, self.from().0);
        write!(f, "Event seq={sequence} kind={kind} from={from} {:?}", self.text)
    }
}

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 6 | header |
/// | 6 | 8 | auth_token |
/// | 14 | 4 | sequence |
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawAck {
    header: Header,
    auth_token: U64,
    sequence: U32,
}

const _: () = assert!(size_of::<RawAck>() == EventAck::LEN);

impl Layout for RawAck {
    const NAME: &'static str = "EventAck";
    const TYPE: PacketType = PacketType::EVENT_ACK;
}

/// An EventAck to be written: one event was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventAck {
    /// Which kind of client speaks.
    pub client_type: ClientType,
    /// The session.
    pub token: Token,
    /// The event's number.
    pub sequence: Sequence,
}

impl EventAck {
    /// Bytes of every EventAck.
    pub const LEN: usize = 18;

    /// Writes the packet to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is shorter than [`EventAck::LEN`].
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        let raw = RawAck {
            header: Header::new(RawAck::TYPE, self.client_type),
            auth_token: self.token.0.into(),
            sequence: self.sequence.get().into(),
        };
        layout::put(&raw, &[], buf)
    }
}

/// An EventAck in a datagram.
#[derive(Clone, Copy)]
pub struct EventAckView<'a>(&'a RawAck);

impl<'a> EventAckView<'a> {
    /// Reads a datagram of exactly 18 bytes.
    ///
    /// # Errors
    /// Another length, magic, version or type.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        layout::exact(datagram).map(Self)
    }

    /// The session's token.
    pub const fn token(self) -> Token {
        Token(self.0.auth_token.get())
    }

    /// The event's number.
    pub const fn sequence(self) -> Sequence {
        Sequence::new(self.0.sequence.get())
    }
}

impl core::fmt::Display for EventAckView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "EventAck seq={}", self.sequence().get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_an_event_stand_where_the_note_says() {
        let event = Event {
            sequence: Sequence::new(0x0102),
            kind: EventKind::CHAT,
            from: EntityId(0x0304),
            text: "hé",
        };
        let mut buf = [0; 20];
        assert_eq!(event.emit(&mut buf), Ok(20));
        let fixed = [0x4C, 0x52, 1, 14, 0, 0, 2, 1, 0, 0, 1, 4, 3, 0, 0, 3, 0];
        assert_eq!(buf[..17], fixed);
        assert_eq!(&buf[17..], "hé".as_bytes());
        assert_eq!(EventView::parse(&buf).unwrap().text(), "hé");
        buf[19] = b'x';
        let error = EventView::parse(&buf).unwrap_err();
        assert_eq!((error.kind, error.offset), (ErrorKind::Utf8, 18));
    }

    #[test]
    fn a_thousand_bytes_fit_and_no_more() {
        let text = "x".repeat(1001);
        let mut buf = [0; 1200];
        let event = |text| Event {
            sequence: Sequence::new(0),
            kind: EventKind::NOTICE,
            from: EntityId(0),
            text,
        };
        assert_eq!(event(&text[1..]).emit(&mut buf), Ok(1017));
        assert!(event(&text).emit(&mut buf).is_err());
        buf[15..17].copy_from_slice(&1001u16.to_le_bytes());
        buf[17..1018].fill(b'x');
        assert_eq!(EventView::parse(&buf[..1018]).unwrap_err().kind, ErrorKind::Range);
    }

    #[test]
    fn bytes_of_an_acknowledgement_stand_where_the_note_says() {
        let ack =
            EventAck { client_type: ClientType(0), token: Token(5), sequence: Sequence::new(6) };
        let mut buf = [0; 18];
        assert_eq!(ack.emit(&mut buf), Ok(18));
        assert_eq!(buf, [0x4C, 0x52, 1, 16, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0]);
    }
}
