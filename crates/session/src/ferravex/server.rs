//! The server's side of all sessions.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use caves_link::time::{Deadline, Instant};
use caves_wire::EmitError;
use caves_wire::ferravex::{
    Cookie, Event, EventAckView, EventSequence, HeaderView, InputView, MAX_PAYLOAD, Nonce, Packet,
    Player, PlayerId, Snapshot, Tick, Welcome,
};

use super::admission::{Doorstep, WELCOMED};
use super::session::{FreshFrames, Inputs, Session, SessionView};
use super::{SESSION_TIMEOUT, refusal};
use crate::peers::{SessionId, Slots};
use crate::strangers::{holds, host};
use crate::{Counters, DropReason, Peer, Random, StrangerLimits, Strangers, Transmit};

/// Sessions at once, at most: what is left of 256 numbers of players is for those who have been
/// welcomed.
const MAX_SESSIONS: usize = 256 - WELCOMED;
/// Welcomes that may wait. One Hello asks for one at most, so this only fills when the caller hands in
/// datagrams and sends nothing.
pub(super) const ANSWERS: usize = 1024;
/// News that may wait before nobody else gets a session.
pub(super) const NEWS: usize = 1024;
/// Draws for a session that nobody has: of 2^64 numbers 256 are taken.
const DRAWS: usize = 16;

/// How a server treats its clients.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Sessions at once, at most 128.
    pub max_players: usize,
    /// Sessions from one address; the exempt networks of `strangers` have no such limit.
    pub sessions_per_address: usize,
    /// Silence that ends a session.
    pub timeout: Duration,
    /// Hellos that strangers may send.
    pub strangers: StrangerLimits,
}

impl Default for ServerConfig {
    /// As many players as a snapshot has room for.
    fn default() -> Self {
        Self {
            max_players: caves_wire::ferravex::MAX_PLAYERS,
            sessions_per_address: 8,
            timeout: SESSION_TIMEOUT,
            strangers: StrangerLimits::default(),
        }
    }
}

/// What the layer above should know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// A session began: its client has shown that the Welcome reached it.
    Joined {
        /// Which.
        session: SessionId,
        /// From where.
        peer: Peer,
        /// Which player it is in the snapshots.
        player: PlayerId,
    },
    /// A session ended.
    Left {
        /// Which; it opens nothing any more.
        session: SessionId,
        /// Where it was.
        peer: Peer,
        /// Its player, whose number is free again.
        player: PlayerId,
        /// Why.
        why: Left,
    },
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// Nothing was heard for too long.
    Silence,
    /// The server said so.
    Ended,
    /// A newer session from the same address took its place.
    Replaced,
}

/// What a datagram was, for the layer above.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum ServerReceived<'d> {
    /// A session's frames that no packet brought before. The session may be new: its
    /// [`ServerEvent::Joined`] waits then.
    Input {
        /// Whose.
        session: SessionId,
        /// One to six.
        frames: FreshFrames<'d>,
    },
    /// Nothing for the layer above, or told by [`Server::poll_event`].
    Handled,
    /// Nothing at all.
    Dropped(DropReason),
}

/// Why a snapshot was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// There is no such session.
    #[error("no such session")]
    NoSession,
    /// Its tick is not newer than that of the one before.
    #[error("not newer than the last snapshot")]
    Old,
    /// The players cannot stand in one snapshot.
    #[error(transparent)]
    Players(EmitError),
}

/// Why an event was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// There is no such session.
    #[error("no such session")]
    NoSession,
    /// It has more than 900 bytes.
    #[error("an event has at most {MAX_PAYLOAD} bytes")]
    TooLong,
    /// The session has 256 events that it did not acknowledge. Nothing is lost: send it later, or
    /// [end](Server::end) a session that reads none.
    #[error("too many events are not acknowledged")]
    Full,
}

