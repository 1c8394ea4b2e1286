//! How far the server's tables grow under attack: exact bounds, since a stranger must not make a
//! server allocate (R28).

use std::time::Duration;

use caves_link::time::Instant;
use caves_wire::caves::{
    Action, ActionPacket, ChallengeView, ChunkEntry, ClientType, EntityId, Hello, Join,
    LeaveReason, Nonce, Sequence, Token,
};

use super::outbox::{ANSWERS, GOODBYES};
use super::{ClientEntry, Server, ServerConfig, ServerEvent};
use crate::{DropReason, Peer, Random, SplitMix, StrangerLimits};

const PLAYERS: usize = 32;
/// Addresses that attack.
const CROWD: u32 = 10_000;

struct Attack {
    server: Server,
    now: Instant,
    /// What the server sent last, to anybody.
    sent: Vec<(Peer, Vec<u8>)>,
    most_used: usize,
}

fn peer(number: u32) -> Peer {
    let [a, b, c, d] = (0x0A00_0000 + number * 8191).to_be_bytes();
    Peer { socket: 0, addr: ([a, b, c, d], 9).into() }
}

fn bytes(emit: impl FnOnce(&mut [u8]) -> Result<usize, caves_wire::EmitError>) -> Vec<u8> {
    let mut buf = vec![0; 1200];
    let len = emit(&mut buf).unwrap();
    buf.truncate(len);
    buf
}

fn hello(nonce: u64) -> Vec<u8> {
    let (client_type, nonce) = (ClientType::OFFICIAL, Nonce(nonce));
    bytes(|buf| Hello { client_type, nonce }.emit(buf))
}

/// As long as a Join can be: what is kept of it is bounded, too.
fn join(nonce: u64, cookie: [u8; 16]) -> Vec<u8> {
    let mut meta = Vec::new();
    for len in [255, 255, 255, 255, 138] {
        meta.extend([0x7F, len]);
        meta.resize(meta.len() + usize::from(len), b'x');
    }
    let (client_type, nonce) = (ClientType::OFFICIAL, Nonce(nonce));
    bytes(|buf| Join { client_type, nonce, cookie, meta: &meta }.emit(buf))
}

impl Attack {
    fn new(config: ServerConfig) -> Self {
        let now = Instant::from_secs(1000);
        let server = Server::new(config, Box::new(SplitMix::new(5)), now);
        Self { server, now, sent: Vec::new(), most_used: 0 }
    }

    /// Hands a datagram in and does what a caller does then.
    fn give(&mut self, from: Peer, datagram: &[u8]) {
        self.server.handle_timeout(self.now);
        let _ = self.server.handle_datagram(self.now, from, datagram);
        while let Some(event) = self.server.poll_event() {
            if let ServerEvent::Joined(joined) = event {
                self.server.admit(self.now, joined.session, EntityId(1));
            }
        }
        self.sent.clear();
        let mut buf = [0; 1200];
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut buf) {
            self.sent.push((transmit.to, buf[..transmit.len].to_vec()));
        }
        self.most_used = self.most_used.max(self.server.used.len());
        self.check();
    }

    /// The bounds of all that grows. The budgets' tables cannot: they are made whole.
    fn check(&self) {
        let server = &self.server;
        let most = server.config.max_players;
        assert!(server.sessions.len() <= most && server.sessions.iter().count() <= most);
        assert!(server.by_token.len() <= most && server.by_peer.len() <= most);
        assert!(server.by_name.len() <= most && server.by_account.len() <= most);
        assert!(server.timers.len() <= most && server.ready.len() <= most);
        assert!(server.left.len() <= server.registered.len());
        assert!(server.outbox.answers() <= ANSWERS && server.outbox.goodbyes() <= GOODBYES);
        assert!(server.events.is_empty());
    }

    fn cookie(&mut self, from: Peer, nonce: u64) -> Option<[u8; 16]> {
        self.give(from, &hello(nonce));
        let (_, challenge) = self.sent.iter().find(|(to, bytes)| *to == from && bytes[3] == 9)?;
        Some(ChallengeView::parse(challenge).unwrap().cookie())
    }

    fn pass(&mut self, micros: u64) {
        self.now += Duration::from_micros(micros);
    }
}

#[test]
fn hellos_and_forged_joins_from_ten_thousand_addresses_leave_nothing_at_all() {
    let mut attack = Attack::new(ServerConfig::default());
    for number in 0..200_000 {
        let from = peer(number % CROWD);
        attack.give(from, &hello(number.into()));
        attack.give(from, &join(number.into(), [number as u8; 16]));
        attack.pass(100);
    }
    let server = &attack.server;
    assert_eq!((server.sessions.len(), server.by_peer.len(), server.used.len()), (0, 0, 0));
    assert_eq!((server.outbox.answers(), server.outbox.goodbyes()), (0, 0));
    assert_eq!((server.timers.len(), server.ready.len()), (0, 0));
    // 20 s, 2,000 a second, and 2,000 that were in hand.
    let looked_at = 400_000 - server.counters.dropped(DropReason::Budget);
    assert!((40_000..=42_000).contains(&looked_at), "{looked_at}");
}

