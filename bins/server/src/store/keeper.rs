//! What the loop sees of a store: it asks, goes on, and is woken for the answer.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use std::{fmt, io};

use caves_game::{Save, StoreReply};
use caves_store::BanRecord;
use caves_world::ChunkPos;
use thiserror::Error;

use super::error::StoreError;
use super::file::RedbFile;
use super::migrate::{FORMATS, Formats};
use super::open::{self, Opened};
use super::shared::{Shared, Status};
use super::writer::{Job, Pending, Writer};
use super::{reader, repair};

/// Chunks that were asked for and not yet taken by [`Keeper::poll`]; a full server asks for 9 at a time
/// for each of its players.
pub const READ_QUEUE: usize = 256;

/// How to open a store.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Puts right what can be put right before opening, and gives up the rest.
    pub repair: bool,
}

/// What a store has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// For the game.
    Stored(StoreReply),
    /// For the operator.
    Trouble(Trouble),
}

/// Saving fails, or no longer does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// What the system says. It is tried again every second.
    Failing(String),
    /// All is saved.
    Over,
}

/// A save was refused because one is under way.
#[derive(Debug, Error)]
#[error("a save is under way")]
pub struct Busy {
    /// What was to be saved.
    pub save: Save,
    /// The bans that were to be saved with it.
    pub bans: Option<Vec<BanRecord>>,
}

/// What is lost by an end that could not wait any longer.
#[derive(Debug, Error)]
#[error(
    "{} did not take all within {waited:?} ({reason}): {chunks} chunks and {players} players of the last \
     save are not saved", path.display()
)]
pub struct CloseError {
    /// The store.
    pub path: PathBuf,
    /// How long it was waited.
    pub waited: Duration,
    /// What the system says.
    pub reason: String,
    /// Chunks in the save under way.
    pub chunks: usize,
    /// Players in it.
    pub players: usize,
}

/// Keeps a world in a file. One thread writes, another reads; no call here waits for the disk but
/// [`Keeper::open`] and [`Keeper::close`].
///
/// ```
/// use caves_game::{Save, StoreReply};
/// use caves_server::store::{Keeper, Options, Reply};
/// use caves_world::{World, WorldConfig};
/// use std::time::Duration;
///
/// let folder = std::env::temp_dir().join(format!("caves-doc-{}", std::process::id()));
/// std::fs::create_dir_all(&folder).unwrap();
/// let path = folder.join("caves.redb");
/// let (mut keeper, opened) = Keeper::open(&path, Options::default()).unwrap();
/// assert_eq!(opened.world, None);
/// keeper.start(|| { /* wake the loop */ }).unwrap();
///
/// let world = World::new(WorldConfig::default()).record();
/// keeper.save(Save { world, chunks: vec![], players: vec![] }, None).unwrap();
/// while keeper.poll() != Some(Reply::Stored(StoreReply::Saved)) {
///     std::thread::yield_now();
/// }
/// keeper.close(Duration::from_secs(60)).unwrap();
///
/// let (_, opened) = Keeper::open(&path, Options::default()).unwrap();
/// assert_eq!((opened.world, opened.was_clean), (Some(world), true));
/// # std::fs::remove_dir_all(&folder).unwrap();
/// ```
pub struct Keeper {
    path: PathBuf,
    /// Until the threads have it.
    file: Option<(RedbFile, Vec<BanRecord>)>,
    threads: Option<Threads>,
    /// The save under way: reads of what is in it are answered from here.
    pending: Option<(Arc<Pending>, BTreeMap<ChunkPos, usize>)>,
    /// Answers that needed no disk.
    ready: VecDeque<StoreReply>,
    /// Reads whose answer was not taken yet.
    asked: usize,
    /// What was last said of [`Status::failing`].
    told: Option<String>,
}

