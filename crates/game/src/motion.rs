//! Where figures are between two updates, for a screen that is drawn more often than they come.
//!
//! What is shown lies a little in the past, so that there is an update on either side of it. How
//! far depends on the network: one tick where nothing is late or lost, more where updates come
//! late, and more again where some do not come at all.
//!
//! ```text
//!   updates       7         8         (9 lost)        10
//!   figure        x---------x--------------------------x . . . . x
//!                                        ^             |         |
//!                                        shown         newest    at most a tick further on,
//!                                        |<-- delay -->|         the way it went, then it stands
//!
//!   needed        what had passed since the update before, each time one came: a tick, and as
//!                 much as this one was late, and a tick for each that was lost
//!   delay         of the last 32 of these the third largest, from one tick to five
//! ```
//!
//! A figure that went further than anybody walks stands where it was until the tick in which it is
//! elsewhere. All of it follows from what came and the moment that is asked for: there is no clock
//! in here. [`Client::shown_at`](crate::Client::shown_at) is the way to it.
//!
//! ```
//! use caves_game::motion::Place;
//! use caves_world::Pos;
//!
//! // A screen of tiles shows the nearest one.
//! assert_eq!(Place { x: 3.4, y: -0.6 }.tile(), Pos { x: 3, y: -1 });
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use caves_link::clock::{Offset, Slew};
use caves_link::history::{Bracket, History};
use caves_link::time::Instant;
use caves_world::{EntityId, Pos};

use crate::mirror::Figure;

/// Updates that a figure's way is kept of: more than the longest delay, and a few lost ones.
const WAY: usize = 12;
/// Updates from which the delay follows.
const NEEDS: usize = 32;
/// Of a hundred updates so many come before what is shown has passed the one before.
const IN_TIME: usize = 93;
/// The longest delay, in ticks.
const LONGEST_DELAY: u32 = 5;
/// Whoever goes further than this in a tick did not walk, in tiles.
const FASTEST: i32 = 2;
/// Whoever went further than this is shown there at once, however long it took, in tiles.
const FARTHEST: i32 = 8;
/// What is shown hurries or lingers by one part in so many, and never jumps ...
const SLEW: u32 = 8;
/// ... unless it would have to go further than this.
const LEAP: Duration = Duration::from_secs(1);
/// Behind the moment at which a figure is half way to the next tile, so that it is there for sure.
const MARGIN: Duration = Duration::from_millis(1);

/// A place between tiles: x to the east and y to the south, in tiles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    /// To the east.
    pub x: f32,
    /// To the south.
    pub y: f32,
}

impl Place {
    /// The nearest tile.
    pub fn tile(self) -> Pos {
        // Positions on the wire have 16 bits, so nothing is cut.
        Pos { x: self.x.round() as i32, y: self.y.round() as i32 }
    }
}

impl From<Pos> for Place {
    fn from(pos: Pos) -> Self {
        Self { x: pos.x as f32, y: pos.y as f32 }
    }
}

/// The ways of all figures that move, as far as the last complete update has them.
#[derive(Debug)]
pub(crate) struct Motion {
    ways: BTreeMap<EntityId, History<Pos, WAY>>,
    /// What is shown, as an offset from the local clock to the server's.
    shown: Slew,
    /// How much later than an update the next one came, the oldest first.
    needs: VecDeque<Duration>,
    newest: Option<Instant>,
    tick: Duration,
}

/// What a complete update is in time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Update {
    /// When it came.
    pub(crate) now: Instant,
    /// Its tick, by the server's clock.
    pub(crate) stamp: Instant,
    /// The offset of what comes the shortest way.
    pub(crate) arrival: Offset,
    /// How long a tick takes.
    pub(crate) tick: Duration,
}

/// Where a figure is, and where it goes on to.
#[derive(Debug, Clone, Copy)]
struct Leg {
    from: Pos,
    to: Pos,
    start: Instant,
    end: Instant,
}

impl Motion {
    pub(crate) const fn new() -> Self {
        Self {
            ways: BTreeMap::new(),
            shown: Slew::new(SLEW, LEAP),
            needs: VecDeque::new(),
            newest: None,
            tick: Duration::from_millis(100),
        }
    }

