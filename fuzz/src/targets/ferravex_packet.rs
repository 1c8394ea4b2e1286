//! Any bytes to the packets of ferravex 2.

use caves_wire::ferravex::{
    Event, EventAck, EventAckView, EventView, Hello, HelloView, Input, InputView, MAX_FRAMES,
    MAX_PAYLOAD, MAX_PLAYERS, Packet, Snapshot, SnapshotView, Welcome, WelcomeView,
};
use caves_wire::{MAX_DATAGRAM, ParseError};

/// Parses, walks every accessor, prints, and writes again: the bytes are the same, for the layouts have
/// no room that means nothing. Exactly one view accepts what [`Packet::parse`] accepts.
///
/// What lies behind a first byte of 0 is taken as the tail of a valid header, so that no time goes by
/// until the fuzzer has found the magic.
pub fn ferravex_packet(data: &[u8]) {
    check(data);
    if let Some((0, tail)) = data.split_first() {
        check(&[b"FERRAVEX\x02", tail].concat());
    }
}

fn check(data: &[u8]) {
    let accepting = views(data);
    match Packet::parse(data) {
        Err(error) => {
            check_error(error, data);
            assert_eq!(accepting, [""; 0], "a view accepts what was refused as {error}");
        }
        Ok(packet) => {
            let line = format!("{packet}");
            assert!(!line.is_empty() && !line.contains(char::is_control), "one line: {line:?}");
            assert_eq!(format!("{packet:?}"), line);
            assert_eq!(accepting, [packet.kind().name().expect("a known kind")], "{line}");
            assert_eq!(again(packet), data, "{line}");
        }
    }
}

/// The views that accept these bytes.
fn views(data: &[u8]) -> Vec<&'static str> {
    let outcomes = [
        ("Hello", HelloView::parse(data).err()),
        ("Input", InputView::parse(data).err()),
        ("Welcome", WelcomeView::parse(data).err()),
        ("Snapshot", SnapshotView::parse(data).err()),
        ("Event", EventView::parse(data).err()),
        ("EventAck", EventAckView::parse(data).err()),
    ];
    outcomes.into_iter().filter(|(_, error)| error.is_none()).map(|(name, _)| name).collect()
}

/// The place named lies in the datagram, and what was needed was not there.
fn check_error(error: ParseError, data: &[u8]) {
    assert!(error.offset <= data.len(), "{error} of {} bytes", data.len());
    assert_ne!(error.needed, error.got, "{error}");
    assert!(!error.to_string().contains(char::is_control));
}

/// What the plain struct writes, in exactly the room that it needs and in no less.
fn again(packet: Packet<'_>) -> Vec<u8> {
    let mut buf = [0xEE; MAX_DATAGRAM];
    let len = match packet {
        Packet::Hello(view) => Hello { nonce: view.nonce() }.emit(&mut buf),
        Packet::Input(view) => {
            let frames: Vec<_> = view.frames().collect();
            assert!((1..=MAX_FRAMES).contains(&frames.len()));
            assert!(frames.iter().all(|frame| frame.is_finite()));
            assert_eq!(frames.last().map(|frame| frame.sequence), Some(view.newest()));
            let input = Input { session: view.session(), frames: &frames };
            assert!(input.emit(&mut vec![0; input.len() - 1]).is_err());
            input.emit(&mut buf)
        }
        Packet::Welcome(view) => {
            let (nonce, session) = (view.nonce(), view.session());
            Welcome { nonce, session, player: view.player(), tick: view.tick() }.emit(&mut buf)
        }
        Packet::Snapshot(view) => {
            let players: Vec<_> = view.players().collect();
            assert!(players.len() <= MAX_PLAYERS && Snapshot::check(&players).is_ok());
            let (session, tick, ack) = (view.session(), view.tick(), view.ack());
            let snapshot = Snapshot { session, tick, ack, players: &players };
            assert!(snapshot.emit(&mut vec![0; snapshot.len() - 1]).is_err());
            snapshot.emit(&mut buf)
        }
        Packet::Event(view) => {
            assert!(view.payload().len() <= MAX_PAYLOAD);
            let (session, sequence) = (view.session(), view.sequence());
            Event { session, sequence, payload: view.payload() }.emit(&mut buf)
        }
        Packet::EventAck(view) => {
            EventAck { session: view.session(), sequence: view.sequence() }.emit(&mut buf)
        }
    };
    let len = len.expect("what was read can be written");
    assert!(buf[len..].iter().all(|byte| *byte == 0xEE), "wrote past its end");
    buf[..len].to_vec()
}
