//! A script for a whole server and two whole clients: what goes between them is lost, repeated,
//! changed, and mixed with raw bytes.

use std::collections::VecDeque;
use std::time::Duration;

use caves_game::{Client, Server, ServerConfig};
use caves_link::time::Instant;
use caves_session::caves::{ClientConfig, ServerConfig as SessionConfig};
use caves_session::{Peer, SplitMix};
use caves_wire::MAX_DATAGRAM;
use caves_wire::caves::Packet;
use caves_world::{Command, Direction, EntityId, KindId};

use super::script::{START, Script};

/// Steps of one script: each may run a tick.
const STEPS: usize = 60;
/// Clients, and places on the server: one more stranger fits.
const CLIENTS: usize = 2;
const MAX_PLAYERS: usize = 3;
/// Datagrams that the script keeps back, to hand them in later.
const HELD: usize = 8;
/// What a server sends in one tick at most: per player a state, 8 packets of entities, 9 chunks, 8
/// events, and answers.
const AT_ONCE: usize = (MAX_PLAYERS + 1) * (1 + 8 + 9 + 8) + 64;

/// Reads the bytes as steps; the server and its clients keep their promises throughout.
pub fn game_input(data: &[u8]) {
    let mut script = Script::new(data);
    let mut site = Site::new(script.byte());
    for _ in 0..STEPS {
        let Some(step) = script.step() else { break };
        site.take_step(step, &mut script);
    }
}

struct Site {
    server: Server,
    clients: [Client; CLIENTS],
    now: Instant,
    /// What the script keeps back: to the server from a client, or to a client.
    held: VecDeque<(bool, usize, Vec<u8>)>,
}

impl Site {
    fn new(kind: u8) -> Self {
        let session = SessionConfig { max_players: MAX_PLAYERS, ..SessionConfig::default() };
        let config = ServerConfig { session, seed: u64::from(kind & 3), keep: None };
        let server = Server::new(config, Box::new(SplitMix::new(1)), START, 0);
        let clients = std::array::from_fn(|place| {
            let name = (place == 0).then(|| "Ada".to_owned());
            let config = ClientConfig { name, ..ClientConfig::default() };
            Client::new(config, Box::new(SplitMix::new(2 + place as u64)), START)
        });
        let mut site = Self { server, clients, now: START, held: VecDeque::new() };
        // Both are in before the script begins: Hello, Challenge, Join, Welcome, and a tick.
        for _ in 0..4 {
            site.pass(Duration::from_millis(50), &mut Script::new(&[]), false);
        }
        assert_eq!(site.server.players(), CLIENTS);
        site
    }

    fn take_step(&mut self, step: u8, script: &mut Script<'_>) {
        let client = usize::from(step >> 7);
        match step & 15 {
            0..=4 => self.pass(Duration::from_millis(100), script, false),
            5 | 6 => self.pass(Duration::from_millis(script.byte().into()), script, true),
            // Past all silences.
            7 => self.pass(Duration::from_millis(u64::from(script.byte()) * 64), script, true),
            8..=11 => {
                let _ = self.clients[client].act(command(script));
            }
            12 => {
                let figures = self.clients[client].mirror().figures();
                let ids: Vec<_> = figures.iter().map(|figure| figure.id).collect();
                let id = script.pick(&ids).unwrap_or(EntityId(script.u32()));
                let _ = self.clients[client].look(self.now, id);
            }
            13 => {
                if let Some((to_server, place, mut datagram)) = self.held.pop_front() {
                    script.mutate(&mut datagram);
                    self.hand_in(to_server, place, &datagram);
                }
            }
            14 => {
                let len = usize::from(script.u16()) % (MAX_DATAGRAM + 2);
                let raw = script.bytes(len);
                self.hand_in(step & 16 == 0, client, raw);
            }
            _ => self.clients[client].stop_walking(),
        }
    }

