//! Who and what is around, and how one speaks of it.

use caves_game::Mirror;
use caves_game::mirror::Figure;
use caves_world::{Class, Direction, KindId, Pos, STATUS_FIGHTING, STATUS_SAFE};

/// Everybody and everything in view but oneself, nearest first.
pub(crate) fn nearest(mirror: &Mirror, here: Pos) -> Vec<&Figure> {
    let me = mirror.me().map(|me| me.id);
    let mut list: Vec<_> = mirror.figures().iter().filter(|of| Some(of.id) != me).collect();
    list.sort_by_key(|of| (steps(here, of.pos), of.id));
    list
}

/// What one can interact with from `here`, without looking further than one step.
pub(crate) fn within_reach(mirror: &Mirror, here: Pos) -> Vec<&Figure> {
    let usable = |of: &&Figure| of.is_interactable && here.is_adjacent_or_same(of.pos);
    mirror.figures().iter().filter(usable).collect()
}

/// Steps from one tile to another, were there nothing in the way.
pub(crate) fn steps(from: Pos, to: Pos) -> u32 {
    from.x.abs_diff(to.x).saturating_add(from.y.abs_diff(to.y))
}

/// Where `to` lies as seen from `from`: one of eight, or `None` for the same tile. A direction
/// counts as straight when the other axis is less than half of it.
pub(crate) fn compass(from: Pos, to: Pos) -> Option<Compass> {
    let (x, y) = (i64::from(to.x) - i64::from(from.x), i64::from(to.y) - i64::from(from.y));
    let (far_x, far_y) = (x.abs() * 2 > y.abs(), y.abs() * 2 > x.abs());
    let column = if far_x { x.signum() } else { 0 };
    let row = if far_y { y.signum() } else { 0 };
    (x != 0 || y != 0).then_some(Compass { column, row })
}

/// One of eight directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Compass {
    column: i64,
    row: i64,
}

impl Compass {
    pub(crate) const fn arrow(self) -> &'static str {
        match (self.column, self.row) {
            (0, -1) => "↑",
            (1, -1) => "↗",
            (1, 0) => "→",
            (1, 1) => "↘",
            (0, 1) => "↓",
            (-1, 1) => "↙",
            (-1, 0) => "←",
            _ => "↖",
        }
    }

    pub(crate) const fn letters(self) -> &'static str {
        match (self.column, self.row) {
            (0, -1) => "N",
            (1, -1) => "NE",
            (1, 0) => "E",
            (1, 1) => "SE",
            (0, 1) => "S",
            (-1, 1) => "SW",
            (-1, 0) => "W",
            _ => "NW",
        }
    }
}

/// What people call a kind.
pub(crate) fn kind(mirror: &Mirror, id: KindId) -> String {
    mirror.content().kind(id).map_or_else(|| format!("thing #{}", id.0), |def| def.title.clone())
}

/// A figure's name, or else what it is.
pub(crate) fn label(mirror: &Mirror, figure: &Figure) -> String {
    figure.name.clone().unwrap_or_else(|| kind(mirror, figure.kind))
}

/// What a figure is; `None` for what this client does not know.
pub(crate) fn class(mirror: &Mirror, figure: &Figure) -> Option<Class> {
    mirror.content().kind(figure.kind).map(|def| def.class)
}

/// Status bits as words.
pub(crate) fn status_words(status: u16) -> Vec<String> {
    let known = [(STATUS_FIGHTING, "fighting"), (STATUS_SAFE, "safe")];
    let mut words: Vec<String> = known
        .iter()
        .filter(|(bit, _)| status & bit != 0)
        .map(|(_, word)| (*word).to_owned())
        .collect();
    let rest = known.iter().fold(status, |rest, (bit, _)| rest & !bit);
    words.extend((rest != 0).then(|| format!("status {rest:#x}")));
    words
}

/// The word for a direction.
pub(crate) const fn way(direction: Direction) -> &'static str {
    match direction {
        Direction::North => "north",
        Direction::East => "east",
        Direction::South => "south",
        Direction::West => "west",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters(x: i32, y: i32) -> Option<&'static str> {
        compass(Pos { x: 100, y: 100 }, Pos { x: 100 + x, y: 100 + y }).map(Compass::letters)
    }

    #[test]
    fn directions_have_the_name_of_the_nearest_of_eight() {
        assert_eq!(letters(0, 0), None);
        assert_eq!(letters(0, -3), Some("N"));
        assert_eq!(letters(1, -2), Some("N"));
        assert_eq!(letters(2, -3), Some("NE"));
        assert_eq!(letters(5, 1), Some("E"));
        assert_eq!(letters(4, 4), Some("SE"));
        assert_eq!(letters(0, 9), Some("S"));
        assert_eq!(letters(-3, 2), Some("SW"));
        assert_eq!(letters(-9, 4), Some("W"));
        assert_eq!(letters(-9, -5), Some("NW"));
        let far = compass(Pos { x: i32::MIN, y: 0 }, Pos { x: i32::MAX, y: 1 });
        assert_eq!(far.map(Compass::arrow), Some("→"));
    }

    #[test]
    fn status_bits_are_words_and_unknown_ones_a_number() {
        assert_eq!(status_words(0), Vec::<String>::new());
        assert_eq!(status_words(3), ["fighting", "safe"]);
        assert_eq!(status_words(2), ["safe"]);
        assert_eq!(status_words(0x8001), ["fighting", "status 0x8000"]);
    }
}
