//! How far the server's tables grow under attack, and what strangers get for their bytes: exact bounds,
//! since a stranger must not make a server allocate or send.

use std::collections::BTreeMap;
use std::time::Duration;

use caves_link::time::Instant;
use caves_wire::ferravex::{
    Cookie, EventAck, Hello, Input, InputFrame, InputSequence, Nonce, Tick, WelcomeView,
};

use super::admission::{CALLERS, WELCOMED};
use super::server::{ANSWERS, NEWS};
use super::{Server, ServerConfig, ServerEvent};
use crate::{DropReason, Peer, Random, SplitMix, StrangerLimits};

struct Site {
    server: Server,
    now: Instant,
    sent: Vec<(Peer, Vec<u8>)>,
    /// Bytes from and to every address.
    account: BTreeMap<Peer, (usize, usize)>,
    joined: usize,
}

fn peer(number: u32) -> Peer {
    let [a, b, c, d] = (0x0A00_0000 + number * 8191).to_be_bytes();
    Peer { socket: 0, addr: ([a, b, c, d], 9).into() }
}

fn hello(nonce: u64) -> Vec<u8> {
    let mut buf = vec![0; Hello::LEN];
    Hello { nonce: Nonce(nonce) }.emit(&mut buf).unwrap();
    buf
}

fn input(session: Cookie, sequence: u32) -> Vec<u8> {
    let frames = [InputFrame::neutral(InputSequence::new(sequence))];
    let mut buf = vec![0; 41];
    Input { session, frames: &frames }.emit(&mut buf).unwrap();
    buf
}

fn ack(session: Cookie, sequence: u64) -> Vec<u8> {
    let mut buf = vec![0; EventAck::LEN];
    EventAck { session, sequence }.emit(&mut buf).unwrap();
    buf
}

/// Everybody may ask as much as there is.
fn open() -> ServerConfig {
    let strangers = StrangerLimits {
        per_second: 1_000_000,
        burst: 1_000_000,
        total_per_second: 1_000_000,
        exempt: Vec::new(),
    };
    ServerConfig { strangers, ..ServerConfig::default() }
}

impl Site {
    fn new(config: ServerConfig) -> Self {
        let now = Instant::from_secs(1000);
        let server = Server::new(config, Box::new(SplitMix::new(5)), now);
        Self { server, now, sent: Vec::new(), account: BTreeMap::new(), joined: 0 }
    }

    fn give(&mut self, from: Peer, datagram: &[u8]) {
        self.server.handle_timeout(self.now);
        self.account.entry(from).or_default().0 += datagram.len();
        let _ = self.server.handle_datagram(self.now, from, datagram);
        while let Some(event) = self.server.poll_event() {
            self.joined += usize::from(matches!(event, ServerEvent::Joined { .. }));
        }
        self.sent.clear();
        let mut buf = [0; 1200];
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut buf) {
            self.account.entry(transmit.to).or_default().1 += transmit.len;
            self.sent.push((transmit.to, buf[..transmit.len].to_vec()));
        }
        let (callers, welcomed) = self.server.doorstep.len();
        assert!(callers <= CALLERS && welcomed <= WELCOMED);
        assert!(self.server.sessions.len() <= 32 && self.server.answers.len() <= ANSWERS);
    }

    /// The session of a stranger that says Hello twice.
    fn welcome(&mut self, from: Peer, nonce: u64) -> Option<Cookie> {
        self.give(from, &hello(nonce));
        self.give(from, &hello(nonce));
        let (to, bytes) = self.sent.first()?;
        assert_eq!(*to, from);
        Some(WelcomeView::parse(bytes).unwrap().session())
    }
}

#[test]
fn no_address_that_proved_nothing_gets_more_bytes_than_came_from_it() {
    let mut site = Site::new(open());
    let mut random = SplitMix::new(9);
    for _ in 0..100_000 {
        let draw = random.next_u64();
        let from = peer(draw as u32 % 100);
        let bytes = match draw >> 32 & 15 {
            0 => input(Cookie::new(draw | 1).unwrap(), 1),
            1 => ack(Cookie::new(draw | 1).unwrap(), 0),
            2 => b"FERRAVEX\x02".to_vec(),
            _ => hello(draw >> 40 & 1),
        };
        site.give(from, &bytes);
        let (received, sent) = site.account[&from];
        assert!(sent <= received, "{sent} bytes for {received}");
        site.now += Duration::from_micros(draw >> 50);
    }
    assert_eq!((site.joined, site.server.sessions.len()), (0, 0));
    let (received, sent) =
        site.account.values().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert!(sent * 2 > received, "it does answer: {sent} of {received}");
}

#[test]
fn hellos_from_ten_thousand_addresses_leave_a_bounded_doorstep_and_no_session() {
    let mut site = Site::new(ServerConfig::default());
    for number in 0..200_000 {
        site.give(peer(number % 10_000), &hello(number.into()));
        site.now += Duration::from_micros(50);
    }
    assert_eq!(site.server.sessions.len(), 0);
    // 10 s, 2,000 a second, and what was in hand.
    let looked_at = 200_000 - site.server.counters().dropped(DropReason::Budget);
    assert!((18_000..=22_000).contains(&looked_at), "{looked_at}");
}

