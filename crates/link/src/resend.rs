//! Entries that are sent again until the peer has acknowledged them.
//!
//! One queue serves protocols that acknowledge in different ways: one number at a time, all up to
//! a number, or a number and a bit for each of the 32 before it.
//!
//! ```text
//!   push ----> | 7 | 8 | 9 | 10 | 11 |        at most `capacity`, each with its own deadline
//!                ^   ^
//!   poll ------- due the longest: onto the wire, due again after a wait that may grow
//!
//!   release(9)           |   |   | x |    |    |    exactly this one
//!   release_up_to(9)     | x | x | x |    |    |    all that are not newer
//!   release_bits(10, ..) | x |   | x |  x |    |    10, and of the 32 before it those with a bit:
//!                                                   bit 0 is 9, bit 1 is 8, bit 2 is 7: 0b101
//! ```
//!
//! Some peers keep what is unacknowledged in a buffer of fixed size, and bytes matter there, not only
//! entries. [`with_budget`](ResendQueue::with_budget) bounds the sum of what entries cost, each by
//! the price that [`push_sent`](ResendQueue::push_sent) is told:
//!
//! ```text
//!   budget 100    | 7: 40 | 8: 24 | 9: 24 |            12 are left: 24 more are refused,
//!                 0      40      64      88   100      and nothing is forgotten for them
//! ```
//!
//! An entry that stays has not arrived, as far as anybody knows; [`ResendQueue::oldest_age`] tells
//! how long that has been going on, and the user decides when it is too long.
//!
//! ```
//! use caves_link::resend::ResendQueue;
//! use caves_link::retry::RetryPolicy;
//! use caves_link::seq::Seq;
//! use caves_link::time::Instant;
//! use core::time::Duration;
//!
//! let policy = RetryPolicy::doubling(Duration::from_millis(250), Duration::from_secs(2));
//! let mut queue = ResendQueue::<&str, 16>::new(4, policy);
//! let now = Instant::ZERO;
//! queue.push(Seq::new(65535), "last of the lap", now).unwrap();
//! queue.push(Seq::new(0), "first of the next", now).unwrap();
//!
//! assert_eq!(queue.poll(now, 0), Some((Seq::new(65535), &"last of the lap")));
//! assert_eq!(queue.poll(now, 0), Some((Seq::new(0), &"first of the next")));
//! assert_eq!(queue.poll(now, 0), None);
//! assert_eq!(queue.release(Seq::new(0)), Some("first of the next"));
//! assert_eq!(queue.deadline(), Some(Instant::from_millis(250)));
//! ```

use crate::retry::RetryPolicy;
use crate::seq::Seq;
use crate::time::{Deadline, Instant};
use alloc::collections::VecDeque;
use core::fmt;
use core::time::Duration;

/// A bounded queue of numbered entries, each with its own deadline.
///
/// The user gives every entry a number of its own; the queue does not look for repeated ones. An
/// entry stays until it is released, however often it was sent. Memory is used for the entries
/// that are there, never for more than the capacity.
#[derive(Clone, Debug)]
pub struct ResendQueue<T, const BITS: u32> {
    policy: RetryPolicy,
    capacity: usize,
    budget: usize,
    /// What the entries cost together; at most the budget.
    used: usize,
    /// In the order they were pushed.
    entries: VecDeque<Entry<T, BITS>>,
}

/// The queue holds as many as it may; the item comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full<T>(pub T);

impl<T> fmt::Display for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the queue of unacknowledged entries is full")
    }
}

impl<T: fmt::Debug> core::error::Error for Full<T> {}

#[derive(Clone, Debug)]
struct Entry<T, const BITS: u32> {
    seq: Seq<BITS>,
    item: T,
    cost: usize,
    /// How often it was sent; decides the next wait.
    sent: u32,
    /// Whether it was sent before it was last renewed: an acknowledgement may be of that.
    renewed: bool,
    first_sent: Option<Instant>,
    next: Instant,
}

impl<T, const BITS: u32> ResendQueue<T, BITS> {
    /// An empty queue for at most `capacity` entries, sent again as `policy` says.
    pub const fn new(capacity: usize, policy: RetryPolicy) -> Self {
        Self::with_budget(capacity, usize::MAX, policy)
    }

    /// An empty queue for at most `capacity` entries that cost at most `budget` together, in a unit of
    /// the user's choice.
    pub const fn with_budget(capacity: usize, budget: usize, policy: RetryPolicy) -> Self {
        Self { policy, capacity, budget, used: 0, entries: VecDeque::new() }
    }

