//! One direction between two ends.
//!
//! ```
//! use caves_netsim::{Link, LinkConfig};
//! use std::time::Duration;
//!
//! let config = LinkConfig { delay: Duration::from_millis(30), ..LinkConfig::PERFECT };
//! let mut link = Link::new(config, 1);
//! link.send(1_000, 5, "hello");
//! assert_eq!(link.next_arrival(), Some(31_000));
//! assert_eq!(link.poll(30_999), None);
//! assert_eq!(link.poll(31_000), Some("hello"));
//! ```

use crate::config::LinkConfig;
use crate::loss::Loss;
use crate::rng::SplitMix64;
use std::collections::BTreeMap;
use std::iter::Sum;
use std::ops::AddAssign;
use std::time::Duration;

/// What a link did so far, in datagrams.
///
/// Nothing is unaccounted for: `sent + duplicated` is the sum of `lost`, `too_big`, `queue_full`,
/// `delivered` and what is still on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Given to [`Link::send`].
    pub sent: u64,
    /// Dropped by loss, alone or in runs, while the link was down, or as damaged without anything
    /// that could deliver damage.
    pub lost: u64,
    /// Copies made in addition to what was sent.
    pub duplicated: u64,
    /// Delivered after one that was sent later.
    pub reordered: u64,
    /// Dropped as larger than the largest that passes.
    pub too_big: u64,
    /// Dropped because too many were on the way.
    pub queue_full: u64,
    /// Given out by [`Link::poll`], copies and damaged ones included.
    pub delivered: u64,
    /// Damaged on the way, whether delivered or lost.
    pub corrupted: u64,
}

impl AddAssign for Stats {
    fn add_assign(&mut self, other: Self) {
        self.sent += other.sent;
        self.lost += other.lost;
        self.duplicated += other.duplicated;
        self.reordered += other.reordered;
        self.too_big += other.too_big;
        self.queue_full += other.queue_full;
        self.delivered += other.delivered;
        self.corrupted += other.corrupted;
    }
}

impl Sum for Stats {
    fn sum<I: Iterator<Item = Self>>(stats: I) -> Self {
        stats.fold(Self::default(), |mut total, stats| {
            total += stats;
            total
        })
    }
}

/// Changes a payload as a bad line would.
pub type Corruption<P> = fn(&mut P, &mut SplitMix64);

/// One direction between two ends: datagrams go in when they are sent and come out when they
/// arrive.
///
/// Moments are microseconds since an origin of the user's choice. Two links with the same seed and
/// the same calls do the same.
#[derive(Clone, Debug)]
pub struct Link<P> {
    config: LinkConfig,
    corruption: Option<Corruption<P>>,
    loss: Loss,
    chances: Chances,
    /// By arrival, then in the order they were queued.
    queue: BTreeMap<(u64, u64), Flying<P>>,
    queued: u64,
    /// When the last byte of all accepted so far is on the line; matters with a rate.
    line_free: u64,
    /// The highest number delivered, to notice those that were passed.
    newest: u64,
    stats: Stats,
    /// Of all that was given to [`Link::send`].
    bytes: u64,
}

/// A generator for each kind of damage, so that one setting does not shift the draws of another.
#[derive(Clone, Debug)]
struct Chances {
    duplicate: SplitMix64,
    reorder: SplitMix64,
    jitter: SplitMix64,
    corrupt: SplitMix64,
    damage: SplitMix64,
}

#[derive(Clone, Debug)]
struct Flying<P> {
    /// Counts what was sent; a copy has the number of its original.
    number: u64,
    payload: P,
}

impl<P> Link<P> {
    /// A link that does what `config` says, by chances that follow from `seed`.
    pub fn new(config: LinkConfig, seed: u64) -> Self {
        let mut root = SplitMix64::new(seed);
        Self {
            config,
            corruption: None,
            loss: Loss::new(root.fork()),
            chances: Chances {
                duplicate: root.fork(),
                reorder: root.fork(),
                jitter: root.fork(),
                corrupt: root.fork(),
                damage: root.fork(),
            },
            queue: BTreeMap::new(),
            queued: 0,
            line_free: 0,
            newest: 0,
            stats: Stats::default(),
            bytes: 0,
        }
    }

