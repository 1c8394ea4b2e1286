//! The paths of x86-64.
//!
//! Packing, whatever the width: a multiply-add of bytes joins pairs (`t0 + 64 * t1`, 12 bits), one of
//! words joins those (`+ 4096 *`, 24 bits), and a byte shuffle closes the gaps. Unpacking: a shuffle
//! gives each group of three bytes a lane of its own, and shifts and masks spread its 24 bits. Decoding
//! looks the values up while they are in registers.
//!
//! Where a register is wider than what a step reads or writes, all steps but the last take a whole
//! register: what is too much is not looked at, or written over by the next step.

use core::arch::x86_64::*;

use crate::{PACKED, Path, VALUES};

cpufeatures::new!(has_ssse3, "ssse3", "sse4.1");
cpufeatures::new!(has_avx2, "avx2");
cpufeatures::new!(has_vbmi, "avx512f", "avx512bw", "avx512vbmi");

pub(super) fn is_available(path: Path) -> bool {
    match path {
        Path::Ssse3 => has_ssse3::get(),
        Path::Avx2 => has_avx2::get(),
        Path::Vbmi => has_vbmi::get(),
    }
}

/// `LOOK` asks for the largest value, which costs about a third; without it the answer is 0.
pub(super) fn pack<const LOOK: bool>(
    path: Path,
    values: &[u8; VALUES],
    packed: &mut [u8; PACKED],
) -> Option<u8> {
    if !is_available(path) {
        return None;
    }
    Some(match path {
        // SAFETY: `is_available` has just found ssse3 and sse4.1, which are all that it enables.
        Path::Ssse3 => unsafe { pack_ssse3::<LOOK>(values, packed) },
        // SAFETY: `is_available` has just found avx2, which is all that it enables.
        Path::Avx2 => unsafe { pack_avx2::<LOOK>(values, packed) },
        // SAFETY: `is_available` has just found avx512f, avx512bw and avx512vbmi.
        Path::Vbmi => unsafe { pack_vbmi::<LOOK>(values, packed) },
    })
}

pub(super) fn unpack(path: Path, packed: &[u8; PACKED], values: &mut [u8; VALUES]) -> Option<u8> {
    if !is_available(path) {
        return None;
    }
    Some(match path {
        // SAFETY: `is_available` has just found ssse3 and sse4.1, which are all that it enables.
        Path::Ssse3 => unsafe { unpack_ssse3(packed, values) },
        // SAFETY: `is_available` has just found avx2, which is all that it enables.
        Path::Avx2 => unsafe { unpack_avx2(packed, values) },
        // SAFETY: `is_available` has just found avx512f, avx512bw and avx512vbmi.
        Path::Vbmi => unsafe { unpack_vbmi(packed, values) },
    })
}

pub(super) fn decode(
    path: Path,
    packed: &[u8; PACKED],
    table: &[u16; 64],
    found: &mut [u16; VALUES],
) -> Option<u8> {
    if !is_available(path) {
        return None;
    }
    Some(match path {
        // SAFETY: `is_available` has just found ssse3 and sse4.1, which are all that it enables.
        Path::Ssse3 => unsafe { decode_ssse3(packed, table, found) },
        // SAFETY: `is_available` has just found avx2, which is all that it enables.
        Path::Avx2 => unsafe { decode_avx2(packed, table, found) },
        // SAFETY: `is_available` has just found avx512f, avx512bw and avx512vbmi.
        Path::Vbmi => unsafe { decode_vbmi(packed, table, found) },
    })
}

/// Closes the gaps of four 24-bit numbers in 32-bit lanes: twelve bytes, then nothing.
const CLOSE: [u8; 16] = [0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 0x80, 0x80, 0x80, 0x80];
/// Opens them: each lane gets three bytes and a zero.
const OPEN: [u8; 16] = [0, 1, 2, 0x80, 3, 4, 5, 0x80, 6, 7, 8, 0x80, 9, 10, 11, 0x80];

/// A table of words as one of low and one of high bytes, sixteen at a time: byte shuffles look bytes
/// up, and know sixteen places.
struct Table {
    low: [[u8; 16]; 4],
    high: [[u8; 16]; 4],
}

