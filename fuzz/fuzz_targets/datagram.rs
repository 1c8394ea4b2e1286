//! See `caves_fuzz::targets::datagram`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| caves_fuzz::targets::datagram(data));
