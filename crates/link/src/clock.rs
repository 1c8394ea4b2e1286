//! The smoothed round trip, and the clock of the other side.
//!
//! Two clocks that were never set by one another show the same moment by different numbers. What
//! a peer stamps with its own clock arrives after an unknown way; the smallest difference between
//! the stamp and the arrival belongs to the shortest way, and how much larger the others are is
//! the jitter.
//!
//! ```text
//!   remote   ---500-------600-------700-------800-------900----------> stamps
//!                 \          \          \            \      \
//!                  \          \           \            \    \        each way is as long
//!                   \          \            \            \  \        as it happens to be
//!   local    --------1040-------1140---------1247--------1372-1440---> arrivals
//!
//!   offset             540        540          547         572  540      arrival - stamp
//!                      |------------------------------------------|
//!                      |e e e . m                                 l|
//!                       ^       ^                                 ^
//!                       |       median: the usual way             the latest: 32 late
//!                       earliest: the shortest way
//! ```
//!
//! [`RoundTrip`] measures the way there and back, on one clock alone. Half of it is the way here,
//! as far as anybody can know, and so [`RemoteClock`] tells what the remote clock shows *now*.
//! Where a protocol exchanges four stamps, those of either end for a question and its answer,
//! [`ClockSync`] finds both from the exchange with the shortest round trip.
//! [`Slew`] is what keeps such an answer from jumping: an offset that follows its goal at a bounded
//! speed. It serves as well for the playback of what arrived, some time behind the earliest.
//!
//! ```
//! use caves_link::clock::{RemoteClock, RemotePolicy, RoundTrip};
//! use caves_link::time::Instant;
//! use core::time::Duration;
//!
//! let mut trip = RoundTrip::new();
//! assert_eq!(trip.smoothed(), None);
//! trip.sample(Duration::from_millis(80));
//! trip.sample(Duration::from_millis(160));
//! assert_eq!(trip.smoothed(), Some(Duration::from_millis(90)));
//!
//! let mut server = RemoteClock::<16>::new(RemotePolicy::DEFAULT);
//! for (arrived, stamp) in [(1040, 500), (1140, 600), (1247, 700), (1372, 800), (1440, 900)] {
//!     let (arrived, stamp) = (Instant::from_millis(arrived), Instant::from_millis(stamp));
//!     server.sample(arrived, stamp, Duration::from_millis(90));
//! }
//! // Of the offsets 540, 540, 540, 547, 572 the median is 540; half of 90 is the way.
//! let now = Instant::from_millis(1500);
//! assert_eq!(server.now(now), Some(Instant::from_millis(1500 - 540 + 45)));
//! assert_eq!(server.lateness(95), Some(Duration::from_millis(32)));
//! ```

mod recent;
mod sync;

pub use sync::{ClockSync, Exchange, SyncPolicy};

use crate::time::{Instant, micros};
use core::time::Duration;
use recent::Recent;

/// Round trips smoothed as RFC 6298, section 2, does: 1/8 of the new sample, 1/4 of its deviation.
///
/// In whole microseconds, cut downwards at each step. A sample must belong to the exchange that
/// it measures: an answer to a repeated question tells nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundTrip {
    state: Option<State>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    smoothed: u64,
    variance: u64,
}

impl RoundTrip {
    /// Nothing measured yet.
    pub const fn new() -> Self {
        Self { state: None }
    }

    /// Takes one measured round trip into account.
    pub fn sample(&mut self, measured: Duration) {
        let measured = micros(measured);
        self.state = Some(match self.state {
            None => State { smoothed: measured, variance: measured / 2 },
            // The deviation is from the old average, so the variance comes first.
            Some(old) => State {
                variance: blend(old.variance, old.smoothed.abs_diff(measured), 4),
                smoothed: blend(old.smoothed, measured, 8),
            },
        });
    }

    /// The smoothed round trip, `None` before the first sample.
    pub fn smoothed(&self) -> Option<Duration> {
        self.state.map(|state| Duration::from_micros(state.smoothed))
    }

    /// The smoothed deviation from it, `None` before the first sample.
    pub fn variance(&self) -> Option<Duration> {
        self.state.map(|state| Duration::from_micros(state.variance))
    }
}

/// By how much a local clock is ahead of a remote one, in microseconds; below zero if behind.
///
/// Two clocks further apart than half of all microseconds count as just so far apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offset(i64);

