//! Kind 1: a client asks for a session.

use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{Header, Kind};
use super::ids::Nonce;
use super::layout::{self, Layout};
use crate::{EmitError, ParseError};

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 10 | header |
/// | 10 | 8 | nonce |
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    header: Header,
    nonce: U64,
}

const _: () = assert!(size_of::<Raw>() == Hello::LEN);

impl Layout for Raw {
    const NAME: &'static str = "Hello";
    const KIND: Kind = Kind::HELLO;
}

/// A Hello to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// The number of the attempt: a repeated Hello has the same.
    pub nonce: Nonce,
}

impl Hello {
    /// Bytes of every Hello.
    pub const LEN: usize = 18;

    /// Writes the packet to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is shorter than [`Hello::LEN`].
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        let raw = Raw { header: Header::new(Raw::KIND), nonce: self.nonce.0.into() };
        layout::put(&raw, &[], buf)
    }
}

/// A Hello in a datagram.
#[derive(Clone, Copy)]
pub struct HelloView<'a>(&'a Raw);

impl<'a> HelloView<'a> {
    /// Reads a datagram of exactly 18 bytes.
    ///
    /// # Errors
    /// Another length, magic, version or kind.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let (raw, _) = layout::head::<Raw>(datagram)?;
        layout::end::<Raw>(datagram, Hello::LEN)?;
        Ok(Self(raw))
    }

    /// The number of the attempt.
    pub const fn nonce(self) -> Nonce {
        Nonce(self.0.nonce.get())
    }
}

impl core::fmt::Display for HelloView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Hello nonce={:016x}", self.nonce().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn bytes_stand_where_the_page_says() {
        let mut buf = [0xEE; 19];
        assert_eq!(Hello { nonce: Nonce(0x0102_0304_0506_0708) }.emit(&mut buf), Ok(18));
        assert_eq!(buf, *b"FERRAVEX\x02\x01\x08\x07\x06\x05\x04\x03\x02\x01\xEE");
        assert_eq!(HelloView::parse(&buf[..18]).unwrap().nonce(), Nonce(0x0102_0304_0506_0708));
        let error = HelloView::parse(&buf).unwrap_err();
        assert_eq!((error.kind, error.needed, error.got), (ErrorKind::Trailing, 18, 19));
    }
}