#[test]
fn ten_thousand_addresses_with_true_cookies_fill_the_places_and_no_more() {
    let config = ServerConfig { max_players: PLAYERS, ..ServerConfig::default() };
    let mut attack = Attack::new(config);
    for number in 0..100_000u32 {
        let from = peer(number % CROWD);
        if let Some(cookie) = attack.cookie(from, number.into()) {
            attack.give(from, &join(number.into(), cookie));
        }
        attack.pass(200);
    }
    assert_eq!(attack.server.sessions.len(), PLAYERS);
    // Sessions that nobody speaks for end after ten seconds, and a cookie is remembered for twenty;
    // a few are replaced from their own address before.
    assert!(attack.most_used <= 4 * PLAYERS, "{}", attack.most_used);
}

/// The fastest way to use cookies up: each Join replaces the session that stood there before.
#[test]
fn used_cookies_stay_below_their_table_at_the_pace_that_strangers_have() {
    let exempt = vec!["10.0.0.0/8".parse().unwrap()];
    let strangers = StrangerLimits { exempt, ..StrangerLimits::default() };
    let mut attack = Attack::new(ServerConfig { strangers, ..ServerConfig::default() });
    let from = peer(1);
    let (mut joined, mut cookie) = (0u64, None);
    for _ in 0..200_000 {
        match cookie {
            None => cookie = attack.cookie(from, joined),
            Some(known) => {
                attack.give(from, &join(joined, known));
                if attack.sent.iter().any(|(_, bytes)| bytes[3] == 11) {
                    joined += 1;
                    cookie = None;
                }
            }
        }
        attack.pass(250);
    }
    assert_eq!(attack.server.sessions.len(), 1);
    // A session takes two packets: 1,000 a second, and a cookie is remembered for 20 s.
    assert!((40_000..=52_000).contains(&joined), "{joined} in 50 s");
    assert!((15_000..=22_000).contains(&attack.most_used), "{}", attack.most_used);
}

/// A caller that never sends: what waits for it is bounded, and what is over that is counted.
#[test]
fn answers_that_nobody_fetches_are_bounded() {
    let limits = StrangerLimits { total_per_second: 1_000_000, ..StrangerLimits::default() };
    let mut attack = Attack::new(ServerConfig { strangers: limits, ..ServerConfig::default() });
    for number in 0..5000 {
        let _ = attack.server.handle_datagram(attack.now, peer(number), &hello(1));
        attack.check();
    }
    assert_eq!(attack.server.outbox.answers(), ANSWERS);
    assert_eq!(attack.server.counters.dropped(DropReason::Full), 5000 - ANSWERS as u64);
}

#[test]
fn goodbyes_are_bounded_however_many_sessions_end() {
    let exempt = vec!["10.0.0.0/8".parse().unwrap()];
    let strangers =
        StrangerLimits { total_per_second: 1_000_000, exempt, ..StrangerLimits::default() };
    let config = ServerConfig { max_players: 1000, strangers, ..ServerConfig::default() };
    let mut attack = Attack::new(config);
    for number in 0..GOODBYES as u32 + 1000 {
        let from = peer(number % 1000);
        let cookie = attack.cookie(from, number.into()).expect("a cookie");
        attack.give(from, &join(number.into(), cookie));
        let id = attack.server.by_peer[&from];
        attack.server.end(attack.now, id, LeaveReason::KICKED);
        while attack.server.poll_event().is_some() {}
        // Nobody fetches the second and third Leave.
        attack.check();
    }
    assert_eq!(attack.server.outbox.goodbyes(), GOODBYES);
}

/// Guessed tokens, and a registered one from outside its networks, are looked up and forgotten.
#[test]
fn a_hundred_thousand_tokens_leave_nothing() {
    let clients = vec![ClientEntry {
        client_type: ClientType(7),
        name: Some("Robo".into()),
        allow: true,
        token: Some(Token(1 << 40)),
        from: vec!["192.0.2.0/24".parse().unwrap()],
        tags: false,
    }];
    let mut attack = Attack::new(ServerConfig { clients, ..ServerConfig::default() });
    let mut random = SplitMix::new(8);
    for number in 0..100_000u32 {
        let token = if number % 2 == 0 { Token(1 << 40) } else { Token(random.next_u64()) };
        let packet = ActionPacket {
            client_type: ClientType(7),
            token,
            sequence: Sequence::new(number),
            cache: [ChunkEntry::default(); 9],
            action: Action::<&str>::NoOp,
        };
        attack.give(peer(number % CROWD), &bytes(|buf| packet.emit(buf)));
    }
    assert_eq!(attack.server.sessions.len(), 0);
    assert_eq!(attack.server.counters.dropped(DropReason::Token), 100_000);
    assert_eq!((attack.server.used.len(), attack.server.left.len()), (0, 0));
}
