//! What the server keeps of one session.

use std::time::Duration;

use caves_link::bucket::TokenBucket;
use caves_link::events::EventSender;
use caves_link::retry::RetryPolicy;
use caves_link::time::Instant;
use caves_wire::caves::{
    ClientType, EntityId, EventKind, Features, LeaveReason, Nonce, Sequence, Token,
};

use super::actions::ActionGate;
use super::figures::{Figures, Missing, Traffic};
use crate::Peer;
use crate::fault::{Fault, Faults};

/// Events unacknowledged at once (section 2, events).
const EVENTS_IN_FLIGHT: usize = 8;
/// Events that wait behind them (section 2, events).
const EVENTS_WAITING: usize = 256;
/// An event is repeated after 250 ms, doubling to 2 s (section 2, events).
const EVENT_RETRY: RetryPolicy =
    RetryPolicy::doubling(Duration::from_millis(250), Duration::from_secs(2));
/// Queries a second, and at once (R23).
const QUERIES: u32 = 10;
/// Pings a second from a session (R22).
const PINGS: u32 = 2;
/// Pings at once from a session (R22).
const PING_BURST: u32 = 4;
/// A Welcome is repeated at most this often (R35) ...
const WELCOME_REPEATS: u8 = 20;
/// ... and not sooner than this after the last one (R35).
const WELCOME_GAP: Duration = Duration::from_millis(100);

/// The Join that opened or resumed a session, and its answer.
#[derive(Debug)]
pub(super) struct JoinRecord {
    pub(super) nonce: Nonce,
    /// Repeated byte for byte; anything else under this nonce is dropped.
    pub(super) join: Box<[u8]>,
    /// Answered byte for byte; empty until the session is admitted.
    pub(super) welcome: Box<[u8]>,
    repeats: u8,
    sent: Instant,
    /// Whether this Welcome opened the session, so that its first word answers it.
    opens: bool,
}

impl JoinRecord {
    pub(super) fn new(nonce: Nonce, join: &[u8], now: Instant) -> Self {
        let (join, welcome) = (join.into(), Box::default());
        Self { nonce, join, welcome, repeats: 0, sent: now, opens: false }
    }

    /// The Welcome goes out for the first time.
    pub(super) const fn welcomed(&mut self, now: Instant, opens: bool) {
        self.sent = now;
        self.opens = opens;
    }

    /// When the Welcome was sent that a session's first word answers; not when that may be one of
    /// several (Karn's rule).
    pub(super) fn welcomed_once_at(&self) -> Option<Instant> {
        (self.opens && self.repeats == 0).then_some(self.sent)
    }

    /// Whether a repeated Join gets its Welcome again.
    pub(super) fn may_repeat(&mut self, now: Instant) -> bool {
        let may = !self.welcome.is_empty()
            && self.repeats < WELCOME_REPEATS
            && now.saturating_since(self.sent) >= WELCOME_GAP;
        if may {
            self.repeats += 1;
            self.sent = now;
        }
        may
    }
}

/// An event that waits or is under way.
#[derive(Debug, Clone)]
pub(super) struct QueuedEvent {
    pub(super) kind: EventKind,
    pub(super) from: EntityId,
    pub(super) text: Box<str>,
}

/// In this order: what every action and every tick ask for lies together, in four lines of the cache and not
/// in seven.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Session {
    pub(super) peer: Peer,
    /// 0 until it is admitted.
    pub(super) entity: EntityId,
    pub(super) token: Token,
    pub(super) heard: Instant,
    pub(super) features: Features,
    /// Whether all inline tags are sent (R34).
    pub(super) tags: bool,
    /// Whether its client has shown that it knows of this session. Until then no event is sent: an
    /// event has no token, and a client that is still in the session before this one would read it
    /// there, and once more here.
    pub(super) is_known: bool,
    /// Whether it stands in the queue of those with an event to send.
    pub(super) ready: bool,
    /// It ends then, for this reason: its client is being told why.
    pub(super) leaving: Option<(Instant, LeaveReason)>,
    pub(super) gate: ActionGate,
    pub(super) figures: Figures,
    pub(super) client_type: ClientType,
    /// Empty for a guest until it is admitted.
    pub(super) name: String,
    pub(super) folded: String,
    /// The registered token that it came with, if any.
    pub(super) account: Option<Token>,
    /// `None` for a source-only session.
    pub(super) join: Option<JoinRecord>,
    pub(super) started: Instant,
    pub(super) events: EventSender<QueuedEvent>,
    pub(super) queries: TokenBucket,
    pub(super) pings: TokenBucket,
    /// When silence is judged again.
    pub(super) silence_check: Instant,
    /// Its entry in the server's timers.
    pub(super) timer: Option<Instant>,
}

