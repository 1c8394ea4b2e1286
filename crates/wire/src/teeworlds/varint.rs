//! Integers of one to five bytes.
//!
//! ```text
//! E S d5..d0 | E d6..d0 | E d6..d0 | E d6..d0 | . . . . d3..d0
//! ```
//!
//! `E` says that another byte follows, low bits come first, `S` that the number is the complement of
//! what the bits say. Only four bits of a fifth byte count, and no sixth is ever read. Longer forms than
//! needed are read; the shortest is written.

use crate::{ErrorKind, ParseError};

const MORE: u8 = 0x80;
const SIGN: u8 = 0x40;

/// The most bytes of an integer.
pub const MAX_LEN: usize = 5;

/// Reads an integer from the start of `bytes`: its value and how many bytes it has.
///
/// ```
/// use caves_wire::teeworlds::varint;
///
/// assert_eq!(varint::decode(&[0x80, 0x01, 0xFF]), Ok((64, 2)));
/// assert_eq!(varint::decode(&[0x41]), Ok((-2, 1)));
/// assert!(varint::decode(&[0x80]).is_err());
/// ```
///
/// # Errors
/// [`ErrorKind::Integer`] where the bytes end before it does.
pub fn decode(bytes: &[u8]) -> Result<(i32, usize), ParseError> {
    let short = ParseError {
        packet: "Integer",
        kind: ErrorKind::Integer,
        offset: bytes.len(),
        needed: bytes.len() + 1,
        got: bytes.len(),
    };
    let &first = bytes.first().ok_or(short)?;
    let mut value = u32::from(first & 0x3F);
    let (mut last, mut len) = (first, 1);
    // The fifth byte's four bits are the highest of 31; the sign is told apart.
    for (shift, mask) in [(6, 0x7F), (13, 0x7F), (20, 0x7F), (27, 0x0F)] {
        if last & MORE == 0 {
            break;
        }
        last = *bytes.get(len).ok_or(short)?;
        value |= u32::from(last & mask) << shift;
        len += 1;
    }
    let value = if first & SIGN == 0 { value } else { !value };
    Ok((value as i32, len))
}

/// The shortest form of an integer: that many bytes of the array.
///
/// ```
/// use caves_wire::teeworlds::varint;
///
/// let (bytes, len) = varint::encode(-65);
/// assert_eq!(bytes[..len], [0xC0, 0x01]);
/// ```
pub const fn encode(value: i32) -> ([u8; MAX_LEN], usize) {
    let mut bytes = [0; MAX_LEN];
    let mut rest = if value < 0 { !value } else { value } as u32;
    bytes[0] = (rest & 0x3F) as u8 | if value < 0 { SIGN } else { 0 };
    rest >>= 6;
    let mut len = 1;
    // 31 bits: 6 and four times 7 hold them.
    while rest != 0 && len < MAX_LEN {
        bytes[len - 1] |= MORE;
        bytes[len] = (rest & 0x7F) as u8;
        rest >>= 7;
        len += 1;
    }
    (bytes, len)
}
