//! Copies of a step that go out before its successor.
//!
//! A server executes an action only if it is newer than the last one (R18), and a walking player
//! has a new one each tick. A step that is lost on the way is therefore overtaken a tick later, and
//! lost for good: the player, who has seen itself go, is set back by a tile. Sending again is always
//! safe, so a step is sent more than once while it is the newest, the last time in the same moment
//! as its successor, just before it. Only when all of these are lost does it stay behind.
//!
//! ```text
//!   step 7   x . . . x . . . x                    . a sixteenth of a tick
//!   step 8                   x . . . x . . . x    x sent: at once and, here, two copies
//!   step 9                                   x . . . x . . . x
//!            |               |
//!            0               a tick
//! ```
//!
//! How many copies there are follows from what is lost; over a good network there are none.

use std::collections::VecDeque;
use std::time::Duration;

use caves_link::time::{Deadline, Instant};

/// Copies of a step, at most.
const MOST: u32 = 4;

/// When actions under way got their numbers, and which of them are to be copied.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// In the order of their numbers; as many as there are actions under way.
    sent: VecDeque<Sent>,
}

#[derive(Debug, Clone, Copy)]
struct Sent {
    at: Instant,
    left: u32,
    /// Between two copies.
    gap: Duration,
    next: Instant,
}

impl Copies {
    /// The next action goes out at `now`, and then `count` copies until a tick later.
    pub(super) fn push(&mut self, now: Instant, count: u32, tick: Duration) {
        let gap = tick / count.max(1);
        self.sent.push_back(Sent { at: now, left: count, gap, next: now + gap });
    }

    /// The oldest action is under way no more.
    pub(super) fn pop(&mut self) {
        self.sent.pop_front();
    }

    /// Since when the oldest action is under way.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.sent.front().map(|sent| sent.at)
    }

    /// All that is under way is so since `now`.
    pub(super) fn renew(&mut self, now: Instant) {
        self.sent.iter_mut().for_each(|sent| sent.at = now);
    }

    /// The place of the oldest action of which a copy is to be sent at `now`; it counts as sent.
    pub(super) fn poll(&mut self, now: Instant) -> Option<usize> {
        let place = self.sent.iter().position(|sent| sent.left > 0 && sent.next <= now)?;
        let sent = self.sent.get_mut(place)?;
        sent.left -= 1;
        sent.next += sent.gap;
        Some(place)
    }

    /// When the next copy is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        Deadline::earliest(self.sent.iter().map(|sent| (sent.left > 0).then_some(sent.next)))
    }
}

/// How many copies a step needs so that it is rarely lost: four in a thousand at most, up to a loss
/// of 33 %. `loss` is what is lost of the states, in percent. What comes down says little of what goes
/// up, nor of the order there: one copy more where a number was `overtaken` of late.
pub(super) fn needed(loss: u32, overtaken: bool) -> u32 {
    let by_loss = match loss {
        0 => 0,
        1..=3 => 1,
        4..=12 => 2,
        13..=25 => 3,
        _ => MOST,
    };
    (by_loss + u32::from(overtaken)).min(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(100);

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// What is copied when, to the millisecond.
    fn run(copies: &mut Copies, until: u64) -> Vec<(u64, usize)> {
        let mut out = Vec::new();
        for now in 0..=until {
            while let Some(place) = copies.poll(at(now)) {
                out.push((now, place));
            }
            assert!(copies.deadline().is_none_or(|due| due > at(now)));
        }
        out
    }

    #[test]
    fn copies_are_spread_over_a_tick_and_the_last_is_there_before_the_successor() {
        let mut copies = Copies::default();
        copies.push(at(0), 2, TICK);
        assert_eq!(copies.deadline(), Some(at(50)));
        assert_eq!(run(&mut copies, 300), [(50, 0), (100, 0)]);
        copies.push(at(0), 4, TICK);
        assert_eq!(run(&mut copies, 300), [(25, 1), (50, 1), (75, 1), (100, 1)]);
        copies.push(at(0), 1, TICK);
        assert_eq!(run(&mut copies, 300), [(100, 2)]);
        assert_eq!(copies.deadline(), None);
    }

    #[test]
    fn without_copies_nothing_is_ever_due() {
        let mut copies = Copies::default();
        copies.push(at(0), 0, TICK);
        assert_eq!((copies.deadline(), copies.poll(at(10_000))), (None, None));
    }

    #[test]
    fn what_is_settled_is_not_copied_and_the_older_goes_first() {
        let mut copies = Copies::default();
        for start in [0, 10, 20] {
            copies.push(at(start), 1, TICK);
        }
        assert_eq!(copies.oldest(), Some(at(0)));
        copies.pop();
        assert_eq!((copies.oldest(), copies.deadline()), (Some(at(10)), Some(at(110))));
        let late = std::iter::from_fn(|| copies.poll(at(500))).collect::<Vec<_>>();
        assert_eq!(late, [0, 1]);
        copies.renew(at(600));
        assert_eq!(copies.oldest(), Some(at(600)));
    }

    #[test]
    fn four_in_a_thousand_steps_are_lost_at_most_up_to_a_third_of_all_datagrams() {
        for loss in 1..=33 {
            let sendings = 1 + needed(loss, false);
            assert!((f64::from(loss) / 100.0).powf(sendings.into()) <= 0.004, "{loss} %");
        }
        assert_eq!([needed(0, false), needed(0, true), needed(100, true)], [0, 1, 4]);
    }
}
