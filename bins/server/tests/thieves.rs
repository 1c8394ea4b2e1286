//! Copied tokens, recorded sessions, forged datagrams and amplification against the real program on
//! real sockets. A forger of a player's address is played by the player's own socket; one of the
//! server's address by a relay that the client takes for the server.

mod common;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use caves_game::client::ClientEvent;
use caves_session::caves::ClientStatus;
use caves_session::{Random, SplitMix};
use caves_wire::caves::{
    Challenge, ClientType, Echo, EchoView, EntityId, EventAck, Leave, LeaveReason, Nonce, Query,
    Refuse, RefuseReason, Sequence, State, Tick, Token, Welcome,
};
use caves_world::{Command, Direction};
use common::visitor::Visitor;
use common::{PATIENCE, ServerProcess, info, stranger};

/// No exception for this machine, and budgets that do not hide what would be answered.
const GENEROUS: &str = "[server]\nlisten = [\"127.0.0.1:0\"]\n[world]\nseed = 1\n[limits]\nexempt = []\n\
     strangers_per_second = 100000\nstrangers_burst = 100000\nstrangers_total_per_second = 1000000\n";
/// The budgets that there are, for everybody.
const STRICT: &str =
    "[server]\nlisten = [\"127.0.0.1:0\"]\n[world]\nseed = 1\n[limits]\nexempt = []\n";

fn at(host: u8) -> IpAddr {
    Ipv4Addr::new(127, 77, 0, host).into()
}

fn written(emit: impl FnOnce(&mut [u8]) -> Result<usize, caves_wire::EmitError>) -> Vec<u8> {
    let mut buf = vec![0; 1200];
    let len = emit(&mut buf).expect("fits");
    buf.truncate(len);
    buf
}

/// Somebody at an address of his own.
fn socket_at(from: IpAddr, server: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind((from, 0)).expect("an address of this machine");
    socket.connect(server).expect("a route to ourselves");
    socket
}

/// All that waits in a socket, in bytes.
fn drain(socket: &UdpSocket) -> usize {
    socket.set_nonblocking(true).expect("a socket of ours");
    let mut bytes = 0;
    let mut buf = [0; 2048];
    while let Ok(len) = socket.recv(&mut buf) {
        bytes += len;
    }
    socket.set_nonblocking(false).expect("a socket of ours");
    bytes
}

/// A server, and Ada in its caves.
fn with_ada(config: &str) -> (ServerProcess, Visitor) {
    let server = ServerProcess::spawn(config);
    let mut ada = Visitor::new(server.addrs[0], at(1), "Ada");
    ada.until(PATIENCE, Visitor::is_playable).expect("in the caves");
    (server, ada)
}

/// A blow at the rock and a step, there and back: each is executed, and in its turn. (Where she is
/// then depends on who stands in the way.)
fn plays_on(ada: &mut Visitor) {
    let executed = |ada: &Visitor| ada.client.session().executed().map(|(last, _)| last);
    let idle = |ada: &Visitor| {
        let session = ada.client.session();
        session.in_flight().next().is_none() && session.queued().next().is_none()
    };
    ada.until(PATIENCE, idle).expect("what was to be done before is done");
    for way in [Direction::East, Direction::West] {
        for command in [Command::Dig(way), Command::Move(way)] {
            let before = executed(ada);
            ada.client.act(command).expect("it plays");
            let done = |ada: &Visitor| idle(ada) && executed(ada) != before;
            ada.until(PATIENCE, done).expect("it is executed");
            if let (Some(before), Some(after)) = (before, executed(ada)) {
                assert_eq!(after, before.next(), "and nothing between");
            }
        }
    }
}

fn times_joined(ada: &Visitor) -> usize {
    let joined = |event: &&ClientEvent| matches!(event, ClientEvent::Joined { .. });
    ada.events.iter().filter(joined).count()
}

fn packets_with(token: Token) -> Vec<Vec<u8>> {
    let client_type = ClientType(0);
    let sequence = Sequence::new(0);
    let leave = |reason| Leave { client_type, token, reason: LeaveReason(reason) };
    let mut all = vec![
        written(|buf| Query { client_type, token, entity: EntityId(1) }.emit(buf)),
        written(|buf| EventAck { client_type, token, sequence }.emit(buf)),
    ];
    all.extend((0..10).map(|reason| written(|buf| leave(reason).emit(buf))));
    all
}

