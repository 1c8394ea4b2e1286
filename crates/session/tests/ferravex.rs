//! Whole sessions of ferravex 2 over a network that loses, doubles, swaps and delays; time jumps from
//! one deadline to the next.
#![cfg(feature = "ferravex")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use caves_link::time::Instant;
use caves_netsim::{Chance, LinkConfig, LinkId, Network};
use caves_session::ferravex::{
    Client, ClientConfig, ClientEnd, ClientEvent, ClientReceived, ClientStatus, Controls,
    EventError, Left, PushError, Server, ServerConfig, ServerEvent, ServerReceived, SessionId,
    SnapshotError,
};
use caves_session::{DropReason, Peer, SplitMix};
use caves_wire::ferravex::{
    Cookie, Event, EventAck, Hello, Input, InputFrame, InputSequence, Nonce, Packet, Player,
    PlayerId, Snapshot, Tick, Welcome,
};

/// Three before the numbers of ticks and inputs start over.
const NEAR_END: u32 = u32::MAX - 2;

/// A third is lost, a tenth doubled, a fifth held back; 40 to 70 ms a way.
const BAD: LinkConfig = LinkConfig {
    delay: Duration::from_millis(40),
    jitter: Duration::from_millis(30),
    loss: Chance::percent(30),
    duplicate: Chance::percent(10),
    reorder: Chance::percent(20),
    reorder_by: Duration::from_millis(120),
    ..LinkConfig::PERFECT
};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn peer(port: u16) -> Peer {
    Peer { socket: 0, addr: ([192, 0, 2, 1], port).into() }
}

fn player(id: PlayerId, x: f32) -> Player {
    Player { id, position: [x, 0.0, 0.0], velocity: [0.0; 3], yaw: 0.0, health: 100 }
}

struct End {
    client: Client,
    up: LinkId,
    down: LinkId,
    peer: Peer,
    /// What came out of it.
    events: Vec<(u64, Box<[u8]>)>,
    ticks: Vec<Tick>,
    end: Option<ClientEnd>,
    joined: u32,
    /// Every input frame by its number.
    pushed: BTreeMap<u32, f32>,
}

/// A server, its clients, and what everybody told.
struct World {
    now: Instant,
    network: Network<Vec<u8>>,
    server: Server,
    ends: Vec<End>,
    joined: Vec<(SessionId, Peer)>,
    left: Vec<(SessionId, Left)>,
    /// Frames that the server handed on, by session, in order.
    used: BTreeMap<SessionId, Vec<InputFrame>>,
}

impl World {
    fn new(seed: u64, config: ServerConfig) -> Self {
        let now = Instant::from_secs(100);
        Self {
            now,
            network: Network::new(seed),
            server: Server::new(config, Box::new(SplitMix::new(seed)), now),
            ends: Vec::new(),
            joined: Vec::new(),
            left: Vec::new(),
            used: BTreeMap::new(),
        }
    }

    fn connect(&mut self, link: LinkConfig) -> usize {
        let place = self.ends.len();
        let (up, down) = self.network.add_pair(link, link);
        self.ends.push(End {
            client: Self::client(self.now, place as u64),
            up,
            down,
            peer: peer(5000 + place as u16),
            events: Vec::new(),
            ticks: Vec::new(),
            end: None,
            joined: 0,
            pushed: BTreeMap::new(),
        });
        place
    }

    fn client(now: Instant, seed: u64) -> Client {
        let config =
            ClientConfig { first_input: InputSequence::new(NEAR_END), ..ClientConfig::default() };
        Client::new(config, Box::new(SplitMix::new(1000 + seed)), now)
    }

    fn micros(&self) -> u64 {
        self.now.as_micros()
    }

    /// Everything that is due now.
    fn settle(&mut self) {
        self.server.handle_timeout(self.now);
        for place in 0..self.ends.len() {
            self.ends[place].client.handle_timeout(self.now);
        }
        loop {
            while let Some((link, bytes)) = self.network.poll(self.micros()) {
                self.arrive(link, &bytes);
            }
            self.tell();
            if !self.send() {
                break;
            }
        }
    }

    fn arrive(&mut self, link: LinkId, bytes: &[u8]) {
        let end = self.ends.iter_mut().find(|end| end.up == link || end.down == link).unwrap();
        if end.down == link {
            if let ClientReceived::Snapshot(view) = end.client.handle_datagram(self.now, bytes) {
                end.ticks.push(view.tick());
            }
        } else if let ServerReceived::Input { session, frames } =
            self.server.handle_datagram(self.now, end.peer, bytes)
        {
            self.used.entry(session).or_default().extend(frames.iter());
        }
    }

