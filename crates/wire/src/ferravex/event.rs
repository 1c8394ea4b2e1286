//! Kind 5: something that has to arrive, once and in order.

use zerocopy::little_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{Header, Kind};
use super::ids::{Cookie, EventSequence};
use super::layout::{self, Layout};
use crate::{EmitError, ErrorKind, MAX_DATAGRAM, ParseError, emit};

/// Bytes of a payload, at most.
pub const MAX_PAYLOAD: usize = 900;

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 10 | header |
/// | 10 | 8 | session |
/// | 18 | 8 | sequence |
/// | 26 | 2 | length |
/// | 28 | length | payload |
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    header: Header,
    session: U64,
    sequence: U64,
    length: U16,
}

const HEAD: usize = 28;
const LENGTH_AT: usize = 26;
const _: () = assert!(size_of::<Raw>() == HEAD);
const _: () = assert!(Event::MAX_LEN <= MAX_DATAGRAM);

impl Layout for Raw {
    const NAME: &'static str = "Event";
    const KIND: Kind = Kind::EVENT;
}

/// A ReliableEvent to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// The session.
    pub session: Cookie,
    /// Its number within the session.
    pub sequence: EventSequence,
    /// At most [`MAX_PAYLOAD`] bytes.
    pub payload: &'a [u8],
}

impl Event<'_> {
    /// Bytes of the longest event: 928. The protocol's page says 924 in words, which its own list of
    /// fields contradicts; the list counts.
    pub const MAX_LEN: usize = HEAD + MAX_PAYLOAD;

    /// Bytes that [`Event::emit`] writes.
    #[expect(clippy::len_without_is_empty, reason = "a packet is never empty")]
    pub const fn len(&self) -> usize {
        HEAD + self.payload.len()
    }

    /// Writes the packet to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is too short, or the payload is longer than [`MAX_PAYLOAD`].
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        emit::limit(Raw::NAME, "payload", self.payload.len(), MAX_PAYLOAD)?;
        let raw = Raw {
            header: Header::new(Raw::KIND),
            session: self.session.get().into(),
            sequence: self.sequence.into(),
            length: (self.payload.len() as u16).into(),
        };
        layout::put(&raw, self.payload, buf)
    }
}

/// A ReliableEvent in a datagram.
#[derive(Clone, Copy)]
pub struct EventView<'a> {
    session: Cookie,
    sequence: EventSequence,
    payload: &'a [u8],
}

impl<'a> EventView<'a> {
    /// Reads a datagram of 28 bytes and the announced payload.
    ///
    /// # Errors
    /// Another length, magic, version or kind; no session; a payload over 900 bytes.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let (raw, tail) = layout::head::<Raw>(datagram)?;
        let session = layout::cookie::<Raw>(raw.session, layout::SESSION_AT)?;
        let length = usize::from(raw.length.get());
        if length > MAX_PAYLOAD {
            return Err(layout::wrong::<Raw>(ErrorKind::Cap, LENGTH_AT, MAX_PAYLOAD, length));
        }
        let payload = layout::counted::<Raw>(datagram, tail, length)?;
        Ok(Self { session, sequence: raw.sequence.get(), payload })
    }

    /// The session.
    pub const fn session(self) -> Cookie {
        self.session
    }

    /// Its number within the session.
    pub const fn sequence(self) -> EventSequence {
        self.sequence
    }

    /// What it tells; at most [`MAX_PAYLOAD`] bytes.
    pub const fn payload(self) -> &'a [u8] {
        self.payload
    }
}

impl core::fmt::Display for EventView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Event seq={} bytes={}", self.sequence, self.payload.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_stand_where_the_page_says() {
        let session = Cookie::new(0x0807_0605_0403_0201).unwrap();
        let event = Event { session, sequence: 1 << 40, payload: b"boom" };
        let mut buf = [0; 32];
        assert_eq!(event.emit(&mut buf), Ok(32));
        let expected =
            b"FERRAVEX\x02\x05\x01\x02\x03\x04\x05\x06\x07\x08\0\0\0\0\0\x01\0\0\x04\0boom";
        assert_eq!(buf, *expected);
        let view = EventView::parse(&buf).unwrap();
        assert_eq!((view.sequence(), view.payload()), (1 << 40, b"boom".as_slice()));
    }

    #[test]
    fn the_longest_has_928_bytes_and_not_the_924_of_the_text() {
        let session = Cookie::new(1).unwrap();
        let (bytes, mut buf) = ([7; 901], [0; 1200]);
        let longest = Event { session, sequence: 0, payload: &bytes[1..] };
        assert_eq!(longest.emit(&mut buf), Ok(928));
        assert_eq!(EventView::parse(&buf[..928]).unwrap().payload().len(), 900);
        assert!(Event { payload: &bytes, ..longest }.emit(&mut buf).is_err());
        buf[26..28].copy_from_slice(&901u16.to_le_bytes());
        let error = EventView::parse(&buf[..929]).unwrap_err();
        assert_eq!((error.kind, error.offset), (ErrorKind::Cap, 26));
    }
}
