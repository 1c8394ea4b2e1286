//! What the writer, the reader and the loop have in common.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::file::{DiskError, RedbFile};

/// How a store is doing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Since when a save is under way.
    pub saving_since: Option<Instant>,
    /// What the system says, while saving fails.
    pub failing: Option<String>,
    /// Bytes of the save under way, once it is encoded.
    pub unsaved_bytes: usize,
    /// Saves that are on the disk.
    pub commits: u64,
    /// How long the last one took, without the tries that failed.
    pub last_commit_duration: Option<Duration>,
    /// Chunks that were looked up.
    pub reads: u64,
    /// Of them, those that could not be read.
    pub unreadable: u64,
    /// Records that were not written because they could not be read again: faults of this program.
    pub refused: u64,
}

pub(super) struct Shared {
    pub(super) path: PathBuf,
    /// Open, unless it failed and could not be opened again yet.
    file: Mutex<Option<Arc<RedbFile>>>,
    status: Mutex<Status>,
    stopping: AtomicBool,
    waiting: Mutex<()>,
    stopped: Condvar,
    wake: Box<dyn Fn() + Send + Sync>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it holds one of these: all of redb is contained.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(super) fn new(path: PathBuf, file: RedbFile, wake: Box<dyn Fn() + Send + Sync>) -> Self {
        Self {
            path,
            file: Mutex::new(Some(Arc::new(file))),
            status: Mutex::default(),
            stopping: AtomicBool::new(false),
            waiting: Mutex::new(()),
            stopped: Condvar::new(),
            wake,
        }
    }

    /// The file; opened again where it had failed. redb does nothing more with one after an error.
    pub(super) fn file(&self) -> Result<Arc<RedbFile>, DiskError> {
        let mut slot = lock(&self.file);
        if let Some(file) = &*slot {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(RedbFile::open(&self.path)?);
        *slot = Some(Arc::clone(&file));
        Ok(file)
    }

    /// Lets go of a file that failed. Nothing but the last of its users closes it.
    pub(super) fn discard(&self, failed: &Arc<RedbFile>) {
        let mut slot = lock(&self.file);
        if slot.as_ref().is_some_and(|file| Arc::ptr_eq(file, failed)) {
            *slot = None;
        }
    }

    /// The file for good, if nobody else uses it.
    pub(super) fn take(&self) -> Option<RedbFile> {
        lock(&self.file).take().and_then(Arc::into_inner)
    }

    pub(super) fn status(&self) -> Status {
        lock(&self.status).clone()
    }

    pub(super) fn note(&self, change: impl FnOnce(&mut Status)) {
        change(&mut lock(&self.status));
    }

    pub(super) fn wake(&self) {
        (self.wake)();
    }

    /// Ends all waiting, for good.
    pub(super) fn stop(&self) {
        let _held = lock(&self.waiting);
        self.stopping.store(true, Ordering::Release);
        self.stopped.notify_all();
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Waits, and says whether to go on.
    pub(super) fn pause(&self, time: Duration) -> bool {
        let held = lock(&self.waiting);
        let waited = self.stopped.wait_timeout_while(held, time, |()| !self.is_stopping());
        drop(waited);
        !self.is_stopping()
    }
}
