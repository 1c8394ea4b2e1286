//! Which numbers are taken where only the next one is, and which acknowledgements are believed.
//!
//! A receiver without room for what comes out of turn takes nothing but the next number. All others
//! are either old, and are dropped in silence, or ahead, and show that something was lost.
//! [`InOrder`] tells the three apart. Where "old" ends is a parameter: protocols with the same
//! counter cut the circle at different places, and an error by one shows exactly there.
//!
//! ```text
//!   ten bits, last = 600, back = 512          1024 numbers on a circle
//!
//!     old: last and the 512 before it      next  ahead: the other 510
//!   |======================================|----|.......................|
//!   88                                   600  601 602                   87
//! ```
//!
//! Its sender numbers what it sends and hears one number back, up to which all has arrived. [`Flight`]
//! is what lies between the two, and an acknowledgement outside of it is a late or a forged one:
//!
//! ```text
//!      acknowledged         in flight           not sent yet
//!   |................|=======================|..................
//!                  acked                    sent
//!                    '--- believed: acked ..= sent ---'
//! ```
//!
//! ```
//! use caves_link::seq::Seq;
//! use caves_link::window::{Arrival, Flight, InOrder};
//!
//! let mut receiver = InOrder::<10>::new(Seq::new(1023), 512);
//! assert_eq!(receiver.take(Seq::new(1)), Arrival::Ahead);
//! assert_eq!(receiver.take(Seq::new(0)), Arrival::Next);
//! assert_eq!(receiver.take(Seq::new(0)), Arrival::Old);
//!
//! let mut sender = Flight::<10>::new(Seq::new(1023));
//! assert_eq!(sender.send(), Some(Seq::new(0)));
//! assert!(!sender.acknowledge(Seq::new(1)), "never sent");
//! assert!(sender.acknowledge(receiver.last()));
//! assert!(sender.is_empty());
//! ```

use crate::seq::Seq;

/// How a number stands to the last one that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arrival {
    /// The one after it.
    Next,
    /// The same or one of those before it: it was taken already.
    Old,
    /// Any other: something before it is missing.
    Ahead,
}

/// A receiver that takes only the next number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InOrder<const BITS: u32> {
    last: Seq<BITS>,
    back: u32,
}

impl<const BITS: u32> InOrder<BITS> {
    /// A receiver that behaves as if `last` had been taken, to which that number and the `back` before
    /// it are old. The one after it is always the next.
    pub const fn new(last: Seq<BITS>, back: u32) -> Self {
        Self { last, back }
    }

    /// How `seq` stands to the last one taken.
    pub const fn judge(&self, seq: Seq<BITS>) -> Arrival {
        if seq.distance_from(self.last) == 1 {
            Arrival::Next
        } else if self.last.distance_from(seq) <= self.back {
            Arrival::Old
        } else {
            Arrival::Ahead
        }
    }

    /// The same, and the next one is taken.
    pub const fn take(&mut self, seq: Seq<BITS>) -> Arrival {
        let arrival = self.judge(seq);
        if matches!(arrival, Arrival::Next) {
            self.last = seq;
        }
        arrival
    }

    /// The last one taken: all up to it have arrived.
    pub const fn last(&self) -> Seq<BITS> {
        self.last
    }
}

/// A sender's numbers that were sent and not yet acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight<const BITS: u32> {
    acked: Seq<BITS>,
    sent: Seq<BITS>,
}

impl<const BITS: u32> Flight<BITS> {
    /// Nothing is in flight, and the number after `last` is the first.
    pub const fn new(last: Seq<BITS>) -> Self {
        Self { acked: last, sent: last }
    }

    /// The number for one more; `None` where the whole circle is in flight, and another number could
    /// not be told from one that was acknowledged.
    pub const fn send(&mut self) -> Option<Seq<BITS>> {
        let next = self.sent.next();
        if next.distance_from(self.acked) == 0 {
            return None;
        }
        self.sent = next;
        Some(next)
    }

    /// All up to `ack` has arrived. `false`, and nothing changes, where that was never sent or is
    /// older than what is known.
    #[must_use = "false means that whoever said it is not to be believed"]
    pub const fn acknowledge(&mut self, ack: Seq<BITS>) -> bool {
        if ack.distance_from(self.acked) > self.len() {
            return false;
        }
        self.acked = ack;
        true
    }

    /// The last number sent.
    pub const fn sent(&self) -> Seq<BITS> {
        self.sent
    }

    /// The last number acknowledged.
    pub const fn acked(&self) -> Seq<BITS> {
        self.acked
    }

    /// How many are in flight.
    pub const fn len(&self) -> u32 {
        self.sent.distance_from(self.acked)
    }

    /// Whether all was acknowledged.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Teeworlds' own words for what is old, with plain integers.
    fn in_backroom(seq: i32, ack: i32) -> bool {
        let bottom = ack - 512;
        if bottom < 0 { seq <= ack || seq >= bottom + 1024 } else { seq <= ack && seq >= bottom }
    }

