//! Teeworlds 0.6, as DDNet speaks it.
