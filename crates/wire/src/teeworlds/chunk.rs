//! Chunks: the messages of a connected packet, each with a header of its own.
//!
//! ```text
//!            7   6   5 .. 0          7 .. 4     3 .. 0       7 .. 0
//!          +---+---+----------+    +----------+---------+  +----------+
//! vital    | R | 1 | size 9-4 |    | seq 9-6  | size 3-0|  | seq 7-0  |
//! other    | R | 0 | size 9-4 |    | ignored  | size 3-0|
//!          +---+---+----------+    +----------+---------+
//! ```
//!
//! Bits 7 and 6 of a sequence are on the wire twice; where the copies differ, their bits are or-ed, as
//! the reference does.

use super::MAX_PAYLOAD;
use super::fault::{self, too_short};
use super::header::{Header, Sequence, Token};
use super::huffman;
use super::message::MessageId;
use crate::{EmitError, ErrorKind, ParseError};

const RESEND: u8 = 0x80;
const VITAL: u8 = 0x40;
const NAME: &str = "Chunk";

/// One chunk, to be read and to be written.
///
/// ```
/// use caves_wire::teeworlds::{Chunk, Sequence};
///
/// let ping = Chunk { vital: Some(Sequence::new(66)), resend: false, data: &[0x2D] };
/// let mut buf = [0; 8];
/// let len = ping.emit(&mut buf)?;
/// assert_eq!(buf[..len], [0x40, 0x11, 0x42, 0x2D]);
/// assert_eq!(Chunk::parse(&buf[..len])?, ping);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// Its number, if it is sent until it has arrived.
    pub vital: Option<Sequence>,
    /// Sent again on request or by a timer. It means nothing to whoever receives it.
    pub resend: bool,
    /// The message: at most [`Chunk::MAX_DATA`] bytes.
    pub data: &'a [u8],
}

impl<'a> Chunk<'a> {
    /// The longest message, in bytes: its length has ten bits.
    pub const MAX_DATA: usize = 1023;
    /// The longest chunk, header included.
    pub const MAX_LEN: usize = Self::MAX_DATA + 3;

    /// Reads the first chunk of `bytes`; more may follow it.
    ///
    /// # Errors
    /// [`ErrorKind::TooShort`] where the header or what it announces does not fit. Offsets count
    /// from the start of `bytes`.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let &[first, second, ..] = bytes else {
            return Err(too_short(NAME, 2, bytes.len()));
        };
        let (vital, head) = match bytes.get(2) {
            _ if first & VITAL == 0 => (None, 2),
            None => return Err(too_short(NAME, 3, bytes.len())),
            Some(third) => {
                // Bits 7 and 6 come from both bytes.
                let sequence = u32::from(second & 0xF0) << 2 | u32::from(*third);
                (Some(Sequence::new(sequence)), 3)
            }
        };
        let size = usize::from(first & 0x3F) << 4 | usize::from(second & 0x0F);
        let Some(data) = bytes.get(head..head + size) else {
            return Err(too_short(NAME, head + size, bytes.len()));
        };
        Ok(Self { vital, resend: first & RESEND != 0, data })
    }

    /// Bytes that [`Chunk::emit`] writes.
    #[expect(clippy::len_without_is_empty, reason = "a chunk is never empty")]
    pub const fn len(&self) -> usize {
        self.data.len() + if self.vital.is_some() { 3 } else { 2 }
    }

    /// Writes the chunk to the start of `buf`.
    ///
    /// # Errors
    /// Over 1023 bytes of data, or `buf` is too short.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        let size = self.data.len();
        fault::limit(NAME, "data", size, Self::MAX_DATA)?;
        let mut first = (size >> 4) as u8;
        let mut second = size as u8 & 0x0F;
        if self.resend {
            first |= RESEND;
        }
        let Some(sequence) = self.vital else {
            return fault::put(NAME, &[&[first, second], self.data], buf);
        };
        first |= VITAL;
        second |= (sequence.get() >> 2) as u8 & 0xF0;
        fault::put(NAME, &[&[first, second, sequence.get() as u8], self.data], buf)
    }
}

