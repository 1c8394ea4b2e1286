//! 1024 tile indices to 768 bytes and back.

use base64_simd::{Out, STANDARD};
use bitpacking::{BitPacker, BitPacker8x};
use caves_benches::measure::{
    Aligned, Case, Group, Mismatch, Outcome, checksum, checksum_of_tiles,
};
use caves_benches::samples::Sample;
use caves_sixbit::Path;
use caves_wire::bits::{self, PACKED, TILES};

use crate::chunks;

pub(crate) const PACK: &str = "pack 1024 tiles";
pub(crate) const UNPACK: &str = "unpack 1024 tiles and check each against pal_count";
pub(crate) const LOOK_UP: &str =
    "unpack 1024 tiles, check each, and look them up in a palette of 64";
pub(crate) const MEMCPY: &str = "memcpy(1024)";
pub(crate) const PORTABLE: &str = "ours, portable";
pub(crate) const CHOSEN: &str = "ours, as chosen";
pub(crate) const BASE64: &str = "base64-simd";

/// The row of one path.
pub(crate) fn by(path: Path) -> String {
    format!("ours, {path:?}")
}

#[derive(Clone)]
struct State {
    tiles: Aligned<[u8; TILES]>,
    packed: Aligned<[u8; PACKED]>,
    /// What is more than the largest index.
    count: u8,
}

impl State {
    /// The indices of a chunk of 64 kinds, and the same packed a byte at a time.
    fn new() -> State {
        let [.., sample] = Sample::all();
        let mut packed = Aligned([0; PACKED]);
        naive_pack(&sample.indices, &mut packed.0);
        State { tiles: Aligned(*sample.indices), packed, count: sample.palette.len() as u8 }
    }
}

/// Packing. What was packed is unpacked again for the checksum, ours by the naive loop.
pub(crate) fn pack() -> Result<Group, Mismatch> {
    let mut group = Group::new(PACK);
    let state = State { packed: Aligned([0; PACKED]), ..State::new() };
    let ours = |name: String, op: fn(&mut State)| {
        Case::new(name, state.clone(), op, |state, ()| {
            let mut tiles = [0; TILES];
            naive_unpack(&state.packed.0, &mut tiles, 64);
            Outcome { bytes: PACKED, checksum: checksum(&tiles) }
        })
    };
    group.add(memcpy())?;
    group.add(ours(PORTABLE.into(), |s| {
        bits::pack_portable(&s.tiles.0, &mut s.packed.0);
    }))?;
    for path in Path::ALL.into_iter().filter(|path| path.is_available()) {
        let op: fn(&mut State) = match path {
            Path::Ssse3 => |s| pack_by(Path::Ssse3, s),
            Path::Avx2 => |s| pack_by(Path::Avx2, s),
            Path::Vbmi => |s| pack_by(Path::Vbmi, s),
        };
        group.add(ours(by(path), op))?;
    }
    group.add(ours(CHOSEN.into(), |s| {
        bits::pack(&s.tiles.0, &mut s.packed.0);
    }))?;
    group.add(ours("naive loop".into(), |s| naive_pack(&s.tiles.0, &mut s.packed.0)))?;
    group.add(base64_decode())?;
    group.add(bitpacking_compress())?;
    Ok(group)
}

/// Unpacking, and whether an index lies outside the palette; the peers do not look at that.
pub(crate) fn unpack() -> Result<Group, Mismatch> {
    let mut group = Group::new(UNPACK);
    let state = State { tiles: Aligned([0; TILES]), ..State::new() };
    let ours = |name: String, op: fn(&mut State) -> bool| {
        Case::new(name, state.clone(), op, |state, all_known| {
            assert!(all_known);
            Outcome { bytes: TILES, checksum: checksum(&state.tiles.0) }
        })
    };
    group.add(memcpy())?;
    group.add(ours(PORTABLE.into(), |s| {
        bits::unpack_below_portable(&s.packed.0, s.count, &mut s.tiles.0)
    }))?;
    for path in Path::ALL.into_iter().filter(|path| path.is_available()) {
        let op: fn(&mut State) -> bool = match path {
            Path::Ssse3 => |s| unpack_by(Path::Ssse3, s),
            Path::Avx2 => |s| unpack_by(Path::Avx2, s),
            Path::Vbmi => |s| unpack_by(Path::Vbmi, s),
        };
        group.add(ours(by(path), op))?;
    }
    group.add(ours(CHOSEN.into(), |s| bits::unpack_below(&s.packed.0, s.count, &mut s.tiles.0)))?;
    group.add(ours("naive loop".into(), |s| naive_unpack(&s.packed.0, &mut s.tiles.0, s.count)))?;
    group.add(base64_encode())?;
    group.add(bitpacking_decompress())?;
    Ok(group)
}

