//! FNV-1a of datagrams, one after the other and side by side.

use caves_benches::measure::{Case, Group, Mismatch, Outcome, checksum};
use caves_wire::fnv::{Fnv32, fnv1a_many};

pub(crate) const TITLE: &str = "FNV-1a 32 of 1200 bytes, a message";
pub(crate) const SERIAL: &str = "serial";
pub(crate) const TOGETHER: &str = "four together";

const MESSAGES: usize = 8;
type State = [[u8; 1200]; MESSAGES];

/// Eight messages a call. The first row is the loop as it stands.
pub(crate) fn group() -> Result<Group, Mismatch> {
    let mut group = Group::new(TITLE);
    group.add(case(SERIAL, |messages| messages.each_ref().map(|message| serial(message))))?;
    group.add(case(TOGETHER, |messages| {
        let [a, b, c, d, e, f, g, h] = messages.each_ref().map(|message| &message[..]);
        let (first, second) = (fnv1a_many([a, b, c, d]), fnv1a_many([e, f, g, h]));
        std::array::from_fn(|i| if i < 4 { first[i] } else { second[i - 4] })
    }))?;
    group
        .add(case("eight together", |messages| fnv1a_many(messages.each_ref().map(|m| &m[..]))))?;
    Ok(group)
}

fn case(name: &str, op: fn(&mut State) -> [u32; MESSAGES]) -> Case {
    let state: State = std::array::from_fn(|message| {
        std::array::from_fn(|byte| (byte * 7 + byte / 256 + message * 31) as u8)
    });
    let look = |_: &State, hashes: [u32; MESSAGES]| Outcome {
        bytes: 4,
        checksum: checksum(&hashes.map(u32::to_le_bytes).concat()),
    };
    Case::new(name, state, op, look).operations_per_call(MESSAGES as u32)
}

fn serial(message: &[u8]) -> u32 {
    let mut hash = Fnv32::new();
    hash.update(message);
    hash.finish()
}
