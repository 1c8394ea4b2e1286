//! Events with numbers of 64 bits, which never start over.
//!
//! The windows are those of [`events`](crate::events): what is under way lies within 256 numbers, so
//! its lowest 32 bits tell one from another, and all above them follows from where the window
//! stands. What lies outside is told by the whole number, before any of it is cut off.
//!
//! ```text
//!   64 bits   0 ............... base - 1 | base ........... base + 255 | base + 256 ... 2^64 - 1
//!   receiver  Duplicate                  | its low 32 bits, to the     | TooFar
//!                                        | window of 32-bit numbers    |
//!   sender    unknown: changes nothing   | as above                    | unknown
//!                                         ^
//!                                         lowest unacknowledged, or next expected
//! ```
//!
//! ```
//! use caves_link::events::Receipt;
//! use caves_link::retry::RetryPolicy;
//! use caves_link::time::Instant;
//! use caves_link::wide::{WideReceiver, WideSender};
//! use core::time::Duration;
//!
//! let wait = Duration::from_millis(100);
//! let mut sender = WideSender::new(0, RetryPolicy::uniform(wait, wait), 256);
//! let mut receiver = WideReceiver::new(256, 0);
//! assert_eq!(sender.send("first"), Ok(0));
//! let (number, &event) = sender.poll(Instant::ZERO).unwrap();
//! assert_eq!(receiver.receive(number, event), Receipt::New);
//! assert!(!sender.acknowledge(1 << 32), "not the same number, though its low bits are");
//! assert!(sender.acknowledge(number));
//! assert_eq!(receiver.pop(), Some((0, "first")));
//! ```

use crate::events::{EventReceiver, EventSender, RECEIVE_WINDOW, Receipt};
use crate::resend::Full;
use crate::retry::RetryPolicy;
use crate::seq::Seq;
use crate::time::Instant;

/// The lowest bits of a number.
const fn low(number: u64) -> Seq<32> {
    Seq::new(number as u32)
}

/// The side that numbers events and repeats each until its own acknowledgement comes.
///
/// At most so many are pending: one more is refused, and nothing is lost.
#[derive(Clone, Debug)]
pub struct WideSender<T> {
    events: EventSender<T>,
    /// The lowest number that is not acknowledged.
    base: u64,
}

impl<T> WideSender<T> {
    /// Numbers from `first` up, at most `pending` unacknowledged.
    pub const fn new(first: u64, policy: RetryPolicy, pending: usize) -> Self {
        Self { events: EventSender::with_pending(low(first), policy, pending), base: first }
    }

    /// Queues an event and gives it its number.
    ///
    /// # Errors
    ///
    /// [`Full`] with the event if as many are pending as may be; it takes no number then.
    pub fn send(&mut self, item: T) -> Result<u64, Full<T>> {
        self.events.send(item).map(|seq| self.widen(seq))
    }

    /// The next event to be put on the wire at `now`, for the first time or again. Called until
    /// `None`, it names each due event once.
    pub fn poll(&mut self, now: Instant) -> Option<(u64, &T)> {
        let base = self.base;
        self.events.poll(now, 0).map(|(seq, item)| (seq.widen(base), item))
    }

    /// The peer has `number`; `false` if no event under way has it, which changes nothing.
    pub fn acknowledge(&mut self, number: u64) -> bool {
        let ahead = number.checked_sub(self.base);
        let known = ahead.is_some_and(|ahead| ahead < RECEIVE_WINDOW as u64)
            && self.events.acknowledge(low(number));
        self.base = self.widen(self.events.lowest_unacknowledged());
        known
    }

    /// When [`poll`](Self::poll) has something to say: `now` if an event waits and may be sent, else
    /// the next repetition.
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        self.events.deadline(now)
    }

    /// The lowest number that is not acknowledged; the next one to be given if all are.
    pub const fn lowest_unacknowledged(&self) -> u64 {
        self.base
    }

    /// Events that are not acknowledged.
    pub fn pending(&self) -> usize {
        self.events.in_flight() + self.events.waiting()
    }

    /// Whether everything was acknowledged.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// All numbers in use lie less than twice the pending ones above the base.
    const fn widen(&self, seq: Seq<32>) -> u64 {
        seq.widen(self.base)
    }
}

/// The side that puts events in order and drops repetitions.
#[derive(Clone, Debug)]
pub struct WideReceiver<T> {
    events: EventReceiver<T>,
    window: u64,
    next: u64,
}

impl<T> WideReceiver<T> {
    /// Expects `next` first and keeps at most `window` events, from 1 to 2^31 - 1; other values are
    /// taken as the nearest of these.
    pub fn new(window: usize, next: u64) -> Self {
        let window = window.clamp(1, i32::MAX as usize);
        Self { events: EventReceiver::new(window, low(next)), window: window as u64, next }
    }

    /// Takes an event off the wire. Of two with the same number the first content is kept.
    pub fn receive(&mut self, number: u64, item: T) -> Receipt {
        match number.checked_sub(self.next) {
            None => Receipt::Duplicate,
            Some(ahead) if ahead >= self.window => Receipt::TooFar,
            Some(_) => self.events.receive(low(number), item),
        }
    }

    /// The next event in order, `None` while it is missing.
    pub fn pop(&mut self) -> Option<(u64, T)> {
        let (_, item) = self.events.pop()?;
        let number = self.next;
        self.next = self.next.saturating_add(1);
        Some((number, item))
    }

    /// The number of the event that [`pop`](Self::pop) waits for.
    pub const fn next_expected(&self) -> u64 {
        self.next
    }

