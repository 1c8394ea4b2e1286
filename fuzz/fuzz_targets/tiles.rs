//! See `caves_fuzz::targets::tiles` and `caves_fuzz::paths`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    caves_fuzz::targets::tiles(data);
    caves_fuzz::paths::every_path(data);
});