struct Threads {
    shared: Arc<Shared>,
    jobs: SyncSender<Job>,
    reads: SyncSender<ChunkPos>,
    replies: Receiver<StoreReply>,
    handles: Vec<JoinHandle<()>>,
}

impl Keeper {
    /// Opens the store at `path`, or makes one where there is none. All records are read once. While it
    /// is open nobody else can have it.
    ///
    /// # Errors
    /// [`StoreError`] that says what is wrong and how to go on. A damaged store is not changed unless
    /// [`Options::repair`] says so.
    pub fn open(path: &Path, options: Options) -> Result<(Self, Opened), StoreError> {
        Self::open_with(path, options, FORMATS)
    }

    pub(super) fn open_with(
        path: &Path,
        options: Options,
        formats: Formats,
    ) -> Result<(Self, Opened), StoreError> {
        if options.repair {
            repair::repair(path, formats)?;
        }
        let (file, opened) = open::open(path, formats)?;
        let keeper = Self {
            path: path.to_owned(),
            file: Some((file, opened.bans.clone())),
            threads: None,
            pending: None,
            ready: VecDeque::new(),
            asked: 0,
            told: None,
        };
        Ok((keeper, opened))
    }

    /// Over a file that does what a test wants, until it fails and is opened again.
    #[cfg(test)]
    pub(super) fn over(path: &Path, file: RedbFile) -> Self {
        Self {
            path: path.to_owned(),
            file: Some((file, Vec::new())),
            threads: None,
            pending: None,
            ready: VecDeque::new(),
            asked: 0,
            told: None,
        }
    }

    /// Starts the threads. They call `wake` when [`Keeper::poll`] has something, from their side.
    ///
    /// # Errors
    /// The system has no threads left.
    pub fn start(&mut self, wake: impl Fn() + Send + Sync + 'static) -> io::Result<()> {
        let Some((file, bans)) = self.file.take() else { return Ok(()) };
        let shared = Arc::new(Shared::new(self.path.clone(), file, Box::new(wake)));
        // A save and the close behind it.
        let (jobs, job_queue) = sync_channel(2);
        let (reads, read_queue) = sync_channel(READ_QUEUE);
        // Every read that may be asked, and one save.
        let (reply, replies) = sync_channel(READ_QUEUE + 1);
        let writer = Writer::new(Arc::clone(&shared), reply.clone(), &bans);
        let for_reader = Arc::clone(&shared);
        let handles = vec![
            Builder::new().name("store-writer".to_owned()).spawn(move || writer.run(&job_queue))?,
            Builder::new()
                .name("store-reader".to_owned())
                .spawn(move || reader::run(&for_reader, &read_queue, &reply))?,
        ];
        self.threads = Some(Threads { shared, jobs, reads, replies, handles });
        Ok(())
    }

    /// Asks for a chunk; `false` when the queue is full, or the threads have not started: ask again later.
    /// What a save under way holds is answered from it.
    pub fn read(&mut self, pos: ChunkPos) -> bool {
        let Some(threads) = &self.threads else { return false };
        if self.asked >= READ_QUEUE {
            return false;
        }
        if let Some((pending, index)) = &self.pending
            && let Some(&place) = index.get(&pos)
        {
            let record = pending.save.chunks[place].1.clone();
            self.ready.push_back(StoreReply::Chunk(pos, Some(Box::new(record))));
            self.asked += 1;
            threads.shared.wake();
            return true;
        }
        let taken = threads.reads.try_send(pos).is_ok();
        self.asked += usize::from(taken);
        taken
    }

