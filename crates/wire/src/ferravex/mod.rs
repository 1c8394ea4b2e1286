//! The packets of ferravex-net, protocol version 2: one file a layout.
//!
//! | kind | layout | flow | bytes |
//! |---|---|---|---|
//! | 1 | [`Hello`] | client to server | 18 |
//! | 2 | [`Input`] | client to server | 19 and 1 to 6 frames of 22: 41 to 151 |
//! | 3 | [`Welcome`] | server to client | 31 |
//! | 4 | [`Snapshot`] | server to client | 28 and 0 to 32 players of 31: 28 to 1020 |
//! | 5 | [`Event`] | server to client | 28 and 0 to 900: 28 to 928 |
//! | 6 | [`EventAck`] | client to server | 26 |
//!
//! Every packet begins with the eight bytes `FERRAVEX`, the version and the kind; all numbers are
//! little-endian. Unlike in [`caves`](crate::caves), unknown kinds and other versions are errors:
//! the protocol has nothing to answer to either.
//!
//! Checks come in this order, and the first that fails is told: over 1200 bytes, header cut, magic,
//! version, kind, fixed part cut, session of zero, counts and caps, the rest cut, bytes behind the
//! end, and then the values, in the order in which they stand.
//!
//! # What the protocol's page contradicts
//!
//! Its text says that a ReliableEvent with the longest payload occupies 924 bytes. Its own list of
//! fields makes 10 + 8 + 8 + 2 + 900 = 928. The list counts: [`Event::MAX_LEN`] is computed from it.
//!
//! `notes/siblings/ferravex.md` has all that the page leaves open and how it is settled here.
//!
//! ```
//! use caves_wire::ferravex::{Hello, Nonce, Packet};
//!
//! let mut buf = [0; 1200];
//! let len = Hello { nonce: Nonce(7) }.emit(&mut buf)?;
//! match Packet::parse(&buf[..len])? {
//!     Packet::Hello(hello) => assert_eq!(hello.nonce(), Nonce(7)),
//!     other => panic!("{other}"),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ack;
mod event;
mod header;
mod hello;
mod ids;
mod input;
mod layout;
mod packet;
mod snapshot;
mod welcome;

pub use ack::{EventAck, EventAckView};
pub use event::{Event, EventView, MAX_PAYLOAD};
pub use header::{HeaderView, Kind, MAGIC, VERSION};
pub use hello::{Hello, HelloView};
pub use ids::{Cookie, EventSequence, InputSequence, Nonce, PlayerId, Tick};
pub use input::{Input, InputFrame, InputView, MAX_FRAMES};
pub use packet::Packet;
pub use snapshot::{MAX_PLAYERS, Player, Snapshot, SnapshotView};
pub use welcome::{Welcome, WelcomeView};

debug_as_display! {
    HelloView InputView WelcomeView SnapshotView EventView EventAckView Packet
}
