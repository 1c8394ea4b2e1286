//! Where everything is, for any size.
//!
//! ```text
//! top     server, round trip, loss, tick, or what is wrong
//! map           | side
//!               | oneself, then who is near, or what is looked at
//! ─────────────────────
//! log     messages
//! bottom  keys, questions, what is typed
//! ```
//!
//! A narrow screen has no side: oneself is one line below the top, and what is looked at covers
//! the lower half of the map. A low screen has no messages.

use ratatui::layout::Rect;

/// From this width on there is a side.
const SIDE_FROM: u16 = 60;
/// From this height on there are messages.
const LOG_FROM: u16 = 9;
/// From this height on there is a line between map and messages.
const RULE_FROM: u16 = 16;

/// The parts of the screen. Some may be empty; none overlaps another, but for `side` where there
/// is no room beside the map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Areas {
    pub(super) all: Rect,
    pub(super) top: Rect,
    /// All between top and bottom.
    pub(super) middle: Rect,
    pub(super) map: Rect,
    /// Between map and side.
    pub(super) edge: Rect,
    /// Oneself: the upper part of the side, or a line.
    pub(super) me: Rect,
    pub(super) side: Rect,
    pub(super) rule: Rect,
    pub(super) log: Rect,
    pub(super) bottom: Rect,
}

impl Areas {
    pub(super) fn of(all: Rect) -> Self {
        // Questions and what is typed stand in the bottom line; only the map outlasts it.
        let (rest, bottom) = split_bottom(all, u16::from(all.height > 1));
        let (top, middle) = split_top(rest, u16::from(all.height > 3));
        let (rest, log) = split_bottom(middle, log_height(all.height));
        let (upper, rule) = split_bottom(rest, u16::from(all.height >= RULE_FROM));
        let (left, side) = split_right(upper, side_width(all.width));
        let (map, edge) = split_right(left, u16::from(side.width > 0));
        if side.width > 0 {
            let (me, side) = split_top(side, ME_ROWS);
            return Self { all, top, middle, map, edge, me, side, rule, log, bottom };
        }
        let (me, map) = split_top(map, u16::from(all.height > 5));
        let (_, side) = split_bottom(map, map.height / 2);
        Self { all, top, middle, map, edge, me, side, rule, log, bottom }
    }

    /// Whether there is room beside the map.
    pub(super) const fn has_side(&self) -> bool {
        self.edge.width > 0
    }
}

/// Rows for oneself in the side.
const ME_ROWS: u16 = 6;

const fn side_width(width: u16) -> u16 {
    match width {
        0..SIDE_FROM => 0,
        // 29 columns beside a map of 50, in the 80 columns that every terminal has.
        SIDE_FROM..80 => 24 + (width - SIDE_FROM) / 4,
        80..=120 => 29 + (width - 80) / 4,
        _ => 39,
    }
}

const fn log_height(height: u16) -> u16 {
    match height {
        0..LOG_FROM => 0,
        LOG_FROM..RULE_FROM => 2,
        RULE_FROM..24 => 4,
        // The viewport has 30 rows; beyond that messages are more useful than memories.
        24..=44 => 5 + (height - 24) / 5,
        _ => {
            if height / 4 < 20 {
                height / 4
            } else {
                20
            }
        }
    }
}

fn split_top(area: Rect, rows: u16) -> (Rect, Rect) {
    let rows = rows.min(area.height);
    let rest = Rect { y: area.y + rows, height: area.height - rows, ..area };
    (Rect { height: rows, ..area }, rest)
}

fn split_bottom(area: Rect, rows: u16) -> (Rect, Rect) {
    let rows = rows.min(area.height);
    split_top(area, area.height - rows)
}

fn split_right(area: Rect, columns: u16) -> (Rect, Rect) {
    let columns = columns.min(area.width);
    let left = area.width - columns;
    let right = Rect { x: area.x + left, width: columns, ..area };
    (Rect { width: left, ..area }, right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eighty_by_twenty_four_has_a_map_of_fifty_by_sixteen() {
        let areas = Areas::of(Rect::new(0, 0, 80, 24));
        assert_eq!(areas.map, Rect::new(0, 1, 50, 16));
        assert_eq!(areas.edge, Rect::new(50, 1, 1, 16));
        assert_eq!(areas.me, Rect::new(51, 1, 29, 6));
        assert_eq!(areas.side, Rect::new(51, 7, 29, 10));
        assert_eq!(areas.rule, Rect::new(0, 17, 80, 1));
        assert_eq!(areas.log, Rect::new(0, 18, 80, 5));
        assert_eq!(areas.bottom, Rect::new(0, 23, 80, 1));
    }

    #[test]
    fn the_whole_viewport_fits_into_a_screen_of_100_by_50() {
        let areas = Areas::of(Rect::new(0, 0, 100, 50));
        assert!(areas.map.width >= 30 && areas.map.height >= 30, "{areas:?}");
    }

    #[test]
    fn parts_lie_within_the_screen_and_apart_whatever_its_size() {
        for (x, y) in [(0, 0), (3, 2)] {
            for width in 0..130 {
                for height in 0..70 {
                    let all = Rect::new(x, y, width, height);
                    let areas = Areas::of(all);
                    let mut parts = vec![
                        areas.top,
                        areas.map,
                        areas.edge,
                        areas.me,
                        areas.rule,
                        areas.log,
                        areas.bottom,
                    ];
                    if areas.has_side() {
                        parts.push(areas.side);
                    }
                    for (i, part) in parts.iter().enumerate() {
                        assert_eq!(part.intersection(all), *part, "{all}: {areas:?}");
                        for other in &parts[i + 1..] {
                            assert!(part.intersection(*other).is_empty(), "{all}: {areas:?}");
                        }
                    }
                    let covered: u32 = parts.iter().map(|part| part.area()).sum();
                    assert_eq!(covered, all.area(), "{all}: {areas:?}");
                }
            }
        }
    }
}
