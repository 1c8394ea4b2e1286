//! What the benches of this package share: a ratio harness, samples, a table of goals.
//!
//! * [`measure`] times cases in interleaved rounds, so that whatever slows the machine down slows all of
//!   them, and gives medians and ratios;
//! * [`samples`] makes the chunks that are encoded and decoded;
//! * [`ground`] writes worlds in which everybody sees so much;
//! * [`goals`] sets what was measured against what was wanted.
//!
//! The benches themselves are targets of this package, with the peers they compare with as
//! development dependencies.

pub mod goals;
pub mod ground;
pub mod measure;
pub mod samples;
