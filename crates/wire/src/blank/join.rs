//! Type 2: a client is in, or the world changes.

use zerocopy::little_endian::{F32, I16, I32, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{Header, HeaderView, Numbers, PacketType, Raw as RawHeader};
use super::layout::{self, finite, too_short};
use super::name::Name;
use crate::{EmitError, ErrorKind, ParseError};

const NAME: &str = "Join";
const NEWEST: &str = "NewestJoin";

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 4 | entity id |
/// | 4 | 12 | chunk x, y, z |
/// | 16 | 12 | position in the chunk, x, y, z |
/// | 28 | 12 | velocity |
/// | 40 | 16 | orientation, x, y, z, w |
/// | 56 | 12 | angular velocity |
/// | 68 | 32 | world name |
///
/// Offsets are those of the payload, 16 less than those of the datagram.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    entity: U32,
    chunk: [I32; 3],
    /// Position, velocity, orientation, angular velocity: 3 + 3 + 4 + 3.
    floats: [F32; 13],
}

const FIXED: usize = 68;
const _: () = assert!(size_of::<Raw>() == FIXED);
const _: () = assert!(Header::LEN + FIXED + Name::MAX == Join::LEN);

/// A Join as it is written.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Whole<B> {
    header: RawHeader,
    body: B,
    world: [u8; Name::MAX],
}

/// The number of an entity; servers count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntityId(pub u32);

/// Where and how a player enters a world.
///
/// Nothing on the wire depends on the units: programs of the time of this layout use blocks, blocks
/// a millisecond and radians a millisecond.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spawn {
    /// The player's entity.
    pub entity: EntityId,
    /// Its chunk: x, y, z.
    pub chunk: [i32; 3],
    /// Where in the chunk it stands: x, y, z.
    pub position: [f32; 3],
    /// Where it goes: x, y, z.
    pub velocity: [f32; 3],
    /// How it is turned, a quaternion: x, y, z, w.
    pub orientation: [f32; 4],
    /// How it turns: x, y, z.
    pub angular_velocity: [f32; 3],
}

impl Spawn {
    /// At rest at the origin, not turned.
    pub const fn at_origin(entity: EntityId) -> Self {
        Self {
            entity,
            chunk: [0; 3],
            position: [0.0; 3],
            velocity: [0.0; 3],
            orientation: [0.0, 0.0, 0.0, 1.0],
            angular_velocity: [0.0; 3],
        }
    }
}

/// A Join to be written. Its numbers have to be finite: receivers refuse others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Join {
    /// Its number and acknowledgement.
    pub numbers: Numbers,
    /// Who the client is, and where.
    pub spawn: Spawn,
    /// The world's name.
    pub world: Name,
}

impl Join {
    /// Bytes of every Join that is written.
    pub const LEN: usize = 116;

    /// Writes the packet to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is shorter than [`Join::LEN`].
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        let Spawn { entity, chunk, position, velocity, orientation, angular_velocity } = self.spawn;
        let mut floats = [F32::ZERO; 13];
        let parts = position.iter().chain(&velocity).chain(&orientation).chain(&angular_velocity);
        floats.iter_mut().zip(parts).for_each(|(place, value)| place.set(*value));
        let body = Raw { entity: entity.0.into(), chunk: chunk.map(I32::new), floats };
        let header = RawHeader::new(PacketType::JOIN, self.numbers);
        layout::put(NAME, &Whole { header, body, world: *self.world.field() }, &[], buf)
    }
}

/// A Join in a datagram.
#[derive(Clone, Copy)]
pub struct JoinView<'a> {
    header: HeaderView<'a>,
    raw: &'a Raw,
    world: &'a [u8],
}

