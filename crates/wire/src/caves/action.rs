//! Type 1: what a player does, and which chunks the client holds.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::header::{Header, PacketType};
use super::ids::{ChunkEntry, ClientType, Direction, EntityId, RawChunkEntry, Sequence, Token};
use super::layout::{self, Layout};
use crate::{EmitError, ErrorKind, ParseError};

/// Bytes of an ActionPacket without data.
pub const MIN_ACTION: usize = 74;
/// The longest text that one [`Action::Say`] carries, in bytes (section 4).
pub const MAX_SAY: usize = 200;

/// | offset | size | field |
/// |---|---|---|
/// | 0 | 6 | header |
/// | 6 | 8 | auth_token |
/// | 14 | 4 | sequence |
/// | 18 | 54 | cache |
/// | 72 | 2 | player_action |
/// | 74 | .. | action_data |
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Raw {
    header: Header,
    auth_token: U64,
    sequence: U32,
    cache: [RawChunkEntry; 9],
    player_action: U16,
}

const _: () = assert!(size_of::<Raw>() == MIN_ACTION);

impl Layout for Raw {
    const NAME: &'static str = "Action";
    const TYPE: PacketType = PacketType::ACTION;
}

/// What a player asks the server to do (section 4). `S` is the text of [`Action::Say`]: borrowed
/// from a datagram, or owned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action<S> {
    /// 0: nothing; a keepalive or a question for what is missing. It consumes no sequence (R18).
    NoOp,
    /// 1 to 4: one step; into a hostile entity it is a blow.
    Walk(Direction),
    /// 5: open a chest, read a sign.
    Interact(EntityId),
    /// 6: strike at whatever stands there.
    Attack(Direction),
    /// 7: remove the tile there.
    Dig(Direction),
    /// 8: put an item down as a tile.
    Place {
        /// Where.
        direction: Direction,
        /// The item's type id.
        item: u16,
    },
    /// 9: take what lies on the own tile.
    PickUp,
    /// 10: put items on the own tile.
    Drop {
        /// The item's type id.
        item: u16,
        /// How many.
        count: u16,
    },
    /// 11: use an item of the inventory.
    Use {
        /// The item's type id.
        item: u16,
    },
    /// 12: wear or wield an item of the inventory.
    Equip {
        /// The item's type id.
        item: u16,
    },
    /// 13: chat, 1 to 200 bytes.
    Say(S),
}

impl<S> Action<S> {
    /// The number on the wire.
    pub const fn number(&self) -> u16 {
        match self {
            Self::NoOp => 0,
            Self::Walk(direction) => *direction as u16,
            Self::Interact(_) => 5,
            Self::Attack(_) => 6,
            Self::Dig(_) => 7,
            Self::Place { .. } => 8,
            Self::PickUp => 9,
            Self::Drop { .. } => 10,
            Self::Use { .. } => 11,
            Self::Equip { .. } => 12,
            Self::Say(_) => 13,
        }
    }

    /// Whether a client repeats this action until the server covers it, and sends no higher
    /// number before (R36). Steps and blows may be superseded.
    pub const fn must_arrive(&self) -> bool {
        !matches!(self, Self::NoOp | Self::Walk(_) | Self::Attack(_))
    }

    /// The same action with its text turned into another type.
    pub fn map_text<T>(self, turn: impl FnOnce(S) -> T) -> Action<T> {
        match self {
            Self::NoOp => Action::NoOp,
            Self::Walk(direction) => Action::Walk(direction),
            Self::Interact(target) => Action::Interact(target),
            Self::Attack(direction) => Action::Attack(direction),
            Self::Dig(direction) => Action::Dig(direction),
            Self::Place { direction, item } => Action::Place { direction, item },
            Self::PickUp => Action::PickUp,
            Self::Drop { item, count } => Action::Drop { item, count },
            Self::Use { item } => Action::Use { item },
            Self::Equip { item } => Action::Equip { item },
            Self::Say(text) => Action::Say(turn(text)),
        }
    }

