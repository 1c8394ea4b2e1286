//! The server's side of all connections.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use caves_link::time::Instant;
use caves_wire::teeworlds::{
    Connless, Control, ControlMessage, Header, Scratch, Sequence, Token, Tokens as Expect,
};

use super::TIMEOUT;
use super::messages::Messages;
use super::outbox::{Answer, Goodbye, Outbox};
use super::session::{Ended, Heard, SendError, Session, SessionView};
use super::token::Tokens;
use crate::peers::{SessionId, Slots};
use crate::strangers::{holds, host};
use crate::{Counters, DropReason, Peer, Random, StrangerLimits, Strangers, Transmit};

/// Beginnings that the caller has not been told of yet. Above it nobody is let in.
const EVENTS: usize = 1024;

/// How a server treats its clients.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Sessions at once.
    pub max_sessions: usize,
    /// Sessions from one address; exempt addresses have no such limit.
    pub sessions_per_address: usize,
    /// Silence, and age of what is unacknowledged, that end a session.
    pub timeout: Duration,
    /// Whether clients without tokens may come, as vanilla Teeworlds 0.6. Their address is never
    /// proven: whoever forges one gets a session for it, and it is sent what that session is sent.
    pub without_tokens: bool,
    /// What strangers may ask.
    pub strangers: StrangerLimits,
}

impl Default for ServerConfig {
    /// 64 sessions, 4 from one address, DDNet's timeout, tokens required.
    fn default() -> Self {
        Self {
            max_sessions: 64,
            sessions_per_address: 4,
            timeout: TIMEOUT,
            without_tokens: false,
            strangers: StrangerLimits::default(),
        }
    }
}

/// What the layer above should know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// A session began.
    Joined {
        /// Which.
        session: SessionId,
        /// From where.
        peer: Peer,
    },
    /// The same client has begun anew, from the same port: nothing of before holds, on either side.
    Rejoined {
        /// Which.
        session: SessionId,
    },
    /// A session ended.
    Left {
        /// Which; it opens nothing any more.
        session: SessionId,
        /// Where it was.
        peer: Peer,
        /// Why.
        why: Ended,
    },
}

/// What a datagram was, for the layer above.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ServerReceived<'d> {
    /// Messages of a session, perhaps none.
    Messages {
        /// Whose.
        session: SessionId,
        /// The messages.
        messages: Messages<'d>,
    },
    /// A packet without a connection. The sender's address is not proven: an answer must not be
    /// longer than the question.
    Connless(Connless<'d>),
    /// Nothing for the layer above.
    Handled,
    /// Nothing at all.
    Dropped(DropReason),
}

/// One session and where it is.
#[derive(Debug)]
struct Seat {
    session: Session,
    peer: Peer,
    /// A CONNECT came, and nothing else since: an ACCEPT begins anew.
    again: bool,
    /// Its entry in the server's timers: not later than its deadline.
    timer: Option<Instant>,
    /// Whether it stands in the queue of those that may have something to send.
    ready: bool,
}

impl Seat {
    const fn new(session: Session, peer: Peer) -> Self {
        Self { session, peer, again: false, timer: None, ready: false }
    }
}

/// The server's side of all connections. A call looks at those it is about, however many there are.
#[derive(Debug)]
pub struct Server {
    config: ServerConfig,
    strangers: Strangers,
    tokens: Tokens,
    sessions: Slots<Seat>,
    by_peer: HashMap<Peer, SessionId>,
    outbox: Outbox,
    events: VecDeque<ServerEvent>,
    counters: Counters,
    timers: BTreeSet<(Instant, SessionId)>,
    /// Each sends one datagram and goes to the end, so that none is starved by a socket that is full.
    /// One that has ended is passed over.
    ready: VecDeque<SessionId>,
}

type Outcome<'d> = Result<ServerReceived<'d>, DropReason>;

