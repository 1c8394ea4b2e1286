//! The client's side of a connection.

use std::time::Duration;

use caves_link::ack::Arrival;
use caves_link::time::{Deadline, Instant};
use caves_wire::blank::{
    EntityId, Header, HeaderView, Login, Name, NewestJoin, Numbers, Packet, PacketType, Seq, Spawn,
};

use super::session::{Heard, Pace, Session};
use super::{JOIN_WAIT, PART_GAP, PART_REPEATS, PING_EVERY, TIMEOUT};
use crate::{Counters, DropReason, Peer};

/// So many datagrams in a row with numbers from before the window: the server has begun anew, and
/// does not know this client any more. A network keeps no four for 16 s.
const STRAYS: u8 = 4;
/// A number this far ahead of the last one says the same: within the timeout no server sends so many.
const FAR_AHEAD: u32 = 4096;

/// Who a client is, and where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientConfig {
    /// The server; datagrams from elsewhere are dropped.
    pub server: Peer,
    /// The player's name.
    pub name: Name,
    /// When nothing was sent for this long, a ping is.
    pub ping_every: Duration,
    /// Silence that ends the connection.
    pub timeout: Duration,
    /// How long to wait for a Join.
    pub join_wait: Duration,
}

impl ClientConfig {
    /// The times of the real programs.
    pub const fn new(server: Peer, name: Name) -> Self {
        Self { server, name, ping_every: PING_EVERY, timeout: TIMEOUT, join_wait: JOIN_WAIT }
    }
}

/// A world, as a Join tells it.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Joined {
    /// By a server of the time of the protocol's document.
    Spawn {
        /// Who the player is, and where; all numbers are finite.
        spawn: Spawn,
        /// The world's name.
        world: Name,
    },
    /// By one of the newest servers.
    Newest(NewestJoin),
}

impl Joined {
    /// The player's entity.
    pub const fn entity(&self) -> EntityId {
        match self {
            Self::Spawn { spawn, .. } => spawn.entity,
            Self::Newest(join) => join.entity,
        }
    }

    /// The world's name.
    pub const fn world(&self) -> Name {
        match self {
            Self::Spawn { world, .. } => *world,
            Self::Newest(join) => join.world,
        }
    }
}

/// What the layer above should know.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The player is in a world: its first, or another one, and then nothing of the last one holds.
    /// Who asks late hears of the newest only.
    Joined(Joined),
    /// It is over.
    Ended(ClientEnd),
}

/// Why a client does nothing any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientEnd {
    /// The player left.
    Quit,
    /// The server does not let this player in: the name is in use, or there is no room.
    Refused,
    /// The server ended the session.
    Kicked,
    /// Nothing was heard for too long.
    Silence,
    /// The Login arrived, and no Join came: real servers do not repeat one that is lost.
    Unanswered,
    /// The server has begun to count anew: it does not know this client any more.
    Forgotten,
}

impl ClientEnd {
    /// Whether the server may still take the client for present, so that it says goodbye.
    const fn says_part(self) -> bool {
        matches!(self, Self::Quit | Self::Unanswered | Self::Forgotten)
    }
}

/// What a datagram was, for the layer above.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum ClientReceived<'d> {
    /// A packet of a type that is unknown here, while in a world; it was acknowledged.
    Unknown(HeaderView<'d>),
    /// Nothing for the layer above, or told by [`Client::poll_event`].
    Handled,
    /// Nothing at all.
    Dropped(DropReason),
}

/// How a client stands.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ClientStatus {
    /// No Join came yet.
    Joining,
    /// In a world.
    Playing(Joined),
    /// It is over.
    Ended(ClientEnd),
}

