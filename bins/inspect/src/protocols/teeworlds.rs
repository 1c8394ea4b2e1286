//! Teeworlds 0.6, as DDNet speaks it: the header alone.

use std::borrow::Cow;

use super::{Decoded, Facts, hex_start};
use crate::datagram::Way;

/// Where servers listen: the first one, and those that find it taken.
pub const PORTS: [u16; 8] = [8303, 8304, 8305, 8306, 8307, 8308, 8309, 8310];

/// Whether a datagram can be of this protocol. It has no magic, so this is said of those alone that
/// can hardly be something else: connectionless packets and control packets.
pub fn looks_like_it(datagram: &[u8]) -> bool {
    let connless = datagram.starts_with(&[0xFF; 6]) || datagram.starts_with(b"xe");
    let control = matches!(datagram, [first, _, 0, 0..=4, ..] if first & 0xFC == 0x10);
    (connless && datagram.len() >= 6) || control
}

/// Reads a datagram.
pub fn decode(datagram: &[u8], _way: Option<Way>) -> Decoded<'_> {
    Decoded {
        kind: Cow::Borrowed("packet"),
        line: hex_start(datagram),
        problem: None,
        way: None,
        facts: Facts::None,
    }
}
