//! Zero-terminated texts, and what is cleaned when they are read.

use core::fmt::Write as _;

/// What reading a text changes. The bytes on the wire stay as they are; a [`Text`] shows them cleaned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cleaning {
    /// Nothing.
    Raw,
    /// Bytes below 20 hex become blanks, but for tab, line feed and carriage return. The usual one.
    Normal,
    /// All bytes below 20 hex become blanks.
    HalfStrict,
    /// As [`Cleaning::HalfStrict`], and blanks at the start are left out: all of Unicode that looks like
    /// one, and what is not UTF-8.
    Strict,
}

impl Cleaning {
    const fn of(self, byte: u8) -> u8 {
        match self {
            Self::Raw => byte,
            Self::Normal if matches!(byte, b'\t' | b'\n' | b'\r') => byte,
            _ if byte < 0x20 => b' ',
            _ => byte,
        }
    }
}

/// A text as it stands on the wire, without its terminator, and how it is to be shown.
///
/// Not all texts are UTF-8. The printed form is cleaned, with U+FFFD where bytes are no character;
/// [`crate::text::clean`] of it is fit for a terminal.
///
/// ```
/// use caves_wire::teeworlds::{Cleaning, Text};
///
/// let reason = Text::new(b"bad\x01\x1F\x0Areason\x7F", Cleaning::HalfStrict);
/// assert_eq!(reason.to_string(), "bad   reason\x7F");
/// assert_eq!(Text::from("plain").as_bytes(), b"plain");
/// ```
#[derive(Clone, Copy)]
pub struct Text<'a> {
    bytes: &'a [u8],
    cleaning: Cleaning,
}

impl<'a> Text<'a> {
    /// Bytes without their terminator.
    pub const fn new(bytes: &'a [u8], cleaning: Cleaning) -> Self {
        Self { bytes, cleaning }
    }

    /// The bytes as they came.
    pub const fn as_bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// How it is shown.
    pub const fn cleaning(self) -> Cleaning {
        self.cleaning
    }

    /// The bytes, cleaned: as many, or fewer where blanks at the start are left out.
    pub fn cleaned(self) -> impl Iterator<Item = u8> + Clone + 'a {
        self.start().iter().map(move |byte| self.cleaning.of(*byte))
    }

    /// The characters, cleaned; U+FFFD where bytes are none.
    pub fn chars(self) -> impl Iterator<Item = char> + Clone + 'a {
        // Only ASCII is changed, so that cleaning first or decoding first is the same.
        let clean = move |c: char| match u8::try_from(c) {
            Ok(byte) if c.is_ascii() => char::from(self.cleaning.of(byte)),
            _ => c,
        };
        self.start().utf8_chunks().flat_map(move |chunk| {
            let lost = (!chunk.invalid().is_empty()).then_some(char::REPLACEMENT_CHARACTER);
            chunk.valid().chars().map(clean).chain(lost)
        })
    }

    /// Whether it is shown as `text`.
    pub fn is(self, text: &str) -> bool {
        self.chars().eq(text.chars())
    }

    fn start(self) -> &'a [u8] {
        if self.cleaning != Cleaning::Strict {
            return self.bytes;
        }
        let mut at = 0;
        for chunk in self.bytes.utf8_chunks() {
            for c in chunk.valid().chars() {
                if !is_blank(c) {
                    return &self.bytes[at..];
                }
                at += c.len_utf8();
            }
            at += chunk.invalid().len();
        }
        &[]
    }
}

/// The bytes of the two are the same, whatever is cleaned.
impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Text<'_> {}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self::new(text.as_bytes(), Cleaning::Normal)
    }
}

impl core::fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.chars().try_for_each(|c| f.write_char(c))
    }
}

impl core::fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "\"{}\"", self.bytes.escape_ascii())
    }
}

/// What DDNet takes for a blank.
const fn is_blank(c: char) -> bool {
    matches!(c,
        '\0'..=' ' | '\u{85}' | '\u{A0}' | '\u{34F}' | '\u{115F}' | '\u{1160}' | '\u{1680}'
        | '\u{180E}' | '\u{2000}'..='\u{200F}' | '\u{2028}'..='\u{202F}' | '\u{205F}'..='\u{2064}'
        | '\u{206A}'..='\u{206F}' | '\u{2800}' | '\u{3000}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}'
        | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF9}'..='\u{FFFC}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::{String, ToString};
    use std::vec::Vec;

    const DIRTY: &[u8] = b"\x01\t\n\r\x1Fa\x7F\x80";

    #[test]
    fn each_mode_cleans_what_it_says() {
        let cleaned = |cleaning| Text::new(DIRTY, cleaning).cleaned().collect::<Vec<_>>();
        assert_eq!(cleaned(Cleaning::Raw), DIRTY);
        assert_eq!(cleaned(Cleaning::Normal), b" \t\n\r a\x7F\x80");
        assert_eq!(cleaned(Cleaning::HalfStrict), b"     a\x7F\x80");
        assert_eq!(cleaned(Cleaning::Strict), b"a\x7F\x80");
    }

    #[test]
    fn blanks_of_all_unicode_are_left_out_at_the_start_only() {
        let text = Text::new("\u{3000}\u{200B} \u{FEFF}a \u{3000}b".as_bytes(), Cleaning::Strict);
        assert_eq!(text.to_string(), "a \u{3000}b");
        let text = Text::new(b" \xFF\xE3\x80 a", Cleaning::Strict);
        assert_eq!(text.to_string(), "a");
        assert!(Text::new(b" \xFF\t", Cleaning::Strict).is(""));
    }

    #[test]
    fn what_is_no_character_is_shown_as_such() {
        let text = Text::new(b"a\xFF\xC3\xA9\xE4\xB8", Cleaning::Normal);
        assert_eq!(text.to_string(), "a\u{FFFD}\u{E9}\u{FFFD}");
    }

    proptest::proptest! {
        /// The standard library decodes what this module cleaned.
        #[test]
        fn cleaning_before_and_after_decoding_is_the_same(bytes: Vec<u8>) {
            for cleaning in
                [Cleaning::Raw, Cleaning::Normal, Cleaning::HalfStrict, Cleaning::Strict]
            {
                let text = Text::new(&bytes, cleaning);
                let cleaned: Vec<u8> = text.cleaned().collect();
                let decoded: String = text.chars().collect();
                proptest::prop_assert_eq!(String::from_utf8_lossy(&cleaned), decoded);
            }
        }
    }
}
