//! FNV-1a with 32 bits (R13).

/// The offset basis: the hash of no bytes at all.
pub const OFFSET_BASIS: u32 = 0x811C_9DC5;
/// The prime.
pub const PRIME: u32 = 0x0100_0193;

/// A running FNV-1a hash.
///
/// ```
/// use caves_wire::fnv::{Fnv32, OFFSET_BASIS};
///
/// let mut hash = Fnv32::new();
/// assert_eq!(hash.finish(), OFFSET_BASIS);
/// hash.update(b"foo");
/// hash.update(b"bar");
/// assert_eq!(hash.finish(), 0xBF9C_F968);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fnv32(u32);

impl Fnv32 {
    /// The hash of no bytes.
    pub const fn new() -> Self {
        Self(OFFSET_BASIS)
    }

    /// Goes on with `bytes`.
    pub const fn update(&mut self, bytes: &[u8]) {
        let mut i = 0;
        while i < bytes.len() {
            self.0 = (self.0 ^ bytes[i] as u32).wrapping_mul(PRIME);
            i += 1;
        }
    }

    /// The hash of everything so far.
    pub const fn finish(self) -> u32 {
        self.0
    }
}

impl Default for Fnv32 {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from the published FNV test vectors.
    #[test]
    fn published_vectors_match() {
        for (text, hash) in
            [("", 0x811C_9DC5), ("a", 0xE40C_292C), ("b", 0xE70C_2DE5), ("foobar", 0xBF9C_F968)]
        {
            let mut fnv = Fnv32::new();
            fnv.update(text.as_bytes());
            assert_eq!(fnv.finish(), hash, "{text:?}");
        }
    }
}
