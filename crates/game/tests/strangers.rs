//! Recorded sessions that are sent again, forged datagrams to a client, and what a proven address is
//! sent, with whole servers and clients.

mod common;

use std::time::Duration;

use caves_game::client::ClientEvent;
use caves_game::{Client, Server, ServerConfig, ServerEvent};
use caves_link::time::Instant;
use caves_netsim::LinkConfig;
use caves_session::caves::{ClientConfig, ClientStatus, ServerConfig as SessionConfig};
use caves_session::{Peer, SplitMix, StrangerLimits};
use caves_wire::caves::{
    Challenge, Chunk, ChunkEntry, Echo, Entity, EntityBuilder, EntityFlags, EntityId, Event,
    EventKind, Leave, LeaveReason, Nonce, Refuse, RefuseReason, Sequence, State, Tick, Token,
    Welcome, tag,
};
use caves_wire::fnv::Fnv32;
use caves_wire::tlv::TlvWriter;
use caves_world::{Command, Direction, Pos};
use common::Site;

const GOOD: LinkConfig = LinkConfig { delay: Duration::from_millis(20), ..LinkConfig::PERFECT };
const MILLISECOND: Duration = Duration::from_millis(1);

/// A player and a server without a network between them, and somebody who has all that was sent.
struct Tap {
    server: Server,
    client: Client,
    now: Instant,
    start: Instant,
    peer: Peer,
    /// What the player sent, and when.
    recorded: Vec<(Duration, Vec<u8>)>,
    /// What is sent again, when, and from where.
    echoes: Vec<(Instant, Peer, Vec<u8>)>,
    /// How much later each datagram comes again, and from where.
    echo: Vec<(Duration, Peer)>,
    heard: Vec<ServerEvent>,
    /// Bytes that came from a place, and that went there, of all but the player.
    came: usize,
    went: usize,
    /// The executed numbers of the player's session, in order.
    executed: Vec<u32>,
}

fn address(text: &str) -> Peer {
    Peer { socket: 0, addr: text.parse().unwrap() }
}

impl Tap {
    fn new(echo: Vec<(Duration, Peer)>) -> Self {
        let now = Instant::from_secs(1000);
        let strangers = StrangerLimits { exempt: vec![], ..StrangerLimits::default() };
        let session = SessionConfig { strangers, ..SessionConfig::default() };
        let config = ServerConfig { session, seed: 1, keep: None };
        let server = Server::new(config, Box::new(SplitMix::new(1)), now, 1_700_000_000_000);
        let config = ClientConfig { name: Some("Ada".into()), ..ClientConfig::default() };
        let client = Client::new(config, Box::new(SplitMix::new(2)), now);
        Self {
            server,
            client,
            now,
            start: now,
            peer: address("192.0.2.1:5000"),
            recorded: Vec::new(),
            echoes: Vec::new(),
            echo,
            heard: Vec::new(),
            came: 0,
            went: 0,
            executed: Vec::new(),
        }
    }

    fn run(&mut self, millis: u64) {
        for _ in 0..millis {
            self.now += MILLISECOND;
            self.step();
        }
    }

    fn step(&mut self) {
        let mut buf = [0; 1200];
        self.client.handle_timeout(self.now);
        while let Some(len) = self.client.poll_transmit(self.now, &mut buf) {
            let datagram = buf[..len].to_vec();
            self.server.handle_datagram(self.now, self.peer, &datagram);
            for (late, from) in &self.echo {
                self.echoes.push((self.now + *late, *from, datagram.clone()));
            }
            self.recorded.push((self.now.saturating_since(self.start), datagram));
        }
        // In the order of their moments: all of one kind are equally late.
        let now = self.now;
        for (_, from, datagram) in self.echoes.extract_if(.., |(at, ..)| *at <= now) {
            self.server.handle_datagram(now, from, &datagram);
        }
        if self.server.poll_timeout().is_some_and(|due| due <= now) {
            self.server.handle_timeout(now);
        }
        self.send();
        while self.client.poll_event().is_some() {}
        if let Some((executed, _)) = self.client.session().executed()
            && self.executed.last() != Some(&executed.get())
        {
            self.executed.push(executed.get());
        }
    }

