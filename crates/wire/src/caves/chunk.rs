//! Type 2: the tiles of one chunk.

use zerocopy::little_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{Header, PacketType};
use super::ids::{ChunkEntry, ClientType, RawChunkEntry};
use super::layout::{self, Layout};
use crate::bits::{self, PACKED, TILES};
use crate::{EmitError, ErrorKind, ParseError};

/// The most kinds of tile that one chunk holds (R27).
pub const MAX_PALETTE: usize = 64;

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 6 | header |
/// | 6 | 6 | chunk |
/// | 12 | 1 | pal_count |
/// | 13 | 2 x pal_count | palette |
/// | .. | 768 | tiles |
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    header: Header,
    chunk: RawChunkEntry,
    pal_count: u8,
}

const HEAD: usize = 13;
const _: () = assert!(size_of::<Raw>() == HEAD);

impl Layout for Raw {
    const NAME: &'static str = "Chunk";
    const TYPE: PacketType = PacketType::CHUNK;
}

/// A ChunkPacket to be written, from a palette and one index a tile: no search is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// Which chunk, at which version.
    pub entry: ChunkEntry,
    /// The tile types that occur, 1 to 64 of them.
    pub palette: &'a [u16],
    /// For each tile, row by row, its place in the palette (R5).
    pub indices: &'a [u8; TILES],
}

impl Chunk<'_> {
    /// The longest ChunkPacket, in bytes.
    pub const MAX_LEN: usize = 909;

    /// Bytes that [`Chunk::emit`] writes.
    #[expect(clippy::len_without_is_empty, reason = "a packet is never empty")]
    pub const fn len(&self) -> usize {
        HEAD + 2 * self.palette.len() + PACKED
    }

    /// Writes the packet to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is too short, the palette has no or more than 64 entries, or an index lies outside it. In
    /// the last case `buf` holds no packet, but not what it held before either: tiles are checked while
    /// they are packed.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        let field = |field, limit, got| EmitError::Field { packet: Raw::NAME, field, limit, got };
        let count = self.palette.len();
        if !(1..=MAX_PALETTE).contains(&count) {
            return Err(field("palette", MAX_PALETTE, count));
        }
        let (needed, got) = (self.len(), buf.len());
        let short = EmitError::Buffer { packet: Raw::NAME, needed, got };
        let room = buf.get_mut(..needed).ok_or(short)?;
        let (head, tail) = room.split_at_mut(HEAD);
        let (palette, tiles) = tail.split_at_mut(2 * count);
        let raw = Raw {
            header: Header::new(Raw::TYPE, ClientType::OFFICIAL),
            chunk: self.entry.into(),
            pal_count: count as u8,
        };
        head.copy_from_slice(raw.as_bytes());
        for (bytes, tile) in palette.as_chunks_mut().0.iter_mut().zip(self.palette) {
            *bytes = tile.to_le_bytes();
        }
        let tiles = tiles.first_chunk_mut().ok_or(short)?;
        let largest = usize::from(bits::pack_and_look(self.indices, tiles));
        if largest >= count {
            head[0] = 0;
            return Err(field("tile index", count - 1, largest));
        }
        Ok(needed)
    }
}

/// A palette and one index a tile, made from tile types: for those that do not keep their chunks so.
///
/// ```
/// use caves_wire::caves::{ChunkEntry, Paletted};
///
/// let mut tiles = [2; 1024];
/// tiles[1] = 700;
/// let chunk = Paletted::from_tiles(&tiles)?;
/// assert_eq!(chunk.palette(), [2, 700]);
/// let mut buf = [0; 1200];
/// assert_eq!(chunk.with_entry(ChunkEntry::default()).emit(&mut buf)?, 13 + 4 + 768);
/// # Ok::<(), caves_wire::EmitError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paletted {
    palette: [u16; MAX_PALETTE],
    count: usize,
    indices: [u8; TILES],
}

/// Slots of the search for a tile's place: four times what they hold, so that most are found at
/// the first look.
const SLOTS: usize = 4 * MAX_PALETTE;
/// A slot that holds nothing.
const EMPTY: u8 = u8::MAX;

impl Paletted {
    /// Collects the kinds of tile in the order in which they occur.
    ///
    /// # Errors
    /// More than 64 kinds.
    pub fn from_tiles(tiles: &[u16; TILES]) -> Result<Self, EmitError> {
        let mut made = Self { palette: [0; MAX_PALETTE], count: 0, indices: [0; TILES] };
        // Which palette entry each slot holds; the tile itself stands in the palette.
        let mut slots = [EMPTY; SLOTS];
        for (index, tile) in made.indices.iter_mut().zip(tiles) {
            // Neighbouring numbers spread over all slots.
            let mut slot = usize::from(tile.wrapping_mul(0x9E37) >> 8) % SLOTS;
            *index = loop {
                let held = slots[slot];
                if held == EMPTY {
                    let Some(place) = made.palette.get_mut(made.count) else {
                        let (limit, got) = (MAX_PALETTE, MAX_PALETTE + 1);
                        let (packet, field) = (Raw::NAME, "palette");
                        return Err(EmitError::Field { packet, field, limit, got });
                    };
                    *place = *tile;
                    slots[slot] = made.count as u8;
                    made.count += 1;
                    break slots[slot];
                }
                // An entry is below 64.
                if made.palette[usize::from(held & 63)] == *tile {
                    break held;
                }
                slot = (slot + 1) % SLOTS;
            };
        }
        Ok(made)
    }

