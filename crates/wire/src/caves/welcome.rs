//! Type 11: the client is in.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{Header, PacketType};
use super::ids::{ClientType, EntityId, Features, Nonce, Sequence, Tick, Token};
use super::layout::{self, Layout};
use super::tag;
use crate::tlv::TlvBlock;
use crate::{EmitError, ErrorKind, ParseError};

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 6 | header |
/// | 6 | 8 | client_nonce |
/// | 14 | 8 | auth_token |
/// | 22 | 4 | player_entity_id |
/// | 26 | 4 | tick |
/// | 30 | 1 | tick_rate |
/// | 31 | 2 | meta_len |
/// | 33 | meta_len | meta |
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    header: Header,
    client_nonce: U64,
    auth_token: U64,
    player_entity_id: U32,
    tick: U32,
    tick_rate: u8,
    meta_len: U16,
}

const HEAD: usize = 33;
const _: () = assert!(size_of::<Raw>() == HEAD);

impl Layout for Raw {
    const NAME: &'static str = "Welcome";
    const TYPE: PacketType = PacketType::WELCOME;
}

/// A Welcome to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Welcome<'a> {
    /// The attempt that is answered.
    pub nonce: Nonce,
    /// The session's token.
    pub token: Token,
    /// The player's entity.
    pub player: EntityId,
    /// The server's present tick.
    pub tick: Tick,
    /// Ticks a second, at least 1.
    pub tick_rate: u8,
    /// A TLV block with what was granted (section 2).
    pub meta: &'a [u8],
}

impl Welcome<'_> {
    /// Bytes that [`Welcome::emit`] writes.
    #[expect(clippy::len_without_is_empty, reason = "a packet is never empty")]
    pub const fn len(&self) -> usize {
        HEAD + self.meta.len()
    }

    /// Writes the packet to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is too short, or the packet would pass 1200 bytes.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        layout::limit::<Raw>("meta", self.meta.len(), usize::from(u16::MAX))?;
        let raw = Raw {
            header: Header::new(Raw::TYPE, ClientType::OFFICIAL),
            client_nonce: self.nonce.0.into(),
            auth_token: self.token.0.into(),
            player_entity_id: self.player.0.into(),
            tick: self.tick.get().into(),
            tick_rate: self.tick_rate,
            meta_len: (self.meta.len() as u16).into(),
        };
        layout::put(&raw, self.meta, buf)
    }
}

/// A Welcome in a datagram.
#[derive(Clone, Copy)]
pub struct WelcomeView<'a> {
    raw: &'a Raw,
    meta: TlvBlock<'a>,
}

impl<'a> WelcomeView<'a> {
    /// Reads a datagram of 33 bytes and the announced metadata.
    ///
    /// # Errors
    /// Another length, magic, version or type; a rate of 0; metadata that is no TLV block (R24).
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let (raw, meta) = layout::with_meta(datagram, |raw: &Raw| raw.meta_len)?;
        if raw.tick_rate == 0 {
            return Err(ParseError {
                packet: Raw::NAME,
                kind: ErrorKind::Range,
                offset: 30,
                needed: 1,
                got: 0,
            });
        }
        Ok(Self { raw, meta })
    }

    /// The attempt that is answered.
    pub const fn nonce(self) -> Nonce {
        Nonce(self.raw.client_nonce.get())
    }

    /// The session's token.
    pub const fn token(self) -> Token {
        Token(self.raw.auth_token.get())
    }

    /// The player's entity.
    pub const fn player(self) -> EntityId {
        EntityId(self.raw.player_entity_id.get())
    }

    /// The server's tick when it answered.
    pub const fn tick(self) -> Tick {
        Tick::new(self.raw.tick.get())
    }

    /// Ticks a second, never 0.
    pub const fn tick_rate(self) -> u8 {
        self.raw.tick_rate
    }

    /// The features granted.
    pub fn features(self) -> Features {
        Features(self.meta.u32(tag::FEATURES).unwrap_or(0))
    }

    /// The lowest event that the server has not seen acknowledged; only with events granted.
    pub fn next_event(self) -> Option<Sequence> {
        self.meta.u32(tag::NEXT_EVENT).map(Sequence::new)
    }

    /// Everything granted. Server name and message of the day may be cut into several fields.
    pub const fn meta(self) -> TlvBlock<'a> {
        self.meta
    }
}

impl core::fmt::Display for WelcomeView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "Welcome nonce={:016x} player={} tick={} rate={} features={:#x}",
            self.nonce().0,
            self.player().0,
            self.tick().get(),
            self.tick_rate(),
            self.features().0,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_stand_where_the_note_says() {
        let meta = [0x21, 4, 3, 0, 0, 0, 0x26, 4, 0xFF, 0xFF, 0xFF, 0xFF];
        let welcome = Welcome {
            nonce: Nonce(1),
            token: Token(2),
            player: EntityId(3),
            tick: Tick::new(4),
            tick_rate: 10,
            meta: &meta,
        };
        let mut buf = [0; 45];
        assert_eq!(welcome.emit(&mut buf), Ok(45));
        assert_eq!(buf[..6], [0x4C, 0x52, 1, 11, 0, 0]);
        assert_eq!(buf[6..22], [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(buf[22..33], [3, 0, 0, 0, 4, 0, 0, 0, 10, 12, 0]);
        assert_eq!(buf[33..], meta);
        let view = WelcomeView::parse(&buf).unwrap();
        assert_eq!(view.features(), Features::BURST.union(Features::EVENTS));
        assert_eq!(view.next_event().map(|s| s.get()), Some(u32::MAX));
        buf[30] = 0;
        assert_eq!(WelcomeView::parse(&buf).unwrap_err().kind, ErrorKind::Range);
    }
}
