//! The thread that looks chunks up. It never waits for the one that writes.

use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;

use caves_game::StoreReply;
use caves_store::chunk;
use caves_world::ChunkPos;
use tracing::{error, warn};

use super::file::DiskError;
use super::shared::Shared;

/// Between two tries to open a file that failed.
const AGAIN: Duration = Duration::from_secs(1);

/// A chunk that cannot be read from so many openings of the file never will be.
const TRIES: usize = 2;

pub(super) fn run(shared: &Shared, asked: &Receiver<ChunkPos>, replies: &SyncSender<StoreReply>) {
    while let Ok(pos) = asked.recv() {
        let Some(reply) = read(shared, pos) else { return };
        shared.note(|status| {
            status.reads += 1;
            status.unreadable += u64::from(matches!(reply, StoreReply::Unreadable(_)));
        });
        // No more is asked than the queue of replies holds.
        if replies.send(reply).is_err() {
            return;
        }
        shared.wake();
    }
}

/// `None` when there is nobody left who asks.
fn read(shared: &Shared, pos: ChunkPos) -> Option<StoreReply> {
    let mut tries = 0;
    while !shared.is_stopping() {
        let file = match shared.file() {
            Ok(file) => file,
            // The writer tells of it; that a chunk is unreadable would be said for good.
            Err(_) => {
                shared.pause(AGAIN);
                continue;
            }
        };
        match file.look_up(&chunk::key(pos)) {
            Ok(found) => return Some(decode(pos, found.as_deref())),
            Err(DiskError::Damaged(what)) => return Some(unreadable(pos, &what)),
            Err(error) => {
                tries += 1;
                shared.discard(&file);
                if tries == TRIES {
                    return Some(unreadable(pos, &error.to_string()));
                }
                warn!(chunk = ?(pos.x, pos.y), %error, "cannot read from the store: trying again");
            }
        }
    }
    None
}

fn decode(pos: ChunkPos, found: Option<&[u8]>) -> StoreReply {
    match found.map(|bytes| chunk::decode(pos, bytes)).transpose() {
        Ok(record) => StoreReply::Chunk(pos, record.map(Box::new)),
        Err(fault) => unreadable(pos, &fault.to_string()),
    }
}

fn unreadable(pos: ChunkPos, why: &str) -> StoreReply {
    error!(
        chunk = ?(pos.x, pos.y),
        why,
        "a chunk cannot be read from the store, and nobody enters it: stop, and start once with --repair"
    );
    StoreReply::Unreadable(pos)
}
