//! Kind 4: how everybody stands, and which input the server has.

use zerocopy::little_endian::{F32, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{Header, Kind};
use super::ids::{Cookie, InputSequence, PlayerId, Tick};
use super::layout::{self, Layout};
use crate::{EmitError, ErrorKind, ParseError, emit};

/// Players in one snapshot, at most.
pub const MAX_PLAYERS: usize = 32;

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 10 | header |
/// | 10 | 8 | session |
/// | 18 | 4 | tick |
/// | 22 | 1 | ack_valid |
/// | 23 | 4 | ack_sequence |
/// | 27 | 1 | count |
/// | 28 | 31 each | players |
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    header: Header,
    session: U64,
    tick: U32,
    ack_valid: u8,
    ack_sequence: U32,
    count: u8,
}

const HEAD: usize = 28;
const ACK_VALID_AT: usize = 22;
const ACK_AT: usize = 23;
const COUNT_AT: usize = 27;
const _: () = assert!(size_of::<Raw>() == HEAD);

impl Layout for Raw {
    const NAME: &'static str = "Snapshot";
    const KIND: Kind = Kind::SNAPSHOT;
}

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 1 | player_id |
/// | 1 | 12 | position |
/// | 13 | 12 | velocity |
/// | 25 | 4 | yaw |
/// | 29 | 2 | health |
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawPlayer {
    player_id: u8,
    position: [F32; 3],
    velocity: [F32; 3],
    yaw: F32,
    health: U16,
}

const _: () = assert!(size_of::<RawPlayer>() == Player::LEN);

impl RawPlayer {
    const FLOATS_AT: usize = 1;

    fn floats(&self) -> impl Iterator<Item = F32> {
        self.position.into_iter().chain(self.velocity).chain([self.yaw])
    }
}

/// How a player stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Player {
    /// Which; each is in a snapshot once.
    pub id: PlayerId,
    /// Where, finite.
    pub position: [f32; 3],
    /// How fast, finite.
    pub velocity: [f32; 3],
    /// Where the player looks, around the vertical, finite.
    pub yaw: f32,
    /// What is left of it.
    pub health: u16,
}

impl Player {
    /// Bytes of every player.
    pub const LEN: usize = 31;

    /// Whether all its numbers are finite, as the wire asks for.
    pub fn is_finite(&self) -> bool {
        let mut numbers = self.position.iter().chain(&self.velocity).chain([&self.yaw]);
        numbers.all(|number| number.is_finite())
    }
}

impl From<Player> for RawPlayer {
    fn from(player: Player) -> Self {
        Self {
            player_id: player.id.0,
            position: player.position.map(F32::from),
            velocity: player.velocity.map(F32::from),
            yaw: player.yaw.into(),
            health: player.health.into(),
        }
    }
}

impl From<&RawPlayer> for Player {
    fn from(raw: &RawPlayer) -> Self {
        Self {
            id: PlayerId(raw.player_id),
            position: raw.position.map(F32::get),
            velocity: raw.velocity.map(F32::get),
            yaw: raw.yaw.get(),
            health: raw.health.get(),
        }
    }
}

/// Notes the ids of one snapshot: a bit for each.
#[derive(Default)]
struct Seen([u64; 4]);

impl Seen {
    /// Whether this id is seen for the first time.
    const fn first(&mut self, id: u8) -> bool {
        let (word, bit) = (id as usize / 64, 1 << (id % 64));
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }
}

/// A Snapshot to be written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Snapshot<'a> {
    /// The session.
    pub session: Cookie,
    /// The tick that it shows.
    pub tick: Tick,
    /// The newest input frame that the server has, if any.
    pub ack: Option<InputSequence>,
    /// At most [`MAX_PLAYERS`], each once.
    pub players: &'a [Player],
}

