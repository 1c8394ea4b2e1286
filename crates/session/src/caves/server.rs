//! The server's side of all sessions.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use caves_link::bucket::TokenBucket;
use caves_link::time::{Deadline, Instant};
use caves_wire::caves::{
    Action, ActionView, Challenge, ClientType, EchoView, EntityId, Event, EventAckView, EventKind,
    Features, HeaderView, HelloView, LeaveReason, LeaveView, Nonce, Packet, QueryView,
    RefuseReason, Sequence, Tick, Token,
};
use caves_wire::text;

use super::actions::{ActionGate, Offer};
use super::cookie::Cookies;
use super::gauges::ServerGauges;
use super::join::{self, Ban, ClientEntry, UsedNonces};
use super::outbox::{Answer, Outbox};
use super::session::{JoinRecord, QueuedEvent, Session, SessionView};
use super::timers::Timers;
use super::tokens::ByToken;
use super::{OwnedAction, SESSION_TIMEOUT};
use crate::fault::{Fault, Faults};
use crate::peers::{SessionId, Slots};
use crate::strangers::loopback;
use crate::{Counters, DropReason, Peer, Random, StrangerLimits, Strangers, Transmit};

/// An event that stays unacknowledged this long ends the session (section 2, events).
const EVENTS_UNREAD: Duration = Duration::from_secs(10);
/// A source-only session ignores a Leave this soon after its start: it belongs to the last one
/// (R30).
const LEAVE_GRACE: Duration = Duration::from_secs(1);
/// After this much silence events under way are sent anew when the client is heard again: a network
/// that was cut and healed must not end the session by unread events. More than a keepalive apart.
const HEARD_AGAIN: Duration = Duration::from_millis(2500);
/// Refusals told to the layer above, a second: a stranger must not fill a log (R28).
const REFUSALS_TOLD: u32 = 10;

/// How a server treats its clients.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Shown in Welcome and Info, at most 64 bytes.
    pub name: String,
    /// The message of the day, at most 512 bytes.
    pub motd: String,
    /// Sessions at once.
    pub max_players: usize,
    /// Ticks a second, told in Welcome.
    pub tick_rate: u8,
    /// Whether client types without an entry may join (R37).
    pub open: bool,
    /// Silence that ends a session.
    pub timeout: Duration,
    /// What strangers may ask.
    pub strangers: StrangerLimits,
    /// Sessions from one address; exempt addresses have no such limit.
    pub sessions_per_address: usize,
    /// Kinds of client and registered clients.
    pub clients: Vec<ClientEntry>,
    /// Who is kept out.
    pub bans: Vec<Ban>,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            name: "Forgotten Caves".into(),
            motd: String::new(),
            max_players: 64,
            tick_rate: 10,
            open: false,
            timeout: SESSION_TIMEOUT,
            strangers: StrangerLimits { exempt: loopback(), ..StrangerLimits::default() },
            sessions_per_address: 8,
            clients: Vec::new(),
            bans: Vec::new(),
        }
    }
}

/// What the layer above should know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// A session began. It must be [admitted](Server::admit) before it is welcomed.
    Joined(Joined),
    /// A session goes on from another address.
    Moved {
        /// Which.
        session: SessionId,
        /// Where it is now.
        peer: Peer,
    },
    /// A session ended.
    Left {
        /// Which; it opens nothing any more.
        session: SessionId,
        /// Its entity.
        entity: EntityId,
        /// Its name.
        name: String,
        /// Where it was.
        peer: Peer,
        /// Why.
        why: Left,
    },
    /// Somebody was not let in. Told ten times a second at most.
    Refused {
        /// Who asked.
        peer: Peer,
        /// The name that was wanted, stripped of what must not be shown.
        name: String,
        /// Why.
        reason: RefuseReason,
    },
}

