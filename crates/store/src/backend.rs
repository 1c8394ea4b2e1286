//! What a store has to do, and one that lives in memory.
//!
//! ```
//! use caves_store::{Backend, Batch, Memory, Table};
//! use std::ops::ControlFlow;
//!
//! let mut store = Memory::default();
//! let mut batch = Batch::default();
//! batch.put(Table::Bans, b"b".to_vec(), vec![1]);
//! batch.put(Table::Bans, b"a".to_vec(), vec![2]);
//! store.commit(&batch).unwrap();
//!
//! let mut keys = Vec::new();
//! store.walk(Table::Bans, &mut |key, _| {
//!     keys.extend_from_slice(key);
//!     ControlFlow::Continue(())
//! }).unwrap();
//! assert_eq!(keys, b"ab");
//! ```

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::ControlFlow;

/// The tables of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Table {
    /// The world as a whole, and the content names.
    Meta,
    /// Visited chunks, by position.
    Chunks,
    /// Registered players, by folded name.
    Players,
    /// Bans, by target.
    Bans,
}

impl Table {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Meta, Self::Chunks, Self::Players, Self::Bans];

    /// What it is called in a store and in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Meta => "meta",
            Self::Chunks => "chunks",
            Self::Players => "players",
            Self::Bans => "bans",
        }
    }
}

/// What [`Backend::walk`] calls with each key and value.
pub type Each<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// A store: named tables of byte keys and byte values.
pub trait Backend {
    /// What can go wrong.
    type Error;

    /// The value of a key.
    ///
    /// # Errors
    /// The store cannot be read.
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, Self::Error>;

    /// Calls `each` with every key and value, ascending by key, until it breaks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn walk(&self, table: Table, each: &mut Each<'_>) -> Result<(), Self::Error>;

    /// Makes all changes of `batch`, in order, or none.
    ///
    /// # Errors
    /// Nothing was changed.
    fn commit(&mut self, batch: &Batch) -> Result<(), Self::Error>;
}

/// Changes that happen together or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    changes: Vec<Change>,
    bytes: usize,
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where.
    pub table: Table,
    /// The key.
    pub key: Vec<u8>,
    /// The new value; `None` takes the key out.
    pub value: Option<Vec<u8>>,
}

impl Batch {
    /// Sets the value of a key.
    pub fn put(&mut self, table: Table, key: Vec<u8>, value: Vec<u8>) {
        self.push(Change { table, key, value: Some(value) });
    }

    /// Takes a key out.
    pub fn delete(&mut self, table: Table, key: Vec<u8>) {
        self.push(Change { table, key, value: None });
    }

    /// The changes in order.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Keys and values in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    fn push(&mut self, change: Change) {
        self.bytes += change.key.len() + change.value.as_ref().map_or(0, Vec::len);
        self.changes.push(change);
    }
}

/// A store in memory, for tests and for worlds that end with the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    entries: BTreeMap<(Table, Vec<u8>), Vec<u8>>,
}

impl Backend for Memory {
    type Error = Infallible;

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, Infallible> {
        Ok(self.entries.get(&(table, key.to_vec())).cloned())
    }

    fn walk(&self, table: Table, each: &mut Each<'_>) -> Result<(), Infallible> {
        let from = self.entries.range((table, Vec::new())..);
        for ((_, key), value) in from.take_while(|((of, _), _)| *of == table) {
            if each(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), Infallible> {
        for Change { table, key, value } in batch.changes() {
            let place = (*table, key.clone());
            match value {
                Some(value) => self.entries.insert(place, value.clone()),
                None => self.entries.remove(&place),
            };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn batches_agree_with_a_list_of_pairs(
            batches in proptest::collection::vec(
                proptest::collection::vec((0usize..4, 0u8..6, proptest::option::of(any::<u8>())), 0..9),
                0..9,
            )
        ) {
            let mut store = Memory::default();
            let mut model: Vec<(Table, u8, u8)> = Vec::new();
            for changes in batches {
                let mut batch = Batch::default();
                for (table, key, value) in changes {
                    let table = Table::ALL[table];
                    model.retain(|&(of, held, _)| (of, held) != (table, key));
                    match value {
                        Some(value) => {
                            model.push((table, key, value));
                            batch.put(table, vec![key], vec![value]);
                        }
                        None => batch.delete(table, vec![key]),
                    }
                }
                prop_assert_eq!(batch.is_empty(), batch.bytes() == 0);
                let Ok(()) = store.commit(&batch);
            }
            model.sort_unstable();
            let mut walked = Vec::new();
            for table in Table::ALL {
                let Ok(()) = store.walk(table, &mut |key, value| {
                    walked.push((table, key[0], value[0]));
                    ControlFlow::Continue(())
                });
            }
            prop_assert_eq!(&walked, &model);
            for (table, key, value) in model {
                prop_assert_eq!(store.get(table, &[key]), Ok(Some(vec![value])));
            }
        }
    }

    #[test]
    fn a_walk_that_breaks_sees_no_more() {
        let mut store = Memory::default();
        let mut batch = Batch::default();
        for key in 0..5 {
            batch.put(Table::Chunks, vec![key], vec![]);
        }
        let Ok(()) = store.commit(&batch);
        let mut seen = 0;
        let Ok(()) = store.walk(Table::Chunks, &mut |_, _| {
            seen += 1;
            if seen == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(seen, 2);
    }
}