impl Snapshot<'_> {
    /// Bytes of the longest Snapshot.
    pub const MAX_LEN: usize = HEAD + MAX_PLAYERS * Player::LEN;

    /// Bytes that [`Snapshot::emit`] writes.
    #[expect(clippy::len_without_is_empty, reason = "a packet is never empty")]
    pub const fn len(&self) -> usize {
        HEAD + self.players.len() * Player::LEN
    }

    /// Whether these players may stand in one snapshot.
    ///
    /// # Errors
    /// More than [`MAX_PLAYERS`], one twice, or a number that is not finite.
    pub fn check(players: &[Player]) -> Result<(), EmitError> {
        emit::limit(Raw::NAME, "players", players.len(), MAX_PLAYERS)?;
        let mut seen = Seen::default();
        if !players.iter().all(|player| seen.first(player.id.0)) {
            return Err(layout::invalid::<Raw>("players", ErrorKind::Twice));
        }
        if !players.iter().all(Player::is_finite) {
            return Err(layout::invalid::<Raw>("players", ErrorKind::NonFinite));
        }
        Ok(())
    }

    /// Writes the packet to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is too short, or the players are none that [`Snapshot::check`] takes.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        Self::check(self.players)?;
        let mut players = [RawPlayer::default(); MAX_PLAYERS];
        for (raw, player) in players.iter_mut().zip(self.players) {
            *raw = (*player).into();
        }
        let raw = Raw {
            header: Header::new(Raw::KIND),
            session: self.session.get().into(),
            tick: self.tick.get().into(),
            ack_valid: self.ack.is_some().into(),
            ack_sequence: self.ack.map_or(0, InputSequence::get).into(),
            count: self.players.len() as u8,
        };
        layout::put(&raw, players[..self.players.len()].as_bytes(), buf)
    }
}

/// A Snapshot in a datagram.
#[derive(Clone, Copy)]
pub struct SnapshotView<'a> {
    raw: &'a Raw,
    session: Cookie,
    players: &'a [RawPlayer],
}

impl<'a> SnapshotView<'a> {
    /// Reads a datagram of 28 bytes and the announced players.
    ///
    /// # Errors
    /// Another length, magic, version or kind; no session; more than 32 players, one twice, or a
    /// number that is not finite; an `ack_valid` above 1, or an acknowledgement that is not valid
    /// and not 0 either.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let (raw, tail) = layout::head::<Raw>(datagram)?;
        let session = layout::cookie::<Raw>(raw.session, layout::SESSION_AT)?;
        let count = usize::from(raw.count);
        if count > MAX_PLAYERS {
            return Err(layout::wrong::<Raw>(ErrorKind::Range, COUNT_AT, MAX_PLAYERS, count));
        }
        let bytes = layout::counted::<Raw>(datagram, tail, count * Player::LEN)?;
        let players = <[RawPlayer]>::ref_from_bytes(bytes)
            .map_err(|_| layout::too_short(Raw::NAME, HEAD, datagram.len()))?;
        check_ack(raw)?;
        let mut seen = Seen::default();
        for (place, player) in players.iter().enumerate() {
            let at = HEAD + place * Player::LEN;
            if !seen.first(player.player_id) {
                let id = usize::from(player.player_id);
                // Any other id would do.
                return Err(layout::wrong::<Raw>(ErrorKind::Twice, at, id ^ 1, id));
            }
            layout::finite::<Raw>(player.floats(), at + RawPlayer::FLOATS_AT)?;
        }
        Ok(Self { raw, session, players })
    }

    /// The session.
    pub const fn session(self) -> Cookie {
        self.session
    }

    /// The tick that it shows.
    pub const fn tick(self) -> Tick {
        Tick::new(self.raw.tick.get())
    }

    /// The newest input frame that the server has, if any.
    pub const fn ack(self) -> Option<InputSequence> {
        match self.raw.ack_valid {
            0 => None,
            _ => Some(InputSequence::new(self.raw.ack_sequence.get())),
        }
    }

    /// At most [`MAX_PLAYERS`], each once.
    pub fn players(self) -> impl ExactSizeIterator<Item = Player> + DoubleEndedIterator + 'a {
        self.players.iter().map(Player::from)
    }
}

fn check_ack(raw: &Raw) -> Result<(), ParseError> {
    let (valid, sequence) = (usize::from(raw.ack_valid), raw.ack_sequence.get() as usize);
    if valid > 1 {
        return Err(layout::wrong::<Raw>(ErrorKind::Range, ACK_VALID_AT, 1, valid));
    }
    if valid == 0 && sequence != 0 {
        return Err(layout::wrong::<Raw>(ErrorKind::Flags, ACK_AT, 0, sequence));
    }
    Ok(())
}

