//! A file that is looked at and not changed: what the database writes stays in memory.
//!
//! Opening a redb file writes to it, even where nothing is wrong. A store whose damage is to be told, or
//! which is exported, must be left as it is.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::ops::Bound;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};

const BLOCK: u64 = 4096;

/// The part of a redb file's first page that is the same in both of its commits (redb's design document).
const HEAD: usize = 32;

/// How it begins.
const MAGIC: &[u8; FLAGS] = b"redb\x1A\x0A\xA9\x0D\x0A";

/// Where its flags are, behind that.
const FLAGS: usize = 9;

/// Where the sizes of pages and regions are.
const GEOMETRY_AT: usize = 12;

/// Pages of 4096 bytes, no page of a region for itself, 1,048,576 for data: what redb makes unless told
/// otherwise, and never changes.
const GEOMETRY: [u8; 12] = [0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0];

/// The flag that says that whoever had it open has not closed it.
const NEEDS_RECOVERY: u8 = 2;

#[derive(Debug)]
pub(super) struct Overlay {
    file: FileBackend,
    /// The file may only be read, and locks are shared.
    read_only: bool,
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    len: u64,
    /// As far as the file itself still shows through; the rest is zero.
    from_file: u64,
    blocks: BTreeMap<u64, Box<[u8]>>,
}

impl Overlay {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let writable = OpenOptions::new().read(true).write(true).open(path);
        let (file, read_only) = match writable {
            Ok(file) => (file, false),
            Err(error) if is_denied(&error) => (File::open(path)?, true),
            Err(error) => return Err(error),
        };
        let len = file.metadata()?.len();
        let file = FileBackend::new(file).map_err(io::Error::other)?;
        let written = Mutex::new(Written { len, from_file: len, blocks: BTreeMap::new() });
        Ok(Self { file, read_only, written })
    }

    /// Makes the database believe of the file what only it can say: that it is one, that it is as long as it
    /// says, and that its last commit is whole. Which it is: commits here have two phases.
    pub(super) fn trust(&self) -> io::Result<()> {
        let mut head = [0; HEAD];
        self.read(0, &mut head)?;
        head[..FLAGS].copy_from_slice(MAGIC);
        head[FLAGS] &= !NEEDS_RECOVERY;
        head[GEOMETRY_AT..][..GEOMETRY.len()].copy_from_slice(&GEOMETRY);
        self.write(0, &head)?;
        let said = length(&head);
        if said > self.len()? {
            self.set_len(said)?;
        }
        Ok(())
    }

    /// One block as it is now.
    fn block(&self, written: &Written, number: u64) -> io::Result<Box<[u8]>> {
        if let Some(block) = written.blocks.get(&number) {
            return Ok(block.clone());
        }
        let mut block = vec![0; BLOCK as usize].into_boxed_slice();
        let start = number * BLOCK;
        let there = written.from_file.saturating_sub(start).min(BLOCK) as usize;
        if there > 0 {
            self.file.read(start, &mut block[..there])?;
        }
        Ok(block)
    }
}

/// The length that the head of a file gives: its first page, full regions, and one that is not.
fn length(head: &[u8; HEAD]) -> u64 {
    let [own_pages, pages, full, rest] = [16, 20, 24, 28]
        .map(|at| u64::from(u32::from_le_bytes([0, 1, 2, 3].map(|n| head[at + n]))));
    let last = if rest > 0 { own_pages + rest } else { 0 };
    let regions = full.saturating_mul(own_pages + pages).saturating_add(last);
    regions.saturating_add(1).saturating_mul(BLOCK)
}

/// A backup on a medium that cannot be written can be exported all the same.
fn is_denied(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
}

/// The blocks that `len` bytes at `offset` touch: number, place within, place in the bytes, how many.
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let at = offset + done as u64;
        let within = (at % BLOCK) as usize;
        let many = (BLOCK as usize - within).min(len - done);
        let piece = (at / BLOCK, within, done, many);
        done += many;
        Some(piece)
    })
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.written.lock().unwrap_or_else(PoisonError::into_inner).len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > written.len) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if written.blocks.is_empty() && offset + out.len() as u64 <= written.from_file {
            return self.file.read(offset, out);
        }
        for (number, within, done, many) in pieces(offset, out.len()) {
            let block = self.block(&written, number)?;
            out[done..done + many].copy_from_slice(&block[within..within + many]);
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if len < written.len {
            // What lies beyond is zero if the file grows again.
            let last = len / BLOCK;
            let mut block = self.block(&written, last)?;
            block[(len % BLOCK) as usize..].fill(0);
            written.blocks.split_off(&last);
            written.blocks.insert(last, block);
            written.from_file = written.from_file.min(len);
        }
        written.len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        for (number, within, done, many) in pieces(offset, data.len()) {
            let mut block = self.block(&written, number)?;
            block[within..within + many].copy_from_slice(&data[done..done + many]);
            written.blocks.insert(number, block);
        }
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        if self.read_only {
            return self.file.try_lock_shared_range(start, end);
        }
        self.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        if self.read_only {
            return self.file.lock_shared_range(start, end);
        }
        self.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.query_lock_range(start, end)
    }
}
