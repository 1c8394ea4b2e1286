//! The Huffman code of Teeworlds 0.6, on payloads that a real server compressed.

use caves_benches::measure::{Case, Group, Mismatch, Outcome, checksum};
use caves_wire::teeworlds::huffman;

/// A session with a map download and snapshots.
const CAPTURE: &str =
    include_str!("../../crates/wire/tests/captures/teeworlds-ddnet-16.4-session.txt");
/// More than any payload has.
const ROOM: usize = 2048;

#[derive(Clone)]
struct State {
    plain: Vec<Vec<u8>>,
    packed: Vec<Vec<u8>>,
    /// What one payload becomes; the next one overwrites it.
    buf: [u8; ROOM],
}

impl State {
    fn new() -> State {
        let packed = compressed();
        let plain = packed.iter().map(|packed| expanded(packed)).collect();
        State { plain, packed, buf: [0; ROOM] }
    }

    fn bytes(&self) -> usize {
        self.plain.iter().map(Vec::len).sum()
    }
}

pub(crate) fn encode() -> Result<Group, Mismatch> {
    let mut group = Group::new(title("compress"));
    group.add(case(
        "libtw2",
        |state| {
            let last = state.plain.iter().map(|plain| {
                libtw2_huffman::compress_into(plain, &mut state.buf[..]).map_or(0, <[u8]>::len)
            });
            last.fold(0, |_, len| len)
        },
        |state, len| expanded(&state.buf[..len]),
    ))?;
    group.add(case(
        "ours",
        |state| {
            let last = state.plain.iter().map(|plain| {
                huffman::encode(plain.iter().copied(), &mut state.buf).unwrap_or_default()
            });
            last.fold(0, |_, len| len)
        },
        |state, len| expanded(&state.buf[..len]),
    ))?;
    group.add(case(
        "ours, its length alone",
        |state| {
            let all = state.plain.iter().map(|plain| huffman::encoded_len(plain.iter().copied()));
            all.sum()
        },
        |state, _| state.plain.last().cloned().unwrap_or_default(),
    ))?;
    Ok(group)
}

pub(crate) fn decode() -> Result<Group, Mismatch> {
    let mut group = Group::new(title("expand"));
    group.add(case(
        "libtw2",
        |state| {
            let last = state.packed.iter().map(|packed| {
                libtw2_huffman::decompress_into(packed, &mut state.buf[..]).map_or(0, <[u8]>::len)
            });
            last.fold(0, |_, len| len)
        },
        |state, len| state.buf[..len].to_vec(),
    ))?;
    group.add(case(
        "ours",
        |state| {
            let last = state
                .packed
                .iter()
                .map(|packed| huffman::decode(packed, &mut state.buf).unwrap_or_default());
            last.fold(0, |_, len| len)
        },
        |state, len| state.buf[..len].to_vec(),
    ))?;
    Ok(group)
}

fn title(what: &str) -> String {
    let state = State::new();
    let (count, bytes) = (state.plain.len(), state.bytes());
    format!("Teeworlds 0.6: {what} {count} payloads of {bytes} bytes, one of them")
}

/// One call does all payloads; what the last one became is looked at.
fn case(
    name: &str,
    op: impl Fn(&mut State) -> usize + 'static,
    last: fn(&State, usize) -> Vec<u8>,
) -> Case {
    let state = State::new();
    let (count, bytes) = (state.plain.len(), state.bytes());
    let look = move |state: &State, len| Outcome {
        bytes: bytes / count,
        checksum: checksum(&last(state, len)),
    };
    Case::new(name, state, op, look).operations_per_call(count as u32)
}

/// Payloads of the server's datagrams with the compression bit.
fn compressed() -> Vec<Vec<u8>> {
    CAPTURE
        .lines()
        .filter_map(|line| line.split_once(" s2c ").filter(|_| !line.starts_with('#')))
        .map(|(_, hex)| unhex(hex))
        .filter(|datagram| datagram[0] & 0x80 != 0)
        .map(|datagram| datagram[3..].to_vec())
        .collect()
}

fn unhex(hex: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or_default() as u8;
    hex.as_bytes().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// By the code of others.
fn expanded(packed: &[u8]) -> Vec<u8> {
    libtw2_huffman::decompress(packed).unwrap_or_default()
}