    /// Adds an entry, due for its first sending at `now`.
    ///
    /// # Errors
    ///
    /// [`Full`] with the item if the capacity is reached; the queue is unchanged then.
    pub fn push(&mut self, seq: Seq<BITS>, item: T, now: Instant) -> Result<(), Full<T>> {
        self.push_entry(Entry {
            seq,
            item,
            cost: 0,
            sent: 0,
            renewed: false,
            first_sent: None,
            next: now,
        })
    }

    /// Adds an entry that costs `cost` of the budget and goes onto the wire at `now` by the user's own
    /// hand: it is due again after the first wait, picked by `random`.
    ///
    /// # Errors
    ///
    /// [`Full`] with the item if the capacity is reached or the budget would be passed; the queue is
    /// unchanged then.
    pub fn push_sent(
        &mut self,
        seq: Seq<BITS>,
        item: T,
        cost: usize,
        now: Instant,
        random: u32,
    ) -> Result<(), Full<T>> {
        let next = now + self.policy.wait(0, random);
        self.push_entry(Entry {
            seq,
            item,
            cost,
            sent: 1,
            renewed: false,
            first_sent: Some(now),
            next,
        })
    }

    fn push_entry(&mut self, entry: Entry<T, BITS>) -> Result<(), Full<T>> {
        if !self.has_room(entry.cost) {
            return Err(Full(entry.item));
        }
        self.used += entry.cost;
        self.entries.push_back(entry);
        Ok(())
    }

    /// The peer has exactly `seq`: takes that entry out, `None` if there is none.
    pub fn release(&mut self, seq: Seq<BITS>) -> Option<T> {
        let index = self.entries.iter().position(|entry| entry.seq == seq)?;
        let entry = self.entries.remove(index)?;
        self.used -= entry.cost;
        Some(entry.item)
    }

    /// The peer has everything up to `seq`: drops `seq` and all older, returns how many.
    ///
    /// An entry exactly half the circle away stays, since nothing tells on which side it lies. The
    /// queue does not know which numbers were used: one that was never sent is the user's to
    /// refuse, or it releases what the peer has not got.
    pub fn release_up_to(&mut self, seq: Seq<BITS>) -> usize {
        self.release_where(|entry| entry == seq || seq.is_newer_than(entry))
    }

    /// The peer has `latest`, and bit `i` of `bits` says that it has the one `i + 1` before.
    ///
    /// Drops what these name and returns how many.
    pub fn release_bits(&mut self, latest: Seq<BITS>, bits: u32) -> usize {
        self.release_where(|entry| match latest.distance_from(entry) {
            0 => true,
            before @ 1..=32 => bits >> (before - 1) & 1 == 1,
            _ => false,
        })
    }

    /// The entry that is due at `now` for the longest time; it is due again after a wait picked by
    /// `random` (uniform over its range).
    ///
    /// Called until `None`, it names every due entry once.
    pub fn poll(&mut self, now: Instant, random: u32) -> Option<(Seq<BITS>, &T)> {
        let due = self.entries.iter_mut().filter(|entry| entry.next <= now);
        // The first of equals: what was pushed first is sent first.
        let entry = due.min_by_key(|entry| entry.next)?;
        Some(entry.send(now, &self.policy, random))
    }

    /// The entry that was pushed first, if it is due at `now`; it is due again after a wait picked by
    /// `random`. For a peer that takes nothing but the next one: others would be thrown away by it.
    pub fn poll_oldest(&mut self, now: Instant, random: u32) -> Option<(Seq<BITS>, &T)> {
        let entry = self.entries.front_mut().filter(|entry| entry.next <= now)?;
        Some(entry.send(now, &self.policy, random))
    }

    /// When [`poll_oldest`](Self::poll_oldest) has something to say, `None` if the queue is empty.
    pub fn oldest_deadline(&self) -> Option<Instant> {
        self.entries.front().map(|entry| entry.next)
    }

    /// Every entry is due now, for [`poll`](Self::poll) to name them in the order they were pushed: the
    /// peer asked for them. How often each was sent, and since when, stays.
    pub fn hasten(&mut self, now: Instant) {
        for entry in &mut self.entries {
            entry.next = now;
        }
    }

    /// When [`poll`](Self::poll) has something to say, `None` if the queue is empty.
    pub fn deadline(&self) -> Option<Instant> {
        Deadline::earliest(self.entries.iter().map(|entry| Some(entry.next)))
    }

