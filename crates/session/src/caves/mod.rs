//! Forgotten Caves: state is repeated, only events are acknowledged.
//!
//! # A client's session, as the server sees it
//!
//! ```text
//!            Hello / Challenge            Join with the cookie
//!  stranger -------------------> stranger --------------------> joined
//!     |                          (nothing                         |  Join with 0x24 from
//!     |                           is kept)                        |  another address: moved
//!     |  Action with a registered token,                          |
//!     |  from an address inside `from`                            v
//!     +------------------------------------> source-only ------> ended: Leave, 10 s of silence,
//!                                                                 events unread, replaced, or by
//!                                                                 the operator: told why first
//! ```
//!
//! # The same, as the client sees it
//!
//! ```text
//!  attempt: Hello .. Challenge, Join .. Welcome ------> playing
//!     ^ 5 s, or Refuse(7)                               |  2 s without a StatePacket:
//!     |                                                 |  goes on, with an attempt beside it
//!  waiting <--- Refuse(2, 6, 8, 9), Leave(4) -----------+
//!  ended   <--- any other Refuse or Leave
//! ```

mod actions;
mod admission;
mod assembly;
mod attempt;
#[cfg(test)]
mod bounds;
mod client;
mod cookie;
mod copies;
mod figures;
mod gauges;
mod held;
mod info;
mod join;
mod names;
mod operate;
mod outbox;
mod play;
mod server;
mod session;
mod ticks;
mod timers;
mod tokens;
mod welcome;

pub use crate::peers::SessionId;
pub use actions::{ActionGate, Offer};
pub use assembly::{Assembly, MAX_PACKETS};
pub use client::{
    Client, ClientConfig, ClientEnd, ClientEvent, ClientReceived, ClientStatus, InFlight, PushError,
};
pub use figures::{Missing, Traffic};
pub use gauges::{ClientGauges, ServerGauges};
pub use info::{InfoQuery, ServerInfo};
pub use join::{Ban, BanTarget, ClientEntry};
pub use names::{NameError, check_name, fold_name};
pub use server::{Joined, Left, Server, ServerConfig, ServerEvent, ServerReceived};
pub use session::SessionView;
pub use ticks::ServerClock;

use caves_link::retry::RetryPolicy;
use std::time::Duration;

/// An action as a session keeps it.
pub type OwnedAction = caves_wire::caves::Action<String>;

/// Retransmission of Action, EntityQuery, Hello and Join (section 5).
pub const RETRY: RetryPolicy =
    RetryPolicy::uniform(Duration::from_millis(200), Duration::from_millis(300));
/// A client with nothing to say says so this often (R21).
pub const KEEPALIVE: Duration = Duration::from_secs(2);
/// A session ends after this much silence unless configured otherwise (R21).
pub const SESSION_TIMEOUT: Duration = Duration::from_secs(10);
/// Silence after which another address may take a session over (R30, section 2).
pub const MOVE_SILENCE: Duration = Duration::from_secs(3);
/// Events that a receiver keeps ahead of the next one (section 2).
pub const EVENT_WINDOW: usize = 256;
/// A Leave is sent this often, [`LEAVE_GAP`] apart (section 2).
pub const LEAVE_REPEATS: u8 = 3;
/// Between two Leaves (section 2).
pub const LEAVE_GAP: Duration = Duration::from_millis(20);
