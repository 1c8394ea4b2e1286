//! FNV-1a, 64 bits: a short name for a state.

/// Hashes what is written, in order.
#[derive(Clone, Debug)]
pub(crate) struct Fnv(u64);

impl Fnv {
    pub(crate) fn new() -> Fnv {
        Fnv(0xCBF2_9CE4_8422_2325)
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3);
        }
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    pub(crate) fn i32(&mut self, value: i32) {
        self.bytes(&value.to_le_bytes());
    }

    /// With its length, so that two texts do not run into each other.
    pub(crate) fn text(&mut self, text: &str) {
        self.u64(text.len() as u64);
        self.bytes(text.as_bytes());
    }

    /// 0 for nothing, else the value after a 1.
    pub(crate) fn option(&mut self, value: Option<u64>) {
        self.bytes(&[u8::from(value.is_some())]);
        self.u64(value.unwrap_or(0));
    }

    pub(crate) fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values() {
        for (text, hash) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            let mut fnv = Fnv::new();
            fnv.bytes(text.as_bytes());
            assert_eq!(fnv.finish(), hash);
        }
    }

    #[test]
    fn texts_do_not_run_into_each_other() {
        let of = |texts: &[&str]| {
            let mut fnv = Fnv::new();
            texts.iter().for_each(|text| fnv.text(text));
            fnv.finish()
        };
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
    }
}
