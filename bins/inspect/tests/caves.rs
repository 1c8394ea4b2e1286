//! What is remarked on in a session of Forgotten Caves.

mod common;

use caves_wire::caves::{
    Action, ActionPacket, Chunk, ChunkEntry, ChunkId, ChunkVersion, ClientType, Echo, Entity,
    EntityBuilder, EntityFlags, EntityId, Event, EventAck, EventKind, Hello, Leave, LeaveReason,
    Nonce, Sequence, State, Tick, Token, Welcome,
};
use caves_wire::fnv::Fnv32;
use caves_wire::tlv::TlvWriter;
use common::{Capture, Vector, inspect, text_of, vectors};
use serde_json::json;

const TOKEN: Token = Token(77);

fn emitted(emit: impl FnOnce(&mut [u8]) -> usize) -> Vec<u8> {
    let mut buf = [0; 1200];
    let len = emit(&mut buf);
    buf[..len].to_vec()
}

fn manifest(version: u16) -> [ChunkEntry; 9] {
    std::array::from_fn(|at| ChunkEntry {
        id: ChunkId { x: at as i16 % 3 - 1, y: at as i16 / 3 - 1 },
        version: ChunkVersion(version),
    })
}

fn state(tick: u32, checksum: u32) -> Vec<u8> {
    let state = State {
        tick: Tick::new(tick),
        chunks: manifest(5),
        player: EntityId(1),
        entity_checksum: checksum,
    };
    emitted(|buf| state.emit(buf).unwrap())
}

fn entities(tick: u32, ids: &[u32], hp: u16) -> Vec<u8> {
    emitted(|buf| {
        let mut builder = EntityBuilder::new(buf, Tick::new(tick), Fnv32::new()).unwrap();
        for id in ids {
            let entity = Entity {
                id: EntityId(*id),
                type_id: 0,
                x: -3,
                y: 4,
                hp,
                hp_max: 20,
                elo: 1000,
                flags: EntityFlags::default(),
                meta: &[],
            };
            assert!(builder.push(&entity).unwrap());
        }
        builder.finish(false).0
    })
}

