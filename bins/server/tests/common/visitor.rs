//! A player on a real socket, driven by the test.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use caves_game::Client;
use caves_game::client::ClientEvent;
use caves_server::{Clock, OsRandom};
use caves_session::caves::ClientConfig;
use caves_wire::caves::Token;

/// A whole client behind a socket at an address of the test's choice.
pub(crate) struct Visitor {
    pub(crate) client: Client,
    pub(crate) socket: UdpSocket,
    /// All that it has sent, in order.
    pub(crate) sent: Vec<Vec<u8>>,
    pub(crate) events: Vec<ClientEvent>,
    clock: Clock,
}

impl Visitor {
    pub(crate) fn new(server: SocketAddr, from: IpAddr, name: &str) -> Self {
        let name = Some(name.to_owned());
        Self::with(server, from, ClientConfig { name, ..ClientConfig::default() })
    }

    pub(crate) fn registered(server: SocketAddr, from: IpAddr, token: Token) -> Self {
        Self::with(server, from, ClientConfig { token: Some(token), ..ClientConfig::default() })
    }

    fn with(server: SocketAddr, from: IpAddr, config: ClientConfig) -> Self {
        let clock = Clock::start();
        let random = Box::new(OsRandom::new().expect("random numbers"));
        let client = Client::new(config, random, clock.now());
        let socket = UdpSocket::bind((from, 0)).expect("an address of this machine");
        socket.connect(server).expect("a route to ourselves");
        socket.set_read_timeout(Some(Duration::from_millis(3))).expect("not zero");
        Self { client, socket, sent: Vec::new(), events: Vec::new(), clock }
    }

    pub(crate) fn now(&self) -> caves_link::time::Instant {
        self.clock.now()
    }

    /// Sends what is due, and takes what comes within some milliseconds.
    pub(crate) fn step(&mut self) {
        let mut buf = [0; 2048];
        self.client.handle_timeout(self.clock.now());
        while let Some(len) = self.client.poll_transmit(self.clock.now(), &mut buf) {
            self.sent.push(buf[..len].to_vec());
            // A datagram that the kernel does not take is lost, as others are.
            let _ = self.socket.send(&buf[..len]);
        }
        if let Ok(len) = self.socket.recv(&mut buf) {
            self.client.handle_datagram(self.clock.now(), &buf[..len]);
        }
        while let Some(event) = self.client.poll_event() {
            self.events.push(event);
        }
    }

    /// Plays until something holds, and tells how long that took; `None` when patience ends.
    pub(crate) fn until(
        &mut self,
        patience: Duration,
        holds: impl Fn(&Self) -> bool,
    ) -> Option<Duration> {
        let start = Instant::now();
        while !holds(self) {
            if start.elapsed() >= patience {
                return None;
            }
            self.step();
        }
        Some(start.elapsed())
    }

    /// Plays for some time.
    pub(crate) fn play(&mut self, span: Duration) {
        self.until(span, |_| false);
    }

    pub(crate) fn is_in(&self) -> bool {
        self.client.session().token().is_some()
    }

    /// In the caves, with all tiles around.
    pub(crate) fn is_playable(&self) -> bool {
        self.client.mirror().me().is_some() && !self.client.misses_chunks()
    }

    /// Three Leaves, 20 ms apart.
    pub(crate) fn leave(&mut self) {
        self.client.leave(self.clock.now());
        while !self.client.is_drained() {
            self.step();
        }
    }
}
