//! Moments and deadlines.
//!
//! [`Instant`] counts microseconds since an origin that its user chooses, mostly the start of the
//! program. It cannot be asked for the present: only a binary reads the system clock, and all
//! below takes the moment as an argument. A test then writes the moment it means.
//!
//! ```text
//!   origin                    now            deadline
//!     |------------------------|----------------|-----------------------------> microseconds
//!     0        Instant(3_000_000)               |
//!                              |<-- Duration -->|
//!
//!   poll_timeout: the earliest of all deadlines          sleep until then at most
//!   is_due(now):  deadline <= now                        exactly now is due
//! ```
//!
//! Differences are [`Duration`]s, and one that would be below zero is zero: what seems to lie in
//! the future has waited for no time at all. Nothing overflows; what lies beyond the last
//! microsecond is the last microsecond.
//!
//! ```
//! use caves_link::time::{Deadline, Instant};
//! use core::time::Duration;
//!
//! let now = Instant::from_secs(3);
//! let mut idle = Deadline::at(now + Duration::from_secs(10));
//! assert!(!idle.is_due(Instant::from_millis(12_999)));
//! assert!(idle.is_due(Instant::from_secs(13)));
//! idle.clear();
//! assert_eq!(Deadline::earliest([idle.get(), Some(now), None]), Some(now));
//! ```

use core::ops::{Add, AddAssign};
use core::time::Duration;

/// A moment, in whole microseconds since an origin of the user's choice.
///
/// Arithmetic saturates: 2^64 microseconds are half a million years, and what lies beyond is
/// "never" for any practical purpose. Parts of a microsecond are cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The origin.
    pub const ZERO: Self = Self(0);

    /// `micros` microseconds after the origin.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// `millis` milliseconds after the origin.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// `secs` seconds after the origin.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    /// Microseconds since the origin.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Whole milliseconds since the origin.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }

    /// The time from `earlier` to this moment; zero if `earlier` is in truth later.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// The moment `before` this one, `None` if it lies before the origin.
    pub const fn checked_sub(self, before: Duration) -> Option<Self> {
        match self.0.checked_sub(micros(before)) {
            Some(micros) => Some(Self(micros)),
            None => None,
        }
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, after: Duration) -> Self {
        Self(self.0.saturating_add(micros(after)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, after: Duration) {
        *self = *self + after;
    }
}

/// A moment at which something is to be done, or never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    /// Nothing to be done.
    pub const NEVER: Self = Self(None);

    /// Due from `moment` on.
    pub const fn at(moment: Instant) -> Self {
        Self(Some(moment))
    }

    /// Moves the deadline to `moment`, whatever it was.
    pub const fn set(&mut self, moment: Instant) {
        self.0 = Some(moment);
    }

    /// Makes it [`NEVER`](Self::NEVER).
    pub const fn clear(&mut self) {
        self.0 = None;
    }

    /// Whether the moment has come; due exactly now is due.
    pub fn is_due(self, now: Instant) -> bool {
        self.0.is_some_and(|moment| moment <= now)
    }

    /// The moment, `None` for never.
    pub const fn get(self) -> Option<Instant> {
        self.0
    }

    /// The first of several moments, `None` if there is none among them.
    pub fn earliest(moments: impl IntoIterator<Item = Option<Instant>>) -> Option<Instant> {
        moments.into_iter().flatten().min()
    }
}

