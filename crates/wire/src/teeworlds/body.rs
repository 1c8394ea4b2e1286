//! The messages that a client exchanges while it joins and plays.

use super::message::{MessageId, Reader, Writer, game, system};
use super::string::{Cleaning, Text};
use super::tick::Tick;
use crate::{EmitError, ErrorKind, ParseError};

/// The data of one chunk, to be read and to be written.
///
/// Bytes behind the last field are ignored, as in the reference: newer versions put fields there.
///
/// ```
/// use caves_wire::teeworlds::Message;
///
/// let info = Message::Info { version: "0.6 626fce9a778df4d4".into(), password: "".into() };
/// let mut buf = [0; 64];
/// let len = info.emit(&mut buf)?;
/// assert_eq!(buf[..len], *b"\x030.6 626fce9a778df4d4\0\0");
/// assert_eq!(Message::parse(&buf[..len])?, info);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Message<'a> {
    /// System 1, from the client: the first message.
    Info {
        /// What it speaks: `0.6 626fce9a778df4d4`.
        version: Text<'a>,
        /// The server's password, or nothing.
        password: Text<'a>,
    },
    /// System 2, from the server.
    MapChange {
        /// The map's name.
        name: Text<'a>,
        /// Its checksum.
        crc: i32,
        /// Its length in bytes.
        size: i32,
    },
    /// System 3, from the server: a part of the map.
    MapData {
        /// Whether it is the last part.
        last: bool,
        /// The map's checksum.
        crc: i32,
        /// Which part.
        chunk: i32,
        /// Its bytes.
        data: &'a [u8],
    },
    /// System 4, from the server.
    ConReady,
    /// System 5, from the server: one of several parts.
    Snap {
        /// Which snapshot.
        tick: Tick,
        /// The one it is a difference to, if any.
        base: Option<Tick>,
        /// How many parts there are, at least 1.
        parts: i32,
        /// Which part this is, from 0.
        part: i32,
        /// The checksum of the whole snapshot.
        crc: i32,
        /// The part, not interpreted.
        data: &'a [u8],
    },
    /// System 6, from the server: as the one before.
    SnapEmpty {
        /// Which snapshot.
        tick: Tick,
        /// The one it equals, if any.
        base: Option<Tick>,
    },
    /// System 7, from the server: in one part.
    SnapSingle {
        /// Which snapshot.
        tick: Tick,
        /// The one it is a difference to, if any.
        base: Option<Tick>,
        /// Its checksum.
        crc: i32,
        /// The snapshot, not interpreted.
        data: &'a [u8],
    },
    /// System 9, from the server.
    InputTiming {
        /// The tick that an input was for.
        tick: i32,
        /// How long before it the input came, in milliseconds.
        time_left: i32,
    },
    /// System 14, from the client.
    Ready,
    /// System 15, from the client.
    EnterGame,
    /// System 16, from the client.
    Input {
        /// The last snapshot that the client has, if any.
        ack: Option<Tick>,
        /// The tick that the input is for.
        tick: Tick,
        /// What the player does.
        input: PlayerInput,
    },
    /// System 17, from the client.
    RconCmd {
        /// The command.
        command: Text<'a>,
    },
    /// System 19, from the client.
    RequestMapData {
        /// Which part.
        chunk: i32,
    },
    /// System 22.
    Ping,
    /// System 23.
    PingReply,
    /// Game 1, from the server.
    Motd {
        /// Lines, with `\n` in two characters between them.
        text: Text<'a>,
    },
    /// Game 3, from the server.
    Chat {
        /// 0 for all, 1 for one's team.
        team: i32,
        /// Who says it; -1 for the server.
        client: i32,
        /// What.
        text: Text<'a>,
    },
    /// Game 8, from the server.
    ReadyToEnter,
    /// Game 17, from the client.
    Say {
        /// 0 for all, 1 for one's team.
        team: i32,
        /// What.
        text: Text<'a>,
    },
    /// Game 20, from the client.
    StartInfo {
        /// The player's name; DDNet keeps 15 bytes.
        name: Text<'a>,
        /// The player's clan; DDNet keeps 11 bytes.
        clan: Text<'a>,
        /// ISO 3166-1, or -1.
        country: i32,
        /// The name of a skin.
        skin: Text<'a>,
        /// Whether the colours count.
        custom_color: bool,
        /// Of the body.
        color_body: i32,
        /// Of the feet.
        color_feet: i32,
    },
    /// Any other message.
    Other {
        /// Which.
        id: MessageId,
        /// What follows the id, not interpreted.
        body: &'a [u8],
    },
}

const NAME: &str = "Message";
/// What a text of a message may have: all that a chunk holds.
const LIMIT: usize = super::Chunk::MAX_DATA;

