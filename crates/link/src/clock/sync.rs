//! The clock of the other side, from exchanges that carry four stamps.

use super::recent::Recent;
use super::{Offset, Slew};
use crate::time::{Instant, micros};
use core::time::Duration;

/// The four stamps of a question and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When the question left, by the local clock.
    pub asked: Instant,
    /// When it came, by the remote clock.
    pub received: Instant,
    /// When the answer left, by the remote clock.
    pub answered: Instant,
    /// When it came, by the local clock.
    pub arrived: Instant,
}

impl Exchange {
    /// What the ways there and back took together, without the time that the other side took;
    /// `None` if the stamps contradict each other.
    pub fn round_trip(&self) -> Option<Duration> {
        if self.arrived < self.asked || self.answered < self.received {
            return None;
        }
        let whole = self.arrived.saturating_since(self.asked);
        whole.checked_sub(self.answered.saturating_since(self.received))
    }

    /// The offset if both ways took equally long. It is off by no more than half the round trip.
    pub fn offset(&self) -> Offset {
        let there = i128::from(self.asked.as_micros()) - i128::from(self.received.as_micros());
        let back = i128::from(self.arrived.as_micros()) - i128::from(self.answered.as_micros());
        // The mean, cut downwards; of two differences of u64 it lies within i65.
        Offset::cut((there + back).div_euclid(2))
    }
}

/// What a [`ClockSync`] takes for granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncPolicy {
    /// An exchange counts for so long.
    pub keep: Duration,
    /// What would have to go ahead by more than this goes there at once.
    pub leap: Duration,
    /// The clock goes right by one microsecond in so many that pass.
    pub one_in: u32,
}

impl SyncPolicy {
    /// Half a minute is kept, what lies a second ahead is gone to at once, one in eight goes right.
    pub const DEFAULT: Self =
        Self { keep: Duration::from_secs(30), leap: Duration::from_secs(1), one_in: 8 };
}

/// The clock of the other side and the round trip, from exchanges of four stamps.
///
/// Of the last `N` exchanges the one with the shortest round trip counts, the newest of equals: a
/// delay that hits one way alone makes an offset wrong by half of it, and cannot make a round trip
/// shorter. So a spike changes nothing as long as one exchange without it is kept.
///
/// ```text
///   offset                x                     x     the further right, the further off it may be
///      |        x    x          x
///      |   *  x
///      |      x     x        x        x
///      |             x                     x
///      +---^--------------------------------------> round trip
///          the best: this one counts
/// ```
///
/// What [`now`](Self::now) gives never runs backwards, whatever the exchanges say: a clock that is
/// ahead is slowed down until the other side has caught up.
///
/// ```
/// use caves_link::clock::{ClockSync, Exchange, SyncPolicy};
/// use caves_link::time::Instant;
/// use core::time::Duration;
///
/// let ms = Instant::from_millis;
/// let mut sync = ClockSync::<8>::new(SyncPolicy::DEFAULT);
/// // 20 ms there, 5 ms to answer, 20 ms back; the remote clock is 7 s ahead.
/// let (asked, arrived) = (ms(1000), ms(1045));
/// assert!(sync.sample(Exchange { asked, received: ms(8020), answered: ms(8025), arrived }));
/// assert_eq!(sync.round_trip(), Some(Duration::from_millis(40)));
/// assert_eq!(sync.now(ms(1045)), Some(ms(8045)));
/// // The next answer is held up for 300 ms.
/// let (asked, arrived) = (ms(2000), ms(2345));
/// assert!(sync.sample(Exchange { asked, received: ms(9020), answered: ms(9025), arrived }));
/// assert_eq!(sync.now(ms(2345)), Some(ms(9345)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ClockSync<const N: usize> {
    recent: Recent<(Duration, Offset), N>,
    present: Slew,
}

impl<const N: usize> ClockSync<N> {
    /// Nothing heard yet.
    pub const fn new(policy: SyncPolicy) -> Self {
        Self {
            recent: Recent::new(policy.keep, (Duration::ZERO, Offset(0))),
            present: Slew::never_back(policy.one_in, policy.leap),
        }
    }

