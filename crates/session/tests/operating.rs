//! What an operator does to living sessions: other limits, bans, showing out, figures.

mod common;

use std::time::Duration;

use caves_session::caves::{
    Ban, BanTarget, ClientEntry, Left, Missing, ServerConfig, ServerEvent, Traffic,
};
use caves_session::{Peer, StrangerLimits};
use caves_wire::caves::{
    Action, ClientType, Direction, EntityId, EventAck, EventKind, LeaveReason, LeaveView, Packet,
    RefuseReason, Sequence, Token,
};
use common::{Answer, GUEST, Talk, Wish, action_bytes, named, peer, refuse_text};

const STEP: Action<&str> = Action::Walk(Direction::East);
const TOKEN: Token = Token(0x1234_5678_9ABC);

fn talk() -> Talk {
    Talk::new(ServerConfig::default())
}

fn entry(client_type: u16) -> ClientEntry {
    ClientEntry {
        client_type: ClientType(client_type),
        name: None,
        allow: true,
        token: None,
        from: vec!["127.0.0.0/8".parse().unwrap()],
        tags: false,
    }
}

fn registered(name: &str) -> ClientEntry {
    ClientEntry { name: Some(name.into()), token: Some(TOKEN), ..entry(7) }
}

fn ban(target: &str, reason: &str) -> Ban {
    let target = match target.parse() {
        Ok(net) => BanTarget::Address(net),
        Err(_) => BanTarget::Name(target.into()),
    };
    Ban { target, reason: reason.into() }
}

/// Joins and says the first word, so that events reach it.
fn come(talk: &mut Talk, from: Peer, wish: Wish<'_>) -> Token {
    let token = talk.join(from, u64::from(from.addr.port()), wish).token();
    talk.act(from, token, 1, Action::NoOp);
    token
}

fn acknowledge(talk: &mut Talk, from: Peer, token: Token, sequence: u32) {
    let mut buf = [0; 64];
    let ack = EventAck { client_type: ClientType(0), token, sequence: Sequence::new(sequence) };
    let len = ack.emit(&mut buf).unwrap();
    talk.give(from, &buf[..len]);
}

/// What was said to a client since the server was last asked.
fn said(talk: &Talk, to: Peer) -> Vec<String> {
    let at = talk.sent.iter().filter(|(at, _)| *at == to);
    let said = at.filter_map(|(_, bytes)| match Packet::parse(bytes).unwrap() {
        Packet::Event(event) => {
            assert_eq!((event.kind(), event.from()), (EventKind::NOTICE, EntityId(0)));
            Some(event.text().to_owned())
        }
        Packet::Leave(leave) => Some(format!("leave {}", leave.reason().0)),
        _ => None,
    });
    said.collect()
}

fn left(talk: &Talk) -> Vec<(String, Left)> {
    let left = talk.events.iter().filter_map(|event| match event {
        ServerEvent::Left { name, why, .. } => Some((name.clone(), *why)),
        _ => None,
    });
    left.collect()
}

fn ended(name: &str, reason: LeaveReason) -> (String, Left) {
    (name.to_owned(), Left::Ended(reason))
}

#[test]
fn who_is_shown_out_reads_why_and_leaves_when_it_has_read() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    let token = come(&mut talk, from, named("Ada"));
    let id = talk.server.find_by_name("ADA").unwrap();
    assert!(talk.server.show_out(talk.now, id, LeaveReason::KICKED, "no digging in the hall"));
    talk.sent.clear();
    talk.wait(0);
    assert_eq!(said(&talk, from), ["no digging in the hall"]);
    assert!(talk.server.session(id).unwrap().is_leaving());
    talk.wait(80);
    acknowledge(&mut talk, from, token, 0);
    assert_eq!(said(&talk, from), ["leave 1"], "at once");
    assert_eq!(left(&talk), [ended("Ada", LeaveReason::KICKED)]);
    talk.sent.clear();
    talk.wait(1000);
    assert_eq!(said(&talk, from), ["leave 1", "leave 1"], "three times in all, and no event");
}

