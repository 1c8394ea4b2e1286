//! Type 3: the entities that a player sees.

use zerocopy::little_endian::{I16, U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{Header, PacketType};
use super::ids::{ClientType, EntityId, Tick};
use super::layout::{self, Layout};
use super::tag;
use crate::fnv::Fnv32;
use crate::tlv::TlvBlock;
use crate::{EmitError, MAX_DATAGRAM, ParseError};

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 6 | header |
/// | 6 | 4 | tick |
/// | 10 | 1 | entity_count |
/// | 11 | 1 | packet_flags |
/// | 12 | .. | entities |
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    header: Header,
    tick: U32,
    entity_count: u8,
    packet_flags: u8,
}

const HEAD: usize = 12;
const _: () = assert!(size_of::<Raw>() == HEAD);

/// `packet_flags` bit 0: more EntityPackets of this tick follow.
const MORE: u8 = 1;

impl Layout for Raw {
    const NAME: &'static str = "Entities";
    const TYPE: PacketType = PacketType::ENTITIES;
}

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 4 | id |
/// | 4 | 2 | type_id |
/// | 6 | 2 | pos_x |
/// | 8 | 2 | pos_y |
/// | 10 | 2 | hp |
/// | 12 | 2 | hp_max |
/// | 14 | 2 | elo |
/// | 16 | 1 | entity_flags |
/// | 17 | 1 | meta_len |
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawEntry {
    id: U32,
    type_id: U16,
    pos_x: I16,
    pos_y: I16,
    hp: U16,
    hp_max: U16,
    elo: U16,
    entity_flags: u8,
    meta_len: u8,
}

const _: () = assert!(size_of::<RawEntry>() == Entity::BASE_LEN);

/// What a client may know of an entity's nature (bits of `entity_flags`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct EntityFlags(pub u8);

impl EntityFlags {
    /// It does not move: a chest, a sign, an item.
    pub const STATIC: Self = Self(1);
    /// Walking into it is an attack.
    pub const HOSTILE: Self = Self(1 << 1);
    /// It can be interacted with.
    pub const INTERACTABLE: Self = Self(1 << 2);

    /// Both sets together.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` is in this set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// One entity to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entity<'a> {
    /// Which entity.
    pub id: EntityId,
    /// What it is; 0 is a player.
    pub type_id: u16,
    /// Tiles to the east of the world's centre.
    pub x: i16,
    /// Tiles to the south of the world's centre.
    pub y: i16,
    /// Hit points.
    pub hp: u16,
    /// Hit points when unhurt.
    pub hp_max: u16,
    /// Elo rating.
    pub elo: u16,
    /// What one may know of its nature.
    pub flags: EntityFlags,
    /// A TLV block of at most 255 bytes, as [`crate::tlv::TlvWriter`] makes it.
    pub meta: &'a [u8],
}

impl Entity<'_> {
    /// Bytes of an entry without metadata.
    pub const BASE_LEN: usize = 18;
    /// The most metadata one entry carries.
    pub const MAX_META: usize = 255;

    /// Bytes of the entry.
    #[expect(clippy::len_without_is_empty, reason = "an entry is never empty")]
    pub const fn len(&self) -> usize {
        Self::BASE_LEN + self.meta.len()
    }

    /// The fixed part of the entry, which says that `meta_len` bytes of metadata follow. For those who write many
    /// entries and keep the count of [`EntityBuilder`] themselves.
    ///
    /// ```
    /// use caves_wire::caves::{EntitiesHead, EntitiesView, Entity, EntityFlags, EntityId, Tick};
    ///
    /// let stone = Entity {
    ///     id: EntityId(7), type_id: 9, x: 3, y: -4, hp: 0, hp_max: 0, elo: 0,
    ///     flags: EntityFlags::STATIC, meta: &[],
    /// };
    /// let mut packet = [0; EntitiesHead::LEN + Entity::BASE_LEN];
    /// EntitiesHead { tick: Tick::new(5), count: 1, more_follow: false }.emit(&mut packet)?;
    /// packet[EntitiesHead::LEN..].copy_from_slice(&stone.base(0));
    /// let view = EntitiesView::parse(&packet)?;
    /// assert_eq!(view.entities().next().unwrap().to_entity(), stone);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn base(&self, meta_len: u8) -> [u8; 18] {
        let raw = RawEntry {
            id: self.id.0.into(),
            type_id: self.type_id.into(),
            pos_x: self.x.into(),
            pos_y: self.y.into(),
            hp: self.hp.into(),
            hp_max: self.hp_max.into(),
            elo: self.elo.into(),
            entity_flags: self.flags.0,
            meta_len,
        };
        let mut base = [0; 18];
        base.copy_from_slice(raw.as_bytes());
        base
    }
}