/// The server's side of all sessions: who is talking, and what they get.
pub struct Server {
    config: ServerConfig,
    random: Box<dyn Random + Send>,
    strangers: Strangers,
    pub(super) doorstep: Doorstep,
    pub(super) sessions: Slots<Session>,
    by_cookie: HashMap<Cookie, SessionId>,
    by_peer: HashMap<Peer, SessionId>,
    /// Sessions with something to send, by when.
    sending: BTreeSet<(Instant, SessionId)>,
    /// When the silence of each session is looked at.
    silence: BTreeSet<(Instant, SessionId)>,
    pub(super) answers: VecDeque<(Peer, Welcome)>,
    events: VecDeque<ServerEvent>,
    tick: Tick,
    counters: Counters,
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

type Outcome<'d> = Result<ServerReceived<'d>, DropReason>;

impl Server {
    /// A server without sessions. `random` makes sessions that nobody can guess, so in a program it is
    /// the generator of the operating system.
    pub fn new(mut config: ServerConfig, mut random: Box<dyn Random + Send>, now: Instant) -> Self {
        config.max_players = config.max_players.min(MAX_SESSIONS);
        Self {
            strangers: Strangers::new(config.strangers.clone(), &mut *random, now),
            random,
            doorstep: Doorstep::default(),
            sessions: Slots::new(config.max_players),
            by_cookie: HashMap::new(),
            by_peer: HashMap::new(),
            sending: BTreeSet::new(),
            silence: BTreeSet::new(),
            answers: VecDeque::new(),
            events: VecDeque::new(),
            tick: Tick::new(0),
            counters: Counters::default(),
            config,
        }
    }

