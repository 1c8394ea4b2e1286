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
}

/// A configuration file while it is read: turns spans of bytes into errors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
}

impl Source<'_> {
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
            Some(key) => self.wrong(key, span, error.message()),
            None => self.invalid(span, error.message().to_owned()),
        }
    }

    fn invalid(self, span: Range<usize>, message: String) -> ConfigError {
        let (line, excerpt) = excerpt(self.text, span);
        ConfigError::Invalid { file: self.file.to_owned(), line, message, excerpt }
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
