//! Reading every record of a store once: what is there, and what cannot be read.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::{Bound, ControlFlow};

use caves_store::{Backend, RecordError, Table, check, chunk};
use caves_world::{ChunkPos, EXTENT_FIRST, EXTENT_LAST};

use super::file::{DiskError, RedbFile};

/// Keys that a message names, of each table.
const NAMED: usize = 3;

/// A record as it was found.
pub(super) struct Found<'r> {
    pub(super) table: Table,
    pub(super) key: &'r [u8],
    pub(super) value: &'r [u8],
    /// Why it cannot be read, if it cannot.
    pub(super) fault: Option<RecordError>,
}

/// How many records of each table can be read.
#[derive(Debug, Default)]
pub(super) struct Survey {
    tables: Vec<Counts>,
}

#[derive(Debug)]
struct Counts {
    table: Table,
    /// As the table itself says, if it can.
    said: Option<u64>,
    readable: u64,
    unreadable: u64,
    /// The first few that cannot be read.
    named: Vec<String>,
}

impl Counts {
    fn total(&self) -> u64 {
        self.said.unwrap_or(0).max(self.readable + self.unreadable)
    }

    fn lost(&self) -> u64 {
        self.total() - self.readable
    }
}

impl Survey {
    /// Reads all of a file whose pages are as they were written, in order.
    pub(super) fn of(file: &RedbFile, each: &mut dyn FnMut(Found<'_>)) -> Result<Self, DiskError> {
        let mut survey = Self::default();
        for table in Table::ALL {
            let mut counts = Counts::new(table, Some(file.count(table)?));
            file.walk(table, &mut |key, value| {
                counts.take(key, value, each);
                ControlFlow::Continue(())
            })?;
            survey.tables.push(counts);
        }
        Ok(survey)
    }

    /// Reads what can be read of a file that has pages which are not as they were written. Each record
    /// vouches for itself and its key; where one page stops the way, others are tried.
    pub(super) fn of_damaged(file: &RedbFile, most: u64, each: &mut dyn FnMut(Found<'_>)) -> Self {
        let mut survey = Self::default();
        for table in Table::ALL {
            let mut counts =
                Counts::new(table, file.count(table).ok().filter(|&said| said <= most));
            let mut seen = BTreeSet::new();
            for (range, backwards) in ways(table) {
                let (from, to) = (as_bound(&range.0), as_bound(&range.1));
                let mut left = most;
                let walked = file.walk_range(table, (from, to), backwards, &mut |key, value| {
                    if seen.insert(key.to_vec()) {
                        counts.take(key, value, each);
                    }
                    // Pages that name each other would go on for ever.
                    left = left.saturating_sub(1);
                    if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                });
                if walked.is_ok() && is_whole(&range) && counts.said == Some(seen.len() as u64) {
                    break;
                }
            }
            survey.tables.push(counts);
        }
        survey
    }

    /// Whether all can be read.
    pub(super) fn is_whole(&self) -> bool {
        self.lost() == 0
    }

    /// How many records cannot be read.
    pub(super) fn lost(&self) -> u64 {
        self.tables.iter().map(Counts::lost).sum()
    }

    /// How many records there are, or were.
    pub(super) fn total(&self) -> u64 {
        self.tables.iter().map(Counts::total).sum()
    }

    /// How many records of a table can be read.
    pub(super) fn readable(&self, table: Table) -> u64 {
        self.tables
            .iter()
            .filter(|counts| counts.table == table)
            .map(|counts| counts.readable)
            .sum()
    }
}

impl Counts {
    fn new(table: Table, said: Option<u64>) -> Self {
        Self { table, said, readable: 0, unreadable: 0, named: Vec::new() }
    }

    fn take(&mut self, key: &[u8], value: &[u8], each: &mut dyn FnMut(Found<'_>)) {
        let fault = check(self.table, key, value).err();
        match &fault {
            None => self.readable += 1,
            Some(fault) => {
                self.unreadable += 1;
                if self.named.len() < NAMED {
                    self.named.push(format!("{}, {fault}", name(self.table, key)));
                }
            }
        }
        each(Found { table: self.table, key, value, fault });
    }
}

/// What people call a key.
pub(super) fn name(table: Table, key: &[u8]) -> String {
    let text = String::from_utf8_lossy(key);
    match table {
        Table::Chunks => match chunk::pos_of(key) {
            Some(ChunkPos { x, y }) => format!("chunk ({x},{y})"),
            None => format!("chunk with the key {}", hex(key)),
        },
        Table::Players => format!("player {text:?}"),
        Table::Bans => format!("ban {text:?}"),
        Table::Meta => format!("record {text:?}"),
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

type KeyRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// All of a table from either end, then in slices.
fn ways(table: Table) -> impl Iterator<Item = (KeyRange, bool)> {
    let whole = || (Bound::Unbounded, Bound::Unbounded);
    let slices: Vec<KeyRange> = match table {
        Table::Chunks => (EXTENT_FIRST..=EXTENT_LAST).map(column).collect(),
        _ => (0..=255).map(|first| slice(vec![first], vec![first, 255, 255])).collect(),
    };
    let slices = slices.into_iter().flat_map(|range| [(range.clone(), false), (range, true)]);
    [(whole(), false), (whole(), true)].into_iter().chain(slices)
}

fn column(x: i32) -> KeyRange {
    let key = |y| chunk::key(ChunkPos { x, y }).to_vec();
    slice(key(EXTENT_FIRST), key(EXTENT_LAST))
}

fn slice(first: Vec<u8>, last: Vec<u8>) -> KeyRange {
    (Bound::Included(first), Bound::Included(last))
}

fn as_bound(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

fn is_whole(range: &KeyRange) -> bool {
    *range == (Bound::Unbounded, Bound::Unbounded)
}

impl fmt::Display for Survey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for counts in self.tables.iter().filter(|counts| counts.lost() > 0) {
            let (lost, total) = (counts.lost(), counts.total());
            write!(
                f,
                "{comma}{lost} of {total} records of {} cannot be read",
                counts.table.name()
            )?;
            if !counts.named.is_empty() {
                let more = if lost > counts.named.len() as u64 { ", …" } else { "" };
                write!(f, " ({}{more})", counts.named.join("; "))?;
            }
            comma = ", ";
        }
        if self.is_whole() {
            write!(
                f,
                "all {} records can be read, but not all of what holds them together",
                self.total()
            )?;
        }
        Ok(())
    }
}
