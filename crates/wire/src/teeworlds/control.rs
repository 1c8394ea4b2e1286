//! Control packets: what makes and ends a connection.
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 3 | header, control bit set, no chunks |
//! | 3 | 1 | message id |
//! | 4 | .. | the message's payload |
//! | .. | 4 | token, on connections that have one |

use super::fault::{self, too_short};
use super::header::{Header, Sequence, Token, Tokens};
use super::string::{Cleaning, Text};
use super::{HEADER, MAX_DATAGRAM};
use crate::{EmitError, ErrorKind, ParseError};

const NAME: &str = "Control";
/// Says that a token follows.
const MAGIC: [u8; 4] = *b"TKEN";

const KEEP_ALIVE: u8 = 0;
const CONNECT: u8 = 1;
const CONNECT_ACCEPT: u8 = 2;
const ACCEPT: u8 = 3;
const CLOSE: u8 = 4;

/// The longest reason of a [`ControlMessage::Close`], in bytes.
pub const MAX_REASON: usize = 127;

/// A control packet, to be read and to be written.
///
/// ```
/// use caves_wire::teeworlds::{Control, ControlMessage, Sequence, Token, Tokens};
///
/// let bye = Control {
///     ack: Sequence::new(32),
///     resend: false,
///     message: ControlMessage::close("bye"),
///     token: Some(Token([1, 0xA2, 6, 0xF4])),
/// };
/// let mut buf = [0; 1400];
/// let len = bye.emit(&mut buf)?;
/// assert_eq!(buf[..len], *b"\x10\x20\x00\x04bye\0\x01\xA2\x06\xF4");
/// assert_eq!(Control::parse(&buf[..len], Tokens::With)?, bye);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Control<'a> {
    /// The last vital chunk that the sender has received in order.
    pub ack: Sequence,
    /// The sender lacks a vital chunk.
    pub resend: bool,
    /// What it says.
    pub message: ControlMessage<'a>,
    /// The token at the end. That of CONNECT and CONNECTACCEPT is part of the message, where it has a
    /// fixed place, and stands here too after reading; it is written once.
    pub token: Option<Token>,
}

/// What a control packet says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ControlMessage<'a> {
    /// 0: nothing for a second.
    KeepAlive,
    /// 1, client to server: asks for a connection; with [`Token::UNKNOWN`] for one with tokens.
    Connect(Option<Token>),
    /// 2, server to client: grants it; with the token to use, or none if there are to be none.
    ConnectAccept(Option<Token>),
    /// 3, client to server: the connection stands. A server with tokens makes it now.
    Accept,
    /// 4: the connection has ended, perhaps for a reason.
    Close(Option<Text<'a>>),
    /// Another id, to be ignored.
    Unknown {
        /// The id, above 4.
        id: u8,
        /// What follows it.
        payload: &'a [u8],
    },
}

impl<'a> ControlMessage<'a> {
    /// A CLOSE with a reason. Those over [`MAX_REASON`] bytes are refused when written.
    pub const fn close(reason: &'a str) -> Self {
        Self::Close(Some(Text::new(reason.as_bytes(), Cleaning::HalfStrict)))
    }

    /// The message byte.
    pub const fn id(self) -> u8 {
        match self {
            Self::KeepAlive => KEEP_ALIVE,
            Self::Connect(_) => CONNECT,
            Self::ConnectAccept(_) => CONNECT_ACCEPT,
            Self::Accept => ACCEPT,
            Self::Close(_) => CLOSE,
            Self::Unknown { id, .. } => id,
        }
    }
}

impl<'a> Control<'a> {
    /// Reads a datagram.
    ///
    /// The number of chunks and bytes behind a message are ignored.
    ///
    /// # Errors
    /// Those of [`Header::parse`]; no control bit; [`ErrorKind::Flags`] where it says that it is
    /// compressed; [`ErrorKind::TooShort`] where there is no message byte, be it that only a token
    /// follows the header.
    pub fn parse(datagram: &'a [u8], tokens: Tokens) -> Result<Self, ParseError> {
        let header =
            Header::parse(datagram).map_err(|error| ParseError { packet: NAME, ..error })?;
        if !header.control || header.compressed {
            return Err(ParseError {
                packet: NAME,
                kind: ErrorKind::Flags,
                offset: 0,
                needed: 0x10,
                got: datagram[0].into(),
            });
        }
        let Some((&id, payload)) = datagram[HEADER..].split_first() else {
            return Err(too_short(NAME, HEADER + 1, datagram.len()));
        };
        let made = |message, token| Self { ack: header.ack, resend: header.resend, message, token };
        let token_alone = tokens == Tokens::With && payload.len() + 1 == Token::LEN;
        if token_alone {
            return Err(too_short(NAME, HEADER + 1 + Token::LEN, datagram.len()));
        }
        if id == CONNECT || id == CONNECT_ACCEPT {
            let token = handshake_token(payload);
            let message = match id {
                CONNECT => ControlMessage::Connect(token),
                _ => ControlMessage::ConnectAccept(token),
            };
            return Ok(made(message, token));
        }
        let (payload, token) = match tokens {
            Tokens::Guess if ends_with_token(id, payload) => cut(payload),
            Tokens::Guess | Tokens::Without => (payload, None),
            Tokens::With => match cut(payload) {
                (_, None) => {
                    return Err(too_short(NAME, HEADER + 1 + Token::LEN, datagram.len()));
                }
                found => found,
            },
        };
        let message = match id {
            KEEP_ALIVE => ControlMessage::KeepAlive,
            ACCEPT => ControlMessage::Accept,
            CLOSE => ControlMessage::Close(reason(payload)),
            _ => ControlMessage::Unknown { id, payload },
        };
        Ok(made(message, token))
    }