    fn tell(&mut self) {
        while let Some(event) = self.server.poll_event() {
            match event {
                ServerEvent::Joined { session, peer, .. } => self.joined.push((session, peer)),
                ServerEvent::Left { session, why, .. } => self.left.push((session, why)),
                _ => unreachable!(),
            }
        }
        for end in &mut self.ends {
            while let Some(event) = end.client.poll_event() {
                match event {
                    ClientEvent::Joined { .. } => end.joined += 1,
                    ClientEvent::Event { sequence, payload } => {
                        end.events.push((sequence, payload));
                    }
                    ClientEvent::Ended(why) => end.end = Some(why),
                    _ => unreachable!(),
                }
            }
        }
    }

    /// Whether anything was sent.
    fn send(&mut self) -> bool {
        let (mut buf, mut any) = ([0; 1200], false);
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut buf) {
            let to = self.ends.iter().find(|end| end.peer == transmit.to).unwrap().down;
            self.network.send(self.now.as_micros(), to, transmit.len, buf[..transmit.len].to_vec());
            any = true;
        }
        for end in &mut self.ends {
            while let Some(len) = end.client.poll_transmit(self.now, &mut buf) {
                self.network.send(self.now.as_micros(), end.up, len, buf[..len].to_vec());
                any = true;
            }
        }
        any
    }

    /// Lets time pass, from one deadline to the next; each lies in the future.
    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        self.settle();
        loop {
            let clients = self.ends.iter().map(|end| end.client.poll_timeout());
            let arrival = self.network.next_arrival().map(Instant::from_micros);
            let next = clients.chain([self.server.poll_timeout(), arrival]).flatten().min();
            let Some(next) = next.filter(|next| *next <= until) else { break };
            assert!(next > self.now, "a deadline that nobody meets");
            self.now = next;
            self.settle();
        }
        self.now = until;
        self.settle();
    }

    fn session(&self, place: usize) -> Option<SessionId> {
        let mut sessions = self.server.sessions();
        sessions.find(|(_, view)| view.peer() == self.ends[place].peer).map(|(id, _)| id)
    }

    fn join(&mut self, link: LinkConfig) -> (usize, SessionId) {
        let place = self.connect(link);
        for _ in 0..100 {
            self.pass(ms(100));
            if let Some(id) = self.session(place) {
                return (place, id);
            }
        }
        panic!("nobody got in");
    }

    /// One step of a game: an input of each client, a snapshot for each session.
    fn step(&mut self, tick: u32) {
        for end in &mut self.ends {
            let move_x = (tick % 1000) as f32;
            if let Ok(number) =
                end.client.push_input(self.now, Controls { move_x, ..Controls::default() })
            {
                end.pushed.insert(number.get(), move_x);
            }
        }
        let ids: Vec<SessionId> = self.server.sessions().map(|(id, _)| id).collect();
        let players: Vec<Player> =
            self.server.sessions().map(|(_, view)| player(view.player(), tick as f32)).collect();
        self.server.set_tick(Tick::new(tick));
        for id in ids {
            self.server.send_snapshot(self.now, id, Tick::new(tick), &players).unwrap();
        }
        self.pass(ms(50));
    }
}

/// Numbers counted from the first, over the end of 32 bits.
fn count(sequence: InputSequence) -> u32 {
    sequence.distance_from(InputSequence::new(NEAR_END))
}

fn check_inputs(world: &World, place: usize, id: SessionId) {
    let used = &world.used[&id];
    let view = world.server.session(id).unwrap();
    let numbers: Vec<u32> = used.iter().map(|frame| count(frame.sequence)).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "each once, in order");
    assert_eq!(view.inputs_used(), numbers.len() as u64);
    // Those that are missing between the first and the last are just those that are said to be.
    let span = u64::from(numbers[numbers.len() - 1] - numbers[0]) + 1;
    assert_eq!(view.inputs_missed(), span - numbers.len() as u64);
    // The content is what the client pushed, but for the frame of nothing before the first.
    for frame in used {
        let pushed = world.ends[place].pushed.get(&frame.sequence.get());
        assert_eq!(*pushed.unwrap_or(&0.0), frame.move_x, "{}", frame.sequence);
    }
}

