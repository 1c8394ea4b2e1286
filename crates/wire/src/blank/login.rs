//! Type 1: a client asks to play under a name.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{HeaderView, Numbers, PacketType, Raw as RawHeader};
use super::layout;
use super::name::Name;
use crate::{EmitError, ParseError};

const NAME: &str = "Login";

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 16 | header |
/// | 16 | 32 | player name, zero filled; without a zero if it has 32 bytes |
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    header: RawHeader,
    name: [u8; Name::MAX],
}

const _: () = assert!(size_of::<Raw>() == Login::LEN);

/// A Login to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Login {
    /// Its number and acknowledgement.
    pub numbers: Numbers,
    /// The name wanted.
    pub name: Name,
}

impl Login {
    /// Bytes of every Login that is written.
    pub const LEN: usize = 48;

    /// Writes the packet to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is shorter than [`Login::LEN`].
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        let header = RawHeader::new(PacketType::LOGIN, self.numbers);
        layout::put(NAME, &Raw { header, name: *self.name.field() }, &[], buf)
    }
}

/// A Login in a datagram.
#[derive(Clone, Copy)]
pub struct LoginView<'a>(HeaderView<'a>);

impl<'a> LoginView<'a> {
    /// Reads a Login with a name field of any length: one that ends early ends the name, and what
    /// follows 32 bytes is ignored (section 2).
    ///
    /// # Errors
    /// Fewer than 16 bytes, another tag or type.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        layout::open(NAME, PacketType::LOGIN, datagram).map(Self)
    }

    /// Its number and acknowledgement, and the payload as it came.
    pub const fn header(self) -> HeaderView<'a> {
        self.0
    }

    /// The name wanted, which may be empty.
    pub fn name(self) -> Name {
        Name::from_field(self.0.payload())
    }
}

impl core::fmt::Display for LoginView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Login {} name=\"{}\"", self.0.numbers(), self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blank::{Ack, Seq};
    use std::string::ToString;

    #[test]
    fn bytes_stand_where_the_note_says() {
        let login = Login {
            numbers: Numbers { seq: Seq::new(1), ack: Ack::new(Seq::new(0), 0xFFFF_FFFF) },
            name: Name::new("Zoë☃"),
        };
        let mut buf = [0xEE; 48];
        assert_eq!(login.emit(&mut buf), Ok(48));
        assert_eq!(buf[..16], [0xAF, 0xB1, 0x1A, 0xFB, 1, 0, 0, 0, 255, 255, 255, 255, 1, 0, 0, 0]);
        assert_eq!(buf[16..24], [0x5A, 0x6F, 0xC3, 0xAB, 0xE2, 0x98, 0x83, 0]);
        assert_eq!(buf[24..], [0; 24]);
        let view = LoginView::parse(&buf).unwrap();
        assert_eq!((view.header().numbers(), view.name()), (login.numbers, login.name));
        assert_eq!(view.to_string(), "Login seq=1 ack=0 ffffffff name=\"Zoë☃\"");
    }

    #[test]
    fn every_length_from_a_bare_header_on_has_a_name() {
        let login = Login { numbers: Numbers::first(), name: Name::new(&"abcdefgh".repeat(4)) };
        let mut buf = [b'!'; 60];
        login.emit(&mut buf).unwrap();
        for len in 16..=60 {
            let name = LoginView::parse(&buf[..len]).unwrap().name();
            assert_eq!(name.as_bytes(), &login.name.as_bytes()[..(len - 16).min(32)]);
        }
        assert!(login.emit(&mut buf[..47]).is_err());
    }
}