impl<'a> Message<'a> {
    /// Reads the data of a chunk.
    ///
    /// # Errors
    /// No id, or fields of a known message that end early or have a value that they cannot have.
    /// Unknown messages are values.
    pub fn parse(data: &'a [u8]) -> Result<Self, ParseError> {
        let mut r = Reader::new(NAME, data);
        let id = MessageId::read(&mut r)?;
        r.name(id.name().unwrap_or(NAME));
        Ok(match id {
            MessageId::System(id) => Self::system(id, &mut r)?,
            MessageId::Game(id) => Self::game(id, &mut r)?,
            MessageId::Extended { .. } => Self::Other { id, body: r.rest()? },
        })
    }

    fn system(id: u16, r: &mut Reader<'a>) -> Result<Self, ParseError> {
        Ok(match id {
            system::INFO => Self::Info {
                version: r.text(Cleaning::HalfStrict)?,
                password: r.text(Cleaning::HalfStrict)?,
            },
            system::MAP_CHANGE => {
                Self::MapChange { name: r.text(Cleaning::Strict)?, crc: r.int()?, size: r.int()? }
            }
            system::MAP_DATA => Self::MapData {
                last: r.int()? != 0,
                crc: r.int()?,
                chunk: r.int()?,
                data: r.sized()?,
            },
            system::CON_READY => Self::ConReady,
            system::SNAP => {
                let (tick, base) = ticks(r)?;
                let parts = r.int()?;
                let part = in_range(r, parts)?;
                Self::Snap { tick, base, parts, part, crc: r.int()?, data: r.sized()? }
            }
            system::SNAP_EMPTY => {
                let (tick, base) = ticks(r)?;
                Self::SnapEmpty { tick, base }
            }
            system::SNAP_SINGLE => {
                let (tick, base) = ticks(r)?;
                Self::SnapSingle { tick, base, crc: r.int()?, data: r.sized()? }
            }
            system::INPUT_TIMING => Self::InputTiming { tick: r.int()?, time_left: r.int()? },
            system::READY => Self::Ready,
            system::ENTER_GAME => Self::EnterGame,
            system::INPUT => {
                let ack = base(r, Some)?;
                Self::Input { ack, tick: tick(r)?, input: PlayerInput::read(r)? }
            }
            system::RCON_CMD => Self::RconCmd { command: r.text(Cleaning::HalfStrict)? },
            system::REQUEST_MAP_DATA => Self::RequestMapData { chunk: r.int()? },
            system::PING => Self::Ping,
            system::PING_REPLY => Self::PingReply,
            _ => Self::Other { id: MessageId::System(id), body: r.rest()? },
        })
    }

    fn game(id: u16, r: &mut Reader<'a>) -> Result<Self, ParseError> {
        Ok(match id {
            game::SV_MOTD => Self::Motd { text: r.text(Cleaning::Normal)? },
            game::SV_CHAT => {
                Self::Chat { team: r.int()?, client: r.int()?, text: r.text(Cleaning::HalfStrict)? }
            }
            game::SV_READY_TO_ENTER => Self::ReadyToEnter,
            game::CL_SAY => Self::Say { team: r.int()?, text: r.text(Cleaning::HalfStrict)? },
            game::CL_START_INFO => Self::StartInfo {
                name: r.text(Cleaning::Strict)?,
                clan: r.text(Cleaning::Strict)?,
                country: r.int()?,
                skin: r.text(Cleaning::Strict)?,
                custom_color: r.int()? != 0,
                color_body: r.int()?,
                color_feet: r.int()?,
            },
            _ => Self::Other { id: MessageId::Game(id), body: r.rest()? },
        })
    }

    /// Which message it is.
    pub const fn id(&self) -> MessageId {
        match self {
            Self::Info { .. } => MessageId::System(system::INFO),
            Self::MapChange { .. } => MessageId::System(system::MAP_CHANGE),
            Self::MapData { .. } => MessageId::System(system::MAP_DATA),
            Self::ConReady => MessageId::System(system::CON_READY),
            Self::Snap { .. } => MessageId::System(system::SNAP),
            Self::SnapEmpty { .. } => MessageId::System(system::SNAP_EMPTY),
            Self::SnapSingle { .. } => MessageId::System(system::SNAP_SINGLE),
            Self::InputTiming { .. } => MessageId::System(system::INPUT_TIMING),
            Self::Ready => MessageId::System(system::READY),
            Self::EnterGame => MessageId::System(system::ENTER_GAME),
            Self::Input { .. } => MessageId::System(system::INPUT),
            Self::RconCmd { .. } => MessageId::System(system::RCON_CMD),
            Self::RequestMapData { .. } => MessageId::System(system::REQUEST_MAP_DATA),
            Self::Ping => MessageId::System(system::PING),
            Self::PingReply => MessageId::System(system::PING_REPLY),
            Self::Motd { .. } => MessageId::Game(game::SV_MOTD),
            Self::Chat { .. } => MessageId::Game(game::SV_CHAT),
            Self::ReadyToEnter => MessageId::Game(game::SV_READY_TO_ENTER),
            Self::Say { .. } => MessageId::Game(game::CL_SAY),
            Self::StartInfo { .. } => MessageId::Game(game::CL_START_INFO),
            Self::Other { id, .. } => *id,
        }
    }

