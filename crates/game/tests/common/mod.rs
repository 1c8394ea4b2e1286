//! One server and several clients over a simulated network; time jumps from deadline to deadline,
//! and after each event everything is checked that must always hold ([`truth`]).
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::print_stdout, reason = "a failure shows the seed that repeats it")]

pub(crate) mod ladder;
pub(crate) mod plain;
pub(crate) mod seat;
pub(crate) mod shelf;
pub(crate) mod truth;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;

use caves_game::{Client, Server, ServerConfig, ServerEvent};
use caves_link::time::Instant;
use caves_netsim::{LinkConfig, LinkId, Network, SplitMix64, flip_bits};
use caves_session::Peer;
use caves_session::caves::{ClientConfig, ClientStatus};
use caves_session::fault::Fault;
use caves_wire::caves::{Packet, Token};
use caves_world::{ChunkPos, Command, Direction, EntityId, Pos, in_viewport};

use ladder::{Ladder, Way};
use plain::Plain;
use seat::{Seat, direction, must_arrive, settle};
use shelf::Shelf;
use truth::{Truth, broken};

/// The moment at which every run begins.
const START: Instant = Instant::from_secs(1000);
/// The time of day then, in milliseconds since 1970.
const START_OF_DAY: u64 = 1_700_000_000_000;
/// A question that is not answered by then ends (section 2 of the session's rules).
const QUERY_TIME: Duration = Duration::from_secs(5);

pub(crate) struct Site {
    pub(crate) server: Server,
    pub(crate) seats: Vec<Seat>,
    pub(crate) plains: Vec<Plain>,
    pub(crate) now: Instant,
    pub(crate) net: Network<Frame>,
    pub(crate) log: Vec<ServerEvent>,
    pub(crate) truth: Truth,
    pub(crate) ladder: Option<Ladder>,
    /// Datagrams, timeouts and inputs so far.
    pub(crate) happened: u64,
    config: ServerConfig,
    random: SplitMix64,
    /// How far the server's clock is ahead.
    clock: Duration,
    server_wakes: Wakes,
    fault: Option<Fault>,
    /// While the server is down nobody answers.
    pub(crate) down: bool,
    /// Where the world is kept, if it is.
    pub(crate) shelf: Option<Shelf>,
}

/// A datagram under way.
#[derive(Clone)]
pub(crate) struct Frame {
    bytes: Vec<u8>,
    /// The client's address when it was sent.
    peer: Peer,
    sent: Instant,
    damaged: bool,
    /// Of the session that the server meant, where it is not in the bytes.
    token: Option<Token>,
}

/// How often an endpoint was woken for nothing.
#[derive(Clone, Copy)]
struct Wakes {
    since: Instant,
    idle: u64,
}

impl Wakes {
    const fn since(now: Instant) -> Self {
        Self { since: now, idle: 0 }
    }

    /// A timeout that neither sends nor tells anything is rare: two a second, and ten in hand.
    fn idle(&mut self, now: Instant, who: &str) {
        self.idle += 1;
        let seconds = now.saturating_since(self.since).as_secs();
        if self.idle > 10 + 2 * seconds {
            broken!("polls", "{who} woke {} times for nothing in {seconds} s", self.idle);
        }
    }
}

impl Site {
    pub(crate) fn new(seed: u64) -> Self {
        Self::with(seed, ServerConfig { seed, ..ServerConfig::default() })
    }

    pub(crate) fn with(seed: u64, config: ServerConfig) -> Self {
        println!("seed {seed}");
        Self::quiet(seed, config)
    }