#[test]
fn everything_arrives_over_a_bad_network_once_and_in_order_while_all_counters_start_over() {
    let (mut used, mut missed) = (0, 0);
    for seed in 0..12 {
        let mut world = World::new(seed, ServerConfig::default());
        let places: Vec<(usize, SessionId)> = (0..3).map(|_| world.join(BAD)).collect();
        let mut sent = vec![Vec::new(); places.len()];
        for step in 0..400u32 {
            for (place, id) in &places {
                if step % 3 != 0 {
                    let payload = format!("{place} says {step}").into_bytes();
                    let number = world.server.send_event(world.now, *id, &payload).unwrap();
                    sent[*place].push((number, payload.into_boxed_slice()));
                }
            }
            world.step(NEAR_END.wrapping_add(step));
        }
        world.pass(Duration::from_secs(5));
        for (place, id) in places {
            let end = &world.ends[place];
            assert_eq!(end.events, sent[place], "seed {seed}");
            assert!(sent[place].iter().map(|(number, _)| *number).eq(0..266));
            assert_eq!(world.server.session(id).unwrap().events_pending(), 0);
            check_inputs(&world, place, id);
            let view = world.server.session(id).unwrap();
            used += view.inputs_used();
            missed += view.inputs_missed();
            // The last one is repeated until it is acknowledged, and no snapshot followed it since.
            assert_eq!(count(view.newest_input().unwrap()), count_last(end), "seed {seed}");
            // Snapshots: newest wins, over the end of their numbers.
            assert!(end.ticks.windows(2).all(|pair| pair[1].is_newer_than(pair[0])));
            // 70 % arrive, and of these those that none newer passed.
            assert!(end.ticks.len() > 160, "{}", end.ticks.len());
            assert!(end.ticks.iter().any(|tick| tick.get() < 400), "it started over");
            assert_eq!((end.joined, end.end), (1, None));
        }
        assert_eq!(world.joined.len(), 3);
        let stats = world.network.total();
        assert!(stats.lost * 4 > stats.sent, "a third is lost");
        assert!(world.left.is_empty(), "{:?}", world.left);
    }
    // Six packets have each frame. 0.3^6 is 7 in 10,000; and a packet that was held back may come when
    // a seventh has made its frames old. Without the redundancy it would be 3,000.
    assert!(used > 14_000 && missed * 10_000 < used * 30, "{missed} missed of {used}");
}

fn count_last(end: &End) -> u32 {
    end.pushed.keys().map(|number| count(InputSequence::new(*number))).max().unwrap()
}

#[test]
fn a_frame_is_acknowledged_and_an_older_snapshot_takes_nothing_back() {
    let mut world = World::new(1, ServerConfig::default());
    let (place, id) = world.join(LinkConfig::LAN);
    world.step(7);
    world.step(8);
    world.step(9);
    let end = &mut world.ends[place];
    let acked = end.client.acknowledged().unwrap();
    assert_eq!(count(acked), count_last(end) - 1, "the ninth is on its way");
    assert_eq!(end.client.unacknowledged(), 1);
    // An old snapshot that comes late acknowledges less, and shows what is past.
    let session = end.client.session().unwrap();
    let mut buf = [0; 1200];
    let mut late = |tick: u32, ack: u32| {
        let (tick, ack) = (Tick::new(tick), Some(InputSequence::new(ack)));
        let len = Snapshot { session, tick, ack, players: &[] }.emit(&mut buf).unwrap();
        end.client.handle_datagram(world.now, &buf[..len]);
        (end.client.tick().unwrap().get(), end.client.acknowledged().unwrap())
    };
    assert_eq!(late(8, NEAR_END), (9, acked));
    // Newer, but it takes back what was acknowledged, or tells of what was never sent.
    assert_eq!(late(10, NEAR_END), (10, acked));
    assert_eq!(late(11, acked.advance(50).get()), (11, acked));
    assert_eq!(world.server.session(id).unwrap().inputs_missed(), 0);
}

/// A client that is talked to datagram by datagram.
struct Solo {
    client: Client,
    now: Instant,
    session: Cookie,
}

impl Solo {
    fn new() -> Self {
        let now = Instant::from_secs(5);
        let mut client = Client::new(ClientConfig::default(), Box::new(SplitMix::new(3)), now);
        let session = Cookie::new(77).unwrap();
        let mut buf = [0; 1200];
        let len = client.poll_transmit(now, &mut buf).unwrap();
        let Ok(Packet::Hello(hello)) = Packet::parse(&buf[..len]) else { panic!() };
        let (nonce, player, tick) = (hello.nonce(), PlayerId(4), Tick::new(1));
        let len = Welcome { nonce, session, player, tick }.emit(&mut buf).unwrap();
        client.handle_datagram(now, &buf[..len]);
        assert_eq!(client.player(), Some(player));
        assert!(client.poll_event().is_some());
        Self { client, now, session }
    }

    fn event(&mut self, sequence: u64, payload: &[u8]) -> Option<DropReason> {
        let mut buf = [0; 1200];
        let len = Event { session: self.session, sequence, payload }.emit(&mut buf).unwrap();
        match self.client.handle_datagram(self.now, &buf[..len]) {
            ClientReceived::Dropped(reason) => Some(reason),
            _ => None,
        }
    }

