//! Records as bytes.
//!
//! ```text
//!  0       1                    len-4      len
//!  version postcard of a struct  CRC-32 LE
//!          of that version
//! ```
//!
//! The checksum covers the table's name, the key, and all bytes before it: a record that turns up
//! under another key is as unreadable as one with a flipped bit.

pub mod ban;
pub mod chunk;
pub mod content;
mod grown;
pub mod meta;
pub mod player;
mod sixbit;
#[cfg(test)]
mod tests;

use std::fmt;

use caves_world::{Inventory, KindId, MAX_KINDS};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::backend::Table;
pub use ban::BanRecord;
pub use content::ContentNames;
pub(crate) use grown::Grown;
pub use meta::Meta;

/// Bytes of a name, at most (protocol, section 2).
pub const MAX_NAME: usize = 32;

/// Bytes of a sign's text or a ban's reason, at most: what an Event carries (protocol, section 2).
pub const MAX_TEXT: usize = 1000;

/// What kind of record cannot be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// The world as a whole.
    Meta,
    /// Content names and their numbers.
    Content,
    /// A chunk.
    Chunk,
    /// A registered player.
    Player,
    /// A ban.
    Ban,
}

impl fmt::Display for RecordKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Meta => "the world's record",
            Self::Content => "the record of content names",
            Self::Chunk => "a chunk's record",
            Self::Player => "a player's record",
            Self::Ban => "a ban's record",
        })
    }
}

/// A record that cannot be read, or one that could not be read again and is therefore not written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{record}: {fault}")]
pub struct RecordError {
    /// Which kind.
    pub record: RecordKind,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// Not even a version and a checksum.
    #[error("{len} bytes are too few")]
    Short {
        /// How many there are.
        len: usize,
    },
    /// The bytes are not those that were written, or not under this key.
    #[error("the checksum says {stored:08x}, the bytes {computed:08x}")]
    Checksum {
        /// As stored.
        stored: u32,
        /// Of the bytes as they are.
        computed: u32,
    },
    /// A version that this program does not know.
    #[error("version {found} is unknown, this program knows 1 to {known}")]
    Version {
        /// As stored.
        found: u8,
        /// The newest.
        known: u8,
    },
    /// The bytes end too early, or are no such struct.
    #[error("not laid out as version {version} says")]
    Layout {
        /// The version of the record.
        version: u8,
    },
    /// Bytes after the end.
    #[error("{0} bytes too many")]
    Rest(usize),
    /// The key is none of this table.
    #[error("the key is none of such a record")]
    Key,
    /// A value that a world would not stand.
    #[error("{0}")]
    Value(&'static str),
}

/// Reads a record of any table as a test of it.
///
/// # Errors
/// [`RecordError`], as decoding has it.
pub fn check(table: Table, key: &[u8], bytes: &[u8]) -> Result<(), RecordError> {
    match table {
        Table::Meta if key == content::KEY => content::decode(bytes).map(drop),
        Table::Meta if key == meta::KEY => meta::decode(bytes).map(drop),
        Table::Meta => Err(RecordError { record: RecordKind::Meta, fault: Fault::Key }),
        Table::Chunks => {
            let pos = chunk::pos_of(key).ok_or(chunk::no_key())?;
            chunk::decode(pos, bytes).map(drop)
        }
        Table::Players => player::decode(key, bytes).map(drop),
        Table::Bans => ban::decode(key, bytes).map(drop),
    }
}

impl RecordKind {
    const fn error(self, fault: Fault) -> RecordError {
        RecordError { record: self, fault }
    }

    const fn value(self, what: &'static str) -> RecordError {
        self.error(Fault::Value(what))
    }
}

/// Bytes around the struct: the version and the checksum.
const FRAME: usize = 5;

/// Where a record lies; part of its checksum.
#[derive(Clone, Copy)]
struct Place<'k> {
    record: RecordKind,
    table: Table,
    key: &'k [u8],
}

impl Place<'_> {
    /// `value` is of the layout `version`.
    fn seal(self, version: u8, value: &impl Serialize) -> Vec<u8> {
        // Writing to a growing vector cannot run out of room, and the structs have no maps or unsized
        // sequences: nothing of theirs is refused by postcard.
        let start = vec![version];
        let mut bytes =
            postcard::to_extend(value, start).expect("a struct of these fields, into a vector");
        let sum = self.checksum(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The version of a record whose checksum is right, and the struct's bytes.
    fn unseal(self, bytes: &[u8]) -> Result<(u8, &[u8]), RecordError> {
        let Some((covered, sum)) = bytes.split_last_chunk().filter(|_| bytes.len() >= FRAME) else {
            return Err(self.record.error(Fault::Short { len: bytes.len() }));
        };
        let (stored, computed) = (u32::from_le_bytes(*sum), self.checksum(covered));
        if stored != computed {
            return Err(self.record.error(Fault::Checksum { stored, computed }));
        }
        Ok((covered[0], &covered[1..]))
    }

    /// The struct of a record that has only one version so far.
    fn open<'b, T: Deserialize<'b>>(self, bytes: &'b [u8]) -> Result<T, RecordError> {
        let (version, body) = self.unseal(bytes)?;
        match version {
            1 => self.parse(version, body),
            found => Err(self.record.error(Fault::Version { found, known: 1 })),
        }
    }

    fn parse<'b, T: Deserialize<'b>>(self, version: u8, body: &'b [u8]) -> Result<T, RecordError> {
        match postcard::take_from_bytes(body) {
            Ok((value, [])) => Ok(value),
            Ok((_, rest)) => Err(self.record.error(Fault::Rest(rest.len()))),
            Err(_) => Err(self.record.error(Fault::Layout { version })),
        }
    }

    fn checksum(self, bytes: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(self.table.name().as_bytes());
        hasher.update(self.key);
        hasher.update(bytes);
        hasher.finalize()
    }
}

fn entries(inventory: &Inventory) -> Grown<(u16, u16)> {
    Grown(inventory.iter().map(|(kind, count)| (kind.0, count)).collect())
}

fn inventory(entries: &[(u16, u16)], record: RecordKind) -> Result<Inventory, RecordError> {
    let ascending = entries.windows(2).all(|pair| pair[0].0 < pair[1].0);
    if !ascending {
        return Err(record.value("the kinds of an inventory do not ascend"));
    }
    if entries.len() > MAX_KINDS {
        return Err(record.value("an inventory holds more than 32 kinds"));
    }
    let mut inventory = Inventory::default();
    for &(kind, count) in entries {
        if count == 0 {
            return Err(record.value("an inventory holds 0 of something"));
        }
        inventory.add(KindId(kind), count);
    }
    Ok(inventory)
}
