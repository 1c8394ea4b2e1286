//! What the game asks of whoever keeps its world, and what it is told.
//!
//! The game does no IO: [`Server::poll_store`](crate::Server::poll_store) says what should be read or
//! written, [`Server::handle_stored`](crate::Server::handle_stored) takes the answer, whenever it comes. Neither
//! waits.

use std::time::Duration;

use caves_world::{ChunkPos, ChunkRecord, PlayerRecord, WorldRecord};

/// A world that is kept: what there is of it, and how often it is saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    /// What was kept of the world; nothing for a new one.
    pub world: Option<WorldRecord>,
    /// All players that were kept.
    pub players: Vec<PlayerRecord>,
    /// From one save to the next.
    pub interval: Duration,
    /// Chunks that stay in memory with no player near.
    pub idle_chunks: usize,
}

/// Something to do with the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreRequest {
    /// Read a chunk; answered by [`StoreReply::Chunk`] or [`StoreReply::Unreadable`].
    Read(ChunkPos),
    /// Write all of it or nothing; answered by [`StoreReply::Saved`] once it is safe. There is no
    /// second one before that.
    Save(Box<Save>),
}

/// What became of a [`StoreRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreReply {
    /// What is kept of a chunk; nothing when nobody has visited it.
    Chunk(ChunkPos, Option<Box<ChunkRecord>>),
    /// Something is kept, but cannot be read. Nobody enters that chunk.
    Unreadable(ChunkPos),
    /// What was to be saved is safe.
    Saved,
}

/// All that changed since the last one, as of the end of one tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Save {
    /// The world as a whole.
    pub world: WorldRecord,
    /// Chunks that are new or changed.
    pub chunks: Vec<(ChunkPos, ChunkRecord)>,
    /// Registered players that changed.
    pub players: Vec<PlayerRecord>,
}
