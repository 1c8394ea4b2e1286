//! A bot that knows packet types 0 to 7 and nothing else. A `[[client]]` of the server lists its token.
//!
//!     cargo run -p caves-wire --example bot -- 127.0.0.1:21068 0x8d3f00c1a5b2e497 10
//!
#![allow(clippy::disallowed_types, clippy::print_stdout, reason = "an example talks and tells")]

use std::collections::HashMap;
use std::error::Error;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use caves_wire::caves::{
    Action, ActionPacket, ChunkEntry, ChunkId, ChunkVersion, ClientType, Direction, EntityId,
    Packet, Sequence, Token,
};

pub(crate) struct Bot {
    socket: UdpSocket,
    token: Token,
    sequence: Sequence,
    player: EntityId,
    pub(crate) place: (i16, i16),
    pub(crate) ticks: u32,
    pub(crate) chunks: u32,
    held: HashMap<ChunkId, ChunkVersion>,
    manifest: [ChunkEntry; 9],
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [server, token, seconds] = &args[..] else {
        return Err("usage: bot HOST:PORT TOKEN SECONDS".into());
    };
    let token = Token(u64::from_str_radix(token.trim_start_matches("0x"), 16)?);
    let bot = play(server, token, Duration::from_secs(seconds.parse()?))?;
    println!("{} ticks, {} chunks, now at {:?}", bot.ticks, bot.chunks, bot.place);
    Ok(())
}

/// Walks for a while.
pub(crate) fn play(server: &str, token: Token, time: Duration) -> Result<Bot, Box<dyn Error>> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(Duration::from_millis(50)))?;
    let mut bot = Bot {
        socket,
        token,
        sequence: Sequence::new(0),
        player: EntityId(0),
        place: (0, 0),
        ticks: 0,
        chunks: 0,
        held: HashMap::new(),
        manifest: [ChunkEntry::default(); 9],
    };
    let (start, mut buf) = (Instant::now(), [0; 2048]);
    let mut spoke = None::<Instant>;
    while start.elapsed() < time {
        if let Ok(len) = bot.socket.recv(&mut buf) {
            match Packet::parse(&buf[..len])? {
                Packet::State(state) => {
                    (bot.player, bot.manifest) = (state.player(), state.chunks());
                    bot.ticks += 1;
                }
                Packet::Chunk(chunk) => {
                    bot.held.insert(chunk.entry().id, chunk.entry().version);
                    bot.chunks += 1;
                }
                Packet::Entities(entities) => {
                    let me = entities.entities().find(|entity| entity.id() == bot.player);
                    bot.place = me.map_or(bot.place, |me| (me.x(), me.y()));
                }
                other => println!("{other}"),
            }
        }
        // Twice a second a step; each ActionPacket also tells which chunks are held.
        if spoke.is_none_or(|at| at.elapsed() >= Duration::from_millis(500)) {
            spoke = Some(Instant::now());
            bot.step()?;
        }
    }
    Ok(bot)
}

impl Bot {
    fn step(&mut self) -> Result<(), Box<dyn Error>> {
        self.sequence = self.sequence.next();
        let ways = [Direction::North, Direction::East, Direction::South, Direction::West];
        let way = ways[self.sequence.get() as usize / 4 % 4];
        let cache = self.manifest.map(|entry| ChunkEntry {
            version: self.held.get(&entry.id).copied().unwrap_or(ChunkVersion::NOT_HELD),
            ..entry
        });
        let (token, sequence, action) = (self.token, self.sequence, Action::<&str>::Walk(way));
        let (client_type, mut buf) = (ClientType(7), [0; 74]);
        let len = ActionPacket { client_type, token, sequence, cache, action }.emit(&mut buf)?;
        self.socket.send(&buf[..len]).map(|_| ()).map_err(Into::into)
    }
}