    pub(crate) fn quiet(seed: u64, config: ServerConfig) -> Self {
        let mut random = SplitMix64::new(seed);
        let mut of_server = random.fork();
        let random_of_server = Box::new(move || of_server.next_u64());
        let server = Server::new(config.clone(), random_of_server, START, START_OF_DAY);
        let mut net = Network::new(seed);
        net.set_corruption(|frame: &mut Frame, random| {
            frame.damaged = true;
            flip_bits(&mut frame.bytes, random);
        });
        let shelf = config.keep.is_some().then(|| Shelf::new(random.fork()));
        Self {
            server,
            seats: Vec::new(),
            plains: Vec::new(),
            now: START,
            net,
            log: Vec::new(),
            truth: Truth::default(),
            ladder: None,
            happened: 0,
            config,
            random,
            clock: Duration::ZERO,
            server_wakes: Wakes::since(START),
            fault: None,
            down: false,
            shelf,
        }
    }

    /// Everybody who can does this wrong from now on.
    pub(crate) fn inject(&mut self, fault: Fault) {
        self.fault = Some(fault);
        self.server.inject(fault);
        self.seats.iter_mut().for_each(|seat| seat.client.inject(fault));
    }

    pub(crate) fn draw_ladder(&mut self) {
        self.ladder = Some(Ladder::new(START));
    }

    pub(crate) fn note(&mut self, what: impl FnOnce() -> String) {
        if let Some(ladder) = &mut self.ladder {
            ladder.note(self.now, &what());
        }
    }

    pub(crate) fn join(&mut self, name: &str, link: LinkConfig) -> usize {
        let config = ClientConfig { name: Some(name.into()), ..ClientConfig::default() };
        self.join_as(config, link)
    }

    pub(crate) fn join_as(&mut self, config: ClientConfig, link: LinkConfig) -> usize {
        let (up, down) = self.net.add_pair(link, link);
        let place = self.seats.len();
        let client = self.new_client(&config, self.now);
        self.seats.push(Seat {
            client,
            name: config.name.clone().unwrap_or_else(|| format!("guest {place}")),
            peer: address(place as u8 + 1, 5000),
            events: Vec::new(),
            up,
            down,
            types_received: BTreeMap::new(),
            dead: false,
            config,
            place,
            start: 0,
            clock: Duration::ZERO,
            wakes: Wakes::since(self.now),
            joined_at: None,
            tainted: false,
            garbled: false,
            misread: false,
            shown: None,
            newest: None,
            known: HashSet::new(),
            welcomed_at_event: 0,
            told: 0,
            next_event: 0,
            queries_until: VecDeque::new(),
            owed: HashMap::new(),
        });
        place
    }

    fn new_client(&mut self, config: &ClientConfig, now: Instant) -> Client {
        let mut random = self.random.fork();
        let mut client = Client::new(config.clone(), Box::new(move || random.next_u64()), now);
        if let Some(fault) = self.fault {
            client.inject(fault);
        }
        client
    }

    /// A client that speaks types 0 to 7 alone, with a registered token.
    pub(crate) fn join_plain(&mut self, token: Token, link: LinkConfig) -> usize {
        let links = self.net.add_pair(link, link);
        let place = self.plains.len();
        let peer = address(place as u8 + 100, 5000);
        let sequence = self.random.next_u64() as u32;
        self.plains.push(Plain::new(token, peer, links, sequence, self.now));
        place
    }

    /// The process is gone, and nobody was told.
    pub(crate) fn kill(&mut self, seat: usize) {
        self.note(|| format!("seat {seat} is killed"));
        self.seats[seat].dead = true;
    }

    /// The process begins again, and knows nothing of before.
    pub(crate) fn start_again(&mut self, seat: usize, peer: Peer) {
        self.note(|| format!("seat {seat} starts again at {peer}"));
        let config = self.seats[seat].config.clone();
        let now = self.now + self.seats[seat].clock;
        let client = self.new_client(&config, now);
        let seat = &mut self.seats[seat];
        seat.start += 1;
        seat.client = client;
        seat.peer = peer;
        seat.dead = false;
        seat.wakes = Wakes::since(self.now);
        seat.joined_at = None;
        seat.tainted = false;
        seat.misread = false;
        seat.garbled = false;
        (seat.shown, seat.newest) = (None, None);
        seat.known.clear();
        seat.told = 0;
        seat.queries_until.clear();
        seat.owed.clear();
    }