impl Table {
    fn split(table: &[u16; 64]) -> Self {
        let quarter =
            |k: usize, shift: u32| core::array::from_fn(|i| (table[k * 16 + i] >> shift) as u8);
        Self {
            low: core::array::from_fn(|k| quarter(k, 0)),
            high: core::array::from_fn(|k| quarter(k, 8)),
        }
    }
}

// ---------------------------------------------------------------------------------------------
// 16 values at a time

#[target_feature(enable = "ssse3,sse4.1")]
fn pack_ssse3<const LOOK: bool>(values: &[u8; VALUES], packed: &mut [u8; PACKED]) -> u8 {
    let (groups, _) = values.as_chunks::<16>();
    let mut most = _mm_setzero_si128();
    for (place, group) in groups.iter().enumerate() {
        let given = load_128(group);
        if LOOK {
            most = _mm_max_epu8(most, given);
        }
        let tiles = _mm_and_si128(given, _mm_set1_epi8(63));
        let pairs = _mm_maddubs_epi16(tiles, _mm_set1_epi16(0x4001));
        let fours = _mm_madd_epi16(pairs, _mm_set1_epi32(0x1000_0001));
        let bytes = _mm_shuffle_epi8(fours, load_128(&CLOSE));
        if let Some(room) = packed[place * 12..].first_chunk_mut() {
            store_128(room, bytes);
        } else {
            let mut last = [0; 16];
            store_128(&mut last, bytes);
            packed[place * 12..].copy_from_slice(&last[..12]);
        }
    }
    largest(most)
}

/// Sixteen values of the step at this place.
#[inline]
#[target_feature(enable = "ssse3,sse4.1")]
fn spread_ssse3(packed: &[u8; PACKED], place: usize) -> __m128i {
    let bytes = match packed[place * 12..].first_chunk() {
        Some(bytes) => load_128(bytes),
        None => {
            let mut last = [0; 16];
            last[..12].copy_from_slice(&packed[place * 12..]);
            load_128(&last)
        }
    };
    let fours = _mm_shuffle_epi8(bytes, load_128(&OPEN));
    let t0 = _mm_and_si128(fours, _mm_set1_epi32(0x3F));
    let t1 = _mm_and_si128(_mm_slli_epi32::<2>(fours), _mm_set1_epi32(0x3F00));
    let t2 = _mm_and_si128(_mm_slli_epi32::<4>(fours), _mm_set1_epi32(0x3F_0000));
    let t3 = _mm_and_si128(_mm_slli_epi32::<6>(fours), _mm_set1_epi32(0x3F00_0000));
    _mm_or_si128(_mm_or_si128(t0, t1), _mm_or_si128(t2, t3))
}

#[target_feature(enable = "ssse3,sse4.1")]
fn unpack_ssse3(packed: &[u8; PACKED], values: &mut [u8; VALUES]) -> u8 {
    let mut most = _mm_setzero_si128();
    for (place, out) in values.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let tiles = spread_ssse3(packed, place);
        most = _mm_max_epu8(most, tiles);
        store_128(out, tiles);
    }
    largest(most)
}

/// `value ^ 16k` is below 16 for the quarter that is meant; with 0x70 added, all others have the top
/// bit, for which a shuffle gives 0.
#[target_feature(enable = "ssse3,sse4.1")]
fn decode_ssse3(packed: &[u8; PACKED], table: &[u16; 64], found: &mut [u16; VALUES]) -> u8 {
    let table = Table::split(table);
    let mut most = _mm_setzero_si128();
    for (place, out) in found.as_chunks_mut::<16>().0.iter_mut().enumerate() {
        let tiles = spread_ssse3(packed, place);
        most = _mm_max_epu8(most, tiles);
        let (mut low, mut high) = (_mm_setzero_si128(), _mm_setzero_si128());
        for (quarter, (of_low, of_high)) in table.low.iter().zip(&table.high).enumerate() {
            let own = _mm_xor_si128(tiles, _mm_set1_epi8((quarter * 16) as i8));
            let at = _mm_adds_epu8(own, _mm_set1_epi8(0x70));
            low = _mm_or_si128(low, _mm_shuffle_epi8(load_128(of_low), at));
            high = _mm_or_si128(high, _mm_shuffle_epi8(load_128(of_high), at));
        }
        let (first, second) = out.split_at_mut(8);
        if let (Some(first), Some(second)) = (first.first_chunk_mut(), second.first_chunk_mut()) {
            store_128_words(first, _mm_unpacklo_epi8(low, high));
            store_128_words(second, _mm_unpackhi_epi8(low, high));
        }
    }
    largest(most)
}

