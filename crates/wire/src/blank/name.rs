//! Names of players and worlds: 32 bytes, the rest zero.

use crate::text;

/// A name as a field of 32 bytes holds it: bytes up to the first zero, or all 32.
///
/// No program of this protocol looks at the bytes, and two names are the same if their bytes are
/// (section 5). So they are kept as they are, UTF-8 or not; the printed form shows what may be shown.
/// A name has no zero among its bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// Zero behind the name.
    field: [u8; Self::MAX],
}

impl Name {
    /// The most bytes of a name.
    pub const MAX: usize = 32;

    /// As much of a text as fits, cut between characters; it ends before its first zero.
    ///
    /// ```
    /// use caves_wire::blank::Name;
    ///
    /// assert_eq!(Name::new("alice").as_bytes(), b"alice");
    /// assert_eq!(Name::new(&"é".repeat(20)).as_bytes().len(), 32);
    /// assert_eq!(Name::new(&"x☃".repeat(20)).as_bytes().len(), 32);
    /// assert_eq!(Name::new(&"☃".repeat(20)).as_bytes().len(), 30);
    /// ```
    pub fn new(text: &str) -> Self {
        Self::from_field(text::cut(text, Self::MAX).as_bytes())
    }

    /// As a receiver reads it: bytes up to the first zero, the end of `bytes`, or 32.
    pub fn from_field(bytes: &[u8]) -> Self {
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()).min(Self::MAX);
        let mut field = [0; Self::MAX];
        field[..end].copy_from_slice(&bytes[..end]);
        Self { field }
    }

    /// The bytes of the name, 0 to 32.
    pub fn as_bytes(&self) -> &[u8] {
        let end = self.field.iter().position(|byte| *byte == 0).unwrap_or(Self::MAX);
        &self.field[..end]
    }

    /// The field as it is sent.
    pub const fn field(&self) -> &[u8; Self::MAX] {
        &self.field
    }

    /// Whether it has no bytes.
    pub const fn is_empty(&self) -> bool {
        self.field[0] == 0
    }
}

/// The bytes as UTF-8: what is none becomes U+FFFD, what must not be shown is left out.
impl core::fmt::Display for Name {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        use core::fmt::Write;
        for chunk in self.as_bytes().utf8_chunks() {
            text::clean(chunk.valid()).try_for_each(|c| f.write_char(c))?;
            if !chunk.invalid().is_empty() {
                f.write_char(char::REPLACEMENT_CHARACTER)?;
            }
        }
        Ok(())
    }
}

impl core::fmt::Debug for Name {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "\"{}\"", self.as_bytes().escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    fn a_name_ends_at_its_first_zero_or_after_32_bytes() {
        assert_eq!(Name::from_field(b"").as_bytes(), b"");
        assert_eq!(Name::from_field(b"kim").as_bytes(), b"kim");
        assert_eq!(Name::from_field(b"kim\0rest").as_bytes(), b"kim");
        assert_eq!(Name::from_field(b"kim\0rest"), Name::new("kim"));
        assert_eq!(Name::from_field(&[b'x'; 40]).as_bytes(), [b'x'; 32]);
        assert!(Name::from_field(&[0; 32]).is_empty());
        assert!(!Name::from_field(&[1; 1]).is_empty());
        assert_eq!(Name::new("a\0b").field()[..3], [b'a', 0, 0]);
    }

    #[test]
    fn the_printed_form_is_one_line_whatever_the_bytes() {
        let name = Name::from_field(b"a\n\x1b[31m\xFF\xFEb\xC3\xA9");
        assert_eq!(format!("{name}"), "a[31m\u{FFFD}\u{FFFD}bé");
        assert_eq!(format!("{name:?}"), r#""a\n\x1b[31m\xff\xfeb\xc3\xa9""#);
    }
}
