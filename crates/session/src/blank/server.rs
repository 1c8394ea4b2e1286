//! The server's side of all connections.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use caves_link::time::{Deadline, Instant};
use caves_wire::blank::{
    Header, HeaderView, Join, LoginView, Name, Numbers, PacketType, Seq, Spawn,
};

use super::outbox::Outbox;
use super::session::{Heard, Pace, Session};
use super::{PART_REPEATS, PING_EVERY, TIMEOUT};
use crate::peers::{SessionId, Slots};
use crate::{Counters, DropReason, Peer, Random, StrangerLimits, Strangers, Transmit};

/// Connections without a player, at most. A newer one takes the place of the oldest: that many last
/// four seconds of the most that all strangers' budgets let in, and somebody who means it needs one.
pub const MAX_GUESTS: usize = 4096;
/// So many echoes of numbers that were never sent, and an unproven connection is forgotten, so that
/// nobody can try them all. A client that goes on from an earlier connection has one or two.
const WRONG_ECHOES: u8 = 8;
/// First numbers are below this: a client that counts what is newer from 65535 on must not take
/// them for old ones.
const FIRST_NUMBERS: u64 = 0x7FFF;

/// How a server treats its clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// Players at once; one more is refused.
    pub max_players: usize,
    /// A connection on which nothing was sent for this long is sent a ping.
    pub ping_every: Duration,
    /// Silence that ends a connection.
    pub timeout: Duration,
    /// How many datagrams those may send who have not echoed anything.
    pub strangers: StrangerLimits,
}

impl Default for ServerConfig {
    /// 64 players and the times of the real programs.
    fn default() -> Self {
        Self {
            max_players: 64,
            ping_every: PING_EVERY,
            timeout: TIMEOUT,
            strangers: StrangerLimits::default(),
        }
    }
}

/// What the layer above should know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// Somebody wants to play, under a name that is free: [`Server::admit`] or [`Server::part`].
    /// The name is the player's from now on.
    Login {
        /// Whose connection.
        session: SessionId,
        /// From where.
        peer: Peer,
        /// The name, which may be empty, and any bytes.
        name: Name,
    },
    /// A player left.
    Left {
        /// Whose connection; unless another Login came by it, it opens nothing any more.
        session: SessionId,
        /// Where it was.
        peer: Peer,
        /// The name, free now.
        name: Name,
        /// Why.
        why: Left,
    },
}

/// Why a player left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// The client said so.
    Quit,
    /// Nothing was heard for too long.
    Silence,
    /// The connection goes on with another player: a Login under another name came by it.
    Renamed,
    /// A Login under a name that was taken, which ends a connection.
    Refused,
    /// Another program began behind the same address.
    Restarted,
    /// The server said so.
    Parted,
}

/// What a datagram was, for the layer above.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum ServerReceived<'d> {
    /// A player's packet of a type that is unknown here; it was acknowledged.
    Unknown {
        /// Whose.
        session: SessionId,
        /// The packet.
        header: HeaderView<'d>,
    },
    /// Nothing for the layer above, or told by [`Server::poll_event`].
    Handled,
    /// Nothing at all.
    Dropped(DropReason),
}

