//! The generator of all chance in the simulation.
//!
//! ```
//! use caves_netsim::SplitMix64;
//!
//! let (mut a, mut b) = (SplitMix64::new(7), SplitMix64::new(7));
//! assert_eq!(a.next_u64(), b.next_u64());
//! assert!(a.below(6) < 6);
//! ```

use crate::config::Chance;

/// SplitMix64 (Steele, Lea, Flood 2014): a counter and a mixing of its bits.
///
/// The same seed gives the same numbers in every version of this crate and on every machine: a
/// seed that is written into a test or a report stays meaningful. It is not fit for secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// A generator whose numbers follow from `seed` alone.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number, uniform over all 64-bit values.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// The next number below `limit`; 0 if the limit is 0.
    ///
    /// Always one step of the generator. Uniform up to `limit` in 2^64.
    pub const fn below(&mut self, limit: u64) -> u64 {
        // The high half of a product of two u64 is below either of them.
        ((self.next_u64() as u128 * limit as u128) >> 64) as u64
    }

    /// Whether something of this chance happens this time.
    ///
    /// One step of the generator even for what never or always happens, so that the later draws
    /// do not depend on the chance.
    pub const fn happens(&mut self, chance: Chance) -> bool {
        self.below(Chance::ALWAYS.per_10_000() as u64) < chance.per_10_000() as u64
    }

    /// A generator of its own for another purpose.
    #[must_use]
    pub const fn fork(&mut self) -> Self {
        Self::new(self.next_u64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_published_generator() {
        // The reference implementation in C, seeds 0 and 1234567.
        let mut rng = SplitMix64::new(0);
        let first = [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4, 0x06C4_5D18_8009_454F];
        assert_eq!(first.map(|_| rng.next_u64()), first);
        let mut rng = SplitMix64::new(1_234_567);
        let first = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(first.map(|_| rng.next_u64()), first);
    }

    #[test]
    fn numbers_below_a_limit_reach_all_values_evenly() {
        let mut rng = SplitMix64::new(3);
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[rng.below(6) as usize] += 1;
        }
        // 10000 each; the standard deviation is 91.
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
        assert_eq!((rng.below(0), rng.below(1)), (0, 0));
    }

    #[test]
    fn never_and_always_leave_the_later_draws_alone() {
        let mut plain = SplitMix64::new(9);
        plain.next_u64();
        plain.next_u64();
        let mut rng = SplitMix64::new(9);
        assert!(!rng.happens(Chance::NEVER));
        assert!(rng.happens(Chance::ALWAYS));
        assert_eq!(rng, plain);
    }

    #[test]
    fn a_forked_generator_goes_its_own_way() {
        let mut root = SplitMix64::new(5);
        let (mut a, mut b) = (root.fork(), root.fork());
        assert_ne!(a.next_u64(), b.next_u64());
    }
}