    /// The acknowledgements that it sends.
    fn acks(&mut self) -> Vec<u64> {
        let (mut buf, mut acks) = ([0; 1200], Vec::new());
        while let Some(len) = self.client.poll_transmit(self.now, &mut buf) {
            if let Ok(Packet::EventAck(ack)) = Packet::parse(&buf[..len]) {
                acks.push(ack.sequence());
            }
        }
        acks
    }

    fn told(&mut self) -> Vec<u64> {
        let events = std::iter::from_fn(|| self.client.poll_event());
        events
            .map(|event| match event {
                ClientEvent::Event { sequence, .. } => sequence,
                other => panic!("{other:?}"),
            })
            .collect()
    }
}

#[test]
fn a_client_acknowledges_what_lies_in_its_window_again_and_again_and_nothing_else() {
    let mut solo = Solo::new();
    assert_eq!(solo.event(3, b"d"), None);
    assert_eq!(solo.event(3, b"other"), None);
    assert_eq!(solo.event(255, b"z"), None);
    assert_eq!(solo.event(256, b"far"), Some(DropReason::Full));
    assert_eq!(solo.event(3 + (1 << 32), b"far"), Some(DropReason::Full));
    assert_eq!(solo.acks(), [3, 255]);
    assert_eq!(solo.told(), []);
    for sequence in [1, 2, 0] {
        assert_eq!(solo.event(sequence, b"x"), None);
    }
    let first = solo.client.poll_event();
    assert!(matches!(first, Some(ClientEvent::Event { sequence: 0, .. })));
    assert_eq!(solo.told(), [1, 2, 3]);
    assert_eq!(solo.acks(), [1, 2, 0]);
    // Delivered, and its acknowledgement lost: once more. The window has moved.
    assert_eq!((solo.event(0, b"x"), solo.event(259, b"y")), (None, None));
    assert_eq!(solo.acks(), [0, 259]);
    assert_eq!(solo.told(), []);
}

#[test]
fn a_client_takes_the_first_welcome_of_its_own_attempt_alone() {
    let mut solo = Solo::new();
    let mut buf = [0; 1200];
    for nonce in [0, 5] {
        let welcome = Welcome {
            nonce: Nonce(nonce),
            session: Cookie::new(78).unwrap(),
            player: PlayerId(9),
            tick: Tick::new(1),
        };
        let len = welcome.emit(&mut buf).unwrap();
        let received = solo.client.handle_datagram(solo.now, &buf[..len]);
        assert!(matches!(received, ClientReceived::Dropped(DropReason::Unasked)));
    }
    assert_eq!(solo.client.session(), Some(solo.session));
    // And no other session's packets.
    let other = Cookie::new(78).unwrap();
    let len = Event { session: other, sequence: 0, payload: b"x" }.emit(&mut buf).unwrap();
    let received = solo.client.handle_datagram(solo.now, &buf[..len]);
    assert!(matches!(received, ClientReceived::Dropped(DropReason::Token)));
    let len = Hello { nonce: Nonce(1) }.emit(&mut buf).unwrap();
    let received = solo.client.handle_datagram(solo.now, &buf[..len]);
    assert!(matches!(received, ClientReceived::Dropped(DropReason::PacketType)));
    let received = solo.client.handle_datagram(solo.now, b"FERRAVEX\x01\x03");
    assert!(matches!(received, ClientReceived::Dropped(DropReason::Version)));
}

#[test]
fn a_welcome_for_another_attempt_begins_no_session() {
    let now = Instant::from_secs(5);
    let mut client = Client::new(ClientConfig::default(), Box::new(SplitMix::new(3)), now);
    let mut buf = [0; 1200];
    let len = client.poll_transmit(now, &mut buf).unwrap();
    let Ok(Packet::Hello(hello)) = Packet::parse(&buf[..len]) else { panic!() };
    let own = hello.nonce().0;
    let mut welcome = |nonce| {
        let (session, player, tick) = (Cookie::new(9).unwrap(), PlayerId(1), Tick::new(1));
        let nonce = Nonce(nonce);
        let len = Welcome { nonce, session, player, tick }.emit(&mut buf).unwrap();
        let received = client.handle_datagram(now, &buf[..len]);
        (matches!(received, ClientReceived::Dropped(DropReason::Unasked)), client.status(now))
    };
    for other in [0, own ^ 1, own ^ 1 << 63] {
        assert_eq!(welcome(other), (true, ClientStatus::Joining));
    }
    assert_eq!(welcome(own), (false, ClientStatus::Playing { silence: Duration::ZERO }));
}

