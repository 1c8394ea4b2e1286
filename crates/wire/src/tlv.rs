//! Type, length, value: the metadata blocks of several packets (R24).
//!
//! ```text
//!  0    1    2          2+len
//!  | tag | len | value .. | next field ..
//! ```
//!
//! This module knows the form only; which tags mean what is in [`crate::caves::tag`].

use crate::{EmitError, ErrorKind, ParseError};

/// The longest value of one field.
pub const MAX_VALUE: usize = 255;
/// Where a long value is cut into several fields of one tag: a multiple of four, so that an
/// inventory is cut between its entries (section 3, tag 0x06).
pub const CUT: usize = 252;

/// A block of whole fields: nothing is left over, nothing runs past the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TlvBlock<'a>(&'a [u8]);

/// One field of a [`TlvBlock`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// What the value is.
    pub tag: u8,
    /// Its bytes, at most 255.
    pub value: &'a [u8],
}

impl<'a> TlvBlock<'a> {
    /// Checks the form of a block that stands at `offset` of a datagram of layout `packet`.
    ///
    /// # Errors
    /// [`ErrorKind::TlvOverrun`] where a field does not end within the block.
    pub fn parse(packet: &'static str, offset: usize, bytes: &'a [u8]) -> Result<Self, ParseError> {
        let mut at = 0;
        while at < bytes.len() {
            let end = match bytes.get(at + 1) {
                Some(len) => at + 2 + usize::from(*len),
                None => at + 2,
            };
            if end > bytes.len() {
                return Err(ParseError {
                    packet,
                    kind: ErrorKind::TlvOverrun,
                    offset: offset + at,
                    needed: end - at,
                    got: bytes.len() - at,
                });
            }
            at = end;
        }
        Ok(Self(bytes))
    }

    /// The block as it stands on the wire.
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// The fields in order.
    pub const fn fields(self) -> Fields<'a> {
        Fields(self.0)
    }

    /// The value of the first field with this tag: what counts for a tag that is not cut (R24).
    pub fn first(self, tag: u8) -> Option<&'a [u8]> {
        self.values(tag).next()
    }

    /// The values of all fields with this tag, in order: the parts of a tag that may be cut (R24).
    pub fn values(self, tag: u8) -> impl Iterator<Item = &'a [u8]> + Clone {
        self.fields().filter(move |field| field.tag == tag).map(|field| field.value)
    }

    /// The first value with this tag as a little-endian number, where it has exactly two bytes.
    pub fn u16(self, tag: u8) -> Option<u16> {
        self.first(tag)?.try_into().ok().map(u16::from_le_bytes)
    }

    /// The first value with this tag as a little-endian number, where it has exactly four bytes.
    pub fn u32(self, tag: u8) -> Option<u32> {
        self.first(tag)?.try_into().ok().map(u32::from_le_bytes)
    }

    /// The first value with this tag as a little-endian number, where it has exactly eight bytes.
    pub fn u64(self, tag: u8) -> Option<u64> {
        self.first(tag)?.try_into().ok().map(u64::from_le_bytes)
    }
}

/// Iterates over the fields of a [`TlvBlock`].
#[derive(Debug, Clone)]
pub struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let (&[tag, len], rest) = self.0.split_first_chunk()?;
        // The block was checked, so the split always succeeds; a wrong one would end the fields.
        let (value, rest) = rest.split_at_checked(usize::from(len))?;
        self.0 = rest;
        Some(Field { tag, value })
    }
}

/// Writes fields into the caller's buffer, one behind the other.
///
/// ```
/// use caves_wire::tlv::{TlvBlock, TlvWriter};
///
/// let mut buf = [0; 16];
/// let mut tlv = TlvWriter::new(&mut buf);
/// tlv.put(0x01, &7u16.to_le_bytes())?;
/// tlv.put(0x04, b"Ada")?;
/// let block = TlvBlock::parse("example", 0, tlv.finish())?;
/// assert_eq!(block.u16(0x01), Some(7));
/// assert_eq!(block.first(0x04), Some(&b"Ada"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TlvWriter<'b> {
    buf: &'b mut [u8],
    len: usize,
}

