//! Events that arrive once and in order, each acknowledged by its own number.
//!
//! The [`EventSender`] numbers what it is given, keeps a few in flight and repeats them; the
//! [`EventReceiver`] puts them in order, drops repetitions and says what to acknowledge. The
//! drawing on the [first page](crate#the-window-of-events) shows both windows; this is the way of
//! one event:
//!
//! ```text
//!   send --> waiting --> in flight --poll--> wire --> receive --> kept --pop--> delivered
//!              |             |      ^                    |          (in order, once)
//!              |             |      | 250 ms, 500, ...   |
//!    full: no  |             '------'                    v
//!    number    v             acknowledge <-- wire <-- Receipt::New, Duplicate
//!            dropped                                      TooFar: silence, it comes again
//! ```
//!
//! ```
//! use caves_link::events::{EventReceiver, EventSender, RECEIVE_WINDOW, Receipt};
//! use caves_link::retry::RetryPolicy;
//! use caves_link::seq::Seq;
//! use caves_link::time::Instant;
//! use core::time::Duration;
//!
//! let policy = RetryPolicy::doubling(Duration::from_millis(250), Duration::from_secs(2));
//! let mut sender = EventSender::new(policy, 8, 256);
//! let mut receiver = EventReceiver::new(RECEIVE_WINDOW, Seq::new(0));
//! sender.send("hello").unwrap();
//! sender.send("world").unwrap();
//!
//! let now = Instant::ZERO;
//! assert_eq!(sender.poll(now, 0), Some((Seq::new(0), &"hello"))); // and the network loses it
//! let (seq, &event) = sender.poll(now, 0).unwrap();
//! assert_eq!(receiver.receive(seq, event), Receipt::New);
//! assert!(sender.acknowledge(seq));
//! assert_eq!(receiver.pop(), None); // the first is missing
//!
//! let later = sender.deadline(now).unwrap();
//! let (seq, &event) = sender.poll(later, 0).unwrap();
//! assert!(receiver.receive(seq, event).is_acknowledged());
//! assert_eq!(receiver.pop(), Some((Seq::new(0), "hello")));
//! assert_eq!(receiver.pop(), Some((Seq::new(1), "world")));
//! ```

use crate::resend::{Full, ResendQueue};
use crate::retry::RetryPolicy;
use crate::seq::{Age, Seq};
use crate::time::Instant;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

/// The window that every receiver has at least: a sender never sends a number this far or farther
/// ahead of the lowest that is not acknowledged.
pub const RECEIVE_WINDOW: usize = 256;

/// The side that numbers events and repeats them until each is acknowledged.
///
/// Numbers go up by one from the first, in the order of [`send`](Self::send), without gaps: what
/// is dropped never had one. Memory is bounded by `in_flight + waiting` items.
///
/// What was acknowledged out of turn is kept until all before it is: a peer that was started again
/// and goes on with the stream has lost it, and needs it once more ([`rewind`](Self::rewind)).
#[derive(Clone, Debug)]
pub struct EventSender<T> {
    flight: ResendQueue<T, 32>,
    /// Acknowledged, but not all before it; ascending.
    passed: VecDeque<(Seq<32>, T)>,
    waiting: VecDeque<T>,
    limit: Limit,
    /// The number of the next event to be queued.
    next: Seq<32>,
    /// Numbers below were on the wire before they were last taken back for another receiver.
    rewound: Option<Seq<32>>,
    dropped: u64,
}

/// When a sender takes no more.
#[derive(Clone, Copy, Debug)]
enum Limit {
    /// So many wait, what was acknowledged out of turn included.
    Waiting(usize),
    /// So many are not acknowledged, whether they were sent or wait.
    Pending(usize),
}

impl<T> EventSender<T> {
    /// Numbers from 0; at most `in_flight` sent and unacknowledged (and never more than
    /// [`RECEIVE_WINDOW`]), at most `waiting` behind them.
    ///
    /// An event passes through the waiting queue, so with `waiting` 0 nothing can be sent.
    pub const fn new(policy: RetryPolicy, in_flight: usize, waiting: usize) -> Self {
        Self::starting_at(Seq::new(0), policy, in_flight, waiting)
    }

