//! The lines as structs. Fields are never left out, and unknown ones are refused: a misspelt word is
//! an error and not a loss.

use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    pub(super) format: String,
    pub(super) version: u32,
    pub(super) seed: u64,
    pub(super) generator: u32,
    pub(super) tick: u64,
    pub(super) last_id: u32,
}

/// Format and version alone, of a first line of any version.
#[derive(Debug, Deserialize)]
pub(super) struct AnyHead {
    pub(super) format: String,
    pub(super) version: u32,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Line {
    Content(Content),
    Player(Player),
    Ban(Ban),
    Chunk(Chunk),
    End(End),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Content {
    pub(super) tiles: Vec<(u16, String)>,
    pub(super) kinds: Vec<(u16, String)>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Player {
    pub(super) name: String,
    pub(super) x: i32,
    pub(super) y: i32,
    pub(super) hp: u16,
    pub(super) elo: u16,
    pub(super) inventory: Vec<(String, u16)>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ban {
    pub(super) target: String,
    pub(super) is_name: bool,
    pub(super) reason: String,
    pub(super) until_unix_s: Option<u64>,
    pub(super) set_unix_s: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Chunk {
    pub(super) x: i32,
    pub(super) y: i32,
    pub(super) generator: u32,
    pub(super) edited: Option<Tiles>,
    pub(super) residents: Vec<Resident>,
    pub(super) things: Vec<Thing>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tiles {
    pub(super) version: u16,
    pub(super) palette: Vec<(char, String)>,
    pub(super) rows: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Resident {
    pub(super) kind: String,
    pub(super) x: i32,
    pub(super) y: i32,
    pub(super) elo: u16,
    pub(super) dead_until: Option<u64>,
}

/// Exactly one of the last three is there.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Thing {
    pub(super) id: u32,
    pub(super) kind: String,
    pub(super) x: i32,
    pub(super) y: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) chest: Option<Vec<(String, u16)>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sign: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) item: Option<u16>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct End {}
