//! Randomness without state: a hash of what is being decided.
//!
//! The same question has the same answer on every machine and in every order of asking, which is what makes
//! chunks independent of each other and ticks repeatable. Integers only.
//!
//! The hash is the output function of the published SplitMix64 generator (a counter times the golden ratio,
//! then two xor-shift-multiply rounds), chained once per input.

/// 2^64 divided by the golden ratio: consecutive inputs end far apart.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// What a roll is for. Two purposes never share a roll, and numbers are never reused: a change here changes
/// every cave (raise `GENERATOR_VERSION`).
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
pub(crate) enum Purpose {
    Rock = 1,
    Openness = 2,
    Parent = 3,
    EdgeOpen = 4,
    EdgePlace = 5,
    TunnelCost = 6,
    TunnelWidth = 7,
    Stone = 8,
    Damp = 9,
    Seam = 10,
    Dress = 11,
    Pillar = 12,
    Populate = 13,
    Blow = 20,
    Toughness = 21,
    DigDrop = 22,
    Loot = 23,
    Wander = 24,
}

/// A stream of rolls about one question.
#[derive(Clone, Debug)]
pub(crate) struct Roll {
    state: u64,
}

impl Roll {
    /// The stream for `purpose` about `about`, in the world of `seed`.
    pub(crate) fn new(seed: u64, purpose: Purpose, about: u64) -> Roll {
        Roll {
            state: mix(mix(seed ^ mix(purpose as u64)).wrapping_add(about.wrapping_mul(GOLDEN))),
        }
    }

    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// A number in `0..n`, or 0 for `n` = 0.
    ///
    /// The upper half of the bits times `n`: a bias of at most n / 2^32, and no loop.
    pub(crate) fn below(&mut self, n: u32) -> u32 {
        (((self.next() >> 32) * u64::from(n)) >> 32) as u32
    }

    /// True `percent` times in a hundred.
    pub(crate) fn percent(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    /// An element of `choices` by their weights, or `None` when the weights sum to 0.
    pub(crate) fn weighted<'a, T>(
        &mut self,
        choices: &'a [T],
        weight: impl Fn(&T) -> u32,
    ) -> Option<&'a T> {
        let mut left = self.below(choices.iter().map(&weight).sum());
        choices.iter().find(|choice| {
            let own = weight(choice);
            let hit = left < own;
            left = left.saturating_sub(own);
            hit
        })
    }
}

/// Two 32-bit coordinates as one number, for `about`.
pub(crate) fn pair(x: i32, y: i32) -> u64 {
    u64::from(x as u32) | u64::from(y as u32) << 32
}

fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_is_splitmix64() {
        // Published outputs for the state 1234567.
        let mut roll = Roll { state: 1_234_567 };
        assert_eq!(roll.next(), 6_457_827_717_110_365_317);
        assert_eq!(roll.next(), 3_203_168_211_198_807_973);
        assert_eq!(roll.next(), 9_817_491_932_198_370_423);
    }

    #[test]
    fn below_covers_its_range_evenly() {
        let mut counts = [0u32; 7];
        let mut roll = Roll::new(5, Purpose::Blow, 9);
        for _ in 0..7000 {
            counts[roll.below(7) as usize] += 1;
        }
        assert!(counts.iter().all(|&n| (850..1150).contains(&n)), "{counts:?}");
        assert_eq!(roll.below(0), 0);
        assert_eq!(roll.below(1), 0);
    }

    #[test]
    fn neighbouring_questions_have_unrelated_answers() {
        // A bit of the answer flips half of the time when the question moves by one tile.
        let mut flipped = 0;
        for x in 0..1000 {
            let a = Roll::new(1, Purpose::Rock, pair(x, 5)).next();
            let b = Roll::new(1, Purpose::Rock, pair(x, 6)).next();
            flipped += (a ^ b).count_ones();
        }
        assert!((31_000..33_000).contains(&flipped), "{flipped}");
    }

    #[test]
    fn weights_decide_how_often() {
        let mut counts = [0u32; 3];
        let mut roll = Roll::new(5, Purpose::Loot, 1);
        for _ in 0..4000 {
            counts[*roll.weighted(&[0usize, 1, 2], |&i| [1, 0, 3][i]).unwrap()] += 1;
        }
        assert_eq!(counts[1], 0);
        assert!((900..1100).contains(&counts[0]), "{counts:?}");
        assert_eq!(roll.weighted(&[1, 2], |_| 0), None);
    }
}