    /// Events that are kept until those before them come.
    pub fn kept(&self) -> usize {
        self.events.kept()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    const WAIT: Duration = Duration::from_millis(100);
    const POLICY: RetryPolicy = RetryPolicy::uniform(WAIT, WAIT);
    /// Three before the lowest 32 bits start over.
    const NEAR: u64 = (7 << 32) - 3;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn numbers_go_on_where_their_low_bits_start_over() {
        let mut sender = WideSender::new(NEAR, POLICY, 256);
        let mut receiver = WideReceiver::new(256, NEAR);
        for item in 0..600u64 {
            assert_eq!(sender.send(item), Ok(NEAR + item));
            let (number, &event) = sender.poll(at(0)).unwrap();
            assert_eq!((number, receiver.receive(number, event)), (NEAR + item, Receipt::New));
            assert!(sender.acknowledge(number));
            assert_eq!(receiver.pop(), Some((number, item)));
        }
        assert_eq!(
            (sender.lowest_unacknowledged(), receiver.next_expected()),
            (NEAR + 600, NEAR + 600)
        );
    }

    #[test]
    fn equal_low_bits_are_not_equal_numbers() {
        let mut sender = WideSender::new(NEAR, POLICY, 256);
        sender.send('a').unwrap();
        assert_eq!(sender.poll(at(0)), Some((NEAR, &'a')));
        for other in [NEAR - (1 << 32), NEAR + (1 << 32), NEAR % (1 << 32), NEAR + 256, NEAR - 1] {
            assert!(!sender.acknowledge(other), "{other}");
        }
        assert!(sender.acknowledge(NEAR));
        let mut receiver = WideReceiver::new(256, NEAR);
        assert_eq!(receiver.receive(NEAR + (1 << 32), 'a'), Receipt::TooFar);
        assert_eq!(receiver.receive(NEAR - (1 << 32), 'a'), Receipt::Duplicate);
        assert_eq!(receiver.receive(NEAR + 256, 'a'), Receipt::TooFar);
        assert_eq!((receiver.kept(), receiver.pop()), (0, None));
        assert_eq!(receiver.receive(u64::MAX, 'a'), Receipt::TooFar);
    }

    #[test]
    fn the_newest_acknowledgement_does_not_hide_the_loss_of_the_oldest() {
        let mut sender = WideSender::new(0, POLICY, 256);
        for item in 0..256u32 {
            sender.send(item).unwrap();
        }
        let sent: Vec<u64> =
            core::iter::from_fn(|| sender.poll(at(0)).map(|(number, _)| number)).collect();
        assert_eq!(sent.len(), 256);
        for number in (1..256).rev() {
            assert!(sender.acknowledge(number));
        }
        assert_eq!((sender.pending(), sender.lowest_unacknowledged()), (1, 0));
        for millis in [100, 200, 300] {
            assert_eq!(sender.poll(at(millis - 1)), None);
            assert_eq!(sender.poll(at(millis)), Some((0, &0)));
        }
        assert!(sender.acknowledge(0));
        assert!(sender.is_empty() && sender.lowest_unacknowledged() == 256);
    }

    proptest! {
        /// Against maps of whole numbers, over a network that loses, repeats and swaps.
        #[test]
        fn agrees_with_maps_of_whole_numbers(
            pending in 1usize..8,
            ops in prop::collection::vec((0u8..6, 0u64..12, 0u64..150), 1..200),
        ) {
            let mut sender = WideSender::new(NEAR, POLICY, pending);
            let mut receiver = WideReceiver::new(8, NEAR);
            // Number to when it is due again, for those that were sent and not acknowledged.
            let mut unacknowledged = BTreeMap::<u64, Option<u64>>::new();
            let mut kept = BTreeMap::<u64, u64>::new();
            let (mut given, mut next, mut now) = (0, NEAR, 0);
            for (op, pick, pause) in ops {
                now += pause;
                match op {
                    0 | 1 => {
                        let expected = if unacknowledged.len() < pending {
                            unacknowledged.insert(NEAR + given, None);
                            given += 1;
                            Ok(NEAR + given - 1)
                        } else {
                            Err(Full(given))
                        };
                        prop_assert_eq!(sender.send(given - u64::from(expected.is_ok())), expected);
                    }
                    2 => while let Some((number, &item)) = sender.poll(at(now)) {
                        prop_assert_eq!(item, number - NEAR);
                        let due = unacknowledged.get_mut(&number).unwrap();
                        prop_assert!(due.is_none_or(|due| due <= now));
                        *due = Some(now + 100);
                    },
                    3 => {
                        let number = NEAR + pick;
                        let sent = unacknowledged.get(&number).is_some_and(Option::is_some);
                        prop_assert_eq!(sender.acknowledge(number), sent);
                        if sent { unacknowledged.remove(&number); }
                    }
                    4 => {
                        let number = next + pick - 2;
                        let expected = if number < next || kept.contains_key(&number) {
                            Receipt::Duplicate
                        } else if number >= next + 8 {
                            Receipt::TooFar
                        } else {
                            kept.insert(number, pause);
                            Receipt::New
                        };
                        prop_assert_eq!(receiver.receive(number, pause), expected);
                    }
                    _ => {
                        let expected = kept.remove(&next).map(|item| (next, item));
                        next += u64::from(expected.is_some());
                        prop_assert_eq!(receiver.pop(), expected);
                    }
                }
                if op == 2 {
                    prop_assert!(unacknowledged.values().all(|due| due.is_some_and(|due| due > now)));
                }
                prop_assert_eq!(sender.pending(), unacknowledged.len());
                let lowest = unacknowledged.keys().next().copied().unwrap_or(NEAR + given);
                prop_assert_eq!(sender.lowest_unacknowledged(), lowest);
                prop_assert_eq!((receiver.next_expected(), receiver.kept()), (next, kept.len()));
            }
        }
    }
}
