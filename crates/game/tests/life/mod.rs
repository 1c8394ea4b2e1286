//! One server and one client for as long as wished; time jumps from deadline to deadline.
//!
//! The tests beside it, and the example `long`, watch it tick by tick.
#![allow(dead_code, reason = "each file uses its own part")]

pub(crate) mod by_hand;
pub(crate) mod player;

use std::time::Duration;

use caves_game::client::ClientEvent;
use caves_game::{Client, Server, ServerConfig, ServerEvent};
use caves_link::time::Instant;
use caves_netsim::{LinkConfig, LinkId, Network, SplitMix64};
use caves_session::Peer;
use caves_session::caves::{ClientConfig, SessionId};
use caves_wire::caves::{ActionView, ChunkEntry, EventView};
use caves_world::{EntityId, Pos};

pub(crate) const TICK: Duration = Duration::from_millis(100);
/// How long after its tick each moment lies in which something is looked at: everything that a tick
/// has sent over a link of less has arrived.
const LOOK: Duration = Duration::from_millis(99);

/// What may be chosen of a life.
#[derive(Clone, Copy)]
pub(crate) struct Start {
    pub(crate) seed: u64,
    /// The tick before the first, as a plain count.
    pub(crate) tick: u64,
    /// Added to every version of a chunk that is shown, 0 to 65534 (R10).
    pub(crate) version_offset: u64,
    pub(crate) link: LinkConfig,
}

impl Default for Start {
    fn default() -> Self {
        Self { seed: 1, tick: 1000, version_offset: 0, link: LinkConfig::PERFECT }
    }
}

pub(crate) struct Life {
    pub(crate) server: Server,
    pub(crate) client: Client,
    pub(crate) now: Instant,
    /// Ticks since the beginning, counted by the moments alone.
    pub(crate) ticks: u64,
    begin: Instant,
    net: Network<Vec<u8>>,
    up: LinkId,
    down: LinkId,
    /// What the client should hear of; whoever looks at it empties it.
    pub(crate) events: Vec<ClientEvent>,
    pub(crate) log: Vec<ServerEvent>,
    /// The numbers of the events that the server sent, until they are taken.
    pub(crate) event_numbers: Vec<u32>,
    /// The newest cache list that the client sent.
    pub(crate) cache: [ChunkEntry; 9],
}

const CLIENT: Peer =
    Peer { socket: 0, addr: std::net::SocketAddr::V4(std::net::SocketAddrV4::new(HOST, 5000)) };
const HOST: std::net::Ipv4Addr = std::net::Ipv4Addr::new(192, 0, 2, 1);

impl Life {
    /// The client is about to join, and the first tick one millisecond away.
    pub(crate) fn new(start: Start) -> Self {
        let begin = Instant::from_secs(1000);
        let mut random = SplitMix64::new(start.seed);
        let (mut of_server, mut of_client) = (random.fork(), random.fork());
        // The first number that a server draws is the offset.
        let mut offset = Some(start.version_offset);
        let drawn = move || offset.take().unwrap_or_else(|| of_server.next_u64());
        let config = ServerConfig { seed: start.seed, ..ServerConfig::default() };
        let server = Server::new(config, Box::new(drawn), begin, start.tick * 100);
        let config = ClientConfig { name: Some("Ada".into()), ..ClientConfig::default() };
        let client = Client::new(config, Box::new(move || of_client.next_u64()), begin);
        let mut net = Network::new(start.seed);
        let (up, down) = net.add_pair(start.link, start.link);
        let mut life = Self {
            server,
            client,
            now: begin,
            ticks: 0,
            begin,
            net,
            up,
            down,
            events: Vec::new(),
            log: Vec::new(),
            event_numbers: Vec::new(),
            cache: [ChunkEntry::default(); 9],
        };
        life.run_to(begin + LOOK);
        life
    }

    /// As [`new`](Self::new), and run until the player can play.
    pub(crate) fn playing(start: Start) -> Self {
        let mut life = Self::new(start);
        life.ticks_until(100, |life| {
            life.client.mirror().me().is_some() && !life.client.misses_chunks()
        });
        life.events.clear();
        life
    }

    /// One tick of the server, and what comes of it.
    pub(crate) fn tick(&mut self) {
        self.ticks += 1;
        let micros = self.ticks * TICK.as_micros() as u64;
        self.run_to(self.begin + LOOK + Duration::from_micros(micros));
    }

    /// Ticks until something holds, and how many they were.
    pub(crate) fn ticks_until(&mut self, most: u64, holds: impl Fn(&Self) -> bool) -> u64 {
        let before = self.ticks;
        while !holds(self) {
            assert!(self.ticks - before < most, "not within {most} ticks");
            self.tick();
        }
        self.ticks - before
    }

    pub(crate) fn set_link(&mut self, link: LinkConfig) {
        self.net.set_config(self.up, link);
        self.net.set_config(self.down, link);
    }

    /// Hands the server a datagram as if the client had sent it.
    pub(crate) fn inject(&mut self, bytes: &[u8]) {
        self.server.handle_datagram(self.now, CLIENT, bytes);
        self.pump();
    }

    /// The client's session, as the server has it.
    pub(crate) fn session(&self) -> SessionId {
        self.server.sessions().sessions().next().expect("a session").0
    }

    pub(crate) fn me(&self) -> EntityId {
        self.client.mirror().me().expect("in the caves").id
    }

    /// Where the server has the player.
    pub(crate) fn true_pos(&self) -> Pos {
        self.server.world().entity(self.me()).expect("in the caves").pos
    }

    fn run_to(&mut self, until: Instant) {
        loop {
            let arrival = self.net.next_arrival().map(Instant::from_micros);
            let due = [self.server.poll_timeout(), self.client.poll_timeout(), arrival];
            let next = due.into_iter().flatten().fold(until, Instant::min);
            self.now = self.now.max(next);
            self.deliver();
            self.server.handle_timeout(self.now);
            self.client.handle_timeout(self.now);
            self.pump();
            if self.now >= until {
                return;
            }
        }
    }

    fn deliver(&mut self) {
        while let Some((link, bytes)) = self.net.poll(self.now.as_micros()) {
            if link == self.up {
                self.server.handle_datagram(self.now, CLIENT, &bytes);
            } else {
                self.client.handle_datagram(self.now, &bytes);
                self.hear();
            }
        }
    }

    fn hear(&mut self) {
        while let Some(event) = self.client.poll_event() {
            self.events.push(event);
        }
    }

    /// Sends what either side has to send.
    pub(crate) fn pump(&mut self) {
        let mut buf = [0; 1200];
        let now = self.now.as_micros();
        self.hear();
        while let Some(len) = self.client.poll_transmit(self.now, &mut buf) {
            if let Ok(action) = ActionView::parse(&buf[..len]) {
                self.cache = action.cache();
            }
            self.net.send(now, self.up, len, buf[..len].to_vec());
        }
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut buf) {
            let bytes = &buf[..transmit.len];
            if let Ok(event) = EventView::parse(bytes) {
                self.event_numbers.push(event.sequence().get());
            }
            self.net.send(now, self.down, transmit.len, bytes.to_vec());
        }
        while let Some(event) = self.server.poll_event() {
            self.log.push(event);
        }
    }
}
