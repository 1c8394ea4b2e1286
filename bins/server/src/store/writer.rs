//! The thread that saves: a transaction for each save, tried until it succeeds.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::{Duration, Instant};

use caves_game::{Save, StoreReply};
use caves_session::caves::fold_name;
use caves_store::{BanRecord, Batch, FORMAT, Meta, RecordError, Table, ban, chunk, meta, player};
use caves_world::WorldRecord;
use tracing::error;

use super::file::DiskError;
use super::shared::Shared;

/// Between two tries.
const AGAIN: Duration = Duration::from_secs(1);

/// What is to be saved.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) save: Save,
    pub(super) bans: Option<Vec<BanRecord>>,
}

pub(super) enum Job {
    Save(Arc<Pending>),
    /// Marks the end as one in order, and lets the file go.
    Close(SyncSender<Result<(), String>>),
}

pub(super) struct Writer {
    shared: Arc<Shared>,
    replies: SyncSender<StoreReply>,
    /// The keys of the bans that are in the store.
    bans: BTreeSet<Vec<u8>>,
    /// As last saved; nothing before the first save.
    world: Option<WorldRecord>,
}

impl Writer {
    pub(super) fn new(
        shared: Arc<Shared>,
        replies: SyncSender<StoreReply>,
        bans: &[BanRecord],
    ) -> Self {
        Self { shared, replies, bans: bans.iter().map(ban::key).collect(), world: None }
    }

    pub(super) fn run(mut self, jobs: &Receiver<Job>) {
        while let Ok(job) = jobs.recv() {
            match job {
                Job::Save(pending) => {
                    if !self.save(&pending) {
                        return;
                    }
                }
                Job::Close(done) => {
                    // Whoever waited may have given up.
                    let _ = done.send(self.close());
                    return;
                }
            }
        }
    }

    /// `false` when it was told to give up.
    fn save(&mut self, pending: &Pending) -> bool {
        let batch = self.encode(pending);
        if !self.keep(&batch) {
            return false;
        }
        self.world = Some(pending.save.world);
        if let Some(bans) = &pending.bans {
            self.bans = bans.iter().map(ban::key).collect();
        }
        // The queue of replies has room for it: there is one save at a time.
        let told = self.replies.send(StoreReply::Saved).is_ok();
        self.shared.wake();
        told
    }

    /// An item must not be in two places after a crash: all of a save is one transaction.
    fn encode(&self, pending: &Pending) -> Batch {
        let mut batch = Batch::default();
        for (pos, record) in &pending.save.chunks {
            let key = chunk::key(*pos).to_vec();
            self.put(&mut batch, Table::Chunks, key, chunk::encode(*pos, record));
        }
        for record in &pending.save.players {
            let key = fold_name(&record.name).into_bytes();
            let bytes = player::encode(&key, record);
            self.put(&mut batch, Table::Players, key, bytes);
        }
        if let Some(bans) = &pending.bans {
            self.encode_bans(&mut batch, bans);
        }
        let bytes = meta::encode(&meta_of(pending.save.world, false));
        self.put(&mut batch, Table::Meta, meta::KEY.to_vec(), bytes);
        batch
    }

    fn encode_bans(&self, batch: &mut Batch, bans: &[BanRecord]) {
        let keys: BTreeSet<Vec<u8>> = bans.iter().map(ban::key).collect();
        for gone in self.bans.difference(&keys) {
            batch.delete(Table::Bans, gone.clone());
        }
        for record in bans {
            self.put(batch, Table::Bans, ban::key(record), ban::encode(record));
        }
    }

    /// What could not be read again is not written: what is there stays.
    fn put(
        &self,
        batch: &mut Batch,
        table: Table,
        key: Vec<u8>,
        bytes: Result<Vec<u8>, RecordError>,
    ) {
        match bytes {
            Ok(bytes) => batch.put(table, key, bytes),
            Err(fault) => {
                let what = super::survey::name(table, &key);
                error!(%fault, "{what} is not saved: this is a fault of the program");
                self.shared.note(|status| status.refused += 1);
            }
        }
    }

    /// Commits until it succeeds; `false` when it was told to give up.
    fn keep(&self, batch: &Batch) -> bool {
        let began = Instant::now();
        self.shared.note(|status| {
            status.saving_since.get_or_insert(began);
            status.unsaved_bytes = batch.bytes();
        });
        loop {
            let tried = Instant::now();
            match self.commit(batch) {
                Ok(()) => {
                    self.succeeded(tried);
                    return true;
                }
                Err(error) => self.failed(&error),
            }
            if !self.shared.pause(AGAIN) {
                return false;
            }
        }
    }

    fn commit(&self, batch: &Batch) -> Result<(), DiskError> {
        let file = self.shared.file()?;
        let outcome = file.commit_shared(batch);
        if outcome.is_err() {
            self.shared.discard(&file);
        }
        outcome
    }

    fn succeeded(&self, tried: Instant) {
        self.shared.note(|status| {
            status.saving_since = None;
            status.failing = None;
            status.unsaved_bytes = 0;
            status.commits += 1;
            status.last_commit_duration = Some(tried.elapsed());
        });
    }

    /// The loop tells the operator: it knows what else is not saved.
    fn failed(&self, error: &DiskError) {
        let text = error.to_string();
        let mut is_new = false;
        self.shared.note(|status| {
            is_new = status.failing.as_ref() != Some(&text);
            status.failing = Some(text);
        });
        if is_new {
            self.shared.wake();
        }
    }

    fn close(&self) -> Result<(), String> {
        // Without a save it is not known which ids were given: the next server leaves some out.
        if let Some(world) = self.world {
            let bytes = meta::encode(&meta_of(world, true)).map_err(|fault| fault.to_string())?;
            let mut batch = Batch::default();
            batch.put(Table::Meta, meta::KEY.to_vec(), bytes);
            if !self.keep(&batch) {
                let failing = self.shared.status().failing;
                return Err(failing.unwrap_or_else(|| "given up".to_owned()));
            }
        }
        match self.shared.take() {
            Some(file) => file.close().map_err(|error| error.to_string()),
            // The reader has it for a moment yet, and closes it.
            None => Ok(()),
        }
    }
}

fn meta_of(world: WorldRecord, clean: bool) -> Meta {
    Meta { format: FORMAT, world, clean }
}
