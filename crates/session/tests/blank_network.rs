//! blank over a simulated network: whole clients and a whole server, time jumps from event to event.
#![cfg(feature = "blank")]

mod blank_common;

use std::time::Duration;

use blank_common::{START, Told, peer, seq_of};
use caves_link::time::Instant;
use caves_netsim::{Chance, LinkConfig, LinkId, Network};
use caves_session::blank::{
    Client, ClientConfig, ClientEnd, ClientEvent, ClientStatus, Left, Server, ServerConfig,
    ServerEvent,
};
use caves_session::{Peer, SplitMix, StrangerLimits};
use caves_wire::blank::{EntityId, HeaderView, Name, PacketType, Spawn};

const SERVER: u32 = 9;

/// What was lost of one direction, as its sender judges it, beside a plain set.
#[derive(Default)]
struct Watch {
    told: Told,
    /// The number of the last Login or Join, and whether it was known to be lost when the next went.
    last: Option<u16>,
    /// Logins or Joins sent again for a loss.
    again: usize,
    /// A Login came since, and is answered by the Join again.
    asked: bool,
}

impl Watch {
    /// Something was sent; a repetition has to follow from a loss and from nothing else.
    fn sent(&mut self, bytes: &[u8], what: PacketType) {
        if HeaderView::parse(bytes).unwrap().packet_type() != what {
            return;
        }
        if let Some(last) = self.last {
            let lost = self.told.is_lost(last);
            assert!(lost || self.asked, "{what} {last} is sent again and was not lost");
            self.again += usize::from(lost);
        }
        self.asked = false;
        self.last = Some(seq_of(bytes));
    }
}

struct Seat {
    client: Client,
    peer: Peer,
    up: LinkId,
    down: LinkId,
    events: Vec<(Instant, ClientEvent)>,
    logins: Watch,
    joins: Watch,
    /// When each side last heard the other.
    server_heard: Instant,
    client_heard: Instant,
    /// Datagrams sent, up and down.
    counts: [u64; 2],
}

struct World {
    now: Instant,
    server: Server,
    seats: Vec<Seat>,
    network: Network<Vec<u8>>,
    events: Vec<(Instant, ServerEvent)>,
}

impl World {
    fn new(seed: u64, clients: usize, link: LinkConfig) -> Self {
        let limits = StrangerLimits { per_second: 100, burst: 100, ..StrangerLimits::default() };
        let config = ServerConfig { strangers: limits, ..ServerConfig::default() };
        let mut network = Network::new(seed);
        let seats = (0..clients).map(|number| {
            let (up, down) = network.add_pair(link, link);
            let name = Name::new(&format!("player {number}"));
            Seat {
                client: Client::new(ClientConfig::new(peer(SERVER, 12354), name), START),
                peer: peer(100 + number as u32, 5000),
                up,
                down,
                events: Vec::new(),
                logins: Watch::default(),
                joins: Watch::default(),
                server_heard: START,
                client_heard: START,
                counts: [0; 2],
            }
        });
        let seats = seats.collect();
        let server = Server::new(config, Box::new(SplitMix::new(seed)), START);
        Self { now: START, server, seats, network, events: Vec::new() }
    }