    /// Time goes on, and everything that is to be sent is sent; `rough` lets the script lose, keep
    /// back, repeat and change it.
    fn pass(&mut self, time: Duration, script: &mut Script<'_>, rough: bool) {
        self.now += time;
        let mut buf = [0; MAX_DATAGRAM];
        for place in 0..CLIENTS {
            self.clients[place].handle_timeout(self.now);
            let mut count = 0;
            while let Some(len) = self.clients[place].poll_transmit(self.now, &mut buf) {
                count += 1;
                assert!(count <= AT_ONCE, "a client does not come to rest");
                self.carry(true, place, &buf[..len], script, rough);
            }
        }
        self.server.handle_timeout(self.now);
        let mut count = 0;
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut buf) {
            count += 1;
            assert!(count <= AT_ONCE, "the server does not come to rest");
            Packet::parse(&buf[..transmit.len]).expect("a server writes what can be read");
            let place = usize::from(transmit.to.addr.port());
            if place < CLIENTS {
                self.carry(false, place, &buf[..transmit.len], script, rough);
            }
        }
        while self.server.poll_event().is_some() {}
        if let Some(due) = self.server.poll_timeout() {
            assert!(due > self.now, "what was due is done");
        }
        assert!(self.server.players() <= MAX_PLAYERS);
        assert_eq!(self.server.players(), self.server.sessions().len());
        self.clients.iter().for_each(|client| look_at(client, self.now));
    }

    fn carry(
        &mut self,
        to_server: bool,
        place: usize,
        datagram: &[u8],
        script: &mut Script<'_>,
        rough: bool,
    ) {
        match if rough { script.byte() & 7 } else { 0 } {
            5 => {}
            6 => {
                if self.held.len() >= HELD {
                    self.held.pop_front();
                }
                self.held.push_back((to_server, place, datagram.to_vec()));
            }
            7 => {
                let mut changed = datagram.to_vec();
                script.mutate(&mut changed);
                self.hand_in(to_server, place, &changed);
                self.hand_in(to_server, place, datagram);
            }
            _ => self.hand_in(to_server, place, datagram),
        }
    }

    fn hand_in(&mut self, to_server: bool, place: usize, datagram: &[u8]) {
        if to_server {
            let addr = ([127, 0, 0, 1], place as u16).into();
            self.server.handle_datagram(self.now, Peer { socket: 0, addr }, datagram);
        } else {
            self.clients[place].handle_datagram(self.now, datagram);
            while self.clients[place].poll_event().is_some() {}
        }
    }
}

fn command(script: &mut Script<'_>) -> Command {
    let kind = script.byte();
    let ways = [Direction::North, Direction::East, Direction::South, Direction::West];
    let way = ways[usize::from(kind >> 4) % 4];
    match kind & 15 {
        0..=6 => Command::Move(way),
        7 => Command::Attack(way),
        8 | 9 => Command::Dig(way),
        10 => Command::Interact(EntityId(script.byte().into())),
        11 => Command::PickUp,
        12 => Command::Drop { item: KindId(script.byte().into()), count: script.u16() },
        13 => Command::Say(script.text()),
        _ => Command::Other,
    }
}

/// What a screen asks of a client.
fn look_at(client: &Client, now: Instant) {
    let mirror = client.mirror();
    let figures = mirror.figures();
    assert!(figures.is_sorted_by_key(|figure| figure.id));
    for figure in figures {
        assert!(figure.name.as_deref().is_none_or(caves_wire::text::is_clean));
        let _ = (mirror.sight(figure.pos), mirror.details(figure.id));
    }
    if let Some(pos) = client.position() {
        for (x, y) in [(0, 0), (-15, -15), (14, 14), (-33, 40)] {
            let _ = (mirror.sight(pos.offset(x, y)), mirror.tile(pos.offset(x, y)));
        }
    }
    let _ = (client.status(now), client.loss_percent(), client.misses_chunks());
    assert!(mirror.messages().len() <= 200);
}
