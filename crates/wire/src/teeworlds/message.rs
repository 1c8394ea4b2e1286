//! What a chunk's data says: an id, then integers, texts and bytes.
//!
//! The first integer is twice the id, plus one for a message of the system; the others are of the
//! game. Id 0 says that sixteen bytes follow, which are the id of an extended message.

use super::fault;
use super::string::{Cleaning, Text};
use super::varint;
use crate::{EmitError, ErrorKind, ParseError};

/// Which message a chunk holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MessageId {
    /// Of the engine; see [`system`].
    System(u16),
    /// Of the game; see [`game`].
    Game(u16),
    /// An extended one.
    Extended {
        /// Whether it is of the engine.
        system: bool,
        /// Its name as a number.
        uuid: [u8; 16],
    },
}

/// Ids of the engine's messages.
pub mod system {
    /// The version and the password of a client.
    pub const INFO: u16 = 1;
    /// The map to load.
    pub const MAP_CHANGE: u16 = 2;
    /// A part of it.
    pub const MAP_DATA: u16 = 3;
    /// The server is ready for STARTINFO.
    pub const CON_READY: u16 = 4;
    /// A part of a snapshot.
    pub const SNAP: u16 = 5;
    /// A snapshot that changes nothing.
    pub const SNAP_EMPTY: u16 = 6;
    /// A snapshot in one part.
    pub const SNAP_SINGLE: u16 = 7;
    /// How early an input came.
    pub const INPUT_TIMING: u16 = 9;
    /// The map is loaded.
    pub const READY: u16 = 14;
    /// The client enters the game.
    pub const ENTER_GAME: u16 = 15;
    /// What a player does.
    pub const INPUT: u16 = 16;
    /// A command for the remote console.
    pub const RCON_CMD: u16 = 17;
    /// Asks for a part of the map.
    pub const REQUEST_MAP_DATA: u16 = 19;
    /// Asks for a PING_REPLY.
    pub const PING: u16 = 22;
    /// Answers a PING.
    pub const PING_REPLY: u16 = 23;
}

/// Ids of the game's messages that a client that joins meets.
pub mod game {
    /// The message of the day.
    pub const SV_MOTD: u16 = 1;
    /// Somebody said something.
    pub const SV_CHAT: u16 = 3;
    /// The client may enter.
    pub const SV_READY_TO_ENTER: u16 = 8;
    /// The player says something.
    pub const CL_SAY: u16 = 17;
    /// Name and looks of a player.
    pub const CL_START_INFO: u16 = 20;
}

impl MessageId {
    /// The ids that fit; above them DDNet keeps its extended ones.
    const END: i32 = 0x1_0000;

    /// Reads the id at the start of a chunk's data, and how many bytes it has.
    ///
    /// # Errors
    /// No whole integer; [`ErrorKind::Range`] for one that is no id; no whole extended id.
    pub fn parse(data: &[u8]) -> Result<(Self, usize), ParseError> {
        let mut reader = Reader::new("Message", data);
        let id = Self::read(&mut reader)?;
        Ok((id, reader.offset()))
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let at = reader.offset();
        let number = reader.int()?;
        let (system, id) = (number & 1 != 0, number >> 1);
        if id == 0 {
            let mut uuid = [0; 16];
            uuid.copy_from_slice(reader.raw(16)?);
            return Ok(Self::Extended { system, uuid });
        }
        match u16::try_from(id) {
            Ok(id) if system => Ok(Self::System(id)),
            Ok(id) => Ok(Self::Game(id)),
            Err(_) => {
                Err(reader.fail(ErrorKind::Range, at, Self::END as usize - 1, number as usize))
            }
        }
    }

    pub(super) fn write(self, writer: &mut Writer<'_>) -> Result<(), EmitError> {
        match self {
            Self::System(id) => writer.int(i32::from(id) << 1 | 1),
            Self::Game(id) => writer.int(i32::from(id) << 1),
            Self::Extended { system, uuid } => {
                writer.int(i32::from(system))?;
                writer.raw(&uuid)
            }
        }
    }

