//! Thieves, forgers and echoes: what those can do to a session who do not hold it (R20, R22, R28).

mod common;

use caves_session::caves::{Ban, BanTarget, ClientEntry, Left, ServerConfig, ServerEvent};
use caves_session::{DropReason, Peer, Random, SplitMix, StrangerLimits};
use caves_wire::caves::{
    Action, ClientType, Direction, Echo, EntityId, EventAck, EventKind, InfoRequest, Leave,
    LeaveReason, Nonce, Packet, PacketType, Query, RefuseReason, Sequence, Token,
};
use common::{Talk, Wish, action_bytes, join_bytes, named, peer};

const STEP: Action<&str> = Action::Walk(Direction::East);
const REGISTERED: Token = Token(0x0123_4567_89AB_CDEF);

fn written(emit: impl FnOnce(&mut [u8]) -> Result<usize, caves_wire::EmitError>) -> Vec<u8> {
    let mut buf = vec![0; 1200];
    let len = emit(&mut buf).unwrap();
    buf.truncate(len);
    buf
}

/// One packet of every kind that shows a token.
fn packets_with(token: Token) -> Vec<Vec<u8>> {
    let client_type = ClientType(0);
    let mut all = vec![
        action_bytes(token, 1, STEP),
        action_bytes(token, 1, Action::NoOp),
        action_bytes(token, u32::MAX / 2, Action::Say("mine now")),
        written(|buf| Query { client_type, token, entity: EntityId(1) }.emit(buf)),
        written(|buf| EventAck { client_type, token, sequence: Sequence::new(0) }.emit(buf)),
    ];
    // Every reason, known or not.
    all.extend((0..=255).map(|reason| leave(token, reason)));
    all
}

fn leave(token: Token, reason: u8) -> Vec<u8> {
    let leave = Leave { client_type: ClientType(0), token, reason: LeaveReason(reason) };
    written(|buf| leave.emit(buf))
}

fn hello(nonce: u64, version: u8) -> Vec<u8> {
    let mut bytes = vec![0x4C, 0x52, version, 8, 0, 0];
    bytes.extend(nonce.to_le_bytes());
    bytes.resize(64, 0);
    bytes
}

fn ping(stamp: u64) -> Vec<u8> {
    written(|buf| Echo::ping(ClientType(0), stamp).emit(buf))
}

/// Ada plays at 192.0.2.1:5 with a token that everybody else should not have.
fn ada_plays(config: ServerConfig) -> (Talk, Peer, Token) {
    let mut talk = Talk::new(config);
    let ada = peer("192.0.2.1:5");
    let token = talk.join(ada, 7, named("Ada")).token();
    talk.sent.clear();
    talk.events.clear();
    (talk, ada, token)
}

/// She is where she was, and her next action is executed once.
fn she_plays_on(talk: &mut Talk, ada: Peer, token: Token, sequence: u32) {
    assert_eq!(talk.act(ada, token, sequence, STEP), None);
    let id = talk.session();
    assert_eq!(talk.server.session(id).unwrap().peer(), ada);
    let (executed, action) = talk.server.next_action(id).expect("her own");
    assert_eq!((executed.get(), action), (sequence, Action::Walk(Direction::East)));
    assert_eq!(talk.server.next_action(id), None, "and nobody else's");
}

#[test]
fn a_copied_token_is_dropped_and_counted_at_any_other_address_and_answers_nothing() {
    let (mut talk, ada, token) = ada_plays(ServerConfig::default());
    let mut sent = 0;
    for thief in ["192.0.2.1:6", "192.0.2.2:5", "[2001:db8::1]:5", "[::ffff:192.0.2.1]:6"] {
        for bytes in packets_with(token) {
            assert_eq!(talk.give(peer(thief), &bytes), Some(DropReason::Address));
            assert_eq!(talk.sent, []);
            sent += 1;
        }
    }
    assert_eq!(sent, 4 * 261);
    assert_eq!(talk.server.counters().dropped(DropReason::Address), sent);
    assert_eq!(talk.events, []);
    she_plays_on(&mut talk, ada, token, 1);
}