/// The server's side of all connections: who is there, and under which name.
///
/// An address that has not echoed a number is never sent more bytes than came from it. There are at
/// most [`MAX_GUESTS`] connections without a player, and of events at most three for each player,
/// since a player has another name only once it was admitted under the last one.
///
/// ```
/// use caves_link::time::Instant;
/// use caves_session::blank::{Server, ServerConfig, ServerEvent};
/// use caves_session::{Peer, SplitMix};
/// use caves_wire::blank::{EntityId, Header, HeaderView, Login, Name, Numbers, Packet, Seq, Spawn};
///
/// let now = Instant::from_secs(1);
/// let mut server = Server::new(ServerConfig::default(), Box::new(SplitMix::new(1)), now);
/// let from = Peer { socket: 0, addr: ([127, 0, 0, 1], 5000).into() };
/// let mut buf = [0; 500];
/// let len = Login { numbers: Numbers::first(), name: Name::new("ada") }.emit(&mut buf)?;
/// server.handle_datagram(now, from, &buf[..len]);
///
/// // The answer is a ping. Who echoes it, has the address that the Login came from.
/// let sent = server.poll_transmit(now, &mut buf).unwrap();
/// let ping = HeaderView::parse(&buf[..sent.len])?.seq();
/// let numbers = Numbers { seq: Seq::new(1), ack: caves_wire::blank::Ack::new(ping, 0) };
/// let len = Header::ping(numbers).emit(&[], &mut buf)?;
/// server.handle_datagram(now, from, &buf[..len]);
/// let Some(ServerEvent::Login { session, .. }) = server.poll_event() else { panic!() };
/// server.admit(session, Spawn::at_origin(EntityId(1)), Name::new("default"));
/// let sent = server.poll_transmit(now, &mut buf).unwrap();
/// assert!(matches!(Packet::parse(&buf[..sent.len])?, Packet::Join(_)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Server {
    config: ServerConfig,
    random: Box<dyn Random + Send>,
    connections: Slots<Connection>,
    by_peer: HashMap<Peer, SessionId>,
    by_name: HashMap<Name, SessionId>,
    /// Connections without a player, in the order they began.
    guests: BTreeMap<u64, SessionId>,
    begun: u64,
    strangers: Strangers,
    outbox: Outbox,
    events: VecDeque<ServerEvent>,
    timers: BTreeSet<(Instant, SessionId)>,
    /// Connections that may have something to send.
    ready: BTreeSet<SessionId>,
    closing: bool,
    counters: Counters,
    #[cfg(feature = "testing")]
    number_from: Option<Seq>,
}

#[derive(Debug)]
struct Connection {
    peer: Peer,
    session: Session,
    /// Its place among the guests.
    begun: u64,
    /// Somebody at this address has seen what was sent there.
    proven: bool,
    /// Until then: bytes that came, less bytes that went.
    credit: usize,
    wrong_echoes: u8,
    /// A Login that waits for the proof, and its number.
    wanted: Option<(Name, Seq)>,
    player: Option<Player>,
    ping_now: bool,
    join_now: bool,
    timer: Option<Instant>,
}

#[derive(Debug)]
struct Player {
    name: Name,
    /// The number of its newest Login.
    login: Seq,
    world: Option<(Spawn, Name)>,
    /// The number of the Join that is under way.
    join: Option<Seq>,
}

impl Connection {
    /// Whether it may be sent so many bytes.
    const fn affords(&self, len: usize) -> bool {
        self.proven || self.credit >= len
    }

    /// Looks for the echo of a number that cannot be guessed; `false` if there were too many wrong
    /// ones.
    fn prove(&mut self, len: usize, header: HeaderView<'_>) -> bool {
        self.credit = self.credit.saturating_add(len);
        let latest = header.ack().latest();
        if self.session.has_sent(latest) {
            self.proven = true;
        } else if latest != Numbers::first().ack.latest() {
            self.wrong_echoes += 1;
        }
        self.wrong_echoes <= WRONG_ECHOES
    }

    fn deadline(&self) -> Option<Instant> {
        // A ping that cannot be paid waits for the next datagram, not for a moment.
        if self.affords(Header::LEN) {
            self.session.deadline()
        } else {
            Some(self.session.silent_at())
        }
    }

