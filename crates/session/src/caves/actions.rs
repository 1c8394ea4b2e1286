//! Which actions of a session are executed, and when (R18, R19, R29).

use std::time::Duration;

use caves_link::time::Instant;
use caves_wire::caves::{Action, Sequence};

use super::OwnedAction;

/// Actions that may wait for their tick (R19).
const WAITING: usize = 2;
/// Older actions in ascending order that show a restarted client (R29).
const RESTART_COUNT: u8 = 3;
/// The time over which they come (R29).
const RESTART_SPAN: Duration = Duration::from_secs(1);

/// What became of an action that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// It waits for its tick.
    Kept,
    /// A no-op: it consumes no sequence and never waits (R18).
    NoOp,
    /// It is not newer than the last executed one.
    Old,
    /// Its sequence already waits; the first content counts.
    Repeated,
    /// Two wait already; its retransmission finds room.
    Full,
}

/// Lets each action through once, in order, one a tick.
///
/// ```text
///   arriving --> newer than the last executed? --> waiting (two, by sequence) --> take: one a tick
///                    no: Old                        taken: Repeated, Full
/// ```
#[derive(Debug, Clone)]
pub struct ActionGate {
    executed: Option<(Sequence, u32)>,
    waiting: [Option<(Sequence, OwnedAction)>; WAITING],
    restarts: Restarts,
    late: Option<Late>,
}

/// Whether older actions can show a restarted client (R29).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Restarts {
    Always,
    /// Until the next action is executed: after a Join with the token of a living session, which
    /// may have come from a new process.
    Once,
    Never,
}

/// Older actions that came since the last newer one.
#[derive(Debug, Clone, Copy)]
struct Late {
    since: Instant,
    newest: Sequence,
    count: u8,
}

impl ActionGate {
    /// A gate for a new session: its first action may carry any sequence (R29).
    ///
    /// Only a `restartable` session starts over by three older actions: a source-only client has no
    /// other way to say that it was restarted, and one that joins says so by its Join. For the
    /// latter, late duplicates of a slow network must not open the way for an action twice.
    pub const fn new(restartable: bool) -> Self {
        let restarts = if restartable { Restarts::Always } else { Restarts::Never };
        Self { executed: None, waiting: [None, None], restarts, late: None }
    }

    /// The session was joined (again): its client numbers on, or it is a new process that does not
    /// know where the old one was.
    pub(super) const fn joined_again(&mut self) {
        self.restarts = Restarts::Once;
        self.late = None;
    }

    /// The last executed sequence and the bits of those before it: bit i tells of
    /// `sequence - 1 - i` (section 3, tags 0x10 and 0x12).
    pub const fn executed(&self) -> Option<(Sequence, u32)> {
        self.executed
    }

    /// Actions that wait for their tick.
    pub fn waiting(&self) -> usize {
        self.waiting.iter().flatten().count()
    }

    /// Judges an action that arrives.
    pub fn offer(&mut self, now: Instant, sequence: Sequence, action: Action<&str>) -> Offer {
        if matches!(action, Action::NoOp) {
            return Offer::NoOp;
        }
        if !self.is_next(sequence) && !self.shows_restart(now, sequence) {
            return Offer::Old;
        }
        self.late = None;
        if self.waiting.iter().flatten().any(|(waiting, _)| *waiting == sequence) {
            return Offer::Repeated;
        }
        let Some(place) = self.waiting.iter_mut().find(|place| place.is_none()) else {
            return Offer::Full;
        };
        *place = Some((sequence, action.map_text(str::to_owned)));
        Offer::Kept
    }

    /// The action that this session executes in this tick, if any. It counts as executed.
    pub fn take(&mut self) -> Option<(Sequence, OwnedAction)> {
        if let [Some((first, _)), Some((second, _))] = &self.waiting
            && first.is_newer_than(*second)
        {
            self.waiting.swap(0, 1);
        }
        // Checked again on execution: what waited behind a higher number is too late now.
        for place in 0..WAITING {
            if let Some((sequence, action)) = self.waiting[place].take()
                && self.is_next(sequence)
            {
                self.mark(sequence);
                return Some((sequence, action));
            }
        }
        None
    }

    fn is_next(&self, sequence: Sequence) -> bool {
        self.executed.is_none_or(|(last, _)| sequence.is_newer_than(last))
    }