#[test]
fn a_thief_does_not_keep_a_session_alive_and_neither_does_a_forger() {
    let (mut talk, ada, token) = ada_plays(ServerConfig::default());
    for round in 0..99 {
        talk.wait(100);
        talk.give(peer("192.0.2.2:5"), &action_bytes(token, round, Action::NoOp));
        talk.give(ada, &action_bytes(Token(token.0 ^ 1), round, Action::NoOp));
        talk.give(ada, &ping(1));
        talk.give(ada, &hello(round.into(), 1));
    }
    assert_eq!(talk.server.len(), 1);
    talk.wait(100);
    assert_eq!(talk.server.len(), 0, "ten seconds after she was heard");
    assert!(matches!(talk.events.last(), Some(ServerEvent::Left { why: Left::Silence, .. })));
}

/// What a copied token is worth (notes/protocol.md, what the protocol does not promise): nothing
/// while the player is heard, the session once the player was silent for three seconds.
#[test]
fn a_copied_token_takes_a_session_over_by_a_join_after_three_silent_seconds_and_not_before() {
    let (mut talk, ada, token) = ada_plays(ServerConfig::default());
    let thief = peer("198.51.100.9:1");
    let wish = Wish { token: Some(token), ..named("Ada") };
    for round in 0..40 {
        // She says something every two seconds (R21).
        talk.wait(if round % 2 == 0 { 1999 } else { 1 });
        if round % 2 == 1 {
            assert_eq!(talk.act(ada, token, 1, Action::NoOp), None);
        }
        let bytes = talk.join_bytes(thief, 100 + round, wish);
        assert_eq!(talk.give(thief, &bytes), Some(DropReason::Wait));
        assert_eq!(talk.sent, []);
    }
    she_plays_on(&mut talk, ada, token, 1);
    talk.wait(3000);
    assert_eq!(talk.join(thief, 999, wish).token(), token);
}

#[test]
fn a_leave_counts_with_the_token_and_from_the_address_of_its_session_alone() {
    let (mut talk, ada, token) = ada_plays(ServerConfig::default());
    let mut random = SplitMix::new(3);
    let wrong = (0..1000).map(|_| random.next_u64());
    let near = (0..64).map(|bit| token.0 ^ (1 << bit));
    for guess in wrong.chain(near).chain([0, u64::MAX, REGISTERED.0]) {
        assert_eq!(talk.give(ada, &leave(Token(guess), 0)), Some(DropReason::Token));
    }
    // A Leave that has lost its token, or its reason.
    for len in 0..15 {
        assert_eq!(talk.give(ada, &leave(token, 0)[..len]), Some(DropReason::Malformed));
    }
    assert_eq!(talk.sent, []);
    she_plays_on(&mut talk, ada, token, 1);
    assert_eq!(talk.give(ada, &leave(token, 0)), None);
    assert_eq!(talk.server.len(), 0);
}

/// R18: a client of its own may jump to any newer number, and nobody can do so for it.
#[test]
fn a_far_sequence_is_its_own_clients_affair() {
    let (mut talk, ada, token) = ada_plays(ServerConfig::default());
    she_plays_on(&mut talk, ada, token, 10);
    let far = 10u32.wrapping_add(i32::MAX as u32);
    assert_eq!(talk.act(peer("192.0.2.2:5"), token, far, STEP), Some(DropReason::Address));
    assert_eq!(talk.act(ada, Token(5), far, STEP), Some(DropReason::Token));
    she_plays_on(&mut talk, ada, token, 11);
    // From 11 on, the newest number that is newer.
    let far = 11u32.wrapping_add(i32::MAX as u32);
    she_plays_on(&mut talk, ada, token, far);
    // One further is half the circle away from 11, and one newer than the far one.
    talk.act(ada, token, 12, STEP);
    let id = talk.session();
    assert_eq!(talk.server.next_action(id), None, "12 is old now");
    she_plays_on(&mut talk, ada, token, far + 1);
}