    /// The time since the first sending of the entry that waits longest for its acknowledgement;
    /// `None` if none was sent yet.
    pub fn oldest_age(&self, now: Instant) -> Option<Duration> {
        Some(now.saturating_since(self.oldest_since()?))
    }

    /// The moment from which [`oldest_age`](Self::oldest_age) counts.
    pub fn oldest_since(&self) -> Option<Instant> {
        Deadline::earliest(self.entries.iter().map(|entry| entry.first_sent))
    }

    /// Everything is as if it had just been pushed: due now, its age counted anew. For a peer that
    /// is heard again after a silence, in which nothing could have been acknowledged.
    pub fn renew(&mut self, now: Instant) {
        for entry in &mut self.entries {
            entry.renewed |= entry.sent > 0;
            entry.sent = 0;
            entry.first_sent = None;
            entry.next = now;
        }
    }

    /// When an entry was sent, if that was once and never before: the answer to it tells the round
    /// trip, and the answer to one that was repeated does not (Karn's rule).
    pub fn sent_once_at(&self, seq: Seq<BITS>) -> Option<Instant> {
        let entry = self.entries.iter().find(|entry| entry.seq == seq)?;
        entry.first_sent.filter(|_| entry.sent == 1 && !entry.renewed)
    }

    /// Entries in the queue.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether all entries were released.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether [`push`](Self::push) would refuse.
    pub fn is_full(&self) -> bool {
        !self.has_room(0)
    }

    /// Whether an entry that costs `cost` would be taken.
    pub fn has_room(&self, cost: usize) -> bool {
        self.entries.len() < self.capacity && cost <= self.budget - self.used
    }

    /// What the entries cost together.
    pub const fn used(&self) -> usize {
        self.used
    }

    /// The most that the entries may cost together.
    pub const fn budget(&self) -> usize {
        self.budget
    }

    /// The highest number of entries.
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// All entries, in the order they were pushed.
    pub fn iter(&self) -> impl Iterator<Item = (Seq<BITS>, &T)> {
        self.entries.iter().map(|entry| (entry.seq, &entry.item))
    }

    /// Takes all entries out, in the order they were pushed.
    pub fn drain(&mut self) -> impl Iterator<Item = (Seq<BITS>, T)> {
        self.used = 0;
        self.entries.drain(..).map(|entry| (entry.seq, entry.item))
    }

    /// Drops all entries, as for a new session.
    pub fn clear(&mut self) {
        self.used = 0;
        self.entries.clear();
    }

    fn release_where(&mut self, known: impl Fn(Seq<BITS>) -> bool) -> usize {
        let before = self.entries.len();
        let used = &mut self.used;
        self.entries.retain(|entry| {
            let stays = !known(entry.seq);
            if !stays {
                *used -= entry.cost;
            }
            stays
        });
        before - self.entries.len()
    }
}