    fn flush(&mut self) {
        let mut buf = [0; 500];
        while let Some(event) = self.server.poll_event() {
            if let ServerEvent::Login { session, .. } = event {
                let spawn = Spawn::at_origin(EntityId(session.slot() as u32 + 1));
                self.server.admit(session, spawn, Name::new("default"));
            }
            self.events.push((self.now, event));
        }
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut buf) {
            let bytes = buf[..transmit.len].to_vec();
            let seat = self.seats.iter_mut().find(|seat| seat.peer == transmit.to).unwrap();
            seat.joins.sent(&bytes, PacketType::JOIN);
            seat.counts[1] += 1;
            self.network.send(self.now.as_micros(), seat.down, bytes.len(), bytes);
        }
        for seat in &mut self.seats {
            while let Some(event) = seat.client.poll_event() {
                seat.events.push((self.now, event));
            }
            while let Some(len) = seat.client.poll_transmit(self.now, &mut buf) {
                let bytes = buf[..len].to_vec();
                seat.logins.sent(&bytes, PacketType::LOGIN);
                seat.counts[0] += 1;
                self.network.send(self.now.as_micros(), seat.up, bytes.len(), bytes);
            }
        }
    }

    /// One event, if any comes by `until`.
    fn step(&mut self, until: Instant) -> bool {
        self.flush();
        let timeouts = self.seats.iter().filter_map(|seat| seat.client.poll_timeout());
        let timeouts = timeouts.chain(self.server.poll_timeout());
        let arrival = self.network.next_arrival().map(Instant::from_micros);
        let Some(next) = timeouts.chain(arrival).min().filter(|next| *next <= until) else {
            self.now = until;
            return false;
        };
        assert!(next >= self.now);
        self.now = next;
        while let Some((link, bytes)) = self.network.poll(self.now.as_micros()) {
            let seat = self.seats.iter_mut().find(|s| s.up == link || s.down == link).unwrap();
            if link == seat.up {
                seat.joins.told.hear(&bytes);
                seat.joins.asked |= bytes[12] == PacketType::LOGIN.0;
                seat.server_heard = self.now;
                self.server.handle_datagram(self.now, seat.peer, &bytes);
            } else {
                seat.logins.told.hear(&bytes);
                seat.client_heard = self.now;
                seat.client.handle_datagram(self.now, peer(SERVER, 12354), &bytes);
            }
            self.flush();
        }
        self.server.handle_timeout(self.now);
        for seat in &mut self.seats {
            seat.client.handle_timeout(self.now);
        }
        true
    }

    fn until(&mut self, until: Instant) {
        while self.step(until) {}
    }

    fn playing(&self) -> usize {
        let playing = |seat: &&Seat| matches!(seat.client.status(), ClientStatus::Playing(_));
        self.seats.iter().filter(playing).count()
    }
}

const LOSSY: LinkConfig = LinkConfig {
    delay: Duration::from_millis(30),
    loss: Chance::percent(25),
    ..LinkConfig::PERFECT
};

/// A quarter of everything is lost, each way. A Login and a Join are repeated when they are judged
/// lost, and at no other time.
#[test]
fn logins_succeed_over_a_network_that_loses_a_quarter_each_way() {
    let (mut players, mut logins, mut joins, mut slowest) = (0, 0, 0, Duration::ZERO);
    for seed in 0..25 {
        let mut world = World::new(seed, 8, LOSSY);
        world.until(START + Duration::from_secs(119));
        assert_eq!((world.playing(), world.server.players()), (8, 8), "seed {seed}");
        for seat in &world.seats {
            let (at, event) = seat.events.first().unwrap();
            assert!(matches!(event, ClientEvent::Joined(_)), "{event:?}");
            slowest = slowest.max(at.saturating_since(START));
            players += 1;
            logins += seat.logins.again;
            joins += seat.joins.again;
        }
    }
    // Of 200, one in four loses its first Login, one in three one or more: 67 repetitions are to be
    // expected, and as many of Joins.
    let told = format!("{players} play, {logins} Logins and {joins} Joins again, {slowest:?}");
    assert_eq!(players, 200, "{told}");
    assert!((40..=95).contains(&logins) && (40..=95).contains(&joins), "{told}");
    // Each repetition costs 33 numbers, some 17 s.
    assert!(slowest > Duration::from_secs(17), "{told}");
}

#[test]
fn reordering_and_repetition_lose_nobody_and_judge_nothing_lost() {
    let link = LinkConfig {
        delay: Duration::from_millis(20),
        jitter: Duration::from_millis(1600),
        duplicate: Chance::percent(20),
        ..LinkConfig::PERFECT
    };
    for seed in 0..10 {
        let mut world = World::new(seed, 6, link);
        world.until(START + Duration::from_secs(90));
        assert_eq!((world.playing(), world.server.players()), (6, 6), "seed {seed}");
        for seat in &world.seats {
            assert_eq!(seat.events.len(), 1, "seed {seed}: {:?}", seat.events);
            assert_eq!(seat.logins.again, 0, "nothing was lost");
        }
    }
}