/// The fixed part of an EntityPacket, before its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntitiesHead {
    /// The tick that the entities are of.
    pub tick: Tick,
    /// Entries in this packet.
    pub count: u8,
    /// Whether more packets of this tick follow.
    pub more_follow: bool,
}

impl EntitiesHead {
    /// Bytes of the fixed part.
    pub const LEN: usize = HEAD;

    /// Writes it to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is shorter than [`EntitiesHead::LEN`].
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        let got = buf.len();
        let short = EmitError::Buffer { packet: Raw::NAME, needed: HEAD, got };
        let raw = Raw {
            header: Header::new(Raw::TYPE, ClientType::OFFICIAL),
            tick: self.tick.get().into(),
            entity_count: self.count,
            packet_flags: if self.more_follow { MORE } else { 0 },
        };
        buf.get_mut(..HEAD).ok_or(short)?.copy_from_slice(raw.as_bytes());
        Ok(HEAD)
    }
}

/// Fills one EntityPacket entry by entry, feeding the tick's checksum as it writes (R13, R14).
///
/// ```
/// use caves_wire::caves::{EntitiesView, Entity, EntityBuilder, EntityFlags, EntityId, Tick};
/// use caves_wire::fnv::Fnv32;
///
/// let player = Entity {
///     id: EntityId(1), type_id: 0, x: 3, y: -4, hp: 20, hp_max: 20, elo: 1000,
///     flags: EntityFlags::default(), meta: &[],
/// };
/// let mut buf = [0; 1200];
/// let mut packet = EntityBuilder::new(&mut buf, Tick::new(9), Fnv32::new())?;
/// assert!(packet.push(&player)?);
/// let (len, checksum) = packet.finish(false);
/// let view = EntitiesView::parse(&buf[..len])?;
/// assert_eq!(view.entities().next().unwrap().x(), 3);
/// assert_eq!(view.checksum(Fnv32::new()), checksum);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct EntityBuilder<'b> {
    buf: &'b mut [u8],
    tick: Tick,
    len: usize,
    count: u8,
    checksum: Fnv32,
}

impl<'b> EntityBuilder<'b> {
    /// Starts a packet of `tick` in `buf`; `checksum` is that of the tick's packets before it.
    ///
    /// The packet has at most `buf.len()` bytes, and never more than 1200.
    ///
    /// # Errors
    /// `buf` has no room for the fixed part.
    pub fn new(buf: &'b mut [u8], tick: Tick, checksum: Fnv32) -> Result<Self, EmitError> {
        if buf.len() < HEAD {
            return Err(EmitError::Buffer { packet: Raw::NAME, needed: HEAD, got: buf.len() });
        }
        Ok(Self { buf, tick, len: HEAD, count: 0, checksum })
    }