    fn send(&mut self) {
        let mut buf = [0; 1200];
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut buf) {
            if transmit.to == self.peer {
                self.client.handle_datagram(self.now, &buf[..transmit.len]);
            } else {
                self.went += transmit.len;
            }
        }
        while let Some(event) = self.server.poll_event() {
            self.heard.push(event);
        }
    }

    /// Sends a recorded datagram again, from anywhere.
    fn again(&mut self, from: Peer, datagram: &[u8]) {
        self.came += datagram.len();
        self.server.handle_datagram(self.now, from, datagram);
        if self.server.poll_timeout().is_some_and(|due| due <= self.now) {
            self.server.handle_timeout(self.now);
        }
        self.send();
    }

    /// A visit of twelve seconds: looks, talks, digs, walks to and fro, takes, moves on, leaves.
    fn play(&mut self) {
        self.run(500);
        assert!(self.client.mirror().me().is_some(), "in the caves");
        let ways = [Direction::East, Direction::South, Direction::East, Direction::West];
        for round in 0..9 {
            let way = ways[round % 4];
            // What must arrive waits for its turn (R36).
            let _ = self.client.act(Command::Dig(way));
            self.run(400);
            for _ in 0..4 {
                let _ = self.client.act(Command::Move(way));
                self.run(100);
            }
            let _ = self.client.act(Command::Say(format!("round {round}")));
            let me = self.client.mirror().me().expect("in the caves").id;
            let _ = self.client.look(self.now, me);
            self.run(450);
        }
    }

    fn leave(&mut self) {
        self.client.leave(self.now);
        self.run(100);
        assert!(self.client.is_drained());
        assert_eq!(self.server.players(), 0);
    }

    /// Where the player stands and what was said, as its own screen has it.
    fn outcome(&self) -> (Pos, Vec<String>, Vec<u32>) {
        let messages = self.client.mirror().messages().iter().map(|line| line.text.clone());
        let me = self.client.mirror().me().expect("in the caves");
        (me.pos, messages.collect(), self.executed.clone())
    }
}

/// Each datagram of a living session comes again, from the player's address and from another, at
/// once and late: the visit is the same, action for action.
#[test]
fn a_session_whose_datagrams_all_come_again_is_played_as_if_they_did_not() {
    let mut plain = Tap::new(vec![]);
    plain.play();
    let expected = plain.outcome();
    let said = expected.1.iter().filter(|line| line.contains("round")).count();
    assert!(said >= 8 && expected.2.len() > 30, "a visit: {expected:?}");
    let (here, there) = (address("192.0.2.1:5000"), address("198.51.100.9:7"));
    for (late, from) in [
        (0, here),
        (30, here),
        (700, here),
        (1500, here),
        (4000, here),
        (0, there),
        (30, there),
        (1500, there),
    ] {
        let mut tap = Tap::new(vec![(Duration::from_millis(late), from)]);
        tap.play();
        assert_eq!(tap.outcome(), expected, "{late} ms late from {from}");
        assert_eq!(tap.server.players(), 1);
        let joined = |event: &&ServerEvent| matches!(event, ServerEvent::Joined { .. });
        assert_eq!(tap.heard.iter().filter(joined).count(), 1);
        tap.leave();
        tap.run(5000);
        assert_eq!(tap.server.players(), 0, "what comes late brings nobody back");
        assert_eq!(tap.heard.iter().filter(joined).count(), 1);
    }
}

