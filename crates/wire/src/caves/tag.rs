//! The tags of TLV blocks: section 3 for entities, section 2 for joining and info.

use crate::tlv::TlvBlock;
use crate::{ErrorKind, ParseError};

/// u16 bit mask of status effects.
pub const STATUS_EFFECTS: u8 = 0x01;
/// u16 type id of the wielded weapon.
pub const WEAPON: u8 = 0x02;
/// u16 type id of the worn armor.
pub const ARMOR: u8 = 0x03;
/// An entity's name, at most 32 bytes.
pub const ENTITY_NAME: u8 = 0x04;
/// What is written on a sign; in details only, may be cut.
pub const SIGN_TEXT: u8 = 0x05;
/// Pairs of u16 type id and u16 count; in details only, may be cut.
pub const INVENTORY: u8 = 0x06;
/// Lines separated by line feeds; in details only, may be cut.
pub const DIALOGUE: u8 = 0x07;
/// u32: the receiving player's last executed action.
pub const EXECUTED_SEQUENCE: u8 = 0x10;
/// What this entity said within the last 3 s, at most 80 bytes.
pub const SPEECH: u8 = 0x11;
/// u32: bit i says that action `executed_sequence - 1 - i` was executed too.
pub const EXECUTED_BITS: u8 = 0x12;

/// The name a player wants, 1 to 32 bytes.
pub const NAME: u8 = 0x20;
/// u32: features wanted, in a Welcome those granted.
pub const FEATURES: u8 = 0x21;
/// The server's name, at most 64 bytes, may be cut.
pub const SERVER_NAME: u8 = 0x22;
/// The message of the day, at most 512 bytes, may be cut.
pub const MOTD: u8 = 0x23;
/// u64: the token of a session to resume, or a registered token.
pub const TOKEN: u8 = 0x24;
/// u32: the lowest event that the client has not acknowledged.
pub const NEXT_EVENT: u8 = 0x26;
/// A Noise message 1 (section 6); may be cut. Kept for sealed sessions.
pub const NOISE_1: u8 = 0x30;
/// A Noise message 2 (section 6); may be cut. Kept for sealed sessions.
pub const NOISE_2: u8 = 0x31;

/// The longest name of a player or another entity, in bytes.
pub const MAX_NAME: usize = 32;
/// The longest inline speech, in bytes.
pub const MAX_SPEECH: usize = 80;
/// The longest server name, in bytes.
pub const MAX_SERVER_NAME: usize = 64;
/// The longest message of the day, in bytes.
pub const MAX_MOTD: usize = 512;

/// The lengths that a known tag's value can have, after concatenation where it may be cut (R24).
struct Rule {
    min: usize,
    max: usize,
    /// The length is a multiple of this.
    step: usize,
    /// The fields of this tag are read as one.
    cut: bool,
}

const fn rule(tag: u8) -> Option<Rule> {
    const fn fixed(len: usize) -> Rule {
        Rule { min: len, max: len, step: 1, cut: false }
    }
    const fn up_to(max: usize) -> Rule {
        Rule { min: 0, max, step: 1, cut: false }
    }
    const fn cut(max: usize, step: usize) -> Rule {
        Rule { min: 0, max, step, cut: true }
    }
    Some(match tag {
        STATUS_EFFECTS | WEAPON | ARMOR => fixed(2),
        EXECUTED_SEQUENCE | EXECUTED_BITS | FEATURES | NEXT_EVENT => fixed(4),
        TOKEN => fixed(8),
        ENTITY_NAME => up_to(MAX_NAME),
        SPEECH => up_to(MAX_SPEECH),
        // A name's rules are more than its length: the server answers them with a Refuse.
        SERVER_NAME => cut(MAX_SERVER_NAME, 1),
        MOTD => cut(MAX_MOTD, 1),
        INVENTORY => cut(usize::MAX, 4),
        _ => return None,
    })
}

/// Reads a block and checks the lengths of the tags that are known (R24).
pub(super) fn block<'a>(
    packet: &'static str,
    offset: usize,
    bytes: &'a [u8],
) -> Result<TlvBlock<'a>, ParseError> {
    let block = TlvBlock::parse(packet, offset, bytes)?;
    let mut at = offset;
    // A tag that may be cut is summed once, at its first field: a stranger's block of hundreds of
    // empty fields must not cost their square.
    let mut summed = [false; 256];
    for field in block.fields() {
        let got = field.value.len();
        let done = core::mem::replace(&mut summed[usize::from(field.tag)], true);
        if let Some(rule) = rule(field.tag).filter(|rule| !(rule.cut && done)) {
            let whole = if rule.cut { block.values(field.tag).map(<[u8]>::len).sum() } else { got };
            if whole < rule.min || whole > rule.max || whole % rule.step != 0 {
                return Err(ParseError {
                    packet,
                    kind: ErrorKind::TlvLength,
                    offset: at,
                    needed: if rule.max == usize::MAX { rule.step } else { rule.max },
                    got: whole,
                });
            }
        }
        at += 2 + got;
    }
    Ok(block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn check(bytes: &[u8]) -> Result<(), ParseError> {
        block("T", 0, bytes).map(|_| ())
    }

    #[test]
    fn fixed_tags_have_their_one_length() {
        for (tag, len) in [(1, 2), (2, 2), (3, 2), (0x10, 4), (0x12, 4), (0x21, 4), (0x24, 8)] {
            for got in 0..12u8 {
                let mut bytes = std::vec![tag, got];
                bytes.resize(2 + usize::from(got), 0);
                assert_eq!(check(&bytes).is_ok(), got == len, "tag {tag:#x} of {got} bytes");
            }
        }
    }

    #[test]
    fn unknown_tags_are_skipped() {
        assert!(check(&[0xEE, 3, 1, 2, 3, 0x01, 2, 0, 0]).is_ok());
    }

    #[test]
    fn limits_hold_after_concatenation() {
        let motd = |parts: &[usize]| {
            let mut bytes = Vec::new();
            for part in parts {
                bytes.extend([MOTD, *part as u8]);
                bytes.resize(bytes.len() + part, b'x');
            }
            check(&bytes).is_ok()
        };
        assert!(motd(&[252, 252, 8]));
        assert!(!motd(&[252, 252, 9]));
        let error = check(&[0xEE, 0, INVENTORY, 2, 0, 0]).unwrap_err();
        assert_eq!((error.kind, error.offset, error.got), (ErrorKind::TlvLength, 2, 2));
        assert!(check(&[INVENTORY, 2, 0, 0, INVENTORY, 2, 0, 0]).is_ok());
    }
}