    /// Adds an entry; `false` when it does not fit into this packet any more.
    ///
    /// # Errors
    /// Metadata over 255 bytes.
    pub fn push(&mut self, entity: &Entity<'_>) -> Result<bool, EmitError> {
        layout::limit::<Raw>("meta", entity.meta.len(), Entity::MAX_META)?;
        let end = self.len + entity.len();
        let Some(room) = self.buf.get_mut(self.len..end) else {
            return Ok(false);
        };
        if end > MAX_DATAGRAM || self.count == u8::MAX {
            return Ok(false);
        }
        let (base, meta) = room.split_at_mut(Entity::BASE_LEN);
        base.copy_from_slice(&entity.base(entity.meta.len() as u8));
        meta.copy_from_slice(entity.meta);
        self.checksum.update(room);
        self.len = end;
        self.count += 1;
        Ok(true)
    }

    /// Entries so far.
    pub const fn count(&self) -> u8 {
        self.count
    }

    /// Completes the packet: its length, and the checksum of the tick's packets up to here.
    pub fn finish(self, more_follow: bool) -> (usize, Fnv32) {
        // There is room for it: that was checked at the start.
        let _ = EntitiesHead { tick: self.tick, count: self.count, more_follow }.emit(self.buf);
        (self.len, self.checksum)
    }
}

/// An EntityPacket in a datagram.
#[derive(Clone, Copy)]
pub struct EntitiesView<'a> {
    raw: &'a Raw,
    entries: &'a [u8],
}

impl<'a> EntitiesView<'a> {
    /// Reads a datagram and checks that exactly the announced entries fill it.
    ///
    /// # Errors
    /// Another length, magic, version or type; metadata that is no TLV block (R24).
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let (raw, entries) = layout::head::<Raw>(datagram)?;
        let mut rest = entries;
        for _ in 0..raw.entity_count {
            let offset = datagram.len() - rest.len();
            let (entry, tail) = RawEntry::ref_from_prefix(rest).map_err(|_| {
                layout::too_short(Raw::NAME, offset + Entity::BASE_LEN, datagram.len())
            })?;
            let meta_len = usize::from(entry.meta_len);
            let (meta, tail) = tail.split_at_checked(meta_len).ok_or_else(|| {
                let needed = offset + Entity::BASE_LEN + meta_len;
                layout::too_short(Raw::NAME, needed, datagram.len())
            })?;
            tag::block(Raw::NAME, offset + Entity::BASE_LEN, meta)?;
            rest = tail;
        }
        if !rest.is_empty() {
            let needed = datagram.len() - rest.len();
            return Err(layout::too_long(Raw::NAME, needed, datagram.len()));
        }
        Ok(Self { raw, entries })
    }

    /// The tick that these entities are of.
    pub const fn tick(self) -> Tick {
        Tick::new(self.raw.tick.get())
    }

    /// Entities in this packet.
    pub const fn count(self) -> u8 {
        self.raw.entity_count
    }

    /// Whether more packets of this tick follow.
    pub const fn more_follow(self) -> bool {
        self.raw.packet_flags & MORE != 0
    }

    /// The entities in order.
    pub const fn entities(self) -> EntityIter<'a> {
        EntityIter(self.entries)
    }

    /// The bytes that the tick's checksum runs over (R13).
    pub const fn entry_bytes(self) -> &'a [u8] {
        self.entries
    }

    /// Goes on with the checksum of the tick's packets before this one.
    pub fn checksum(self, mut before: Fnv32) -> Fnv32 {
        before.update(self.entries);
        before
    }
}

impl core::fmt::Display for EntitiesView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let more = if self.more_follow() { " more" } else { "" };
        write!(f, "Entities tick={} count={}{more}", self.tick().get(), self.count())
    }
}

/// Iterates over entries: of a packet, or of the entry bytes of checked packets behind each other.
#[derive(Debug, Clone)]
pub struct EntityIter<'a>(&'a [u8]);

impl<'a> EntityIter<'a> {
    /// Iterates over [`EntitiesView::entry_bytes`] that were kept; ends at the first bytes that
    /// are no whole entry.
    pub const fn new(entry_bytes: &'a [u8]) -> Self {
        Self(entry_bytes)
    }

