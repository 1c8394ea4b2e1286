//! Sessions by token: looked up for every action.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use caves_wire::caves::Token;

use crate::peers::SessionId;

/// Which session a token opens.
pub(super) type ByToken = HashMap<Token, SessionId, BuildHasherDefault<Spread>>;

/// Spreads tokens over a table. The server draws them itself or its operator lists them: nobody
/// else can fill the table with tokens that collide, so it takes no keyed hash. What strangers
/// choose (addresses, names, nonces) does.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u64(&mut self, value: u64) {
        // 2^64 divided by the golden ratio: an operator may list small numbers.
        let product = u128::from(self.0 ^ value) * 0x9E37_79B9_7F4A_7C15;
        // A table looks at both ends: the middle bits depend on all of the token.
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::BuildHasher;

    #[test]
    fn tokens_in_a_row_and_tokens_of_high_bits_spread_over_a_table() {
        let hash = |token| BuildHasherDefault::<Spread>::default().hash_one(Token(token));
        for shift in [0, 20, 32, 52] {
            // The lowest bits choose a place in the table, the highest seven tell entries apart.
            for end in [0, 52] {
                let mut taken = vec![false; 4096];
                (1..=4096u64).for_each(|n| taken[(hash(n << shift) >> end) as usize % 4096] = true);
                let taken = taken.iter().filter(|taken| **taken).count();
                // At random about 1 - 1/e of the places are taken: 2589. Half of them will do.
                assert!(
                    taken > 2048,
                    "{taken} places for tokens from bit {shift}, bits from {end}"
                );
            }
        }
    }
}
