//! Teeworlds 0.6 against its vectors, real traffic, and libtw2.

mod captures;
mod libtw2;
mod model;
mod replay;
mod vectors;
