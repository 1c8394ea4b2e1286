//! The static Huffman code that payloads are compressed with.
//!
//! 256 bytes and an end symbol, codes of 1 to 15 bits, each byte filled from its lowest bit. The tree
//! follows from the weights below: again and again the two lightest become one node, the lightest at
//! bit 0; among equals the order of the reference's stable sort decides. It is built when this crate is
//! compiled.
//!
//! The reference writes one more byte of zero where the bits end exactly at a byte's end, and so does
//! [`encode`]. [`decode`] takes both forms.
//!
//! ```
//! use caves_wire::teeworlds::huffman;
//!
//! let mut packed = [0; 16];
//! let len = huffman::encode(*b"TKEN", &mut packed)?;
//! assert_eq!(packed[..len], [0x14, 0xAA, 0x96, 0xCD, 0x84, 0x8A, 0x1B]);
//! let mut plain = [0; 16];
//! let len = huffman::decode(&packed[..len], &mut plain)?;
//! assert_eq!(plain[..len], *b"TKEN");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::{EmitError, ErrorKind, ParseError};

/// How heavy each byte is. Data of the protocol, the same on both sides of every connection.
#[rustfmt::skip]
const WEIGHTS: [u32; 256] = [
    1 << 30, 4545, 2657, 431, 1950, 919, 444, 482, 2244, 617, 838, 542, 715, 1814, 304, 240, 754,
    212, 647, 186, 283, 131, 146, 166, 543, 164, 167, 136, 179, 859, 363, 113, 157, 154, 204,
    108, 137, 180, 202, 176, 872, 404, 168, 134, 151, 111, 113, 109, 120, 126, 129, 100, 41, 20,
    16, 22, 18, 18, 17, 19, 16, 37, 13, 21, 362, 166, 99, 78, 95, 88, 81, 70, 83, 284, 91, 187,
    77, 68, 52, 68, 59, 66, 61, 638, 71, 157, 50, 46, 69, 43, 11, 24, 13, 19, 10, 12, 12, 20, 14,
    9, 20, 20, 10, 10, 15, 15, 12, 12, 7, 19, 15, 14, 13, 18, 35, 19, 17, 14, 8, 5, 15, 17, 9,
    15, 14, 18, 8, 10, 2173, 134, 157, 68, 188, 60, 170, 60, 194, 62, 175, 71, 148, 67, 167, 78,
    211, 67, 156, 69, 1674, 90, 174, 53, 147, 89, 181, 51, 174, 63, 163, 80, 167, 94, 128, 122,
    223, 153, 218, 77, 200, 110, 190, 73, 174, 69, 145, 66, 277, 143, 141, 60, 136, 53, 180, 57,
    142, 57, 158, 61, 166, 112, 152, 92, 26, 22, 21, 28, 20, 26, 30, 21, 32, 27, 20, 17, 23, 21,
    30, 22, 22, 21, 27, 25, 17, 27, 23, 18, 39, 26, 15, 21, 12, 18, 18, 27, 20, 18, 15, 19, 11,
    17, 33, 12, 18, 15, 19, 18, 16, 26, 17, 18, 9, 10, 25, 22, 22, 17, 20, 16, 6, 16, 15, 20, 14,
    18, 24, 335,
];

/// The symbol behind the last byte; its weight is 1.
const END: usize = 256;
const SYMBOLS: usize = 257;
const NODES: usize = 2 * SYMBOLS - 1;
const ROOT: usize = NODES - 1;
/// Bits that one look into [`LOOK`] decides.
const LOOK_BITS: u32 = 10;
const NAME: &str = "Huffman";

/// For each node above the symbols, what follows bit 0 and bit 1. Nodes below [`SYMBOLS`] are symbols.
const TREE: [[u16; 2]; NODES] = grow();
/// For each symbol, its bits, the first one lowest, and their number.
static CODES: [Code; SYMBOLS] = codes();
/// Where the next ten bits lead: a symbol and how many of them it has, or a node ten bits deep.
static LOOK: [Look; 1 << LOOK_BITS] = look();
/// The same tree where it can be walked without a copy.
static WALK: [[u16; 2]; NODES] = TREE;

#[derive(Clone, Copy)]
struct Code {
    bits: u16,
    len: u8,
}

#[derive(Clone, Copy)]
struct Look {
    node: u16,
    len: u8,
}

const fn grow() -> [[u16; 2]; NODES] {
    let mut tree = [[0; 2]; NODES];
    // Heaviest first; equals in the order in which they came.
    let mut weights = [0u32; SYMBOLS];
    let mut nodes = [0u16; SYMBOLS];
    let mut symbol = 0;
    while symbol < SYMBOLS {
        weights[symbol] = if symbol == END { 1 } else { WEIGHTS[symbol] };
        nodes[symbol] = symbol as u16;
        rise(&mut weights, &mut nodes, symbol);
        symbol += 1;
    }
    let mut left = SYMBOLS;
    let mut next = SYMBOLS;
    while left > 1 {
        tree[next] = [nodes[left - 1], nodes[left - 2]];
        // The sum takes the second last one's place, and rises past lighter ones only.
        weights[left - 2] += weights[left - 1];
        nodes[left - 2] = next as u16;
        left -= 1;
        next += 1;
        rise(&mut weights, &mut nodes, left - 1);
    }
    tree
}