#[test]
fn inputs_carry_the_last_six_frames_and_refuse_a_seventh_that_was_not_sent() {
    let mut solo = Solo::new();
    let mut buf = [0; 1200];
    let mut frames = |client: &mut Client, now| {
        let len = client.poll_transmit(now, &mut buf)?;
        let Ok(Packet::Input(input)) = Packet::parse(&buf[..len]) else { panic!() };
        Some(input.frames().map(|frame| frame.sequence.get()).collect::<Vec<_>>())
    };
    for n in 0..9u32 {
        let pushed = solo.client.push_input(solo.now, Controls::default());
        assert_eq!(pushed, Ok(InputSequence::new(n)));
        let expected: Vec<u32> = (n.saturating_sub(5)..=n).collect();
        assert_eq!(frames(&mut solo.client, solo.now), Some(expected));
        assert_eq!(frames(&mut solo.client, solo.now), None);
    }
    // Not acknowledged: repeated after 100 ms.
    assert_eq!(solo.client.poll_timeout(), Some(solo.now + ms(100)));
    solo.now += ms(100);
    assert_eq!(frames(&mut solo.client, solo.now), Some((3..=8).collect()));
    for _ in 0..6 {
        solo.client.push_input(solo.now, Controls::default()).unwrap();
    }
    assert_eq!(solo.client.push_input(solo.now, Controls::default()), Err(PushError::Full));
    let wrong = Controls { yaw: f32::NAN, ..Controls::default() };
    assert_eq!(solo.client.push_input(solo.now, wrong), Err(PushError::NotFinite));
    assert_eq!(frames(&mut solo.client, solo.now), Some((9..=14).collect()));
    solo.client.leave();
    assert_eq!(solo.client.push_input(solo.now, Controls::default()), Err(PushError::NotPlaying));
}

/// A server that is talked to datagram by datagram.
struct Desk {
    server: Server,
    now: Instant,
}

impl Desk {
    fn new() -> Self {
        let now = Instant::from_secs(5);
        let server = Server::new(ServerConfig::default(), Box::new(SplitMix::new(8)), now);
        Self { server, now }
    }

    fn hello(&mut self, from: Peer, nonce: u64) -> Vec<Vec<u8>> {
        let mut buf = [0; 18];
        Hello { nonce: Nonce(nonce) }.emit(&mut buf).unwrap();
        self.server.handle_datagram(self.now, from, &buf);
        self.sent(from)
    }

    fn sent(&mut self, to: Peer) -> Vec<Vec<u8>> {
        let (mut buf, mut sent) = ([0; 1200], Vec::new());
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut buf) {
            assert_eq!(transmit.to, to);
            sent.push(buf[..transmit.len].to_vec());
        }
        sent
    }

    fn welcome(&mut self, from: Peer, nonce: u64) -> Cookie {
        assert_eq!(self.hello(from, nonce), Vec::<Vec<u8>>::new());
        let answers = self.hello(from, nonce);
        let Ok(Packet::Welcome(view)) = Packet::parse(&answers[0]) else { panic!() };
        view.session()
    }

    /// Gives a packet of one frame; the frames that were fresh, or why it was dropped.
    fn input(
        &mut self,
        from: Peer,
        session: Cookie,
        first: u32,
        count: u32,
    ) -> Result<Vec<u32>, DropReason> {
        let first = InputSequence::new(first);
        let frames: Vec<InputFrame> =
            (0..count).map(|n| InputFrame::neutral(first.advance(n))).collect();
        let mut buf = [0; 200];
        let len = Input { session, frames: &frames }.emit(&mut buf).unwrap();
        match self.server.handle_datagram(self.now, from, &buf[..len]) {
            ServerReceived::Input { frames, .. } => {
                Ok(frames.iter().map(|frame| frame.sequence.get()).collect())
            }
            ServerReceived::Dropped(reason) => Err(reason),
            _ => Ok(Vec::new()),
        }
    }

    fn ack(&mut self, from: Peer, session: Cookie, sequence: u64) -> Option<DropReason> {
        let mut buf = [0; 26];
        EventAck { session, sequence }.emit(&mut buf).unwrap();
        match self.server.handle_datagram(self.now, from, &buf) {
            ServerReceived::Dropped(reason) => Some(reason),
            _ => None,
        }
    }

    fn only(&self) -> SessionId {
        let mut sessions = self.server.sessions();
        let (id, _) = sessions.next().unwrap();
        assert!(sessions.next().is_none());
        id
    }
}

