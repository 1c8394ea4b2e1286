//! What is looked at, in detail.

use caves_game::mirror::{Details, Figure};
use caves_world::{Class, EntityId, Pos};
use ratatui::style::{Color, Style};

use super::canvas::Canvas;
use super::{View, map, status};
use crate::{around, text};

pub(super) fn draw(canvas: &mut Canvas<'_>, target: EntityId, view: View<'_>) {
    let mirror = view.client.mirror();
    let Some(here) = view.client.position() else { return };
    blank(canvas);
    let list = around::nearest(mirror, here);
    let place = list.iter().position(|of| of.id == target);
    let title = place.map_or_else(
        || "looking".to_owned(),
        |place| format!("looking, {} of {}", place + 1, list.len()),
    );
    canvas.heading(0, &title, view.theme);
    let mut rows = canvas.below(1);
    match mirror.figure(target) {
        Some(figure) => draw_figure(&mut rows, figure, here, view),
        None => {
            rows.text(0, 0, "out of view", view.theme.faint());
        }
    }
}

/// Where this covers the map.
pub(super) fn blank(canvas: &mut Canvas<'_>) {
    for y in 0..canvas.height() {
        for x in 0..canvas.width() {
            canvas.sign(x, y, ' ', Style::reset());
        }
    }
}

fn draw_figure(canvas: &mut Canvas<'_>, figure: &Figure, here: Pos, view: View<'_>) {
    let mirror = view.client.mirror();
    let width = usize::from(canvas.width());
    let glyph = view.glyphs.kind(figure.kind);
    let style = map::style(figure, view);
    canvas.sign(0, 0, view.theme.pick(glyph.sign, glyph.ascii), style);
    let room = width.saturating_sub(2);
    let kind = kind(figure, view);
    let title = figure.name.as_ref().unwrap_or(&kind);
    canvas.text(2, 0, &text::cut(title, room, view.theme.mark()), style);
    let mut y = 1;
    let mut row = |canvas: &mut Canvas<'_>, words: &str, style| {
        for line in text::wrap(words, width) {
            canvas.text(0, y, &line, style);
            y = y.saturating_add(1);
        }
    };
    let place = place(figure, here);
    let line = if figure.name.is_some() { format!("{kind}, {place}") } else { place };
    row(canvas, &line, Style::new());
    if figure.hp_max > 0 {
        let numbers = format!("hp {}/{}  elo {}", figure.hp, figure.hp_max, figure.elo);
        row(canvas, &numbers, status::hp_style(figure, view));
    }
    let words = around::status_words(figure.status);
    if !words.is_empty() {
        row(canvas, &words.join(", "), Style::new());
    }
    let Some(details) = mirror.details(figure.id) else {
        return row(canvas, view.theme.pick("…", "..."), view.theme.faint());
    };
    for line in told(details, view) {
        row(canvas, &line, view.theme.ink(Color::LightCyan));
    }
}

/// "hostile cave rat".
fn kind(figure: &Figure, view: View<'_>) -> String {
    let kind = around::kind(view.client.mirror(), figure.kind);
    match around::class(view.client.mirror(), figure) {
        _ if figure.is_hostile => format!("hostile {kind}"),
        Some(Class::Monster) => format!("harmless {kind}"),
        _ => kind,
    }
}

/// "5 steps NE".
fn place(figure: &Figure, here: Pos) -> String {
    let Some(way) = around::compass(here, figure.pos) else { return "where you stand".to_owned() };
    let steps = around::steps(here, figure.pos);
    let plural = if steps == 1 { "" } else { "s" };
    format!("{steps} step{plural} {}", way.letters())
}

/// What the server told about it.
fn told(details: &Details, view: View<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(text) = &details.sign_text {
        lines.push(format!("It reads: {text}"));
    }
    match details.inventory.as_deref() {
        Some([]) => lines.push("It is empty.".to_owned()),
        Some(items) => {
            let list: Vec<_> = items
                .iter()
                .map(|(item, count)| {
                    format!("{count} {}", around::kind(view.client.mirror(), *item))
                })
                .collect();
            lines.push(format!("It holds {}.", list.join(", ")));
        }
        None => {}
    }
    lines.extend(details.dialogue.iter().cloned());
    lines
}
