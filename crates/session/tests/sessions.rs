//! Living sessions: liveness, moving, registered tokens, actions, events (R18 to R21, R30, section 2).

mod common;

use caves_session::DropReason;
use caves_session::caves::{ClientEntry, Left, ServerConfig, ServerEvent, ServerReceived};
use caves_wire::caves::{
    Action, ClientType, Direction, EntityId, EventAck, EventKind, EventView, Features, LeaveReason,
    Query, RefuseReason, Sequence, Token,
};
use common::{Answer, GUEST, Talk, Wish, action_bytes, leave_bytes, named, peer};

const STEP: Action<&str> = Action::Walk(Direction::East);
const BOT: Token = Token(0x0123_4567_89AB_CDEF);

fn talk() -> Talk {
    Talk::new(ServerConfig::default())
}

/// A server with one registered bot, allowed from 192.0.2.0/24.
fn with_bot(tags: bool) -> Talk {
    let clients = vec![ClientEntry {
        client_type: ClientType(7),
        name: Some("Robo".into()),
        allow: true,
        token: Some(BOT),
        from: vec!["192.0.2.0/24".parse().unwrap()],
        tags,
    }];
    Talk::new(ServerConfig { clients, ..ServerConfig::default() })
}

#[test]
fn ten_seconds_of_silence_end_a_session_and_pings_do_not_keep_it() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    let token = talk.join(from, 7, GUEST).token();
    talk.wait(9_999);
    assert_eq!(talk.act(from, token, 1, Action::NoOp), None);
    for _ in 0..9 {
        talk.wait(1000);
        talk.give(from, &[0x4C, 0x52, 1, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }
    talk.wait(999);
    assert_eq!(talk.server.len(), 1);
    talk.wait(1);
    assert_eq!(talk.server.len(), 0);
    assert!(matches!(talk.events.last(), Some(ServerEvent::Left { why: Left::Silence, .. })));
    assert_eq!(talk.server.poll_timeout(), None, "no timer outlives its session");
}

#[test]
fn a_token_from_another_address_is_dropped() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    let token = talk.join(from, 7, GUEST).token();
    for thief in ["192.0.2.1:6", "192.0.2.2:5"] {
        assert_eq!(talk.act(peer(thief), token, 1, STEP), Some(DropReason::Address));
        assert_eq!(talk.leave(peer(thief), token), Some(DropReason::Address));
    }
    assert_eq!(talk.act(from, Token(0), 1, STEP), Some(DropReason::Token));
    assert_eq!(talk.sent, []);
    assert_eq!(talk.server.len(), 1);
}

#[test]
fn what_was_recognized_opens_nothing_once_it_is_not_true_any_more() {
    let mut talk = talk();
    let (ada, bob) = (peer("192.0.2.1:5"), peer("192.0.2.2:5"));
    let token = talk.join(ada, 7, named("Ada")).token();
    let other = talk.join(bob, 8, named("Bob")).token();
    let step = action_bytes(token, 1, STEP);
    let known = talk.server.recognize(ada, &step);
    assert!(known.is_some());
    assert_eq!(talk.server.recognize(bob, &step), None, "not from there");
    let leave = leave_bytes(token);
    assert_eq!(talk.server.recognize(ada, &leave), None, "not an action");
    let now = talk.now;
    let mut hear =
        |from, bytes: &[u8], known| match talk.server.handle_recognized(now, from, bytes, known) {
            ServerReceived::Dropped(reason) => Err(reason),
            ServerReceived::Action { session, .. } => Ok(Some(session)),
            _ => Ok(None),
        };
    // Somebody else's datagram, with the session of the first.
    let foreign = action_bytes(other, 1, STEP);
    assert_ne!(hear(bob, &foreign, known), Ok(known));
    assert_eq!(hear(bob, &step, known), Err(DropReason::Address));
    assert_eq!(hear(ada, &step, known), Ok(known));
    assert_eq!(hear(ada, &leave, None), Ok(None));
    assert_eq!(hear(ada, &step, known), Err(DropReason::Token));
}

#[test]
fn a_session_resumes_at_once_at_its_own_address() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    let first = talk.join(from, 7, named("Ada"));
    let token = first.token();
    let again = talk.join(from, 8, Wish { token: Some(token), features: 3, ..named("Ada") });
    assert_eq!(again, first, "token, entity and features stay");
}

