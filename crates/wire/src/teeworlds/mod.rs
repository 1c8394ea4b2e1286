//! Teeworlds 0.6, as DDNet speaks it: one file a layout.
//!
//! A datagram is one of three things, by its first byte:
//!
//! | bit | a datagram with it | layout | bytes |
//! |---|---|---|---|
//! | `0x20` | has nothing to do with a connection | [`Connless`], read on by [`InfoRequest`] and [`InfoView`] | 6 to 1400 |
//! | `0x10` | makes, keeps or ends a connection | [`Control`] | 4 to 1400 |
//! | neither | carries messages | [`ChunksView`] to read, [`ChunkBuilder`] and [`Chunks`] to write | 3 to 1400 |
//!
//! and within the last kind
//!
//! | what | layout | bytes |
//! |---|---|---|
//! | before the payload | [`Header`]: flags, acknowledgement, number of chunks | 3 |
//! | a message on its way | [`Chunk`]: length, and a sequence where it is sent until it has arrived | 2 or 3, and up to 1023 |
//! | the message | [`Message`], [`MessageId`]; field by field [`Reader`] and [`Writer`] | |
//! | behind all chunks | [`Token`], on connections that have one | 4 |
//!
//! [`Packet::parse`] tells them apart. A payload can be compressed ([`huffman`]), so that reading needs room
//! for what comes out: a [`Scratch`] that the caller keeps. Whether a token is expected is for the caller to
//! say with [`Tokens`]; whether it is the right one, too.
//!
//! # Rules
//!
//! * An acknowledgement and a sequence have ten bits, and are [`Sequence`]s: which is older is a
//!   question of the distance, and half the circle away counts as older on both sides of the wire.
//! * Bits that nobody uses are written as 0. Bit `0x08` of the first byte is ignored, bit `0x04` is 0.7 and
//!   refused; neither ever reaches the acknowledgement.
//! * A control packet that says it is compressed, or holds nothing but a token, is refused.
//! * Chunks are read as far as they are whole. One that does not fit ends the packet without an error, and
//!   what was announced and is not there is no fault ([`ChunkIter`]).
//! * What a compressed payload expands to is at most [`MAX_PAYLOAD`] bytes.
//! * A payload is compressed where that is strictly shorter; the bytes are those of the reference.
//! * A message ends with its known fields; what follows them is ignored.
//! * Text need not be UTF-8; [`Text`] keeps its bytes and shows them cleaned ([`Cleaning`]).
//!
//! # Example
//!
//! ```
//! use caves_wire::teeworlds::{
//!     Chunk, ChunkBuilder, Control, ControlMessage, Envelope, Message, Packet, Sequence, Token,
//!     Tokens,
//! };
//!
//! // What a server grants.
//! let datagram = b"\x10\0\0\x02TKEN\x01\xA2\x06\xF4";
//! let mut scratch = [0; 1394];
//! let token = match Packet::parse(datagram, Tokens::Guess, &mut scratch)? {
//!     Packet::Control(Control { message: ControlMessage::ConnectAccept(token), .. }) => token,
//!     other => panic!("{other}"),
//! };
//! assert_eq!(token, Some(Token([0x01, 0xA2, 0x06, 0xF4])));
//!
//! // The first message to it.
//! let mut data = [0; 64];
//! let info = Message::Info { version: "0.6 626fce9a778df4d4".into(), password: "".into() };
//! let len = info.emit(&mut data)?;
//! let mut chunks = ChunkBuilder::new();
//! chunks.push(&Chunk { vital: Some(Sequence::new(1)), resend: false, data: &data[..len] })?;
//! let mut buf = [0; 1400];
//! let envelope = Envelope { ack: Sequence::new(0), resend: false, token };
//! let len = chunks.packet(envelope).emit(&mut buf)?;
//! assert_eq!(buf[..len], *b"\0\0\x01\x41\x07\x01\x030.6 626fce9a778df4d4\0\0\x01\xA2\x06\xF4");
//!
//! // And what the server makes of it.
//! match Packet::parse(&buf[..len], Tokens::With, &mut scratch)? {
//!     Packet::Chunks(packet) => {
//!         assert_eq!(packet.token(), token);
//!         let chunk = packet.chunks().next().unwrap();
//!         assert_eq!(Message::parse(chunk.data)?, info);
//!     }
//!     other => panic!("{other}"),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! How it was verified, and where it differs from the reference, stands in `notes/siblings/teeworlds.md`.

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
