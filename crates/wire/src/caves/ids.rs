//! The numbers of the protocol as types of their own.

use caves_link::seq::Seq;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The number of an action or event: wraps, and has no `<` (R18).
pub type Sequence = Seq<32>;
/// The number of a server tick: wraps, and has no `<` (R31).
pub type Tick = Seq<32>;

/// What kind of client speaks (R3, R37).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientType(pub u16);

impl ClientType {
    /// The official client, and what servers send.
    pub const OFFICIAL: Self = Self(0);
}

/// The key of a session. It is no secret on the path, and it is never 0 (R20).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u64);

impl core::fmt::Debug for Token {
    /// Tokens do not belong in logs.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Token(..)")
    }
}

/// The number of one attempt to join (section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Nonce(pub u64);

/// An entity, for as long as the world lives; 0 means none (R33).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct EntityId(pub u32);

/// One of the four ways to go, 1 to 4 on the wire (R6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Direction {
    /// y - 1
    North = 1,
    /// x + 1
    East = 2,
    /// y + 1
    South = 3,
    /// x - 1
    West = 4,
}

impl Direction {
    /// The direction of a number from 1 to 4.
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::North,
            2 => Self::East,
            3 => Self::South,
            4 => Self::West,
            _ => return None,
        })
    }
}

/// The place of a chunk in the grid of chunks (R7, R8).
///
/// ```
/// use caves_wire::caves::ChunkId;
///
/// let id = ChunkId { x: -1, y: 2 };
/// assert_eq!(id.to_u32(), 0x0002_FFFF);
/// assert_eq!(ChunkId::from_u32(0x0002_FFFF), id);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ChunkId {
    /// Chunks to the east of the centre.
    pub x: i16,
    /// Chunks to the south of the centre.
    pub y: i16,
}

impl ChunkId {
    /// `(x as u16) | (y as u16) << 16`, as the source has it.
    pub const fn to_u32(self) -> u32 {
        self.x as u16 as u32 | (self.y as u16 as u32) << 16
    }

    /// The inverse of [`ChunkId::to_u32`]; every number is a chunk.
    pub const fn from_u32(id: u32) -> Self {
        Self { x: id as u16 as i16, y: (id >> 16) as u16 as i16 }
    }
}

/// The version of a chunk's tiles, compared for equality only; 0 means "not held" (R10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ChunkVersion(pub u16);

impl ChunkVersion {
    /// "I do not hold this chunk."
    pub const NOT_HELD: Self = Self(0);
}

/// A chunk and one of its versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ChunkEntry {
    /// Which chunk.
    pub id: ChunkId,
    /// Which version of it.
    pub version: ChunkVersion,
}

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 4 | chunk_id |
/// | 4 | 2 | version |
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct RawChunkEntry {
    chunk_id: U32,
    version: U16,
}

const _: () = assert!(size_of::<RawChunkEntry>() == 6);

impl From<RawChunkEntry> for ChunkEntry {
    fn from(raw: RawChunkEntry) -> Self {
        Self { id: ChunkId::from_u32(raw.chunk_id.get()), version: ChunkVersion(raw.version.get()) }
    }
}

impl From<ChunkEntry> for RawChunkEntry {
    fn from(entry: ChunkEntry) -> Self {
        Self { chunk_id: entry.id.to_u32().into(), version: entry.version.0.into() }
    }
}

/// What a client asks for and a server grants beyond the source's protocol (section 2, tag 0x21).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Features(pub u32);

impl Features {
    /// Exactly the source's behaviour.
    pub const NONE: Self = Self(0);
    /// A tick's EntityPackets may come before its StatePacket.
    pub const BURST: Self = Self(1);
    /// Chat, notices and combat come as reliable Events.
    pub const EVENTS: Self = Self(1 << 1);

    /// Both sets together.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// What is in both sets.
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether all of `other` is in this set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}
