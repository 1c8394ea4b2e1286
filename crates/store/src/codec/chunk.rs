//! Chunks. Positions are kept as places within the chunk, so that none can lie outside.
//!
//! ```
//! use caves_store::chunk;
//! use caves_world::{ChunkPos, ChunkRecord};
//!
//! let pos = ChunkPos { x: -1, y: 0 };
//! assert_eq!(chunk::key(pos), [0x7F, 0xFF, 0xFF, 0xFF, 0x80, 0, 0, 0]);
//! let record = ChunkRecord { generator: 1, edited: None, residents: vec![], things: vec![] };
//! let bytes = chunk::encode(pos, &record).unwrap();
//! assert_eq!(chunk::decode(pos, &bytes), Ok(record));
//! // Under another key it is not that record.
//! assert!(chunk::decode(ChunkPos { x: 0, y: 0 }, &bytes).is_err());
//! ```

use caves_world::{
    CHUNK_TILES, Chunk, ChunkPos, ChunkRecord, EXTENT_FIRST, EXTENT_LAST, EntityId, KindId, Pos,
    Resident, Thing, ThingBody, TileId,
};
use serde::{Deserialize, Serialize};

use super::{Fault, Grown, MAX_TEXT, Place, RecordError, RecordKind, entries, inventory, sixbit};
use crate::backend::Table;

const KIND: RecordKind = RecordKind::Chunk;

#[derive(Serialize, Deserialize)]
struct ChunkV1 {
    generator: u32,
    edited: Option<TilesV1>,
    residents: Grown<ResidentV1>,
    things: Grown<ThingV1>,
}

#[derive(Serialize, Deserialize)]
struct TilesV1 {
    version: u16,
    palette: Grown<u16>,
    /// 768 bytes, four indices in three of them.
    indices: Grown<u8>,
}

#[derive(Serialize, Deserialize)]
struct ResidentV1 {
    kind: u16,
    home: u16,
    elo: u16,
    dead_until: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct ThingV1 {
    id: u32,
    kind: u16,
    place: u16,
    body: BodyV1,
}

/// The order of the variants is part of the layout.
#[derive(Serialize, Deserialize)]
enum BodyV1 {
    Chest(Grown<(u16, u16)>),
    Sign(String),
    Item(u16),
}

/// The key of a chunk: x, then y, so that keys are ordered as positions are.
pub fn key(pos: ChunkPos) -> [u8; 8] {
    let mut key = [0; 8];
    key[..4].copy_from_slice(&((pos.x as u32) ^ 1 << 31).to_be_bytes());
    key[4..].copy_from_slice(&((pos.y as u32) ^ 1 << 31).to_be_bytes());
    key
}

/// The chunk of a key; `None` for what is no key of a chunk within the extent (protocol, R8).
pub fn pos_of(key: &[u8]) -> Option<ChunkPos> {
    let (x, y) = key.split_first_chunk()?;
    let signed = |bytes: [u8; 4]| (u32::from_be_bytes(bytes) ^ 1 << 31) as i32;
    let pos = ChunkPos { x: signed(*x), y: signed(y.try_into().ok()?) };
    is_within_extent(pos).then_some(pos)
}

/// The bytes of a chunk.
///
/// # Errors
/// [`RecordError`] for a record that [`decode`] would not take.
pub fn encode(pos: ChunkPos, record: &ChunkRecord) -> Result<Vec<u8>, RecordError> {
    let layout = ChunkV1 {
        generator: record.generator,
        edited: record.edited.as_ref().map(tiles),
        residents: Grown(each(&record.residents, |resident| flatten_resident(pos, resident))?),
        things: Grown(each(&record.things, |thing| flatten_thing(pos, thing))?),
    };
    let bytes = place(&key(pos)).seal(1, &layout);
    // What a world should never have is found before it replaces what can be read.
    restore(pos, layout)?;
    Ok(bytes)
}

/// The chunk at `pos`.
///
/// # Errors
/// [`RecordError`] that says what is wrong.
pub fn decode(pos: ChunkPos, bytes: &[u8]) -> Result<ChunkRecord, RecordError> {
    restore(pos, place(&key(pos)).open(bytes)?)
}

/// What is wrong with a key that [`pos_of`] does not take.
pub(crate) const fn no_key() -> RecordError {
    KIND.error(Fault::Key)
}

fn place(key: &[u8]) -> Place<'_> {
    Place { record: KIND, table: Table::Chunks, key }
}

