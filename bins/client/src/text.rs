//! Text measured in columns of the terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns that `text` takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Columns that one character takes at most.
pub(crate) fn char_width(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// `text` in at most `columns`; where something is cut off, `mark` stands for it.
pub(crate) fn cut(text: &str, columns: usize, mark: &str) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let Some(room) = columns.checked_sub(width(mark)) else {
        return fitting(text, columns).to_owned();
    };
    format!("{}{mark}", fitting(text, room))
}

/// The longest start of `text` that fits into `columns`.
pub(crate) fn fitting(text: &str, columns: usize) -> &str {
    let mut used = 0;
    let end = text.char_indices().find(|(_, c)| {
        used += char_width(*c);
        used > columns
    });
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

/// `text` in lines of at most `columns`, broken at spaces where there are any.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let gap = usize::from(!line.is_empty());
        if width(&line) + gap + width(word) <= columns {
            line.extend((gap == 1).then_some(' '));
            line.push_str(word);
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        line = break_word(word, columns, &mut lines);
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// Puts all but the last piece of a word that is too long into `lines`.
fn break_word(word: &str, columns: usize, lines: &mut Vec<String>) -> String {
    let mut rest = word;
    while width(rest) > columns {
        let piece = match fitting(rest, columns) {
            // A character that is wider than the line stands alone in it.
            "" => &rest[..rest.chars().next().map_or(0, char::len_utf8)],
            piece => piece,
        };
        lines.push(piece.to_owned());
        rest = &rest[piece.len()..];
    }
    rest.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_by_columns_and_not_by_characters() {
        assert_eq!(cut("cave rat", 8, "…"), "cave rat");
        assert_eq!(cut("cave rat", 5, "…"), "cave…");
        // Each of these takes two columns: the fourth column stays free.
        assert_eq!(cut("世界世界", 4, "…"), "世…");
        assert_eq!(cut("世界", 1, ".."), "");
        assert_eq!(cut("abc", 1, ".."), "a");
        assert_eq!(cut("abc", 0, "…"), "");
        // A combining accent takes none.
        assert_eq!(cut("e\u{301}e\u{301}", 2, "…"), "e\u{301}e\u{301}");
    }

    #[test]
    fn lines_break_at_spaces_or_where_they_must() {
        assert_eq!(wrap("count your steps", 10), ["count your", "steps"]);
        assert_eq!(wrap("  a   b  ", 10), ["a b"]);
        assert_eq!(wrap("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrap("世界世", 4), ["世界", "世"]);
        assert_eq!(wrap("世", 1), ["世"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap("ab", 0), ["a", "b"]);
    }

    #[test]
    fn wrapped_lines_never_exceed_their_width() {
        let text = "Whoever emptied the chest: 世界 I know your boots. \u{1F600}\u{1F600}\u{1F600}";
        for columns in 2..60 {
            for line in wrap(text, columns) {
                assert!(width(&line) <= columns, "{line:?} in {columns}");
            }
        }
    }
}