    /// The name of a known id.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::System(system::INFO) => "INFO",
            Self::System(system::MAP_CHANGE) => "MAP_CHANGE",
            Self::System(system::MAP_DATA) => "MAP_DATA",
            Self::System(system::CON_READY) => "CON_READY",
            Self::System(system::SNAP) => "SNAP",
            Self::System(system::SNAP_EMPTY) => "SNAPEMPTY",
            Self::System(system::SNAP_SINGLE) => "SNAPSINGLE",
            Self::System(system::INPUT_TIMING) => "INPUTTIMING",
            Self::System(system::READY) => "READY",
            Self::System(system::ENTER_GAME) => "ENTERGAME",
            Self::System(system::INPUT) => "INPUT",
            Self::System(system::RCON_CMD) => "RCON_CMD",
            Self::System(system::REQUEST_MAP_DATA) => "REQUEST_MAP_DATA",
            Self::System(system::PING) => "PING",
            Self::System(system::PING_REPLY) => "PING_REPLY",
            Self::Game(game::SV_MOTD) => "SV_MOTD",
            Self::Game(game::SV_CHAT) => "SV_CHAT",
            Self::Game(game::SV_READY_TO_ENTER) => "SV_READYTOENTER",
            Self::Game(game::CL_SAY) => "CL_SAY",
            Self::Game(game::CL_START_INFO) => "CL_STARTINFO",
            _ => return None,
        })
    }
}

impl core::fmt::Display for MessageId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match (self.name(), self) {
            (Some(name), _) => f.write_str(name),
            (None, Self::System(id)) => write!(f, "system {id}"),
            (None, Self::Game(id)) => write!(f, "game {id}"),
            (None, Self::Extended { system, uuid }) => {
                f.write_str(if *system { "system " } else { "game " })?;
                uuid.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

/// Reads the fields of a message in order. After the first error every later read fails with it.
///
/// ```
/// use caves_wire::teeworlds::{Cleaning, Reader};
///
/// let mut reader = Reader::new("Example", b"\x41name\0\x80");
/// assert_eq!(reader.int()?, -2);
/// assert!(reader.text(Cleaning::Normal)?.is("name"));
/// let error = reader.int().unwrap_err();
/// assert_eq!(reader.raw(0), Err(error));
/// # Ok::<(), caves_wire::ParseError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    packet: &'static str,
    bytes: &'a [u8],
    at: usize,
    failed: Option<ParseError>,
}

impl<'a> Reader<'a> {
    /// Reads `bytes`; errors name `packet` and count offsets from their start.
    pub const fn new(packet: &'static str, bytes: &'a [u8]) -> Self {
        Self { packet, bytes, at: 0, failed: None }
    }

    /// The next integer.
    ///
    /// # Errors
    /// The bytes end first.
    pub fn int(&mut self) -> Result<i32, ParseError> {
        let rest = self.open()?;
        match varint::decode(rest) {
            Ok((value, len)) => {
                self.at += len;
                Ok(value)
            }
            Err(error) => {
                Err(self.fail(error.kind, self.at + error.offset, error.needed, error.got))
            }
        }
    }

    /// The next text, without its terminator.
    ///
    /// # Errors
    /// [`ErrorKind::Terminator`] where there is none.
    pub fn text(&mut self, cleaning: Cleaning) -> Result<Text<'a>, ParseError> {
        let rest = self.open()?;
        match rest.iter().position(|byte| *byte == 0) {
            Some(end) => {
                self.at += end + 1;
                Ok(Text::new(&rest[..end], cleaning))
            }
            None => {
                let end = self.bytes.len();
                Err(self.fail(ErrorKind::Terminator, end, rest.len() + 1, rest.len()))
            }
        }
    }

    /// The next `len` bytes.
    ///
    /// # Errors
    /// There are fewer.
    pub fn raw(&mut self, len: usize) -> Result<&'a [u8], ParseError> {
        let rest = self.open()?;
        match rest.get(..len) {
            Some(bytes) => {
                self.at += len;
                Ok(bytes)
            }
            None => Err(self.fail(ErrorKind::TooShort, self.bytes.len(), len, rest.len())),
        }
    }

    /// An integer that says how many bytes follow it, and these.
    ///
    /// # Errors
    /// No whole integer, a negative one, or fewer bytes.
    pub fn sized(&mut self) -> Result<&'a [u8], ParseError> {
        let at = self.at;
        let len = self.int()?;
        match usize::try_from(len) {
            Ok(len) => self.raw(len),
            Err(_) => Err(self.fail(ErrorKind::Range, at, 0, len as usize)),
        }
    }

    /// All bytes that are left.
    ///
    /// # Errors
    /// An earlier read failed.
    pub fn rest(&mut self) -> Result<&'a [u8], ParseError> {
        let rest = self.open()?;
        self.at = self.bytes.len();
        Ok(rest)
    }

    /// How many bytes were read.
    pub const fn offset(&self) -> usize {
        self.at
    }

    fn open(&self) -> Result<&'a [u8], ParseError> {
        match self.failed {
            Some(error) => Err(error),
            // `at` never passes the end.
            None => Ok(self.bytes.get(self.at..).unwrap_or_default()),
        }
    }

    /// Names another layout in later errors.
    pub(super) const fn name(&mut self, packet: &'static str) {
        self.packet = packet;
    }

    /// Fails now and for ever after.
    pub(super) fn fail(
        &mut self,
        kind: ErrorKind,
        offset: usize,
        needed: usize,
        got: usize,
    ) -> ParseError {
        let error = ParseError { packet: self.packet, kind, offset, needed, got };
        *self.failed.get_or_insert(error)
    }
}

