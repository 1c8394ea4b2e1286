//! Type 4: what is there to know about an entity?

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{Header, PacketType};
use super::ids::{ClientType, EntityId, Token};
use super::layout::{self, Layout};
use crate::{EmitError, ParseError};

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 6 | header |
/// | 6 | 8 | auth_token |
/// | 14 | 4 | entity_id |
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    header: Header,
    auth_token: U64,
    entity_id: U32,
}

const _: () = assert!(size_of::<Raw>() == Query::LEN);

impl Layout for Raw {
    const NAME: &'static str = "Query";
    const TYPE: PacketType = PacketType::QUERY;
}

/// An EntityQueryPacket to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query {
    /// Which kind of client asks.
    pub client_type: ClientType,
    /// The session.
    pub token: Token,
    /// The entity asked about.
    pub entity: EntityId,
}

impl Query {
    /// Bytes of every EntityQueryPacket.
    pub const LEN: usize = 18;

    /// Writes the packet to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is shorter than [`Query::LEN`].
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        let raw = Raw {
            header: Header::new(Raw::TYPE, self.client_type),
            auth_token: self.token.0.into(),
            entity_id: self.entity.0.into(),
        };
        layout::put(&raw, &[], buf)
    }
}

/// An EntityQueryPacket in a datagram.
#[derive(Clone, Copy)]
pub struct QueryView<'a>(&'a Raw);

impl<'a> QueryView<'a> {
    /// Reads a datagram of exactly 18 bytes.
    ///
    /// # Errors
    /// Another length, magic, version or type.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        layout::exact(datagram).map(Self)
    }

    /// The session's token.
    pub const fn token(self) -> Token {
        Token(self.0.auth_token.get())
    }

    /// The entity asked about.
    pub const fn entity(self) -> EntityId {
        EntityId(self.0.entity_id.get())
    }
}

impl core::fmt::Display for QueryView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Query entity={}", self.entity().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_stand_where_the_note_says() {
        let query =
            Query { client_type: ClientType(5), token: Token(0x0102), entity: EntityId(0x0304) };
        let mut buf = [0; 18];
        assert_eq!(query.emit(&mut buf), Ok(18));
        let expected = [0x4C, 0x52, 1, 4, 5, 0, 2, 1, 0, 0, 0, 0, 0, 0, 4, 3, 0, 0];
        assert_eq!(buf, expected);
        let view = QueryView::parse(&buf).unwrap();
        assert_eq!((view.token(), view.entity()), (query.token, query.entity));
    }
}
