//! Type 12: why a client is not let in.

use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{Header, PacketType, VERSION};
use super::ids::{ClientType, Nonce};
use super::layout::{self, Layout};
use crate::{EmitError, ParseError};

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 6 | header |
/// | 6 | 8 | client_nonce |
/// | 14 | 1 | reason |
/// | 15 | 1 | version |
/// | 16 | 1 | text_len |
/// | 17 | text_len | text |
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    header: Header,
    client_nonce: U64,
    reason: u8,
    version: u8,
    text_len: u8,
}

const HEAD: usize = 17;
const _: () = assert!(size_of::<Raw>() == HEAD);

impl Layout for Raw {
    const NAME: &'static str = "Refuse";
    const TYPE: PacketType = PacketType::REFUSE;
}

/// A reason to refuse; a value that this crate does not know stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RefuseReason(pub u8);

impl RefuseReason {
    /// Another protocol version.
    pub const VERSION: Self = Self(1);
    /// No free place.
    pub const FULL: Self = Self(2);
    /// The address or name is banned.
    pub const BANNED: Self = Self(3);
    /// This kind of client is not let in (R37).
    pub const CLIENT_TYPE: Self = Self(4);
    /// The name cannot be had.
    pub const BAD_NAME: Self = Self(5);
    /// Somebody plays under this name.
    pub const NAME_TAKEN: Self = Self(6);
    /// The cookie is wrong, old or used up.
    pub const BAD_COOKIE: Self = Self(7);
    /// The server is about to stop.
    pub const SHUTTING_DOWN: Self = Self(8);
    /// Too many sessions from this address.
    pub const TOO_MANY: Self = Self(9);
    /// Only sealed sessions are let in (section 6).
    pub const SEALED_REQUIRED: Self = Self(10);

    /// Whether a client tries again by itself, after 1 to 8 s (section 2).
    pub const fn may_retry(self) -> bool {
        matches!(self, Self::FULL | Self::NAME_TAKEN | Self::SHUTTING_DOWN | Self::TOO_MANY)
    }
}

impl core::fmt::Display for RefuseReason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match *self {
            Self::VERSION => "another protocol version",
            Self::FULL => "server full",
            Self::BANNED => "banned",
            Self::CLIENT_TYPE => "client type not allowed",
            Self::BAD_NAME => "bad name",
            Self::NAME_TAKEN => "name taken",
            Self::BAD_COOKIE => "bad cookie",
            Self::SHUTTING_DOWN => "shutting down",
            Self::TOO_MANY => "too many from this address",
            Self::SEALED_REQUIRED => "sealed session required",
            Self(other) => return write!(f, "reason {other}"),
        })
    }
}

/// A Refuse to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refuse<'a> {
    /// The attempt that is answered.
    pub nonce: Nonce,
    /// Why.
    pub reason: RefuseReason,
    /// The same in words, at most 255 bytes.
    pub text: &'a str,
}

impl Refuse<'_> {
    /// Bytes of a Refuse without text.
    pub const MIN_LEN: usize = HEAD;

    /// Bytes that [`Refuse::emit`] writes.
    #[expect(clippy::len_without_is_empty, reason = "a packet is never empty")]
    pub const fn len(&self) -> usize {
        HEAD + self.text.len()
    }

    /// Writes the packet to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is too short, or the text is longer than 255 bytes.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        layout::limit::<Raw>("text", self.text.len(), usize::from(u8::MAX))?;
        let raw = Raw {
            header: Header::new(Raw::TYPE, ClientType::OFFICIAL),
            client_nonce: self.nonce.0.into(),
            reason: self.reason.0,
            version: VERSION,
            text_len: self.text.len() as u8,
        };
        layout::put(&raw, self.text.as_bytes(), buf)
    }
}

/// A Refuse in a datagram, of any version (R1).
#[derive(Clone, Copy)]
pub struct RefuseView<'a> {
    raw: &'a Raw,
    text: &'a str,
}

impl<'a> RefuseView<'a> {
    /// Reads a datagram of 17 bytes and the announced text.
    ///
    /// # Errors
    /// Another length, magic or type; text that is not UTF-8.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let (raw, tail) = layout::head::<Raw>(datagram)?;
        let text = layout::counted::<Raw>(tail, raw.text_len.into())?;
        let text = layout::utf8::<Raw>(text)?;
        Ok(Self { raw, text })
    }

    /// The attempt that is answered.
    pub const fn nonce(self) -> Nonce {
        Nonce(self.raw.client_nonce.get())
    }

    /// Why.
    pub const fn reason(self) -> RefuseReason {
        RefuseReason(self.raw.reason)
    }

    /// The protocol version that the server speaks.
    pub const fn version(self) -> u8 {
        self.raw.version
    }

    /// The reason in words; strip it before it is shown ([`crate::text::clean`]).
    pub const fn text(self) -> &'a str {
        self.text
    }
}

impl core::fmt::Display for RefuseView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "Refuse nonce={:016x} {} (version {}) {:?}",
            self.nonce().0,
            self.reason(),
            self.version(),
            self.text,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_stand_where_the_note_says() {
        let refuse = Refuse { nonce: Nonce(7), reason: RefuseReason::FULL, text: "full" };
        let mut buf = [0; 21];
        assert_eq!(refuse.emit(&mut buf), Ok(21));
        let fixed = [0x4C, 0x52, 1, 12, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 2, 1, 4];
        assert_eq!(buf[..17], fixed);
        assert_eq!(&buf[17..], b"full");
    }

    #[test]
    fn a_refuse_of_another_version_is_read() {
        let mut buf = [0; 17];
        let refuse = Refuse { nonce: Nonce(7), reason: RefuseReason::VERSION, text: "" };
        refuse.emit(&mut buf).unwrap();
        buf[2] = 9;
        buf[15] = 9;
        let view = RefuseView::parse(&buf).unwrap();
        assert_eq!((view.reason(), view.version()), (RefuseReason::VERSION, 9));
    }
}
