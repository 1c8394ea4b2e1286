//! Both sides over a network that loses, repeats and swaps.

use std::time::Duration;

use caves_link::time::Instant;
use caves_netsim::{Chance, LinkConfig, LinkId, Network};
use caves_session::teeworlds::{
    Client, ClientConfig, ClientEvent, ClientReceived, Ended, MAX_UNACKED, MAX_UNACKED_BYTES,
    Messages, SendError, Server, ServerConfig, ServerEvent, ServerReceived, SessionId, SessionView,
};
use caves_session::{Random, SplitMix};

use crate::drive::peer;

const BAD: LinkConfig = LinkConfig {
    delay: Duration::from_millis(30),
    jitter: Duration::from_millis(25),
    loss: Chance::percent(25),
    duplicate: Chance::percent(10),
    reorder: Chance::percent(10),
    reorder_by: Duration::from_millis(60),
    ..LinkConfig::PERFECT
};
/// The layers above do something this often.
const TICK: Duration = Duration::from_millis(20);

/// What one side says and hears. A vital message is its number and padding of a length that follows
/// from it; others are empty.
#[derive(Default)]
struct Talker {
    said: u32,
    heard: u32,
    refused: u32,
    most_unacked: usize,
    most_bytes: usize,
    wraps: u32,
    last: u32,
}

impl Talker {
    fn next(&self) -> Vec<u8> {
        let mut message = self.said.to_le_bytes().to_vec();
        let long = SplitMix::new(self.said.into()).next_u64();
        let padding = if long.is_multiple_of(7) { long % 1020 } else { long % 30 };
        message.resize(4 + padding as usize, 0xAA);
        message
    }

    fn hear(&mut self, messages: Messages<'_>) {
        for message in messages.filter(|message| message.vital) {
            let number = u32::from_le_bytes(*message.data.first_chunk().expect("a number"));
            assert_eq!(number, self.heard, "once and in order");
            self.heard += 1;
        }
    }

    /// Takes the answer to an attempt to say the next message.
    fn said(&mut self, told: Result<(), SendError>) -> bool {
        match told {
            Ok(()) => self.said += 1,
            Err(error) => {
                assert_eq!(error, SendError::Full);
                self.refused += 1;
            }
        }
        told.is_ok()
    }

    fn look(&mut self, view: SessionView) {
        self.most_unacked = self.most_unacked.max(view.unacked);
        self.most_bytes = self.most_bytes.max(view.unacked_bytes);
        self.wraps += u32::from(view.sent.get() < self.last);
        self.last = view.sent.get();
        assert_eq!(view.waiting, 0, "everything is fetched");
        assert_eq!(view.unacked as u32, view.sent.distance_from(view.acked));
    }
}

struct World {
    now: Instant,
    next_tick: Instant,
    network: Network<Vec<u8>>,
    up: LinkId,
    down: LinkId,
    client: Client,
    server: Server,
    session: Option<SessionId>,
    client_side: Talker,
    server_side: Talker,
    events: Vec<ServerEvent>,
    client_events: Vec<ClientEvent>,
    /// So many messages each side says.
    limit: u32,
}

impl World {
    fn new(seed: u64, config: LinkConfig, timeout: Duration) -> Self {
        let now = Instant::from_secs(1);
        let mut network = Network::new(seed);
        let (up, down) = network.add_pair(config, config);
        let server_config = ServerConfig { timeout, ..ServerConfig::default() };
        Self {
            now,
            next_tick: now,
            network,
            up,
            down,
            client: Client::new(ClientConfig { timeout, ..ClientConfig::default() }, now),
            server: Server::new(server_config, &mut SplitMix::new(seed), now),
            session: None,
            client_side: Talker::default(),
            server_side: Talker::default(),
            events: Vec::new(),
            client_events: Vec::new(),
            limit: u32::MAX,
        }
    }

