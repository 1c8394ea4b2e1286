//! Six-bit tiles and palettes.

use caves_wire::bits::{self, PACKED, TILES};
use caves_wire::caves::{ChunkView, Paletted};
use caves_wire::{EmitError, MAX_DATAGRAM};

use super::script::Script;

/// Packs, unpacks and searches the bytes in every form, and makes a chunk of them and back.
pub fn tiles(data: &[u8]) {
    packing(&filled(data));
    unpacking(&filled(data));
    palette(data);
}

/// The bytes again and again until the array is full; zero where there are none.
pub fn filled<const N: usize>(data: &[u8]) -> [u8; N] {
    std::array::from_fn(|place| data.get(place % data.len().max(1)).copied().unwrap_or(0))
}

/// The layout word for word (R4), a byte at a time.
pub fn naive_pack(tiles: &[u8; TILES]) -> [u8; PACKED] {
    let mut packed = [0; PACKED];
    for (t, b) in tiles.chunks_exact(4).zip(packed.chunks_exact_mut(3)) {
        let [t0, t1, t2, t3] = [t[0] & 63, t[1] & 63, t[2] & 63, t[3] & 63];
        b[0] = t0 | t1 << 6;
        b[1] = t1 >> 2 | t2 << 4;
        b[2] = t2 >> 4 | t3 << 2;
    }
    packed
}

fn naive_unpack(packed: &[u8; PACKED]) -> [u8; TILES] {
    let mut tiles = [0; TILES];
    for (t, b) in tiles.chunks_exact_mut(4).zip(packed.chunks_exact(3)) {
        let number = u32::from(b[0]) | u32::from(b[1]) << 8 | u32::from(b[2]) << 16;
        for (place, tile) in t.iter_mut().enumerate() {
            *tile = (number >> (6 * place) & 63) as u8;
        }
    }
    tiles
}

fn packing(tiles: &[u8; TILES]) {
    let expected = naive_pack(tiles);
    let (mut chosen, mut portable) = ([0xA5; PACKED], [0xA5; PACKED]);
    bits::pack(tiles, &mut chosen);
    bits::pack_portable(tiles, &mut portable);
    assert_eq!(chosen, expected, "chosen");
    assert_eq!(portable, expected, "portable");
    (chosen, portable) = ([0xA5; PACKED], [0xA5; PACKED]);
    // The largest index is told as it stood, uncut.
    let most = tiles.iter().copied().max();
    assert_eq!(Some(bits::pack_and_look(tiles, &mut chosen)), most, "chosen");
    assert_eq!(Some(bits::pack_and_look_portable(tiles, &mut portable)), most, "portable");
    assert_eq!(chosen, expected, "chosen");
    assert_eq!(portable, expected, "portable");
}

fn unpacking(packed: &[u8; PACKED]) {
    let expected = naive_unpack(packed);
    let most = expected.iter().copied().max();
    let table: [u16; 64] =
        std::array::from_fn(|place| (place as u16).wrapping_mul(0x1357) ^ 0xC0DE);
    for bound in [0, 1, 31, 63, 64, packed[0] & 63] {
        let below = most < Some(bound);
        let (mut chosen, mut portable) = ([0xA5; TILES], [0xA5; TILES]);
        assert_eq!(bits::unpack_below(packed, bound, &mut chosen), below, "chosen");
        assert_eq!(bits::unpack_below_portable(packed, bound, &mut portable), below, "portable");
        assert_eq!(chosen, expected, "chosen");
        assert_eq!(portable, expected, "portable");
        let (mut chosen, mut portable) = ([0xA5A5; TILES], [0xA5A5; TILES]);
        assert_eq!(bits::decode(packed, bound, &table, &mut chosen), below, "decode, chosen");
        let known = bits::decode_portable(packed, bound, &table, &mut portable);
        assert_eq!(known, below, "decode, portable");
        assert_eq!(chosen, portable);
        assert!((0..TILES).all(|i| chosen[i] == table[usize::from(expected[i])]));
    }
    for bound in [0, 1, 31, 63, 64, packed[0]] {
        let place = expected.iter().position(|tile| *tile >= bound);
        let first = place.map(|place| (place, expected[place]));
        assert_eq!(bits::first_at_least(packed, bound), first, "at least {bound}");
    }
}

/// Tile types of a chosen number of kinds, as a chunk and back.
fn palette(data: &[u8]) {
    let mut script = Script::new(data);
    let kinds = usize::from(script.byte()) % 80 + 1;
    let (base, step) = (script.u16(), script.u16());
    let choice: [u8; TILES] = filled(script.bytes(TILES));
    let tiles = choice.map(|choice| {
        let kind = usize::from(choice) % kinds;
        base.wrapping_add(step.wrapping_mul(kind as u16))
    });
    let mut occurring = Vec::new();
    for tile in tiles {
        if !occurring.contains(&tile) {
            occurring.push(tile);
        }
    }
    let made = match Paletted::from_tiles(&tiles) {
        Ok(made) => made,
        Err(EmitError::Field { limit: 64, .. }) if occurring.len() > 64 => return,
        Err(error) => panic!("{error} with {} kinds", occurring.len()),
    };
    assert_eq!(made.palette(), occurring);
    let entry = script.chunk();
    let mut buf = [0xEE; MAX_DATAGRAM];
    let len = made.with_entry(entry).emit(&mut buf).expect("64 kinds fit");
    let view = ChunkView::parse(&buf[..len]).expect("what was written is read");
    let mut back = [0; TILES];
    view.tiles(&mut back);
    assert!(back == tiles && view.entry() == entry && view.palette().eq(occurring));
}
