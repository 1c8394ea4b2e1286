//! The last line: keys, questions, and what is typed.

use ratatui::style::{Color, Modifier, Style};

use super::View;
use super::canvas::Canvas;
use crate::app::Mode;
use crate::keys;
use crate::line::Line;
use crate::text;

/// When fewer bytes than this are left to say, that is told.
const FEW_BYTES: usize = 40;

/// Draws it, and gives the place of the cursor where there is one, as the whole screen counts.
pub(super) fn draw(canvas: &mut Canvas<'_>, view: View<'_>) -> Option<(u16, u16)> {
    match (&view.app.mode, view.app.remark()) {
        (Mode::Say(line), None) => return draw_line(canvas, line, view),
        (_, Some(remark)) => {
            canvas.text(1, 0, remark, view.theme.ink(Color::LightYellow));
        }
        (Mode::Aim(verb), None) => {
            let words = format!("{} An arrow, or hjkl.", verb.question());
            hints(canvas, &words, view.theme.strong(Color::LightYellow), view);
        }
        (Mode::Quit { .. }, None) => {
            hints(canvas, "Leave the caves?", view.theme.alarm(), view);
        }
        _ => hints(canvas, "", Style::new(), view),
    }
    None
}

/// A question, if there is one, and the keys that are worth a word.
fn hints(canvas: &mut Canvas<'_>, question: &str, style: Style, view: View<'_>) {
    let mut x = canvas.text(1, 0, question, style);
    for (key, hint) in keys::hints(view.app.mode.place(), view.theme.ascii) {
        let columns = text::width(&key) + 1 + text::width(hint) + 1;
        if usize::from(x) + columns > usize::from(canvas.width()) {
            break;
        }
        let gap = if x > 1 { 2 } else { 0 };
        x = canvas.text(x + gap, 0, &key, view.theme.strong(Color::White));
        x = canvas.text(x + 1, 0, hint, view.theme.faint());
    }
}

/// What is typed. A long line moves to the left, so that the cursor is always in sight.
fn draw_line(canvas: &mut Canvas<'_>, line: &Line, view: View<'_>) -> Option<(u16, u16)> {
    let mut end = canvas.width();
    if line.room() < FEW_BYTES {
        let left = format!(" {} left", line.room());
        end = canvas.text_right(end, 0, &left, view.theme.faint());
    }
    let start = canvas.text(1, 0, "Say: ", view.theme.strong(Color::LightCyan));
    let mut part = canvas.column(start, end.saturating_sub(start));
    let room = usize::from(part.width());
    let hidden = hidden(line.before(), room);
    part.text(0, 0, &line.text()[hidden..], Style::new());
    let at = text::width(&line.before()[hidden..]) as u16;
    let area = part.area();
    // Where the cursor itself cannot be placed there is nothing to type into.
    (at < area.width && area.height > 0).then(|| {
        part.restyle(at, 0, Style::new().add_modifier(Modifier::UNDERLINED));
        (area.x + at, area.y)
    })
}

/// Bytes of the start that must not be shown for the cursor to fit behind the rest.
fn hidden(before: &str, room: usize) -> usize {
    let fits = |at: &usize| text::width(&before[*at..]) < room;
    before.char_indices().map(|(at, _)| at).chain([before.len()]).find(fits).unwrap_or(before.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_always_has_a_column() {
        assert_eq!(hidden("hello", 6), 0);
        assert_eq!(hidden("hello", 5), 1);
        assert_eq!(hidden("世界", 4), 3);
        assert_eq!(hidden("世界", 1), 6);
        assert_eq!(hidden("hello", 0), 5);
        assert_eq!(hidden("", 0), 0);
    }
}
