//! What a world is kept as: records, their bytes, a store's interface, and a form to carry it elsewhere.
//!
//! ```text
//!    caves-world    records: plain values
//!  > here           bytes with a version and a checksum; tables; lines of JSON
//!    bins/server    a file, threads, the disk
//! ```
//!
//! * [`chunk`], [`player`], [`meta`], [`ban`], [`content`] encode one kind of record each. The world
//!   sees no bytes, so its types may change while those that are on disks stay what they are.
//! * [`Backend`] is what a store has to do: named tables, and batches that happen wholly or not at all.
//!   [`Memory`] is one.
//! * [`json`] writes a store as lines of JSON and reads them again.
//!
//! No IO, no clock, no thread: a store on a disk is the server's.
//!
//! ```
//! use caves_store::{Backend, Batch, Memory, Meta, Table, meta};
//! use caves_world::{World, WorldConfig};
//!
//! let world = World::new(WorldConfig { seed: 7, ..WorldConfig::default() });
//! let kept = Meta { format: caves_store::FORMAT, world: world.record(), clean: true };
//! let mut batch = Batch::default();
//! batch.put(Table::Meta, meta::KEY.to_vec(), meta::encode(&kept).unwrap());
//!
//! let mut store = Memory::default();
//! store.commit(&batch).unwrap();
//! let bytes = store.get(Table::Meta, meta::KEY).unwrap().unwrap();
//! assert_eq!(meta::decode(&bytes), Ok(kept));
//! ```

pub mod backend;
mod codec;
pub mod json;

pub use backend::{Backend, Batch, Change, Each, Memory, Table};
pub use codec::{
    BanRecord, ContentNames, Fault, MAX_NAME, MAX_TEXT, Meta, RecordError, RecordKind, ban, check,
    chunk, content, meta, player,
};

/// The format of a store that this program writes: which tables there are, and what their keys are. A
/// record's own layout has a version of its own.
pub const FORMAT: u32 = 1;
