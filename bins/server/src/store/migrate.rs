//! From one format of a store to the next.

use std::path::Path;

use caves_store::{Backend, Batch, FORMAT, Meta, Table, meta};
use tracing::info;

use super::error::StoreError;
use super::file::RedbFile;
use super::paths::{beside, copy};

/// One step from the format before.
pub(super) struct Migration {
    /// The format that it makes.
    pub(super) to: u32,
    /// What it changes. The format's number is changed with it, in the same transaction.
    pub(super) run: fn(&RedbFile) -> Result<Batch, super::file::DiskError>,
}

/// The formats of a program.
#[derive(Clone, Copy)]
pub(super) struct Formats {
    /// The one that it writes.
    pub(super) newest: u32,
    /// The ways to it, ascending.
    pub(super) migrations: &'static [Migration],
}

/// Format 1 is the first: there is nothing to come from yet.
pub(super) const FORMATS: Formats = Formats { newest: FORMAT, migrations: &[] };

impl Formats {
    /// Refuses a store of format `found` that no step leads from, or that is too new.
    pub(super) fn check(self, path: &Path, found: u32) -> Result<(), StoreError> {
        let path = path.to_owned();
        if found > self.newest {
            return Err(StoreError::Newer { path, found, known: self.newest });
        }
        let steps = self.migrations.iter().map(|migration| migration.to);
        if !steps.filter(|&to| to > found).eq(found + 1..=self.newest) {
            return Err(StoreError::NoWay { path, found, wanted: self.newest });
        }
        Ok(())
    }

    /// Brings a file to the newest format, after a copy of it is safe.
    pub(super) fn migrate(self, path: &Path, found: u32) -> Result<(), StoreError> {
        let backup = beside(path, &format!(".v{found}-backup"));
        copy(path, &backup).map_err(StoreError::system(&backup, "write"))?;
        info!(store = %path.display(), copy = %backup.display(), "the store's format is old: a copy was kept");
        let mut file = RedbFile::open(path).map_err(StoreError::disk(path, "open"))?;
        self.steps(path, &mut file, found)?;
        file.close().map_err(StoreError::disk(path, "close"))
    }

    /// The steps alone, also on a file that only seems to be written.
    pub(super) fn steps(
        self,
        path: &Path,
        file: &mut RedbFile,
        found: u32,
    ) -> Result<(), StoreError> {
        for migration in self.migrations.iter().filter(|migration| migration.to > found) {
            let disk = || StoreError::disk(path, "migrate");
            let mut batch = (migration.run)(file).map_err(disk())?;
            let kept = file.get(Table::Meta, meta::KEY).map_err(disk())?.unwrap_or_default();
            let kept = meta::decode(&kept).map_err(StoreError::record(path))?;
            let kept = Meta { format: migration.to, ..kept };
            let bytes = meta::encode(&kept).map_err(StoreError::record(path))?;
            batch.put(Table::Meta, meta::KEY.to_vec(), bytes);
            file.commit(&batch).map_err(disk())?;
            info!(store = %path.display(), format = migration.to, "the store was migrated");
        }
        Ok(())
    }
}
