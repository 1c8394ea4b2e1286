//! See `caves_fuzz::targets::names`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| caves_fuzz::targets::names(data));
