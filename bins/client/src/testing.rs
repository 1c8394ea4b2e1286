//! A real server and real clients in memory, for tests.

use std::time::Duration;

use caves_game::client::ClientEvent;
use caves_game::{Client, Server, ServerConfig};
use caves_link::time::Instant;
use caves_session::caves::ClientConfig;
use caves_session::{Peer, SplitMix};

use crate::app::{App, Home};

/// Time advances by this much.
const STEP: Duration = Duration::from_millis(10);

/// One server, some players, one clock.
pub(crate) struct Caves {
    pub(crate) server: Server,
    pub(crate) players: Vec<Player>,
    pub(crate) now: Instant,
    /// Nothing comes through in either direction.
    pub(crate) cut_off: bool,
}

pub(crate) struct Player {
    pub(crate) client: Client,
    pub(crate) app: App,
    peer: Peer,
}

impl Caves {
    pub(crate) fn new(config: ServerConfig) -> Self {
        let now = Instant::from_secs(1);
        // 2001-09-09: tick 10,000,000,000 modulo 2^32.
        let unix_millis = 1_000_000_000_000;
        let server = Server::new(config, Box::new(SplitMix::new(1)), now, unix_millis);
        Self { server, players: Vec::new(), now, cut_off: false }
    }

    /// A world with a fixed seed, and one player in it.
    pub(crate) fn with(name: &str) -> Self {
        let config = ServerConfig { seed: 7, ..ServerConfig::default() };
        let mut caves = Self::new(config);
        caves.enter(name, Home::Server { address: "caves.example:21068".into() });
        caves.run_for(1000);
        caves
    }

    /// Another player begins to join.
    pub(crate) fn enter(&mut self, name: &str, home: Home) {
        let seed = 100 + self.players.len() as u64;
        let name = (!name.is_empty()).then(|| name.to_owned());
        let config = ClientConfig { name, ..ClientConfig::default() };
        let client = Client::new(config, Box::new(SplitMix::new(seed)), self.now);
        let port = 5000 + self.players.len() as u16;
        let peer = Peer { socket: 0, addr: ([127, 0, 0, 1], port).into() };
        self.players.push(Player { client, app: App::new(home, self.now), peer });
    }

    pub(crate) fn run_for(&mut self, millis: u64) {
        let until = self.now + Duration::from_millis(millis);
        while self.now < until {
            self.now += STEP;
            self.step();
        }
    }

    /// The same order as in the loop of the program.
    pub(crate) fn step(&mut self) {
        let (now, mut buf) = (self.now, [0; 1200]);
        for player in &mut self.players {
            player.client.handle_timeout(now);
            if player.app.poll_timeout().is_some_and(|due| due <= now) {
                player.app.handle_timeout(&mut player.client, now);
            }
            player.take_events();
            while let Some(len) = player.client.poll_transmit(now, &mut buf) {
                if !self.cut_off {
                    self.server.handle_datagram(now, player.peer, &buf[..len]);
                }
            }
        }
        if self.server.poll_timeout().is_some_and(|due| due <= now) {
            self.server.handle_timeout(now);
        }
        while self.server.poll_event().is_some() {}
        while let Some(transmit) = self.server.poll_transmit(now, &mut buf) {
            let to = self.players.iter_mut().find(|player| player.peer == transmit.to);
            if let Some(player) = to.filter(|_| !self.cut_off) {
                player.client.handle_datagram(now, &buf[..transmit.len]);
                player.take_events();
                player.app.heard(&mut player.client, now);
            }
        }
    }
}

impl Player {
    fn take_events(&mut self) {
        while let Some(event) = self.client.poll_event() {
            if !matches!(event, ClientEvent::Ended(_)) {
                self.app.handle_event(event, &mut self.client);
            }
        }
    }
}
