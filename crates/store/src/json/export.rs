//! From records to lines.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use caves_world::{CHUNK_SIDE, ChunkPos, ChunkRecord, Inventory, PlayerRecord, ThingBody};
use serde::Serialize;
use thiserror::Error;

use super::{FORMAT_NAME, VERSION, lines};
use crate::backend::{Backend, Table};
use crate::codec::{BanRecord, ContentNames, RecordError, ban, chunk, content, meta, player};

/// What tiles are called in a row, beside those of [`symbol_of`]; more than a palette has entries.
const SYMBOLS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-*=~^@&$!";

/// How many of what was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exported {
    /// Registered players.
    pub players: u64,
    /// Bans.
    pub bans: u64,
    /// Chunks.
    pub chunks: u64,
}

/// Why a store could not be written as lines.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum ExportError<E> {
    /// The store cannot be read.
    #[error("{0}")]
    Backend(E),
    /// Nothing was ever saved in it.
    #[error("there is no world in it yet")]
    Empty,
    /// A record cannot be read.
    #[error("{0}, {1}")]
    Record(String, RecordError),
    /// A number without a name in the store's own list.
    #[error("{place} has the {what} number {number}, which has no name in this store")]
    Unnamed {
        /// Whose.
        place: String,
        /// Tile or kind.
        what: &'static str,
        /// Which.
        number: u16,
    },
    /// The sink takes no more.
    #[error("it was not written to the end")]
    Stopped,
}

/// Writes all of `store`, a line at a time and without line ends, into `sink`, until that says `false`.
/// Names are those that the store has for its numbers, whatever this program's content says.
///
/// # Errors
/// [`ExportError`]; the lines so far are not whole, and their reader will see it by the missing last one.
pub fn export<B: Backend>(
    store: &B,
    sink: &mut dyn FnMut(&str) -> bool,
) -> Result<Exported, ExportError<B::Error>> {
    let names = Names::of(&read_names(store)?);
    let mut out = Out { sink };
    let mut done = Exported::default();
    write_head(store, &names, &mut out)?;
    each(store, Table::Players, |key, bytes| {
        done.players += 1;
        let record = player::decode(key, bytes).map_err(|error| unreadable(key, error))?;
        out.line(&lines::Line::Player(player_line(&record, &names)?))
    })?;
    each(store, Table::Bans, |key, bytes| {
        done.bans += 1;
        let record = ban::decode(key, bytes).map_err(|error| unreadable(key, error))?;
        out.line(&lines::Line::Ban(ban_line(record)))
    })?;
    each(store, Table::Chunks, |key, bytes| {
        done.chunks += 1;
        let pos = chunk::pos_of(key).ok_or_else(|| unreadable(key, chunk::no_key()))?;
        let record =
            chunk::decode(pos, bytes).map_err(|error| ExportError::Record(place_of(pos), error))?;
        out.line(&lines::Line::Chunk(chunk_line(pos, &record, &names)?))
    })?;
    out.line(&lines::Line::End(lines::End {}))?;
    Ok(done)
}

fn read_names<B: Backend>(store: &B) -> Result<ContentNames, ExportError<B::Error>> {
    let bytes = store.get(Table::Meta, content::KEY).map_err(ExportError::Backend)?;
    let bytes = bytes.unwrap_or_default();
    // A store that says nothing of names has no records that need one.
    if bytes.is_empty() {
        return Ok(ContentNames::default());
    }
    content::decode(&bytes).map_err(|error| unreadable(content::KEY, error))
}

fn write_head<B: Backend>(
    store: &B,
    names: &Names,
    out: &mut Out<'_>,
) -> Result<(), ExportError<B::Error>> {
    let bytes = store.get(Table::Meta, meta::KEY).map_err(ExportError::Backend)?;
    let meta = meta::decode(&bytes.ok_or(ExportError::Empty)?);
    let world = meta.map_err(|error| unreadable(meta::KEY, error))?.world;
    out.line(&lines::Head {
        format: FORMAT_NAME.to_owned(),
        version: VERSION,
        seed: world.seed,
        generator: world.generator,
        tick: world.tick,
        last_id: world.last_id,
    })?;
    let listed = |names: &BTreeMap<u16, String>| {
        names.iter().map(|(&number, name)| (number, name.clone())).collect()
    };
    let content = lines::Content { tiles: listed(&names.tiles), kinds: listed(&names.kinds) };
    out.line(&lines::Line::Content(content))
}

/// Walks a table with a function that may fail.
fn each<B: Backend>(
    store: &B,
    table: Table,
    mut write: impl FnMut(&[u8], &[u8]) -> Result<(), ExportError<B::Error>>,
) -> Result<(), ExportError<B::Error>> {
    let mut outcome = Ok(());
    let walked = store.walk(table, &mut |key, bytes| {
        outcome = write(key, bytes);
        if outcome.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    walked.map_err(ExportError::Backend).and(outcome)
}

struct Out<'s> {
    sink: &'s mut dyn FnMut(&str) -> bool,
}

impl Out<'_> {
    fn line<E>(&mut self, line: &impl Serialize) -> Result<(), ExportError<E>> {
        // Structs of strings and numbers have no form that JSON lacks.
        let text = serde_json::to_string(line).expect("strings and numbers");
        if (self.sink)(&text) { Ok(()) } else { Err(ExportError::Stopped) }
    }
}