#[test]
fn what_was_said_before_is_no_sign_that_the_reason_was_read() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    let token = come(&mut talk, from, named("Ada"));
    let id = talk.session();
    talk.server.send_event(id, EventKind::NOTICE, EntityId(0), "earlier");
    talk.server.show_out(talk.now, id, LeaveReason::KICKED, "why");
    talk.wait(10);
    acknowledge(&mut talk, from, token, 0);
    assert_eq!(talk.server.len(), 1);
    acknowledge(&mut talk, from, token, 1);
    assert_eq!(talk.server.len(), 0);
}

#[test]
fn who_does_not_acknowledge_leaves_after_a_second() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    come(&mut talk, from, named("Ada"));
    let id = talk.session();
    talk.server.show_out(talk.now, id, LeaveReason::KICKED, "why");
    talk.sent.clear();
    talk.wait(999);
    assert_eq!(said(&talk, from), ["why", "why", "why"], "at 0, 250 and 750 ms");
    assert_eq!(talk.server.len(), 1);
    talk.wait(1);
    assert_eq!(talk.server.len(), 0);
    assert!(said(&talk, from).contains(&"leave 1".to_owned()));
}

#[test]
fn who_is_shown_out_does_nothing_any_more() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    let token = come(&mut talk, from, named("Ada"));
    let id = talk.session();
    talk.server.show_out(talk.now, id, LeaveReason::KICKED, "why");
    assert!(talk.act(from, token, 2, STEP).is_some());
    assert_eq!(talk.server.next_action(id), None);
    // Nor does asking again, with other words, give it more time.
    talk.wait(900);
    assert!(talk.server.show_out(talk.now, id, LeaveReason::BANNED, "again"));
    talk.wait(100);
    assert_eq!(left(&talk), [ended("Ada", LeaveReason::KICKED)]);
    assert!(!talk.server.show_out(talk.now, id, LeaveReason::KICKED, "why"), "gone");
}

#[test]
fn who_hears_no_events_is_shown_out_at_once() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    come(&mut talk, from, GUEST);
    let id = talk.session();
    talk.sent.clear();
    talk.server.show_out(talk.now, id, LeaveReason::KICKED, "why");
    talk.wait(0);
    assert_eq!((said(&talk, from), talk.server.len()), (vec!["leave 1".to_owned()], 0));
}

#[test]
fn a_server_that_stops_lets_nobody_come_back_who_was_being_shown_out() {
    let mut talk = talk();
    let (ada, bob) = (peer("192.0.2.1:5"), peer("192.0.2.2:5"));
    come(&mut talk, ada, named("Ada"));
    come(&mut talk, bob, named("Bob"));
    let id = talk.server.find_by_name("Ada").unwrap();
    talk.server.show_out(talk.now, id, LeaveReason::BANNED, "why");
    talk.server.shut_down(talk.now);
    talk.wait(100);
    let expected = [ended("Ada", LeaveReason::BANNED), ended("Bob", LeaveReason::SHUTTING_DOWN)];
    assert_eq!(left(&talk), expected);
}

#[test]
fn a_plain_client_that_is_shown_out_stays_out_for_a_second() {
    let config = ServerConfig { clients: vec![registered("Rob")], ..ServerConfig::default() };
    let mut talk = Talk::new(config);
    let from = peer("127.0.0.1:5");
    talk.act(from, TOKEN, 1, STEP);
    let id = talk.session();
    talk.server.show_out(talk.now, id, LeaveReason::KICKED, "why");
    talk.wait(999);
    talk.act(from, TOKEN, 2, STEP);
    assert_eq!(talk.server.len(), 0);
    talk.wait(1);
    talk.act(from, TOKEN, 3, STEP);
    assert_eq!(talk.server.len(), 1, "only a ban keeps it out");
    let bans = vec![ban("rob", "for good")];
    assert_eq!(talk.server.set_bans(talk.now, bans), 1);
    talk.wait(5000);
    talk.act(from, TOKEN, 4, STEP);
    assert_eq!(talk.server.len(), 0);
}