/// The largest of sixteen bytes: the smallest of their complements, which one instruction finds among
/// eight words, each the smaller of two bytes.
#[inline]
#[target_feature(enable = "sse4.1")]
fn largest(vector: __m128i) -> u8 {
    let complement = _mm_xor_si128(vector, _mm_set1_epi8(-1));
    let smaller = _mm_min_epu8(complement, _mm_srli_epi16::<8>(complement));
    !(_mm_cvtsi128_si32(_mm_minpos_epu16(smaller)) as u8)
}

// ---------------------------------------------------------------------------------------------
// 32 values at a time

#[target_feature(enable = "avx2")]
fn pack_avx2<const LOOK: bool>(values: &[u8; VALUES], packed: &mut [u8; PACKED]) -> u8 {
    let (groups, _) = values.as_chunks::<32>();
    let close = _mm256_broadcastsi128_si256(load_128(&CLOSE));
    // The twelve bytes of the upper half move up to those of the lower half.
    let join = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7);
    let mut most = _mm256_setzero_si256();
    for (place, group) in groups.iter().enumerate() {
        let given = load_256(group);
        if LOOK {
            most = _mm256_max_epu8(most, given);
        }
        let tiles = _mm256_and_si256(given, _mm256_set1_epi8(63));
        let pairs = _mm256_maddubs_epi16(tiles, _mm256_set1_epi16(0x4001));
        let fours = _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x1000_0001));
        let bytes = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(fours, close), join);
        if let Some(room) = packed[place * 24..].first_chunk_mut() {
            store_256(room, bytes);
        } else {
            let mut last = [0; 32];
            store_256(&mut last, bytes);
            packed[place * 24..].copy_from_slice(&last[..24]);
        }
    }
    largest_256(most)
}

/// 32 values of the step at this place.
#[inline]
#[target_feature(enable = "avx2")]
fn spread_avx2(packed: &[u8; PACKED], place: usize) -> __m256i {
    let bytes = match packed[place * 24..].first_chunk() {
        Some(bytes) => load_256(bytes),
        None => {
            let mut last = [0; 32];
            last[..24].copy_from_slice(&packed[place * 24..]);
            load_256(&last)
        }
    };
    // Twelve bytes for each half.
    let part = _mm256_setr_epi32(0, 1, 2, 7, 3, 4, 5, 7);
    let open = _mm256_broadcastsi128_si256(load_128(&OPEN));
    let fours = _mm256_shuffle_epi8(_mm256_permutevar8x32_epi32(bytes, part), open);
    let t0 = _mm256_and_si256(fours, _mm256_set1_epi32(0x3F));
    let t1 = _mm256_and_si256(_mm256_slli_epi32::<2>(fours), _mm256_set1_epi32(0x3F00));
    let t2 = _mm256_and_si256(_mm256_slli_epi32::<4>(fours), _mm256_set1_epi32(0x3F_0000));
    let t3 = _mm256_and_si256(_mm256_slli_epi32::<6>(fours), _mm256_set1_epi32(0x3F00_0000));
    _mm256_or_si256(_mm256_or_si256(t0, t1), _mm256_or_si256(t2, t3))
}

#[target_feature(enable = "avx2")]
fn unpack_avx2(packed: &[u8; PACKED], values: &mut [u8; VALUES]) -> u8 {
    let mut most = _mm256_setzero_si256();
    for (place, out) in values.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let tiles = spread_avx2(packed, place);
        most = _mm256_max_epu8(most, tiles);
        store_256(out, tiles);
    }
    largest_256(most)
}