    fn mark(&mut self, sequence: Sequence) {
        let bits = match self.executed {
            None => 0,
            Some((last, bits)) => {
                let steps = sequence.distance_from(last);
                // The last one itself becomes bit `steps - 1`.
                let older = bits.checked_shl(steps).unwrap_or(0);
                older | 1u32.checked_shl(steps - 1).unwrap_or(0)
            }
        };
        self.executed = Some((sequence, bits));
        if self.restarts == Restarts::Once {
            self.restarts = Restarts::Never;
        }
    }

    fn shows_restart(&mut self, now: Instant, sequence: Sequence) -> bool {
        // The last executed one again is a repetition, whatever came before it.
        let repeats = self.executed.is_some_and(|(last, _)| last == sequence);
        if self.restarts == Restarts::Never || repeats {
            return false;
        }
        let late = match self.late {
            Some(late) if sequence.is_newer_than(late.newest) => {
                Late { newest: sequence, count: late.count.saturating_add(1), ..late }
            }
            Some(late) if sequence == late.newest => late,
            _ => Late { since: now, newest: sequence, count: 1 },
        };
        self.late = Some(late);
        if late.count < RESTART_COUNT || now.saturating_since(late.since) < RESTART_SPAN {
            return false;
        }
        self.executed = None;
        self.waiting = [None, None];
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caves_wire::caves::Direction;

    const EAST: Action<&str> = Action::Walk(Direction::East);
    const WEST: Action<&str> = Action::Walk(Direction::West);

    fn seq(number: u32) -> Sequence {
        Sequence::new(number)
    }

    fn offer(gate: &mut ActionGate, number: u32) -> Offer {
        gate.offer(Instant::ZERO, seq(number), EAST)
    }

    fn take(gate: &mut ActionGate) -> Option<u32> {
        gate.take().map(|(sequence, _)| sequence.get())
    }

    #[test]
    fn one_datagram_twice_moves_once() {
        let mut gate = ActionGate::new(false);
        assert_eq!(offer(&mut gate, 5), Offer::Kept);
        assert_eq!(gate.offer(Instant::ZERO, seq(5), WEST), Offer::Repeated);
        assert_eq!(gate.take(), Some((seq(5), Action::Walk(Direction::East))));
        assert_eq!(offer(&mut gate, 5), Offer::Old);
        assert_eq!(take(&mut gate), None);
    }

    #[test]
    fn two_swapped_datagrams_are_executed_in_order_one_a_tick() {
        let mut gate = ActionGate::new(false);
        assert_eq!(offer(&mut gate, 8), Offer::Kept);
        assert_eq!(offer(&mut gate, 7), Offer::Kept);
        assert_eq!(offer(&mut gate, 9), Offer::Full);
        assert_eq!(take(&mut gate), Some(7));
        assert_eq!(offer(&mut gate, 9), Offer::Kept);
        assert_eq!(take(&mut gate), Some(8));
        assert_eq!(take(&mut gate), Some(9));
        assert_eq!(take(&mut gate), None);
    }

    #[test]
    fn a_no_op_never_shadows_a_late_action_of_its_number() {
        let mut gate = ActionGate::new(false);
        assert_eq!(gate.offer(Instant::ZERO, seq(3), Action::NoOp), Offer::NoOp);
        assert_eq!(offer(&mut gate, 3), Offer::Kept);
        assert_eq!(take(&mut gate), Some(3));
    }

    #[test]
    fn the_circle_is_passed_twice() {
        let mut gate = ActionGate::new(false);
        let mut number = u32::MAX - 3;
        for _ in 0..40 {
            assert_eq!(offer(&mut gate, number), Offer::Kept);
            assert_eq!(offer(&mut gate, number.wrapping_sub(1 << 30)), Offer::Kept);
            assert_eq!(take(&mut gate), Some(number.wrapping_sub(1 << 30)), "first is oldest");
            assert_eq!(take(&mut gate), Some(number));
            number = number.wrapping_add(1 << 29).wrapping_add(1 << 30);
        }
        let last = number.wrapping_sub(1 << 29).wrapping_sub(1 << 30);
        assert_eq!(offer(&mut gate, last.wrapping_add(0x8000_0000)), Offer::Old);
        assert_eq!(offer(&mut gate, last.wrapping_add(0x7FFF_FFFF)), Offer::Kept);
    }

    #[test]
    fn bits_tell_which_were_executed() {
        let mut gate = ActionGate::new(false);
        for number in [10, 11, 13, 14] {
            offer(&mut gate, number);
            take(&mut gate);
        }
        // 14; bit 0: 13, bit 1: 12 (no), bit 2: 11, bit 3: 10.
        assert_eq!(gate.executed(), Some((seq(14), 0b1101)));
        offer(&mut gate, 14 + 32);
        take(&mut gate);
        assert_eq!(gate.executed(), Some((seq(46), 1 << 31)));
        offer(&mut gate, 46 + 33);
        take(&mut gate);
        assert_eq!(gate.executed(), Some((seq(79), 0)));
    }

    #[test]
    fn three_older_actions_over_a_second_show_a_restart() {
        let mut gate = ActionGate::new(true);
        offer(&mut gate, 5000);
        take(&mut gate);
        let mut at = |ms, number| gate.offer(Instant::from_millis(ms), seq(number), EAST);
        assert_eq!(at(1000, 1), Offer::Old);
        assert_eq!(at(1100, 1), Offer::Old);
        assert_eq!(at(1500, 2), Offer::Old);
        assert_eq!(at(2000, 3), Offer::Kept);
        assert_eq!(take(&mut gate), Some(3));
    }

    #[test]
    fn a_newer_action_between_ends_the_suspicion() {
        let mut gate = ActionGate::new(true);
        offer(&mut gate, 5000);
        take(&mut gate);
        let mut at = |ms, number| gate.offer(Instant::from_millis(ms), seq(number), EAST);
        assert_eq!(at(1000, 1), Offer::Old);
        assert_eq!(at(1500, 2), Offer::Old);
        assert_eq!(at(1600, 5001), Offer::Kept);
        assert_eq!(at(2100, 3), Offer::Old);
    }

    #[test]
    fn a_repetition_of_the_last_action_is_never_taken_for_a_restart() {
        let mut gate = ActionGate::new(true);
        offer(&mut gate, 5000);
        take(&mut gate);
        for (ms, number) in [(0, 4998), (10, 4999), (300, 5000), (1100, 5000)] {
            assert_eq!(gate.offer(Instant::from_millis(ms), seq(number), EAST), Offer::Old);
        }
    }

    #[test]
    fn a_new_process_that_joined_with_the_token_is_heard_after_a_second() {
        let mut gate = ActionGate::new(false);
        offer(&mut gate, 5000);
        take(&mut gate);
        gate.joined_again();
        let mut at = |ms, number| gate.offer(Instant::from_millis(ms), seq(number), EAST);
        assert_eq!([at(0, 7), at(500, 8)], [Offer::Old; 2]);
        assert_eq!(at(1000, 9), Offer::Kept);
        take(&mut gate);
        let mut at = |ms, number| gate.offer(Instant::from_millis(ms), seq(number), EAST);
        assert_eq!([at(2000, 1), at(2500, 2), at(3000, 3)], [Offer::Old; 3], "once");
    }

    #[test]
    fn late_duplicates_do_not_restart_a_joined_session() {
        let mut gate = ActionGate::new(false);
        offer(&mut gate, 5000);
        take(&mut gate);
        for (ms, number) in [(0, 4990), (600, 4991), (1200, 4992), (2000, 4993)] {
            assert_eq!(gate.offer(Instant::from_millis(ms), seq(number), EAST), Offer::Old);
        }
    }

    proptest::proptest! {
        /// Against a naive model with unbounded numbers: never twice, never backwards.
        #[test]
        fn any_arrival_order_executes_ascending_and_once(
            start: u32,
            arrivals in proptest::collection::vec((0u64..60, proptest::bool::ANY), 1..200),
        ) {
            let mut gate = ActionGate::new(false);
            let mut executed: Vec<u64> = Vec::new();
            for (number, tick) in arrivals {
                let _ = gate.offer(Instant::ZERO, seq(start.wrapping_add(number as u32)), EAST);
                if tick && let Some((sequence, _)) = gate.take() {
                    executed.push(u64::from(sequence.get().wrapping_sub(start)));
                }
            }
            proptest::prop_assert!(executed.is_sorted_by(|a, b| a < b), "{:?}", executed);
            if let (Some((last, bits)), Some(newest)) = (gate.executed(), executed.last()) {
                proptest::prop_assert_eq!(u64::from(last.get().wrapping_sub(start)), *newest);
                for i in 0..32 {
                    let was = newest.checked_sub(1 + i).is_some_and(|n| executed.contains(&n));
                    proptest::prop_assert_eq!(bits >> i & 1 == 1, was, "bit {}", i);
                }
            }
        }
    }
}
