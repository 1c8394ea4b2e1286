//! One client and its socket.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant as SystemInstant};

use caves_link::time::Instant;
use caves_session::caves::{
    Client, ClientConfig, ClientEnd, ClientEvent, ClientReceived, ClientStatus,
};
use caves_session::{Random, SplitMix};
use caves_wire::MAX_DATAGRAM;
use caves_wire::caves::Tick;
use mio::net::UdpSocket;
use socket2::{Domain, Protocol, Type};

use crate::args::Walk;
use crate::check::{Check, Chunks};
use crate::mail::{Mail, SLOTS};
use crate::pace::Pace;
use crate::tally::Tally;
use crate::walker::Walker;

/// Calls for datagrams, each for up to [`SLOTS`], before others have their turn.
const READS: usize = 4;
/// What the kernel holds for a client, and it counts twice that: a burst of a whole tick with all
/// chunks is 26 datagrams.
const KERNEL_BUFFER: usize = 64 << 10;
/// A client that has heard nothing for so long at the end has lost its session.
const SILENCE: Duration = Duration::from_secs(2);

/// The one clock of the program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock(SystemInstant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(SystemInstant::now())
    }

    pub(crate) fn now(self) -> Instant {
        Instant::ZERO + self.0.elapsed()
    }

    /// Since the start.
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// What the clients of a thread have in common.
pub(crate) struct Common {
    pub(crate) clock: Clock,
    pub(crate) tally: Tally,
    pub(crate) chunks: Chunks,
    pub(crate) loss: u8,
    pub(crate) random: SplitMix,
    pub(crate) mail: Mail,
    /// What is sent is written here.
    pub(crate) buf: [u8; MAX_DATAGRAM],
}

impl Common {
    /// Whether a datagram is to be lost.
    fn loses(&mut self) -> bool {
        self.loss > 0 && self.random.next_u64() % 100 < u64::from(self.loss)
    }
}

/// A client, what it thinks and what is thought of what it hears.
pub(crate) struct Member {
    pub(crate) socket: UdpSocket,
    client: Client,
    walker: Walker,
    check: Check,
    pace: Pace,
    born: Instant,
    ticks: u64,
    ever_joined: bool,
    /// It was let in, and nobody has said since that it is over.
    in_session: bool,
    /// Why it was not let in, the last time.
    refused: Option<String>,
    leaves_at: Option<Instant>,
    has_left: bool,
}

impl Member {
    /// Begins to join.
    ///
    /// # Errors
    /// The system gives no socket.
    pub(crate) fn new(
        from: IpAddr,
        server: SocketAddr,
        walk: Walk,
        common: &mut Common,
    ) -> io::Result<Self> {
        let now = common.clock.now();
        let mut seed = || SplitMix::new(common.random.next_u64());
        Ok(Self {
            socket: open(from, server)?,
            client: Client::new(ClientConfig::default(), Box::new(seed()), now),
            walker: Walker::new(walk, seed(), now),
            check: Check::new(common.loss > 0),
            pace: Pace::default(),
            born: now,
            ticks: 0,
            ever_joined: false,
            in_session: false,
            refused: None,
            leaves_at: None,
            has_left: false,
        })
    }

