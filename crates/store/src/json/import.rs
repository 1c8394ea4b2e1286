//! From lines to changes of a store.

use std::collections::BTreeSet;

use caves_world::{
    CHUNK_SIDE, CHUNK_TILES, Chunk, ChunkPos, ChunkRecord, Content, EntityId, GENERATOR_VERSION,
    Inventory, KindId, PlayerRecord, Pos, Resident, Thing, ThingBody, TileId, WorldRecord,
};
use serde::de::DeserializeOwned;
use thiserror::Error;

use super::{FORMAT_NAME, VERSION, lines};
use crate::FORMAT;
use crate::backend::{Batch, Table};
use crate::codec::{BanRecord, ContentNames, Meta, RecordError, ban, chunk, content, meta, player};

/// What is wrong with which line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {fault}")]
pub struct ImportError {
    /// Counted from 1.
    pub line: u64,
    /// What is wrong with it.
    pub fault: ImportFault,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ImportFault {
    /// No JSON, or not the fields of such a line.
    #[error("{0}")]
    Json(String),
    /// The file is something else.
    #[error("this is no exported world, whose first line says \"format\":\"{FORMAT_NAME}\"")]
    NoWorld,
    /// A newer program has written it.
    #[error(
        "the file has version {0}, this program knows version {VERSION}: import it with the program that it was written for"
    )]
    Version(u32),
    /// A generator that this program does not have.
    #[error("generator {0} is unknown, this program knows 1 to {GENERATOR_VERSION}")]
    Generator(u32),
    /// The first line is the world's, the second the content's, the last the end.
    #[error("{0}")]
    Order(&'static str),
    /// This program has nothing of that name.
    #[error("there is no {what} called {name:?}")]
    Unknown {
        /// Tile or kind.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// The same a second time.
    #[error("{0} a second time")]
    Twice(String),
    /// An id above the world's last.
    #[error("the id {id} is above the last one, {last}, which the first line says")]
    Id {
        /// The thing's.
        id: u32,
        /// The world's last.
        last: u32,
    },
    /// Not 32 rows of 32 symbols of the palette.
    #[error("{0}")]
    Rows(String),
    /// A value that cannot be.
    #[error("{0}")]
    Record(#[from] RecordError),
}

/// Takes the lines of an export, one after the other.
pub struct Importer<'c> {
    content: &'c Content,
    player_key: fn(&str) -> Vec<u8>,
    line: u64,
    world: Option<WorldRecord>,
    stage: Stage,
    keys: BTreeSet<(Table, Vec<u8>)>,
    ids: BTreeSet<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Head,
    Content,
    Records,
    Ended,
}

impl<'c> Importer<'c> {
    /// For a store whose numbers are those of `content`, and whose players are kept under what
    /// `player_key` makes of their names.
    pub fn new(content: &'c Content, player_key: fn(&str) -> Vec<u8>) -> Self {
        Self {
            content,
            player_key,
            line: 0,
            world: None,
            stage: Stage::Head,
            keys: BTreeSet::new(),
            ids: BTreeSet::new(),
        }
    }

    /// Takes the next line and adds what it says to `batch`. Empty lines say nothing.
    ///
    /// # Errors
    /// [`ImportError`]; the batch is as it was.
    pub fn line(&mut self, text: &str, batch: &mut Batch) -> Result<(), ImportError> {
        self.line += 1;
        if text.trim().is_empty() {
            return Ok(());
        }
        self.take(text, batch).map_err(|fault| ImportError { line: self.line, fault })
    }

    /// Ends it, and adds to `batch` what makes a store of the records: the names with their numbers,
    /// and the world itself.
    ///
    /// # Errors
    /// The last line was not the end.
    pub fn finish(self, batch: &mut Batch) -> Result<(), ImportError> {
        let line = self.line + 1;
        let fault = match (self.stage, self.world) {
            (Stage::Ended, Some(world)) => match seal(world, self.content, batch) {
                Ok(()) => return Ok(()),
                Err(error) => error.into(),
            },
            (Stage::Head, _) => ImportFault::NoWorld,
            _ => ImportFault::Order("the end is missing: the file is not whole"),
        };
        Err(ImportError { line, fault })
    }

    fn take(&mut self, text: &str, batch: &mut Batch) -> Result<(), ImportFault> {
        if self.stage == Stage::Head {
            self.world = Some(head(text)?);
            self.stage = Stage::Content;
            return Ok(());
        }
        let line = parse(text)?;
        match (self.stage, line) {
            (Stage::Content, lines::Line::Content(_)) => self.stage = Stage::Records,
            (Stage::Content, _) => {
                return Err(ImportFault::Order("the second line is the content's"));
            }
            (Stage::Ended, _) => return Err(ImportFault::Order("it comes after the end")),
            (_, lines::Line::Content(_)) => return Err(ImportFault::Twice("content".to_owned())),
            (_, lines::Line::Player(line)) => self.player(line, batch)?,
            (_, lines::Line::Ban(line)) => self.ban(line, batch)?,
            (_, lines::Line::Chunk(line)) => self.chunk(line, batch)?,
            (_, lines::Line::End(_)) => self.stage = Stage::Ended,
        }
        Ok(())
    }

    fn player(&mut self, line: lines::Player, batch: &mut Batch) -> Result<(), ImportFault> {
        let record = PlayerRecord {
            pos: Pos { x: line.x, y: line.y },
            hp: line.hp,
            elo: line.elo,
            inventory: self.inventory(&line.inventory)?,
            name: line.name,
        };
        let key = (self.player_key)(&record.name);
        let bytes = player::encode(&key, &record)?;
        self.put(Table::Players, key, bytes, batch, || format!("player {:?}", record.name))
    }

    fn ban(&mut self, line: lines::Ban, batch: &mut Batch) -> Result<(), ImportFault> {
        let lines::Ban { target, is_name, reason, until_unix_s, set_unix_s } = line;
        let record = BanRecord { target, is_name, reason, until_unix_s, set_unix_s };
        let bytes = ban::encode(&record)?;
        self.put(Table::Bans, ban::key(&record), bytes, batch, || {
            format!("ban of {:?}", record.target)
        })
    }

    fn chunk(&mut self, line: lines::Chunk, batch: &mut Batch) -> Result<(), ImportFault> {
        let pos = ChunkPos { x: line.x, y: line.y };
        check_generator(line.generator)?;
        let residents = line.residents.iter().map(|resident| self.resident(resident));
        let residents = residents.collect::<Result<_, _>>()?;
        let things = line.things.into_iter().map(|thing| self.thing(thing));
        let record = ChunkRecord {
            generator: line.generator,
            edited: line.edited.as_ref().map(|tiles| self.tiles(tiles)).transpose()?,
            residents,
            things: things.collect::<Result<_, _>>()?,
        };
        let bytes = chunk::encode(pos, &record)?;
        for thing in &record.things {
            self.note_id(thing.id.0)?;
        }
        let key = chunk::key(pos).to_vec();
        self.put(Table::Chunks, key, bytes, batch, || format!("chunk ({},{})", pos.x, pos.y))
    }

    fn put(
        &mut self,
        table: Table,
        key: Vec<u8>,
        bytes: Vec<u8>,
        batch: &mut Batch,
        what: impl Fn() -> String,
    ) -> Result<(), ImportFault> {
        if !self.keys.insert((table, key.clone())) {
            return Err(ImportFault::Twice(what()));
        }
        batch.put(table, key, bytes);
        Ok(())
    }

    /// No id comes twice while a world lives (protocol, R33).
    fn note_id(&mut self, id: u32) -> Result<(), ImportFault> {
        let last = self.world.map_or(0, |world| world.last_id);
        if id > last {
            return Err(ImportFault::Id { id, last });
        }
        if !self.ids.insert(id) {
            return Err(ImportFault::Twice(format!("the id {id}")));
        }
        Ok(())
    }

    fn kind(&self, name: &str) -> Result<KindId, ImportFault> {
        let unknown = || ImportFault::Unknown { what: "kind", name: name.to_owned() };
        self.content.kind_id(name).ok_or_else(unknown)
    }

    fn tile(&self, name: &str) -> Result<TileId, ImportFault> {
        let unknown = || ImportFault::Unknown { what: "tile", name: name.to_owned() };
        self.content.tile_id(name).ok_or_else(unknown)
    }

    /// In any order: numbers on this side may be in another.
    fn inventory(&self, entries: &[(String, u16)]) -> Result<Inventory, ImportFault> {
        let mut inventory = Inventory::default();
        for (name, count) in entries {
            let kind = self.kind(name)?;
            if inventory.count(kind) != 0 {
                return Err(ImportFault::Twice(format!("{name:?} in an inventory")));
            }
            if *count == 0 || inventory.add(kind, *count) != 0 {
                let fault = "an inventory holds at most 32 kinds, and at least 1 of each";
                return Err(ImportFault::Rows(fault.to_owned()));
            }
        }
        Ok(inventory)
    }

    fn resident(&self, line: &lines::Resident) -> Result<Resident, ImportFault> {
        Ok(Resident {
            kind: self.kind(&line.kind)?,
            home: Pos { x: line.x, y: line.y },
            elo: line.elo,
            dead_until: line.dead_until,
        })
    }

    fn thing(&self, line: lines::Thing) -> Result<Thing, ImportFault> {
        let body = match (line.chest, line.sign, line.item) {
            (Some(entries), None, None) => ThingBody::Chest(self.inventory(&entries)?),
            (None, Some(text), None) => ThingBody::Sign(text),
            (None, None, Some(count)) => ThingBody::Item(count),
            _ => {
                let fault = "a thing has one of \"chest\", \"sign\" and \"item\"";
                return Err(ImportFault::Json(fault.to_owned()));
            }
        };
        let kind = self.kind(&line.kind)?;
        Ok(Thing { id: EntityId(line.id), kind, pos: Pos { x: line.x, y: line.y }, body })
    }

    fn tiles(&self, line: &lines::Tiles) -> Result<Chunk, ImportFault> {
        let tiles = line.palette.iter().map(|(_, name)| self.tile(name));
        let palette: Vec<TileId> = tiles.collect::<Result<_, _>>()?;
        let symbols: Vec<char> = line.palette.iter().map(|&(symbol, _)| symbol).collect();
        let distinct: BTreeSet<char> = symbols.iter().copied().collect();
        if distinct.len() != symbols.len() {
            return Err(ImportFault::Twice("a symbol of the palette".to_owned()));
        }
        let indices = indices(&line.rows, &symbols)?;
        let faulty = "a palette has 1 to 64 tiles, each once, and a version is not 0";
        Chunk::from_parts(palette, indices, line.version)
            .ok_or_else(|| ImportFault::Rows(faulty.to_owned()))
    }
}

fn seal(world: WorldRecord, content: &Content, batch: &mut Batch) -> Result<(), RecordError> {
    let names = content::encode(&ContentNames::of(content))?;
    let meta = meta::encode(&Meta { format: FORMAT, world, clean: true })?;
    batch.put(Table::Meta, content::KEY.to_vec(), names);
    batch.put(Table::Meta, meta::KEY.to_vec(), meta);
    Ok(())
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, ImportFault> {
    serde_json::from_str(text).map_err(|error| ImportFault::Json(error.to_string()))
}

fn head(text: &str) -> Result<WorldRecord, ImportFault> {
    let any: lines::AnyHead = parse(text).map_err(|_| ImportFault::NoWorld)?;
    if any.format != FORMAT_NAME {
        return Err(ImportFault::NoWorld);
    }
    if any.version != VERSION {
        return Err(ImportFault::Version(any.version));
    }
    let head: lines::Head = parse(text)?;
    check_generator(head.generator)?;
    let lines::Head { seed, generator, tick, last_id, .. } = head;
    Ok(WorldRecord { seed, generator, tick, last_id })
}

fn check_generator(generator: u32) -> Result<(), ImportFault> {
    let known = (1..=GENERATOR_VERSION).contains(&generator);
    known.then_some(()).ok_or(ImportFault::Generator(generator))
}

fn indices(rows: &[String], symbols: &[char]) -> Result<Box<[u8; CHUNK_TILES]>, ImportFault> {
    let side = CHUNK_SIDE as usize;
    if rows.len() != side {
        return Err(ImportFault::Rows(format!("{} rows, a chunk has 32", rows.len())));
    }
    let mut indices = Box::new([0; CHUNK_TILES]);
    for (number, (row, into)) in rows.iter().zip(indices.chunks_exact_mut(side)).enumerate() {
        if row.chars().count() != side {
            let count = row.chars().count();
            return Err(ImportFault::Rows(format!(
                "row {} has {count} symbols, not 32",
                number + 1
            )));
        }
        for (symbol, index) in row.chars().zip(into) {
            let place = symbols.iter().position(|&known| known == symbol).ok_or_else(|| {
                ImportFault::Rows(format!(
                    "row {} has the symbol {symbol:?}, which the palette has not",
                    number + 1
                ))
            })?;
            *index = u8::try_from(place).unwrap_or(u8::MAX);
        }
    }
    Ok(indices)
}
