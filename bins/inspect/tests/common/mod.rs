//! Recordings made by hand, and the program that looks at them.

#![allow(dead_code, reason = "not every test file uses all of it")]

use std::io::{Cursor, Write};
use std::process::{Command, Output, Stdio};

use caves_inspect::output::Totals;
use caves_inspect::run::{Inspector, Options};
use serde_json::Value;

/// What the library makes of a recording.
#[derive(Debug)]
pub(crate) struct Seen {
    /// A JSON object for each datagram, or for what could not be read as one.
    pub(crate) entries: Vec<Value>,
    /// The sessions' summaries.
    pub(crate) sessions: Vec<Value>,
    pub(crate) totals: Totals,
    /// Why the recording could not be read to its end.
    pub(crate) failure: Option<String>,
}

impl Seen {
    /// The remarks on entry `at`.
    pub(crate) fn remarks(&self, at: usize) -> Vec<String> {
        let remarks = self.entries[at]["remarks"].as_array().expect("an array");
        remarks.iter().map(|remark| remark.as_str().expect("a text").to_owned()).collect()
    }

    /// All remarks of the recording, with their entries.
    pub(crate) fn all_remarks(&self) -> Vec<(usize, String)> {
        let each = |at| self.remarks(at).into_iter().map(move |remark| (at, remark));
        (0..self.entries.len()).flat_map(each).collect()
    }
}

/// Looks at a recording with JSON output.
pub(crate) fn inspect_with(options: Options, recording: impl Into<Vec<u8>>) -> Seen {
    let mut out = Vec::new();
    let mut inspector = Inspector::new(Options { json: true, ..options }, &mut out);
    let read = inspector.read(Box::new(Cursor::new(recording.into())));
    let failure = read.err().map(|error| format!("{error:#}"));
    let totals = inspector.totals().expect("a vector takes everything");
    let (mut entries, mut sessions) = (Vec::new(), Vec::new());
    for line in String::from_utf8(out).expect("text").lines() {
        let value: Value = serde_json::from_str(line).expect("JSON in every line");
        match value.get("summary") {
            Some(summary) => sessions.push(summary.clone()),
            None if value.get("totals").is_some() => {}
            None => entries.push(value),
        }
    }
    Seen { entries, sessions, totals, failure }
}

/// The same without options.
pub(crate) fn inspect(recording: impl Into<Vec<u8>>) -> Seen {
    inspect_with(Options::default(), recording)
}

/// What is written for people.
pub(crate) fn text_of(recording: impl Into<Vec<u8>>) -> String {
    let mut out = Vec::new();
    let mut inspector = Inspector::new(Options::default(), &mut out);
    let _ = inspector.read(Box::new(Cursor::new(recording.into())));
    inspector.totals().expect("a vector takes everything");
    String::from_utf8(out).expect("text")
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let digits = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hex");
    (0..text.len()).step_by(2).map(digits).collect()
}

/// A text capture, line by line.
#[derive(Debug, Default)]
pub(crate) struct Capture(pub(crate) String);

impl Capture {
    pub(crate) fn c2s(&mut self, millis: u64, bytes: &[u8]) {
        self.0 += &format!("{millis} c2s {}\n", hex(bytes));
    }

    pub(crate) fn s2c(&mut self, millis: u64, bytes: &[u8]) {
        self.0 += &format!("{millis} s2c {}\n", hex(bytes));
    }
}

/// An IPv4 packet with a UDP datagram from 10.0.0.1 to 10.0.0.2, after RFC 791 and RFC 768.
pub(crate) fn ipv4(ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let udp = udp(ports, payload);
    let mut packet = vec![0x45, 0];
    packet.extend((20 + udp.len() as u16).to_be_bytes());
    // Identification, no fragment, 64 hops, UDP, a checksum that nobody looks at.
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(udp);
    packet
}

/// An IPv4 packet on its way back: its addresses change places.
pub(crate) fn back(mut packet: Vec<u8>) -> Vec<u8> {
    let from: [u8; 4] = packet[12..16].try_into().expect("four bytes");
    packet.copy_within(16..20, 12);
    packet[16..20].copy_from_slice(&from);
    packet
}

