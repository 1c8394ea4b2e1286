//! Real datagrams of blank, and the vectors of its note, read and written again.
//!
//! `captures/` has a datagram a line: milliseconds, direction, hexadecimal, and `lost` where the
//! client that measured dropped it on purpose. What went from server to client was written by real
//! servers of three revisions.
#![cfg(feature = "blank")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use caves_wire::blank::{
    Ack, EntityId, Header, HeaderView, Join, Login, Name, Numbers, Packet, PacketType, Seq, Spawn,
};
use caves_wire::{ErrorKind, ParseError};

struct Line {
    file: String,
    from_server: bool,
    bytes: Vec<u8>,
}

fn hex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "{text}");
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

fn captures() -> Vec<Line> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures");
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut lines = Vec::new();
    for path in files {
        let file = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if !file.starts_with("blank-") {
            continue;
        }
        for line in fs::read_to_string(&path).unwrap().lines() {
            // An empty datagram is an empty field, so words are not split at any run of spaces.
            let mut words = line.split(' ');
            words.next().unwrap().parse::<u64>().unwrap();
            let from_server = match words.next().unwrap() {
                "s2c" => true,
                "c2s" => false,
                other => panic!("{file}: {other}"),
            };
            let bytes = hex(words.next().unwrap());
            assert!(matches!(words.next(), None | Some("lost" | "")), "{file}: {line}");
            lines.push(Line { file: file.clone(), from_server, bytes });
        }
    }
    lines
}

/// Writes a packet again through its plain struct. Padding is not kept: it is whatever the sender's
/// buffer held, and is written as zeros.
fn written_again(packet: Packet<'_>) -> Vec<u8> {
    let mut buf = [0; 500];
    let numbers = packet.header().numbers();
    let len = match packet {
        Packet::Ping(_) => Header::ping(numbers).emit(&[], &mut buf),
        Packet::Part(_) => Header::part(numbers).emit(&[], &mut buf),
        Packet::Login(login) => Login { numbers, name: login.name() }.emit(&mut buf),
        Packet::Join(join) => {
            Join { numbers, spawn: join.spawn(), world: join.world() }.emit(&mut buf)
        }
        Packet::NewestJoin(join) => join.to_join().emit(&mut buf),
        Packet::Unknown(header) => {
            Header { numbers, packet_type: header.packet_type() }.emit(header.payload(), &mut buf)
        }
        _ => panic!("{packet}"),
    };
    buf[..len.unwrap()].to_vec()
}

fn without_padding(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[13..16].fill(0);
    bytes
}

/// Files whose datagrams hold what no sender writes: names of other lengths, bytes after the end.
/// Read, they become the whole form.
const NOT_WHOLE: [&str; 6] = [
    "blank-edge-empty-name",
    "blank-edge-garbage-after-nul",
    "blank-edge-long40",
    "blank-edge-oversize",
    "blank-edge-ping-with-payload",
    "blank-edge-short-name",
];

#[test]
fn every_captured_datagram_decodes_but_the_three_that_none_accepts() {
    let lines = captures();
    let files: BTreeSet<&str> = lines.iter().map(|line| line.file.as_str()).collect();
    assert_eq!((files.len(), lines.len()), (34, 1030));
    let mut refused = Vec::new();
    let mut again = BTreeMap::new();
    let mut types = BTreeMap::new();
    for Line { file, from_server, bytes } in &lines {
        let packet = match Packet::parse(bytes) {
            Ok(packet) => packet,
            Err(ParseError { kind, .. }) => {
                refused.push((file.as_str(), bytes.len(), kind));
                continue;
            }
        };
        assert!(!packet.to_string().contains(char::is_control), "{packet}");
        *types.entry((*from_server, packet.header().packet_type().0)).or_insert(0) += 1;
        let written = written_again(packet);
        let same = written == without_padding(bytes);
        *again.entry((file.as_str(), same)).or_insert(0) += 1;
        if !same {
            assert!(NOT_WHOLE.contains(&file.as_str()) && !from_server, "{file}: {packet}");
            let whole = Packet::parse(&written).unwrap();
            assert_eq!(whole.header().numbers(), packet.header().numbers());
        }
    }
    assert_eq!(
        refused,
        [
            ("blank-edge-badtag", 16, ErrorKind::Magic),
            ("blank-edge-empty-datagram", 0, ErrorKind::TooShort),
            ("blank-edge-short15", 15, ErrorKind::TooShort),
        ]
    );
    // One datagram of each of these is not whole; all others are the same bytes again.
    let changed: Vec<_> = again.iter().filter(|((_, same), _)| !same).collect();
    assert_eq!(changed.len(), NOT_WHOLE.len());
    assert!(changed.iter().all(|(_, count)| **count == 1));
    assert_eq!(again.values().sum::<i32>(), 1027);
    // What the newest server sends beyond the old types, and the 99 of one border input.
    let of = |from_server: bool| -> Vec<u8> {
        types.keys().filter(|(side, _)| *side == from_server).map(|(_, number)| *number).collect()
    };
    assert_eq!(of(true), [0, 2, 3, 5, 7, 9, 10, 12]);
    assert_eq!(of(false), [0, 1, 2, 3, 99]);
}

