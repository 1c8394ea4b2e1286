//! Answers to strangers, and goodbyes: what the server sends without a session.

use std::collections::VecDeque;

use caves_wire::teeworlds::{Control, ControlMessage, MAX_REASON, Sequence, Token};
use caves_wire::text;

use crate::{Peer, Transmit};

/// Answers and goodbyes that may wait. One datagram asks for one answer, so this only fills when the
/// caller hands in datagrams and sends nothing.
pub const ANSWERS: usize = 1024;

/// One datagram without a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// CONNECTACCEPT, with the token or for a client without tokens.
    Accept(Option<Token>),
    Close(Goodbye),
}

/// What a CLOSE says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Goodbye {
    pub(super) token: Option<Token>,
    pub(super) ack: Sequence,
    pub(super) reason: Option<String>,
}

impl Goodbye {
    /// The reason is cut to what may be sent: 127 bytes, up to a zero byte.
    pub(super) fn new(token: Option<Token>, ack: Sequence, reason: &str) -> Self {
        let reason = reason.split('\0').next().unwrap_or_default();
        let reason = text::cut(reason, MAX_REASON);
        Self { token, ack, reason: (!reason.is_empty()).then(|| reason.to_owned()) }
    }

    pub(super) fn emit(&self, buf: &mut [u8]) -> Option<usize> {
        let message =
            self.reason.as_deref().map_or(ControlMessage::Close(None), ControlMessage::close);
        control(self.token, self.ack, message, buf)
    }
}

/// Writes a control packet.
pub(super) fn control(
    token: Option<Token>,
    ack: Sequence,
    message: ControlMessage<'_>,
    buf: &mut [u8],
) -> Option<usize> {
    Control { ack, resend: false, message, token }.emit(buf).ok()
}

#[derive(Debug, Default)]
pub(super) struct Outbox {
    answers: VecDeque<(Peer, Answer)>,
}

impl Outbox {
    /// Queues an answer; `false` when the queue is full.
    pub(super) fn push(&mut self, to: Peer, answer: Answer) -> bool {
        let room = self.answers.len() < ANSWERS;
        if room {
            self.answers.push_back((to, answer));
        }
        room
    }

    pub(super) fn emit(&mut self, buf: &mut [u8]) -> Option<Transmit> {
        let (to, answer) = self.answers.front()?;
        let len = match answer {
            Answer::Accept(token) => {
                control(None, Sequence::new(0), ControlMessage::ConnectAccept(*token), buf)
            }
            Answer::Close(goodbye) => goodbye.emit(buf),
        }?;
        let to = *to;
        self.answers.pop_front();
        Some(Transmit { to, len })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(reason: &str) -> Vec<u8> {
        let goodbye = Goodbye::new(Some(Token([1, 2, 3, 4])), Sequence::new(258), reason);
        let mut buf = [0; 200];
        let len = goodbye.emit(&mut buf).unwrap();
        buf[..len].to_vec()
    }

    #[test]
    fn a_reason_is_cut_to_what_may_be_sent() {
        assert_eq!(bytes("bye"), *b"\x11\x02\x00\x04bye\0\x01\x02\x03\x04");
        assert_eq!(bytes("bye\0more"), bytes("bye"));
        assert_eq!(bytes(""), *b"\x11\x02\x00\x04\x01\x02\x03\x04");
        assert_eq!(bytes(&"é".repeat(80)).len(), 4 + 126 + 1 + 4);
    }

    #[test]
    fn answers_that_nobody_fetches_are_bounded() {
        let mut outbox = Outbox::default();
        let to = Peer { socket: 0, addr: ([127, 0, 0, 1], 9).into() };
        let kept = (0..ANSWERS + 5).filter(|_| outbox.push(to, Answer::Accept(None))).count();
        assert_eq!(kept, ANSWERS);
        let mut buf = [0; 16];
        assert_eq!(outbox.emit(&mut buf), Some(Transmit { to, len: 4 }));
        assert_eq!(buf[..4], [0x10, 0, 0, 2]);
        assert!(outbox.push(to, Answer::Accept(None)));
    }
}
