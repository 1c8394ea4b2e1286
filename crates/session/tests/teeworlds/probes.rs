//! The 52 probes: hand-made datagrams, and what the real server did with each.

use caves_link::time::Instant;
use caves_session::Peer;
use caves_session::teeworlds::ServerEvent;
use caves_wire::teeworlds::{Packet, Tokens};

use crate::captures::{Case, Line, at, cases, hex};
use crate::drive::{TOKEN, Talk, open_to_all, peer};

/// Where this server does something else than the real one, and what it sends instead.
///
/// A second ACCEPT makes the real server throw its counters away, and the game begins anew. One
/// datagram that came twice would do. Here it takes a CONNECT before it, so nothing comes back
/// before INFO, and then what comes to any other INFO.
const DEVIATIONS: [&str; 1] = ["handshake, ACCEPT twice, then INFO"];
const INFO: u8 = 0x03;
const PING: u8 = 0x2D;
const PING_REPLY: u8 = 0x2F;

/// The messages that the real server answers an INFO with.
fn welcome(cases: &[Case]) -> Vec<Vec<u8>> {
    let answer = cases[0].lines.iter().filter(|line| line.from_server).nth(1).expect("an answer");
    let mut scratch = [0; 1394];
    let Ok(Packet::Chunks(packet)) = Packet::parse(&answer.bytes, Tokens::With, &mut scratch)
    else {
        panic!("chunks");
    };
    let messages: Vec<Vec<u8>> = packet.chunks().map(|chunk| chunk.data.to_vec()).collect();
    assert_eq!(messages.iter().map(Vec::len).collect::<Vec<_>>(), [18, 19, 61, 12]);
    messages
}

/// Hands a case's client half to the server, with a game above it that knows INFO and PING.
fn play(case: &Case, port: u16, welcome: &[Vec<u8>]) -> Talk {
    let start = case.lines[0].millis;
    let mut talk = Talk::new(open_to_all(), TOKEN, at(start));
    for line in case.lines.iter().filter(|line| !line.from_server) {
        talk.pass_to(line.now());
        for message in talk.give(peer(port), &line.bytes).unwrap_or_default() {
            let id = talk.session();
            match message[..] {
                [INFO, ..] => {
                    for message in welcome {
                        talk.server.send(talk.now, id, true, message).unwrap();
                    }
                    talk.server.flush(id);
                }
                [PING, ..] => talk.server.send(talk.now, id, false, &[PING_REPLY]).unwrap(),
                _ => {}
            }
        }
        talk.fetch();
    }
    talk
}

/// What the server sent, as lines of a capture.
fn lines(talk: Talk, port: u16) -> Vec<Line> {
    let origin = at(0).as_millis();
    let line = |(now, to, bytes): (Instant, Peer, Vec<u8>)| {
        assert_eq!(to, peer(port));
        Line { millis: now.as_millis() - origin, from_server: true, dropped: false, bytes }
    };
    talk.sent.into_iter().map(line).collect()
}

/// As the captures put it.
fn result(sent: &[Line]) -> String {
    let (mut replies, mut packets) = (0, Vec::new());
    // The handshake and the answer to INFO belong to every case.
    for line in sent.iter().skip(2) {
        let mut scratch = [0; 1394];
        match Packet::parse(&line.bytes, Tokens::Guess, &mut scratch).unwrap() {
            Packet::Control(packet) => {
                let text = packet.to_string();
                let name = text.split(' ').next().unwrap_or_default();
                packets.push(format!("ctrl {name} ack={}", packet.ack));
            }
            Packet::Chunks(packet) => {
                let header = packet.header();
                replies += packet.chunks().filter(|chunk| chunk.data == [PING_REPLY]).count();
                let resend = if header.resend { "RESEND " } else { "" };
                packets.push(format!("{resend}ack={} chunks={}", header.ack, header.num_chunks));
            }
            Packet::Connless(_) => panic!("never"),
        }
    }
    let packets = if packets.is_empty() { "none".into() } else { packets.join(", ") };
    format!("ping replies={replies}; server packets: {packets}")
}

#[test]
fn every_probe_is_answered_as_the_real_server_did_byte_for_byte() {
    let cases = cases("probes");
    assert_eq!(cases.len(), 52);
    let welcome = welcome(&cases);
    let (mut same, mut results) = (0, 0);
    for (case, port) in cases.iter().zip(5000..) {
        if DEVIATIONS.contains(&case.name.as_str()) {
            continue;
        }
        let ours = lines(play(case, port, &welcome), port);
        let real: Vec<&Line> = case.lines.iter().filter(|line| line.from_server).collect();
        let bytes = |line: &Line| hex(&line.bytes);
        assert_eq!(
            ours.iter().map(bytes).collect::<Vec<_>>(),
            real.iter().map(|line| bytes(line)).collect::<Vec<_>>(),
            "{}",
            case.name
        );
        for (ours, real) in ours.iter().zip(real) {
            // The real one looks at its timers now and then.
            let late = real.millis.checked_sub(ours.millis);
            assert!(late.is_some_and(|late| late < 30), "{}: {ours:?} {real:?}", case.name);
        }
        if case.result.starts_with("ping") {
            assert_eq!(result(&ours), case.result, "{}", case.name);
            results += 1;
        }
        same += 1;
    }
    assert_eq!((same, results), (51, 43));
}

#[test]
fn a_second_accept_alone_does_not_cost_a_session_its_counters() {
    let cases = cases("probes");
    let welcome = welcome(&cases);
    let case = cases.iter().find(|case| DEVIATIONS.contains(&case.name.as_str())).unwrap();
    let ours = lines(play(case, 5000, &welcome), 5000);
    // Acknowledged as 1, answered with 1 to 4: the session is the one that began.
    let first = cases[0].lines.iter().filter(|line| line.from_server).nth(1).unwrap();
    assert_eq!(ours.len(), 2);
    assert_eq!(hex(&ours[1].bytes), hex(&first.bytes));
}

#[test]
fn a_close_is_told_with_its_reason_cleaned_and_never_answered() {
    let cases = cases("probes");
    let reasons = [
        ("CLOSE with control characters in the reason", "closed: bad   reason\x7F"),
        ("CLOSE without reason", "closed"),
        ("CLOSE with reason lacking NUL", "closed: abc"),
    ];
    for (name, told) in reasons {
        let case = cases.iter().find(|case| case.name == name).unwrap();
        let talk = play(case, 1, &welcome(&cases));
        let left: Vec<String> = (talk.events.iter())
            .filter_map(|event| match event {
                ServerEvent::Left { why, .. } => Some(why.to_string()),
                _ => None,
            })
            .collect();
        assert_eq!(left, [told], "{name}");
        assert_eq!(talk.server.len(), 0);
    }
}
