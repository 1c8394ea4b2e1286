//! The sixteen bytes at the start of every datagram; a ping and a part have nothing else.

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::layout::{self, too_short};
use super::{MAX_DATAGRAM, MAX_PAYLOAD};
use crate::{EmitError, ErrorKind, ParseError};

/// The tag, `AF B1 1A FB` on the wire.
pub const TAG: u32 = 0xFB1A_B1AF;
/// The number of a datagram.
pub type Seq = caves_link::seq::Seq<16>;
/// The latest number that arrived, and a bit for each of the 32 before it (section 3).
pub type Ack = caves_link::ack::Ack<16, 32>;

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 4 | tag |
/// | 4 | 2 | seq |
/// | 6 | 2 | ack |
/// | 8 | 4 | hist: bit n is for ack - 1 - n |
/// | 12 | 1 | type |
/// | 13 | 3 | padding, whatever the sender's buffer held |
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Raw {
    tag: U32,
    seq: U16,
    ack: U16,
    hist: U32,
    packet_type: u8,
    padding: [u8; 3],
}

const _: () = assert!(size_of::<Raw>() == Header::LEN);

impl Raw {
    pub(super) fn new(packet_type: PacketType, numbers: Numbers) -> Self {
        Self {
            tag: TAG.into(),
            // A sequence of 16 bits is below 2^16, and a window of 32 bits below 2^32.
            seq: (numbers.seq.get() as u16).into(),
            ack: (numbers.ack.latest().get() as u16).into(),
            hist: (numbers.ack.before() as u32).into(),
            packet_type: packet_type.0,
            padding: [0; 3],
        }
    }
}

/// What numbers a datagram and acknowledges those of the other direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// The number of the datagram. Every datagram has its own, whatever its type.
    pub seq: Seq,
    /// Which datagrams of the peer arrived.
    pub ack: Ack,
}

impl Numbers {
    /// Those of a first datagram while nothing was received: 0, and all before 0 acknowledged.
    pub const fn first() -> Self {
        let seq = Seq::new(0);
        Self { seq, ack: Ack::all_up_to(seq.prev()) }
    }
}

impl core::fmt::Display for Numbers {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "seq={} ack={}", self.seq, self.ack)
    }
}

/// A packet type; a value that this crate does not know stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PacketType(pub u8);

impl PacketType {
    /// Type 0: the sender is still there.
    pub const PING: Self = Self(0);
    /// Type 1: a client asks to play.
    pub const LOGIN: Self = Self(1);
    /// Type 2: it may, or the world changes.
    pub const JOIN: Self = Self(2);
    /// Type 3: it may not, or one side leaves.
    pub const PART: Self = Self(3);

    /// The name of a type that this crate reads, or of one that only the newest programs send.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0 => "Ping",
            1 => "Login",
            2 => "Join",
            3 => "Part",
            4 => "PlayerUpdate",
            5 => "SpawnEntity",
            6 => "DespawnEntity",
            7 => "EntityUpdate",
            8 => "PlayerCorrection",
            9 => "ChunkBegin",
            10 => "ChunkData",
            11 => "BlockUpdate",
            12 => "Message",
            _ => return None,
        })
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

/// A header to be written: whole as a ping or a part, or before a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Its number and acknowledgement.
    pub numbers: Numbers,
    /// What follows.
    pub packet_type: PacketType,
}

impl Header {
    /// Bytes of every header.
    pub const LEN: usize = 16;

    /// A ping.
    pub const fn ping(numbers: Numbers) -> Self {
        Self { numbers, packet_type: PacketType::PING }
    }

    /// A part.
    pub const fn part(numbers: Numbers) -> Self {
        Self { numbers, packet_type: PacketType::PART }
    }

    /// Writes the header and a payload to the start of `buf`; a ping and a part have none.
    ///
    /// # Errors
    /// `buf` is too short, or the payload longer than [`MAX_PAYLOAD`].
    pub fn emit(&self, payload: &[u8], buf: &mut [u8]) -> Result<usize, EmitError> {
        if payload.len() > MAX_PAYLOAD {
            let (limit, got) = (MAX_PAYLOAD, payload.len());
            return Err(EmitError::Field { packet: "Header", field: "payload", limit, got });
        }
        layout::put("Header", &Raw::new(self.packet_type, self.numbers), payload, buf)
    }
}

/// The header of any datagram of this protocol, whatever its type, with the payload behind it.
///
/// ```
/// use caves_wire::blank::{HeaderView, PacketType};
///
/// let bytes = [0xAF, 0xB1, 0x1A, 0xFB, 7, 0, 8, 0, 0x8E, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0];
/// let header = HeaderView::parse(&bytes)?;
/// assert_eq!(header.packet_type(), PacketType::PING);
/// assert_eq!(header.to_string(), "Ping seq=7 ack=8 ffffff8e");
/// # Ok::<(), caves_wire::ParseError>(())
/// ```
#[derive(Clone, Copy)]
pub struct HeaderView<'a> {
    raw: &'a Raw,
    payload: &'a [u8],
}

