//! A part of the screen that cannot be left.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};

use crate::text;
use crate::theme::Theme;

/// Cells to draw into. Coordinates count from its own corner; what lies outside is cut off.
pub(super) struct Canvas<'b> {
    buf: &'b mut Buffer,
    area: Rect,
}

impl<'b> Canvas<'b> {
    pub(super) fn new(buf: &'b mut Buffer, area: Rect) -> Self {
        let area = area.intersection(buf.area);
        Self { buf, area }
    }

    /// The part of this that lies in `area`, which is given as the whole screen counts.
    pub(super) fn part(&mut self, area: Rect) -> Canvas<'_> {
        Canvas { area: area.intersection(self.area), buf: self.buf }
    }

    /// All of it from a row of its own on.
    pub(super) fn below(&mut self, row: u16) -> Canvas<'_> {
        let row = row.min(self.area.height);
        let area = Rect { y: self.area.y + row, height: self.area.height - row, ..self.area };
        Canvas { area, buf: self.buf }
    }

    /// One of two columns of the same width.
    pub(super) fn column(&mut self, x: u16, width: u16) -> Canvas<'_> {
        let x = x.min(self.area.width);
        let width = width.min(self.area.width - x);
        let area = Rect { x: self.area.x + x, width, ..self.area };
        Canvas { area, buf: self.buf }
    }

    pub(super) const fn area(&self) -> Rect {
        self.area
    }

    pub(super) const fn width(&self) -> u16 {
        self.area.width
    }

    pub(super) const fn height(&self) -> u16 {
        self.area.height
    }

    /// Draws text in one row, and gives the column behind it.
    pub(super) fn text(&mut self, x: u16, y: u16, text: &str, style: Style) -> u16 {
        if x >= self.area.width || y >= self.area.height {
            return x;
        }
        let room = usize::from(self.area.width - x);
        let (end, _) = self.buf.set_stringn(self.area.x + x, self.area.y + y, text, room, style);
        end - self.area.x
    }

    /// Draws text that ends before column `end`; where it is too long its start shows.
    pub(super) fn text_right(&mut self, end: u16, y: u16, text: &str, style: Style) -> u16 {
        let width = u16::try_from(text::width(text)).unwrap_or(u16::MAX);
        let x = end.min(self.area.width).saturating_sub(width);
        self.text(x, y, text, style);
        x
    }

    pub(super) fn sign(&mut self, x: u16, y: u16, sign: char, style: Style) {
        if x < self.area.width && y < self.area.height {
            self.buf[(self.area.x + x, self.area.y + y)].set_char(sign).set_style(style);
        }
    }

    /// Changes the style of one cell.
    pub(super) fn restyle(&mut self, x: u16, y: u16, style: Style) {
        if x < self.area.width && y < self.area.height {
            self.buf[(self.area.x + x, self.area.y + y)].set_style(style);
        }
    }

    /// A row in one style.
    pub(super) fn restyle_row(&mut self, y: u16, style: Style) {
        (0..self.area.width).for_each(|x| self.restyle(x, y, style));
    }

    /// A heading with a line behind it.
    pub(super) fn heading(&mut self, y: u16, title: &str, theme: Theme) {
        let line = theme.pick('─', '-');
        self.sign(0, y, line, theme.faint());
        let mut x = self.text(2, y, title, theme.strong(Color::Reset)) + 1;
        while x < self.area.width {
            self.sign(x, y, line, theme.faint());
            x += 1;
        }
    }

    pub(super) fn rule_across(&mut self, area: Rect, theme: Theme) {
        let mut part = self.part(area);
        for x in 0..part.width() {
            part.sign(x, 0, theme.pick('─', '-'), theme.faint());
        }
    }

    pub(super) fn rule_down(&mut self, area: Rect, theme: Theme) {
        let mut part = self.part(area);
        for y in 0..part.height() {
            part.sign(0, y, theme.pick('│', '|'), theme.faint());
        }
    }

    /// Replaces what such a terminal would garble. Our own signs have ASCII forms; this is for
    /// names and texts of others, whose wide characters are two columns of it.
    pub(super) fn make_ascii(&mut self) {
        for y in self.area.top()..self.area.bottom() {
            let mut left = 0;
            for x in self.area.left()..self.area.right() {
                let cell = &mut self.buf[(x, y)];
                if !cell.symbol().is_ascii() {
                    left = text::width(cell.symbol()).max(1);
                }
                if left > 0 {
                    cell.set_char('?');
                    left -= 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(buf: &Buffer) -> Vec<String> {
        let row = |y| (0..buf.area.width).map(|x| buf[(x, y)].symbol()).collect();
        (0..buf.area.height).map(row).collect()
    }

    #[test]
    fn nothing_is_drawn_outside() {
        let mut buf = Buffer::empty(Rect::new(0, 0, 6, 3));
        let mut canvas = Canvas::new(&mut buf, Rect::new(1, 1, 3, 1));
        canvas.text(1, 0, "abc", Style::new());
        canvas.text(0, 1, "abc", Style::new());
        canvas.text(9, 0, "abc", Style::new());
        canvas.sign(3, 0, 'x', Style::new());
        canvas.below(5).text(0, 0, "y", Style::new());
        canvas.part(Rect::new(50, 50, 5, 5)).text(0, 0, "z", Style::new());
        assert_eq!(rows(&buf), ["      ", "  ab  ", "      "]);
    }

    #[test]
    fn wide_characters_stay_inside_and_keep_their_columns_in_ascii() {
        let mut buf = Buffer::empty(Rect::new(0, 0, 5, 1));
        let mut canvas = Canvas::new(&mut buf, Rect::new(0, 0, 4, 1));
        canvas.text(0, 0, "世é界", Style::new());
        canvas.make_ascii();
        assert_eq!(rows(&buf), ["???  "]);
    }

    #[test]
    fn control_characters_are_not_drawn() {
        let mut buf = Buffer::empty(Rect::new(0, 0, 6, 1));
        Canvas::new(&mut buf, Rect::new(0, 0, 6, 1)).text(0, 0, "a\u{1b}\n\u{200b}b", Style::new());
        assert_eq!(rows(&buf), ["ab    "]);
    }
}