#[test]
fn a_ban_ends_those_whom_it_names_and_lifts_when_it_is_taken_back() {
    let mut talk = talk();
    let (ada, bob, eve) = (peer("192.0.2.1:5"), peer("192.0.2.2:5"), peer("198.51.100.3:5"));
    let token = come(&mut talk, ada, named("Ada"));
    come(&mut talk, bob, named("Bob"));
    come(&mut talk, eve, named("Eve"));
    talk.sent.clear();
    let bans = vec![ban("ＡＤＡ", "rude"), ban("198.51.100.0/24", "spam")];
    assert_eq!(talk.server.set_bans(talk.now, bans), 2);
    talk.wait(0);
    assert_eq!(said(&talk, ada), ["rude"]);
    assert_eq!(said(&talk, eve), ["spam"]);
    assert_eq!(said(&talk, bob), [""; 0]);
    acknowledge(&mut talk, ada, token, 0);
    talk.wait(1000);
    let expected = [ended("Ada", LeaveReason::BANNED), ended("Eve", LeaveReason::BANNED)];
    assert_eq!(left(&talk), expected);
    // From anywhere, and under any name.
    assert_eq!(
        talk.join(peer("203.0.113.9:5"), 9, named("ada")),
        Answer::Refused(RefuseReason::BANNED)
    );
    assert_eq!(refuse_text(&talk.sent[0].1), "rude");
    assert_eq!(talk.join(eve, 10, named("Zoe")), Answer::Refused(RefuseReason::BANNED));
    assert_eq!(talk.server.set_bans(talk.now, Vec::new()), 0);
    assert!(matches!(talk.join(eve, 11, named("Ada")), Answer::Welcome { .. }));
}

#[test]
fn a_thousand_bans_and_sessions_are_looked_at_once() {
    // A bound on work by count: every session is ended once, by the first ban that names it.
    let limits = StrangerLimits {
        per_second: 1_000_000,
        burst: 1_000_000,
        total_per_second: 4_000_000,
        ..StrangerLimits::default()
    };
    let config = ServerConfig {
        max_players: 300,
        sessions_per_address: 300,
        strangers: limits,
        ..ServerConfig::default()
    };
    let mut talk = Talk::new(config);
    for number in 0..300 {
        let from = peer(&format!("192.0.2.1:{}", 1000 + number));
        talk.join(from, 1, named(&format!("p{number}")));
    }
    let bans = (0..1000).flat_map(|n| [ban(&format!("P{n}"), "first"), ban(&format!("p{n}"), "")]);
    assert_eq!(talk.server.set_bans(talk.now, bans.collect()), 300);
    talk.wait(1000);
    assert_eq!(talk.server.len(), 0);
    assert_eq!(left(&talk).len(), 300);
}

#[test]
fn other_limits_hold_for_those_who_come_and_end_nobody() {
    let mut talk = talk();
    for port in 1..=3 {
        come(&mut talk, peer(&format!("192.0.2.1:{port}")), named(&format!("p{port}")));
    }
    let few = ServerConfig { max_players: 2, sessions_per_address: 1, ..ServerConfig::default() };
    assert_eq!(talk.server.reconfigure(talk.now, few), 0);
    assert_eq!(talk.server.len(), 3);
    assert_eq!(
        talk.join(peer("198.51.100.1:5"), 1, named("new")),
        Answer::Refused(RefuseReason::FULL)
    );
    // Who comes back to its own place gets it, though there are too many.
    talk.wait(3000);
    let back = peer("192.0.2.1:77");
    let many = ServerConfig { max_players: 2, ..ServerConfig::default() };
    assert_eq!(talk.server.reconfigure(talk.now, many), 0);
    assert!(matches!(talk.join(back, 2, named("p2")), Answer::Welcome { .. }));
    assert_eq!(talk.server.len(), 3);
    // And with more places than at the beginning more come.
    let more = ServerConfig { max_players: 100, ..ServerConfig::default() };
    talk.server.reconfigure(talk.now, more);
    for host in 0..80 {
        let from = peer(&format!("203.0.113.{host}:5"));
        assert!(matches!(talk.join(from, 1, GUEST), Answer::Welcome { .. }), "{host}");
    }
}

