//! The first line: the server, and how well one hears it.

use std::time::Duration;

use caves_session::caves::{ClientEnd, ClientStatus};
use ratatui::style::Style;

use super::View;
use super::canvas::Canvas;
use crate::app::Home;
use crate::text;

/// Silence of this length is worth a word (protocol, section 5).
const SILENCE: Duration = Duration::from_secs(1);

/// How the connection stands where it is not simply well.
pub(super) struct State {
    pub(super) text: String,
    is_bad: bool,
}

/// What there is to say about the connection; nothing when all is well.
pub(super) fn state(view: View<'_>) -> Option<State> {
    let bad = |text| Some(State { text, is_bad: true });
    let silent = view.app.silence(view.now);
    match view.client.status(view.now) {
        ClientStatus::Playing { silence, recovering } if silence >= SILENCE => {
            let doing = if recovering { ", looking for the server" } else { "" };
            bad(format!("no answer for {} s{doing}", silence.as_secs()))
        }
        ClientStatus::Playing { .. } if view.client.misses_chunks() => {
            Some(State { text: "receiving the map".to_owned(), is_bad: false })
        }
        ClientStatus::Playing { .. } => None,
        ClientStatus::Waiting { until } => {
            let left = until.saturating_since(view.now).as_millis().div_ceil(1000);
            let why = view.app.trouble.as_deref().unwrap_or("Not let in");
            bad(format!("{why}; trying again in {left} s"))
        }
        ClientStatus::Joining if silent >= SILENCE => {
            bad(format!("no answer from {} for {} s, still asking", place(view), silent.as_secs()))
        }
        ClientStatus::Joining => {
            Some(State { text: format!("joining {}", place(view)), is_bad: false })
        }
        ClientStatus::Ended(ClientEnd::Quit) => {
            Some(State { text: "leaving".to_owned(), is_bad: false })
        }
        ClientStatus::Ended(_) => bad("the server ended the session".to_owned()),
    }
}

fn place(view: View<'_>) -> &str {
    match &view.app.home {
        Home::Alone { .. } => "the server inside",
        Home::Server { address } => address,
    }
}

pub(super) fn draw(canvas: &mut Canvas<'_>, view: View<'_>) {
    let state = state(view);
    // What is measured means nothing while nothing comes.
    let is_bad = state.as_ref().is_some_and(|state| state.is_bad);
    let right = if is_bad { String::new() } else { fitting_numbers(canvas.width(), view) };
    let start = canvas.text_right(canvas.width(), 0, &right, view.theme.faint());
    let mut left = canvas.column(0, start.saturating_sub(1));
    let mut x = 1;
    if let Some(state) = state {
        let style = if state.is_bad { view.theme.alarm() } else { Style::new() };
        x = left.text(x, 0, &format!(" {} ", state.text), style) + 1;
    }
    let room = usize::from(left.width().saturating_sub(x));
    let name = text::cut(&name(view), room, view.theme.mark());
    left.text(x, 0, &name, view.theme.strong(ratatui::style::Color::Reset));
}

fn name(view: View<'_>) -> String {
    match &view.app.home {
        Home::Alone { .. } => "Forgotten Caves, alone".to_owned(),
        Home::Server { address } => match view.client.server_name() {
            "" => address.clone(),
            name => format!("{name} ({address})"),
        },
    }
}

/// Round trip, loss and tick: as many of them as leave half of the line free.
fn fitting_numbers(width: u16, view: View<'_>) -> String {
    let numbers = [
        view.client.round_trip().map(milliseconds),
        view.client.loss_percent().map(|percent| format!("loss {percent}%")),
        view.client.tick().map(|tick| format!("tick {}", tick.get())),
    ];
    let gap = if view.theme.ascii { " | " } else { " · " };
    let mut line = String::new();
    for number in numbers.into_iter().flatten() {
        let longer = if line.is_empty() { number } else { format!("{line}{gap}{number}") };
        if text::width(&longer) + 1 > usize::from(width / 2) {
            break;
        }
        line = longer;
    }
    if line.is_empty() { line } else { line + " " }
}

/// As precise as it is interesting.
fn milliseconds(time: Duration) -> String {
    let micros = time.as_micros();
    if micros < 1_000 {
        "<1 ms".to_owned()
    } else if micros < 10_000 {
        format!("{}.{} ms", micros / 1000, micros % 1000 / 100)
    } else {
        format!("{} ms", micros / 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_times_have_a_decimal() {
        assert_eq!(milliseconds(Duration::from_micros(999)), "<1 ms");
        assert_eq!(milliseconds(Duration::from_micros(1_340)), "1.3 ms");
        assert_eq!(milliseconds(Duration::from_micros(9_999)), "9.9 ms");
        assert_eq!(milliseconds(Duration::from_micros(10_000)), "10 ms");
        assert_eq!(milliseconds(Duration::from_millis(1_234)), "1234 ms");
    }
}
