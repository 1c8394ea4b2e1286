//! One connection, the same on both sides (sections 5 to 7).

use std::time::Duration;

use caves_link::resend::ResendQueue;
use caves_link::retry::RetryPolicy;
use caves_link::time::{Deadline, Instant};
use caves_link::window::{Arrival, Flight, InOrder};
use caves_wire::teeworlds::{
    Chunk, ChunksView, Control, ControlMessage, Envelope, Packet, Scratch, Sequence, Text, Token,
    Tokens,
};

use super::messages::Messages;
use super::outbox::{Goodbye, control};
use super::payloads::Payloads;
use super::{ANSWER_GAP, FLUSH, KEEPALIVE, RESEND, more_than};
use crate::DropReason;

/// Vital chunks unacknowledged at once: as many of the smallest as the reference's ring holds. Fewer
/// than 511, so that old and ahead are never confused.
pub const MAX_UNACKED: usize = 455;
/// What unacknowledged chunks may cost together, each its [`vital_cost`]: the reference's ring.
pub const MAX_UNACKED_BYTES: usize = 32_760;
/// Numbers before the last one that are old.
const BACKROOM: u32 = 512;
/// The timer of the oldest unacknowledged chunk.
const POLICY: RetryPolicy = RetryPolicy::uniform(more_than(RESEND), more_than(RESEND));

/// What a vital chunk with so many bytes of data costs in the reference's ring.
///
/// ```
/// use caves_session::teeworlds::{MAX_UNACKED_BYTES, vital_cost};
///
/// assert_eq!(MAX_UNACKED_BYTES / vital_cost(8), 455);
/// assert_eq!(MAX_UNACKED_BYTES / vital_cost(906), 33);
/// ```
pub const fn vital_cost(data: usize) -> usize {
    (data + 64).next_multiple_of(24)
}

/// Why a message was not taken. Nothing has changed then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// There is no connection to send it on.
    #[error("no connection")]
    NotConnected,
    /// It has more bytes than a chunk can say.
    #[error("a message has at most 1023 bytes")]
    TooLong,
    /// Too much is unacknowledged. The reference sends it and forgets it, or ends the connection.
    #[error("too many vital messages are unacknowledged")]
    Full,
    /// Too many packets wait for the caller to fetch them.
    #[error("too many packets wait to be fetched")]
    Waiting,
}

/// Why a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// The other side said so, perhaps with a reason: at most 127 bytes before cleaning.
    Closed(Option<String>),
    /// Nothing was heard for too long.
    Silence,
    /// A vital message was not acknowledged for too long.
    Unacknowledged,
    /// This side said so.
    Here,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Closed(Some(reason)) => write!(f, "closed: {reason}"),
            Self::Closed(None) => f.write_str("closed"),
            Self::Silence => f.write_str("silence"),
            Self::Unacknowledged => f.write_str("unacknowledged for too long"),
            Self::Here => f.write_str("closed here"),
        }
    }
}

impl Ended {
    /// The other side's CLOSE.
    pub(super) fn by_peer(reason: Option<Text<'_>>) -> Self {
        Self::Closed(reason.map(|reason| reason.to_string()))
    }
}

