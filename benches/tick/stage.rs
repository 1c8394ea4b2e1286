//! A server full of players, without sockets: real handshakes, then an Action a tick from everybody.
//!
//! The caves are plains of floor whose chunks the stage brings like a store would, with things strewn evenly over
//! them, so that a view has about so many entities and the chunks it touches four to five times as many.

use std::time::Duration;

use anyhow::{Context, ensure};
use caves_game::{Keep, Server, ServerConfig, StoreReply, StoreRequest};
use caves_link::time::Instant;
use caves_session::caves::{Client, ClientConfig, ClientEntry, ServerConfig as SessionConfig};
use caves_session::{Peer, SplitMix};
use caves_wire::caves::{
    Action, ActionPacket, ChunkEntry, ClientType, Direction, Features, PacketType, Sequence,
    StateView, Token,
};
use caves_world::{
    CHUNK_SIDE, Chunk, ChunkPos, ChunkRecord, Content, EntityId, GENERATOR_VERSION, Inventory,
    PlayerRecord, Pos, SPAWN, Thing, ThingBody, TileId, WorldRecord,
};

/// From one tick to the next.
pub const PERIOD: Duration = Duration::from_millis(100);
/// Tiles of a viewport (protocol, R15).
const VIEW_TILES: usize = 900;
/// Tiles of a chunk.
const CHUNK_TILES: usize = 1024;
/// Chunks from one place to the next: nobody sees into another's, and no 5x5 is shared.
const APART: i32 = 6;
/// Places in a row of places.
const ROW: usize = 100;
/// Things have ids up to here, players from here on.
const LAST_THING: u32 = 10_000_000;
/// Sleeping things of one chunk.
const SLEEPERS: usize = 1000;
/// Caves in which one can walk from the entrance into the next chunk to the east.
const SEED: u64 = 7;
/// The first client's port.
const FIRST_PORT: u16 = 5_000;

/// Who and what there is.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Players in all.
    pub players: usize,
    /// Players at one place.
    pub together: usize,
    /// Things in view, about.
    pub things: usize,
    /// Things in chunks that nobody is near.
    pub sleeping: usize,
    /// Steps to the east before it goes back to the west.
    pub stride: u32,
    /// Whether the world is kept: on plains, each at its own place, saved every so often. Otherwise everybody begins
    /// at the entrance of the caves.
    pub kept: Option<Duration>,
}

/// What one tick sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// Datagrams of all kinds.
    pub datagrams: usize,
    /// Their bytes.
    pub bytes: usize,
    /// StatePackets.
    pub states: usize,
    /// Entities in EntityPackets.
    pub entities: usize,
    /// ChunkPackets.
    pub chunks: usize,
}

/// One client, by now no more than what it sends.
struct Line {
    token: Token,
    cache: [ChunkEntry; 9],
    up: [u8; 128],
    len: usize,
}

/// The server and everybody on it.
pub struct Stage {
    /// The server.
    pub server: Server,
    store: Store,
    lines: Vec<Line>,
    now: Instant,
    tick: u32,
    stride: u32,
    buf: [u8; 1200],
}

impl Stage {
    /// Lets everybody in.
    ///
    /// # Errors
    /// Somebody was not let in.
    pub fn open(plan: Plan) -> anyhow::Result<Stage> {
        let now = Instant::from_secs(1000);
        let mut server = Server::new(config(&plan), Box::new(SplitMix::new(1)), now, 0);
        let mut store = Store { things: plan.things, next: 1, stone: stone()? };
        for n in 0..plan.sleeping.div_ceil(SLEEPERS) {
            let pos = ChunkPos { x: -1000 + n as i32 % 500, y: 900 + n as i32 / 500 };
            let count = SLEEPERS.min(plan.sleeping - n * SLEEPERS);
            server.handle_stored(now, StoreReply::Chunk(pos, Some(store.chunk(pos, count))));
        }
        let (lines, stride) = (Vec::new(), plan.stride);
        let mut stage = Stage { server, store, lines, now, tick: 0, stride, buf: [0; 1200] };
        stage.join(plan.players)?;
        ensure!(stage.server.players() == plan.players, "not everybody is in");
        Ok(stage)
    }

