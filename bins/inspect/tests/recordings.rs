//! pcap and pcapng: link types, clocks, cuts.

mod common;

use caves_inspect::protocols::Protocol;
use caves_inspect::run::Options;
use common::{back, ethernet, inspect, inspect_with, ipv4, ipv6, pcap, pcapng, unhex};

/// A Ping with payload 7 and its Pong.
fn ping() -> Vec<u8> {
    unhex("4c52010600000700000000000000")
}

fn pong() -> Vec<u8> {
    unhex("4c52010700000700000000000000")
}

/// A question to the default port, and its answer, as frames of a link type.
fn frames(wrap: impl Fn(Vec<u8>) -> Vec<u8>) -> Vec<Vec<u8>> {
    vec![wrap(ipv4((5000, 21_068), &ping())), wrap(ipv6((21_068, 5000), &pong()))]
}

fn prefixed(prefix: &[u8], packet: Vec<u8>) -> Vec<u8> {
    [prefix, &packet].concat()
}

/// The EtherType of an IP packet.
fn ether_type(packet: &[u8]) -> [u8; 2] {
    if packet[0] >> 4 == 4 { [0x08, 0x00] } else { [0x86, 0xDD] }
}

#[test]
fn every_link_type_leads_to_the_datagram() {
    let cooked = |packet: Vec<u8>| {
        let head = [&[0, 0, 3, 4, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0][..], &ether_type(&packet)].concat();
        prefixed(&head, packet)
    };
    let cooked_2 = |packet: Vec<u8>| {
        let rest = [0, 0, 0, 0, 0, 1, 3, 4, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0];
        prefixed(&[&ether_type(&packet)[..], &rest].concat(), packet)
    };
    let tagged = |packet: Vec<u8>| {
        let mut frame = ethernet(&packet);
        frame.splice(12..12, [0x81, 0x00, 0, 5]);
        frame
    };
    for (link, frames) in [
        (1, frames(|packet| ethernet(&packet))),
        (1, frames(tagged)),
        (0, frames(|packet| prefixed(&[2, 0, 0, 0], packet))),
        (108, frames(|packet| prefixed(&[0, 0, 0, 2], packet))),
        (101, frames(|packet| packet)),
        (12, frames(|packet| packet)),
        (113, frames(cooked)),
        (276, frames(cooked_2)),
    ] {
        let seen = inspect(pcap(link, &frames));
        let both = [("c2s", "Ping", "10.0.0.2:21068"), ("s2c", "Pong", "[fd00::2]:5000")];
        assert_eq!(seen.entries.len(), 2, "link type {link}: {seen:?}");
        for (entry, (way, packet, to)) in seen.entries.iter().zip(both) {
            assert_eq!(entry["direction"], way, "link type {link}");
            assert_eq!(entry["packet"], packet);
            assert_eq!(entry["to"], to);
            assert_eq!(entry["fields"]["timestamp_ms"], "0x0000000000000007");
        }
        assert_eq!(seen.entries[1]["time"], 0.001, "link type {link}");
        assert_eq!((seen.totals.broken, seen.failure), (0, None));
    }
}

#[test]
fn pcapng_counts_time_as_its_interface_says() {
    let frames = frames(|packet| ethernet(&packet));
    for (resolution, second) in [(None, 1_000_000), (Some(9), 1_000_000_000), (Some(0x8A), 1024)] {
        let start = 1_700_000_000 * second;
        let times = [(start, frames[0].clone()), (start + second / 2, frames[1].clone())];
        let seen = inspect(pcapng(1, resolution, &times));
        assert_eq!(seen.entries[0]["time"], 0.0, "{resolution:?}");
        assert_eq!(seen.entries[1]["time"], 0.5, "{resolution:?}");
        assert_eq!((seen.totals.datagrams, seen.failure), (2, None));
    }
}

#[test]
fn both_byte_orders_and_nanoseconds_are_read() {
    let frame = ethernet(&ipv4((5000, 21_068), &ping()));
    let mut all = vec![0xA1, 0xB2, 0x3C, 0x4D, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0];
    for number in [65_535, 1] {
        all.extend(u32::to_be_bytes(number));
    }
    for nanos in [5_000, 2_005_000] {
        for number in [9, nanos, frame.len() as u32, frame.len() as u32] {
            all.extend(number.to_be_bytes());
        }
        all.extend(&frame);
    }
    let seen = inspect(all);
    assert_eq!(seen.entries[1]["time"], 0.002, "{seen:?}");
    assert_eq!(seen.entries[1]["packet"], "Ping");
}

#[test]
fn what_is_no_udp_is_counted_and_what_cannot_be_read_is_told() {
    let mut tcp = ipv4((5000, 21_068), &ping());
    tcp[9] = 6;
    tcp.extend([0; 40]);
    tcp[2..4].copy_from_slice(&82u16.to_be_bytes());
    tcp[20 + 12] = 0x50; // its header has five words
    let mut fragment = ipv4((5000, 21_068), &ping());
    fragment[6] = 0x20; // more fragments follow
    let arp = [&[0xFF; 12][..], &[0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1], &[0; 20]].concat();
    let short = ethernet(&ipv4((5000, 21_068), &ping())[..10]);
    let frames =
        [ethernet(&tcp), arp, ethernet(&fragment), short, ethernet(&ipv4((1, 21_068), &ping()))];
    let seen = inspect(pcap(1, &frames));
    assert_eq!((seen.totals.other, seen.totals.broken, seen.totals.datagrams), (2, 2, 1));
    assert_eq!(seen.entries[0]["broken"], "packet 3: a fragment of an IP packet");
    assert!(seen.entries[1]["broken"].as_str().unwrap().starts_with("packet 4: "));
    assert_eq!(seen.entries[2]["packet"], "Ping");
    let seen = inspect(pcap(9999, &frames));
    assert_eq!(seen.totals.broken, 5, "an unknown link type");
}

