//! What a world is kept as.