    /// As [`new`](Self::new), with `first` as the first number.
    pub const fn starting_at(
        first: Seq<32>,
        policy: RetryPolicy,
        in_flight: usize,
        waiting: usize,
    ) -> Self {
        Self::limited(first, policy, in_flight, Limit::Waiting(waiting))
    }

    const fn limited(first: Seq<32>, policy: RetryPolicy, in_flight: usize, limit: Limit) -> Self {
        Self {
            flight: ResendQueue::new(in_flight, policy),
            passed: VecDeque::new(),
            waiting: VecDeque::new(),
            limit,
            next: first,
            rewound: None,
            dropped: 0,
        }
    }

    /// At most `pending` unacknowledged events in all, each sent as soon as the peer's window has
    /// room for it: for a protocol that knows no queue behind those under way.
    ///
    /// Memory is bounded by `pending` items, and fewer than [`RECEIVE_WINDOW`] that were acknowledged
    /// out of turn.
    pub const fn with_pending(first: Seq<32>, policy: RetryPolicy, pending: usize) -> Self {
        Self::limited(first, policy, pending, Limit::Pending(pending))
    }

    /// Queues an event and gives it its number.
    ///
    /// # Errors
    ///
    /// [`Full`] with the event if the waiting queue is full, what was acknowledged out of turn
    /// included, or if as many are pending as may be. It takes no number then, so the
    /// receiver sees no gap, and is counted by [`dropped`](Self::dropped).
    pub fn send(&mut self, item: T) -> Result<Seq<32>, Full<T>> {
        if self.is_full() {
            self.dropped = self.dropped.saturating_add(1);
            return Err(Full(item));
        }
        let seq = self.next;
        self.next = seq.next();
        self.waiting.push_back(item);
        Ok(seq)
    }

    /// Whether [`send`](Self::send) would refuse.
    pub fn is_full(&self) -> bool {
        match self.limit {
            Limit::Waiting(limit) => self.waiting.len() + self.passed.len() >= limit,
            Limit::Pending(limit) => self.waiting.len() + self.flight.len() >= limit,
        }
    }

    /// The next event to be put on the wire at `now`, for the first time or again.
    ///
    /// Called until `None`, it names each due event once. `random` picks the wait until the next
    /// repetition where the policy leaves a choice.
    pub fn poll(&mut self, now: Instant, random: u32) -> Option<(Seq<32>, &T)> {
        // Launched one at a time, so that whatever is in flight was really sent: an
        // acknowledgement of an unsent number finds nothing to release.
        if self.flight.deadline().is_none_or(|at| at > now) {
            self.launch(now);
        }
        self.flight.poll(now, random)
    }

    /// The peer has `seq`; `false` if that is not the number of an event in flight, which changes
    /// nothing.
    pub fn acknowledge(&mut self, seq: Seq<32>) -> bool {
        let Some(item) = self.flight.release(seq) else { return false };
        let lowest = self.lowest_unacknowledged();
        let place = self.passed.partition_point(|(of, _)| seq.is_newer_than(*of));
        self.passed.insert(place, (seq, item));
        while self.passed.pop_front_if(|(of, _)| lowest.is_newer_than(*of)).is_some() {}
        true
    }

    /// When the event with this number was sent, if it is under way and that was once: together with
    /// the moment of its acknowledgement this is a round trip (Karn's rule).
    pub fn sent_once_at(&self, seq: Seq<32>) -> Option<Instant> {
        let ambiguous = self.rewound.is_some_and(|below| below.is_newer_than(seq));
        self.flight.sent_once_at(seq).filter(|_| !ambiguous)
    }

    /// The number that the peer needs next: the lowest in flight, else the lowest waiting, else
    /// the one that the next event will have.
    pub fn lowest_unacknowledged(&self) -> Seq<32> {
        // Entries are launched in order, so the first is the lowest.
        self.flight.iter().next().map_or(self.first_waiting(), |(seq, _)| seq)
    }

    /// The time since the first sending of the oldest event in flight, `None` if there is none.
    pub fn oldest_age(&self, now: Instant) -> Option<Duration> {
        self.flight.oldest_age(now)
    }

