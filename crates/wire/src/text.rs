//! Which characters text on the wire may hold (R32).

/// Whether R32 forbids a character: control characters, bidirectional overrides and characters of
/// no width. In dialogue a line feed is allowed; ask with [`is_forbidden_in_dialogue`] there.
///
/// ```
/// use caves_wire::text::is_forbidden;
///
/// assert!(!is_forbidden('é') && !is_forbidden(' '));
/// assert!(is_forbidden('\u{1b}') && is_forbidden('\n'));
/// assert!(is_forbidden('\u{202E}') && is_forbidden('\u{200B}'));
/// ```
pub fn is_forbidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00AD}'                  // soft hyphen
            | '\u{034F}'                // combining grapheme joiner
            | '\u{061C}'                // Arabic letter mark
            | '\u{115F}' | '\u{1160}'   // Hangul fillers
            | '\u{17B4}' | '\u{17B5}'   // Khmer inherent vowels
            | '\u{180B}'..='\u{180F}'   // Mongolian selectors
            | '\u{200B}'..='\u{200F}'   // zero width, direction marks
            | '\u{2028}'..='\u{202E}'   // separators, embeddings, overrides
            | '\u{2060}'..='\u{206F}'   // word joiner, isolates, deprecated format characters
            | '\u{3164}' | '\u{FFA0}'   // Hangul fillers
            | '\u{FE00}'..='\u{FE0F}'   // variation selectors
            | '\u{FEFF}'                // byte order mark
            | '\u{FFF9}'..='\u{FFFB}'   // interlinear annotation
            | '\u{1D173}'..='\u{1D17A}' // musical format characters
            | '\u{E0000}'..='\u{E0FFF}' // tags, more variation selectors
        )
}

/// As [`is_forbidden`], but a line feed separates the lines of a dialogue.
pub fn is_forbidden_in_dialogue(c: char) -> bool {
    c != '\n' && is_forbidden(c)
}

/// Whether `text` holds no forbidden character.
pub fn is_clean(text: &str) -> bool {
    !text.chars().any(is_forbidden)
}

/// The characters of `text` that may be shown.
pub fn clean(text: &str) -> impl Iterator<Item = char> + '_ {
    text.chars().filter(|c| !is_forbidden(*c))
}

/// The longest start of `text` of at most `limit` bytes that ends between characters.
///
/// ```
/// assert_eq!(caves_wire::text::cut("aé", 2), "a");
/// ```
pub fn cut(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_fall_between_characters() {
        assert_eq!(cut("héllo", 0), "");
        assert_eq!(cut("héllo", 2), "h");
        assert_eq!(cut("héllo", 3), "hé");
        assert_eq!(cut("héllo", 99), "héllo");
        assert_eq!(cut("\u{1F600}", 3), "");
    }

    #[test]
    fn bidi_overrides_and_controls_are_stripped() {
        let dirty = "a\u{1b}[31mb\u{202E}c\u{200D}\u{2066}d\u{7f}\u{85}";
        assert!(!is_clean(dirty));
        assert!(clean(dirty).eq("a[31mbcd".chars()));
        assert!(is_clean("Grüße, 世界"));
    }
}
