//! The world as a whole.

use caves_world::WorldRecord;
use serde::{Deserialize, Serialize};

use super::{Place, RecordError, RecordKind};
use crate::backend::Table;

/// The key of [`Meta`] in [`Table::Meta`].
pub const KEY: &[u8] = b"world";

const KIND: RecordKind = RecordKind::Meta;

/// What a store says of itself and of its world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// The format of the whole store, from 1.
    pub format: u32,
    /// The world.
    pub world: WorldRecord,
    /// Whether whoever wrote it last ended in order, so that nothing has happened since.
    pub clean: bool,
}

/// In every version the format comes first, so that any program can say which one it is.
#[derive(Serialize, Deserialize)]
struct MetaV1 {
    format: u32,
    seed: u64,
    generator: u32,
    tick: u64,
    last_id: u32,
    clean: bool,
}

/// The bytes of the world's record.
///
/// # Errors
/// [`RecordError`] for a record that [`decode`] would not take.
pub fn encode(meta: &Meta) -> Result<Vec<u8>, RecordError> {
    if meta.format == 0 {
        return Err(KIND.value("format 0"));
    }
    let WorldRecord { seed, generator, tick, last_id } = meta.world;
    let layout = MetaV1 { format: meta.format, seed, generator, tick, last_id, clean: meta.clean };
    Ok(PLACE.seal(1, &layout))
}

/// The world's record.
///
/// # Errors
/// [`RecordError`] that says what is wrong.
pub fn decode(bytes: &[u8]) -> Result<Meta, RecordError> {
    let MetaV1 { format, seed, generator, tick, last_id, clean } = PLACE.open(bytes)?;
    if format == 0 {
        return Err(KIND.value("format 0"));
    }
    Ok(Meta { format, world: WorldRecord { seed, generator, tick, last_id }, clean })
}

/// The format alone, which can be read of any version: a program has to know whether a store is too
/// new for it.
///
/// ```
/// use caves_store::{Meta, meta};
/// use caves_world::WorldRecord;
///
/// let world = WorldRecord { seed: 7, generator: 1, tick: 0, last_id: 0 };
/// let bytes = meta::encode(&Meta { format: 3, world, clean: true }).unwrap();
/// assert_eq!(meta::format_of(&bytes), Ok(3));
/// ```
///
/// # Errors
/// [`RecordError`] when the checksum is wrong or there is no format.
pub fn format_of(bytes: &[u8]) -> Result<u32, RecordError> {
    let (version, body) = PLACE.unseal(bytes)?;
    let format = postcard::take_from_bytes(body).map(|(format, _)| format);
    format.map_err(|_| KIND.error(super::Fault::Layout { version }))
}

const PLACE: Place<'static> = Place { record: KIND, table: Table::Meta, key: KEY };