    /// The tile types that occur.
    pub fn palette(&self) -> &[u16] {
        &self.palette[..self.count]
    }

    /// The packet that these tiles make.
    pub fn with_entry(&self, entry: ChunkEntry) -> Chunk<'_> {
        Chunk { entry, palette: self.palette(), indices: &self.indices }
    }
}

/// A ChunkPacket in a datagram.
#[derive(Clone, Copy)]
pub struct ChunkView<'a> {
    raw: &'a Raw,
    palette: &'a [U16],
    packed: &'a [u8; PACKED],
}

impl<'a> ChunkView<'a> {
    /// Reads a datagram and checks every tile against the palette.
    ///
    /// # Errors
    /// Another length, magic, version or type; a palette of no or over 64 entries; an index that
    /// the palette does not have (R27).
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let view = Self::open(datagram)?;
        view.checked(bits::unpack_below(view.packed, view.raw.pal_count, &mut [0; TILES]))
    }

    /// As [`ChunkView::parse`] and then [`ChunkView::tiles`], in one pass over the tiles.
    ///
    /// # Errors
    /// Those of [`ChunkView::parse`]; `tiles` holds nothing of use then.
    pub fn decode(datagram: &'a [u8], tiles: &mut [u16; TILES]) -> Result<Self, ParseError> {
        let view = Self::open(datagram)?;
        view.checked(bits::decode(view.packed, view.raw.pal_count, &view.table(), tiles))
    }

    /// Everything but the indices.
    fn open(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let (raw, tail) = layout::head::<Raw>(datagram)?;
        let count = usize::from(raw.pal_count);
        if !(1..=MAX_PALETTE).contains(&count) {
            return Err(ParseError {
                packet: Raw::NAME,
                kind: ErrorKind::PaletteCount,
                offset: HEAD - 1,
                needed: MAX_PALETTE,
                got: count,
            });
        }
        let tail = layout::counted::<Raw>(tail, 2 * count + PACKED)?;
        let short = |_| layout::too_short(Raw::NAME, 2 * count + PACKED, tail.len());
        // Both splits succeed: the length was checked.
        let (palette, packed) =
            <[U16]>::ref_from_prefix_with_elems(tail, count).map_err(|_| short(()))?;
        let packed: &[u8; PACKED] = packed.try_into().map_err(|_| short(()))?;
        Ok(Self { raw, palette, packed })
    }

    /// The first index that the palette does not have, unless all are below its length.
    fn checked(self, below: bool) -> Result<Self, ParseError> {
        if below {
            return Ok(self);
        }
        let (tile, index) =
            bits::first_at_least(self.packed, self.raw.pal_count).unwrap_or_default();
        Err(ParseError {
            packet: Raw::NAME,
            kind: ErrorKind::PaletteIndex,
            offset: HEAD + 2 * self.palette.len() + tile / 4 * 3,
            needed: self.palette.len() - 1,
            got: index.into(),
        })
    }

    /// The palette, filled up to what six bits can ask for.
    fn table(self) -> [u16; MAX_PALETTE] {
        let mut table = [0; MAX_PALETTE];
        for (entry, tile) in table.iter_mut().zip(self.palette()) {
            *entry = tile;
        }
        table
    }

    /// Which chunk, at which version.
    pub fn entry(self) -> ChunkEntry {
        self.raw.chunk.into()
    }

    /// The tile types that occur, 1 to 64 of them.
    pub fn palette(self) -> impl ExactSizeIterator<Item = u16> + 'a {
        self.palette.iter().map(|tile| tile.get())
    }

    /// Writes each tile's place in the palette, row by row; all are below its length.
    pub fn indices(self, indices: &mut [u8; TILES]) {
        // Checked when it was parsed.
        bits::unpack_below(self.packed, self.raw.pal_count, indices);
    }

    /// Writes each tile's type, row by row.
    pub fn tiles(self, tiles: &mut [u16; TILES]) {
        // Checked when it was parsed.
        bits::decode(self.packed, self.raw.pal_count, &self.table(), tiles);
    }
}