#[test]
fn at_the_limit_nobody_else_comes_in_and_those_who_are_here_may_come_back() {
    let mut talk = talk();
    come(&mut talk, peer("192.0.2.1:5"), named("Ada"));
    talk.server.set_busy(true);
    talk.sent.clear();
    let refused = talk.join(peer("198.51.100.1:5"), 1, named("new"));
    assert_eq!(refused, Answer::Refused(RefuseReason::FULL));
    let is_refuse = |bytes: &[u8]| matches!(Packet::parse(bytes), Ok(Packet::Refuse(_)));
    let refused = talk.sent.iter().filter(|(_, bytes)| is_refuse(bytes));
    let texts: Vec<_> = refused.map(|(_, bytes)| refuse_text(bytes)).collect();
    assert_eq!(texts, ["the server is at its limit"]);
    talk.wait(3000);
    let back = talk.join(peer("192.0.2.1:77"), 2, named("Ada"));
    assert!(matches!(back, Answer::Welcome { .. }));
    talk.server.set_busy(false);
    let free = talk.join(peer("198.51.100.1:5"), 3, named("new"));
    assert!(matches!(free, Answer::Welcome { .. }));
}

#[test]
fn another_name_message_and_count_are_told_and_the_tick_rate_stays() {
    let mut talk = talk();
    let old = talk.join(peer("192.0.2.1:5"), 7, named("Ada"));
    let config = ServerConfig {
        name: "New name".into(),
        motd: "Closed on Mondays".into(),
        tick_rate: 20,
        max_players: 5,
        ..ServerConfig::default()
    };
    talk.server.reconfigure(talk.now, config);
    assert_eq!(talk.server.config().tick_rate, 10);
    talk.join(peer("192.0.2.2:5"), 7, named("Bob"));
    let welcome = talk.sent.iter().find_map(|(_, bytes)| match Packet::parse(bytes).unwrap() {
        Packet::Welcome(view) => {
            let text = String::from_utf8_lossy(bytes).into_owned();
            Some((view.tick_rate(), text))
        }
        _ => None,
    });
    let (rate, text) = welcome.unwrap();
    assert_eq!(rate, 10);
    assert!(text.contains("New name") && text.contains("Closed on Mondays"));
    assert!(matches!(old, Answer::Welcome { .. }));
    assert_eq!(talk.server.len(), 2);
}

#[test]
fn silence_is_judged_by_the_new_timeout() {
    for (seconds, ends_after) in [(3, 3), (20, 20)] {
        let mut talk = talk();
        come(&mut talk, peer("192.0.2.1:5"), named("Ada"));
        let timeout = Duration::from_secs(seconds);
        talk.server.reconfigure(talk.now, ServerConfig { timeout, ..ServerConfig::default() });
        talk.wait(ends_after * 1000 - 1);
        assert_eq!(talk.server.len(), 1, "{seconds}");
        talk.wait(1);
        assert_eq!(talk.server.len(), 0, "{seconds}");
    }
}

#[test]
fn kinds_of_client_that_are_not_allowed_any_more_are_shown_out() {
    let open = ServerConfig { open: true, ..ServerConfig::default() };
    let mut talk = Talk::new(open.clone());
    come(&mut talk, peer("192.0.2.1:5"), named("Ada"));
    come(&mut talk, peer("192.0.2.2:5"), Wish { client_type: 9, ..named("Bob") });
    come(&mut talk, peer("192.0.2.3:5"), Wish { client_type: 8, ..named("Eve") });
    let closed = ServerConfig { open: false, clients: vec![entry(8)], ..open };
    assert_eq!(talk.server.reconfigure(talk.now, closed), 1);
    talk.wait(1000);
    assert_eq!(left(&talk), [ended("Bob", LeaveReason::KICKED)]);
    let forbidden = ClientEntry { allow: false, ..entry(0) };
    let config = ServerConfig { clients: vec![entry(8), forbidden], ..ServerConfig::default() };
    assert_eq!(talk.server.reconfigure(talk.now, config), 1);
    talk.wait(1000);
    assert_eq!(left(&talk)[1], ended("Ada", LeaveReason::KICKED));
}