struct Names {
    tiles: BTreeMap<u16, String>,
    kinds: BTreeMap<u16, String>,
}

impl Names {
    fn of(names: &ContentNames) -> Self {
        Self {
            tiles: names.tiles.iter().cloned().collect(),
            kinds: names.kinds.iter().cloned().collect(),
        }
    }

    fn tile<E>(&self, number: u16, place: &str) -> Result<String, ExportError<E>> {
        named(&self.tiles, number, "tile", place)
    }

    fn kind<E>(&self, number: u16, place: &str) -> Result<String, ExportError<E>> {
        named(&self.kinds, number, "kind", place)
    }

    fn inventory<E>(
        &self,
        inventory: &Inventory,
        place: &str,
    ) -> Result<Vec<(String, u16)>, ExportError<E>> {
        inventory.iter().map(|(kind, count)| Ok((self.kind(kind.0, place)?, count))).collect()
    }
}

fn named<E>(
    names: &BTreeMap<u16, String>,
    number: u16,
    what: &'static str,
    place: &str,
) -> Result<String, ExportError<E>> {
    let unnamed = || ExportError::Unnamed { place: place.to_owned(), what, number };
    names.get(&number).cloned().ok_or_else(unnamed)
}

fn unreadable<E>(key: &[u8], error: RecordError) -> ExportError<E> {
    ExportError::Record(format!("{:?}", String::from_utf8_lossy(key)), error)
}

fn place_of(pos: ChunkPos) -> String {
    format!("chunk ({},{})", pos.x, pos.y)
}

fn player_line<E>(record: &PlayerRecord, names: &Names) -> Result<lines::Player, ExportError<E>> {
    let place = format!("player {:?}", record.name);
    Ok(lines::Player {
        name: record.name.clone(),
        x: record.pos.x,
        y: record.pos.y,
        hp: record.hp,
        elo: record.elo,
        inventory: names.inventory(&record.inventory, &place)?,
    })
}

fn ban_line(record: BanRecord) -> lines::Ban {
    let BanRecord { target, is_name, reason, until_unix_s, set_unix_s } = record;
    lines::Ban { target, is_name, reason, until_unix_s, set_unix_s }
}

fn chunk_line<E>(
    pos: ChunkPos,
    record: &ChunkRecord,
    names: &Names,
) -> Result<lines::Chunk, ExportError<E>> {
    let place = place_of(pos);
    let edited = record.edited.as_ref().map(|chunk| tiles_line(chunk, names, &place));
    let residents = record.residents.iter().map(|resident| {
        Ok(lines::Resident {
            kind: names.kind(resident.kind.0, &place)?,
            x: resident.home.x,
            y: resident.home.y,
            elo: resident.elo,
            dead_until: resident.dead_until,
        })
    });
    let things = record.things.iter().map(|thing| {
        let mut line = lines::Thing {
            id: thing.id.0,
            kind: names.kind(thing.kind.0, &place)?,
            x: thing.pos.x,
            y: thing.pos.y,
            chest: None,
            sign: None,
            item: None,
        };
        match &thing.body {
            ThingBody::Chest(inventory) => line.chest = Some(names.inventory(inventory, &place)?),
            ThingBody::Sign(text) => line.sign = Some(text.clone()),
            ThingBody::Item(count) => line.item = Some(*count),
        }
        Ok(line)
    });
    Ok(lines::Chunk {
        x: pos.x,
        y: pos.y,
        generator: record.generator,
        edited: edited.transpose()?,
        residents: residents.collect::<Result<_, _>>()?,
        things: things.collect::<Result<_, _>>()?,
    })
}

fn tiles_line<E>(
    chunk: &caves_world::Chunk,
    names: &Names,
    place: &str,
) -> Result<lines::Tiles, ExportError<E>> {
    let tiles = chunk.palette().iter().map(|tile| names.tile(tile.0, place));
    let tiles: Vec<String> = tiles.collect::<Result<_, _>>()?;
    let mut others = SYMBOLS.chars();
    let symbols = tiles.iter().map(|name| symbol_of(name).or_else(|| others.next()));
    // 64 names use up at most 64 symbols of 72.
    let symbols: Vec<char> = symbols.map(|symbol| symbol.unwrap_or('?')).collect();
    let rows = chunk.indices().chunks_exact(CHUNK_SIDE as usize);
    let row = |row: &[u8]| row.iter().map(|&index| symbols[usize::from(index)]).collect();
    let rows = rows.map(row).collect();
    let palette = symbols.iter().copied().zip(tiles).collect();
    Ok(lines::Tiles { version: chunk.version(), palette, rows })
}

/// What one sees most has a symbol of its own, so that the rows are a picture.
fn symbol_of(name: &str) -> Option<char> {
    match name {
        "core:rock" => Some('#'),
        "core:floor" => Some('.'),
        "core:bedrock" => Some('%'),
        _ => None,
    }
}