    /// The same action with its text borrowed.
    pub fn as_deref(&self) -> Action<&str>
    where
        S: AsRef<str>,
    {
        match self {
            Self::NoOp => Action::NoOp,
            Self::Walk(direction) => Action::Walk(*direction),
            Self::Interact(target) => Action::Interact(*target),
            Self::Attack(direction) => Action::Attack(*direction),
            Self::Dig(direction) => Action::Dig(*direction),
            Self::Place { direction, item } => Action::Place { direction: *direction, item: *item },
            Self::PickUp => Action::PickUp,
            Self::Drop { item, count } => Action::Drop { item: *item, count: *count },
            Self::Use { item } => Action::Use { item: *item },
            Self::Equip { item } => Action::Equip { item: *item },
            Self::Say(text) => Action::Say(text.as_ref()),
        }
    }
}

impl<'a> Action<&'a str> {
    /// Reads number and data; the data has the exact length of its action (section 4).
    fn parse(number: u16, data: &'a [u8]) -> Result<Self, ParseError> {
        Ok(match number {
            0 => empty(data, Self::NoOp)?,
            1..=4 => empty(data, Self::Walk(direction(number as u8)?))?,
            5 => Self::Interact(EntityId(u32::from_le_bytes(*fixed(data)?))),
            6 => Self::Attack(one_direction(data)?),
            7 => Self::Dig(one_direction(data)?),
            8 => {
                let [way, low, high] = *fixed(data)?;
                let item = u16::from_le_bytes([low, high]);
                Self::Place { direction: direction(way)?, item }
            }
            9 => empty(data, Self::PickUp)?,
            10 => {
                let [a, b, c, d] = *fixed(data)?;
                let (item, count) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
                Self::Drop { item, count }
            }
            11 => Self::Use { item: u16::from_le_bytes(*fixed(data)?) },
            12 => Self::Equip { item: u16::from_le_bytes(*fixed(data)?) },
            13 => say(data)?,
            _ => {
                return Err(ParseError {
                    packet: Raw::NAME,
                    kind: ErrorKind::Action,
                    offset: 72,
                    needed: 13,
                    got: number.into(),
                });
            }
        })
    }

    /// Writes the data to the start of `data` and returns its length.
    fn emit_data(&self, data: &mut [u8; MAX_SAY]) -> Result<usize, EmitError> {
        let mut put = |bytes: &[u8]| {
            data[..bytes.len()].copy_from_slice(bytes);
            bytes.len()
        };
        Ok(match *self {
            Self::NoOp | Self::Walk(_) | Self::PickUp => 0,
            Self::Interact(target) => put(&target.0.to_le_bytes()),
            Self::Attack(direction) | Self::Dig(direction) => put(&[direction as u8]),
            Self::Place { direction, item } => {
                let [low, high] = item.to_le_bytes();
                put(&[direction as u8, low, high])
            }
            Self::Drop { item, count } => {
                let ([a, b], [c, d]) = (item.to_le_bytes(), count.to_le_bytes());
                put(&[a, b, c, d])
            }
            Self::Use { item } | Self::Equip { item } => put(&item.to_le_bytes()),
            Self::Say("") => {
                return Err(EmitError::Field {
                    packet: Raw::NAME,
                    field: "text",
                    limit: MAX_SAY,
                    got: 0,
                });
            }
            Self::Say(text) => {
                layout::limit::<Raw>("text", text.len(), MAX_SAY)?;
                put(text.as_bytes())
            }
        })
    }
}

fn empty<T>(data: &[u8], action: T) -> Result<T, ParseError> {
    fixed::<0>(data).map(|_| action)
}

fn fixed<const N: usize>(data: &[u8]) -> Result<&[u8; N], ParseError> {
    let data = layout::counted::<Raw>(data, N)?;
    // `counted` has just checked the length.
    data.first_chunk().ok_or_else(|| layout::too_short(Raw::NAME, N, data.len()))
}

fn one_direction(data: &[u8]) -> Result<Direction, ParseError> {
    let [number] = *fixed(data)?;
    direction(number)
}

fn direction(number: u8) -> Result<Direction, ParseError> {
    Direction::from_number(number).ok_or(ParseError {
        packet: Raw::NAME,
        kind: ErrorKind::Direction,
        offset: MIN_ACTION,
        needed: 4,
        got: number.into(),
    })
}