/// A session that began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// Which.
    pub session: SessionId,
    /// From where.
    pub peer: Peer,
    /// The player's name; a guest gets one when it is admitted.
    pub name: Option<String>,
    /// Which kind of client.
    pub client_type: ClientType,
    /// Whether it speaks only types 0 to 7 (R30, R34).
    pub source_only: bool,
    /// The session whose place it takes, with its entity; that one has ended.
    pub takes_over: Option<EntityId>,
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// The client said so.
    Quit,
    /// Nothing was heard for too long.
    Silence,
    /// The server said so.
    Ended(LeaveReason),
}

impl std::fmt::Display for Left {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Quit => f.write_str("quit"),
            Self::Silence => f.write_str("silence"),
            Self::Ended(reason) => reason.fmt(f),
        }
    }
}

/// What a datagram was, for the layer above.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum ServerReceived<'d> {
    /// A session's action, with the chunk versions that its client holds. The action itself comes
    /// by [`Server::next_action`], once a tick.
    Action {
        /// Whose.
        session: SessionId,
        /// The packet.
        view: ActionView<'d>,
    },
    /// A session asks about an entity.
    Query {
        /// Whose.
        session: SessionId,
        /// Which entity.
        entity: EntityId,
    },
    /// Nothing for the layer above.
    Handled,
    /// Nothing at all.
    Dropped(DropReason),
}

/// The server's side of all sessions: who is talking, and what they may.
pub struct Server {
    pub(super) config: ServerConfig,
    pub(super) random: Box<dyn Random + Send>,
    pub(super) sessions: Slots<Session>,
    pub(super) by_token: ByToken,
    pub(super) by_peer: HashMap<Peer, SessionId>,
    pub(super) by_name: HashMap<String, SessionId>,
    /// The living session of each registered token.
    pub(super) by_account: HashMap<Token, SessionId>,
    /// Registered tokens whose session has just ended, and where it was (R30).
    pub(super) left: HashMap<Token, (Peer, Instant)>,
    pub(super) registered: HashMap<Token, usize>,
    pub(super) reserved: HashMap<String, usize>,
    pub(super) banned_names: HashMap<String, usize>,
    pub(super) strangers: Strangers,
    pub(super) cookies: Cookies,
    pub(super) used: UsedNonces,
    pub(super) outbox: Outbox,
    pub(super) events: VecDeque<ServerEvent>,
    pub(super) timers: Timers,
    pub(super) ready: VecDeque<SessionId>,
    pub(super) refusals: TokenBucket,
    pub(super) tick: Tick,
    pub(super) closing: bool,
    /// Nobody else is let in: those who are here would suffer.
    pub(super) is_busy: bool,
    pub(super) counters: Counters,
    pub(super) faults: Faults,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("sessions", &self.sessions.len())
            .field("tick", &self.tick)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

/// What a handler makes of a packet; the error is counted.
pub(super) type Outcome<'d> = Result<ServerReceived<'d>, DropReason>;

impl Server {
    /// A server without sessions. Names and texts over their limits are cut.
    pub fn new(config: ServerConfig, mut random: Box<dyn Random + Send>, now: Instant) -> Self {
        let (registered, reserved) = join::listed(&config.clients);
        Self {
            strangers: Strangers::new(config.strangers.clone(), &mut *random, now),
            cookies: Cookies::new(&mut *random, now),
            random,
            sessions: Slots::new(config.max_players),
            by_token: ByToken::default(),
            by_peer: HashMap::new(),
            by_name: HashMap::new(),
            by_account: HashMap::new(),
            left: HashMap::new(),
            registered,
            reserved,
            banned_names: join::banned_names(&config.bans),
            used: UsedNonces::default(),
            outbox: Outbox::default(),
            events: VecDeque::new(),
            timers: Timers::default(),
            ready: VecDeque::new(),
            refusals: TokenBucket::new(REFUSALS_TOLD, REFUSALS_TOLD, now),
            tick: Tick::new(0),
            closing: false,
            is_busy: false,
            counters: Counters::default(),
            faults: Faults::default(),
            config,
        }
    }