    /// Takes what came from a socket. A stranger's bytes never panic and never cost more bytes in
    /// answer than came from its address.
    pub fn handle_datagram<'d>(
        &mut self,
        now: Instant,
        from: Peer,
        datagram: &'d [u8],
    ) -> ServerReceived<'d> {
        let outcome = self.dispatch(now, from, datagram);
        self.counters.note(outcome, ServerReceived::Dropped)
    }

    fn dispatch<'d>(&mut self, now: Instant, from: Peer, datagram: &'d [u8]) -> Outcome<'d> {
        let header = HeaderView::parse(datagram).map_err(refusal)?;
        // What only servers send is not even read: two servers never talk.
        if !header.kind().is_from_client() {
            return Err(DropReason::PacketType);
        }
        match Packet::parse(datagram).map_err(refusal)? {
            Packet::Hello(hello) => self.on_hello(now, from, hello.nonce()),
            Packet::Input(input) => self.on_input(now, from, input),
            Packet::EventAck(ack) => self.on_event_ack(now, from, ack),
            _ => Err(DropReason::PacketType),
        }
    }

    fn on_hello<'d>(&mut self, now: Instant, from: Peer, nonce: Nonce) -> Outcome<'d> {
        if !self.strangers.allow(now, from.ip()) {
            return Err(DropReason::Budget);
        }
        let own = self.by_peer.get(&from).and_then(|id| self.sessions.get(*id));
        if let Some(session) = own.filter(|session| session.welcome.nonce == nonce) {
            // A late copy: the address is proven, and the answer is the one it had.
            return self.answer(from, session.welcome);
        }
        let attempt = (from, nonce);
        if !self.doorstep.hello(now, attempt) {
            return Ok(ServerReceived::Handled);
        }
        if self.answers.len() >= ANSWERS {
            return Err(DropReason::Full);
        }
        let welcome = match self.doorstep.welcome(&attempt) {
            Some(welcome) => welcome,
            None => self.admit(from, nonce)?,
        };
        self.doorstep.pay(&attempt);
        self.answer(from, welcome)
    }

    /// A new Welcome for an attempt. It takes no place among the sessions yet.
    fn admit(&mut self, from: Peer, nonce: Nonce) -> Result<Welcome, DropReason> {
        if !self.has_place(from) {
            return Err(DropReason::Full);
        }
        let session = self.draw_cookie().ok_or(DropReason::Full)?;
        let tick = self.tick;
        let welcome = |player| Welcome { nonce, session, player, tick };
        self.doorstep.admit((from, nonce), welcome).ok_or(DropReason::Full)
    }

    /// Whether a session from there may begin. One that starts again from its old address and port
    /// replaces its old session.
    fn has_place(&self, from: Peer) -> bool {
        if self.by_peer.contains_key(&from) {
            return true;
        }
        if self.sessions.len() >= self.config.max_players {
            return false;
        }
        let same =
            |(_, session): &(SessionId, &Session)| host(session.peer.ip()) == host(from.ip());
        holds(&self.config.strangers.exempt, from.ip())
            || self.sessions.iter().filter(same).count() < self.config.sessions_per_address
    }

    /// Never zero, and nobody's.
    fn draw_cookie(&mut self) -> Option<Cookie> {
        (0..DRAWS).find_map(|_| {
            let cookie = Cookie::new(self.random.next_u64())?;
            let taken = self.by_cookie.contains_key(&cookie) || self.doorstep.knows(cookie);
            (!taken).then_some(cookie)
        })
    }

    fn answer<'d>(&mut self, to: Peer, welcome: Welcome) -> Outcome<'d> {
        if self.answers.len() >= ANSWERS {
            return Err(DropReason::Full);
        }
        self.answers.push_back((to, welcome));
        Ok(ServerReceived::Handled)
    }

    fn on_input<'d>(&mut self, now: Instant, from: Peer, view: InputView<'d>) -> Outcome<'d> {
        let id = self.find(now, from, view.session())?;
        let session = self.sessions.get_mut(id).ok_or(DropReason::Token)?;
        let count = view.frames().len();
        let first = view.frames().next().map_or(view.newest(), |frame| frame.sequence);
        // What is refused keeps no session alive.
        let known = match session.inputs.offer(first, count) {
            Inputs::Old => return Err(DropReason::OldAction),
            Inputs::TooFar => return Err(DropReason::Tick),
            Inputs::Repeated => None,
            Inputs::Fresh(known) => Some(known),
        };
        session.heard = now;
        Ok(match known {
            Some(known) => {
                ServerReceived::Input { session: id, frames: FreshFrames { view, known } }
            }
            None => ServerReceived::Handled,
        })
    }

    fn on_event_ack<'d>(&mut self, now: Instant, from: Peer, ack: EventAckView<'d>) -> Outcome<'d> {
        let id = self.find(now, from, ack.session())?;
        let session = self.sessions.get_mut(id).ok_or(DropReason::Token)?;
        session.heard = now;
        // An unknown number changes nothing; one that is known may make room in the window.
        if session.events.acknowledge(ack.sequence()) {
            self.schedule(now, id);
        }
        Ok(ServerReceived::Handled)
    }

    /// The session that a cookie opens from this address; it begins with the first packet that shows
    /// that its Welcome arrived.
    fn find(&mut self, now: Instant, from: Peer, cookie: Cookie) -> Result<SessionId, DropReason> {
        let Some(id) = self.by_cookie.get(&cookie) else {
            return self.begin(now, from, cookie);
        };
        let session = self.sessions.get(*id).ok_or(DropReason::Token)?;
        if session.peer == from { Ok(*id) } else { Err(DropReason::Address) }
    }

    fn begin(&mut self, now: Instant, from: Peer, cookie: Cookie) -> Result<SessionId, DropReason> {
        self.doorstep.proves(from, cookie)?;
        let old = self.by_peer.get(&from).copied();
        if !self.has_place(from) || self.events.len() >= NEWS {
            return Err(DropReason::Full);
        }
        if let Some(old) = old {
            self.remove(old, Left::Replaced);
        }
        let welcome = self.doorstep.take(cookie).ok_or(DropReason::Token)?;
        let player = welcome.player;
        let Some(id) = self.sessions.insert(Session::new(now, from, welcome)) else {
            self.doorstep.release(player);
            return Err(DropReason::Full);
        };
        self.by_cookie.insert(cookie, id);
        self.by_peer.insert(from, id);
        self.silence.insert((now + self.config.timeout, id));
        self.events.push_back(ServerEvent::Joined { session: id, peer: from, player });
        Ok(id)
    }

    /// Does what is due: sessions that fell silent end.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(due, id)) = self.silence.first() {
            if due > now {
                return;
            }
            self.silence.pop_first();
            let Some(session) = self.sessions.get(id) else { continue };
            let until = session.heard + self.config.timeout;
            if until <= now {
                self.remove(id, Left::Silence);
            } else {
                self.silence.insert((until, id));
            }
        }
    }

    /// What the layer above should know next.
    pub fn poll_event(&mut self) -> Option<ServerEvent> {
        self.events.pop_front()
    }

    /// When to call [`Server::handle_timeout`] and [`Server::poll_transmit`] at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let first = |set: &BTreeSet<(Instant, SessionId)>| set.first().map(|(due, _)| *due);
        Deadline::earliest([first(&self.sending), first(&self.silence)])
    }

    /// Writes the next datagram that is due into `buf`, which has room for 1200 bytes.
    pub fn poll_transmit(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        if let Some((to, welcome)) = self.answers.pop_front() {
            return welcome.emit(buf).ok().map(|len| Transmit { to, len });
        }
        while let Some(&(due, id)) = self.sending.first() {
            if due > now {
                return None;
            }
            let sent = self.sessions.get_mut(id).and_then(|session| write(session, now, buf));
            self.schedule(now, id);
            if sent.is_some() {
                return sent;
            }
            // Nothing was due in spite of all: it is not looked at again before something is.
            if let Some(session) = self.sessions.get_mut(id) {
                session.send_due = session.send_due.filter(|next| *next != due);
            }
            self.sending.remove(&(due, id));
        }
        None
    }

    /// Puts a session where it belongs among those with something to send.
    fn schedule(&mut self, now: Instant, id: SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let next = session.next_send(now);
        let old = std::mem::replace(&mut session.send_due, next);
        if old != next {
            if let Some(old) = old {
                self.sending.remove(&(old, id));
            }
            if let Some(next) = next {
                self.sending.insert((next, id));
            }
        }
    }

    /// The tick that Welcomes tell from now on.
    pub const fn set_tick(&mut self, tick: Tick) {
        self.tick = tick;
    }

    /// How everybody stands, for one session. Only the newest snapshot waits to be sent: one that was
    /// not gives way. Which input is acknowledged is filled in when it is sent.
    ///
    /// # Errors
    /// There is no such session, `tick` is not newer than the last one, or the players cannot stand in
    /// one snapshot.
    pub fn send_snapshot(
        &mut self,
        now: Instant,
        id: SessionId,
        tick: Tick,
        players: &[Player],
    ) -> Result<(), SnapshotError> {
        let session = self.sessions.get_mut(id).ok_or(SnapshotError::NoSession)?;
        if session.tick.is_some_and(|last| !tick.is_newer_than(last)) {
            return Err(SnapshotError::Old);
        }
        Snapshot::check(players).map_err(SnapshotError::Players)?;
        session.tick = Some(tick);
        session.waits = true;
        session.players.clear();
        session.players.extend_from_slice(players);
        self.schedule(now, id);
        Ok(())
    }

    /// Something that has to arrive at one session, once and in order. It is sent at once if the
    /// client's window has room for it, and repeated until it is acknowledged.
    ///
    /// # Errors
    /// There is no such session, more than 900 bytes, or too many are not acknowledged.
    pub fn send_event(
        &mut self,
        now: Instant,
        id: SessionId,
        payload: &[u8],
    ) -> Result<EventSequence, EventError> {
        let session = self.sessions.get_mut(id).ok_or(EventError::NoSession)?;
        if payload.len() > MAX_PAYLOAD {
            return Err(EventError::TooLong);
        }
        let sequence = session.events.send(payload.into()).map_err(|_| EventError::Full)?;
        self.schedule(now, id);
        Ok(sequence)
    }

    /// Ends a session. Its client is not told, since the protocol has no way to: it finds silence.
    /// `false` if there is none.
    pub fn end(&mut self, id: SessionId) -> bool {
        self.remove(id, Left::Ended)
    }

    fn remove(&mut self, id: SessionId, why: Left) -> bool {
        let Some(session) = self.sessions.remove(id) else { return false };
        let Welcome { session: cookie, player, .. } = session.welcome;
        self.by_cookie.remove(&cookie);
        self.by_peer.remove(&session.peer);
        self.doorstep.release(player);
        if let Some(due) = session.send_due {
            self.sending.remove(&(due, id));
        }
        // A hundred at most.
        self.silence.retain(|(_, of)| *of != id);
        self.events.push_back(ServerEvent::Left { session: id, peer: session.peer, player, why });
        true
    }

    /// All sessions.
    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, SessionView<'_>)> {
        self.sessions.iter().map(|(id, session)| (id, SessionView(session)))
    }

    /// One session.
    pub fn session(&self, id: SessionId) -> Option<SessionView<'_>> {
        self.sessions.get(id).map(SessionView)
    }

    /// What was received and dropped.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }
}

/// The next datagram of a session: its snapshot goes first, since it only gets older.
fn write(session: &mut Session, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
    let (to, cookie) = (session.peer, session.welcome.session);
    let len = if std::mem::take(&mut session.waits) {
        let (tick, ack) = (session.tick?, session.inputs.newest());
        Snapshot { session: cookie, tick, ack, players: &session.players }.emit(buf)
    } else {
        let (sequence, payload) = session.events.poll(now)?;
        Event { session: cookie, sequence, payload }.emit(buf)
    };
    len.ok().map(|len| Transmit { to, len })
}