#[test]
fn a_session_moves_when_its_old_address_was_silent_for_three_seconds() {
    let mut talk = talk();
    let (old, new) = (peer("192.0.2.1:5"), peer("198.51.100.1:9"));
    let first = talk.join(old, 7, named("Ada"));
    let token = first.token();
    let wish = Wish { token: Some(token), ..named("Ada") };
    talk.wait(2900);
    let bytes = talk.join_bytes(new, 8, wish);
    assert_eq!(talk.give(new, &bytes), Some(DropReason::Wait), "waits unanswered");
    talk.wait(100);
    talk.give(new, &bytes);
    assert_eq!(talk.answer(new), first, "the repeated Join is heard then");
    assert_eq!(talk.act(old, token, 1, STEP), Some(DropReason::Address));
    assert_eq!(talk.act(new, token, 1, STEP), None);
}

#[test]
fn a_dead_token_makes_an_ordinary_join() {
    let mut talk = talk();
    let answer = talk.join(peer("192.0.2.1:5"), 7, Wish { token: Some(Token(77)), ..named("Ada") });
    assert_ne!(answer.token(), Token(77));
}

#[test]
fn a_registered_token_starts_a_session_by_an_action_from_inside_its_networks_only() {
    let mut talk = with_bot(false);
    assert_eq!(talk.act(peer("198.51.100.1:1"), BOT, 5, STEP), Some(DropReason::Token));
    let mut query = [0; 18];
    Query { client_type: ClientType(7), token: BOT, entity: EntityId(1) }.emit(&mut query).unwrap();
    assert_eq!(talk.give(peer("192.0.2.1:1"), &query), Some(DropReason::Token));
    assert_eq!(talk.act(peer("192.0.2.1:1"), BOT, 5, STEP), None);
    let id = talk.session();
    let view = talk.server.session(id).unwrap();
    assert_eq!((view.name(), view.wants_tags(), view.features()), ("Robo", false, Features::NONE));
    let (sequence, _) = talk.server.next_action(id).unwrap();
    assert_eq!(sequence, Sequence::new(5), "the action that started it is executed");
    assert!(talk.sent.is_empty(), "nothing above type 7 is sent to it");
}

#[test]
fn tags_are_sent_where_the_entry_says_so() {
    let mut talk = with_bot(true);
    talk.act(peer("192.0.2.1:1"), BOT, 5, STEP);
    assert!(talk.server.session(talk.session()).unwrap().wants_tags());
}

#[test]
fn a_registered_token_moves_after_three_seconds_with_the_same_entity() {
    let mut talk = with_bot(false);
    let (old, new) = (peer("192.0.2.1:1"), peer("192.0.2.9:1"));
    talk.act(old, BOT, 500, STEP);
    let entity = talk.server.session(talk.session()).unwrap().entity();
    assert_eq!(talk.act(new, BOT, 1, STEP), Some(DropReason::Address));
    talk.wait(3000);
    assert_eq!(talk.act(new, BOT, 1, STEP), None);
    let id = talk.session();
    assert_eq!(talk.server.session(id).unwrap().entity(), entity);
    assert_eq!(talk.server.next_action(id).unwrap().0, Sequence::new(1), "fresh state");
    assert!(talk.sent.is_empty(), "no Leave");
}

#[test]
fn a_leave_right_after_the_start_belongs_to_the_last_session() {
    let mut talk = with_bot(false);
    let from = peer("192.0.2.1:1");
    talk.act(from, BOT, 1, STEP);
    talk.wait(999);
    talk.leave(from, BOT);
    assert_eq!(talk.server.len(), 1);
    talk.wait(1);
    talk.leave(from, BOT);
    assert_eq!(talk.server.len(), 0);
}

#[test]
fn a_source_only_client_is_sent_no_leave_when_it_is_ended() {
    let mut talk = with_bot(false);
    talk.act(peer("192.0.2.1:1"), BOT, 1, STEP);
    let id = talk.session();
    talk.server.end(talk.now, id, LeaveReason::KICKED);
    talk.wait(100);
    assert_eq!(talk.server.len(), 0);
    assert_eq!(talk.sent, [], "no type above 7");
}

#[test]
fn a_registered_client_joins_from_anywhere_under_its_own_name() {
    let mut talk = with_bot(false);
    let outside = peer("198.51.100.1:1");
    let answer = talk.join(outside, 1, Wish { token: Some(BOT), ..named("Somebody") });
    let token = answer.token();
    assert_ne!(token, BOT, "the registered token is not sent around in clear");
    assert_eq!(talk.server.session(talk.session()).unwrap().name(), "Robo");
    assert_eq!(talk.act(outside, token, 1, STEP), None);
    let again = talk.join(outside, 2, Wish { token: Some(BOT), ..named("Somebody") });
    assert_eq!(again, answer, "its registered token resumes the living session");
    assert_eq!(talk.act(peer("192.0.2.1:1"), BOT, 1, STEP), Some(DropReason::Token));
    let other = talk.join(peer("198.51.100.2:1"), 1, named("robo"));
    assert_eq!(other, Answer::Refused(RefuseReason::BAD_NAME), "its name is reserved");
}