impl core::fmt::Display for Chunk<'_> {
    /// `V66 1B PING`, or `V66r` where it was sent again.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.vital {
            Some(sequence) => write!(f, "V{sequence}")?,
            None => f.write_str("-")?,
        }
        let again = if self.resend { "r" } else { "" };
        write!(f, "{again} {}B", self.data.len())?;
        match MessageId::parse(self.data) {
            Ok((id, _)) => write!(f, " {id}"),
            Err(_) => Ok(()),
        }
    }
}

/// The chunks of a payload, in order.
///
/// It ends behind as many as the header announces, or where one does not fit: those before stay good,
/// the rest is lost without an error, as in the reference. [`ChunkIter::fault`] tells.
#[derive(Clone, Debug)]
pub struct ChunkIter<'a> {
    rest: &'a [u8],
    left: u8,
    offset: usize,
    fault: Option<ParseError>,
}

impl<'a> ChunkIter<'a> {
    /// The chunks of a plain payload without its token.
    pub const fn new(payload: &'a [u8], num_chunks: u8) -> Self {
        Self { rest: payload, left: num_chunks, offset: 0, fault: None }
    }

    /// The bytes that were not read yet.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// How many chunks were announced and not read yet.
    pub const fn left(&self) -> u8 {
        self.left
    }

    /// The chunk that did not fit, if the iterator has come to it. Its offset counts from the start of
    /// the plain payload.
    pub const fn fault(&self) -> Option<ParseError> {
        self.fault
    }
}

impl<'a> Iterator for ChunkIter<'a> {
    type Item = Chunk<'a>;

    fn next(&mut self) -> Option<Chunk<'a>> {
        // Fewer chunks than announced are no fault.
        if self.left == 0 || self.rest.is_empty() || self.fault.is_some() {
            return None;
        }
        match Chunk::parse(self.rest) {
            Ok(chunk) => {
                self.left -= 1;
                self.offset += chunk.len();
                self.rest = &self.rest[chunk.len()..];
                Some(chunk)
            }
            Err(error) => {
                self.fault = Some(ParseError { offset: self.offset + error.offset, ..error });
                None
            }
        }
    }
}

impl core::iter::FusedIterator for ChunkIter<'_> {}

/// What a packet of chunks says besides them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Envelope {
    /// The last vital chunk that was received in order.
    pub ack: Sequence,
    /// Whether a vital chunk is missing.
    pub resend: bool,
    /// The connection's token, if it has one.
    pub token: Option<Token>,
}

/// A packet of chunks to be written, from a payload that is laid out already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunks<'a> {
    /// Acknowledgement, request, token.
    pub envelope: Envelope,
    /// How many chunks `payload` holds.
    pub num_chunks: u8,
    /// The chunks, without the token.
    pub payload: &'a [u8],
}

impl Chunks<'_> {
    /// Writes the packet to the start of `buf`: compressed where that is strictly shorter.
    ///
    /// # Errors
    /// `buf` is too short, or the packet is over 1400 bytes even compressed.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        let token: &[u8] = self.envelope.token.as_ref().map_or(&[], |token| &token.0);
        let plain = self.payload.len() + token.len();
        let packed = huffman::encoded_len(self.payload.iter().chain(token).copied());
        // A compressed payload over the cap would be refused where it arrives.
        if packed >= plain || plain > MAX_PAYLOAD {
            return self.emit_plain(buf);
        }
        let needed = super::HEADER + packed;
        let room = fault::room("Chunks", buf, needed)?;
        let (head, rest) = room.split_at_mut(super::HEADER);
        head.copy_from_slice(&self.header(true).to_bytes());
        huffman::encode(self.payload.iter().chain(token).copied(), rest)?;
        Ok(needed)
    }

    /// Writes the packet to the start of `buf` uncompressed.
    ///
    /// # Errors
    /// `buf` is too short, or the packet is over 1400 bytes.
    pub fn emit_plain(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        let token: &[u8] = self.envelope.token.as_ref().map_or(&[], |token| &token.0);
        let len = super::HEADER + self.payload.len() + token.len();
        fault::limit("Chunks", "length", len, super::MAX_DATAGRAM)?;
        fault::put("Chunks", &[&self.header(false).to_bytes(), self.payload, token], buf)
    }

    const fn header(&self, compressed: bool) -> Header {
        Header {
            compressed,
            resend: self.envelope.resend,
            control: false,
            ack: self.envelope.ack,
            num_chunks: self.num_chunks,
        }
    }
}