/// A cut network: each side ends exactly 10 s after it last heard the other.
#[test]
fn sessions_end_in_time_when_the_network_is_cut() {
    for seed in 0..10 {
        let mut world = World::new(seed, 4, LOSSY);
        world.until(START + Duration::from_secs(50));
        let down = LinkConfig { down: true, ..LOSSY };
        let players = world.server.players();
        assert!(players > 0);
        for seat in &world.seats {
            world.network.set_config(seat.up, down);
            world.network.set_config(seat.down, down);
        }
        world.until(START + Duration::from_secs(61));
        assert_eq!((world.server.players(), world.server.guests()), (0, 0));
        let silent = |event: &&(Instant, ServerEvent)| {
            matches!(event.1, ServerEvent::Left { why: Left::Silence, .. })
        };
        assert_eq!(world.events.iter().filter(silent).count(), players);
        for seat in &world.seats {
            let (at, event) = seat.events.last().unwrap();
            assert_eq!(event, &ClientEvent::Ended(ClientEnd::Silence));
            assert_eq!(*at, seat.client_heard + Duration::from_secs(10));
            let left = world.events.iter().filter(silent).find_map(|(at, event)| match event {
                ServerEvent::Left { peer, .. } if *peer == seat.peer => Some(*at),
                _ => None,
            });
            assert!(left.is_none_or(|at| at == seat.server_heard + Duration::from_secs(10)));
        }
        assert_eq!(world.server.poll_timeout(), None, "nothing is left behind");
    }
}

/// One goodbye of three gets through, and frees the name for the next one of the same name.
#[test]
fn those_who_leave_are_gone_and_their_names_free() {
    let mut world = World::new(3, 8, LinkConfig { loss: Chance::percent(5), ..LOSSY });
    world.until(START + Duration::from_secs(58));
    let players = world.playing();
    for seat in &mut world.seats {
        seat.client.leave(world.now);
    }
    world.until(START + Duration::from_secs(59));
    assert_eq!((world.server.players(), players), (0, 8));
    let quits = world
        .events
        .iter()
        .filter(|(_, event)| matches!(event, ServerEvent::Left { why: Left::Quit, .. }));
    assert_eq!(quits.count(), 8);
    assert!(world.seats.iter().all(|seat| seat.client.poll_timeout().is_none()));
}

/// Both sides start three numbers before the end and pass it twice: nothing is judged lost, dropped
/// or repeated by that.
#[cfg(feature = "testing")]
#[test]
fn numbers_pass_their_end_twice() {
    use caves_wire::blank::Seq;

    let first = Seq::new(65_533);
    let mut world =
        World::new(1, 1, LinkConfig { delay: Duration::from_millis(30), ..LinkConfig::PERFECT });
    world.server.number_from(first);
    world.seats[0].client.number_from(first);
    // 3 + 65536 and some, at two a second.
    world.until(START + Duration::from_secs(33_000));
    let seat = &world.seats[0];
    assert!(seat.counts.iter().all(|count| *count > 3 + 65_536), "{:?}", seat.counts);
    assert_eq!((world.playing(), world.server.players()), (1, 1));
    assert_eq!((seat.events.len(), world.events.len()), (1, 1));
    assert_eq!((seat.logins.again, seat.joins.again), (0, 0));
    assert_eq!(seat.client.counters().dropped_in_all(), 0);
    assert_eq!(world.server.counters().dropped_in_all(), 0);
    // The end itself is noticed there as anywhere.
    world.seats[0].client.leave(world.now);
    world.until(START + Duration::from_secs(33_001));
    assert_eq!(world.server.players(), 0);
}

/// Joins that are lost before the end of the numbers are judged, and sent again, after it.
#[cfg(feature = "testing")]
#[test]
fn losses_across_the_end_of_the_numbers_are_judged() {
    use caves_wire::blank::Seq;

    let perfect = LinkConfig { delay: Duration::from_millis(30), ..LinkConfig::PERFECT };
    let mut again = 0;
    for seed in 0..4 {
        let mut world = World::new(seed, 1, perfect);
        // The highest that is ever drawn, so the end is 32,769 datagrams away.
        world.server.number_from(Seq::new(32_766));
        world.until(START + Duration::from_millis(500 * 32_740));
        let ServerEvent::Login { session, .. } = world.events[0].1 else { panic!("no login") };
        let seat = &world.seats[0];
        assert!((32_700..32_769).contains(&seat.counts[1]), "{}", seat.counts[1]);
        world.network.set_config(seat.up, LOSSY);
        world.network.set_config(seat.down, LOSSY);
        for entity in 100..130 {
            // Another world, by another Join, every two seconds.
            world.server.admit(session, Spawn::at_origin(EntityId(entity)), Name::new("w"));
            world.seats[0].joins.asked = true;
            world.until(world.now + Duration::from_secs(2));
        }
        world.until(world.now + Duration::from_secs(119));
        let seat = &world.seats[0];
        assert!(seat.counts[1] > 32_769 + 33);
        let ClientStatus::Playing(joined) = seat.client.status() else { panic!("not playing") };
        assert_eq!(joined.entity(), EntityId(129));
        again += seat.joins.again;
    }
    assert!(again > 0, "none was lost");
}