/// Whoever forges a player's address sends what he likes in its name. Only its own pings, and what
/// its address may ask as a stranger, can be spent by that.
#[test]
fn junk_in_a_players_name_costs_it_nothing_that_it_plays_with() {
    let strangers = StrangerLimits { exempt: vec![], ..StrangerLimits::default() };
    let (mut talk, ada, token) = ada_plays(ServerConfig { strangers, ..ServerConfig::default() });
    let mut random = SplitMix::new(11);
    for round in 1..=200u32 {
        for packet_type in 0..=255 {
            let len = random.next_u64() as usize % 1300;
            let mut bytes = vec![0x4C, 0x52, 1, packet_type, 0, 0];
            bytes.extend((0..len).map(|_| random.next_u64() as u8));
            talk.give(ada, &bytes);
        }
        for wrong in [Token(0), Token(random.next_u64()), Token(token.0 ^ 1 << (round % 64))] {
            for bytes in packets_with(wrong).iter().take(6) {
                assert_eq!(talk.give(ada, bytes), Some(DropReason::Token));
            }
        }
        talk.give(ada, &hello(round.into(), 1));
        talk.give(ada, &hello(round.into(), 2));
        talk.give(ada, &join_bytes(round.into(), [3; 16], named("Eve")));
        talk.give(ada, &join_bytes(7, [3; 16], named("Ada")));
        talk.give(ada, &ping(u64::from(round)));
        talk.wait(50);
        // Her own actions, one every two ticks, and her questions.
        she_plays_on(&mut talk, ada, token, round);
        if round % 2 == 0 {
            let entity = EntityId(1);
            let query = Query { client_type: ClientType(0), token, entity };
            assert_eq!(talk.give(ada, &written(|buf| query.emit(buf))), None, "{round}");
        }
    }
    assert!(talk.server.counters().dropped(DropReason::Budget) > 100);
    assert!(talk.events.is_empty(), "{:?}", talk.events);
    // When it is over she is a stranger like any other again: she may recover.
    talk.wait(2000);
    let again = talk.join(ada, 5000, Wish { token: Some(token), ..named("Ada") });
    assert_eq!(again.token(), token);
}

#[test]
fn a_flood_of_pings_from_a_players_address_spends_its_pings_and_nothing_else() {
    let strangers = StrangerLimits { exempt: vec![], ..StrangerLimits::default() };
    let (mut talk, ada, token) = ada_plays(ServerConfig { strangers, ..ServerConfig::default() });
    talk.wait(5000);
    talk.act(ada, token, 1, Action::NoOp);
    let mut answered = 0;
    for stamp in 0..10_000 {
        talk.give(ada, &ping(stamp));
        answered += talk.sent.len();
        talk.now += std::time::Duration::from_millis(1);
    }
    // Four at once and two a second, over ten seconds less a millisecond.
    assert_eq!(answered, 4 + 19);
    assert_eq!(talk.server.counters().dropped(DropReason::Rate), 10_000 - 23);
    assert_eq!(talk.server.len(), 1);
    // Her address has all that strangers may ask: twenty at once.
    let hellos = (0..30).filter(|n| talk.give(peer("192.0.2.1:6"), &hello(*n, 1)).is_none());
    assert_eq!(hellos.count(), 20);
    she_plays_on(&mut talk, ada, token, 1);
}

#[test]
fn a_flood_of_pings_from_strangers_is_answered_as_any_flood_is() {
    let strangers = StrangerLimits { exempt: vec![], ..StrangerLimits::default() };
    let (mut talk, ada, token) = ada_plays(ServerConfig { strangers, ..ServerConfig::default() });
    let mut answered = 0u64;
    for number in 0..200_000u32 {
        let [a, b, c, d] = (0x0A00_0000 + number % 10_000 * 8191).to_be_bytes();
        talk.give(Peer { socket: 0, addr: ([a, b, c, d], 9).into() }, &ping(number.into()));
        answered += talk.sent.len() as u64;
        talk.now += std::time::Duration::from_micros(50);
        if number % 20_000 == 0 {
            talk.act(ada, token, 1, Action::NoOp);
        }
    }
    assert!((20_000..=22_000).contains(&answered), "2,000 a second for ten seconds: {answered}");
    assert_eq!(talk.server.counters().dropped(DropReason::Budget), 200_000 - answered);
    she_plays_on(&mut talk, ada, token, 1);
}

/// The longest texts that there are, so that an answer is as long as it can get.
fn wordy() -> ServerConfig {
    let net = |text: &str| BanTarget::Address(text.parse().unwrap());
    ServerConfig {
        name: "N".repeat(64),
        motd: "M".repeat(512),
        strangers: StrangerLimits {
            per_second: 1_000_000,
            burst: 1_000_000,
            total_per_second: 1_000_000,
            exempt: vec![],
        },
        bans: vec![
            Ban { target: net("198.51.100.0/24"), reason: "away with you ".repeat(20) },
            Ban { target: BanTarget::Name("Grimm".into()), reason: "no ".repeat(90) },
        ],
        clients: vec![ClientEntry {
            client_type: ClientType(7),
            name: Some("Robo".into()),
            allow: true,
            token: Some(REGISTERED),
            from: vec!["203.0.113.0/24".parse().unwrap()],
            tags: true,
        }],
        ..ServerConfig::default()
    }
}