    /// Writes the data of a chunk to the start of `buf`.
    ///
    /// Where bytes of a text are no character, U+FFFD is written.
    ///
    /// # Errors
    /// `buf` is too short, or a text holds a zero byte. `buf` holds nothing of use then.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        let mut w = Writer::new(self.id().name().unwrap_or(NAME), buf);
        self.id().write(&mut w)?;
        match *self {
            Self::Info { version: a, password: b } => {
                text(&mut w, a)?;
                text(&mut w, b)?;
            }
            Self::MapChange { name, crc, size } => {
                text(&mut w, name)?;
                ints(&mut w, &[crc, size])?;
            }
            Self::MapData { last, crc, chunk, data } => {
                ints(&mut w, &[last.into(), crc, chunk])?;
                w.sized(data)?;
            }
            Self::Snap { tick, base, parts, part, crc, data } => {
                ints(&mut w, &[tick.get(), since(tick, base), parts, part, crc])?;
                w.sized(data)?;
            }
            Self::SnapEmpty { tick, base } => ints(&mut w, &[tick.get(), since(tick, base)])?,
            Self::SnapSingle { tick, base, crc, data } => {
                ints(&mut w, &[tick.get(), since(tick, base), crc])?;
                w.sized(data)?;
            }
            Self::InputTiming { tick, time_left } => ints(&mut w, &[tick, time_left])?,
            Self::Input { ack, tick, input } => {
                ints(&mut w, &[ack.map_or(-1, Tick::get), tick.get(), PlayerInput::SIZE])?;
                ints(&mut w, &input.to_ints())?;
            }
            Self::RconCmd { command } => text(&mut w, command)?,
            Self::RequestMapData { chunk } => w.int(chunk)?,
            Self::Motd { text: said } => text(&mut w, said)?,
            Self::Chat { team, client, text: said } => {
                ints(&mut w, &[team, client])?;
                text(&mut w, said)?;
            }
            Self::Say { team, text: said } => {
                w.int(team)?;
                text(&mut w, said)?;
            }
            Self::StartInfo { name, clan, country, skin, custom_color, color_body, color_feet } => {
                text(&mut w, name)?;
                text(&mut w, clan)?;
                w.int(country)?;
                text(&mut w, skin)?;
                ints(&mut w, &[custom_color.into(), color_body, color_feet])?;
            }
            Self::Other { body, .. } => w.raw(body)?,
            Self::ConReady
            | Self::Ready
            | Self::EnterGame
            | Self::Ping
            | Self::PingReply
            | Self::ReadyToEnter => {}
        }
        w.finish().map(<[u8]>::len)
    }
}

fn text(w: &mut Writer<'_>, text: Text<'_>) -> Result<(), EmitError> {
    w.text(text.as_bytes(), LIMIT)
}

fn ints(w: &mut Writer<'_>, ints: &[i32]) -> Result<(), EmitError> {
    ints.iter().try_for_each(|value| w.int(*value))
}

/// How many ticks back the base lies; without one, as if there had been a tick -1.
const fn since(tick: Tick, base: Option<Tick>) -> i32 {
    // Both are at least 0 and far from the end, so that nothing overflows.
    match base {
        Some(base) => tick.get() - base.get(),
        None => tick.get() + 1,
    }
}

fn tick(r: &mut Reader<'_>) -> Result<Tick, ParseError> {
    let at = r.offset();
    let number = r.int()?;
    Tick::new(number).ok_or_else(|| range(r, at, number))
}

/// A tick, or -1 for none, that `resolve` makes of the next integer.
fn base(
    r: &mut Reader<'_>,
    resolve: impl Fn(i32) -> Option<i32>,
) -> Result<Option<Tick>, ParseError> {
    let at = r.offset();
    let number = r.int()?;
    match resolve(number) {
        Some(-1) => Ok(None),
        resolved => match resolved.and_then(Tick::new) {
            Some(tick) => Ok(Some(tick)),
            None => Err(range(r, at, number)),
        },
    }
}

fn ticks(r: &mut Reader<'_>) -> Result<(Tick, Option<Tick>), ParseError> {
    let tick = tick(r)?;
    Ok((tick, base(r, |since| tick.get().checked_sub(since))?))
}