    /// Reads what waits, within a budget; `true` when that was spent.
    pub(crate) fn receive(&mut self, common: &mut Common) -> bool {
        for _ in 0..READS {
            match common.mail.read(&self.socket) {
                Ok(count) => {
                    let now = common.clock.now();
                    (0..count).for_each(|place| self.take(now, place, common));
                    if count < SLOTS {
                        return false;
                    }
                }
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => return false,
                    // Word of something sent earlier that did not arrive.
                    _ => common.tally.undelivered += 1,
                },
            }
        }
        true
    }

    fn take(&mut self, now: Instant, place: usize, common: &mut Common) {
        if common.loses() {
            common.tally.lost_down += 1;
            return;
        }
        let Common { tally, chunks, mail, .. } = common;
        let datagram = mail.datagram(place);
        tally.down.add(datagram.len());
        let before = self.client.updated_tick();
        let outcome = self.client.handle_datagram(now, datagram);
        if self.leaves_at.is_some_and(|at| at <= now) {
            return;
        }
        tally.incomplete += self.check.received(datagram, &outcome, chunks, &mut tally.failures);
        match outcome {
            ClientReceived::State(state) => {
                self.ticks += 1;
                let period = self.client.tick_time().unwrap_or_default();
                self.pace.state(now, state.tick(), period, &mut tally.ticks);
            }
            ClientReceived::Detail(_) => tally.deeds.answers += 1,
            _ => {}
        }
        self.look(before, tally);
        self.hear(now, common);
    }

    /// Looks at an update that has become complete.
    fn look(&mut self, before: Option<Tick>, tally: &mut Tally) {
        let Some(tick) = self.client.updated_tick().filter(|tick| Some(*tick) != before) else {
            return;
        };
        let executed = self.client.executed().map(|(sequence, _)| sequence);
        let (player, entities) = (self.client.player(), self.client.entities());
        let failures = &mut tally.failures;
        self.walker.saw(self.check.updated(tick, player, entities, executed, failures));
        tally.updates += 1;
    }

    fn hear(&mut self, now: Instant, common: &mut Common) {
        let Common { tally, chunks, .. } = common;
        while let Some(event) = self.client.poll_event() {
            match event {
                ClientEvent::Joined { resumed, .. } => self.joined(now, resumed, tally),
                ClientEvent::Refused { reason, .. } => self.refused(reason.to_string(), tally),
                ClientEvent::Ended(ClientEnd::Refused { reason, .. }) => {
                    self.refused(reason.to_string(), tally);
                }
                ClientEvent::Ended(ClientEnd::Left(reason)) => tally.lost(&reason.to_string()),
                ClientEvent::ServerGone { .. } => {
                    tally.lost("server shutting down");
                    self.in_session = false;
                    chunks.forget();
                }
                ClientEvent::QueryFailed(_) => tally.deeds.unanswered += 1,
                ClientEvent::ActionLost(_) => tally.deeds.lost += 1,
                _ => {}
            }
        }
    }

    fn joined(&mut self, now: Instant, resumed: bool, tally: &mut Tally) {
        if resumed {
            tally.resumed += 1;
            return self.check.resume();
        }
        if !self.ever_joined {
            tally.joined += 1;
            tally.join.add(now.saturating_since(self.born).as_micros() as u64);
        } else if self.in_session {
            // The server did not know it any more.
            tally.lost("forgotten by the server");
        }
        (self.ever_joined, self.in_session) = (true, true);
        self.check.restart();
        self.pace.restart();
    }

    fn refused(&mut self, reason: String, tally: &mut Tally) {
        tally.refused(&reason);
        self.refused = Some(reason);
    }

    /// Does what is due and sends. [`Member::deadline`] is the moment at which to be called again.
    pub(crate) fn turn(&mut self, common: &mut Common) {
        let now = common.clock.now();
        if self.leaves_at.is_some_and(|at| at <= now) {
            self.has_left = true;
            self.client.leave(now);
            // What was under way is not lost, but given up.
            while self.client.poll_event().is_some() {}
        } else {
            self.client.handle_timeout(now);
            self.walker.act(now, &mut self.client, &mut common.tally.deeds);
            self.hear(now, common);
        }
        while let Some(len) = self.client.poll_transmit(now, &mut common.buf) {
            self.check.sent(&common.buf[..len]);
            if common.loses() {
                common.tally.lost_up += 1;
                continue;
            }
            self.send(len, common);
        }
    }

    /// When to call [`Member::turn`] at the latest.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let walks = self.walker.deadline().filter(|_| !self.client.is_drained());
        // Who has begun to leave is reminded by the client.
        let leaves = self.leaves_at.filter(|_| !self.has_left);
        [self.client.poll_timeout(), walks, leaves].into_iter().flatten().min()
    }

    fn send(&self, len: usize, common: &mut Common) {
        match self.socket.send(&common.buf[..len]) {
            Ok(_) => common.tally.up.add(len),
            // Lost, as others are underway.
            Err(_) => common.tally.unsent += 1,
        }
    }

    /// The end is there; it says goodbye at `at`.
    pub(crate) fn conclude(&mut self, now: Instant, at: Instant, tally: &mut Tally) {
        self.leaves_at = Some(at);
        tally.each.add(self.ticks);
        match self.client.status(now) {
            ClientStatus::Playing { silence, recovering } if recovering || silence >= SILENCE => {
                tally.lost("no answer any more");
            }
            ClientStatus::Playing { .. } => tally.playing += 1,
            _ if self.ever_joined => {}
            _ => tally.left_out(self.refused.as_deref().unwrap_or("no answer")),
        }
    }

    /// Whether it has a session just now.
    pub(crate) fn is_playing(&self) -> bool {
        self.client.player().is_some()
    }

    /// Whether all is said.
    pub(crate) const fn is_drained(&self) -> bool {
        self.client.is_drained()
    }
}

fn open(from: IpAddr, server: SocketAddr) -> io::Result<UdpSocket> {
    let domain = Domain::for_address(server);
    let socket = socket2::Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    // A smaller one than asked for loses more, nothing else.
    let _ = socket.set_recv_buffer_size(KERNEL_BUFFER);
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::new(from, 0).into())?;
    // Only the server is heard then, and each datagram needs no search for its way.
    socket.connect(&server.into())?;
    Ok(UdpSocket::from_std(socket.into()))
}
