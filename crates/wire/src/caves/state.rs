//! Type 0: the chunk manifest and the checksum of a tick.

use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{Header, PacketType};
use super::ids::{ChunkEntry, ClientType, EntityId, RawChunkEntry, Tick};
use super::layout::{self, Layout};
use crate::{EmitError, ParseError};

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 6 | header |
/// | 6 | 4 | tick |
/// | 10 | 54 | chunks |
/// | 64 | 4 | player_entity_id |
/// | 68 | 4 | entity_checksum |
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    header: Header,
    tick: U32,
    chunks: [RawChunkEntry; 9],
    player_entity_id: U32,
    entity_checksum: U32,
}

const _: () = assert!(size_of::<Raw>() == State::LEN);

impl Layout for Raw {
    const NAME: &'static str = "State";
    const TYPE: PacketType = PacketType::STATE;
}

/// What a client is shown each tick besides entities, to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// The tick that this state ends.
    pub tick: Tick,
    /// The 3x3 around the player, row by row from the north-west; 4 is its own chunk (R9).
    pub chunks: [ChunkEntry; 9],
    /// The receiving player's entity.
    pub player: EntityId,
    /// FNV-1a over the entry bytes of this tick's EntityPackets (R13).
    pub entity_checksum: u32,
}

impl State {
    /// Bytes of every StatePacket.
    pub const LEN: usize = 72;

    /// Bytes that [`State::emit`] writes.
    #[expect(clippy::len_without_is_empty, reason = "a packet is never empty")]
    pub const fn len(&self) -> usize {
        Self::LEN
    }

    /// Writes the packet to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is shorter than [`State::LEN`].
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        let raw = Raw {
            header: Header::new(Raw::TYPE, ClientType::OFFICIAL),
            tick: self.tick.get().into(),
            chunks: self.chunks.map(RawChunkEntry::from),
            player_entity_id: self.player.0.into(),
            entity_checksum: self.entity_checksum.into(),
        };
        layout::put(&raw, &[], buf)
    }
}

/// A StatePacket in a datagram.
#[derive(Clone, Copy)]
pub struct StateView<'a>(&'a Raw);

impl<'a> StateView<'a> {
    /// Reads a datagram of exactly 72 bytes.
    ///
    /// # Errors
    /// Another length, magic, version or type.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        layout::exact(datagram).map(Self)
    }

    /// The tick that this state ends.
    pub const fn tick(self) -> Tick {
        Tick::new(self.0.tick.get())
    }

    /// The 3x3 around the player (R9).
    pub fn chunks(self) -> [ChunkEntry; 9] {
        self.0.chunks.map(ChunkEntry::from)
    }

    /// The receiving player's entity.
    pub const fn player(self) -> EntityId {
        EntityId(self.0.player_entity_id.get())
    }

    /// FNV-1a over the entry bytes of this tick's EntityPackets (R13).
    pub const fn entity_checksum(self) -> u32 {
        self.0.entity_checksum.get()
    }
}

impl core::fmt::Display for StateView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let center = self.chunks()[4];
        write!(
            f,
            "State tick={} player={} chunk={},{} v{} checksum={:08x}",
            self.tick().get(),
            self.player().0,
            center.id.x,
            center.id.y,
            center.version.0,
            self.entity_checksum(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caves::{ChunkId, ChunkVersion};

    #[test]
    fn bytes_stand_where_the_note_says() {
        let mut chunks = [ChunkEntry::default(); 9];
        chunks[0] = ChunkEntry { id: ChunkId { x: -1, y: 258 }, version: ChunkVersion(0x0605) };
        chunks[8] = ChunkEntry { id: ChunkId { x: 1, y: -2 }, version: ChunkVersion(9) };
        let state = State {
            tick: Tick::new(0x0403_0201),
            chunks,
            player: EntityId(0x0D0C_0B0A),
            entity_checksum: 0x811C_9DC5,
        };
        let mut buf = [0xEE; 80];
        assert_eq!(state.emit(&mut buf), Ok(72));
        assert_eq!(buf[..6], [0x4C, 0x52, 1, 0, 0, 0], "header");
        assert_eq!(buf[6..10], [1, 2, 3, 4], "tick");
        assert_eq!(buf[10..16], [0xFF, 0xFF, 2, 1, 5, 6], "first chunk");
        assert_eq!(buf[16..58], [0; 42]);
        assert_eq!(buf[58..64], [1, 0, 0xFE, 0xFF, 9, 0], "ninth chunk");
        assert_eq!(buf[64..68], [0x0A, 0x0B, 0x0C, 0x0D], "player");
        assert_eq!(buf[68..72], [0xC5, 0x9D, 0x1C, 0x81], "checksum");
        assert_eq!(buf[72..], [0xEE; 8]);

        let view = StateView::parse(&buf[..72]).unwrap();
        assert_eq!(view.tick().get(), 0x0403_0201);
        assert_eq!(view.chunks(), chunks);
        assert_eq!(view.player(), EntityId(0x0D0C_0B0A));
        assert_eq!(view.entity_checksum(), 0x811C_9DC5);
    }
}
