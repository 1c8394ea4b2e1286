//! Many values as counts, so that a run of any length takes the same memory.

use serde::Serialize;

/// Buckets of an octave are `1 << BITS`: a value is told with an error of 1.6 % at most.
const BITS: u32 = 6;
const STEPS: u64 = 1 << BITS;

/// Counts values: each one below 128 for itself, larger ones in 64 steps an octave.
///
/// ```text
///   0 1 2 .. 127 | 128..129 130..131 .. 254..255 | 256..259 .. | ..
///    one each    |        64 steps of two        |  of four    |
/// ```
#[derive(Debug, Clone, Default)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    count: u64,
    max: u64,
}

/// The percentiles that are reported, in milliseconds; all zero where nothing was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Spread {
    /// Values counted.
    pub(crate) count: u64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

impl Histogram {
    pub(crate) fn add(&mut self, value: u64) {
        let place = place(value);
        if self.counts.len() <= place {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += 1;
        self.count += 1;
        self.max = self.max.max(value);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
    }

    /// The smallest value that at least `per_mille` of all are not above, or up to 1.6 % more.
    pub(crate) fn quantile(&self, per_mille: u64) -> Option<u64> {
        let rank = (self.count * per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        let place = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        Some(last_of(place).min(self.max))
    }

    /// Of values in microseconds.
    pub(crate) fn spread(&self) -> Spread {
        let millis = |micros: u64| micros as f64 / 1000.0;
        let at = |per_mille| millis(self.quantile(per_mille).unwrap_or(0));
        Spread { count: self.count, p50: at(500), p99: at(990), max: millis(self.max) }
    }
}

fn place(value: u64) -> usize {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(BITS + 1);
    (u64::from(shift) * STEPS + (value >> shift)) as usize
}

/// The largest value that is counted there.
fn last_of(place: usize) -> u64 {
    let place = place as u64;
    let shift = (place / STEPS).saturating_sub(1);
    let step = place - shift * STEPS;
    (step << shift) | ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use caves_session::{Random, SplitMix};

    /// Nearest rank, of the values themselves.
    fn naive(values: &mut [u64], per_mille: u64) -> u64 {
        values.sort_unstable();
        let rank = (values.len() as u64 * per_mille).div_ceil(1000).max(1);
        values[rank as usize - 1]
    }

    #[test]
    fn quantiles_are_those_of_sorted_values_or_a_little_above() {
        let mut random = SplitMix::new(1);
        for round in 0..200 {
            let (mut histogram, mut values) = (Histogram::default(), Vec::new());
            for _ in 0..1 + random.next_u64() % 500 {
                let value = random.next_u64() >> (random.next_u64() % 64);
                histogram.add(value);
                values.push(value);
            }
            for per_mille in [0, 1, 250, 500, 990, 999, 1000] {
                let (told, true_one) =
                    (histogram.quantile(per_mille), naive(&mut values, per_mille));
                let told = told.expect("there are values");
                let most = u128::from(true_one) + u128::from(true_one) / 64;
                assert!(told >= true_one && u128::from(told) <= most, "{round}: {told} {true_one}");
            }
            assert_eq!(histogram.quantile(1000), values.last().copied(), "the largest is exact");
        }
    }

    #[test]
    fn small_values_are_told_exactly() {
        let mut histogram = Histogram::default();
        (0..=127).for_each(|value| histogram.add(value));
        assert_eq!(histogram.quantile(500), Some(63));
        assert_eq!(histogram.quantile(990), Some(126));
    }

    #[test]
    fn buckets_follow_each_other_without_gap_and_overlap() {
        let mut next = 0u64;
        for at in 0..=place(u64::MAX) {
            assert_eq!(place(next), at);
            assert_eq!(place(last_of(at)), at);
            next = last_of(at).wrapping_add(1);
        }
        assert_eq!(next, 0, "the last bucket ends with the last number");
    }

    #[test]
    fn merged_histograms_are_one_of_all_values() {
        let (mut a, mut b, mut all) =
            (Histogram::default(), Histogram::default(), Histogram::default());
        for value in 0..1000 {
            let (histogram, value) = match value % 3 {
                0 => (&mut a, value),
                _ => (&mut b, value * 7),
            };
            histogram.add(value);
            all.add(value);
        }
        a.merge(&b);
        for per_mille in 0..=1000 {
            assert_eq!(a.quantile(per_mille), all.quantile(per_mille));
        }
    }

    #[test]
    fn microseconds_are_told_in_milliseconds_and_nothing_as_zero() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.spread(), Spread::default());
        histogram.add(1500);
        let spread = histogram.spread();
        assert_eq!((spread.count, spread.p50, spread.max), (1, 1.5, 1.5));
    }
}
