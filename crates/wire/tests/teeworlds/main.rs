//! Teeworlds 0.6 against its vectors, real traffic, and libtw2.

mod captures;
mod replay;
