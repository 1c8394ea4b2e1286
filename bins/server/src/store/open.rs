//! Opening: all is read once, without changing anything, before a server begins.

use std::path::Path;
use std::time::Instant;

use caves_store::{
    Backend, BanRecord, Batch, ContentNames, Meta, Table, ban, chunk, content, meta, player,
};
use caves_world::{Content, GENERATOR_VERSION, PlayerRecord, WorldRecord};
use tracing::{info, warn};

use super::error::{Damage, StoreError};
use super::file::{DiskError, RedbFile};
use super::migrate::Formats;
use super::paths::{beside, put_in_place, remove_leftover};
use super::survey::{Found, Survey};

/// After an end that was not in order, ids were given that nobody has written down; so many are
/// left out, which is more than are given between two saves (protocol, R33).
const SKIPPED_IDS: u32 = 65_536;

/// What a store held when it was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The world; nothing in a store that nothing was saved in. Its last id is one that no entity has
    /// had, nor any below which is not in the store.
    pub world: Option<WorldRecord>,
    /// All players, by folded name.
    pub players: Vec<PlayerRecord>,
    /// All bans, by target.
    pub bans: Vec<BanRecord>,
    /// Whether the last server ended in order.
    pub was_clean: bool,
}

/// What one reading of a store gives.
struct Examined {
    meta: Option<Meta>,
    names: Option<ContentNames>,
    players: Vec<PlayerRecord>,
    bans: Vec<BanRecord>,
    highest_id: u32,
    survey: Survey,
}

/// Opens a store, or makes one where there is none.
pub(super) fn open(path: &Path, formats: Formats) -> Result<(RedbFile, Opened), StoreError> {
    if !path.try_exists().map_err(StoreError::system(path, "look at"))? {
        create(path)?;
    }
    let started = Instant::now();
    let mut examined = examine(path, formats)?;
    if let Some(found) = examined.meta.map(|meta| meta.format)
        && found < formats.newest
    {
        formats.migrate(path, found)?;
        examined = examine(path, formats)?;
    }
    let names = merged_names(path, &examined)?;
    let file = RedbFile::open(path).map_err(StoreError::disk(path, "open"))?;
    let opened = begin(path, &file, examined.meta, examined.highest_id, &names)?;
    info!(
        store = %path.display(),
        records = examined.survey.total(),
        chunks = examined.survey.readable(Table::Chunks),
        players = examined.survey.readable(Table::Players),
        bans = examined.survey.readable(Table::Bans),
        ms = started.elapsed().as_millis() as u64,
        clean = opened.1,
        "the store is whole"
    );
    let (world, was_clean) = opened;
    Ok((file, Opened { world, players: examined.players, bans: examined.bans, was_clean }))
}

/// A crash leaves no store, or a whole one.
fn create(path: &Path) -> Result<(), StoreError> {
    let unfinished = beside(path, ".new");
    remove_leftover(&unfinished).map_err(StoreError::system(&unfinished, "remove"))?;
    let disk = || StoreError::disk(&unfinished, "create");
    let mut file = RedbFile::create(&unfinished).map_err(disk())?;
    let mut batch = Batch::default();
    put_names(path, &ContentNames::of(&Content::core()), &mut batch)?;
    file.commit(&batch).map_err(disk())?;
    file.close().map_err(disk())?;
    put_in_place(&unfinished, path).map_err(StoreError::system(path, "create"))?;
    info!(store = %path.display(), "a new store was made");
    Ok(())
}

pub(super) fn put_names(
    path: &Path,
    names: &ContentNames,
    batch: &mut Batch,
) -> Result<(), StoreError> {
    let bytes = content::encode(names).map_err(StoreError::record(path))?;
    batch.put(Table::Meta, content::KEY.to_vec(), bytes);
    Ok(())
}

/// The survey of what cannot be opened, or of what can be opened and not be read.
pub(super) fn damage(path: &Path, structure: String) -> StoreError {
    let survey = RedbFile::salvage(path).ok();
    let survey = survey.map(|file| Survey::of_damaged(&file, most_records(path), &mut |_| {}));
    let damage = Damage { path: path.to_owned(), structure: Some(structure), survey };
    StoreError::Damaged(Box::new(damage))
}

/// More records than this no file of its size can hold.
pub(super) fn most_records(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |data| data.len() / 8)
}

