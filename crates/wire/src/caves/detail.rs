//! Type 5: everything there is to know about an entity.

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{Header, PacketType};
use super::ids::{ClientType, EntityId, Tick};
use super::layout::{self, Layout};
use crate::tlv::TlvBlock;
use crate::{EmitError, ParseError};

/// The most metadata that our server puts into a detail, in bytes, so that it fits an envelope
/// (R23). What is read may have up to 1184.
pub const MAX_DETAIL_META: usize = 1150;

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 6 | header |
/// | 6 | 4 | tick |
/// | 10 | 4 | entity_id |
/// | 14 | 2 | meta_len |
/// | 16 | meta_len | meta |
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    header: Header,
    tick: U32,
    entity_id: U32,
    meta_len: U16,
}

const HEAD: usize = 16;
const _: () = assert!(size_of::<Raw>() == HEAD);

impl Layout for Raw {
    const NAME: &'static str = "Detail";
    const TYPE: PacketType = PacketType::DETAIL;
}

/// An EntityDetailPacket to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Detail<'a> {
    /// The tick at which the query was answered.
    pub tick: Tick,
    /// The entity described.
    pub entity: EntityId,
    /// A TLV block of at most [`MAX_DETAIL_META`] bytes; empty says nothing (R23).
    pub meta: &'a [u8],
}

impl Detail<'_> {
    /// Bytes that [`Detail::emit`] writes.
    #[expect(clippy::len_without_is_empty, reason = "a packet is never empty")]
    pub const fn len(&self) -> usize {
        HEAD + self.meta.len()
    }

    /// Writes the packet to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is too short, or the metadata is longer than [`MAX_DETAIL_META`].
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        layout::limit::<Raw>("meta", self.meta.len(), MAX_DETAIL_META)?;
        let raw = Raw {
            header: Header::new(Raw::TYPE, ClientType::OFFICIAL),
            tick: self.tick.get().into(),
            entity_id: self.entity.0.into(),
            meta_len: (self.meta.len() as u16).into(),
        };
        layout::put(&raw, self.meta, buf)
    }
}

/// An EntityDetailPacket in a datagram.
#[derive(Clone, Copy)]
pub struct DetailView<'a> {
    raw: &'a Raw,
    meta: TlvBlock<'a>,
}

impl<'a> DetailView<'a> {
    /// Reads a datagram of 16 bytes and the announced metadata.
    ///
    /// # Errors
    /// Another length, magic, version or type; metadata that is no TLV block (R24).
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let (raw, meta) = layout::with_meta(datagram, |raw: &Raw| raw.meta_len)?;
        Ok(Self { raw, meta })
    }

    /// The tick at which the query was answered.
    pub const fn tick(self) -> Tick {
        Tick::new(self.raw.tick.get())
    }

    /// The entity described.
    pub const fn entity(self) -> EntityId {
        EntityId(self.raw.entity_id.get())
    }

    /// What there is to know (section 3).
    pub const fn meta(self) -> TlvBlock<'a> {
        self.meta
    }
}

impl core::fmt::Display for DetailView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (tick, entity) = (self.tick().get(), self.entity().0);
        write!(f, "Detail tick={tick} entity={entity} meta={}", self.meta.as_bytes().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::caves::tag;

    #[test]
    fn bytes_stand_where_the_note_says() {
        let detail =
            Detail { tick: Tick::new(0x0102), entity: EntityId(0x0304), meta: &[5, 2, b'h', b'i'] };
        let mut buf = [0; 20];
        assert_eq!(detail.emit(&mut buf), Ok(20));
        assert_eq!(buf[..6], [0x4C, 0x52, 1, 5, 0, 0], "header");
        assert_eq!(buf[6..14], [2, 1, 0, 0, 4, 3, 0, 0], "tick, entity");
        assert_eq!(buf[14..], [4, 0, 5, 2, b'h', b'i'], "meta");
        let view = DetailView::parse(&buf).unwrap();
        assert_eq!(view.meta().first(tag::SIGN_TEXT), Some(&b"hi"[..]));
    }

    #[test]
    fn metadata_over_the_limit_is_not_written_but_read() {
        let mut buf = [0; 1200];
        let mut meta = [0; 1184];
        for field in meta.chunks_mut(148) {
            field[..2].copy_from_slice(&[0xEE, 146]);
        }
        let detail = Detail { tick: Tick::new(1), entity: EntityId(1), meta: &meta[..1151] };
        assert!(detail.emit(&mut buf).is_err());
        let small = Detail { meta: &[], ..detail };
        assert_eq!(small.emit(&mut buf), Ok(16));
        buf[14..16].copy_from_slice(&1184u16.to_le_bytes());
        buf[16..].copy_from_slice(&meta);
        assert_eq!(DetailView::parse(&buf).unwrap().meta().fields().count(), 8);
        assert_eq!(DetailView::parse(&buf[..1199]).unwrap_err().kind, ErrorKind::TooShort);
    }
}
