//! Kind 3: a client has a session.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{Header, Kind};
use super::ids::{Cookie, Nonce, PlayerId, Tick};
use super::layout::{self, Layout};
use crate::{EmitError, ParseError};

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 10 | header |
/// | 10 | 8 | nonce |
/// | 18 | 8 | session |
/// | 26 | 1 | player_id |
/// | 27 | 4 | tick |
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    header: Header,
    nonce: U64,
    session: U64,
    player_id: u8,
    tick: U32,
}

const _: () = assert!(size_of::<Raw>() == Welcome::LEN);

impl Layout for Raw {
    const NAME: &'static str = "Welcome";
    const KIND: Kind = Kind::WELCOME;
}

/// A Welcome to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Welcome {
    /// The nonce of the Hello that it answers.
    pub nonce: Nonce,
    /// The session.
    pub session: Cookie,
    /// Which player in the snapshots is the receiver.
    pub player: PlayerId,
    /// The server's tick.
    pub tick: Tick,
}

impl Welcome {
    /// Bytes of every Welcome. More than a Hello has: a server that must not amplify answers the
    /// second one.
    pub const LEN: usize = 31;

    /// Writes the packet to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is shorter than [`Welcome::LEN`].
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        let raw = Raw {
            header: Header::new(Raw::KIND),
            nonce: self.nonce.0.into(),
            session: self.session.get().into(),
            player_id: self.player.0,
            tick: self.tick.get().into(),
        };
        layout::put(&raw, &[], buf)
    }
}

/// A Welcome in a datagram.
#[derive(Clone, Copy)]
pub struct WelcomeView<'a> {
    raw: &'a Raw,
    session: Cookie,
}

impl<'a> WelcomeView<'a> {
    /// Reads a datagram of exactly 31 bytes.
    ///
    /// # Errors
    /// Another length, magic, version or kind; no session.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let (raw, _) = layout::head::<Raw>(datagram)?;
        let session = layout::cookie::<Raw>(raw.session, 18)?;
        layout::end::<Raw>(datagram, Welcome::LEN)?;
        Ok(Self { raw, session })
    }

    /// The nonce of the Hello that it answers.
    pub const fn nonce(self) -> Nonce {
        Nonce(self.raw.nonce.get())
    }

    /// The session.
    pub const fn session(self) -> Cookie {
        self.session
    }

    /// Which player in the snapshots is the receiver.
    pub const fn player(self) -> PlayerId {
        PlayerId(self.raw.player_id)
    }

    /// The server's tick.
    pub const fn tick(self) -> Tick {
        Tick::new(self.raw.tick.get())
    }
}

impl core::fmt::Display for WelcomeView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (nonce, player, tick) = (self.nonce().0, self.player().0, self.tick());
        write!(f, "Welcome nonce={nonce:016x} player={player} tick={tick}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn bytes_stand_where_the_page_says() {
        let welcome = Welcome {
            nonce: Nonce(0x0102),
            session: Cookie::new(0x1112_1314_1516_1718).unwrap(),
            player: PlayerId(9),
            tick: Tick::new(0xFFFF_FFFE),
        };
        let mut buf = [0; 31];
        assert_eq!(welcome.emit(&mut buf), Ok(31));
        let expected = [
            b"FERRAVEX\x02\x03".as_slice(),
            &[2, 1, 0, 0, 0, 0, 0, 0],
            &[0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11],
            &[9, 0xFE, 0xFF, 0xFF, 0xFF],
        ];
        assert_eq!(buf[..], expected.concat());
        let view = WelcomeView::parse(&buf).unwrap();
        assert_eq!((view.session(), view.tick()), (welcome.session, welcome.tick));
        buf[18..26].fill(0);
        let error = WelcomeView::parse(&buf).unwrap_err();
        assert_eq!((error.kind, error.offset), (ErrorKind::Zero, 18));
    }
}
