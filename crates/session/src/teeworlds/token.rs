//! The token of an address: made of a secret, so that nothing is kept for it (section 4).

use std::hash::Hasher;
use std::net::IpAddr;

use caves_wire::teeworlds::Token;
use siphasher::sip::SipHasher24;

use crate::Random;

/// No tokens.
const NONE: Token = Token([0; 4]);

/// Makes tokens, the same for an address as long as the process lives: connections go on with theirs.
/// The port plays no part, so that a client behind a new mapping of the same address needs no new one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tokens {
    key: (u64, u64),
    #[cfg(feature = "testing")]
    fixed: Option<Token>,
}

impl Tokens {
    pub(super) fn new(random: &mut dyn Random) -> Self {
        Self {
            key: (random.next_u64(), random.next_u64()),
            #[cfg(feature = "testing")]
            fixed: None,
        }
    }

    /// The token of an address; never one that has a meaning of its own.
    pub(super) fn of(&self, ip: IpAddr) -> Token {
        #[cfg(feature = "testing")]
        if let Some(fixed) = self.fixed {
            return fixed;
        }
        let mut hasher = SipHasher24::new_with_keys(self.key.0, self.key.1);
        match ip {
            IpAddr::V4(v4) => hasher.write(&v4.to_ipv6_mapped().octets()),
            IpAddr::V6(v6) => hasher.write(&v6.octets()),
        }
        let hash = hasher.finish();
        // The second half is for the two in four billion whose first half means something else.
        [hash as u32, (hash >> 32) as u32]
            .map(|half| Token(half.to_le_bytes()))
            .into_iter()
            .find(|token| !is_none(*token) && *token != Token::UNKNOWN)
            .unwrap_or(Token([1; 4]))
    }

    /// Every address gets this token, as in a capture.
    #[cfg(feature = "testing")]
    pub(super) const fn fix(&mut self, token: Token) {
        self.fixed = Some(token);
    }
}

/// Whether a token says that there are to be none.
pub(super) fn is_none(token: Token) -> bool {
    token == NONE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix;

    #[test]
    fn a_token_follows_from_secret_and_address() {
        let (tokens, others) =
            (Tokens::new(&mut SplitMix::new(1)), Tokens::new(&mut SplitMix::new(2)));
        let ip = |last| IpAddr::from([192, 0, 2, last]);
        assert_eq!(tokens.of(ip(1)), tokens.of(ip(1)));
        assert_ne!(tokens.of(ip(1)), tokens.of(ip(2)));
        assert_ne!(tokens.of(ip(1)), others.of(ip(1)));
        assert_eq!(tokens.of("::ffff:192.0.2.1".parse().unwrap()), tokens.of(ip(1)));
    }
}