    #[test]
    fn every_pair_of_ten_bits_is_judged_as_the_reference_does() {
        for last in 0..1024 {
            let mut window = InOrder::<10>::new(Seq::new(last), 512);
            let old = (0..1024).filter(|seq| window.judge(Seq::new(*seq)) == Arrival::Old).count();
            assert_eq!(old, 513);
            for seq in 0..1024 {
                let expected = if seq == (last + 1) % 1024 {
                    Arrival::Next
                } else if in_backroom(seq as i32, last as i32) {
                    Arrival::Old
                } else {
                    Arrival::Ahead
                };
                assert_eq!(window.judge(Seq::new(seq)), expected, "{last} {seq}");
            }
            assert_eq!(window.take(Seq::new(last + 1)), Arrival::Next);
            assert_eq!(window.last(), Seq::new(last + 1));
        }
    }

    #[test]
    fn the_edges_of_old_and_ahead_lie_where_the_tables_say() {
        let judge = |last, seq| InOrder::<10>::new(Seq::new(last), 512).judge(Seq::new(seq));
        for (last, edge, beyond) in [(1, 513, 512), (0, 512, 511), (600, 88, 87), (1023, 511, 510)]
        {
            assert_eq!((judge(last, edge), judge(last, beyond)), (Arrival::Old, Arrival::Ahead));
        }
    }

    #[test]
    fn a_window_without_a_past_and_one_that_is_all_past_still_know_the_next() {
        let none = InOrder::<4>::new(Seq::new(3), 0);
        let all = InOrder::<4>::new(Seq::new(3), u32::MAX);
        for seq in 0..16 {
            let expected = match seq {
                4 => (Arrival::Next, Arrival::Next),
                3 => (Arrival::Old, Arrival::Old),
                _ => (Arrival::Ahead, Arrival::Old),
            };
            assert_eq!((none.judge(Seq::new(seq)), all.judge(Seq::new(seq))), expected, "{seq}");
        }
    }

    /// The reference's test of an acknowledgement, with plain integers.
    fn believed(ack: u32, acked: u32, sent: u32) -> bool {
        if sent >= acked { acked <= ack && ack <= sent } else { ack >= acked || ack <= sent }
    }

    #[test]
    fn every_acknowledgement_is_believed_as_the_reference_does() {
        for acked in [0, 1, 511, 512, 1023] {
            for sent in (0..1024).step_by(7).chain([511, 512, 1023]) {
                let flight = Flight::<10> { acked: Seq::new(acked), sent: Seq::new(sent) };
                for ack in 0..1024 {
                    let mut after = flight;
                    let told = after.acknowledge(Seq::new(ack));
                    assert_eq!(told, believed(ack, acked, sent), "{acked} {sent} {ack}");
                    let expected = if told { Seq::new(ack) } else { flight.acked };
                    assert_eq!((after.acked(), after.sent()), (expected, flight.sent));
                }
            }
        }
    }

    #[test]
    fn a_whole_circle_in_flight_is_refused_one_more() {
        let mut flight = Flight::<3>::new(Seq::new(6));
        let sent: std::vec::Vec<u32> =
            core::iter::from_fn(|| flight.send().map(Seq::get)).collect();
        assert_eq!(sent, [7, 0, 1, 2, 3, 4, 5]);
        assert_eq!(flight.len(), 7);
        assert!(flight.acknowledge(Seq::new(7)));
        assert_eq!(flight.send(), Some(Seq::new(6)));
    }

    proptest! {
        /// A sender and a receiver over a line that loses and repeats, with plain counts beside them.
        #[test]
        fn both_ends_agree_with_plain_counts(
            start in 0u64..1024,
            steps in prop::collection::vec((0u8..3, 0u64..40), 1..400),
        ) {
            let seq = |count: u64| Seq::<10>::new((count % 1024) as u32);
            let (mut flight, mut window) = (Flight::new(seq(start)), InOrder::new(seq(start), 512));
            let base = start + 4096;
            let (mut sent, mut taken, mut acked) = (base, base, base);
            for (step, pick) in steps {
                match step {
                    0 if sent - acked < 455 => {
                        sent += 1;
                        prop_assert_eq!(flight.send(), Some(seq(sent)));
                    }
                    // Any that was sent lately arrives, new or again.
                    1 => {
                        let count = sent - pick;
                        let expected = match count {
                            _ if count == taken + 1 => Arrival::Next,
                            _ if count <= taken => Arrival::Old,
                            _ => Arrival::Ahead,
                        };
                        prop_assert_eq!(window.take(seq(count)), expected);
                        taken += u64::from(expected == Arrival::Next);
                    }
                    _ => {
                        let count = taken - pick;
                        prop_assert_eq!(flight.acknowledge(seq(count)), count >= acked);
                        acked = acked.max(count);
                    }
                }
                prop_assert_eq!(window.last(), seq(taken));
                prop_assert_eq!(u64::from(flight.len()), sent - acked);
            }
        }
    }
}