/// The whole of a recorded session, after it has ended: its Joins among them.
#[test]
fn a_recorded_session_that_is_sent_again_after_its_end_does_nothing() {
    let mut tap = Tap::new(vec![]);
    tap.play();
    tap.leave();
    let recorded = tap.recorded.clone();
    let kinds = |kind: u8| recorded.iter().filter(|(_, bytes)| bytes[3] == kind).count();
    assert!(kinds(8) >= 1 && kinds(10) >= 1 && kinds(1) > 30 && kinds(13) == 3);
    // At once, while its cookie would still be true, when it is old, and long after.
    for (pause, from) in [
        (0, "192.0.2.1:5000"),
        (500, "192.0.2.1:5000"),
        (3000, "198.51.100.9:7"),
        (6000, "192.0.2.1:5000"),
        (15_000, "192.0.2.1:5001"),
        (60_000, "192.0.2.1:5000"),
    ] {
        tap.run(pause);
        tap.heard.clear();
        // No part of the client's any more: all that goes out is counted.
        tap.peer = address("0.0.0.0:1");
        (tap.came, tap.went) = (0, 0);
        let mut at = Duration::ZERO;
        for (then, datagram) in &recorded {
            // At the pace at which it was recorded.
            tap.run((*then - at).as_millis() as u64);
            at = *then;
            tap.again(address(from), datagram);
            assert_eq!(tap.server.players(), 0);
            assert!(tap.went <= tap.came, "{} bytes for {}", tap.went, tap.came);
        }
        let begun_or_ended = (tap.heard.iter())
            .filter(|event| matches!(event, ServerEvent::Joined { .. } | ServerEvent::Left { .. }))
            .count();
        assert_eq!(begun_or_ended, 0, "{:?}", tap.heard);
    }
}

/// Who joins and goes away without a word is sent a stream for ten seconds, and then nothing. That is
/// what a proof of address is for: it can be had where one receives.
#[test]
fn an_address_that_was_proven_is_sent_a_bounded_stream_for_ten_seconds() {
    let mut tap = Tap::new(vec![]);
    tap.run(300);
    assert_eq!(tap.server.players(), 1);
    // From here on nobody is there.
    tap.peer = address("0.0.0.0:1");
    tap.went = 0;
    let mut last = tap.now;
    let mut datagrams = 0;
    let mut buf = [0; 1200];
    for _ in 0..30_000 {
        tap.now += MILLISECOND;
        if tap.server.poll_timeout().is_some_and(|due| due <= tap.now) {
            tap.server.handle_timeout(tap.now);
        }
        while let Some(transmit) = tap.server.poll_transmit(tap.now, &mut buf) {
            assert_eq!(transmit.to, address("192.0.2.1:5000"));
            tap.went += transmit.len;
            datagrams += 1;
            last = tap.now;
        }
        while tap.server.poll_event().is_some() {}
    }
    assert_eq!(tap.server.players(), 0);
    // Heard last within the first 300 ms; a timeout of 10 s.
    let span = last.saturating_since(tap.start);
    assert!(span <= Duration::from_millis(10_300), "{span:?}");
    // A State and one datagram of Entities a tick; the nine chunks came before.
    assert!((180..=210).contains(&datagrams), "{datagrams}");
    assert!(tap.went < 100_000, "{} bytes", tap.went);
}

/// A player at the spawn, and what a forger can know.
struct Victim {
    site: Site,
    seat: usize,
}

impl Victim {
    fn new(seed: u64) -> Self {
        let mut site = Site::new(seed);
        let seat = site.join("Ada", GOOD);
        site.until(3000, |site| site.is_playable(seat)).expect("playable");
        Self { site, seat }
    }

    fn client(&self) -> &Client {
        &self.site.seats[self.seat].client
    }

    fn forge(&mut self, emit: impl FnOnce(&mut [u8]) -> Result<usize, caves_wire::EmitError>) {
        let mut buf = [0; 1200];
        let len = emit(&mut buf).expect("fits");
        let now = self.site.now;
        self.site.seats[self.seat].client.handle_datagram(now, &buf[..len]);
        while let Some(event) = self.site.seats[self.seat].client.poll_event() {
            self.site.seats[self.seat].events.push(event);
        }
    }

    fn me(&self) -> EntityId {
        EntityId(self.client().mirror().me().expect("in the caves").id.0)
    }

