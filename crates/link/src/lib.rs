//! Building blocks from which the sessions of UDP game protocols are made.
//!
//! No block knows a protocol. What differs between protocols (the width of a counter, a capacity,
//! a waiting time) is a parameter, so that a second protocol needs no second copy.
//!
//! | block | Forgotten Caves | Teeworlds 0.6 | ferravex 2 | blank |
//! |---|---|---|---|---|
//! | [`seq`]: numbers that wrap | 32-bit actions and events | 10-bit, 0 to 1023 | - (64-bit, never wraps) | 16-bit |
//! | [`ack`]: the latest that arrived, a bit for each before it | - | - | - | 32 before, in each header |
//! | [`time`]: moments and deadlines | yes | yes | yes | yes |
//! | [`bucket`]: so many per second | strangers, chunks, queries, speech | strangers | - | strangers |
//! | [`retry`]: one question until it is answered | 200 to 300 ms, uniform | CONNECT, 500 ms; ACCEPT | Hello | - |
//! | [`window`]: the next one, old or ahead | - | vital chunks; their acknowledgements | - | - |
//! | [`resend`]: many entries until each is acknowledged | under the events | vital chunks, cumulative, 455 and 32,760 bytes | under the events | - |
//! | [`events`]: once and in order | chat, notices, combat | - | under `wide` | - |
//! | [`wide`]: the same with 64-bit numbers | - | - | 256 pending, window 256, each its own answer | - |
//! | [`delta`]: a difference, to one exact baseline | - | - | sparse bytes, or all of them | - |
//! | [`history`]: the pair of values around a moment | where figures stood | snapshots by tick, as the base of the next | samples, late ones placed | - |
//! | [`clock`]: round trip, the remote clock, jitter | ping, pong, ticks | ticks | four stamps of an exchange | - |
//!
//! There is no clock, socket, thread or random source in here: the moment and the random number
//! are arguments, so a test writes the ones it means. A call does a bounded amount of work, and
//! nothing a peer sends can make it panic.
//!
//! # The window of events
//!
//! ```text
//!  sender     acknowledged  | sent   | waiting          | not queued yet
//!             ..............|FaFFaaFa|wwwwwwwwwwwwwwwwww|
//!                            ^        ^                  ^
//!                            |        sent next          next number
//!                            lowest unacknowledged
//!
//!  receiver   delivered     | kept, or missing                     | too far
//!             ..............|.K..KK.K..............................|--------
//!                            ^                                      ^
//!                            next expected                          next expected + 256
//!
//!  answer     acknowledge   | acknowledge; the first content stays | silence
//! ```
//!
//! `F` is in flight, `a` was acknowledged out of turn, `w` waits, `K` is kept. All below the
//! lowest unacknowledged number has reached the receiver, and one that delivers whatever is
//! complete therefore expects that number or a later one. So what is sent less than 256 ahead of
//! it always finds room on the other side.
//!
//! # Features
//!
//! `alloc` (default) adds the blocks that hold queues, [`resend`], [`events`] and [`wide`]. Without it the
//! crate needs `core` alone.
//!
//! # Example
//!
//! ```
//! use caves_link::time::Instant;
//! use caves_link::retry::{Retry, RetryPolicy};
//! use core::time::Duration;
//!
//! let policy = RetryPolicy::uniform(Duration::from_millis(200), Duration::from_millis(300));
//! let mut hello = Retry::new(policy);
//! let start = Instant::from_secs(1);
//! hello.ask(start);
//! assert!(hello.due(start));
//! hello.sent(start, 0);
//! assert_eq!(hello.deadline(), Some(Instant::from_millis(1200)));
//! ```

#![no_std]
// Without `alloc` the pages that the text links to are not there.
#![cfg_attr(not(feature = "alloc"), allow(rustdoc::broken_intra_doc_links))]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod ack;
pub mod bucket;
pub mod clock;
pub mod delta;
#[cfg(feature = "alloc")]
pub mod events;
pub mod history;
#[cfg(feature = "alloc")]
pub mod resend;
pub mod retry;
pub mod seq;
pub mod time;
#[cfg(feature = "alloc")]
pub mod wide;
pub mod window;
