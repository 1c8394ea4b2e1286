//! Every key, from the table that binds them, and what the signs on the map mean.

use ratatui::style::{Color, Style};

use super::View;
use super::canvas::Canvas;
use crate::app::Scroll;
use crate::glyphs::Glyph;
use crate::keys::{self, Binding, Where};
use crate::text;

/// From this width on keys and legend stand beside each other.
const TWO_COLUMNS: u16 = 76;
/// Columns of the legend.
const LEGEND: u16 = 25;
/// Columns of the names of keys.
const KEYS: u16 = 14;

/// One line of the help.
enum Row {
    Title(&'static str),
    Keys(&'static Binding),
    Sign(Glyph, String),
    Blank,
}

pub(super) fn draw(canvas: &mut Canvas<'_>, down: usize, view: View<'_>) -> Scroll {
    let (keys, legend) = (key_rows(), legend_rows(view));
    let page = usize::from(canvas.height());
    if canvas.width() < TWO_COLUMNS {
        let all: Vec<_> = keys.into_iter().chain([Row::Blank]).chain(legend).collect();
        let limit = all.len().saturating_sub(page);
        draw_rows(canvas, &all, down.min(limit), view);
        return Scroll { limit, page };
    }
    let limit = keys.len().max(legend.len()).saturating_sub(page);
    let first = down.min(limit);
    let left = canvas.width() - LEGEND - 1;
    draw_rows(&mut canvas.column(0, left), &keys, first, view);
    draw_rows(&mut canvas.column(left + 1, LEGEND), &legend, first, view);
    Scroll { limit, page }
}

fn key_rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for place in Where::ALL {
        if !rows.is_empty() {
            rows.push(Row::Blank);
        }
        rows.push(Row::Title(place.title()));
        rows.extend(keys::rows(place).map(Row::Keys));
    }
    rows
}

fn legend_rows(view: View<'_>) -> Vec<Row> {
    let legend = view.glyphs.legend(view.client.mirror().content());
    let signs = legend.into_iter().map(|entry| Row::Sign(entry.glyph, entry.title));
    [Row::Title("on the map")].into_iter().chain(signs).collect()
}

fn draw_rows(canvas: &mut Canvas<'_>, rows: &[Row], first: usize, view: View<'_>) {
    for (y, row) in (0..canvas.height()).zip(rows.iter().skip(first)) {
        match row {
            Row::Title(title) => canvas.heading(y, title, view.theme),
            Row::Keys(binding) => draw_keys(canvas, y, binding, view),
            Row::Sign(glyph, title) => {
                let sign = view.theme.pick(glyph.sign, glyph.ascii);
                canvas.sign(1, y, sign, view.theme.ink(glyph.colour));
                canvas.text(3, y, title, Style::new());
            }
            Row::Blank => {}
        }
    }
}

fn draw_keys(canvas: &mut Canvas<'_>, y: u16, binding: &Binding, view: View<'_>) {
    let names: Vec<_> = binding.keys.iter().map(|key| key.name(view.theme.ascii)).collect();
    let end = canvas.text(1, y, &names.join(" "), view.theme.strong(Color::White));
    let start = (end + 1).max(KEYS);
    let room = usize::from(canvas.width().saturating_sub(start));
    canvas.text(start, y, &text::cut(binding.text, room, view.theme.mark()), Style::new());
}
