//! A store that a test looks into: it answers late, is full for a while, and loses what was under way.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use caves_game::{Keep, Save, StoreReply, StoreRequest};
use caves_link::time::Instant;
use caves_netsim::SplitMix64;
use caves_world::{
    ChunkPos, ChunkRecord, Content, KindId, PlayerRecord, SpawnBody, ThingBody, WorldRecord,
    generate, populate,
};

use super::truth::broken;

/// How late an answer comes at most, in milliseconds.
const LATE: u32 = 400;

#[derive(Clone)]
pub(crate) struct Shelf {
    pub(crate) world: Option<WorldRecord>,
    pub(crate) chunks: BTreeMap<ChunkPos, ChunkRecord>,
    pub(crate) players: BTreeMap<String, PlayerRecord>,
    /// Saves that are safe.
    pub(crate) saves: u64,
    /// Chunks that the disk has lost.
    pub(crate) unreadable: BTreeSet<ChunkPos>,
    /// Whether nobody who is forgotten takes anything along: then nothing is lost, either.
    pub(crate) is_exact: bool,
    /// Nothing is written from then ...
    pub(crate) full_from: Instant,
    /// ... to then.
    pub(crate) full_until: Instant,
    reads: VecDeque<(Instant, ChunkPos)>,
    save: Option<(Instant, Box<Save>)>,
    random: SplitMix64,
}

impl Shelf {
    pub(crate) fn new(random: SplitMix64) -> Self {
        Self {
            world: None,
            chunks: BTreeMap::new(),
            players: BTreeMap::new(),
            saves: 0,
            unreadable: BTreeSet::new(),
            is_exact: false,
            full_from: Instant::ZERO,
            full_until: Instant::ZERO,
            reads: VecDeque::new(),
            save: None,
            random,
        }
    }

    /// What a server begins with.
    pub(crate) fn keep(&self, like: &Keep) -> Keep {
        let players = self.players.values().cloned().collect();
        Keep { world: self.world, players, ..like.clone() }
    }

    pub(crate) fn ask(&mut self, now: Instant, request: StoreRequest) {
        let due = now + Duration::from_millis(self.random.below(LATE.into()));
        match request {
            StoreRequest::Read(pos) => {
                let after = self.reads.back().map_or(due, |(last, _)| due.max(*last));
                self.reads.push_back((after, pos));
            }
            StoreRequest::Save(save) => {
                if self.save.replace((due, save)).is_some() {
                    broken!("saves", "a second save before the first one is safe");
                }
            }
        }
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        let save = self.save.as_ref().map(|(due, _)| self.after_full(*due));
        let read = self.reads.front().map(|(due, _)| *due);
        save.into_iter().chain(read).min()
    }

    pub(crate) fn poll(&mut self, now: Instant) -> Option<StoreReply> {
        if let Some((_, pos)) = self.reads.pop_front_if(|(due, _)| *due <= now) {
            if self.unreadable.contains(&pos) {
                return Some(StoreReply::Unreadable(pos));
            }
            let record = self.chunks.get(&pos).cloned().map(Box::new);
            return Some(StoreReply::Chunk(pos, record));
        }
        if self.after_full(now) > now {
            return None;
        }
        let (_, save) = self.save.take_if(|(due, _)| *due <= now)?;
        self.write(*save);
        Some(StoreReply::Saved)
    }

    /// The server is gone: what was under way was written, or not.
    pub(crate) fn crash(&mut self, now: Instant) {
        self.reads.clear();
        if let Some((_, save)) = self.save.take()
            && self.after_full(now) == now
            && self.random.below(2) == 0
        {
            self.write(*save);
        }
    }

    /// The first moment from `due` on at which something can be written.
    fn after_full(&self, due: Instant) -> Instant {
        let full = (self.full_from..self.full_until).contains(&due);
        if full { self.full_until } else { due }
    }

    fn write(&mut self, save: Save) {
        let before = self.world.map_or(0, |world| world.last_id);
        if save.world.last_id < before {
            broken!("ids", "the highest id goes back from {before} to {}", save.world.last_id);
        }
        self.world = Some(save.world);
        self.chunks.extend(save.chunks);
        let names = save.players.into_iter().map(|record| (record.name.clone(), record));
        self.players.extend(names);
        self.saves += 1;
        self.check();
    }

    /// Nothing is in two places, and nothing has come from nowhere.
    fn check(&self) {
        let Some(world) = self.world else { return };
        let mut ids = BTreeSet::new();
        for (pos, record) in &self.chunks {
            for thing in &record.things {
                if !ids.insert(thing.id) || thing.id.0 > world.last_id {
                    broken!("one place", "thing {} of {pos:?} is elsewhere, too", thing.id);
                }
                if thing.pos.chunk() != *pos {
                    broken!("one place", "thing {} lies outside its chunk {pos:?}", thing.id);
                }
            }
        }
        let content = Content::core();
        let torch = content.kind_id("core:torch").expect("there are torches");
        let (there, made) = (self.count(torch), self.made(torch, world.seed, &content));
        if there > made || self.is_exact && there < made {
            broken!("one place", "{there} torches, and {made} were made");
        }
    }

    /// How many of an item are kept.
    pub(crate) fn count(&self, item: KindId) -> u64 {
        let things = self.chunks.values().flat_map(|record| &record.things);
        let lying = things.map(|thing| match &thing.body {
            ThingBody::Item(count) if thing.kind == item => (*count).into(),
            ThingBody::Chest(inventory) => inventory.count(item).into(),
            _ => 0,
        });
        let carried = self.players.values().map(|player| u64::from(player.inventory.count(item)));
        lying.chain(carried).sum()
    }

    /// How many the visited chunks began with. Torches come from nowhere else.
    pub(crate) fn made(&self, item: KindId, seed: u64, content: &Content) -> u64 {
        let begun = self.chunks.keys().flat_map(|pos| {
            let chunk = generate(seed, *pos, content);
            populate(seed, *pos, &chunk, content)
        });
        let counts = begun.map(|spawn| match spawn.body {
            SpawnBody::Item(count) if spawn.kind == item => count.into(),
            SpawnBody::Chest(inventory) => inventory.count(item).into(),
            _ => 0,
        });
        counts.sum()
    }
}