    /// When [`poll`](Self::poll) has something to say: `now` if an event waits and may be sent,
    /// else the next repetition.
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        if self.may_launch() { Some(now) } else { self.flight.deadline() }
    }

    /// What is under way is due now, and its age counts anew: the receiver is heard again after a
    /// silence.
    pub fn renew(&mut self, now: Instant) {
        self.flight.renew(now);
    }

    /// Everything from the lowest unacknowledged number on is sent once more, also what was
    /// acknowledged out of turn: the receiver may be a new process that goes on with the stream of
    /// one before it, and one that has them already acknowledges them again.
    pub fn rewind(&mut self) {
        let lowest = self.lowest_unacknowledged();
        self.rewound = Some(match self.rewound {
            Some(below) if below.is_newer_than(self.first_waiting()) => below,
            _ => self.first_waiting(),
        });
        let mut again: Vec<_> = self.flight.drain().chain(self.passed.drain(..)).collect();
        again.sort_by_key(|(seq, _)| seq.distance_from(lowest));
        // None is missing between them, so the numbers of the waiting ones count down to the lowest.
        for (_, item) in again.into_iter().rev() {
            self.waiting.push_front(item);
        }
    }

    /// Events that were dropped because the waiting queue was full.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Events sent and not acknowledged.
    pub fn in_flight(&self) -> usize {
        self.flight.len()
    }

    /// Events not sent yet, or to be sent once more.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether everything was acknowledged.
    pub fn is_empty(&self) -> bool {
        self.flight.is_empty() && self.waiting.is_empty()
    }

    fn first_waiting(&self) -> Seq<32> {
        // Numbers have 32 bits, so the cut of the length is the arithmetic of the circle.
        Seq::new(self.next.get().wrapping_sub(self.waiting.len() as u32))
    }

    fn may_launch(&self) -> bool {
        let ahead = self.first_waiting().distance_from(self.lowest_unacknowledged());
        !self.waiting.is_empty() && !self.flight.is_full() && (ahead as usize) < RECEIVE_WINDOW
    }

    fn launch(&mut self, now: Instant) {
        if !self.may_launch() {
            return;
        }
        let seq = self.first_waiting();
        if let Some(item) = self.waiting.pop_front()
            && let Err(Full(item)) = self.flight.push(seq, item, now)
        {
            // Room was seen above; should that ever change, nothing is lost.
            self.waiting.push_front(item);
        }
    }
}

/// What became of a received event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "it says whether to acknowledge"]
pub enum Receipt {
    /// Kept until its turn comes; acknowledge it.
    New,
    /// Kept or delivered before, this content is dropped; acknowledge it again, since the sender
    /// repeats it only because an acknowledgement was lost.
    Duplicate,
    /// Beyond the window: not kept, and not to be acknowledged, so that it comes again later.
    TooFar,
}

impl Receipt {
    /// Whether an acknowledgement is to be sent.
    pub const fn is_acknowledged(self) -> bool {
        matches!(self, Self::New | Self::Duplicate)
    }
}

/// The side that puts events in order and drops repetitions.
///
/// It keeps at most `window` events; the window moves when [`pop`](Self::pop) delivers.
#[derive(Clone, Debug)]
pub struct EventReceiver<T> {
    window: usize,
    next: Seq<32>,
    /// Slot `i` is for the number `next + i`; no longer than the last one kept needs.
    slots: VecDeque<Option<T>>,
}

impl<T> EventReceiver<T> {
    /// Expects `next` first and keeps at most `window` events, from 1 to 2^31 - 1; other values
    /// are taken as the nearest of these.
    pub fn new(window: usize, next: Seq<32>) -> Self {
        // Above, a number could be both ahead within the window and already delivered.
        let window = window.clamp(1, i32::MAX as usize);
        Self { window, next, slots: VecDeque::new() }
    }

    /// Takes an event off the wire. Of two with the same number the first content is kept.
    pub fn receive(&mut self, seq: Seq<32>, item: T) -> Receipt {
        if seq.age(self.next) == Age::Older {
            return Receipt::Duplicate;
        }
        let ahead = seq.distance_from(self.next) as usize;
        if ahead >= self.window {
            return Receipt::TooFar;
        }
        if self.slots.len() <= ahead {
            self.slots.resize_with(ahead + 1, || None);
        }
        match &mut self.slots[ahead] {
            Some(_) => Receipt::Duplicate,
            empty => {
                *empty = Some(item);
                Receipt::New
            }
        }
    }

