//! The store of a running server, as the loop drives it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use caves_game::{Keep, StoreReply, StoreRequest};
use caves_link::time::{Deadline, Instant};
use caves_store::BanRecord;
use caves_world::{ChunkPos, IDLE_CHUNKS};
use mio::Waker;
use tracing::{info, warn};

use crate::BindError;
use crate::config::{Config, StoreConfig};
use crate::metrics::StoreFigures;
use crate::store::{CloseError, Keeper, Options, Reply, Trouble};

/// What a chunk's record takes, for telling how much is unsaved before it is encoded.
const BYTES_OF_A_CHUNK: usize = 400;
/// While saving fails, the log says so this often.
const STILL_FAILING: Duration = Duration::from_secs(60);
/// Whether it does, or is slow, is looked at this often.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// A save that takes longer is told, once.
const SLOW: Duration = Duration::from_secs(5);

/// A store, and what is under way to it.
#[derive(Debug)]
pub(crate) struct Kept {
    keeper: Keeper,
    /// A read that found no room yet.
    waiting: Option<ChunkPos>,
    /// Bans that changed since they were last saved.
    bans: Option<Vec<BanRecord>>,
    failing: Option<Failing>,
    is_slow: bool,
    /// When trouble that lasts is looked at again.
    look: Deadline,
}

#[derive(Debug)]
struct Failing {
    since: Instant,
    told: Instant,
}

/// A store that was opened for a new server.
pub(crate) struct Beginning {
    pub(crate) kept: Kept,
    pub(crate) keep: Keep,
    pub(crate) bans: Vec<BanRecord>,
}

impl Kept {
    /// Opens the store of a configuration, if it has one.
    pub(crate) fn open(
        config: &Config,
        options: Options,
        waker: Arc<Waker>,
    ) -> Result<Option<Beginning>, BindError> {
        let StoreConfig::File(path) = &config.store else { return Ok(None) };
        let (mut keeper, opened) = Keeper::open(path, options)?;
        refuse_other_seed(path, config.seed, opened.world.map(|world| world.seed))?;
        // Should it fail, the loop wakes by itself within a second.
        let wake = move || drop(waker.wake());
        keeper.start(wake).map_err(BindError::Threads)?;
        let keep = Keep {
            world: opened.world,
            players: opened.players,
            interval: config.save_interval,
            idle_chunks: IDLE_CHUNKS,
        };
        let kept = Self {
            keeper,
            waiting: None,
            bans: None,
            failing: None,
            is_slow: false,
            look: Deadline::at(Instant::ZERO),
        };
        Ok(Some(Beginning { kept, keep, bans: opened.bans }))
    }

    /// These bans go with the next save.
    pub(crate) fn keep_bans(&mut self, bans: Vec<BanRecord>) {
        self.bans = Some(bans);
    }

    /// Carries requests and answers between the game and the threads. Waits for nothing.
    pub(crate) fn turn(&mut self, now: Instant, game: &mut caves_game::Server) {
        while let Some(reply) = self.keeper.poll() {
            match reply {
                Reply::Stored(reply) => {
                    if reply == StoreReply::Saved {
                        self.is_slow = false;
                    }
                    game.handle_stored(now, reply);
                }
                Reply::Trouble(Trouble::Failing(reason)) => self.begin_to_fail(now, &reason, game),
                Reply::Trouble(Trouble::Over) => self.recover(now),
            }
        }
        self.ask(game);
        self.tell(now, game);
    }

    fn ask(&mut self, game: &mut caves_game::Server) {
        loop {
            let request = self.waiting.take().map(StoreRequest::Read);
            match request.or_else(|| game.poll_store()) {
                Some(StoreRequest::Read(pos)) => {
                    if !self.keeper.read(pos) {
                        self.waiting = Some(pos);
                        return;
                    }
                }
                Some(StoreRequest::Save(save)) => {
                    // The game asks for one save at a time, so there is room.
                    if let Err(busy) = self.keeper.save(*save, self.bans.take()) {
                        warn!(%busy, "a save was lost");
                    }
                }
                None => return,
            }
        }
    }

    fn begin_to_fail(&mut self, now: Instant, reason: &str, game: &caves_game::Server) {
        let unsaved = self.unsaved_bytes(game);
        warn!(reason, unsaved_bytes = unsaved, "cannot save; play goes on, and it is tried again");
        // It may be another trouble than before, and no end of it.
        let since = self.failing.as_ref().map_or(now, |failing| failing.since);
        self.failing = Some(Failing { since, told: now });
    }

    fn recover(&mut self, now: Instant) {
        if let Some(failing) = self.failing.take() {
            let failed_s = now.saturating_since(failing.since).as_secs();
            info!(failed_s, "saving works again");
        }
    }

    /// Tells of trouble that lasts.
    fn tell(&mut self, now: Instant, game: &caves_game::Server) {
        if !self.look.is_due(now) {
            return;
        }
        self.look.set(now + LOOK_AGAIN);
        let unsaved_bytes = self.unsaved_bytes(game);
        if let Some(failing) = &mut self.failing {
            if now.saturating_since(failing.told) >= STILL_FAILING {
                failing.told = now;
                let since_s = now.saturating_since(failing.since).as_secs();
                warn!(since_s, unsaved_bytes, "still cannot save");
            }
            return;
        }
        let since = self.keeper.status().saving_since;
        if !self.is_slow && since.is_some_and(|since| since.elapsed() >= SLOW) {
            self.is_slow = true;
            warn!(unsaved_bytes, "the disk is slow: a save takes longer than {SLOW:?}");
        }
    }

    /// What is in memory alone, about: what is being written, and what changed since.
    fn unsaved_bytes(&self, game: &caves_game::Server) -> u64 {
        let waiting = game.unsaved() * BYTES_OF_A_CHUNK;
        (waiting.max(self.keeper.status().unsaved_bytes)) as u64
    }

    /// For the metrics.
    pub(crate) fn figures(&self, game: &caves_game::Server) -> StoreFigures {
        StoreFigures {
            unsaved_bytes: self.unsaved_bytes(game),
            ..StoreFigures::new(&self.keeper.status(), game.unsaved())
        }
    }

    /// Whether the disk takes nothing at the moment, and what it says.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.keeper.status().failing
    }

    pub(crate) fn close(self, deadline: Duration) -> Result<(), CloseError> {
        self.keeper.close(deadline)
    }
}

/// A kept world has its seed; another one in the configuration is a mistake that nobody wants to
/// find out about later.
fn refuse_other_seed(
    path: &Path,
    wanted: Option<u64>,
    stored: Option<u64>,
) -> Result<(), BindError> {
    match (wanted, stored) {
        (Some(wanted), Some(stored)) if wanted != stored => {
            Err(BindError::OtherSeed { path: path.to_owned(), wanted, stored })
        }
        _ => Ok(()),
    }
}
