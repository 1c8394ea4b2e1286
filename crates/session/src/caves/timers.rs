//! When which session is to be looked at.

use std::collections::VecDeque;

use caves_link::time::Instant;

use crate::peers::SessionId;

/// At most one moment a session, the next one first.
///
/// What is set is either soon (an event to repeat) or late (a silence to judge), so it goes in near one of the ends,
/// where a queue moves little; and unlike a tree it makes no garbage when entries come and go.
#[derive(Debug, Default)]
pub(super) struct Timers(VecDeque<(Instant, SessionId)>);

impl Timers {
    pub(super) fn insert(&mut self, due: Instant, id: SessionId) {
        if let Err(at) = self.0.binary_search(&(due, id)) {
            self.0.insert(at, (due, id));
        }
    }

    pub(super) fn remove(&mut self, due: Instant, id: SessionId) {
        if let Ok(at) = self.0.binary_search(&(due, id)) {
            self.0.remove(at);
        }
    }

    /// The next moment of all.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.front().map(|(due, _)| *due)
    }

    /// Takes out the next session whose moment has come.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<SessionId> {
        self.0.pop_front_if(|(due, _)| *due <= now).map(|(_, id)| id)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::Slots;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn timers_agree_with_a_plain_list(
            operations in prop::collection::vec((0usize..8, 0u64..20, 0u8..4), 0..200)
        ) {
            let mut slots = Slots::new(8);
            let ids: Vec<_> = (0..8).map(|_| slots.insert(()).unwrap()).collect();
            let mut timers = Timers::default();
            let mut model = Vec::<(u64, SessionId)>::new();
            for (place, at, what) in operations {
                let id = ids[place];
                let due = Instant::from_micros(at);
                match what {
                    0 | 1 if !model.contains(&(at, id)) => {
                        timers.insert(due, id);
                        model.push((at, id));
                    }
                    2 => {
                        timers.remove(due, id);
                        model.retain(|entry| *entry != (at, id));
                    }
                    _ => {
                        let first = model.iter().filter(|(due, _)| *due <= at).min().copied();
                        prop_assert_eq!(timers.pop_due(due), first.map(|(_, id)| id));
                        model.retain(|entry| Some(*entry) != first);
                    }
                }
                prop_assert_eq!(timers.len(), model.len());
                let next = model.iter().map(|(due, _)| Instant::from_micros(*due)).min();
                prop_assert_eq!(timers.next(), next);
            }
        }
    }
}