impl<'a> JoinView<'a> {
    /// Reads a Join of 84 bytes and a world name of any length, as the protocol's own document
    /// allows it later; but a payload of exactly 78 bytes is a [`NewestJoinView`].
    ///
    /// # Errors
    /// Fewer bytes, another tag or type, the newest layout, a number that is infinite or none.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let header = layout::open(NAME, PacketType::JOIN, datagram)?;
        let payload = header.payload();
        let got = Header::LEN + payload.len();
        let (raw, world) =
            Raw::ref_from_prefix(payload).map_err(|_| too_short(NAME, Header::LEN + FIXED, got))?;
        if got == NewestJoin::LEN {
            let kind = ErrorKind::Version;
            return Err(ParseError { packet: NAME, kind, offset: got, needed: Join::LEN, got });
        }
        finite(NAME, Header::LEN + 16, &raw.floats)?;
        Ok(Self { header, raw, world })
    }

    /// Its number and acknowledgement.
    pub const fn header(self) -> HeaderView<'a> {
        self.header
    }

    /// Who the client is, and where; all numbers are finite.
    pub fn spawn(self) -> Spawn {
        let floats = self.raw.floats.map(F32::get);
        let three = |at: usize| core::array::from_fn(|i| floats[at + i]);
        Spawn {
            entity: EntityId(self.raw.entity.get()),
            chunk: self.raw.chunk.map(I32::get),
            position: three(0),
            velocity: three(3),
            orientation: core::array::from_fn(|i| floats[6 + i]),
            angular_velocity: three(10),
        }
    }

    /// The world's name.
    pub fn world(self) -> Name {
        Name::from_field(self.world)
    }
}

impl core::fmt::Display for JoinView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Spawn { entity, chunk: [x, y, z], position, .. } = self.spawn();
        write!(f, "Join {} entity={} chunk={x},{y},{z}", self.header.numbers(), entity.0)?;
        let [x, y, z] = position;
        write!(f, " position={x},{y},{z} world=\"{}\"", self.world())
    }
}

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 4 | entity id |
/// | 4 | 12 | chunk x, y, z |
/// | 16 | 6 | position in the chunk, x, y, z: 65535 is its far side |
/// | 22 | 12 | velocity |
/// | 34 | 8 | orientation, packed |
/// | 42 | 2 | pitch: 32767 is a quarter turn |
/// | 44 | 2 | yaw: 32767 is half a turn |
/// | 46 | 32 | world name |
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawNewest {
    entity: U32,
    chunk: [I32; 3],
    position: [U16; 3],
    velocity: [F32; 3],
    orientation: U64,
    pitch: I16,
    yaw: I16,
}

const NEWEST_FIXED: usize = 46;
const _: () = assert!(size_of::<RawNewest>() == NEWEST_FIXED);
const _: () = assert!(Header::LEN + NEWEST_FIXED + Name::MAX == NewestJoin::LEN);

/// A Join of the newest programs, to be written: fields as they stand on the wire (section 7).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NewestJoin {
    /// Its number and acknowledgement.
    pub numbers: Numbers,
    /// The player's entity.
    pub entity: EntityId,
    /// Its chunk: x, y, z.
    pub chunk: [i32; 3],
    /// Where in the chunk it stands: x, y, z, in parts of 65535.
    pub position: [u16; 3],
    /// Where it goes: x, y, z; finite.
    pub velocity: [f32; 3],
    /// How it is turned: which of x, y, z, w is the largest in the highest two bits, the others in
    /// 20 bits each.
    pub orientation: u64,
    /// How far it looks up, in parts of 32767 of a quarter turn.
    pub pitch: i16,
    /// Where it looks, in parts of 32767 of half a turn.
    pub yaw: i16,
    /// The world's name.
    pub world: Name,
}

impl NewestJoin {
    /// Bytes of every such Join; by this length alone it is told from the older one.
    pub const LEN: usize = 94;

    /// Writes the packet to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is shorter than [`NewestJoin::LEN`].
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        let body = RawNewest {
            entity: self.entity.0.into(),
            chunk: self.chunk.map(I32::new),
            position: self.position.map(U16::new),
            velocity: self.velocity.map(F32::new),
            orientation: self.orientation.into(),
            pitch: self.pitch.into(),
            yaw: self.yaw.into(),
        };
        let header = RawHeader::new(PacketType::JOIN, self.numbers);
        layout::put(NEWEST, &Whole { header, body, world: *self.world.field() }, &[], buf)
    }
}

