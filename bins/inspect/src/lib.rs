//! Looks at recorded datagrams of Forgotten Caves and its siblings.
//!
//! ```text
//!     recording         source: pcap, pcapng, text captures, hex
//!  >  datagram          sessions: between whom; protocols: what it says (`caves_wire`)
//!     follower          follow: what was lost, what came again, what does not fit
//!     line              output: for people, stripped; for machines, JSON
//! ```
//!
//! Recordings are read as streams and everything that is remembered has a bound, so that a recording
//! may be of any length, and may be written by an enemy. [`run::Inspector`] puts the parts together;
//! the program around it is thin.

pub mod args;
pub mod datagram;
pub mod follow;
pub mod output;
pub mod protocols;
pub mod query;
pub mod run;
pub mod sessions;
pub mod source;