    /// Whether what a client shows is held against the truth: not while somebody forges what it is
    /// sent.
    pub(crate) fn trust(&mut self, seat: usize, trusted: bool) {
        self.seats[seat].tainted = !trusted;
    }

    pub(crate) fn set_link(&mut self, seat: usize, link: LinkConfig) {
        self.net.set_config(self.seats[seat].up, link);
        self.net.set_config(self.seats[seat].down, link);
    }

    /// A clock jumps ahead, as a machine's does that was suspended; `None` is the server's.
    pub(crate) fn jump(&mut self, seat: Option<usize>, millis: u64) {
        self.note(|| format!("the clock of {seat:?} jumps by {millis} ms"));
        let by = Duration::from_millis(millis);
        match seat {
            Some(seat) => self.seats[seat].clock += by,
            None => self.clock += by,
        }
    }

    /// The server stops without a word and another one starts, `millis` later.
    pub(crate) fn restart_server(&mut self, millis: u64) {
        self.stop_server();
        self.run(millis);
        self.start_server();
    }

    pub(crate) fn stop_server(&mut self) {
        self.note(|| "the server stops".into());
        self.down = true;
        let now = self.now + self.clock;
        if let Some(shelf) = &mut self.shelf {
            shelf.crash(now);
        }
    }

