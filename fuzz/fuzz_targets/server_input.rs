//! See `caves_fuzz::targets::server_input`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| caves_fuzz::targets::server_input(data));
