//! What a server tells about itself without a connection.
//!
//! All data starts with `ff` four times and four letters:
//!
//! | letters | who | what follows |
//! |---|---|---|
//! | `gie3` | asks | a token byte; behind an "xe" header the answer is the extended one |
//! | `fstd` | asks | a token byte; the older form for 64 players |
//! | `inf3` | answers | texts: token, version, name, map, game type, flags, players, max. players, clients, max. clients; per client name, clan, country, score, whether it plays |
//! | `iext` | answers | as `inf3`, but with the map's checksum and length behind its name; a reserved text before the clients and one behind each |
//! | `iex+` | goes on | token, number of the packet, a reserved text, clients as in `iext` |
//! | `dtsf` | answers | as `inf3`, with a packed integer before the clients: the first one's place |
//!
//! Numbers are decimal texts.

use super::connless::{Connless, head};
use super::fault;
use super::message::{Reader, Writer};
use super::string::{Cleaning, Text};
use super::{CONNLESS_HEADER, MAX_DATAGRAM};
use crate::{EmitError, ErrorKind, ParseError};

const MAGIC: [u8; 4] = [0xFF; 4];
/// Where the fields start, in the datagram.
const FIELDS: usize = CONNLESS_HEADER + MAGIC.len() + 4;

/// A question about a server.
///
/// ```
/// use caves_wire::teeworlds::{Connless, InfoRequest, InfoWanted};
///
/// let request = InfoRequest { wanted: InfoWanted::Extended { token: 0x1234 }, token: 0x42 };
/// let mut buf = [0; 15];
/// assert_eq!(request.emit(&mut buf)?, 15);
/// assert_eq!(buf, *b"xe\x12\x34\0\0\xFF\xFF\xFF\xFFgie3\x42");
/// assert_eq!(InfoRequest::parse(&Connless::parse(&buf)?)?, request);
/// assert_eq!(request.answered_token(), 1193026);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InfoRequest {
    /// Which answer is asked for.
    pub wanted: InfoWanted,
    /// Comes back with the answer.
    pub token: u8,
}

/// Which answer is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InfoWanted {
    /// [`InfoKind::Vanilla`].
    Vanilla,
    /// [`InfoKind::Extended`]; a server that does not know it answers with the vanilla one.
    Extended {
        /// Comes back above the token byte.
        token: u16,
    },
    /// [`InfoKind::Legacy64`].
    Legacy64,
}

impl InfoRequest {
    const NAME: &'static str = "InfoRequest";

    /// Reads a connectionless packet; bytes behind the token are ignored.
    ///
    /// # Errors
    /// [`ErrorKind::TooShort`] without a token byte; [`ErrorKind::PacketType`] where it asks nothing.
    pub fn parse(packet: &Connless<'_>) -> Result<Self, ParseError> {
        let (letters, fields) = letters(Self::NAME, packet)?;
        let wanted = match (letters, packet.extra) {
            (b"gie3", None) => InfoWanted::Vanilla,
            (b"gie3", Some([high, low, _, _])) => {
                InfoWanted::Extended { token: u16::from_be_bytes([high, low]) }
            }
            (b"fstd", _) => InfoWanted::Legacy64,
            _ => return Err(unknown(Self::NAME, letters)),
        };
        match fields.first() {
            Some(token) => Ok(Self { wanted, token: *token }),
            None => Err(fault::too_short(Self::NAME, FIELDS + 1, FIELDS)),
        }
    }

    /// Writes the datagram to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is too short.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        let (extra, letters) = match self.wanted {
            InfoWanted::Vanilla => (None, b"gie3"),
            InfoWanted::Extended { token } => {
                let [high, low] = token.to_be_bytes();
                (Some([high, low, 0, 0]), b"gie3")
            }
            InfoWanted::Legacy64 => (None, b"fstd"),
        };
        fault::put(Self::NAME, &[&head(extra), &MAGIC, letters, &[self.token]], buf)
    }

    /// The token of the answer that it asks for.
    pub const fn answered_token(&self) -> i32 {
        match self.wanted {
            InfoWanted::Extended { token } => (token as i32) << 8 | self.token as i32,
            InfoWanted::Vanilla | InfoWanted::Legacy64 => self.token as i32,
        }
    }
}

/// Which form an answer has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InfoKind {
    /// `inf3`: up to 16 clients.
    Vanilla,
    /// `iext`: the first packet.
    Extended,
    /// `iex+`: a later packet, clients only.
    More,
    /// `dtsf`: read as far as it is understood.
    Legacy64,
}