    /// Takes what came from a socket. A stranger's bytes never panic and never cost more bytes in
    /// answer than they are.
    pub fn handle_datagram<'d>(
        &mut self,
        now: Instant,
        from: Peer,
        datagram: &'d [u8],
    ) -> ServerReceived<'d> {
        self.handle_recognized(now, from, datagram, None)
    }

    /// Whose action a datagram is, if it is one: looks and changes nothing. Who has many datagrams at hand
    /// asks for all of them before they are [handled](Server::handle_recognized): of a thousand sessions
    /// hardly one is in the caches, and so the memory is waited for once and not for each datagram.
    pub fn recognize(&self, from: Peer, datagram: &[u8]) -> Option<SessionId> {
        let action = ActionView::parse(datagram).ok()?;
        self.find(from, action.token()).ok()
    }

    /// As [`Server::handle_datagram`], with what [`Server::recognize`] said of this datagram: `None`, or
    /// what is not true any more, only takes longer.
    pub fn handle_recognized<'d>(
        &mut self,
        now: Instant,
        from: Peer,
        datagram: &'d [u8],
        recognized: Option<SessionId>,
    ) -> ServerReceived<'d> {
        let outcome = self.dispatch(now, from, datagram, recognized);
        // The session of an action was looked up already; of all else it is whose address it came from.
        let id = match outcome {
            Ok(ServerReceived::Action { session, .. }) => Some(session),
            _ => self.by_peer.get(&from).copied(),
        };
        if let Some(session) = id.and_then(|id| self.sessions.get_mut(id)) {
            session.figures.received.note(datagram.len());
        }
        self.counters.note(outcome, ServerReceived::Dropped)
    }

    fn dispatch<'d>(
        &mut self,
        now: Instant,
        from: Peer,
        datagram: &'d [u8],
        recognized: Option<SessionId>,
    ) -> Outcome<'d> {
        assert!(!self.faults.has(Fault::PanicsOnJunk) || datagram.len() != 13, "a fault");
        let header = HeaderView::parse(datagram).map_err(|_| DropReason::Malformed)?;
        // What only servers send is not even read, and never answered: two servers never talk (R28).
        if !header.packet_type().is_from_client() {
            return Err(DropReason::PacketType);
        }
        match Packet::parse(datagram).map_err(|_| DropReason::Malformed)? {
            Packet::Action(action) => self.on_action(now, from, action, recognized),
            Packet::Query(query) => self.on_query(now, from, query),
            Packet::Ping(ping) => self.on_ping(now, from, ping),
            Packet::Hello(hello) => self.on_hello(now, from, hello),
            Packet::Join(join) => self.on_join(now, from, datagram, join),
            Packet::Leave(leave) => self.on_leave(now, from, leave),
            Packet::EventAck(ack) => self.on_event_ack(now, from, ack),
            Packet::InfoRequest(request) => self.on_info_request(now, from, request.nonce()),
            Packet::OtherVersion(_) => self.on_other_version(now, from, datagram),
            _ => Err(DropReason::PacketType),
        }
    }

    fn on_action<'d>(
        &mut self,
        now: Instant,
        from: Peer,
        action: ActionView<'d>,
        recognized: Option<SessionId>,
    ) -> Outcome<'d> {
        let token = action.token();
        let of = |session: &Session| session.token == token && session.peer == from;
        let id = match recognized.filter(|id| self.sessions.get(*id).is_some_and(of)) {
            Some(id) => id,
            None => match self.find(from, token) {
                Ok(id) => id,
                Err(reason) => self.start_source_only(now, from, action).ok_or(reason)?,
            },
        };
        let forgets = self.faults.has(Fault::ForgetsGuard);
        let session = self.hear(now, id)?;
        if session.leaving.is_some() {
            return Err(DropReason::Token);
        }
        if !matches!(action.action(), Action::NoOp) {
            session.figures.actions.note(action.sequence());
        }
        let mut offer = session.gate.offer(now, action.sequence(), action.action());
        if forgets && offer == Offer::Old {
            session.gate = ActionGate::new(false);
            offer = session.gate.offer(now, action.sequence(), action.action());
        }
        match offer {
            Offer::Kept | Offer::NoOp => {}
            // The cache list of an old or repeated action still tells what is missing (R18).
            Offer::Old => self.counters.drop(DropReason::OldAction),
            Offer::Repeated => self.counters.drop(DropReason::Repeated),
            Offer::Full => self.counters.drop(DropReason::Waiting),
        }
        Ok(ServerReceived::Action { session: id, view: action })
    }

    fn on_query<'d>(&mut self, now: Instant, from: Peer, query: QueryView<'d>) -> Outcome<'d> {
        let id = self.find(from, query.token())?;
        let session = self.hear(now, id)?;
        if !session.queries.take(now) {
            return Err(DropReason::Rate);
        }
        Ok(ServerReceived::Query { session: id, entity: query.entity() })
    }

    fn on_ping<'d>(&mut self, now: Instant, from: Peer, ping: EchoView<'d>) -> Outcome<'d> {
        // Many players share one address: a session's pings draw on the session (R22).
        match self.by_peer.get(&from).and_then(|id| self.sessions.get_mut(*id)) {
            Some(session) => session.pings.take(now).then_some(()).ok_or(DropReason::Rate)?,
            None => self.charge(now, from)?,
        }
        self.answer(from, Answer::Pong(ping.timestamp_ms()))
    }

    fn on_leave<'d>(&mut self, now: Instant, from: Peer, leave: LeaveView<'d>) -> Outcome<'d> {
        let id = self.find(from, leave.token())?;
        let session = self.hear(now, id)?;
        let young = now.saturating_since(session.started) < LEAVE_GRACE;
        if !(session.is_source_only() && young) {
            if let Some(account) = session.account {
                self.left.insert(account, (from, now));
            }
            self.remove(now, id, Some(Left::Quit));
        }
        Ok(ServerReceived::Handled)
    }

    fn on_event_ack<'d>(&mut self, now: Instant, from: Peer, ack: EventAckView<'d>) -> Outcome<'d> {
        let id = self.find(from, ack.token())?;
        let session = self.hear(now, id)?;
        let sent = session.events.sent_once_at(ack.sequence());
        if session.events.acknowledge(ack.sequence()) {
            session.figures.note_round_trip(now, sent);
            self.make_ready(id);
        }
        self.end_if_told(now, id);
        Ok(ServerReceived::Handled)
    }

    fn on_hello<'d>(&mut self, now: Instant, from: Peer, hello: HelloView<'d>) -> Outcome<'d> {
        self.charge(now, from)?;
        let (nonce, client_type) = (hello.nonce(), hello.client_type());
        let cookie = self.cookies.make(now, &mut *self.random, from, nonce, client_type);
        let challenge = Challenge { nonce, cookie, server_key: [0; 32] };
        if self.faults.has(Fault::AnswersMore) {
            self.outbox.answer(from, Answer::Challenge(challenge));
        }
        self.answer(from, Answer::Challenge(challenge))
    }

    fn on_info_request<'d>(&mut self, now: Instant, from: Peer, nonce: Nonce) -> Outcome<'d> {
        self.charge(now, from)?;
        self.answer(from, Answer::Info(nonce))
    }

    fn on_other_version<'d>(&mut self, now: Instant, from: Peer, bytes: &'d [u8]) -> Outcome<'d> {
        let hello = HelloView::parse_any_version(bytes).map_err(|_| DropReason::Version)?;
        self.charge(now, from)?;
        self.counters.drop(DropReason::Version);
        let (reason, text) = (RefuseReason::VERSION, "this server speaks version 1".into());
        self.answer(from, Answer::Refuse { nonce: hello.nonce(), reason, text, room: bytes.len() })
    }

    /// The session that a token opens from this peer.
    fn find(&self, from: Peer, token: Token) -> Result<SessionId, DropReason> {
        let id = *self.by_token.get(&token).ok_or(DropReason::Token)?;
        let session = self.sessions.get(id).ok_or(DropReason::Token)?;
        if session.peer == from { Ok(id) } else { Err(DropReason::Address) }
    }

    /// Its session is alive: only packets with a valid token say so (R21).
    fn hear(&mut self, now: Instant, id: SessionId) -> Result<&mut Session, DropReason> {
        let session = self.sessions.get_mut(id).ok_or(DropReason::Token)?;
        let silence = session.silence(now);
        session.heard = now;
        let was_known = std::mem::replace(&mut session.is_known, true);
        if !was_known {
            let sent = session.join.as_ref().and_then(JoinRecord::welcomed_once_at);
            session.figures.note_round_trip(now, sent);
        }
        if silence >= HEARD_AGAIN {
            // What it was sent meanwhile it cannot have acknowledged.
            session.events.renew(now);
        }
        if silence >= HEARD_AGAIN || !was_known {
            self.make_ready(id);
        }
        self.sessions.get_mut(id).ok_or(DropReason::Token)
    }

    /// The ban of a folded name.
    pub(super) fn banned_name(&self, folded: &str) -> Option<&Ban> {
        self.banned_names.get(folded).map(|place| &self.config.bans[*place])
    }

    pub(super) fn charge(&mut self, now: Instant, from: Peer) -> Result<(), DropReason> {
        if self.strangers.allow(now, from.ip()) { Ok(()) } else { Err(DropReason::Budget) }
    }

    pub(super) fn charge_proven(&mut self, now: Instant, from: Peer) -> Result<(), DropReason> {
        if self.strangers.allow_proven(now, from.ip()) { Ok(()) } else { Err(DropReason::Budget) }
    }

    pub(super) fn answer<'d>(&mut self, to: Peer, answer: Answer) -> Outcome<'d> {
        if self.outbox.answer(to, answer) {
            Ok(ServerReceived::Handled)
        } else {
            Err(DropReason::Full)
        }
    }

    /// Does what is due: sessions that fell silent end, events are repeated.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(id) = self.timers.pop_due(now) {
            let Some(session) = self.sessions.get_mut(id) else { continue };
            session.timer = None;
            if let Some((until, reason)) = session.leaving
                && until <= now
            {
                self.end(now, id, reason);
                continue;
            }
            if session.silence(now) >= self.config.timeout && !self.faults.has(Fault::KeepsDead) {
                // What is late of it must not begin another session, nor take effect once more there.
                let of = session.account.map(|account| (account, (session.peer, now)));
                self.left.extend(of);
                self.remove(now, id, Some(Left::Silence));
                continue;
            }
            if session.events.oldest_age(now).is_some_and(|age| age >= EVENTS_UNREAD) {
                self.end(now, id, LeaveReason::EVENTS_UNREAD);
                continue;
            }
            session.silence_check = session.heard + self.config.timeout;
            self.make_ready(id);
        }
    }

    /// What the layer above should know next.
    pub fn poll_event(&mut self) -> Option<ServerEvent> {
        self.events.pop_front()
    }

    /// When to call [`Server::handle_timeout`] or [`Server::poll_transmit`] at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        Deadline::earliest([self.timers.next(), self.outbox.deadline()])
    }

    /// Writes the next datagram that is due into `buf`, which has room for 1200 bytes.
    pub fn poll_transmit(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        while let Some((to, answer)) = self.outbox.next_answer() {
            if let Some(Ok(len)) = self.emit_answer(&answer, buf) {
                return Some(Transmit { to, len });
            }
        }
        if let Some(Ok(transmit)) = self.outbox.next_goodbye(now, buf) {
            return Some(transmit);
        }
        self.next_event_datagram(now, buf)
    }

    fn next_event_datagram(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        while let Some(id) = self.ready.front().copied() {
            let random = self.random.next_u64() as u32;
            if let Some(session) = self.sessions.get_mut(id) {
                let to = session.peer;
                if session.is_known
                    && let Some((sequence, event)) = session.events.poll(now, random)
                {
                    let QueuedEvent { kind, from, text } = event;
                    let event = Event { sequence, kind: *kind, from: *from, text };
                    if let Ok(len) = event.emit(buf) {
                        return Some(Transmit { to, len });
                    }
                }
                session.ready = false;
                self.set_timer(now, id);
            }
            self.ready.pop_front();
        }
        None
    }

    /// Puts a session into the queue of those that may have an event to send.
    fn make_ready(&mut self, id: SessionId) {
        if let Some(session) = self.sessions.get_mut(id)
            && !session.ready
        {
            session.ready = true;
            self.ready.push_back(id);
        }
    }

    /// One timer a session: silence, a repeated event, or an event unread for too long.
    pub(super) fn set_timer(&mut self, now: Instant, id: SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let unread =
            session.events.oldest_age(now).map(|age| now + EVENTS_UNREAD.saturating_sub(age));
        let due = Deadline::earliest([
            Some(session.silence_check),
            session.event_deadline(now),
            unread,
            session.leaving.map(|(until, _)| until),
        ]);
        if session.timer != due {
            if let Some(old) = session.timer {
                self.timers.remove(old, id);
            }
            if let Some(due) = due {
                self.timers.insert(due, id);
            }
            session.timer = due;
        }
    }

    /// Tells which tick it is, for Welcome and Info.
    pub const fn set_tick(&mut self, tick: Tick) {
        self.tick = tick;
    }

    /// The action that a session executes in this tick, if any. It counts as executed (R19).
    pub fn next_action(&mut self, id: SessionId) -> Option<(Sequence, OwnedAction)> {
        self.sessions.get_mut(id)?.gate.take()
    }

    /// Sends an event to a session that was granted events; `false` when it was not sent, because
    /// the session has none or too many wait (section 2, events). A text over 1000 bytes is cut.
    pub fn send_event(
        &mut self,
        id: SessionId,
        kind: EventKind,
        from: EntityId,
        text: &str,
    ) -> bool {
        let Some(session) = self.sessions.get_mut(id) else { return false };
        let granted = session.features.contains(Features::EVENTS);
        if !granted && !self.faults.has(Fault::TellsEverybody) {
            return false;
        }
        let text = text::cut(text, caves_wire::caves::MAX_EVENT_TEXT).into();
        let queued = session.events.send(QueuedEvent { kind, from, text }).is_ok();
        self.make_ready(id);
        queued
    }

    /// The next event of a session has this number; its client has to expect it.
    ///
    /// # Panics
    /// An event is under way, or there is no such session.
    #[cfg(feature = "testing")]
    pub fn number_events_from(&mut self, id: SessionId, next: Sequence) {
        self.sessions.get_mut(id).expect("a session").number_events_from(next);
    }

    /// Ends a session and tells its client why.
    pub fn end(&mut self, now: Instant, id: SessionId, reason: LeaveReason) {
        self.say_goodbye(now, id, reason);
        self.remove(now, id, Some(Left::Ended(reason)));
    }

    /// Queues the Leaves of a session that is about to end. A source-only client knows no type
    /// above 7 (R34): it finds out by silence.
    pub(super) fn say_goodbye(&mut self, now: Instant, id: SessionId, reason: LeaveReason) {
        if let Some(session) = self.sessions.get(id).filter(|session| !session.is_source_only()) {
            self.outbox.goodbye(now, session.peer, session.token, reason);
        }
    }

    /// Whether the machine is at its limit: then nobody is let in who takes a place, as if all were
    /// taken. Those who are here stay, and may come back.
    pub const fn set_busy(&mut self, is_busy: bool) {
        self.is_busy = is_busy;
    }

    /// Ends all sessions and refuses new ones from now on. Done when [`Server::is_drained`].
    pub fn shut_down(&mut self, now: Instant) {
        self.closing = true;
        let all: Vec<_> = self.sessions.iter().map(|(id, _)| id).collect();
        for id in all {
            // Whoever is being shown out must not come back by itself.
            let leaving = self.sessions.get(id).and_then(|session| session.leaving);
            self.end(now, id, leaving.map_or(LeaveReason::SHUTTING_DOWN, |(_, reason)| reason));
        }
    }

    /// Whether everything that was to be said has been sent.
    pub fn is_drained(&self) -> bool {
        self.outbox.is_empty() && self.sessions.len() == 0
    }

    /// What is known of a session, while it lives.
    pub fn session(&self, id: SessionId) -> Option<SessionView<'_>> {
        self.sessions.get(id).map(|session| SessionView(session, self.faults))
    }

    /// The living sessions by slot, those not admitted yet included.
    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, SessionView<'_>)> {
        self.sessions.iter().map(|(id, session)| (id, SessionView(session, self.faults)))
    }

    /// How many sessions live.
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether nobody is here.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What was received and dropped.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How full the tables and queues are.
    pub fn gauges(&self) -> ServerGauges {
        let sessions = || self.sessions.iter().map(|(_, session)| session);
        ServerGauges {
            sessions: self.sessions.len(),
            tokens: self.by_token.len(),
            peers: self.by_peer.len(),
            names: self.by_name.len(),
            accounts: self.by_account.len(),
            timers: self.timers.len(),
            ready: self.ready.len(),
            answers: self.outbox.answers(),
            goodbyes: self.outbox.goodbyes(),
            used_nonces: self.used.len(),
            accounts_left: self.left.len(),
            news: self.events.len(),
            events_waiting: sessions().map(|session| session.events.waiting()).max().unwrap_or(0),
            events_in_flight: sessions().map(|s| s.events.in_flight()).max().unwrap_or(0),
            actions_waiting: sessions().map(|session| session.gate.waiting()).max().unwrap_or(0),
        }
    }

    #[doc(hidden)]
    pub const fn faults(&self) -> Faults {
        self.faults
    }

    /// Does something wrong from now on.
    #[doc(hidden)]
    #[cfg(feature = "faults")]
    pub const fn inject(&mut self, fault: Fault) {
        self.faults = Faults::only(fault);
    }

    /// Every session leaves through here.
    pub(super) fn remove(&mut self, now: Instant, id: SessionId, why: Option<Left>) {
        let Some(session) = self.sessions.remove(id) else { return };
        if !self.faults.has(Fault::LeaksSlot) {
            self.by_token.remove(&session.token);
        }
        if self.by_peer.get(&session.peer) == Some(&id) {
            self.by_peer.remove(&session.peer);
        }
        if self.by_name.get(&session.folded) == Some(&id) {
            self.by_name.remove(&session.folded);
        }
        if let Some(account) = session.account
            && self.by_account.get(&account) == Some(&id)
        {
            self.by_account.remove(&account);
        }
        if let Some(due) = session.timer {
            self.timers.remove(due, id);
        }
        if session.ready {
            self.ready.retain(|ready| *ready != id);
        }
        if let Some(record) = &session.join {
            self.use_up(now, session.peer, record.nonce);
        }
        if let Some(why) = why {
            let Session { entity, name, peer, .. } = session;
            self.events.push_back(ServerEvent::Left { session: id, entity, name, peer, why });
        }
    }

    /// The cookie of this attempt opens nothing any more.
    pub(super) fn use_up(&mut self, now: Instant, peer: Peer, nonce: Nonce) {
        if self.used.remember(now, peer, nonce).is_err() {
            self.cookies.forget(now, &mut *self.random);
        }
    }

    pub(super) fn tell_refusal(&mut self, now: Instant, refused: ServerEvent) {
        if self.refusals.take(now) {
            self.events.push_back(refused);
        }
    }
}