    /// Takes an exchange whose answer has just arrived; `false` if its stamps contradict each other,
    /// and it counts for nothing.
    pub fn sample(&mut self, exchange: Exchange) -> bool {
        let Some(round_trip) = exchange.round_trip() else { return false };
        self.recent.push(exchange.arrived, (round_trip, exchange.offset()));
        if let Some((_, offset)) = self.best() {
            self.present.aim(exchange.arrived, offset);
        }
        true
    }

    /// What the remote clock shows when the local one shows `local`, `None` before the first sample.
    pub fn now(&self, local: Instant) -> Option<Instant> {
        self.present.remote(local)
    }

    /// The shortest round trip of the exchanges that count.
    pub fn round_trip(&self) -> Option<Duration> {
        self.best().map(|(round_trip, _)| round_trip)
    }

    /// The offset of the exchange with the shortest round trip. It follows each sample at once.
    pub fn offset(&self) -> Option<Offset> {
        self.best().map(|(_, offset)| offset)
    }

    /// How far the offset may be off, if both clocks run equally fast: half the round trip.
    pub fn uncertainty(&self) -> Option<Duration> {
        self.round_trip().map(|round_trip| Duration::from_micros(micros(round_trip).div_ceil(2)))
    }

    /// Exchanges that count, at most `N`.
    pub const fn len(&self) -> usize {
        self.recent.len()
    }

    /// Whether nothing was heard yet.
    pub const fn is_empty(&self) -> bool {
        self.recent.len() == 0
    }