impl<'a> HeaderView<'a> {
    /// Reads the first sixteen bytes; what lies behind byte 500 is not there.
    ///
    /// # Errors
    /// Fewer bytes, or another tag.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let datagram = &datagram[..datagram.len().min(MAX_DATAGRAM)];
        let (raw, payload) = Raw::ref_from_prefix(datagram)
            .map_err(|_| too_short("Header", Header::LEN, datagram.len()))?;
        if raw.tag.get() != TAG {
            return Err(ParseError {
                packet: "Header",
                kind: ErrorKind::Magic,
                offset: 0,
                needed: TAG as usize,
                got: raw.tag.get() as usize,
            });
        }
        Ok(Self { raw, payload })
    }

    /// What the datagram is.
    pub const fn packet_type(self) -> PacketType {
        PacketType(self.raw.packet_type)
    }

    /// Its number and acknowledgement.
    pub fn numbers(self) -> Numbers {
        Numbers { seq: self.seq(), ack: self.ack() }
    }

    /// Its number.
    pub fn seq(self) -> Seq {
        Seq::new(self.raw.seq.get().into())
    }

    /// Which datagrams of ours arrived.
    pub fn ack(self) -> Ack {
        Ack::new(Seq::new(self.raw.ack.get().into()), self.raw.hist.get().into())
    }

    /// Three bytes that mean nothing: senders do not clear them.
    pub const fn padding(self) -> [u8; 3] {
        self.raw.padding
    }

    /// What lies behind the header, at most 484 bytes.
    pub const fn payload(self) -> &'a [u8] {
        self.payload
    }
}

impl core::fmt::Display for HeaderView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} {}", self.packet_type(), self.numbers())?;
        match self.payload.len() {
            0 => Ok(()),
            len => write!(f, " +{len}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    const PART: [u8; 16] =
        [0xAF, 0xB1, 0x1A, 0xFB, 0xFF, 0xFF, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 3, 0, 0, 0];

    #[test]
    fn bytes_stand_where_the_note_says() {
        let ack = Ack::new(Seq::new(65534), 0x7FFF_FFFF);
        let part = Header::part(Numbers { seq: Seq::new(65535), ack });
        let mut buf = [0xEE; 17];
        assert_eq!(part.emit(&[], &mut buf), Ok(16));
        assert_eq!((&buf[..16], buf[16]), (&PART[..], 0xEE));
        let view = HeaderView::parse(&buf[..16]).unwrap();
        assert_eq!((view.numbers(), view.packet_type()), (part.numbers, PacketType::PART));
        assert_eq!(view.to_string(), "Part seq=65535 ack=65534 7fffffff");
    }

    #[test]
    fn the_first_datagram_acknowledges_all_before_zero() {
        let mut buf = [0; 16];
        Header::ping(Numbers::first()).emit(&[], &mut buf).unwrap();
        let expected = [0xAF, 0xB1, 0x1A, 0xFB, 0, 0, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0];
        assert_eq!(buf, expected);
    }

    #[test]
    fn every_shorter_datagram_and_a_swapped_tag_are_refused() {
        for len in 0..16 {
            let error = HeaderView::parse(&PART[..len]).unwrap_err();
            assert_eq!(
                (error.kind, error.needed, error.got, error.offset),
                (ErrorKind::TooShort, 16, len, len)
            );
        }
        let mut swapped = PART;
        swapped[..4].reverse();
        let error = HeaderView::parse(&swapped).unwrap_err();
        assert_eq!((error.kind, error.offset), (ErrorKind::Magic, 0));
        assert_eq!((error.needed, error.got), (0xFB1A_B1AF, 0xAFB1_1AFB));
    }

    #[test]
    fn padding_is_read_and_means_nothing() {
        let mut bytes = PART;
        bytes[13..].copy_from_slice(&[0xDE, 0xAD, 0xBE]);
        let view = HeaderView::parse(&bytes).unwrap();
        assert_eq!(view.padding(), [0xDE, 0xAD, 0xBE]);
        assert_eq!(view.numbers(), HeaderView::parse(&PART).unwrap().numbers());
    }

    #[test]
    fn a_payload_ends_at_byte_500_and_is_never_written_beyond() {
        let mut bytes = [7; 648];
        bytes[..16].copy_from_slice(&PART);
        assert_eq!(HeaderView::parse(&bytes).unwrap().payload().len(), 484);
        let header = Header { numbers: Numbers::first(), packet_type: PacketType(99) };
        let mut buf = [0; 501];
        assert_eq!(header.emit(&bytes[..484], &mut buf), Ok(500));
        let refused = header.emit(&bytes[..485], &mut buf).unwrap_err();
        assert!(matches!(refused, EmitError::Field { limit: 484, got: 485, .. }), "{refused}");
        let refused = header.emit(&bytes[..484], &mut buf[..499]).unwrap_err();
        assert!(matches!(refused, EmitError::Buffer { needed: 500, got: 499, .. }), "{refused}");
    }
}