    fn join(&mut self, players: usize) -> anyhow::Result<()> {
        let client = |place| {
            let config = ClientConfig {
                token: Some(account(place)),
                features: Features::NONE,
                ..ClientConfig::default()
            };
            Client::new(config, Box::new(SplitMix::new(7 + place as u64)), self.now)
        };
        let mut clients: Vec<Client> = (0..players).map(client).collect();
        for _ in 0..200 {
            self.now += PERIOD / 4;
            for place in 0..players {
                clients[place].handle_timeout(self.now);
                while let Some(len) = clients[place].poll_transmit(self.now, &mut self.buf) {
                    self.server.handle_datagram(self.now, peer(place), &self.buf[..len]);
                }
                // Only so many answers may wait.
                self.deliver(&mut clients);
            }
            self.server.handle_timeout(self.now);
            self.answer_store();
            self.deliver(&mut clients);
            let tokens: Option<Vec<Token>> = clients.iter().map(Client::token).collect();
            if let Some(tokens) = tokens {
                let line = |token| Line { token, cache: Default::default(), up: [0; 128], len: 0 };
                self.lines = tokens.into_iter().map(line).collect();
                return Ok(());
            }
        }
        anyhow::bail!("not everybody was let in")
    }

    fn deliver(&mut self, clients: &mut [Client]) {
        while let Some(sent) = self.server.poll_transmit(self.now, &mut self.buf) {
            let client = &mut clients[usize::from(sent.to.addr.port() - FIRST_PORT)];
            let _ = client.handle_datagram(self.now, &self.buf[..sent.len]);
            while client.poll_event().is_some() {}
        }
        while self.server.poll_event().is_some() {}
    }

    /// Everybody writes the Action of the next tick: a step, there and back again. No work of the server.
    pub fn write_actions(&mut self) {
        self.now += PERIOD;
        self.tick += 1;
        let east = (self.tick / self.stride).is_multiple_of(2);
        let direction = if east { Direction::East } else { Direction::West };
        for line in &mut self.lines {
            let packet = ActionPacket {
                client_type: ClientType::OFFICIAL,
                token: line.token,
                sequence: Sequence::new(self.tick),
                cache: line.cache,
                action: Action::<&str>::Walk(direction),
            };
            line.len = packet.emit(&mut line.up).unwrap_or(0);
        }
    }

    /// The server receives all Actions.
    pub fn receive(&mut self) {
        for (place, line) in self.lines.iter().enumerate() {
            self.server.handle_datagram(self.now, peer(place), &line.up[..line.len]);
        }
    }

    /// The present moment.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The server runs its tick.
    pub fn run_tick(&mut self) {
        self.server.handle_timeout(self.now);
    }

    /// The server sends all that it has to send; clients look at nothing of it.
    pub fn send(&mut self) -> Sent {
        let mut sent = Sent::default();
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut self.buf) {
            sent.note(&self.buf[..transmit.len]);
        }
        sent
    }

    /// As [`Stage::send`], and clients learn which chunks they would hold by now. Says how many of them had moved on
    /// to other chunks.
    pub fn send_and_learn(&mut self) -> (Sent, usize) {
        let (mut sent, mut moved) = (Sent::default(), 0);
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut self.buf) {
            let datagram = &self.buf[..transmit.len];
            sent.note(datagram);
            if let Ok(state) = StateView::parse(datagram) {
                let line = &mut self.lines[usize::from(transmit.to.addr.port() - FIRST_PORT)];
                moved += usize::from(line.cache[4].id != state.chunks()[4].id);
                line.cache = state.chunks();
            }
        }
        (sent, moved)
    }

    /// Brings what the server wants to read, and says that all was saved. True when there was a save.
    pub fn answer_store(&mut self) -> bool {
        let mut saved = false;
        while let Some(request) = self.server.poll_store() {
            let reply = match request {
                StoreRequest::Read(pos) => {
                    let record = self.store.chunk(pos, self.store.strewn());
                    StoreReply::Chunk(pos, Some(record))
                }
                StoreRequest::Save(_) => {
                    saved = true;
                    StoreReply::Saved
                }
            };
            self.server.handle_stored(self.now, reply);
        }
        saved
    }

    /// A whole tick. True when there was a save.
    pub fn tick(&mut self) -> (Sent, usize, bool) {
        self.write_actions();
        self.receive();
        self.run_tick();
        let saved = self.answer_store();
        let (sent, moved) = self.send_and_learn();
        (sent, moved, saved)
    }
}

