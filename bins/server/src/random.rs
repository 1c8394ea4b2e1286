//! The operating system's random numbers.

use caves_session::Random;

/// Numbers that are fetched at once, so that most of them cost no system call.
const BATCH: usize = 32;

/// The operating system's generator, for tokens, nonces, keys and seeds.
///
/// ```
/// use caves_server::OsRandom;
/// use caves_session::Random;
///
/// let mut random = OsRandom::new().unwrap();
/// assert_ne!(random.next_u64(), random.next_u64());
/// ```
pub struct OsRandom {
    batch: [u8; BATCH * 8],
    /// Numbers of the batch that were not given out yet.
    left: usize,
}

impl OsRandom {
    /// Fetches the first numbers.
    ///
    /// # Errors
    /// The operating system has none to give.
    pub fn new() -> Result<Self, getrandom::Error> {
        let mut random = Self { batch: [0; BATCH * 8], left: 0 };
        random.fetch()?;
        Ok(random)
    }

    fn fetch(&mut self) -> Result<(), getrandom::Error> {
        getrandom::fill(&mut self.batch)?;
        self.left = BATCH;
        Ok(())
    }
}

impl Random for OsRandom {
    fn next_u64(&mut self) -> u64 {
        if self.left == 0
            && let Err(error) = self.fetch()
        {
            give_up(error);
        }
        self.left -= 1;
        let mut number = [0; 8];
        let place = &mut self.batch[self.left * 8..][..8];
        number.copy_from_slice(place);
        // What was given out is not kept.
        place.fill(0);
        u64::from_le_bytes(number)
    }
}

impl std::fmt::Debug for OsRandom {
    /// The numbers to come are nobody's business.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OsRandom").field("left", &self.left).finish_non_exhaustive()
    }
}

/// A source that has worked once does not fail later on any system we know. If it does, guessable
/// tokens would be worse than no server.
#[allow(clippy::print_stderr, reason = "the process ends here, log or no log")]
fn give_up(error: getrandom::Error) -> ! {
    eprintln!("no random numbers from the operating system: {error}");
    std::process::abort()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn numbers_do_not_repeat_over_several_batches() {
        let mut random = OsRandom::new().unwrap();
        let numbers: HashSet<u64> = (0..BATCH * 3 + 1).map(|_| random.next_u64()).collect();
        assert_eq!(numbers.len(), BATCH * 3 + 1);
        assert!(!numbers.contains(&0));
    }

    #[test]
    fn every_bit_of_a_number_is_random() {
        let mut random = OsRandom::new().unwrap();
        let (mut ones, mut zeros) = (0, 0);
        for _ in 0..128 {
            let number = random.next_u64();
            ones |= number;
            zeros |= !number;
        }
        // Each fails once in 2^121 runs.
        assert_eq!((ones, zeros), (u64::MAX, u64::MAX));
    }
}