/// One client: says that it is there, logs in, stays, leaves.
///
/// ```
/// use caves_link::time::Instant;
/// use caves_session::Peer;
/// use caves_session::blank::{Client, ClientConfig};
/// use caves_wire::blank::{Name, Packet};
///
/// let now = Instant::from_secs(1);
/// let server = Peer { socket: 0, addr: ([127, 0, 0, 1], 12354).into() };
/// let mut client = Client::new(ClientConfig::new(server, Name::new("ada")), now);
/// let mut buf = [0; 500];
/// let len = client.poll_transmit(now, &mut buf).unwrap();
/// assert!(matches!(Packet::parse(&buf[..len])?, Packet::Ping(_)));
/// let len = client.poll_transmit(now, &mut buf).unwrap();
/// assert!(matches!(Packet::parse(&buf[..len])?, Packet::Login(_)));
/// assert_eq!(client.poll_transmit(now, &mut buf), None);
/// assert_eq!(client.poll_timeout(), Some(Instant::from_millis(1500)));
/// # Ok::<(), caves_wire::ParseError>(())
/// ```
#[derive(Debug)]
pub struct Client {
    config: ClientConfig,
    session: Session,
    status: ClientStatus,
    join_by: Deadline,
    login_now: bool,
    /// The number of the Login that is under way.
    login: Option<Seq>,
    /// The server's first datagram is answered at once: a server of ours waits for that.
    echo_now: bool,
    /// The number of the Join that holds.
    join: Option<Seq>,
    strays: u8,
    parts: u8,
    part_at: Deadline,
    /// The world that was not told yet, and the end; there is never more to tell.
    joined: Option<Joined>,
    ended: Option<ClientEnd>,
    counters: Counters,
}

impl Client {
    /// A client that begins at once.
    pub fn new(config: ClientConfig, now: Instant) -> Self {
        let pace = Pace { ping_every: config.ping_every, timeout: config.timeout };
        Self {
            session: Session::new(now, Numbers::first().seq, pace),
            status: ClientStatus::Joining,
            join_by: Deadline::at(now + config.join_wait),
            login_now: true,
            login: None,
            echo_now: false,
            join: None,
            strays: 0,
            parts: 0,
            part_at: Deadline::NEVER,
            joined: None,
            ended: None,
            counters: Counters::default(),
            config,
        }
    }

