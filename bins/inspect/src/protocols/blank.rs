//! blank: the header alone.

use std::borrow::Cow;

use super::{Decoded, Facts, hex_start};
use crate::datagram::Way;

/// The first four bytes of every datagram.
pub const TAG: [u8; 4] = [0xAF, 0xB1, 0x1A, 0xFB];
/// The default port.
pub const PORTS: [u16; 1] = [12_354];

/// Reads a datagram.
pub fn decode(datagram: &[u8], _way: Option<Way>) -> Decoded<'_> {
    let Some(kind) = datagram.get(12) else {
        return Decoded::malformed(datagram, "a header has 16 bytes".to_owned());
    };
    Decoded {
        kind: Cow::Owned(format!("type {kind}")),
        line: format!("type {kind} {}", hex_start(datagram)),
        problem: None,
        way: None,
        facts: Facts::None,
    }
}
