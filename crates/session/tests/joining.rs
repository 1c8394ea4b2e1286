//! Section 2: attempt, cookie, repeats, names, refusals.

mod common;

use caves_session::caves::{Ban, BanTarget, ClientEntry, Left, ServerConfig, ServerEvent};
use caves_session::{DropReason, StrangerLimits};
use caves_wire::caves::{Action, ClientType, Direction, Features, RefuseReason, Token};
use common::{Answer, GUEST, Talk, Wish, action_bytes, join_bytes, named, peer, refuse_text};

const STEP: Action<&str> = Action::Walk(Direction::East);

fn talk() -> Talk {
    Talk::new(ServerConfig::default())
}

#[test]
fn a_hello_is_answered_with_62_bytes_and_keeps_nothing() {
    let mut talk = talk();
    assert!(talk.hello(peer("192.0.2.1:5"), 7, 0).is_some());
    assert_eq!(talk.sent.len(), 1);
    assert_eq!(talk.sent[0].1.len(), 62);
    assert_eq!(talk.server.len(), 0);
}

#[test]
fn a_join_with_its_cookie_is_welcomed() {
    let mut talk = talk();
    let answer = talk.join(peer("192.0.2.1:5"), 7, named("Ada"));
    let Answer::Welcome { features, next_event, token, .. } = answer else { panic!("{answer:?}") };
    assert_eq!((features, next_event), (Features::EVENTS, Some(0)));
    assert_ne!(token, Token(0));
    let id = talk.session();
    assert_eq!(talk.server.session(id).unwrap().name(), "Ada");
}

#[test]
fn who_asks_for_no_feature_gets_none() {
    let mut talk = talk();
    let answer = talk.join(peer("192.0.2.1:5"), 7, GUEST);
    assert!(matches!(answer, Answer::Welcome { features: Features(0), next_event: None, .. }));
    let id = talk.session();
    assert!(!talk.server.send_event(
        id,
        caves_wire::caves::EventKind::NOTICE,
        caves_wire::caves::EntityId(0),
        "x"
    ));
}

#[test]
fn unknown_features_are_not_granted() {
    let mut talk = talk();
    let answer = talk.join(peer("192.0.2.1:5"), 7, Wish { features: u32::MAX, ..GUEST });
    assert!(matches!(answer, Answer::Welcome { features: Features(3), .. }), "{answer:?}");
}

#[test]
fn a_guest_is_named_by_its_entity_and_never_like_somebody_else() {
    let mut talk = talk();
    talk.join(peer("192.0.2.1:5"), 7, named("Guest-3"));
    let Answer::Welcome { entity, .. } = talk.join(peer("192.0.2.1:6"), 7, GUEST) else { panic!() };
    let names: Vec<_> = talk.server.sessions().map(|(_, s)| s.name().to_owned()).collect();
    assert_eq!(entity, 3);
    assert_eq!(names, ["Guest-3", "guest-3-2"]);
}

#[test]
fn a_repeated_join_gets_the_same_welcome_at_most_every_100_ms_and_20_times() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    let bytes = talk.join_bytes(from, 7, named("Ada"));
    talk.give(from, &bytes);
    let welcome = talk.sent[0].1.clone();
    assert_eq!(talk.give(from, &bytes), Some(DropReason::Join), "too soon");
    let mut again = 0;
    for _ in 0..40 {
        talk.wait(100);
        talk.give(from, &bytes);
        for (_, sent) in &talk.sent {
            assert_eq!(*sent, welcome);
            again += 1;
        }
    }
    assert_eq!(again, 20);
    assert_eq!(talk.server.len(), 1);
}

#[test]
fn other_bytes_under_a_nonce_in_use_are_dropped() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    let bytes = talk.join_bytes(from, 7, named("Ada"));
    talk.give(from, &bytes);
    talk.wait(200);
    let cookie: [u8; 16] = bytes[14..30].try_into().unwrap();
    assert_eq!(talk.give(from, &join_bytes(7, cookie, named("Eve"))), Some(DropReason::Join));
    assert_eq!(talk.sent, []);
}