fn examine(path: &Path, formats: Formats) -> Result<Examined, StoreError> {
    let file = match RedbFile::examine(path, true) {
        Err(DiskError::Damaged(what)) => return Err(damage(path, what)),
        opened => opened.map_err(StoreError::disk(path, "open"))?,
    };
    // Before anything else is believed: a newer program may have other records.
    if let Some(found) = format_of(path, &file)? {
        formats.check(path, found)?;
    }
    let mut examined = Examined {
        meta: None,
        names: None,
        players: Vec::new(),
        bans: Vec::new(),
        highest_id: 0,
        survey: Survey::default(),
    };
    let survey = Survey::of(&file, &mut |found| examined.take(&found));
    examined.survey = survey.map_err(StoreError::disk(path, "read"))?;
    if !examined.survey.is_whole() {
        let survey = Some(examined.survey);
        let damage = Damage { path: path.to_owned(), structure: None, survey };
        return Err(StoreError::Damaged(Box::new(damage)));
    }
    examined.check(path)?;
    Ok(examined)
}

/// `None` where nothing was saved yet, or the record of it is damaged, which the survey tells.
pub(super) fn format_of(path: &Path, file: &RedbFile) -> Result<Option<u32>, StoreError> {
    let bytes = file.get(Table::Meta, meta::KEY).map_err(StoreError::disk(path, "read"))?;
    Ok(bytes.and_then(|bytes| meta::format_of(&bytes).ok()))
}

impl Examined {
    fn take(&mut self, found: &Found<'_>) {
        // What cannot be read is in the survey.
        match found.table {
            Table::Meta if found.key == meta::KEY => self.meta = meta::decode(found.value).ok(),
            Table::Meta => self.names = content::decode(found.value).ok(),
            Table::Players => self.players.extend(player::decode(found.key, found.value)),
            Table::Bans => self.bans.extend(ban::decode(found.key, found.value)),
            Table::Chunks => {
                let record =
                    chunk::pos_of(found.key).and_then(|pos| chunk::decode(pos, found.value).ok());
                let ids = record.iter().flat_map(|record| record.things.last());
                self.highest_id = ids.map(|thing| thing.id.0).fold(self.highest_id, u32::max);
            }
        }
    }

    fn check(&self, path: &Path) -> Result<(), StoreError> {
        let records = [Table::Chunks, Table::Players].map(|table| self.survey.readable(table));
        match self.meta {
            None if records != [0, 0] => {
                let what = "the world's own record is missing".to_owned();
                Err(damage(path, what))
            }
            Some(meta) if meta.world.generator > GENERATOR_VERSION => Err(StoreError::Generator {
                path: path.to_owned(),
                found: meta.world.generator,
                known: GENERATOR_VERSION,
            }),
            _ => Ok(()),
        }
    }
}

/// The names with those added that the store has not.
fn merged_names(path: &Path, examined: &Examined) -> Result<ContentNames, StoreError> {
    let ours = ContentNames::of(&Content::core());
    let kept = examined.names.clone().unwrap_or_default();
    super::names::merge(&kept, &ours)
        .map_err(|what| StoreError::Content { path: path.to_owned(), what })
}

/// Writes down that a server runs on it, so that the next one knows if this one does not end in order.
fn begin(
    path: &Path,
    file: &RedbFile,
    meta: Option<Meta>,
    highest_id: u32,
    names: &ContentNames,
) -> Result<(Option<WorldRecord>, bool), StoreError> {
    let mut batch = Batch::default();
    put_names(path, names, &mut batch)?;
    let was_clean = meta.is_none_or(|meta| meta.clean);
    let begun = meta.map(|meta| {
        let mut world = meta.world;
        world.last_id = world.last_id.max(highest_id);
        if !was_clean {
            // Also written down: after a second such end before a save, others are left out.
            world.last_id = world.last_id.saturating_add(SKIPPED_IDS);
            warn!(
                store = %path.display(),
                last_id = world.last_id,
                "the last server did not end in order: what it reported as saved is there"
            );
        }
        Meta { world, clean: false, ..meta }
    });
    if let Some(begun) = &begun {
        let bytes = meta::encode(begun).map_err(StoreError::record(path))?;
        batch.put(Table::Meta, meta::KEY.to_vec(), bytes);
    }
    file.commit_shared(&batch).map_err(StoreError::disk(path, "write"))?;
    Ok((begun.map(|meta| meta.world), was_clean))
}