impl<T, const BITS: u32> Entry<T, BITS> {
    fn send(&mut self, now: Instant, policy: &RetryPolicy, random: u32) -> (Seq<BITS>, &T) {
        self.next = now + policy.wait(self.sent, random);
        self.sent = self.sent.saturating_add(1);
        self.first_sent.get_or_insert(now);
        (self.seq, &self.item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    const POLICY: RetryPolicy = RetryPolicy::doubling(ms(250), ms(2000));

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn filled<const BITS: u32>(seqs: &[u32]) -> ResendQueue<u32, BITS> {
        let mut queue = ResendQueue::new(64, POLICY);
        for &seq in seqs {
            queue.push(Seq::new(seq), seq, at(0)).unwrap();
        }
        queue
    }

    fn left<const BITS: u32>(queue: &ResendQueue<u32, BITS>) -> Vec<u32> {
        queue.iter().map(|(seq, _)| seq.get()).collect()
    }

    #[test]
    fn an_entry_is_sent_again_with_growing_waits_until_released() {
        let mut queue = filled::<32>(&[7]);
        let mut sent = Vec::new();
        for now in 0..8000 {
            assert!(queue.poll(at(now), 0).is_none_or(|(seq, &item)| seq.get() == 7 && item == 7));
            if queue.deadline().unwrap() > at(now) && sent.last() != queue.deadline().as_ref() {
                sent.push(queue.deadline().unwrap());
            }
        }
        let expected = [250, 750, 1750, 3750, 5750, 7750, 9750].map(at);
        assert_eq!(sent, expected);
        assert_eq!(queue.release(Seq::new(7)), Some(7));
        assert_eq!(queue.poll(at(9750), 0), None);
        assert_eq!(queue.deadline(), None);
    }

    #[test]
    fn an_entry_due_exactly_now_is_due() {
        let mut queue = filled::<16>(&[1]);
        assert!(queue.poll(at(0), 0).is_some());
        assert_eq!(queue.poll(Instant::from_micros(249_999), 0), None);
        assert!(queue.poll(at(250), 0).is_some());
    }

    #[test]
    fn the_longest_due_goes_first_and_equals_in_the_order_pushed() {
        let mut queue = ResendQueue::<u32, 16>::new(8, POLICY);
        queue.push(Seq::new(1), 1, at(30)).unwrap();
        queue.push(Seq::new(2), 2, at(10)).unwrap();
        queue.push(Seq::new(3), 3, at(10)).unwrap();
        let order: Vec<u32> =
            core::iter::from_fn(|| queue.poll(at(50), 0).map(|(_, &item)| item)).collect();
        assert_eq!(order, [2, 3, 1]);
    }

    #[test]
    fn a_full_queue_gives_the_item_back() {
        let mut queue = ResendQueue::<&str, 10>::new(1, POLICY);
        queue.push(Seq::new(0), "kept", at(0)).unwrap();
        assert_eq!(queue.push(Seq::new(1), "refused", at(0)), Err(Full("refused")));
        assert_eq!(queue.release(Seq::new(0)), Some("kept"));
        queue.push(Seq::new(1), "now", at(0)).unwrap();
        let mut none = ResendQueue::<(), 10>::new(0, POLICY);
        assert_eq!(none.push(Seq::new(0), (), at(0)), Err(Full(())));
    }

    #[test]
    fn a_cumulative_number_releases_across_the_wrap() {
        let mut queue = filled::<10>(&[1021, 1022, 1023, 0, 1]);
        assert_eq!(queue.release_up_to(Seq::new(1020)), 0);
        assert_eq!(queue.release_up_to(Seq::new(1023)), 3);
        assert_eq!(left(&queue), [0, 1]);
        assert_eq!(queue.release_up_to(Seq::new(1022)), 0);
        assert_eq!(queue.release_up_to(Seq::new(1)), 2);
        assert_eq!(queue.release_up_to(Seq::new(1)), 0);
    }

    #[test]
    fn half_the_circle_away_is_kept() {
        let mut queue = filled::<10>(&[512, 513]);
        assert_eq!(queue.release_up_to(Seq::new(0)), 1);
        assert_eq!(left(&queue), [512]);
    }

    #[test]
    fn bits_release_the_latest_and_32_before() {
        let seqs: Vec<u32> = (0..36).map(|i| (65536 - 3 + i) % 65536).collect();
        let mut queue = filled::<16>(&seqs);
        // Latest 30: bit 0 is 29, bit 30 is 65535, bit 31 is 65534.
        assert_eq!(queue.release_bits(Seq::new(30), 1 | 1 << 30 | 1 << 31), 4);
        let gone = [30, 29, 65535, 65534];
        let expected: Vec<u32> = seqs.iter().copied().filter(|s| !gone.contains(s)).collect();
        assert_eq!(left(&queue), expected);
        assert_eq!(queue.release_bits(Seq::new(30), u32::MAX), 29);
        assert_eq!(left(&queue), [65533, 31, 32]);
    }

    #[test]
    fn the_age_counts_from_the_first_sending() {
        let mut queue = ResendQueue::<(), 32>::new(4, POLICY);
        queue.push(Seq::new(0), (), at(100)).unwrap();
        assert_eq!(queue.oldest_age(at(150)), None);
        assert!(queue.poll(at(200), 0).is_some());
        assert!(queue.poll(at(450), 0).is_some());
        queue.push(Seq::new(1), (), at(500)).unwrap();
        assert!(queue.poll(at(500), 0).is_some());
        assert_eq!(queue.oldest_age(at(700)), Some(ms(500)));
        queue.release(Seq::new(0));
        assert_eq!(queue.oldest_age(at(700)), Some(ms(200)));
        assert_eq!(queue.oldest_age(at(400)), Some(Duration::ZERO));
        queue.clear();
        assert_eq!((queue.oldest_age(at(700)), queue.is_empty()), (None, true));
    }

    #[derive(Clone, Debug)]
    enum Op {
        Push,
        Release(u32),
        UpTo(u32),
        Bits(u32, u32),
        Poll(u64),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            4 => Just(Op::Push),
            1 => (0u32..40).prop_map(Op::Release),
            1 => (0u32..40).prop_map(Op::UpTo),
            1 => (0u32..40, any::<u32>()).prop_map(|(back, bits)| Op::Bits(back, bits)),
            4 => (0u64..200).prop_map(Op::Poll),
        ]
    }

    /// What the queue should hold, by the plain count behind each number: (next due, times sent).
    #[derive(Default)]
    struct Model {
        entries: BTreeMap<u64, (u64, u32)>,
        next: u64,
    }

    impl Model {
        fn poll(&mut self, now: u64) -> Option<u64> {
            let due = self.entries.iter().filter(|(_, entry)| entry.0 <= now);
            let (&count, _) = due.min_by_key(|(count, entry)| (entry.0, **count))?;
            let (next, sent) = self.entries.get_mut(&count)?;
            *next = now + (10u64 << (*sent).min(3));
            *sent += 1;
            Some(count)
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_map_of_plain_counts(
            start in prop_oneof![Just(1021u64), 0u64..1024],
            ops in prop::collection::vec(op(), 1..300),
        ) {
            const CAPACITY: usize = 20;
            let policy = RetryPolicy::doubling(ms(10), ms(80));
            let mut queue = ResendQueue::<u64, 10>::new(CAPACITY, policy);
            let mut model = Model { next: start, ..Model::default() };
            let mut now = 0;
            for op in ops {
                let seq = |count: u64| Seq::new((count % 1024) as u32);
                let back = |back: u32| (model.next + 1024).saturating_sub(u64::from(back));
                match op {
                    Op::Push => {
                        let pushed = queue.push(seq(model.next), model.next, at(now)).is_ok();
                        prop_assert_eq!(pushed, model.entries.len() < CAPACITY);
                        if pushed {
                            model.entries.insert(model.next, (now, 0));
                            model.next += 1;
                        }
                    }
                    Op::Release(b) => {
                        let count = back(b) - 1024 * u64::from(back(b) >= 1024);
                        let expected = model.entries.remove(&count).map(|_| count);
                        prop_assert_eq!(queue.release(seq(back(b))), expected);
                    }
                    Op::UpTo(b) => {
                        let before = model.entries.len();
                        let limit = back(b);
                        model.entries.retain(|count, _| count + 1024 > limit);
                        let expected = before - model.entries.len();
                        prop_assert_eq!(queue.release_up_to(seq(limit)), expected);
                    }
                    Op::Bits(b, bits) => {
                        let before = model.entries.len();
                        let latest = back(b);
                        model.entries.retain(|count, _| {
                            let named = (0..32).any(|i| bits >> i & 1 == 1 && count + 1024 + 1 + i == latest);
                            count + 1024 != latest && !named
                        });
                        let expected = before - model.entries.len();
                        prop_assert_eq!(queue.release_bits(seq(latest), bits), expected);
                    }
                    Op::Poll(step) => {
                        now += step;
                        loop {
                            let expected = model.poll(now);
                            prop_assert_eq!(queue.poll(at(now), 0).map(|(_, &count)| count), expected);
                            if expected.is_none() {
                                break;
                            }
                        }
                    }
                }
                let held: Vec<u64> = queue.iter().map(|(_, &count)| count).collect();
                prop_assert_eq!(held, model.entries.keys().copied().collect::<Vec<_>>());
                let deadline = model.entries.values().map(|entry| at(entry.0)).min();
                prop_assert_eq!(queue.deadline(), deadline);
            }
        }
    }

    #[test]
    fn renewed_entries_are_due_at_once_and_young_again() {
        let policy = RetryPolicy::doubling(Duration::from_millis(100), Duration::from_secs(2));
        let mut queue = ResendQueue::<_, 16>::new(4, policy);
        queue.push(Seq::new(1), 'a', Instant::ZERO).unwrap();
        assert!(queue.poll(Instant::ZERO, 0).is_some());
        assert!(queue.poll(Instant::from_millis(100), 0).is_some());
        let now = Instant::from_millis(200);
        assert!(queue.poll(now, 0).is_none(), "the wait has doubled");
        queue.renew(now);
        assert_eq!(queue.oldest_age(now), None);
        assert!(queue.poll(now, 0).is_some());
        assert_eq!(queue.deadline(), Some(Instant::from_millis(300)));
    }

    #[test]
    fn only_what_was_sent_once_tells_when_that_was() {
        let mut queue = ResendQueue::<_, 16>::new(4, POLICY);
        let one = Seq::new(1);
        queue.push(one, 'a', at(5)).unwrap();
        assert_eq!(queue.sent_once_at(one), None, "not sent yet");
        assert!(queue.poll(at(7), 0).is_some());
        assert_eq!(queue.sent_once_at(one), Some(at(7)));
        assert_eq!(queue.sent_once_at(Seq::new(2)), None);
        assert!(queue.poll(at(257), 0).is_some());
        assert_eq!(queue.sent_once_at(one), None, "sent twice");
        queue.push(Seq::new(2), 'b', at(300)).unwrap();
        assert!(queue.poll(at(300), 0).is_some());
        queue.renew(at(400));
        while queue.poll(at(400), 0).is_some() {}
        assert_eq!(queue.sent_once_at(Seq::new(2)), None, "it was sent before it was renewed");
    }

    #[test]
    fn the_oldest_alone_is_named_until_somebody_asks_for_all() {
        let policy = RetryPolicy::uniform(ms(100), ms(100));
        let mut queue = ResendQueue::<_, 10>::with_budget(4, 99, policy);
        for seq in [1023, 0, 1] {
            queue.push_sent(Seq::new(seq), seq, 1, at(0), 0).unwrap();
        }
        assert_eq!(queue.poll_oldest(at(99), 0), None);
        assert_eq!(queue.poll_oldest(at(150), 0).map(|(seq, _)| seq.get()), Some(1023));
        assert_eq!(queue.poll_oldest(at(150), 0), None, "the second is due, and not the oldest");
        assert_eq!(queue.oldest_deadline(), Some(at(250)));
        queue.hasten(at(160));
        let asked: Vec<u32> =
            core::iter::from_fn(|| queue.poll(at(160), 0).map(|(_, &item)| item)).collect();
        assert_eq!(asked, [1023, 0, 1]);
        assert_eq!(queue.oldest_deadline(), Some(at(260)));
        assert_eq!(queue.oldest_age(at(160)), Some(ms(160)), "as old as before it was asked for");
        assert_eq!(queue.oldest_since(), Some(at(0)));
    }

    /// What the budgeted queue does, with plain counts and a list of prices.
    #[derive(Clone, Debug)]
    enum Priced {
        Push(usize),
        UpTo(u64),
        Release(u64),
        Clear,
    }

    fn priced() -> impl Strategy<Value = Priced> {
        prop_oneof![
            8 => (0usize..40).prop_map(Priced::Push),
            2 => (0u64..12).prop_map(Priced::UpTo),
            1 => (0u64..12).prop_map(Priced::Release),
            1 => Just(Priced::Clear),
        ]
    }

    proptest! {
        #[test]
        fn the_budget_agrees_with_a_list_of_prices(
            start in 0u64..1024,
            ops in prop::collection::vec(priced(), 1..300),
        ) {
            const CAPACITY: usize = 9;
            const BUDGET: usize = 100;
            let mut queue = ResendQueue::<u64, 10>::with_budget(CAPACITY, BUDGET, POLICY);
            let mut model: Vec<(u64, usize)> = Vec::new();
            let mut next = start + 1024;
            for op in ops {
                let seq = |count: u64| Seq::new((count % 1024) as u32);
                match op {
                    Priced::Push(cost) => {
                        let used: usize = model.iter().map(|(_, cost)| cost).sum();
                        let fits = model.len() < CAPACITY && used + cost <= BUDGET;
                        prop_assert_eq!(queue.has_room(cost), fits);
                        let pushed = queue.push_sent(seq(next), next, cost, at(0), 0);
                        prop_assert_eq!(pushed, if fits { Ok(()) } else { Err(Full(next)) });
                        if fits {
                            model.push((next, cost));
                            next += 1;
                        }
                    }
                    Priced::UpTo(back) => {
                        let before = model.len();
                        model.retain(|(count, _)| *count > next - back);
                        let released = queue.release_up_to(seq(next - back));
                        prop_assert_eq!(released, before - model.len());
                    }
                    Priced::Release(back) => {
                        let place = model.iter().position(|(count, _)| *count == next - back);
                        let expected = place.map(|place| model.remove(place).0);
                        prop_assert_eq!(queue.release(seq(next - back)), expected);
                    }
                    Priced::Clear => {
                        queue.clear();
                        model.clear();
                    }
                }
                prop_assert_eq!(queue.used(), model.iter().map(|(_, cost)| cost).sum::<usize>());
                let held: Vec<u64> = queue.iter().map(|(_, &count)| count).collect();
                prop_assert_eq!(held, model.iter().map(|(count, _)| *count).collect::<Vec<_>>());
            }
        }
    }
}