    /// Writes what is due.
    fn emit(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        let world = self.player.as_ref().and_then(|player| player.world);
        if let Some((spawn, world)) = world.filter(|_| std::mem::take(&mut self.join_now)) {
            let numbers = self.session.number(now);
            if let Some(player) = &mut self.player {
                player.join = Some(numbers.seq);
            }
            self.ping_now = false;
            return Join { numbers, spawn, world }.emit(buf).ok();
        }
        let is_due = self.ping_now || self.session.ping_due(now);
        if !is_due || !self.affords(Header::LEN) {
            return None;
        }
        self.ping_now = false;
        self.credit = self.credit.saturating_sub(Header::LEN);
        Header::ping(self.session.number(now)).emit(&[], buf).ok()
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("players", &self.players())
            .field("guests", &self.guests())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

/// What a handler makes of a packet; the error is counted.
type Outcome<'d> = Result<ServerReceived<'d>, DropReason>;

impl Server {
    /// A server without connections.
    pub fn new(config: ServerConfig, mut random: Box<dyn Random + Send>, now: Instant) -> Self {
        Self {
            strangers: Strangers::new(config.strangers.clone(), &mut *random, now),
            random,
            connections: Slots::new(config.max_players.saturating_add(MAX_GUESTS)),
            by_peer: HashMap::new(),
            by_name: HashMap::new(),
            guests: BTreeMap::new(),
            begun: 0,
            outbox: Outbox::default(),
            events: VecDeque::new(),
            timers: BTreeSet::new(),
            ready: BTreeSet::new(),
            closing: false,
            counters: Counters::default(),
            #[cfg(feature = "testing")]
            number_from: None,
            config,
        }
    }

    /// Takes what came from a socket. Every datagram with the right tag is acknowledged and keeps
    /// its connection alive, whatever else it is (section 5).
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
        let header = HeaderView::parse(datagram).map_err(|_| DropReason::Malformed)?;
        let id = self.connection(now, from, header)?;
        let Some(id) = id else { return Ok(ServerReceived::Handled) };
        let heard = self.hear(now, id, datagram.len(), header)?;
        let received = match header.packet_type() {
            PacketType::LOGIN => {
                let login = LoginView::parse(datagram).map_err(|_| DropReason::Malformed)?;
                self.on_login(id, login.name(), header.seq()).map(|()| ServerReceived::Handled)
            }
            PacketType::PART if heard.is_news() => {
                self.remove(id, Left::Quit);
                Ok(ServerReceived::Handled)
            }
            // Nobody sends anything after a Part, so this one is of an earlier connection.
            PacketType::PART => Err(DropReason::OldAction),
            PacketType::PING | PacketType::JOIN => Ok(ServerReceived::Handled),
            _ if self.name(id).is_some() => Ok(ServerReceived::Unknown { session: id, header }),
            _ => Ok(ServerReceived::Handled),
        };
        self.settle(now, id);
        received
    }

    /// The connection that a datagram belongs to; a stranger's begins with it.
    fn connection(
        &mut self,
        now: Instant,
        from: Peer,
        header: HeaderView<'_>,
    ) -> Result<Option<SessionId>, DropReason> {
        let known = self.by_peer.get(&from).copied();
        let connection = known.and_then(|id| self.connections.get(id));
        if !connection.is_some_and(|connection| connection.proven) {
            let allowed = self.strangers.allow(now, from.ip());
            allowed.then_some(()).ok_or(DropReason::Budget)?;
        }
        if let (Some(id), Some(connection)) = (known, connection) {
            if !connection.proven || !connection.session.is_restarted_by(header) {
                return Ok(Some(id));
            }
            self.remove(id, Left::Restarted);
        }
        // A Part would end at once what it begins, without an answer.
        if self.closing || header.packet_type() == PacketType::PART {
            return Ok(None);
        }
        self.open(now, from).map(Some)
    }

    fn open(&mut self, now: Instant, from: Peer) -> Result<SessionId, DropReason> {
        if self.guests.len() >= MAX_GUESTS
            && let Some((_, oldest)) = self.guests.first_key_value()
        {
            self.remove(*oldest, Left::Silence);
        }
        let first = Seq::new((self.random.next_u64() % FIRST_NUMBERS) as u32);
        #[cfg(feature = "testing")]
        let first = self.number_from.unwrap_or(first);
        let pace = Pace { ping_every: self.config.ping_every, timeout: self.config.timeout };
        self.begun += 1;
        let connection = Connection {
            peer: from,
            session: Session::new(now, first, pace),
            begun: self.begun,
            proven: false,
            credit: 0,
            wrong_echoes: 0,
            wanted: None,
            player: None,
            ping_now: true,
            join_now: false,
            timer: None,
        };
        let id = self.connections.insert(connection).ok_or(DropReason::Full)?;
        self.by_peer.insert(from, id);
        self.guests.insert(self.begun, id);
        Ok(id)
    }

    /// Numbers, acknowledgements, proof.
    fn hear(
        &mut self,
        now: Instant,
        id: SessionId,
        len: usize,
        header: HeaderView<'_>,
    ) -> Result<Heard, DropReason> {
        let connection = self.connections.get_mut(id).ok_or(DropReason::Unasked)?;
        let heard = connection.session.hear(now, header);
        if !connection.proven && !connection.prove(len, header) {
            self.remove(id, Left::Silence);
            return Err(DropReason::Unasked);
        }
        if let Some(player) = &mut connection.player {
            // Real servers never do this, and a real client then waits for ever (section 5).
            connection.join_now |= heard.is_lost(player.join);
            if heard.is_lost(player.join) || heard.is_acked(player.join) {
                player.join = None;
            }
        }
        self.ready.insert(id);
        Ok(heard)
    }

    fn on_login(&mut self, id: SessionId, name: Name, seq: Seq) -> Result<(), DropReason> {
        let connection = self.connections.get_mut(id).ok_or(DropReason::Unasked)?;
        if let Some(player) = &mut connection.player {
            let is_newer = seq.is_newer_than(player.login);
            if player.name == name {
                // Real servers refuse the name because it is in use, by its own player (section 5).
                player.login = if is_newer { seq } else { player.login };
                connection.join_now = player.world.is_some();
                return Ok(());
            }
            if !is_newer {
                return Err(DropReason::OldAction);
            }
            if player.world.is_none() {
                return Err(DropReason::Waiting);
            }
        }
        if connection.wanted.is_none_or(|(_, earlier)| seq.is_newer_than(earlier)) {
            connection.wanted = Some((name, seq));
        }
        Ok(())
    }

    /// Answers the Login that waits, if there is one: a refusal at once, for it is shorter, and a
    /// seat only to those who have the address they write from.
    fn settle(&mut self, now: Instant, id: SessionId) {
        let is_full = self.players() >= self.config.max_players;
        let Some(connection) = self.connections.get_mut(id) else { return };
        let Some((name, seq)) = connection.wanted else { return };
        if self.by_name.contains_key(&name) || is_full && connection.player.is_none() {
            self.say_part(now, id);
            self.remove(id, Left::Refused);
        } else if connection.proven {
            connection.wanted = None;
            self.take_seat(id, name, seq);
        }
    }

    fn take_seat(&mut self, id: SessionId, name: Name, login: Seq) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let peer = connection.peer;
        self.guests.remove(&connection.begun);
        connection.join_now = false;
        let player = Player { name, login, world: None, join: None };
        if let Some(Player { name, .. }) = connection.player.replace(player) {
            self.by_name.remove(&name);
            let why = Left::Renamed;
            self.events.push_back(ServerEvent::Left { session: id, peer, name, why });
        }
        self.by_name.insert(name, id);
        self.events.push_back(ServerEvent::Login { session: id, peer, name });
    }

