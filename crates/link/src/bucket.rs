//! So many per second, with some in hand.
//!
//! Whoever may be asked by strangers bounds what it does for them. A [`TokenBucket`] allows a burst
//! at once and a rate in the long run, and it costs three numbers to keep one for each asker.
//!
//! ```text
//!   tokens
//!    burst 4 |----.                         .--------- full: what comes on top is lost
//!          3 |    |                     .--'
//!          2 |    '-.               .--'      rises by per_second
//!          1 |      |           .--'
//!          0 |      '-----x--x-'
//!            +-------------------------------------------> time
//!                 ^ ^     ^  ^
//!              took 2, 2  refused: nothing is taken
//! ```
//!
//! It is exact. A bucket that kept whole tokens, or floating ones, would lose or gain a little each
//! time it is asked, and who asks often enough would notice.
//!
//! ```
//! use caves_link::bucket::TokenBucket;
//! use caves_link::time::Instant;
//!
//! let mut queries = TokenBucket::new(10, 2, Instant::ZERO);
//! assert!(queries.take(Instant::ZERO));
//! assert!(queries.take(Instant::ZERO));
//! assert!(!queries.take(Instant::from_millis(99)));
//! assert!(queries.take(Instant::from_millis(100)));
//! ```

use crate::time::{Instant, micros};

/// One token in the unit of the account: a rate per second times microseconds.
const TOKEN: u64 = 1_000_000;

/// Tokens that come back at a steady rate, up to a limit.
///
/// Exact: it counts millionths of a token, so that a rate which does not divide a second loses
/// nothing however often it is asked. It never holds more than `burst` tokens.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    per_second: u32,
    burst: u32,
    /// In millionths of a token, at most `burst * TOKEN`; below 2^52.
    level: u64,
    /// The latest moment the level was computed for.
    at: Instant,
}

impl TokenBucket {
    /// A bucket that is full at `now`, holds at most `burst`, and gets `per_second` tokens back.
    pub fn new(per_second: u32, burst: u32, now: Instant) -> Self {
        let level = u64::from(burst) * TOKEN;
        Self { per_second, burst, level, at: now }
    }

    /// Takes one token; `false`, and nothing taken, if there is none.
    #[must_use = "false means that the limit is reached"]
    pub fn take(&mut self, now: Instant) -> bool {
        self.take_many(now, 1)
    }

    /// Takes `count` tokens at once; `false`, and nothing taken, if there are fewer.
    ///
    /// More than `burst` are never there.
    #[must_use = "false means that the limit is reached"]
    pub fn take_many(&mut self, now: Instant, count: u32) -> bool {
        self.level = self.level_at(now);
        // A moment before the last one adds nothing, and must not let the same time count twice.
        self.at = self.at.max(now);
        match self.level.checked_sub(u64::from(count) * TOKEN) {
            Some(rest) => {
                self.level = rest;
                true
            }
            None => false,
        }
    }

    /// The most tokens that it ever holds.
    pub const fn burst(&self) -> u32 {
        self.burst
    }

    /// Whole tokens that could be taken at `now`.
    pub fn available(&self, now: Instant) -> u32 {
        // At most `burst`, so it fits.
        (self.level_at(now) / TOKEN) as u32
    }

    fn level_at(&self, now: Instant) -> u64 {
        let elapsed = micros(now.saturating_since(self.at));
        let gained = elapsed.saturating_mul(u64::from(self.per_second));
        let full = u64::from(self.burst) * TOKEN;
        self.level.saturating_add(gained).min(full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn starts_full_and_refills_at_its_rate() {
        let mut bucket = TokenBucket::new(20, 18, Instant::ZERO);
        assert!(bucket.take_many(Instant::ZERO, 18));
        assert!(!bucket.take(Instant::from_micros(49_999)));
        assert!(bucket.take(Instant::from_micros(50_000)));
        assert_eq!(bucket.available(Instant::from_millis(300)), 5);
        assert_eq!(bucket.available(Instant::from_secs(3600)), 18);
    }

    #[test]
    fn a_rate_that_does_not_divide_a_second_loses_nothing() {
        // 3 per second, asked at odd moments: after 1000 s exactly 3000 have come. A burst of 2
        // leaves room for the fraction that waits beside a whole token.
        let mut bucket = TokenBucket::new(3, 2, Instant::ZERO);
        assert!(bucket.take_many(Instant::ZERO, 2));
        let mut taken = 0;
        let mut now = 0;
        while now < 1_000_000_000 {
            now += 70_007;
            taken += u32::from(bucket.take(Instant::from_micros(now.min(1_000_000_000))));
        }
        assert_eq!(taken, 3000);
    }

    #[test]
    fn time_going_backwards_adds_nothing() {
        let mut bucket = TokenBucket::new(1, 5, Instant::from_secs(100));
        assert!(bucket.take_many(Instant::from_secs(100), 5));
        for _ in 0..10 {
            assert!(!bucket.take(Instant::from_secs(50)));
            assert!(!bucket.take(Instant::from_secs(100)));
        }
        assert!(bucket.take(Instant::from_secs(101)));
        assert!(!bucket.take(Instant::from_secs(101)));
    }

    #[test]
    fn extreme_values_do_not_overflow() {
        let far = Instant::from_micros(u64::MAX);
        let mut bucket = TokenBucket::new(u32::MAX, u32::MAX, Instant::ZERO);
        assert!(bucket.take_many(Instant::ZERO, u32::MAX));
        assert_eq!(bucket.available(far), u32::MAX);
        let mut empty = TokenBucket::new(u32::MAX, 0, Instant::ZERO);
        assert!(!empty.take(far));
        let mut once = TokenBucket::new(0, 1, Instant::ZERO);
        assert!(once.take(Instant::ZERO));
        assert!(!once.take(far));
        assert!(once.take_many(far, 0));
    }

    /// Adds the gain of one microsecond at a time.
    struct Naive {
        rate: u128,
        burst: u128,
        level: u128,
        at: u64,
    }

    impl Naive {
        fn take(&mut self, now: u64, count: u128) -> bool {
            while self.at < now {
                self.at += 1;
                self.level = (self.level + self.rate).min(self.burst * 1_000_000);
            }
            let enough = self.level >= count * 1_000_000;
            if enough {
                self.level -= count * 1_000_000;
            }
            enough
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_model_that_adds_each_microsecond(
            rate in 0u32..5_000, burst in 0u32..6,
            steps in prop::collection::vec((-300i64..3_000, 0u32..3), 1..60),
        ) {
            let mut now = 1_000i64;
            let mut bucket = TokenBucket::new(rate, burst, Instant::from_micros(1_000));
            let (rate, burst) = (u128::from(rate), u128::from(burst));
            let mut naive = Naive { rate, burst, level: burst * 1_000_000, at: 1_000 };
            for (step, count) in steps {
                now = (now + step).max(0);
                let expected = naive.take(now as u64, u128::from(count));
                let moment = Instant::from_micros(now as u64);
                prop_assert_eq!(bucket.take_many(moment, count), expected);
                prop_assert_eq!(u128::from(bucket.available(moment)), naive.level / 1_000_000);
            }
        }
    }
}