/// The number after `key` in the last line of a log, which tells what was dropped.
fn dropped(log: &str, key: &str) -> u64 {
    let (_, rest) = log.rsplit_once(&format!("{key} ")).unwrap_or_else(|| panic!("{key}: {log}"));
    rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().expect("a number")
}

#[test]
fn a_thief_and_a_forger_get_no_byte_and_the_player_plays_on() {
    let (mut server, mut ada) = with_ada(STRICT);
    let token = ada.client.session().token().expect("in a session");
    let thief = socket_at(at(2), server.addrs[0]);
    let mut stolen = 0;
    for _ in 0..20 {
        // All that she ever sent, but for Hello and Join, and all that could be made of her token.
        let own = ada.sent.iter().filter(|bytes| ![6, 8, 10].contains(&bytes[3])).cloned();
        let last: Vec<_> = own.collect::<Vec<_>>().into_iter().rev().take(5).collect();
        for bytes in packets_with(token).iter().chain(&last) {
            thief.send(bytes).expect("sent");
            stolen += 1;
        }
        // In her own name, with tokens that are wrong by a bit.
        for bit in 0..64 {
            for bytes in packets_with(Token(token.0 ^ (1 << bit))).iter().take(3) {
                ada.socket.send(bytes).expect("sent");
            }
        }
        plays_on(&mut ada);
    }
    assert_eq!(drain(&thief), 0);
    assert_eq!(times_joined(&ada), 1);
    ada.leave();
    assert_eq!(info(&stranger(server.addrs[0])).players, 0);
    assert_eq!(server.terminate().code(), Some(0));
    let log = server.wait_for_log("stopped");
    assert_eq!(dropped(&log, "address"), stolen, "{log}");
    // Two of her three Leaves come too late as well.
    let wrong = 20 * 64 * 3;
    assert!((wrong..wrong + 3).contains(&dropped(&log, "token")), "{log}");
}

#[test]
fn noise_and_floods_in_a_players_name_do_not_end_its_play() {
    let (server, mut ada) = with_ada(STRICT);
    let mut random = SplitMix::new(5);
    for round in 0..20u64 {
        for packet_type in 0..=255 {
            let len = random.next_u64() as usize % 300;
            let mut bytes = vec![0x4C, 0x52, 1, packet_type, 0, 0];
            bytes.extend((0..len).map(|_| random.next_u64() as u8));
            ada.socket.send(&bytes).expect("sent");
        }
        for stamp in 0..50 {
            let ping = written(|buf| Echo::ping(ClientType(0), stamp).emit(buf));
            ada.socket.send(&ping).expect("sent");
            let mut hello = vec![0x4C, 0x52, 1, 8, 0, 0];
            hello.extend((round * 50 + stamp).to_le_bytes());
            hello.resize(64, 0);
            ada.socket.send(&hello).expect("sent");
        }
        plays_on(&mut ada);
    }
    assert_eq!(times_joined(&ada), 1, "and without a recovery");
    // Another player of the same address: what strangers may ask is back after two seconds.
    ada.play(Duration::from_secs(2));
    let mut bob = Visitor::new(server.addrs[0], at(1), "Bob");
    bob.until(PATIENCE, Visitor::is_in).expect("let in");
}

#[test]
fn a_recorded_session_that_is_sent_again_begins_and_ends_nothing() {
    let (mut server, mut ada) = with_ada(GENEROUS);
    for round in 0..3 {
        ada.client.act(Command::Say(format!("round {round}"))).expect("it plays");
        plays_on(&mut ada);
    }
    // While she plays: from her address and from another.
    let thief = socket_at(at(2), server.addrs[0]);
    let mut sent = 0;
    for bytes in ada.sent.clone() {
        ada.socket.send(&bytes).expect("sent");
        thief.send(&bytes).expect("sent");
        sent += bytes.len();
    }
    let position = ada.client.mirror().me().expect("in the caves").pos;
    ada.play(Duration::from_millis(500));
    assert_eq!(ada.client.mirror().me().expect("in the caves").pos, position);
    plays_on(&mut ada);
    let said = ada.client.mirror().messages().iter().filter(|line| line.text.contains("round"));
    assert_eq!(said.count(), 3, "each was said once");
    ada.leave();
    let asker = stranger(server.addrs[0]);
    assert_eq!(info(&asker).players, 0);
    // When she is gone, and again when her cookie is old.
    drain(&ada.socket);
    for pause in [0, 11] {
        std::thread::sleep(Duration::from_secs(pause));
        let (mut came, mut went) = (0, 0);
        for bytes in &ada.sent {
            ada.socket.send(bytes).expect("sent");
            thief.send(bytes).expect("sent");
            came += bytes.len();
            sent += bytes.len();
            assert_eq!(info(&asker).players, 0);
            went += drain(&ada.socket);
        }
        assert!(went <= came, "{went} bytes for {came}");
    }
    assert!(drain(&thief) <= sent);
    assert_eq!(server.terminate().code(), Some(0));
    let log = server.wait_for_log("stopped");
    assert_eq!(log.matches(" joined ").count(), 1, "{log}");
    assert_eq!(log.matches(" left ").count(), 1, "{log}");
}

