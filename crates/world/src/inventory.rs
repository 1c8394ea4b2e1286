//! What a player carries or a chest holds.
//!
//! ```
//! use caves_world::{Inventory, KindId};
//!
//! let mut bag = Inventory::default();
//! assert_eq!(bag.add(KindId(8), 60_000), 0);
//! assert_eq!(bag.add(KindId(8), 10_000), 4_465); // a count ends at 65535
//! assert_eq!(bag.remove(KindId(8), 5), 5);
//! assert_eq!(bag.iter().collect::<Vec<_>>(), [(KindId(8), 65_530)]);
//! ```

use crate::content::KindId;

/// Kinds of items in one inventory: with 4 bytes each they fit a detail (protocol, section 3, tag 0x06).
pub const MAX_KINDS: usize = 32;

/// At most 32 kinds of items with their counts, ascending by kind. No count is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    entries: Vec<(KindId, u16)>,
}

impl Inventory {
    /// The count of one kind.
    pub fn count(&self, item: KindId) -> u16 {
        self.find(item).map_or(0, |at| self.entries[at].1)
    }

    /// Adds what fits and returns what does not.
    pub fn add(&mut self, item: KindId, count: u16) -> u16 {
        if count == 0 {
            return 0;
        }
        match self.find(item) {
            Ok(at) => {
                let held = &mut self.entries[at].1;
                let fits = count.min(u16::MAX - *held);
                *held += fits;
                count - fits
            }
            Err(_) if self.entries.len() >= MAX_KINDS => count,
            Err(at) => {
                self.entries.insert(at, (item, count));
                0
            }
        }
    }

    /// Takes out up to `count` and returns how many.
    pub fn remove(&mut self, item: KindId, count: u16) -> u16 {
        let Ok(at) = self.find(item) else { return 0 };
        let held = &mut self.entries[at].1;
        let taken = count.min(*held);
        *held -= taken;
        if *held == 0 {
            self.entries.remove(at);
        }
        taken
    }

    /// Moves all that fits from `self` into `to` and returns what moved, ascending by kind. The rest stays.
    pub fn move_into(&mut self, to: &mut Inventory) -> Vec<(KindId, u16)> {
        let mut moved = Vec::new();
        for (item, count) in std::mem::take(&mut self.entries) {
            let left = to.add(item, count);
            if left < count {
                moved.push((item, count - left));
            }
            if left > 0 {
                self.entries.push((item, left));
            }
        }
        moved
    }

    /// Kinds and counts, ascending by kind.
    pub fn iter(&self) -> impl Iterator<Item = (KindId, u16)> {
        self.entries.iter().copied()
    }

    /// How many kinds there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn find(&self, item: KindId) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&item, |&(kind, _)| kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn thirty_third_kind_stays_outside_but_known_kinds_still_fit() {
        let mut bag = Inventory::default();
        for kind in 0..32 {
            assert_eq!(bag.add(KindId(kind), 1), 0);
        }
        assert_eq!(bag.add(KindId(32), 7), 7);
        assert_eq!(bag.add(KindId(31), 7), 0);
        assert_eq!((bag.len(), bag.count(KindId(31)), bag.count(KindId(32))), (32, 8, 0));
    }

    #[test]
    fn what_does_not_fit_stays_in_the_chest() {
        let (mut chest, mut bag) = (Inventory::default(), Inventory::default());
        for kind in 0..32 {
            bag.add(KindId(kind), 65_530);
        }
        chest.add(KindId(3), 9);
        chest.add(KindId(40), 2);
        chest.add(KindId(5), 1);
        assert_eq!(chest.move_into(&mut bag), [(KindId(3), 5), (KindId(5), 1)]);
        assert_eq!(chest.iter().collect::<Vec<_>>(), [(KindId(3), 4), (KindId(40), 2)]);
        assert!(chest.move_into(&mut bag).is_empty());
    }

    proptest! {
        #[test]
        fn inventory_agrees_with_a_plain_map(
            operations in proptest::collection::vec((any::<bool>(), 0u16..40, any::<u16>()), 0..200)
        ) {
            let mut bag = Inventory::default();
            let mut model = BTreeMap::<u16, u32>::new();
            for (adds, kind, count) in operations {
                let held = model.get(&kind).copied().unwrap_or(0);
                let count32 = u32::from(count);
                if adds {
                    let room = if held > 0 || model.len() < 32 { 65_535 - held } else { 0 };
                    let fits = count32.min(room);
                    prop_assert_eq!(u32::from(bag.add(KindId(kind), count)), count32 - fits);
                    model.insert(kind, held + fits);
                } else {
                    let taken = count32.min(held);
                    prop_assert_eq!(u32::from(bag.remove(KindId(kind), count)), taken);
                    model.insert(kind, held - taken);
                }
                model.retain(|_, count| *count > 0);
                let expected: Vec<_> = model.iter().map(|(&k, &n)| (KindId(k), n as u16)).collect();
                prop_assert_eq!(bag.iter().collect::<Vec<_>>(), expected);
                prop_assert_eq!(bag.is_empty(), model.is_empty());
            }
        }
    }
}
