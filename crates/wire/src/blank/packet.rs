//! One way in: any datagram.

use super::header::{Header, HeaderView, PacketType};
use super::join::{JoinView, NewestJoin, NewestJoinView};
use super::login::LoginView;
use crate::ParseError;

/// Any datagram of the protocol, dispatched by its header.
///
/// Its printed form is one line for a log.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Packet<'a> {
    /// Type 0; bytes behind the header mean nothing.
    Ping(HeaderView<'a>),
    /// Type 1.
    Login(LoginView<'a>),
    /// Type 2.
    Join(JoinView<'a>),
    /// Type 2 of the newest programs.
    NewestJoin(NewestJoinView<'a>),
    /// Type 3; bytes behind the header mean nothing.
    Part(HeaderView<'a>),
    /// A type that this crate does not read.
    Unknown(HeaderView<'a>),
}

impl<'a> Packet<'a> {
    /// Reads a datagram; what lies behind byte 500 is not there.
    ///
    /// # Errors
    /// It is no datagram of this protocol, or a Join that ends before its world name or holds
    /// numbers that are none. Unknown types are values, not errors.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let header = HeaderView::parse(datagram)?;
        Ok(match header.packet_type() {
            PacketType::PING => Self::Ping(header),
            PacketType::LOGIN => Self::Login(LoginView::parse(datagram)?),
            PacketType::JOIN if Header::LEN + header.payload().len() == NewestJoin::LEN => {
                Self::NewestJoin(NewestJoinView::parse(datagram)?)
            }
            PacketType::JOIN => Self::Join(JoinView::parse(datagram)?),
            PacketType::PART => Self::Part(header),
            _ => Self::Unknown(header),
        })
    }

    /// Its number, acknowledgement, type and payload.
    pub const fn header(self) -> HeaderView<'a> {
        match self {
            Self::Ping(header) | Self::Part(header) | Self::Unknown(header) => header,
            Self::Login(login) => login.header(),
            Self::Join(join) => join.header(),
            Self::NewestJoin(join) => join.header(),
        }
    }
}

impl core::fmt::Display for Packet<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Ping(header) | Self::Part(header) => header.fmt(f),
            Self::Login(packet) => packet.fmt(f),
            Self::Join(packet) => packet.fmt(f),
            Self::NewestJoin(packet) => packet.fmt(f),
            Self::Unknown(header) => write!(f, "unknown {header}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use std::string::ToString;
    use std::vec::Vec;

    fn datagram(number: u8, payload: usize) -> Vec<u8> {
        let mut bytes = std::vec![0; 16 + payload];
        bytes[..4].copy_from_slice(&[0xAF, 0xB1, 0x1A, 0xFB]);
        bytes[12] = number;
        bytes
    }

    #[test]
    fn every_type_is_dispatched_and_prints_its_name() {
        for (number, payload, name) in [
            (0, 0, "Ping seq=0 ack=0 00000000"),
            (0, 5, "Ping seq=0 ack=0 00000000 +5"),
            (1, 0, "Login seq=0 ack=0 00000000 name=\"\""),
            (1, 484, "Login seq=0 ack=0 00000000 name=\"\""),
            (2, 68, "Join seq=0 ack=0 00000000 entity=0 chunk=0,0,0 position=0,0,0 world=\"\""),
            (2, 78, "Join seq=0 ack=0 00000000 entity=0 chunk=0,0,0 world=\"\" newest"),
            (3, 0, "Part seq=0 ack=0 00000000"),
            (4, 3, "unknown PlayerUpdate seq=0 ack=0 00000000 +3"),
            (12, 0, "unknown Message seq=0 ack=0 00000000"),
            (13, 0, "unknown type 13 seq=0 ack=0 00000000"),
            (255, 484, "unknown type 255 seq=0 ack=0 00000000 +484"),
        ] {
            let bytes = datagram(number, payload);
            let packet = Packet::parse(&bytes).unwrap_or_else(|e| panic!("type {number}: {e}"));
            assert_eq!(packet.to_string(), name);
            assert_eq!(packet.header().packet_type(), PacketType(number));
        }
    }

    #[test]
    fn a_long_datagram_is_read_as_if_it_ended_at_byte_500() {
        let mut bytes = datagram(2, 632);
        bytes[84..90].copy_from_slice(b"world\0");
        let Packet::Join(join) = Packet::parse(&bytes).unwrap() else { panic!("no join") };
        assert_eq!(join.world().as_bytes(), b"world");
        assert_eq!(join.header().payload().len(), 484);
    }

    #[test]
    fn the_shortest_join_is_the_only_one_that_is_too_short() {
        for payload in 0..68 {
            let error = Packet::parse(&datagram(2, payload)).unwrap_err();
            assert_eq!(error.kind, ErrorKind::TooShort, "{payload}");
        }
    }

    proptest::proptest! {
        /// Bytes of a stranger never panic, whatever they are; valid ones print one line.
        #[test]
        fn no_bytes_panic(number in 0u8..6, mut tail: Vec<u8>, repeat in 1usize..12) {
            tail = tail.repeat(repeat);
            let mut bytes = datagram(number, 0);
            bytes.extend_from_slice(&tail);
            if let Ok(packet) = Packet::parse(&bytes) {
                let line = packet.to_string();
                proptest::prop_assert!(!line.contains(char::is_control), "{:?}", line);
            }
            let _ = Packet::parse(&tail);
        }
    }
}
