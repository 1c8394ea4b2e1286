//! The caves: tiles, who and what is there, and what was just said.

use caves_game::client::Shown;
use caves_game::mirror::{Figure, Sight};
use caves_world::{Class, Direction, EntityId, Pos};
use ratatui::style::{Color, Modifier, Style};

use super::View;
use super::canvas::Canvas;
use crate::app::{Mode, Verb};
use crate::{around, text};

/// Columns of what somebody says, above the head; the rest stands in the messages.
const SPEECH: usize = 24;

pub(super) fn draw(canvas: &mut Canvas<'_>, view: View<'_>) {
    let Some(here) = view.client.position() else {
        return draw_waiting(canvas, view);
    };
    let camera = Camera { here, width: canvas.width(), height: canvas.height() };
    draw_tiles(canvas, camera, view);
    draw_figures(canvas, camera, view);
    draw_speech(canvas, camera, view);
    draw_marks(canvas, camera, view);
}

/// Which tiles the map shows: the player stands in its middle.
#[derive(Clone, Copy)]
struct Camera {
    here: Pos,
    width: u16,
    height: u16,
}

impl Camera {
    fn pos(self, x: u16, y: u16) -> Pos {
        let (left, above) = (i32::from(self.width / 2), i32::from(self.height / 2));
        self.here.offset(i32::from(x) - left, i32::from(y) - above)
    }

    /// The cell of a tile; `None` where the map does not reach.
    fn cell(self, pos: Pos) -> Option<(u16, u16)> {
        let corner = self.pos(0, 0);
        let x = u16::try_from(pos.x.checked_sub(corner.x)?).ok()?;
        let y = u16::try_from(pos.y.checked_sub(corner.y)?).ok()?;
        (x < self.width && y < self.height).then_some((x, y))
    }
}

/// Before there is anything to see.
fn draw_waiting(canvas: &mut Canvas<'_>, view: View<'_>) {
    let state = super::connection::state(view);
    let words = state.map_or_else(|| "The caves open in a moment.".to_owned(), |state| state.text);
    let width = usize::from(canvas.width().saturating_sub(4)).min(60);
    let lines = text::wrap(&words, width);
    let top = canvas.height().saturating_sub(lines.len() as u16) / 2;
    for (row, line) in (top..).zip(&lines) {
        let x = usize::from(canvas.width()).saturating_sub(text::width(line)) / 2;
        canvas.text(x as u16, row, line, view.theme.strong(Color::Reset));
    }
}

fn draw_tiles(canvas: &mut Canvas<'_>, camera: Camera, view: View<'_>) {
    for y in 0..camera.height {
        for x in 0..camera.width {
            let (tile, is_seen) = match view.client.mirror().sight(camera.pos(x, y)) {
                Sight::Unseen => continue,
                Sight::Remembered(tile) => (tile, false),
                Sight::InView(tile) => (tile, true),
            };
            let glyph = view.glyphs.tile(tile);
            let style = if is_seen { view.theme.ink(glyph.colour) } else { view.theme.faint() };
            canvas.sign(x, y, view.theme.pick(glyph.sign, glyph.ascii), style);
        }
    }
}

/// Things below creatures, creatures below players, and oneself on top. All that moves is drawn
/// where it was a moment ago, on its way from one update to the next.
fn draw_figures(canvas: &mut Canvas<'_>, camera: Camera, view: View<'_>) {
    let mirror = view.client.mirror();
    let me = mirror.me().map(|me| me.id);
    let shown = view.client.shown_at(view.now);
    let mut shown: Vec<_> = shown.filter(|of| Some(of.figure.id) != me).collect();
    shown.sort_by_key(|of| {
        let class = around::class(mirror, of.figure);
        (class == Some(Class::Player), class == Some(Class::Monster), of.figure.id)
    });
    for Shown { figure, place } in shown {
        if let Some((x, y)) = camera.cell(place.tile()) {
            let glyph = view.glyphs.kind(figure.kind);
            canvas.sign(x, y, view.theme.pick(glyph.sign, glyph.ascii), style(figure, view));
        }
    }
    let (x, y) = (camera.width / 2, camera.height / 2);
    let mine = view.theme.strong(Color::White);
    let mine = if view.theme.colour { mine } else { mine.add_modifier(Modifier::REVERSED) };
    canvas.sign(x, y, '@', mine);
}

/// How a figure is drawn, on the map and in lists.
pub(super) fn style(figure: &Figure, view: View<'_>) -> Style {
    if figure.is_hostile {
        return view.theme.strong(Color::LightRed);
    }
    let colour = view.glyphs.kind(figure.kind).colour;
    match around::class(view.client.mirror(), figure) {
        Some(Class::Player | Class::Monster) => view.theme.strong(colour),
        _ => view.theme.ink(colour),
    }
}

fn draw_speech(canvas: &mut Canvas<'_>, camera: Camera, view: View<'_>) {
    for Shown { figure, place } in view.client.shown_at(view.now) {
        let Some(speech) = &figure.speech else { continue };
        let Some((x, y)) = camera.cell(place.tile()) else { continue };
        let Some(row) = y.checked_sub(1) else { continue };
        let bubble = bubble(speech, view);
        let width = text::width(&bubble) as u16;
        let left = x.saturating_sub(width / 2).min(camera.width.saturating_sub(width));
        canvas.text(
            left,
            row,
            &bubble,
            view.theme.ink(Color::White).add_modifier(Modifier::REVERSED),
        );
    }
}

/// What is said, cut short. Scripts about whose width terminals disagree would move the map, so
/// that only the fact is shown of them.
fn bubble(speech: &str, view: View<'_>) -> String {
    let sure =
        |c: char| c < '\u{530}' && text::char_width(c) == 1 && (c.is_ascii() || !view.theme.ascii);
    let words = if speech.chars().all(sure) { speech } else { view.theme.pick("…", "...") };
    format!(" {} ", text::cut(words, SPEECH, view.theme.mark()))
}

/// What is looked at, or the tiles that a direction would mean.
fn draw_marks(canvas: &mut Canvas<'_>, camera: Camera, view: View<'_>) {
    let marked = match &view.app.mode {
        Mode::Look { target } => position_of(*target, view).into_iter().collect(),
        Mode::Aim(Verb::Interact) => around::within_reach(view.client.mirror(), camera.here)
            .into_iter()
            .map(|of| of.pos)
            .collect(),
        Mode::Aim(_) => Direction::ALL.map(|way| camera.here.step(way)).to_vec(),
        _ => Vec::new(),
    };
    for (x, y) in marked.into_iter().filter_map(|pos| camera.cell(pos)) {
        canvas.restyle(x, y, Style::new().add_modifier(Modifier::REVERSED));
    }
}

fn position_of(target: EntityId, view: View<'_>) -> Option<Pos> {
    let shown = view.client.shown_at(view.now).find(|of| of.figure.id == target);
    shown.map(|of| of.place.tile())
}