#[test]
fn the_long_datagram_is_cut_at_500() {
    let lines = captures();
    let long: Vec<_> = lines.iter().filter(|line| line.bytes.len() > 500).collect();
    assert_eq!(long.len(), 1);
    assert_eq!(long[0].bytes.len(), 648);
    let Packet::Login(login) = Packet::parse(&long[0].bytes).unwrap() else { panic!("no login") };
    assert_eq!(login.header().payload().len(), 484);
    assert_eq!(login.name(), Name::new("over"));
}

#[test]
fn names_are_what_the_real_server_took_them_for() {
    let name = |file: &str| {
        let lines = captures();
        let logins = lines.iter().filter(|line| line.file == file).filter_map(|line| {
            match Packet::parse(&line.bytes) {
                Ok(Packet::Login(login)) => Some(login.name().as_bytes().to_vec()),
                _ => None,
            }
        });
        logins.collect::<Vec<_>>()
    };
    assert_eq!(name("blank-edge-empty-name"), [b""]);
    assert_eq!(name("blank-edge-short-name"), [b"kim"]);
    assert_eq!(name("blank-edge-long40").iter().map(Vec::len).collect::<Vec<_>>(), [32]);
    assert_eq!(name("blank-edge-full32").iter().map(Vec::len).collect::<Vec<_>>(), [32]);
    assert_eq!(name("blank-edge-padding"), [b"padme"]);
    assert!(std::str::from_utf8(&name("blank-edge-badutf8")[0]).is_err());
    assert!(!name("blank-edge-garbage-after-nul")[0].contains(&0));
    assert_eq!(name("blank-second-name"), [b"frank", b"grace"]);
}

#[test]
fn the_newest_joins_are_recognised() {
    let mut joins = 0;
    for line in captures() {
        let Ok(packet) = Packet::parse(&line.bytes) else { continue };
        match packet {
            Packet::NewestJoin(view) => {
                let join = view.to_join();
                assert!(line.file.starts_with("blank-head-"), "{}", line.file);
                assert_eq!((join.entity, join.world), (EntityId(1), Name::new("default")));
                assert_eq!((join.position, join.orientation >> 62), ([0; 3], 3));
                joins += 1;
            }
            Packet::Join(_) => assert!(!line.file.starts_with("blank-head-"), "{}", line.file),
            _ => {}
        }
    }
    assert_eq!(joins, 3);
}

fn numbers(seq: u32, ack: u32, hist: u64) -> Numbers {
    Numbers { seq: Seq::new(seq), ack: Ack::new(Seq::new(ack), hist) }
}

fn ping(seq: u32, ack: u32, hist: u64) -> Vec<u8> {
    let mut buf = [0; 16];
    Header::ping(numbers(seq, ack, hist)).emit(&[], &mut buf).unwrap();
    buf.to_vec()
}

fn part(seq: u32, ack: u32, hist: u64) -> Vec<u8> {
    let mut buf = [0; 16];
    Header::part(numbers(seq, ack, hist)).emit(&[], &mut buf).unwrap();
    buf.to_vec()
}