impl<'b> TlvWriter<'b> {
    /// A writer that fills `buf` from its start; its length is the block's limit.
    pub const fn new(buf: &'b mut [u8]) -> Self {
        Self { buf, len: 0 }
    }

    /// Bytes written so far.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was written yet.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds one field.
    ///
    /// # Errors
    /// A value over 255 bytes, or one that the buffer has no room for; nothing is written then.
    pub fn put(&mut self, tag: u8, value: &[u8]) -> Result<(), EmitError> {
        let Ok(len) = u8::try_from(value.len()) else {
            return Err(EmitError::Field {
                packet: "TLV",
                field: "value",
                limit: MAX_VALUE,
                got: value.len(),
            });
        };
        let end = self.len + 2 + value.len();
        let got = self.buf.len();
        let Some(room) = self.buf.get_mut(self.len..end) else {
            return Err(EmitError::Buffer { packet: "TLV", needed: end, got });
        };
        room[0] = tag;
        room[1] = len;
        room[2..].copy_from_slice(value);
        self.len = end;
        Ok(())
    }

    /// Adds a value of any length as several fields of at most [`CUT`] bytes, all or none.
    ///
    /// # Errors
    /// The buffer has no room for all of it.
    pub fn put_long(&mut self, tag: u8, value: &[u8]) -> Result<(), EmitError> {
        let needed = self.len + long_len(value.len());
        if needed > self.buf.len() {
            return Err(EmitError::Buffer { packet: "TLV", needed, got: self.buf.len() });
        }
        value.chunks(CUT).try_for_each(|part| self.put(tag, part))
    }

    /// The finished block.
    pub fn finish(self) -> &'b [u8] {
        &self.buf[..self.len]
    }
}

/// Bytes that [`TlvWriter::put_long`] writes for a value of `len` bytes.
pub const fn long_len(len: usize) -> usize {
    len + 2 * len.div_ceil(CUT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn a_field_past_the_end_is_refused_where_it_starts() {
        let error = TlvBlock::parse("T", 18, &[1, 1, 9, 2, 3, 0, 0]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::TlvOverrun);
        assert_eq!((error.offset, error.needed, error.got), (21, 5, 4));
        let error = TlvBlock::parse("T", 0, &[1]).unwrap_err();
        assert_eq!((error.offset, error.needed, error.got), (0, 2, 1));
    }

    #[test]
    fn zero_length_values_and_empty_blocks_are_fine() {
        assert_eq!(TlvBlock::parse("T", 0, &[]).unwrap().fields().count(), 0);
        let block = TlvBlock::parse("T", 0, &[9, 0, 9, 1, 7]).unwrap();
        assert_eq!(block.first(9), Some(&[][..]));
        assert_eq!(block.values(9).flatten().copied().collect::<Vec<u8>>(), [7]);
        assert_eq!(block.u16(9), None);
    }

    #[test]
    fn long_values_are_cut_and_read_as_one() {
        let value: Vec<u8> = (0..600u32).map(|i| i as u8).collect();
        let mut buf = [0; 700];
        let mut tlv = TlvWriter::new(&mut buf);
        tlv.put_long(5, &value).unwrap();
        assert_eq!(tlv.len(), 600 + 3 * 2);
        let block = TlvBlock::parse("T", 0, tlv.finish()).unwrap();
        assert_eq!(block.fields().map(|f| f.value.len()).collect::<Vec<_>>(), [252, 252, 96]);
        assert!(block.values(5).flatten().eq(&value));
    }

    #[test]
    fn what_does_not_fit_is_refused_whole() {
        let mut buf = [0; 8];
        let mut tlv = TlvWriter::new(&mut buf);
        assert!(tlv.put(1, &[0; 7]).is_err());
        assert!(tlv.put(1, &[0; 256]).is_err());
        assert!(tlv.put_long(1, &[0; 7]).is_err());
        assert!(tlv.is_empty());
        tlv.put(1, &[0; 6]).unwrap();
        assert_eq!(tlv.len(), 8);
    }
}
