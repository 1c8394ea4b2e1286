//! The Forgotten Caves server: sockets and a clock around `caves-game`.
//!
//! ```text
//!  >  datagram          here: sockets, the clock, signals, the log
//!     wire              bytes to views and back
//!     session           who is talking, what was lost
//!     game              what it means
//!     world             the caves
//! ```
//!
//! A program starts it with [`Server::bind`] and [`Server::run`]. The binary does so with a
//! `config.toml`, signals and a log; a client that plays alone does so in a thread, with
//! [`Config::solo`] and a [`StopHandle`]. The library prints nothing: it speaks through `tracing`,
//! which is silent until somebody listens.

mod clock;
pub mod config;
pub mod control;
mod kept;
mod load;
pub mod metrics;
mod net;
mod random;
pub mod report;
mod rest;
mod socket;
pub mod store;
pub mod stream;
mod systemd;
pub mod traffic;
mod wires;

pub use clock::Clock;
pub use config::{Config, ConfigError};
pub use net::{BindError, RunError, Server, StopHandle, StopReason, Summary};
pub use random::OsRandom;
pub use systemd::Notifier;