impl core::fmt::Display for ChunkView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let ChunkEntry { id, version } = self.entry();
        write!(f, "Chunk {},{} v{} palette={}", id.x, id.y, version.0, self.palette.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caves::{ChunkId, ChunkVersion};

    const ENTRY: ChunkEntry =
        ChunkEntry { id: ChunkId { x: 2, y: -3 }, version: ChunkVersion(0x0102) };

    #[test]
    fn bytes_stand_where_the_note_says() {
        let mut indices = [0; TILES];
        indices[..4].copy_from_slice(&[1, 2, 0, 1]);
        indices[1023] = 2;
        let chunk = Chunk { entry: ENTRY, palette: &[1, 0x0203, 7], indices: &indices };
        let mut buf = [0xEE; 1200];
        assert_eq!(chunk.emit(&mut buf), Ok(13 + 6 + 768));
        assert_eq!(buf[..6], [0x4C, 0x52, 1, 2, 0, 0], "header");
        assert_eq!(buf[6..12], [2, 0, 0xFD, 0xFF, 2, 1], "chunk");
        assert_eq!(buf[12], 3, "pal_count");
        assert_eq!(buf[13..19], [1, 0, 3, 2, 7, 0], "palette");
        assert_eq!(buf[19..22], [0b1000_0001, 0, 0b0000_0100], "first four tiles");
        assert_eq!(buf[784..787], [0, 0, 0b0000_1000], "last four tiles");

        let view = ChunkView::parse(&buf[..787]).unwrap();
        assert_eq!(view.entry(), ENTRY);
        assert!(view.palette().eq([1, 0x0203, 7]));
        let mut tiles = [0; TILES];
        view.tiles(&mut tiles);
        assert_eq!(tiles[..5], [0x0203, 7, 1, 0x0203, 1]);
        assert_eq!(tiles[1023], 7);
    }

    #[test]
    fn tiles_survive_the_way_through_a_palette() {
        for kinds in [1u16, 2, 6, 16, 63, 64] {
            let tiles: [u16; TILES] =
                core::array::from_fn(|i| ((i * 7919) as u16 % kinds).wrapping_mul(1031));
            let made = Paletted::from_tiles(&tiles).unwrap();
            assert_eq!(made.palette().len(), usize::from(kinds));
            let mut buf = [0; 1200];
            let len = made.with_entry(ENTRY).emit(&mut buf).unwrap();
            let mut back = [0; TILES];
            ChunkView::parse(&buf[..len]).unwrap().tiles(&mut back);
            assert_eq!(back, tiles, "{kinds} kinds");
            back.fill(9);
            ChunkView::decode(&buf[..len], &mut back).unwrap();
            assert_eq!(back, tiles, "{kinds} kinds, at once");
        }
        let many: [u16; TILES] = core::array::from_fn(|i| i as u16 % 65);
        assert!(Paletted::from_tiles(&many).is_err());
    }

    #[test]
    fn the_longest_packet_has_909_bytes() {
        let palette: [u16; 64] = core::array::from_fn(|i| i as u16);
        let indices: [u8; TILES] = core::array::from_fn(|i| (i % 64) as u8);
        let chunk = Chunk { entry: ENTRY, palette: &palette, indices: &indices };
        let mut buf = [0; 1200];
        assert_eq!(chunk.emit(&mut buf), Ok(Chunk::MAX_LEN));
        assert!(ChunkView::parse(&buf[..909]).is_ok());
        assert_eq!(ChunkView::parse(&buf[..908]).unwrap_err().kind, ErrorKind::TooShort);
        assert_eq!(ChunkView::parse(&buf[..910]).unwrap_err().kind, ErrorKind::TooLong);
    }

    #[test]
    fn a_palette_of_none_or_65_and_a_foreign_index_are_refused() {
        let indices = [0; TILES];
        let mut buf = [0; 1200];
        assert!(Chunk { entry: ENTRY, palette: &[], indices: &indices }.emit(&mut buf).is_err());
        assert!(
            Chunk { entry: ENTRY, palette: &[1; 65], indices: &indices }.emit(&mut buf).is_err()
        );
        let mut over = indices;
        over[9] = 2;
        assert!(Chunk { entry: ENTRY, palette: &[1, 2], indices: &over }.emit(&mut buf).is_err());

        let len =
            Chunk { entry: ENTRY, palette: &[1, 2], indices: &indices }.emit(&mut buf).unwrap();
        buf[17 + 3] = 0b11; // tile 4 becomes 3
        let error = ChunkView::parse(&buf[..len]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::PaletteIndex);
        assert_eq!((error.offset, error.needed, error.got), (20, 1, 3));
        assert_eq!(ChunkView::decode(&buf[..len], &mut [0; TILES]).unwrap_err(), error);
        buf[12] = 0;
        assert_eq!(ChunkView::parse(&buf[..len]).unwrap_err().kind, ErrorKind::PaletteCount);
        buf[12] = 65;
        assert_eq!(ChunkView::parse(&buf[..len]).unwrap_err().kind, ErrorKind::PaletteCount);
    }
}
