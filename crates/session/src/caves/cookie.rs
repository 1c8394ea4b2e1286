//! The cookie of a Challenge: it proves an address without keeping anything (section 2).

use std::hash::Hasher;
use std::time::Duration;

use caves_link::time::Instant;
use caves_wire::caves::{ClientType, Nonce};
use siphasher::sip128::{Hasher128, SipHasher24};

use crate::{Peer, Random};

/// A key makes cookies for this long and is honoured for as long again: a cookie is valid for
/// 10 to 20 s.
const PERIOD: Duration = Duration::from_secs(10);

/// Makes and checks cookies.
///
/// The coarse time that a cookie is bound to is the life of its key: a new one is drawn every
/// period, the last one is honoured for one more, and neither outlives the process.
#[derive(Debug)]
pub(super) struct Cookies {
    current: Key,
    last: Option<Key>,
    drawn: Instant,
}

#[derive(Debug, Clone, Copy)]
struct Key(u64, u64);

impl Key {
    fn draw(random: &mut dyn Random) -> Self {
        Self(random.next_u64(), random.next_u64())
    }

    fn mac(self, peer: Peer, nonce: Nonce, client_type: ClientType) -> [u8; 16] {
        let mut hasher = SipHasher24::new_with_keys(self.0, self.1);
        hasher.write_u16(peer.socket);
        hasher.write_u16(peer.addr.port());
        let ip = match peer.ip() {
            std::net::IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            std::net::IpAddr::V6(v6) => v6,
        };
        hasher.write(&ip.octets());
        hasher.write_u64(nonce.0);
        hasher.write_u16(client_type.0);
        hasher.finish128().as_bytes()
    }
}

impl Cookies {
    pub(super) fn new(random: &mut dyn Random, now: Instant) -> Self {
        Self { current: Key::draw(random), last: None, drawn: now }
    }

    /// The cookie for a Hello that comes now.
    pub(super) fn make(
        &mut self,
        now: Instant,
        random: &mut dyn Random,
        peer: Peer,
        nonce: Nonce,
        client_type: ClientType,
    ) -> [u8; 16] {
        self.turn(now, random);
        self.current.mac(peer, nonce, client_type)
    }

    /// Whether a cookie was made here, for this peer and attempt, not too long ago.
    pub(super) fn check(
        &mut self,
        now: Instant,
        random: &mut dyn Random,
        peer: Peer,
        nonce: Nonce,
        client_type: ClientType,
        cookie: [u8; 16],
    ) -> bool {
        self.turn(now, random);
        let is_of = |key: Key| same(key.mac(peer, nonce, client_type), cookie);
        is_of(self.current) || self.last.is_some_and(is_of)
    }

    /// Makes every cookie that is out invalid at once.
    pub(super) fn forget(&mut self, now: Instant, random: &mut dyn Random) {
        *self = Self::new(random, now);
    }

    fn turn(&mut self, now: Instant, random: &mut dyn Random) {
        let age = now.saturating_since(self.drawn);
        if age >= PERIOD {
            let young = age < 2 * PERIOD;
            self.last = young.then_some(self.current);
            self.current = Key::draw(random);
            // Stay on the grid while it runs, so that no cookie lives less than a period.
            self.drawn = if young { self.drawn + PERIOD } else { now };
        }
    }
}

/// Compares without telling by its duration where the first difference is.
fn same(a: [u8; 16], b: [u8; 16]) -> bool {
    a.iter().zip(b).fold(0, |differences, (x, y)| differences | (x ^ y)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix;

    const NONCE: Nonce = Nonce(7);
    const KIND: ClientType = ClientType(0);

    fn peer(port: u16) -> Peer {
        Peer { socket: 0, addr: ([192, 0, 2, 1], port).into() }
    }

    #[test]
    fn a_cookie_is_valid_for_ten_to_twenty_seconds() {
        for issued in [0, 1, 5, 9, 10, 14, 19, 25] {
            for age in 0..30 {
                let mut random = SplitMix::new(3);
                let mut cookies = Cookies::new(&mut random, Instant::ZERO);
                let made = Instant::from_secs(issued);
                let cookie = cookies.make(made, &mut random, peer(1), NONCE, KIND);
                let then = Instant::from_secs(issued + age);
                let valid = cookies.check(then, &mut random, peer(1), NONCE, KIND, cookie);
                if age < 10 {
                    assert!(valid, "issued at {issued}, {age} s old");
                }
                if age >= 20 {
                    assert!(!valid, "issued at {issued}, {age} s old");
                }
            }
        }
    }

    #[test]
    fn a_cookie_is_for_one_address_port_nonce_and_client_type() {
        let mut random = SplitMix::new(3);
        let now = Instant::ZERO;
        let mut cookies = Cookies::new(&mut random, now);
        let cookie = cookies.make(now, &mut random, peer(1), NONCE, KIND);
        let mut check =
            |peer, nonce, kind| cookies.check(now, &mut random, peer, nonce, kind, cookie);
        assert!(check(peer(1), NONCE, KIND));
        assert!(!check(peer(2), NONCE, KIND));
        assert!(!check(Peer { addr: ([192, 0, 2, 2], 1).into(), ..peer(1) }, NONCE, KIND));
        assert!(!check(peer(1), Nonce(8), KIND));
        assert!(!check(peer(1), NONCE, ClientType(1)));
    }

    #[test]
    fn forgotten_and_restarted_servers_know_no_old_cookie() {
        let mut random = SplitMix::new(3);
        let now = Instant::ZERO;
        let mut cookies = Cookies::new(&mut random, now);
        let cookie = cookies.make(now, &mut random, peer(1), NONCE, KIND);
        cookies.forget(now, &mut random);
        assert!(!cookies.check(now, &mut random, peer(1), NONCE, KIND, cookie));
    }
}