fn say(data: &[u8]) -> Result<Action<&str>, ParseError> {
    if data.is_empty() {
        return Err(layout::too_short(Raw::NAME, MIN_ACTION + 1, MIN_ACTION));
    }
    if data.len() > MAX_SAY {
        let got = MIN_ACTION + data.len();
        return Err(layout::too_long(Raw::NAME, MIN_ACTION + MAX_SAY, got));
    }
    layout::utf8::<Raw>(data).map(Action::Say)
}

/// An ActionPacket to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActionPacket<S> {
    /// Which kind of client speaks.
    pub client_type: ClientType,
    /// The session.
    pub token: Token,
    /// The action's number; a no-op repeats the last one.
    pub sequence: Sequence,
    /// The versions that the client holds; unused entries are zero (R10, R11).
    pub cache: [ChunkEntry; 9],
    /// What to do.
    pub action: Action<S>,
}

impl<S: AsRef<str>> ActionPacket<S> {
    /// Bytes that [`ActionPacket::emit`] writes.
    #[expect(clippy::len_without_is_empty, reason = "a packet is never empty")]
    pub fn len(&self) -> usize {
        MIN_ACTION
            + match &self.action {
                Action::NoOp | Action::Walk(_) | Action::PickUp => 0,
                Action::Attack(_) | Action::Dig(_) => 1,
                Action::Use { .. } | Action::Equip { .. } => 2,
                Action::Place { .. } => 3,
                Action::Interact(_) | Action::Drop { .. } => 4,
                Action::Say(text) => text.as_ref().len(),
            }
    }

    /// Writes the packet to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is too short, or a text is empty or longer than [`MAX_SAY`].
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        let mut data = [0; MAX_SAY];
        let len = self.action.as_deref().emit_data(&mut data)?;
        let raw = Raw {
            header: Header::new(Raw::TYPE, self.client_type),
            auth_token: self.token.0.into(),
            sequence: self.sequence.get().into(),
            cache: self.cache.map(RawChunkEntry::from),
            player_action: self.action.number().into(),
        };
        layout::put(&raw, &data[..len], buf)
    }
}

/// An ActionPacket in a datagram.
#[derive(Clone, Copy)]
pub struct ActionView<'a> {
    raw: &'a Raw,
    action: Action<&'a str>,
}

impl<'a> ActionView<'a> {
    /// Reads a datagram of 74 bytes and the exact data of its action.
    ///
    /// # Errors
    /// Another length, magic, version or type; an action above 13; a direction outside 1 to 4;
    /// text that is not UTF-8.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, ParseError> {
        let (raw, data) = layout::head::<Raw>(datagram)?;
        let action = Action::parse(raw.player_action.get(), data)?;
        Ok(Self { raw, action })
    }

    /// Which kind of client speaks.
    pub const fn client_type(self) -> ClientType {
        ClientType(self.raw.header.client_type.get())
    }

    /// The session's token.
    pub const fn token(self) -> Token {
        Token(self.raw.auth_token.get())
    }

    /// The action's number.
    pub const fn sequence(self) -> Sequence {
        Sequence::new(self.raw.sequence.get())
    }

    /// The versions that the client says it holds.
    pub fn cache(self) -> [ChunkEntry; 9] {
        self.raw.cache.map(ChunkEntry::from)
    }

    /// What to do.
    pub const fn action(self) -> Action<&'a str> {
        self.action
    }
}

