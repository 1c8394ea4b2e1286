//! Registered players, by a key that the caller makes of the name: two names that are the same to the
//! session must have the same key.
//!
//! ```
//! use caves_store::player;
//! use caves_world::{Inventory, PlayerRecord, Pos};
//!
//! let record = PlayerRecord {
//!     name: "Ada".to_owned(),
//!     pos: Pos { x: -3, y: 5 },
//!     hp: 20,
//!     elo: 1000,
//!     inventory: Inventory::default(),
//! };
//! let bytes = player::encode(b"ada", &record).unwrap();
//! assert_eq!(player::decode(b"ada", &bytes), Ok(record));
//! ```

use caves_world::{EXTENT_FIRST, EXTENT_LAST, PlayerRecord, Pos};
use serde::{Deserialize, Serialize};

use super::{Grown, MAX_NAME, Place, RecordError, RecordKind, entries, inventory};
use crate::backend::Table;

const KIND: RecordKind = RecordKind::Player;

#[derive(Serialize, Deserialize)]
struct PlayerV1 {
    name: String,
    x: i32,
    y: i32,
    hp: u16,
    elo: u16,
    inventory: Grown<(u16, u16)>,
}

/// The bytes of a player who is kept under `key`.
///
/// # Errors
/// [`RecordError`] for a record that [`decode`] would not take.
pub fn encode(key: &[u8], record: &PlayerRecord) -> Result<Vec<u8>, RecordError> {
    let layout = PlayerV1 {
        name: record.name.clone(),
        x: record.pos.x,
        y: record.pos.y,
        hp: record.hp,
        elo: record.elo,
        inventory: entries(&record.inventory),
    };
    let bytes = place(key).seal(1, &layout);
    restore(layout)?;
    Ok(bytes)
}

/// The player who is kept under `key`.
///
/// # Errors
/// [`RecordError`] that says what is wrong.
pub fn decode(key: &[u8], bytes: &[u8]) -> Result<PlayerRecord, RecordError> {
    restore(place(key).open(bytes)?)
}

fn place(key: &[u8]) -> Place<'_> {
    Place { record: KIND, table: Table::Players, key }
}

fn restore(layout: PlayerV1) -> Result<PlayerRecord, RecordError> {
    if !(1..=MAX_NAME).contains(&layout.name.len()) {
        return Err(KIND.value("its name is not 1 to 32 bytes"));
    }
    if layout.hp == 0 {
        return Err(KIND.value("it has no hit points"));
    }
    let pos = Pos { x: layout.x, y: layout.y };
    let (chunk, extent) = (pos.chunk(), EXTENT_FIRST..=EXTENT_LAST);
    if !extent.contains(&chunk.x) || !extent.contains(&chunk.y) {
        return Err(KIND.value("it stands outside the world"));
    }
    let inventory = inventory(&layout.inventory.0, KIND)?;
    Ok(PlayerRecord { name: layout.name, pos, hp: layout.hp, elo: layout.elo, inventory })
}
