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
/// assert_eq!(packed[..3], [0b10_000001, 0b0011_0000, 0b111111_00]);
/// ```
pub fn pack(tiles: &[u8; TILES], packed: &mut [u8; PACKED]) {
    #[cfg(feature = "simd")]
    if caves_sixbit::pack(tiles, packed) {
        return;
    }
    pack_portable(tiles, packed);
}

/// [`pack`] without vector instructions.
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

/// Unpacks 768 bytes into 1024 indices and returns the largest of them.
pub fn unpack(packed: &[u8; PACKED], tiles: &mut [u8; TILES]) -> u8 {
    #[cfg(feature = "simd")]
    if let Some(largest) = caves_sixbit::unpack(packed, tiles) {
        return largest;
    }
    unpack_portable(packed, tiles)
}

/// [`unpack`] without vector instructions.
pub fn unpack_portable(packed: &[u8; PACKED], tiles: &mut [u8; TILES]) -> u8 {
    let (groups, _) = packed.as_chunks::<6>();
    let (outs, _) = tiles.as_chunks_mut::<8>();
    let mut largest = [0; 8];
    for (group, out) in groups.iter().zip(outs) {
        *out = spread(*group);
        for (most, tile) in largest.iter_mut().zip(out) {
            *most = (*most).max(*tile);
        }
    }
    largest.into_iter().fold(0, u8::max)
}

/// Looks each index up in a table. Only the low six bits of each index are taken.
pub fn look_up(indices: &[u8; TILES], table: &[u16; 64], tiles: &mut [u16; TILES]) {
    #[cfg(feature = "simd")]
    if caves_sixbit::look_up(indices, table, tiles) {
        return;
    }
    for (tile, index) in tiles.iter_mut().zip(indices) {
        *tile = table[usize::from(index & 63)];
    }
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

/// Six bytes to eight tiles: the steps of [`pack`] backwards.
fn spread(group: [u8; 6]) -> [u8; 8] {
    let [a, b, c, d, e, f] = group;
    let word = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
    let word = (word & 0xFF_FFFF) | (word >> 24) << 32;
    let word = (word & 0x0000_0FFF_0000_0FFF) | (word & 0x00FF_F000_00FF_F000) << 4;
    let word = (word & 0x003F_003F_003F_003F) | (word & 0x0FC0_0FC0_0FC0_0FC0) << 2;
    word.to_le_bytes()
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

    #[test]
    fn each_value_at_each_place_packs_as_the_note_says() {
        for place in 0..TILES {
            for value in 0..64 {
                let mut tiles = [0; TILES];
                tiles[place] = value;
                let mut packed = [0xAA; PACKED];
                pack(&tiles, &mut packed);
                assert_eq!(packed, naive(&tiles), "tile {place} = {value}");
                let mut back = [0xAA; TILES];
                assert_eq!(unpack(&packed, &mut back), value);
                assert_eq!(back, tiles);

                packed.fill(0xAA);
                pack_portable(&tiles, &mut packed);
                assert_eq!(packed, naive(&tiles), "tile {place} = {value}, portable");
                back.fill(0xAA);
                assert_eq!(unpack_portable(&packed, &mut back), value);
                assert_eq!(back, tiles);
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn any_chunk_packs_like_the_naive_form(seed: [u8; 32]) {
            let mut tiles = [0; TILES];
            for (i, tile) in tiles.iter_mut().enumerate() {
                *tile = (seed[i % 32] ^ (i as u8).wrapping_mul(seed[i / 32])) & 63;
            }
            let mut packed = [0; PACKED];
            pack(&tiles, &mut packed);
            proptest::prop_assert_eq!(packed, naive(&tiles));
            let mut back = [0; TILES];
            let largest = unpack(&packed, &mut back);
            proptest::prop_assert_eq!(back, tiles);
            proptest::prop_assert_eq!(largest, *tiles.iter().max().unwrap());
            let first = tiles.iter().position(|t| *t == largest).unwrap();
            proptest::prop_assert_eq!(first_at_least(&packed, largest), Some((first, largest)));
            proptest::prop_assert_eq!(first_at_least(&packed, largest + 1), None);
        }
    }
}
