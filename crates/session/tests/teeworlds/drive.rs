//! A server and what it sends, by the clock of a test.

use caves_link::time::Instant;
use caves_session::teeworlds::{Server, ServerConfig, ServerEvent, ServerReceived, SessionId};
use caves_session::{DropReason, Peer, SplitMix};
use caves_wire::teeworlds::{Scratch, Token};

pub(crate) const TOKEN: Token = Token([0x01, 0xA2, 0x06, 0xF4]);

pub(crate) fn peer(port: u16) -> Peer {
    Peer { socket: 0, addr: ([127, 0, 0, 1], port).into() }
}

/// Lets clients without tokens in, as the captured server did.
pub(crate) fn open_to_all() -> ServerConfig {
    ServerConfig { without_tokens: true, ..ServerConfig::default() }
}

pub(crate) struct Talk {
    pub(crate) server: Server,
    pub(crate) now: Instant,
    /// When, to whom, what.
    pub(crate) sent: Vec<(Instant, Peer, Vec<u8>)>,
    pub(crate) events: Vec<ServerEvent>,
    scratch: Scratch,
}

impl Talk {
    pub(crate) fn new(config: ServerConfig, token: Token, now: Instant) -> Self {
        let mut server = Server::new(config, &mut SplitMix::new(7), now);
        server.fix_token(token);
        Self { server, now, sent: Vec::new(), events: Vec::new(), scratch: [0; 1394] }
    }

    /// Lets time pass; whatever is due is done at its very moment.
    pub(crate) fn pass_to(&mut self, until: Instant) {
        while let Some(due) = self.server.poll_timeout().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.tick();
        }
        self.now = self.now.max(until);
        self.tick();
    }

    pub(crate) fn pass(&mut self, millis: u64) {
        self.pass_to(self.now + std::time::Duration::from_millis(millis));
    }

    pub(crate) fn tick(&mut self) {
        self.server.handle_timeout(self.now);
        self.fetch();
    }

    /// Takes what there is to send, and the events.
    pub(crate) fn fetch(&mut self) {
        let mut buf = [0; 1400];
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut buf) {
            self.sent.push((self.now, transmit.to, buf[..transmit.len].to_vec()));
        }
        self.events.extend(std::iter::from_fn(|| self.server.poll_event()));
    }

    /// Hands a datagram in; the messages that it delivers, or why it was dropped.
    pub(crate) fn give(&mut self, from: Peer, bytes: &[u8]) -> Result<Vec<Vec<u8>>, DropReason> {
        let received = self.server.handle_datagram(self.now, from, bytes, &mut self.scratch);
        let messages = match received {
            ServerReceived::Messages { messages, .. } => {
                Ok(messages.map(|message| message.data.to_vec()).collect())
            }
            ServerReceived::Dropped(reason) => Err(reason),
            _ => Ok(Vec::new()),
        };
        self.events.extend(std::iter::from_fn(|| self.server.poll_event()));
        messages
    }

    /// The only session there is.
    pub(crate) fn session(&self) -> SessionId {
        let mut sessions = self.server.sessions();
        let (id, _) = sessions.next().expect("a session");
        assert!(sessions.next().is_none(), "one session");
        id
    }

    /// CONNECT and ACCEPT.
    pub(crate) fn join(&mut self, from: Peer) -> SessionId {
        self.give(from, b"\x10\0\0\x01TKEN\xFF\xFF\xFF\xFF").unwrap();
        self.give(from, b"\x10\0\0\x03\x01\xA2\x06\xF4").unwrap();
        self.fetch();
        self.sent.clear();
        match self.events.last() {
            Some(ServerEvent::Joined { session, peer }) if *peer == from => *session,
            other => panic!("{other:?}"),
        }
    }

    /// What was sent since the last call.
    pub(crate) fn take(&mut self) -> Vec<Vec<u8>> {
        self.fetch();
        self.sent.drain(..).map(|(_, _, bytes)| bytes).collect()
    }
}