    /// The first entry of an entity. What comes before it is stepped over, its metadata not read again.
    ///
    /// ```
    /// use caves_wire::caves::{EntitiesView, Entity, EntityBuilder, EntityFlags, EntityId, Tick};
    /// use caves_wire::fnv::Fnv32;
    ///
    /// let mut buf = [0; 1200];
    /// let mut packet = EntityBuilder::new(&mut buf, Tick::new(9), Fnv32::new())?;
    /// for id in [3, 7, 9] {
    ///     let (id, flags) = (EntityId(id), EntityFlags::default());
    ///     packet.push(&Entity { id, type_id: 0, x: 3, y: -4, hp: 20, hp_max: 20, elo: 0, flags, meta: &[] })?;
    /// }
    /// let (len, _) = packet.finish(false);
    /// let entities = EntitiesView::parse(&buf[..len])?.entities();
    /// assert_eq!(entities.clone().of(EntityId(7)).unwrap().id(), EntityId(7));
    /// assert!(entities.of(EntityId(8)).is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of(mut self, id: EntityId) -> Option<EntityView<'a>> {
        loop {
            let (raw, rest) = RawEntry::ref_from_prefix(self.0).ok()?;
            if raw.id.get() == id.0 {
                return self.next();
            }
            self.0 = rest.get(usize::from(raw.meta_len)..)?;
        }
    }
}

impl<'a> Iterator for EntityIter<'a> {
    type Item = EntityView<'a>;

    fn next(&mut self) -> Option<EntityView<'a>> {
        let (raw, rest) = RawEntry::ref_from_prefix(self.0).ok()?;
        let (meta, rest) = rest.split_at_checked(raw.meta_len.into())?;
        let meta = TlvBlock::parse(Raw::NAME, 0, meta).ok()?;
        self.0 = rest;
        Some(EntityView { raw, meta })
    }
}

/// One entity in an EntityPacket.
#[derive(Clone, Copy)]
pub struct EntityView<'a> {
    raw: &'a RawEntry,
    meta: TlvBlock<'a>,
}

impl<'a> EntityView<'a> {
    /// Which entity.
    pub const fn id(self) -> EntityId {
        EntityId(self.raw.id.get())
    }

    /// What it is; 0 is a player.
    pub const fn type_id(self) -> u16 {
        self.raw.type_id.get()
    }

    /// Tiles to the east of the world's centre.
    pub const fn x(self) -> i16 {
        self.raw.pos_x.get()
    }

    /// Tiles to the south of the world's centre.
    pub const fn y(self) -> i16 {
        self.raw.pos_y.get()
    }

    /// Hit points.
    pub const fn hp(self) -> u16 {
        self.raw.hp.get()
    }

    /// Hit points when unhurt.
    pub const fn hp_max(self) -> u16 {
        self.raw.hp_max.get()
    }

    /// Elo rating.
    pub const fn elo(self) -> u16 {
        self.raw.elo.get()
    }

    /// What one may know of its nature; reserved bits as they came (R25).
    pub const fn flags(self) -> EntityFlags {
        EntityFlags(self.raw.entity_flags)
    }

    /// Its metadata (section 3).
    pub const fn meta(self) -> TlvBlock<'a> {
        self.meta
    }

    /// The same as a plain struct.
    pub const fn to_entity(self) -> Entity<'a> {
        Entity {
            id: self.id(),
            type_id: self.type_id(),
            x: self.x(),
            y: self.y(),
            hp: self.hp(),
            hp_max: self.hp_max(),
            elo: self.elo(),
            flags: self.flags(),
            meta: self.meta.as_bytes(),
        }
    }
}

