//! What a real DDNet server 16.4 and a scripted client said, from the text files of the wire's tests.

use std::fs;
use std::path::Path;

use caves_link::time::Instant;
use caves_wire::teeworlds::Token;

/// One UDP payload.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) millis: u64,
    pub(crate) from_server: bool,
    /// It was sent and did not arrive.
    pub(crate) dropped: bool,
    pub(crate) bytes: Vec<u8>,
}

/// A part of a file under a name of its own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) lines: Vec<Line>,
    pub(crate) result: String,
}

impl Line {
    pub(crate) fn now(&self) -> Instant {
        at(self.millis)
    }
}

/// The capture's clock; it starts an hour in, so that nothing depends on the origin.
pub(crate) fn at(millis: u64) -> Instant {
    Instant::from_millis(3_600_000 + millis)
}

/// All of a file that has no cases.
pub(crate) fn session(name: &str) -> Vec<Line> {
    let mut cases = cases(name);
    assert_eq!(cases.len(), 1, "{name} is one session");
    cases.remove(0).lines
}

/// The file's cases; what stands before the first is one, if it has any datagrams.
pub(crate) fn cases(name: &str) -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../wire/tests/captures/teeworlds-ddnet-16.4-{name}.txt"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let mut cases = vec![Case::default()];
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("# --- case: ") {
            cases.push(Case { name: name.into(), ..Case::default() });
        }
        let case = cases.last_mut().expect("one");
        if let Some(result) = line.strip_prefix("# result: ") {
            case.result = result.into();
        }
        case.lines.extend(datagram(line));
    }
    cases.retain(|case| !case.lines.is_empty());
    cases
}

/// `12 c2s 00..`, or `# 12 dropped c2s 00..`.
fn datagram(line: &str) -> Option<Line> {
    let words: Vec<&str> = line.split(' ').collect();
    let (millis, dropped, way, hex) = match words[..] {
        ["#", millis, "dropped", way, hex] => (millis, true, way, hex),
        [millis, way, hex] if millis != "#" => (millis, false, way, hex),
        _ => return None,
    };
    let from_server = match way {
        "s2c" => true,
        "c2s" => false,
        _ => return None,
    };
    Some(Line { millis: millis.parse().ok()?, from_server, dropped, bytes: unhex(hex) })
}

pub(crate) fn unhex(hex: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("a hexadecimal digit") as u8;
    hex.as_bytes().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The token that the server gave first in these lines.
pub(crate) fn token(lines: &[Line]) -> Option<Token> {
    let accept = lines.iter().find(|line| line.bytes.starts_with(b"\x10\0\0\x02TKEN"))?;
    Some(Token(*accept.bytes.last_chunk()?))
}