#[test]
fn registered_clients_follow_the_list_wherever_their_entry_stands() {
    let wish = Wish { token: Some(TOKEN), client_type: 7, ..GUEST };
    let config = ServerConfig { clients: vec![registered("Rob")], ..ServerConfig::default() };
    let mut talk = Talk::new(config);
    let from = peer("192.0.2.1:5");
    talk.join(from, 1, wish);
    assert!(talk.server.session(talk.session()).unwrap().is_registered());
    // The same entry behind others: a place in the list is no name.
    let mut clients = vec![entry(3), ClientEntry { allow: false, ..entry(4) }];
    clients.push(registered("Rob"));
    let config = ServerConfig { clients, ..ServerConfig::default() };
    assert_eq!(talk.server.reconfigure(talk.now, config), 0);
    assert_eq!(
        talk.join(peer("192.0.2.2:5"), 2, named("rob")),
        Answer::Refused(RefuseReason::BAD_NAME),
        "still reserved"
    );
    // A shorter list, and the entry gone.
    assert_eq!(talk.server.reconfigure(talk.now, ServerConfig::default()), 1);
    talk.wait(1000);
    assert_eq!(left(&talk), [ended("Rob", LeaveReason::KICKED)]);
    assert!(matches!(talk.join(peer("192.0.2.2:5"), 3, named("rob")), Answer::Welcome { .. }));
    let token = Wish { token: Some(TOKEN), client_type: 7, ..named("Robin") };
    assert_eq!(talk.join(from, 4, token), Answer::Refused(RefuseReason::CLIENT_TYPE));
}

#[test]
fn a_plain_client_ends_when_its_address_is_not_in_from_any_more() {
    let config = ServerConfig { clients: vec![registered("Rob")], ..ServerConfig::default() };
    let mut talk = Talk::new(config.clone());
    let from = peer("127.0.0.1:5");
    talk.act(from, TOKEN, 1, STEP);
    assert!(!talk.server.session(talk.session()).unwrap().wants_tags());
    let tags = ClientEntry { tags: true, ..registered("Rob") };
    let with_tags = ServerConfig { clients: vec![tags], ..config.clone() };
    assert_eq!(talk.server.reconfigure(talk.now, with_tags), 0);
    assert!(talk.server.session(talk.session()).unwrap().wants_tags());
    let elsewhere = ClientEntry { from: vec!["10.0.0.0/8".parse().unwrap()], ..registered("Rob") };
    let moved = ServerConfig { clients: vec![elsewhere], ..config };
    assert_eq!(talk.server.reconfigure(talk.now, moved), 1);
    assert_eq!(talk.server.len(), 0);
    talk.wait(2000);
    talk.act(from, TOKEN, 2, STEP);
    assert_eq!(talk.server.len(), 0);
}

#[test]
fn other_budgets_of_strangers_hold_at_once_and_the_same_ones_forgive_nothing() {
    let limits = StrangerLimits { per_second: 1, burst: 5, ..StrangerLimits::default() };
    let config = ServerConfig { strangers: limits.clone(), ..ServerConfig::default() };
    let mut talk = Talk::new(config.clone());
    let from = peer("192.0.2.1:5");
    let ask = |talk: &mut Talk| (0..20).filter(|n| talk.hello(from, *n, 0).is_some()).count();
    assert_eq!(ask(&mut talk), 5);
    talk.server.reconfigure(talk.now, ServerConfig { motd: "x".into(), ..config.clone() });
    assert_eq!(ask(&mut talk), 0, "a reload is no way to be forgiven");
    let more = StrangerLimits { burst: 10, ..limits };
    talk.server.reconfigure(talk.now, ServerConfig { strangers: more, ..config });
    assert_eq!(ask(&mut talk), 10);
}

