//! A simulated network that loses, repeats, delays, reorders and damages datagrams.
//!
//! It has no socket and no clock: what is sent carries the moment of sending, in microseconds
//! since an origin of the user's choice, and comes out at the moment of its arrival. A test jumps
//! from one arrival to the next, so a minute of bad network takes no time. Everything follows from
//! a seed: a failing run is repeated by its number.
//!
//! ```text
//!   send(now)                                                           poll(now)
//!      |                                                                   ^
//!      v                                                                   |
//!   too big? --> down, loss, burst? --> copies --> damaged? --> queue: rate, delay, jitter,
//!                                                               held back (bounded)
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | [`config`] | [`LinkConfig`] and its presets, [`Chance`], [`Burst`] |
//! | [`link`] | [`Link`], one direction between two ends, and its [`Stats`] |
//! | [`network`] | [`Network`], many links polled in one order of arrival |
//! | [`rng`] | [`SplitMix64`], the generator behind all of it |
//!
//! # Example
//!
//! ```
//! use caves_netsim::{Link, LinkConfig};
//!
//! let mut link = Link::new(LinkConfig::LOSSY_20, 1);
//! for n in 0..100u32 {
//!     link.send(u64::from(n) * 1_000, 64, n);
//! }
//! let mut arrived = Vec::new();
//! while let Some(now) = link.next_arrival() {
//!     arrived.extend(link.poll(now));
//! }
//! let stats = link.stats();
//! assert_eq!(arrived.len() as u64, stats.delivered);
//! assert_eq!(stats.sent + stats.duplicated, stats.delivered + stats.lost);
//! ```
//!
//! The example program `impair` puts the same links between real sockets:
//!
//! ```text
//! cargo run -p caves-netsim --example impair -- --listen 127.0.0.1:0 --to 127.0.0.1:4000 --loss 20
//! ```

pub mod config;
pub mod link;
mod loss;
pub mod network;
pub mod rng;

pub use config::{Burst, Chance, LinkConfig};
pub use link::{Link, Stats, flip_bits};
pub use network::{LinkId, Network};
pub use rng::SplitMix64;
