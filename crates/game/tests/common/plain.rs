//! A client that knows types 0 to 7 and nothing else, written for the tests alone: it shares no code
//! with the client under test but the views of the wire crate.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use caves_link::time::Instant;
use caves_netsim::LinkId;
use caves_session::Peer;
use caves_wire::caves::{
    Action, ActionPacket, ChunkEntry, ChunkId, ChunkVersion, ClientType, Direction, EntitiesView,
    Packet, Sequence, StateView, Token,
};
use caves_world::{ChunkPos, EntityId, Pos};

use super::truth::{Seen, Truth, broken, hash};

/// Between two words (it repeats nothing: the next word lists what is held again).
const PACE: Duration = Duration::from_millis(200);

pub(crate) struct Plain {
    pub(crate) token: Token,
    pub(crate) peer: Peer,
    pub(crate) up: LinkId,
    pub(crate) down: LinkId,
    pub(crate) dead: bool,
    /// Which start of it.
    pub(crate) start: u32,
    sequence: u32,
    speaks_at: Instant,
    pub(crate) step: Option<Direction>,
    pub(crate) player: EntityId,
    tick: Option<u32>,
    pub(crate) manifest: Option<[ChunkEntry; 9]>,
    pub(crate) held: HashMap<ChunkId, (ChunkVersion, u64)>,
    open: BTreeMap<u32, Open>,
    pub(crate) updates: u32,
    tainted: bool,
}

/// A step, and the number under which it was asked for.
pub(crate) type Asked = (u32, Direction);

/// A tick under way.
#[derive(Default)]
struct Open {
    /// Checksum and player of its State.
    state: Option<(u32, EntityId)>,
    /// Entry bytes and what they say, by the first id.
    parts: BTreeMap<u32, (Vec<u8>, Vec<Seen>)>,
}

impl Plain {
    pub(crate) fn new(
        token: Token,
        peer: Peer,
        links: (LinkId, LinkId),
        sequence: u32,
        now: Instant,
    ) -> Self {
        Self {
            token,
            peer,
            up: links.0,
            down: links.1,
            dead: false,
            start: 0,
            sequence,
            speaks_at: now,
            step: None,
            player: EntityId::NONE,
            tick: None,
            manifest: None,
            held: HashMap::new(),
            open: BTreeMap::new(),
            updates: 0,
            tainted: false,
        }
    }

    /// A new process: it knows nothing of the one before.
    pub(crate) fn start_again(&mut self, peer: Peer, sequence: u32, now: Instant) {
        let links = (self.up, self.down);
        let start = self.start + 1;
        *self = Self { start, ..Self::new(self.token, peer, links, sequence, now) };
    }

    pub(crate) fn due(&self) -> Instant {
        self.speaks_at
    }

    /// Writes what is due, and tells under which number it asked for which step.
    pub(crate) fn speak(&mut self, now: Instant) -> Option<(Vec<u8>, Option<Asked>)> {
        if self.speaks_at > now {
            return None;
        }
        self.speaks_at = now + PACE;
        let step = self.step.take();
        if step.is_some() {
            self.sequence = self.sequence.wrapping_add(1);
        }
        let cache = self.manifest.map_or([ChunkEntry::default(); 9], |manifest| {
            manifest.map(|entry| {
                let held = self.held.get(&entry.id).map(|(version, _)| *version);
                ChunkEntry { version: held.unwrap_or(ChunkVersion::NOT_HELD), ..entry }
            })
        });
        let packet = ActionPacket::<&str> {
            client_type: ClientType(7),
            token: self.token,
            sequence: Sequence::new(self.sequence),
            cache,
            action: step.map_or(Action::NoOp, Action::Walk),
        };
        let mut buf = [0; 1200];
        let len = packet.emit(&mut buf).expect("an Action fits");
        Some((buf[..len].to_vec(), step.map(|step| (self.sequence, step))))
    }

    pub(crate) fn hear(&mut self, truth: &Truth, bytes: &[u8], damaged: bool) {
        self.tainted |= damaged;
        match Packet::parse(bytes) {
            Ok(Packet::State(state)) => self.on_state(truth, state),
            Ok(Packet::Entities(entities)) => self.on_entities(truth, entities),
            Ok(Packet::Chunk(chunk)) => {
                let entry = chunk.entry();
                let mut tiles = [0; 1024];
                chunk.tiles(&mut tiles);
                let hash = hash(tiles);
                if !self.tainted {
                    let (x, y) = (i32::from(entry.id.x), i32::from(entry.id.y));
                    truth.check_chunk(ChunkPos { x, y }, hash);
                }
                self.held.insert(entry.id, (entry.version, hash));
            }
            Ok(Packet::Detail(_) | Packet::Pong(_)) => {}
            // R34: it would not know what to do with anything else.
            other if !damaged => broken!("plain", "a plain client was sent {other:?}"),
            _ => {}
        }
    }

    fn on_state(&mut self, truth: &Truth, state: StateView<'_>) {
        let tick = state.tick().get();
        if self.tick.is_none_or(|last| tick.wrapping_sub(last) < 1 << 31) {
            self.tick = Some(tick);
            self.player = EntityId(state.player().0);
            self.manifest = Some(state.chunks());
        }
        let player = EntityId(state.player().0);
        self.open.entry(tick).or_default().state = Some((state.entity_checksum(), player));
        self.put_together(truth, tick);
    }

    fn on_entities(&mut self, truth: &Truth, entities: EntitiesView<'_>) {
        let tick = entities.tick().get();
        let seen = |entity: caves_wire::caves::EntityView<'_>| {
            let pos = Pos { x: entity.x().into(), y: entity.y().into() };
            (EntityId(entity.id().0), pos, entity.hp(), entity.hp_max())
        };
        let all: Vec<Seen> = entities.entities().map(seen).collect();
        let first = all.first().map_or(0, |seen| seen.0.0);
        let parts = &mut self.open.entry(tick).or_default().parts;
        parts.entry(first).or_insert_with(|| (entities.entry_bytes().to_vec(), all));
        self.put_together(truth, tick);
    }

    /// A tick whose entries have the checksum of its own State is shown, and must be true.
    fn put_together(&mut self, truth: &Truth, tick: u32) {
        let open = &self.open[&tick];
        let bytes = open.parts.values().flat_map(|(bytes, _)| bytes);
        let sum = bytes
            .fold(0x811C_9DC5u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
        let Some((_, viewer)) = open.state.filter(|(of, _)| *of == sum) else { return };
        if open.parts.is_empty() {
            return;
        }
        let all: Vec<Seen> =
            open.parts.values().flat_map(|(_, seen)| seen.iter().copied()).collect();
        if !self.tainted {
            truth.check_view(tick, viewer, &all);
        }
        self.updates += 1;
        self.open.retain(|of, _| *of > tick);
        while self.open.len() > 8 {
            self.open.pop_first();
        }
    }

    /// Whether the tiles of the newest manifest are held as they are.
    pub(crate) fn is_current(&self, now: impl Fn(ChunkPos) -> Option<u64>) -> bool {
        self.manifest.is_some_and(|manifest| {
            manifest.iter().all(|entry| {
                let (x, y) = (i32::from(entry.id.x), i32::from(entry.id.y));
                let held = self.held.get(&entry.id);
                held.is_some_and(|(version, hash)| {
                    *version == entry.version && now(ChunkPos { x, y }) == Some(*hash)
                })
            })
        })
    }

    pub(crate) const fn is_tainted(&self) -> bool {
        self.tainted
    }
}