impl Offset {
    /// The offset when the local clock shows `local` and the remote one `remote`.
    pub fn between(local: Instant, remote: Instant) -> Self {
        Self::cut(i128::from(local.as_micros()) - i128::from(remote.as_micros()))
    }

    /// The nearest offset that there is.
    fn cut(difference: i128) -> Self {
        // Within i64 after this, so nothing is lost.
        Self(difference.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
    }

    /// What the remote clock shows when the local one shows `local`; at least the origin.
    pub fn remote(self, local: Instant) -> Instant {
        shifted(local, -i128::from(self.0))
    }

    /// What the local clock shows when the remote one shows `remote`; at least the origin.
    pub fn local(self, remote: Instant) -> Instant {
        shifted(remote, i128::from(self.0))
    }

    /// The offset by which the remote clock shows `by` less.
    #[must_use]
    pub const fn behind(self, by: Duration) -> Self {
        Self(self.0.saturating_add_unsigned(micros(by)))
    }

    /// The offset by which the remote clock shows `by` more.
    #[must_use]
    pub const fn ahead(self, by: Duration) -> Self {
        Self(self.0.saturating_sub_unsigned(micros(by)))
    }

    /// How far two offsets lie apart.
    pub const fn distance(self, other: Self) -> Duration {
        Duration::from_micros(self.0.abs_diff(other.0))
    }
}

fn shifted(moment: Instant, by: i128) -> Instant {
    let micros = i128::from(moment.as_micros()) + by;
    Instant::from_micros(micros.clamp(0, i128::from(u64::MAX)) as u64)
}

/// An offset that follows its goal no faster than one microsecond in so many that pass.
///
/// What is read by it never runs backwards: time slows down or hurries a little. Only a goal that
/// lies further away than a leap is gone to at once.
///
/// ```
/// use caves_link::clock::{Offset, Slew};
/// use caves_link::time::Instant;
/// use core::time::Duration;
///
/// let start = Instant::from_secs(10);
/// let zero = Offset::between(start, start);
/// let mut shown = Slew::new(10, Duration::from_secs(1));
/// shown.aim(start, zero);
/// shown.aim(start, zero.behind(Duration::from_millis(50)));
/// // After 200 ms the 50 are 20.
/// assert_eq!(shown.remote(Instant::from_millis(10_200)), Some(Instant::from_millis(10_180)));
/// assert_eq!(shown.remote(Instant::from_millis(11_000)), Some(Instant::from_millis(10_950)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Slew {
    one_in: u32,
    leap: Duration,
    leaps_back: bool,
    state: Option<Slewing>,
}

#[derive(Clone, Copy, Debug)]
struct Slewing {
    /// The moment of which `offset` is true.
    at: Instant,
    offset: Offset,
    goal: Offset,
}

impl Slew {
    /// Without a goal; a microsecond in `one_in` (at least 1) is how fast it follows, and what lies
    /// further away than `leap` it goes to at once.
    pub const fn new(one_in: u32, leap: Duration) -> Self {
        let one_in = if one_in == 0 { 1 } else { one_in };
        Self { one_in, leap, leaps_back: true, state: None }
    }

    /// The same, but it never goes back at once, however far away its goal lies: the remote clock
    /// that is read by it slows down, or stands with a `one_in` of 1, and never runs backwards.
    pub const fn never_back(one_in: u32, leap: Duration) -> Self {
        Self { leaps_back: false, ..Self::new(one_in, leap) }
    }

    /// Follows another goal from `now` on. The first one is reached at once.
    pub fn aim(&mut self, now: Instant, goal: Offset) {
        let slewing = match (self.state, self.offset(now)) {
            (Some(old), Some(offset)) if !self.leaps(offset, goal) => {
                Slewing { at: old.at.max(now), offset, goal }
            }
            _ => Slewing { at: now, offset: goal, goal },
        };
        self.state = Some(slewing);
    }

    fn leaps(&self, from: Offset, goal: Offset) -> bool {
        // The larger the offset, the less the remote clock shows.
        from.distance(goal) > self.leap && (self.leaps_back || goal < from)
    }

