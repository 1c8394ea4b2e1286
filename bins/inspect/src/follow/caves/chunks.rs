//! Which chunks were sent, and which are still asked for (R11, R12).

use std::collections::VecDeque;

use caves_wire::caves::{ChunkEntry, ChunkVersion};
use serde_json::{Value, json};

use crate::follow::Remarks;

/// Chunks that were sent and are remembered: the nine around a player, some versions deep.
const MAX_SENT: usize = 64;
/// The same version goes to the same session at most once in this time (R12). A cache list that lacks
/// it earlier than that says nothing: it may have crossed the chunk.
const GAP: u64 = 150_000;

/// The chunks of a session.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    manifest: Option<[ChunkEntry; 9]>,
    sent: VecDeque<Sent>,
    count: u64,
    again: u64,
    asked_again: u64,
}

#[derive(Debug)]
struct Sent {
    entry: ChunkEntry,
    micros: Option<u64>,
    /// It was asked for again since it was sent, and that was told.
    told: bool,
}

impl Chunks {
    pub(super) const fn manifest(&mut self, chunks: [ChunkEntry; 9]) {
        self.manifest = Some(chunks);
    }

    pub(super) fn sent(&mut self, micros: Option<u64>, entry: ChunkEntry, remarks: &mut Remarks) {
        self.count += 1;
        if let Some(at) = self.sent.iter().position(|sent| sent.entry == entry) {
            self.again += 1;
            let before = self.sent.remove(at).and_then(|sent| since(sent.micros, micros));
            remarks.push(match before {
                Some(micros) => format!("sent again after {} ms", micros / 1000),
                None => "sent again".to_owned(),
            });
        }
        if self.sent.len() >= MAX_SENT {
            self.sent.pop_front();
        }
        self.sent.push_back(Sent { entry, micros, told: false });
    }

    /// Looks for chunks that were sent at their present version and that the list does not show.
    pub(super) fn asked(
        &mut self,
        micros: Option<u64>,
        cache: &[ChunkEntry; 9],
        remarks: &mut Remarks,
    ) {
        let Some(manifest) = &self.manifest else { return };
        let missing: Vec<ChunkEntry> = manifest
            .iter()
            .filter(|entry| entry.version != ChunkVersion::default() && !cache.contains(entry))
            .copied()
            .collect();
        for sent in self.sent.iter_mut().filter(|sent| !sent.told) {
            let old = since(sent.micros, micros).is_none_or(|micros| micros >= GAP);
            if old && missing.contains(&sent.entry) {
                sent.told = true;
                self.asked_again += 1;
                let ChunkEntry { id, version } = sent.entry;
                let (x, y, version) = (id.x, id.y, version.0);
                remarks.push(format!("lacks chunk {x},{y} v{version}, which was sent"));
            }
        }
    }

    /// A Welcome empties the client's cache (R10).
    pub(super) fn forget(&mut self) {
        self.sent.clear();
    }

    pub(super) fn figures(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("sent", json!(self.count)),
            ("sent_again", json!(self.again)),
            ("asked_again", json!(self.asked_again)),
        ]
    }
}

fn since(before: Option<u64>, now: Option<u64>) -> Option<u64> {
    now?.checked_sub(before?)
}
