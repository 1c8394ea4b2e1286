//! Sequence numbers that wrap.
//!
//! A counter of a datagram has few bits and starts over. Which of two numbers is newer is a
//! question about the distance between them on a circle, never about their size: after 1023
//! comes 0. [`Seq`] has therefore no `<`; a wrong comparison does not compile.
//!
//! ```text
//!                     0
//!             1023 .--+--. 1
//!                /   |    \             as seen from 0, with ten bits:
//!        older  /    |     \  newer       1 ..= 511   newer
//!              |     x      |           512           older, from either side
//!               \          /            513 ..= 1023  older
//!                \        /
//!              513 `--+--' 511
//!                    512
//! ```
//!
//! The width is a parameter, 1 to 32 bits. [`Seq::widen`] leads back to a plain count where
//! somebody remembers about where it stood: of all counts with these lowest bits, the one nearest
//! to it.
//!
//! ```text
//!   count   ..., 1021, 1022, 1023, 1024, 1025, ..., 2047, 2048, ...
//!   seq     ..., 1021, 1022, 1023,    0,    1, ..., 1023,    0, ...
//!                                                    ^
//!                              near 2047: 0 is 2048, and 1021 is 2045
//! ```
//!
//! ```
//! use caves_link::seq::{Age, Seq};
//!
//! let last = Seq::<10>::new(1023);
//! let first = last.next();
//! assert_eq!(first.get(), 0);
//! assert!(first.is_newer_than(last));
//! assert_eq!(last.age(first), Age::Older);
//! assert_eq!(first.widen(2047), 2048);
//! ```

use core::fmt;

/// A number modulo 2^`BITS`, `BITS` from 1 to 32.
///
/// The value is always below 2^`BITS`. Another width does not compile.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Seq<const BITS: u32>(u32);

/// How one sequence number stands to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Age {
    /// Comes before the other, or lies exactly half the circle away.
    Older,
    /// Is the other.
    Same,
    /// Comes after the other, by less than half the circle.
    Newer,
}

impl<const BITS: u32> Seq<BITS> {
    /// The highest value, and the bits a value is cut to.
    const MASK: u32 = {
        assert!(BITS >= 1 && BITS <= 32, "a sequence has 1 to 32 bits");
        u32::MAX >> (32 - BITS)
    };

    /// Half the circle; distances from 1 to just below it are forward.
    const HALF: u32 = 1 << (BITS - 1);

    /// The lowest `BITS` bits of `value`.
    pub const fn new(value: u32) -> Self {
        Self(value & Self::MASK)
    }

    /// The number, below 2^`BITS`.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The number after this one; after the highest comes 0.
    #[must_use]
    pub const fn next(self) -> Self {
        self.advance(1)
    }

    /// The number before this one; before 0 lies the highest.
    #[must_use]
    pub const fn prev(self) -> Self {
        Self::new(self.0.wrapping_sub(1))
    }

    /// The number `steps` after this one.
    #[must_use]
    pub const fn advance(self, steps: u32) -> Self {
        Self::new(self.0.wrapping_add(steps))
    }

    /// Steps forward from `earlier` to this number, below 2^`BITS`.
    ///
    /// If this number is in truth one step before `earlier`, the answer is the long way round.
    pub const fn distance_from(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0) & Self::MASK
    }

    /// How this number stands to `other`.
    ///
    /// Newer means 1 to 2^(`BITS`-1)-1 steps after `other`. A number exactly half the circle away
    /// is [`Age::Older`], whichever of the two is asked: a receiver that drops what is not newer
    /// then drops the doubtful one, too.
    pub const fn age(self, other: Self) -> Age {
        match self.distance_from(other) {
            0 => Age::Same,
            steps if steps < Self::HALF => Age::Newer,
            _ => Age::Older,
        }
    }

    /// Whether this number comes after `other` by less than half the circle.
    pub const fn is_newer_than(self, other: Self) -> bool {
        matches!(self.age(other), Age::Newer)
    }

    /// The full count whose lowest bits are this number and which lies nearest to `near`.
    ///
    /// Half the circle away counts as before `near`, as in [`age`](Self::age). Where the nearest
    /// would lie below 0 or above `u64::MAX`, the one on the other side of `near` is taken.
    pub const fn widen(self, near: u64) -> u64 {
        // `near as u32` keeps the lowest bits, and only those matter modulo 2^BITS.
        let ahead = self.distance_from(Self::new(near as u32)) as u64;
        if ahead == 0 {
            return near;
        }
        let behind = Self::MASK as u64 + 1 - ahead;
        let (after, before) = (near.checked_add(ahead), near.checked_sub(behind));
        match (after, before) {
            (Some(after), None) => after,
            (Some(after), Some(_)) if ahead < Self::HALF as u64 => after,
            (_, Some(before)) => before,
            // The circle is far smaller than u64, so one side always fits.
            (None, None) => near,
        }
    }
}

