//! The smoothed round trip.
//!
//! ```
//! use caves_link::clock::RoundTrip;
//! use core::time::Duration;
//!
//! let mut trip = RoundTrip::new();
//! assert_eq!(trip.smoothed(), None);
//! trip.sample(Duration::from_millis(80));
//! trip.sample(Duration::from_millis(160));
//! assert_eq!(trip.smoothed(), Some(Duration::from_millis(90)));
//! ```

use crate::time::micros;
use core::time::Duration;

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

    proptest! {
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
