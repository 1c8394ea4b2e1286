//! Datagrams of a real DDNet server 16.4 and of a scripted client, from text files.

use std::fs;
use std::path::Path;

pub(crate) const NAMES: [&str; 7] =
    ["session", "notoken", "lossy", "rollover", "probes", "timeout", "serverinfo"];

/// One UDP payload, dropped ones included.
pub(crate) struct Datagram {
    pub(crate) file: &'static str,
    pub(crate) line: usize,
    pub(crate) from_server: bool,
    /// Lost on purpose, on its way or before it.
    pub(crate) dropped: bool,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) fn read(name: &'static str) -> Vec<Datagram> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("tests/captures/teeworlds-ddnet-16.4-{name}.txt"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    text.lines()
        .enumerate()
        .filter_map(|(at, line)| {
            let words: Vec<&str> = line.split(' ').collect();
            let (dropped, way, hex) = match words[..] {
                ["#", _, "dropped", way, hex] => (true, way, hex),
                ["#", ..] => return None,
                [_, way, hex] => (false, way, hex),
                _ => panic!("{path:?}, line {}: {line}", at + 1),
            };
            let from_server = match way {
                "s2c" => true,
                "c2s" => false,
                _ => panic!("{path:?}, line {}: {line}", at + 1),
            };
            Some(Datagram { file: name, line: at + 1, from_server, dropped, bytes: unhex(hex) })
        })
        .collect()
}

pub(crate) fn all() -> Vec<Datagram> {
    NAMES.into_iter().flat_map(read).collect()
}

pub(crate) fn unhex(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    assert!(digits.len().is_multiple_of(2), "{hex}");
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("a hexadecimal digit") as u8;
    digits.chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}
