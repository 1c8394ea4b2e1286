//! Which numbers arrived, told by the latest and a bit for each of those before it.
//!
//! Every datagram carries such an acknowledgement of the other direction, so that no single one of
//! them matters. The receiver keeps a [`Received`] and writes its [`Ack`]; the sender keeps a
//! [`Known`] and learns from each `Ack` which of its numbers arrived and which are given up.
//!
//! ```text
//!   the receiver has 20 (latest), 19, 17 and everything up to 15; a window of 8 before the latest
//!
//!     number  12  13  14  15  16  17  18  19 | 20
//!     bit      7   6   5   4   3   2   1   0 |            before = 0b1111_0101
//!              1   1   1   1   0   1   0   1 | latest
//!
//!   23 arrives: the bits move three up, the old latest becomes bit 2
//!
//!     number  15  16  17  18  19  20  21  22 | 23
//!              1   0   1   0   1   1   0   0 | latest     before = 0b1010_1100
//!
//!   26 arrives: 16 leaves the window (18 .. 25) without its bit, and the sender gives it up: lost.
//!   17 and 15 leave it, too, but were acknowledged.
//! ```
//!
//! Nothing but a later acknowledgement shows a loss: there is no timer in here, and who sends
//! nothing learns nothing. A number is judged lost when the latest first reaches `WIDTH + 1` numbers
//! beyond it.
//!
//! The width of the window and the bits of a number are parameters. Blank has 16 bits and a window
//! of 32: [`Ack<16, 32>`](Ack).
//!
//! # Peers that run backwards
//!
//! Some receivers set their latest to whatever came last, even if it is an old number, and then say
//! of numbers that they have that they miss them. A correct receiver never unlearns, so what a peer
//! once said to have stays known: [`Known`] keeps the union of all it heard. It judges neither twice
//! nor by a bit that is only missing now.
//!
//! ```
//! use caves_link::ack::{Ack, Arrival, Known, Received};
//! use caves_link::seq::Seq;
//!
//! // Nothing came yet: everything before 0 counts as received.
//! let mut received = Received::<16, 32>::after(Seq::new(65535));
//! assert_eq!(received.note(Seq::new(0)), Arrival::Newer { skipped: 0 });
//! assert_eq!(received.note(Seq::new(2)), Arrival::Newer { skipped: 1 });
//! assert_eq!(received.ack(), Ack::new(Seq::new(2), 0xFFFF_FFFE));
//!
//! let mut known = Known::<16, 32>::before(Seq::new(0));
//! let judgement = known.hear(received.ack());
//! assert!(judgement.is_acked(Seq::new(0)) && !judgement.is_acked(Seq::new(1)));
//! assert!(judgement.acked().eq([2, 0].map(Seq::new)));
//! assert_eq!(judgement.lost().count(), 0);
//! ```

use crate::seq::Seq;
use core::fmt;

/// What an acknowledgement says: the latest number that arrived, and of the `WIDTH` before it
/// those that did. `WIDTH` is 1 to 64, and less than half the circle of `BITS` bits.
///
/// Bits from `WIDTH` on are zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ack<const BITS: u32, const WIDTH: u32> {
    latest: Seq<BITS>,
    before: u64,
}

impl<const BITS: u32, const WIDTH: u32> Ack<BITS, WIDTH> {
    /// The bits that there are.
    const MASK: u64 = {
        assert!(WIDTH >= 1 && WIDTH <= 64, "a window has 1 to 64 bits");
        assert!(BITS >= 32 || WIDTH < 1 << (BITS - 1), "a window is less than half the circle");
        u64::MAX >> (64 - WIDTH)
    };

    /// `latest` arrived, and `latest - 1 - n` did if bit `n` of `before` is set; bits from `WIDTH`
    /// on are cut off.
    pub const fn new(latest: Seq<BITS>, before: u64) -> Self {
        Self { latest, before: before & Self::MASK }
    }

    /// `latest` and all before it arrived.
    pub const fn all_up_to(latest: Seq<BITS>) -> Self {
        Self::new(latest, u64::MAX)
    }

    /// The latest number.
    pub const fn latest(self) -> Seq<BITS> {
        self.latest
    }

    /// Bit `n` is for the number `latest - 1 - n`.
    pub const fn before(self) -> u64 {
        self.before
    }

    /// Whether it says of a number that it arrived. Of numbers outside the window it says nothing.
    pub const fn covers(self, seq: Seq<BITS>) -> bool {
        match self.latest.distance_from(seq) {
            0 => true,
            back if back <= WIDTH => self.before >> (back - 1) & 1 == 1,
            _ => false,
        }
    }

