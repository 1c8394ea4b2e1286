//! The four protocols: which one a datagram is of, and what it says.
//!
//! A file each. What they share is [`Decoded`]: the line to show, what is wrong, and the packet itself
//! for whoever follows the session ([`crate::follow`]).

pub mod blank;
pub mod caves;
pub mod ferravex;
pub mod teeworlds;

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::datagram::Way;

/// The protocols of this workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Protocol {
    /// Forgotten Caves.
    Caves,
    /// Teeworlds 0.6, as DDNet speaks it.
    Teeworlds,
    /// ferravex 2.
    Ferravex,
    /// blank.
    Blank,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Caves, Self::Teeworlds, Self::Ferravex, Self::Blank];

    /// Its name on the command line and in the output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Caves => "caves",
            Self::Teeworlds => "teeworlds",
            Self::Ferravex => "ferravex",
            Self::Blank => "blank",
        }
    }

    /// The protocol that these bytes begin as.
    ///
    /// ```
    /// use caves_inspect::protocols::Protocol;
    ///
    /// assert_eq!(Protocol::of_header(&[0x4C, 0x52, 1, 0]), Some(Protocol::Caves));
    /// assert_eq!(Protocol::of_header(&[0xAF, 0xB1, 0x1A, 0xFB]), Some(Protocol::Blank));
    /// assert_eq!(Protocol::of_header(b"GET / HTTP"), None);
    /// ```
    pub fn of_header(datagram: &[u8]) -> Option<Self> {
        if datagram.starts_with(&caves::MAGIC) {
            Some(Self::Caves)
        } else if datagram.starts_with(&ferravex::MAGIC) {
            Some(Self::Ferravex)
        } else if datagram.starts_with(&blank::MAGIC) {
            Some(Self::Blank)
        } else {
            None
        }
    }

    /// The protocol that these bytes look like, where none begins with them.
    pub fn of_structure(datagram: &[u8]) -> Option<Self> {
        teeworlds::looks_like_it(datagram).then_some(Self::Teeworlds)
    }

    /// The protocol whose servers listen on this port by default.
    pub fn of_port(port: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|protocol| protocol.ports().contains(&port))
    }

    /// The ports that servers have by default.
    pub const fn ports(self) -> &'static [u16] {
        match self {
            Self::Caves => &caves::PORTS,
            Self::Teeworlds => &teeworlds::PORTS,
            Self::Ferravex => &ferravex::PORTS,
            Self::Blank => &blank::PORTS,
        }
    }

    /// Reads a datagram. `way` is the direction as the recording tells it.
    pub fn decode(self, datagram: &[u8], way: Option<Way>) -> Decoded<'_> {
        match self {
            Self::Caves => caves::decode(datagram, way),
            Self::Teeworlds => teeworlds::decode(datagram, way),
            Self::Ferravex => ferravex::decode(datagram, way),
            Self::Blank => blank::decode(datagram, way),
        }
    }
}

impl std::fmt::Display for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// What a datagram says.
#[derive(Debug)]
pub struct Decoded<'d> {
    /// The packet type's name, for counting.
    pub kind: Cow<'static, str>,
    /// The packet in one line. It may hold what a peer wrote: it is stripped where it is printed.
    pub line: String,
    /// Why a receiver would drop it.
    pub problem: Option<String>,
    /// The direction that its type alone tells.
    pub way: Option<Way>,
    /// The packet itself.
    pub facts: Facts<'d>,
}

impl<'d> Decoded<'d> {
    /// A datagram that does not decode.
    pub fn malformed(datagram: &'d [u8], why: String) -> Self {
        Self {
            kind: Cow::Borrowed("malformed"),
            line: hex_start(datagram),
            problem: Some(why),
            way: None,
            facts: Facts::None,
        }
    }
}

/// A packet, for whoever follows its session and for whoever wants its fields.
#[derive(Debug, Clone)]
pub enum Facts<'d> {
    /// Nothing more than the line.
    None,
    /// A packet of Forgotten Caves.
    Caves(caves_wire::caves::Packet<'d>),
    /// What matters of a packet of Teeworlds.
    Teeworlds(teeworlds::TeeworldsFacts),
    /// A packet of ferravex.
    Ferravex(caves_wire::ferravex::Packet<'d>),
    /// A packet of blank.
    Blank(caves_wire::blank::Packet<'d>),
}

impl Facts<'_> {
    /// The packet's fields by the names that the specification has for them.
    pub fn fields(&self) -> Map<String, Value> {
        match self {
            Self::None => Map::new(),
            Self::Caves(packet) => caves::fields(packet),
            Self::Teeworlds(facts) => teeworlds::fields(facts),
            Self::Ferravex(packet) => ferravex::fields(packet),
            Self::Blank(packet) => blank::fields(packet),
        }
    }
}

/// Length and first bytes of something unreadable.
pub fn hex_start(datagram: &[u8]) -> String {
    /// Bytes that are shown.
    const SHOWN: usize = 16;
    let start = &datagram[..datagram.len().min(SHOWN)];
    let more = if datagram.len() > SHOWN { ".." } else { "" };
    let digits = hex(start);
    format!("{} bytes {digits}{more}", datagram.len())
}

/// Two digits a byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value & 0xF)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}
