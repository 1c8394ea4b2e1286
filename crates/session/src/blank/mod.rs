//! blank: every datagram is numbered and acknowledged, and nothing is repeated by itself.
//!
//! # A client, as the server sees it
//!
//! ```text
//!             any datagram               an echo of our Ping, and a Login
//!   unknown --------------> guest ------------------------------------------> player
//!                             |     the name is free, there is room; else:      |
//!                             |     Part, and the connection is forgotten       | the same Login again:
//!                             |                                                 |   the same Join again
//!                             | 10 s of silence, or                             | a Login of another name:
//!                             | 4096 newer guests                               |   left, and a player anew
//!                             v                                                 v
//!                         forgotten <--- Part from either side, 10 s of silence-+
//! ```
//!
//! A guest is sent no more bytes than came from its address, until it has acknowledged a number that
//! was sent there. Sessions are numbered from a drawn number on, so that an echo cannot be guessed,
//! and a Login waits for that echo: the Join is longer than it. The server sends its first Ping at
//! once, and a real client echoes it with its own next ping, half a second later.
//!
//! # A server, as the client sees it
//!
//! ```text
//!             Ping, Login            Join                  another Join: another world
//!   start ----------------> joining ------> playing <---------------------------------.
//!                            ^  |  |           |  '-----------------------------------'
//!        the Login was lost: |  |  |           |
//!        another one         '--'  |           | Part: kicked;     10 s of silence;
//!                                  |           | the server knows us no more; we leave
//!                                  v           v
//!               Part: refused;    ended <------'
//!               2 min without a Join; 10 s of silence; we leave
//! ```
//!
//! # What is lost, and when that is known
//!
//! ```text
//!   t    0     0.5    1.0    ...   16.5     17.0
//!   we   0 1    2      3            34        35          a number with each ping
//!   ack         0      2     ...    33        34          2 .. 33 came, 1 did not
//!                                             |
//!                                             1 is 33 numbers back: lost, and the Login is sent anew
//! ```
//!
//! There is no other sign of a loss, so a lost Login or Join heals after some 17 s of pings.

mod client;
mod outbox;
mod server;
mod session;

pub use crate::peers::SessionId;
pub use client::{
    Client, ClientConfig, ClientEnd, ClientEvent, ClientReceived, ClientStatus, Joined,
};
pub use server::{Left, MAX_GUESTS, Server, ServerConfig, ServerEvent, ServerReceived};

use std::time::Duration;

/// Whoever has sent nothing for this long sends a ping (section 6).
pub const PING_EVERY: Duration = Duration::from_millis(500);
/// A connection ends after this much silence (section 6).
pub const TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client waits for its Join: six losses one after the other (section 6).
pub const JOIN_WAIT: Duration = Duration::from_secs(120);
/// A Part is sent this often, [`PART_GAP`] apart, and no answer is waited for (section 5).
pub const PART_REPEATS: u8 = 3;
/// Between two Parts.
pub const PART_GAP: Duration = Duration::from_millis(20);
