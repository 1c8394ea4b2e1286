//! Putting right what can be put right: a new file of all records that vouch for themselves.
//!
//! redb's own repair either finds all pages whole or nothing usable: one damaged page would be a lost
//! world. Here a record is what is lost or kept, since each has its own checksum.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use caves_store::{Backend, Batch, ContentNames, Meta, Table, content, meta};
use caves_world::Content;
use serde_json::json;
use tracing::{info, warn};

use super::error::StoreError;
use super::file::{DiskError, RedbFile};
use super::migrate::Formats;
use super::open::{format_of, most_records, put_names};
use super::paths::{beside, copy, put_in_place, remove_leftover, unix_s};
use super::survey::{Found, Survey, hex, name};

/// What nothing can be put right without.
const NO_WORLD: &str =
    "the world's own record, with the seed of all that nobody has visited, cannot be read";

/// Bytes of a transaction while a file is written anew.
const BATCH: usize = 4 << 20;

/// Repairs the store, if anything is wrong with it. It is not opened.
pub(super) fn repair(path: &Path, formats: Formats) -> Result<(), StoreError> {
    if !path.try_exists().map_err(StoreError::system(path, "look at"))? {
        return Err(StoreError::Nothing(path.to_owned()));
    }
    let Some(unsound) = examine(path, formats)? else {
        info!(store = %path.display(), "nothing is damaged: nothing to repair");
        return Ok(());
    };
    let kept = beside(path, &format!(".damaged-{}", unix_s()));
    copy(path, &kept).map_err(StoreError::system(&kept, "write"))?;
    let hopeless = |why: &str| {
        let (path, copy) = (path.to_owned(), kept.clone());
        StoreError::Hopeless { path, why: why.to_owned(), copy }
    };
    let Unsound { file, why } = unsound;
    let Some(file) = file else { return Err(hopeless(&why)) };
    let saved = salvage(path, &kept, &file).map_err(|error| {
        // Nobody needs half a store; should it stay, the next who makes one removes it.
        let _ = remove_leftover(&beside(path, ".new"));
        match error {
            Unsaved::Store(error) => error,
            Unsaved::NoWorld => hopeless(NO_WORLD),
        }
    })?;
    // Nobody may have it open while another takes its place.
    drop(file);
    put_in_place(&saved.file, path).map_err(StoreError::system(path, "write"))?;
    tell(path, &kept, &saved);
    Ok(())
}

/// A file with something wrong: open if it can be, and what redb says.
struct Unsound {
    file: Option<RedbFile>,
    why: String,
}

/// `None` when all is well.
fn examine(path: &Path, formats: Formats) -> Result<Option<Unsound>, StoreError> {
    let refused = match RedbFile::examine(path, true) {
        Ok(file) => {
            if let Some(found) = format_of(path, &file)? {
                formats.check(path, found)?;
            }
            let survey = Survey::of(&file, &mut |_| {});
            let has_world = file.get(Table::Meta, meta::KEY).is_ok_and(|found| found.is_some());
            return Ok(match survey {
                Ok(survey) if survey.is_whole() && (has_world || is_fresh(&survey)) => None,
                Ok(survey) => Some(Unsound { file: Some(file), why: survey.to_string() }),
                Err(error) => Some(Unsound { file: Some(file), why: error.to_string() }),
            });
        }
        Err(DiskError::Damaged(what)) => what,
        Err(error) => return Err(StoreError::disk(path, "open")(error)),
    };
    match RedbFile::salvage(path) {
        Ok(file) => Ok(Some(Unsound { file: Some(file), why: refused })),
        Err(DiskError::Damaged(why)) => Ok(Some(Unsound { file: None, why })),
        Err(error) => Err(StoreError::disk(path, "open")(error)),
    }
}

fn is_fresh(survey: &Survey) -> bool {
    [Table::Chunks, Table::Players].iter().all(|&table| survey.readable(table) == 0)
}

struct Saved {
    /// The new file, closed.
    file: PathBuf,
    survey: Survey,
    /// Where the bytes of unreadable records are, if there were any.
    unreadable: Option<PathBuf>,
}

enum Unsaved {
    Store(StoreError),
    NoWorld,
}