fn is_within_extent(pos: ChunkPos) -> bool {
    let extent = EXTENT_FIRST..=EXTENT_LAST;
    extent.contains(&pos.x) && extent.contains(&pos.y)
}

fn each<T, U>(
    list: &[T],
    flatten: impl Fn(&T) -> Result<U, RecordError>,
) -> Result<Vec<U>, RecordError> {
    list.iter().map(flatten).collect()
}

fn tiles(chunk: &Chunk) -> TilesV1 {
    TilesV1 {
        version: chunk.version(),
        palette: Grown(chunk.palette().iter().map(|tile| tile.0).collect()),
        indices: Grown(sixbit::pack(chunk.indices())),
    }
}

fn flatten_resident(pos: ChunkPos, resident: &Resident) -> Result<ResidentV1, RecordError> {
    Ok(ResidentV1 {
        kind: resident.kind.0,
        home: place_in(pos, resident.home)?,
        elo: resident.elo,
        dead_until: resident.dead_until,
    })
}

fn flatten_thing(pos: ChunkPos, thing: &Thing) -> Result<ThingV1, RecordError> {
    let body = match &thing.body {
        ThingBody::Chest(inventory) => BodyV1::Chest(entries(inventory)),
        ThingBody::Sign(text) => BodyV1::Sign(text.clone()),
        ThingBody::Item(count) => BodyV1::Item(*count),
    };
    Ok(ThingV1 { id: thing.id.0, kind: thing.kind.0, place: place_in(pos, thing.pos)?, body })
}

fn place_in(chunk: ChunkPos, pos: Pos) -> Result<u16, RecordError> {
    if pos.chunk() != chunk {
        return Err(KIND.value("something in it lies outside"));
    }
    Ok(pos.index() as u16)
}

fn restore(pos: ChunkPos, layout: ChunkV1) -> Result<ChunkRecord, RecordError> {
    if !is_within_extent(pos) {
        return Err(KIND.value("there is no such chunk"));
    }
    let residents = layout.residents.0.iter().map(|resident| restore_resident(pos, resident));
    let things = layout.things.0.iter().map(|thing| restore_thing(pos, thing));
    let things: Vec<Thing> = things.collect::<Result<_, _>>()?;
    if !things.windows(2).all(|pair| pair[0].id < pair[1].id) {
        return Err(KIND.value("the ids of its things do not ascend"));
    }
    Ok(ChunkRecord {
        generator: layout.generator,
        edited: layout.edited.map(restore_tiles).transpose()?,
        residents: residents.collect::<Result<_, _>>()?,
        things,
    })
}

fn restore_tiles(layout: TilesV1) -> Result<Chunk, RecordError> {
    let indices = sixbit::unpack(&layout.indices.0)
        .ok_or(KIND.value("its tiles are not 768 bytes of indices"))?;
    let palette = layout.palette.0.into_iter().map(TileId).collect();
    Chunk::from_parts(palette, indices, layout.version).ok_or(KIND.value(
        "its palette is not 1 to 64 tiles without repeats, an index is beyond it, or its version is 0",
    ))
}

fn restore_resident(pos: ChunkPos, layout: &ResidentV1) -> Result<Resident, RecordError> {
    Ok(Resident {
        kind: KindId(layout.kind),
        home: tile(pos, layout.home)?,
        elo: layout.elo,
        dead_until: layout.dead_until,
    })
}

fn restore_thing(pos: ChunkPos, layout: &ThingV1) -> Result<Thing, RecordError> {
    if layout.id == 0 {
        return Err(KIND.value("the id of a thing is 0"));
    }
    let body = match &layout.body {
        BodyV1::Chest(entries) => ThingBody::Chest(inventory(&entries.0, KIND)?),
        BodyV1::Sign(text) if text.len() > MAX_TEXT => {
            return Err(KIND.value("the text of a sign has more than 1000 bytes"));
        }
        BodyV1::Sign(text) => ThingBody::Sign(text.clone()),
        BodyV1::Item(0) => return Err(KIND.value("a stack of 0 items")),
        BodyV1::Item(count) => ThingBody::Item(*count),
    };
    let pos = tile(pos, layout.place)?;
    Ok(Thing { id: EntityId(layout.id), kind: KindId(layout.kind), pos, body })
}

fn tile(pos: ChunkPos, place: u16) -> Result<Pos, RecordError> {
    if usize::from(place) >= CHUNK_TILES {
        return Err(KIND.value("something in it lies beyond its 1024 tiles"));
    }
    Ok(pos.tile(place.into()))
}
