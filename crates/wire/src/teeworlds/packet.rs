//! One way in: any datagram.

use super::chunk::{ChunkIter, Chunks, Envelope, split_token};
use super::connless::Connless;
use super::control::Control;
use super::header::{Header, Token, Tokens};
use super::{HEADER, MAX_PAYLOAD, huffman};
use crate::{EmitError, ParseError};

/// Room for an expanded payload: the caller keeps one and uses it for every datagram.
pub type Scratch = [u8; MAX_PAYLOAD];

/// Any datagram of the protocol, by its first byte.
///
/// Its printed form is one line for a log.
#[derive(Debug, Clone, Copy)]
pub enum Packet<'a> {
    /// Without a connection.
    Connless(Connless<'a>),
    /// Makes and ends a connection.
    Control(Control<'a>),
    /// What a connection is for.
    Chunks(ChunksView<'a>),
}

impl<'a> Packet<'a> {
    /// Reads a datagram; a compressed payload is expanded into `scratch`.
    ///
    /// # Errors
    /// What makes DDNet drop a datagram before it looks at the connection: lengths, flags that do not
    /// go together, a payload that expands to more than 1394 bytes, no room for the token that
    /// `tokens` asks for. That the token is the right one is for the session to check.
    pub fn parse(
        datagram: &'a [u8],
        tokens: Tokens,
        scratch: &'a mut Scratch,
    ) -> Result<Self, ParseError> {
        if Header::is_connless(datagram) {
            return Connless::parse(datagram).map(Self::Connless);
        }
        let header = Header::parse(datagram)?;
        if header.control {
            return Control::parse(datagram, tokens).map(Self::Control);
        }
        ChunksView::open(header, &datagram[HEADER..], tokens, scratch).map(Self::Chunks)
    }

    /// Writes the packet to the start of `buf`, as the reference would: spare bits are 0, chunks are
    /// compressed where that is shorter.
    ///
    /// # Errors
    /// `buf` is too short.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        match self {
            Self::Connless(packet) => packet.emit(buf),
            Self::Control(packet) => packet.emit(buf),
            Self::Chunks(packet) => packet.to_chunks().emit(buf),
        }
    }
}

impl core::fmt::Display for Packet<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Connless(packet) => packet.fmt(f),
            Self::Control(packet) => packet.fmt(f),
            Self::Chunks(packet) => packet.fmt(f),
        }
    }
}

/// A packet of chunks in a datagram, expanded.
#[derive(Clone, Copy)]
pub struct ChunksView<'a> {
    header: Header,
    payload: &'a [u8],
    token: Option<Token>,
}

impl<'a> ChunksView<'a> {
    fn open(
        header: Header,
        body: &'a [u8],
        tokens: Tokens,
        scratch: &'a mut Scratch,
    ) -> Result<Self, ParseError> {
        let body = if header.compressed {
            let len = huffman::decode(body, scratch).map_err(|error| ParseError {
                packet: "Chunks",
                offset: HEADER + error.offset,
                ..error
            })?;
            &scratch[..len]
        } else {
            body
        };
        let with_token = match tokens {
            Tokens::Without => false,
            Tokens::With => true,
            Tokens::Guess => {
                let mut chunks = ChunkIter::new(body, header.num_chunks);
                let whole = chunks.by_ref().count() == usize::from(header.num_chunks);
                whole && chunks.rest().len() >= Token::LEN
            }
        };
        if !with_token {
            return Ok(Self { header, payload: body, token: None });
        }
        let (payload, token) = split_token(body)?;
        Ok(Self { header, payload, token: Some(token) })
    }

    /// The header as it came.
    pub const fn header(self) -> Header {
        self.header
    }

    /// Acknowledgement, request, token.
    pub const fn envelope(self) -> Envelope {
        Envelope { ack: self.header.ack, resend: self.header.resend, token: self.token }
    }

    /// The token at the end.
    pub const fn token(self) -> Option<Token> {
        self.token
    }

    /// The expanded payload without its token.
    pub const fn payload(self) -> &'a [u8] {
        self.payload
    }

    /// The chunks in order, as far as they are whole.
    pub const fn chunks(self) -> ChunkIter<'a> {
        ChunkIter::new(self.payload, self.header.num_chunks)
    }

    /// The same packet, to be written.
    pub const fn to_chunks(self) -> Chunks<'a> {
        Chunks {
            envelope: self.envelope(),
            num_chunks: self.header.num_chunks,
            payload: self.payload,
        }
    }
}

impl core::fmt::Display for ChunksView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Chunks ack={}", self.header.ack)?;
        f.write_str(if self.header.resend { " resend" } else { "" })?;
        f.write_str(if self.header.compressed { " compressed" } else { "" })?;
        f.write_str(if self.token.is_some() { " token" } else { "" })?;
        write!(f, " n={}", self.header.num_chunks)?;
        let mut chunks = self.chunks();
        for chunk in chunks.by_ref() {
            write!(f, " [{chunk}]")?;
        }
        match chunks.fault() {
            Some(fault) => write!(f, " [{fault}]"),
            None if !chunks.rest().is_empty() => write!(f, " +{}B", chunks.rest().len()),
            None => Ok(()),
        }
    }
}

impl core::fmt::Debug for ChunksView<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}