impl Session {
    pub(super) fn new(now: Instant, token: Token, peer: Peer, client_type: ClientType) -> Self {
        Self {
            token,
            peer,
            client_type,
            name: String::new(),
            folded: String::new(),
            entity: EntityId(0),
            features: Features::NONE,
            tags: false,
            account: None,
            join: None,
            started: now,
            heard: now,
            is_known: false,
            gate: ActionGate::new(false),
            events: EventSender::new(EVENT_RETRY, EVENTS_IN_FLIGHT, EVENTS_WAITING),
            leaving: None,
            figures: Figures::default(),
            queries: TokenBucket::new(QUERIES, QUERIES, now),
            pings: TokenBucket::new(PINGS, PING_BURST, now),
            silence_check: now,
            timer: None,
            ready: false,
        }
    }

    pub(super) fn silence(&self, now: Instant) -> Duration {
        now.saturating_since(self.heard)
    }

    /// When an event has to be sent.
    pub(super) fn event_deadline(&self, now: Instant) -> Option<Instant> {
        self.events.deadline(now).filter(|_| self.is_known)
    }

    /// Nothing may be under way.
    #[cfg(feature = "testing")]
    pub(super) fn number_events_from(&mut self, next: Sequence) {
        assert!(self.events.is_empty(), "an event is under way");
        self.events = EventSender::starting_at(next, EVENT_RETRY, EVENTS_IN_FLIGHT, EVENTS_WAITING);
    }

    pub(super) fn is_source_only(&self) -> bool {
        self.join.is_none()
    }
}

/// What the layer above may know of a session.
#[derive(Debug, Clone, Copy)]
pub struct SessionView<'s>(pub(super) &'s Session, pub(super) Faults);

impl<'s> SessionView<'s> {
    /// Where it is.
    pub const fn peer(self) -> Peer {
        self.0.peer
    }

    /// Its token. Whoever has it and the address speaks for the player: it belongs into no log.
    pub const fn token(self) -> Token {
        self.0.token
    }

    /// The player's name.
    pub fn name(self) -> &'s str {
        &self.0.name
    }

    /// The player's entity; 0 until the session is admitted.
    pub const fn entity(self) -> EntityId {
        self.0.entity
    }

    /// Whether it came with a registered token: then its name is its own for good.
    pub const fn is_registered(self) -> bool {
        self.0.account.is_some()
    }

    /// Which kind of client it is.
    pub const fn client_type(self) -> ClientType {
        self.0.client_type
    }

    /// What was granted.
    pub const fn features(self) -> Features {
        self.0.features
    }

    /// Whether all inline tags are sent to it (R34).
    pub const fn wants_tags(self) -> bool {
        self.0.tags
    }

    /// The last executed action and the bits of those before it.
    pub fn executed(self) -> Option<(Sequence, u32)> {
        let lie = u32::from(self.1.has(Fault::LiesOfExecuted));
        self.0.gate.executed().map(|(sequence, bits)| (sequence, bits | lie))
    }

    /// When it began.
    pub const fn started(self) -> Instant {
        self.0.started
    }

    /// How long nothing was heard of it.
    pub fn silence(self, now: Instant) -> Duration {
        self.0.silence(now)
    }

    /// Whether it is about to end: its client is being told why.
    pub const fn is_leaving(self) -> bool {
        self.0.leaving.is_some()
    }

    /// Whether its client speaks only types 0 to 7 (R30, R34).
    pub fn is_source_only(self) -> bool {
        self.0.is_source_only()
    }

    /// Whether events can be sent to it at all.
    pub const fn hears_events(self) -> bool {
        self.0.features.contains(Features::EVENTS)
    }

    /// The smoothed round trip; `None` as long as nothing tells.
    ///
    /// Nothing in the protocol is made to measure it at the server, so it comes from what is
    /// answered at once: an event and its acknowledgement, and the Welcome and the first packet with
    /// the token in it. Only what was sent once counts (Karn's rule). A client that takes its time
    /// with its first word or its acknowledgements looks that much farther away.
    pub fn round_trip(self) -> Option<Duration> {
        self.0.figures.round_trip.smoothed()
    }

    /// How long ago the round trip was measured last: somebody to whom nothing is told and to whom
    /// nothing happens is not measured.
    pub fn round_trip_age(self, now: Instant) -> Option<Duration> {
        self.0.figures.measured.map(|at| now.saturating_since(at))
    }

    /// Numbers of actions that never came.
    pub const fn missing(self) -> Missing {
        self.0.figures.actions.missing()
    }

    /// What came from its address since it is there, whoever sent it, with the datagram that opened
    /// the session.
    pub const fn received(self) -> Traffic {
        self.0.figures.received
    }

    /// What was sent to its address, as [`Server::note_sent`](super::Server::note_sent) was told.
    pub const fn sent(self) -> Traffic {
        self.0.figures.sent
    }

    /// Events that wait to be sent, 256 at most (section 2, events).
    pub fn events_waiting(self) -> usize {
        self.0.events.waiting()
    }

    /// Events sent and not acknowledged, 8 at most (section 2, events).
    pub fn events_in_flight(self) -> usize {
        self.0.events.in_flight()
    }

    /// Events that were dropped because its queue was full.
    pub const fn events_dropped(self) -> u64 {
        self.0.events.dropped()
    }
}
