//! Captures of real servers of Teeworlds and blank, and packets of ferravex.

mod common;

use caves_inspect::protocols::Protocol;
use caves_inspect::run::Options;
use caves_wire::ferravex::{
    Cookie, Event, EventAck, Hello, Input, InputFrame, InputSequence, Nonce, PlayerId, Snapshot,
    Tick, Welcome,
};
use common::{Capture, Seen, inspect, inspect_with};
use serde_json::{Value, json};

fn capture(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/wire/tests/captures");
    let path = format!("{folder}/{name}.txt");
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Lines of a capture that have this direction: what came, and what was lost.
fn counted(text: &str, way: &str) -> (u64, u64) {
    let lines = text.lines().filter(|line| {
        let mut words = line.trim_start_matches('#').split_whitespace().skip(1);
        words.next().is_some_and(|word| word == way)
            || (line.starts_with('#') && words.next() == Some(way) && line.contains(" dropped "))
    });
    let lines: Vec<_> = lines.collect();
    let lost = lines.iter().filter(|line| line.starts_with('#') || line.ends_with(" lost"));
    let lost = lost.count() as u64;
    (lines.len() as u64 - lost, lost)
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn every_datagram_of_the_real_captures_is_read_as_what_it_is() {
    for (name, protocol, problems) in [
        ("blank-session", "blank", 0),
        ("blank-lossy", "blank", 0),
        ("blank-reorder", "blank", 0),
        ("blank-head-session", "blank", 0),
        ("blank-edge-empty-datagram", "blank", 1),
        ("teeworlds-ddnet-16.4-session", "teeworlds", 0),
        ("teeworlds-ddnet-16.4-notoken", "teeworlds", 0),
        ("teeworlds-ddnet-16.4-lossy", "teeworlds", 0),
        ("teeworlds-ddnet-16.4-rollover", "teeworlds", 0),
        ("teeworlds-ddnet-16.4-timeout", "teeworlds", 0),
        ("teeworlds-ddnet-16.4-serverinfo", "teeworlds", 2),
    ] {
        let text = capture(name);
        let Seen { entries, totals, failure, .. } = inspect(text.clone());
        assert_eq!((totals.problems, totals.broken, failure), (problems, 0, None), "{name}");
        let (c2s, s2c) = (counted(&text, "c2s"), counted(&text, "s2c"));
        assert_eq!(totals.datagrams, c2s.0 + c2s.1 + s2c.0 + s2c.1, "{name}");
        for (way, (_, lost)) in [("c2s", c2s), ("s2c", s2c)] {
            let here = entries.iter().filter(|entry| entry["direction"] == way);
            assert_eq!(here.filter(|entry| entry["lost"] == true).count() as u64, lost, "{name}");
        }
        // The very first bytes of a connection may tell nothing.
        let strangers = entries.iter().filter(|entry| entry["protocol"] != protocol).count();
        assert!(strangers as u64 <= problems, "{name}: {strangers}");
    }
}

#[test]
fn what_blank_lost_is_missing_in_its_numbers() {
    let text = capture("blank-lossy");
    let seen = inspect(text.clone());
    for (side, way) in [("from_client", "c2s"), ("from_server", "s2c")] {
        let (came, lost) = counted(&text, way);
        // What is lost behind the last datagram that came leaves no gap.
        let of_this_way = |line: &&str| line.split(' ').nth(1) == Some(way);
        let behind = text.lines().rev().filter(of_this_way).take_while(|l| l.ends_with("lost"));
        let row = &seen.sessions[0][side];
        assert_eq!(number(&row["came"]), came, "{side}");
        assert_eq!(number(&row["missing"]), lost - behind.count() as u64, "{side}");
        assert_eq!((number(&row["late"]), number(&row["again"])), (0, 0));
    }
    assert_eq!(seen.sessions[0]["login"]["asked_again"], 1);
}

#[test]
fn the_numbers_of_teeworlds_go_round_without_a_gap() {
    let seen = inspect(capture("teeworlds-ddnet-16.4-rollover"));
    let session = &seen.sessions[0];
    // The page of these captures counts 1153 and 1105 at least.
    assert!(number(&session["from_server"]["came"]) >= 1153, "{session}");
    assert!(number(&session["from_client"]["came"]) >= 1105, "{session}");
    for side in ["from_server", "from_client"] {
        assert_eq!(session[side]["missing"], 0, "{session}");
    }
}

#[test]
fn what_teeworlds_lost_comes_again_and_is_asked_for() {
    let seen = inspect(capture("teeworlds-ddnet-16.4-lossy"));
    let session = &seen.sessions[0];
    for side in ["from_server", "from_client"] {
        // In the end everything arrived; on the way there some did not.
        assert_eq!(session[side]["missing"], 0, "{session}");
        assert!(number(&session[side]["late"]) > 0, "{session}");
        assert!(number(&session[side]["resent"]) > 0, "{session}");
        assert!(number(&session[side]["requests"]) > 0, "{session}");
    }
    // Four times a second apart, after the first time.
    let seen = inspect(capture("teeworlds-ddnet-16.4-timeout"));
    assert_eq!(seen.sessions[0]["from_server"]["again"], 4);
}

#[test]
fn every_vector_of_ferravex_is_read_and_what_is_invalid_is_told() {
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/wire/vectors/ferravex/vectors.json");
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let file: Value = serde_json::from_str(&text).unwrap();
    let cases = file["cases"].as_array().unwrap();
    assert!(cases.len() > 100);
    for case in cases {
        let options = Options { protocol: Some(Protocol::Ferravex), ..Options::default() };
        let line = case["hex"].as_str().unwrap().to_owned();
        // A line without a word has no datagram.
        let line = if line.is_empty() { "0 c2s".to_owned() } else { line };
        let seen = inspect_with(options, line);
        let told = seen.entries[0]["problem"].is_string();
        assert_eq!(told, !case["error"].is_null(), "{case}: {seen:?}");
    }
}

fn emitted(emit: impl FnOnce(&mut [u8]) -> usize) -> Vec<u8> {
    let mut buf = [0; 1200];
    let len = emit(&mut buf);
    buf[..len].to_vec()
}

#[test]
fn a_session_of_ferravex_is_followed() {
    let session = Cookie::new(0x1122_3344_5566_7788).unwrap();
    let hello = emitted(|buf| Hello { nonce: Nonce(5) }.emit(buf).unwrap());
    let (nonce, player) = (Nonce(5), PlayerId(1));
    let welcome = Welcome { nonce, session, player, tick: Tick::new(9) };
    let input = |numbers: &[u32]| {
        let frames: Vec<_> =
            numbers.iter().map(|n| InputFrame::neutral(InputSequence::new(*n))).collect();
        emitted(|buf| Input { session, frames: &frames }.emit(buf).unwrap())
    };
    let snapshot = |tick| {
        let tick = Tick::new(tick);
        emitted(|buf| Snapshot { session, tick, ack: None, players: &[] }.emit(buf).unwrap())
    };
    let event =
        |sequence| emitted(|buf| Event { session, sequence, payload: b"!" }.emit(buf).unwrap());
    let ack = |sequence| emitted(|buf| EventAck { session, sequence }.emit(buf).unwrap());
    let mut capture = Capture::default();
    capture.c2s(0, &hello);
    capture.c2s(100, &hello);
    capture.s2c(140, &emitted(|buf| welcome.emit(buf).unwrap()));
    capture.c2s(150, &input(&[1, 2]));
    capture.c2s(160, &input(&[2, 3])); // repeats are no loss
    capture.c2s(170, &input(&[5, 6])); // one packet more was lost than the repetition covers
    capture.s2c(180, &snapshot(10));
    capture.s2c(190, &snapshot(10));
    capture.s2c(200, &event(0));
    capture.s2c(300, &event(0));
    capture.c2s(310, &ack(0));
    capture.c2s(320, &event(1)); // from the wrong side
    let seen = inspect(capture.0);
    assert_eq!(
        seen.all_remarks(),
        [
            (1, "asked again".to_owned()),
            (5, "one input frame before it did not come".to_owned()),
            (7, "not newer than the snapshot before it".to_owned()),
            (9, "resent, time 2".to_owned()),
        ]
    );
    assert!(seen.entries[11]["problem"].as_str().unwrap().contains("only the other side"));
    assert_eq!(seen.entries[2]["round_trip_ms"], 40.0);
    let summary = &seen.sessions[0];
    assert_eq!(summary["input_frames"], json!({"came": 5, "missing": 1, "late": 0, "again": 1}));
    assert_eq!(summary["events"]["resent"], 1);
    assert_eq!(summary["snapshots"], json!({"came": 2, "not_newer": 1}));
    assert_eq!(seen.entries[5]["fields"]["frames"][1]["sequence"], 6);
    assert!(!format!("{seen:?}").contains("1122334455667788"), "a cookie is as good as a token");
    assert!(!format!("{seen:?}").contains("1234605616436508552"));
}
