//! When to look at whom: ten thousand clients are not asked in turn whether something is due.

use std::collections::BTreeSet;

use caves_link::time::Instant;

/// One alarm each, the earliest first.
#[derive(Debug, Default)]
pub(crate) struct Alarms {
    order: BTreeSet<(Instant, usize)>,
    /// By number: the same moment as in `order`.
    at: Vec<Option<Instant>>,
}

impl Alarms {
    /// Wakes `who` by `when`. An earlier alarm stays: it costs one look, and most deadlines only
    /// move away, so that most calls change nothing.
    pub(crate) fn set(&mut self, who: usize, when: Instant) {
        if self.at.len() <= who {
            self.at.resize(who + 1, None);
        }
        match self.at[who] {
            Some(old) if old <= when => return,
            Some(old) => self.order.remove(&(old, who)),
            None => false,
        };
        self.order.insert((when, who));
        self.at[who] = Some(when);
    }

    /// Somebody whose alarm is due; it is gone then.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<usize> {
        let &(at, who) = self.order.first()?;
        if at > now {
            return None;
        }
        self.order.pop_first();
        self.at[who] = None;
        Some(who)
    }

    /// The first alarm.
    pub(crate) fn first(&self) -> Option<Instant> {
        self.order.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caves_session::{Random, SplitMix};

    #[test]
    fn each_is_woken_at_the_earliest_moment_that_was_set() {
        let mut random = SplitMix::new(7);
        let (mut alarms, mut naive) = (Alarms::default(), [None::<u64>; 20]);
        let mut woken = 0;
        for now in 0..5_000u64 {
            for _ in 0..random.next_u64() % 4 {
                let (who, when) = ((random.next_u64() % 20) as usize, now + random.next_u64() % 50);
                alarms.set(who, Instant::from_millis(when));
                naive[who] = Some(naive[who].map_or(when, |old| old.min(when)));
            }
            let first = naive.iter().flatten().min().copied();
            assert_eq!(alarms.first(), first.map(Instant::from_millis));
            while let Some(who) = alarms.pop_due(Instant::from_millis(now)) {
                assert!(naive[who].take().is_some_and(|at| at <= now), "{who} at {now}");
                woken += 1;
            }
            assert!(naive.iter().flatten().all(|at| *at > now), "nobody is forgotten");
        }
        assert!(woken > 1_000);
    }
}
