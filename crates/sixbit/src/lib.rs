//! Four 6-bit values in three bytes, and back, with the processor's vector instructions.
//!
//! ```text
//!  value   t0      t1      t2      t3         each 0..=63
//!  bits    0..5    6..11   12..17  18..23     of a 24-bit little-endian number
//! ```
//!
//! A chunk of 1024 values takes 768 bytes. [`pack`] and [`unpack`] choose the best [`Path`] that this
//! processor has at run time, and say so when it has none: the caller then uses portable code of its
//! own, as `caves-wire` does. This crate knows nothing of packets; it is apart because it is the only one of
//! its workspace with `unsafe`.
//!
//! ```
//! let mut tiles = [0; caves_sixbit::VALUES];
//! tiles[..4].copy_from_slice(&[1, 2, 3, 63]);
//! let mut packed = [0; caves_sixbit::PACKED];
//! if caves_sixbit::pack(&tiles, &mut packed) {
//!     assert_eq!(packed[..3], [0x81, 0x30, 0xFC]);
//!     let mut back = [0; caves_sixbit::VALUES];
//!     assert_eq!(caves_sixbit::unpack(&packed, &mut back), Some(63));
//!     assert_eq!(back, tiles);
//! }
//! ```
#![no_std]

#[cfg(test)]
extern crate std;

#[cfg(target_arch = "x86_64")]
mod x86;

/// Values of a chunk.
pub const VALUES: usize = 1024;
/// Bytes of a packed chunk.
pub const PACKED: usize = VALUES / 4 * 3;

/// A set of vector instructions that packs and unpacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Path {
    /// 16 values at a time.
    Ssse3,
    /// 32 values at a time.
    Avx2,
    /// 64 values at a time.
    Vbmi,
}

impl Path {
    /// All paths, the slowest first.
    pub const ALL: [Self; 3] = [Self::Ssse3, Self::Avx2, Self::Vbmi];

    /// Whether this processor has the instructions.
    pub fn is_available(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return x86::is_available(self);
        #[cfg(not(target_arch = "x86_64"))]
        return false;
    }

    /// The best path that this processor has.
    pub fn best() -> Option<Self> {
        Self::ALL.into_iter().rev().find(|path| path.is_available())
    }
}

/// Packs with the best path; `false`, and nothing written, where there is none. Only the low six bits of
/// each value are taken.
pub fn pack(values: &[u8; VALUES], packed: &mut [u8; PACKED]) -> bool {
    Path::best().is_some_and(|path| pack_by(path, values, packed))
}

/// [`pack`], and gives the largest value as it stood; `None`, and nothing written, where there is no path.
pub fn pack_and_look(values: &[u8; VALUES], packed: &mut [u8; PACKED]) -> Option<u8> {
    pack_and_look_by(Path::best()?, values, packed)
}

/// Unpacks with the best path and gives the largest value; `None`, and nothing written, where there is
/// none.
pub fn unpack(packed: &[u8; PACKED], values: &mut [u8; VALUES]) -> Option<u8> {
    unpack_by(Path::best()?, packed, values)
}

/// Unpacks and looks each value up in a table, with the best path, and gives the largest value; `None`,
/// and nothing written, where there is none.
///
/// ```
/// let table = core::array::from_fn(|i| 700 + i as u16);
/// let mut found = [0; caves_sixbit::VALUES];
/// if let Some(largest) = caves_sixbit::decode(&[0x41; caves_sixbit::PACKED], &table, &mut found) {
///     assert_eq!((found[0], largest), (701, 20));
/// }
/// ```
pub fn decode(packed: &[u8; PACKED], table: &[u16; 64], found: &mut [u16; VALUES]) -> Option<u8> {
    decode_by(Path::best()?, packed, table, found)
}

/// [`pack`] with one path; `false` where this processor does not have it.
pub fn pack_by(path: Path, values: &[u8; VALUES], packed: &mut [u8; PACKED]) -> bool {
    #[cfg(target_arch = "x86_64")]
    return x86::pack::<false>(path, values, packed).is_some();
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (path, values, packed);
        false
    }
}

/// [`pack_and_look`] with one path; `None` where this processor does not have it.
pub fn pack_and_look_by(
    path: Path,
    values: &[u8; VALUES],
    packed: &mut [u8; PACKED],
) -> Option<u8> {
    #[cfg(target_arch = "x86_64")]
    return x86::pack::<true>(path, values, packed);
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (path, values, packed);
        None
    }
}

/// [`unpack`] with one path; `None` where this processor does not have it.
pub fn unpack_by(path: Path, packed: &[u8; PACKED], values: &mut [u8; VALUES]) -> Option<u8> {
    #[cfg(target_arch = "x86_64")]
    return x86::unpack(path, packed, values);
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (path, packed, values);
        None
    }
}

