//! A line that is being typed.

use caves_wire::caves::MAX_SAY;
use caves_wire::text::{clean, cut, is_forbidden};

use crate::keys::Edit;

/// Text and a cursor in it. It never holds more than [`MAX_SAY`] bytes, nor a character that the
/// protocol forbids (protocol, R32).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Line {
    text: String,
    /// In bytes, between characters.
    at: usize,
}

impl Line {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// What stands to the left of the cursor.
    pub(crate) fn before(&self) -> &str {
        &self.text[..self.at]
    }

    /// Bytes that are left.
    pub(crate) fn room(&self) -> usize {
        MAX_SAY - self.text.len()
    }

    pub(crate) fn insert(&mut self, c: char) {
        if !is_forbidden(c) && c.len_utf8() <= self.room() {
            self.text.insert(self.at, c);
            self.at += c.len_utf8();
        }
    }

    /// Inserts what was pasted: ends of lines become spaces, what is too long is cut off.
    pub(crate) fn paste(&mut self, pasted: &str) {
        let one_line: String =
            pasted.trim().chars().map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
        let cleaned: String = clean(&one_line).collect();
        let fits = cut(&cleaned, self.room());
        self.text.insert_str(self.at, fits);
        self.at += fits.len();
    }

    pub(crate) fn edit(&mut self, edit: Edit) {
        match edit {
            Edit::Left => self.at = self.left(),
            Edit::Right => self.at = self.right(),
            Edit::Home => self.at = 0,
            Edit::End => self.at = self.text.len(),
            Edit::Clear => *self = Self::default(),
            Edit::Backspace => {
                let from = self.left();
                self.text.drain(from..self.at);
                self.at = from;
            }
            Edit::Delete => {
                self.text.drain(self.at..self.right());
            }
        }
    }

    fn left(&self) -> usize {
        self.before().char_indices().next_back().map_or(0, |(at, _)| at)
    }

    fn right(&self) -> usize {
        self.at + self.text[self.at..].chars().next().map_or(0, char::len_utf8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str) -> Line {
        let mut line = Line::default();
        text.chars().for_each(|c| line.insert(c));
        line
    }

    #[test]
    fn editing_moves_by_characters() {
        let mut line = typed("aé世");
        line.edit(Edit::Left);
        line.edit(Edit::Left);
        line.edit(Edit::Backspace);
        assert_eq!((line.text(), line.before()), ("é世", ""));
        line.edit(Edit::Backspace);
        line.edit(Edit::Delete);
        assert_eq!(line.text(), "世");
        line.edit(Edit::End);
        line.edit(Edit::Delete);
        line.edit(Edit::Right);
        line.insert('!');
        line.edit(Edit::Home);
        line.insert('¡');
        assert_eq!((line.text(), line.before()), ("¡世!", "¡"));
        line.edit(Edit::Clear);
        assert_eq!(line, Line::default());
    }

    #[test]
    fn two_hundred_bytes_are_the_most() {
        let mut line = typed(&"x".repeat(300));
        assert_eq!((line.text().len(), line.room()), (200, 0));
        line.edit(Edit::Backspace);
        line.insert('é');
        assert_eq!(line.text().len(), 199, "two bytes do not fit into one");
        line.paste("ab");
        assert_eq!(line.text().len(), 200);
        let mut line = Line::default();
        line.paste(&"世".repeat(100));
        assert_eq!(line.text().len(), 198);
    }

    #[test]
    fn pasted_lines_become_one_and_invisible_characters_vanish() {
        let mut line = typed("[]");
        line.edit(Edit::Left);
        line.paste("\n one\r\ntwo\tthree\u{1b}[31m\u{202E}\u{200B} \n");
        assert_eq!(line.text(), "[one  two three[31m]");
        line.insert('\u{1b}');
        line.insert('\n');
        assert_eq!(line.text().len(), 20);
    }
}