/// Bytes that came from an address and bytes that went to it, checked after each datagram.
struct Ledger {
    talk: Talk,
    from: Peer,
    came: usize,
    went: usize,
    answers: [usize; 256],
}

impl Ledger {
    fn new(from: &str) -> Self {
        let (mut talk, ..) = ada_plays(wordy());
        talk.wait(2000);
        Self { talk, from: peer(from), came: 0, went: 0, answers: [0; 256] }
    }

    fn give(&mut self, bytes: &[u8]) {
        self.talk.give(self.from, bytes);
        // Each datagram is answered by no more than itself, so every prefix is, too.
        let mut went = 0;
        for (to, answer) in &self.talk.sent {
            assert_eq!(*to, self.from, "and by nothing to anybody else");
            went += answer.len();
            self.answers[usize::from(answer[3])] += 1;
        }
        let kind = bytes.get(3).copied().unwrap_or(0);
        assert!(went <= bytes.len(), "{went} bytes for {} of type {kind}", bytes.len());
        self.came += bytes.len();
        self.went += went;
        self.talk.now += std::time::Duration::from_micros(1);
    }

    /// Nothing comes later either.
    fn is_settled(&mut self) {
        self.talk.sent.clear();
        self.talk.wait(9000);
        let to_it = self.talk.sent.iter().filter(|(to, _)| *to == self.from).count();
        assert_eq!(to_it, 0);
        assert!(self.went <= self.came);
    }
}

/// Every packet type, every length, bodies of zeros, of ones, of a living token and of noise.
#[test]
fn no_type_at_no_length_is_answered_with_more_bytes_than_it_has() {
    let mut ledger = Ledger::new("10.9.8.7:6");
    assert_eq!(ledger.talk.server.len(), 1, "there is a session that could be meant");
    let mut random = SplitMix::new(1);
    for version in [0, 1, 2, 255] {
        for packet_type in 0..=255u8 {
            for len in 0..=1202usize {
                // All lengths of version 1; of others those around the one that is answered.
                if version != 1 && !(60..70).contains(&len) {
                    continue;
                }
                let fill = random.next_u64();
                let body = match fill % 3 {
                    0 => 0,
                    1 => 0xFF,
                    _ => fill as u8,
                };
                let mut bytes = vec![body; len];
                let header = [0x4C, 0x52, version, packet_type, 0, 0];
                let shown = len.min(6);
                bytes[..shown].copy_from_slice(&header[..shown]);
                ledger.give(&bytes);
            }
        }
    }
    ledger.is_settled();
    let answered: Vec<usize> = (0..256).filter(|kind| ledger.answers[*kind] > 0).collect();
    // Pong, Challenge, Refuse (of the version, and of cookies), Info.
    assert_eq!(answered, [7, 9, 12, 19]);
}

