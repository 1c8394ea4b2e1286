//! What is kept of the game, and when it is asked to be kept.
//!
//! A save holds all that changed up to one moment between two ticks: a player and the chunk it took
//! something from are in the same one, so that nothing is ever in two places. There is one save under way
//! at most; what changes meanwhile waits in the world, and goes with the next one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use caves_link::time::{Deadline, Instant};
use caves_session::caves::{Joined, SessionId, fold_name};
use caves_world::{ChunkPos, EntityId, PlayerRecord, Pos, SPAWN};

use super::{Server, ServerEvent};
use crate::save::{Keep, Save, StoreReply, StoreRequest};

/// A registered player whose place cannot be read waits this long to be let in there; then it
/// enters at the spawn, with what it carries.
const ARRIVAL_PATIENCE: Duration = Duration::from_secs(3);

/// The game's side of a store.
#[derive(Debug)]
pub(super) struct Keeping {
    interval: Duration,
    next_save: Deadline,
    /// Registered players by their folded name, as they were last taken or left. As many as there are
    /// registered clients, past and present.
    players: BTreeMap<String, PlayerRecord>,
    /// Those of them that changed since a save was taken.
    changed: BTreeSet<String>,
    /// Players whose place is being read; no more than there are sessions.
    arriving: Vec<Arriving>,
    /// Chunks to be read: at most those around players and arrivals, each once.
    wanted: VecDeque<ChunkPos>,
    save: Option<Box<Save>>,
    /// A save was taken and is not yet safe.
    is_saving: bool,
    /// Whether a save is to be taken as soon as none is under way.
    wish: Wish,
    taken: u64,
    safe: u64,
    /// Reused.
    found: Vec<ChunkPos>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wish {
    Nothing,
    /// It is time: what changed is saved, if anything did.
    Due,
    /// Somebody asked, and waits for the answer.
    Asked,
}

#[derive(Debug)]
struct Arriving {
    joined: Joined,
    since: Instant,
}

/// Names a moment that is to be saved; see [`Server::is_safe`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SaveTicket(u64);

impl Keeping {
    pub(super) fn new(keep: Keep, now: Instant) -> Self {
        let players = keep.players.into_iter();
        Self {
            interval: keep.interval,
            next_save: Deadline::at(now + keep.interval),
            players: players.map(|record| (fold_name(&record.name), record)).collect(),
            changed: BTreeSet::new(),
            arriving: Vec::new(),
            wanted: VecDeque::new(),
            save: None,
            is_saving: false,
            wish: Wish::Nothing,
            taken: 0,
            safe: 0,
            found: Vec::new(),
        }
    }

    fn note(&mut self, record: PlayerRecord) {
        let name = fold_name(&record.name);
        if self.players.get(&name) != Some(&record) {
            self.changed.insert(name.clone());
            self.players.insert(name, record);
        }
    }
}

impl Server {
    /// What should be read or written next, when a world is kept. Each is told once; the answer
    /// comes by [`Server::handle_stored`].
    pub fn poll_store(&mut self) -> Option<StoreRequest> {
        let keeping = self.keeping.as_mut()?;
        if let Some(save) = keeping.save.take() {
            return Some(StoreRequest::Save(save));
        }
        keeping.wanted.pop_front().map(StoreRequest::Read)
    }

    /// Takes what became of a [`StoreRequest`].
    pub fn handle_stored(&mut self, now: Instant, reply: StoreReply) {
        let Some(keeping) = &mut self.keeping else { return };
        match reply {
            // Nobody is here any more who would see it.
            StoreReply::Chunk(..) if self.next_tick.is_none() => {}
            StoreReply::Chunk(pos, record) => {
                if self.world.provide(pos, record.map(|record| *record)).is_err() {
                    self.events.push_back(ServerEvent::ChunkUnreadable { pos });
                }
                self.let_in(now);
            }
            StoreReply::Unreadable(pos) => {
                self.events.push_back(ServerEvent::ChunkUnreadable { pos });
            }
            StoreReply::Saved => {
                if std::mem::take(&mut keeping.is_saving) {
                    keeping.safe = keeping.taken;
                    self.world.saved();
                }
                self.save_if_wished();
            }
        }
    }

    /// Saves come this often from the next one on, at the latest.
    pub const fn set_save_interval(&mut self, interval: Duration) {
        if let Some(keeping) = &mut self.keeping {
            keeping.interval = interval;
        }
    }

    /// Asks that all up to now is saved soon, due or not. `None` when nothing is kept.
    pub fn ask_save(&mut self) -> Option<SaveTicket> {
        let keeping = self.keeping.as_mut()?;
        keeping.wish = Wish::Asked;
        let ticket = SaveTicket(keeping.taken + 1);
        self.save_if_wished();
        Some(ticket)
    }

