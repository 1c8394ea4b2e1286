//! The endless cave of Forgotten Caves: chunks, entities, one deterministic tick.
//!
//! This crate knows the rules and nothing of how they reach a player: no bytes, no addresses, no clock. Its rung
//! on the path of a datagram:
//!
//! ```text
//!    datagram   received by a binary
//!       | wire      bytes to a view
//!       | session   whose is it, is it new
//!       | game      becomes a Command
//!     > v world     World::execute, then World::step once per tick
//!       | game      World::in_view, World::loaded_chunk: what this client has not got
//!       | session   to whom, when again
//!       v wire      bytes
//!    datagram   sent by a binary
//! ```
//!
//! * [`World`] is what one owns: players come and go, [`World::execute`] does what they ask, [`World::step`] ends
//!   the tick, [`World::drain_events`] says what happened, [`World::visible`] decides who may know.
//! * [`World::restore`] makes a *paged* world, which is given its chunks by whoever stores them and lets go of those that
//!   nobody is near; [`record`] holds what is stored. [`World::new`] makes one that generates and keeps everything.
//! * [`generate`] and [`populate`] make a chunk and its inhabitants from a seed and a position alone.
//! * [`Content`] names what the caves are made of.
//!
//! The same calls in the same order give the same world on every machine: randomness is a hash of what is being
//! decided, all numbers are integers, and nothing iterates a hash table. [`World::hash`] shows it.
//!
//! ```
//! use caves_world::{Command, Event, World, WorldConfig};
//!
//! let mut world = World::new(WorldConfig { seed: 42, ..WorldConfig::default() });
//! let ada = world.spawn_player(Some("Ada"));
//! let guest = world.spawn_player(None);
//! let _ = world.execute(ada, Command::Say("Hello?".to_owned()));
//! world.step();
//!
//! let said = world.drain_events().next();
//! assert_eq!(said, Some(Event::Said { by: ada, text: "Hello?".to_owned() }));
//! assert!(world.visible(guest, ada));
//! assert_eq!(world.entity(ada).unwrap().speech(), Some("Hello?"));
//! ```

mod act;
pub mod chunk;
mod combat;
pub mod command;
pub mod content;
pub mod coord;
mod elo;
pub mod entity;
pub mod event;
pub mod generation;
mod hash;
pub mod inventory;
mod paging;
pub mod record;
mod residents;
mod rng;
mod step;
mod store;
mod table;
mod terrain;
#[cfg(test)]
mod testing;
pub mod view;
pub mod world;

pub use chunk::{Chunk, MAX_PALETTE, PaletteFull};
pub use combat::RESPAWN_TICKS;
pub use command::{Command, Outcome};
pub use content::{
    Class, Content, ContentError, KindDef, KindId, Loot, SpawnRule, TileDef, TileId, Treasure,
};
pub use coord::{
    CHUNK_SIDE, CHUNK_TILES, ChunkPos, Direction, EXTENT_FIRST, EXTENT_LAST, GROUND_FIRST,
    GROUND_LAST, Pos,
};
pub use entity::{
    Body, Entity, EntityId, FIGHT_TICKS, MAX_SPEECH, Monster, Player, SPEECH_TICKS,
    STATUS_FIGHTING, STATUS_SAFE,
};
pub use event::{Event, Notice};
pub use generation::{
    GENERATOR_VERSION, Generator, SAFE_RADIUS, SPAWN, Spawn, SpawnBody, UnknownGenerator, generate,
    is_safe, populate,
};
pub use inventory::{Inventory, MAX_KINDS};
pub use paging::WANT_TICKS;
pub use record::{ChunkRecord, PlayerRecord, Resident, Thing, ThingBody, WorldRecord};
pub use step::MONSTER_SIGHT;
pub use store::Spot;
pub use view::{Seen, VIEW_AFTER, VIEW_BEFORE, in_viewport};
pub use world::{IDLE_CHUNKS, MAX_EVENTS, World, WorldConfig};
