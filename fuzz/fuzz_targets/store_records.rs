//! See `caves_fuzz::targets::store_records`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| caves_fuzz::targets::store_records(data));