/// What a datagram was.
#[derive(Debug)]
pub(super) enum Heard<'d> {
    Messages(Messages<'d>),
    /// The other side has ended it.
    Closed(Option<Text<'d>>),
    Nothing,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Session {
    token: Option<Token>,
    timeout: Duration,
    window: InOrder<10>,
    flight: Flight<10>,
    unacked: ResendQueue<Box<[u8]>, 10>,
    payloads: Payloads,
    /// Something is missing: the next packet says so.
    ask: bool,
    /// The other side asked, and it is too soon to answer again.
    owed: Deadline,
    answered: Option<Instant>,
    heard: Instant,
    sent: Instant,
}

impl Session {
    /// A connection that stands now; both counters are at 0, so the first vital chunk is 1.
    pub(super) fn new(now: Instant, token: Option<Token>, timeout: Duration) -> Self {
        let zero = Sequence::new(0);
        Self {
            token,
            timeout,
            window: InOrder::new(zero, BACKROOM),
            flight: Flight::new(zero),
            unacked: ResendQueue::with_budget(MAX_UNACKED, MAX_UNACKED_BYTES, POLICY),
            payloads: Payloads::default(),
            ask: false,
            owed: Deadline::NEVER,
            answered: None,
            heard: now,
            sent: now,
        }
    }

    pub(super) const fn token(&self) -> Option<Token> {
        self.token
    }

    /// Adds a message to the packet that is being filled.
    pub(super) fn send(&mut self, now: Instant, vital: bool, data: &[u8]) -> Result<(), SendError> {
        if data.len() > Chunk::MAX_DATA {
            return Err(SendError::TooLong);
        }
        if !self.payloads.has_room(data.len()) {
            return Err(SendError::Waiting);
        }
        let vital = if vital { Some(self.number(now, data)?) } else { None };
        self.payloads.push(&Chunk { vital, resend: false, data });
        Ok(())
    }

    /// Keeps a vital message until it is acknowledged, and gives it its number.
    fn number(&mut self, now: Instant, data: &[u8]) -> Result<Sequence, SendError> {
        let cost = vital_cost(data.len());
        if !self.unacked.has_room(cost) {
            return Err(SendError::Full);
        }
        let sequence = self.flight.send().ok_or(SendError::Full)?;
        self.unacked.push_sent(sequence, data.into(), cost, now, 0).map_err(|_| SendError::Full)?;
        Ok(sequence)
    }

    /// What waits goes out with the next [`Session::poll_transmit`].
    pub(super) fn flush(&mut self) {
        self.payloads.flush();
    }

    /// Takes a datagram from the other side's address. What fails a check has no effect at all
    /// (section 6, in its order).
    pub(super) fn handle<'d>(
        &mut self,
        now: Instant,
        datagram: &'d [u8],
        scratch: &'d mut Scratch,
    ) -> Result<Heard<'d>, DropReason> {
        let tokens = if self.token.is_some() { Tokens::With } else { Tokens::Without };
        match Packet::parse(datagram, tokens, scratch).map_err(|_| DropReason::Malformed)? {
            Packet::Connless(_) => Err(DropReason::PacketType),
            Packet::Control(packet) => self.on_control(now, packet),
            Packet::Chunks(packet) => {
                self.check(now, packet.envelope())?;
                Ok(self.on_chunks(packet))
            }
        }
    }

    fn on_control<'d>(
        &mut self,
        now: Instant,
        packet: Control<'d>,
    ) -> Result<Heard<'d>, DropReason> {
        let Control { ack, resend, token, message } = packet;
        self.check(now, Envelope { ack, resend, token })?;
        Ok(match message {
            ControlMessage::Close(reason) => Heard::Closed(reason),
            _ => {
                self.unacked.release_up_to(ack);
                Heard::Nothing
            }
        })
    }

    /// Token and acknowledgement, then the request. The request goes first: even chunks that this
    /// packet acknowledges are sent again, as the reference does.
    fn check(&mut self, now: Instant, envelope: Envelope) -> Result<(), DropReason> {
        if self.token.is_some() && envelope.token != self.token {
            return Err(DropReason::Token);
        }
        // Of what was never sent, or late: then so are its chunks.
        if !self.flight.acknowledge(envelope.ack) {
            return Err(DropReason::Unasked);
        }
        self.heard = now;
        if envelope.resend {
            self.on_request(now);
        }
        Ok(())
    }

    fn on_chunks<'d>(&mut self, packet: ChunksView<'d>) -> Heard<'d> {
        self.unacked.release_up_to(packet.envelope().ack);
        let before = self.window;
        for sequence in packet.chunks().filter_map(|chunk| chunk.vital) {
            // Nothing is kept for later: all behind a gap must come again.
            self.ask |= self.window.take(sequence) == Arrival::Ahead;
        }
        Heard::Messages(Messages::new(packet.chunks(), before))
    }

    /// Sends all that is unacknowledged again, now or as soon as it may.
    fn on_request(&mut self, now: Instant) {
        if self.unacked.is_empty() {
            self.owed.clear();
            return;
        }
        if let Some(next) = self.answered.map(|last| last + ANSWER_GAP)
            && now < next
        {
            self.owed.set(next);
            return;
        }
        self.owed.clear();
        self.answered = Some(now);
        self.unacked.hasten(now);
        while let Some((sequence, data)) = self.unacked.poll(now, 0) {
            if !self.payloads.push(&Chunk { vital: Some(sequence), resend: true, data }) {
                // The caller fetches nothing; what is left is asked for again.
                break;
            }
        }
    }

    /// Does what is due; tells when it is over.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> Option<Ended> {
        if now.saturating_since(self.heard) > self.timeout {
            return Some(Ended::Silence);
        }
        if self.unacked.oldest_age(now).is_some_and(|age| age > self.timeout) {
            return Some(Ended::Unacknowledged);
        }
        if self.owed.is_due(now) {
            self.on_request(now);
        }
        if let Some((sequence, data)) = self.unacked.poll_oldest(now, 0) {
            self.payloads.push(&Chunk { vital: Some(sequence), resend: true, data });
        }
        None
    }

    /// When [`Session::handle_timeout`] or [`Session::poll_transmit`] has something to do.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let quiet = if self.waits() { FLUSH } else { KEEPALIVE };
        let timeout = more_than(self.timeout);
        Deadline::earliest([
            Some(self.heard + timeout),
            self.unacked.oldest_since().map(|since| since + timeout),
            self.unacked.oldest_deadline(),
            self.owed.get(),
            Some(self.sent + more_than(quiet)),
        ])
    }

    /// Writes the next datagram that is to go out now.
    pub(super) fn poll_transmit(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        let quiet = now.saturating_since(self.sent);
        if !self.payloads.is_ready() && self.waits() && quiet > FLUSH {
            self.payloads.flush();
            if !self.payloads.is_ready() {
                return self.emit_request(now, buf);
            }
        }
        if self.payloads.is_ready() {
            let len = self.payloads.emit(self.envelope(), buf)?;
            self.note_sent(now);
            return Some(len);
        }
        if quiet <= KEEPALIVE {
            return None;
        }
        let len = control(self.token, self.window.last(), ControlMessage::KeepAlive, buf)?;
        self.note_sent(now);
        Some(len)
    }

    /// A packet without chunks: it asks for what is missing.
    fn emit_request(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        let request = caves_wire::teeworlds::Chunks {
            envelope: self.envelope(),
            num_chunks: 0,
            payload: &[],
        };
        let len = request.emit(buf).ok()?;
        self.note_sent(now);
        Some(len)
    }

    /// Something is to be said, but not at once.
    const fn waits(&self) -> bool {
        self.ask || self.payloads.is_filling()
    }

    const fn envelope(&self) -> Envelope {
        Envelope { ack: self.window.last(), resend: self.ask, token: self.token }
    }

    /// A datagram goes out. A request is made once for each gap that is seen.
    pub(super) const fn note_sent(&mut self, now: Instant) {
        self.sent = now;
        self.ask = false;
    }

    /// A datagram of the handshake goes out beside it.
    pub(super) const fn note_handshake(&mut self, now: Instant) {
        self.sent = now;
    }

    /// The CLOSE of this connection.
    pub(super) fn goodbye(&self, reason: &str) -> Goodbye {
        Goodbye::new(self.token, self.window.last(), reason)
    }

    pub(super) fn view(&self) -> SessionView {
        SessionView {
            has_token: self.token.is_some(),
            sent: self.flight.sent(),
            acked: self.flight.acked(),
            received: self.window.last(),
            unacked: self.unacked.len(),
            unacked_bytes: self.unacked.used(),
            waiting: self.payloads.len(),
            heard: self.heard,
        }
    }
}

/// How a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionView {
    /// Whether it has a token.
    pub has_token: bool,
    /// The last vital message sent.
    pub sent: Sequence,
    /// The last one of them that the other side acknowledged.
    pub acked: Sequence,
    /// The last vital message received in order.
    pub received: Sequence,
    /// Vital messages that are unacknowledged, at most [`MAX_UNACKED`].
    pub unacked: usize,
    /// What they cost, at most [`MAX_UNACKED_BYTES`].
    pub unacked_bytes: usize,
    /// Packets that wait to be fetched.
    pub waiting: usize,
    /// When something valid came last.
    pub heard: Instant,
}
