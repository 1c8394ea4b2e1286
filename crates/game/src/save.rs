//! What the game asks of whoever keeps its world, and what it is told.
//!
//! The game does no IO: its server says by two more verbs what should be read or written, and takes the
//! answer whenever it comes. Neither waits.

use caves_world::{ChunkPos, ChunkRecord, PlayerRecord, WorldRecord};

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
