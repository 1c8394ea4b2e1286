//! A client that is talked to datagram by datagram.

use std::time::Duration;

use caves_link::time::Instant;
use caves_session::SplitMix;
use caves_session::caves::{Client, ClientConfig, ClientEnd, ClientEvent, OwnedAction};
use caves_wire::caves::{
    Challenge, ChunkEntry, ClientType, Direction, Echo, EntityBuilder, EntityId, Leave,
    LeaveReason, Nonce, Packet, State, Tick, Token, Welcome,
};
use caves_wire::fnv::Fnv32;

const TOKEN: Token = Token(0x1234_5678_9ABC);
const PLAYER: EntityId = EntityId(7);
/// FNV-1a of nothing (R13).
const EMPTY: u32 = 0x811C_9DC5;
const STEP: Duration = Duration::from_millis(5);

#[test]
fn an_event_that_comes_again_is_acknowledged_twice() {
    let mut talk = Talk::joined(1000);
    let (kind, from) = (caves_wire::caves::EventKind::CHAT, EntityId(0));
    let event = caves_wire::caves::Event {
        sequence: caves_wire::caves::Sequence::new(0),
        kind,
        from,
        text: "hello",
    };
    let mut acknowledged = Vec::new();
    for _ in 0..3 {
        talk.hear(|buf| event.emit(buf).unwrap());
        let mut buf = [0; 1200];
        let mut count = 0;
        while let Some(len) = talk.client.poll_transmit(talk.now, &mut buf) {
            count += usize::from(matches!(Packet::parse(&buf[..len]), Ok(Packet::EventAck(_))));
        }
        acknowledged.push(count);
    }
    assert_eq!(acknowledged, [1, 2, 2]);
    let texts = talk.events.iter().filter(|event| matches!(event, ClientEvent::Text { .. }));
    assert_eq!(texts.count(), 1);
}

struct Talk {
    client: Client,
    now: Instant,
    /// Numbers of the Actions that came, but for no-ops, and when.
    numbers: Vec<(u64, u32)>,
    events: Vec<ClientEvent>,
}

impl Talk {
    /// A client that is in since 1000 s, at tick `tick`.
    fn joined(tick: u32) -> Self {
        let now = Instant::from_secs(1000);
        let client = Client::new(ClientConfig::default(), Box::new(SplitMix::new(3)), now);
        let mut talk = Self { client, now, numbers: Vec::new(), events: Vec::new() };
        let mut buf = [0; 1200];
        let len = talk.client.poll_transmit(now, &mut buf).expect("a Hello");
        let Ok(Packet::Hello(hello)) = Packet::parse(&buf[..len]) else { panic!() };
        let nonce = hello.nonce();
        talk.hear(|buf| {
            Challenge { nonce, cookie: [1; 16], server_key: [0; 32] }.emit(buf).unwrap()
        });
        talk.pump();
        talk.welcome(nonce, tick);
        talk
    }

    fn welcome(&mut self, nonce: Nonce, tick: u32) {
        let tick = Tick::new(tick);
        let welcome =
            Welcome { nonce, token: TOKEN, player: PLAYER, tick, tick_rate: 10, meta: &[] };
        self.hear(|buf| welcome.emit(buf).unwrap());
        self.update(tick.get());
    }

    fn hear(&mut self, emit: impl FnOnce(&mut [u8]) -> usize) {
        let mut buf = [0; 1200];
        let len = emit(&mut buf);
        self.client.handle_datagram(self.now, &buf[..len]);
        while let Some(event) = self.client.poll_event() {
            self.events.push(event);
        }
    }

    fn state(&mut self, tick: u32) {
        let (tick, chunks) = (Tick::new(tick), [ChunkEntry::default(); 9]);
        let state = State { tick, chunks, player: PLAYER, entity_checksum: EMPTY };
        self.hear(|buf| state.emit(buf).unwrap());
    }

    /// A whole tick in which nobody is in view.
    fn update(&mut self, tick: u32) {
        self.state(tick);
        self.hear(|buf| {
            EntityBuilder::new(buf, Tick::new(tick), Fnv32::new()).unwrap().finish(false).0
        });
    }

    fn run(&mut self, millis: u64) {
        let until = self.now + Duration::from_millis(millis);
        while self.now < until {
            self.now += STEP;
            self.client.handle_timeout(self.now);
            self.pump();
        }
    }