impl From<StoreError> for Unsaved {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

fn salvage(path: &Path, kept: &Path, from: &RedbFile) -> Result<Saved, Unsaved> {
    let file = beside(path, ".new");
    remove_leftover(&file).map_err(StoreError::system(&file, "remove"))?;
    let new = RedbFile::create(&file).map_err(StoreError::disk(&file, "create"))?;
    let mut salvage = Salvage {
        new,
        batch: Batch::default(),
        meta: None,
        names: None,
        unreadable: Unreadable { path: beside(kept, ".jsonl"), out: None },
        failed: None,
        file: &file,
    };
    let survey = Survey::of_damaged(from, most_records(path), &mut |found| salvage.take(&found));
    let unreadable = salvage.finish()?;
    Ok(Saved { file, survey, unreadable })
}

struct Salvage<'p> {
    new: RedbFile,
    batch: Batch,
    meta: Option<Meta>,
    names: Option<ContentNames>,
    unreadable: Unreadable,
    failed: Option<StoreError>,
    file: &'p Path,
}

impl Salvage<'_> {
    fn take(&mut self, found: &Found<'_>) {
        if self.failed.is_none() {
            self.failed = self.keep(found).err();
        }
    }

    fn keep(&mut self, found: &Found<'_>) -> Result<(), StoreError> {
        let Found { table, key, value, fault } = found;
        if fault.is_some() {
            let path = self.unreadable.path.clone();
            return self.unreadable.write(found).map_err(StoreError::system(&path, "write"));
        }
        match *table {
            Table::Meta if *key == meta::KEY => self.meta = meta::decode(value).ok(),
            Table::Meta => self.names = content::decode(value).ok(),
            table => self.batch.put(table, key.to_vec(), value.to_vec()),
        }
        if self.batch.bytes() > BATCH {
            let batch = std::mem::take(&mut self.batch);
            self.new.commit(&batch).map_err(StoreError::disk(self.file, "write"))?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Option<PathBuf>, Unsaved> {
        if let Some(error) = self.failed {
            return Err(error.into());
        }
        let meta = Meta { clean: false, ..self.meta.ok_or(Unsaved::NoWorld)? };
        let bytes = meta::encode(&meta).map_err(StoreError::record(self.file))?;
        self.batch.put(Table::Meta, meta::KEY.to_vec(), bytes);
        // Numbers are given for good, so that this program's are those of the store that lost them.
        let names = self.names.unwrap_or_else(|| ContentNames::of(&Content::core()));
        put_names(self.file, &names, &mut self.batch)?;
        self.new.commit(&self.batch).map_err(StoreError::disk(self.file, "write"))?;
        self.new.close().map_err(StoreError::disk(self.file, "write"))?;
        let path = self.unreadable.path.clone();
        Ok(self.unreadable.finish().map_err(StoreError::system(&path, "write"))?)
    }
}

/// The bytes of records that cannot be read, for whoever wants to look at them.
struct Unreadable {
    path: PathBuf,
    out: Option<BufWriter<File>>,
}

impl Unreadable {
    fn write(&mut self, found: &Found<'_>) -> io::Result<()> {
        let out = match &mut self.out {
            Some(out) => out,
            none => none.insert(BufWriter::new(File::create(&self.path)?)),
        };
        let line = json!({
            "table": found.table.name(),
            "what": name(found.table, found.key),
            "why": found.fault.as_ref().map(ToString::to_string),
            "key": hex(found.key),
            "value": hex(found.value),
        });
        writeln!(out, "{line}")
    }

    fn finish(self) -> io::Result<Option<PathBuf>> {
        let Some(out) = self.out else { return Ok(None) };
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        Ok(Some(self.path))
    }
}

fn tell(path: &Path, kept: &Path, saved: &Saved) {
    warn!(
        store = %path.display(),
        copy = %kept.display(),
        unreadable = saved.unreadable.as_ref().map(|path| path.display().to_string()),
        kept = saved.survey.total() - saved.survey.lost(),
        lost = saved.survey.lost(),
        "the store was repaired: {}; lost chunks are as if nobody had visited them, lost players begin anew",
        saved.survey
    );
}