/// Well-formed packets of all types: with tokens that are living, dead, registered or none, TLV
/// blocks of every size, texts of every length.
#[test]
fn no_valid_packet_of_a_stranger_is_answered_with_more_bytes_than_it_has() {
    for from in ["10.9.8.7:6", "198.51.100.7:6", "[2001:db8::7]:6", "192.0.2.1:6"] {
        let mut ledger = Ledger::new(from);
        // Her session's token, as somebody on the path has read it.
        let copied = ledger.talk.join(peer("192.0.2.1:5"), 8, named("Ada")).token();
        for token in [copied, Token(0), Token(77), REGISTERED] {
            for bytes in packets_with(token) {
                ledger.give(&bytes);
            }
            for len in 1..=200 {
                ledger.give(&action_bytes(token, 3, Action::Say(&"s".repeat(len))));
            }
            for name in ["", "Eve", "Grimm", "Robo", "Ada", " bad "] {
                let wish = Wish { token: Some(token), ..named(name) };
                ledger.give(&join_bytes(5, [9; 16], wish));
            }
        }
        for filler in 0..=1168 {
            ledger.give(&long_join(6, [9; 16], filler, "Eve"));
        }
        for nonce in 0..100 {
            ledger.give(&ping(nonce));
            ledger.give(&hello(nonce, 1));
            ledger.give(&hello(nonce, 9));
            let request = InfoRequest { client_type: ClientType(0), nonce: Nonce(nonce) };
            ledger.give(&written(|buf| request.emit(buf)));
        }
        for server_type in [0, 2, 3, 5, 7, 9, 11, 12, 13, 14, 15, 17, 19, 20, 255] {
            ledger.give(&[0x4C, 0x52, 1, server_type, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        }
        ledger.is_settled();
        assert!(ledger.answers[12] > 1000 && ledger.answers[19] == 100, "{from}");
    }
}

/// A Join with a true cookie that is refused is not answered with more bytes than it has either,
/// whatever the text, and as often as it comes.
#[test]
fn a_refused_join_with_a_true_cookie_gets_no_more_bytes_than_it_has() {
    for (from, name) in [("198.51.100.7:6", "Eve"), ("10.9.8.7:6", "Grimm"), ("10.9.8.7:6", "Ada")]
    {
        let mut ledger = Ledger::new(from);
        let mut longest = 0;
        for filler in 0..=1160 {
            let nonce = 1000 + filler as u64;
            ledger.give(&hello(nonce, 1));
            let cookie = ledger.talk.sent[0].1[14..30].try_into().unwrap();
            for _ in 0..2 {
                ledger.give(&long_join(nonce, cookie, filler, name));
                let answer = &ledger.talk.sent[0].1;
                let Packet::Refuse(refuse) = Packet::parse(answer).unwrap() else {
                    panic!("type {}", answer[3]);
                };
                assert_ne!(refuse.reason(), RefuseReason::BAD_COOKIE);
                longest = longest.max(answer.len());
            }
        }
        ledger.is_settled();
        assert!(longest > 17, "there was a text to cut");
    }
}

/// A Join of a name, and so many bytes of a tag that nobody knows (one field has two more).
fn long_join(nonce: u64, cookie: [u8; 16], filler: usize, name: &str) -> Vec<u8> {
    let mut bytes = vec![0x4C, 0x52, 1, PacketType::JOIN.0, 0, 0];
    bytes.extend(nonce.to_le_bytes());
    bytes.extend(cookie);
    let mut block = vec![0x20, name.len() as u8];
    block.extend(name.bytes());
    let mut left = filler;
    while left >= 2 {
        let len = (left - 2).min(255);
        block.extend([0x7F, len as u8]);
        block.extend(vec![b'x'; len]);
        left -= 2 + len;
    }
    bytes.extend((block.len() as u16).to_le_bytes());
    bytes.extend(block);
    bytes
}

/// Who has proven an address gets what a session gets, and it ends. Leaves are said three times, to
/// the last address alone.
#[test]
fn a_proven_address_is_sent_to_until_its_session_moves_and_not_after() {
    let (mut talk, old, token) = ada_plays(ServerConfig::default());
    let new = peer("198.51.100.9:1");
    talk.wait(3000);
    talk.join(new, 9, Wish { token: Some(token), ..named("Ada") }).token();
    talk.sent.clear();
    let id = talk.session();
    for _ in 0..20 {
        talk.server.send_event(id, EventKind::NOTICE, EntityId(0), &"n".repeat(1000));
    }
    talk.wait(9000);
    talk.server.end(talk.now, id, LeaveReason::KICKED);
    talk.wait(1000);
    assert!(talk.sent.iter().all(|(to, _)| *to == new), "nothing to {old}");
    let leaves = talk.sent.iter().filter(|(_, bytes)| bytes[3] == 13).count();
    assert_eq!(leaves, 3);
    talk.sent.clear();
    talk.wait(60_000);
    assert_eq!(talk.sent, []);
}

/// The price of opening a session without a proof of address (R30): inside its networks, and there
/// alone, a copied registered token makes a session for whoever's address is forged.
#[test]
fn a_copied_registered_token_opens_sessions_inside_its_networks_alone() {
    let mut talk = Talk::new(wordy());
    for outside in ["10.9.8.7:6", "203.0.112.255:6", "203.0.114.0:6", "[2001:db8::7]:6"] {
        for bytes in packets_with(REGISTERED) {
            assert_eq!(talk.give(peer(outside), &bytes), Some(DropReason::Token));
            assert_eq!(talk.sent, []);
        }
    }
    assert_eq!(talk.server.len(), 0);
    assert_eq!(talk.act(peer("203.0.113.9:6"), REGISTERED, 1, STEP), None);
    assert_eq!(talk.server.len(), 1);
    // It ends as all sessions end, and one that is played from elsewhere inside is not taken away.
    assert_eq!(talk.act(peer("203.0.113.8:6"), REGISTERED, 1, STEP), Some(DropReason::Address));
    talk.wait(10_000);
    assert_eq!(talk.server.len(), 0);
}