    fn best(&self) -> Option<(Duration, Offset)> {
        // Of equals `min_by_key` takes the first, and that is to be the newest.
        let mut best = None;
        for sample in self.recent.iter() {
            if best.is_none_or(|(shortest, _)| sample.0 <= shortest) {
                best = Some(sample);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn at(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    fn us(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    /// An exchange of a remote clock that is `ahead`, with given ways and time to answer.
    fn exchange(asked: u64, ahead: i64, there: u64, took: u64, back: u64) -> Exchange {
        let remote = |local: u64| at(local.checked_add_signed(ahead).unwrap());
        Exchange {
            asked: at(asked),
            received: remote(asked + there),
            answered: remote(asked + there + took),
            arrived: at(asked + there + took + back),
        }
    }

    #[test]
    fn equal_ways_give_the_exact_offset_and_unequal_ones_half_their_difference() {
        let even = exchange(1_000_000, -400_000, 30_000, 7_000, 30_000);
        assert_eq!(even.round_trip(), Some(us(60_000)));
        assert_eq!(even.offset(), Offset(400_000));
        let uneven = exchange(1_000_000, 5_000_000, 10_000, 0, 50_000);
        // 40,000 longer back: the remote clock seems 20,000 behind.
        assert_eq!(uneven.offset(), Offset(-5_000_000 + 20_000));
        assert_eq!(uneven.round_trip(), Some(us(60_000)));
    }

    #[test]
    fn stamps_that_contradict_each_other_count_for_nothing() {
        let good = exchange(100, 0, 10, 10, 10);
        let mut sync = ClockSync::<4>::new(SyncPolicy::DEFAULT);
        for bad in [
            Exchange { arrived: at(99), ..good },
            Exchange { answered: at(109), ..good },
            // The other side took longer than the whole exchange.
            Exchange { answered: at(141), ..good },
        ] {
            assert_eq!(bad.round_trip(), None);
            assert!(!sync.sample(bad));
        }
        assert!(sync.is_empty() && sync.now(at(200)).is_none() && sync.uncertainty().is_none());
        let far = at(u64::MAX);
        let edge = Exchange { asked: Instant::ZERO, received: far, answered: far, arrived: far };
        assert_eq!(edge.offset(), Offset(i64::MIN));
        assert!(sync.sample(edge));
    }

    #[test]
    fn spikes_change_nothing_while_one_good_exchange_is_kept() {
        let mut sync = ClockSync::<8>::new(SyncPolicy::DEFAULT);
        assert!(sync.sample(exchange(1_000_000, 50_000, 20_000, 100, 20_000)));
        for n in 1..8 {
            assert!(sync.sample(exchange(
                1_000_000 + n * 200_000,
                50_000,
                20_000,
                100,
                900_000 * n
            )));
            assert_eq!(sync.offset(), Some(Offset(-50_000)), "{n}");
            let local = at(30_000_000);
            assert_eq!(sync.now(local), Some(at(30_050_000)));
        }
        assert_eq!((sync.len(), sync.uncertainty()), (8, Some(us(20_000))));
        // The ninth drives the good one out.
        assert!(sync.sample(exchange(9_000_000, 50_000, 20_000, 100, 60_000)));
        assert_eq!(sync.offset(), Some(Offset(-50_000 + 20_000)));
    }

    #[test]
    fn old_exchanges_are_forgotten_so_that_a_longer_way_is_believed_in_time() {
        let mut sync = ClockSync::<8>::new(SyncPolicy::DEFAULT);
        assert!(sync.sample(exchange(0, 50_000, 10, 0, 10)));
        assert!(sync.sample(exchange(29_000_000, 70_000, 400, 0, 400)));
        assert_eq!(sync.round_trip(), Some(us(20)));
        assert!(sync.sample(exchange(31_000_000, 70_000, 500, 0, 500)));
        assert_eq!((sync.round_trip(), sync.len()), (Some(us(800)), 2));
    }

    #[test]
    fn a_remote_clock_that_was_set_back_is_waited_for_and_one_set_ahead_followed() {
        let mut sync = ClockSync::<1>::new(SyncPolicy::DEFAULT);
        assert!(sync.sample(exchange(10_000_000, 60_000_000, 0, 0, 0)));
        assert_eq!(sync.now(at(10_000_000)), Some(at(70_000_000)));
        // Set back by 5 s: 8 s later a second of it is made good.
        assert!(sync.sample(exchange(10_000_000, 55_000_000, 0, 0, 0)));
        assert_eq!(sync.now(at(10_000_000)), Some(at(70_000_000)));
        assert_eq!(sync.now(at(18_000_000)), Some(at(77_000_000)));
        assert!(sync.sample(exchange(18_000_000, 90_000_000, 0, 0, 0)));
        assert_eq!(sync.now(at(18_000_000)), Some(at(108_000_000)));
    }

    proptest! {
        /// Against all exchanges looked at anew; and what is shown never runs backwards.
        #[test]
        fn agrees_with_all_exchanges_looked_at_anew(
            one_in in 1u32..5,
            steps in prop::collection::vec(
                (1u64..60, -40i64..40, 0u64..30, 0u64..5, 0u64..90, 0u64..40), 1..60),
        ) {
            let policy = SyncPolicy { keep: us(400), leap: us(25), one_in };
            let mut sync = ClockSync::<5>::new(policy);
            let (mut local, mut last) = (10_000, Instant::ZERO);
            // When it arrived, its round trip, its offset doubled, so that nothing is cut.
            let mut all: Vec<(u64, u64, i64)> = Vec::new();
            for (pause, ahead, there, took, back, wait) in steps {
                local += pause;
                prop_assert!(sync.sample(exchange(local, 500 + ahead, there, took, back)));
                local += there + took + back;
                all.push((local, there + back, -2 * (500 + ahead) + back as i64 - there as i64));
                let newest = all.iter().rev().take(5).take_while(|of| of.0 + 400 >= local);
                let best = newest.min_by_key(|of| of.1).unwrap();
                prop_assert_eq!(sync.round_trip(), Some(us(best.1)));
                prop_assert_eq!(sync.offset(), Some(Offset(best.2.div_euclid(2))));
                for _ in 0..=wait {
                    let shown = sync.now(at(local)).unwrap();
                    prop_assert!(shown >= last, "{:?} after {:?}", shown, last);
                    last = shown;
                    local += 1;
                }
                // Waited for long enough, the goal is reached.
                let rested = sync.now(at(local + 100_000)).unwrap();
                prop_assert_eq!(rested, sync.offset().unwrap().remote(at(local + 100_000)));
            }
        }
    }
}