    /// Lets a player in; again, it is sent to another world. `false` if there is no such player.
    ///
    /// The numbers have to be finite: clients refuse others.
    pub fn admit(&mut self, id: SessionId, spawn: Spawn, world: Name) -> bool {
        let Some(connection) = self.connections.get_mut(id) else { return false };
        let Some(player) = &mut connection.player else { return false };
        player.world = Some((spawn, world));
        connection.join_now = true;
        self.ready.insert(id);
        true
    }

    /// Ends a connection and tells its client: it is refused, or kicked.
    pub fn part(&mut self, now: Instant, id: SessionId) {
        self.say_part(now, id);
        self.remove(id, Left::Parted);
    }

    /// Ends all connections that have a player, forgets the others, and takes nobody from now on.
    /// Done when [`Server::is_drained`].
    pub fn shut_down(&mut self, now: Instant) {
        self.closing = true;
        let all: Vec<_> = self.connections.iter().map(|(id, c)| (id, c.player.is_some())).collect();
        for (id, is_player) in all {
            if is_player {
                self.say_part(now, id);
            }
            self.remove(id, Left::Parted);
        }
    }

    fn say_part(&mut self, now: Instant, id: SessionId) {
        let Some(connection) = self.connections.get(id) else { return };
        let mut times = PART_REPEATS;
        while times > 0 && !connection.affords(usize::from(times) * Header::LEN) {
            times -= 1;
        }
        self.outbox.goodbye(now, connection.peer, connection.session.upcoming(), times);
    }

