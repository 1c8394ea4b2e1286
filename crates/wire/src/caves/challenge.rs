//! Type 9: the cookie that proves an address.

use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{Header, PacketType};
use super::ids::{ClientType, Nonce};
use super::layout::{self, Layout};
use crate::{EmitError, ParseError};

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 6 | header |
/// | 6 | 8 | client_nonce |
/// | 14 | 16 | cookie |
/// | 30 | 32 | server_key |
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    header: Header,
    client_nonce: U64,
    cookie: [u8; 16],
    server_key: [u8; 32],
}

const _: () = assert!(size_of::<Raw>() == Challenge::LEN);

impl Layout for Raw {
    const NAME: &'static str = "Challenge";
    const TYPE: PacketType = PacketType::CHALLENGE;
}

/// A Challenge to be written: the answer to a Hello and to nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Challenge {
    /// The attempt that is answered.
    pub nonce: Nonce,
    /// What the client has to send back in its Join.
    pub cookie: [u8; 16],
    /// The server's static key for sealed sessions (section 6); zero where it has none.
    pub server_key: [u8; 32],
}

impl Challenge {
    /// Bytes of every Challenge: fewer than the Hello it answers.
    pub const LEN: usize = 62;

    /// Writes the packet to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is shorter than [`Challenge::LEN`].
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        let raw = Raw {
            header: Header::new(Raw::TYPE, ClientType::OFFICIAL),
            client_nonce: self.nonce.0.into(),
            cookie: self.cookie,
            server_key: self.server_key,
        };
        layout::put(&raw, &[], buf)
    }
}

/// A Challenge in a datagram.
#[derive(Clone, Copy)]
pub struct ChallengeView<'a>(&'a Raw);

impl<'a> ChallengeView<'a> {
    /// Reads a datagram of exactly 62 bytes.
    ///
    /// # Errors
    /// Another length, magic, version or type.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        layout::exact(datagram).map(Self)
    }

    /// The attempt that is answered.
    pub const fn nonce(self) -> Nonce {
        Nonce(self.0.client_nonce.get())
    }

    /// What to send back.
    pub const fn cookie(self) -> [u8; 16] {
        self.0.cookie
    }

    /// The server's static key; zero where it has none.
    pub const fn server_key(self) -> &'a [u8; 32] {
        &self.0.server_key
    }
}

impl core::fmt::Display for ChallengeView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Challenge nonce={:016x}", self.nonce().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_stand_where_the_note_says() {
        let mut buf = [0xEE; 62];
        let challenge = Challenge { nonce: Nonce(1), cookie: [2; 16], server_key: [3; 32] };
        assert_eq!(challenge.emit(&mut buf), Ok(62));
        assert_eq!(buf[..14], [0x4C, 0x52, 1, 9, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(buf[14..30], [2; 16]);
        assert_eq!(buf[30..], [3; 32]);
        let view = ChallengeView::parse(&buf).unwrap();
        assert_eq!((view.cookie(), view.server_key()), ([2; 16], &[3; 32]));
    }
}