    fn tick(&self) -> u32 {
        self.client().tick().expect("in a session").get()
    }

    fn manifest(&self) -> [ChunkEntry; 9] {
        self.client().session().manifest().expect("in a session")
    }

    fn forge_state(&mut self, tick: u32, entity_checksum: u32) {
        let (player, chunks) = (self.me(), self.manifest());
        let state = State { tick: Tick::new(tick), chunks, player, entity_checksum };
        self.forge(|buf| state.emit(buf));
    }

    /// The player's steps are executed and shown: there and back within a second.
    fn plays_on(&mut self) {
        assert!(matches!(self.site.status(self.seat), ClientStatus::Playing { .. }));
        for way in [Direction::East, Direction::West] {
            let before = self.site.true_pos(self.seat);
            assert!(self.site.act(self.seat, Command::Dig(way)));
            self.site.run(500);
            assert!(self.site.act(self.seat, Command::Move(way)));
            self.site.run(500);
            let after = self.site.true_pos(self.seat);
            assert_eq!(after, before.step(way));
            assert_eq!(self.client().mirror().me().unwrap().pos, after);
        }
    }

    fn is_recovering(&self) -> bool {
        matches!(self.site.status(self.seat), ClientStatus::Playing { recovering: true, .. })
    }

    fn attempts(&self) -> usize {
        let joined = |event: &&ClientEvent| matches!(event, ClientEvent::Joined { .. });
        self.site.seats[self.seat].events.iter().filter(joined).count()
    }
}

#[test]
fn forged_states_with_far_ticks_are_put_aside_while_true_ones_come() {
    let mut victim = Victim::new(21);
    let attempts = victim.attempts();
    // Ascending, as those of a server that was started again, for three seconds each.
    for base in [700, 0x7000_0000, 0u32.wrapping_sub(5000)] {
        for round in 0..100 {
            let far = victim.tick().wrapping_add(base.wrapping_add(round));
            victim.forge_state(far, 1);
            victim.site.run(30);
            assert!(!victim.is_recovering());
        }
    }
    victim.plays_on();
    assert_eq!(victim.attempts(), attempts, "no recovery was needed");
}

/// A State that is near enough to be believed freezes what is shown until the client recovers: two
/// seconds without a newer State, and a Join. Whoever can forge one can do so again.
#[test]
fn a_forged_state_near_the_newest_tick_costs_two_to_three_seconds_and_heals_by_recovery() {
    for ahead in [40, 300, 600] {
        let mut victim = Victim::new(22);
        let attempts = victim.attempts();
        victim.site.trust(victim.seat, false);
        victim.forge_state(victim.tick().wrapping_add(ahead), 1);
        let healed = victim
            .site
            .until(6000, |site| {
                let events = &site.seats[0].events;
                let again = |event: &&ClientEvent| matches!(event, ClientEvent::Joined { .. });
                events.iter().filter(again).count() > attempts
            })
            .expect("it recovers");
        assert!(healed <= Duration::from_millis(3000), "{ahead} ahead: {healed:?}");
        victim.site.run(500);
        victim.site.trust(victim.seat, true);
        assert!(!victim.is_recovering());
        victim.plays_on();
    }
}

/// A State just ahead is overtaken by true ones before anybody misses them.
#[test]
fn a_forged_state_a_second_ahead_is_overtaken() {
    let mut victim = Victim::new(23);
    let attempts = victim.attempts();
    victim.forge_state(victim.tick().wrapping_add(10), 1);
    victim.site.run(1500);
    victim.plays_on();
    assert_eq!(victim.attempts(), attempts);
}

#[test]
fn a_state_of_another_figure_is_no_sign_of_life_and_no_news() {
    let mut victim = Victim::new(24);
    let tick = victim.tick().wrapping_add(5);
    let (player, chunks) = (EntityId(victim.me().0 + 1), [ChunkEntry::default(); 9]);
    let state = State { tick: Tick::new(tick), chunks, player, entity_checksum: 0 };
    victim.forge(|buf| state.emit(buf));
    assert!(victim.tick() < tick);
    victim.plays_on();
}