#[test]
fn a_repeated_hello_gets_the_same_welcome_before_and_after_the_session_begins() {
    let mut desk = Desk::new();
    let from = peer(1);
    desk.server.set_tick(Tick::new(5));
    assert_eq!(desk.hello(from, 7).len(), 0);
    let first = desk.hello(from, 7);
    desk.server.set_tick(Tick::new(50));
    let again: Vec<Vec<u8>> = (0..4).flat_map(|_| desk.hello(from, 7)).collect();
    assert_eq!((first.len(), again.len()), (1, 2), "72 bytes and 5 in hand pay for two");
    let Ok(Packet::Welcome(view)) = Packet::parse(&first[0]) else { panic!() };
    assert_eq!((view.nonce(), view.tick()), (Nonce(7), Tick::new(5)));
    assert_eq!(desk.input(from, view.session(), 1, 1), Ok(vec![1]));
    let late = desk.hello(from, 7);
    assert!(again.iter().chain(&late).all(|bytes| *bytes == first[0]));
    assert_eq!((late.len(), desk.server.sessions().count()), (1, 1));
}

#[test]
fn a_session_speaks_from_its_own_address_alone() {
    let mut desk = Desk::new();
    let session = desk.welcome(peer(1), 7);
    assert_eq!(desk.input(peer(2), session, 1, 1), Err(DropReason::Address));
    let guess = Cookie::new(session.get() ^ 1).unwrap();
    assert_eq!(desk.input(peer(1), guess, 1, 1), Err(DropReason::Token));
    assert_eq!(desk.server.sessions().count(), 0);
    assert_eq!(desk.input(peer(1), session, 1, 1), Ok(vec![1]));
    assert_eq!(desk.input(peer(2), session, 2, 1), Err(DropReason::Address));
    assert_eq!(desk.ack(peer(2), session, 0), Some(DropReason::Address));
    // What only servers send.
    let mut buf = [0; 1200];
    let len = Event { session, sequence: 0, payload: b"" }.emit(&mut buf).unwrap();
    let received = desk.server.handle_datagram(desk.now, peer(1), &buf[..len]);
    assert!(matches!(received, ServerReceived::Dropped(DropReason::PacketType)));
    let received = desk.server.handle_datagram(desk.now, peer(1), b"FERRAVEX\x01\x01");
    assert!(matches!(received, ServerReceived::Dropped(DropReason::Version)));
}

#[test]
fn sessions_are_all_different_and_never_zero() {
    let mut desk = Desk::new();
    // A generator that gives zero and repeats itself now and then.
    let mut inner = SplitMix::new(1);
    let mut turn = 0u64;
    let random = move || {
        use caves_session::Random;
        turn += 1;
        match turn % 3 {
            0 => 0,
            1 => turn / 10 + 1,
            _ => inner.next_u64(),
        }
    };
    desk.server = Server::new(ServerConfig::default(), Box::new(random), desk.now);
    let mut seen = BTreeSet::new();
    for port in 0..100 {
        desk.now += ms(200);
        assert!(seen.insert(desk.welcome(peer(port), 7)), "twice");
    }
}

#[test]
fn a_new_session_from_the_same_address_replaces_the_old_one_once_it_is_proven() {
    let mut desk = Desk::new();
    let old = desk.welcome(peer(1), 7);
    desk.input(peer(1), old, 100, 1).unwrap();
    let first = desk.only();
    desk.server.send_event(desk.now, first, b"for the old one").unwrap();
    desk.sent(peer(1));
    let new = desk.welcome(peer(1), 8);
    // Anybody can say Hello under that address: so far nothing has changed.
    assert_eq!(desk.input(peer(1), old, 101, 1), Ok(vec![101]));
    assert_eq!(desk.input(peer(1), new, 5, 1), Ok(vec![5]));
    let second = desk.only();
    assert_ne!(first, second);
    assert_eq!(desk.input(peer(1), old, 102, 1), Err(DropReason::Token));
    assert_eq!(desk.server.send_event(desk.now, first, b"x"), Err(EventError::NoSession));
    // Its numbers begin anew, and nothing of the old one is sent.
    desk.now += ms(500);
    assert_eq!(desk.sent(peer(1)).len(), 0);
    assert_eq!(desk.server.send_event(desk.now, second, b"x"), Ok(0));
    let told: Vec<ServerEvent> = std::iter::from_fn(|| desk.server.poll_event()).collect();
    assert_eq!(told.len(), 3);
    let replaced = |event: &ServerEvent| matches!(event, ServerEvent::Left { session, why: Left::Replaced, .. } if *session == first);
    assert!(replaced(&told[1]), "{told:?}");
}

