//! Bounded, stamped values, and the pair around a moment.
//!
//! A server says twenty or ten times a second how things are; a screen is drawn more often, and a
//! little later than the newest word, so that there is a value on either side of the moment drawn.
//! [`History`] keeps the last `N` values with the stamps of the clock that made them, and
//! [`bracket`](History::bracket) finds the two that a moment lies between.
//!
//! ```text
//!                 oldest                          newest
//!   forgotten       |  a       b       c           d
//!   . . . . . . .   |--*-------*-------*-----------*------------------> stamp
//!                    ^              ^                        ^
//!                    Before(a)      Between                  After
//!                                   before b, after c,       last d,
//!                                   5/8 of the way           by so much
//! ```
//!
//! The stamps are moments of the *remote* clock: arrival says nothing about when a value was true.
//! Which moment to ask for is [`clock`](crate::clock)'s business.
//!
//! Protocols differ in what they do with a value that comes late. Where only the newest counts,
//! [`push`](History::push) refuses what is not newer; where a late one still fills a gap,
//! [`place`](History::place) puts it where it belongs. Where a value is named again by its stamp,
//! as the base of a difference is, [`get`](History::get) finds it. Ticks become stamps by the
//! length of a tick, after [`Seq::widen`](crate::seq::Seq::widen) where their number wraps.
//!
//! ```
//! use caves_link::history::{Bracket, History};
//! use caves_link::time::Instant;
//!
//! let mut heights = History::<f32, 4>::new();
//! heights.push(Instant::from_millis(100), 2.0).unwrap();
//! heights.push(Instant::from_millis(180), 4.0).unwrap();
//! match heights.bracket(Instant::from_millis(120)) {
//!     Bracket::Between { before, after, part } => assert_eq!(part.mix(*before, *after), 2.5),
//!     _ => unreachable!(),
//! }
//! ```

use core::fmt;
use core::time::Duration;

use crate::time::{Instant, micros};

/// The last `N` values, at least one, in ascending order of their stamps; no stamp twice.
///
/// It lies in place, without a heap. Looking a moment up takes the logarithm of `N`.
#[derive(Clone, Debug)]
pub struct History<T, const N: usize> {
    /// A ring: the oldest value is at `first`.
    slots: [Option<(Instant, T)>; N],
    first: usize,
    len: usize,
}

/// A value that was not taken; it comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused<T>(pub T);

impl<T> fmt::Display for Refused<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value is too old to be kept")
    }
}

impl<T: fmt::Debug> core::error::Error for Refused<T> {}

/// Where a moment lies among the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bracket<'h, T> {
    /// There are no values.
    Empty,
    /// Before the first one.
    Before(&'h T),
    /// At a value, which is `before` then, or after it and before the next one.
    Between {
        /// The last value that is not after the moment.
        before: &'h T,
        /// The one that follows it.
        after: &'h T,
        /// How much of the way from one to the other has passed; less than all of it.
        part: Fraction,
    },
    /// At the last value or after it.
    After {
        /// The last value.
        last: &'h T,
        /// How long after it.
        by: Duration,
    },
}

/// A part of a stretch of time, exact in microseconds: from nothing to less than all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fraction {
    past: u64,
    /// More than `past`.
    span: u64,
}

impl Fraction {
    /// What has passed.
    pub const fn past(self) -> Duration {
        Duration::from_micros(self.past)
    }

    /// The whole stretch; more than what has passed.
    pub const fn span(self) -> Duration {
        Duration::from_micros(self.span)
    }

    /// The part as a number from 0 to 1, to the precision that it has.
    pub const fn as_f32(self) -> f32 {
        (self.past as f64 / self.span as f64) as f32
    }

    /// The number that lies this part of the way from `before` to `after`.
    pub const fn mix(self, before: f32, after: f32) -> f32 {
        before + (after - before) * self.as_f32()
    }
}

impl<T, const N: usize> History<T, N> {
    /// No values yet.
    pub const fn new() -> Self {
        const { assert!(N > 0, "a history has room for a value") };
        Self { slots: [const { None }; N], first: 0, len: 0 }
    }

