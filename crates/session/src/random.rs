//! Randomness, handed in by the caller.

/// A source of random numbers. In a program it is the operating system's generator: tokens, nonces
/// and cookie keys come from it. In tests it is [`SplitMix`].
pub trait Random {
    /// 64 bits that nobody can guess.
    fn next_u64(&mut self) -> u64;
}

impl<F: FnMut() -> u64> Random for F {
    fn next_u64(&mut self) -> u64 {
        self()
    }
}

/// A small generator for tests and simulations: the same seed gives the same numbers for ever.
/// Anybody can guess what comes next, so it makes no tokens for a real server.
#[derive(Debug, Clone)]
pub struct SplitMix(u64);

impl SplitMix {
    /// A generator whose numbers follow from `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }
}

impl Random for SplitMix {
    /// Steele, Lea and Flood's SplitMix64.
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs for seed 0 as published with the algorithm.
    #[test]
    fn splitmix_gives_its_published_numbers() {
        let mut random = SplitMix::new(0);
        assert_eq!(random.next_u64(), 0xE220_A839_7B1D_CDAF);
        assert_eq!(random.next_u64(), 0x6E78_9E6A_A1B9_65F4);
        assert_eq!(random.next_u64(), 0x06C4_5D18_8009_454F);
    }
}