impl<const BITS: u32> Default for Seq<BITS> {
    fn default() -> Self {
        Self::new(0)
    }
}

impl<const BITS: u32> fmt::Debug for Seq<BITS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seq<{BITS}>({})", self.0)
    }
}

impl<const BITS: u32> fmt::Display for Seq<BITS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::format;

    /// Walks forward one number at a time; the plainest meaning of "steps after".
    fn naive_steps(mut from: u32, to: u32, circle: u32) -> u32 {
        let mut steps = 0;
        while from != to {
            from = if from + 1 == circle { 0 } else { from + 1 };
            steps += 1;
        }
        steps
    }

    #[test]
    fn ten_bits_agree_with_walking_for_every_pair() {
        // One walk per distance is enough to know it for all starts of the walk.
        for distance in 0..1024u32 {
            assert_eq!(naive_steps(0, distance, 1024), distance);
            let expected = match distance {
                0 => Age::Same,
                1..=511 => Age::Newer,
                _ => Age::Older,
            };
            for start in 0..1024u32 {
                let a = Seq::<10>::new(start);
                let b = Seq::<10>::new((start + distance) % 1024);
                assert_eq!(b.distance_from(a), distance);
                assert_eq!(b.age(a), expected, "{b:?} against {a:?}");
                assert_eq!(b.is_newer_than(a), expected == Age::Newer);
                assert_eq!(a.advance(distance), b);
            }
        }
    }

    #[test]
    fn sequence_1023_is_older_than_1() {
        assert_eq!(Seq::<10>::new(1023).age(Seq::new(1)), Age::Older);
        assert_eq!(Seq::<10>::new(1).age(Seq::new(1023)), Age::Newer);
    }

    #[test]
    fn half_the_circle_is_older_in_both_directions() {
        assert_eq!(Seq::<10>::new(512).age(Seq::new(0)), Age::Older);
        assert_eq!(Seq::<10>::new(0).age(Seq::new(512)), Age::Older);
        assert_eq!(Seq::<16>::new(0x8000).age(Seq::new(0)), Age::Older);
        assert_eq!(Seq::<16>::new(0).age(Seq::new(0x8000)), Age::Older);
        assert_eq!(Seq::<32>::new(0x8000_0000).age(Seq::new(0)), Age::Older);
        assert_eq!(Seq::<32>::new(0).age(Seq::new(0x8000_0000)), Age::Older);
    }

    #[test]
    fn sixteen_and_thirty_two_bits_turn_at_their_edges() {
        let a = Seq::<16>::new(0xFFFF);
        assert_eq!(a.next().get(), 0);
        assert_eq!(Seq::<16>::new(0).prev(), a);
        assert_eq!(Seq::<16>::new(0x7FFE).age(a), Age::Newer);
        assert_eq!(Seq::<16>::new(0x7FFF).age(a), Age::Older);

        let a = Seq::<32>::new(u32::MAX);
        assert_eq!(a.next().get(), 0);
        assert_eq!(Seq::<32>::new(0).prev(), a);
        assert_eq!(Seq::<32>::new(0x7FFF_FFFE).age(a), Age::Newer);
        assert_eq!(Seq::<32>::new(0x7FFF_FFFF).age(a), Age::Older);
        assert_eq!(a.distance_from(Seq::new(0)), u32::MAX);
    }

    #[test]
    fn one_bit_has_no_newer() {
        let (a, b) = (Seq::<1>::new(0), Seq::<1>::new(1));
        assert_eq!((a.next(), b.next()), (b, a));
        assert_eq!((a.age(b), b.age(a)), (Age::Older, Age::Older));
    }

    #[test]
    fn a_value_is_cut_to_its_bits() {
        assert_eq!(Seq::<10>::new(1024 + 7).get(), 7);
        assert_eq!(Seq::<10>::new(u32::MAX).get(), 1023);
        assert_eq!(Seq::<32>::new(u32::MAX).get(), u32::MAX);
    }

    #[test]
    fn two_full_laps_widen_to_a_plain_count() {
        let mut seq = Seq::<10>::new(1021);
        let mut count = 1021u64;
        for _ in 0..2 * 1024 + 5 {
            let next = seq.next();
            assert!(next.is_newer_than(seq));
            assert_eq!(next.widen(count), count + 1);
            assert_eq!(seq.widen(count + 1), count);
            (seq, count) = (next, count + 1);
        }
        assert_eq!(count, 1021 + 2053);
        // 3074 = 3 * 1024 + 2
        assert_eq!(seq.get(), 2);
    }

    #[test]
    fn widening_stays_between_zero_and_the_largest_count() {
        assert_eq!(Seq::<10>::new(1023).widen(0), 1023);
        assert_eq!(Seq::<10>::new(1023).widen(1024), 1023);
        assert_eq!(Seq::<10>::new(0).widen(u64::MAX), u64::MAX - 1023);
        assert_eq!(Seq::<32>::new(u32::MAX).widen(1 << 32), u64::from(u32::MAX));
        assert_eq!(Seq::<32>::new(5).widen(u64::from(u32::MAX)), (1 << 32) + 5);
        // Half the circle away: before, unless that would be negative.
        assert_eq!(Seq::<10>::new(0).widen(512 + 1024), 1024);
        assert_eq!(Seq::<10>::new(512).widen(0), 512);
    }

    #[test]
    fn text_shows_the_width_and_the_number() {
        let seq = Seq::<16>::new(300);
        assert_eq!(format!("{seq:?}"), "Seq<16>(300)");
        assert_eq!(format!("{seq:>5}"), "  300");
        assert_eq!(Seq::<16>::default().get(), 0);
    }

    proptest! {
        #[test]
        fn any_walk_agrees_with_a_plain_count(
            start in any::<u32>(),
            steps in prop::collection::vec((0u32..1 << 31, any::<bool>()), 1..60),
        ) {
            // High enough that no walk of 60 half circles ends below zero.
            let mut count = (1u64 << 40) + u64::from(start);
            let mut seq = Seq::<32>::new(start);
            for (step, forward) in steps {
                let before = (seq, count);
                if forward {
                    (seq, count) = (seq.advance(step), count + u64::from(step));
                } else {
                    // The other way round the circle.
                    (seq, count) = (seq.advance(step.wrapping_neg()), count - u64::from(step));
                }
                prop_assert_eq!(u64::from(seq.get()), count % (1 << 32));
                prop_assert_eq!(seq.widen(before.1), count);
                prop_assert_eq!(u64::from(seq.next().get()), (count + 1) % (1 << 32));
                prop_assert_eq!(u64::from(seq.prev().get()), (count - 1) % (1 << 32));
                let expected = match count.cmp(&before.1) {
                    core::cmp::Ordering::Less => Age::Older,
                    core::cmp::Ordering::Equal => Age::Same,
                    core::cmp::Ordering::Greater => Age::Newer,
                };
                prop_assert_eq!(seq.age(before.0), expected);
            }
        }

        #[test]
        fn widening_finds_the_nearest_congruent_count(value in any::<u32>(), near in 0u64..1 << 40) {
            let wide = Seq::<16>::new(value).widen(near);
            prop_assert_eq!(wide % 65536, u64::from(value) % 65536);
            let nearest = (0..=65536u64)
                .flat_map(|d| [near.checked_sub(d), near.checked_add(d)])
                .flatten()
                .find(|n| n % 65536 == u64::from(value) % 65536);
            prop_assert_eq!(Some(wide), nearest);
        }
    }
}
