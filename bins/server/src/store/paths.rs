//! Files beside the store, and making sure that they are there.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// `caves.redb` and `.new` make `caves.redb.new`.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Seconds of Unix time, 0 on a machine whose clock says it is earlier.
pub(super) fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Puts a whole file in the place of another, or of none: a crash leaves either. It has been closed.
pub(super) fn put_in_place(new: &Path, path: &Path) -> io::Result<()> {
    File::open(new)?.sync_all()?;
    fs::rename(new, path)?;
    sync_folder(path)
}

/// Copies a file so that the copy is whole or absent after a crash.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let unfinished = beside(to, ".new");
    fs::copy(from, &unfinished)?;
    put_in_place(&unfinished, to)
}

/// Takes away what a crash has left unfinished.
pub(super) fn remove_leftover(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
