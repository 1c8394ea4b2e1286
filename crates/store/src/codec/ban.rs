//! Bans that were set while the server ran.
//!
//! ```
//! use caves_store::{BanRecord, ban};
//!
//! let record = BanRecord {
//!     target: "192.0.2.0/24".to_owned(),
//!     is_name: false,
//!     reason: "floods".to_owned(),
//!     until_unix_s: None,
//!     set_unix_s: 1_764_460_800,
//! };
//! let key = ban::key(&record);
//! assert_eq!(ban::decode(&key, &ban::encode(&record).unwrap()), Ok(record));
//! ```

use serde::{Deserialize, Serialize};

use super::{MAX_TEXT, Place, RecordError, RecordKind};
use crate::backend::Table;

const KIND: RecordKind = RecordKind::Ban;

/// Bytes of a target, at most: longer than any address with its bits, and than any name.
const MAX_TARGET: usize = 64;

/// Who may not come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BanRecord {
    /// `ADDRESS[/BITS]`, or a name.
    pub target: String,
    /// Whether the target is a name.
    pub is_name: bool,
    /// Why; it may be empty.
    pub reason: String,
    /// Until when, in seconds of Unix time; `None` for good.
    pub until_unix_s: Option<u64>,
    /// Since when, in seconds of Unix time.
    pub set_unix_s: u64,
}

#[derive(Serialize, Deserialize)]
struct BanV1 {
    target: String,
    is_name: bool,
    reason: String,
    until_unix_s: Option<u64>,
    set_unix_s: u64,
}

/// The key of a ban: what kind of target, and the target as it is written.
pub fn key(ban: &BanRecord) -> Vec<u8> {
    let kind = if ban.is_name { b'n' } else { b'a' };
    [&[kind], ban.target.as_bytes()].concat()
}

/// The bytes of a ban.
///
/// # Errors
/// [`RecordError`] for a record that [`decode`] would not take.
pub fn encode(ban: &BanRecord) -> Result<Vec<u8>, RecordError> {
    check(ban)?;
    let BanRecord { target, is_name, reason, until_unix_s, set_unix_s } = ban.clone();
    let layout = BanV1 { target, is_name, reason, until_unix_s, set_unix_s };
    Ok(place(&key(ban)).seal(1, &layout))
}

/// The ban that is kept under `key`.
///
/// # Errors
/// [`RecordError`] that says what is wrong.
pub fn decode(key: &[u8], bytes: &[u8]) -> Result<BanRecord, RecordError> {
    let BanV1 { target, is_name, reason, until_unix_s, set_unix_s } = place(key).open(bytes)?;
    let ban = BanRecord { target, is_name, reason, until_unix_s, set_unix_s };
    check(&ban)?;
    if self::key(&ban) != key {
        return Err(KIND.error(super::Fault::Key));
    }
    Ok(ban)
}

fn place(key: &[u8]) -> Place<'_> {
    Place { record: KIND, table: Table::Bans, key }
}

fn check(ban: &BanRecord) -> Result<(), RecordError> {
    if !(1..=MAX_TARGET).contains(&ban.target.len()) {
        return Err(KIND.value("its target is not 1 to 64 bytes"));
    }
    if ban.reason.len() > MAX_TEXT {
        return Err(KIND.value("its reason has more than 1000 bytes"));
    }
    Ok(())
}
