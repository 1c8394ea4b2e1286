//! The store: a world in a file, kept by two threads.
//!
//! ```text
//!   loop      game asks to read, to save      Keeper: never waits
//!             |                      ^
//!   threads   reader   writer        answers, a call that wakes the loop
//!             |        |
//!   file      redb: snapshots, and one transaction for each save
//! ```
//!
//! [`Keeper`] is what a server has. [`export`] and [`import`] carry a store elsewhere as lines of JSON
//! (`caves_store::json`). `notes/decisions/0019-store.md` says why it is so.

mod contain;
mod error;
mod file;
mod keeper;
mod migrate;
mod names;
mod open;
mod overlay;
mod paths;
mod reader;
mod repair;
mod shared;
mod survey;
#[cfg(test)]
mod tests;
mod transfer;
mod writer;

pub use caves_store::json::Exported;
pub use error::{Damage, StoreError};
pub use keeper::{Busy, CloseError, Keeper, Options, READ_QUEUE, Reply, Trouble};
pub use open::Opened;
pub use shared::Status;
pub use transfer::{export, import};