#[test]
fn late_actions_after_a_leave_start_no_ghost() {
    let mut talk = with_bot(false);
    let from = peer("192.0.2.1:1");
    talk.act(from, BOT, 1, STEP);
    talk.wait(1000);
    talk.leave(from, BOT);
    talk.wait(999);
    assert_eq!(talk.act(from, BOT, 2, STEP), Some(DropReason::Token));
    talk.wait(1);
    assert_eq!(talk.act(from, BOT, 1, STEP), None, "but a new start is one");
}

#[test]
fn late_actions_after_a_session_has_ended_by_silence_take_no_effect_again() {
    let mut talk = with_bot(false);
    let from = peer("192.0.2.1:1");
    talk.act(from, BOT, 1, STEP);
    talk.wait(10_000);
    assert_eq!(talk.server.len(), 0);
    talk.wait(999);
    assert_eq!(talk.act(from, BOT, 1, STEP), Some(DropReason::Token));
    talk.wait(1);
    assert_eq!(talk.act(from, BOT, 2, STEP), None, "a second later it is a new start");
}

#[test]
fn one_address_holds_one_session() {
    let mut talk = with_bot(false);
    let from = peer("192.0.2.1:1");
    talk.join(from, 1, named("Ada"));
    assert_eq!(talk.act(from, BOT, 1, STEP), Some(DropReason::Token));
    assert_eq!(talk.server.len(), 1);
}

#[test]
fn ten_queries_at_once_and_ten_a_second() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    let token = talk.join(from, 7, GUEST).token();
    let mut query = [0; 18];
    Query { client_type: ClientType(0), token, entity: EntityId(1) }.emit(&mut query).unwrap();
    let passed = (0..30).filter(|_| talk.give(from, &query).is_none()).count();
    assert_eq!(passed, 10);
    talk.wait(500);
    let passed = (0..30).filter(|_| talk.give(from, &query).is_none()).count();
    assert_eq!(passed, 5);
}

fn events_in(talk: &Talk) -> Vec<(u32, String)> {
    talk.sent
        .iter()
        .filter(|(_, bytes)| bytes[3] == 14)
        .map(|(_, bytes)| EventView::parse(bytes).unwrap())
        .map(|event| (event.sequence().get(), event.text().to_owned()))
        .collect()
}

#[test]
fn events_are_repeated_until_they_are_acknowledged_eight_at_a_time() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    let token = talk.join(from, 7, named("Ada")).token();
    let id = talk.session();
    talk.act(from, token, 0, Action::NoOp);
    talk.sent.clear();
    for n in 0..10 {
        assert!(talk.server.send_event(id, EventKind::NOTICE, EntityId(0), &format!("n{n}")));
    }
    talk.wait(0);
    let first: Vec<u32> = events_in(&talk).into_iter().map(|(seq, _)| seq).collect();
    assert_eq!(first, [0, 1, 2, 3, 4, 5, 6, 7]);
    talk.sent.clear();
    talk.wait(249);
    assert_eq!(events_in(&talk), []);
    talk.wait(1);
    assert_eq!(events_in(&talk).len(), 8, "repeated after 250 ms");
    let mut ack = [0; 18];
    let sequence = Sequence::new(3);
    EventAck { client_type: ClientType(0), token, sequence }.emit(&mut ack).unwrap();
    talk.give(from, &ack);
    assert_eq!(events_in(&talk), [(8, "n8".to_owned())], "its place is used at once");
}

#[test]
fn no_event_is_sent_before_the_client_shows_that_it_knows_the_session() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    let old = talk.join(from, 7, named("Ada")).token();
    talk.act(from, old, 0, Action::NoOp);
    // Its place is taken by another session, whose Welcome is lost.
    let new = talk.join(from, 8, named("Ada")).token();
    let id = talk.session();
    talk.sent.clear();
    talk.server.send_event(id, EventKind::CHAT, EntityId(0), "hello");
    talk.wait(1000);
    talk.act(from, old, 1, Action::NoOp);
    assert_eq!(events_in(&talk), [], "the client would read it in the session before");
    talk.act(from, new, 1, Action::NoOp);
    assert_eq!(events_in(&talk), [(0, "hello".to_owned())]);
}