    /// Takes a value that is newer than all others; the oldest gives way where there is no room.
    ///
    /// # Errors
    ///
    /// [`Refused`] with the value if its stamp is not newer than the newest one's.
    pub fn push(&mut self, stamp: Instant, value: T) -> Result<(), Refused<T>> {
        if self.newest().is_some_and(|(newest, _)| stamp <= newest) {
            return Err(Refused(value));
        }
        self.append(stamp, value);
        Ok(())
    }

    /// Takes a value whenever it comes and puts it where it belongs; one with a stamp that is
    /// there already takes its place. The oldest gives way where there is no room.
    ///
    /// # Errors
    ///
    /// [`Refused`] with the value if it would be the oldest of a full history.
    pub fn place(&mut self, stamp: Instant, value: T) -> Result<(), Refused<T>> {
        let rank = self.up_to(stamp);
        let older = rank.checked_sub(1).and_then(|place| self.at_mut(place));
        if let Some(same) = older.filter(|sample| sample.0 == stamp) {
            same.1 = value;
            return Ok(());
        }
        if rank == 0 && self.len == N {
            return Err(Refused(value));
        }
        // Where the oldest gave way everything has moved up by one.
        let rank = rank - usize::from(self.len == N);
        self.append(stamp, value);
        for place in (rank + 1..self.len).rev() {
            let (left, right) = (self.slot(place - 1), self.slot(place));
            self.slots.swap(left, right);
        }
        Ok(())
    }

    /// Where a moment lies.
    pub fn bracket(&self, moment: Instant) -> Bracket<'_, T> {
        let rank = self.up_to(moment);
        let before = rank.checked_sub(1).and_then(|place| self.at(place));
        match (before, self.at(rank)) {
            (None, None) => Bracket::Empty,
            (None, Some((_, first))) => Bracket::Before(first),
            (Some((stamp, last)), None) => {
                Bracket::After { last, by: moment.saturating_since(stamp) }
            }
            (Some((from, before)), Some((to, after))) => {
                let since = |moment: Instant| micros(moment.saturating_since(from));
                let part = Fraction { past: since(moment), span: since(to) };
                Bracket::Between { before, after, part }
            }
        }
    }

    /// The value with exactly this stamp.
    pub fn get(&self, stamp: Instant) -> Option<&T> {
        let place = self.up_to(stamp).checked_sub(1)?;
        self.at(place).filter(|(of, _)| *of == stamp).map(|(_, value)| value)
    }

    /// The newest value and its stamp.
    pub fn newest(&self) -> Option<(Instant, &T)> {
        self.at(self.len.checked_sub(1)?)
    }

    /// The oldest value and its stamp.
    pub fn oldest(&self) -> Option<(Instant, &T)> {
        self.at(0)
    }

    /// All values with their stamps, the oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Instant, &T)> {
        (0..self.len).filter_map(|place| self.at(place))
    }

    /// Drops all values with older stamps.
    pub fn forget_before(&mut self, stamp: Instant) {
        while self.oldest().is_some_and(|(oldest, _)| oldest < stamp) {
            self.drop_oldest();
        }
    }

    /// Drops all values.
    pub fn clear(&mut self) {
        while self.len > 0 {
            self.drop_oldest();
        }
    }

    /// How many values there are, at most `N`.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many values have a stamp that is not after `moment`.
    fn up_to(&self, moment: Instant) -> usize {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.at(middle).is_some_and(|(stamp, _)| stamp <= moment) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Behind the newest, whatever its stamp.
    fn append(&mut self, stamp: Instant, value: T) {
        if self.len == N {
            self.drop_oldest();
        }
        let slot = self.slot(self.len);
        self.slots[slot] = Some((stamp, value));
        self.len += 1;
    }

    fn drop_oldest(&mut self) {
        self.slots[self.first] = None;
        self.first = self.slot(1);
        self.len = self.len.saturating_sub(1);
    }

    /// The slot of the value at a place, counted from the oldest.
    const fn slot(&self, place: usize) -> usize {
        (self.first + place) % N
    }

    fn at(&self, place: usize) -> Option<(Instant, &T)> {
        let slot = if place < self.len { self.slot(place) } else { return None };
        self.slots[slot].as_ref().map(|(stamp, value)| (*stamp, value))
    }

    fn at_mut(&mut self, place: usize) -> Option<&mut (Instant, T)> {
        let slot = if place < self.len { self.slot(place) } else { return None };
        self.slots[slot].as_mut()
    }
}