#[test]
fn a_wrong_old_or_foreign_cookie_is_refused() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    let bad = Answer::Refused(RefuseReason::BAD_COOKIE);
    talk.give(from, &join_bytes(7, [0; 16], GUEST));
    assert_eq!(talk.answer(from), bad);

    let bytes = talk.join_bytes(from, 7, GUEST);
    let other = peer("192.0.2.1:6");
    talk.give(other, &bytes);
    assert_eq!(talk.answer(other), bad);
    talk.wait(20_000);
    talk.give(from, &bytes);
    assert_eq!(talk.answer(from), bad);
}

#[test]
fn a_cookie_opens_one_session() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    let bytes = talk.join_bytes(from, 7, GUEST);
    talk.give(from, &bytes);
    let token = talk.answer(from).token();
    assert_eq!(talk.leave(from, token), None);
    assert_eq!(talk.server.len(), 0);
    talk.give(from, &bytes);
    assert_eq!(talk.answer(from), Answer::Refused(RefuseReason::BAD_COOKIE));
}

#[test]
fn the_old_join_of_a_moved_session_opens_nothing() {
    let mut talk = talk();
    let (from, to) = (peer("192.0.2.1:5"), peer("192.0.2.1:6"));
    let bytes = talk.join_bytes(from, 7, named("Ada"));
    talk.give(from, &bytes);
    let token = talk.answer(from).token();
    talk.wait(3000);
    talk.join(to, 8, Wish { token: Some(token), ..named("Ada") });
    talk.give(from, &bytes);
    assert_eq!(talk.answer(from), Answer::Refused(RefuseReason::BAD_COOKIE));
    assert_eq!(talk.server.len(), 1);
}

#[test]
fn another_version_is_told_ours_but_only_for_a_hello_of_64_bytes() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    let mut hello = [0; 64];
    hello[..6].copy_from_slice(&[0x4C, 0x52, 9, 8, 0, 0]);
    talk.give(from, &hello);
    assert_eq!(talk.answer(from), Answer::Refused(RefuseReason::VERSION));
    assert!(talk.sent[0].1.len() <= 64);
    assert_eq!(talk.sent[0].1[15], 1, "our version");
    assert_eq!(talk.give(from, &hello[..63]), Some(DropReason::Version));
    let mut action = action_bytes(Token(5), 1, STEP);
    action[2] = 2;
    assert_eq!(talk.give(from, &action), Some(DropReason::Version));
    assert_eq!(talk.sent, []);
}

#[test]
fn bad_names_are_refused() {
    let mut talk = talk();
    let bad = Answer::Refused(RefuseReason::BAD_NAME);
    for (nonce, name) in
        [&b""[..], b" Ada", b"Ada ", &[b'x'; 33], b"a\xFFb", b"a\x07b", "a\u{202E}b".as_bytes()]
            .into_iter()
            .enumerate()
    {
        let wish = Wish { name: Some(name), ..GUEST };
        assert_eq!(talk.join(peer("127.0.0.1:5"), nonce as u64, wish), bad, "{name:?}");
    }
    let longest = Wish { name: Some(&[b'x'; 32]), ..GUEST };
    assert!(matches!(talk.join(peer("127.0.0.1:5"), 99, longest), Answer::Welcome { .. }));
}

#[test]
fn a_name_in_use_is_taken_however_it_is_written() {
    let mut talk = talk();
    talk.join(peer("192.0.2.1:5"), 7, named("Ada"));
    let taken = Answer::Refused(RefuseReason::NAME_TAKEN);
    assert_eq!(talk.join(peer("192.0.2.2:5"), 7, named("ADA")), taken);
    assert_eq!(talk.join(peer("192.0.2.2:5"), 8, named("ａｄａ")), taken);
    talk.wait(10_000);
    let freed = talk.join(peer("192.0.2.2:5"), 9, named("ADA"));
    assert!(matches!(freed, Answer::Welcome { .. }), "the holder fell silent: {freed:?}");
}

