//! How much those may ask who have not proven who they are (R22).

use std::hash::Hasher;
use std::net::IpAddr;
use std::time::Duration;

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
    /// Packets a second from all strangers together; [`Strangers`] says how they share it.
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

/// The strangers' budgets: tables of fixed size with random seeds.
///
/// A packet is paid from the budget of its address, and from the total. A flood from many addresses
/// spends the total, so it is kept in three shares, and a flood that spends one leaves the others:
///
/// ```text
///   newcomers   half      hosts that were hardly answered lately
///   proven      quarter   a Join with a true cookie
///   known       quarter   all others
/// ```
///
/// What a share does not use is lent: everybody may take from any that is more than half full.
#[derive(Debug)]
pub struct Strangers {
    limits: StrangerLimits,
    buckets: Vec<TokenBucket>,
    newcomers: TokenBucket,
    proven: TokenBucket,
    known: TokenBucket,
    answered: Answered,
    key: (u64, u64),
}

impl Strangers {
    /// Full budgets for everybody.
    pub fn new(limits: StrangerLimits, random: &mut dyn Random, now: Instant) -> Self {
        let bucket = TokenBucket::new(limits.per_second, limits.burst, now);
        let [newcomers, proven, known] = shares(limits.total_per_second, now);
        Self {
            buckets: vec![bucket; BUCKETS],
            newcomers,
            proven,
            known,
            answered: Answered::new(now),
            key: (random.next_u64(), random.next_u64()),
            limits,
        }
    }

    /// Whether a packet from this address may be looked at; it is paid for then.
    pub fn allow(&mut self, now: Instant, ip: IpAddr) -> bool {
        self.pay(now, ip, false)
    }

    /// The same for one who has shown that what is sent to this address arrives there.
    pub fn allow_proven(&mut self, now: Instant, ip: IpAddr) -> bool {
        self.pay(now, ip, true)
    }

    /// Other limits from now on. Where a rate changes everybody's budget is full once more; who was
    /// answered lately is still known.
    pub fn set_limits(&mut self, now: Instant, limits: StrangerLimits) {
        let rates = |of: &StrangerLimits| (of.per_second, of.burst);
        if rates(&limits) != rates(&self.limits) {
            self.buckets.fill(TokenBucket::new(limits.per_second, limits.burst, now));
        }
        if limits.total_per_second != self.limits.total_per_second {
            [self.newcomers, self.proven, self.known] = shares(limits.total_per_second, now);
        }
        self.limits = limits;
    }

    fn pay(&mut self, now: Instant, ip: IpAddr, proven: bool) -> bool {
        self.answered.forget(now);
        let cells = Answered::cells(hash(self.key, subscriber(ip)));
        // A host that was answered less often than its burst has not spent its own budget: that was
        // somebody whose address falls together with its.
        let newcomer = self.answered.count(cells) < FEW_ANSWERS.min(self.limits.burst);
        // The address pays first: one flooding address must not empty the total for the others.
        let own = holds(&self.limits.exempt, ip) || self.bucket(ip).take(now) || newcomer;
        let allowed = own && self.pay_total(now, newcomer, proven);
        if allowed {
            self.answered.note(cells);
        }
        allowed
    }

    fn pay_total(&mut self, now: Instant, newcomer: bool, proven: bool) -> bool {
        newcomer && self.newcomers.take(now)
            || proven && self.proven.take(now)
            || !newcomer && self.known.take(now)
            || take_spare(&mut self.newcomers, now)
            || take_spare(&mut self.proven, now)
            || take_spare(&mut self.known, now)
    }

    fn bucket(&mut self, ip: IpAddr) -> &mut TokenBucket {
        let place = hash(self.key, host(ip)) as usize % BUCKETS;
        &mut self.buckets[place]
    }
}

/// The total for newcomers, for the proven, and for the known.
fn shares(total: u32, now: Instant) -> [TokenBucket; 3] {
    [total / 2, total / 4, total - total / 2 - total / 4]
        .map(|per_second| TokenBucket::new(per_second, per_second, now))
}

/// A host with fewer answers than this is a newcomer: a Challenge and a Welcome are what it takes.
const FEW_ANSWERS: u32 = 2;
/// Answers count half after this time. Ten thousand hosts that ask as seldom as newcomers spend no
/// more than 333 packets a second by it, and leave most of the total to those who are.
const FORGET: Duration = Duration::from_secs(60);
/// Rows of the sketch, 16 bits of one hash each.
const ROWS: usize = 4;
/// Cells of a row: few of them are shared while fewer hosts than this flood.
const CELLS: usize = 1 << 16;

/// Takes from a share that its own do not use up.
fn take_spare(share: &mut TokenBucket, now: Instant) -> bool {
    share.available(now) > share.burst() / 2 && share.take(now)
}

/// How often each host was answered lately: a count-min sketch, which never tells too little. It
/// counts answers and not questions, so that asking in vain puts nobody back.
#[derive(Debug)]
struct Answered {
    rows: Vec<u8>,
    halved: Instant,
}

impl Answered {
    fn new(now: Instant) -> Self {
        Self { rows: vec![0; ROWS * CELLS], halved: now }
    }

