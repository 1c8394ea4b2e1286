//! What the server measures of one session.

use caves_link::clock::RoundTrip;
use caves_link::time::Instant;
use caves_wire::caves::Sequence;

/// Datagrams that went one way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// How many.
    pub datagrams: u64,
    /// Their bytes, without the headers of UDP and IP.
    pub bytes: u64,
}

impl Traffic {
    pub(super) const fn note(&mut self, bytes: usize) {
        self.datagrams += 1;
        self.bytes += bytes as u64;
    }
}

/// Numbers of actions that never came.
///
/// A client numbers its actions without gaps, so a number that is passed over was lost on the way,
/// with all its repetitions: a client that repeats a step when its network is bad hides that loss,
/// and so this is what its player notices. Of the last 512 numbers, about; those before count less
/// and less.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Missing {
    /// Numbers that did not come.
    pub missing: u32,
    /// Of so many.
    pub of: u32,
}

/// All that is measured.
#[derive(Debug, Default)]
pub(super) struct Figures {
    pub(super) round_trip: RoundTrip,
    /// When the round trip was measured last.
    pub(super) measured: Option<Instant>,
    pub(super) actions: Numbers,
    pub(super) received: Traffic,
    pub(super) sent: Traffic,
}

impl Figures {
    /// An answer came now to what was sent then.
    pub(super) fn note_round_trip(&mut self, now: Instant, sent: Option<Instant>) {
        if let Some(sent) = sent {
            self.round_trip.sample(now.saturating_since(sent));
            self.measured = Some(now);
        }
    }
}

/// Which numbers came, and which did not.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    newest: Option<Sequence>,
    /// Bit i: whether `newest - i` came.
    came: u64,
    /// Numbers that left the bits, and those of them that had not come.
    passed: u32,
    lost: u32,
}

/// Numbers that may still come late.
const WINDOW: u32 = u64::BITS;
/// A longer leap, either way, is another count of numbers: a client that was started again (R29).
const LEAP: u32 = 1024;
/// When so many numbers have passed they count half.
const HALVED: u32 = 512;

impl Numbers {
    /// An action has come.
    pub(super) fn note(&mut self, sequence: Sequence) {
        let Some(newest) = self.newest else { return self.begin(sequence) };
        let back = newest.distance_from(sequence);
        if back < WINDOW {
            self.came |= 1 << back;
            return;
        }
        if back < LEAP {
            // So late that it was counted already.
            return;
        }
        let ahead = sequence.distance_from(newest);
        if ahead > LEAP {
            return self.begin(sequence);
        }
        for _ in 0..ahead {
            self.pass();
        }
        self.came |= 1;
        self.newest = Some(sequence);
    }

    pub(super) const fn missing(&self) -> Missing {
        Missing { missing: self.lost, of: self.passed }
    }

    /// What is before the first number is not expected to come.
    const fn begin(&mut self, sequence: Sequence) {
        self.newest = Some(sequence);
        self.came = u64::MAX;
    }

    /// The window moves on by one number.
    const fn pass(&mut self) {
        self.lost += (self.came >> (WINDOW - 1) == 0) as u32;
        self.passed += 1;
        self.came <<= 1;
        if self.passed >= 2 * HALVED {
            self.passed /= 2;
            self.lost /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn numbers(of: impl IntoIterator<Item = u32>) -> Missing {
        let mut numbers = Numbers::default();
        of.into_iter().for_each(|number| numbers.note(Sequence::new(number)));
        numbers.missing()
    }

    #[test]
    fn all_numbers_in_any_near_order_and_twice_are_no_loss() {
        assert_eq!(numbers(1..=400).missing, 0);
        assert_eq!(numbers((0..200).flat_map(|n| [n * 2 + 1, n * 2, n * 2])).missing, 0);
        // Over the end of the numbers.
        assert_eq!(numbers((0..400).map(|n: u32| n.wrapping_sub(200))).missing, 0);
    }

    #[test]
    fn every_tenth_number_that_never_comes_is_a_tenth() {
        let Missing { missing, of } = numbers((0..100_000).filter(|n| n % 10 != 3));
        assert!((512..1024).contains(&of), "{of}");
        assert!(missing * 10 >= of - 20 && missing * 10 <= of + 20, "{missing} of {of}");
    }

    #[test]
    fn what_is_long_ago_is_forgotten() {
        let bad = (0..1000).filter(|n| n % 2 == 0);
        assert!(numbers(bad.clone()).missing > 300);
        let good = numbers(bad.chain(1000..20_000));
        assert_eq!(good.missing, 0, "halved until nothing is left");
    }

    #[test]
    fn a_number_counts_as_lost_only_when_it_can_hardly_come() {
        // 5 is missing; 63 numbers later it may still come.
        assert_eq!(numbers((0..5).chain(6..=68)).missing, 0);
        assert_eq!(numbers((0..5).chain(6..=69)).missing, 1);
        assert_eq!(numbers((0..5).chain(6..=68).chain([5]).chain(69..200)).missing, 0);
        // One that comes even later is counted as lost, and is not taken for a new beginning.
        assert_eq!(numbers((0..5).chain(6..=200).chain([5]).chain(201..400)).missing, 1);
    }

    #[test]
    fn another_count_of_numbers_is_no_loss() {
        assert_eq!(numbers((500_000..500_100).chain(0..100)).missing, 0);
        assert_eq!(numbers((0..100).chain(500_000..500_100)).missing, 0);
    }

    #[test]
    fn a_round_trip_is_smoothed_and_dated() {
        let mut figures = Figures::default();
        figures.note_round_trip(Instant::from_millis(500), None);
        assert_eq!((figures.round_trip.smoothed(), figures.measured), (None, None));
        figures.note_round_trip(Instant::from_millis(580), Some(Instant::from_millis(500)));
        figures.note_round_trip(Instant::from_millis(960), Some(Instant::from_millis(800)));
        // RFC 6298: 7/8 of 80 and 1/8 of 160.
        assert_eq!(figures.round_trip.smoothed(), Some(Duration::from_millis(90)));
        assert_eq!(figures.measured, Some(Instant::from_millis(960)));
    }
}