/// Collects chunks until a packet is full, as far as the reference fills it.
///
/// ```
/// use caves_wire::teeworlds::{Chunk, ChunkBuilder, Envelope, Sequence, Token};
///
/// let mut builder = ChunkBuilder::new();
/// builder.push(&Chunk { vital: Some(Sequence::new(2)), resend: false, data: &[0x2D] })?;
/// let mut buf = [0; 1400];
/// let envelope = Envelope { ack: Sequence::new(4), resend: false, token: Some(Token([1, 0xA2, 6, 0xF4])) };
/// let len = builder.packet(envelope).emit(&mut buf)?;
/// assert_eq!(buf[..len], [0, 4, 1, 0x40, 1, 2, 0x2D, 1, 0xA2, 6, 0xF4]);
/// builder.clear();
/// assert!(builder.is_empty());
/// # Ok::<(), caves_wire::EmitError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ChunkBuilder {
    payload: [u8; Self::CAPACITY],
    len: usize,
    count: u8,
}

impl ChunkBuilder {
    /// The most bytes of chunks in one packet: the reference's payload without a token, for which room
    /// is left on connections without one too.
    pub const CAPACITY: usize = MAX_PAYLOAD - Token::LEN;
    /// The most chunks in one packet: their number has one byte. The reference does not look, and says
    /// 0 for 256.
    pub const MAX_CHUNKS: u8 = u8::MAX;
    /// What the reference counts for any chunk's header.
    const COUNTED_HEAD: usize = 5;

    /// No chunks.
    pub const fn new() -> Self {
        Self { payload: [0; Self::CAPACITY], len: 0, count: 0 }
    }

    /// Whether a chunk with so many bytes of data goes in; if not, send first. It always goes into an
    /// empty one, up to [`Chunk::MAX_DATA`].
    pub const fn fits(&self, data: usize) -> bool {
        self.count < Self::MAX_CHUNKS && self.len + data + Self::COUNTED_HEAD <= Self::CAPACITY
    }

    /// Adds a chunk.
    ///
    /// # Errors
    /// Over 1023 bytes of data, or [`EmitError::Buffer`] where it does not fit any more. Nothing is added
    /// then.
    pub fn push(&mut self, chunk: &Chunk<'_>) -> Result<(), EmitError> {
        fault::limit(NAME, "data", chunk.data.len(), Chunk::MAX_DATA)?;
        if !self.fits(chunk.data.len()) {
            let (needed, got) = (chunk.len(), Self::CAPACITY - self.len);
            return Err(EmitError::Buffer { packet: "Chunks", needed, got });
        }
        self.len += chunk.emit(&mut self.payload[self.len..])?;
        self.count += 1;
        Ok(())
    }

    /// The packet that the chunks make.
    pub fn packet(&self, envelope: Envelope) -> Chunks<'_> {
        Chunks { envelope, num_chunks: self.count, payload: &self.payload[..self.len] }
    }

    /// How many chunks wait.
    pub const fn count(&self) -> u8 {
        self.count
    }

    /// Whether none waits.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Forgets all chunks.
    pub const fn clear(&mut self) {
        (self.len, self.count) = (0, 0);
    }
}

impl Default for ChunkBuilder {
    fn default() -> Self {
        Self::new()
    }
}

/// Refuses a decoded payload that cannot hold the token it must end with.
pub(super) fn split_token(payload: &[u8]) -> Result<(&[u8], Token), ParseError> {
    match payload.split_last_chunk() {
        Some((rest, token)) => Ok((rest, Token(*token))),
        None => Err(ParseError {
            packet: "Token",
            kind: ErrorKind::TooShort,
            offset: super::HEADER,
            needed: Token::LEN,
            got: payload.len(),
        }),
    }
}
