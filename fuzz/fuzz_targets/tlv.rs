//! See `caves_fuzz::targets::tlv`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| caves_fuzz::targets::tlv(data));
