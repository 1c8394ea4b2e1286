//! Recordings written by an enemy: nothing panics, nothing grows, nothing reaches the terminal.

mod common;

use caves_inspect::protocols::Protocol;
use caves_inspect::run::Options;
use caves_session::{Random, SplitMix};
use common::{Capture, ethernet, hex, inspect, inspect_with, ipv4, pcap, pcapng, text_of, vectors};

fn noise(random: &mut SplitMix, longest: u64) -> Vec<u8> {
    let len = random.next_u64() % (longest + 1);
    (0..len).map(|_| random.next_u64() as u8).collect()
}

#[test]
fn noise_as_a_recording_is_read_to_some_end() {
    let mut random = SplitMix::new(1);
    let starts: [&[u8]; 6] = [
        b"",
        &[0xD4, 0xC3, 0xB2, 0xA1],
        &[0xA1, 0xB2, 0x3C, 0x4D],
        &[0x0A, 0x0D, 0x0D, 0x0A, 0, 0, 0, 28, 0x1A, 0x2B, 0x3C, 0x4D],
        b"12 c2s ",
        b"# 1 dropped s2c ",
    ];
    for round in 0..600 {
        let bytes = [starts[round % starts.len()], &noise(&mut random, 300)].concat();
        inspect(bytes);
    }
}

#[test]
fn recordings_with_broken_bytes_are_read_to_some_end() {
    let mut random = SplitMix::new(2);
    let payloads: Vec<_> = vectors().into_iter().map(|one| one.bytes).collect();
    let some: Vec<_> =
        payloads.iter().take(12).map(|bytes| ethernet(&ipv4((1, 21_068), bytes))).collect();
    let times: Vec<_> = some.iter().map(|frame| (7, frame.clone())).collect();
    for (link, recording) in
        [(1, pcap(1, &some)), (1, pcapng(1, Some(6), &times)), (276, pcap(276, &some))]
    {
        for _ in 0..500 {
            let mut broken = recording.clone();
            for _ in 0..1 + random.next_u64() % 8 {
                let at = random.next_u64() as usize % broken.len();
                broken[at] = random.next_u64() as u8;
            }
            broken.truncate(1 + random.next_u64() as usize % broken.len());
            let seen = inspect(broken);
            assert!(seen.totals.datagrams <= 64, "link type {link}");
        }
    }
}

#[test]
fn blocks_of_every_type_may_hold_noise() {
    let mut random = SplitMix::new(5);
    for round in 0..8_000 {
        let mut recording = pcapng(1, None, &[]);
        for _ in 0..3 {
            let kind = match random.next_u64() % 12 {
                0 => 0x0A0D_0D0A,
                1 => random.next_u64() as u32,
                kind => kind as u32 - 1,
            };
            let mut body = noise(&mut random, 64);
            // Small numbers are lengths, codes and interfaces that can be.
            for byte in &mut body {
                if !random.next_u64().is_multiple_of(3) {
                    *byte %= 8;
                }
            }
            if kind == 0x0A0D_0D0A {
                let magic: [u8; 4] = if round % 2 == 0 {
                    [0x1A, 0x2B, 0x3C, 0x4D]
                } else {
                    [0x4D, 0x3C, 0x2B, 0x1A]
                };
                body.splice(0..0, magic);
            }
            body.resize(body.len().next_multiple_of(4), 0);
            let len = (12 + body.len() as u32).to_be_bytes();
            recording.extend([&kind.to_be_bytes()[..], &len, &body, &len].concat());
        }
        inspect(recording);
    }
}

#[test]
fn more_interfaces_than_anybody_has_end_a_recording() {
    let interface = pcapng(1, None, &[])[28..48].to_vec();
    let mut recording = pcapng(1, None, &[]);
    for _ in 0..2000 {
        recording.extend(&interface);
    }
    let failure = inspect(recording).failure.unwrap();
    assert_eq!(failure, "at packet 1: more than 1024 interfaces");
}