impl InfoKind {
    const fn letters(self) -> &'static [u8; 4] {
        match self {
            Self::Vanilla => b"inf3",
            Self::Extended => b"iext",
            Self::More => b"iex+",
            Self::Legacy64 => b"dtsf",
        }
    }
}

/// What an answer says about the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerInfo<'a> {
    /// The server's version.
    pub version: Text<'a>,
    /// Its name.
    pub name: Text<'a>,
    /// The map's name.
    pub map: Text<'a>,
    /// The map's checksum; extended answers only.
    pub map_crc: i32,
    /// The map's length in bytes; extended answers only.
    pub map_size: i32,
    /// The kind of game; DDNet sends at most 16 characters of it.
    pub game_type: Text<'a>,
    /// 1 where a password is needed.
    pub flags: i32,
    /// Clients that play.
    pub players: i32,
    /// Places to play.
    pub max_players: i32,
    /// Clients.
    pub clients: i32,
    /// Places.
    pub max_clients: i32,
}

/// One client of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InfoClient<'a> {
    /// Its name.
    pub name: Text<'a>,
    /// Its clan.
    pub clan: Text<'a>,
    /// ISO 3166-1, or -1.
    pub country: i32,
    /// Its score.
    pub score: i32,
    /// Whether it plays, or looks on.
    pub is_player: bool,
}

impl<'a> InfoClient<'a> {
    fn read(r: &mut Reader<'a>, kind: InfoKind) -> Result<Self, ParseError> {
        let client = Self {
            name: r.text(Cleaning::Strict)?,
            clan: r.text(Cleaning::Strict)?,
            country: decimal(r)?,
            score: decimal(r)?,
            is_player: decimal(r)? != 0,
        };
        if matches!(kind, InfoKind::Extended | InfoKind::More) {
            r.text(Cleaning::Raw)?;
        }
        Ok(client)
    }

    fn write(&self, w: &mut Writer<'_>, kind: InfoKind) -> Result<(), EmitError> {
        text(w, self.name)?;
        text(w, self.clan)?;
        for number in [self.country, self.score, self.is_player.into()] {
            put_decimal(w, number)?;
        }
        if matches!(kind, InfoKind::Extended | InfoKind::More) {
            w.raw(&[0])?;
        }
        Ok(())
    }
}

/// An answer in a datagram.
#[derive(Debug, Clone, Copy)]
pub struct InfoView<'a> {
    kind: InfoKind,
    token: i32,
    server: Option<ServerInfo<'a>>,
    packet_number: i32,
    clients: &'a [u8],
}

impl<'a> InfoView<'a> {
    const NAME: &'static str = "Info";

    /// Reads a connectionless packet.
    ///
    /// # Errors
    /// [`ErrorKind::PacketType`] where it is no answer; [`ErrorKind::Terminator`] where it ends within a
    /// field; [`ErrorKind::Range`] where a number is none. Clients of a `dtsf` are not checked.
    pub fn parse(packet: &Connless<'a>) -> Result<Self, ParseError> {
        let (letters, fields) = letters(Self::NAME, packet)?;
        let kinds = [InfoKind::Vanilla, InfoKind::Extended, InfoKind::More, InfoKind::Legacy64];
        let Some(kind) = kinds.into_iter().find(|kind| kind.letters() == letters) else {
            return Err(unknown(Self::NAME, letters));
        };
        Self::fields(kind, fields)
            .map_err(|error| ParseError { offset: FIELDS + error.offset, ..error })
    }

    fn fields(kind: InfoKind, fields: &'a [u8]) -> Result<Self, ParseError> {
        let mut r = Reader::new(Self::NAME, fields);
        let token = decimal(&mut r)?;
        let (mut server, mut packet_number) = (None, 0);
        if kind == InfoKind::More {
            packet_number = decimal(&mut r)?;
        } else {
            server = Some(read_server(&mut r, kind)?);
        }
        match kind {
            InfoKind::Vanilla => {}
            InfoKind::Extended | InfoKind::More => {
                r.text(Cleaning::Raw)?;
            }
            // Some servers leave it out where there are no clients.
            InfoKind::Legacy64 => drop(r.int()),
        }
        let clients = r.rest().unwrap_or_default();
        let view = Self { kind, token, server, packet_number, clients };
        let start = fields.len() - clients.len();
        let mut r = Reader::new(Self::NAME, clients);
        while kind != InfoKind::Legacy64 && r.offset() < clients.len() {
            InfoClient::read(&mut r, kind)
                .map_err(|error| ParseError { offset: start + error.offset, ..error })?;
        }
        Ok(view)
    }