/// A number below `parts`, which must be above 0 for it.
fn in_range(r: &mut Reader<'_>, parts: i32) -> Result<i32, ParseError> {
    let at = r.offset();
    let part = r.int()?;
    if (0..parts).contains(&part) { Ok(part) } else { Err(range(r, at, part)) }
}

fn range(r: &mut Reader<'_>, at: usize, got: i32) -> ParseError {
    r.fail(ErrorKind::Range, at, 0, got as usize)
}

/// What a player does in one tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlayerInput {
    /// -1 to the left, 1 to the right.
    pub direction: i32,
    /// Where the player aims, to the right of it.
    pub target_x: i32,
    /// Where the player aims, below it.
    pub target_y: i32,
    /// Whether it jumps.
    pub jump: i32,
    /// Counts presses and releases; odd while pressed.
    pub fire: i32,
    /// Whether it hooks.
    pub hook: i32,
    /// 1 playing, 2 in a menu, 4 chatting, 8 looking at scores.
    pub player_flags: i32,
    /// Its weapon plus 1; 0 for the one it has.
    pub wanted_weapon: i32,
    /// Counts as `fire` does.
    pub next_weapon: i32,
    /// Counts as `fire` does.
    pub prev_weapon: i32,
}

impl PlayerInput {
    /// What the message says about its length: four bytes an integer, however they are packed.
    const SIZE: i32 = 40;

    fn read(r: &mut Reader<'_>) -> Result<Self, ParseError> {
        let at = r.offset();
        let size = r.int()?;
        if size != Self::SIZE {
            return Err(r.fail(ErrorKind::Range, at, Self::SIZE as usize, size as usize));
        }
        Ok(Self {
            direction: r.int()?,
            target_x: r.int()?,
            target_y: r.int()?,
            jump: r.int()?,
            fire: r.int()?,
            hook: r.int()?,
            player_flags: r.int()?,
            wanted_weapon: r.int()?,
            next_weapon: r.int()?,
            prev_weapon: r.int()?,
        })
    }

    const fn to_ints(self) -> [i32; 10] {
        [
            self.direction,
            self.target_x,
            self.target_y,
            self.jump,
            self.fire,
            self.hook,
            self.player_flags,
            self.wanted_weapon,
            self.next_weapon,
            self.prev_weapon,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message that a scripted client sent to a real server.
    #[test]
    fn fields_of_an_input_stand_where_the_capture_has_them() {
        let bytes = [
            0x21, 0x86, 0x3D, 0x89, 0x3D, 0x28, 0x00, 0x0A, 0x44, 0x00, 0x00, 0x00, 0x01, 0x00,
            0x00, 0x00,
        ];
        let input =
            PlayerInput { target_x: 10, target_y: -5, player_flags: 1, ..PlayerInput::default() };
        let expected =
            Message::Input { ack: Tick::new(3910), tick: Tick::new(3913).unwrap(), input };
        assert_eq!(Message::parse(&bytes), Ok(expected));
        let mut buf = [0; 64];
        let len = expected.emit(&mut buf).unwrap();
        assert_eq!(buf[..len], bytes);
        for cut in 1..bytes.len() {
            assert_eq!(
                Message::parse(&bytes[..cut]).unwrap_err().kind,
                ErrorKind::Integer,
                "{cut}"
            );
        }
    }

    #[test]
    fn ticks_outside_their_range_and_parts_that_are_none_are_refused() {
        let read = |ints: &[i32]| {
            let mut buf = [0; 64];
            let mut writer = Writer::new("Test", &mut buf);
            super::ints(&mut writer, ints).unwrap();
            Message::parse(writer.finish().unwrap()).map(|_| ())
        };
        let kind = |ints: &[i32]| read(ints).unwrap_err().kind;
        // SNAPEMPTY: tick, ticks since the base.
        assert!(read(&[13, 0, 1]).is_ok());
        assert!(read(&[13, 1_879_048_191, 0]).is_ok());
        assert_eq!(kind(&[13, -1, 0]), ErrorKind::Range);
        assert_eq!(kind(&[13, 1_879_048_192, 0]), ErrorKind::Range);
        assert_eq!(kind(&[13, 5, 7]), ErrorKind::Range, "a base of -2");
        assert_eq!(kind(&[13, 5, i32::MIN]), ErrorKind::Range);
        // SNAP: parts, part, checksum, length.
        assert!(read(&[11, 5, 1, 2, 1, 9, 0]).is_ok());
        assert_eq!(kind(&[11, 5, 1, 2, 2, 9, 0]), ErrorKind::Range);
        assert_eq!(kind(&[11, 5, 1, 0, 0, 9, 0]), ErrorKind::Range);
        assert_eq!(kind(&[11, 5, 1, 2, 1, 9, -1]), ErrorKind::Range);
        assert_eq!(kind(&[11, 5, 1, 2, 1, 9, 1]), ErrorKind::TooShort);
    }
}