    /// Takes what the client sends; a Ping is answered at once.
    fn pump(&mut self) {
        let mut buf = [0; 1200];
        while let Some(len) = self.client.poll_transmit(self.now, &mut buf) {
            if let Ok(Packet::Ping(ping)) = Packet::parse(&buf[..len]) {
                let stamp = ping.timestamp_ms();
                self.hear(|buf| Echo::pong(stamp).emit(buf).unwrap());
            }
            if let Ok(Packet::Action(action)) = Packet::parse(&buf[..len])
                && len > 74 - 1
                && buf[72..74] != [0, 0]
            {
                self.numbers.push((self.now.as_millis() - 1_000_000, action.sequence().get()));
            }
        }
    }

    fn walk(&mut self) {
        self.client.push(OwnedAction::Walk(Direction::East)).unwrap();
        self.pump();
    }

    /// How often each number came, in the order in which it first did.
    fn times(&self) -> Vec<usize> {
        let mut numbers: Vec<u32> = self.numbers.iter().map(|(_, number)| *number).collect();
        numbers.dedup();
        let count = |of: &u32| self.numbers.iter().filter(|(_, number)| number == of).count();
        numbers.iter().map(count).collect()
    }
}

#[test]
fn over_a_network_that_loses_nothing_a_step_goes_out_once() {
    let mut talk = Talk::joined(100);
    for tick in 101..=140 {
        talk.walk();
        talk.run(100);
        talk.update(tick);
    }
    // Nothing is ever covered here, and the round trip takes no time: eight, and no more.
    let times = talk.times();
    assert_eq!(times.len(), 8);
    assert!(times[..times.len() - 1].iter().all(|times| *times == 1), "{times:?}");
}

#[test]
fn where_states_are_lost_a_step_goes_out_again_and_last_before_its_successor() {
    let mut talk = Talk::joined(100);
    // One of eight is lost: 12 %.
    for tick in 101..=164 {
        talk.run(100);
        if tick % 8 != 0 {
            talk.update(tick);
        }
    }
    for tick in 165..=168 {
        talk.walk();
        talk.run(100);
        talk.update(tick);
    }
    assert_eq!(talk.times()[..3], [3, 3, 3], "{:?}", talk.numbers);
    // In order, the last copy in the moment of the successor, and the first half a tick on.
    assert!(talk.numbers.is_sorted_by_key(|(_, number)| *number), "{:?}", talk.numbers);
    let [first, second, third, next, ..] = talk.numbers[..] else { panic!() };
    assert_eq!((second.0 - first.0, third.0 - first.0, next.0 - first.0), (50, 100, 100));
}

#[test]
fn what_must_arrive_is_told_to_be_lost_when_the_server_ends_the_session() {
    for reason in [LeaveReason::REPLACED, LeaveReason::EVENTS_UNREAD, LeaveReason::SHUTTING_DOWN] {
        let mut talk = Talk::joined(100);
        talk.client.push(OwnedAction::PickUp).unwrap();
        talk.client.push(OwnedAction::Say("wait".into())).unwrap();
        talk.run(50);
        let leave = Leave { client_type: ClientType::OFFICIAL, token: TOKEN, reason };
        talk.hear(|buf| leave.emit(buf).unwrap());
        let lost = |action| ClientEvent::ActionLost(action);
        let told = &talk.events[talk.events.len() - 3..];
        assert_eq!(told[0], lost(OwnedAction::PickUp), "{reason:?}");
        assert_eq!(told[1], lost(OwnedAction::Say("wait".into())), "{reason:?}");
        match &told[2] {
            ClientEvent::Ended(end) => assert_eq!(*end, ClientEnd::Left(reason)),
            other => assert!(matches!(other, ClientEvent::ServerGone { .. }), "{other:?}"),
        }
    }
}

#[test]
fn the_servers_tick_is_known_between_states_and_where_its_number_wraps() {
    let first = u32::MAX - 20;
    let mut talk = Talk::joined(first);
    let mut last = talk.client.stamp(Tick::new(first)).unwrap();
    for tick in 1..=60 {
        talk.run(100);
        talk.update(first.wrapping_add(tick));
        let stamp = talk.client.stamp(Tick::new(first.wrapping_add(tick))).unwrap();
        assert_eq!(stamp, last + Duration::from_millis(100));
        last = stamp;
        let (now, part) = talk.client.server_tick(talk.now).unwrap();
        assert_eq!((now.get(), part), (first.wrapping_add(tick), 0.0));
    }
    let later = talk.now + Duration::from_millis(230);
    let (now, part) = talk.client.server_tick(later).unwrap();
    assert_eq!(now.get(), first.wrapping_add(62));
    assert!((part - 0.3).abs() < 1e-6);
}