impl core::fmt::Display for SnapshotView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Snapshot tick={} ack=", self.tick())?;
        match self.ack() {
            Some(ack) => write!(f, "{ack}")?,
            None => f.write_str("none")?,
        }
        write!(f, " players={}", self.players.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn player(id: u8) -> Player {
        Player {
            id: PlayerId(id),
            position: [1.0, 2.0, -1.0],
            velocity: [0.0, 0.5, 4.0],
            yaw: -2.0,
            health: 0x0102,
        }
    }

    fn written(ack: Option<u32>, players: &[Player]) -> Vec<u8> {
        let snapshot = Snapshot {
            session: Cookie::new(0x0B0A).unwrap(),
            tick: Tick::new(0x0403_0201),
            ack: ack.map(InputSequence::new),
            players,
        };
        let mut buf = std::vec![0; snapshot.len()];
        assert_eq!(snapshot.emit(&mut buf), Ok(buf.len()));
        buf
    }

    #[test]
    fn bytes_stand_where_the_page_says() {
        let bytes = written(Some(u32::MAX), &[player(7)]);
        let expected = [
            b"FERRAVEX\x02\x04\x0A\x0B\0\0\0\0\0\0\x01\x02\x03\x04".as_slice(),
            &[1, 0xFF, 0xFF, 0xFF, 0xFF, 1],
            &[7],
            &[0, 0, 0x80, 0x3F, 0, 0, 0, 0x40, 0, 0, 0x80, 0xBF],
            &[0, 0, 0, 0, 0, 0, 0, 0x3F, 0, 0, 0x80, 0x40],
            &[0, 0, 0, 0xC0],
            &[2, 1],
        ];
        assert_eq!(bytes, expected.concat());
        assert_eq!(bytes.len(), 59);
        let view = SnapshotView::parse(&bytes).unwrap();
        assert!(view.players().eq([player(7)]));
        assert_eq!(view.ack(), Some(InputSequence::new(u32::MAX)));
    }

    #[test]
    fn thirty_two_players_fit_and_none_is_there_twice() {
        let mut all: Vec<Player> = (0..32).map(|n| player(n * 8)).collect();
        let mut bytes = written(None, &all);
        assert_eq!((bytes.len(), Snapshot::MAX_LEN), (1020, 1020));
        assert_eq!(SnapshotView::parse(&bytes).unwrap().players().len(), 32);
        bytes[27] = 33;
        let error = SnapshotView::parse(&bytes).unwrap_err();
        assert_eq!((error.kind, error.offset), (ErrorKind::Range, 27));
        bytes[27] = 32;
        // The last one says that it is the first.
        bytes[28 + 31 * 31] = 0;
        let error = SnapshotView::parse(&bytes).unwrap_err();
        assert_eq!((error.kind, error.offset, error.got), (ErrorKind::Twice, 989, 0));
        all[31].id = PlayerId(0);
        assert!(Snapshot::check(&all).is_err());
        all[31].id = PlayerId(255);
        assert!(Snapshot::check(&all).is_ok());
        all.push(player(1));
        assert!(Snapshot::check(&all).is_err());
    }

    #[test]
    fn an_acknowledgement_is_there_or_is_zero() {
        let mut bytes = written(None, &[]);
        assert_eq!(bytes.len(), 28);
        assert_eq!(SnapshotView::parse(&bytes).unwrap().ack(), None);
        bytes[23] = 1;
        let error = SnapshotView::parse(&bytes).unwrap_err();
        assert_eq!((error.kind, error.offset), (ErrorKind::Flags, 23));
        bytes[22] = 1;
        assert_eq!(SnapshotView::parse(&bytes).unwrap().ack(), Some(InputSequence::new(1)));
        bytes[22] = 2;
        let error = SnapshotView::parse(&bytes).unwrap_err();
        assert_eq!((error.kind, error.offset), (ErrorKind::Range, 22));
    }

    #[test]
    fn each_of_the_seven_numbers_has_to_be_finite() {
        for place in 0..7 {
            let mut bytes = written(None, &[player(1), player(2)]);
            let at = 28 + 31 + 1 + 4 * place;
            bytes[at..at + 4].copy_from_slice(&[0, 0, 0x80, 0x7F]);
            let error = SnapshotView::parse(&bytes).unwrap_err();
            assert_eq!((error.kind, error.offset), (ErrorKind::NonFinite, at));
        }
        let broken = Player { velocity: [0.0, f32::NAN, 0.0], ..player(1) };
        assert!(Snapshot::check(&[broken]).is_err());
    }
}