    pub(crate) fn start_server(&mut self) {
        self.note(|| "a server starts".into());
        self.down = false;
        self.truth.next_life();
        let mut random = self.random.fork();
        let now = self.now + self.clock;
        let since = now.saturating_since(START).as_millis() as u64;
        if let (Some(shelf), Some(keep)) = (&self.shelf, &mut self.config.keep) {
            *keep = shelf.keep(keep);
        }
        self.server = Server::new(
            self.config.clone(),
            Box::new(move || random.next_u64()),
            now,
            START_OF_DAY + since,
        );
        self.server_wakes = Wakes::since(now);
        if let Some(fault) = self.fault {
            self.server.inject(fault);
        }
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
    pub(crate) fn step(&mut self, until: Instant) -> bool {
        // Input may have come since the last one.
        self.pump();
        let mut next = until;
        let mut consider = |due: Option<Instant>| next = due.map_or(next, |due| next.min(due));
        if !self.down {
            consider(self.server.poll_timeout().map(|due| earlier(due, self.clock)));
            let stored = self.shelf.as_ref().and_then(Shelf::due);
            consider(stored.map(|due| earlier(due, self.clock)));
        }
        consider(self.net.next_arrival().map(Instant::from_micros));
        for seat in self.seats.iter().filter(|seat| !seat.dead) {
            consider(seat.client.poll_timeout().map(|due| earlier(due, seat.clock)));
        }
        for plain in self.plains.iter().filter(|plain| !plain.dead) {
            consider(Some(plain.due()));
        }
        self.now = self.now.max(next);
        self.deliver();
        if !self.down {
            self.hear_from_shelf();
            self.wake_server();
        }
        for place in 0..self.seats.len() {
            self.wake_seat(place);
        }
        for place in 0..self.plains.len() {
            self.plain_speaks(place);
        }
        self.now < until
    }

    fn deliver(&mut self) {
        while let Some((link, frame)) = self.net.poll(self.now.as_micros()) {
            self.happened += 1;
            if let Some(place) = self.seats.iter().position(|seat| seat.down == link) {
                self.seat_hears(place, frame);
            } else if let Some(place) = self.plains.iter().position(|plain| plain.down == link) {
                self.plain_hears(place, &frame);
            } else {
                self.server_hears(&frame);
            }
        }
    }

    /// Who has this address, for the ladder.
    fn name_of(&self, peer: Peer) -> String {
        if self.ladder.is_none() {
            return String::new();
        }
        let seat = self.seats.iter().find(|seat| seat.peer == peer);
        seat.map_or_else(|| peer.to_string(), |seat| seat.name.clone())
    }

    fn server_hears(&mut self, frame: &Frame) {
        let Frame { bytes, peer, sent, damaged, .. } = frame;
        let name = self.name_of(*peer);
        if let Some(ladder) = &mut self.ladder {
            if self.down {
                ladder.lost(self.now, &name, Way::Up, "nobody is there", bytes);
            } else {
                ladder.arrived(self.now, &name, Way::Up, *sent, *damaged, bytes);
            }
        }
        if self.down {
            return;
        }
        if let Some(token) = damaged.then(|| self.truth.taint(bytes)).flatten() {
            let mut seats = self.seats.iter_mut();
            if let Some(seat) = seats.find(|seat| seat.client.session().token() == Some(token)) {
                seat.garbled = true;
            }
        }
        let now = self.now + self.clock;
        self.server.handle_datagram(now, *peer, bytes);
        self.truth.take_bytes(&self.server, *peer, bytes.len());
        self.server_rests();
    }

    /// Bytes that come to the server from somewhere, around the network.
    pub(crate) fn intrude(&mut self, from: Peer, bytes: Vec<u8>) {
        self.server_hears(&Frame {
            bytes,
            peer: from,
            sent: self.now,
            damaged: false,
            token: None,
        });
    }

    fn wake_server(&mut self) {
        let now = self.now + self.clock;
        if self.server.poll_timeout().is_none_or(|due| due > now) {
            return;
        }
        self.happened += 1;
        let before = self.server.tick();
        self.server.handle_timeout(now);
        let ticked = self.server.tick() != before;
        if ticked {
            for done in self.server.executed() {
                if let Some((by, command)) = self.truth.take_executed(&self.server, done) {
                    settle(&mut self.seats, by, &command);
                }
            }
            self.truth.take_tick(&self.server);
        }
        truth::check_server(&self.server, now);
        let busy = self.server_rests();
        if self.server.poll_timeout().is_some_and(|due| due <= now) {
            broken!("still", "the server's timeout stands still in the past");
        }
        if !busy && !ticked {
            self.server_wakes.idle(now, "the server");
        }
    }

    fn hear_from_shelf(&mut self) {
        let now = self.now + self.clock;
        while let Some(reply) = self.shelf.as_mut().and_then(|shelf| shelf.poll(now)) {
            self.happened += 1;
            self.server.handle_stored(now, reply);
            self.server_rests();
        }
    }

    /// Sends what the server has to send; whether it was anything.
    fn server_rests(&mut self) -> bool {
        let now = self.now + self.clock;
        let (mut buf, mut sent) = ([0; 1200], 0);
        self.truth.take_sessions(&self.server);
        if let Some(shelf) = &mut self.shelf {
            while let Some(request) = self.server.poll_store() {
                shelf.ask(now, request);
            }
        }
        while let Some(transmit) = self.server.poll_transmit(now, &mut buf) {
            let bytes = &buf[..transmit.len];
            let packet = Packet::parse(bytes).expect("a server sends what decodes");
            if let Packet::Event(event) = packet {
                let number = event.sequence().get();
                self.truth.take_event(&self.server, transmit.to, number, event.text());
            }
            self.truth.spend_bytes(transmit.to, bytes.len());
            let seat = self.seats.iter().find(|seat| seat.peer == transmit.to && !seat.dead);
            let plain = self.plains.iter().find(|plain| plain.peer == transmit.to && !plain.dead);
            // Where a client was killed or moved away from, nobody listens.
            let link = seat.map(|seat| seat.down).or(plain.map(|plain| plain.down));
            if let Some(link) = link {
                self.send(link, transmit.to, bytes.to_vec(), Way::Down);
            }
            sent += 1;
            // A state, 8 datagrams of entities, 18 chunks, 8 events and an answer for each of them.
            if sent > 100 + 40 * self.server.players() {
                broken!("rest", "the server does not come to rest");
            }
        }
        let mut told = 0;
        while let Some(event) = self.server.poll_event() {
            self.log.push(event);
            told += 1;
        }
        sent + told > 0
    }

    fn seat_hears(&mut self, place: usize, frame: Frame) {
        let Frame { bytes, peer, sent, damaged, token } = frame;
        let seat = &mut self.seats[place];
        let there = seat.peer == peer && !seat.dead;
        if let Some(ladder) = &mut self.ladder {
            if there {
                ladder.arrived(self.now, &seat.name, Way::Down, sent, damaged, &bytes);
            } else {
                ladder.lost(self.now, &seat.name, Way::Down, "nobody is there", &bytes);
            }
        }
        if !there {
            return;
        }
        if let Some(packet_type) = bytes.get(3) {
            *seat.types_received.entry(*packet_type).or_default() += 1;
        }
        let packet = Packet::parse(&bytes);
        if let Ok(Packet::Welcome(welcome)) = &packet {
            seat.welcomed_at_event = welcome.next_event().map_or(0, |next| next.get());
        }
        // An Event does not say of which session it is: one that was under way to the session before
        // is taken for one of this session. That is a limit of the protocol (notes/security.md).
        let stale = token.is_some() && token != seat.client.session().token();
        seat.misread |= stale && matches!(packet, Ok(Packet::Event(_)));
        seat.tainted |= damaged;
        seat.client.handle_datagram(self.now + seat.clock, &bytes);
        let chunk = match packet {
            Ok(Packet::Chunk(chunk)) => {
                let id = chunk.entry().id;
                Some(ChunkPos { x: id.x.into(), y: id.y.into() })
            }
            _ => None,
        };
        self.seat_rests(place);
        let seat = &mut self.seats[place];
        // A Welcome that begins anew may be damaged itself.
        seat.tainted |= damaged;
        if let Some(chunk) = chunk.filter(|_| !seat.tainted)
            && let Some(tiles) = seat.client.mirror().chunk(chunk)
        {
            seat.known.insert(chunk);
            self.truth.check_chunk(chunk, truth::hash(tiles.iter().copied()));
        }
    }

    fn wake_seat(&mut self, place: usize) {
        let seat = &mut self.seats[place];
        let now = self.now + seat.clock;
        if seat.dead || seat.client.poll_timeout().is_none_or(|due| due > now) {
            return;
        }
        self.happened += 1;
        seat.client.handle_timeout(now);
        truth::check_recovery(&seat.client, now);
        let busy = self.seat_rests(place);
        let seat = &mut self.seats[place];
        seat.check_queries(now);
        if seat.client.poll_timeout().is_some_and(|due| due <= now) {
            broken!("still", "the timeout of {} stands still in the past", seat.name);
        }
        if !busy {
            seat.wakes.idle(now, &seat.name);
        }
    }

    /// Hears what a client has to tell and sends what it has to send; whether it was anything.
    fn seat_rests(&mut self, place: usize) -> bool {
        let seat = &mut self.seats[place];
        let now = self.now + seat.clock;
        let told = seat.hear(&self.truth, self.now);
        let (mut buf, mut sent) = ([0; 1200], 0);
        while let Some(len) = self.seats[place].client.poll_transmit(now, &mut buf) {
            let seat = &self.seats[place];
            let (link, peer) = (seat.up, seat.peer);
            self.send(link, peer, buf[..len].to_vec(), Way::Up);
            sent += 1;
            if sent > 100 {
                broken!("rest", "a client does not come to rest");
            }
        }
        let seat = &mut self.seats[place];
        seat.note_issued(&mut self.truth);
        truth::check_client(&seat.client);
        told || sent > 0
    }

    fn plain_speaks(&mut self, place: usize) {
        let plain = &mut self.plains[place];
        if plain.dead {
            return;
        }
        let Some((bytes, issued)) = plain.speak(self.now) else { return };
        self.happened += 1;
        let (token, link, peer, start) = (plain.token, plain.up, plain.peer, plain.start);
        if let Some((number, way)) = issued {
            // Places of plain clients are told from seats by their size.
            self.truth.issue(token, number, Command::Move(direction(way)), (1000 + place, start));
        }
        self.send(link, peer, bytes, Way::Up);
    }

    fn plain_hears(&mut self, place: usize, frame: &Frame) {
        let plain = &mut self.plains[place];
        if plain.dead || plain.peer != frame.peer {
            return;
        }
        if let Some(ladder) = &mut self.ladder {
            let name = frame.peer.to_string();
            let Frame { sent, damaged, bytes, .. } = frame;
            ladder.arrived(self.now, &name, Way::Down, *sent, *damaged, bytes);
        }
        plain.hear(&self.truth, &frame.bytes, frame.damaged);
    }

    fn send(&mut self, link: LinkId, peer: Peer, bytes: Vec<u8>, way: Way) {
        let len = bytes.len();
        let mut sessions = self.server.sessions().sessions();
        let token = sessions.find(|(_, of)| of.peer() == peer).map(|(_, of)| of.token());
        drop(sessions);
        let frame = Frame { bytes, peer, sent: self.now, damaged: false, token };
        if self.ladder.is_none() {
            self.net.send(self.now.as_micros(), link, len, frame);
            return;
        }
        let (before, copy) = (self.net.stats(link), frame.bytes.clone());
        self.net.send(self.now.as_micros(), link, len, frame);
        let after = self.net.stats(link);
        let why = match () {
            () if after.lost > before.lost => "lost",
            () if after.too_big > before.too_big => "too big",
            () if after.queue_full > before.queue_full => "the line is full",
            () => return,
        };
        let name = self.name_of(peer);
        let now = self.now;
        self.ladder.as_mut().expect("asked").lost(now, &name, way, why, &copy);
    }

    /// What was asked for since the last step is sent.
    fn pump(&mut self) {
        for place in 0..self.seats.len() {
            if !self.seats[place].dead {
                self.seat_rests(place);
            }
        }
        if !self.down {
            self.server_rests();
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

    /// Whether all nine chunks around a player are shown as they are.
    pub(crate) fn is_current(&self, seat: usize) -> bool {
        let seat = &self.seats[seat];
        let Some(me) = seat.client.mirror().me() else { return false };
        let shown =
            |chunk| seat.client.mirror().chunk(chunk).map(|t| truth::hash(t.iter().copied()));
        let is_shown = |chunk| shown(chunk) == truth::world_hash(self.server.world(), chunk);
        !seat.client.misses_chunks()
            && me.pos.chunk().around().into_iter().all(|chunk| seat.tainted || is_shown(chunk))
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
        self.happened += 1;
        let here = &mut self.seats[seat];
        let done = here.client.act(command.clone()).is_ok();
        if done && must_arrive(&command) {
            *here.owed.entry(format!("{command:?}")).or_default() += 1;
        }
        self.seat_rests(seat);
        done
    }

    /// A client says goodbye.
    pub(crate) fn leave(&mut self, seat: usize) {
        let here = &mut self.seats[seat];
        let now = self.now + here.clock;
        here.client.leave(now);
        self.seat_rests(seat);
    }

    /// The server says goodbye to everybody.
    pub(crate) fn shut_down(&mut self) {
        self.note(|| "the server shuts down".into());
        self.server.shut_down(self.now + self.clock);
        self.server_rests();
    }

    pub(crate) fn look(&mut self, seat: usize, entity: EntityId) -> bool {
        self.happened += 1;
        let here = &mut self.seats[seat];
        let now = self.now + here.clock;
        let done = here.client.look(now, entity).is_ok();
        if done {
            here.queries_until.push_back(now + QUERY_TIME);
        }
        self.seat_rests(seat);
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
        let seat = &self.seats[seat];
        seat.client.status(self.now + seat.clock)
    }
}

/// The moment of the simulation at which a clock that is ahead shows this.
fn earlier(due: Instant, ahead: Duration) -> Instant {
    due.checked_sub(ahead).unwrap_or(Instant::ZERO)
}

pub(crate) fn address(host: u8, port: u16) -> Peer {
    Peer { socket: 0, addr: ([192, 0, 2, host], port).into() }
}

pub(crate) fn sees(of: Pos, thing: Pos) -> bool {
    in_viewport(of, thing)
}