#[test]
fn noise_as_a_datagram_is_shown_with_a_reason_in_every_protocol() {
    let mut random = SplitMix::new(3);
    for protocol in Protocol::ALL {
        let options = Options { protocol: Some(protocol), ..Options::default() };
        let mut capture = Capture::default();
        for round in 0..400 {
            let start: &[u8] = match round % 5 {
                0 => &[0x4C, 0x52, 1],
                1 => b"FERRAVEX\x02",
                2 => &[0xAF, 0xB1, 0x1A, 0xFB],
                3 => &[0x10, 0, 0],
                _ => &[],
            };
            let bytes = [start, &noise(&mut random, 120)].concat();
            if round % 2 == 0 { capture.c2s(round, &bytes) } else { capture.s2c(round, &bytes) }
        }
        let seen = inspect_with(options, capture.0);
        assert_eq!(seen.totals.datagrams, 400, "{protocol}");
    }
}

#[test]
fn valid_datagrams_in_any_order_are_followed() {
    let mut random = SplitMix::new(4);
    let all = vectors();
    for _ in 0..20 {
        let mut capture = Capture::default();
        for round in 0..300 {
            let bytes = &all[random.next_u64() as usize % all.len()].bytes;
            let millis = random.next_u64() % 1000;
            if round % 2 == 0 { capture.c2s(millis, bytes) } else { capture.s2c(millis, bytes) }
        }
        capture.s2c(u64::MAX, &all[0].bytes);
        assert_eq!(inspect(capture.0).totals.datagrams, 301);
    }
}

#[test]
fn no_escape_of_a_peer_reaches_the_terminal() {
    // An Event, a Refuse, a Say and an Info's name with a colour, a C1 control and an override.
    let text = "\u{1b}[31mred\u{9b}7m\u{202E}\u{7f}\u{200B}";
    let event = [
        &[0x4C, 0x52, 1, 14, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, text.len() as u8, 0],
        text.as_bytes(),
    ]
    .concat();
    let refuse = [
        &[0x4C, 0x52, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, text.len() as u8],
        text.as_bytes(),
    ]
    .concat();
    let mut say = vec![0; 74];
    say[..4].copy_from_slice(&[0x4C, 0x52, 1, 1]);
    say[72] = 13;
    say.extend(text.as_bytes());
    let mut capture = Capture::default();
    capture.s2c(0, &event);
    capture.s2c(1, &refuse);
    capture.c2s(2, &say);
    // Words of a text capture are somebody's too.
    capture.0 += &format!("3 c2s 00 {text}\n{text} c2s 00\n");
    let forbidden = |c: char| c != '\n' && caves_wire::text::is_forbidden(c);
    let shown = text_of(capture.0.clone());
    assert!(!shown.contains(forbidden), "{shown:?}");
    assert!(shown.contains("red"), "{shown}");
    // A CLOSE of Teeworlds, whose reason may hold more than its own cleaning takes away.
    let close = [&[0x10, 0, 0, 4][..], "gone\u{9b}7m\u{7f}\u{202E}\0".as_bytes()].concat();
    let shown = text_of(format!("4 s2c {}\n", hex(&close)));
    assert!(!shown.contains(forbidden) && shown.contains("gone7m"), "{shown:?}");
    // For machines the same characters are there, as escapes.
    let seen = inspect(capture.0);
    assert_eq!(seen.entries[0]["fields"]["text"], text);
    let mut out = Vec::new();
    let options = Options { json: true, ..Options::default() };
    let mut inspector = caves_inspect::run::Inspector::new(options, &mut out);
    inspector.read(Box::new(std::io::Cursor::new(format!("0 s2c {}\n", hex(&event))))).unwrap();
    inspector.totals().unwrap();
    assert!(!String::from_utf8(out).unwrap().contains(forbidden));
}

#[test]
fn made_up_types_do_not_fill_the_summary() {
    let mut capture = Capture::default();
    for number in 20..=255 {
        capture.s2c(0, &[0x4C, 0x52, 1, number, 0, 0]);
    }
    let seen = inspect(capture.0);
    let packets = seen.sessions[0]["packets"].as_object().unwrap();
    assert!(packets.len() <= 49, "{}", packets.len());
    let sum: u64 = packets.values().map(|kind| kind["datagrams"].as_u64().unwrap()).sum();
    assert_eq!(sum, 236);
}