    /// The offset at `now`, `None` without a goal.
    pub fn offset(&self, now: Instant) -> Option<Offset> {
        let Slewing { at, offset: Offset(from), goal: Offset(goal) } = self.state?;
        let passed = micros(now.saturating_since(at)) / u64::from(self.one_in);
        let way = passed.min(from.abs_diff(goal));
        Some(Offset(if goal < from {
            from.saturating_sub_unsigned(way)
        } else {
            from.saturating_add_unsigned(way)
        }))
    }

    /// What the remote clock shows by this offset at `local`.
    pub fn remote(&self, local: Instant) -> Option<Instant> {
        Some(self.offset(local)?.remote(local))
    }
}

/// What a [`RemoteClock`] takes for granted about its samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemotePolicy {
    /// A sample counts for so long.
    pub keep: Duration,
    /// What lies further from the median than this is no delay, but one of the clocks was set.
    pub leap: Duration,
    /// The clock goes right by one microsecond in so many that pass.
    pub one_in: u32,
}

impl RemotePolicy {
    /// Four seconds are kept, a second is a leap, one in eight goes right.
    pub const DEFAULT: Self =
        Self { keep: Duration::from_secs(4), leap: Duration::from_secs(1), one_in: 8 };
}

/// The clock of the other side, from the stamps that arrive.
///
/// It keeps at most `N` samples, and all that it says follows from those: the earliest, the median
/// (of an even number the lower one), how late the others are. Samples that lie further from the
/// median than a leap count for nothing but the median. So a single absurd stamp changes nothing,
/// and when one of the clocks was set, the new time is believed as soon as half of the samples say
/// it, or the old ones are no longer kept.
///
/// What [`now`](Self::now) gives does not run backwards, except at such a leap. The round trip is
/// an argument of [`sample`](Self::sample) and not of the question for that very reason: one
/// answer more may make it shorter or longer at any moment.
#[derive(Clone, Copy, Debug)]
pub struct RemoteClock<const N: usize> {
    policy: RemotePolicy,
    recent: Recent<Offset, N>,
    median: Offset,
    earliest: Offset,
    present: Slew,
}

impl<const N: usize> RemoteClock<N> {
    /// Nothing heard yet.
    pub const fn new(policy: RemotePolicy) -> Self {
        Self {
            policy,
            recent: Recent::new(policy.keep, Offset(0)),
            median: Offset(0),
            earliest: Offset(0),
            present: Slew::new(policy.one_in, policy.leap),
        }
    }

    /// What the remote clock had stamped with `remote` arrived at `local`. `round_trip` is what an
    /// exchange usually takes, as far as it is known; zero if it is not.
    pub fn sample(&mut self, local: Instant, remote: Instant, round_trip: Duration) {
        self.recent.push(local, Offset::between(local, remote));
        let (sorted, len) = self.sorted();
        self.median = sorted[(len - 1) / 2];
        let (median, leap) = (self.median, self.policy.leap);
        let near = sorted.iter().find(|offset| offset.distance(median) <= leap);
        self.earliest = *near.unwrap_or(&median);
        // An absurd round trip is no reason for a leap.
        let way = (round_trip / 2).min(leap);
        self.present.aim(local, median.ahead(way));
    }

    /// What the remote clock shows when the local one shows `local`, `None` before the first sample.
    pub fn now(&self, local: Instant) -> Option<Instant> {
        self.present.remote(local)
    }

    /// The offset by which the stamp is read that can just have arrived, had it come the shortest
    /// way; `None` before the first sample. It follows each sample at once: a [`Slew`] smooths it.
    pub const fn arrival(&self) -> Option<Offset> {
        if self.is_empty() { None } else { Some(self.earliest) }
    }

    /// The offset by which the stamp is read that has usually just arrived.
    pub const fn usual(&self) -> Option<Offset> {
        if self.is_empty() { None } else { Some(self.median) }
    }

    /// How late, behind the earliest, at most `percent` of the samples arrive: the jitter. The
    /// nearest rank, so that 100 is the latest and 0 the earliest.
    pub fn lateness(&self, percent: u32) -> Option<Duration> {
        let (sorted, len) = self.sorted();
        let near = |offset: &&Offset| offset.distance(self.median) <= self.policy.leap;
        let late = || sorted.iter().take(len).filter(near);
        let count = late().count() as u64;
        let rank = (count * u64::from(percent.min(100))).div_ceil(100);
        let place = usize::try_from(rank.saturating_sub(1)).unwrap_or(0);
        late().nth(place).map(|offset| offset.distance(self.earliest))
    }