impl<T, const N: usize> Default for History<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::string::{String, ToString};
    use std::vec::Vec;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn filled<const N: usize>(stamps: &[u64]) -> History<u64, N> {
        let mut history = History::new();
        for stamp in stamps {
            history.push(at(*stamp), *stamp).unwrap();
        }
        history
    }

    #[test]
    fn a_moment_between_two_values_is_an_exact_part_of_the_way() {
        let history = filled::<4>(&[100, 180]);
        let Bracket::Between { before, after, part } = history.bracket(at(120)) else { panic!() };
        assert_eq!((*before, *after), (100, 180));
        assert_eq!(
            (part.past(), part.span()),
            (at(20).saturating_since(at(0)), Duration::from_millis(80))
        );
        assert_eq!(part.as_f32(), 0.25);
        assert_eq!(part.mix(-4.0, 4.0), -2.0);
    }

    #[test]
    fn at_a_value_it_is_the_value_and_at_the_last_one_nothing_is_ahead() {
        let history = filled::<4>(&[100, 180, 250]);
        let Bracket::Between { before: 180, after: 250, part } = history.bracket(at(180)) else {
            panic!()
        };
        assert_eq!(part.as_f32(), 0.0);
        let last = Bracket::After { last: &250, by: Duration::ZERO };
        assert_eq!(history.bracket(at(250)), last);
        let late = Bracket::After { last: &250, by: Duration::from_millis(30) };
        assert_eq!(history.bracket(at(280)), late);
        assert_eq!(history.bracket(at(99)), Bracket::Before(&100));
        assert_eq!(History::<u64, 4>::new().bracket(at(5)), Bracket::Empty);
    }

    #[test]
    fn the_oldest_gives_way_and_what_is_not_newer_is_refused() {
        let mut history = filled::<3>(&[1, 2, 3]);
        assert_eq!(history.push(at(3), 30), Err(Refused(30)));
        assert_eq!(history.push(at(2), 20), Err(Refused(20)));
        history.push(at(9), 9).unwrap();
        assert_eq!(history.oldest(), Some((at(2), &2)));
        assert_eq!(history.newest(), Some((at(9), &9)));
        assert_eq!((history.len(), history.get(at(1)), history.get(at(3))), (3, None, Some(&3)));
        assert_eq!(Refused(1).to_string(), "the value is too old to be kept");
    }

    #[test]
    fn a_late_value_is_placed_replaces_its_equal_or_is_too_old() {
        let mut history = filled::<3>(&[10, 30]);
        history.place(at(20), 20).unwrap();
        history.place(at(20), 21).unwrap();
        assert_eq!(history.iter().map(|(_, value)| *value).collect::<Vec<_>>(), [10, 21, 30]);
        assert_eq!(history.place(at(5), 5), Err(Refused(5)));
        history.place(at(15), 15).unwrap();
        assert_eq!(history.iter().map(|(_, value)| *value).collect::<Vec<_>>(), [15, 21, 30]);
        history.place(at(40), 40).unwrap();
        assert_eq!(history.iter().rev().map(|(_, value)| *value).collect::<Vec<_>>(), [40, 30, 21]);
    }

    #[test]
    fn values_own_memory_and_give_it_back() {
        let mut history = History::<String, 2>::default();
        for stamp in 0..5 {
            history.push(at(stamp), stamp.to_string()).unwrap();
        }
        assert_eq!(history.get(at(4)).map(String::as_str), Some("4"));
        history.clear();
        assert!(history.is_empty() && history.slots.iter().all(Option::is_none));
        history.push(at(0), "again".into()).unwrap();
        assert_eq!(history.len(), 1);
    }

    #[test]
    fn the_ends_of_time_are_moments_like_any_other() {
        let far = Instant::from_micros(u64::MAX);
        let mut history = History::<u8, 1>::new();
        history.push(Instant::ZERO, 1).unwrap();
        history.push(far, 2).unwrap();
        assert_eq!(history.bracket(Instant::ZERO), Bracket::Before(&2));
        let mut wide = History::<u8, 2>::new();
        wide.push(Instant::ZERO, 1).unwrap();
        wide.push(far, 2).unwrap();
        let Bracket::Between { part, .. } = wide.bracket(Instant::from_micros(1 << 63)) else {
            panic!()
        };
        assert_eq!(part.as_f32(), 0.5);
        assert_eq!(wide.push(far, 3), Err(Refused(3)));
    }

    #[derive(Clone, Debug)]
    enum Op {
        Push(u64),
        Place(u64),
        Forget(u64),
        Clear,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            8 => (0u64..60).prop_map(Op::Push),
            8 => (0u64..60).prop_map(Op::Place),
            1 => (0u64..60).prop_map(Op::Forget),
            1 => Just(Op::Clear),
        ]
    }

    type Sample = (u64, usize);

    /// The pair around a moment by looking at every value.
    fn naive(model: &[Sample], moment: u64) -> (Option<Sample>, Option<Sample>) {
        let before = model.iter().filter(|(stamp, _)| *stamp <= moment).max().copied();
        (before, model.iter().filter(|(stamp, _)| *stamp > moment).min().copied())
    }

    proptest! {
        #[test]
        fn agrees_with_a_sorted_list(ops in prop::collection::vec(op(), 1..120)) {
            const ROOM: usize = 5;
            let mut history = History::<usize, ROOM>::new();
            let mut model: Vec<(u64, usize)> = Vec::new();
            for (value, op) in ops.into_iter().enumerate() {
                match op {
                    Op::Push(stamp) => {
                        let newer = model.iter().all(|(of, _)| *of < stamp);
                        prop_assert_eq!(history.push(at(stamp), value).is_ok(), newer);
                        if newer { model.push((stamp, value)) }
                    }
                    Op::Place(stamp) => {
                        let there = model.iter().any(|(of, _)| *of == stamp);
                        let oldest = model.iter().all(|(of, _)| *of > stamp);
                        let refused = !there && oldest && model.len() == ROOM;
                        prop_assert_eq!(history.place(at(stamp), value).is_err(), refused);
                        if !refused {
                            model.retain(|(of, _)| *of != stamp);
                            model.push((stamp, value));
                        }
                    }
                    Op::Forget(stamp) => {
                        history.forget_before(at(stamp));
                        model.retain(|(of, _)| *of >= stamp);
                    }
                    Op::Clear => {
                        history.clear();
                        model.clear();
                    }
                }
                model.sort_unstable();
                while model.len() > ROOM { model.remove(0); }
                let held: Vec<_> = history.iter().map(|(of, value)| (of, *value)).collect();
                let expected: Vec<_> = model.iter().map(|(of, value)| (at(*of), *value)).collect();
                prop_assert_eq!(held, expected);
                for moment in 0..61 {
                    let expected = naive(&model, moment);
                    let exact = model.iter().find(|(of, _)| *of == moment).map(|(_, value)| value);
                    prop_assert_eq!(history.get(at(moment)), exact);
                    match (history.bracket(at(moment)), expected) {
                        (Bracket::Empty, (None, None)) => {}
                        (Bracket::Before(first), (None, Some((_, value)))) => {
                            prop_assert_eq!(*first, value);
                        }
                        (Bracket::After { last, by }, (Some((of, value)), None)) => {
                            prop_assert_eq!((*last, by.as_millis() as u64), (value, moment - of));
                        }
                        (Bracket::Between { before, after, part }, (Some(one), Some(two))) => {
                            prop_assert_eq!((*before, *after), (one.1, two.1));
                            prop_assert_eq!(part.past().as_millis() as u64, moment - one.0);
                            prop_assert_eq!(part.span().as_millis() as u64, two.0 - one.0);
                            let exact = (moment - one.0) as f32 / (two.0 - one.0) as f32;
                            prop_assert!((part.as_f32() - exact).abs() < 1e-6);
                        }
                        (got, expected) => prop_assert!(false, "{:?} for {:?}", got, expected),
                    }
                }
            }
        }
    }
}
