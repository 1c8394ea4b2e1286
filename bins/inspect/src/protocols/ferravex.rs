//! ferravex 2: the header alone.

use std::borrow::Cow;

use super::{Decoded, Facts, hex_start};
use crate::datagram::Way;

/// The first eight bytes of every datagram.
pub const MAGIC: &[u8; 8] = b"FERRAVEX";
/// The protocol has no default port.
pub const PORTS: [u16; 0] = [];

/// Reads a datagram.
pub fn decode(datagram: &[u8], _way: Option<Way>) -> Decoded<'_> {
    let (Some(version), Some(kind)) = (datagram.get(8), datagram.get(9)) else {
        return Decoded::malformed(datagram, "a header has 10 bytes".to_owned());
    };
    Decoded {
        kind: Cow::Owned(format!("kind {kind}")),
        line: format!("version {version} kind {kind} {}", hex_start(datagram)),
        problem: None,
        way: None,
        facts: Facts::None,
    }
}
