//! Every vector path of `caves-sixbit` that this processor has, against a naive form.
//!
//! Apart from [`targets`](crate::targets), which an ordinary test includes and where this crate is not
//! at hand.

use caves_sixbit::{PACKED, Path, VALUES, decode_by, pack_and_look_by, pack_by, unpack_by};

use crate::targets::tiles::{filled, naive_pack};

/// Packs, unpacks and looks up on each path; all give the naive result.
pub fn every_path(data: &[u8]) {
    let values: [u8; VALUES] = filled(data);
    let expected = naive_pack(&values);
    let cut = values.map(|value| value & 63);
    let most = cut.iter().copied().max();
    let table: [u16; 64] = std::array::from_fn(|place| {
        u16::from_le_bytes([values[2 * place], values[2 * place + 1]]) ^ place as u16
    });
    for path in Path::ALL.into_iter().filter(|path| path.is_available()) {
        let mut packed = [0xA5; PACKED];
        assert!(pack_by(path, &values, &mut packed), "{path:?} is available");
        assert_eq!(packed, expected, "{path:?} packs");
        packed.fill(0xA5);
        // The largest value is told as it stood, uncut.
        let largest = pack_and_look_by(path, &values, &mut packed);
        assert_eq!(largest, values.iter().copied().max(), "{path:?} finds the largest to pack");
        assert_eq!(packed, expected, "{path:?} packs and looks");
        let mut back = [0xA5; VALUES];
        assert_eq!(unpack_by(path, &packed, &mut back), most, "{path:?} finds the largest");
        assert_eq!(back, cut, "{path:?} unpacks");
        let mut found = [0xA5A5; VALUES];
        assert_eq!(decode_by(path, &packed, &table, &mut found), most, "{path:?} looks up");
        assert_eq!(found, cut.map(|value| table[usize::from(value)]), "{path:?} looks up");
    }
}