    /// Saves, all or nothing: answered by [`StoreReply::Saved`] when it is on the disk. `bans` are all
    /// there are, `None` for those that are kept already.
    ///
    /// # Errors
    /// [`Busy`] with all of it, while one is under way or before [`Keeper::start`].
    pub fn save(&mut self, save: Save, bans: Option<Vec<BanRecord>>) -> Result<(), Box<Busy>> {
        let Some(threads) = self.threads.as_ref().filter(|_| self.pending.is_none()) else {
            return Err(Box::new(Busy { save, bans }));
        };
        let index = save.chunks.iter().enumerate().map(|(place, (pos, _))| (*pos, place)).collect();
        let pending = Arc::new(Pending { save, bans });
        threads.shared.note(|status| status.saving_since = Some(Instant::now()));
        // There is room: the queue holds nothing while nothing is pending. Should the writer have ended,
        // the save stays pending, which is what it is.
        let _ = threads.jobs.try_send(Job::Save(Arc::clone(&pending)));
        self.pending = Some((pending, index));
        Ok(())
    }

    /// The next answer, if there is one.
    pub fn poll(&mut self) -> Option<Reply> {
        let threads = self.threads.as_ref()?;
        let failing = threads.shared.status().failing;
        if failing != self.told {
            self.told.clone_from(&failing);
            return Some(Reply::Trouble(failing.map_or(Trouble::Over, Trouble::Failing)));
        }
        let reply = match self.ready.pop_front() {
            Some(reply) => reply,
            None => threads.replies.try_recv().ok()?,
        };
        match reply {
            StoreReply::Saved => self.pending = None,
            StoreReply::Chunk(..) | StoreReply::Unreadable(_) => self.asked -= 1,
        }
        Some(Reply::Stored(reply))
    }

    /// How it is doing.
    pub fn status(&self) -> Status {
        self.threads.as_ref().map_or_else(Status::default, |threads| threads.shared.status())
    }

    /// Waits for the save under way, writes down that the end was in order, and lets the file go. The
    /// last save should be that of the world as it ends; without one, the next server takes this end for
    /// a crash, and leaves some ids out.
    ///
    /// # Errors
    /// [`CloseError`] after `deadline`: the disk does not take it.
    pub fn close(mut self, deadline: Duration) -> Result<(), CloseError> {
        let Some(threads) = self.threads.take() else { return Ok(()) };
        let until = Instant::now() + deadline;
        let Threads { shared, jobs, reads, replies, handles } = threads;
        drop(reads);
        let outcome = finish(&jobs, until);
        shared.stop();
        if let Err(silence) = outcome {
            // The last save may be safe, and only what comes after it not.
            if replies.try_iter().any(|reply| reply == StoreReply::Saved) {
                self.pending = None;
            }
            return Err(self.unsaved(deadline, shared.status().failing.unwrap_or(silence)));
        }
        drop((jobs, replies));
        for handle in handles {
            // A panic there has been told where it happened.
            let _ = handle.join();
        }
        Ok(())
    }

    fn unsaved(&self, waited: Duration, reason: String) -> CloseError {
        let save = self.pending.as_ref().map(|(pending, _)| &pending.save);
        CloseError {
            path: self.path.clone(),
            waited,
            reason,
            chunks: save.map_or(0, |save| save.chunks.len()),
            players: save.map_or(0, |save| save.players.len()),
        }
    }
}

/// Asks the writer to end behind what it does, and waits for it.
fn finish(jobs: &SyncSender<Job>, until: Instant) -> Result<(), String> {
    let (done, closed) = sync_channel(1);
    // The queue has room for it behind the only save.
    jobs.try_send(Job::Close(done)).map_err(|_| "the writer has ended".to_owned())?;
    match closed.recv_timeout(until.saturating_duration_since(Instant::now())) {
        Ok(outcome) => outcome,
        Err(RecvTimeoutError::Timeout) => Err("a write hangs".to_owned()),
        Err(RecvTimeoutError::Disconnected) => Err("the writer has ended".to_owned()),
    }
}

impl Drop for Keeper {
    /// As a crash would: nothing is waited for.
    fn drop(&mut self) {
        if let Some(threads) = &self.threads {
            threads.shared.stop();
        }
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeper").field("path", &self.path).field("status", &self.status()).finish()
    }
}