/// The same over IPv6, from fd00::1 to fd00::2, after RFC 8200.
pub(crate) fn ipv6(ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let udp = udp(ports, payload);
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((udp.len() as u16).to_be_bytes());
    packet.extend([17, 64]);
    for last in [1, 2] {
        packet.extend([0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    packet.extend(udp);
    packet
}

fn udp((from, to): (u16, u16), payload: &[u8]) -> Vec<u8> {
    let len = 8 + payload.len() as u16;
    let head = [from, to, len, 0].map(u16::to_be_bytes).concat();
    [head, payload.to_vec()].concat()
}

/// An Ethernet frame around an IP packet.
pub(crate) fn ethernet(packet: &[u8]) -> Vec<u8> {
    let ether_type = if packet[0] >> 4 == 4 { [0x08, 0x00] } else { [0x86, 0xDD] };
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &ether_type, packet].concat()
}

/// A pcap of microseconds, little-endian: frames of one link type, a millisecond apart.
pub(crate) fn pcap(link: u32, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut all = vec![0xD4, 0xC3, 0xB2, 0xA1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    all.extend(65_535u32.to_le_bytes());
    all.extend(link.to_le_bytes());
    for (at, frame) in frames.iter().enumerate() {
        let len = frame.len() as u32;
        for number in [1_700_000_000, 1000 * at as u32, len, len] {
            all.extend(number.to_le_bytes());
        }
        all.extend(frame);
    }
    all
}

/// A pcapng of one section and one interface, big-endian; `resolution` is its if_tsresol.
pub(crate) fn pcapng(link: u16, resolution: Option<u8>, frames: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let padded = body.len().next_multiple_of(4);
        let len = (12 + padded as u32).to_be_bytes();
        let mut block = [&kind.to_be_bytes()[..], &len, body].concat();
        block.resize(8 + padded, 0);
        block.extend(len);
        block
    };
    let mut section = vec![0x1A, 0x2B, 0x3C, 0x4D, 0, 1, 0, 0];
    section.extend([0xFF; 8]);
    let mut interface = link.to_be_bytes().to_vec();
    interface.extend([0, 0, 0, 0, 0xFF, 0xFF]);
    if let Some(resolution) = resolution {
        interface.extend([0, 9, 0, 1, resolution, 0, 0, 0, 0, 0, 0, 0]);
    }
    let mut all = [block(0x0A0D_0D0A, &section), block(1, &interface)].concat();
    // A block that nobody knows is passed over.
    all.extend(block(0x0BAD, b"something"));
    for (time, frame) in frames {
        let len = (frame.len() as u32).to_be_bytes();
        let mut body = vec![0; 4];
        body.extend(((time >> 32) as u32).to_be_bytes());
        body.extend((*time as u32).to_be_bytes());
        body.extend([len, len].concat());
        body.extend(frame);
        all.extend(block(6, &body));
    }
    all
}

/// The program with arguments; `input` goes to its standard input.
pub(crate) fn program(args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_caves-inspect"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_vec();
    // It may end before it has read everything; and it may fill its own pipe first.
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().expect("a child of ours");
    writer.join().expect("no panic");
    output
}

/// A case of the codec's test vectors.
#[derive(Debug, Clone)]
pub(crate) struct Vector {
    pub(crate) layout: &'static str,
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    /// The kind of error, where it is none of a valid datagram.
    pub(crate) error: Option<String>,
}

const LAYOUTS: [&str; 17] = [
    "action",
    "challenge",
    "chunk",
    "detail",
    "echo",
    "entities",
    "event",
    "event_ack",
    "hello",
    "info",
    "info_request",
    "join",
    "leave",
    "query",
    "refuse",
    "state",
    "welcome",
];

/// The cases of all vectors that are datagrams.
pub(crate) fn vectors() -> Vec<Vector> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/wire/vectors");
    let mut all = Vec::new();
    for layout in LAYOUTS {
        let text = std::fs::read_to_string(format!("{folder}/{layout}.json"))
            .unwrap_or_else(|error| panic!("{layout}: {error}"));
        let file: Value = serde_json::from_str(&text).expect("JSON");
        for case in file["cases"].as_array().expect("cases") {
            let error = case["error"]["kind"].as_str().map(str::to_owned);
            // Those that are read as another type or version than the packet's own.
            if !case["any_version"].is_null() || error.as_deref() == Some("PacketType") {
                continue;
            }
            let Some(bytes) = case["hex"].as_str().map(unhex) else { continue };
            let name = case["name"].as_str().expect("a name").to_owned();
            all.push(Vector { layout, name, bytes, error });
        }
    }
    assert!(all.len() > 500, "{} vectors", all.len());
    all
}