fn login(seq: u32, ack: u32, name: &str) -> Vec<u8> {
    let mut buf = [0; 48];
    let login = Login { numbers: numbers(seq, ack, 0xFFFF_FFFF), name: Name::new(name) };
    login.emit(&mut buf).unwrap();
    buf.to_vec()
}

fn join(numbers: Numbers, spawn: Spawn, world: &str) -> Vec<u8> {
    let mut buf = [0; 116];
    Join { numbers, spawn, world: Name::new(world) }.emit(&mut buf).unwrap();
    buf.to_vec()
}

#[test]
fn the_vectors_of_the_note_are_written_byte_for_byte() {
    const ALL: u64 = 0xFFFF_FFFF;
    let bent = Spawn {
        entity: EntityId(534_574),
        chunk: [7, 2, -3],
        position: [1.5, 0.9, 12.0],
        velocity: [0.025, 0.001, 0.0],
        orientation: [0.0, 0.0, 0.505, 0.863],
        angular_velocity: [0.01, 0.00302, 0.0985],
    };
    let cases = [
        ("afb11afb0000ffffffffffff00000000", ping(0, 0xFFFF, ALL)),
        ("afb11afb02000300ffffffff00000000", ping(2, 3, ALL)),
        ("afb11afb010088130000000000000000", ping(1, 5000, 0)),
        ("afb11afb070008008effffff00000000", ping(7, 8, 0xFFFF_FF8E)),
        ("afb11afb0d000b00ffffffff03000000", part(13, 11, ALL)),
        ("afb11afb01000100ffffffff03000000", part(1, 1, ALL)),
        ("afb11afb00000100ffffffff03000000", part(0, 1, ALL)),
        ("afb11afbfffffeffffffff7f03000000", part(65535, 65534, 0x7FFF_FFFF)),
        (
            "afb11afb0100ffffffffffff01000000616c696365000000000000000000000000000000000000000000000000000000",
            login(1, 0xFFFF, "alice"),
        ),
        (
            "afb11afb0100ffffffffffff010000003031323334353637383930313233343536373839303132333435363738393031",
            login(1, 0xFFFF, &"0123456789".repeat(4)),
        ),
        (
            "afb11afb01000000ffffffff010000005a6fc3abe2988300000000000000000000000000000000000000000000000000",
            login(1, 0, "Zoë☃"),
        ),
        (
            "afb11afb00000100ffffffff02000000010000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000803f00000000000000000000000064656661756c7400000000000000000000000000000000000000000000000000",
            join(numbers(0, 1, ALL), Spawn::at_origin(EntityId(1)), "default"),
        ),
        (
            "afb11afb09000400fdffffff020000002e2808000700000002000000fdffffff0000c03f6666663f00004041cdcccc3c6f12833a000000000000000000000000ae47013f91ed5c3f0ad7233c31eb453b5ebac93d7465737400000000000000000000000000000000000000000000000000000000",
            join(numbers(9, 4, 0xFFFF_FFFD), bent, "test"),
        ),
    ];
    for (expected, written) in cases {
        assert_eq!(written, hex(expected));
        assert_eq!(written_again(Packet::parse(&written).unwrap()), written);
    }
}

#[test]
fn padding_is_ignored_and_written_as_zeros() {
    let text = "afb11afb0000ffffffffffff01deadbe7061646d65000000000000000000000000000000000000000000000000000000";
    let bytes = hex(text);
    assert_eq!(HeaderView::parse(&bytes).unwrap().padding(), [0xDE, 0xAD, 0xBE]);
    let packet = Packet::parse(&bytes).unwrap();
    assert_eq!(packet.header().packet_type(), PacketType::LOGIN);
    assert_eq!(written_again(packet), hex(&text.replace("deadbe", "000000")));
}

/// Section 3: the bits of a real header, read one by one.
#[test]
fn the_bits_of_a_lossy_session_name_the_four_that_were_dropped() {
    let bytes = hex("afb11afb070008008effffff00000000");
    let ack = HeaderView::parse(&bytes).unwrap().ack();
    let missing: Vec<u32> = (0..=8).filter(|seq| !ack.covers(Seq::new(*seq))).collect();
    assert_eq!(missing, [1, 2, 3, 7]);
}