#[test]
fn a_late_acknowledgement_hides_no_loss() {
    let mut desk = Desk::new();
    let session = desk.welcome(peer(1), 7);
    desk.input(peer(1), session, 1, 1).unwrap();
    let id = desk.only();
    let numbers = |datagrams: Vec<Vec<u8>>| -> Vec<u64> {
        let event = |bytes: &Vec<u8>| match Packet::parse(bytes) {
            Ok(Packet::Event(event)) => event.sequence(),
            other => panic!("{other:?}"),
        };
        datagrams.iter().map(event).collect()
    };
    for n in 0..256u64 {
        assert_eq!(desk.server.send_event(desk.now, id, &n.to_le_bytes()), Ok(n));
    }
    assert_eq!(desk.server.send_event(desk.now, id, b"one more"), Err(EventError::Full));
    assert!(numbers(desk.sent(peer(1))).into_iter().eq(0..256));
    // All arrive but 0 and 128; their acknowledgements come in any order, also twice, also those of
    // numbers that were never sent.
    for n in (0..256u64).rev().filter(|n| n % 128 != 0) {
        assert_eq!(desk.ack(peer(1), session, n), None);
        assert_eq!(desk.ack(peer(1), session, n), None);
        assert_eq!(desk.ack(peer(1), session, n + 256), None);
    }
    assert_eq!(desk.server.session(id).unwrap().events_pending(), 2);
    // There is room again, but none in the client's window before 0 has come.
    assert_eq!(desk.server.send_event(desk.now, id, b"256"), Ok(256));
    assert_eq!(desk.sent(peer(1)).len(), 0);
    for _ in 0..20 {
        desk.now += ms(99);
        assert_eq!(desk.sent(peer(1)).len(), 0);
        desk.now += ms(1);
        assert_eq!(desk.server.poll_timeout(), Some(desk.now));
        assert_eq!(numbers(desk.sent(peer(1))), [0, 128]);
    }
    assert_eq!(desk.ack(peer(1), session, 0), None);
    assert_eq!(numbers(desk.sent(peer(1))), [256]);
    assert_eq!(desk.ack(peer(1), session, 256), None);
    desk.now += ms(100);
    assert_eq!(numbers(desk.sent(peer(1))), [128]);
    assert_eq!(desk.server.send_event(desk.now, id, &[0; 901]), Err(EventError::TooLong));
}

