//! `export` and `import`: files and standard streams around the store's lines of JSON.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use caves_server::store::{self, Exported, StoreError};

/// Where "-" stands for a standard stream.
const STREAM: &str = "-";

/// Why nothing was carried.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CarryError {
    /// The store says no.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file of lines cannot be had.
    #[error("cannot {doing} {}: {reason}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// What the system says.
        reason: io::Error,
    },
}

/// Writes the store at `store` into `file`, which is there wholly or as it was before.
pub(crate) fn export(store: &Path, file: &Path) -> Result<(), CarryError> {
    if file == Path::new(STREAM) {
        store::export(store, &mut io::stdout().lock())?;
        return Ok(());
    }
    let mut unfinished = file.as_os_str().to_owned();
    unfinished.push(".new");
    let unfinished = PathBuf::from(unfinished);
    let exported = write(store, &unfinished).and_then(|exported| {
        let failed = |reason| CarryError::File { path: file.to_owned(), doing: "write", reason };
        std::fs::rename(&unfinished, file).map_err(failed)?;
        Ok(exported)
    });
    if exported.is_err() {
        // What went wrong matters more than that this may fail too.
        let _ = std::fs::remove_file(&unfinished);
    }
    let Exported { players, bans, chunks } = exported?;
    let what = format!("{players} players, {bans} bans and {chunks} chunks");
    let _ = writeln!(io::stderr(), "caves-server: {what} are in {}", file.display());
    Ok(())
}

/// Writes a file and sees to it that it is on the disk.
fn write(store: &Path, path: &Path) -> Result<Exported, CarryError> {
    let failed = |doing| move |reason| CarryError::File { path: path.to_owned(), doing, reason };
    let mut out = BufWriter::new(File::create(path).map_err(failed("create"))?);
    let exported = store::export(store, &mut out)?;
    let file = out.into_inner().map_err(|error| failed("write")(error.into_error()))?;
    file.sync_all().map_err(failed("write"))?;
    Ok(exported)
}

/// Makes the store at `store` of the lines in `file`.
pub(crate) fn import(file: &Path, store: &Path) -> Result<(), CarryError> {
    let lines = if file == Path::new(STREAM) {
        store::import(&mut io::stdin().lock(), store)?
    } else {
        let failed = |reason| CarryError::File { path: file.to_owned(), doing: "read", reason };
        store::import(&mut BufReader::new(File::open(file).map_err(failed)?), store)?
    };
    let _ = writeln!(io::stderr(), "caves-server: {} is made of {lines} lines", store.display());
    Ok(())
}