    /// Takes what came from a socket.
    pub fn handle_datagram<'d>(
        &mut self,
        now: Instant,
        from: Peer,
        datagram: &'d [u8],
    ) -> ClientReceived<'d> {
        let outcome = self.dispatch(now, from, datagram);
        self.counters.note(outcome, ClientReceived::Dropped)
    }

    fn dispatch<'d>(
        &mut self,
        now: Instant,
        from: Peer,
        datagram: &'d [u8],
    ) -> Result<ClientReceived<'d>, DropReason> {
        if from != self.config.server {
            return Err(DropReason::Address);
        }
        if self.is_over() {
            return Err(DropReason::Unasked);
        }
        let header = HeaderView::parse(datagram).map_err(|_| DropReason::Malformed)?;
        let heard = self.hear(now, header)?;
        match header.packet_type() {
            PacketType::JOIN => {
                let packet = Packet::parse(datagram).map_err(|_| DropReason::Malformed)?;
                self.on_join(packet)?;
            }
            PacketType::PART if heard.is_news() => self.end(
                now,
                match self.status {
                    ClientStatus::Playing(_) => ClientEnd::Kicked,
                    _ => ClientEnd::Refused,
                },
            ),
            // A server sends nothing after a Part, so this one is of an earlier connection.
            PacketType::PART => return Err(DropReason::OldAction),
            PacketType::PING => {}
            PacketType::LOGIN => return Err(DropReason::PacketType),
            // The newest servers tell even those who are not in yet (section 5).
            _ if self.join.is_some() => return Ok(ClientReceived::Unknown(header)),
            _ => {}
        }
        Ok(ClientReceived::Handled)
    }

    fn hear(&mut self, now: Instant, header: HeaderView<'_>) -> Result<Heard, DropReason> {
        let is_first = !self.session.has_heard();
        let heard = self.session.hear(now, header);
        self.echo_now |= is_first && self.join.is_none();
        self.strays = match heard.arrival {
            Arrival::TooOld => self.strays + 1,
            _ => 0,
        };
        let far = matches!(heard.arrival, Arrival::Newer { skipped } if skipped >= FAR_AHEAD);
        if self.strays >= STRAYS || far && !is_first {
            self.end(now, ClientEnd::Forgotten);
            return Err(DropReason::Unasked);
        }
        if heard.is_lost(self.login) {
            self.login = None;
            // Only this says that a real server has not got it (section 5).
            self.login_now = self.join.is_none();
        } else if heard.is_acked(self.login) {
            self.login = None;
        }
        Ok(heard)
    }

    fn on_join(&mut self, packet: Packet<'_>) -> Result<(), DropReason> {
        let seq = packet.header().seq();
        let joined = match packet {
            Packet::Join(join) => Joined::Spawn { spawn: join.spawn(), world: join.world() },
            // Its numbers are not part of the world.
            Packet::NewestJoin(join) => {
                Joined::Newest(NewestJoin { numbers: Numbers::first(), ..join.to_join() })
            }
            _ => return Err(DropReason::PacketType),
        };
        if self.join.is_some_and(|last| !seq.is_newer_than(last)) {
            return Err(DropReason::Repeated);
        }
        self.join = Some(seq);
        if self.status == ClientStatus::Playing(joined) {
            return Err(DropReason::Repeated);
        }
        self.status = ClientStatus::Playing(joined);
        self.joined = Some(joined);
        self.join_by.clear();
        self.login_now = false;
        Ok(())
    }

    /// The player leaves: says so a few times, and waits for nothing.
    pub fn leave(&mut self, now: Instant) {
        self.end(now, ClientEnd::Quit);
    }

    fn end(&mut self, now: Instant, end: ClientEnd) {
        if self.is_over() {
            return;
        }
        self.status = ClientStatus::Ended(end);
        self.ended = Some(end);
        // A server that has heard nothing has nothing to forget.
        if end.says_part() && self.session.sent() > 0 {
            self.parts = PART_REPEATS;
            self.part_at.set(now);
        }
    }

    const fn is_over(&self) -> bool {
        matches!(self.status, ClientStatus::Ended(_))
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.is_over() {
            return;
        }
        if self.session.is_silent(now) {
            self.end(now, ClientEnd::Silence);
        } else if self.join_by.is_due(now) {
            self.end(now, ClientEnd::Unanswered);
        }
    }

    /// What the layer above should know next.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        let joined = self.joined.take().map(ClientEvent::Joined);
        joined.or_else(|| self.ended.take().map(ClientEvent::Ended))
    }

    /// When to call [`Client::handle_timeout`] or [`Client::poll_transmit`] at the latest; `None`
    /// when it is over and all is said.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.is_over() {
            return self.part_at.get();
        }
        Deadline::earliest([self.session.deadline(), self.join_by.get()])
    }

    /// Writes the next datagram that is due into `buf`, which has room for 500 bytes, and gives its
    /// length. It goes to the server of the configuration.
    pub fn poll_transmit(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        if self.is_over() {
            return self.next_part(now, buf);
        }
        // Some servers answer the first datagram of a client without reading it, so that is a ping
        // (section 5).
        if self.session.sent() > 0 && std::mem::take(&mut self.login_now) {
            self.echo_now = false;
            let numbers = self.session.number(now);
            self.login = Some(numbers.seq);
            return Login { numbers, name: self.config.name }.emit(buf).ok();
        }
        let is_due = self.session.sent() == 0 || self.echo_now || self.session.ping_due(now);
        if !is_due {
            return None;
        }
        self.echo_now = false;
        Header::ping(self.session.number(now)).emit(&[], buf).ok()
    }

    fn next_part(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        if !self.part_at.is_due(now) {
            return None;
        }
        self.parts = self.parts.saturating_sub(1);
        match self.parts {
            0 => self.part_at.clear(),
            _ => self.part_at.set(now + PART_GAP),
        }
        Header::part(self.session.number(now)).emit(&[], buf).ok()
    }

    /// How it stands.
    pub const fn status(&self) -> ClientStatus {
        self.status
    }

    /// What was received and dropped.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The next datagram has the number `first`.
    #[cfg(feature = "testing")]
    pub const fn number_from(&mut self, first: Seq) {
        self.session.number_from(first);
    }
}
