//! ferravex-net, protocol version 2: inputs are repeated, snapshots replaced, events acknowledged.
//!
//! # A client's session, as the server sees it
//!
//! ```text
//!            Hello: 18 bytes        Hello again: 36 bytes           its session, from its address:
//!            are to its credit      pay for a Welcome of 31         Input or EventAck
//!  stranger ------------------> caller ------------------> welcomed ------------------> session
//!                                 |    <-- same nonce, same Welcome --'                    |
//!                                 | 10 s without a Hello, or                               v
//!                                 v 1023 newer callers               ended: 10 s of silence, by the
//!                              forgotten                             server, or replaced by a newer
//!                                                                    one from the same address
//! ```
//!
//! # The same, as the client sees it
//!
//! ```text
//!  joining: two Hellos, again every 200 to 300 ms ---- Welcome with its nonce ----> playing
//!     | 10 s                                                                          | 10 s without
//!     v                                                                               v anything new
//!   ended: NoAnswer                                     Quit, at any time           ended: Silence
//! ```
//!
//! # What goes to whom
//!
//! | packet | when | lost? |
//! |---|---|---|
//! | Hello | twice at once, and again after 200 to 300 ms | repeated until the Welcome |
//! | Welcome | to each Hello that is paid for | the next Hello asks for it again |
//! | Input | whenever the caller has a new frame, with the five before it | the next has it, too |
//! | | again after 100 ms while the newest frame is not acknowledged, after 1 s otherwise | |
//! | Snapshot | whenever the server has one; only the newest waits | the next replaces it |
//! | ReliableEvent | at once, then every 100 ms | until its own EventAck comes |
//! | EventAck | to each event within the window, also to one known already | the event comes again |
//!
//! The protocol has no goodbye and no refusal: who leaves or is not let in finds silence, and ten
//! seconds of it end everything. It authenticates nobody: whoever sees a session's packets can speak
//! for it. `notes/siblings/ferravex.md` tells what the protocol's page leaves open.
//!
//! ```
//! use caves_link::time::Instant;
//! use caves_session::ferravex::{Client, ClientConfig, ClientEvent, Server, ServerConfig};
//! use caves_session::{Peer, SplitMix};
//!
//! let mut now = Instant::from_secs(1);
//! let mut server = Server::new(ServerConfig::default(), Box::new(SplitMix::new(1)), now);
//! let mut client = Client::new(ClientConfig::default(), Box::new(SplitMix::new(2)), now);
//! let address = Peer { socket: 0, addr: ([127, 0, 0, 1], 5000).into() };
//! let mut buf = [0; 1200];
//! while server.sessions().next().is_none() {
//!     while let Some(len) = client.poll_transmit(now, &mut buf) {
//!         server.handle_datagram(now, address, &buf[..len]);
//!     }
//!     while let Some(transmit) = server.poll_transmit(now, &mut buf) {
//!         client.handle_datagram(now, &buf[..transmit.len]);
//!     }
//!     now = client.poll_timeout().unwrap();
//! }
//! let (id, session) = server.sessions().next().unwrap();
//! assert_eq!(client.player(), Some(session.player()));
//! server.send_event(now, id, b"welcome to the arena").unwrap();
//! while let Some(transmit) = server.poll_transmit(now, &mut buf) {
//!     client.handle_datagram(now, &buf[..transmit.len]);
//! }
//! assert!(matches!(client.poll_event(), Some(ClientEvent::Joined { .. })));
//! assert!(matches!(client.poll_event(), Some(ClientEvent::Event { sequence: 0, .. })));
//! ```

mod admission;
#[cfg(test)]
mod bounds;
mod client;
mod play;
mod server;
mod session;

use std::time::Duration;

use caves_link::retry::RetryPolicy;
use caves_wire::{ErrorKind, ParseError};

pub use crate::peers::SessionId;
pub use client::{
    Client, ClientConfig, ClientEnd, ClientEvent, ClientReceived, ClientStatus, PushError,
};
pub use play::Controls;
pub use server::{
    EventError, Left, Server, ServerConfig, ServerEvent, ServerReceived, SnapshotError,
};
pub use session::{FreshFrames, SessionView};

use crate::DropReason;

/// Silence that ends a session or an attempt, unless configured otherwise; the page leaves it open.
pub const SESSION_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two pairs of Hellos; the page leaves it open.
pub const HELLO_RETRY: RetryPolicy =
    RetryPolicy::uniform(Duration::from_millis(200), Duration::from_millis(300));
/// Between two sendings of one event.
pub const EVENT_RETRY: RetryPolicy =
    RetryPolicy::uniform(Duration::from_millis(100), Duration::from_millis(100));
/// Events of a session that are not acknowledged, at most.
pub const EVENTS_PENDING: usize = 256;
/// Events that a client keeps, from the next one to deliver on.
pub const EVENT_WINDOW: usize = 256;
/// Inputs are repeated after this while the newest frame is not acknowledged.
pub const INPUT_REPEAT: Duration = Duration::from_millis(100);
/// A client with nothing to say repeats its last frames this often.
pub const KEEPALIVE: Duration = Duration::from_secs(1);
/// A frame this far ahead of the newest is no loss but a mistake: it is dropped, or it would keep out
/// all that come before it. Ten seconds of 400 frames, and after ten of silence the session is over.
pub const MAX_AHEAD: u32 = 4096;

/// Under which reason a datagram that does not decode is counted.
fn refusal(error: ParseError) -> DropReason {
    match error.kind {
        ErrorKind::Version => DropReason::Version,
        ErrorKind::PacketType => DropReason::PacketType,
        _ => DropReason::Malformed,
    }
}