#[test]
fn a_datagram_that_the_recording_has_cut_is_told_from_a_short_one() {
    let whole = ethernet(&ipv4((5000, 21_068), &ping()));
    let mut recording = pcap(1, &[whole[..whole.len() - 5].to_vec()]);
    // The length on the wire is the whole one.
    recording[36..40].copy_from_slice(&(whole.len() as u32).to_le_bytes());
    let seen = inspect(recording);
    let problem = &seen.entries[0]["problem"];
    assert_eq!(problem, "the recording left out its last 5 bytes", "{seen:?}");
}

#[test]
fn a_recording_that_breaks_off_is_read_so_far() {
    let frames = frames(|packet| ethernet(&packet));
    let times: Vec<_> = frames.iter().map(|frame| (5, frame.clone())).collect();
    for (recording, head) in [(pcap(1, &frames), 24), (pcapng(1, None, &times), 28 + 20 + 24)] {
        for len in 4..recording.len() {
            let seen = inspect(&recording[..len]);
            assert!(seen.totals.datagrams < 2, "{len}");
            if len > head && seen.totals.datagrams == 0 {
                assert!(seen.failure.is_some(), "{len} of {}", recording.len());
            }
        }
        let seen = inspect(&recording[..recording.len() - 1]);
        assert_eq!(seen.totals.datagrams, 1);
        assert_eq!(seen.failure.as_deref(), Some("at packet 2: the recording breaks off"));
    }
}

#[test]
fn only_the_ports_that_were_asked_for_are_looked_at_and_they_tell_the_server() {
    let mut frames = [(5000, 9), (9, 5000), (5000, 21_068), (8, 7)]
        .map(|ports| ipv4(ports, &unhex("00010203040506")));
    frames[1] = back(frames[1].clone());
    let frames = frames.map(|packet| ethernet(&packet));
    let options = Options { protocol: Some(Protocol::Caves), ports: vec![9], ..Options::default() };
    let seen = inspect_with(options, pcap(1, &frames));
    let ways: Vec<_> = seen.entries.iter().map(|entry| entry["direction"].clone()).collect();
    assert_eq!(ways, ["c2s", "s2c"]);
    assert!(seen.entries[0]["problem"].as_str().unwrap().contains("wrong magic"), "{seen:?}");
}

#[test]
fn protocols_are_told_by_first_bytes_by_port_and_by_what_was_spoken_before() {
    let recording = pcap(
        1,
        &[
            ethernet(&ipv4((5000, 12_354), &unhex("00"))),
            ethernet(&ipv4((5000, 9), b"FERRAVEX\x02\x01")),
            ethernet(&back(ipv4((9, 5000), b"FERRAV"))),
            ethernet(&ipv4((5000, 10), &unhex("afb11afb0000ffffffffffff00000000"))),
            ethernet(&ipv4((5000, 11), &unhex("10000001544b454effffffff"))),
            ethernet(&ipv4((5000, 12), b"hello")),
            ethernet(&ipv4((5000, 13), &ping())),
            ethernet(&back(ipv4((13, 5000), &unhex("4c")))),
            ethernet(&ipv4((8303, 5000), &unhex("00010203"))),
        ],
    );
    let seen = inspect(recording);
    let told = seen.entries.iter().map(|entry| entry["protocol"].as_str().unwrap_or("none"));
    let expected = [
        "blank",
        "ferravex",
        "ferravex",
        "blank",
        "teeworlds",
        "none",
        "caves",
        "caves",
        "teeworlds",
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
    assert_eq!(seen.entries[5]["problem"], "of no known protocol");
}

#[test]
fn a_session_that_was_silent_for_longest_is_closed_for_the_257th() {
    let frames: Vec<_> = (1..=257).map(|port| ethernet(&ipv4((port, 21_068), &ping()))).collect();
    let seen = inspect(pcap(1, &frames));
    let numbers: Vec<_> =
        seen.sessions.iter().map(|session| session["session"].as_u64().unwrap()).collect();
    assert_eq!(numbers.len(), 257);
    assert_eq!((numbers[0], numbers[1], numbers[256]), (1, 2, 257));
    assert_eq!(seen.sessions[0]["client"], "10.0.0.1:1");
}

#[test]
fn between_two_ends_with_a_servers_port_the_packet_types_tell_the_direction() {
    let ports = (21_068, 21_068);
    let frames = [ethernet(&ipv4(ports, &pong())), ethernet(&back(ipv4(ports, &ping())))];
    let seen = inspect(pcap(1, &frames));
    let told = seen.entries.iter().map(|entry| entry["direction"].clone());
    assert_eq!(told.collect::<Vec<_>>(), ["s2c", "c2s"]);
    assert_eq!(seen.totals.problems, 0);
    assert_eq!(seen.sessions[0]["server"], "10.0.0.1:21068");
}