/// Moves one entry forward past all that are lighter: what a stable sort does where all others are in
/// order.
const fn rise(weights: &mut [u32; SYMBOLS], nodes: &mut [u16; SYMBOLS], mut at: usize) {
    while at > 0 && weights[at - 1] < weights[at] {
        let (weight, node) = (weights[at], nodes[at]);
        (weights[at], nodes[at]) = (weights[at - 1], nodes[at - 1]);
        (weights[at - 1], nodes[at - 1]) = (weight, node);
        at -= 1;
    }
}

const fn codes() -> [Code; SYMBOLS] {
    // From the root downwards: a child always has a lower number than its parent.
    let mut all = [Code { bits: 0, len: 0 }; NODES];
    let mut node = ROOT;
    while node >= SYMBOLS {
        let Code { bits, len } = all[node];
        all[TREE[node][0] as usize] = Code { bits, len: len + 1 };
        all[TREE[node][1] as usize] = Code { bits: bits | 1 << len, len: len + 1 };
        node -= 1;
    }
    let mut codes = [Code { bits: 0, len: 0 }; SYMBOLS];
    let mut symbol = 0;
    while symbol < SYMBOLS {
        codes[symbol] = all[symbol];
        symbol += 1;
    }
    codes
}

const fn look() -> [Look; 1 << LOOK_BITS] {
    let mut table = [Look { node: 0, len: 0 }; 1 << LOOK_BITS];
    let mut bits = 0;
    while bits < table.len() {
        let (mut node, mut len) = (ROOT, 0);
        while node >= SYMBOLS && len < LOOK_BITS {
            node = TREE[node][bits >> len & 1] as usize;
            len += 1;
        }
        table[bits] = Look { node: node as u16, len: len as u8 };
        bits += 1;
    }
    table
}

/// Bytes that [`encode`] writes.
pub fn encoded_len(plain: impl IntoIterator<Item = u8>) -> usize {
    let end = usize::from(CODES[END].len);
    let bits: usize = plain.into_iter().map(|byte| usize::from(CODES[usize::from(byte)].len)).sum();
    // Not rounded up: where nothing is left over the reference writes a byte all the same.
    (bits + end) / 8 + 1
}

/// Compresses `plain` into the start of `buf`: every byte as the reference writes it. This is longer
/// than `plain` where it holds rare bytes; at most 15 bits a byte.
///
/// # Errors
/// `buf` is too short; its contents are of no use then.
pub fn encode(plain: impl IntoIterator<Item = u8>, buf: &mut [u8]) -> Result<usize, EmitError> {
    let capacity = buf.len();
    let mut places = buf.iter_mut();
    let mut put = |byte: u32| match places.next() {
        Some(place) => {
            *place = byte as u8;
            Ok(())
        }
        None => Err(EmitError::Buffer { packet: NAME, needed: capacity + 1, got: capacity }),
    };
    let (mut bits, mut count) = (0u32, 0u32);
    let symbols = plain.into_iter().map(usize::from).chain([END]);
    for symbol in symbols {
        let code = CODES[symbol];
        bits |= u32::from(code.bits) << count;
        // At most 7 from before and 15 more.
        count += u32::from(code.len);
        while count >= 8 {
            put(bits)?;
            bits >>= 8;
            count -= 8;
        }
    }
    put(bits)?;
    Ok(capacity - places.len())
}

/// Expands `packed` into the start of `buf`, up to the end symbol; what follows it is ignored. Behind
/// the last byte zero bits are read.
///
/// # Errors
/// [`ErrorKind::Compression`] where more than `buf` holds would come out, which is also what a missing
/// end leads to. The work is bounded by the length of `buf`.
pub fn decode(packed: &[u8], buf: &mut [u8]) -> Result<usize, ParseError> {
    let capacity = buf.len();
    let mut input = packed.iter();
    let (mut bits, mut count) = (0u64, 0u32);
    let mut len = 0;
    loop {
        // A code has at most 15 bits, so that one filling lasts for several.
        while count < 32
            && let Some(byte) = input.next()
        {
            bits |= u64::from(*byte) << count;
            count += 8;
        }
        let Look { node, len: used } = LOOK[bits as usize & (LOOK.len() - 1)];
        let (mut node, mut used) = (usize::from(node), u32::from(used));
        while node >= SYMBOLS {
            node = usize::from(WALK[node][(bits >> used) as usize & 1]);
            used += 1;
        }
        bits >>= used;
        count = count.saturating_sub(used);
        if node == END {
            return Ok(len);
        }
        match buf.get_mut(len) {
            Some(place) => *place = node as u8,
            None => {
                return Err(ParseError {
                    packet: NAME,
                    kind: ErrorKind::Compression,
                    offset: packed.len() - input.len(),
                    needed: capacity,
                    got: capacity + 1,
                });
            }
        }
        len += 1;
    }
}