#[test]
fn a_player_who_died_without_a_goodbye_takes_its_place_again() {
    let mut talk = talk();
    let first = talk.join(peer("192.0.2.1:5"), 7, named("Ada"));
    let Answer::Welcome { token, entity, .. } = first else { panic!() };
    let taken = Answer::Refused(RefuseReason::NAME_TAKEN);
    talk.wait(2999);
    assert_eq!(talk.join(peer("192.0.2.1:6"), 8, named("Ada")), taken);
    talk.wait(1);
    let second = talk.join(peer("192.0.2.1:6"), 9, named("Ada"));
    let Answer::Welcome { token: new, entity: same, .. } = second else { panic!("{second:?}") };
    assert_eq!(same, entity);
    assert_ne!(new, token);
    assert_eq!(talk.server.len(), 1);
    assert_eq!(talk.act(peer("192.0.2.1:5"), token, 1, STEP), Some(DropReason::Token));
}

#[test]
fn three_that_died_from_one_address_do_not_block_the_fourth() {
    let mut talk = talk();
    for port in 1..=4 {
        let from = peer(&format!("192.0.2.1:{port}"));
        assert!(matches!(talk.join(from, 7, named("Ada")), Answer::Welcome { .. }), "{port}");
        talk.wait(3000);
    }
    assert_eq!(talk.server.len(), 1);
}

#[test]
fn a_restart_on_the_same_port_replaces_the_session() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    let first = talk.join(from, 7, named("Ada")).token();
    let second = talk.join(from, 8, named("Bob")).token();
    assert_ne!(first, second);
    assert_eq!(talk.server.len(), 1);
    assert!(talk.events.iter().any(|event| matches!(
        event,
        ServerEvent::Left { name, why: Left::Ended(_), .. } if name == "Ada"
    )));
}

#[test]
fn full_banned_and_crowded_servers_say_so() {
    let limits = StrangerLimits { exempt: vec![], ..StrangerLimits::default() };
    let bans = vec![
        Ban {
            target: BanTarget::Address("198.51.100.0/24".parse().unwrap()),
            reason: "spam".into(),
        },
        Ban { target: BanTarget::Name("mallory".into()), reason: "rude".into() },
    ];
    let mut talk = Talk::new(ServerConfig {
        max_players: 3,
        sessions_per_address: 2,
        strangers: limits,
        bans,
        ..ServerConfig::default()
    });
    let refused = Answer::Refused;
    assert_eq!(talk.join(peer("198.51.100.9:1"), 1, GUEST), refused(RefuseReason::BANNED));
    assert_eq!(refuse_text(&talk.sent[0].1), "spam"[..].to_owned());
    assert_eq!(talk.join(peer("192.0.2.1:1"), 1, named("Mallory")), refused(RefuseReason::BANNED));
    for port in 2..=3 {
        talk.join(peer(&format!("192.0.2.1:{port}")), 1, GUEST).token();
    }
    assert_eq!(talk.join(peer("192.0.2.1:4"), 1, GUEST), refused(RefuseReason::TOO_MANY));
    talk.join(peer("192.0.2.2:1"), 1, GUEST).token();
    assert_eq!(talk.join(peer("192.0.2.3:1"), 1, GUEST), refused(RefuseReason::FULL));
}

#[test]
fn other_client_types_need_an_entry() {
    let entry = |client_type, allow| ClientEntry {
        client_type: ClientType(client_type),
        name: None,
        allow,
        token: None,
        from: vec![],
        tags: false,
    };
    let clients = vec![entry(7, true), entry(8, false)];
    let mut talk = Talk::new(ServerConfig { clients, ..ServerConfig::default() });
    let no = Answer::Refused(RefuseReason::CLIENT_TYPE);
    assert_eq!(talk.join(peer("192.0.2.1:1"), 1, Wish { client_type: 9, ..GUEST }), no);
    assert_eq!(talk.join(peer("192.0.2.1:2"), 1, Wish { client_type: 8, ..GUEST }), no);
    talk.join(peer("192.0.2.1:3"), 1, Wish { client_type: 7, ..GUEST }).token();
}

