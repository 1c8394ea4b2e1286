//! Teeworlds 0.6, as DDNet speaks it.

mod body;
mod chunk;
mod connless;
mod control;
mod fault;
mod header;
pub mod huffman;
mod info;
mod message;
mod packet;
mod string;
mod tick;
pub mod varint;

pub use body::{Message, PlayerInput};
pub use chunk::{Chunk, ChunkBuilder, ChunkIter, Chunks, Envelope};
pub use connless::Connless;
pub use control::{Control, ControlMessage, MAX_REASON};
pub use header::{Header, Sequence, Token, Tokens};
pub use info::{
    Info, InfoClient, InfoKind, InfoPart, InfoRequest, InfoView, InfoWanted, ServerInfo,
};
pub use message::{MessageId, Reader, Writer, game, system};
pub use packet::{ChunksView, Packet, Scratch};
pub use string::{Cleaning, Text};
pub use tick::{Tick, to_int32};

/// The longest datagram, in bytes: longer ones are dropped.
pub const MAX_DATAGRAM: usize = 1400;
/// Bytes of the header of a connected packet.
pub const HEADER: usize = 3;
/// Bytes of the header of a connectionless packet.
pub const CONNLESS_HEADER: usize = 6;
/// The most that a compressed payload may expand to, token included: the reference's buffer. A payload
/// that is not compressed can have the three bytes more that a datagram has room for.
pub const MAX_PAYLOAD: usize = 1394;