    /// The next event in order, `None` while it is missing.
    pub fn pop(&mut self) -> Option<(Seq<32>, T)> {
        let item = self.slots.front_mut()?.take()?;
        self.slots.pop_front();
        let seq = self.next;
        self.next = seq.next();
        Some((seq, item))
    }

    /// The number of the event that [`pop`](Self::pop) waits for.
    pub const fn next_expected(&self) -> Seq<32> {
        self.next
    }

    /// Events that are kept until those before them come.
    pub fn kept(&self) -> usize {
        self.slots.iter().flatten().count()
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
    /// Three before the numbers start over.
    const NEAR_END: Seq<32> = Seq::new(u32::MAX - 2);

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// Everything due at `now`, by number.
    fn due<T>(sender: &mut EventSender<T>, now: Instant) -> Vec<u32> {
        core::iter::from_fn(|| sender.poll(now, 0).map(|(seq, _)| seq.get())).collect()
    }

    #[test]
    fn eight_fly_and_the_rest_wait() {
        let mut sender = EventSender::new(POLICY, 8, 256);
        for i in 0..20 {
            assert_eq!(sender.send(i), Ok(Seq::new(i)));
        }
        assert_eq!(sender.deadline(at(5)), Some(at(5)));
        assert_eq!(due(&mut sender, at(5)), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!((sender.in_flight(), sender.waiting()), (8, 12));
        assert_eq!(sender.deadline(at(5)), Some(at(255)));
        assert!(sender.acknowledge(Seq::new(3)));
        assert_eq!(sender.deadline(at(6)), Some(at(6)));
        assert_eq!(due(&mut sender, at(6)), [8]);
        assert_eq!(due(&mut sender, at(255)), [0, 1, 2, 4, 5, 6, 7]);
    }

    #[test]
    fn an_event_that_is_sent_anew_for_another_receiver_tells_no_round_trip() {
        let mut sender = EventSender::starting_at(NEAR_END, POLICY, 8, 8);
        let number = |n: u32| NEAR_END.advance(n);
        for item in 0..4 {
            sender.send(item).unwrap();
        }
        assert_eq!(sender.sent_once_at(number(0)), None, "it waits");
        due(&mut sender, at(10));
        assert_eq!(sender.sent_once_at(number(3)), Some(at(10)));
        sender.rewind();
        sender.send(4).unwrap();
        due(&mut sender, at(20));
        for n in 0..4 {
            assert_eq!(sender.sent_once_at(number(n)), None, "{n} was sent at 10, too");
        }
        assert_eq!(sender.sent_once_at(number(4)), Some(at(20)));
    }

    #[test]
    fn a_lost_event_is_repeated_from_250_ms_doubling_to_2_s() {
        let mut sender = EventSender::new(POLICY, 8, 8);
        sender.send(()).unwrap();
        let mut times = Vec::new();
        for now in 0..10_000 {
            times.extend(due(&mut sender, at(now)).iter().map(|_| now));
        }
        assert_eq!(times, [0, 250, 750, 1750, 3750, 5750, 7750, 9750]);
        assert_eq!(sender.oldest_age(at(10_000)), Some(ms(10_000)));
    }

    #[test]
    fn a_full_queue_drops_the_new_event_without_a_number() {
        let mut sender = EventSender::new(POLICY, 1, 2);
        assert_eq!(sender.send('a'), Ok(Seq::new(0)));
        assert_eq!(sender.send('b'), Ok(Seq::new(1)));
        assert_eq!(sender.send('c'), Err(Full('c')));
        assert_eq!(sender.send('d'), Err(Full('d')));
        assert_eq!(sender.dropped(), 2);
        assert_eq!(due(&mut sender, at(0)), [0]);
        assert_eq!(sender.send('e'), Ok(Seq::new(2)));
        assert!(sender.acknowledge(Seq::new(0)));
        assert_eq!(sender.poll(at(0), 0), Some((Seq::new(1), &'b')));
        assert!(sender.acknowledge(Seq::new(1)));
        assert_eq!(sender.poll(at(0), 0), Some((Seq::new(2), &'e')));
    }

    #[test]
    fn the_257th_pending_event_is_refused_and_nothing_is_lost() {
        let policy = RetryPolicy::uniform(ms(100), ms(100));
        let mut sender = EventSender::with_pending(NEAR_END, policy, 256);
        for i in 0..256 {
            assert_eq!(sender.send(i), Ok(NEAR_END.advance(i)));
        }
        assert!(sender.is_full());
        assert_eq!(sender.send(256), Err(Full(256)));
        let all: Vec<u32> = (0..256).map(|i| NEAR_END.advance(i).get()).collect();
        assert_eq!(due(&mut sender, at(0)), all);
        assert_eq!(sender.send(256), Err(Full(256)));
        assert_eq!(due(&mut sender, at(99)), []);
        assert_eq!(due(&mut sender, at(100)), all);
        // Any acknowledgement makes room, and what is out of the peer's window waits.
        assert!(sender.acknowledge(NEAR_END.advance(9)));
        assert_eq!(sender.send(256), Ok(NEAR_END.advance(256)));
        assert_eq!(sender.send(257), Err(Full(257)));
        assert_eq!((sender.in_flight(), sender.waiting()), (255, 1));
        assert_eq!(due(&mut sender, at(101)), []);
        assert!(sender.acknowledge(NEAR_END));
        assert_eq!(due(&mut sender, at(101)), [NEAR_END.advance(256).get()]);
    }

    #[test]
    fn unknown_acknowledgements_are_ignored() {
        let mut sender = EventSender::new(POLICY, 8, 8);
        sender.send('a').unwrap();
        sender.send('b').unwrap();
        // Not sent yet, thus unknown.
        assert!(!sender.acknowledge(Seq::new(0)));
        assert_eq!(sender.poll(at(0), 0), Some((Seq::new(0), &'a')));
        assert!(!sender.acknowledge(Seq::new(1)));
        assert!(!sender.acknowledge(Seq::new(u32::MAX)));
        assert!(sender.acknowledge(Seq::new(0)));
        assert!(!sender.acknowledge(Seq::new(0)));
        assert_eq!(sender.poll(at(0), 0), Some((Seq::new(1), &'b')));
        assert!(!sender.is_empty());
        assert!(sender.acknowledge(Seq::new(1)));
        assert!(sender.is_empty());
    }

    #[test]
    fn a_repetition_due_exactly_now_goes_before_a_new_event() {
        let mut sender = EventSender::new(POLICY, 8, 8);
        sender.send('a').unwrap();
        assert_eq!(due(&mut sender, at(0)), [0]);
        sender.send('b').unwrap();
        assert_eq!(sender.poll(at(250), 0), Some((Seq::new(0), &'a')));
        assert!(!sender.acknowledge(Seq::new(1)), "it was not sent yet");
        assert_eq!(sender.poll(at(250), 0), Some((Seq::new(1), &'b')));
    }

    #[test]
    fn the_lowest_unacknowledged_is_what_a_resumed_session_needs_next() {
        let mut sender = EventSender::starting_at(NEAR_END, POLICY, 2, 8);
        assert_eq!(sender.lowest_unacknowledged(), NEAR_END);
        for _ in 0..5 {
            sender.send(()).unwrap();
        }
        assert_eq!(sender.lowest_unacknowledged(), NEAR_END);
        assert_eq!(due(&mut sender, at(0)), [u32::MAX - 2, u32::MAX - 1]);
        assert!(sender.acknowledge(Seq::new(u32::MAX - 1)));
        assert_eq!(sender.lowest_unacknowledged(), NEAR_END);
        assert!(sender.acknowledge(NEAR_END));
        assert_eq!(sender.lowest_unacknowledged().get(), u32::MAX);
        assert_eq!(due(&mut sender, at(0)), [u32::MAX, 0]);
        assert!(sender.acknowledge(Seq::new(u32::MAX)) && sender.acknowledge(Seq::new(0)));
        assert_eq!(due(&mut sender, at(0)), [1]);
        assert!(sender.acknowledge(Seq::new(1)));
        assert_eq!(sender.lowest_unacknowledged().get(), 2);
    }

    #[test]
    fn a_receiver_that_was_started_again_is_sent_what_was_acknowledged_out_of_turn() {
        let mut sender = EventSender::new(POLICY, 8, 256);
        (0..12u32).for_each(|item| _ = sender.send(item).unwrap());
        assert_eq!(due(&mut sender, at(0)), [0, 1, 2, 3, 4, 5, 6, 7]);
        // 0 and 2 to 4 have come; of 1 nothing is known.
        for seq in [4, 0, 2, 3] {
            assert!(sender.acknowledge(Seq::new(seq)));
        }
        assert_eq!(due(&mut sender, at(1)), [8, 9, 10, 11]);
        assert!(sender.acknowledge(Seq::new(9)));
        assert_eq!(sender.lowest_unacknowledged(), Seq::new(1));
        sender.rewind();
        // The new process knows nothing and begins with 1.
        let mut receiver = EventReceiver::new(RECEIVE_WINDOW, sender.lowest_unacknowledged());
        let mut got = Vec::new();
        while let Some((seq, &item)) = sender.poll(at(2), 0) {
            assert!(receiver.receive(seq, item).is_acknowledged());
            assert!(sender.acknowledge(seq));
            got.extend(core::iter::from_fn(|| receiver.pop()).map(|(_, item)| item));
        }
        assert_eq!(got, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        assert!(sender.is_empty());
    }

    #[test]
    fn nothing_is_sent_256_ahead_of_the_lowest_unacknowledged() {
        let mut sender = EventSender::starting_at(NEAR_END, POLICY, 400, 400);
        for _ in 0..400 {
            sender.send(()).unwrap();
        }
        assert_eq!(due(&mut sender, at(0)).len(), 256);
        // All but the lowest are acknowledged: there is room, but not in the window.
        for i in 1..256 {
            assert!(sender.acknowledge(NEAR_END.advance(i)));
        }
        assert_eq!(due(&mut sender, at(1)), []);
        assert_eq!(sender.deadline(at(1)), Some(at(250)));
        assert!(sender.acknowledge(NEAR_END));
        assert_eq!(sender.deadline(at(1)), Some(at(1)));
        assert_eq!(due(&mut sender, at(1)).len(), 400 - 256);
    }

    #[test]
    fn events_are_delivered_in_order_and_once() {
        let mut receiver = EventReceiver::new(256, NEAR_END);
        let seq = |i| NEAR_END.advance(i);
        assert_eq!(receiver.receive(seq(1), 'b'), Receipt::New);
        assert_eq!(receiver.receive(seq(4), 'e'), Receipt::New);
        assert_eq!(receiver.pop(), None);
        assert_eq!(receiver.receive(seq(0), 'a'), Receipt::New);
        assert_eq!(receiver.pop(), Some((seq(0), 'a')));
        assert_eq!(receiver.pop(), Some((seq(1), 'b')));
        assert_eq!(receiver.pop(), None);
        assert_eq!(receiver.next_expected(), seq(2));
        assert_eq!(receiver.receive(seq(2), 'c'), Receipt::New);
        assert_eq!(receiver.receive(seq(3), 'd'), Receipt::New);
        let rest: Vec<char> = core::iter::from_fn(|| receiver.pop().map(|(_, c)| c)).collect();
        assert_eq!(rest, ['c', 'd', 'e']);
        assert_eq!(receiver.next_expected().get(), 2);
    }

    #[test]
    fn the_first_content_of_a_number_is_kept() {
        let mut receiver = EventReceiver::new(256, Seq::new(0));
        assert_eq!(receiver.receive(Seq::new(0), "first"), Receipt::New);
        assert_eq!(receiver.receive(Seq::new(0), "other"), Receipt::Duplicate);
        assert_eq!(receiver.pop(), Some((Seq::new(0), "first")));
        assert_eq!(receiver.receive(Seq::new(0), "other"), Receipt::Duplicate);
        assert_eq!(receiver.pop(), None);
    }

    #[test]
    fn what_was_delivered_is_acknowledged_again() {
        let mut receiver = EventReceiver::new(4, NEAR_END);
        for i in 0..6 {
            assert!(receiver.receive(NEAR_END.advance(i), i).is_acknowledged());
            assert_eq!(receiver.pop(), Some((NEAR_END.advance(i), i)));
        }
        for i in 0..6 {
            assert!(receiver.receive(NEAR_END.advance(i), i).is_acknowledged());
        }
        assert_eq!(receiver.pop(), None);
    }

    #[test]
    fn a_number_256_ahead_is_neither_kept_nor_acknowledged() {
        let mut receiver = EventReceiver::new(RECEIVE_WINDOW, NEAR_END);
        assert_eq!(receiver.receive(NEAR_END.advance(256), ()), Receipt::TooFar);
        assert!(!Receipt::TooFar.is_acknowledged());
        assert_eq!(receiver.receive(NEAR_END.advance(1 << 30), ()), Receipt::TooFar);
        assert_eq!(receiver.slots.len(), 0);
        assert_eq!(receiver.receive(NEAR_END.advance(255), ()), Receipt::New);
        // The window moves with delivery alone.
        assert_eq!(receiver.receive(NEAR_END, ()), Receipt::New);
        assert_eq!(receiver.receive(NEAR_END.advance(256), ()), Receipt::TooFar);
        assert!(receiver.pop().is_some());
        assert_eq!(receiver.receive(NEAR_END.advance(256), ()), Receipt::New);
    }

    proptest! {
        /// Against a list of all events ever sent, each with what became of it.
        #[test]
        fn the_sender_agrees_with_a_list(
            in_flight in 1usize..6, waiting in 1usize..8, pending: bool,
            ops in prop::collection::vec((0u32..5, 0u64..300, 0u64..12), 1..150),
        ) {
            let mut sender = match pending {
                true => EventSender::with_pending(NEAR_END, POLICY, in_flight),
                false => EventSender::starting_at(NEAR_END, POLICY, in_flight, waiting),
            };
            // When it is due and how often it was sent, `None` once acknowledged; unsent: no due.
            let mut events: Vec<Option<(Option<u64>, u32)>> = Vec::new();
            let (mut now, mut dropped) = (0, 0);
            for (op, pause, which) in ops {
                now += pause;
                let is_sent = |of: &Option<(Option<u64>, u32)>| matches!(of, Some((Some(_), _)));
                let count = |events: &[_], sent: bool| {
                    events.iter().filter(|of| matches!(of, Some((due, _)) if Option::is_some(due) == sent)).count()
                };
                let lowest = events.iter().position(Option::is_some).unwrap_or(events.len());
                match op {
                    0 => {
                        let number = NEAR_END.advance(events.len() as u32);
                        // What was acknowledged out of turn takes room, too.
                        let passed = events[lowest..].iter().filter(|of| of.is_none()).count();
                        let room = match pending {
                            true => events.iter().flatten().count() < in_flight,
                            false => count(&events, false) + passed < waiting,
                        };
                        if room {
                            prop_assert_eq!(sender.send(events.len()), Ok(number));
                            events.push(Some((None, 0)));
                        } else {
                            prop_assert_eq!(sender.send(0), Err(Full(0)));
                            dropped += 1;
                        }
                    }
                    1 => {
                        // Some of these were never sent, or are acknowledged already.
                        let place = which as usize;
                        let known = events.get(place).is_some_and(is_sent);
                        prop_assert_eq!(sender.acknowledge(NEAR_END.advance(which as u32)), known);
                        if known { events[place] = None }
                    }
                    2 => {
                        sender.rewind();
                        // Unsent, all of them: also those that were acknowledged out of turn.
                        events[lowest..].fill(Some((None, 0)));
                    }
                    _ => while let Some((seq, &item)) = sender.poll(at(now), 0) {
                        prop_assert_eq!(seq, NEAR_END.advance(item as u32));
                        // The longest due repetition, or the first unsent where there is room.
                        let due = events.iter().enumerate().filter_map(|(i, of)| Some(((*of)?.0?, i)));
                        let repeated = due.filter(|(due, _)| *due <= now).min().map(|(_, i)| i);
                        let fresh = events.iter().position(|of| matches!(of, Some((None, _))));
                        let fresh = fresh.filter(|_| count(&events, true) < in_flight);
                        prop_assert_eq!(Some(item), repeated.or(fresh));
                        let sent = events[item].unwrap().1;
                        events[item] = Some((Some(now + (250 << sent.min(3))), sent + 1));
                    }
                }
                prop_assert_eq!(sender.in_flight(), count(&events, true));
                prop_assert_eq!(sender.waiting(), count(&events, false));
                prop_assert_eq!(sender.dropped(), dropped);
                let lowest = events.iter().position(Option::is_some).unwrap_or(events.len());
                prop_assert_eq!(sender.lowest_unacknowledged(), NEAR_END.advance(lowest as u32));
                if op > 2 {
                    // Nothing more to say: no repetition is due, and no fresh one finds room.
                    let room = count(&events, true) < in_flight && count(&events, false) > 0;
                    prop_assert!(!room && events.iter().flatten().all(|of| of.0.is_none_or(|due| due > now)));
                }
            }
        }

        #[test]
        fn the_receiver_agrees_with_a_map(
            window in 1usize..12,
            ops in prop::collection::vec((-8i64..16, any::<u8>(), any::<bool>()), 1..200),
        ) {
            let start = u64::from(u32::MAX) - 2;
            let seq = |count: u64| Seq::new(count as u32);
            let mut receiver = EventReceiver::new(window, seq(start));
            let (mut kept, mut next) = (BTreeMap::<u64, u8>::new(), start);
            for (offset, content, pops) in ops {
                let count = next.checked_add_signed(offset).unwrap();
                let expected = if count < next || kept.contains_key(&count) {
                    Receipt::Duplicate
                } else if count >= next + window as u64 {
                    Receipt::TooFar
                } else {
                    kept.insert(count, content);
                    Receipt::New
                };
                prop_assert_eq!(receiver.receive(seq(count), content), expected);
                if pops {
                    let popped = kept.remove(&next).map(|content| (seq(next), content));
                    prop_assert_eq!(receiver.pop(), popped);
                    next += u64::from(popped.is_some());
                }
                prop_assert_eq!(receiver.next_expected(), seq(next));
                prop_assert!(receiver.slots.len() <= window);
            }
        }

        #[test]
        fn over_a_bad_network_everything_arrives_once_and_in_order(
            in_flight in 1usize..12, waiting in 1usize..30,
            chances in prop::collection::vec(any::<[u8; 4]>(), 40..200),
        ) {
            let mut sender = EventSender::starting_at(NEAR_END, POLICY, in_flight, waiting);
            let mut receiver = EventReceiver::new(RECEIVE_WINDOW, NEAR_END);
            let (mut accepted, mut delivered) = (Vec::new(), Vec::new());
            let mut network = Vec::new();
            let mut dropped = 0;
            for (step, chance) in chances.iter().enumerate() {
                if let Ok(seq) = sender.send(step) { accepted.push((seq, step)) } else { dropped += 1 }
                exchange(&mut sender, &mut receiver, &mut network, at(step as u64 * 100), *chance);
                delivered.extend(core::iter::from_fn(|| receiver.pop()));
                prop_assert!(sender.in_flight() <= in_flight && sender.waiting() <= waiting);
            }
            // Then the network is healed, and time jumps from deadline to deadline.
            let mut now = at(1_000_000);
            while let Some(deadline) = sender.deadline(now) {
                now = deadline.max(now);
                exchange(&mut sender, &mut receiver, &mut network, now, [255; 4]);
                delivered.extend(core::iter::from_fn(|| receiver.pop()));
            }
            prop_assert_eq!(&delivered, &accepted);
            prop_assert_eq!(sender.dropped(), dropped);
            prop_assert!(sender.is_empty());
            for (i, (seq, _)) in accepted.iter().enumerate() {
                prop_assert_eq!(*seq, NEAR_END.advance(i as u32));
            }
        }
    }

    /// Sends what is due over a network that loses, keeps back and repeats as `chance` says.
    fn exchange(
        sender: &mut EventSender<usize>,
        receiver: &mut EventReceiver<usize>,
        network: &mut Vec<(Seq<32>, usize)>,
        now: Instant,
        chance: [u8; 4],
    ) {
        let [loss, hold, repeat, deaf] = chance;
        let mut turn = 0u8;
        while let Some((seq, &item)) = sender.poll(now, 0) {
            turn = turn.wrapping_mul(29).wrapping_add(71);
            if loss ^ turn > 80 || loss == 255 {
                network.push((seq, item));
            }
            if repeat < 60 {
                network.push((seq, item));
            }
        }
        if hold < 60 {
            return;
        }
        network.reverse();
        for (seq, item) in network.drain(..) {
            let receipt = receiver.receive(seq, item);
            assert_ne!(receipt, Receipt::TooFar, "the sender left the window");
            if deaf > 60 && receipt.is_acknowledged() {
                sender.acknowledge(seq);
            }
        }
    }
}
