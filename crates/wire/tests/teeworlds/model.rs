//! The Huffman code as a naive program would have it: code words as strings of `0` and `1`.

use std::collections::HashMap;

use caves_wire::ErrorKind;
use caves_wire::teeworlds::huffman;
use proptest::prelude::*;

use crate::captures::unhex;

/// The weights as another crate has them, one a line.
pub(crate) fn weights() -> Vec<u32> {
    WEIGHTS.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

const WEIGHTS: &str = include_str!("../captures/teeworlds-weights.txt");

/// For each symbol its bits in the order of the stream; 256 is the end.
pub(crate) fn words() -> Vec<String> {
    let mut weights = weights();
    assert_eq!(weights.len(), 256);
    weights.push(1);
    // A subtree is the list of its symbols with the bits below it.
    let mut left: Vec<(u64, Vec<(usize, String)>)> = weights
        .iter()
        .enumerate()
        .map(|(symbol, weight)| (u64::from(*weight), vec![(symbol, String::new())]))
        .collect();
    while left.len() > 1 {
        // The sort of the standard library is stable.
        left.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
        let (weight, zeros) = left.pop().unwrap();
        let (other, ones) = left.pop().unwrap();
        let below = |bit: char, side: Vec<(usize, String)>| {
            side.into_iter().map(move |(symbol, word)| (symbol, format!("{bit}{word}")))
        };
        left.push((weight + other, below('0', zeros).chain(below('1', ones)).collect()));
    }
    let mut words = vec![String::new(); 257];
    for (symbol, word) in left.pop().unwrap().1 {
        words[symbol] = word;
    }
    words
}

fn to_bytes(bits: &str) -> Vec<u8> {
    let byte =
        |chunk: &[u8]| chunk.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit == b'1'));
    bits.as_bytes().chunks(8).map(byte).collect()
}

fn to_bits(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| (0..8).map(move |at| char::from(b'0' + (byte >> at & 1))))
        .collect()
}

fn naive_encode(words: &[String], plain: &[u8]) -> Vec<u8> {
    let mut bits: String = plain.iter().map(|byte| words[usize::from(*byte)].as_str()).collect();
    bits.push_str(&words[256]);
    let mut bytes = to_bytes(&bits);
    if bits.len().is_multiple_of(8) {
        bytes.push(0);
    }
    bytes
}

/// Up to `room` bytes; none where more would come out.
fn naive_decode(words: &[String], packed: &[u8], room: usize) -> Option<Vec<u8>> {
    let symbols: HashMap<&str, usize> =
        words.iter().enumerate().map(|(symbol, word)| (word.as_str(), symbol)).collect();
    // Zeros for as many codes as fit at all.
    let bits = to_bits(packed) + &"0".repeat(16 * (room + 2));
    let (mut plain, mut at) = (Vec::new(), 0);
    loop {
        let len = (1..=15).find(|len| symbols.contains_key(&bits[at..at + len])).unwrap();
        let symbol = symbols[&bits[at..at + len]];
        at += len;
        match u8::try_from(symbol) {
            Err(_) => return Some(plain),
            Ok(_) if plain.len() == room => return None,
            Ok(byte) => plain.push(byte),
        }
    }
}

pub(crate) fn encode(plain: &[u8]) -> Vec<u8> {
    let mut buf = vec![0; 2 * plain.len() + 3];
    let len = huffman::encode(plain.iter().copied(), &mut buf).unwrap();
    buf.truncate(len);
    buf
}

pub(crate) fn decode(packed: &[u8], room: usize) -> Option<Vec<u8>> {
    let mut buf = vec![0; room];
    match huffman::decode(packed, &mut buf) {
        Ok(len) => {
            buf.truncate(len);
            Some(buf)
        }
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::Compression);
            None
        }
    }
}

#[test]
fn code_words_are_those_of_the_sheet() {
    let words = words();
    assert_eq!(words[0], "1");
    assert_eq!(words[0xFF], "01001001");
    assert_eq!(words[1], "0001");
    assert_eq!(words[0x80], "00000");
    assert_eq!(words[256], "010100011101100");
    assert_eq!(words.iter().map(String::len).sum::<usize>(), 2723);
    assert_eq!(words.iter().map(String::len).max(), Some(15));
    for symbol in 0..=255u8 {
        let expected = words[usize::from(symbol)].clone() + &words[256];
        let bits = to_bits(&encode(&[symbol]));
        assert!(bits.starts_with(&expected), "{symbol}: {bits} {expected}");
        assert_eq!(bits.len() / 8, expected.len() / 8 + 1);
    }
}

#[test]
fn both_forms_of_the_end_and_zeros_behind_it_are_read() {
    assert_eq!(decode(&unhex("1537"), 8), Some(vec![0]));
    assert_eq!(decode(&unhex("153700"), 8), Some(vec![0]));
    assert_eq!(decode(&unhex("57dc"), 8), Some(vec![0; 3]));
    assert_eq!(decode(&unhex("153700ffff"), 8), Some(vec![0]), "what follows the end is ignored");
}

#[test]
fn what_never_ends_is_bounded() {
    assert_eq!(decode(&[], 1394), None);
    assert_eq!(decode(&[0; 3], 1394), None);
    assert_eq!(decode(&[0xFF; 174], 1394), None, "1392 zeros, and no end");
    // 1394 zeros and the end fill the buffer exactly.
    let exact = encode(&[0; 1394]);
    assert_eq!(decode(&exact, 1394), Some(vec![0; 1394]));
    assert_eq!(decode(&exact, 1393), None);
}

#[test]
fn a_buffer_one_byte_short_is_refused() {
    for plain in [&b""[..], b"\0", b"hello", b"A", &[0xFF; 40]] {
        let len = encode(plain).len();
        assert_eq!(huffman::encoded_len(plain.iter().copied()), len);
        assert!(huffman::encode(plain.iter().copied(), &mut vec![0; len]).is_ok());
        assert!(huffman::encode(plain.iter().copied(), &mut vec![0; len - 1]).is_err());
    }
}

/// Bytes as packets have them: mostly zeros and small numbers.
fn plain() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0u8), 0u8..16, any::<u8>()];
    proptest::collection::vec(byte, 0..600)
}

proptest! {
    #[test]
    fn bytes_are_encoded_as_in_the_model(plain in plain()) {
        let words = words();
        let packed = encode(&plain);
        prop_assert_eq!(&packed, &naive_encode(&words, &plain));
        prop_assert_eq!(packed.len(), huffman::encoded_len(plain.iter().copied()));
        prop_assert_eq!(decode(&packed, plain.len()), Some(plain));
    }

    #[test]
    fn any_bytes_are_decoded_as_in_the_model(packed: Vec<u8>, room in 0usize..300) {
        prop_assert_eq!(decode(&packed, room), naive_decode(&words(), &packed, room));
    }
}