impl Sent {
    fn note(&mut self, datagram: &[u8]) {
        self.datagrams += 1;
        self.bytes += datagram.len();
        match PacketType(datagram[3]) {
            PacketType::STATE => self.states += 1,
            PacketType::ENTITIES => self.entities += usize::from(datagram[10]),
            PacketType::CHUNK => self.chunks += 1,
            _ => {}
        }
    }
}

fn peer(place: usize) -> Peer {
    Peer { socket: 0, addr: ([127, 0, 0, 1], FIRST_PORT + place as u16).into() }
}

fn account(place: usize) -> Token {
    Token((1 << 40) + place as u64)
}

fn name(place: usize) -> String {
    format!("player{place:04}")
}

/// Where a player stands: a few tiles into a chunk, so that four chunks are in view.
fn stand(plan: &Plan, place: usize) -> Pos {
    let (group, n) = (place / plan.together, place % plan.together);
    let (x, y) = (group % ROW, group / ROW);
    let corner = ChunkPos { x: 20 + x as i32 * APART, y: 20 + y as i32 * APART }.origin();
    corner.offset(2 + n as i32 % 3, 2 + n as i32 / 3 % 8)
}

fn config(plan: &Plan) -> ServerConfig {
    let client = |place| ClientEntry {
        client_type: ClientType::OFFICIAL,
        name: Some(name(place)),
        allow: true,
        token: Some(account(place)),
        from: Vec::new(),
        tags: true,
    };
    let player = |place| PlayerRecord {
        name: name(place),
        pos: stand(plan, place),
        hp: 20,
        elo: 1000,
        inventory: Inventory::default(),
    };
    ServerConfig {
        session: SessionConfig {
            max_players: plan.players,
            open: true,
            clients: (0..plan.players).map(client).collect(),
            ..SessionConfig::default()
        },
        seed: SEED,
        keep: plan.kept.map(|interval| Keep {
            world: Some(WorldRecord { last_id: LAST_THING, ..WorldRecord::new(SEED) }),
            players: (0..plan.players).map(player).collect(),
            interval,
            idle_chunks: usize::MAX / 4,
        }),
    }
}

fn stone() -> anyhow::Result<caves_world::KindId> {
    Content::core().kind_id("core:stone").context("no stones")
}

/// Brings chunks of floor with things on it.
struct Store {
    things: usize,
    next: u32,
    stone: caves_world::KindId,
}

impl Store {
    /// Things of one chunk, so that a view has its number of them.
    fn strewn(&self) -> usize {
        (self.things * CHUNK_TILES).div_ceil(VIEW_TILES)
    }

    fn chunk(&mut self, pos: ChunkPos, count: usize) -> Box<ChunkRecord> {
        // The entrance is where everybody is reborn, not where anybody plays here.
        let count = if SPAWN.chunk().around().contains(&pos) { 0 } else { count };
        let things = (0..count).map(|n| {
            let id = EntityId(self.next);
            self.next += 1;
            // Evenly over the chunk: 389 and the number of tiles have no common divisor.
            let tile = (n * 389 + 7) % (CHUNK_SIDE * CHUNK_SIDE) as usize;
            Thing { id, kind: self.stone, pos: pos.tile(tile), body: ThingBody::Item(1) }
        });
        Box::new(ChunkRecord {
            generator: GENERATOR_VERSION,
            edited: Some(Chunk::filled(TileId::FLOOR)),
            residents: Vec::new(),
            things: things.collect(),
        })
    }
}