    /// What is done to a damaged payload, as [`flip_bits`] does to bytes.
    ///
    /// Without it a damaged datagram is lost, as one whose checksum is found wrong.
    pub const fn set_corruption(&mut self, corruption: Corruption<P>) {
        self.corruption = Some(corruption);
    }

    /// Other settings from now on; what is on the way keeps its moment of arrival.
    pub const fn set_config(&mut self, config: LinkConfig) {
        self.config = config;
    }

    /// The settings.
    pub const fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Sends a datagram of `size` bytes at `now`.
    ///
    /// The size is the user's word: a payload need not be bytes.
    pub fn send(&mut self, now: u64, size: usize, payload: P)
    where
        P: Clone,
    {
        self.stats.sent += 1;
        self.bytes = self.bytes.saturating_add(size as u64);
        let lost = self.loss.takes_next(&self.config) || self.config.down;
        let copied = self.chances.duplicate.happens(self.config.duplicate);
        if self.config.mtu.is_some_and(|mtu| size > mtu) {
            self.stats.too_big += 1;
            return;
        }
        if lost {
            self.stats.lost += 1;
            return;
        }
        let number = self.stats.sent;
        if copied {
            self.stats.duplicated += 1;
            self.enqueue(now, size, number, payload.clone());
        }
        self.enqueue(now, size, number, payload);
    }

    /// The datagram that arrived first, if one has arrived by `now`.
    ///
    /// Called until `None` it gives all of them, in the order of their arrival.
    pub fn poll(&mut self, now: u64) -> Option<P> {
        if self.next_arrival()? > now {
            return None;
        }
        let (_, flying) = self.queue.pop_first()?;
        self.stats.delivered += 1;
        self.stats.reordered += u64::from(flying.number < self.newest);
        self.newest = self.newest.max(flying.number);
        Some(flying.payload)
    }

    /// The moment of the next arrival, `None` if nothing is on the way.
    pub fn next_arrival(&self) -> Option<u64> {
        self.queue.first_key_value().map(|((arrival, _), _)| *arrival)
    }

    /// Datagrams on the way.
    pub fn in_flight(&self) -> usize {
        self.queue.len()
    }

    /// What the link did so far.
    pub const fn stats(&self) -> Stats {
        self.stats
    }

    /// The sizes of all that was given to [`Link::send`], what was lost included; at most the largest count.
    pub const fn bytes_sent(&self) -> u64 {
        self.bytes
    }

    fn enqueue(&mut self, now: u64, size: usize, number: u64, mut payload: P) {
        let wait = self.draw_wait();
        let damaged = self.chances.corrupt.happens(self.config.corrupt);
        if self.queue.len() >= self.config.max_queue {
            self.stats.queue_full += 1;
            return;
        }
        // The line is busy with what is damaged, too.
        let sent = self.line_passed(now, size);
        if damaged {
            self.stats.corrupted += 1;
            match self.corruption {
                Some(corruption) => corruption(&mut payload, &mut self.chances.damage),
                None => {
                    self.stats.lost += 1;
                    return;
                }
            }
        }
        self.queued += 1;
        let key = (sent.saturating_add(wait), self.queued);
        self.queue.insert(key, Flying { number, payload });
    }

    /// The time from the line to the other end.
    fn draw_wait(&mut self) -> u64 {
        let jitter = micros(self.config.jitter).saturating_add(1);
        let held = self.chances.reorder.happens(self.config.reorder);
        let reorder = if held { micros(self.config.reorder_by) } else { 0 };
        let wait = micros(self.config.delay).saturating_add(self.chances.jitter.below(jitter));
        wait.saturating_add(reorder)
    }