    /// What both say together: the newer of the two latest, and every number in its window that
    /// one of them covers.
    #[must_use]
    pub const fn merged(self, other: Self) -> Self {
        let (newer, older) =
            if other.latest.is_newer_than(self.latest) { (other, self) } else { (self, other) };
        let steps = newer.latest.distance_from(older.latest);
        Self::new(newer.latest, newer.before | older.moved(steps))
    }

    /// The bits as seen from a latest that is `steps` further on.
    const fn moved(self, steps: u32) -> u64 {
        match steps {
            0 => self.before,
            _ if steps > WIDTH => 0,
            // The old latest becomes a bit; a shift by all 64 bits would overflow.
            _ => {
                let before = if steps < 64 { self.before << steps } else { 0 };
                (before | 1 << (steps - 1)) & Self::MASK
            }
        }
    }
}

impl<const BITS: u32, const WIDTH: u32> fmt::Debug for Ack<BITS, WIDTH> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The latest in decimal, the bits in hexadecimal: `20 f5`.
impl<const BITS: u32, const WIDTH: u32> fmt::Display for Ack<BITS, WIDTH> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:0digits$x}", self.latest, self.before, digits = WIDTH.div_ceil(4) as usize)
    }
}

/// How a number that arrived stands to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arrival {
    /// The newest so far; `skipped` numbers between it and the one that was have not arrived.
    Newer {
        /// How many.
        skipped: u32,
    },
    /// Overtaken by newer ones, but within the window, and for the first time.
    Late,
    /// Arrived before.
    Repeated,
    /// Before the window, or half the circle away: whether it arrived before is not known.
    TooOld,
}

/// A receiver's record of what arrived.
///
/// It never forgets within its window: the latest only advances, and a bit that is set stays set
/// until it leaves the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received<const BITS: u32, const WIDTH: u32> {
    ack: Ack<BITS, WIDTH>,
}

impl<const BITS: u32, const WIDTH: u32> Received<BITS, WIDTH> {
    /// Nothing came yet of those after `latest`; it and all before it count as received.
    pub const fn after(latest: Seq<BITS>) -> Self {
        Self { ack: Ack::all_up_to(latest) }
    }

    /// A number arrived. Noting one again changes nothing.
    pub const fn note(&mut self, seq: Seq<BITS>) -> Arrival {
        let Ack { latest, before } = self.ack;
        if seq.is_newer_than(latest) {
            let steps = seq.distance_from(latest);
            self.ack = Ack::new(seq, self.ack.moved(steps));
            return Arrival::Newer { skipped: steps - 1 };
        }
        match latest.distance_from(seq) {
            0 => Arrival::Repeated,
            back if back <= WIDTH => {
                let bit = 1 << (back - 1);
                self.ack.before |= bit;
                if before & bit == 0 { Arrival::Late } else { Arrival::Repeated }
            }
            _ => Arrival::TooOld,
        }
    }

    /// What to tell the sender.
    pub const fn ack(&self) -> Ack<BITS, WIDTH> {
        self.ack
    }
}

/// A sender's record of what the peer said to have.
///
/// The latest only advances, and what was acknowledged once stays so within the window, whatever
/// the peer says later.
///
/// It does not know which numbers were sent. An acknowledgement of numbers that were never sent is
/// the user's to refuse before it gets here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known<const BITS: u32, const WIDTH: u32> {
    ack: Ack<BITS, WIDTH>,
}

impl<const BITS: u32, const WIDTH: u32> Known<BITS, WIDTH> {
    /// For a sender whose first number is `first`; all before it count as acknowledged.
    pub const fn before(first: Seq<BITS>) -> Self {
        Self { ack: Ack::all_up_to(first.prev()) }
    }

    /// An acknowledgement came: what follows from it.
    pub const fn hear(&mut self, ack: Ack<BITS, WIDTH>) -> Judgement<BITS, WIDTH> {
        let old = self.ack;
        self.ack = old.merged(ack);
        Judgement::between(old, self.ack)
    }

    /// All that is known.
    pub const fn ack(&self) -> Ack<BITS, WIDTH> {
        self.ack
    }
}

/// What a second acknowledgement adds to a first.
///
/// A number is lost if it leaves the window without having been covered by the first one: the
/// second says nothing of it any more. It is acknowledged if the second covers it and the first
/// did not. No number is both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judgement<const BITS: u32, const WIDTH: u32> {
    old: Ack<BITS, WIDTH>,
    new: Ack<BITS, WIDTH>,
    /// Steps from the old latest to the new one; 0 if that is not newer.
    advance: u32,
}