    /// Every connection leaves through here.
    fn remove(&mut self, id: SessionId, why: Left) {
        let Some(connection) = self.connections.remove(id) else { return };
        self.by_peer.remove(&connection.peer);
        self.guests.remove(&connection.begun);
        self.ready.remove(&id);
        if let Some(due) = connection.timer {
            self.timers.remove(&(due, id));
        }
        if let Some(Player { name, .. }) = connection.player {
            self.by_name.remove(&name);
            let peer = connection.peer;
            self.events.push_back(ServerEvent::Left { session: id, peer, name, why });
        }
    }

    /// Does what is due: connections that fell silent are forgotten, without a word (section 6).
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((_, id)) = self.timers.first().copied().filter(|(due, _)| *due <= now) {
            self.timers.pop_first();
            let Some(connection) = self.connections.get_mut(id) else { continue };
            connection.timer = None;
            if connection.session.is_silent(now) {
                self.remove(id, Left::Silence);
            } else {
                self.ready.insert(id);
            }
        }
    }

    /// What the layer above should know next.
    pub fn poll_event(&mut self) -> Option<ServerEvent> {
        self.events.pop_front()
    }

    /// When to call [`Server::handle_timeout`] or [`Server::poll_transmit`] at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        Deadline::earliest([self.timers.first().map(|(due, _)| *due), self.outbox.deadline()])
    }

    /// Writes the next datagram that is due into `buf`, which has room for 500 bytes.
    pub fn poll_transmit(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        if let Some(transmit) = self.outbox.next_part(now, buf) {
            return Some(transmit);
        }
        while let Some(id) = self.ready.first().copied() {
            if let Some(connection) = self.connections.get_mut(id) {
                if let Some(len) = connection.emit(now, buf) {
                    return Some(Transmit { to: connection.peer, len });
                }
                self.set_timer(id);
            }
            self.ready.remove(&id);
        }
        None
    }

    fn set_timer(&mut self, id: SessionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let due = connection.deadline();
        if connection.timer != due {
            if let Some(old) = connection.timer {
                self.timers.remove(&(old, id));
            }
            self.timers.extend(due.map(|due| (due, id)));
            connection.timer = due;
        }
    }

    /// The name of a player, while it is here.
    pub fn name(&self, id: SessionId) -> Option<Name> {
        Some(self.connections.get(id)?.player.as_ref()?.name)
    }

    /// Where a connection's datagrams come from, while it lives.
    pub fn peer(&self, id: SessionId) -> Option<Peer> {
        Some(self.connections.get(id)?.peer)
    }

    /// Players, those not admitted yet included.
    pub fn players(&self) -> usize {
        self.by_name.len()
    }

    /// Connections without a player, at most [`MAX_GUESTS`].
    pub fn guests(&self) -> usize {
        self.guests.len()
    }

    /// Whether everything that was to be said has been sent.
    pub fn is_drained(&self) -> bool {
        self.outbox.len() == 0 && self.connections.len() == 0
    }

    /// What was received and dropped.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Connections from now on are numbered from `first`, whatever is drawn.
    #[cfg(feature = "testing")]
    pub const fn number_from(&mut self, first: Seq) {
        self.number_from = Some(first);
    }
}