impl core::fmt::Display for ActionView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let held = self.cache().iter().filter(|e| e.version != Default::default()).count();
        write!(f, "Action seq={} holds={held} {:?}", self.sequence().get(), self.action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn packet(action: Action<&str>) -> ActionPacket<&str> {
        ActionPacket {
            client_type: ClientType(0x0201),
            token: Token(0x0807_0605_0403_0201),
            sequence: Sequence::new(0xDDCC_BBAA),
            cache: [ChunkEntry::default(); 9],
            action,
        }
    }

    #[test]
    fn bytes_stand_where_the_note_says() {
        let mut buf = [0; 100];
        let place = packet(Action::Place { direction: Direction::West, item: 0x1234 });
        assert_eq!(place.emit(&mut buf), Ok(77));
        assert_eq!(buf[..6], [0x4C, 0x52, 1, 1, 1, 2], "header");
        assert_eq!(buf[6..14], [1, 2, 3, 4, 5, 6, 7, 8], "token");
        assert_eq!(buf[14..18], [0xAA, 0xBB, 0xCC, 0xDD], "sequence");
        assert_eq!(buf[18..72], [0; 54], "cache");
        assert_eq!(buf[72..74], [8, 0], "action");
        assert_eq!(buf[74..77], [4, 0x34, 0x12], "direction, item");
    }

    /// Numbers and data lengths of section 4.
    #[test]
    fn every_action_has_its_number_and_its_one_length() {
        use Direction::*;
        let target = EntityId(1);
        let all: [(Action<&str>, u16, usize); 16] = [
            (Action::NoOp, 0, 0),
            (Action::Walk(North), 1, 0),
            (Action::Walk(East), 2, 0),
            (Action::Walk(South), 3, 0),
            (Action::Walk(West), 4, 0),
            (Action::Interact(target), 5, 4),
            (Action::Attack(East), 6, 1),
            (Action::Dig(South), 7, 1),
            (Action::Place { direction: North, item: 7 }, 8, 3),
            (Action::PickUp, 9, 0),
            (Action::Drop { item: 1, count: 2 }, 10, 4),
            (Action::Use { item: 1 }, 11, 2),
            (Action::Equip { item: 1 }, 12, 2),
            (Action::Say("x"), 13, 1),
            (Action::Say("grüß"), 13, 6),
            (Action::Say(&"y".repeat(200)), 13, 200),
        ];
        for (action, number, data) in all {
            let mut buf = [0; 300];
            let sent = packet(action);
            assert_eq!(sent.len(), 74 + data);
            let len = sent.emit(&mut buf).unwrap();
            assert_eq!(len, 74 + data, "{action:?}");
            assert_eq!(buf[72..74], number.to_le_bytes(), "{action:?}");
            let view = ActionView::parse(&buf[..len]).unwrap();
            assert_eq!(view.action(), action);
            assert_eq!(view.sequence(), sent.sequence);
            assert_eq!(view.token(), sent.token);
            assert_eq!(view.client_type(), sent.client_type);
            if !matches!(action, Action::Say(_)) {
                assert!(ActionView::parse(&buf[..len + 1]).is_err(), "{action:?} longer");
                assert!(ActionView::parse(&buf[..len - 1]).is_err(), "{action:?} shorter");
            }
        }
    }

    #[test]
    fn bad_values_are_refused_by_kind() {
        let with = |number: u16, data: &[u8]| {
            let mut bytes: Vec<u8> = std::vec![0; 74];
            bytes[..4].copy_from_slice(&[0x4C, 0x52, 1, 1]);
            bytes[72..74].copy_from_slice(&number.to_le_bytes());
            bytes.extend_from_slice(data);
            ActionView::parse(&bytes).unwrap_err().kind
        };
        assert_eq!(with(14, &[]), ErrorKind::Action);
        assert_eq!(with(0x0101, &[]), ErrorKind::Action);
        assert_eq!(with(6, &[0]), ErrorKind::Direction);
        assert_eq!(with(7, &[5]), ErrorKind::Direction);
        assert_eq!(with(8, &[9, 0, 0]), ErrorKind::Direction);
        assert_eq!(with(13, &[]), ErrorKind::TooShort);
        assert_eq!(with(13, &[b'a', 0xFF]), ErrorKind::Utf8);
        assert_eq!(with(13, &[b'a'; 201]), ErrorKind::TooLong);
    }

    #[test]
    fn texts_that_do_not_fit_are_not_written() {
        let mut buf = [0; 400];
        assert!(packet(Action::Say("")).emit(&mut buf).is_err());
        assert!(packet(Action::Say(&"z".repeat(201))).emit(&mut buf).is_err());
        assert!(packet(Action::NoOp).emit(&mut buf[..73]).is_err());
        assert_eq!(buf, [0; 400]);
    }
}
