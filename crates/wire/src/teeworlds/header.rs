//! The three bytes before every connected packet, and the token behind it.
//!
//! ```text
//!   7   6   5   4   3   2   1   0
//! +---+---+---+---+---+---+---+---+---------------+---------------+
//! | O | R | N | C | T | U |  ack  |      ack      |  num_chunks   |
//! +---+---+---+---+---+---+---+---+---------------+---------------+
//!   |   |   |   |   |   |   9 .. 8      7 .. 0
//!   |   |   |   |   |   reserved: 0.7 sets it; refused
//!   |   |   |   |   token scheme of Teeworlds 0.6.5: ignored
//!   |   |   |   control message
//!   |   |   connectionless: no other bit of this byte counts then
//!   |   resend requested
//!   payload compressed
//! ```

use caves_link::seq::Seq;

use super::fault::{too_long, too_short};
use super::{HEADER, MAX_DATAGRAM};
use crate::{ErrorKind, ParseError};

/// The number of a vital chunk, 0 to 1023: wraps, and has no `<`.
///
/// What DDNet calls the backroom of an acknowledgement is what [`Seq::age`] calls older or the same.
pub type Sequence = Seq<10>;

const COMPRESSED: u8 = 0x80;
const RESEND: u8 = 0x40;
const CONNLESS: u8 = 0x20;
const CONTROL: u8 = 0x10;
const RESERVED: u8 = 0x04;
/// The two high bits of the acknowledgement: the bits above them are flags, also the unused ones.
const ACK: u8 = 0x03;

const NAME: &str = "Header";

/// The header of a connected packet, to be read and to be written.
///
/// ```
/// use caves_wire::teeworlds::{Header, Sequence};
///
/// let header = Header::parse(&[0x42, 0x00, 0x03])?;
/// assert!(header.resend && !header.control && !header.compressed);
/// assert_eq!((header.ack, header.num_chunks), (Sequence::new(512), 3));
/// assert_eq!(header.to_bytes(), [0x42, 0x00, 0x03]);
/// # Ok::<(), caves_wire::ParseError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// The payload is compressed.
    pub compressed: bool,
    /// The sender lacks a vital chunk and asks for everything after `ack`.
    pub resend: bool,
    /// The payload is one control message, not chunks.
    pub control: bool,
    /// The last vital chunk that the sender has received in order.
    pub ack: Sequence,
    /// How many chunks the payload announces.
    pub num_chunks: u8,
}

impl Header {
    /// Whether a datagram is connectionless: then this header is not the one it has.
    pub fn is_connless(datagram: &[u8]) -> bool {
        datagram.first().is_some_and(|byte| byte & CONNLESS != 0)
    }

    /// Reads the first three bytes of a connected datagram.
    ///
    /// # Errors
    /// Fewer than 3 bytes or more than 1400; [`ErrorKind::Flags`] where the datagram is
    /// connectionless, or of 0.7 (bit `0x04`). Bit `0x08` is ignored.
    pub fn parse(datagram: &[u8]) -> Result<Self, ParseError> {
        if datagram.len() > MAX_DATAGRAM {
            return Err(too_long(NAME, MAX_DATAGRAM, datagram.len()));
        }
        let Some(&[flags, low, num_chunks]) = datagram.first_chunk() else {
            return Err(too_short(NAME, HEADER, datagram.len()));
        };
        if flags & (CONNLESS | RESERVED) != 0 {
            return Err(ParseError {
                packet: NAME,
                kind: ErrorKind::Flags,
                offset: 0,
                needed: usize::from(flags & !(CONNLESS | RESERVED)),
                got: flags.into(),
            });
        }
        Ok(Self {
            compressed: flags & COMPRESSED != 0,
            resend: flags & RESEND != 0,
            control: flags & CONTROL != 0,
            ack: Sequence::new(u32::from(flags & ACK) << 8 | u32::from(low)),
            num_chunks,
        })
    }

    /// The three bytes; unused bits are 0.
    pub const fn to_bytes(self) -> [u8; HEADER] {
        let ack = self.ack.get();
        let mut flags = (ack >> 8) as u8;
        if self.compressed {
            flags |= COMPRESSED;
        }
        if self.resend {
            flags |= RESEND;
        }
        if self.control {
            flags |= CONTROL;
        }
        [flags, ack as u8, self.num_chunks]
    }
}

