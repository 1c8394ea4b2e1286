//! The screen as a function: from what the client knows to cells.

mod bag;
mod canvas;
mod connection;
mod help;
mod layout;
mod log;
mod look;
mod map;
mod near;
mod prompt;
mod status;

use caves_game::Client;
use caves_link::time::Instant;
use ratatui::Frame;
use ratatui::layout::Position;

use crate::app::{App, Mode, Scroll};
use crate::glyphs::Glyphs;
use crate::theme::Theme;
use canvas::Canvas;
use layout::Areas;

/// All that the screen shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'v> {
    pub(crate) app: &'v App,
    pub(crate) client: &'v Client,
    pub(crate) theme: Theme,
    pub(crate) glyphs: &'v Glyphs,
    pub(crate) now: Instant,
}

/// Draws all of it into the area that the frame has, and tells how far one can scroll.
pub(crate) fn draw(frame: &mut Frame<'_>, view: View<'_>) -> Scroll {
    let areas = Areas::of(frame.area());
    let mut canvas = Canvas::new(frame.buffer_mut(), areas.all);
    connection::draw(&mut canvas.part(areas.top), view);
    let scroll = draw_middle(&mut canvas, &areas, view);
    let cursor = prompt::draw(&mut canvas.part(areas.bottom), view);
    if view.theme.ascii {
        canvas.make_ascii();
    }
    if let Some((x, y)) = cursor {
        frame.set_cursor_position(Position { x, y });
    }
    scroll
}

/// All between the first line and the last.
fn draw_middle(canvas: &mut Canvas<'_>, areas: &Areas, view: View<'_>) -> Scroll {
    let mode = match &view.app.mode {
        // The question stands below what was there before.
        Mode::Quit { back } => back,
        mode => mode,
    };
    match mode {
        Mode::Help { down } => return help::draw(&mut canvas.part(areas.middle), *down, view),
        Mode::Log { up } => return log::draw_history(&mut canvas.part(areas.middle), *up, view),
        _ => {}
    }
    map::draw(&mut canvas.part(areas.map), view);
    status::draw(canvas, areas, view);
    log::draw(&mut canvas.part(areas.log), view);
    canvas.rule_across(areas.rule, view.theme);
    canvas.rule_down(areas.edge, view.theme);
    let mut side = canvas.part(areas.side);
    match mode {
        Mode::Look { target } => look::draw(&mut side, *target, view),
        Mode::Bag { row } => bag::draw(&mut side, *row, view),
        _ if areas.has_side() => near::draw(&mut side, view),
        _ => {}
    }
    Scroll::default()
}

#[cfg(test)]
mod tests;
