//! The difference of a payload from one that the peer has.
//!
//! What is sent again and again changes little from one time to the next. [`write()`] puts down the
//! bytes that differ from a *baseline*, and where that would be longer than the payload, the payload
//! itself. A difference means something with its own baseline alone, so it names it: by number,
//! length and hash. [`Delta::apply`] to any other is an error.
//!
//! ```text
//!   baseline   h e a l t h = 9 7 ; a m m o = 3 0 ;            9 bytes of 17 stay as they are
//!   payload    h e a l t h = 1 0 0 ; a m m o = 2 9 ;
//!                            |-------------------| |
//!   runs       keep 7, then 11 bytes
//!
//!   offset  0     1         9           13         21       25        33
//!           +-----+---------+-----------+----------+--------+---------+---------------------
//!           | how | base id | base len  | base hash|  len   |  hash   | runs, or the payload
//!           +-----+---------+-----------+----------+--------+---------+---------------------
//!             u8     u64       u32         u64        u32      u64      all little-endian
//!
//!   a run:  bytes to keep, bytes that follow (7 bits in a byte, the lowest first, the top bit says
//!           that there is more), those bytes. What stands behind the last run is kept.
//! ```
//!
//! The payload may be longer or shorter than the baseline, which counts as filled up with zeros or
//! cut. `hash` is that of the payload: what was put together wrongly in spite of all is found out.
//! Both hashes are FNV-1a with 64 bits, against mistakes and not against forgers: whoever can choose
//! what is sent could have sent another payload anyway.
//!
//! Nothing is allocated, and an announced length decides nothing but an error: the caller's buffer
//! bounds it all, and no payload is longer than [`MAX_PAYLOAD`].
//!
//! ```
//! use caves_link::delta::{self, Baseline, Delta};
//!
//! let base = Baseline::new(7, b"position 100 200, health 90");
//! let payload = b"position 101 200, health 90";
//! let mut sent = [0; 128];
//! let len = delta::write(base, payload, &mut sent)?;
//! assert_eq!(len, delta::OVERHEAD + 3, "keep 11, one byte: 1");
//!
//! let received = Delta::parse(&sent[..len])?;
//! let mut buf = [0; 64];
//! assert_eq!(received.apply(base, &mut buf)?, payload);
//! assert!(received.apply(Baseline::new(8, b"position 100 200, health 90"), &mut buf).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use core::fmt;

/// Bytes of the longest payload and baseline.
pub const MAX_PAYLOAD: usize = 1 << 16;
/// Bytes of a delta in front of its runs or payload.
pub const OVERHEAD: usize = 33;

/// The body is the payload.
const FULL: u8 = 0;
/// The body is runs.
const SPARSE: u8 = 1;
/// Equal bytes between two runs that are cheaper sent along than kept: a new run takes two bytes.
const GAP: usize = 2;

/// A payload that both sides have, under a number that its user gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Baseline<'a> {
    id: u64,
    bytes: &'a [u8],
}

impl<'a> Baseline<'a> {
    /// Nothing at all, under the number 0: whoever has no baseline yet has this one.
    pub const EMPTY: Self = Self { id: 0, bytes: &[] };

    /// A payload under a number, mostly that of a tick.
    pub const fn new(id: u64, bytes: &'a [u8]) -> Self {
        Self { id, bytes }
    }

    /// By what it is told from others.
    pub fn identity(self) -> Identity {
        // Longer than a u32 is longer than `MAX_PAYLOAD`, and refused by that.
        let len = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        Identity { id: self.id, len, hash: fnv1a(self.bytes) }
    }
}

/// Which baseline a delta belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The number that its user gave it.
    pub id: u64,
    /// Its bytes.
    pub len: u32,
    /// FNV-1a with 64 bits over them.
    pub hash: u64,
}

/// Why no delta was written. Nothing of meaning is in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// The payload or the baseline is longer than [`MAX_PAYLOAD`].
    TooLong,
    /// The buffer is shorter than the delta, which needs so many bytes.
    Buffer(usize),
}