/// What it packed is looked at, so whether it did is too.
fn pack_by(path: Path, s: &mut State) {
    caves_sixbit::pack_by(path, &s.tiles.0, &mut s.packed.0);
}

fn unpack_by(path: Path, s: &mut State) -> bool {
    caves_sixbit::unpack_by(path, &s.packed.0, &mut s.tiles.0).is_some_and(|most| most < s.count)
}

type LookUp = (State, [u16; 64], Aligned<[u16; TILES]>);

/// Packed indices to kinds of tile: all of a decode but the rest of the packet.
pub(crate) fn look_up() -> Result<Group, Mismatch> {
    let mut group = Group::new(LOOK_UP);
    let [.., sample] = Sample::all();
    let mut table = [0; 64];
    table[..sample.palette.len()].copy_from_slice(&sample.palette);
    let ours = |name: String, op: fn(&mut LookUp)| {
        let state = (State::new(), table, Aligned([0; TILES]));
        Case::new(name, state, op, |(.., found), ()| Outcome {
            bytes: 2 * TILES,
            checksum: checksum_of_tiles(&found.0),
        })
    };
    group.add(chunks::memcpy(&sample))?;
    group.add(ours(PORTABLE.into(), |(s, table, found)| {
        assert!(bits::decode_portable(&s.packed.0, s.count, table, &mut found.0));
    }))?;
    for path in Path::ALL.into_iter().filter(|path| path.is_available()) {
        let op: fn(&mut LookUp) = match path {
            Path::Ssse3 => |state| look_up_by(Path::Ssse3, state),
            Path::Avx2 => |state| look_up_by(Path::Avx2, state),
            Path::Vbmi => |state| look_up_by(Path::Vbmi, state),
        };
        group.add(ours(by(path), op))?;
    }
    group.add(ours(CHOSEN.into(), |(s, table, found)| {
        assert!(bits::decode(&s.packed.0, s.count, table, &mut found.0));
    }))?;
    Ok(group)
}

fn look_up_by(path: Path, (s, table, found): &mut LookUp) {
    let most = caves_sixbit::decode_by(path, &s.packed.0, table, &mut found.0);
    assert!(most.is_some_and(|most| most < s.count));
}

