//! The fuzz targets of Forgotten Caves as plain functions. `notes/fuzzing.md` tells how to run them.

pub mod paths;
pub mod targets;
