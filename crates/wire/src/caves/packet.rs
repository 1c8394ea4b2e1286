//! One way in: any datagram.

use super::header::{HeaderView, PacketType, VERSION};
use super::layout;
use super::{
    ActionView, ChallengeView, ChunkView, DetailView, EchoView, EntitiesView, EventAckView,
    EventView, HelloView, InfoRequestView, InfoView, JoinView, LeaveView, QueryView, RefuseView,
    StateView, WelcomeView,
};
use crate::{MAX_DATAGRAM, ParseError};

/// Any datagram of the protocol, dispatched by its header.
///
/// Its printed form is one line for a log.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Packet<'a> {
    /// Type 0.
    State(StateView<'a>),
    /// Type 1.
    Action(ActionView<'a>),
    /// Type 2.
    Chunk(ChunkView<'a>),
    /// Type 3.
    Entities(EntitiesView<'a>),
    /// Type 4.
    Query(QueryView<'a>),
    /// Type 5.
    Detail(DetailView<'a>),
    /// Type 6.
    Ping(EchoView<'a>),
    /// Type 7.
    Pong(EchoView<'a>),
    /// Type 8.
    Hello(HelloView<'a>),
    /// Type 9.
    Challenge(ChallengeView<'a>),
    /// Type 10.
    Join(JoinView<'a>),
    /// Type 11.
    Welcome(WelcomeView<'a>),
    /// Type 12.
    Refuse(RefuseView<'a>),
    /// Type 13.
    Leave(LeaveView<'a>),
    /// Type 14.
    Event(EventView<'a>),
    /// Type 16.
    EventAck(EventAckView<'a>),
    /// Type 18.
    InfoRequest(InfoRequestView<'a>),
    /// Type 19.
    Info(InfoView<'a>),
    /// A type that this crate does not know.
    UnknownType(HeaderView<'a>),
    /// A version other than 1; only a Refuse is read whatever its version (R1).
    OtherVersion(HeaderView<'a>),
}

impl<'a> Packet<'a> {
    /// Reads a datagram.
    ///
    /// # Errors
    /// It is no datagram of this protocol, or breaks the layout that its header announces. Unknown
    /// types and versions are values, not errors.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        if datagram.len() > MAX_DATAGRAM {
            return Err(layout::too_long("Packet", MAX_DATAGRAM, datagram.len()));
        }
        let header = HeaderView::parse(datagram)?;
        if header.version() != VERSION && header.packet_type() != PacketType::REFUSE {
            return Ok(Self::OtherVersion(header));
        }
        Ok(match header.packet_type() {
            PacketType::STATE => Self::State(StateView::parse(datagram)?),
            PacketType::ACTION => Self::Action(ActionView::parse(datagram)?),
            PacketType::CHUNK => Self::Chunk(ChunkView::parse(datagram)?),
            PacketType::ENTITIES => Self::Entities(EntitiesView::parse(datagram)?),
            PacketType::QUERY => Self::Query(QueryView::parse(datagram)?),
            PacketType::DETAIL => Self::Detail(DetailView::parse(datagram)?),
            PacketType::PING => Self::Ping(EchoView::parse(datagram)?),
            PacketType::PONG => Self::Pong(EchoView::parse(datagram)?),
            PacketType::HELLO => Self::Hello(HelloView::parse(datagram)?),
            PacketType::CHALLENGE => Self::Challenge(ChallengeView::parse(datagram)?),
            PacketType::JOIN => Self::Join(JoinView::parse(datagram)?),
            PacketType::WELCOME => Self::Welcome(WelcomeView::parse(datagram)?),
            PacketType::REFUSE => Self::Refuse(RefuseView::parse(datagram)?),
            PacketType::LEAVE => Self::Leave(LeaveView::parse(datagram)?),
            PacketType::EVENT => Self::Event(EventView::parse(datagram)?),
            PacketType::EVENT_ACK => Self::EventAck(EventAckView::parse(datagram)?),
            PacketType::INFO_REQUEST => Self::InfoRequest(InfoRequestView::parse(datagram)?),
            PacketType::INFO => Self::Info(InfoView::parse(datagram)?),
            _ => Self::UnknownType(header),
        })
    }
}

impl core::fmt::Display for Packet<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::State(packet) => packet.fmt(f),
            Self::Action(packet) => packet.fmt(f),
            Self::Chunk(packet) => packet.fmt(f),
            Self::Entities(packet) => packet.fmt(f),
            Self::Query(packet) => packet.fmt(f),
            Self::Detail(packet) => packet.fmt(f),
            Self::Ping(packet) | Self::Pong(packet) => packet.fmt(f),
            Self::Hello(packet) => packet.fmt(f),
            Self::Challenge(packet) => packet.fmt(f),
            Self::Join(packet) => packet.fmt(f),
            Self::Welcome(packet) => packet.fmt(f),
            Self::Refuse(packet) => packet.fmt(f),
            Self::Leave(packet) => packet.fmt(f),
            Self::Event(packet) => packet.fmt(f),
            Self::EventAck(packet) => packet.fmt(f),
            Self::InfoRequest(packet) => packet.fmt(f),
            Self::Info(packet) => packet.fmt(f),
            Self::UnknownType(header) => write!(f, "unknown {}", header.packet_type()),
            Self::OtherVersion(header) => {
                write!(f, "version {} {}", header.version(), header.packet_type())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use std::string::ToString;
    use std::vec::Vec;

    /// The shortest valid datagram of each type: zeros behind the header, but where the note
    /// forbids them.
    fn shortest() -> Vec<(u8, Vec<u8>)> {
        let lengths = [
            (0, 72),
            (1, 74),
            (2, 13 + 2 + 768),
            (3, 12),
            (4, 18),
            (5, 16),
            (6, 14),
            (7, 14),
            (8, 64),
            (9, 62),
            (10, 32),
            (11, 33),
            (12, 17),
            (13, 15),
            (14, 17),
            (16, 18),
            (18, 256),
            (19, 24),
        ];
        let mut all = Vec::new();
        for (number, len) in lengths {
            let mut bytes = std::vec![0; len];
            bytes[..4].copy_from_slice(&[0x4C, 0x52, 1, number]);
            match number {
                2 => bytes[12] = 1,
                11 => bytes[30] = 10,
                _ => {}
            }
            all.push((number, bytes));
        }
        all
    }

    #[test]
    fn every_type_is_dispatched_and_has_one_exact_length() {
        for (number, bytes) in shortest() {
            let packet = Packet::parse(&bytes).unwrap_or_else(|e| panic!("type {number}: {e}"));
            let name = PacketType(number).name().unwrap();
            assert!(packet.to_string().starts_with(name), "{packet}");
            for len in 0..bytes.len() {
                let error = Packet::parse(&bytes[..len]).unwrap_err();
                assert_eq!(error.kind, ErrorKind::TooShort, "type {number} cut at {len}: {error}");
            }
            let mut longer = bytes.clone();
            longer.push(0);
            let error = Packet::parse(&longer).unwrap_err();
            assert_eq!(error.kind, ErrorKind::TooLong, "type {number}: {error}");
        }
    }

    #[test]
    fn unknown_types_and_versions_are_values() {
        for number in [15u8, 17, 20, 255] {
            let bytes = [0x4C, 0x52, 1, number, 0, 0, 9];
            let Packet::UnknownType(header) = Packet::parse(&bytes).unwrap() else {
                panic!("type {number}");
            };
            assert_eq!(header.packet_type(), PacketType(number));
        }
        for version in [0u8, 2, 255] {
            let bytes = [0x4C, 0x52, version, 0, 0, 0];
            assert!(matches!(Packet::parse(&bytes), Ok(Packet::OtherVersion(_))), "{version}");
        }
    }

    #[test]
    fn a_swapped_magic_and_an_oversized_datagram_are_refused() {
        let error = Packet::parse(&[0x52, 0x4C, 1, 0, 0, 0]).unwrap_err();
        assert_eq!((error.kind, error.offset), (ErrorKind::Magic, 0));
        let mut big = std::vec![0; 1201];
        big[..4].copy_from_slice(&[0x4C, 0x52, 1, 3]);
        assert_eq!(Packet::parse(&big).unwrap_err().kind, ErrorKind::TooLong);
    }

    proptest::proptest! {
        /// Bytes of a stranger never panic, whatever they are; valid ones print.
        #[test]
        fn no_bytes_panic(number in 0u8..24, version in 0u8..3, tail: Vec<u8>) {
            let mut bytes = std::vec![0x4C, 0x52, version, number, 0, 0];
            bytes.extend_from_slice(&tail);
            if let Ok(packet) = Packet::parse(&bytes) {
                let _ = packet.to_string();
                if let Packet::Entities(entities) = packet {
                    proptest::prop_assert_eq!(
                        entities.entities().count(),
                        usize::from(entities.count())
                    );
                }
            }
            let _ = Packet::parse(&tail);
        }
    }
}
