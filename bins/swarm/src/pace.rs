//! When a client's ticks came: what was missed, and how far from the server's beat.

use std::time::Duration;

use caves_link::time::Instant;
use caves_wire::caves::Tick;

use crate::histogram::Histogram;

/// The ticks of one client.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    last: Option<(Tick, Instant)>,
}

/// The ticks of all clients.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ticks {
    /// States that came and were the newest.
    pub(crate) received: u64,
    /// Ticks between those whose State never came, or too late.
    pub(crate) missed: u64,
    /// How far from the expected moment after the one before, in microseconds.
    pub(crate) jitter: Histogram,
}

impl Pace {
    /// Another session counts elsewhere.
    pub(crate) const fn restart(&mut self) {
        self.last = None;
    }

    /// The newest state came.
    pub(crate) fn state(&mut self, now: Instant, tick: Tick, period: Duration, ticks: &mut Ticks) {
        ticks.received += 1;
        if let Some((last, at)) = self.last.replace((tick, now))
            && tick.is_newer_than(last)
        {
            let steps = tick.distance_from(last);
            ticks.missed += u64::from(steps - 1);
            let expected = period.saturating_mul(steps);
            let off = now.saturating_since(at).abs_diff(expected);
            ticks.jitter.add(off.as_micros() as u64);
        }
    }
}

impl Ticks {
    pub(crate) fn merge(&mut self, other: &Self) {
        self.received += other.received;
        self.missed += other.missed;
        self.jitter.merge(&other.jitter);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_and_deviations_are_counted_from_the_tick_before() {
        let (mut pace, mut ticks) = (Pace::default(), Ticks::default());
        let period = Duration::from_millis(100);
        // 3 ms late, then 2 ms early, then two missed and 50 us late; the number wraps.
        for (micros, tick) in [(0, u32::MAX), (103_000, 0), (201_000, 1), (501_050, 4)] {
            pace.state(Instant::from_micros(micros), Tick::new(tick), period, &mut ticks);
        }
        assert_eq!((ticks.received, ticks.missed), (4, 2));
        assert_eq!(ticks.jitter.quantile(0), Some(50));
        let spread = ticks.jitter.spread();
        assert_eq!((spread.count, spread.max), (3, 3.0));
        assert!((2.0..2.04).contains(&spread.p50), "{spread:?}");
    }

    #[test]
    fn another_session_is_neither_gap_nor_jitter() {
        let (mut pace, mut ticks) = (Pace::default(), Ticks::default());
        let period = Duration::from_millis(100);
        pace.state(Instant::from_secs(0), Tick::new(5), period, &mut ticks);
        pace.restart();
        pace.state(Instant::from_secs(9), Tick::new(70), period, &mut ticks);
        assert_eq!((ticks.received, ticks.missed, ticks.jitter.spread().count), (2, 0, 0));
    }
}
