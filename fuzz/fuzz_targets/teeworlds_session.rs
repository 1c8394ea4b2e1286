//! See `caves_fuzz::targets::teeworlds_session`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| caves_fuzz::targets::teeworlds_session(data));
