//! A whole walk over a bad line: a real server process, the impair proxy on real sockets, and the
//! client's core. In the end the client's map is the generated world plus the digs, tile for tile.

#[path = "../../../crates/netsim/examples/impair/proxy.rs"]
mod proxy;

mod common;

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use caves_game::Client;
use caves_netsim::{Chance, LinkConfig};
use caves_server::{Clock, OsRandom};
use caves_session::caves::ClientConfig;
use caves_world::{ChunkPos, Command, Content, Direction, Pos, TileId, generate};
use common::{ServerProcess, stranger};
use proxy::{Proxy, ProxyConfig};

const SEED: u64 = 7;
/// Chunk borders to cross.
const BORDERS: i32 = 3;
const PATIENCE: Duration = Duration::from_secs(240);
/// 20 % loss and 5 % duplication each way, over a line of 20 to 30 ms.
const BAD_LINE: LinkConfig = LinkConfig {
    delay: Duration::from_millis(20),
    jitter: Duration::from_millis(10),
    loss: Chance::percent(20),
    duplicate: Chance::percent(5),
    ..LinkConfig::PERFECT
};

/// Goes east through whatever is there.
struct Walker {
    client: Client,
    socket: UdpSocket,
    clock: Clock,
    /// Where it asked to dig.
    dug: BTreeSet<(i32, i32)>,
    digs: u32,
}

impl Walker {
    fn turn(&mut self) {
        let mut buf = [0; 2048];
        if let Ok(len) = self.socket.recv(&mut buf) {
            self.client.handle_datagram(self.clock.now(), &buf[..len]);
        }
        while self.client.poll_event().is_some() {}
        self.client.handle_timeout(self.clock.now());
        self.go_on();
        while let Some(len) = self.client.poll_transmit(self.clock.now(), &mut buf) {
            self.socket.send(&buf[..len]).expect("loopback");
        }
    }

    fn go_on(&mut self) {
        let session = self.client.session();
        let idle = session.queued().next().is_none() && session.in_flight().next().is_none();
        let Some(pos) = self.client.position().filter(|_| idle) else { return };
        let ahead = pos.step(Direction::East);
        let mirror = self.client.mirror();
        let Some(tile) = mirror.tile(ahead) else { return };
        let command = if mirror.content().is_walkable(tile) {
            Command::Move(Direction::East)
        } else {
            self.dug.insert((ahead.x, ahead.y));
            self.digs += 1;
            Command::Dig(Direction::East)
        };
        self.client.act(command).expect("nothing waits");
    }

    fn chunk(&self) -> Option<ChunkPos> {
        Some(self.client.mirror().me()?.pos.chunk())
    }
}

#[test]
fn a_walk_under_loss_ends_with_the_generated_world_plus_the_digs() {
    let mut server = ServerProcess::spawn(&format!(
        "[server]\nlisten = [\"127.0.0.1:0\"]\n[world]\nseed = {SEED}\n"
    ));
    let config = ProxyConfig { up: BAD_LINE, down: BAD_LINE, seed: 1 };
    let proxy = Proxy::start("127.0.0.1:0".parse().unwrap(), server.addrs[0], config).unwrap();
    let socket = stranger(proxy.local_addr());
    socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let clock = Clock::start();
    let random = Box::new(OsRandom::new().unwrap());
    let client = Client::new(ClientConfig::default(), random, clock.now());
    let mut walker = Walker { client, socket, clock, dug: BTreeSet::new(), digs: 0 };

    let deadline = Instant::now() + PATIENCE;
    let mut start = None;
    loop {
        walker.turn();
        let here = walker.chunk();
        start = start.or(here);
        if let (Some(start), Some(here)) = (start, here)
            && here.x - start.x >= BORDERS
            && !walker.client.misses_chunks()
            && walker.client.session().in_flight().next().is_none()
        {
            break;
        }
        assert!(Instant::now() < deadline, "at {here:?} after {PATIENCE:?}");
    }
    // Everything in flight has come, or is asked for again.
    let settled = Instant::now() + Duration::from_secs(3);
    while Instant::now() < settled {
        let client = &mut walker.client;
        client.handle_timeout(walker.clock.now());
        let mut buf = [0; 2048];
        if let Ok(len) = walker.socket.recv(&mut buf) {
            client.handle_datagram(walker.clock.now(), &buf[..len]);
        }
        while client.poll_event().is_some() {}
        while let Some(len) = client.poll_transmit(walker.clock.now(), &mut buf) {
            walker.socket.send(&buf[..len]).expect("loopback");
        }
    }
    assert!(!walker.client.misses_chunks());

    let (start, end) = (start.unwrap(), walker.chunk().unwrap());
    let content = Content::core();
    let mut compared = 0;
    for x in start.x - 1..=end.x + 1 {
        for y in start.y - 1..=start.y + 1 {
            let chunk = ChunkPos { x, y };
            let generated = generate(SEED, chunk, &content);
            for index in 0..1024 {
                let pos = chunk.tile(index);
                let shown = walker.client.mirror().tile(pos);
                assert_eq!(shown, Some(walker.expected(pos, generated.tile(index))), "{pos:?}");
                compared += 1;
            }
        }
    }
    assert!(compared >= 1024 * 3 * (BORDERS + 3));
    assert!(walker.dug.len() > 5, "only {} tiles were dug", walker.dug.len());

    let (up, down) = proxy.stop();
    for stats in [up, down] {
        assert!(stats.lost > 0 && stats.duplicated > 0, "{stats:?}");
    }
    assert!(server.terminate().success());
}

impl Walker {
    /// The generated tile, or floor where it dug; what was walkable before needed no digging.
    fn expected(&self, pos: Pos, generated: TileId) -> TileId {
        let walkable = self.client.mirror().content().is_walkable(generated);
        if !walkable && self.dug.contains(&(pos.x, pos.y)) { TileId::FLOOR } else { generated }
    }
}