#[test]
fn only_the_newest_snapshot_waits_and_it_acknowledges_what_is_known_when_it_is_sent() {
    let mut desk = Desk::new();
    let session = desk.welcome(peer(1), 7);
    assert_eq!(desk.ack(peer(1), session, 0), None);
    let id = desk.only();
    let snapshot = |desk: &mut Desk, tick: u32, players: &[Player]| {
        desk.server.send_snapshot(desk.now, id, Tick::new(tick), players)
    };
    let read = |sent: &[Vec<u8>]| match Packet::parse(&sent[0]) {
        Ok(Packet::Snapshot(view)) => {
            (view.tick().get(), view.ack().map(InputSequence::get), view.players().len())
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(snapshot(&mut desk, NEAR_END, &[]), Ok(()));
    let sent = desk.sent(peer(1));
    assert_eq!((sent.len(), read(&sent)), (1, (NEAR_END, None, 0)));
    let one = player(PlayerId(3), 0.0);
    assert_eq!(snapshot(&mut desk, NEAR_END, &[]), Err(SnapshotError::Old));
    assert_eq!(snapshot(&mut desk, u32::MAX, &[]), Ok(()));
    assert_eq!(snapshot(&mut desk, 1, &[one]), Ok(()));
    assert_eq!(snapshot(&mut desk, 0, &[]), Err(SnapshotError::Old));
    assert!(matches!(snapshot(&mut desk, 2, &[one, one]), Err(SnapshotError::Players(_))));
    assert_eq!(
        desk.input(peer(1), session, NEAR_END, 5),
        Ok((0..5).map(|n| NEAR_END.wrapping_add(n)).collect())
    );
    let sent = desk.sent(peer(1));
    assert_eq!((sent.len(), read(&sent)), (1, (1, Some(1), 1)));
    // A frame that came before does not come again, and takes nothing back.
    assert_eq!(desk.input(peer(1), session, u32::MAX, 2), Err(DropReason::OldAction));
    assert_eq!(desk.input(peer(1), session, 0, 2), Ok(vec![]));
    assert_eq!(desk.input(peer(1), session, 0, 4), Ok(vec![2, 3]));
    assert_eq!(desk.input(peer(1), session, 3 + 4097, 1), Err(DropReason::Tick));
    assert_eq!(snapshot(&mut desk, 2, &[]), Ok(()));
    assert_eq!(read(&desk.sent(peer(1))), (2, Some(3), 0));
}

#[test]
fn a_client_whose_server_is_gone_ends_in_time_and_so_does_the_session() {
    for talks in [false, true] {
        let mut world = World::new(3, ServerConfig::default());
        let (place, id) = world.join(LinkConfig::LAN);
        world.step(1);
        world.step(2);
        let end = &world.ends[place];
        let (up, down) = (end.up, end.down);
        let cut = LinkConfig { down: true, ..LinkConfig::PERFECT };
        world.network.set_config(up, cut);
        world.network.set_config(down, cut);
        world.pass(ms(9_900));
        if talks {
            (3..10).for_each(|tick| world.step(tick));
        }
        let silence = world.now;
        assert!(talks || world.ends[place].end.is_none() && world.left.is_empty());
        world.pass(ms(200));
        assert_eq!(world.ends[place].end, Some(ClientEnd::Silence));
        assert_eq!(world.left, [(id, Left::Silence)]);
        assert!(world.now.saturating_since(silence) <= ms(200));
        // Both are done: nobody wakes up any more.
        assert_eq!(world.ends[place].client.poll_timeout(), None);
        assert_eq!(world.server.poll_timeout(), None);
    }
}

#[test]
fn a_client_that_nobody_answers_gives_up_after_ten_seconds() {
    let now = Instant::from_secs(1);
    let mut client = Client::new(ClientConfig::default(), Box::new(SplitMix::new(1)), now);
    let (mut at, mut buf, mut hellos) = (now, [0; 1200], Vec::new());
    while client.status(at) == ClientStatus::Joining {
        while let Some(len) = client.poll_transmit(at, &mut buf) {
            assert_eq!(len, 18);
            hellos.push(at.saturating_since(now));
        }
        at = client.poll_timeout().unwrap();
        client.handle_timeout(at);
    }
    assert_eq!(at, now + Duration::from_secs(10));
    assert_eq!(client.poll_event(), Some(ClientEvent::Ended(ClientEnd::NoAnswer)));
    // Two at once, 200 to 300 ms apart: 34 to 50 times.
    assert!((68..=100).contains(&hellos.len()), "{}", hellos.len());
    assert!(hellos.chunks(2).all(|pair| pair[0] == pair[1]));
    let gaps: Vec<Duration> =
        hellos[1..].windows(2).step_by(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|gap| (ms(200)..=ms(300)).contains(gap)), "{gaps:?}");
}

#[test]
fn a_quiet_session_stays_alive_by_its_keepalive_and_one_that_is_ended_dies() {
    let mut world = World::new(4, ServerConfig::default());
    let (place, id) = world.join(BAD);
    for second in 0..120u32 {
        // Nobody moves; the server shows a tick a second.
        let _ = world.server.send_snapshot(world.now, id, Tick::new(second), &[]);
        world.pass(Duration::from_secs(1));
    }
    assert!(world.left.is_empty() && world.ends[place].end.is_none());
    assert_eq!(world.server.session(id).unwrap().inputs_used(), 1, "one frame of nothing");
    let before = world.network.stats(world.ends[place].up).sent;
    assert!(before < 120 * 11, "{before} datagrams in two minutes");
    assert!(world.server.end(id));
    world.pass(Duration::from_secs(11));
    assert_eq!(world.left, [(id, Left::Ended)]);
    assert_eq!(world.ends[place].end, Some(ClientEnd::Silence));
}

#[test]
fn what_had_arrived_is_told_before_the_end() {
    let mut solo = Solo::new();
    assert_eq!((solo.event(1, b"b"), solo.event(0, b"a"), solo.event(3, b"d")), (None, None, None));
    let end = solo.now + Duration::from_secs(10);
    solo.client.handle_timeout(end);
    let told: Vec<ClientEvent> = std::iter::from_fn(|| solo.client.poll_event()).collect();
    let event = |sequence, payload: &[u8]| ClientEvent::Event { sequence, payload: payload.into() };
    let expected = [event(0, b"a"), event(1, b"b"), ClientEvent::Ended(ClientEnd::Silence)];
    assert_eq!(told, expected);
    assert_eq!(solo.client.status(end), ClientStatus::Ended(ClientEnd::Silence));
    assert_eq!(solo.acks(), []);
}

#[test]
fn a_client_that_restarts_on_its_old_address_gets_in_again() {
    let mut world = World::new(6, ServerConfig::default());
    let (place, first) = world.join(BAD);
    (0..20).for_each(|tick| world.step(tick));
    for round in 0..5 {
        world.ends[place].client = World::client(world.now, 100 + round);
        world.ends[place].pushed.clear();
        let before = world.joined.len();
        for tick in 0..100 {
            world.step(1000 * (round as u32 + 1) + tick);
        }
        assert_eq!(world.joined.len(), before + 1, "round {round}");
    }
    assert_eq!(world.joined[0].0, first);
    assert_eq!(world.left.len(), 5);
    assert!(world.left.iter().all(|(_, why)| *why == Left::Replaced));
    let id = world.session(place).unwrap();
    check_inputs(&world, place, id);
}