fn memcpy() -> Case {
    let state = (State::new().tiles, Aligned([0u8; TILES]));
    let copy = |(from, to): &mut (Aligned<[u8; TILES]>, Aligned<[u8; TILES]>)| {
        to.0.copy_from_slice(&from.0);
    };
    Case::new(MEMCPY, state, copy, |(_, to), ()| Outcome {
        bytes: TILES,
        checksum: checksum(&to.0),
    })
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The index that a character of base64 stands for.
fn index_of(character: u8) -> u8 {
    ALPHABET.iter().position(|known| *known == character).map_or(u8::MAX, |index| index as u8)
}

type Text = (Aligned<[u8; TILES]>, Aligned<[u8; PACKED]>);

/// 1024 characters to 768 bytes: the same amount of bits from the same amount of bytes.
fn base64_decode() -> Case {
    let text = State::new().tiles.0.map(|index| ALPHABET[usize::from(index)]);
    let state: Text = (Aligned(text), Aligned([0; PACKED]));
    let decode =
        |(text, bytes): &mut Text| STANDARD.decode(&text.0, Out::from_slice(&mut bytes.0)).is_ok();
    Case::new(BASE64, state, decode, |(_, bytes), decoded| {
        assert!(decoded);
        let text = STANDARD.encode_to_string(bytes.0);
        let tiles: Vec<_> = text.bytes().map(index_of).collect();
        Outcome { bytes: PACKED, checksum: checksum(&tiles) }
    })
}

/// 768 bytes to 1024 characters.
fn base64_encode() -> Case {
    let text = State::new().tiles.0.map(|index| ALPHABET[usize::from(index)]);
    let mut bytes = Aligned([0; PACKED]);
    let decoded = STANDARD.decode(&text, Out::from_slice(&mut bytes.0));
    assert!(decoded.is_ok_and(|bytes| bytes.len() == PACKED));
    let state: Text = (Aligned([0; TILES]), bytes);
    let encode =
        |(text, bytes): &mut Text| STANDARD.encode(&bytes.0, Out::from_slice(&mut text.0)).len();
    Case::new(BASE64, state, encode, |(text, _), len| Outcome {
        bytes: len,
        checksum: checksum(&text.0.map(index_of)),
    })
}

const BITPACKING: &str = "bitpacking 8x, u32";
const BLOCK: usize = BitPacker8x::BLOCK_LEN;

type Words = (Aligned<[u32; TILES]>, Aligned<[u8; PACKED]>);

fn bitpacking_compress() -> Case {
    let packer = BitPacker8x::new();
    let state: Words = (Aligned(State::new().tiles.0.map(u32::from)), Aligned([0; PACKED]));
    let compress = move |(words, bytes): &mut Words| compress(&packer, words, bytes);
    Case::new(BITPACKING, state, compress, move |(_, bytes), ()| {
        let mut words = Aligned([0; TILES]);
        decompress(&packer, bytes, &mut words);
        Outcome { bytes: PACKED, checksum: checksum(&words.0.map(|word| word as u8)) }
    })
}

fn bitpacking_decompress() -> Case {
    let packer = BitPacker8x::new();
    let mut state: Words = (Aligned(State::new().tiles.0.map(u32::from)), Aligned([0; PACKED]));
    compress(&packer, &state.0, &mut state.1);
    state.0.0.fill(0);
    let decompress = move |(words, bytes): &mut Words| decompress(&packer, bytes, words);
    Case::new(BITPACKING, state, decompress, |(words, _), ()| Outcome {
        bytes: 4 * TILES,
        checksum: checksum(&words.0.map(|word| word as u8)),
    })
}

fn compress(
    packer: &BitPacker8x,
    words: &Aligned<[u32; TILES]>,
    bytes: &mut Aligned<[u8; PACKED]>,
) {
    let blocks = words.0.chunks_exact(BLOCK);
    for (block, out) in blocks.zip(bytes.0.chunks_exact_mut(BLOCK * 6 / 8)) {
        packer.compress(block, out, 6);
    }
}

fn decompress(
    packer: &BitPacker8x,
    bytes: &Aligned<[u8; PACKED]>,
    words: &mut Aligned<[u32; TILES]>,
) {
    let blocks = words.0.chunks_exact_mut(BLOCK);
    for (out, block) in blocks.zip(bytes.0.chunks_exact(BLOCK * 6 / 8)) {
        packer.decompress(block, out, 6);
    }
}

/// R4 word for word, a byte at a time.
fn naive_pack(tiles: &[u8; TILES], packed: &mut [u8; PACKED]) {
    for (t, b) in tiles.chunks_exact(4).zip(packed.chunks_exact_mut(3)) {
        b[0] = t[0] | t[1] << 6;
        b[1] = t[1] >> 2 | t[2] << 4;
        b[2] = t[2] >> 4 | t[3] << 2;
    }
}

fn naive_unpack(packed: &[u8; PACKED], tiles: &mut [u8; TILES], count: u8) -> bool {
    let mut all_known = true;
    for (b, t) in packed.chunks_exact(3).zip(tiles.chunks_exact_mut(4)) {
        t[0] = b[0] & 63;
        t[1] = b[0] >> 6 | (b[1] & 15) << 2;
        t[2] = b[1] >> 4 | (b[2] & 3) << 4;
        t[3] = b[2] >> 2;
        all_known &= t.iter().all(|tile| *tile < count);
    }
    all_known
}