#[test]
fn a_player_gets_in_while_strangers_flood_the_doorstep() {
    let mut site = Site::new(ServerConfig::default());
    let mut number = 0;
    // A thousand Hellos a second, in pairs that ask for a Welcome, from 5,000 addresses.
    let mut flood = |site: &mut Site, hellos: u32| {
        for _ in 0..hellos {
            number += 1;
            site.give(peer(1000 + number / 2 % 5000), &hello((number / 10_000).into()));
            site.now += Duration::from_millis(1);
        }
    };
    for round in 0..20 {
        flood(&mut site, 500);
        let player = peer(round);
        let session = site.welcome(player, 7).expect("a welcome");
        // The round trip takes a fifth of a second.
        flood(&mut site, 200);
        site.give(player, &input(session, 1));
        assert_eq!(site.joined, round as usize + 1);
        // It goes on playing.
        for seated in 0..=round {
            let (_, view) = site.server.sessions().nth(seated as usize).unwrap();
            let (from, cookie) = (view.peer(), view.0.welcome.session);
            site.give(from, &ack(cookie, 0));
        }
    }
    assert!(site.server.doorstep.len().1 >= WELCOMED - 1, "it was full all the time");
}

#[test]
fn one_address_has_eight_sessions_and_all_together_as_many_as_there_are_places() {
    let mut site = Site::new(open());
    let port = |port: u16| Peer { socket: 0, addr: ([192, 0, 2, 1], port).into() };
    for number in 1..=20 {
        if let Some(session) = site.welcome(port(number), 1) {
            site.give(port(number), &ack(session, 0));
        }
    }
    assert_eq!(site.server.sessions.len(), 8);
    for number in 0..60 {
        if let Some(session) = site.welcome(peer(number), 1) {
            site.give(peer(number), &ack(session, 0));
        }
    }
    assert_eq!((site.server.sessions.len(), site.joined), (32, 32));
    // All ids are told apart, and a place that is free is used again.
    let mut players: Vec<u8> =
        site.server.sessions().map(|(_, session)| session.player().0).collect();
    players.sort_unstable();
    players.dedup();
    assert_eq!(players.len(), 32);
    let (id, _) = site.server.sessions().next().unwrap();
    assert!(site.server.end(id) && !site.server.end(id));
    let session = site.welcome(peer(100), 1).expect("a place");
    site.give(peer(100), &input(session, 1));
    assert_eq!(site.joined, 33);
}

#[test]
fn a_thousand_sessions_one_after_the_other_leave_nothing() {
    let mut site = Site::new(open());
    for number in 0..1000 {
        let session = site.welcome(peer(1), number).expect("a welcome");
        site.give(peer(1), &input(session, 1));
        let (id, view) = site.server.sessions().next().unwrap();
        assert_eq!((view.newest_input(), view.events_pending()), (Some(InputSequence::new(1)), 0));
        site.server.send_event(site.now, id, b"x").unwrap();
        site.server.send_snapshot(site.now, id, Tick::new(1), &[]).unwrap();
        if number % 2 == 0 {
            site.now += Duration::from_secs(11);
        }
    }
    assert_eq!((site.joined, site.server.sessions.len()), (1000, 1));
    site.now += Duration::from_secs(11);
    site.server.handle_timeout(site.now);
    assert_eq!((site.server.sessions.len(), site.server.poll_timeout()), (0, None));
}

/// A caller that never asks for events or datagrams.
#[test]
fn what_nobody_fetches_is_bounded() {
    let mut site = Site::new(open());
    for number in 0..5000 {
        let _ = site.server.handle_datagram(site.now, peer(number), &hello(1));
        let _ = site.server.handle_datagram(site.now, peer(number), &hello(1));
    }
    assert_eq!(site.server.answers.len(), ANSWERS);
    assert_eq!(site.server.counters().dropped(DropReason::Full), 5000 - ANSWERS as u64);

    let mut site = Site::new(open());
    let mut buf = [0; 1200];
    for number in 0..NEWS as u64 {
        let _ = site.server.handle_datagram(site.now, peer(1), &hello(number));
        let _ = site.server.handle_datagram(site.now, peer(1), &hello(number));
        let len = site.server.poll_transmit(site.now, &mut buf).unwrap().len;
        let session = WelcomeView::parse(&buf[..len]).unwrap().session();
        let _ = site.server.handle_datagram(site.now, peer(1), &input(session, 1));
    }
    let news = std::iter::from_fn(|| site.server.poll_event()).count();
    // Each that begins ends the one before it: 1 and 512 times 2.
    assert_eq!(news, NEWS + 1);
    assert_eq!(site.server.sessions.len(), 1);
}
