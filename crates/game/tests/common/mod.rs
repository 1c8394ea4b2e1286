//! One server and several clients over a simulated network; time jumps from deadline to deadline.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::print_stdout, reason = "a failure shows the seed that repeats it")]

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use caves_game::client::ClientEvent;
use caves_game::mirror::Figure;
use caves_game::{Client, Server, ServerConfig, ServerEvent};
use caves_link::time::Instant;
use caves_netsim::{LinkConfig, LinkId, Network, SplitMix64};
use caves_session::Peer;
use caves_session::caves::{ClientConfig, ClientStatus};
use caves_wire::caves::{Packet, PacketType};
use caves_world::{Command, Direction, EntityId, Pos, in_viewport};

/// What the server knew at the end of a tick: id, position and hit points of every entity that some
/// player could see.
type Snapshot = BTreeMap<EntityId, (Pos, u16)>;

pub(crate) struct Site {
    pub(crate) server: Server,
    pub(crate) seats: Vec<Seat>,
    pub(crate) now: Instant,
    pub(crate) net: Network<Vec<u8>>,
    pub(crate) log: Vec<ServerEvent>,
    config: ServerConfig,
    random: SplitMix64,
    history: HashMap<u32, Snapshot>,
    /// While the server is down nobody answers.
    pub(crate) down: bool,
    /// Whether the bytes that arrive are those that were sent: a damaged tick number says nothing
    /// about what was true in that tick.
    pub(crate) bytes_are_whole: bool,
}

pub(crate) struct Seat {
    pub(crate) client: Client,
    pub(crate) peer: Peer,
    pub(crate) events: Vec<ClientEvent>,
    pub(crate) up: LinkId,
    pub(crate) down: LinkId,
    pub(crate) types_received: BTreeMap<u8, usize>,
    checked: Option<u32>,
    /// A client that was killed neither speaks nor hears.
    pub(crate) dead: bool,
}

impl Site {
    pub(crate) fn new(seed: u64) -> Self {
        Self::with(seed, ServerConfig { seed, ..ServerConfig::default() })
    }

    pub(crate) fn with(seed: u64, config: ServerConfig) -> Self {
        println!("seed {seed}");
        let now = Instant::from_secs(1000);
        let mut random = SplitMix64::new(seed);
        let mut of_server = random.fork();
        let server = Server::new(
            config.clone(),
            Box::new(move || of_server.next_u64()),
            now,
            1_700_000_000_000,
        );
        Self {
            server,
            seats: Vec::new(),
            now,
            net: Network::new(seed),
            log: Vec::new(),
            config,
            random,
            history: HashMap::new(),
            down: false,
            bytes_are_whole: true,
        }
    }

    pub(crate) fn join(&mut self, name: &str, link: LinkConfig) -> usize {
        let config = ClientConfig { name: Some(name.into()), ..ClientConfig::default() };
        self.join_as(config, link)
    }

    pub(crate) fn join_as(&mut self, config: ClientConfig, link: LinkConfig) -> usize {
        let mut of_client = self.random.fork();
        let client = Client::new(config, Box::new(move || of_client.next_u64()), self.now);
        let (up, down) = self.net.add_pair(link, link);
        let place = self.seats.len();
        let peer = address(place as u8 + 1, 5000);
        self.seats.push(Seat {
            client,
            peer,
            events: Vec::new(),
            up,
            down,
            types_received: BTreeMap::new(),
            checked: None,
            dead: false,
        });
        place
    }

    pub(crate) fn set_link(&mut self, seat: usize, link: LinkConfig) {
        self.net.set_config(self.seats[seat].up, link);
        self.net.set_config(self.seats[seat].down, link);
    }

    /// The server stops without a word and another one starts, `millis` later.
    pub(crate) fn restart_server(&mut self, millis: u64) {
        self.down = true;
        self.run(millis);
        self.down = false;
        let mut random = self.random.fork();
        let time_of_day = 1_700_000_000_000 + self.now.as_millis() - 1_000_000;
        self.server = Server::new(
            self.config.clone(),
            Box::new(move || random.next_u64()),
            self.now,
            time_of_day,
        );
        self.history.clear();
    }

    pub(crate) fn run(&mut self, millis: u64) {
        let until = self.now + Duration::from_millis(millis);
        while self.step(until) {}
    }

    /// Runs until something holds, and tells how long it took.
    pub(crate) fn until(&mut self, millis: u64, holds: impl Fn(&Self) -> bool) -> Option<Duration> {
        let start = self.now;
        let until = start + Duration::from_millis(millis);
        while !holds(self) {
            if !self.step(until) {
                return None;
            }
        }
        Some(self.now.saturating_since(start))
    }

    /// One moment: what is due happens. `false` when `until` is reached.
    fn step(&mut self, until: Instant) -> bool {
        let mut next = until;
        let mut consider = |due: Option<Instant>| next = due.map_or(next, |due| next.min(due));
        if !self.down {
            consider(self.server.poll_timeout());
        }
        consider(self.net.next_arrival().map(Instant::from_micros));
        for seat in self.seats.iter().filter(|seat| !seat.dead) {
            consider(seat.client.poll_timeout());
        }
        self.now = self.now.max(next);
        self.deliver();
        if !self.down {
            let before = self.server.tick();
            self.server.handle_timeout(self.now);
            if self.server.tick() != before {
                self.take_snapshot();
            }
        }
        for seat in self.seats.iter_mut().filter(|seat| !seat.dead) {
            seat.client.handle_timeout(self.now);
        }
        self.pump();
        self.now < until
    }