    fn cells(hash: u64) -> [usize; ROWS] {
        std::array::from_fn(|row| row * CELLS + (hash >> (16 * row)) as usize % CELLS)
    }

    fn count(&self, cells: [usize; ROWS]) -> u32 {
        cells.iter().map(|cell| u32::from(self.rows[*cell])).min().unwrap_or(0)
    }

    /// Only the lowest cells grow: the others are high by other hosts already.
    fn note(&mut self, cells: [usize; ROWS]) {
        let lowest = self.count(cells);
        for cell in cells {
            if u32::from(self.rows[cell]) == lowest {
                self.rows[cell] = self.rows[cell].saturating_add(1);
            }
        }
    }

    fn forget(&mut self, now: Instant) {
        let times = now.saturating_since(self.halved).as_secs() / FORGET.as_secs();
        if times > 0 {
            let times = u32::try_from(times).unwrap_or(u32::MAX);
            self.rows.iter_mut().for_each(|count| *count = count.checked_shr(times).unwrap_or(0));
            self.halved = now;
        }
    }
}

/// Who counts as one newcomer: an IPv6 subscriber may have a whole /48.
fn subscriber(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(_) => host(ip),
        IpAddr::V6(v6) => v6.to_bits() >> 80,
    }
}

fn hash(key: (u64, u64), host: u128) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(key.0, key.1);
    hasher.write_u128(host);
    hasher.finish()
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
        // All but the half of a quarter that is for true cookies alone.
        assert_eq!(allowed, 2000 - 250);
        assert_eq!(count(&mut strangers, Instant::ZERO, "127.0.0.1", 5), 0);
        let ip = "127.0.0.1".parse().unwrap();
        let mut proven = |now| (0..5000).filter(|_| strangers.allow_proven(now, ip)).count();
        assert_eq!(proven(Instant::ZERO), 250);
        // Two quarters, since its host is no newcomer, and half of the newcomers' half.
        assert_eq!(proven(Instant::from_secs(9)), 500 + 500 + 500);
    }

    #[test]
    fn each_share_is_safe_from_the_others() {
        let mut strangers = strangers();
        let now = Instant::ZERO;
        let known = "127.0.0.1".parse().unwrap();
        // One exempt host: two as a newcomer, its quarter, and the spare halves of the others.
        assert_eq!(count(&mut strangers, now, "127.0.0.1", 5000), 500 + 500 + 250);
        assert_eq!((0..5000).filter(|_| strangers.allow_proven(now, known)).count(), 250);
        assert_eq!(count(&mut strangers, now, "192.0.2.1", 50), 2);
        assert_eq!(count(&mut strangers, now, "2001:db8:0:1::1", 1), 1);
        assert_eq!(count(&mut strangers, now, "2001:db8:0:2::1", 5), 1, "the same /48");
        let others = (0..1000u32).map(|n| IpAddr::from((0x0A00_0000 + n * 7919).to_be_bytes()));
        let allowed = others.filter(|ip| strangers.allow(now, *ip)).count();
        assert_eq!(allowed, 496, "the newcomers' other half");
        // A second later all of it is there again, and one host that is not new may have it all.
        let later = Instant::from_secs(1);
        assert_eq!(count(&mut strangers, later, "127.0.0.1", 5000), 500 + 500 + 250);
    }

    #[test]
    fn nobody_has_more_than_the_total_over_time_and_nobody_less_who_is_alone() {
        let mut strangers = strangers();
        let at = |millis| Instant::from_secs(1) + Duration::from_millis(millis);
        let allowed: usize =
            (0..10_000).map(|millis| count(&mut strangers, at(millis), "127.0.0.1", 5)).sum();
        assert!((20_000..=22_000).contains(&allowed), "{allowed}");
    }

    #[test]
    fn answers_are_forgotten_by_halves() {
        let mut answered = Answered::new(Instant::ZERO);
        let cells = Answered::cells(0x0123_4567_89AB_CDEF);
        let mut at = |seconds, notes| {
            answered.forget(Instant::from_secs(seconds));
            (0..notes).for_each(|_| answered.note(cells));
            answered.count(cells)
        };
        assert_eq!(at(0, 7), 7);
        assert_eq!(at(59, 0), 7);
        assert_eq!(at(60, 0), 3);
        assert_eq!(at(180, 300), 255, "it does not wrap");
        assert_eq!(at(180 + 8 * 60, 0), 0);
    }

    #[test]
    fn a_host_is_never_taken_for_less_answered_than_it_was() {
        let mut answered = Answered::new(Instant::ZERO);
        let mut random = SplitMix::new(6);
        let cells = |number: u64| {
            Answered::cells(hash((1, 2), subscriber(IpAddr::from((number as u32).to_be_bytes()))))
        };
        let mut model = std::collections::BTreeMap::<u64, u32>::new();
        for _ in 0..30_000 {
            let number = random.next_u64() % 10_000;
            answered.note(cells(number));
            *model.entry(number).or_default() += 1;
        }
        let mut exact = 0;
        for (number, count) in &model {
            assert!(answered.count(cells(*number)) >= *count);
            exact += usize::from(answered.count(cells(*number)) == *count);
        }
        // One in seven cells is shared; that all four of a host are, is rare.
        assert!(exact * 1000 >= model.len() * 990, "{exact} of {}", model.len());
    }
}