/// A Join of the newest programs in a datagram.
#[derive(Clone, Copy)]
pub struct NewestJoinView<'a> {
    header: HeaderView<'a>,
    raw: &'a RawNewest,
    world: &'a [u8],
}

impl<'a> NewestJoinView<'a> {
    /// Reads a datagram of exactly 94 bytes.
    ///
    /// # Errors
    /// Another length, tag or type, a number that is infinite or none.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let header = layout::open(NEWEST, PacketType::JOIN, datagram)?;
        let (needed, got) = (NewestJoin::LEN, Header::LEN + header.payload().len());
        if got > needed {
            let kind = ErrorKind::TooLong;
            return Err(ParseError { packet: NEWEST, kind, offset: needed, needed, got });
        }
        let (raw, world) = RawNewest::ref_from_prefix(header.payload())
            .ok()
            .filter(|_| got == needed)
            .ok_or(too_short(NEWEST, needed, got))?;
        finite(NEWEST, Header::LEN + 22, &raw.velocity)?;
        Ok(Self { header, raw, world })
    }

    /// Its number and acknowledgement.
    pub const fn header(self) -> HeaderView<'a> {
        self.header
    }

    /// All of it, to look at or to write again.
    pub fn to_join(self) -> NewestJoin {
        NewestJoin {
            numbers: self.header.numbers(),
            entity: EntityId(self.raw.entity.get()),
            chunk: self.raw.chunk.map(I32::get),
            position: self.raw.position.map(U16::get),
            velocity: self.raw.velocity.map(F32::get),
            orientation: self.raw.orientation.get(),
            pitch: self.raw.pitch.get(),
            yaw: self.raw.yaw.get(),
            world: Name::from_field(self.world),
        }
    }
}

