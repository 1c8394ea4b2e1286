//! Teeworlds 0.6, as DDNet speaks it: chunks in packets, of which the vital ones arrive once and in
//! order.
//!
//! # A client's session, as the server sees it
//!
//! ```text
//!            CONNECT / CONNECTACCEPT         ACCEPT with the token
//!  stranger ------------------------> stranger -----------------> joined --.
//!     |                              (nothing                       |  ^   | CONNECT: answered,
//!     |  CONNECT without TKEN,        is kept)                      |  |   | state stays; then
//!     |  where the server allows it                                 |  '---' ACCEPT: rejoined
//!     +-----------------------------------------------------------> |
//!                                                                   v
//!            left: CLOSE either way, silence, or a vital chunk unacknowledged for too long
//! ```
//!
//! # The same, as the client sees it
//!
//! ```text
//!  connecting: CONNECT every 500 ms
//!      |  CONNECTACCEPT: ACCEPT, again every 1.5 s until something has come back
//!      v
//!  connected ---> closed: CLOSE either way, silence, unacknowledged for too long
//! ```
//!
//! # One connection, either side
//!
//! ```text
//!  send -----> resend queue: 455 chunks, 32,760 bytes ---> acknowledged: forgotten
//!     |             | asked for: all of them, at most 10 times a second
//!     |             | every second: the oldest
//!     v             v
//!    packet being filled --- full, flush(), 500 ms after the last one ---> datagram
//!
//!  datagram -> token? -> ack between the last one and what was sent? -> chunks:
//!                           next     delivered, acknowledged with whatever is sent next
//!                           old      dropped
//!                           ahead    dropped, and what is sent next asks for the missing ones
//!                           not vital, delivered as it comes
//! ```
//!
//! A second after the last datagram a KEEPALIVE goes out. All of these waits are "more than".
//!
//! The section numbers in this module's comments are those of `notes/siblings/teeworlds.md`.
//!
//! ```
//! use caves_link::time::Instant;
//! use caves_session::teeworlds::{Client, ClientConfig, Server, ServerConfig, ServerReceived};
//! use caves_session::{Peer, SplitMix};
//!
//! let now = Instant::from_secs(1);
//! let mut server = Server::new(ServerConfig::default(), &mut SplitMix::new(1), now);
//! let mut client = Client::new(ClientConfig::default(), now);
//! let address = Peer { socket: 0, addr: ([127, 0, 0, 1], 5000).into() };
//! let (mut buf, mut scratch) = ([0; 1400], [0; 1394]);
//! // CONNECT, CONNECTACCEPT; then ACCEPT and a message.
//! let mut heard = Vec::new();
//! for _ in 0..2 {
//!     while let Some(len) = client.poll_transmit(now, &mut buf) {
//!         let received = server.handle_datagram(now, address, &buf[..len], &mut scratch);
//!         if let ServerReceived::Messages { messages, .. } = received {
//!             heard.extend(messages.map(|message| message.data.to_vec()));
//!         }
//!     }
//!     while let Some(transmit) = server.poll_transmit(now, &mut buf) {
//!         client.handle_datagram(now, &buf[..transmit.len], &mut scratch);
//!     }
//!     if client.is_connected() {
//!         client.send(now, true, b"\x2D")?;
//!         client.flush();
//!     }
//! }
//! assert_eq!(heard, [b"\x2D"]);
//! # Ok::<(), caves_session::teeworlds::SendError>(())
//! ```

mod client;
mod messages;
mod outbox;
mod payloads;
mod server;
mod session;
mod token;

pub use crate::peers::SessionId;
pub use client::{Client, ClientConfig, ClientEvent, ClientReceived};
pub use messages::{Message, Messages};
pub use outbox::ANSWERS;
pub use payloads::MAX_WAITING;
pub use server::{Server, ServerConfig, ServerEvent, ServerReceived};
pub use session::{Ended, MAX_UNACKED, MAX_UNACKED_BYTES, SendError, SessionView, vital_cost};

use std::time::Duration;

/// How long a datagram may be, and so the buffer that `poll_transmit` writes to.
pub const MAX_DATAGRAM: usize = caves_wire::teeworlds::MAX_DATAGRAM;
/// Silence, and age of what is unacknowledged, that end a connection: DDNet's own. Vanilla Teeworlds
/// gives up after ten seconds.
pub const TIMEOUT: Duration = Duration::from_secs(100);
/// A CONNECT is repeated after this.
pub const CONNECT_AGAIN: Duration = Duration::from_millis(500);
/// An ACCEPT is repeated after this, while nothing has come back. Longer than the second after which
/// a server that has it says KEEPALIVE: DDNet takes a second ACCEPT for a client that begins anew.
pub const ACCEPT_AGAIN: Duration = Duration::from_millis(1500);
/// What waits goes out this long after the last datagram.
pub const FLUSH: Duration = Duration::from_millis(500);
/// With nothing to send, a KEEPALIVE goes out this long after the last datagram.
pub const KEEPALIVE: Duration = Duration::from_secs(1);
/// The oldest unacknowledged chunk is sent again this long after it was sent last.
pub const RESEND: Duration = Duration::from_secs(1);
/// Between two answers to requests for all that is unacknowledged: ten a second. Seven bytes ask for
/// 32 KiB otherwise (ddnet/ddnet#12635).
pub const ANSWER_GAP: Duration = Duration::from_millis(100);

/// The protocol's waits are over when more than that has passed; deadlines here are due exactly then.
const fn more_than(wait: Duration) -> Duration {
    wait.saturating_add(Duration::from_micros(1))
}
