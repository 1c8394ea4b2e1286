//! Who and what is near, nearest first.

use caves_game::mirror::Figure;
use caves_world::Pos;
use ratatui::style::Style;

use super::canvas::Canvas;
use super::{View, map, status};
use crate::{around, text};

pub(super) fn draw(canvas: &mut Canvas<'_>, view: View<'_>) {
    let Some(here) = view.client.position() else { return };
    canvas.heading(0, "in view", view.theme);
    let list = around::nearest(view.client.mirror(), here);
    let mut rows = canvas.below(1);
    if list.is_empty() {
        rows.text(0, 0, "nobody and nothing", view.theme.faint());
    }
    let room = usize::from(rows.height());
    let fits = if list.len() > room { room.saturating_sub(1) } else { list.len() };
    let (shown, left_out) = (chosen(&list, fits), list.len() - fits);
    for (y, figure) in (0..).zip(shown) {
        draw_row(&mut rows, y, figure, here, view);
    }
    if left_out > 0 {
        rows.text(0, fits as u16, &format!("and {left_out} more"), view.theme.faint());
    }
}

/// So many of a list: who moves goes before what lies about, and the order stays.
fn chosen<'m>(list: &[&'m Figure], count: usize) -> Vec<&'m Figure> {
    let mut by_worth: Vec<_> = list.iter().copied().enumerate().collect();
    by_worth.sort_by_key(|(_, figure)| figure.hp_max == 0);
    by_worth.truncate(count);
    by_worth.sort_by_key(|(place, _)| *place);
    by_worth.into_iter().map(|(_, figure)| figure).collect()
}

/// Glyph, name, hit points, steps and direction.
fn draw_row(canvas: &mut Canvas<'_>, y: u16, figure: &Figure, here: Pos, view: View<'_>) {
    let glyph = view.glyphs.kind(figure.kind);
    let style = map::style(figure, view);
    canvas.sign(0, y, view.theme.pick(glyph.sign, glyph.ascii), style);
    let mut end =
        canvas.text_right(canvas.width(), y, &bearing(here, figure.pos, view), Style::new());
    if figure.hp_max > 0 {
        let hp = format!("{}/{} ", figure.hp, figure.hp_max);
        end = canvas.text_right(end, y, &hp, status::hp_style(figure, view));
    }
    let room = usize::from(end.saturating_sub(3));
    let name = text::cut(&around::label(view.client.mirror(), figure), room, view.theme.mark());
    canvas.text(2, y, &name, style);
}

/// "12 ↗", right-aligned in a fixed width so that the columns stay.
pub(super) fn bearing(here: Pos, there: Pos, view: View<'_>) -> String {
    match around::compass(here, there) {
        None => format!("{:>5}", "here"),
        Some(way) if view.theme.ascii => {
            format!("{:>2} {:<2}", around::steps(here, there), way.letters())
        }
        Some(way) => format!("{:>3} {}", around::steps(here, there), way.arrow()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caves_world::{EntityId, KindId};

    #[test]
    fn a_ghoul_is_listed_before_all_the_stones_that_are_nearer() {
        let figure = |id, hp_max| Figure {
            id: EntityId(id),
            kind: KindId(4),
            pos: Pos { x: 0, y: 0 },
            hp: hp_max,
            hp_max,
            elo: 0,
            is_static: hp_max == 0,
            is_hostile: hp_max > 0,
            is_interactable: false,
            status: 0,
            name: None,
            speech: None,
        };
        let list = [figure(1, 0), figure(2, 6), figure(3, 0), figure(4, 0), figure(5, 14)];
        let list: Vec<_> = list.iter().collect();
        let ids = |count| chosen(&list, count).iter().map(|of| of.id.0).collect::<Vec<_>>();
        assert_eq!(ids(5), [1, 2, 3, 4, 5]);
        assert_eq!(ids(3), [1, 2, 5]);
        assert_eq!(ids(1), [2]);
        assert_eq!(ids(0), Vec::<u32>::new());
    }
}