    /// When the last byte of a datagram is on the line, whole microseconds upwards.
    fn line_passed(&mut self, now: u64, size: usize) -> u64 {
        let Some(rate) = self.config.rate else {
            return now;
        };
        let takes = (size as u64).saturating_mul(1_000_000).div_ceil(u64::from(rate.get()));
        self.line_free = self.line_free.max(now).saturating_add(takes);
        self.line_free
    }
}

/// Flips one to eight bits anywhere in the bytes; an empty payload stays as it is.
#[expect(clippy::ptr_arg, reason = "a `Corruption<Vec<u8>>` takes the payload's own type")]
pub fn flip_bits(bytes: &mut Vec<u8>, rng: &mut SplitMix64) {
    let bits = bytes.len() as u64 * 8;
    let flips = 1 + rng.below(8);
    let mut flipped = Vec::new();
    for _ in 0..flips {
        let bit = rng.below(bits);
        // Twice the same bit would undo the damage.
        if bits > 0 && !flipped.contains(&bit) {
            bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
            flipped.push(bit);
        }
    }
}

/// Whole microseconds, at most the largest count.
fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Burst, Chance};
    use proptest::prelude::*;
    use std::num::NonZeroU32;

    const MS: u64 = 1_000;
    /// All of a test is on the way at once.
    const PERFECT: LinkConfig = LinkConfig { max_queue: 1_000_000, ..LinkConfig::PERFECT };

    /// Sends `count` numbered datagrams of 100 bytes, `every` microseconds, from moment 0.
    fn run(config: LinkConfig, seed: u64, count: u64, every: u64) -> (Vec<(u64, u64)>, Stats) {
        let mut link = Link::new(config, seed);
        for n in 0..count {
            link.send(n * every, 100, n);
        }
        (drain(&mut link), link.stats())
    }

    /// All that is on the way, with the moment of its arrival.
    fn drain<P>(link: &mut Link<P>) -> Vec<(u64, P)> {
        let mut arrived = Vec::new();
        while let Some(now) = link.next_arrival() {
            arrived.extend(link.poll(now).map(|payload| (now, payload)));
        }
        arrived
    }

    #[test]
    fn a_perfect_link_delivers_everything_at_once() {
        let (arrived, stats) = run(PERFECT, 1, 100, 10);
        assert_eq!(arrived, (0..100).map(|n| (n * 10, n)).collect::<Vec<_>>());
        assert_eq!(stats, Stats { sent: 100, delivered: 100, ..Stats::default() });
    }

    #[test]
    fn the_bytes_that_were_sent_are_counted_lost_ones_too() {
        let mut link = Link::new(LinkConfig { down: true, ..PERFECT }, 1);
        link.send(0, 70, 'a');
        link.set_config(LinkConfig { mtu: Some(100), ..PERFECT });
        link.send(1, 101, 'b');
        link.send(2, 3, 'c');
        assert_eq!((link.bytes_sent(), link.stats().sent), (70 + 101 + 3, 3));
    }

    #[test]
    fn the_same_seed_does_the_same() {
        let config = LinkConfig { rate: NonZeroU32::new(50_000), ..LinkConfig::CHAOS };
        assert_eq!(run(config, 7, 2000, MS), run(config, 7, 2000, MS));
        assert_ne!(run(config, 7, 2000, MS), run(config, 8, 2000, MS));
    }

    #[test]
    fn a_datagram_arrives_after_the_delay_and_not_before() {
        let mut link = Link::new(LinkConfig { delay: Duration::from_millis(75), ..PERFECT }, 1);
        link.send(1_000_000, 10, 'a');
        assert_eq!(link.next_arrival(), Some(1_075_000));
        assert_eq!(link.poll(1_074_999), None);
        assert_eq!(link.in_flight(), 1);
        assert_eq!(link.poll(1_075_000), Some('a'));
        assert_eq!((link.poll(u64::MAX), link.next_arrival()), (None, None));
    }

    #[test]
    fn a_fifth_is_lost_at_20_percent() {
        for seed in 1..6 {
            let config = LinkConfig { loss: Chance::percent(20), ..PERFECT };
            let (arrived, stats) = run(config, seed, 20_000, 1);
            // 4000; the standard deviation is 57.
            assert!((3_700..4_300).contains(&stats.lost), "seed {seed}: {stats:?}");
            assert_eq!(arrived.len() as u64, 20_000 - stats.lost);
        }
    }

    #[test]
    fn order_is_kept_without_jitter() {
        let config = LinkConfig {
            delay: Duration::from_millis(75),
            loss: Chance::percent(20),
            duplicate: Chance::percent(20),
            ..PERFECT
        };
        let (arrived, stats) = run(config, 3, 5000, 0);
        assert!(arrived.is_sorted_by_key(|(_, n)| *n));
        assert_eq!(stats.reordered, 0);
    }

    #[test]
    fn jitter_spreads_evenly_and_swaps_neighbours() {
        let jitter = Duration::from_millis(20);
        let config = LinkConfig { delay: Duration::from_millis(75), jitter, ..PERFECT };
        let (arrived, stats) = run(config, 5, 10_000, MS);
        let delays: Vec<u64> = arrived.iter().map(|(now, n)| now - n * MS).collect();
        assert!(delays.iter().all(|delay| (75 * MS..=95 * MS).contains(delay)));
        let mean = delays.iter().sum::<u64>() / 10_000;
        // 85 ms; the deviation of the mean is 58 us.
        assert!((84_600..85_400).contains(&mean), "{mean}");
        let mut newest = 0;
        let passed = arrived.iter().filter(|(_, n)| {
            let late = *n < newest;
            newest = newest.max(*n);
            late
        });
        assert_eq!(stats.reordered, passed.count() as u64);
        assert!(stats.reordered > 1_000, "{stats:?}");
    }

    #[test]
    fn jitter_reaches_both_ends() {
        let jitter = Duration::from_micros(2);
        let (arrived, _) = run(LinkConfig { jitter, ..PERFECT }, 1, 300, MS);
        let with = |wait| arrived.iter().filter(|(now, n)| now - n * MS == wait).count();
        // 100 each; the standard deviation is 8.
        assert!([0, 1, 2].iter().all(|wait| with(*wait) > 50));
        assert_eq!(with(0) + with(1) + with(2), 300);
    }

    #[test]
    fn a_datagram_held_back_is_passed_by_later_ones() {
        let config = LinkConfig {
            reorder: Chance::percent(10),
            reorder_by: Duration::from_millis(50),
            ..PERFECT
        };
        let (arrived, stats) = run(config, 2, 10_000, 10 * MS);
        let held = arrived.iter().filter(|(now, n)| now - n * 10 * MS == 50 * MS).count();
        let direct = arrived.iter().filter(|(now, n)| now - n * 10 * MS == 0).count();
        assert_eq!(held + direct, 10_000);
        // 1000; the standard deviation is 30.
        assert!((850..1150).contains(&held), "{held}");
        // All but the very last are passed, unless the next five are held back as well.
        assert!(stats.reordered as usize + 5 >= held, "{stats:?}");
    }

    #[test]
    fn copies_take_their_own_time() {
        let jitter = Duration::from_millis(100);
        let config = LinkConfig { duplicate: Chance::percent(5), jitter, ..PERFECT };
        let (arrived, stats) = run(config, 2, 20_000, MS);
        // 1000; the standard deviation is 31.
        assert!((850..1150).contains(&stats.duplicated), "{stats:?}");
        let mut times = vec![Vec::new(); 20_000];
        for (now, n) in arrived {
            times[n as usize].push(now);
        }
        assert_eq!(times.iter().filter(|times| times.len() == 2).count() as u64, stats.duplicated);
        assert!(times.iter().all(|times| (1..=2).contains(&times.len())));
        let apart = times.iter().filter(|times| times.len() == 2 && times[0] != times[1]);
        assert!(apart.count() as u64 > stats.duplicated * 9 / 10);
    }

    #[test]
    fn a_slow_line_sends_one_after_the_other() {
        // 100 bytes at 10,000 bytes a second: 10 ms each.
        let rate = NonZeroU32::new(10_000);
        let mut link = Link::new(LinkConfig { rate, ..PERFECT }, 1);
        for n in 0..3 {
            link.send(5 * MS, 100, n);
        }
        link.send(100 * MS, 50, 3);
        let expected = [(15 * MS, 0), (25 * MS, 1), (35 * MS, 2), (105 * MS, 3)];
        assert_eq!(drain(&mut link), expected);
    }

    #[test]
    fn what_is_too_big_does_not_pass() {
        let mut link = Link::new(LinkConfig { mtu: Some(1200), ..PERFECT }, 1);
        link.send(0, 1200, 'a');
        link.send(0, 1201, 'b');
        assert_eq!(drain(&mut link), [(0, 'a')]);
        assert_eq!(link.stats().too_big, 1);
    }

    #[test]
    fn the_queue_is_bounded() {
        let delay = Duration::from_secs(1);
        let config = LinkConfig { delay, max_queue: 3, duplicate: Chance::ALWAYS, ..PERFECT };
        let (arrived, stats) = run(config, 1, 10, 0);
        let numbers: Vec<u64> = arrived.iter().map(|(_, n)| *n).collect();
        assert_eq!(numbers, [0, 0, 1]);
        assert_eq!((stats.duplicated, stats.queue_full), (10, 17));
    }

    #[test]
    fn a_cut_line_loses_what_is_sent_but_not_what_is_on_the_way() {
        let config = LinkConfig { delay: Duration::from_millis(10), ..PERFECT };
        let mut link = Link::new(config, 1);
        link.send(0, 1, 'a');
        link.set_config(LinkConfig { down: true, ..config });
        link.send(1, 1, 'b');
        assert!(link.config().down);
        link.set_config(config);
        link.send(2, 1, 'c');
        assert_eq!(drain(&mut link), [(10_000, 'a'), (10_002, 'c')]);
        assert_eq!(link.stats().lost, 1);
    }

    #[test]
    fn damage_changes_the_bytes_and_nothing_else() {
        let mut link = Link::new(LinkConfig { corrupt: Chance::percent(30), ..PERFECT }, 6);
        link.set_corruption(flip_bits);
        let original = vec![0xA5u8; 40];
        for n in 0..10_000 {
            link.send(n, 40, original.clone());
        }
        let arrived = drain(&mut link);
        let flipped = |bytes: &[u8]| -> u32 {
            bytes.iter().zip(&original).map(|(a, b)| (a ^ b).count_ones()).sum()
        };
        let damaged: Vec<u32> =
            arrived.iter().map(|(_, bytes)| flipped(bytes)).filter(|flips| *flips > 0).collect();
        assert_eq!(arrived.len(), 10_000);
        assert!(arrived.iter().all(|(_, bytes)| bytes.len() == 40));
        assert!(damaged.iter().all(|flips| *flips <= 8));
        assert_eq!(damaged.len() as u64, link.stats().corrupted);
        // 3000; the standard deviation is 46.
        assert!((2_750..3_250).contains(&damaged.len()), "{}", damaged.len());
    }

    #[test]
    fn an_empty_payload_survives_damage() {
        let mut empty = Vec::new();
        flip_bits(&mut empty, &mut SplitMix64::new(1));
        assert_eq!(empty, []);
    }

    #[test]
    fn damage_that_cannot_be_shown_is_loss() {
        let (arrived, stats) = run(LinkConfig { corrupt: Chance::ALWAYS, ..PERFECT }, 1, 10, 1);
        assert_eq!(arrived, []);
        assert_eq!((stats.corrupted, stats.lost), (10, 10));
    }

    #[test]
    fn one_setting_does_not_shift_the_chances_of_another() {
        let plain = LinkConfig { loss: Chance::percent(20), ..PERFECT };
        let richer = LinkConfig {
            jitter: Duration::from_millis(50),
            reorder: Chance::percent(10),
            corrupt: Chance::percent(10),
            ..plain
        };
        let numbers = |config| {
            let mut link = Link::new(config, 9);
            link.set_corruption(|_: &mut u64, _| ());
            (0..1000).for_each(|n| link.send(n, 1, n));
            let mut numbers: Vec<u64> = drain(&mut link).into_iter().map(|(_, n)| n).collect();
            numbers.sort_unstable();
            numbers
        };
        assert_eq!(numbers(plain), numbers(richer));
    }

    #[test]
    fn the_end_of_time_does_not_overflow() {
        let config = LinkConfig {
            delay: Duration::MAX,
            jitter: Duration::MAX,
            reorder: Chance::ALWAYS,
            reorder_by: Duration::MAX,
            rate: NonZeroU32::new(1),
            ..PERFECT
        };
        let mut link = Link::new(config, 1);
        link.send(u64::MAX, usize::MAX, ());
        link.send(0, usize::MAX, ());
        assert_eq!(drain(&mut link).len(), 2);
    }

    fn configs() -> impl Strategy<Value = LinkConfig> {
        let chance = || (0u32..4000).prop_map(Chance::from_per_10_000);
        let burst = prop::option::of((chance(), chance(), chance()));
        let flow = (0u64..50, 0u64..50, 0usize..40, prop::option::of(1u32..100_000), any::<bool>());
        (chance(), burst, chance(), chance(), chance(), flow).prop_map(
            |(loss, burst, duplicate, reorder, corrupt, (delay, jitter, max_queue, rate, down))| {
                LinkConfig {
                    delay: Duration::from_millis(delay),
                    jitter: Duration::from_millis(jitter),
                    loss,
                    burst: burst.map(|(enter, leave, loss)| Burst { enter, leave, loss }),
                    duplicate,
                    reorder,
                    reorder_by: Duration::from_millis(30),
                    corrupt,
                    rate: rate.and_then(NonZeroU32::new),
                    mtu: Some(900),
                    max_queue,
                    down,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn every_datagram_is_accounted_for(
            configs in prop::collection::vec(configs(), 1..4), seed in any::<u64>(),
            sends in prop::collection::vec((0u64..20_000, 0usize..1000, any::<bool>()), 0..200),
        ) {
            let mut link = Link::new(configs[0], seed);
            let (mut now, mut delivered, mut last) = (0, 0, 0);
            for (i, (step, size, poll)) in sends.iter().enumerate() {
                link.set_config(configs[i % configs.len()]);
                now += step;
                link.send(now, *size, i);
                while *poll && link.next_arrival().is_some_and(|at| at <= now) {
                    let arrival = link.next_arrival().unwrap();
                    prop_assert!(arrival >= last, "{} after {}", arrival, last);
                    last = arrival;
                    let number = link.poll(now);
                    prop_assert!(number.is_some_and(|number| number <= i));
                    delivered += 1;
                }
                if *poll {
                    // Later sends arrive after what was given out.
                    last = now;
                }
                let stats = link.stats();
                prop_assert_eq!(stats.sent, i as u64 + 1);
                prop_assert_eq!(stats.delivered, delivered);
                let gone = stats.lost + stats.too_big + stats.queue_full + stats.delivered;
                prop_assert_eq!(stats.sent + stats.duplicated, gone + link.in_flight() as u64);
                prop_assert!(link.in_flight() <= configs.iter().map(|c| c.max_queue).max().unwrap());
            }
        }
    }
}
