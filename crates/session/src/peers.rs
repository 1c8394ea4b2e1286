//! A table of sessions with a fixed number of slots.

use std::fmt;

/// One session for as long as it lives. A slot that is used again gives another id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId {
    slot: u32,
    generation: u32,
}

impl SessionId {
    /// A small number, unique among the living: an index for the caller's own table.
    pub const fn slot(self) -> usize {
        self.slot as usize
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.slot, self.generation)
    }
}

/// Slots that are filled lowest first and emptied in any order.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    slots: Vec<Slot<T>>,
    /// Empty slots, used last in first out.
    free: Vec<u32>,
    limit: usize,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    entry: Option<T>,
}

impl<T> Slots<T> {
    /// A table of at most `limit` entries; it grows as they come.
    pub(crate) const fn new(limit: usize) -> Self {
        Self { slots: Vec::new(), free: Vec::new(), limit }
    }

    /// Puts an entry into a free slot, or gives `None` when all are taken.
    pub(crate) fn insert(&mut self, entry: T) -> Option<SessionId> {
        if let Some(slot) = self.free.pop() {
            let place = &mut self.slots[slot as usize];
            place.generation = place.generation.wrapping_add(1);
            place.entry = Some(entry);
            return Some(SessionId { slot, generation: place.generation });
        }
        if self.slots.len() >= self.limit {
            return None;
        }
        let slot = u32::try_from(self.slots.len()).ok()?;
        self.slots.push(Slot { generation: 0, entry: Some(entry) });
        Some(SessionId { slot, generation: 0 })
    }

    pub(crate) fn get(&self, id: SessionId) -> Option<&T> {
        let slot = self.slots.get(id.slot())?;
        slot.entry.as_ref().filter(|_| slot.generation == id.generation)
    }

    pub(crate) fn get_mut(&mut self, id: SessionId) -> Option<&mut T> {
        let slot = self.slots.get_mut(id.slot())?;
        slot.entry.as_mut().filter(|_| slot.generation == id.generation)
    }

    pub(crate) fn remove(&mut self, id: SessionId) -> Option<T> {
        self.get(id)?;
        let entry = self.slots[id.slot()].entry.take();
        self.free.push(id.slot);
        entry
    }

    /// Another limit from now on. Slots that there are already stay, and are filled again.
    pub(crate) const fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Entries there are.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// All entries by slot.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SessionId, &T)> {
        self.slots.iter().enumerate().filter_map(|(place, slot)| {
            let id = SessionId { slot: place as u32, generation: slot.generation };
            Some((id, slot.entry.as_ref()?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_id_does_not_open_a_slot_that_is_used_again() {
        let mut slots = Slots::new(2);
        let a = slots.insert('a').unwrap();
        let b = slots.insert('b').unwrap();
        assert_eq!(slots.insert('c'), None);
        assert_eq!(slots.remove(a), Some('a'));
        assert_eq!(slots.remove(a), None);
        let c = slots.insert('c').unwrap();
        assert_eq!(c.slot(), a.slot());
        assert_eq!((slots.get(a), slots.get(c), slots.get(b)), (None, Some(&'c'), Some(&'b')));
        assert_eq!(slots.len(), 2);
        assert!(slots.iter().map(|(id, _)| id).eq([c, b]));
    }
}
