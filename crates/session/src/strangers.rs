//! How much those may ask who have not proven who they are (R22).

use std::hash::Hasher;
use std::net::IpAddr;

use caves_link::bucket::TokenBucket;
use caves_link::time::Instant;
use ipnet::IpNet;
use siphasher::sip::SipHasher13;

use crate::Random;

/// Budgets per address that are told apart. A power of two; addresses that fall together share a
/// budget, so the table never grows and an attacker with many addresses only finds the total.
const BUCKETS: usize = 4096;

/// How many packets strangers may send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrangerLimits {
    /// Packets a second from one address (IPv6: one /64).
    pub per_second: u32,
    /// Packets at once from one address.
    pub burst: u32,
    /// Packets a second from all strangers together.
    pub total_per_second: u32,
    /// Networks that have no limit per address; the total holds for them too.
    pub exempt: Vec<IpNet>,
}

impl Default for StrangerLimits {
    /// R22: 10 a second, burst 20, 2,000 in all; loopback exempt.
    fn default() -> Self {
        Self { per_second: 10, burst: 20, total_per_second: 2000, exempt: loopback() }
    }
}

/// The networks of this machine alone.
pub(crate) fn loopback() -> Vec<IpNet> {
    vec![
        IpNet::new_assert(IpAddr::from([127, 0, 0, 0]), 8),
        IpNet::new_assert(IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]), 128),
    ]
}

/// Whether one of the networks holds an address.
pub(crate) fn holds(networks: &[IpNet], ip: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(&ip))
}

/// What counts as one address: an IPv6 host has a whole /64.
pub(crate) fn host(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits() & !u128::from(u64::MAX),
    }
}

/// The strangers' budgets: a table of fixed size with a random seed.
#[derive(Debug)]
pub struct Strangers {
    limits: StrangerLimits,
    buckets: Vec<TokenBucket>,
    total: TokenBucket,
    key: (u64, u64),
}

impl Strangers {
    /// Full budgets for everybody.
    pub fn new(limits: StrangerLimits, random: &mut dyn Random, now: Instant) -> Self {
        let bucket = TokenBucket::new(limits.per_second, limits.burst, now);
        Self {
            buckets: vec![bucket; BUCKETS],
            total: TokenBucket::new(limits.total_per_second, limits.total_per_second, now),
            key: (random.next_u64(), random.next_u64()),
            limits,
        }
    }

    /// Whether a packet from this address may be looked at; it is paid for then.
    pub fn allow(&mut self, now: Instant, ip: IpAddr) -> bool {
        // The address pays first: one flooding address must not empty the total for the others.
        if !holds(&self.limits.exempt, ip) {
            let mut hasher = SipHasher13::new_with_keys(self.key.0, self.key.1);
            hasher.write_u128(host(ip));
            let place = hasher.finish() as usize % BUCKETS;
            if !self.buckets[place].take(now) {
                return false;
            }
        }
        self.total.take(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitMix;

    fn strangers() -> Strangers {
        Strangers::new(StrangerLimits::default(), &mut SplitMix::new(1), Instant::ZERO)
    }

    fn count(strangers: &mut Strangers, now: Instant, ip: &str, packets: usize) -> usize {
        let ip = ip.parse().unwrap();
        (0..packets).filter(|_| strangers.allow(now, ip)).count()
    }

    #[test]
    fn one_address_has_twenty_at_once_and_ten_a_second() {
        let mut strangers = strangers();
        let now = Instant::from_secs(5);
        assert_eq!(count(&mut strangers, now, "192.0.2.1", 50), 20);
        assert_eq!(count(&mut strangers, Instant::from_secs(6), "192.0.2.1", 50), 10);
        assert_eq!(count(&mut strangers, Instant::from_secs(6), "192.0.2.2", 50), 20);
    }

    #[test]
    fn an_ipv6_host_is_its_64_and_loopback_is_exempt() {
        let mut strangers = strangers();
        let now = Instant::ZERO;
        assert_eq!(count(&mut strangers, now, "2001:db8::1", 15), 15);
        assert_eq!(count(&mut strangers, now, "2001:db8::2", 15), 5);
        assert_eq!(count(&mut strangers, now, "2001:db8:0:1::1", 15), 15);
        assert_eq!(count(&mut strangers, now, "127.9.9.9", 100), 100);
    }

    #[test]
    fn all_together_have_the_total() {
        let mut strangers = strangers();
        let allowed: usize = (0..1000u32)
            .map(|i| {
                let ip = IpAddr::from(0x0A00_0000u32.wrapping_add(i * 7919).to_be_bytes());
                (0..20).filter(|_| strangers.allow(Instant::ZERO, ip)).count()
            })
            .sum();
        assert_eq!(allowed, 2000);
        assert_eq!(count(&mut strangers, Instant::ZERO, "127.0.0.1", 5), 0);
    }
}