/// Why bytes are no delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// They end early.
    TooShort,
    /// The first byte says neither runs nor payload.
    Form,
    /// A length over [`MAX_PAYLOAD`].
    TooLong,
    /// A run that is empty or leads behind the end of the payload, or a number that is not written
    /// as short as it can be.
    Run,
    /// The body is longer or shorter than the payload that it is.
    Length,
}

/// Why a delta was not applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyError {
    /// It belongs to another baseline.
    OtherBaseline {
        /// The one it belongs to.
        wanted: Identity,
        /// The one at hand.
        got: Identity,
    },
    /// The buffer is shorter than the payload, which has so many bytes.
    Buffer(usize),
    /// What came out is not the payload that was meant.
    Damaged,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "a payload has at most {MAX_PAYLOAD} bytes"),
            Self::Buffer(needed) => write!(f, "the delta needs {needed} bytes"),
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooShort => "the delta ends early",
            Self::Form => "neither runs nor a payload",
            Self::TooLong => "a length over the limit",
            Self::Run => "a run that cannot be",
            Self::Length => "a body of another length than announced",
        })
    }
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherBaseline { wanted, got } => {
                write!(f, "belongs to baseline {}, and this is {}", wanted.id, got.id)?;
                f.write_str(if wanted.id == got.id { " with other bytes" } else { "" })
            }
            Self::Buffer(needed) => write!(f, "the payload needs {needed} bytes"),
            Self::Damaged => f.write_str("not the payload that was meant"),
        }
    }
}

impl core::error::Error for WriteError {}
impl core::error::Error for ParseError {}
impl core::error::Error for ApplyError {}

/// Writes how `payload` differs from `base`, or all of it where that is shorter; gives the length.
///
/// # Errors
///
/// One of them is longer than [`MAX_PAYLOAD`], or `buf` is too short. [`OVERHEAD`] bytes and the
/// length of the payload are always enough.
pub fn write(base: Baseline<'_>, payload: &[u8], buf: &mut [u8]) -> Result<usize, WriteError> {
    if payload.len() > MAX_PAYLOAD || base.bytes.len() > MAX_PAYLOAD {
        return Err(WriteError::TooLong);
    }
    let sparse: usize = Differences::new(base.bytes, payload).map(|run| run.size()).sum();
    let is_full = sparse > payload.len();
    let needed = OVERHEAD + if is_full { payload.len() } else { sparse };
    let room = buf.get_mut(..needed).ok_or(WriteError::Buffer(needed))?;

    let identity = base.identity();
    let (head, mut body) = room.split_at_mut(OVERHEAD);
    head[0] = if is_full { FULL } else { SPARSE };
    head[1..9].copy_from_slice(&identity.id.to_le_bytes());
    head[9..13].copy_from_slice(&identity.len.to_le_bytes());
    head[13..21].copy_from_slice(&identity.hash.to_le_bytes());
    // At most `MAX_PAYLOAD`, as seen above.
    head[21..25].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    head[25..33].copy_from_slice(&fnv1a(payload).to_le_bytes());
    if is_full {
        body.copy_from_slice(payload);
    } else {
        for run in Differences::new(base.bytes, payload) {
            body = run.put(body);
        }
    }
    Ok(needed)
}

