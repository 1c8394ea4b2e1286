//! Six-bit packing of a chunk's tile indices (R4).
//!
//! ```text
//!  tile    t0      t1      t2      t3         each 0..=63
//!  bits    0..5    6..11   12..17  18..23     of a 24-bit little-endian number
//!  byte    |-- b0 --|-- b1 --|-- b2 --|
//! ```
//!
//! Two such groups make 48 bits, so the portable code moves eight tiles at a time through one `u64`. With
//! the feature `simd` the processor's vector instructions do it where there are some.

/// Tiles in a chunk.
pub const TILES: usize = 1024;
/// Bytes of a packed chunk.
pub const PACKED: usize = TILES / 4 * 3;

/// Packs 1024 indices into 768 bytes. Only the low six bits of each index are taken.
///
/// ```
/// use caves_wire::bits;
///
/// let mut tiles = [0; bits::TILES];
/// tiles[..4].copy_from_slice(&[1, 2, 3, 63]);
/// let mut packed = [0; bits::PACKED];
/// bits::pack(&tiles, &mut packed);
/// assert_eq!(packed[..3], [0b1000_0001, 0b0011_0000, 0b1111_1100]);
/// ```
pub fn pack(tiles: &[u8; TILES], packed: &mut [u8; PACKED]) {
    #[cfg(feature = "simd")]
    if caves_sixbit::pack(tiles, packed) {
        return;
    }
    pack_portable(tiles, packed);
}

/// [`pack`] without vector instructions of our own.
pub fn pack_portable(tiles: &[u8; TILES], packed: &mut [u8; PACKED]) {
    let (groups, _) = tiles.as_chunks::<8>();
    let (outs, _) = packed.as_chunks_mut::<6>();
    for (group, out) in groups.iter().zip(outs) {
        let word = u64::from_le_bytes(*group) & 0x3F3F_3F3F_3F3F_3F3F;
        // Close the two-bit gaps pairwise: 6+6, then 12+12, then 24+24 bits.
        let word = (word & 0x003F_003F_003F_003F) | (word & 0x3F00_3F00_3F00_3F00) >> 2;
        let word = (word & 0x0000_0FFF_0000_0FFF) | (word & 0x0FFF_0000_0FFF_0000) >> 4;
        let word = (word & 0xFF_FFFF) | (word >> 32 & 0xFF_FFFF) << 24;
        out.copy_from_slice(&word.to_le_bytes()[..6]);
    }
}

/// [`pack`], and gives the largest index as it stood: whoever packs for a palette checks it.
pub fn pack_and_look(tiles: &[u8; TILES], packed: &mut [u8; PACKED]) -> u8 {
    #[cfg(feature = "simd")]
    if let Some(largest) = caves_sixbit::pack_and_look(tiles, packed) {
        return largest;
    }
    pack_and_look_portable(tiles, packed)
}

/// [`pack_and_look`] without vector instructions of our own.
pub fn pack_and_look_portable(tiles: &[u8; TILES], packed: &mut [u8; PACKED]) -> u8 {
    pack_portable(tiles, packed);
    // A loop of its own, which the compiler turns into vector instructions that all machines have.
    tiles.iter().copied().fold(0, u8::max)
}

/// Unpacks 768 bytes into 1024 indices and tells whether all are below `bound`, which is at most 64.
///
/// ```
/// use caves_wire::bits;
///
/// let mut tiles = [0; bits::TILES];
/// assert!(bits::unpack_below(&[0x41; bits::PACKED], 21, &mut tiles));
/// assert_eq!(tiles[..4], [1, 5, 20, 16]);
/// assert!(!bits::unpack_below(&[0x41; bits::PACKED], 20, &mut tiles));
/// ```
pub fn unpack_below(packed: &[u8; PACKED], bound: u8, tiles: &mut [u8; TILES]) -> bool {
    #[cfg(feature = "simd")]
    if let Some(largest) = caves_sixbit::unpack(packed, tiles) {
        return largest < bound;
    }
    unpack_below_portable(packed, bound, tiles)
}

/// [`unpack_below`] without vector instructions of our own.
pub fn unpack_below_portable(packed: &[u8; PACKED], bound: u8, tiles: &mut [u8; TILES]) -> bool {
    // An index of `bound` or more sets the top bit of its byte; none overflows into the next.
    let add = u64::from(128 - bound.min(64)) * 0x0101_0101_0101_0101;
    let mut over = 0;
    let (outs, _) = tiles.as_chunks_mut::<32>();
    for (group, out) in packed.as_chunks::<24>().0.iter().zip(outs) {
        for (tiles, word) in out.as_chunks_mut::<8>().0.iter_mut().zip(spread_four(group)) {
            over |= word + add;
            *tiles = word.to_le_bytes();
        }
    }
    over & 0x8080_8080_8080_8080 == 0
}

/// Unpacks and looks each index up in a palette, all in one pass, and tells whether all indices are
/// below `bound`.
pub fn decode(
    packed: &[u8; PACKED],
    bound: u8,
    palette: &[u16; 64],
    tiles: &mut [u16; TILES],
) -> bool {
    #[cfg(feature = "simd")]
    if let Some(largest) = caves_sixbit::decode(packed, palette, tiles) {
        return largest < bound;
    }
    decode_portable(packed, bound, palette, tiles)
}

/// [`decode`] without vector instructions of our own.
pub fn decode_portable(
    packed: &[u8; PACKED],
    bound: u8,
    palette: &[u16; 64],
    tiles: &mut [u16; TILES],
) -> bool {
    let mut indices = [0; TILES];
    let below = unpack_below_portable(packed, bound, &mut indices);
    for (tile, index) in tiles.iter_mut().zip(indices) {
        // Six bits always lie within 64 entries.
        *tile = palette[usize::from(index & 63)];
    }
    below
}