#[test]
fn a_server_that_stops_says_goodbye_three_times_and_lets_nobody_in() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    talk.join(from, 7, GUEST).token();
    talk.sent.clear();
    talk.server.shut_down(talk.now);
    talk.wait(60);
    let leaves = talk.sent.iter().filter(|(to, bytes)| *to == from && bytes[3] == 13).count();
    assert_eq!(leaves, 3);
    assert!(talk.sent.iter().all(|(_, bytes)| bytes[14] == 4), "reason");
    assert!(talk.server.is_drained());
    let answer = talk.join(peer("192.0.2.1:6"), 8, GUEST);
    assert_eq!(answer, Answer::Refused(RefuseReason::SHUTTING_DOWN));
}

#[test]
fn strangers_have_their_budget_and_players_are_not_delayed_by_it() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    let token = talk.join(from, 7, GUEST).token();
    let flood = (0..100).filter(|n| talk.hello(peer("192.0.2.1:9"), *n, 0).is_some()).count();
    assert_eq!(flood, 18, "twenty, less the two of the join");
    assert_eq!(talk.act(from, token, 1, STEP), None);
    let ping = [0x4C, 0x52, 1, 6, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    talk.give(from, &ping);
    assert_eq!(talk.sent[0].1, [0x4C, 0x52, 1, 7, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(talk.give(peer("192.0.2.1:9"), &ping), Some(DropReason::Budget));
}

#[test]
fn a_session_has_four_pings_at_once_and_two_a_second() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    talk.join(from, 7, GUEST).token();
    let ping = [0x4C, 0x52, 1, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut answered = || (0..20).filter(|_| talk.give(from, &ping).is_none()).count();
    assert_eq!(answered(), 4);
    talk.wait(1000);
    let again = (0..20).filter(|_| talk.give(from, &ping).is_none()).count();
    assert_eq!(again, 2);
}

/// The promise of section 2, on every path: no unproven address ever gets more bytes than it sent.
#[test]
fn no_packet_of_a_stranger_is_answered_with_more_bytes() {
    let mut talk = talk();
    let token = talk.join(peer("192.0.2.1:5"), 7, named("Ada")).token();
    let mut random = caves_session::SplitMix::new(9);
    let mut next = || caves_session::Random::next_u64(&mut random);
    let mut answered = 0;
    for round in 0..20_000u32 {
        let from = peer(&format!("10.{}.{}.{}:77", round >> 16, round >> 8 & 255, round & 255));
        let len = [14, 15, 17, 18, 32, 42, 64, 72, 74, 256, 1200][next() as usize % 11];
        let mut bytes = vec![0; len];
        for byte in &mut bytes {
            *byte = next() as u8;
        }
        let version = if round.is_multiple_of(5) { 2 } else { 1 };
        bytes[..6].copy_from_slice(&[0x4C, 0x52, version, (next() % 20) as u8, 0, 0]);
        if bytes[3] == 10 && len >= 32 {
            bytes[30..32].copy_from_slice(&((len - 32) as u16).to_le_bytes());
            bytes[32..].fill(0);
        }
        if round.is_multiple_of(3) {
            bytes[6..14].copy_from_slice(&token.0.to_le_bytes());
        }
        talk.now += std::time::Duration::from_millis(1);
        talk.give(from, &bytes);
        let back: usize =
            talk.sent.iter().filter(|(to, _)| *to == from).map(|(_, b)| b.len()).sum();
        assert!(back <= len, "{back} bytes for {len} of type {}", bytes[3]);
        answered += usize::from(back > 0);
    }
    assert!(answered > 300, "some were answered: {answered}");
}