/// A delta that was received. Its form is checked, its baseline not yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delta<'a> {
    base: Identity,
    len: usize,
    hash: u64,
    body: Body<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body<'a> {
    Full(&'a [u8]),
    /// Walked through once already, so that every run is whole and in its place.
    Sparse(&'a [u8]),
}

impl<'a> Delta<'a> {
    /// Reads all of `bytes` as one delta.
    ///
    /// # Errors
    ///
    /// They are none; see [`ParseError`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let (&form, rest) = bytes.split_first().ok_or(ParseError::TooShort)?;
        let (id, rest) = take(rest)?;
        let (base_len, rest) = take(rest)?;
        let (hash, rest) = take(rest)?;
        let base = Identity {
            id: u64::from_le_bytes(id),
            len: u32::from_le_bytes(base_len),
            hash: u64::from_le_bytes(hash),
        };
        let (len, rest) = take(rest)?;
        let (hash, body) = take(rest)?;
        let (len, hash) = (u32::from_le_bytes(len), u64::from_le_bytes(hash));
        let len = usize::try_from(len).map_err(|_| ParseError::TooLong)?;
        if len > MAX_PAYLOAD || base.len > MAX_PAYLOAD as u32 {
            return Err(ParseError::TooLong);
        }
        let body = match form {
            FULL if body.len() == len => Body::Full(body),
            FULL => return Err(ParseError::Length),
            // The writer would have sent the payload.
            SPARSE if body.len() > len => return Err(ParseError::Length),
            SPARSE => {
                let mut runs = Runs { rest: body, at: 0, len };
                while runs.next()?.is_some() {}
                Body::Sparse(body)
            }
            _ => return Err(ParseError::Form),
        };
        Ok(Self { base, len, hash, body })
    }

    /// The baseline that it belongs to.
    pub const fn base(&self) -> Identity {
        self.base
    }

    /// Bytes of the payload, at most [`MAX_PAYLOAD`].
    #[expect(clippy::len_without_is_empty, reason = "the length of what comes out of it")]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether it carries the whole payload.
    pub const fn is_full(&self) -> bool {
        matches!(self.body, Body::Full(_))
    }

    /// Puts the payload together at the start of `buf` and gives it.
    ///
    /// # Errors
    ///
    /// `base` is another baseline than that of the sender, also where the whole payload is there;
    /// `buf` is too short; or it comes out wrong. After an error nothing of meaning is in `buf`.
    pub fn apply<'b>(&self, base: Baseline<'_>, buf: &'b mut [u8]) -> Result<&'b [u8], ApplyError> {
        let got = base.identity();
        if got != self.base {
            return Err(ApplyError::OtherBaseline { wanted: self.base, got });
        }
        let payload = buf.get_mut(..self.len).ok_or(ApplyError::Buffer(self.len))?;
        match self.body {
            Body::Full(bytes) => payload.copy_from_slice(bytes),
            Body::Sparse(body) => {
                let kept = self.len.min(base.bytes.len());
                payload[..kept].copy_from_slice(&base.bytes[..kept]);
                payload[kept..].fill(0);
                let mut runs = Runs { rest: body, at: 0, len: self.len };
                while let Ok(Some((at, bytes))) = runs.next() {
                    payload[at..at + bytes.len()].copy_from_slice(bytes);
                }
            }
        }
        if fnv1a(payload) != self.hash {
            return Err(ApplyError::Damaged);
        }
        Ok(payload)
    }
}

fn take<const N: usize>(bytes: &[u8]) -> Result<([u8; N], &[u8]), ParseError> {
    let (head, rest) = bytes.split_first_chunk().ok_or(ParseError::TooShort)?;
    Ok((*head, rest))
}

/// Bytes that differ, behind others that do not.
#[derive(Clone, Copy, Debug)]
struct Run<'a> {
    keep: usize,
    bytes: &'a [u8],
}

impl Run<'_> {
    const fn size(&self) -> usize {
        number_size(self.keep) + number_size(self.bytes.len()) + self.bytes.len()
    }

    /// Writes the run and leaves what is behind it; the room was counted before.
    fn put<'b>(&self, room: &'b mut [u8]) -> &'b mut [u8] {
        let room = put_number(self.keep, room);
        let room = put_number(self.bytes.len(), room);
        let (place, rest) = room.split_at_mut(self.bytes.len());
        place.copy_from_slice(self.bytes);
        rest
    }
}

/// The runs of a payload against a baseline.
struct Differences<'a> {
    base: &'a [u8],
    payload: &'a [u8],
    at: usize,
}

impl<'a> Differences<'a> {
    const fn new(base: &'a [u8], payload: &'a [u8]) -> Self {
        Self { base, payload, at: 0 }
    }

    fn differs(&self, place: usize) -> bool {
        self.payload[place] != self.base.get(place).copied().unwrap_or(0)
    }
}

impl<'a> Iterator for Differences<'a> {
    type Item = Run<'a>;