impl<const BITS: u32, const WIDTH: u32> Judgement<BITS, WIDTH> {
    /// What `new` adds to `old`, both as they were written. Where `new` runs backwards nothing is
    /// lost; [`Known`] also sees to it that nothing is judged twice then.
    pub const fn between(old: Ack<BITS, WIDTH>, new: Ack<BITS, WIDTH>) -> Self {
        let advance = if new.latest.is_newer_than(old.latest) {
            new.latest.distance_from(old.latest)
        } else {
            0
        };
        Self { old, new, advance }
    }

    /// Whether a number is given up now.
    pub const fn is_lost(&self, seq: Seq<BITS>) -> bool {
        seq.distance_from(self.lowest()) < self.advance && !self.old.covers(seq)
    }

    /// Whether a number is acknowledged now, and was not before.
    pub const fn is_acked(&self, seq: Seq<BITS>) -> bool {
        self.new.covers(seq) && !self.old.covers(seq)
    }

    /// The numbers that are given up, oldest first: a step for each number that the latest
    /// advanced, which is less than half the circle.
    pub fn lost(&self) -> impl Iterator<Item = Seq<BITS>> + '_ {
        let all = (0..self.advance).map(|step| self.lowest().advance(step));
        all.filter(|seq| !self.old.covers(*seq))
    }

    /// The numbers that are newly acknowledged, newest first: at most `WIDTH + 1`.
    pub fn acked(&self) -> impl Iterator<Item = Seq<BITS>> + '_ {
        let all = (0..=WIDTH).map(|back| self.new.latest.advance(back.wrapping_neg()));
        all.filter(|seq| self.is_acked(*seq))
    }

    /// The oldest number in the window of the old acknowledgement.
    const fn lowest(&self) -> Seq<BITS> {
        self.old.latest.advance(WIDTH.wrapping_neg())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::format;
    use std::vec::Vec;

    type Blank = Ack<16, 32>;

    fn blank(latest: u32, before: u64) -> Blank {
        Ack::new(Seq::new(latest), before)
    }

    fn numbers<const BITS: u32>(of: impl Iterator<Item = Seq<BITS>>) -> Vec<u32> {
        of.map(Seq::get).collect()
    }

    /// The column "right" of the table in section 10 of the facts on blank: one datagram of each
    /// number went to a live server, and this is what a correct one acknowledges then.
    #[test]
    fn the_table_of_blank_is_reproduced() {
        let table = [
            (0, 0, 0xFFFF_FFFF),
            (1, 1, 0xFFFF_FFFF),
            (2, 2, 0xFFFF_FFFF),
            (5, 5, 0xFFFF_FFFC),
            (4, 5, 0xFFFF_FFFD),
            (3, 5, 0xFFFF_FFFF),
            (6, 6, 0xFFFF_FFFF),
            (6, 6, 0xFFFF_FFFF),
            (38, 38, 0x8000_0000),
            (39, 39, 0x0000_0001),
            (70, 70, 0xC000_0000),
            (102, 102, 0x8000_0000),
            (100, 102, 0x8000_0002),
            (105, 105, 0x0000_0014),
            (65535, 105, 0x0000_0014),
            (0, 105, 0x0000_0014),
            (32767, 32767, 0),
            (32768, 32768, 1),
            (65000, 65000, 0),
            (65535, 65535, 0),
            (0, 0, 1),
            (1, 1, 3),
        ];
        let mut received = Received::<16, 32>::after(Seq::new(0xFFFF));
        for (seq, latest, before) in table {
            received.note(Seq::new(seq));
            assert_eq!(received.ack(), blank(latest, before), "after {seq}");
        }
    }

    /// Section 5 of the same facts.
    #[test]
    fn losses_and_acknowledgements_of_blank_are_judged() {
        let table: [(_, _, &[u32], &[u32]); 6] = [
            (blank(0xFFFF, 0xFFFF_FFFF), blank(0, 0xFFFF_FFFF), &[], &[0]),
            (blank(33, 0x7FFF_FFFF), blank(34, 0xFFFF_FFFF), &[1], &[34]),
            (blank(33, 0xFFFF_FFFF), blank(34, 0xFFFF_FFFF), &[], &[34]),
            (blank(10, 0xFFFF_FFFD), blank(12, 0xFFFF_FFF7), &[], &[12, 11]),
            (blank(0, 0xFFFF_FFFF), blank(40, 0), &[1, 2, 3, 4, 5, 6, 7], &[40]),
            (
                blank(100, 0xFFFF_FFFE),
                blank(140, 0x0000_000F),
                &[99, 101, 102, 103, 104, 105, 106, 107],
                &[140, 139, 138, 137, 136],
            ),
        ];
        for (old, new, lost, acked) in table {
            let judgement = Judgement::between(old, new);
            assert_eq!(numbers(judgement.lost()), lost, "{old} to {new}");
            assert_eq!(numbers(judgement.acked()), acked, "{old} to {new}");
        }
    }

    #[test]
    fn an_arrival_is_told_apart_from_a_repetition() {
        let mut received = Received::<16, 32>::after(Seq::new(0xFFFF));
        let mut note = |seq| received.note(Seq::new(seq));
        assert_eq!(note(3), Arrival::Newer { skipped: 3 });
        assert_eq!(note(1), Arrival::Late);
        assert_eq!(note(1), Arrival::Repeated);
        assert_eq!(note(3), Arrival::Repeated);
        assert_eq!(note(0xFFFF), Arrival::Repeated, "what was before the first counts as received");
        assert_eq!(note(40), Arrival::Newer { skipped: 36 });
        assert_eq!(note(8), Arrival::Late, "the last of the window");
        assert_eq!(note(7), Arrival::TooOld);
        assert_eq!(note(40 + 0x8000), Arrival::TooOld, "half the circle away");
        assert_eq!(note(40 + 0x7FFF), Arrival::Newer { skipped: 0x7FFE });
    }

    /// After 0, 1, 2, 5, 4, 3, 6 a real server reports 6 FFFFFFEC, although it said before that it
    /// has all of them.
    #[test]
    fn what_a_peer_unlearns_stays_known() {
        let mut known = Known::<16, 32>::before(Seq::new(0));
        for (latest, before) in
            [(2, 0xFFFF_FFFF), (5, 0xFFFF_FFFC), (4, 0xFFFF_FFFD), (3, 0xFFFF_FFFD)]
        {
            let judgement = known.hear(blank(latest, before));
            assert_eq!(judgement.lost().count(), 0);
        }
        assert_eq!(known.ack(), blank(5, 0xFFFF_FFFF));
        let judgement = known.hear(blank(6, 0xFFFF_FFEC));
        assert_eq!(numbers(judgement.acked()), [6]);
        assert_eq!(known.ack(), blank(6, 0xFFFF_FFFF));
        // Without the memory, 5, 4 and 1 would be given up here.
        assert_eq!(known.hear(blank(39, 0xFFFF_FFFF)).lost().count(), 0);
        let forgetful = Judgement::between(blank(6, 0xFFFF_FFEC), blank(39, 0xFFFF_FFFF));
        assert_eq!(numbers(forgetful.lost()), [1, 4, 5]);
    }

    #[test]
    fn the_text_has_as_many_digits_as_the_window() {
        assert_eq!(format!("{}", blank(34, 0x7F)), "34 0000007f");
        assert_eq!(format!("{:?}", Ack::<10, 5>::all_up_to(Seq::new(9))), "9 1f");
    }

    #[test]
    fn the_widest_window_neither_overflows_nor_loses_its_last_bit() {
        let mut received = Received::<16, 64>::after(Seq::new(0xFFFF));
        received.note(Seq::new(63));
        assert_eq!(received.ack().before(), 1 << 63);
        received.note(Seq::new(63 + 64));
        assert_eq!(received.ack().before(), 1 << 63);
        received.note(Seq::new(63 + 64 + 65));
        assert_eq!(received.ack().before(), 0);
    }

    /// All numbers that ever arrived, as plain counts, and the newest of them.
    struct Model {
        newest: i64,
        arrived: BTreeSet<i64>,
        /// All below count as arrived.
        start: i64,
    }

    impl Model {
        fn has(&self, count: i64) -> bool {
            count < self.start || self.arrived.contains(&count)
        }

        fn bits(&self, width: i64) -> u64 {
            (0..width).filter(|n| self.has(self.newest - 1 - n)).fold(0, |bits, n| bits | 1 << n)
        }
    }

    fn wrapped<const BITS: u32>(count: i64) -> Seq<BITS> {
        Seq::new(count as u32)
    }

    /// A walk of steps forward and back, all from three before the end of the circle on.
    fn agrees_with_a_set<const BITS: u32, const WIDTH: u32>(steps: &[i64]) {
        let start = (1i64 << 40) - 3;
        let mut model = Model { newest: start - 1, arrived: BTreeSet::new(), start };
        let mut received = Received::<BITS, WIDTH>::after(wrapped(start - 1));
        for step in steps {
            let count = model.newest + step;
            let back = model.newest - count;
            let expected = match back {
                ..0 => Arrival::Newer { skipped: (-back - 1) as u32 },
                _ if back > i64::from(WIDTH) => Arrival::TooOld,
                _ if model.has(count) => Arrival::Repeated,
                _ => Arrival::Late,
            };
            assert_eq!(received.note(wrapped(count)), expected, "{step}");
            model.newest = model.newest.max(count);
            model.arrived.insert(count);
            let ack = received.ack();
            assert_eq!(ack, Ack::new(wrapped(model.newest), model.bits(i64::from(WIDTH))));
            for back in 0..=i64::from(WIDTH) + 2 {
                let count = model.newest - back;
                let expected = back <= i64::from(WIDTH) && model.has(count);
                assert_eq!(ack.covers(wrapped(count)), expected);
            }
        }
    }

    /// The receiver as real programs have it: the latest is what came last.
    fn backwards(ack: Blank, seq: Seq<16>) -> Blank {
        let before = match seq.distance_from(ack.latest()) as u16 as i16 {
            0 => ack.before(),
            steps @ 1..=31 => ack.before() << steps | 1 << (steps - 1),
            back @ -32..=-1 => ack.before() | 1 << (-back - 1),
            32.. => 0,
            _ => ack.before(),
        };
        Ack::new(seq, before)
    }

    proptest! {
        #[test]
        fn a_receiver_agrees_with_a_set_of_all_that_arrived(
            steps in prop::collection::vec(prop_oneof![
                4 => 1i64..3, 2 => -40i64..40, 1 => -120i64..120,
            ], 1..300),
        ) {
            agrees_with_a_set::<16, 32>(&steps);
            agrees_with_a_set::<8, 7>(&steps);
            agrees_with_a_set::<10, 64>(&steps);
            agrees_with_a_set::<32, 1>(&steps);
        }

        /// Two directions with losses. Against it stand a set of what was ever acknowledged and the
        /// rule itself: lost when the latest first is 33 or more beyond, if not in the set.
        #[test]
        fn a_sender_agrees_with_a_set_of_all_that_was_acknowledged(
            start in prop_oneof![Just(0xFFFDi64), 0i64..0x1_0000],
            ops in prop::collection::vec((any::<bool>(), any::<bool>(), 0i64..40), 1..300),
            real in any::<bool>(),
        ) {
            let first = wrapped::<16>(start);
            let mut received = Received::<16, 32>::after(first.prev());
            let mut running = Ack::all_up_to(first.prev());
            let mut known = Known::<16, 32>::before(first);
            let (mut sent, mut latest) = (start, start - 1);
            let mut acknowledged = BTreeSet::new();
            let mut judged = BTreeSet::new();
            for (arrives, answered, behind) in ops {
                sent += 1;
                // Some come late, and some of those for a second time.
                let count = if behind < 8 { (sent - 1 - behind).max(start) } else { sent - 1 };
                if arrives {
                    received.note(wrapped(count));
                    running = backwards(running, wrapped(count));
                }
                if !answered {
                    continue;
                }
                let ack = if real { running } else { received.ack() };
                let judgement = known.hear(ack);
                let (before, window) = (latest, latest - 32);
                latest = ack.latest().widen(sent as u64).cast_signed().max(latest);
                let mut newly = BTreeSet::new();
                // Numbers that left the window were judged already and are not looked at again.
                for count in (start.max(latest - 32)..sent).rev() {
                    if ack.covers(wrapped(count)) && acknowledged.insert(count) {
                        newly.insert(count);
                    }
                }
                prop_assert!(judgement.acked().eq(newly.iter().rev().map(|count| wrapped(*count))));
                let given_up: Vec<_> = (start..sent)
                    .filter(|count| (latest >= count + 33) && !acknowledged.contains(count))
                    .filter(|count| judged.insert(*count))
                    .collect();
                prop_assert!(
                    judgement.lost().eq(given_up.iter().map(|count| wrapped(*count))),
                    "{} to {}: {:?} but {:?}", before, latest, judgement.lost().collect::<Vec<_>>(), given_up
                );
                for count in start.max(window - 5)..sent {
                    let (seq, is_lost) = (wrapped(count), given_up.contains(&count));
                    prop_assert_eq!(judgement.is_lost(seq), is_lost);
                    prop_assert_eq!(judgement.is_acked(seq), newly.contains(&count));
                }
            }
        }
    }
}