/// Every packet type and many lengths, from an address that never proves itself: each datagram is
/// answered by no more bytes than it has.
#[test]
fn no_datagram_of_a_stranger_is_answered_with_more_bytes() {
    let (server, ada) = with_ada(&format!(
        "{GENEROUS}[[ban]]\nname = \"Grimm\"\nreason = \"{}\"\n",
        "no ".repeat(60)
    ));
    let token = ada.client.session().token().expect("in a session");
    let socket = socket_at(at(9), server.addrs[0]);
    socket.set_read_timeout(Some(PATIENCE)).expect("not zero");
    let mut random = SplitMix::new(3);
    let mut answered = [0; 256];
    let mut stamp = 0;
    let mut ask = |bytes: &[u8]| {
        // The Pong comes behind all that was asked for before.
        stamp += 1;
        socket.send(bytes).expect("sent");
        let ping = written(|buf| Echo::ping(ClientType(0), stamp).emit(buf));
        socket.send(&ping).expect("sent");
        let mut went = 0;
        let mut buf = [0; 2048];
        loop {
            let len = socket.recv(&mut buf).expect("a Pong");
            if EchoView::parse(&buf[..len]).is_ok_and(|pong| pong.timestamp_ms() == stamp) {
                break;
            }
            went += len;
            answered[usize::from(buf[3])] += 1;
        }
        let kind = bytes.get(3).copied().unwrap_or(0);
        assert!(went <= bytes.len(), "{went} bytes for {} of type {kind}", bytes.len());
    };
    for version in [1, 2] {
        for packet_type in 0..=255u8 {
            for len in [0, 6, 8, 14, 15, 17, 18, 32, 33, 62, 64, 72, 74, 80, 256, 1200, 1201] {
                let body = if len % 2 == 0 { 0 } else { random.next_u64() as u8 };
                let mut bytes = vec![body; len];
                let shown = len.min(6);
                bytes[..shown].copy_from_slice(&[0x4C, 0x52, version, packet_type, 0, 0][..shown]);
                ask(&bytes);
            }
        }
    }
    for token in [token, Token(0), Token(7)] {
        for bytes in packets_with(token) {
            ask(&bytes);
        }
    }
    for bytes in ada.sent.clone() {
        ask(&bytes);
    }
    let kinds: Vec<usize> = (0..256).filter(|kind| answered[*kind] > 0).collect();
    // Pong, Challenge, Refuse, Info.
    assert_eq!(kinds, [7, 9, 12, 19]);
}

/// Between a client and its server: hands on, and says what it likes in the server's name.
struct Relay {
    to_client: UdpSocket,
    to_server: UdpSocket,
    client: Option<SocketAddr>,
}

impl Relay {
    fn new(server: SocketAddr) -> Self {
        let to_client = UdpSocket::bind((at(50), 0)).expect("an address of this machine");
        to_client.set_nonblocking(true).expect("a socket of ours");
        let to_server = socket_at(at(51), server);
        to_server.set_nonblocking(true).expect("a socket of ours");
        Self { to_client, to_server, client: None }
    }

    fn hand_on(&mut self) {
        let mut buf = [0; 2048];
        while let Ok((len, from)) = self.to_client.recv_from(&mut buf) {
            self.client = Some(from);
            let _ = self.to_server.send(&buf[..len]);
        }
        while let (Ok(len), Some(client)) = (self.to_server.recv(&mut buf), self.client) {
            let _ = self.to_client.send_to(&buf[..len], client);
        }
    }