    /// Samples that count, at most `N`.
    pub const fn len(&self) -> usize {
        self.recent.len()
    }

    /// Whether nothing was heard yet.
    pub const fn is_empty(&self) -> bool {
        self.recent.len() == 0
    }

    /// The offsets that are there in ascending order, and behind them nothing of meaning.
    fn sorted(&self) -> ([Offset; N], usize) {
        let mut sorted = [Offset(i64::MAX); N];
        for (place, offset) in sorted.iter_mut().zip(self.recent.iter()) {
            *place = offset;
        }
        sorted.sort_unstable();
        (sorted, self.recent.len())
    }
}

/// `old` with one part in `parts` replaced by `new`; wide, so that no sample can overflow it.
fn blend(old: u64, new: u64, parts: u64) -> u64 {
    let sum = u128::from(old) * u128::from(parts - 1) + u128::from(new);
    // A weighted mean of two u64 is one.
    (sum / u128::from(parts)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn after(samples: &[u64]) -> (u64, u64) {
        let mut trip = RoundTrip::new();
        for &sample in samples {
            trip.sample(Duration::from_micros(sample));
        }
        let state = trip.state.unwrap();
        (state.smoothed, state.variance)
    }

    #[test]
    fn the_first_sample_is_taken_whole_and_half() {
        assert_eq!(after(&[100_000]), (100_000, 50_000));
    }

    #[test]
    fn later_samples_follow_the_rfc() {
        // 7/8 * 100000 + 1/8 * 180000 = 110000; 3/4 * 50000 + 1/4 * 80000 = 57500
        assert_eq!(after(&[100_000, 180_000]), (110_000, 57_500));
        // 7/8 * 110000 + 1/8 * 30000 = 100000; 3/4 * 57500 + 1/4 * 80000 = 63125
        assert_eq!(after(&[100_000, 180_000, 30_000]), (100_000, 63_125));
    }

    #[test]
    fn nothing_measured_is_not_zero() {
        let trip = RoundTrip::default();
        assert_eq!((trip.smoothed(), trip.variance()), (None, None));
        assert_eq!(after(&[0]), (0, 0));
    }

    #[test]
    fn absurd_samples_do_not_overflow() {
        let mut trip = RoundTrip::new();
        for sample in [Duration::MAX, Duration::ZERO, Duration::MAX, Duration::MAX] {
            trip.sample(sample);
        }
        assert!(trip.smoothed().unwrap() > Duration::from_micros(u64::MAX / 2));
    }

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// A remote clock that is 500 s ahead, heard ten times a second over a way of 40 ms and up to
    /// 100 ms more; from `from` for `count` tenths of a second.
    fn hear(clock: &mut RemoteClock<32>, from: u64, count: u64) -> Instant {
        let mut arrived = at(from);
        for i in 0..count {
            let late = i * 37 % 101;
            arrived = at(from + i * 100 + 40 + late);
            // Both ways alike: twice 40, and twice 50 on average.
            clock.sample(arrived, at(500_000 + from + i * 100), ms(180));
        }
        arrived
    }

    #[test]
    fn the_present_of_the_remote_clock_is_found_through_jitter() {
        let mut clock = RemoteClock::<32>::new(RemotePolicy::DEFAULT);
        assert_eq!((clock.now(at(5)), clock.arrival(), clock.lateness(50)), (None, None, None));
        let now = hear(&mut clock, 1_000, 60);
        let truth = at(500_000 + now.as_millis());
        let shown = clock.now(now).unwrap();
        let error = shown.saturating_since(truth) + truth.saturating_since(shown);
        assert!(error < ms(10), "{error:?}");
        // Within the 32 kept the lateness runs from 0 or 1 ms to almost 100.
        assert!(clock.lateness(0) == Some(Duration::ZERO));
        assert!((ms(85)..=ms(97)).contains(&clock.lateness(90).unwrap()));
        assert!((ms(95)..=ms(100)).contains(&clock.lateness(100).unwrap()));
    }

    #[test]
    fn single_absurd_stamps_change_nothing() {
        let mut clock = RemoteClock::<32>::new(RemotePolicy::DEFAULT);
        let now = hear(&mut clock, 1_000, 40);
        let (before, jitter) = (clock.now(now).unwrap(), clock.lateness(95).unwrap());
        for stamp in [0, u64::MAX, 1 << 62, 3] {
            clock.sample(now, Instant::from_micros(stamp), Duration::MAX);
            clock.sample(now, at(500_000 + now.as_millis() - 60), ms(180));
        }
        let after = clock.now(now).unwrap();
        assert_eq!(after, before, "nothing goes right in no time");
        let later = now + ms(400);
        let drift = clock.now(later).unwrap().saturating_since(before + ms(400));
        assert!(drift < ms(20), "{drift:?}");
        assert!(clock.lateness(95).unwrap() <= jitter + ms(5));
    }

    #[test]
    fn a_remote_clock_that_was_set_is_believed_after_half_the_samples() {
        let mut clock = RemoteClock::<32>::new(RemotePolicy::DEFAULT);
        let now = hear(&mut clock, 1_000, 40);
        let mut believed = None;
        for i in 1..=40 {
            let local = now + ms(i * 100);
            clock.sample(local, at(9_000_000) + ms(i * 100), ms(0));
            if believed.is_none() && clock.now(local) == Some(at(9_000_000) + ms(i * 100)) {
                believed = Some(i);
            }
        }
        // Of 32 samples 17 are more than half; the lower median of 16 and 16 may do with 16.
        assert!(matches!(believed, Some(16..=17)), "{believed:?}");
        assert_eq!(clock.lateness(100), Some(Duration::ZERO), "the old ones count for nothing");
    }

    #[test]
    fn after_a_long_sleep_the_first_sample_is_believed() {
        let mut clock = RemoteClock::<32>::new(RemotePolicy::DEFAULT);
        let now = hear(&mut clock, 1_000, 40);
        // The local clock stood still for an hour while its machine slept, or went on.
        for slept in [0, 3_600_000] {
            let mut clock = clock;
            let woken = now + ms(slept + 5_000);
            let stamp = at(500_000 + 3_600_000 + woken.as_millis());
            clock.sample(woken, stamp, ms(60));
            assert_eq!(clock.now(woken), Some(stamp + ms(30)), "asleep for {slept} ms");
        }
    }

    #[test]
    fn a_longer_way_makes_time_slow_down_and_never_turn() {
        let mut clock = RemoteClock::<8>::new(RemotePolicy::DEFAULT);
        let mut last = Instant::ZERO;
        for i in 0..200u64 {
            // The way grows by 400 ms at once, and the round trip is known too late.
            let way = if i < 50 { 20 } else { 420 };
            clock.sample(at(1_000 + i * 100 + way), at(i * 100), ms(40));
            for tenth in 0..10 {
                let shown = clock.now(at(1_000 + i * 100 + way + tenth * 10)).unwrap();
                assert!(shown >= last || i == 50, "{i}: {shown:?} after {last:?}");
                last = shown;
            }
        }
        assert_eq!(clock.now(at(22_000)), Some(at(22_000 - 1_420 + 20)));
    }

    #[test]
    fn offsets_hold_at_the_ends_of_time() {
        let far = Instant::from_micros(u64::MAX);
        let (low, high) =
            (Offset::between(Instant::ZERO, far), Offset::between(far, Instant::ZERO));
        assert_eq!((low, high), (Offset(i64::MIN), Offset(i64::MAX)));
        assert_eq!(high.behind(Duration::MAX), high);
        assert_eq!(low.ahead(Duration::MAX), low);
        assert_eq!(low.distance(high), Duration::from_micros(u64::MAX));
        assert_eq!(high.remote(Instant::ZERO), Instant::ZERO);
        assert_eq!(low.remote(far), far);
        let offset = Offset::between(at(7), at(3));
        assert_eq!((offset.remote(at(9)), offset.local(at(5))), (at(5), at(9)));
        let mut slew = Slew::new(0, Duration::MAX);
        assert_eq!(slew.remote(at(1)), None);
        slew.aim(far, low);
        slew.aim(Instant::ZERO, high);
        assert_eq!(slew.offset(far), Some(low), "no time has passed since the later moment");
    }

    /// All samples ever, and everything computed anew from them.
    struct Naive {
        policy: RemotePolicy,
        room: usize,
        all: Vec<(u64, i128)>,
        shown: Option<i128>,
        goal: i128,
        at: u64,
    }

    impl Naive {
        /// Walks towards the goal, one microsecond in so many.
        fn walk(&mut self, to: u64) {
            let mut since = 0;
            while self.at < to {
                self.at += 1;
                since += 1;
                if since % self.policy.one_in == 0
                    && let Some(shown) = &mut self.shown
                {
                    *shown += (self.goal - *shown).signum();
                }
            }
        }

        fn window(&self) -> Vec<i128> {
            let newest = self.all.last().unwrap().0;
            let keep = self.policy.keep.as_micros() as u64;
            let recent = self.all.iter().rev().take(self.room);
            let mut window: Vec<i128> =
                recent.take_while(|(local, _)| local + keep >= newest).map(|(_, o)| *o).collect();
            window.sort_unstable();
            window
        }

        fn near(&self) -> Vec<i128> {
            let window = self.window();
            let median = window[(window.len() - 1) / 2];
            let leap = self.policy.leap.as_micros() as i128;
            window.into_iter().filter(|o| (o - median).abs() <= leap).collect()
        }

        /// Takes a sample, and tells whether the clock leapt.
        fn sample(&mut self, local: u64, remote: u64, trip: u64) -> bool {
            self.walk(local);
            self.all.push((local, i128::from(local) - i128::from(remote)));
            let window = self.window();
            self.goal = window[(window.len() - 1) / 2] - i128::from(trip / 2);
            let leap = self.policy.leap.as_micros() as i128;
            let leaps = self.shown.is_none_or(|shown| (shown - self.goal).abs() > leap);
            if leaps {
                self.shown = Some(self.goal);
            }
            leaps
        }
    }

    proptest! {
        #[test]
        fn agrees_with_all_samples_looked_at_anew(
            one_in in 1u32..6,
            steps in prop::collection::vec((0u64..40, 0u64..120, 0u64..50, 0u64..10), 1..60),
        ) {
            let policy = RemotePolicy {
                keep: Duration::from_micros(150),
                leap: Duration::from_micros(60),
                one_in,
            };
            let mut clock = RemoteClock::<7>::new(policy);
            let mut naive =
                Naive { policy, room: 7, all: Vec::new(), shown: None, goal: 0, at: 0 };
            let (mut local, mut last) = (1_000, None);
            for (pause, late, trip, wait) in steps {
                local += pause;
                let remote = local + 5_000 - late;
                clock.sample(Instant::from_micros(local), Instant::from_micros(remote),
                    Duration::from_micros(trip));
                if naive.sample(local, remote, trip) {
                    last = None;
                }
                let near = naive.near();
                prop_assert_eq!(clock.arrival().map(|o| i128::from(o.0)), Some(near[0]));
                for percent in [0u32, 1, 50, 90, 99, 100] {
                    // The smallest that at least so many are not above.
                    let expected = near.iter().find(|o| {
                        near.iter().filter(|of| of <= o).count() * 100
                            >= near.len() * percent as usize
                    });
                    let late = clock.lateness(percent).map(|late| late.as_micros() as i128);
                    prop_assert_eq!(late, expected.map(|o| o - near[0]), "{} of 100", percent);
                }
                for _ in 0..wait {
                    local += 1;
                    let shown = clock.now(Instant::from_micros(local)).unwrap();
                    prop_assert!(last.is_none_or(|last| shown >= last));
                    last = Some(shown);
                }
                let mut ahead = Naive { all: Vec::new(), ..naive };
                ahead.walk(local);
                let expected = i128::from(local) - ahead.shown.unwrap();
                let shown = clock.now(Instant::from_micros(local)).unwrap();
                prop_assert_eq!(i128::from(shown.as_micros()), expected);
            }
        }

        #[test]
        fn stays_close_to_the_same_formula_in_floating_point(
            samples in prop::collection::vec(0u64..5_000_000, 1..80),
        ) {
            let floats: Vec<f64> = samples.iter().map(|&s| s as f64).collect();
            let (mut srtt, mut rttvar) = (floats[0], floats[0] / 2.0);
            for r in &floats[1..] {
                rttvar = 0.75 * rttvar + 0.25 * (srtt - r).abs();
                srtt = 0.875 * srtt + 0.125 * r;
            }
            let (smoothed, variance) = after(&samples);
            // Each cut loses less than 1, and the loss decays by 7/8: less than 8 in all.
            prop_assert!((smoothed as f64 - srtt).abs() < 8.0);
            // 4 by its own cuts, and as much as the average is off.
            prop_assert!((variance as f64 - rttvar).abs() < 12.0);
        }
    }
}