/// As [`decode_ssse3`], twice as wide.
#[target_feature(enable = "avx2")]
fn decode_avx2(packed: &[u8; PACKED], table: &[u16; 64], found: &mut [u16; VALUES]) -> u8 {
    let table = Table::split(table);
    let mut most = _mm256_setzero_si256();
    for (place, out) in found.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        // The quarters are crossed so that each half's words come out behind each other.
        let tiles = _mm256_permute4x64_epi64::<0b11_01_10_00>(spread_avx2(packed, place));
        most = _mm256_max_epu8(most, tiles);
        let (mut low, mut high) = (_mm256_setzero_si256(), _mm256_setzero_si256());
        for (quarter, (of_low, of_high)) in table.low.iter().zip(&table.high).enumerate() {
            let own = _mm256_xor_si256(tiles, _mm256_set1_epi8((quarter * 16) as i8));
            let at = _mm256_adds_epu8(own, _mm256_set1_epi8(0x70));
            let of_low = _mm256_broadcastsi128_si256(load_128(of_low));
            let of_high = _mm256_broadcastsi128_si256(load_128(of_high));
            low = _mm256_or_si256(low, _mm256_shuffle_epi8(of_low, at));
            high = _mm256_or_si256(high, _mm256_shuffle_epi8(of_high, at));
        }
        let (first, second) = out.split_at_mut(16);
        if let (Some(first), Some(second)) = (first.first_chunk_mut(), second.first_chunk_mut()) {
            store_256_words(first, _mm256_unpacklo_epi8(low, high));
            store_256_words(second, _mm256_unpackhi_epi8(low, high));
        }
    }
    largest_256(most)
}

#[inline]
#[target_feature(enable = "avx2")]
fn largest_256(vector: __m256i) -> u8 {
    largest(_mm_max_epu8(_mm256_castsi256_si128(vector), _mm256_extracti128_si256::<1>(vector)))
}

// ---------------------------------------------------------------------------------------------
// 64 values at a time

/// The bytes that a step of 64 values packs to.
const STEP: usize = 48;
/// The lanes of those bytes.
const STEP_MASK: u64 = (1 << STEP) - 1;

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn pack_vbmi<const LOOK: bool>(values: &[u8; VALUES], packed: &mut [u8; PACKED]) -> u8 {
    let close = load_512(&CLOSE_512);
    let mut most = _mm512_setzero_si512();
    for (place, group) in values.as_chunks::<64>().0.iter().enumerate() {
        let given = load_512(group);
        if LOOK {
            most = _mm512_max_epu8(most, given);
        }
        let tiles = _mm512_and_si512(given, _mm512_set1_epi8(63));
        let pairs = _mm512_maddubs_epi16(tiles, _mm512_set1_epi16(0x4001));
        let fours = _mm512_madd_epi16(pairs, _mm512_set1_epi32(0x1000_0001));
        let bytes = _mm512_permutexvar_epi8(close, fours);
        let rest = &mut packed[place * STEP..];
        if let Some(room) = rest.first_chunk_mut() {
            store_512(room, bytes);
        } else if let Some(room) = rest.first_chunk_mut() {
            store_step(room, bytes);
        }
    }
    largest_512(most)
}

/// 64 values of the step at this place.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn spread_vbmi(packed: &[u8; PACKED], place: usize) -> __m512i {
    let rest = &packed[place * STEP..];
    let bytes = match (rest.first_chunk(), rest.first_chunk()) {
        (Some(bytes), _) => load_512(bytes),
        // Masked loads are slow on some processors: only the last step needs one.
        (None, Some(bytes)) => load_step(bytes),
        (None, None) => _mm512_setzero_si512(),
    };
    let eights = _mm512_permutexvar_epi8(load_512(&OPEN_512), bytes);
    // Eight fields of six bits from each 64-bit lane.
    let fields = _mm512_set1_epi64(0x2A24_1E18_120C_0600);
    _mm512_and_si512(_mm512_multishift_epi64_epi8(fields, eights), _mm512_set1_epi8(63))
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn unpack_vbmi(packed: &[u8; PACKED], values: &mut [u8; VALUES]) -> u8 {
    let mut most = _mm512_setzero_si512();
    for (place, out) in values.as_chunks_mut::<64>().0.iter_mut().enumerate() {
        let tiles = spread_vbmi(packed, place);
        most = _mm512_max_epu8(most, tiles);
        store_512(out, tiles);
    }
    largest_512(most)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn decode_vbmi(packed: &[u8; PACKED], table: &[u16; 64], found: &mut [u16; VALUES]) -> u8 {
    let (halves, _) = table.as_chunks::<32>();
    let (low, high) = (load_512_words(&halves[0]), load_512_words(&halves[1]));
    let mut most = _mm512_setzero_si512();
    for (place, out) in found.as_chunks_mut::<64>().0.iter_mut().enumerate() {
        let tiles = spread_vbmi(packed, place);
        most = _mm512_max_epu8(most, tiles);
        let (first, second) = out.split_at_mut(32);
        if let (Some(first), Some(second)) = (first.first_chunk_mut(), second.first_chunk_mut()) {
            let at = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(tiles));
            store_512_words(first, _mm512_permutex2var_epi16(low, at, high));
            let at = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64::<1>(tiles));
            store_512_words(second, _mm512_permutex2var_epi16(low, at, high));
        }
    }
    largest_512(most)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn largest_512(vector: __m512i) -> u8 {
    let halves = (_mm512_castsi512_si256(vector), _mm512_extracti64x4_epi64::<1>(vector));
    let most = _mm256_max_epu8(halves.0, halves.1);
    largest(_mm_max_epu8(_mm256_castsi256_si128(most), _mm256_extracti128_si256::<1>(most)))
}

