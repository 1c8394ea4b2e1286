//! One way in: any datagram.

use super::header::{HeaderView, Kind};
use super::{EventAckView, EventView, HelloView, InputView, SnapshotView, WelcomeView};
use crate::{ErrorKind, ParseError};

/// Any datagram of the protocol, dispatched by its header.
///
/// Its printed form is one line for a log; sessions are not in it.
#[derive(Clone, Copy)]
pub enum Packet<'a> {
    /// Kind 1.
    Hello(HelloView<'a>),
    /// Kind 2.
    Input(InputView<'a>),
    /// Kind 3.
    Welcome(WelcomeView<'a>),
    /// Kind 4.
    Snapshot(SnapshotView<'a>),
    /// Kind 5.
    Event(EventView<'a>),
    /// Kind 6.
    EventAck(EventAckView<'a>),
}

impl<'a> Packet<'a> {
    /// Reads a datagram.
    ///
    /// # Errors
    /// It is no datagram of this protocol and version, of an unknown kind, or breaks the layout that
    /// its header announces.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let header = HeaderView::parse(datagram)?;
        Ok(match header.kind() {
            Kind::HELLO => Self::Hello(HelloView::parse(datagram)?),
            Kind::INPUT => Self::Input(InputView::parse(datagram)?),
            Kind::WELCOME => Self::Welcome(WelcomeView::parse(datagram)?),
            Kind::SNAPSHOT => Self::Snapshot(SnapshotView::parse(datagram)?),
            Kind::EVENT => Self::Event(EventView::parse(datagram)?),
            Kind::EVENT_ACK => Self::EventAck(EventAckView::parse(datagram)?),
            Kind(number) => {
                return Err(ParseError {
                    packet: "Packet",
                    kind: ErrorKind::PacketType,
                    offset: 9,
                    needed: number.clamp(Kind::HELLO.0, Kind::EVENT_ACK.0).into(),
                    got: number.into(),
                });
            }
        })
    }

    /// Its kind.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Hello(_) => Kind::HELLO,
            Self::Input(_) => Kind::INPUT,
            Self::Welcome(_) => Kind::WELCOME,
            Self::Snapshot(_) => Kind::SNAPSHOT,
            Self::Event(_) => Kind::EVENT,
            Self::EventAck(_) => Kind::EVENT_ACK,
        }
    }
}

impl core::fmt::Display for Packet<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Hello(packet) => packet.fmt(f),
            Self::Input(packet) => packet.fmt(f),
            Self::Welcome(packet) => packet.fmt(f),
            Self::Snapshot(packet) => packet.fmt(f),
            Self::Event(packet) => packet.fmt(f),
            Self::EventAck(packet) => packet.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;
    use std::vec::Vec;

    /// The shortest valid datagram of each kind, byte by byte.
    fn shortest() -> [Vec<u8>; 6] {
        let with = |kind: u8, tail: &[u8]| [b"FERRAVEX\x02", &[kind][..], tail].concat();
        let session = [9, 0, 0, 0, 0, 0, 0, 0];
        [
            with(1, &[0; 8]),
            with(2, &[&session[..], &[1], &[0; 22]].concat()),
            with(3, &[&[0; 8], &session[..], &[0; 5]].concat()),
            with(4, &[&session[..], &[0; 10]].concat()),
            with(5, &[&session[..], &[0; 10]].concat()),
            with(6, &[&session[..], &[0; 8]].concat()),
        ]
    }

    #[test]
    fn every_kind_is_dispatched_and_has_one_exact_length() {
        for (place, bytes) in shortest().into_iter().enumerate() {
            let packet = Packet::parse(&bytes).unwrap();
            assert_eq!(packet.kind(), Kind(place as u8 + 1));
            assert!(packet.to_string().starts_with(packet.kind().name().unwrap()), "{packet}");
            for len in 0..bytes.len() {
                let error = Packet::parse(&bytes[..len]).unwrap_err();
                assert_eq!(error.kind, ErrorKind::TooShort, "{packet} cut at {len}: {error}");
            }
            let longer = [&bytes[..], &[0]].concat();
            assert_eq!(Packet::parse(&longer).unwrap_err().kind, ErrorKind::Trailing, "{packet}");
            let mut over = bytes.clone();
            over.resize(1200, 0);
            assert_eq!(Packet::parse(&over).unwrap_err().kind, ErrorKind::Trailing, "{packet}");
            over.push(0);
            assert_eq!(Packet::parse(&over).unwrap_err().kind, ErrorKind::TooLong, "{packet}");
        }
    }

    #[test]
    fn a_session_of_zero_is_refused_in_every_packet_that_has_one() {
        for bytes in shortest().into_iter().skip(1) {
            let at = bytes.iter().position(|byte| *byte == 9).unwrap();
            let mut bytes = bytes;
            bytes[at] = 0;
            let error = Packet::parse(&bytes).unwrap_err();
            assert_eq!((error.kind, error.offset), (ErrorKind::Zero, at), "{error}");
        }
    }

    #[test]
    fn unknown_kinds_are_errors() {
        for number in (0..=255).filter(|number| !(1..=6).contains(number)) {
            let bytes = [b"FERRAVEX\x02", &[number][..], &[0; 20]].concat();
            let error = Packet::parse(&bytes).unwrap_err();
            assert_eq!((error.kind, error.got), (ErrorKind::PacketType, number.into()));
        }
    }

    #[test]
    fn a_packet_prints_as_one_line_without_its_session() {
        let lines: Vec<_> =
            shortest().iter().map(|bytes| Packet::parse(bytes).unwrap().to_string()).collect();
        let expected = [
            "Hello nonce=0000000000000000",
            "Input newest=0 frames=1 move=0,0 yaw=0 pitch=0 buttons=0000",
            "Welcome nonce=0000000000000000 player=0 tick=0",
            "Snapshot tick=0 ack=none players=0",
            "Event seq=0 bytes=0",
            "EventAck seq=0",
        ];
        assert_eq!(lines, expected);
    }

    proptest::proptest! {
        /// Bytes of a stranger never panic, whatever they are; valid ones print.
        #[test]
        fn no_bytes_panic(kind in 0u8..8, tail: Vec<u8>) {
            let bytes = [b"FERRAVEX\x02", &[kind][..], &tail].concat();
            for bytes in [&bytes[..], &tail] {
                if let Ok(packet) = Packet::parse(bytes) {
                    proptest::prop_assert!(!packet.to_string().contains(char::is_control));
                }
            }
        }
    }
}
