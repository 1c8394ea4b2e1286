//! Small answers that wait to be sent, and goodbyes that are said three times.

use std::collections::VecDeque;

use caves_link::time::Instant;
use caves_wire::caves::{
    Challenge, ClientType, Echo, Leave, LeaveReason, Nonce, Refuse, RefuseReason, Token,
};
use caves_wire::{EmitError, text};

use super::{LEAVE_GAP, LEAVE_REPEATS};
use crate::peers::SessionId;
use crate::{Peer, Transmit};

/// Answers that may wait. One datagram asks for one answer, so this only fills when the caller
/// hands in datagrams and sends nothing.
pub(super) const ANSWERS: usize = 1024;
/// Goodbyes that may wait, three datagrams each. The oldest gives way: its peer finds out by
/// silence.
pub(super) const GOODBYES: usize = 65_536;

/// An answer to one datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Challenge(Challenge),
    Pong(u64),
    /// `room` is the length of what it answers: it is never longer (section 2).
    Refuse {
        nonce: Nonce,
        reason: RefuseReason,
        text: String,
        room: usize,
    },
    /// Built when it is sent.
    Info(Nonce),
    /// The session's Welcome, as it was first sent.
    Welcome(SessionId),
}

#[derive(Debug)]
struct Goodbye {
    due: Instant,
    to: Peer,
    token: Token,
    reason: LeaveReason,
    left: u8,
}

#[derive(Debug, Default)]
pub(super) struct Outbox {
    answers: VecDeque<(Peer, Answer)>,
    goodbyes: VecDeque<Goodbye>,
}

impl Outbox {
    /// Queues an answer; `false` when the queue is full.
    pub(super) fn answer(&mut self, to: Peer, answer: Answer) -> bool {
        let room = self.answers.len() < ANSWERS;
        if room {
            self.answers.push_back((to, answer));
        }
        room
    }

    pub(super) fn next_answer(&mut self) -> Option<(Peer, Answer)> {
        self.answers.pop_front()
    }

    /// Says goodbye three times, beginning now.
    pub(super) fn goodbye(&mut self, now: Instant, to: Peer, token: Token, reason: LeaveReason) {
        if self.goodbyes.len() >= GOODBYES {
            self.goodbyes.pop_front();
        }
        self.goodbyes.push_front(Goodbye { due: now, to, token, reason, left: LEAVE_REPEATS });
    }

    /// The next goodbye that is due. All wait equally long, so the queue is sorted by due time.
    pub(super) fn next_goodbye(
        &mut self,
        now: Instant,
        buf: &mut [u8],
    ) -> Option<Result<Transmit, EmitError>> {
        let mut goodbye = self.goodbyes.pop_front_if(|goodbye| goodbye.due <= now)?;
        let Goodbye { to, token, reason, .. } = goodbye;
        goodbye.left -= 1;
        if goodbye.left > 0 {
            goodbye.due = now + LEAVE_GAP;
            self.goodbyes.push_back(goodbye);
        }
        let leave = Leave { client_type: ClientType::OFFICIAL, token, reason };
        Some(leave.emit(buf).map(|len| Transmit { to, len }))
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.goodbyes.front().map(|goodbye| goodbye.due)
    }

    pub(super) fn answers(&self) -> usize {
        self.answers.len()
    }

    pub(super) fn goodbyes(&self) -> usize {
        self.goodbyes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.answers.is_empty() && self.goodbyes.is_empty()
    }
}

/// Writes those answers that need nothing but themselves.
pub(super) fn emit_plain(answer: &Answer, buf: &mut [u8]) -> Option<Result<usize, EmitError>> {
    match answer {
        Answer::Challenge(challenge) => Some(challenge.emit(buf)),
        Answer::Pong(timestamp_ms) => Some(Echo::pong(*timestamp_ms).emit(buf)),
        Answer::Refuse { nonce, reason, text, room } => {
            let most = room.saturating_sub(Refuse::MIN_LEN).min(usize::from(u8::MAX));
            let refuse = Refuse { nonce: *nonce, reason: *reason, text: text::cut(text, most) };
            Some(refuse.emit(buf))
        }
        Answer::Info(_) | Answer::Welcome(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_goodbye_is_said_three_times_twenty_milliseconds_apart() {
        let mut outbox = Outbox::default();
        let to = Peer { socket: 0, addr: ([127, 0, 0, 1], 9).into() };
        let mut now = Instant::from_secs(1);
        outbox.goodbye(now, to, Token(5), LeaveReason::KICKED);
        let mut buf = [0; 64];
        let mut sent = Vec::new();
        while let Some(due) = outbox.deadline() {
            now = now.max(due);
            while outbox.next_goodbye(now, &mut buf).is_some() {
                sent.push(now.saturating_since(Instant::from_secs(1)));
            }
        }
        assert_eq!(sent, [0, 20, 40].map(Duration::from_millis));
        assert!(outbox.is_empty());
    }

    #[test]
    fn a_refusal_is_never_longer_than_what_it_answers() {
        let mut buf = [0; 300];
        for room in [17, 18, 32, 64, 299, 1200] {
            let answer = Answer::Refuse {
                nonce: Nonce(1),
                reason: RefuseReason::BANNED,
                text: "é".repeat(300),
                room,
            };
            let len = emit_plain(&answer, &mut buf).unwrap().unwrap();
            assert!(len <= room && len + 1 >= room.min(272), "{len} of {room}");
        }
    }
}