/// [`CLOSE`] for sixteen lanes; the last sixteen bytes are not meant.
const CLOSE_512: [u8; 64] = {
    let mut order = [0; 64];
    let mut i = 0;
    while i < STEP {
        order[i] = (i / 3 * 4 + i % 3) as u8;
        i += 1;
    }
    order
};

/// Six bytes for each 64-bit lane; whatever fills its last two is not looked at.
const OPEN_512: [u8; 64] = {
    let mut order = [0; 64];
    let mut i = 0;
    while i < 64 {
        if i % 8 < 6 {
            order[i] = (i / 8 * 6 + i % 8) as u8;
        }
        i += 1;
    }
    order
};

// ---------------------------------------------------------------------------------------------
// Registers and arrays

#[inline]
fn load_128(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: the array has the 16 bytes that are read; `loadu` asks for no alignment, and sse2
    // belongs to every x86-64.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

#[inline]
fn store_128(bytes: &mut [u8; 16], vector: __m128i) {
    // SAFETY: the array has the 16 bytes that are written; `storeu` asks for no alignment, and sse2
    // belongs to every x86-64.
    unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), vector) }
}

#[inline]
fn store_128_words(words: &mut [u16; 8], vector: __m128i) {
    // SAFETY: the array has the 16 bytes that are written, any of which make words; `storeu` asks for
    // no alignment, and sse2 belongs to every x86-64.
    unsafe { _mm_storeu_si128(words.as_mut_ptr().cast(), vector) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_256(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: the array has the 32 bytes that are read; `loadu` asks for no alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_256(bytes: &mut [u8; 32], vector: __m256i) {
    // SAFETY: the array has the 32 bytes that are written; `storeu` asks for no alignment.
    unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), vector) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_256_words(words: &mut [u16; 16], vector: __m256i) {
    // SAFETY: the array has the 32 bytes that are written, any of which make words; `storeu` asks for
    // no alignment.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), vector) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_512(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the array has the 64 bytes that are read; `loadu` asks for no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_512_words(words: &[u16; 32]) -> __m512i {
    // SAFETY: the array has the 64 bytes that are read; `loadu` asks for no alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_512(bytes: &mut [u8; 64], vector: __m512i) {
    // SAFETY: the array has the 64 bytes that are written; `storeu` asks for no alignment.
    unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), vector) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_512_words(words: &mut [u16; 32], vector: __m512i) {
    // SAFETY: the array has the 64 bytes that are written, any of which make words; `storeu` asks for
    // no alignment.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), vector) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load_step(bytes: &[u8; STEP]) -> __m512i {
    // SAFETY: the mask has a bit for each of the 48 bytes of the array and none beyond; lanes without
    // a bit are not read. No alignment is asked for.
    unsafe { _mm512_maskz_loadu_epi8(STEP_MASK, bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn store_step(bytes: &mut [u8; STEP], vector: __m512i) {
    // SAFETY: the mask has a bit for each of the 48 bytes of the array and none beyond; lanes without
    // a bit are not written. No alignment is asked for.
    unsafe { _mm512_mask_storeu_epi8(bytes.as_mut_ptr().cast(), STEP_MASK, vector) }
}
