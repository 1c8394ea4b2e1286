//! What a client does: walks, digs, asks.

use std::time::Duration;

use caves_link::time::Instant;
use caves_session::caves::{Client, OwnedAction};
use caves_session::{Random, SplitMix};
use caves_wire::caves::{Direction, EntityId};

use crate::args::Walk;
use crate::check::Sight;

/// Between two steps.
const STEP: Duration = Duration::from_millis(100);
/// A way is kept for one to four seconds.
const KEEPS_MILLIS: u64 = 1000;
const KEEPS_MILLIS_MORE: u64 = 3000;
/// So many steps after which one that has got nowhere turns: the answer to the first is under way.
const PATIENCE: u32 = 3;
/// One of so many steps is a dig instead, and with one of so many goes a question.
const DIGS: u64 = 50;
const ASKS: u64 = 30;
/// Who is at a wall digs one of so many times.
const DIGS_AT_WALL: u64 = 4;
/// Tiles that one of a crowd goes from where it came in: within the viewport of all others.
const CROWD: i32 = 6;

const WAYS: [Direction; 4] = [Direction::North, Direction::East, Direction::South, Direction::West];

/// What clients have asked for, and what was told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Deeds {
    pub(crate) steps: u64,
    pub(crate) digs: u64,
    pub(crate) questions: u64,
    pub(crate) answers: u64,
    /// Questions that found no answer within 5 s.
    pub(crate) unanswered: u64,
    /// Actions that had to arrive, and whose fate nobody knows: their session was lost.
    pub(crate) lost: u64,
}

impl Deeds {
    pub(crate) const fn merge(&mut self, other: &Self) {
        self.steps += other.steps;
        self.digs += other.digs;
        self.questions += other.questions;
        self.answers += other.answers;
        self.unanswered += other.unanswered;
        self.lost += other.lost;
    }
}

/// The mind of one client.
#[derive(Debug)]
pub(crate) struct Walker {
    walk: Walk,
    random: SplitMix,
    next: Option<Instant>,
    way: Direction,
    keeps_until: Instant,
    sight: Sight,
    /// Where it came in.
    home: Option<(i16, i16)>,
    /// Where it was at the last step, and how many steps it has been there.
    stood: Option<(i16, i16)>,
    stands: u32,
}

impl Walker {
    /// It begins within the time of a step, so that not all step at once.
    pub(crate) fn new(walk: Walk, mut random: SplitMix, now: Instant) -> Self {
        let first = now + Duration::from_micros(random.next_u64() % STEP.as_micros() as u64);
        Self {
            walk,
            way: WAYS[random.next_u64() as usize % 4],
            random,
            next: (walk != Walk::Still).then_some(first),
            keeps_until: now,
            sight: Sight::default(),
            home: None,
            stood: None,
            stands: 0,
        }
    }

