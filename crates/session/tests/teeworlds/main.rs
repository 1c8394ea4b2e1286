//! Teeworlds 0.6 against what a real DDNet server did, against a bad network, and by its rules.

mod captures;
mod drive;
mod network;
mod probes;
mod replay;
mod rules;