    fn next(&mut self) -> Option<Run<'a>> {
        let start = (self.at..self.payload.len()).find(|place| self.differs(*place))?;
        let mut end = start + 1;
        // Up to the last difference that no more than a gap separates from the one before it.
        for place in start + 1..self.payload.len() {
            if place - end > GAP {
                break;
            }
            if self.differs(place) {
                end = place + 1;
            }
        }
        let run = Run { keep: start - self.at, bytes: &self.payload[start..end] };
        self.at = end;
        Some(run)
    }
}

/// The runs of a body.
struct Runs<'a> {
    rest: &'a [u8],
    at: usize,
    len: usize,
}

impl<'a> Runs<'a> {
    /// The next run and its place, `None` at the end of the body.
    fn next(&mut self) -> Result<Option<(usize, &'a [u8])>, ParseError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let keep = self.number()?;
        let count = self.number()?;
        // Both are below 2^21, so nothing overflows.
        let start = self.at + keep;
        if count == 0 || start + count > self.len {
            return Err(ParseError::Run);
        }
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or(ParseError::TooShort)?;
        (self.rest, self.at) = (rest, start + count);
        Ok(Some((start, bytes)))
    }

    /// Up to three bytes: `MAX_PAYLOAD` needs no more.
    fn number(&mut self) -> Result<usize, ParseError> {
        let mut number = 0;
        for place in 0..3 {
            let (&byte, rest) = self.rest.split_first().ok_or(ParseError::TooShort)?;
            self.rest = rest;
            number |= usize::from(byte & 0x7F) << (7 * place);
            if byte < 0x80 {
                // A last byte of zero says nothing that a shorter form would not.
                return if place > 0 && byte == 0 { Err(ParseError::Run) } else { Ok(number) };
            }
        }
        Err(ParseError::Run)
    }
}

const fn number_size(number: usize) -> usize {
    match number {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        _ => 3,
    }
}

