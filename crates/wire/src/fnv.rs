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

/// The hashes of several messages at once, for a server that hashes many clients' updates a tick.
///
/// One hash waits for its own multiplication at every byte; several keep the multiplier busy. Messages of
/// about the same length gain most.
///
/// ```
/// use caves_wire::fnv::fnv1a_many;
///
/// assert_eq!(fnv1a_many([b"", b"a", b"foobar"]), [0x811C_9DC5, 0xE40C_292C, 0xBF9C_F968]);
/// ```
pub fn fnv1a_many<const N: usize>(messages: [&[u8]; N]) -> [u32; N] {
    let (mut hashes, mut rests) = ([OFFSET_BASIS; N], messages);
    // Which messages are under way, so many at once; one that ends gives its lane to the next.
    let (mut lanes, mut count, mut next) = ([0; LANES], 0, 0);
    loop {
        while count < LANES && next < N {
            lanes[count] = next;
            (count, next) = (count + 1, next + 1);
        }
        match count {
            0 => return hashes,
            1 => advance([lanes[0]], &mut hashes, &mut rests),
            2 => advance([lanes[0], lanes[1]], &mut hashes, &mut rests),
            3 => advance([lanes[0], lanes[1], lanes[2]], &mut hashes, &mut rests),
            _ => advance(lanes, &mut hashes, &mut rests),
        }
        for lane in (0..count).rev() {
            if rests[lanes[lane]].is_empty() {
                count -= 1;
                lanes[lane] = lanes[count];
            }
        }
    }
}

/// Messages that are hashed at the same time. One byte of one message takes about four cycles, most of them waiting
/// for the multiplication; a processor begins one multiplication a cycle.
const LANES: usize = 4;

/// Goes on with some of the messages until the first of these ends.
fn advance<const K: usize>(lanes: [usize; K], hashes: &mut [u32], rests: &mut [&[u8]]) {
    let shortest = lanes.iter().map(|lane| rests[*lane].len()).min().unwrap_or(0);
    let heads = lanes.map(|lane| rests[lane].split_at(shortest).0);
    let mut running = lanes.map(|lane| hashes[lane]);
    for place in 0..shortest {
        for (hash, head) in running.iter_mut().zip(&heads) {
            *hash = (*hash ^ u32::from(head[place])).wrapping_mul(PRIME);
        }
    }
    for (lane, hash) in lanes.into_iter().zip(running) {
        hashes[lane] = hash;
        rests[lane] = rests[lane].split_at(shortest).1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    proptest::proptest! {
        #[test]
        fn several_at_once_are_what_each_is_alone(messages: [Vec<u8>; 5]) {
            let together = fnv1a_many([&messages[0][..], &messages[1], &messages[2], &messages[3], &messages[4]]);
            for (message, hash) in messages.iter().zip(together) {
                let alone = message.iter().fold(OFFSET_BASIS, |hash, byte| {
                    (hash ^ u32::from(*byte)).wrapping_mul(PRIME)
                });
                proptest::prop_assert_eq!(hash, alone);
            }
        }
    }

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