/// Whole microseconds of a duration; never narrowed, at most cut to the largest count.
pub(crate) const fn micros(duration: Duration) -> u64 {
    let micros = duration.as_micros();
    if micros > u64::MAX as u128 { u64::MAX } else { micros as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FAR: Instant = Instant::from_micros(u64::MAX);

    proptest! {
        #[test]
        fn moments_agree_with_wide_arithmetic_cut_at_both_ends(
            start in any::<u64>(),
            steps in prop::collection::vec((any::<u64>(), 0u32..64, any::<bool>()), 1..40),
        ) {
            let cut = |wide: i128| wide.clamp(0, i128::from(u64::MAX)) as u64;
            let (mut moment, mut wide) = (Instant::from_micros(start), i128::from(start));
            for (size, shift, forward) in steps {
                // Steps of all sizes, not of the largest alone.
                let step = size >> shift;
                let (before, by) = (moment, Duration::from_micros(step));
                let sum = wide + i128::from(step) * if forward { 1 } else { -1 };
                if forward {
                    moment += by;
                    wide = i128::from(cut(sum));
                } else {
                    prop_assert_eq!(moment.checked_sub(by).is_some(), sum >= 0);
                    if let Some(earlier) = moment.checked_sub(by) {
                        (moment, wide) = (earlier, sum);
                    }
                }
                prop_assert_eq!(i128::from(moment.as_micros()), wide);
                prop_assert_eq!(i128::from(moment.as_millis()), wide / 1000);
                let passed = i128::from(cut(wide - i128::from(before.as_micros())));
                prop_assert_eq!(moment.saturating_since(before).as_micros() as i128, passed);
            }
        }

        #[test]
        fn the_earliest_deadline_is_the_smallest_that_there_is(
            ops in prop::collection::vec((0usize..4, prop::option::of(0u64..50), 0u64..50), 1..80),
        ) {
            let mut deadlines = [Deadline::NEVER; 4];
            let mut model = [None; 4];
            for (place, moment, now) in ops {
                match moment {
                    Some(moment) => deadlines[place].set(Instant::from_micros(moment)),
                    None => deadlines[place].clear(),
                }
                model[place] = moment;
                let earliest = Deadline::earliest(deadlines.map(Deadline::get));
                let expected = (0..50).find(|moment| model.contains(&Some(*moment)));
                prop_assert_eq!(earliest, expected.map(Instant::from_micros));
                for (deadline, moment) in deadlines.iter().zip(model) {
                    let due = (0..=now).any(|past| moment == Some(past));
                    prop_assert_eq!(deadline.is_due(Instant::from_micros(now)), due);
                }
            }
        }
    }

    #[test]
    fn units_agree() {
        assert_eq!(Instant::from_secs(2), Instant::from_millis(2_000));
        assert_eq!(Instant::from_millis(7), Instant::from_micros(7_000));
        assert_eq!(Instant::from_micros(7_999).as_millis(), 7);
        assert_eq!(Instant::from_micros(7_999).as_micros(), 7_999);
        assert_eq!(Instant::ZERO.as_micros(), 0);
    }

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(FAR + Duration::from_micros(1), FAR);
        assert_eq!(Instant::ZERO + Duration::MAX, FAR);
        assert_eq!(Instant::from_secs(u64::MAX), FAR);
        assert_eq!(Instant::from_millis(u64::MAX), FAR);
        assert_eq!(Instant::ZERO.saturating_since(FAR), Duration::ZERO);
        assert_eq!(FAR.saturating_since(Instant::ZERO), Duration::from_micros(u64::MAX));
        assert_eq!(Instant::from_micros(5).checked_sub(Duration::from_micros(6)), None);
        assert_eq!(FAR.checked_sub(Duration::MAX), Some(Instant::ZERO));
        let mut moment = Instant::from_micros(5);
        moment += Duration::from_micros(6);
        assert_eq!(moment.checked_sub(Duration::from_micros(11)), Some(Instant::ZERO));
    }

    #[test]
    fn elapsed_time_is_not_narrowed_to_32_bits() {
        // 2^32 microseconds are 71 minutes; a day is beyond.
        let day = Duration::from_secs(86_400);
        assert_eq!((Instant::from_secs(1) + day).as_micros(), 86_401_000_000);
        assert_eq!(Instant::from_secs(86_401).saturating_since(Instant::from_secs(1)), day);
    }

    #[test]
    fn due_exactly_now_is_due() {
        let deadline = Deadline::at(Instant::from_micros(100));
        assert!(!deadline.is_due(Instant::from_micros(99)));
        assert!(deadline.is_due(Instant::from_micros(100)));
        assert!(deadline.is_due(Instant::from_micros(101)));
    }

    #[test]
    fn never_is_not_due_even_at_the_end_of_time() {
        let mut deadline = Deadline::default();
        assert_eq!(deadline, Deadline::NEVER);
        assert!(!deadline.is_due(FAR));
        deadline.set(Instant::ZERO);
        assert!(deadline.is_due(Instant::ZERO));
        deadline.clear();
        assert_eq!(deadline.get(), None);
    }

    #[test]
    fn the_earliest_ignores_what_never_comes() {
        let (a, b) = (Instant::from_micros(4), Instant::from_micros(9));
        assert_eq!(Deadline::earliest([Some(b), None, Some(a)]), Some(a));
        assert_eq!(Deadline::earliest([None, None]), None);
        assert_eq!(Deadline::earliest([]), None);
    }
}