fn put_number(mut number: usize, room: &mut [u8]) -> &mut [u8] {
    let (place, rest) = room.split_at_mut(number_size(number));
    let last = place.len().saturating_sub(1);
    for (index, byte) in place.iter_mut().enumerate() {
        *byte = (number & 0x7F) as u8 | if index < last { 0x80 } else { 0 };
        number >>= 7;
    }
    rest
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::string::ToString;
    use std::vec;
    use std::vec::Vec;

    fn written(base: Baseline<'_>, payload: &[u8]) -> Vec<u8> {
        let mut buf = vec![0xEE; OVERHEAD + payload.len()];
        let len = write(base, payload, &mut buf).unwrap();
        buf.truncate(len);
        buf
    }

    #[test]
    fn the_hash_is_fnv_1a_as_published() {
        assert_eq!(fnv1a(b""), 0xCBF2_9CE4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xAF63_DC4C_8601_EC8C);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_F739_67E8);
    }

    #[test]
    fn bytes_stand_where_the_drawing_says() {
        let base = Baseline::new(0x0807_0605_0403_0201, b"foobar");
        let bytes = written(base, b"foxxar!");
        let mut expected = vec![1, 1, 2, 3, 4, 5, 6, 7, 8, 6, 0, 0, 0];
        expected.extend(0x8594_4171_F739_67E8u64.to_le_bytes());
        expected.extend([7, 0, 0, 0]);
        expected.extend(fnv1a(b"foxxar!").to_le_bytes());
        // "xxar!" with "ar" between the differences: keep 2, five bytes, no longer than seven.
        expected.extend(*b"\x02\x05xxar!");
        assert_eq!(bytes, expected);
    }

    #[test]
    fn the_payload_is_sent_whole_where_the_difference_would_be_longer() {
        let base = Baseline::new(1, b"aaaaaaaaa");
        // Every byte differs: two bytes of a run and nine of the payload are more than nine.
        let whole = written(base, b"bbbbbbbbb");
        assert_eq!((whole.len(), whole[0]), (OVERHEAD + 9, FULL));
        // Seven differ: as long as the payload, which is not longer.
        let runs = written(base, b"bbbbbbbaa");
        assert_eq!((runs.len(), runs[0]), (OVERHEAD + 9, SPARSE));
        let nothing = written(base, b"aaaaaaaaa");
        assert_eq!((nothing.len(), nothing[0]), (OVERHEAD, SPARSE));
        for bytes in [&whole, &runs, &nothing] {
            let delta = Delta::parse(bytes).unwrap();
            assert_eq!(delta.is_full(), bytes[0] == FULL);
            assert_eq!((delta.len(), delta.base()), (9, base.identity()));
        }
    }

    #[test]
    fn any_other_baseline_is_an_error_for_either_form() {
        for payload in [b"abcd".as_slice(), b"WXYZ"] {
            let bytes = written(Baseline::new(5, b"abce"), payload);
            let delta = Delta::parse(&bytes).unwrap();
            let mut buf = [0; 8];
            assert_eq!(delta.apply(Baseline::new(5, b"abce"), &mut buf), Ok(payload));
            for (id, other) in [(6, b"abce".as_slice()), (5, b"abcd"), (5, b"abc"), (5, b"abce\0")]
            {
                let error = delta.apply(Baseline::new(id, other), &mut buf).unwrap_err();
                assert!(matches!(error, ApplyError::OtherBaseline { .. }), "{error}");
                assert_eq!(error.to_string().ends_with("other bytes"), id == 5);
            }
        }
    }

    #[test]
    fn a_result_that_was_not_meant_is_found_out() {
        let base = Baseline::new(5, b"the same for a while");
        let mut bytes = written(base, b"the same for a mile.");
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        let delta = Delta::parse(&bytes).unwrap();
        assert_eq!(delta.apply(base, &mut [0; 32]), Err(ApplyError::Damaged));
    }

    #[test]
    fn every_fault_has_its_error() {
        let base = Baseline::new(0, b"0123456789");
        let good = written(base, b"01234x6789");
        assert_eq!(good[OVERHEAD..], [5, 1, b'x']);
        let with = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = good.clone();
            change(&mut bytes);
            Delta::parse(&bytes).unwrap_err()
        };
        for cut in (0..good.len()).filter(|cut| *cut != OVERHEAD) {
            assert_eq!(Delta::parse(&good[..cut]), Err(ParseError::TooShort), "{cut}");
        }
        assert_eq!(with(&|bytes| bytes[0] = 2), ParseError::Form);
        assert_eq!(with(&|bytes| bytes[0] = FULL), ParseError::Length);
        assert_eq!(with(&|bytes| bytes[24] = 1), ParseError::TooLong);
        assert_eq!(with(&|bytes| bytes[12] = 1), ParseError::TooLong);
        assert_eq!(with(&|bytes| bytes[OVERHEAD] = 10), ParseError::Run);
        assert_eq!(with(&|bytes| bytes[OVERHEAD + 1] = 0), ParseError::Run);
        assert_eq!(with(&|bytes| bytes.extend([0; 8])), ParseError::Length);
        for body in [b"\x85\x00\x01x".as_slice(), &[0xFF; 4]] {
            let error = with(&|bytes| {
                bytes.truncate(OVERHEAD);
                bytes.extend(body);
            });
            assert_eq!(error, ParseError::Run);
        }
        assert_eq!(
            write(base, b"01234x6789", &mut [0; OVERHEAD + 2]),
            Err(WriteError::Buffer(OVERHEAD + 3))
        );
        let delta = Delta::parse(&good).unwrap();
        assert_eq!(delta.apply(base, &mut [0; 9]), Err(ApplyError::Buffer(10)));
        let long = vec![0; MAX_PAYLOAD + 1];
        assert_eq!(write(base, &long, &mut [0; 64]), Err(WriteError::TooLong));
        assert_eq!(write(Baseline::new(0, &long), b"", &mut [0; 64]), Err(WriteError::TooLong));
    }

    #[test]
    fn the_longest_payload_takes_the_longest_numbers() {
        let base = vec![0; MAX_PAYLOAD];
        let mut payload = base.clone();
        payload[MAX_PAYLOAD - 1] = 1;
        let bytes = written(Baseline::new(1, &base), &payload);
        // 65535 is 3 * 2^14 + 127 * 2^7 + 127.
        assert_eq!(bytes[OVERHEAD..], [0xFF, 0xFF, 3, 1, 1]);
        let mut buf = vec![9; MAX_PAYLOAD];
        let delta = Delta::parse(&bytes).unwrap();
        assert!(delta.apply(Baseline::new(1, &base), &mut buf) == Ok(&payload));
    }

    /// Puts a payload together one byte at a time, knowing nothing of runs but their drawing.
    fn naive(base: &[u8], body: &[u8], len: usize) -> Vec<u8> {
        let mut out: Vec<u8> = (0..len).map(|at| *base.get(at).unwrap_or(&0)).collect();
        let (mut at, mut body) = (0, body.iter().copied());
        let number = |body: &mut dyn Iterator<Item = u8>| {
            let first = body.next()?;
            let (mut sum, mut weight, mut last) = (u64::from(first % 128), 128, first);
            while last >= 128 {
                last = body.next()?;
                sum += weight * u64::from(last % 128);
                weight *= 128;
            }
            Some(sum as usize)
        };
        while let Some(keep) = number(&mut body) {
            at += keep;
            for _ in 0..number(&mut body).unwrap() {
                out[at] = body.next().unwrap();
                at += 1;
            }
        }
        out
    }

    proptest! {
        /// A chain of payloads, each against some earlier one; edits of all sizes.
        #[test]
        fn agrees_with_bytes_put_together_one_by_one(
            first in vec(any::<u8>(), 0..400),
            edits in vec((any::<u16>(), vec(any::<u8>(), 0..20), 0usize..40, 0usize..3), 1..30),
        ) {
            let mut payloads = vec![first];
            for (place, patch, len, back) in edits {
                let of = payloads.len().saturating_sub(1 + back);
                let mut next = payloads[payloads.len() - 1].clone();
                // Longer or shorter by a little, and a patch somewhere.
                next.resize((next.len() + len).saturating_sub(20), 7);
                for (offset, byte) in patch.iter().enumerate() {
                    let at = (usize::from(place) + offset) % next.len().max(1);
                    if let Some(old) = next.get_mut(at) { *old = *byte }
                }
                let base = Baseline::new(of as u64, &payloads[of]);
                let bytes = written(base, &next);
                prop_assert!(bytes.len() <= OVERHEAD + next.len());
                let delta = Delta::parse(&bytes).unwrap();
                let mut buf = vec![0xEE; next.len()];
                prop_assert_eq!(delta.apply(base, &mut buf), Ok(&next[..]));
                if !delta.is_full() {
                    prop_assert_eq!(naive(&payloads[of], &bytes[OVERHEAD..], next.len()), &next[..]);
                }
                for (id, other) in payloads.iter().enumerate().filter(|(id, _)| *id != of) {
                    prop_assert!(delta.apply(Baseline::new(id as u64, other), &mut buf).is_err());
                    let same_id = delta.apply(Baseline::new(of as u64, other), &mut buf);
                    prop_assert!(same_id.is_err() || *other == payloads[of]);
                }
                payloads.push(next);
            }
        }

        #[test]
        fn no_bytes_panic_and_none_give_a_wrong_payload(
            base in vec(any::<u8>(), 0..40), payload in vec(any::<u8>(), 0..40),
            changes in vec((any::<u16>(), any::<u8>()), 0..4), raw in vec(any::<u8>(), 0..60),
        ) {
            let base = Baseline::new(3, &base);
            let mut bytes = written(base, &payload);
            for (place, value) in changes {
                let at = usize::from(place) % bytes.len();
                bytes[at] = value;
            }
            let mut buf = [0; 64];
            for bytes in [&bytes, &raw] {
                if let Ok(delta) = Delta::parse(bytes)
                    && let Ok(applied) = delta.apply(base, &mut buf)
                {
                    prop_assert_eq!(&fnv1a(applied).to_le_bytes()[..], &bytes[25..33]);
                    prop_assert_eq!(applied.len(), delta.len());
                }
            }
        }
    }
}
