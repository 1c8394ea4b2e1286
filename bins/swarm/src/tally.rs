//! What a thread counts, and what all of them have counted.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::check::Failures;
use crate::histogram::Histogram;
use crate::pace::Ticks;
use crate::walker::Deeds;

/// Counts by reason.
pub(crate) type Reasons = BTreeMap<String, u64>;

/// Datagrams one way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Traffic {
    pub(crate) datagrams: u64,
    /// Of UDP payload.
    pub(crate) bytes: u64,
}

/// The least and the most of some counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Range {
    pub(crate) min: u64,
    pub(crate) max: u64,
}

/// What came and went while all clients were there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Steady {
    pub(crate) seconds: f64,
    pub(crate) ticks: u64,
    pub(crate) up: Traffic,
    pub(crate) down: Traffic,
}

/// Sums over clients.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// Clients that were let in.
    pub(crate) joined: u64,
    /// Those that have a session in the end.
    pub(crate) playing: u64,
    /// From the first Hello to the Welcome, in microseconds.
    pub(crate) join: Histogram,
    /// Refusals, each of them.
    pub(crate) refused: Reasons,
    /// Clients that never came in, by the last refusal.
    pub(crate) left_out: Reasons,
    pub(crate) lost: Reasons,
    /// Sessions that went on after a silence.
    pub(crate) resumed: u64,
    pub(crate) ticks: Ticks,
    /// Ticks of each client.
    pub(crate) each: Range,
    /// Updates that became complete.
    pub(crate) updates: u64,
    /// Ticks whose entities never became complete.
    pub(crate) incomplete: u64,
    pub(crate) up: Traffic,
    pub(crate) down: Traffic,
    /// Dropped on purpose.
    pub(crate) lost_up: u64,
    pub(crate) lost_down: u64,
    /// What the kernel did not take.
    pub(crate) unsent: u64,
    /// Word that something did not arrive.
    pub(crate) undelivered: u64,
    /// What the kernel had no room to keep for us, where it tells.
    pub(crate) overrun: Option<u64>,
    pub(crate) deeds: Deeds,
    pub(crate) failures: Failures,
    pub(crate) steady: Steady,
}

impl Traffic {
    pub(crate) const fn add(&mut self, len: usize) {
        self.datagrams += 1;
        self.bytes += len as u64;
    }

    pub(crate) const fn merge(&mut self, other: &Self) {
        self.datagrams += other.datagrams;
        self.bytes += other.bytes;
    }

    const fn since(self, earlier: Self) -> Self {
        let (datagrams, bytes) = (self.datagrams - earlier.datagrams, self.bytes - earlier.bytes);
        Self { datagrams, bytes }
    }
}

impl Steady {
    /// What is more here than in `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self {
            seconds: self.seconds - earlier.seconds,
            ticks: self.ticks - earlier.ticks,
            up: self.up.since(earlier.up),
            down: self.down.since(earlier.down),
        }
    }

    /// Adds what another thread counted at the same time.
    fn merge(&mut self, other: &Self) {
        self.seconds = self.seconds.max(other.seconds);
        self.ticks += other.ticks;
        self.up.merge(&other.up);
        self.down.merge(&other.down);
    }
}

impl Default for Range {
    /// Of nothing.
    fn default() -> Self {
        Self { min: u64::MAX, max: 0 }
    }
}

impl Range {
    pub(crate) fn add(&mut self, value: u64) {
        self.merge(&Self { min: value, max: value });
    }

    fn merge(&mut self, other: &Self) {
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

impl Tally {
    pub(crate) fn refused(&mut self, reason: &str) {
        count(&mut self.refused, reason, 1);
    }

    pub(crate) fn left_out(&mut self, reason: &str) {
        count(&mut self.left_out, reason, 1);
    }

    pub(crate) fn lost(&mut self, reason: &str) {
        count(&mut self.lost, reason, 1);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.joined += other.joined;
        self.playing += other.playing;
        self.join.merge(&other.join);
        for (own, others) in [
            (&mut self.refused, &other.refused),
            (&mut self.left_out, &other.left_out),
            (&mut self.lost, &other.lost),
        ] {
            others.iter().for_each(|(reason, more)| count(own, reason, *more));
        }
        self.resumed += other.resumed;
        self.ticks.merge(&other.ticks);
        self.each.merge(&other.each);
        self.updates += other.updates;
        self.incomplete += other.incomplete;
        self.up.merge(&other.up);
        self.down.merge(&other.down);
        self.lost_up += other.lost_up;
        self.lost_down += other.lost_down;
        self.unsent += other.unsent;
        self.undelivered += other.undelivered;
        self.overrun = self.overrun.zip(other.overrun).map(|(own, more)| own + more);
        self.deeds.merge(&other.deeds);
        self.failures.merge(&other.failures);
        self.steady.merge(&other.steady);
    }

    /// How it stands so many seconds after the start.
    pub(crate) const fn mark(&self, seconds: f64) -> Steady {
        Steady { seconds, ticks: self.ticks.received, up: self.up, down: self.down }
    }
}

/// There are as many reasons as the protocol has, and numbers of one byte.
fn count(reasons: &mut Reasons, reason: &str, more: u64) {
    match reasons.get_mut(reason) {
        Some(count) => *count += more,
        None => {
            reasons.insert(reason.to_owned(), more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Failure;

    #[test]
    fn the_steady_part_is_what_lies_between_two_marks() {
        let mut tally = Tally::default();
        tally.down.add(1000);
        tally.ticks.received = 4;
        let begun = tally.mark(5.0);
        tally.down.add(72);
        tally.down.add(28);
        tally.ticks.received = 9;
        let mut steady = tally.mark(7.5).since(&begun);
        let down = Traffic { datagrams: 2, bytes: 100 };
        assert_eq!(steady, Steady { seconds: 2.5, ticks: 5, up: Traffic::default(), down });
        steady.merge(&Steady { seconds: 2.4, ticks: 1, up: down, down });
        let twice = Traffic { datagrams: 4, bytes: 200 };
        assert_eq!(steady, Steady { seconds: 2.5, ticks: 6, up: down, down: twice });
    }

    #[test]
    fn merged_tallies_are_the_sum_and_reasons_are_kept_apart() {
        let mut a = Tally { joined: 3, overrun: Some(1), ..Tally::default() };
        a.refused("full");
        a.each.add(30);
        a.up.add(74);
        a.failures.add(Failure::Tiles);
        let mut b = Tally { joined: 4, overrun: Some(0), ..Tally::default() };
        b.refused("full");
        b.refused("banned");
        b.each.add(28);
        b.up.add(18);
        a.merge(&b);
        assert_eq!((a.joined, a.overrun), (7, Some(1)));
        assert_eq!(a.refused, BTreeMap::from([("banned".into(), 1), ("full".into(), 2)]));
        assert_eq!(a.each, Range { min: 28, max: 30 });
        assert_eq!(a.up, Traffic { datagrams: 2, bytes: 92 });
        assert_eq!(a.failures.in_all(), 1);
        a.merge(&Tally::default());
        assert_eq!(a.overrun, None, "one that does not know makes the sum unknown");
    }
}
