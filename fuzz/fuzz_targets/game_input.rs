//! See `caves_fuzz::targets::game_input`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| caves_fuzz::targets::game_input(data));