#[test]
fn a_process_that_goes_on_with_a_session_is_sent_what_the_one_before_had_out_of_turn() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    let token = talk.join(from, 7, named("Ada")).token();
    let id = talk.session();
    talk.act(from, token, 0, Action::NoOp);
    for n in 0..4 {
        talk.server.send_event(id, EventKind::NOTICE, EntityId(0), &format!("n{n}"));
    }
    talk.wait(0);
    for number in [0, 2, 3] {
        let mut ack = [0; 18];
        let sequence = Sequence::new(number);
        EventAck { client_type: ClientType(0), token, sequence }.emit(&mut ack).unwrap();
        talk.give(from, &ack);
    }
    let wish = Wish { token: Some(token), ..named("Ada") };
    let bytes = talk.join_bytes(from, 8, wish);
    talk.give(from, &bytes);
    match talk.answer(from) {
        Answer::Welcome { next_event, .. } => assert_eq!(next_event, Some(1)),
        other => panic!("{other:?}"),
    }
    talk.wait(0);
    let again = events_in(&talk).into_iter().map(|(number, _)| number);
    assert_eq!(again.collect::<Vec<_>>(), [1, 2, 3], "all that a new process has not got");
}

#[test]
fn events_unread_for_ten_seconds_end_the_session() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    let token = talk.join(from, 7, named("Ada")).token();
    let id = talk.session();
    talk.act(from, token, 0, Action::NoOp);
    talk.server.send_event(id, EventKind::CHAT, EntityId(0), "hello");
    talk.wait(0);
    for _ in 0..99 {
        talk.wait(100);
        talk.act(from, token, 1, Action::NoOp);
    }
    assert_eq!(talk.server.len(), 1);
    talk.sent.clear();
    talk.wait(100);
    assert_eq!(talk.server.len(), 0);
    let leave = talk.sent.iter().find(|(_, bytes)| bytes[3] == 13).unwrap();
    assert_eq!(leave.1[14], LeaveReason::EVENTS_UNREAD.0);
}

#[test]
fn a_cut_that_heals_does_not_end_a_session_by_unread_events() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    let token = talk.join(from, 7, named("Ada")).token();
    let id = talk.session();
    talk.server.send_event(id, EventKind::CHAT, EntityId(0), "hello");
    // The client neither hears nor is heard for 8 s.
    talk.wait(8000);
    talk.sent.clear();
    talk.act(from, token, 1, Action::NoOp);
    assert_eq!(events_in(&talk), [(0, "hello".to_owned())], "sent anew at once");
    talk.wait(3000);
    assert_eq!(talk.server.len(), 1);
}

#[test]
fn a_full_queue_drops_the_new_event_and_it_takes_no_number() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    let token = talk.join(from, 7, named("Ada")).token();
    let id = talk.session();
    talk.act(from, token, 0, Action::NoOp);
    let mut kept = 0;
    for _ in 0..400 {
        kept += usize::from(talk.server.send_event(id, EventKind::NOTICE, EntityId(0), "x"));
        talk.wait(0);
    }
    assert_eq!(kept, 8 + 256);
    assert_eq!(talk.server.session(id).unwrap().events_dropped(), 400 - 264);
}

#[test]
fn kicked_players_are_told_and_their_place_is_free() {
    let mut talk = talk();
    let from = peer("192.0.2.1:5");
    talk.join(from, 7, named("Ada")).token();
    talk.sent.clear();
    let id = talk.session();
    talk.server.end(talk.now, id, LeaveReason::KICKED);
    talk.wait(100);
    assert_eq!(talk.sent.len(), 3);
    assert!(talk.server.session(id).is_none());
    talk.join(from, 8, named("Ada")).token();
}

#[test]
fn a_thousand_lives_leave_nothing_behind() {
    let mut talk = talk();
    for round in 0..1000u64 {
        let from = peer(&format!("127.0.0.1:{}", 1 + round));
        talk.join(from, round, named("Ada")).token();
        talk.wait(10_001);
        assert_eq!(talk.server.len(), 0);
    }
    assert_eq!(talk.server.poll_timeout(), None);
    assert!(talk.server.is_drained());
}

#[test]
fn four_hundred_that_die_at_once_are_let_go() {
    let mut talk = Talk::new(ServerConfig { max_players: 400, ..ServerConfig::default() });
    for port in 1..=400 {
        talk.join(peer(&format!("127.0.0.1:{port}")), 1, GUEST).token();
    }
    assert_eq!(talk.server.len(), 400);
    talk.wait(10_000);
    assert_eq!(talk.server.len(), 0);
}
