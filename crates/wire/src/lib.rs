//! Zero-copy packets of the Forgotten Caves UDP protocol.
//!
//! This crate is the `wire` rung of the ladder that a datagram climbs and descends:
//!
//! ```text
//!     datagram          bins: a socket
//!  >  wire              here: bytes to views, plain structs to bytes
//!     session           who is talking, what was lost
//!     game              what it means
//!     world             the caves
//! ```
//!
//! # The contract
//!
//! * **Check once, then read freely.** `XView::parse` does all the refusing: exact lengths, counts,
//!   palette bounds, TLV structure. After it, no accessor can fail or panic.
//! * **A view to read, a plain struct to write.** `XView<'_>` borrows the datagram; `X` is built by the
//!   caller and `X::emit` writes exactly `X::len()` bytes into the caller's buffer, or nothing and
//!   a typed error. Neither allocates.
//! * **Errors say where.** [`ParseError`] names the layout, the kind of fault, the offset, what was
//!   needed and what was there.
//! * **Raw numbers stop here.** Wrapping counters leave as [`caves_link::seq::Seq`], ids and
//!   positions as types of their own.
//! * Bytes of a peer never panic and never decide an allocation: there is none.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `simd` | off | tiles packed and unpacked by SSSE3, AVX2 or AVX-512 VBMI, chosen at run time (`caves-sixbit`) |
//! | `teeworlds` | off | packets of Teeworlds 0.6 as DDNet speaks it (`teeworlds`) |
//! | `ferravex` | off | packets of ferravex 2 (`ferravex`) |
//! | `blank` | off | packets of blank (`blank`) |
//!
//! The crate is `no_std` and does without `alloc`. For other languages there are test vectors in
//! `vectors/`: bytes, and what they mean field by field or why they are refused.
//!
//! Section and rule numbers (`R4`, `section 2`) are those of `notes/protocol.md`.
//!
//! ```
//! use caves_wire::caves::{ClientType, Echo, Packet};
//!
//! let mut buf = [0; 1200];
//! let len = Echo::ping(ClientType::OFFICIAL, 7).emit(&mut buf)?;
//! match Packet::parse(&buf[..len])? {
//!     Packet::Ping(ping) => assert_eq!(ping.timestamp_ms(), 7),
//!     other => panic!("{other}"),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![no_std]

#[cfg(test)]
extern crate std;

/// A view's debug form is its printable line: the bytes behind it are rarely what one looks for.
macro_rules! debug_as_display {
    ($($view:ident)*) => {$(
        impl core::fmt::Debug for $view<'_> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(self, f)
            }
        }
    )*};
}

pub mod bits;
#[cfg(feature = "blank")]
pub mod blank;
pub mod caves;
mod emit;
mod error;
#[cfg(feature = "ferravex")]
pub mod ferravex;
pub mod fnv;
#[cfg(feature = "teeworlds")]
pub mod teeworlds;
pub mod text;
pub mod tlv;

pub use error::{EmitError, ErrorKind, ParseError};

/// The longest datagram either side sends, in bytes of UDP payload (transport, hard limit).
pub const MAX_DATAGRAM: usize = 1200;
