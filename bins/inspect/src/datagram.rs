//! A datagram as a recording has it.

use std::net::SocketAddr;

/// Which way a datagram went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From a client to its server.
    ToServer,
    /// From a server to its client.
    ToClient,
}

impl Way {
    /// As the text captures have it: `c2s` or `s2c`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ToServer => "c2s",
            Self::ToClient => "s2c",
        }
    }

    /// The opposite of [`Way::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::ToServer, Self::ToClient].into_iter().find(|way| way.name() == name)
    }
}

/// What a recording tells about the two ends of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ends {
    /// Nothing: a line of hex.
    #[default]
    Unknown,
    /// The direction alone: a text capture.
    Way(Way),
    /// Both addresses: a recording of packets.
    Addrs {
        /// The sender.
        from: SocketAddr,
        /// The receiver.
        to: SocketAddr,
    },
}

impl Ends {
    /// The ports, where they are known.
    pub fn ports(&self) -> Option<[u16; 2]> {
        match self {
            Self::Addrs { from, to } => Some([from.port(), to.port()]),
            _ => None,
        }
    }
}

/// One datagram of a recording. It is kept and filled again for the next one.
///
/// ```
/// use caves_inspect::datagram::{Datagram, Ends};
///
/// let datagram = Datagram { bytes: vec![0x4C, 0x52], ..Datagram::default() };
/// assert_eq!((datagram.ends, datagram.micros), (Ends::Unknown, None));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Datagram {
    /// Microseconds since the recording's first datagram, where it has times.
    pub micros: Option<u64>,
    /// Between whom.
    pub ends: Ends,
    /// The recording says that it did not arrive.
    pub lost: bool,
    /// Bytes at its end that the recording left out.
    pub cut: usize,
    /// The UDP payload.
    pub bytes: Vec<u8>,
}