    /// To the next moment at which anything happens.
    fn step(&mut self, chatter: u32) {
        let arrival = self.network.next_arrival().map(Instant::from_micros);
        let next = [arrival, self.client.poll_timeout(), self.server.poll_timeout()];
        let next = next.into_iter().flatten().chain([self.next_tick]).min().expect("a tick");
        self.now = self.now.max(next);
        self.client.handle_timeout(self.now);
        self.server.handle_timeout(self.now);
        self.receive();
        if self.now >= self.next_tick {
            self.next_tick += TICK;
            self.talk(chatter);
        }
        self.send();
    }

    fn receive(&mut self) {
        let mut scratch = [0; 1394];
        while let Some((link, bytes)) = self.network.poll(self.now.as_micros()) {
            if link == self.up {
                let received = self.server.handle_datagram(self.now, peer(1), &bytes, &mut scratch);
                if let ServerReceived::Messages { messages, .. } = received {
                    self.server_side.hear(messages);
                }
            } else {
                let received = self.client.handle_datagram(self.now, &bytes, &mut scratch);
                if let ClientReceived::Messages(messages) = received {
                    self.client_side.hear(messages);
                }
            }
        }
        while let Some(event) = self.server.poll_event() {
            match event {
                ServerEvent::Joined { session, .. } => self.session = Some(session),
                ServerEvent::Left { .. } => self.session = None,
                other => panic!("{other:?}"),
            }
            self.events.push(event);
        }
        self.client_events.extend(std::iter::from_fn(|| self.client.poll_event()));
    }

    fn talk(&mut self, chatter: u32) {
        for _ in 0..chatter {
            if !self.client.is_connected() || self.client_side.said >= self.limit {
                break;
            }
            let message = self.client_side.next();
            if !self.client_side.said(self.client.send(self.now, true, &message)) {
                break;
            }
        }
        self.client.flush();
        let Some(id) = self.session else { return };
        for _ in 0..chatter {
            // The game says nothing before it is spoken to.
            if self.server_side.heard == 0 || self.server_side.said >= self.limit {
                break;
            }
            let message = self.server_side.next();
            if !self.server_side.said(self.server.send(self.now, id, true, &message)) {
                break;
            }
        }
        self.server.flush(id);
    }

    fn send(&mut self) {
        let mut buf = [0; 1400];
        while let Some(len) = self.client.poll_transmit(self.now, &mut buf) {
            self.network.send(self.now.as_micros(), self.up, len, buf[..len].to_vec());
        }
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut buf) {
            let bytes = buf[..transmit.len].to_vec();
            self.network.send(self.now.as_micros(), self.down, transmit.len, bytes);
        }
        if let Some(view) = self.client.view() {
            self.client_side.look(view);
        }
        if let Some(view) = self.session.and_then(|id| self.server.session(id)) {
            self.server_side.look(view);
        }
    }

    fn run(&mut self, time: Duration, chatter: u32) {
        let until = self.now + time;
        while self.now < until {
            self.step(chatter);
        }
    }
}

#[test]
fn vital_messages_come_once_and_in_order_over_a_bad_network_and_many_laps() {
    let mut world = World::new(1, BAD, Duration::from_secs(100));
    world.run(Duration::from_secs(600), 8);
    // Less, so that gaps are shown and filled; then nothing new, and a timer sends one after another.
    world.run(Duration::from_secs(10), 1);
    world.run(Duration::from_secs(90), 0);
    let World { client_side, server_side, client, server, session, .. } = &world;
    assert_eq!((server_side.heard, client_side.heard), (client_side.said, server_side.said));
    for side in [client_side, server_side] {
        assert!(side.wraps >= 3, "{} laps of {} messages", side.wraps, side.said);
        assert!(side.most_unacked <= MAX_UNACKED && side.most_bytes <= MAX_UNACKED_BYTES);
        assert!(side.refused > 0 && side.most_bytes > MAX_UNACKED_BYTES / 2, "it was full");
    }
    assert_eq!(client.view().map(|view| view.unacked), Some(0));
    assert_eq!(server.session(session.unwrap()).map(|view| view.unacked), Some(0));
    assert_eq!(world.events.len(), 1, "one session, from the first to the last");
    assert!(world.network.total().reordered > 100 && world.network.total().duplicated > 100);
}