/// The four bytes that show that a datagram comes from whom the connection was made with.
///
/// They stand at the very end of a connected packet's payload, inside what is compressed. DDNet makes
/// them of a secret and the client's address without its port.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token(pub [u8; Token::LEN]);

impl Token {
    /// Bytes of a token.
    pub const LEN: usize = 4;
    /// In a CONNECT: "I do not have one yet."
    pub const UNKNOWN: Self = Self([0xFF; 4]);
}

impl core::fmt::Debug for Token {
    /// Tokens do not belong in logs.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(if *self == Self::UNKNOWN { "Token::UNKNOWN" } else { "Token(..)" })
    }
}

/// Whether connected packets are expected to end with a [`Token`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tokens {
    /// The connection has none: vanilla Teeworlds 0.6.
    Without,
    /// The connection has one; a payload too short for it is refused.
    With,
    /// Nothing is known: a server before a connection stands, or somebody who looks at traffic. A token
    /// is taken to be there where at least four bytes are left behind what the packet announces.
    Guess,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(b0: u8, b1: u8) -> u32 {
        Header::parse(&[b0, b1, 0]).unwrap().ack.get()
    }

    #[test]
    fn unused_bits_do_not_leak_into_the_ack() {
        assert_eq!(ack(0x03, 0xFF), 1023);
        assert_eq!(ack(0x0B, 0xFF), 1023);
        assert_eq!(ack(0x08, 0x05), 5);
        assert_eq!(ack(0x18, 0x04), 4);
        assert_eq!(ack(0xD1, 0x00), 256);
    }

    #[test]
    fn packets_of_0_7_and_connectionless_ones_have_another_header() {
        for b0 in 0..=255u8 {
            let read = Header::parse(&[b0, 0, 0]);
            assert_eq!(read.is_ok(), b0 & 0x24 == 0, "{b0:02x}");
            if let Err(error) = read {
                assert_eq!(error.kind, ErrorKind::Flags);
            }
            assert_eq!(Header::is_connless(&[b0]), b0 & 0x20 != 0);
        }
        assert!(!Header::is_connless(&[]));
    }

    #[test]
    fn acks_are_written_in_ten_bits() {
        let bytes = [(0, [0, 0]), (1, [0, 1]), (255, [0, 0xFF]), (256, [1, 0]), (511, [1, 0xFF])];
        for (ack, [b0, b1]) in bytes.into_iter().chain([(512, [2, 0]), (1023, [3, 0xFF])]) {
            let header = Header { ack: Sequence::new(ack), ..Header::default() };
            assert_eq!(header.to_bytes(), [b0, b1, 0], "{ack}");
        }
    }

    #[test]
    fn every_header_is_read_as_it_was_written() {
        for flags in 0..8u8 {
            for ack in 0..1024 {
                let header = Header {
                    compressed: flags & 1 != 0,
                    resend: flags & 2 != 0,
                    control: flags & 4 != 0,
                    ack: Sequence::new(ack),
                    num_chunks: ack as u8,
                };
                assert_eq!(Header::parse(&header.to_bytes()), Ok(header));
            }
        }
    }

    #[test]
    fn a_datagram_has_3_to_1400_bytes() {
        assert_eq!(Header::parse(&[0; 2]).unwrap_err().kind, ErrorKind::TooShort);
        assert!(Header::parse(&[0; 3]).is_ok());
        assert!(Header::parse(&[0; 1400]).is_ok());
        assert_eq!(Header::parse(&[0; 1401]).unwrap_err().kind, ErrorKind::TooLong);
    }

    #[test]
    fn the_backroom_is_what_is_older_or_the_same() {
        // Rows of the table: ack, some that are old, some that are ahead.
        let rows: [(u32, &[u32], [u32; 2]); 6] = [
            (1, &[1, 0, 1023, 513], [2, 512]),
            (0, &[0, 512, 1023], [1, 511]),
            (511, &[511, 0, 1023], [512, 1022]),
            (512, &[512, 0], [513, 1023]),
            (600, &[600, 88], [601, 87]),
            (1023, &[1023, 511], [0, 510]),
        ];
        for (ack, old, ahead) in rows {
            let is_ahead = |s: u32| Sequence::new(s).is_newer_than(Sequence::new(ack));
            assert!(!old.iter().any(|s| is_ahead(*s)), "{ack}");
            assert!(ahead.into_iter().all(is_ahead), "{ack}");
            for s in 0..1024 {
                assert_eq!(is_ahead(s), (ack + 1024 - s) % 1024 > 512, "{ack} {s}");
            }
        }
    }
}
