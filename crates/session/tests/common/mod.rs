//! A server that is talked to datagram by datagram, with bytes written here.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::time::Duration;

use caves_link::time::Instant;
use caves_session::caves::{Server, ServerConfig, ServerEvent, ServerReceived, SessionId};
use caves_session::{DropReason, Peer, SplitMix};
use caves_wire::caves::{
    Action, ActionPacket, ChallengeView, ChunkEntry, ClientType, EntityId, Features, Hello, Join,
    Leave, LeaveReason, Nonce, Packet, RefuseReason, RefuseView, Sequence, Token, WelcomeView, tag,
};
use caves_wire::tlv::TlvWriter;

pub(crate) struct Talk {
    pub server: Server,
    pub now: Instant,
    pub events: Vec<ServerEvent>,
    /// Every datagram the server sent since it was last asked.
    pub sent: Vec<(Peer, Vec<u8>)>,
    next_entity: u32,
}

/// What a Join asks for.
#[derive(Clone, Copy)]
pub(crate) struct Wish<'a> {
    pub client_type: u16,
    pub name: Option<&'a [u8]>,
    pub features: u32,
    pub token: Option<Token>,
}

pub(crate) const GUEST: Wish<'_> = Wish { client_type: 0, name: None, features: 0, token: None };

pub(crate) fn named(name: &str) -> Wish<'_> {
    Wish { name: Some(name.as_bytes()), features: 2, ..GUEST }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    Welcome { token: Token, entity: u32, features: Features, next_event: Option<u32> },
    Refused(RefuseReason),
    Nothing,
}

impl Answer {
    pub(crate) fn token(&self) -> Token {
        match self {
            Self::Welcome { token, .. } => *token,
            other => panic!("not welcomed: {other:?}"),
        }
    }
}

pub(crate) fn peer(address: &str) -> Peer {
    Peer { socket: 0, addr: address.parse().unwrap() }
}

impl Talk {
    pub(crate) fn new(config: ServerConfig) -> Self {
        let now = Instant::from_secs(1000);
        let server = Server::new(config, Box::new(SplitMix::new(42)), now);
        Self { server, now, events: Vec::new(), sent: Vec::new(), next_entity: 1 }
    }

    pub(crate) fn wait(&mut self, millis: u64) {
        let until = self.now + Duration::from_millis(millis);
        while let Some(due) = self.server.poll_timeout().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.server.handle_timeout(self.now);
            self.pump();
        }
        self.now = until;
        self.server.handle_timeout(self.now);
        self.pump();
    }

    fn pump(&mut self) {
        while let Some(event) = self.server.poll_event() {
            if let ServerEvent::Joined(joined) = &event {
                let entity = joined.takes_over.unwrap_or_else(|| {
                    self.next_entity += 1;
                    EntityId(self.next_entity)
                });
                self.server.admit(self.now, joined.session, entity);
            }
            self.events.push(event);
        }
        let mut buf = [0; 1200];
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut buf) {
            self.sent.push((transmit.to, buf[..transmit.len].to_vec()));
        }
    }

    /// Hands a datagram in; what is sent because of it is in `sent` alone.
    pub(crate) fn give(&mut self, from: Peer, bytes: &[u8]) -> Option<DropReason> {
        self.sent.clear();
        let received = self.server.handle_datagram(self.now, from, bytes);
        let dropped = match received {
            ServerReceived::Dropped(reason) => Some(reason),
            _ => None,
        };
        self.pump();
        dropped
    }

    pub(crate) fn hello(&mut self, from: Peer, nonce: u64, client_type: u16) -> Option<[u8; 16]> {
        let mut buf = [0; 64];
        let hello = Hello { client_type: ClientType(client_type), nonce: Nonce(nonce) };
        hello.emit(&mut buf).unwrap();
        self.give(from, &buf);
        let (to, bytes) = self.sent.first()?;
        assert_eq!(*to, from);
        Some(ChallengeView::parse(bytes).unwrap().cookie())
    }

    /// Hello and Join.
    pub(crate) fn join(&mut self, from: Peer, nonce: u64, wish: Wish<'_>) -> Answer {
        let bytes = self.join_bytes(from, nonce, wish);
        self.give(from, &bytes);
        self.answer(from)
    }

    pub(crate) fn join_bytes(&mut self, from: Peer, nonce: u64, wish: Wish<'_>) -> Vec<u8> {
        let cookie = self.hello(from, nonce, wish.client_type).unwrap_or_default();
        join_bytes(nonce, cookie, wish)
    }

    pub(crate) fn answer(&self, to: Peer) -> Answer {
        for (at, bytes) in &self.sent {
            match Packet::parse(bytes).unwrap() {
                Packet::Welcome(view) if *at == to => return welcome(view),
                Packet::Refuse(view) if *at == to => return Answer::Refused(view.reason()),
                _ => {}
            }
        }
        Answer::Nothing
    }

    pub(crate) fn act(
        &mut self,
        from: Peer,
        token: Token,
        seq: u32,
        action: Action<&str>,
    ) -> Option<DropReason> {
        let bytes = action_bytes(token, seq, action);
        self.give(from, &bytes)
    }

    pub(crate) fn leave(&mut self, from: Peer, token: Token) -> Option<DropReason> {
        self.give(from, &leave_bytes(token))
    }

    /// The only session there is.
    pub(crate) fn session(&self) -> SessionId {
        let mut sessions = self.server.sessions();
        let (id, _) = sessions.next().expect("a session");
        assert!(sessions.next().is_none(), "one session");
        id
    }
}

pub(crate) fn join_bytes(nonce: u64, cookie: [u8; 16], wish: Wish<'_>) -> Vec<u8> {
    let mut block = [0; 400];
    let mut tlv = TlvWriter::new(&mut block);
    if let Some(name) = wish.name {
        tlv.put(tag::NAME, name).unwrap();
    }
    tlv.put(tag::FEATURES, &wish.features.to_le_bytes()).unwrap();
    if let Some(token) = wish.token {
        tlv.put(tag::TOKEN, &token.0.to_le_bytes()).unwrap();
    }
    let client_type = ClientType(wish.client_type);
    let join = Join { client_type, nonce: Nonce(nonce), cookie, meta: tlv.finish() };
    let mut buf = vec![0; join.len()];
    join.emit(&mut buf).unwrap();
    buf
}

pub(crate) fn leave_bytes(token: Token) -> [u8; 15] {
    let mut buf = [0; 15];
    let leave = Leave { client_type: ClientType(0), token, reason: LeaveReason::QUIT };
    leave.emit(&mut buf).unwrap();
    buf
}

pub(crate) fn action_bytes(token: Token, sequence: u32, action: Action<&str>) -> Vec<u8> {
    let packet = ActionPacket {
        client_type: ClientType(0),
        token,
        sequence: Sequence::new(sequence),
        cache: [ChunkEntry::default(); 9],
        action,
    };
    let mut buf = vec![0; packet.len()];
    packet.emit(&mut buf).unwrap();
    buf
}

fn welcome(view: WelcomeView<'_>) -> Answer {
    Answer::Welcome {
        token: view.token(),
        entity: view.player().0,
        features: view.features(),
        next_event: view.next_event().map(|next| next.get()),
    }
}

pub(crate) fn refuse_text(bytes: &[u8]) -> String {
    RefuseView::parse(bytes).unwrap().text().to_owned()
}