    /// Which form it has.
    pub const fn kind(&self) -> InfoKind {
        self.kind
    }

    /// The token of the question: [`InfoRequest::answered_token`]; -1 where nobody asked.
    pub const fn token(&self) -> i32 {
        self.token
    }

    /// What it says about the server; none in a later packet.
    pub const fn server(&self) -> Option<&ServerInfo<'a>> {
        self.server.as_ref()
    }

    /// 0 for the first packet of an answer, 1 to 63 for those that go on.
    pub const fn packet_number(&self) -> i32 {
        self.packet_number
    }

    /// The clients in order; those of a `dtsf` as far as they can be read.
    pub fn clients(&self) -> impl Iterator<Item = InfoClient<'a>> + use<'a> {
        let (kind, mut r) = (self.kind, Reader::new(Self::NAME, self.clients));
        let len = self.clients.len();
        core::iter::from_fn(move || {
            if r.offset() < len { InfoClient::read(&mut r, kind).ok() } else { None }
        })
    }
}

fn read_server<'a>(r: &mut Reader<'a>, kind: InfoKind) -> Result<ServerInfo<'a>, ParseError> {
    let (version, name) = (r.text(Cleaning::Strict)?, r.text(Cleaning::Strict)?);
    let map = r.text(Cleaning::Strict)?;
    let (map_crc, map_size) = match kind {
        InfoKind::Extended => (decimal(r)?, decimal(r)?),
        _ => (0, 0),
    };
    Ok(ServerInfo {
        version,
        name,
        map,
        map_crc,
        map_size,
        game_type: r.text(Cleaning::Strict)?,
        flags: decimal(r)?,
        players: decimal(r)?,
        max_players: decimal(r)?,
        clients: decimal(r)?,
        max_clients: decimal(r)?,
    })
}

/// An answer to be written. Sending what does not fit into one datagram is for the caller: as
/// [`InfoKind::Extended`] with the first clients and [`InfoKind::More`] with the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info<'a> {
    /// The token of the question: [`InfoRequest::answered_token`].
    pub token: i32,
    /// The first packet, or a later one.
    pub part: InfoPart<'a>,
    /// The clients of this packet.
    pub clients: &'a [InfoClient<'a>],
}

/// What an answer has before its clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InfoPart<'a> {
    /// [`InfoKind::Vanilla`].
    Vanilla(ServerInfo<'a>),
    /// [`InfoKind::Extended`].
    Extended(ServerInfo<'a>),
    /// [`InfoKind::More`] with its number, from 1 to 63.
    More(u8),
    /// [`InfoKind::Legacy64`] and the place of its first client.
    Legacy64(ServerInfo<'a>, u8),
}

impl Info<'_> {
    /// Writes the datagram to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is too short, or it has over 1400 bytes; a text holds a zero byte. `buf` holds nothing of
    /// use then.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        let room = buf.len().min(MAX_DATAGRAM);
        let mut w = Writer::new(InfoView::NAME, &mut buf[..room]);
        let (kind, server) = match &self.part {
            InfoPart::Vanilla(server) => (InfoKind::Vanilla, Some(server)),
            InfoPart::Extended(server) => (InfoKind::Extended, Some(server)),
            InfoPart::More(_) => (InfoKind::More, None),
            InfoPart::Legacy64(server, _) => (InfoKind::Legacy64, Some(server)),
        };
        w.raw(&head(None))?;
        w.raw(&MAGIC)?;
        w.raw(kind.letters())?;
        put_decimal(&mut w, self.token)?;
        if let Some(server) = server {
            write_server(&mut w, kind, server)?;
        }
        match self.part {
            InfoPart::Vanilla(_) => {}
            InfoPart::Extended(_) => w.raw(&[0])?,
            InfoPart::More(number) => {
                put_decimal(&mut w, number.into())?;
                w.raw(&[0])?;
            }
            InfoPart::Legacy64(_, first) => w.int(first.into())?,
        }
        self.clients.iter().try_for_each(|client| client.write(&mut w, kind))?;
        w.finish().map(<[u8]>::len)
    }
}

fn write_server(
    w: &mut Writer<'_>,
    kind: InfoKind,
    server: &ServerInfo<'_>,
) -> Result<(), EmitError> {
    for field in [server.version, server.name, server.map] {
        text(w, field)?;
    }
    if kind == InfoKind::Extended {
        put_decimal(w, server.map_crc)?;
        put_decimal(w, server.map_size)?;
    }
    text(w, server.game_type)?;
    let numbers =
        [server.flags, server.players, server.max_players, server.clients, server.max_clients];
    numbers.into_iter().try_for_each(|number| put_decimal(w, number))
}

