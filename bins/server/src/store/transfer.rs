//! A store as lines of JSON, and back.

use std::io::{BufRead, Read, Write};
use std::path::Path;

use caves_session::caves::fold_name;
use caves_store::json::{self, ExportError, Exported, Importer};
use caves_store::{Backend, Batch};
use caves_world::Content;

use super::error::StoreError;
use super::file::{DiskError, RedbFile};
use super::migrate::{FORMATS, Formats};
use super::open::{damage, format_of};
use super::paths::{beside, put_in_place, remove_leftover};

/// No line of an export is nearly as long.
const LONGEST_LINE: u64 = 64 << 20;

/// Bytes of a transaction.
const BATCH: usize = 4 << 20;

/// Writes the store at `path` as lines of JSON into `out`. The store is not changed, and must not be in
/// use; an old format is brought to today's on the way.
///
/// # Errors
/// [`StoreError`] that says what is wrong. What was written until then lacks its last line.
pub fn export(path: &Path, out: &mut dyn Write) -> Result<Exported, StoreError> {
    let file = match RedbFile::examine(path, true) {
        Err(DiskError::Damaged(what)) => return Err(damage(path, what)),
        opened => opened.map_err(StoreError::disk(path, "open"))?,
    };
    let file = migrated(path, file, FORMATS)?;
    let mut failed = None;
    let exported = json::export(&file, &mut |line| {
        failed = writeln!(out, "{line}").err();
        failed.is_none()
    });
    if let Some(reason) = failed {
        return Err(StoreError::Output(reason));
    }
    out.flush().map_err(StoreError::Output)?;
    exported.map_err(|error| match error {
        ExportError::Backend(error) => StoreError::disk(path, "read")(error),
        ExportError::Empty => StoreError::Empty(path.to_owned()),
        other => StoreError::Unexported { path: path.to_owned(), what: other.to_string() },
    })
}

fn migrated(path: &Path, mut file: RedbFile, formats: Formats) -> Result<RedbFile, StoreError> {
    if let Some(found) = format_of(path, &file)? {
        formats.check(path, found)?;
        formats.steps(path, &mut file, found)?;
    }
    Ok(file)
}

/// Makes a store at `path`, where none may be, of the lines of an export. Afterwards there is a whole
/// store, or none. Returns how many lines were read.
///
/// # Errors
/// [`StoreError`] that says which line is wrong, or that something is there already.
pub fn import(input: &mut dyn BufRead, path: &Path) -> Result<u64, StoreError> {
    let refuse_existing = || match path.try_exists() {
        Ok(false) => Ok(()),
        Ok(true) => Err(StoreError::Exists(path.to_owned())),
        Err(reason) => Err(StoreError::system(path, "look at")(reason)),
    };
    refuse_existing()?;
    let unfinished = beside(path, ".new");
    remove_leftover(&unfinished).map_err(StoreError::system(&unfinished, "remove"))?;
    let outcome = import_into(input, &unfinished);
    if outcome.is_err() {
        // What it said matters more than that this may fail too.
        let _ = remove_leftover(&unfinished);
    }
    let lines = outcome?;
    refuse_existing()?;
    put_in_place(&unfinished, path).map_err(StoreError::system(path, "create"))?;
    Ok(lines)
}

fn import_into(input: &mut dyn BufRead, path: &Path) -> Result<u64, StoreError> {
    let disk = || StoreError::disk(path, "write");
    let mut file = RedbFile::create(path).map_err(disk())?;
    let content = Content::core();
    let mut importer = Importer::new(&content, |name| fold_name(name).into_bytes());
    let mut batch = Batch::default();
    let (mut line, mut lines) = (String::new(), 0);
    loop {
        line.clear();
        let read = input.take(LONGEST_LINE).read_line(&mut line);
        let read = read.map_err(|reason| StoreError::Input { line: lines + 1, reason })?;
        if read == 0 {
            break;
        }
        lines += 1;
        importer.line(line.trim_end_matches(['\n', '\r']), &mut batch)?;
        if batch.bytes() > BATCH {
            file.commit(&batch).map_err(disk())?;
            batch = Batch::default();
        }
    }
    importer.finish(&mut batch)?;
    file.commit(&batch).map_err(disk())?;
    file.close().map_err(disk())?;
    Ok(lines)
}
