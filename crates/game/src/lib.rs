//! A whole Forgotten Caves server and a whole client, without IO.
//!
//! ```text
//!     datagram          bins: a socket, the clock
//!     wire              bytes to views and back
//!     session           who is talking, what was lost
//!  >  game              here: what it means, both ways
//!     world             the caves
//! ```
//!
//! Only this crate knows packets *and* tiles, in two files named after the two directions:
//! `replicate` turns the world into packets for one player, [`mirror`] turns packets into what a
//! player sees. [`motion`] is where that is between two updates. [`Server`] and [`Client`] are driven by the five verbs of `caves-session`.
//!
//! ```
//! use caves_game::{Client, Server, ServerConfig};
//! use caves_link::time::Instant;
//! use caves_session::{Peer, SplitMix};
//!
//! let mut now = Instant::from_secs(1);
//! let mut server = Server::new(ServerConfig::default(), Box::new(SplitMix::new(1)), now, 0);
//! let mut client = Client::new(Default::default(), Box::new(SplitMix::new(2)), now);
//! let here = Peer { socket: 0, addr: ([127, 0, 0, 1], 5000).into() };
//! let mut buf = [0; 1200];
//! while client.mirror().me().is_none() {
//!     while let Some(len) = client.poll_transmit(now, &mut buf) {
//!         server.handle_datagram(now, here, &buf[..len]);
//!     }
//!     server.handle_timeout(now);
//!     while let Some(transmit) = server.poll_transmit(now, &mut buf) {
//!         client.handle_datagram(now, &buf[..transmit.len]);
//!         while client.poll_event().is_some() {}
//!     }
//!     now += std::time::Duration::from_millis(20);
//!     client.handle_timeout(now);
//! }
//! assert_eq!(client.mirror().me().unwrap().hp, 20);
//! ```

pub mod client;
mod convert;
pub mod mirror;
pub mod motion;
mod replicate;
pub mod save;
pub mod server;
mod words;

pub use client::Client;
pub use mirror::Mirror;
pub use save::{Keep, Save, StoreReply, StoreRequest};
pub use server::{Executed, SaveTicket, Server, ServerConfig, ServerEvent, Told};
