//! Oneself: name, hit points, rating, place, state.

use caves_game::mirror::Figure;
use caves_world::Pos;
use ratatui::style::{Color, Style};

use super::View;
use super::canvas::Canvas;
use super::layout::Areas;
use crate::app::Home;
use crate::{around, text};

pub(super) fn draw(canvas: &mut Canvas<'_>, areas: &Areas, view: View<'_>) {
    let mut part = canvas.part(areas.me);
    let (Some(me), Some(here)) = (view.client.mirror().me(), view.client.position()) else {
        return;
    };
    if areas.has_side() {
        draw_rows(&mut part, me, here, view);
    } else {
        draw_line(&mut part, me, here, view);
    }
}

fn draw_rows(canvas: &mut Canvas<'_>, me: &Figure, here: Pos, view: View<'_>) {
    let width = usize::from(canvas.width());
    let name = text::cut(&around::label(view.client.mirror(), me), width, view.theme.mark());
    canvas.text(0, 0, &name, view.theme.strong(Color::White));
    bar(canvas, 1, me, view);
    canvas.text(0, 2, &format!("elo {}", me.elo), Style::new());
    canvas.text(10, 2, &place(here), Style::new());
    words(canvas, 0, 3, me, view);
    if let Home::Alone { seed, is_kept } = view.app.home {
        canvas.text(0, 4, &format!("seed {seed:#018x}"), view.theme.faint());
        let kept = if is_kept { "this world is kept" } else { "this world is not kept" };
        canvas.text(0, 5, kept, view.theme.faint());
    }
}

/// The same in one line.
fn draw_line(canvas: &mut Canvas<'_>, me: &Figure, here: Pos, view: View<'_>) {
    let hp = format!("hp {}/{}", me.hp, me.hp_max);
    let x = canvas.text(0, 0, &hp, hp_style(me, view));
    let x = canvas.text(x + 1, 0, &format!("elo {} {}", me.elo, place(here)), Style::new());
    words(canvas, x + 1, 0, me, view);
}

fn place(here: Pos) -> String {
    format!("at {}, {}", here.x, here.y)
}

/// Hit points as a bar and in numbers.
fn bar(canvas: &mut Canvas<'_>, y: u16, me: &Figure, view: View<'_>) {
    let style = hp_style(me, view);
    let numbers = format!(" {}/{}", me.hp, me.hp_max);
    let end = canvas.text_right(canvas.width(), y, &numbers, style);
    let start = canvas.text(0, y, "hp ", Style::new());
    let full = start + filled(end.saturating_sub(start), me.hp, me.hp_max);
    for x in start..end {
        let (sign, style) = if x < full {
            (view.theme.pick('█', '#'), style)
        } else {
            (view.theme.pick('░', '-'), view.theme.faint())
        };
        canvas.sign(x, y, sign, style);
    }
}

/// How much of a bar is filled: nothing only for nothing, all only for all.
fn filled(width: u16, hp: u16, hp_max: u16) -> u16 {
    if hp == 0 || width == 0 {
        return 0;
    }
    if hp >= hp_max {
        return width;
    }
    let part = u32::from(width) * u32::from(hp) / u32::from(hp_max);
    (part as u16).clamp(1, (width - 1).max(1))
}

pub(super) fn hp_style(of: &Figure, view: View<'_>) -> Style {
    let (hp, most) = (u32::from(of.hp), u32::from(of.hp_max));
    view.theme.ink(if hp * 3 <= most {
        Color::LightRed
    } else if hp * 3 <= most * 2 {
        Color::LightYellow
    } else {
        Color::LightGreen
    })
}

fn words(canvas: &mut Canvas<'_>, x: u16, y: u16, of: &Figure, view: View<'_>) {
    let mut x = x;
    for word in around::status_words(of.status) {
        let colour = match word.as_str() {
            "fighting" => Color::LightRed,
            "safe" => Color::LightGreen,
            _ => Color::LightYellow,
        };
        x = canvas.text(x, y, &word, view.theme.strong(colour)) + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_empty_only_when_dead_and_full_only_when_unhurt() {
        assert_eq!(filled(20, 0, 20), 0);
        assert_eq!(filled(20, 10, 20), 10);
        assert_eq!(filled(20, 1, 1000), 1);
        assert_eq!(filled(20, 999, 1000), 19);
        assert_eq!(filled(20, 20, 20), 20);
        assert_eq!(filled(20, 30, 20), 20);
        assert_eq!(filled(20, 0, 0), 0);
        assert_eq!(filled(0, 5, 20), 0);
        assert_eq!(filled(1, 5, 20), 1);
    }
}
