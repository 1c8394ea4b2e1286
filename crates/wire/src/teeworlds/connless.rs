//! Connectionless packets: asked and answered without a connection.
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 6 | `ff` six times; or `78 65` ("xe") and four bytes more |
//! | 6 | .. | data |
//!
//! On receipt only bit `0x20` of the first byte counts, and that its two lowest bits are not 1, which
//! is 0.7; the rest of the six bytes can be anything.

use super::fault::{self, too_long, too_short};
use super::header::Header;
use super::{CONNLESS_HEADER, MAX_DATAGRAM};
use crate::{EmitError, ErrorKind, ParseError};

const NAME: &str = "Connless";
const EXTENDED: [u8; 2] = *b"xe";

/// A connectionless packet, to be read and to be written.
///
/// ```
/// use caves_wire::teeworlds::Connless;
///
/// let packet = Connless::parse(b"xe\x12\x34\0\0\xFF\xFF\xFF\xFFgie3\x42")?;
/// assert_eq!(packet.extra, Some([0x12, 0x34, 0, 0]));
/// assert_eq!(packet.data, *b"\xFF\xFF\xFF\xFFgie3\x42");
/// # Ok::<(), caves_wire::ParseError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connless<'a> {
    /// The four bytes behind "xe", where the header is the extended one.
    pub extra: Option<[u8; 4]>,
    /// What follows the header.
    pub data: &'a [u8],
}

impl<'a> Connless<'a> {
    /// The most data, in bytes.
    pub const MAX_DATA: usize = MAX_DATAGRAM - CONNLESS_HEADER;

    /// Reads a datagram.
    ///
    /// # Errors
    /// Fewer than 6 bytes or more than 1400; [`ErrorKind::Flags`] where it is not connectionless;
    /// [`ErrorKind::Version`] where it is of 0.7.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        if datagram.len() > MAX_DATAGRAM {
            return Err(too_long(NAME, MAX_DATAGRAM, datagram.len()));
        }
        let Some((header, data)) = datagram.split_first_chunk::<CONNLESS_HEADER>() else {
            return Err(too_short(NAME, CONNLESS_HEADER, datagram.len()));
        };
        let refused = |kind, needed| ParseError {
            packet: NAME,
            kind,
            offset: 0,
            needed,
            got: header[0].into(),
        };
        if !Header::is_connless(datagram) {
            return Err(refused(ErrorKind::Flags, 0x20));
        }
        if header[0] & 3 == 1 {
            return Err(refused(ErrorKind::Version, 0));
        }
        let extra = match *header {
            [b'x', b'e', a, b, c, d] => Some([a, b, c, d]),
            _ => None,
        };
        Ok(Self { extra, data })
    }

    /// Bytes that [`Connless::emit`] writes.
    #[expect(clippy::len_without_is_empty, reason = "a packet is never empty")]
    pub const fn len(&self) -> usize {
        CONNLESS_HEADER + self.data.len()
    }

    /// Writes the packet to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is too short, or the packet is over 1400 bytes.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        fault::limit(NAME, "data", self.data.len(), Self::MAX_DATA)?;
        fault::put(NAME, &[&head(self.extra), self.data], buf)
    }
}

/// The six bytes.
pub(super) fn head(extra: Option<[u8; 4]>) -> [u8; CONNLESS_HEADER] {
    let mut head = [0xFF; CONNLESS_HEADER];
    if let Some(extra) = extra {
        head[..2].copy_from_slice(&EXTENDED);
        head[2..].copy_from_slice(&extra);
    }
    head
}

impl core::fmt::Display for Connless<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let extended = if self.extra.is_some() { " extended" } else { "" };
        write!(f, "Connless{extended} {}B", self.data.len())?;
        match self.data {
            // Four bytes that never vary, and a name.
            [0xFF, 0xFF, 0xFF, 0xFF, name @ ..] => {
                let name = &name[..name.len().min(4)];
                write!(f, " {}", name.escape_ascii())
            }
            _ => Ok(()),
        }
    }
}