/// The four letters, and what follows them.
fn letters<'a>(
    packet: &'static str,
    connless: &Connless<'a>,
) -> Result<(&'a [u8; 4], &'a [u8]), ParseError> {
    let short = fault::too_short(packet, FIELDS, connless.len());
    let (magic, rest) = connless.data.split_first_chunk::<4>().ok_or(short)?;
    let (letters, fields) = rest.split_first_chunk().ok_or(short)?;
    if *magic != MAGIC {
        return Err(ParseError {
            packet,
            kind: ErrorKind::Magic,
            offset: CONNLESS_HEADER,
            needed: u32::from_be_bytes(MAGIC) as usize,
            got: u32::from_be_bytes(*magic) as usize,
        });
    }
    Ok((letters, fields))
}

fn unknown(packet: &'static str, letters: &[u8; 4]) -> ParseError {
    ParseError {
        packet,
        kind: ErrorKind::PacketType,
        offset: CONNLESS_HEADER + MAGIC.len(),
        needed: 0,
        got: u32::from_be_bytes(*letters) as usize,
    }
}

fn text(w: &mut Writer<'_>, text: Text<'_>) -> Result<(), EmitError> {
    w.text(text.as_bytes(), MAX_DATAGRAM)
}

/// A number in decimal digits, as a text.
fn decimal(r: &mut Reader<'_>) -> Result<i32, ParseError> {
    let at = r.offset();
    let text = r.text(Cleaning::Raw)?.as_bytes();
    let number = core::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| r.fail(ErrorKind::Range, at, 0, text.len()))
}

fn put_decimal(w: &mut Writer<'_>, number: i32) -> Result<(), EmitError> {
    // A sign and ten digits, from the back.
    let mut digits = [0; 11];
    let mut at = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    w.raw(&digits[at..])?;
    w.raw(&[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn numbers_are_decimal_texts() {
        for number in [0, 7, 10, -1, 1_193_026, i32::MAX, i32::MIN] {
            let mut buf = [0; 16];
            let mut w = Writer::new("Test", &mut buf);
            put_decimal(&mut w, number).unwrap();
            let bytes = w.finish().unwrap();
            assert_eq!(bytes, [number.to_string().as_bytes(), &[0]].concat());
            assert_eq!(decimal(&mut Reader::new("Test", bytes)), Ok(number));
        }
        for bad in [&b"\0"[..], b"x\0", b"1 \0", b"2147483648\0"] {
            let error = decimal(&mut Reader::new("Test", bad)).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Range);
        }
    }

    #[test]
    fn an_answer_in_several_packets_is_read_as_it_was_written() {
        let clients = [
            InfoClient {
                name: "Ada".into(),
                clan: "".into(),
                country: -1,
                score: -9999,
                is_player: true,
            },
            InfoClient {
                name: "Zo\u{EB}".into(),
                clan: "x".into(),
                country: 276,
                score: 5,
                is_player: false,
            },
        ];
        let server = ServerInfo {
            version: "0.6.4".into(),
            name: "here".into(),
            map: "dm1".into(),
            map_crc: 0,
            map_size: 0,
            game_type: "DM".into(),
            flags: 1,
            players: 1,
            max_players: 8,
            clients: 2,
            max_clients: 16,
        };
        let extended = ServerInfo { map_crc: -5, map_size: 5805, ..server };
        let parts = [
            (InfoPart::Vanilla(server), InfoKind::Vanilla, Some(server), 0),
            (InfoPart::Extended(extended), InfoKind::Extended, Some(extended), 0),
            (InfoPart::More(63), InfoKind::More, None, 63),
            (InfoPart::Legacy64(server, 40), InfoKind::Legacy64, Some(server), 0),
        ];
        for (part, kind, server, number) in parts {
            let mut buf = [0; 1400];
            let len = Info { token: 77, part, clients: &clients }.emit(&mut buf).unwrap();
            let view = InfoView::parse(&Connless::parse(&buf[..len]).unwrap()).unwrap();
            assert_eq!((view.kind(), view.token(), view.packet_number()), (kind, 77, number));
            assert_eq!(view.server().copied(), server);
            assert!(view.clients().eq(clients), "{kind:?}");
            for cut in 0..len {
                let read = Connless::parse(&buf[..cut]).and_then(|packet| InfoView::parse(&packet));
                // Between clients an answer may end.
                let clients = read.map_or(0, |view| view.clients().count());
                assert!(clients < 2, "{kind:?} cut at {cut}");
            }
        }
    }
}