    /// Another session began, or another clock.
    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }

    /// Takes the figures of a complete update but `me`, who is not shown in the past.
    pub(crate) fn take(&mut self, update: Update, me: EntityId, figures: &[Figure]) {
        let Update { now, stamp, arrival, tick } = update;
        if self.newest.is_some_and(|newest| stamp <= newest) {
            // Only a server that counts anew goes back.
            self.clear();
        }
        self.tick = tick;
        if let Some(newest) = self.newest.replace(stamp) {
            if self.needs.len() >= NEEDS {
                self.needs.pop_front();
            }
            self.needs.push_back(arrival.remote(now).saturating_since(newest));
        }
        self.shown.aim(now, arrival.behind(self.delay()));
        let seen = |id: &EntityId| figures.binary_search_by_key(id, |figure| figure.id).is_ok();
        self.ways.retain(|id, _| seen(id));
        for figure in figures.iter().filter(|figure| !figure.is_static && figure.id != me) {
            let way = self.ways.entry(figure.id).or_default();
            // Newer than all before it, or else everything was cleared.
            let _ = way.push(stamp, figure.pos);
        }
    }

    /// How far behind the earliest possible news the screen is.
    pub(crate) fn delay(&self) -> Duration {
        let mut needs: Vec<_> = self.needs.iter().copied().collect();
        needs.sort_unstable();
        let rank = (needs.len() * IN_TIME).div_ceil(100);
        let need = rank.checked_sub(1).and_then(|place| needs.get(place)).copied();
        need.unwrap_or(self.tick).clamp(self.tick, self.tick * LONGEST_DELAY)
    }

    /// The moment of the server's clock that is shown at `now`.
    pub(crate) fn moment(&self, now: Instant) -> Option<Instant> {
        self.shown.remote(now)
    }

    /// Where a figure is shown at `now`; where the last update has it, if nothing else is known.
    /// `is_open` tells whether one can walk there.
    pub(crate) fn place(
        &self,
        now: Instant,
        figure: &Figure,
        is_open: impl Fn(Pos) -> bool,
    ) -> Place {
        let (way, moment) = (self.ways.get(&figure.id), self.moment(now));
        let (Some(way), Some(moment)) = (way, moment) else { return figure.pos.into() };
        match way.bracket(moment) {
            Bracket::Empty => figure.pos.into(),
            Bracket::Before(first) => (*first).into(),
            Bracket::Between { before, after, part } => {
                if self.is_leap(*before, *after, part.span()) {
                    return (*before).into();
                }
                let (a, b) = (Place::from(*before), Place::from(*after));
                Place { x: part.mix(a.x, b.x), y: part.mix(a.y, b.y) }
            }
            Bracket::After { last, by } => match self.next_leg(way, &is_open) {
                Some(leg) => {
                    let part = by.min(self.tick).as_secs_f32() / self.tick.as_secs_f32();
                    let (a, b) = (Place::from(leg.from), Place::from(leg.to));
                    Place { x: a.x + (b.x - a.x) * part, y: a.y + (b.y - a.y) * part }
                }
                None => (*last).into(),
            },
        }
    }

    /// When some figure will next be nearest to another tile than now, as far as one can know.
    pub(crate) fn next_step(&self, now: Instant, is_open: impl Fn(Pos) -> bool) -> Option<Instant> {
        let offset = self.shown.offset(now)?;
        let moment = offset.remote(now);
        let steps = self.ways.values().filter_map(|way| {
            let pairs = way.iter().zip(way.iter().skip(1));
            let known =
                pairs.map(|((start, from), (end, to))| Leg { from: *from, to: *to, start, end });
            let mut legs = known.chain(self.next_leg(way, &is_open));
            legs.find_map(|leg| self.crossing(leg, moment))
        });
        steps.min().map(|step| offset.local(step))
    }

    /// The first moment after `moment` at which a leg has come nearer to another tile.
    fn crossing(&self, leg: Leg, moment: Instant) -> Option<Instant> {
        let span = leg.end.saturating_since(leg.start);
        if self.is_leap(leg.from, leg.to, span) {
            return Some(leg.end + MARGIN).filter(|end| *end > moment);
        }
        let tiles = |from: i32, to: i32| {
            let count = from.abs_diff(to);
            // Half way between two tiles, each time.
            (0..count).map(move |tile| leg.start + span * (2 * tile + 1) / (2 * count) + MARGIN)
        };
        let crossings = tiles(leg.from.x, leg.to.x).chain(tiles(leg.from.y, leg.to.y));
        crossings.filter(|crossing| *crossing > moment).min()
    }

    /// The way a figure goes on by, for a tick at most: as it went before, in whole tiles a tick.
    fn next_leg(&self, way: &History<Pos, WAY>, is_open: impl Fn(Pos) -> bool) -> Option<Leg> {
        let mut newest = way.iter().rev();
        let ((start, from), (before, was)) = (newest.next()?, newest.next()?);
        let span = start.saturating_since(before);
        if self.is_leap(*was, *from, span) {
            return None;
        }
        let ticks = self.ticks(span).max(1);
        let to = from.offset((from.x - was.x) / ticks, (from.y - was.y) / ticks);
        let goes_on = to != *from && is_open(to);
        goes_on.then_some(Leg { from: *from, to, start, end: start + self.tick })
    }

    fn is_leap(&self, from: Pos, to: Pos, span: Duration) -> bool {
        from.distance(to) > FASTEST.saturating_mul(self.ticks(span)).min(FARTHEST)
    }

    /// Stamps are whole ticks, so this is a whole number, too.
    fn ticks(&self, span: Duration) -> i32 {
        let ticks = span.as_micros() / self.tick.as_micros().max(1);
        i32::try_from(ticks).unwrap_or(i32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caves_world::KindId;
    use proptest::prelude::*;

    const TICK: Duration = Duration::from_millis(100);
    /// How long the shortest way takes.
    const WAY_HERE: u64 = 50;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn figure(id: u32, x: i32, y: i32) -> Figure {
        Figure {
            id: EntityId(id),
            kind: KindId(0),
            pos: Pos { x, y },
            hp: 1,
            hp_max: 1,
            elo: 0,
            is_static: false,
            is_hostile: false,
            is_interactable: false,
            status: 0,
            name: None,
            speech: None,
        }
    }

    /// The update of a tick comes so many milliseconds later than the shortest way takes.
    fn update(motion: &mut Motion, tick: u64, late: u64, figures: &[Figure]) {
        let update = Update {
            now: at(tick * 100 + WAY_HERE + late),
            stamp: at(tick * 100),
            arrival: Offset::between(at(WAY_HERE), at(0)),
            tick: TICK,
        };
        motion.take(update, EntityId(1), figures);
    }

    /// When the moment `millis` of the server is shown, with a delay of one tick.
    fn when(millis: u64) -> Instant {
        at(millis + WAY_HERE + 100)
    }

    fn x_at(motion: &Motion, millis: u64) -> f32 {
        motion.place(when(millis), &figure(2, 99, 0), |_| true).x
    }

    #[test]
    fn a_figure_is_half_way_when_half_a_tick_has_passed() {
        let mut motion = Motion::new();
        for (tick, x) in [(10, 4), (11, 4), (12, 5), (13, 7)] {
            update(&mut motion, tick, 0, &[figure(2, x, -3)]);
        }
        assert_eq!(motion.delay(), TICK);
        assert_eq!(motion.moment(at(1380)), Some(at(1230)));
        let xs = [1100, 1150, 1200, 1225, 1250, 1300].map(|millis| x_at(&motion, millis));
        assert_eq!(xs, [4.0, 4.5, 5.0, 5.5, 6.0, 7.0]);
        assert_eq!(
            motion.place(when(1150), &figure(2, 0, 0), |_| true).tile(),
            Pos { x: 5, y: -3 }
        );
        // Before the first it stands where it was first seen, and an unknown one where it is now.
        assert_eq!(x_at(&motion, 950), 4.0);
        assert_eq!(motion.place(when(1150), &figure(3, 8, 8), |_| true), Pos { x: 8, y: 8 }.into());
    }

    #[test]
    fn a_lost_update_is_bridged() {
        let mut motion = Motion::new();
        update(&mut motion, 10, 0, &[figure(2, 0, 0)]);
        update(&mut motion, 12, 0, &[figure(2, 2, 0)]);
        // It took two ticks, so the delay will be as long: an eighth of the time that passes.
        assert_eq!(motion.delay(), 2 * TICK);
        let x = |millis| motion.place(at(millis), &figure(2, 2, 0), |_| true).x;
        // 1250 - 50 - 100, and 1330 - 50 - 110.
        assert_eq!([x(1250), x(1330)], [1.0, 1.7]);
    }

    #[test]
    fn who_goes_further_than_one_can_walk_is_not_smeared() {
        let mut motion = Motion::new();
        update(&mut motion, 10, 0, &[figure(2, 0, 0)]);
        update(&mut motion, 11, 0, &[figure(2, 3, 0)]);
        update(&mut motion, 12, 0, &[figure(2, 5, 0)]);
        let xs = [1000, 1050, 1099, 1100, 1150].map(|millis| x_at(&motion, millis));
        assert_eq!(xs, [0.0, 0.0, 0.0, 3.0, 4.0]);
        // A leap is gone on with by nobody.
        let mut motion = Motion::new();
        update(&mut motion, 10, 0, &[figure(2, 0, 0)]);
        update(&mut motion, 11, 0, &[figure(2, 3, 0)]);
        assert_eq!(x_at(&motion, 1150), 3.0);
    }

    #[test]
    fn without_news_a_figure_goes_on_for_a_tick_and_never_into_a_wall() {
        let mut motion = Motion::new();
        update(&mut motion, 10, 0, &[figure(2, 0, 0)]);
        update(&mut motion, 11, 0, &[figure(2, 1, 0)]);
        let xs = [1100, 1150, 1200, 1300, 9000].map(|millis| x_at(&motion, millis));
        assert_eq!(xs, [1.0, 1.5, 2.0, 2.0, 2.0]);
        let wall = Pos { x: 2, y: 0 };
        let place = motion.place(when(1150), &figure(2, 1, 0), |pos| pos != wall);
        assert_eq!(place, Pos { x: 1, y: 0 }.into());
        assert_eq!(motion.next_step(when(1150), |pos| pos != wall), None);
        // After a lost update it goes on as fast as it went, and slower than a tile a tick not at all.
        let mut lossy = Motion::new();
        update(&mut lossy, 10, 0, &[figure(2, 0, 0), figure(3, 0, 0)]);
        update(&mut lossy, 12, 0, &[figure(2, 2, 0), figure(3, 1, 0)]);
        let x = |id| lossy.place(at(90_000), &figure(id, 0, 0), |_| true).x;
        assert_eq!([x(2), x(3)], [3.0, 1.0]);
        // One that stood in the last tick stands.
        update(&mut motion, 12, 0, &[figure(2, 1, 0)]);
        assert_eq!(x_at(&motion, 1250), 1.0);
    }

    #[test]
    fn the_delay_follows_what_comes_late_and_what_does_not_come() {
        let figures = [figure(2, 0, 0)];
        let delay = |updates: &[(u64, u64)]| {
            let mut motion = Motion::new();
            for (tick, late) in updates {
                update(&mut motion, *tick, *late, &figures);
            }
            motion.delay().as_millis() as u64
        };
        assert_eq!(delay(&[]), 100);
        let even: Vec<_> = (0..60).map(|tick| (tick, 0)).collect();
        assert_eq!(delay(&even), 100);
        // Of 32 the third largest: two outliers are nothing.
        let late = |every: u64, by: u64| -> Vec<_> {
            (0..60).map(|tick| (tick, if tick % every == 0 { by } else { 0 })).collect()
        };
        assert_eq!((delay(&late(16, 80)), delay(&late(8, 80))), (100, 180));
        // Each third is lost.
        let lossy: Vec<_> = (0..90).filter(|tick| tick % 3 != 0).map(|tick| (tick, 0)).collect();
        assert_eq!(delay(&lossy), 200);
        assert_eq!(delay(&late(2, 5_000)), 500, "at most five ticks");
    }

    #[test]
    fn another_delay_comes_slowly_and_what_is_shown_never_runs_back() {
        let mut motion = Motion::new();
        let mut last = Instant::ZERO;
        for tick in 0..200 {
            let late = if (50..120).contains(&tick) { tick % 3 * 45 } else { 0 };
            update(&mut motion, tick, late, &[figure(2, 0, 0)]);
            for millis in 0..100 {
                let now = at(tick * 100 + WAY_HERE + late.max(millis));
                let shown = motion.moment(now).unwrap();
                assert!(shown >= last, "tick {tick}");
                last = last.max(shown);
            }
        }
        assert_eq!(motion.delay(), TICK);
    }

    #[test]
    fn only_those_in_the_last_update_are_remembered_and_nobody_who_stands_for_ever() {
        let mut motion = Motion::new();
        let chest = Figure { is_static: true, ..figure(9, 0, 0) };
        update(&mut motion, 10, 0, &[figure(1, 0, 0), figure(2, 0, 0), figure(5, 0, 0), chest]);
        assert_eq!(motion.ways.keys().map(|id| id.0).collect::<Vec<_>>(), [2, 5]);
        update(&mut motion, 11, 0, &[figure(1, 0, 0), figure(5, 0, 0), figure(6, 0, 0)]);
        assert_eq!(motion.ways.keys().map(|id| id.0).collect::<Vec<_>>(), [5, 6]);
        for tick in 12..500 {
            update(&mut motion, tick, 0, &[figure(5, 0, 0)]);
        }
        assert!(motion.ways[&EntityId(5)].len() == WAY && motion.needs.len() == NEEDS);
    }

    #[test]
    fn a_server_that_counts_anew_is_followed() {
        let mut motion = Motion::new();
        update(&mut motion, 5_000, 0, &[figure(2, 0, 0)]);
        update(&mut motion, 20, 0, &[figure(2, 4, 0)]);
        update(&mut motion, 21, 0, &[figure(2, 5, 0)]);
        assert_eq!(x_at(&motion, 2_050), 4.5);
    }

    proptest! {
        /// Against looking at each millisecond.
        #[test]
        fn the_next_step_is_when_the_nearest_tile_changes(
            walks in prop::collection::vec((1u64..4, -2i32..3, -1i32..2, 0u64..120), 2..10),
            blocked in any::<bool>(),
        ) {
            let mut motion = Motion::new();
            let (mut tick, mut pos) = (10, Pos { x: 0, y: 0 });
            let mut now = 0;
            for (ticks, dx, dy, late) in walks {
                tick += ticks;
                pos = pos.offset(dx, dy);
                update(&mut motion, tick, late, &[figure(2, pos.x, pos.y)]);
                now = now.max(tick * 100 + WAY_HERE + late);
            }
            let is_open = |of: Pos| !blocked || of.x % 2 == 0;
            let tile = |millis: u64| {
                motion.place(at(millis), &figure(2, 0, 0), is_open).tile()
            };
            let mut looked = now;
            // Everything has come to rest a second and a tick after the last news.
            while let Some(next) = motion.next_step(at(looked), is_open) {
                let next = next.as_micros().div_ceil(1000);
                prop_assert!(next > looked);
                // Up to there nothing changes but in the last two milliseconds, and what is shown
                // may go a little faster or slower than the clock meanwhile.
                let slack = (next - looked) / u64::from(SLEW) + 2;
                for millis in looked..next.saturating_sub(slack) {
                    prop_assert_eq!(tile(millis), tile(looked), "at {} before {}", millis, next);
                }
                looked = next;
                prop_assert!(looked < now + 3_000, "it never comes to rest");
            }
            for millis in looked..looked + 1_500 {
                prop_assert_eq!(tile(millis), tile(looked), "at {}", millis);
            }
        }
    }
}