    fn deliver(&mut self) {
        while let Some((link, bytes)) = self.net.poll(self.now.as_micros()) {
            let up = self.seats.iter().find(|seat| seat.up == link).map(|seat| seat.peer);
            if let Some(peer) = up {
                if !self.down {
                    self.server.handle_datagram(self.now, peer, &bytes);
                }
            } else if let Some(seat) = self.seats.iter_mut().find(|seat| seat.down == link)
                && !seat.dead
            {
                *seat.types_received.entry(bytes[3]).or_default() += 1;
                seat.client.handle_datagram(self.now, &bytes);
                seat.hear();
            }
        }
        self.check_updates();
    }

    fn pump(&mut self) {
        let mut buf = [0; 1200];
        let now = self.now.as_micros();
        for seat in self.seats.iter_mut().filter(|seat| !seat.dead) {
            seat.hear();
            let mut sent = 0;
            while let Some(len) = seat.client.poll_transmit(self.now, &mut buf) {
                self.net.send(now, seat.up, len, buf[..len].to_vec());
                sent += 1;
                assert!(sent < 100, "a client does not come to rest");
            }
        }
        if self.down {
            return;
        }
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut buf) {
            let bytes = buf[..transmit.len].to_vec();
            Packet::parse(&bytes).expect("a server sends what decodes");
            // Where a client was killed or moved away from, nobody listens.
            let seat = self.seats.iter().find(|seat| seat.peer == transmit.to && !seat.dead);
            if let Some(seat) = seat {
                self.net.send(now, seat.down, transmit.len, bytes);
            }
        }
        while let Some(event) = self.server.poll_event() {
            self.log.push(event);
        }
    }

    fn take_snapshot(&mut self) {
        let world = self.server.world();
        let mut snapshot = Snapshot::new();
        let mut seen = Vec::new();
        for player in world.players() {
            world.in_view(player, &mut seen);
            for id in &seen {
                let entity = world.entity(*id).expect("seen");
                snapshot.insert(*id, (entity.pos, entity.hp));
            }
        }
        self.history.insert(self.server.tick().get(), snapshot);
    }

    /// A client shows one tick as it was, never a mix of two.
    fn check_updates(&mut self) {
        for seat in self.seats.iter_mut().filter(|_| self.bytes_are_whole) {
            let session = seat.client.session();
            let Some(tick) = session.updated_tick().map(|tick| tick.get()) else { continue };
            if seat.checked == Some(tick) {
                continue;
            }
            let Some(snapshot) = self.history.get(&tick) else { continue };
            seat.checked = Some(tick);
            for Figure { id, pos, hp, .. } in seat.client.mirror().figures() {
                assert_eq!(snapshot.get(id), Some(&(*pos, *hp)), "{id} at tick {tick}");
            }
        }
    }

    /// Every chunk of the newest manifest is shown as the server has it, tile for tile.
    pub(crate) fn assert_chunks_equal(&self, seat: usize) {
        let client = &self.seats[seat].client;
        let me = client.mirror().me().expect("in the caves").pos;
        for chunk in me.chunk().around() {
            let truth = self.server.world().loaded_chunk(chunk).expect("loaded around a player");
            for index in 0..1024 {
                let pos = chunk.tile(index);
                assert_eq!(client.mirror().tile(pos), Some(truth.tile(index)), "{pos:?}");
            }
        }
    }

    pub(crate) fn is_playable(&self, seat: usize) -> bool {
        let client = &self.seats[seat].client;
        client.mirror().me().is_some() && !client.misses_chunks()
    }

    /// Where the server has a player.
    pub(crate) fn true_pos(&self, seat: usize) -> Pos {
        let me = self.seats[seat].client.mirror().me().expect("in the caves").id;
        self.server.world().entity(me).expect("in the caves").pos
    }

    pub(crate) fn act(&mut self, seat: usize, command: Command) -> bool {
        let done = self.seats[seat].client.act(command).is_ok();
        self.pump();
        done
    }

    /// Goes east through whatever is there, by what the client sees, for some time.
    pub(crate) fn dig_east(&mut self, seat: usize, millis: u64) {
        let until = self.now + Duration::from_millis(millis);
        while self.now < until {
            let client = &self.seats[seat].client;
            if let Some(pos) = client.position() {
                let mirror = client.mirror();
                let ahead = mirror.tile(pos.step(Direction::East));
                let open = ahead.is_some_and(|tile| mirror.content().is_walkable(tile));
                let idle = client.session().queued().next().is_none()
                    && client.session().in_flight().next().is_none();
                if ahead.is_some() && (open || idle) {
                    let way = Direction::East;
                    self.act(seat, if open { Command::Move(way) } else { Command::Dig(way) });
                }
            }
            self.run(50);
        }
    }

    pub(crate) fn status(&self, seat: usize) -> ClientStatus {
        self.seats[seat].client.status(self.now)
    }
}

impl Seat {
    fn hear(&mut self) {
        while let Some(event) = self.client.poll_event() {
            self.events.push(event);
        }
    }

    pub(crate) fn texts(&self) -> Vec<&str> {
        self.client.mirror().messages().iter().map(|message| message.text.as_str()).collect()
    }

    pub(crate) fn received(&self, packet_type: PacketType) -> usize {
        self.types_received.get(&packet_type.0).copied().unwrap_or(0)
    }
}

pub(crate) fn address(host: u8, port: u16) -> Peer {
    Peer { socket: 0, addr: ([192, 0, 2, host], port).into() }
}

pub(crate) fn sees(of: Pos, thing: Pos) -> bool {
    in_viewport(of, thing)
}
