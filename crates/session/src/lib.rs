//! Sans-IO sessions: who is talking, what was lost, what to ask or send again.
//!
//! ```text
//!     datagram          bins: a socket, the clock
//!     wire              bytes to views and back
//!  >  session           here
//!     game              what it means
//!     world             the caves
//! ```
//!
//! # Five verbs
//!
//! Every endpoint is driven the same way; nothing in it knows a socket or a clock.
//!
//! | verb | direction | |
//! |---|---|---|
//! | `handle_datagram(now, from, bytes)` | in | what came from the socket |
//! | `handle_timeout(now)` | in | the moment that `poll_timeout` named has come |
//! | `poll_event()` | out | what the layer above should know |
//! | `poll_transmit(now, buf)` | out | the next datagram to send, written into the caller's buffer |
//! | `poll_timeout()` | out | when to call `handle_timeout` at the latest |
//!
//! A bad datagram is dropped, counted by [`DropReason`] and never an error: errors are for what the
//! caller can put right. Randomness comes from the caller too ([`Random`]).
//!
//! ```
//! use caves_link::time::Instant;
//! use caves_session::caves::{Client, ClientConfig, Server, ServerConfig, ServerEvent};
//! use caves_session::{Peer, SplitMix};
//! use caves_wire::caves::EntityId;
//!
//! let now = Instant::from_secs(1);
//! let mut server = Server::new(ServerConfig::default(), Box::new(SplitMix::new(1)), now);
//! let mut client = Client::new(ClientConfig::default(), Box::new(SplitMix::new(2)), now);
//! let address = Peer { socket: 0, addr: ([127, 0, 0, 1], 5000).into() };
//! let mut buf = [0; 1200];
//! // Hello, Challenge, Join, Welcome.
//! for _ in 0..2 {
//!     while let Some(len) = client.poll_transmit(now, &mut buf) {
//!         server.handle_datagram(now, address, &buf[..len]);
//!     }
//!     while let Some(event) = server.poll_event() {
//!         if let ServerEvent::Joined(joined) = event {
//!             server.admit(now, joined.session, EntityId(1));
//!         }
//!     }
//!     while let Some(transmit) = server.poll_transmit(now, &mut buf) {
//!         client.handle_datagram(now, &buf[..transmit.len]);
//!     }
//! }
//! assert_eq!(client.player(), Some(EntityId(1)));
//! ```

#[cfg(feature = "blank")]
pub mod blank;
pub mod caves;
#[doc(hidden)]
pub mod fault;
#[cfg(feature = "ferravex")]
pub mod ferravex;
mod peers;
mod random;
mod strangers;
#[cfg(feature = "teeworlds")]
pub mod teeworlds;
mod transmit;

pub use ipnet::IpNet;
pub use random::{Random, SplitMix};
pub use strangers::{StrangerLimits, Strangers};
pub use transmit::{Counters, DropReason, Peer, Transmit};