impl Victim {
    /// Answers of all three kinds to attempts that are not the victim's.
    fn forge_answers(&mut self, rounds: u64) {
        for nonce in 0..rounds {
            let nonce = Nonce(nonce.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let reason = RefuseReason(nonce.0 as u8);
            self.forge(|buf| Refuse { nonce, reason, text: "away" }.emit(buf));
            self.forge(|buf| Challenge { nonce, cookie: [1; 16], server_key: [0; 32] }.emit(buf));
            let welcome = Welcome {
                nonce,
                token: Token(5),
                player: EntityId(9),
                tick: Tick::new(1),
                tick_rate: 10,
                meta: &[],
            };
            self.forge(|buf| welcome.emit(buf));
        }
    }
}

#[test]
fn refusals_challenges_and_welcomes_that_answer_nothing_are_dropped() {
    let mut victim = Victim::new(25);
    let token = victim.client().session().token();
    victim.forge_answers(300);
    assert_eq!(victim.client().session().token(), token);
    victim.plays_on();
    assert_eq!(victim.attempts(), 1);
}

#[test]
fn answers_to_other_attempts_do_not_disturb_one_that_is_under_way() {
    let mut site = Site::new(29);
    let far = LinkConfig { delay: Duration::from_millis(150), ..LinkConfig::PERFECT };
    let seat = site.join("Ada", far);
    let mut victim = Victim { site, seat };
    // Hello, Challenge, Join and Welcome take 600 ms.
    for _ in 0..60 {
        victim.forge_answers(10);
        victim.site.run(10);
    }
    victim.site.run(50);
    assert_eq!(victim.attempts(), 1);
    assert_ne!(victim.client().session().token(), Some(Token(5)));
    victim.site.set_link(victim.seat, GOOD);
    victim.site.until(3000, |site| site.is_playable(seat)).expect("playable");
    victim.site.run(500);
    victim.plays_on();
}

/// A Refuse that was on its way while the client got in: its attempt is over.
#[test]
fn a_late_refusal_of_an_own_attempt_ends_nothing() {
    let mut tap = Tap::new(vec![]);
    tap.run(300);
    let (_, join) = tap.recorded.iter().find(|(_, bytes)| bytes[3] == 10).expect("a Join");
    let nonce = Nonce(u64::from_le_bytes(join[6..14].try_into().unwrap()));
    for reason in 0..=255 {
        let mut buf = [0; 64];
        let refuse = Refuse { nonce, reason: RefuseReason(reason), text: "late" };
        let len = refuse.emit(&mut buf).unwrap();
        tap.client.handle_datagram(tap.now, &buf[..len]);
    }
    tap.run(500);
    assert!(matches!(tap.client.status(tap.now), ClientStatus::Playing { recovering: false, .. }));
    tap.play();
    assert!(tap.outcome().2.len() > 30);
}

#[test]
fn leaves_with_wrong_tokens_and_pongs_that_were_not_asked_for_are_dropped() {
    let mut victim = Victim::new(26);
    let token = victim.client().session().token().expect("in a session");
    let round_trip = victim.client().round_trip();
    let client_type = caves_wire::caves::ClientType::OFFICIAL;
    for bit in 0..64 {
        let wrong = Token(token.0 ^ (1 << bit));
        let reason = LeaveReason(bit as u8);
        victim.forge(|buf| Leave { client_type, token: wrong, reason }.emit(buf));
        victim.forge(|buf| Echo::pong(1 << bit).emit(buf));
    }
    victim
        .forge(|buf| Leave { client_type, token: Token(0), reason: LeaveReason::KICKED }.emit(buf));
    assert_eq!(victim.client().round_trip(), round_trip, "no forged Pong was measured");
    victim.plays_on();
}

/// What the plain protocol cannot withstand, and what it costs: whoever can send in the server's name
/// and knows the client's port may add a line, whose number the true one then lacks ...
#[test]
fn a_forged_event_with_the_next_number_is_shown_in_place_of_the_true_one() {
    let mut victim = Victim::new(27);
    let event = Event {
        sequence: Sequence::new(0),
        kind: EventKind::NOTICE,
        from: EntityId(0),
        text: "\u{1b}[31mforged",
    };
    victim.site.trust(victim.seat, false);
    victim.forge(|buf| event.emit(buf));
    assert!(victim.site.act(victim.seat, Command::Say("mine".into())));
    victim.site.run(1000);
    let texts = victim.site.seats[victim.seat].texts();
    assert!(texts.contains(&"[31mforged"), "stripped (R32): {texts:?}");
    assert!(!texts.iter().any(|text| text.contains("mine")), "its number was taken: {texts:?}");
    // The next one comes.
    assert!(victim.site.act(victim.seat, Command::Say("again".into())));
    victim.site.run(1000);
    assert!(victim.site.seats[victim.seat].texts().iter().any(|text| text.contains("again")));
    victim.site.trust(victim.seat, true);
    victim.plays_on();
}

/// ... or show a wall where there is none, until the chunk changes or a Welcome empties the cache.
#[test]
fn a_forged_chunk_at_the_present_version_is_shown_until_the_next_welcome() {
    let mut victim = Victim::new(28);
    let entry = victim.manifest()[4];
    victim.forge(|buf| Chunk { entry, palette: &[3], indices: &[0; 1024] }.emit(buf));
    let east = victim.client().mirror().me().unwrap().pos.step(Direction::East);
    let shown = |victim: &Victim| victim.client().mirror().tile(east).map(|tile| tile.0);
    victim.site.run(5000);
    assert_eq!(shown(&victim), Some(3), "bedrock: the client believes that it holds the chunk");
    // Nothing but a Welcome makes the client doubt it: here another forgery leads to one.
    victim.site.trust(victim.seat, false);
    victim.forge_state(victim.tick().wrapping_add(300), 1);
    victim.site.run(4000);
    victim.site.trust(victim.seat, true);
    assert_eq!(victim.attempts(), 2);
    assert_ne!(shown(&victim), Some(3));
    victim.site.assert_chunks_equal(victim.seat);
    victim.plays_on();
}

/// ... or show figures that are not there, and tell that actions were executed which were not.
#[test]
fn forged_entities_are_shown_for_a_tick_and_true_ones_follow() {
    let mut victim = Victim::new(30);
    let (me, tick) = (victim.me(), victim.tick().wrapping_add(1));
    let (last, _) = victim.client().session().executed().unwrap_or((Sequence::new(0), 0));
    let mut block = [0; 16];
    let mut tlv = TlvWriter::new(&mut block);
    tlv.put(tag::EXECUTED_SEQUENCE, &last.get().wrapping_add(1000).to_le_bytes()).unwrap();
    let figure = Entity {
        id: me,
        type_id: 0,
        x: 3000,
        y: 3000,
        hp: 1,
        hp_max: 20,
        elo: 0,
        flags: EntityFlags::default(),
        meta: tlv.finish(),
    };
    victim.site.trust(victim.seat, false);
    let mut buf = [0; 1200];
    let mut builder = EntityBuilder::new(&mut buf, Tick::new(tick), Fnv32::new()).unwrap();
    assert!(builder.push(&figure).unwrap());
    let (len, fnv) = builder.finish(false);
    let forged = buf[..len].to_vec();
    victim.forge_state(tick, fnv.finish());
    victim.forge(|buf| {
        buf[..len].copy_from_slice(&forged);
        Ok(len)
    });
    assert_eq!(victim.client().mirror().me().unwrap().pos.x, 3000);
    victim.site.run(500);
    victim.site.trust(victim.seat, true);
    assert_eq!(victim.client().mirror().me().unwrap().pos, victim.site.true_pos(victim.seat));
    // What it says of its own numbers is taken at its word until the true figure is back.
    victim.site.run(6000);
    victim.plays_on();
}
