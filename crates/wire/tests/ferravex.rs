//! The packets of ferravex 2 against vectors that share nothing with this crate, literal datagrams and
//! generated values.
#![cfg(feature = "ferravex")]

use std::collections::BTreeSet;

use caves_wire::ferravex::{
    Cookie, Event, EventAck, EventAckView, EventView, Hello, HelloView, Input, InputFrame,
    InputSequence, InputView, Nonce, Packet, Player, PlayerId, Snapshot, SnapshotView, Tick,
    Welcome, WelcomeView,
};
use caves_wire::{EmitError, ErrorKind};
use proptest::collection::{hash_set, vec};
use proptest::prelude::*;
use serde_json::{Value, json};

fn cases() -> Vec<Value> {
    let file: Value =
        serde_json::from_str(include_str!("../vectors/ferravex/vectors.json")).unwrap();
    file["cases"].as_array().unwrap().clone()
}

fn unhex(value: &Value) -> Vec<u8> {
    let digits = value.as_str().unwrap().as_bytes();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

fn hex64(number: u64) -> String {
    format!("{number:#018x}")
}

/// The fields as the vectors name them, and the bytes that the plain struct writes.
fn read(packet: Packet<'_>) -> (&'static str, Value, Vec<u8>) {
    let mut buf = vec![0; 1200];
    let (fields, len) = match packet {
        Packet::Hello(view) => {
            let nonce = view.nonce();
            (json!({"nonce": hex64(nonce.0)}), Hello { nonce }.emit(&mut buf))
        }
        Packet::Input(view) => {
            let frames: Vec<_> = view.frames().collect();
            let rows: Vec<_> = frames.iter().map(frame_fields).collect();
            let input = Input { session: view.session(), frames: &frames };
            assert_eq!(view.newest(), frames[frames.len() - 1].sequence);
            (json!({"session": hex64(view.session().get()), "frames": rows}), input.emit(&mut buf))
        }
        Packet::Welcome(view) => {
            let (nonce, session) = (view.nonce(), view.session());
            let (player, tick) = (view.player(), view.tick());
            let fields = json!({
                "nonce": hex64(nonce.0), "session": hex64(session.get()),
                "player": player.0, "tick": tick.get(),
            });
            (fields, Welcome { nonce, session, player, tick }.emit(&mut buf))
        }
        Packet::Snapshot(view) => {
            let players: Vec<_> = view.players().collect();
            let rows: Vec<_> = players.iter().map(player_fields).collect();
            let (session, tick, ack) = (view.session(), view.tick(), view.ack());
            let fields = json!({
                "session": hex64(session.get()), "tick": tick.get(),
                "ack": ack.map(InputSequence::get), "players": rows,
            });
            (fields, Snapshot { session, tick, ack, players: &players }.emit(&mut buf))
        }
        Packet::Event(view) => {
            let (session, sequence, payload) = (view.session(), view.sequence(), view.payload());
            let digits: String = payload.iter().map(|byte| format!("{byte:02x}")).collect();
            let fields = json!({
                "session": hex64(session.get()), "sequence": hex64(sequence), "payload": digits,
            });
            (fields, Event { session, sequence, payload }.emit(&mut buf))
        }
        Packet::EventAck(view) => {
            let (session, sequence) = (view.session(), view.sequence());
            let fields = json!({"session": hex64(session.get()), "sequence": hex64(sequence)});
            (fields, EventAck { session, sequence }.emit(&mut buf))
        }
    };
    buf.truncate(len.unwrap());
    (packet.kind().name().unwrap(), fields, buf)
}

fn frame_fields(frame: &InputFrame) -> Value {
    let InputFrame { sequence, move_x, move_y, yaw, pitch, buttons } = frame;
    let [x, y, yaw, pitch] = [move_x, move_y, yaw, pitch].map(|number| number.to_bits());
    json!([sequence.get(), x, y, yaw, pitch, buttons])
}

fn player_fields(player: &Player) -> Value {
    let (position, velocity) =
        (player.position.map(f32::to_bits), player.velocity.map(f32::to_bits));
    json!([player.id.0, position, velocity, player.yaw.to_bits(), player.health])
}

#[test]
fn every_vector_reads_and_writes_as_it_says() {
    let cases = cases();
    assert!(cases.len() >= 110, "{}", cases.len());
    for case in cases {
        let (name, bytes) = (&case["name"], unhex(&case["hex"]));
        match (Packet::parse(&bytes), &case["error"]) {
            (Ok(packet), Value::Null) => {
                let (kind, fields, again) = read(packet);
                assert_eq!(case["packet"], kind, "{name}");
                assert_eq!(case["fields"], fields, "{name}");
                assert_eq!(again, bytes, "{name}");
            }
            (Err(error), wanted @ Value::Object(_)) => {
                let got = json!({"kind": format!("{:?}", error.kind), "offset": error.offset});
                assert_eq!(got, *wanted, "{name}: {error}");
            }
            (got, wanted) => panic!("{name}: {got:?}, not {wanted}"),
        }
    }
}

#[test]
fn every_kind_of_refusal_has_a_vector() {
    let kinds: BTreeSet<String> = (cases().iter())
        .filter_map(|case| Some(case["error"]["kind"].as_str()?.to_owned()))
        .collect();
    let expected = [
        "Cap",
        "Flags",
        "Magic",
        "NonFinite",
        "PacketType",
        "Range",
        "Sequence",
        "TooLong",
        "TooShort",
        "Trailing",
        "Twice",
        "Version",
        "Zero",
    ];
    assert!(kinds.iter().eq(expected), "{kinds:?}");
}

#[test]
fn a_swap_of_version_and_kind_is_no_packet() {
    let literal = b"FERRAVEX\x01\x02\x01\0\0\0\0\0\0\0\x01";
    assert_eq!(Packet::parse(literal).unwrap_err().kind, ErrorKind::Version);
}

/// Writes a packet: exactly its bytes, nothing into a shorter buffer, and no cut or longer form of it
/// is taken.
fn written(
    len: usize,
    emit: impl Fn(&mut [u8]) -> Result<usize, EmitError>,
) -> Result<Vec<u8>, TestCaseError> {
    let mut buf = vec![0xEE; 1201];
    let wrote = emit(&mut buf).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(wrote, len);
    prop_assert!(buf[len..].iter().all(|byte| *byte == 0xEE), "wrote past its end");
    let mut short = vec![0xEE; len - 1];
    prop_assert!(emit(&mut short).is_err() && short.iter().all(|byte| *byte == 0xEE));
    buf.truncate(len);
    for cut in 0..len {
        let error = Packet::parse(&buf[..cut]).map(|_| ()).expect_err("cut");
        prop_assert_eq!(error.kind, ErrorKind::TooShort);
    }
    let longer = [&buf[..], &[0]].concat();
    prop_assert_eq!(Packet::parse(&longer).map(|_| ()).unwrap_err().kind, ErrorKind::Trailing);
    Ok(buf)
}

fn finite() -> impl Strategy<Value = f32> {
    any::<u32>().prop_map(|bits| {
        let number = f32::from_bits(bits);
        if number.is_finite() { number } else { f32::from_bits(bits & 0x807F_FFFF) }
    })
}

fn cookie() -> impl Strategy<Value = Cookie> {
    (1..=u64::MAX).prop_map(|number| Cookie::new(number).unwrap())
}

fn frame() -> impl Strategy<Value = InputFrame> {
    ([finite(), finite(), finite(), finite()], any::<u16>()).prop_map(|(floats, buttons)| {
        let [move_x, move_y, yaw, pitch] = floats;
        InputFrame { sequence: InputSequence::new(0), move_x, move_y, yaw, pitch, buttons }
    })
}

fn player() -> impl Strategy<Value = Player> {
    (vec(finite(), 7), any::<u16>()).prop_map(|(floats, health)| Player {
        id: PlayerId(0),
        position: floats[..3].try_into().unwrap(),
        velocity: floats[3..6].try_into().unwrap(),
        yaw: floats[6],
        health,
    })
}

proptest! {
    #[test]
    fn hello(nonce: u64) {
        let nonce = Nonce(nonce);
        let bytes = written(18, |buf| Hello { nonce }.emit(buf))?;
        prop_assert_eq!(HelloView::parse(&bytes).unwrap().nonce(), nonce);
    }

    #[test]
    fn input(session in cookie(), first: u32, mut frames in vec(frame(), 1..=6)) {
        for (place, frame) in frames.iter_mut().enumerate() {
            frame.sequence = InputSequence::new(first.wrapping_add(place as u32));
        }
        let sent = Input { session, frames: &frames };
        let bytes = written(19 + 22 * frames.len(), |buf| sent.emit(buf))?;
        let read = InputView::parse(&bytes).unwrap();
        prop_assert_eq!(read.session(), session);
        prop_assert_eq!(read.frames().collect::<Vec<_>>(), frames);
    }

    #[test]
    fn welcome(nonce: u64, session in cookie(), player: u8, tick: u32) {
        let (nonce, player, tick) = (Nonce(nonce), PlayerId(player), Tick::new(tick));
        let sent = Welcome { nonce, session, player, tick };
        let bytes = written(31, |buf| sent.emit(buf))?;
        let read = WelcomeView::parse(&bytes).unwrap();
        let (nonce, session) = (read.nonce(), read.session());
        let (player, tick) = (read.player(), read.tick());
        prop_assert_eq!(Welcome { nonce, session, player, tick }, sent);
    }

    #[test]
    fn snapshot(
        session in cookie(), tick: u32, ack in prop::option::of(any::<u32>()),
        ids in hash_set(any::<u8>(), 32), mut players in vec(player(), 0..=32),
    ) {
        for (player, id) in players.iter_mut().zip(ids.into_iter().collect::<BTreeSet<u8>>()) {
            player.id = PlayerId(id);
        }
        let (tick, ack) = (Tick::new(tick), ack.map(InputSequence::new));
        let sent = Snapshot { session, tick, ack, players: &players };
        let bytes = written(28 + 31 * players.len(), |buf| sent.emit(buf))?;
        let read = SnapshotView::parse(&bytes).unwrap();
        prop_assert_eq!((read.session(), read.tick(), read.ack()), (session, tick, ack));
        prop_assert_eq!(read.players().collect::<Vec<_>>(), players);
    }

    #[test]
    fn event(session in cookie(), sequence: u64, payload in vec(any::<u8>(), 0..=900)) {
        let sent = Event { session, sequence, payload: &payload };
        let bytes = written(28 + payload.len(), |buf| sent.emit(buf))?;
        let read = EventView::parse(&bytes).unwrap();
        prop_assert_eq!((read.session(), read.sequence()), (session, sequence));
        prop_assert_eq!(read.payload(), &payload[..]);
    }

    #[test]
    fn event_ack(session in cookie(), sequence: u64) {
        let sent = EventAck { session, sequence };
        let bytes = written(26, |buf| sent.emit(buf))?;
        let read = EventAckView::parse(&bytes).unwrap();
        prop_assert_eq!(EventAck { session: read.session(), sequence: read.sequence() }, sent);
    }
}