#[test]
fn two_hundred_handshakes_over_a_bad_network_all_lead_to_a_session_that_works() {
    for seed in 0..200 {
        let mut world = World::new(seed, BAD, Duration::from_secs(100));
        world.limit = 40;
        let until = world.now + Duration::from_secs(90);
        while world.client_side.heard < 40 || world.server_side.heard < 40 {
            world.step(1);
            assert!(world.now < until, "seed {seed}");
        }
        assert_eq!(world.events.len(), 1, "seed {seed}");
    }
}

#[test]
fn keepalives_alone_hold_a_connection_for_an_hour() {
    let mut world = World::new(3, BAD, Duration::from_secs(10));
    world.run(Duration::from_secs(3600), 0);
    assert!(world.client.is_connected());
    assert_eq!(world.events.len(), 1);
}

#[test]
fn a_network_that_falls_silent_ends_both_sides_after_the_timeout() {
    let mut world = World::new(4, LinkConfig::PERFECT, Duration::from_secs(10));
    world.run(Duration::from_secs(5), 1);
    let down = LinkConfig { down: true, ..LinkConfig::PERFECT };
    world.network.set_config(world.up, down);
    world.network.set_config(world.down, down);
    world.run(Duration::from_millis(9_900), 1);
    assert!(world.client.is_connected() && world.server.len() == 1);
    world.run(Duration::from_millis(200), 1);
    assert!(!world.client.is_connected() && world.server.is_empty());
    world.receive();
    assert!(matches!(world.events[1], ServerEvent::Left { why: Ended::Silence, .. }));
    assert_eq!(world.client_events, [ClientEvent::Connected, ClientEvent::Ended(Ended::Silence)]);
    assert_eq!((world.client.poll_timeout(), world.server.poll_timeout()), (None, None));
}

#[test]
fn one_who_is_heard_and_does_not_hear_gives_up_when_nothing_is_acknowledged() {
    let mut world = World::new(5, LinkConfig::PERFECT, Duration::from_secs(10));
    world.run(Duration::from_secs(1), 1);
    // The client's way is cut: the server goes on, the client hears it and is not heard.
    let down = LinkConfig { down: true, ..LinkConfig::PERFECT };
    world.network.set_config(world.up, down);
    world.run(Duration::from_secs(11), 1);
    assert_eq!(
        world.client_events.last(),
        Some(&ClientEvent::Ended(Ended::Unacknowledged)),
        "the server's packets came all the time"
    );
    assert!(matches!(world.events[1], ServerEvent::Left { why: Ended::Silence, .. }));
}

#[test]
fn a_client_without_a_server_asks_every_half_second_and_gives_up() {
    let now = Instant::from_secs(1);
    let config = ClientConfig { timeout: Duration::from_secs(10), ..ClientConfig::default() };
    let mut client = Client::new(config, now);
    let (mut now, mut buf, mut asked) = (now, [0; 1400], 0);
    while let Some(due) = client.poll_timeout() {
        now = now.max(due);
        client.handle_timeout(now);
        while let Some(len) = client.poll_transmit(now, &mut buf) {
            assert_eq!(buf[..len], *b"\x10\0\0\x01TKEN\xFF\xFF\xFF\xFF");
            asked += 1;
        }
    }
    // At 0, 0.5, .. and 9.5 s, each a microsecond later than the last, since more than half a second
    // must have passed.
    assert_eq!((asked, client.poll_event()), (20, Some(ClientEvent::Ended(Ended::Silence))));
    assert_eq!(now, Instant::from_micros(11_000_001));
}