#[test]
fn the_round_trip_comes_from_the_first_word_and_from_events_sent_once() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    let token = talk.join(from, 7, named("Ada")).token();
    let id = talk.session();
    let view = |talk: &Talk| {
        let view = talk.server.session(id).unwrap();
        (view.round_trip(), view.round_trip_age(talk.now))
    };
    assert_eq!(view(&talk), (None, None));
    talk.wait(80);
    talk.act(from, token, 1, Action::NoOp);
    let ms = Duration::from_millis;
    assert_eq!(view(&talk), (Some(ms(80)), Some(ms(0))));
    talk.wait(40);
    // 7/8 of 80 and 1/8 of 160.
    talk.server.send_event(id, EventKind::NOTICE, EntityId(0), "x");
    talk.wait(0);
    talk.wait(160);
    acknowledge(&mut talk, from, token, 0);
    assert_eq!(view(&talk), (Some(ms(90)), Some(ms(0))));
    // One that was repeated tells nothing, nor does an acknowledgement of nothing.
    talk.server.send_event(id, EventKind::NOTICE, EntityId(0), "y");
    talk.wait(0);
    talk.wait(300);
    acknowledge(&mut talk, from, token, 1);
    acknowledge(&mut talk, from, token, 1);
    acknowledge(&mut talk, from, token, 99);
    assert_eq!(view(&talk), (Some(ms(90)), Some(ms(300))));
}

#[test]
fn a_welcome_that_was_repeated_tells_no_round_trip() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    let bytes = talk.join_bytes(from, 7, named("Ada"));
    talk.give(from, &bytes);
    let token = talk.answer(from).token();
    talk.wait(200);
    talk.give(from, &bytes);
    assert_eq!(talk.answer(from).token(), token);
    talk.wait(50);
    talk.act(from, token, 1, Action::NoOp);
    assert_eq!(talk.server.session(talk.session()).unwrap().round_trip(), None);
}

#[test]
fn bytes_are_counted_by_the_sessions_address() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    let join = talk.join_bytes(from, 7, named("Ada"));
    talk.give(from, &join);
    let (token, id) = (talk.answer(from).token(), talk.session());
    let traffic = |talk: &Talk| {
        let view = talk.server.session(id).unwrap();
        (view.received(), view.sent())
    };
    let opened = Traffic { datagrams: 1, bytes: join.len() as u64 };
    assert_eq!(traffic(&talk), (opened, Traffic::default()));
    let step = action_bytes(token, 1, STEP);
    talk.give(from, &step);
    talk.give(from, &[0; 3]);
    talk.give(peer("192.0.2.1:6"), &step);
    let received = Traffic { datagrams: 3, bytes: (join.len() + step.len()) as u64 + 3 };
    talk.server.note_sent(from, 100);
    talk.server.note_sent(from, 50);
    talk.server.note_sent(peer("192.0.2.1:6"), 1000);
    assert_eq!(traffic(&talk), (received, Traffic { datagrams: 2, bytes: 150 }));
}

#[test]
fn numbers_that_never_came_are_counted_and_no_ops_are_not() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    let token = talk.join(from, 7, named("Ada")).token();
    let id = talk.session();
    for number in 1..=200 {
        if number % 4 != 0 {
            talk.act(from, token, number, STEP);
            talk.act(from, token, number, STEP);
        }
        talk.act(from, token, number, Action::NoOp);
        let _ = talk.server.next_action(id);
    }
    // The newest is 199; 64 numbers may still come, and what is before the first is not counted:
    // 64 of the 198 that were passed.
    let Missing { missing, of } = talk.server.session(id).unwrap().missing();
    assert_eq!(of, 198);
    // 4, 8, ... up to the last that is 64 behind: 199 - 64 = 135, so 132 is the 33rd.
    assert_eq!(missing, 33);
}

#[test]
fn leave_packets_carry_the_sessions_token() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    let token = come(&mut talk, from, named("Ada"));
    talk.sent.clear();
    talk.server.show_out(talk.now, talk.session(), LeaveReason::KICKED, "");
    talk.wait(0);
    let (_, bytes) = talk.sent.first().unwrap();
    let leave = LeaveView::parse(bytes).unwrap();
    assert_eq!((leave.token(), leave.reason()), (token, LeaveReason::KICKED));
}
