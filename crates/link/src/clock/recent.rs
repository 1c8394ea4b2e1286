//! The last samples of a clock.

use crate::time::Instant;
use core::time::Duration;

/// At most `N` samples, none older than a while when a new one comes.
///
/// ```text
///   | new |     | a | b | c | d |      a ring: the oldest is at `first`
///                 ^
/// ```
#[derive(Clone, Copy, Debug)]
pub(super) struct Recent<T, const N: usize> {
    keep: Duration,
    samples: [(Instant, T); N],
    first: usize,
    len: usize,
}

impl<T: Copy, const N: usize> Recent<T, N> {
    /// None yet; what is older than `keep` is forgotten. `nothing` fills the places that are empty.
    pub(super) const fn new(keep: Duration, nothing: T) -> Self {
        const { assert!(N > 0, "a clock needs a sample") };
        Self { keep, samples: [(Instant::ZERO, nothing); N], first: 0, len: 0 }
    }

    /// Takes a sample; what is too old by now goes, and the oldest where there is no room.
    pub(super) fn push(&mut self, now: Instant, sample: T) {
        while self.len > 0 && self.samples[self.first].0 + self.keep < now {
            self.drop_oldest();
        }
        if self.len == N {
            self.drop_oldest();
        }
        let slot = (self.first + self.len) % N;
        self.samples[slot] = (now, sample);
        self.len += 1;
    }

    /// All samples, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = T> + '_ {
        (0..self.len).map(|place| self.samples[(self.first + place) % N].1)
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    const fn drop_oldest(&mut self) {
        self.first = (self.first + 1) % N;
        self.len = self.len.saturating_sub(1);
    }
}