    /// When to call [`Walker::act`] at the latest.
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        self.next
    }

    /// An update shows this.
    pub(crate) fn saw(&mut self, sight: Sight) {
        self.home = self.home.or(sight.own);
        self.sight = sight;
    }

    /// Does what is due.
    pub(crate) fn act(&mut self, now: Instant, client: &mut Client, deeds: &mut Deeds) {
        let Some(due) = self.next.filter(|due| *due <= now) else { return };
        // What was missed is not made up for.
        self.next = Some(if due + STEP > now { due + STEP } else { now + STEP });
        if client.player().is_none() || self.sight.own.is_none() {
            return;
        }
        if let Some(other) = self.asks_about()
            && client.query(now, other).is_ok()
        {
            deeds.questions += 1;
        }
        let action = self.choose(now);
        let digs = matches!(action, OwnedAction::Dig(_));
        if client.push(action).is_ok() {
            *if digs { &mut deeds.digs } else { &mut deeds.steps } += 1;
        }
    }

    fn asks_about(&mut self) -> Option<EntityId> {
        self.one_of(ASKS).then_some(self.sight.other).flatten()
    }

    fn choose(&mut self, now: Instant) -> OwnedAction {
        self.stands = if self.stood == self.sight.own { self.stands + 1 } else { 0 };
        self.stood = self.sight.own;
        let at_wall = self.stands >= PATIENCE;
        if self.one_of(if at_wall { DIGS_AT_WALL } else { DIGS }) {
            return OwnedAction::Dig(self.way);
        }
        if at_wall {
            self.turn(now);
        } else if let Some(back) = self.way_back() {
            self.way = back;
        } else if self.keeps_until <= now {
            self.turn(now);
        }
        OwnedAction::Walk(self.way)
    }

    fn turn(&mut self, now: Instant) {
        let other = 1 + self.random.next_u64() as usize % 3;
        self.way = WAYS[(self.way as usize - 1 + other) % 4];
        let keeps = KEEPS_MILLIS + self.random.next_u64() % KEEPS_MILLIS_MORE;
        self.keeps_until = now + Duration::from_millis(keeps);
        self.stands = 0;
    }

    /// For one of a crowd that has gone too far.
    fn way_back(&self) -> Option<Direction> {
        let ((x, y), (home_x, home_y)) = self.sight.own.zip(self.home)?;
        let off = |at: i16, home: i16| i32::from(at) - i32::from(home);
        let (east, south) = (off(x, home_x), off(y, home_y));
        if self.walk != Walk::Crowd {
            return None;
        }
        Some(match (east, south) {
            _ if east > CROWD => Direction::West,
            _ if east < -CROWD => Direction::East,
            _ if south > CROWD => Direction::North,
            _ if south < -CROWD => Direction::South,
            _ => return None,
        })
    }

    fn one_of(&mut self, many: u64) -> bool {
        self.random.next_u64().is_multiple_of(many)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where somebody gets who may go anywhere, step by step.
    fn wander(
        walk: Walk,
        steps: u64,
        is_open: impl Fn(i16, i16) -> bool,
    ) -> (Vec<(i16, i16)>, u64) {
        let mut walker = Walker::new(walk, SplitMix::new(3), Instant::ZERO);
        let (mut at, mut path, mut digs) = ((16, 16), Vec::new(), 0);
        for step in 0..steps {
            walker.saw(Sight { own: Some(at), other: None });
            match walker.choose(Instant::from_millis(100 * step)) {
                OwnedAction::Walk(way) => {
                    let (dx, dy) = match way {
                        Direction::North => (0, -1),
                        Direction::East => (1, 0),
                        Direction::South => (0, 1),
                        Direction::West => (-1, 0),
                    };
                    if is_open(at.0 + dx, at.1 + dy) {
                        at = (at.0 + dx, at.1 + dy);
                    }
                }
                _ => digs += 1,
            }
            path.push(at);
        }
        (path, digs)
    }

    #[test]
    fn a_random_walker_gets_away_and_keeps_its_way_for_a_while() {
        let (path, digs) = wander(Walk::Random, 2_000, |_, _| true);
        assert!(path.iter().any(|(x, y)| (x - 16).abs() + (y - 16).abs() > 40));
        let turns = path.windows(3).filter(|at| {
            (at[1].0 - at[0].0, at[1].1 - at[0].1) != (at[2].0 - at[1].0, at[2].1 - at[1].1)
        });
        // A way is kept for 2.5 s on average, and each dig is a step that is none.
        let turns = turns.count();
        assert!((40..300).contains(&turns), "{turns}");
        assert!((10..100).contains(&digs), "{digs}");
    }

    #[test]
    fn a_crowd_stays_within_sight_of_each_other() {
        let (path, _) = wander(Walk::Crowd, 5_000, |_, _| true);
        for (x, y) in path {
            assert!((x - 16).abs() <= 7 && (y - 16).abs() <= 7, "at {x}, {y}");
        }
    }

    #[test]
    fn who_is_at_a_wall_turns_or_digs() {
        // A corridor of one tile's height.
        let (path, digs) = wander(Walk::Random, 2_000, |x, y| y == 16 && (10..=22).contains(&x));
        let visited = |x| path.contains(&(x, 16));
        assert!(visited(10) && visited(22), "both ends");
        assert!(digs > 100, "{digs}");
    }

    #[test]
    fn who_stands_still_has_nothing_due() {
        assert_eq!(Walker::new(Walk::Still, SplitMix::new(1), Instant::ZERO).deadline(), None);
    }
}