impl Server {
    /// A server without sessions. Its tokens follow from the first numbers of `random`.
    pub fn new(config: ServerConfig, random: &mut dyn Random, now: Instant) -> Self {
        Self {
            tokens: Tokens::new(random),
            strangers: Strangers::new(config.strangers.clone(), random, now),
            sessions: Slots::new(config.max_sessions),
            by_peer: HashMap::new(),
            outbox: Outbox::default(),
            events: VecDeque::new(),
            counters: Counters::default(),
            timers: BTreeSet::new(),
            ready: VecDeque::new(),
            config,
        }
    }

    /// Every address gets this token, as in a capture.
    #[cfg(feature = "testing")]
    pub const fn fix_token(&mut self, token: Token) {
        self.tokens.fix(token);
    }

    /// Takes what came from a socket. A stranger's bytes never panic and never cost more bytes in
    /// answer than they are, until they show a token. What is compressed is expanded into `scratch`.
    pub fn handle_datagram<'d>(
        &mut self,
        now: Instant,
        from: Peer,
        datagram: &'d [u8],
        scratch: &'d mut Scratch,
    ) -> ServerReceived<'d> {
        let outcome = self.dispatch(now, from, datagram, scratch);
        self.counters.note(outcome, ServerReceived::Dropped)
    }

    fn dispatch<'d>(
        &mut self,
        now: Instant,
        from: Peer,
        datagram: &'d [u8],
        scratch: &'d mut Scratch,
    ) -> Outcome<'d> {
        if Header::is_connless(datagram) {
            let packet = Connless::parse(datagram).map_err(|_| DropReason::Malformed)?;
            self.charge(now, from)?;
            return Ok(ServerReceived::Connless(packet));
        }
        let header = Header::parse(datagram).map_err(|_| DropReason::Malformed)?;
        match self.by_peer.get(&from) {
            Some(&id) => self.on_session(now, id, datagram, scratch),
            // A token without an ACCEPT opens nothing.
            None if !header.control => Err(DropReason::Token),
            None => {
                let packet =
                    Control::parse(datagram, Expect::With).map_err(|_| DropReason::Malformed)?;
                self.on_stranger(now, from, packet)
            }
        }
    }

    fn on_session<'d>(
        &mut self,
        now: Instant,
        id: SessionId,
        datagram: &'d [u8],
        scratch: &'d mut Scratch,
    ) -> Outcome<'d> {
        match Control::parse(datagram, Expect::With).map(|packet| (packet.message, packet.token)) {
            Ok((ControlMessage::Connect(token), _)) => {
                return self.on_connect_again(now, id, token);
            }
            Ok((ControlMessage::Accept, Some(token))) => {
                return self.on_accept_again(now, id, token);
            }
            _ => {}
        }
        let seat = self.sessions.get_mut(id).ok_or(DropReason::Token)?;
        let heard = seat.session.handle(now, datagram, scratch)?;
        seat.again = false;
        self.touch(id);
        Ok(match heard {
            Heard::Messages(messages) => ServerReceived::Messages { session: id, messages },
            Heard::Nothing => ServerReceived::Handled,
            Heard::Closed(reason) => {
                self.remove(id, Ended::by_peer(reason));
                ServerReceived::Handled
            }
        })
    }

    /// A CONNECT on a live session: answered, and nothing changes.
    fn on_connect_again<'d>(
        &mut self,
        now: Instant,
        id: SessionId,
        token: Option<Token>,
    ) -> Outcome<'d> {
        let seat = self.sessions.get_mut(id).ok_or(DropReason::Token)?;
        let peer = seat.peer;
        // An answer with a token would be longer than a question without.
        if token.is_none() && seat.session.token().is_some() {
            return Err(DropReason::Unasked);
        }
        seat.again = true;
        self.charge(now, peer)?;
        let token = token.map(|_| self.tokens.of(peer.ip()));
        self.answer(peer, Answer::Accept(token))
    }

    /// An ACCEPT on a live session. After a CONNECT it is a client that begins anew. Without one it is
    /// a datagram that came twice, which must not cost a session its counters, as it does in DDNet.
    fn on_accept_again<'d>(&mut self, now: Instant, id: SessionId, token: Token) -> Outcome<'d> {
        let timeout = self.config.timeout;
        let seat = self.sessions.get_mut(id).ok_or(DropReason::Token)?;
        if token != self.tokens.of(seat.peer.ip()) {
            return Err(DropReason::Token);
        }
        if !seat.again {
            return Ok(ServerReceived::Handled);
        }
        if self.events.len() >= EVENTS {
            return Err(DropReason::Full);
        }
        seat.again = false;
        seat.session = Session::new(now, Some(token), timeout);
        self.touch(id);
        self.events.push_back(ServerEvent::Rejoined { session: id });
        Ok(ServerReceived::Handled)
    }

    fn on_stranger<'d>(&mut self, now: Instant, from: Peer, packet: Control<'d>) -> Outcome<'d> {
        match (packet.message, packet.token) {
            (ControlMessage::Connect(Some(_)), _) => {
                self.charge(now, from)?;
                self.answer(from, Answer::Accept(Some(self.tokens.of(from.ip()))))
            }
            (ControlMessage::Connect(None), _) if self.config.without_tokens => {
                self.charge(now, from)?;
                match self.join(now, from, None)? {
                    Ok(()) => self.answer(from, Answer::Accept(None)),
                    // Four bytes asked, so there is no room for a reason.
                    Err(_) => self.refuse(from, None, ""),
                }
            }
            (ControlMessage::Accept, Some(token)) if token == self.tokens.of(from.ip()) => {
                if !self.strangers.allow_proven(now, from.ip()) {
                    return Err(DropReason::Budget);
                }
                match self.join(now, from, Some(token))? {
                    Ok(()) => Ok(ServerReceived::Handled),
                    Err(reason) => self.refuse(from, Some(token), reason),
                }
            }
            _ => Err(DropReason::Token),
        }
    }

    /// Begins a session, or says what to tell who is not let in.
    fn join(
        &mut self,
        now: Instant,
        peer: Peer,
        token: Option<Token>,
    ) -> Result<Result<(), &'static str>, DropReason> {
        if self.events.len() >= EVENTS {
            return Err(DropReason::Full);
        }
        if self.is_crowded(peer) {
            return Ok(Err("Too many connections from your address"));
        }
        let session = Session::new(now, token, self.config.timeout);
        let Some(id) = self.sessions.insert(Seat::new(session, peer)) else {
            return Ok(Err("This server is full"));
        };
        self.touch(id);
        self.by_peer.insert(peer, id);
        self.events.push_back(ServerEvent::Joined { session: id, peer });
        Ok(Ok(()))
    }

    fn is_crowded(&self, peer: Peer) -> bool {
        let here = host(peer.ip());
        let seats = self.sessions.iter().filter(|(_, seat)| host(seat.peer.ip()) == here);
        !holds(&self.config.strangers.exempt, peer.ip())
            && seats.count() >= self.config.sessions_per_address
    }

    fn refuse<'d>(&mut self, to: Peer, token: Option<Token>, reason: &str) -> Outcome<'d> {
        self.answer(to, Answer::Close(Goodbye::new(token, Sequence::new(0), reason)))
    }

    fn answer<'d>(&mut self, to: Peer, answer: Answer) -> Outcome<'d> {
        if self.outbox.push(to, answer) {
            Ok(ServerReceived::Handled)
        } else {
            Err(DropReason::Full)
        }
    }

    fn charge(&mut self, now: Instant, from: Peer) -> Result<(), DropReason> {
        if self.strangers.allow(now, from.ip()) { Ok(()) } else { Err(DropReason::Budget) }
    }

    fn remove(&mut self, id: SessionId, why: Ended) {
        if let Some(Seat { peer, timer, ready, .. }) = self.sessions.remove(id) {
            self.by_peer.remove(&peer);
            timer.map(|at| self.timers.remove(&(at, id)));
            if ready {
                self.ready.retain(|of| *of != id);
            }
            self.events.push_back(ServerEvent::Left { session: id, peer, why });
        }
    }

    /// Sends a message, vital ones once and in order. It goes out when a packet is full, by
    /// [`Server::flush`], or half a second after the last datagram.
    ///
    /// # Errors
    /// See [`SendError`]; nothing has changed then.
    pub fn send(
        &mut self,
        now: Instant,
        to: SessionId,
        vital: bool,
        data: &[u8],
    ) -> Result<(), SendError> {
        let seat = self.sessions.get_mut(to).ok_or(SendError::NotConnected)?;
        seat.session.send(now, vital, data)?;
        self.touch(to);
        Ok(())
    }

    /// What waits for a session goes out now.
    pub fn flush(&mut self, to: SessionId) {
        if let Some(seat) = self.sessions.get_mut(to) {
            seat.session.flush();
            self.touch(to);
        }
    }

    /// Ends a session. Messages that wait are lost; the reason is cut to 127 bytes.
    pub fn close(&mut self, id: SessionId, reason: &str) {
        if let Some(seat) = self.sessions.get(id) {
            let (peer, goodbye) = (seat.peer, seat.session.goodbye(reason));
            // Where there is no room, the client finds out by silence.
            self.outbox.push(peer, Answer::Close(goodbye));
            self.remove(id, Ended::Here);
        }
    }

    /// Does what is due: chunks are sent again, silent sessions end without a word, as in DDNet.
    pub fn handle_timeout(&mut self, now: Instant) {
        for (at, id) in self.due(now) {
            self.timers.remove(&(at, id));
            let Some(seat) = self.sessions.get_mut(id) else { continue };
            seat.timer = None;
            match seat.session.handle_timeout(now) {
                Some(why) => self.remove(id, why),
                None => self.touch(id),
            }
        }
    }

    /// Whose timers have come. What is due again at once is due in the next call.
    fn due(&self, now: Instant) -> Vec<(Instant, SessionId)> {
        self.timers.iter().take_while(|(at, _)| *at <= now).copied().collect()
    }

    /// The next thing that the layer above should know.
    pub fn poll_event(&mut self) -> Option<ServerEvent> {
        self.events.pop_front()
    }

    /// Writes the next datagram to send now. To be called until `None` after each of the verbs; `buf`
    /// has [`MAX_DATAGRAM`](super::MAX_DATAGRAM) bytes.
    pub fn poll_transmit(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        if let Some(transmit) = self.outbox.emit(buf) {
            return Some(transmit);
        }
        // What is due by now, whether or not the timeout was handled before.
        self.due(now).into_iter().for_each(|(_, id)| self.touch(id));
        while let Some(id) = self.ready.pop_front() {
            let Some(seat) = self.sessions.get_mut(id) else { continue };
            if let Some(len) = seat.session.poll_transmit(now, buf) {
                self.ready.push_back(id);
                return Some(Transmit { to: seat.peer, len });
            }
            seat.ready = false;
            self.set_timer(id, now);
        }
        None
    }

    /// Something has happened to a session: it may have something to send, and another deadline.
    fn touch(&mut self, id: SessionId) {
        if let Some(seat) = self.sessions.get_mut(id)
            && !seat.ready
        {
            seat.ready = true;
            self.ready.push_back(id);
        }
        self.set_timer(id, Instant::ZERO);
    }

    /// A timer that comes too early stays until it is due, `passed` by: most deadlines move on with each
    /// datagram, and the set of timers need not.
    fn set_timer(&mut self, id: SessionId, passed: Instant) {
        let Some(seat) = self.sessions.get_mut(id) else { return };
        let Some(due) = seat.session.deadline() else { return };
        if seat.timer.is_none_or(|at| at > due || at <= passed) {
            let old = seat.timer.replace(due);
            old.map(|at| self.timers.remove(&(at, id)));
            self.timers.insert((due, id));
        }
    }

    /// When [`Server::handle_timeout`] is to be called at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Sessions there are.
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether there is no session.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The living sessions.
    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, SessionView)> {
        self.sessions.iter().map(|(id, seat)| (id, seat.session.view()))
    }

    /// How a session stands.
    pub fn session(&self, id: SessionId) -> Option<SessionView> {
        self.sessions.get(id).map(|seat| seat.session.view())
    }

    /// What was received and dropped.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }
}