impl core::fmt::Debug for EntityView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.to_entity().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn bare(id: u32) -> Entity<'static> {
        Entity {
            id: EntityId(id),
            type_id: 0x0201,
            x: -2,
            y: 0x0403,
            hp: 5,
            hp_max: 6,
            elo: 1000,
            flags: EntityFlags::HOSTILE,
            meta: &[],
        }
    }

    fn build(limit: usize, entities: &[Entity<'_>], buf: &mut [u8]) -> (usize, u8, u32) {
        let mut packet = EntityBuilder::new(&mut buf[..limit], Tick::new(7), Fnv32::new()).unwrap();
        for entity in entities {
            if !packet.push(entity).unwrap() {
                break;
            }
        }
        let count = packet.count();
        let (len, checksum) = packet.finish(false);
        (len, count, checksum.finish())
    }

    #[test]
    fn bytes_stand_where_the_note_says() {
        let mut buf = [0xEE; 1200];
        let named = Entity { meta: &[4, 1, b'A'], ..bare(0x0403_0201) };
        let (len, count, checksum) = build(1200, &[named], &mut buf);
        assert_eq!((len, count), (12 + 18 + 3, 1));
        assert_eq!(buf[..6], [0x4C, 0x52, 1, 3, 0, 0], "header");
        assert_eq!(buf[6..12], [7, 0, 0, 0, 1, 0], "tick, count, flags");
        assert_eq!(buf[12..18], [1, 2, 3, 4, 1, 2], "id, type");
        assert_eq!(buf[18..22], [0xFE, 0xFF, 3, 4], "position");
        assert_eq!(buf[22..28], [5, 0, 6, 0, 0xE8, 3], "hp, hp_max, elo");
        assert_eq!(buf[28..33], [2, 3, 4, 1, b'A'], "flags, meta");
        let mut fnv = Fnv32::new();
        fnv.update(&buf[12..33]);
        assert_eq!(checksum, fnv.finish());
    }

    #[test]
    fn sixty_six_bare_entries_fit_and_no_more() {
        let mut buf = [0; 1200];
        let entities: [_; 67] = core::array::from_fn(|i| bare(i as u32 + 1));
        for (given, len, count) in
            [(65, 12 + 65 * 18, 65), (66, 12 + 66 * 18, 66), (67, 12 + 66 * 18, 66)]
        {
            let built = build(1200, &entities[..given], &mut buf);
            assert_eq!((built.0, built.1), (len, count));
            assert_eq!(EntitiesView::parse(&buf[..len]).unwrap().count(), count);
        }
    }

    #[test]
    fn full_metadata_is_cut_before_the_limit() {
        let mut meta = [0; 255];
        meta[..2].copy_from_slice(&[0xEE, 253]);
        let entities: [_; 5] = core::array::from_fn(|i| Entity { meta: &meta, ..bare(i as u32) });
        let mut buf = [0; 1200];
        assert_eq!(build(1200, &entities, &mut buf).1, 4, "12 + 4 * 273 = 1104");
        assert_eq!(build(1104, &entities, &mut buf).1, 4);
        assert_eq!(build(1103, &entities, &mut buf).1, 3);
        let over = Entity { meta: &[0; 256], ..bare(1) };
        let mut packet = EntityBuilder::new(&mut buf, Tick::new(7), Fnv32::new()).unwrap();
        assert!(packet.push(&over).is_err());
    }

    #[test]
    fn an_empty_update_has_the_offset_basis() {
        let mut buf = [0; 1200];
        let (len, _, checksum) = build(1200, &[], &mut buf);
        assert_eq!((len, checksum), (12, 0x811C_9DC5));
        assert_eq!(EntitiesView::parse(&buf[..12]).unwrap().entities().count(), 0);
    }

    #[test]
    fn a_count_that_does_not_match_is_refused() {
        let mut buf = [0; 1200];
        let (len, ..) = build(1200, &[bare(1), bare(2)], &mut buf);
        buf[10] = 3;
        assert_eq!(EntitiesView::parse(&buf[..len]).unwrap_err().kind, ErrorKind::TooShort);
        buf[10] = 1;
        assert_eq!(EntitiesView::parse(&buf[..len]).unwrap_err().kind, ErrorKind::TooLong);
        buf[10] = 2;
        buf[12 + 17] = 18; // the first entry swallows the second as metadata
        assert!(EntitiesView::parse(&buf[..len]).is_err());
    }
}
