//! What is kept of a world while nobody is near, and over a restart.
//!
//! Records are plain values: how they become bytes is for the layer that stores them. A record says all
//! that cannot be made again from the seed.
//!
//! ```
//! use caves_world::{GENERATOR_VERSION, World, WorldConfig};
//!
//! let mut world = World::new(WorldConfig { seed: 7, ..WorldConfig::default() });
//! let ada = world.spawn_player(Some("Ada"));
//! let record = world.player_record(ada).unwrap();
//! assert_eq!((record.name.as_str(), record.hp, record.elo), ("Ada", 20, 1000));
//! assert_eq!(world.record().generator, GENERATOR_VERSION);
//! ```

use crate::chunk::Chunk;
use crate::content::KindId;
use crate::coord::Pos;
use crate::entity::EntityId;
use crate::generation::GENERATOR_VERSION;
use crate::inventory::Inventory;

/// What a world is, apart from its chunks and players.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorldRecord {
    /// The seed of the caves.
    pub seed: u64,
    /// The generator that makes chunks which nobody has visited yet.
    pub generator: u32,
    /// Ticks that have ended.
    pub tick: u64,
    /// The highest entity id that was given away (protocol, R33).
    pub last_id: u32,
}

impl WorldRecord {
    /// A world that nobody has entered yet.
    pub const fn new(seed: u64) -> WorldRecord {
        WorldRecord { seed, generator: GENERATOR_VERSION, tick: 0, last_id: 0 }
    }
}

/// A chunk that somebody has visited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkRecord {
    /// The generator that made it: it never comes out differently.
    pub generator: u32,
    /// Its tiles and version, where they are no longer those that the generator made.
    pub edited: Option<Chunk>,
    /// The monsters that live here, wherever they stray.
    pub residents: Vec<Resident>,
    /// Chests, signs, items on the floor, ascending by id.
    pub things: Vec<Thing>,
}

/// A monster by its home. It is found there when its chunk is loaded, unhurt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resident {
    /// What it is.
    pub kind: KindId,
    /// Where it lives.
    pub home: Pos,
    /// Its rating.
    pub elo: u16,
    /// For a dead one, the tick in which it may come back.
    pub dead_until: Option<u64>,
}

/// A chest, a sign, or a stack of items on the floor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thing {
    /// Its id, for good.
    pub id: EntityId,
    /// What it is; for a stack, the item.
    pub kind: KindId,
    /// Where it is.
    pub pos: Pos,
    /// What belongs to it.
    pub body: ThingBody,
}

/// What belongs to a [`Thing`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThingBody {
    /// A chest and what is in it.
    Chest(Inventory),
    /// A sign and its text.
    Sign(String),
    /// So many of an item, at least 1.
    Item(u16),
}

/// A player who comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayerRecord {
    /// The name, as configured.
    pub name: String,
    /// Where it was.
    pub pos: Pos,
    /// Hit points, at least 1.
    pub hp: u16,
    /// Rating.
    pub elo: u16,
    /// What it carries.
    pub inventory: Inventory,
}