impl core::fmt::Display for NewestJoinView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let NewestJoin { numbers, entity, chunk: [x, y, z], world, .. } = self.to_join();
        write!(f, "Join {numbers} entity={} chunk={x},{y},{z} world=\"{world}\" newest", entity.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blank::{Ack, Seq};
    use std::string::ToString;

    /// The computed vector of section 9: each field has its own value.
    fn whole() -> Join {
        Join {
            numbers: Numbers { seq: Seq::new(9), ack: Ack::new(Seq::new(4), 0xFFFF_FFFD) },
            spawn: Spawn {
                entity: EntityId(534_574),
                chunk: [7, 2, -3],
                position: [1.5, 0.9, 12.0],
                velocity: [0.025, 0.001, 0.0],
                orientation: [0.0, 0.0, 0.505, 0.863],
                angular_velocity: [0.01, 0.00302, 0.0985],
            },
            world: Name::new("test"),
        }
    }

    #[test]
    fn bytes_stand_where_the_note_says() {
        let mut buf = [0xEE; 116];
        assert_eq!(whole().emit(&mut buf), Ok(116));
        assert_eq!(
            buf[..16],
            [0xAF, 0xB1, 0x1A, 0xFB, 9, 0, 4, 0, 0xFD, 255, 255, 255, 2, 0, 0, 0]
        );
        assert_eq!(buf[16..20], [0x2E, 0x28, 8, 0]);
        assert_eq!(buf[20..32], [7, 0, 0, 0, 2, 0, 0, 0, 0xFD, 255, 255, 255]);
        assert_eq!(buf[32..44], [0, 0, 0xC0, 0x3F, 0x66, 0x66, 0x66, 0x3F, 0, 0, 0x40, 0x41]);
        assert_eq!(buf[44..56], [0xCD, 0xCC, 0xCC, 0x3C, 0x6F, 0x12, 0x83, 0x3A, 0, 0, 0, 0]);
        assert_eq!(buf[56..64], [0; 8]);
        assert_eq!(buf[64..72], [0xAE, 0x47, 1, 0x3F, 0x91, 0xED, 0x5C, 0x3F]);
        assert_eq!(buf[72..84], [10, 215, 35, 60, 49, 235, 69, 59, 94, 186, 201, 61]);
        assert_eq!(buf[84..89], *b"test\0");
        assert_eq!(buf[89..], [0; 27]);
        let view = JoinView::parse(&buf).unwrap();
        assert_eq!((view.spawn(), view.world()), (whole().spawn, whole().world));
        assert_eq!(
            view.to_string(),
            "Join seq=9 ack=4 fffffffd entity=534574 chunk=7,2,-3 position=1.5,0.9,12 world=\"test\""
        );
    }

    #[test]
    fn the_world_name_may_end_early_and_nothing_else() {
        let mut buf = [0; 120];
        whole().emit(&mut buf).unwrap();
        for len in 16..84 {
            let error = JoinView::parse(&buf[..len]).unwrap_err();
            assert_eq!((error.kind, error.needed, error.got), (ErrorKind::TooShort, 84, len));
        }
        for len in (84..=120).filter(|len| *len != 94) {
            let world = JoinView::parse(&buf[..len]).unwrap().world();
            assert_eq!(world.as_bytes(), &b"test"[..(len - 84).min(4)]);
        }
        assert_eq!(JoinView::parse(&buf[..94]).unwrap_err().kind, ErrorKind::Version);
    }

    #[test]
    fn numbers_that_are_none_are_refused_at_their_place() {
        for (place, bits) in [(0, 0x7F80_0000u32), (5, 0xFF80_0000), (12, 0x7FC0_0001)] {
            let mut buf = [0; 116];
            whole().emit(&mut buf).unwrap();
            let at = 32 + 4 * place;
            buf[at..at + 4].copy_from_slice(&bits.to_le_bytes());
            let error = JoinView::parse(&buf).unwrap_err();
            assert_eq!((error.kind, error.offset), (ErrorKind::NonFinite, at));
        }
    }

    #[test]
    fn the_newest_join_has_one_length_and_its_own_layout() {
        let join = NewestJoin {
            numbers: Numbers::first(),
            entity: EntityId(0x0102_0304),
            chunk: [1, -2, 3],
            position: [0x1111, 0x2222, 0xFFFF],
            velocity: [1.0, -1.0, 0.5],
            orientation: 0xC7FF_FF7F_FFF7_FFFF,
            pitch: -2,
            yaw: 0x7FFF,
            world: Name::new("default"),
        };
        let mut buf = [0; 95];
        assert_eq!(join.emit(&mut buf), Ok(94));
        assert_eq!(buf[16..20], [4, 3, 2, 1]);
        assert_eq!(buf[20..32], [1, 0, 0, 0, 0xFE, 255, 255, 255, 3, 0, 0, 0]);
        assert_eq!(buf[32..38], [0x11, 0x11, 0x22, 0x22, 0xFF, 0xFF]);
        assert_eq!(buf[38..50], [0, 0, 0x80, 0x3F, 0, 0, 0x80, 0xBF, 0, 0, 0, 0x3F]);
        assert_eq!(buf[50..58], [0xFF, 0xFF, 0xF7, 0xFF, 0x7F, 0xFF, 0xFF, 0xC7]);
        assert_eq!(buf[58..62], [0xFE, 0xFF, 0xFF, 0x7F]);
        assert_eq!(buf[62..70], *b"default\0");
        assert_eq!(NewestJoinView::parse(&buf[..94]).unwrap().to_join(), join);
        assert_eq!(NewestJoinView::parse(&buf).unwrap_err().kind, ErrorKind::TooLong);
        for len in 16..94 {
            let error = NewestJoinView::parse(&buf[..len]).unwrap_err();
            assert_eq!((error.kind, error.got), (ErrorKind::TooShort, len));
        }
        buf[41] = 0x7F;
        buf[40] = 0x80;
        let error = NewestJoinView::parse(&buf[..94]).unwrap_err();
        assert_eq!((error.kind, error.offset), (ErrorKind::NonFinite, 38));
    }
}