    fn forge(&self, bytes: &[u8]) {
        let client = self.client.expect("it has spoken");
        self.to_client.send_to(bytes, client).expect("sent");
    }
}

/// Plays through the relay until something holds.
fn through(
    relay: &mut Relay,
    ada: &mut Visitor,
    patience: Duration,
    holds: impl Fn(&Visitor) -> bool,
) -> Option<Duration> {
    let start = Instant::now();
    while !holds(ada) {
        if start.elapsed() >= patience {
            return None;
        }
        ada.step();
        relay.hand_on();
    }
    Some(start.elapsed())
}

#[test]
fn forged_datagrams_in_the_servers_name_do_not_end_a_clients_play() {
    let server = ServerProcess::spawn(STRICT);
    let mut relay = Relay::new(server.addrs[0]);
    let addr = relay.to_client.local_addr().expect("it is bound");
    let mut ada = Visitor::new(addr, at(52), "Ada");
    through(&mut relay, &mut ada, PATIENCE, Visitor::is_playable).expect("in the caves");
    let token = ada.client.session().token().expect("in a session");
    let me = EntityId(ada.client.mirror().me().expect("in the caves").id.0);
    let (join, client_type) = (ada.sent.iter().find(|bytes| bytes[3] == 10), ClientType(0));
    let own = Nonce(u64::from_le_bytes(join.expect("a Join")[6..14].try_into().expect("eight")));
    for round in 0..60u32 {
        let tick = ada.client.tick().expect("in a session").get();
        let chunks = ada.client.session().manifest().expect("in a session");
        let tick = Tick::new(tick.wrapping_add(700 + round * 5000));
        let state = State { tick, chunks, player: me, entity_checksum: round };
        relay.forge(&written(|buf| state.emit(buf)));
        for nonce in [own, Nonce(round.into())] {
            let reason = RefuseReason(round as u8 % 12);
            relay.forge(&written(|buf| Refuse { nonce, reason, text: "no" }.emit(buf)));
            let challenge = Challenge { nonce, cookie: [1; 16], server_key: [0; 32] };
            relay.forge(&written(|buf| challenge.emit(buf)));
            let (token, player) = (Token(9), EntityId(1));
            let tick = Tick::new(0);
            let welcome = Welcome { nonce, token, player, tick, tick_rate: 10, meta: &[] };
            relay.forge(&written(|buf| welcome.emit(buf)));
        }
        let reason = LeaveReason(round as u8 % 8);
        let token = Token(token.0 ^ (1 << round));
        relay.forge(&written(|buf| Leave { client_type, token, reason }.emit(buf)));
        relay.forge(&written(|buf| Echo::pong(u64::from(round)).emit(buf)));
        through(&mut relay, &mut ada, Duration::from_millis(50), |_| false);
    }
    assert_eq!(ada.client.session().token(), Some(token));
    assert_eq!(times_joined(&ada), 1);
    // Her steps are executed and shown.
    let before = ada.client.mirror().me().expect("in the caves").pos;
    let walked = [Direction::East, Direction::South, Direction::West, Direction::North];
    let moved = walked.into_iter().any(|way| {
        let _ = ada.client.act(Command::Move(way));
        through(&mut relay, &mut ada, Duration::from_secs(2), |ada| {
            ada.client.mirror().me().is_some_and(|me| me.pos != before)
        })
        .is_some()
    });
    assert!(moved);
    // A State near enough to be believed: play goes on after a recovery (notes/security.md).
    let tick = ada.client.tick().expect("in a session").get();
    let chunks = ada.client.session().manifest().expect("in a session");
    let tick = Tick::new(tick.wrapping_add(300));
    let state = State { tick, chunks, player: me, entity_checksum: 1 };
    relay.forge(&written(|buf| state.emit(buf)));
    let healed = through(&mut relay, &mut ada, PATIENCE, |ada| times_joined(ada) == 2);
    assert!(healed.is_some());
    assert_eq!(ada.client.session().token(), Some(token), "the same session");
    let playing = |ada: &Visitor| {
        let now = ada.now();
        matches!(ada.client.status(now), ClientStatus::Playing { recovering: false, .. })
            && ada.is_playable()
    };
    through(&mut relay, &mut ada, PATIENCE, playing).expect("as before");
}
