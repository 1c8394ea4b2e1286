//! How long ticks take, in buckets.

use std::time::Duration;

/// Upper bounds in microseconds, inclusive: 0.1 ms to 200 ms. At ten ticks a second one has 100 ms.
pub const BOUNDS_US: [u64; 11] =
    [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 200_000];

/// A histogram of durations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TickTimes {
    /// How many fell between each bound and the one before; above all bounds in the last.
    counts: [u64; BOUNDS_US.len() + 1],
    sum_us: u64,
}

impl TickTimes {
    /// Counts one duration.
    pub fn note(&mut self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let place = BOUNDS_US.partition_point(|bound| *bound < us);
        self.counts[place] += 1;
        self.sum_us = self.sum_us.saturating_add(us);
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// All of them together, in seconds.
    pub fn sum_s(&self) -> f64 {
        self.sum_us as f64 / 1e6
    }

    /// Each bound in seconds, infinity at last, with how many are between it and the one before.
    pub fn buckets(&self) -> Vec<(f64, u64)> {
        let bounds = BOUNDS_US.iter().map(|us| *us as f64 / 1e6).chain([f64::INFINITY]);
        bounds.zip(self.counts).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_falls_into_the_first_bucket_that_holds_it() {
        let mut times = TickTimes::default();
        for us in [0, 1, 100, 101, 250, 999, 1_000, 1_001, 200_000, 200_001, 5_000_000] {
            times.note(Duration::from_micros(us));
        }
        let counts: Vec<u64> = times.buckets().into_iter().map(|(_, count)| count).collect();
        assert_eq!(counts, [3, 2, 0, 2, 1, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(times.count(), 11);
        // 0 + 1 + 100 + 101 + 250 + 999 + 1000 + 1001 + 200000 + 200001 + 5000000, by hand.
        assert!((times.sum_s() - 5.403_453).abs() < 1e-9);
    }

    #[test]
    fn bounds_ascend_from_a_tenth_of_a_millisecond_to_two_ticks() {
        let bounds: Vec<f64> = TickTimes::default().buckets().iter().map(|it| it.0).collect();
        let seconds = [1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.2];
        assert_eq!(bounds[..11], seconds);
        assert_eq!(bounds[11..], [f64::INFINITY]);
    }
}