/// Unpacks nothing, but finds the first index that is `bound` or more: `(tile, index)`.
///
/// ```
/// use caves_wire::bits;
///
/// let mut packed = [0; bits::PACKED];
/// packed[3] = 5;
/// assert_eq!(bits::first_at_least(&packed, 5), Some((4, 5)));
/// assert_eq!(bits::first_at_least(&packed, 6), None);
/// ```
pub fn first_at_least(packed: &[u8; PACKED], bound: u8) -> Option<(usize, u8)> {
    let (groups, _) = packed.as_chunks::<6>();
    groups.iter().enumerate().find_map(|(group, bytes)| {
        let tiles = spread(*bytes);
        let place = tiles.iter().position(|tile| *tile >= bound)?;
        Some((group * 8 + place, tiles[place]))
    })
}

/// 24 bytes to four times eight tiles. Whole words are read where they overlap what follows, which is
/// faster than six bytes at a time.
fn spread_four(group: &[u8; 24]) -> [u64; 4] {
    let word = |at: usize| {
        group[at..].first_chunk().map_or(0, |bytes: &[u8; 8]| u64::from_le_bytes(*bytes))
    };
    [word(0), word(6), word(12), word(16) >> 16].map(spread_word)
}

/// Six bytes to eight tiles.
fn spread(group: [u8; 6]) -> [u8; 8] {
    let [a, b, c, d, e, f] = group;
    spread_word(u64::from_le_bytes([a, b, c, d, e, f, 0, 0])).to_le_bytes()
}

/// The steps of [`pack_portable`] backwards; the upper sixteen bits are not looked at.
const fn spread_word(word: u64) -> u64 {
    let word = (word & 0xFF_FFFF) | (word & 0xFFFF_FF00_0000) << 8;
    let word = (word & 0x0000_0FFF_0000_0FFF) | (word & 0x00FF_F000_00FF_F000) << 4;
    (word & 0x003F_003F_003F_003F) | (word & 0x0FC0_0FC0_0FC0_0FC0) << 2
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R4 word for word, a byte at a time.
    fn naive(tiles: &[u8; TILES]) -> [u8; PACKED] {
        let mut packed = [0; PACKED];
        for (t, b) in tiles.chunks_exact(4).zip(packed.chunks_exact_mut(3)) {
            b[0] = t[0] | t[1] << 6;
            b[1] = t[1] >> 2 | t[2] << 4;
            b[2] = t[2] >> 4 | t[3] << 2;
        }
        packed
    }

    type Pack = fn(&[u8; TILES], &mut [u8; PACKED]) -> u8;
    type Unpack = fn(&[u8; PACKED], u8, &mut [u8; TILES]) -> bool;
    type Decode = fn(&[u8; PACKED], u8, &[u16; 64], &mut [u16; TILES]) -> bool;

    /// What is chosen, and the portable code whether it is chosen or not.
    const WAYS: [(Pack, Unpack, Decode); 2] = [
        (pack_and_look, unpack_below, decode),
        (pack_and_look_portable, unpack_below_portable, decode_portable),
    ];

    fn check(tiles: &[u8; TILES]) {
        let largest = tiles.iter().copied().max().unwrap_or(0);
        let palette: [u16; 64] = core::array::from_fn(|i| (i as u16).wrapping_mul(0x9E37) ^ 0x55);
        for (pack, unpack_below, decode) in WAYS {
            let mut packed = [0xAA; PACKED];
            assert_eq!(pack(tiles, &mut packed), largest);
            assert_eq!(packed, naive(tiles));
            for pack in [super::pack, pack_portable] {
                packed.fill(0xAA);
                pack(tiles, &mut packed);
                assert_eq!(packed, naive(tiles));
            }
            for bound in [largest, largest + 1, 64] {
                let mut back = [0xAA; TILES];
                assert_eq!(unpack_below(&packed, bound, &mut back), largest < bound, "{bound}");
                assert_eq!(back, *tiles);
                let mut found = [0xAAAA; TILES];
                assert_eq!(decode(&packed, bound, &palette, &mut found), largest < bound);
                assert!((0..TILES).all(|i| found[i] == palette[usize::from(tiles[i])]));
            }
            let first = tiles.iter().position(|tile| *tile == largest).unwrap_or(0);
            assert_eq!(first_at_least(&packed, largest), Some((first, largest)));
            assert_eq!(first_at_least(&packed, largest + 1), None);
        }
    }

    #[test]
    fn each_value_at_each_place_packs_as_the_note_says() {
        for place in 0..TILES {
            for value in [0, 1, 31, 32, 62, 63] {
                let mut tiles = [0; TILES];
                tiles[place] = value;
                check(&tiles);
            }
        }
        for value in 0..64 {
            check(&core::array::from_fn(|i| (i as u8).wrapping_mul(5).wrapping_add(value) & 63));
        }
    }

    #[test]
    fn an_index_over_six_bits_is_told_and_cut() {
        for (pack, ..) in WAYS {
            let mut packed = [0; PACKED];
            assert_eq!(pack(&[0x85; TILES], &mut packed), 0x85);
            assert_eq!(packed, naive(&[5; TILES]));
        }
    }

    proptest::proptest! {
        #[test]
        fn any_chunk_packs_like_the_naive_form(
            tiles in proptest::collection::vec(0u8..64, TILES),
        ) {
            check(tiles[..].try_into().unwrap());
        }
    }
}