    /// Writes the packet to the start of `buf`.
    ///
    /// # Errors
    /// `buf` is too short; a reason over 127 bytes or with a zero byte; over 1400 bytes in all.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        let header = Header {
            compressed: false,
            resend: self.resend,
            control: true,
            ack: self.ack,
            num_chunks: 0,
        };
        let bytes = |token: &'_ Option<Token>| token.map_or([0; 4], |token| token.0);
        let mut token = bytes(&self.token);
        let mut with_token = self.token.is_some();
        let (mut text, mut end): (&[u8], &[u8]) = (&[], &[]);
        match &self.message {
            ControlMessage::Connect(own) | ControlMessage::ConnectAccept(own) => {
                (token, with_token) = (bytes(own), own.is_some());
                if with_token {
                    text = &MAGIC;
                }
            }
            ControlMessage::Close(Some(reason)) => {
                text = reason.as_bytes();
                fault::limit(NAME, "reason", text.len(), MAX_REASON)?;
                fault::limit(NAME, "zero bytes in the reason", zeros(text), 0)?;
                end = &[0];
            }
            ControlMessage::Unknown { payload, .. } => text = payload,
            ControlMessage::KeepAlive | ControlMessage::Accept | ControlMessage::Close(None) => {}
        }
        let token: &[u8] = if with_token { &token } else { &[] };
        let len = HEADER + 1 + text.len() + end.len() + token.len();
        fault::limit(NAME, "length", len, MAX_DATAGRAM)?;
        fault::put(NAME, &[&header.to_bytes(), &[self.message.id()], text, end, token], buf)
    }
}

fn zeros(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte == 0).count()
}

/// What stands behind `TKEN`; more may follow. Anything else means a peer without tokens.
fn handshake_token(payload: &[u8]) -> Option<Token> {
    let token = payload.strip_prefix(&MAGIC)?.first_chunk()?;
    Some(Token(*token))
}

fn cut(payload: &[u8]) -> (&[u8], Option<Token>) {
    match payload.split_last_chunk() {
        Some((rest, token)) => (rest, Some(Token(*token))),
        None => (payload, None),
    }
}

/// Up to the terminator, the end, or 127 bytes; no bytes at all are no reason.
fn reason(payload: &[u8]) -> Option<Text<'_>> {
    if payload.is_empty() {
        return None;
    }
    let kept = &payload[..payload.len().min(MAX_REASON)];
    let end = kept.iter().position(|byte| *byte == 0).unwrap_or(kept.len());
    Some(Text::new(&kept[..end], Cleaning::HalfStrict))
}

/// A guess, for those that do not know the connection.
fn ends_with_token(id: u8, payload: &[u8]) -> bool {
    if id != CLOSE {
        return payload.len() >= Token::LEN;
    }
    let Some(end) = payload.iter().position(|byte| *byte == 0) else {
        // No terminator: no reason and a token of no zero byte, or a reason that was cut off.
        return payload.len() == Token::LEN;
    };
    // Four bytes are a reason of three, or a token that happens to end with a zero byte.
    let is_text = end == 3 && payload[..3].iter().all(|byte| (0x20..0x7F).contains(byte));
    payload.len() >= end + 1 + Token::LEN || payload.len() == Token::LEN && !is_text
}

impl core::fmt::Display for Control<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.message {
            ControlMessage::KeepAlive => f.write_str("KEEPALIVE")?,
            ControlMessage::Connect(_) => f.write_str("CONNECT")?,
            ControlMessage::ConnectAccept(_) => f.write_str("CONNECTACCEPT")?,
            ControlMessage::Accept => f.write_str("ACCEPT")?,
            ControlMessage::Close(None) => f.write_str("CLOSE")?,
            ControlMessage::Close(Some(reason)) => write!(f, "CLOSE \"{reason}\"")?,
            ControlMessage::Unknown { id, payload } => {
                write!(f, "control {id} {}B", payload.len())?;
            }
        }
        write!(f, " ack={}", self.ack)?;
        f.write_str(if self.resend { " resend" } else { "" })?;
        f.write_str(if self.token.is_some() { " token" } else { "" })
    }
}