/// [`decode`] with one path; `None` where this processor does not have it.
pub fn decode_by(
    path: Path,
    packed: &[u8; PACKED],
    table: &[u16; 64],
    found: &mut [u16; VALUES],
) -> Option<u8> {
    #[cfg(target_arch = "x86_64")]
    return x86::decode(path, packed, table, found);
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = (path, packed, table, found);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// The layout word for word, a byte at a time.
    fn naive(values: &[u8; VALUES]) -> [u8; PACKED] {
        let mut packed = [0; PACKED];
        for (t, b) in values.chunks_exact(4).zip(packed.chunks_exact_mut(3)) {
            let [t0, t1, t2, t3] = [t[0] & 63, t[1] & 63, t[2] & 63, t[3] & 63];
            b[0] = t0 | t1 << 6;
            b[1] = t1 >> 2 | t2 << 4;
            b[2] = t2 >> 4 | t3 << 2;
        }
        packed
    }

    fn available() -> Vec<Path> {
        Path::ALL.into_iter().filter(|path| path.is_available()).collect()
    }

    fn check(values: &[u8; VALUES]) {
        let expected = naive(values);
        let cut = values.map(|value| value & 63);
        for path in available() {
            let mut packed = [0xA5; PACKED];
            assert!(pack_by(path, values, &mut packed));
            assert_eq!(packed, expected, "{path:?}");
            packed.fill(0xA5);
            let largest = pack_and_look_by(path, values, &mut packed);
            assert_eq!(largest, values.iter().copied().max());
            assert_eq!(packed, expected, "{path:?}");
            let mut back = [0xA5; VALUES];
            assert_eq!(unpack_by(path, &packed, &mut back), cut.iter().copied().max(), "{path:?}");
            assert_eq!(back, cut, "{path:?}");
        }
    }

    #[test]
    fn every_value_at_every_place_on_every_path() {
        for place in 0..VALUES {
            for value in [0, 1, 2, 31, 32, 62, 63, 64, 255] {
                let mut values = [0; VALUES];
                values[place] = value;
                check(&values);
            }
        }
    }

    /// Each pair of neighbours with each pair of values: every bit that crosses a byte.
    #[test]
    fn every_pair_of_values_in_every_lane_of_a_group() {
        for first in 0..64 {
            for second in 0..64 {
                let mut values = [0; VALUES];
                for (i, value) in values.iter_mut().enumerate() {
                    *value = if i / 4 % 2 == 0 { [first, second] } else { [second, first] }[i % 2];
                }
                check(&values);
            }
        }
    }

    #[test]
    fn a_path_that_is_missing_writes_nothing() {
        for path in Path::ALL.into_iter().filter(|path| !path.is_available()) {
            let mut packed = [7; PACKED];
            assert!(!pack_by(path, &[1; VALUES], &mut packed));
            assert_eq!(pack_and_look_by(path, &[1; VALUES], &mut packed), None);
            assert_eq!(packed, [7; PACKED]);
            let mut values = [7; VALUES];
            assert_eq!(unpack_by(path, &packed, &mut values), None);
            assert_eq!(values, [7; VALUES]);
            let mut found = [7; VALUES];
            assert_eq!(decode_by(path, &packed, &[1; 64], &mut found), None);
            assert_eq!(found, [7; VALUES]);
        }
    }

    fn check_decode(values: &[u8; VALUES], table: &[u16; 64]) {
        let cut = values.map(|value| value & 63);
        let expected = cut.map(|value| table[usize::from(value)]);
        for path in available() {
            let mut found = [0xA5A5; VALUES];
            let largest = decode_by(path, &naive(values), table, &mut found);
            assert_eq!(found, expected, "{path:?}");
            assert_eq!(largest, cut.iter().copied().max(), "{path:?}");
        }
    }

    #[test]
    fn every_value_is_looked_up_in_every_lane() {
        let table: [u16; 64] = core::array::from_fn(|i| (i as u16).wrapping_mul(0x1357) ^ 0xC0DE);
        for shift in 0..64u8 {
            check_decode(&core::array::from_fn(|i| (i as u8).wrapping_add(shift)), &table);
        }
        for place in 0..VALUES {
            let mut values = [7; VALUES];
            values[place] = 63;
            check_decode(&values, &table);
        }
    }

    proptest::proptest! {
        #[test]
        fn random_tables_on_every_path(
            values in proptest::collection::vec(proptest::num::u8::ANY, VALUES),
            table in proptest::collection::vec(proptest::num::u16::ANY, 64),
        ) {
            check_decode(values[..].try_into().unwrap(), table[..].try_into().unwrap());
        }

        #[test]
        fn random_chunks_on_every_path(values in proptest::collection::vec(proptest::num::u8::ANY, VALUES)) {
            check(values[..].try_into().unwrap());
        }
    }
}
