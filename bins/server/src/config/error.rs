//! Errors that show the place.

use std::ops::Range;

/// Why there is no configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read as text.
    #[error("{file}: cannot be read: {reason}")]
    Unreadable {
        /// Its name.
        file: String,
        /// What the system says.
        reason: String,
    },
    /// The text is no TOML, or says something that a server cannot do.
    #[error("{file}:{line}: {message}\n{excerpt}")]
    Invalid {
        /// The file's name.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong, beginning with the key where there is one.
        message: String,
        /// The line's text, with carets below what is wrong.
        excerpt: String,
    },
    /// A value outside the file is no TOML, or says something that a server cannot do.
    #[error("{origin}: {message}\n{excerpt}")]
    Setting {
        /// Where it was given: `environment CAVES__SERVER__NAME`.
        origin: String,
        /// What is wrong, beginning with the key where there is one.
        message: String,
        /// The key and the value as they were understood, with carets below what is wrong.
        excerpt: String,
    },
    /// A value outside the file has no key.
    #[error("{origin}: there is no key \"{key}\"; --print-config shows all")]
    NoSuchKey {
        /// Where it was given.
        origin: String,
        /// What it is for.
        key: String,
    },
    /// Two variables of the environment differ in case alone.
    #[error("{origin}: {key} is set by {first} already")]
    Twice {
        /// Where it was given a second time.
        origin: String,
        /// What it is for.
        key: String,
        /// The first variable.
        first: String,
    },
    /// A variable of the environment is not UTF-8.
    #[error("{origin}: it is not UTF-8")]
    NotText {
        /// Which one.
        origin: String,
    },
}

/// A layer of the configuration while it is read: turns spans of bytes into errors.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
    /// Whether a reader can look at its lines.
    pub(super) is_file: bool,
}

impl<'a> Source<'a> {
    /// A file.
    pub(super) const fn file(name: &'a str, text: &'a str) -> Self {
        Self { name, text, is_file: true }
    }

    /// One value from elsewhere, written as a file would.
    pub(super) const fn setting(name: &'a str, text: &'a str) -> Self {
        Self { name, text, is_file: false }
    }

    /// What is wrong with the value of `key`, which stands at `span`.
    pub(super) fn wrong(self, key: &str, span: Range<usize>, message: &str) -> ConfigError {
        self.invalid(span, format!("{key}: {message}"))
    }

    /// What the parser found.
    pub(super) fn parse_error(self, mut error: toml::de::Error) -> ConfigError {
        let span = error.span().unwrap_or_default();
        // Without the input an error shows its message, and the key in a line of its own.
        error.set_input(None);
        let shown = error.to_string();
        let key = shown.trim_end().rsplit_once("\nin `").and_then(|(_, key)| key.strip_suffix('`'));
        match key {
            // The parser's message shows the value.
            Some(key @ "client.token") => self.wrong(key, span, NOT_A_TOKEN),
            Some(key) => self.invalid(span, without_tokens(format!("{key}: {}", error.message()))),
            None => self.invalid(span, error.message().to_owned()),
        }
    }

    fn invalid(self, span: Range<usize>, message: String) -> ConfigError {
        let (line, excerpt) = excerpt(self.text, span);
        let excerpt = without_tokens(excerpt);
        let name = self.name.to_owned();
        match self.is_file {
            true => ConfigError::Invalid { file: name, line, message, excerpt },
            false => ConfigError::Setting { origin: name, message, excerpt },
        }
    }
}

/// The number of the line in which `span` begins, and that line with carets below the span.
fn excerpt(text: &str, span: Range<usize>) -> (usize, String) {
    let start = text.floor_char_boundary(span.start);
    let end = text.floor_char_boundary(span.end.max(start));
    let line = text[..start].matches('\n').count() + 1;
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let shown = text[line_start..line_end].trim_end_matches('\r');
    // A tab is as wide below as above only if it is a tab there, too.
    let blank = |c: char| if c == '\t' { '\t' } else { ' ' };
    let indent: String = text[line_start..start].chars().map(blank).collect();
    let carets = text[start..end.min(line_end)].trim_end_matches('\r').chars().count().max(1);
    let margin = " ".repeat(line.to_string().len());
    let carets = "^".repeat(carets);
    (line, format!("{margin} |\n{line} | {shown}\n{margin} | {indent}{carets}"))
}

/// What is said about a token that is none, without showing it.
pub(super) const NOT_A_TOKEN: &str = "expected \"0x\" and up to 16 hexadecimal digits";

/// Errors come to the log at a reload, and logs to people who should not have tokens: where a text
/// is about clients or tokens, what may be one is replaced by as many stars, so that carets fit.
fn without_tokens(text: String) -> String {
    let speaks_of_one = text.to_ascii_lowercase().contains("token") || text.contains("client");
    if !speaks_of_one {
        return text;
    }
    let mut shown = String::new();
    for piece in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let word = piece.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        if may_be_a_token(word) {
            shown.extend([&*"*".repeat(word.len()), &piece[word.len()..]]);
        } else {
            shown += piece;
        }
    }
    shown
}

/// Whether a word is as long as the shortest token, "0x" and nine digits, or longer.
fn may_be_a_token(word: &str) -> bool {
    word.len() >= 11 && word.bytes().any(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carets_stand_below_the_span() {
        assert_eq!(
            excerpt("a = 1\n\tbc = 22\n", 12..14),
            (2, "  |\n2 | \tbc = 22\n  | \t     ^^".into())
        );
        assert_eq!(excerpt("ä = 1\r\n", 5..6), (1, "  |\n1 | ä = 1\n  |     ^".into()));
    }

    #[test]
    fn a_span_over_lines_is_marked_in_its_first_one() {
        assert_eq!(excerpt("x = [1,\r\n2]\n", 4..11), (1, "  |\n1 | x = [1,\n  |     ^^^".into()));
    }

    #[test]
    fn an_end_of_file_has_a_caret_too() {
        assert_eq!(excerpt("[a", 2..2), (1, "  |\n1 | [a\n  |   ^".into()));
        assert_eq!(excerpt("", 0..0), (1, "  |\n1 | \n  | ^".into()));
        assert_eq!(excerpt("a\n", 99..100), (2, "  |\n2 | \n  | ^".into()));
    }
}
