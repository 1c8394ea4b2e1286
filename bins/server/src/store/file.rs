//! A redb file as a [`Backend`]. Every call is contained: damage is an error, never a panic.

use std::ops::{Bound, ControlFlow};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fmt, io};

use caves_store::{Backend, Batch, Change, Each, Table};
use redb::{
    Builder, ConcurrencyMode, Database, Range, ReadOnlyDatabase, ReadOnlyTable, ReadableDatabase,
    ReadableTableMetadata, TableDefinition, TableError,
};

use super::contain::contain;
use super::overlay::Overlay;

/// Memory for pages that redb keeps: the chunks of a full server many times over.
const CACHE: usize = 64 << 20;

/// What a file refused, by what can be done about it.
#[derive(Debug)]
pub(super) enum DiskError {
    /// Another process, or another handle of this one, has it open.
    InUse,
    /// The system says no; later it may say yes.
    System(io::Error),
    /// The file is not what redb has written.
    Damaged(String),
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse => f.write_str("in use by another process"),
            Self::System(error) => error.fmt(f),
            Self::Damaged(what) => f.write_str(what),
        }
    }
}

impl DiskError {
    /// All of redb's errors can become its one.
    fn of(error: impl Into<redb::Error>) -> Self {
        match error.into() {
            redb::Error::DatabaseAlreadyOpen | redb::Error::LockProtocolMismatch => Self::InUse,
            redb::Error::Io(error) => Self::of_io(error),
            redb::Error::PreviousIo => Self::System(io::Error::other("an earlier write failed")),
            redb::Error::Corrupted(what) => Self::Damaged(what),
            other => Self::Damaged(other.to_string()),
        }
    }

    /// redb says by two kinds that a file is none of its own, or ends too early.
    fn of_io(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                Self::Damaged(error.to_string())
            }
            _ => Self::System(error),
        }
    }
}

/// Runs what touches a file.
fn guarded<T>(work: impl FnOnce() -> Result<T, DiskError>) -> Result<T, DiskError> {
    contain(work).unwrap_or_else(|panic| Err(DiskError::Damaged(panic)))
}

/// An open file.
pub(super) struct RedbFile {
    /// `None` only once it is closed.
    db: Option<Db>,
    /// The chunks as of the last commit, for [`RedbFile::look_up`]; `None` while there are none.
    chunks: Mutex<Option<Arc<Chunks>>>,
}

type Chunks = ReadOnlyTable<&'static [u8], &'static [u8]>;

enum Db {
    Writable(Database),
    ReadOnly(ReadOnlyDatabase),
}

impl RedbFile {
    /// A new store in a file that is not there yet.
    pub(super) fn create(path: &Path) -> Result<Self, DiskError> {
        guarded(|| Self::of(builder(false).create(path)))
    }

    /// Opens a file and trusts it as far as redb does: it has been examined before.
    pub(super) fn open(path: &Path) -> Result<Self, DiskError> {
        guarded(|| Self::of(builder(false).open(path)))
    }

    /// Opens a file without changing it. With `verify`, the checksum of every page is looked at first.
    pub(super) fn examine(path: &Path, verify: bool) -> Result<Self, DiskError> {
        guarded(|| {
            let overlay = Overlay::open(path).map_err(DiskError::of_io)?;
            if std::fs::metadata(path).map_err(DiskError::of_io)?.len() == 0 {
                return Err(DiskError::Damaged("it is empty".to_owned()));
            }
            Self::of(builder(verify).create_with_backend(overlay))
        })
    }

    /// Opens a damaged file as far as that is possible, without changing it, for reading alone. What keeps
    /// track of free pages is not looked at, and of the rest only what is asked for.
    pub(super) fn salvage(path: &Path) -> Result<Self, DiskError> {
        guarded(|| {
            let overlay = Overlay::open(path).map_err(DiskError::of_io)?;
            overlay.trust().map_err(DiskError::of_io)?;
            let mut builder = builder(false);
            // The mode in which a reader has no need of the free pages; there is no writer.
            builder.set_concurrency_mode(ConcurrencyMode::SingleWriter);
            let opened = builder.open_read_only_with_backend(overlay).map_err(DiskError::of)?;
            Ok(Self { db: Some(Db::ReadOnly(opened)), chunks: Mutex::default() })
        })
    }

    /// Opens a store that lies on something of a test's own.
    #[cfg(test)]
    pub(super) fn over(backend: impl redb::StorageBackend) -> Result<Self, DiskError> {
        guarded(|| Self::of(builder(false).create_with_backend(backend)))
    }

    fn of(opened: Result<Database, redb::DatabaseError>) -> Result<Self, DiskError> {
        let db = Some(Db::Writable(opened.map_err(DiskError::of)?));
        let file = Self { db, chunks: Mutex::default() };
        file.refresh()?;
        Ok(file)
    }

    /// Writes what is left to write, and lets others have the file.
    pub(super) fn close(mut self) -> Result<(), DiskError> {
        let Some(db) = self.db.take() else { return Ok(()) };
        self.forget();
        guarded(|| match db {
            Db::Writable(db) => db.close().map_err(DiskError::of),
            Db::ReadOnly(db) => db.close().map_err(DiskError::of),
        })
    }

    /// The value of a chunk's key as of the last commit. While a file grows, redb begins no transaction,
    /// not even one for reading, before the disk has answered; this one has begun already.
    pub(super) fn look_up(&self, key: &[u8]) -> Result<Option<Vec<u8>>, DiskError> {
        let chunks = self.snapshot().clone();
        guarded(|| {
            let Some(chunks) = chunks else { return Ok(None) };
            let value = chunks.get(key).map_err(DiskError::of)?;
            Ok(value.map(|value| value.value().to_vec()))
        })
    }