/// FNV-1a as R13 has it, over what stands behind the heads of some Entities.
fn checksum(packets: &[&Vec<u8>]) -> u32 {
    packets
        .iter()
        .flat_map(|packet| &packet[12..])
        .fold(0x811C_9DC5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

fn action(sequence: u32, cache: [ChunkEntry; 9], action: Action<&str>) -> Vec<u8> {
    let packet = ActionPacket {
        client_type: ClientType::OFFICIAL,
        token: TOKEN,
        sequence: Sequence::new(sequence),
        cache,
        action,
    };
    emitted(|buf| packet.emit(buf).unwrap())
}

fn chunk(entry: ChunkEntry) -> Vec<u8> {
    emitted(|buf| Chunk { entry, palette: &[2], indices: &[0; 1024] }.emit(buf).unwrap())
}

fn event(sequence: u32, text: &str) -> Vec<u8> {
    let (sequence, kind, from) = (Sequence::new(sequence), EventKind::CHAT, EntityId(9));
    emitted(|buf| Event { sequence, kind, from, text }.emit(buf).unwrap())
}

fn ack(sequence: u32) -> Vec<u8> {
    let sequence = Sequence::new(sequence);
    let packet = EventAck { client_type: ClientType::OFFICIAL, token: TOKEN, sequence };
    emitted(|buf| packet.emit(buf).unwrap())
}

fn welcome(token: u64, tick: u32) -> Vec<u8> {
    let packet = Welcome {
        nonce: Nonce(3),
        token: Token(token),
        player: EntityId(1),
        tick: Tick::new(tick),
        tick_rate: 10,
        meta: &[],
    };
    emitted(|buf| packet.emit(buf).unwrap())
}

#[test]
fn every_vector_is_printed_and_what_is_invalid_is_told() {
    for Vector { layout, name, bytes, error } in vectors() {
        let valid = error.is_none();
        let seen = inspect(format!("0 c2s {}\n", common::hex(&bytes)));
        let entry = &seen.entries[0];
        // Its direction is wrong for half of them: that is another complaint.
        let problem = entry["problem"].as_str().filter(|why| !why.contains("only the other side"));
        if bytes.starts_with(&[0x4C, 0x52]) {
            assert_eq!(problem.is_none(), valid, "{layout}, {name}: {entry}");
        } else {
            assert!(problem.is_some(), "{layout}, {name}: {entry}");
        }
    }
}

#[test]
fn every_packet_type_is_named_and_has_its_fields() {
    let names = [
        ("action", "Action", "sequence"),
        ("challenge", "Challenge", "client_nonce"),
        ("chunk", "Chunk", "palette"),
        ("detail", "Detail", "entity_id"),
        ("entities", "Entities", "entity_count"),
        ("event", "Event", "text"),
        ("event_ack", "EventAck", "sequence"),
        ("hello", "Hello", "client_nonce"),
        ("info", "Info", "max_players"),
        ("info_request", "InfoRequest", "client_nonce"),
        ("join", "Join", "features"),
        ("leave", "Leave", "reason"),
        ("query", "Query", "entity_id"),
        ("refuse", "Refuse", "text"),
        ("state", "State", "entity_checksum"),
        ("welcome", "Welcome", "tick_rate"),
        ("echo", "Ping", "timestamp_ms"),
    ];
    for (layout, packet, field) in names {
        let all = vectors();
        let mut valid = all.iter().filter(|one| one.layout == layout && one.error.is_none());
        let bytes = &valid.next().unwrap().bytes;
        let seen = inspect(common::hex(bytes));
        let entry = &seen.entries[0];
        assert_eq!(entry["packet"], packet, "{entry}");
        assert!(!entry["fields"][field].is_null(), "{entry}");
        let line = text_of(common::hex(bytes));
        assert!(line.lines().next().unwrap().contains(packet), "{line}");
    }
}

#[test]
fn a_type_of_the_other_side_is_a_problem() {
    let mut capture = Capture::default();
    capture.c2s(0, &state(7, 0));
    capture.s2c(1, &action(1, manifest(5), Action::NoOp));
    let leave =
        Leave { client_type: ClientType::OFFICIAL, token: TOKEN, reason: LeaveReason::QUIT };
    let leave = emitted(|buf| leave.emit(buf).unwrap());
    capture.c2s(2, &leave);
    capture.s2c(3, &leave);
    let seen = inspect(capture.0);
    let wrong = seen.entries.iter().map(|entry| entry["problem"].is_string());
    assert_eq!(wrong.collect::<Vec<_>>(), [true, true, false, false]);
    assert_eq!(seen.sessions[0]["ticks"]["came"], 0, "it was not followed");
}

#[test]
fn ticks_that_did_not_come_are_counted_until_they_come_late() {
    let mut capture = Capture::default();
    // Across the end of the numbers (R31).
    for (at, tick) in [0xFFFF_FFFE, 0xFFFF_FFFF, 2, 1, 1, 0, 3, 6].into_iter().enumerate() {
        capture.s2c(100 * at as u64, &state(tick, 1));
    }
    let seen = inspect(capture.0);
    assert_eq!(
        seen.all_remarks().into_iter().filter(|(_, r)| !r.contains("entities")).collect::<Vec<_>>(),
        [
            (2, "2 ticks before it did not come".to_owned()),
            (3, "late, 1 behind the newest one".to_owned()),
            (4, "this tick came before".to_owned()),
            (5, "late, 2 behind the newest one".to_owned()),
            (7, "2 ticks before it did not come".to_owned()),
        ]
    );
    let ticks = &seen.sessions[0]["ticks"];
    assert_eq!(*ticks, json!({"came": 7, "missing": 2, "late": 2, "again": 1, "jumps": 0}));
}

#[test]
fn a_tick_far_away_is_a_jump_and_no_loss() {
    let mut capture = Capture::default();
    for tick in [1000, 1601, 1602, 900] {
        capture.s2c(0, &state(tick, 1));
    }
    let seen = inspect(capture.0);
    assert_eq!(seen.remarks(1)[0], "601 ticks ahead of the newest one");
    assert_eq!(seen.remarks(3)[0], "702 ticks behind the newest one");
    assert_eq!(seen.sessions[0]["ticks"]["missing"], 0);
    assert_eq!(seen.sessions[0]["ticks"]["jumps"], 2);
}

#[test]
fn entities_in_any_order_have_the_checksum_of_their_state() {
    let parts = [entities(7, &[1, 2], 5), entities(7, &[3, 9], 5)];
    let sum = checksum(&[&parts[0], &parts[1]]);
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let mut capture = Capture::default();
        for what in order {
            let bytes = if what == 2 { state(7, sum) } else { parts[what].clone() };
            capture.s2c(0, &bytes);
            capture.s2c(0, &bytes);
        }
        let seen = inspect(capture.0);
        let updates = &seen.sessions[0]["updates"];
        assert_eq!((&updates["complete"], &updates["incomplete"]), (&json!(1), &json!(0)));
        assert_eq!(updates["open"], 0, "{order:?}");
    }
}

#[test]
fn a_checksum_that_does_not_match_is_told_with_both_values() {
    let (torn, whole) = (entities(7, &[1, 2], 5), entities(8, &[1, 2], 6));
    let mut capture = Capture::default();
    capture.s2c(0, &state(7, 0xDEAD_BEEF));
    capture.s2c(1, &torn);
    capture.s2c(100, &state(8, checksum(&[&whole])));
    capture.s2c(101, &whole);
    let seen = inspect(capture.0);
    let remark = &seen.remarks(3)[0];
    let sum = checksum(&[&torn]);
    assert!(remark.contains("tick 7"), "{remark}");
    assert!(remark.contains(&format!("{sum:08x} and not deadbeef")), "{remark}");
    assert_eq!(seen.sessions[0]["updates"]["incomplete"], 1);
    assert_eq!(seen.sessions[0]["updates"]["complete"], 1);
}

#[test]
fn lost_entities_are_missed_only_where_something_had_changed() {
    let (first, last) = (entities(7, &[1], 5), entities(10, &[1], 7));
    let mut capture = Capture::default();
    capture.s2c(0, &state(7, checksum(&[&first])));
    capture.s2c(0, &first);
    capture.s2c(100, &state(8, checksum(&[&first])));
    capture.s2c(200, &state(9, checksum(&[&entities(9, &[1], 6)])));
    capture.s2c(300, &state(10, checksum(&[&last])));
    capture.s2c(300, &last);
    let seen = inspect(capture.0);
    assert_eq!(seen.all_remarks(), [(5, "no entities came for tick 9".to_owned())]);
    let updates = &seen.sessions[0]["updates"];
    assert_eq!((&updates["unchanged"], &updates["incomplete"]), (&json!(1), &json!(1)));
    assert_eq!(updates["complete"], 2);
}

#[test]
fn a_lost_chunk_is_seen_to_be_asked_for_and_sent_again() {
    let all = manifest(5);
    let mut lacks_one = all;
    lacks_one[3] = ChunkEntry::default();
    let mut capture = Capture::default();
    capture.s2c(0, &state(7, 1));
    for entry in all {
        capture.s2c(10, &chunk(entry));
    }
    capture.c2s(100, &action(1, lacks_one, Action::NoOp)); // it may have crossed the chunk
    capture.c2s(300, &action(1, lacks_one, Action::NoOp));
    capture.c2s(350, &action(1, lacks_one, Action::NoOp)); // told already
    capture.s2c(400, &chunk(all[3]));
    capture.c2s(700, &action(1, all, Action::NoOp));
    let seen = inspect(capture.0);
    let remarks: Vec<_> = seen.all_remarks().into_iter().filter(|(at, _)| *at > 0).collect();
    assert_eq!(
        remarks,
        [
            (11, "lacks chunk -1,0 v5, which was sent".to_owned()),
            (13, "sent again after 390 ms".to_owned()),
        ]
    );
    let chunks = &seen.sessions[0]["chunks"];
    assert_eq!(*chunks, json!({"sent": 10, "sent_again": 1, "asked_again": 1}));
}

#[test]
fn a_new_session_holds_no_chunks_and_starts_its_numbers_anew() {
    let mut capture = Capture::default();
    capture.s2c(0, &welcome(1, 5));
    capture.s2c(1, &state(6, 1));
    capture.s2c(2, &chunk(manifest(5)[0]));
    capture.c2s(3, &action(900, manifest(5), Action::PickUp));
    capture.s2c(4, &event(4, "x"));
    capture.s2c(1000, &welcome(2, 50));
    capture.s2c(1001, &state(51, 1));
    capture.s2c(1002, &chunk(manifest(5)[0]));
    capture.c2s(1003, &action(3, manifest(5), Action::PickUp));
    capture.s2c(1004, &event(4, "y"));
    let seen = inspect(capture.0);
    assert_eq!(seen.all_remarks(), [(5, "a new session".to_owned())]);
    assert_eq!(seen.sessions[0]["joining"]["welcomes"], 2);
}

#[test]
fn repeated_actions_are_told_from_new_ones_and_no_ops_use_no_number() {
    use caves_wire::caves::Direction::East;
    let walk = Action::Walk(East);
    let numbers = [(5, walk), (5, walk), (5, Action::NoOp), (6, walk), (9, Action::PickUp)];
    let numbers = numbers.into_iter().chain([(8, walk), (9, Action::PickUp), (9, Action::PickUp)]);
    let mut capture = Capture::default();
    for (number, what) in numbers {
        capture.c2s(0, &action(number, manifest(5), what));
    }
    let seen = inspect(capture.0);
    assert_eq!(
        seen.all_remarks(),
        [
            (1, "repeated, copy 2".to_owned()),
            (4, "2 actions before it did not come".to_owned()),
            (5, "older than 9".to_owned()),
            (6, "repeated, copy 2".to_owned()),
            (7, "repeated, copy 3".to_owned()),
        ]
    );
    let actions = &seen.sessions[0]["actions"];
    let expected = json!({"numbers": 4, "repeated": 3, "missing": 1, "late": 1, "no_ops": 1});
    assert_eq!(*actions, expected);
}

#[test]
fn an_event_that_was_resent_and_its_acknowledgements_are_followed() {
    let mut capture = Capture::default();
    capture.s2c(0, &event(0xFFFF_FFFF, "first"));
    capture.s2c(250, &event(0xFFFF_FFFF, "first"));
    capture.c2s(260, &ack(0xFFFF_FFFF));
    capture.s2c(300, &event(0, "second"));
    capture.s2c(750, &event(0xFFFF_FFFF, "first"));
    capture.c2s(760, &ack(0xFFFF_FFFF));
    capture.c2s(770, &ack(12));
    let seen = inspect(capture.0);
    assert_eq!(
        seen.all_remarks(),
        [
            (1, "resent, time 2".to_owned()),
            (4, "resent, time 3".to_owned()),
            (5, "acknowledged before".to_owned()),
            (6, "an event that this recording does not have".to_owned()),
        ]
    );
    let events = &seen.sessions[0]["events"];
    let expected = json!({"numbers": 2, "resent": 2, "acknowledged": 1, "unknown_acks": 1});
    assert_eq!(*events, expected);
}

#[test]
fn the_round_trip_is_from_the_newest_ping_to_its_pong() {
    let ping = |payload| emitted(|buf| Echo::ping(ClientType(0), payload).emit(buf).unwrap());
    let pong = |payload| emitted(|buf| Echo::pong(payload).emit(buf).unwrap());
    let mut capture = Capture::default();
    capture.c2s(0, &ping(0)); // lost: its Pong never comes
    capture.c2s(1000, &ping(0));
    capture.s2c(1030, &pong(0));
    capture.c2s(2000, &ping(8));
    capture.s2c(2050, &pong(8));
    capture.s2c(2051, &pong(8));
    let seen = inspect(capture.0);
    assert_eq!(seen.entries[2]["round_trip_ms"], 30.0);
    assert_eq!(seen.entries[4]["round_trip_ms"], 50.0);
    assert_eq!(seen.all_remarks(), [(5, "a Ping that this recording does not have".to_owned())]);
    let trip = &seen.sessions[0]["round_trip"];
    assert_eq!(
        (&trip["pings"], &trip["pongs"], &trip["measured"]),
        (&json!(3), &json!(2), &json!(2))
    );
    assert_eq!(
        (&trip["least_ms"], &trip["mean_ms"], &trip["most_ms"]),
        (&json!(30.0), &json!(40.0), &json!(50.0))
    );
}

#[test]
fn what_the_recording_calls_lost_did_not_reach_the_receiver() {
    let update = entities(8, &[1], 5);
    let mut capture = Capture::default();
    capture.s2c(0, &state(7, 1));
    capture.0 += &format!("100 s2c {} lost\n", common::hex(&state(8, checksum(&[&update]))));
    capture.0 += &format!("# 101 dropped s2c {}\n", common::hex(&update));
    capture.s2c(200, &state(9, 2));
    let seen = inspect(capture.0);
    assert_eq!(seen.remarks(3), ["one tick before it did not come"]);
    assert_eq!(seen.sessions[0]["lost"], 2);
    assert_eq!(seen.sessions[0]["updates"]["complete"], 0);
    assert_eq!(seen.entries[1]["lost"], true);
}

#[test]
fn a_hello_that_was_asked_again_and_a_fourth_leave_are_remarked_on() {
    let hello = |nonce| {
        let hello = Hello { client_type: ClientType(0), nonce: Nonce(nonce) };
        emitted(|buf| hello.emit(buf).unwrap())
    };
    let leave = Leave { client_type: ClientType(0), token: TOKEN, reason: LeaveReason::QUIT };
    let leave = emitted(|buf| leave.emit(buf).unwrap());
    let mut capture = Capture::default();
    for nonce in [1, 1, 2] {
        capture.c2s(0, &hello(nonce));
    }
    for _ in 0..4 {
        capture.c2s(1, &leave);
    }
    let seen = inspect(capture.0);
    let expected = [(1, "asked again".to_owned()), (6, "copy 4".to_owned())];
    assert_eq!(seen.all_remarks(), expected);
}

#[test]
fn tokens_are_nowhere_in_the_output() {
    let mut meta = [0; 16];
    let mut tlv = TlvWriter::new(&mut meta);
    tlv.put(0x24, &0x1122_3344_5566_7788u64.to_le_bytes()).unwrap();
    let join = caves_wire::caves::Join {
        client_type: ClientType(0),
        nonce: Nonce(1),
        cookie: [0; 16],
        meta: tlv.finish(),
    };
    let mut capture = Capture::default();
    capture.c2s(0, &emitted(|buf| join.emit(buf).unwrap()));
    capture.s2c(1, &welcome(0x1122_3344_5566_7788, 4));
    let seen = format!("{:?}", inspect(capture.0.clone()));
    let text = text_of(capture.0);
    for all in [seen, text] {
        for token in ["1122334455667788", "8877665544332211", "1234605616436508552"] {
            assert!(!all.contains(token), "{all}");
        }
    }
}
