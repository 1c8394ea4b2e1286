//! Messages: the newest below, all of them on request.

use caves_game::mirror::{Message, MessageKind};
use ratatui::style::{Color, Style};

use super::View;
use super::canvas::Canvas;
use crate::app::Scroll;
use crate::text;

/// The newest messages, as many as fit.
pub(super) fn draw(canvas: &mut Canvas<'_>, view: View<'_>) {
    let room = usize::from(canvas.height());
    let mut lines = Vec::new();
    for message in view.client.mirror().messages().iter().rev() {
        if lines.len() >= room {
            break;
        }
        lines.extend(wrapped(message, canvas.width(), view).into_iter().rev());
    }
    lines.truncate(room);
    let first = room - lines.len();
    for (y, (line, style)) in (first as u16..).zip(lines.iter().rev()) {
        canvas.text(1, y, line, *style);
    }
}

/// All messages, `up` lines from the newest.
pub(super) fn draw_history(canvas: &mut Canvas<'_>, up: usize, view: View<'_>) -> Scroll {
    canvas.heading(0, "messages", view.theme);
    let mut rows = canvas.below(1);
    let messages = view.client.mirror().messages();
    let lines: Vec<_> =
        messages.iter().flat_map(|message| wrapped(message, rows.width(), view)).collect();
    let page = usize::from(rows.height());
    let limit = lines.len().saturating_sub(page);
    let first = limit - up.min(limit);
    for (y, (line, style)) in (0..rows.height()).zip(lines.iter().skip(first)) {
        rows.text(1, y, line, *style);
    }
    Scroll { limit, page }
}

/// A message in lines; all but the first are indented.
fn wrapped(message: &Message, width: u16, view: View<'_>) -> Vec<(String, Style)> {
    let room = usize::from(width.saturating_sub(3)).max(1);
    let said = message.kind == MessageKind::Chat;
    let words = match (&message.from, said) {
        (Some(name), _) => format!("{name}: {}", message.text),
        (None, true) => format!("somebody: {}", message.text),
        (None, false) => message.text.clone(),
    };
    let style = style(message.kind, view);
    let lines = text::wrap(&words, room).into_iter().enumerate();
    lines.map(|(i, line)| (if i == 0 { line } else { format!("  {line}") }, style)).collect()
}

fn style(kind: MessageKind, view: View<'_>) -> Style {
    match kind {
        MessageKind::Chat => view.theme.strong(Color::LightCyan),
        MessageKind::Notice => view.theme.ink(Color::LightYellow),
        MessageKind::Combat => view.theme.ink(Color::Red),
        MessageKind::Local => view.theme.ink(Color::Gray),
    }
}