    fn refresh(&self) -> Result<(), DiskError> {
        let chunks = self.reading(Table::Chunks, None, |table| Ok(Some(Arc::new(table))))?;
        let before = std::mem::replace(&mut *self.snapshot(), chunks);
        guarded(|| {
            drop(before);
            Ok(())
        })
    }

    fn forget(&self) {
        let before = self.snapshot().take();
        let _ = contain(|| drop(before));
    }

    fn snapshot(&self) -> MutexGuard<'_, Option<Arc<Chunks>>> {
        // Nothing panics while it is held.
        self.chunks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many keys the table says that it has.
    pub(super) fn count(&self, table: Table) -> Result<u64, DiskError> {
        self.reading(table, 0, |table| table.len().map_err(DiskError::of))
    }

    /// As [`Backend::walk`], over some of the keys, from either end.
    pub(super) fn walk_range(
        &self,
        table: Table,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        backwards: bool,
        each: &mut Each<'_>,
    ) -> Result<(), DiskError> {
        self.reading(table, (), |table| {
            let entries: Range<'_, &[u8], &[u8]> =
                table.range::<&[u8]>(range).map_err(DiskError::of)?;
            let mut visit = |entry: Result<_, redb::StorageError>| {
                let (key, value): (redb::AccessGuard<'_, &[u8]>, redb::AccessGuard<'_, &[u8]>) =
                    entry.map_err(DiskError::of)?;
                Ok(each(key.value(), value.value()))
            };
            if backwards {
                visit_all(entries.rev(), &mut visit)
            } else {
                visit_all(entries, &mut visit)
            }
        })
    }

    /// Makes the file as small as it can be.
    #[cfg(test)]
    pub(super) fn compact(&mut self) {
        self.forget();
        let Some(Db::Writable(db)) = &mut self.db else { panic!("it is not open") };
        while db.compact().unwrap() {}
    }

    /// A table that nothing was ever put into is not there: `empty` is the answer then.
    fn reading<T>(
        &self,
        table: Table,
        empty: T,
        read: impl FnOnce(ReadOnlyTable<&'static [u8], &'static [u8]>) -> Result<T, DiskError>,
    ) -> Result<T, DiskError> {
        guarded(|| {
            let reading = match self.db()? {
                Db::Writable(db) => db.begin_read(),
                Db::ReadOnly(db) => db.begin_read(),
            };
            let reading = reading.map_err(DiskError::of)?;
            match reading.open_table(definition(table)) {
                Ok(table) => read(table),
                Err(TableError::TableDoesNotExist(_)) => Ok(empty),
                Err(error) => Err(DiskError::of(error)),
            }
        })
    }

    fn db(&self) -> Result<&Db, DiskError> {
        self.db.as_ref().ok_or_else(|| DiskError::System(io::Error::other("it is closed")))
    }
}

impl Drop for RedbFile {
    fn drop(&mut self) {
        // Closing writes, and a panic in there is no better than one elsewhere.
        self.forget();
        let db = self.db.take();
        let _ = contain(|| drop(db));
    }
}

impl Backend for RedbFile {
    type Error = DiskError;

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, DiskError> {
        self.reading(table, None, |table| {
            let value = table.get(key).map_err(DiskError::of)?;
            Ok(value.map(|value| value.value().to_vec()))
        })
    }

    fn walk(&self, table: Table, each: &mut Each<'_>) -> Result<(), DiskError> {
        self.walk_range(table, (Bound::Unbounded, Bound::Unbounded), false, each)
    }

    fn commit(&mut self, batch: &Batch) -> Result<(), DiskError> {
        self.commit_shared(batch)
    }
}

impl RedbFile {
    /// redb has one writer at a time by itself, so that two threads may share a file.
    pub(super) fn commit_shared(&self, batch: &Batch) -> Result<(), DiskError> {
        guarded(|| {
            let Db::Writable(db) = self.db()? else {
                return Err(DiskError::System(io::Error::other("it is open for reading alone")));
            };
            let mut writing = db.begin_write().map_err(DiskError::of)?;
            // With one phase, recovery tells a commit that was interrupted from one that was not by
            // its checksums; damage to a finished one would go back to the commit before, silently.
            writing.set_two_phase_commit(true);
            for changes in batch.changes().chunk_by(|a, b| a.table == b.table) {
                apply(&writing, changes)?;
            }
            writing.commit().map_err(DiskError::of)
        })?;
        self.refresh()
    }
}

fn apply(writing: &redb::WriteTransaction, changes: &[Change]) -> Result<(), DiskError> {
    let mut table = writing.open_table(definition(changes[0].table)).map_err(DiskError::of)?;
    for Change { key, value, .. } in changes {
        match value {
            Some(value) => table.insert(key.as_slice(), value.as_slice()).map(drop),
            None => table.remove(key.as_slice()).map(drop),
        }
        .map_err(DiskError::of)?;
    }
    Ok(())
}

fn visit_all<T>(
    entries: impl Iterator<Item = T>,
    visit: &mut impl FnMut(T) -> Result<ControlFlow<()>, DiskError>,
) -> Result<(), DiskError> {
    for entry in entries {
        if visit(entry)?.is_break() {
            break;
        }
    }
    Ok(())
}

fn builder(verify: bool) -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE).set_check_integrity_on_open(verify);
    builder
}

fn definition(table: Table) -> TableDefinition<'static, &'static [u8], &'static [u8]> {
    TableDefinition::new(table.name())
}