    /// Whether what a ticket stands for is safe.
    pub fn is_safe(&self, ticket: SaveTicket) -> bool {
        self.keeping.as_ref().is_some_and(|keeping| keeping.safe >= ticket.0)
    }

    /// Whether the world can be entered: its entrance is in memory.
    pub fn is_ready(&self) -> bool {
        self.world.is_ready(SPAWN)
    }

    /// Players who have joined, and whose place is being read.
    pub fn arriving(&self) -> usize {
        self.keeping.as_ref().map_or(0, |keeping| keeping.arriving.len())
    }

    /// Chunks and players that changed and are not known to be safe.
    pub fn unsaved(&self) -> usize {
        self.keeping
            .as_ref()
            .map_or(0, |keeping| self.world.unsaved_chunks() + keeping.changed.len())
    }

    /// Looks after the store once a tick, when the tick is over.
    pub(super) fn keep(&mut self, now: Instant) {
        let Some(keeping) = &mut self.keeping else { return };
        self.world.take_wanted(&mut keeping.found);
        keeping.wanted.extend(keeping.found.drain(..));
        if keeping.next_save.is_due(now) {
            // Counted from now: after a pause nothing is made up for.
            keeping.next_save = Deadline::at(now + keeping.interval);
            keeping.wish = keeping.wish.max(Wish::Due);
        }
        self.save_if_wished();
        self.let_in(now);
    }

    /// Takes a save when there is to be one and none is under way.
    fn save_if_wished(&mut self) {
        let Some(keeping) = &mut self.keeping else { return };
        if keeping.is_saving || keeping.wish == Wish::Nothing {
            return;
        }
        let wish = std::mem::replace(&mut keeping.wish, Wish::Nothing);
        for player in self.players.iter().flatten().filter(|player| player.is_registered) {
            if let Some(record) = self.world.player_record(player.entity) {
                keeping.note(record);
            }
        }
        let mut chunks = Vec::new();
        self.world.take_unsaved(&mut chunks);
        if wish == Wish::Due && chunks.is_empty() && keeping.changed.is_empty() {
            // The clock alone went on: nothing that a disk should be woken for.
            self.world.saved();
            return;
        }
        let names = std::mem::take(&mut keeping.changed);
        let players = names.iter().filter_map(|name| keeping.players.get(name).cloned()).collect();
        keeping.save = Some(Box::new(Save { world: self.world.record(), chunks, players }));
        keeping.is_saving = true;
        keeping.taken += 1;
    }

    /// Keeps the record of a registered player that goes.
    pub(super) fn keep_leaving(&mut self, player: EntityId) {
        if let Some(keeping) = &mut self.keeping
            && let Some(record) = self.world.player_record(player)
        {
            keeping.note(record);
        }
    }

    /// Somebody begins to arrive: its place is read if it is not in memory.
    pub(super) fn arrive(&mut self, now: Instant, joined: Joined) {
        let place = self.place_of(&joined);
        let Some(keeping) = &mut self.keeping else { return self.enter(now, joined) };
        if self.world.is_ready(place) && self.world.is_ready(SPAWN) {
            return self.enter(now, joined);
        }
        self.world.want_around(place);
        // A session that another one replaces ends without a word.
        keeping.arriving.retain(|other| self.sessions.session(other.joined.session).is_some());
        keeping.arriving.push(Arriving { joined, since: now });
    }

    /// A session ended before it was let in.
    pub(super) fn turn_back(&mut self, session: SessionId) {
        if let Some(keeping) = &mut self.keeping {
            keeping.arriving.retain(|arriving| arriving.joined.session != session);
        }
    }

    /// Where somebody who joins will stand.
    fn place_of(&self, joined: &Joined) -> Pos {
        self.record_of(joined.session).map_or(SPAWN, |record| record.pos)
    }

    /// What is kept of a session's player.
    pub(super) fn record_of(&self, session: SessionId) -> Option<&PlayerRecord> {
        let view = self.sessions.session(session).filter(|view| view.is_registered())?;
        self.keeping.as_ref()?.players.get(&fold_name(view.name()))
    }

    /// Lets those in whose place is in memory now.
    fn let_in(&mut self, now: Instant) {
        let Some(keeping) = &mut self.keeping else { return };
        if keeping.arriving.is_empty() {
            return;
        }
        let waiting = std::mem::take(&mut keeping.arriving);
        for Arriving { joined, since } in waiting {
            let place = self.place_of(&joined);
            let patient = now.saturating_since(since) < ARRIVAL_PATIENCE;
            if self.is_ready() && (self.world.is_ready(place) || !patient) {
                self.enter(now, joined);
            } else if let Some(keeping) = &mut self.keeping {
                keeping.arriving.push(Arriving { joined, since });
            }
        }
    }
}