/// Writes the fields of a message in order. After the first error every later write fails with it.
///
/// ```
/// use caves_wire::teeworlds::Writer;
///
/// let mut buf = [0; 16];
/// let mut writer = Writer::new("Example", &mut buf);
/// writer.int(-2)?;
/// writer.text(b"na\xFFme", 6)?;
/// assert_eq!(writer.finish()?, b"\x41na\xEF\xBF\xBDm\0");
/// # Ok::<(), caves_wire::EmitError>(())
/// ```
#[derive(Debug)]
pub struct Writer<'b> {
    packet: &'static str,
    buf: &'b mut [u8],
    at: usize,
    failed: Option<EmitError>,
}

impl<'b> Writer<'b> {
    /// Writes to the start of `buf`; errors name `packet`.
    pub const fn new(packet: &'static str, buf: &'b mut [u8]) -> Self {
        Self { packet, buf, at: 0, failed: None }
    }

    /// An integer in its shortest form.
    ///
    /// # Errors
    /// It does not fit.
    pub fn int(&mut self, value: i32) -> Result<(), EmitError> {
        let (bytes, len) = varint::encode(value);
        self.raw(&bytes[..len])
    }

    /// A text and its terminator: cut between characters where it has over `limit` bytes, U+FFFD where
    /// bytes are no character.
    ///
    /// # Errors
    /// It holds a zero byte, or it does not fit.
    pub fn text(&mut self, text: &[u8], limit: usize) -> Result<(), EmitError> {
        let zeros = text.iter().filter(|byte| **byte == 0).count();
        if let Err(error) = fault::limit(self.packet, "zero bytes in a text", zeros, 0) {
            return Err(self.fail(error));
        }
        let mut left = limit;
        for chunk in text.utf8_chunks() {
            let kept = crate::text::cut(chunk.valid(), left);
            self.raw(kept.as_bytes())?;
            left -= kept.len();
            let lost = "\u{FFFD}".as_bytes();
            if kept.len() < chunk.valid().len() || chunk.invalid().is_empty() || left < lost.len() {
                break;
            }
            self.raw(lost)?;
            left -= lost.len();
        }
        self.raw(&[0])
    }

    /// Bytes as they are.
    ///
    /// # Errors
    /// They do not fit.
    pub fn raw(&mut self, bytes: &[u8]) -> Result<(), EmitError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let (end, got) = (self.at + bytes.len(), self.buf.len());
        match self.buf.get_mut(self.at..end) {
            Some(place) => {
                place.copy_from_slice(bytes);
                self.at = end;
                Ok(())
            }
            None => Err(self.fail(EmitError::Buffer { packet: self.packet, needed: end, got })),
        }
    }

    /// How many bytes follow, and these.
    ///
    /// # Errors
    /// They do not fit.
    pub fn sized(&mut self, bytes: &[u8]) -> Result<(), EmitError> {
        // More than a slice of a buffer can hold does not fit either way.
        self.int(i32::try_from(bytes.len()).unwrap_or(i32::MAX))?;
        self.raw(bytes)
    }

    /// What was written.
    ///
    /// # Errors
    /// The first error of all writes.
    pub fn finish(self) -> Result<&'b [u8], EmitError> {
        match self.failed {
            Some(error) => Err(error),
            None => Ok(&self.buf[..self.at]),
        }
    }

    fn fail(&mut self, error: EmitError) -> EmitError {
        *self.failed.get_or_insert(error)
    }
}
