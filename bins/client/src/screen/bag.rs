//! What the player carries.

use ratatui::style::{Modifier, Style};

use super::canvas::Canvas;
use super::{View, look};
use crate::{around, text};

pub(super) fn draw(canvas: &mut Canvas<'_>, row: usize, view: View<'_>) {
    look::blank(canvas);
    canvas.heading(0, "inventory", view.theme);
    let mirror = view.client.mirror();
    let told = mirror.me().and_then(|me| mirror.details(me.id));
    let Some(details) = told else {
        canvas.text(0, 1, view.theme.pick("…", "..."), view.theme.faint());
        return;
    };
    let items = details.inventory.as_deref().unwrap_or_default();
    if items.is_empty() {
        canvas.text(0, 1, "You carry nothing.", view.theme.faint());
        return;
    }
    let row = row.min(items.len() - 1);
    let mut rows = canvas.below(1);
    let height = usize::from(rows.height());
    // The chosen row is always shown.
    let first = (row + 1).saturating_sub(height);
    for (y, at) in (0..rows.height()).zip(first..items.len()) {
        let (item, count) = items[at];
        let glyph = view.glyphs.kind(item);
        let room = usize::from(rows.width().saturating_sub(8));
        let title = text::cut(&around::kind(mirror, item), room, view.theme.mark());
        rows.text(0, y, if at == row { ">" } else { " " }, Style::new());
        rows.sign(2, y, view.theme.pick(glyph.sign, glyph.ascii), view.theme.ink(glyph.colour));
        rows.text(4, y, &format!("{count:>3} {title}"), Style::new());
        if at == row {
            rows.restyle_row(y, Style::new().add_modifier(Modifier::REVERSED));
        }
    }
}
