//! Which names players may have, and when two names are the same (section 2, names).

use caves_wire::caves::tag::MAX_NAME;
use caves_wire::text;
use unicode_normalization::UnicodeNormalization;

/// Why a name cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No bytes, or more than 32.
    #[error("a name has 1 to 32 bytes")]
    Length,
    /// It is not UTF-8.
    #[error("a name is UTF-8")]
    Utf8,
    /// It starts or ends with a space.
    #[error("a name does not start or end with a space")]
    Space,
    /// It holds a control, bidi-override or zero-width character (R32).
    #[error("a name holds no invisible characters")]
    Invisible,
}

/// Checks a name as it came from a peer.
///
/// ```
/// use caves_session::caves::{NameError, check_name};
///
/// assert_eq!(check_name("Zoë".as_bytes()), Ok("Zoë"));
/// assert_eq!(check_name(b" x"), Err(NameError::Space));
/// ```
///
/// # Errors
/// See [`NameError`].
pub fn check_name(bytes: &[u8]) -> Result<&str, NameError> {
    if !(1..=MAX_NAME).contains(&bytes.len()) {
        return Err(NameError::Length);
    }
    let name = std::str::from_utf8(bytes).map_err(|_| NameError::Utf8)?;
    if !text::is_clean(name) {
        return Err(NameError::Invisible);
    }
    if name.starts_with(char::is_whitespace) || name.ends_with(char::is_whitespace) {
        return Err(NameError::Space);
    }
    Ok(name)
}

/// The form in which names are compared: NFKC and case folding.
///
/// ```
/// use caves_session::caves::fold_name;
///
/// assert_eq!(fold_name("ＡＤＡ"), fold_name("ada"));
/// assert_eq!(fold_name("Straße"), fold_name("STRASSE"));
/// ```
pub fn fold_name(name: &str) -> String {
    // Down, up and down again is the full case folding: "ß" and its capital "ẞ" become "ss", and both
    // sigmas one. The first step is for capitals that are their own upper case.
    let lower = name.nfkc().flat_map(char::to_lowercase);
    lower.flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfkc().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged_by_bytes() {
        assert_eq!(check_name(b""), Err(NameError::Length));
        assert_eq!(check_name(&[b'x'; 32]).map(str::len), Ok(32));
        assert_eq!(check_name(&[b'x'; 33]), Err(NameError::Length));
        assert_eq!(check_name(&[b'x', 0xFF]), Err(NameError::Utf8));
        assert_eq!(check_name(b"x "), Err(NameError::Space));
        assert_eq!(check_name("a\u{202E}b".as_bytes()), Err(NameError::Invisible));
        assert_eq!(check_name(b"a b"), Ok("a b"));
    }

    #[test]
    fn names_that_look_the_same_are_the_same() {
        assert_eq!(fold_name("Ada"), "ada");
        assert_eq!(fold_name("ΣΑΣ"), fold_name("σας"));
        assert_eq!(fold_name("STRAẞE"), fold_name("Straße"));
        assert_eq!(fold_name("ẞ"), "ss");
        assert_eq!(fold_name("e\u{301}"), fold_name("É"));
        assert_ne!(fold_name("ada"), fold_name("adb"));
    }
}
