//! blank, tag `0xFB1AB1AF`.
