//! The world as packets for one player: manifest, entities and checksum, missing chunks.

use std::collections::VecDeque;
use std::time::Duration;

use caves_link::bucket::TokenBucket;
use caves_link::time::Instant;
use caves_session::caves::{MAX_PACKETS, SessionView};
use caves_wire::caves::{
    Chunk, ChunkEntry, ChunkVersion, Detail, Entity, EntityBuilder, EntityFlags, MAX_DETAIL_META,
    State, Tick, tag,
};
use caves_wire::fnv::Fnv32;
use caves_wire::tlv::{TlvWriter, long_len};
use caves_wire::{EmitError, MAX_DATAGRAM};
use caves_world::{Body, CHUNK_SIDE, ChunkPos, EntityId, Pos, World};

use crate::convert::{chunk_to_wire, entity_to_wire};

/// The same chunk at the same version is not sent to a player again within this time (R12).
const SAME_CHUNK: Duration = Duration::from_millis(150);
/// ChunkPackets that a session has in hand (R12).
const CHUNK_BURST: u32 = 18;
/// ChunkPackets a second (R12).
const CHUNK_RATE: u32 = 20;
/// Bytes of entries in one EntityPacket.
const ENTRY_ROOM: usize = MAX_DATAGRAM - 12;

/// The version that is shown for a world's count: an old cache can never match after a restart,
/// since each server draws another offset (R10).
#[derive(Debug, Clone, Copy)]
pub(crate) struct VersionOffset(u16);

impl VersionOffset {
    pub(crate) const fn new(random: u64) -> Self {
        Self((random % 65_535) as u16)
    }

    /// `1 + (v - 1 + offset) mod 65535`: never 0.
    pub(crate) const fn shown(self, version: u16) -> ChunkVersion {
        let sum = version as u32 - 1 + self.0 as u32;
        ChunkVersion((1 + sum % 65_535) as u16)
    }
}

/// What one player was sent, and what it says it holds.
#[derive(Debug)]
pub(crate) struct ChunkState {
    cache: [ChunkEntry; 9],
    /// Whether a cache list has come since the last tick.
    asked: bool,
    sent: VecDeque<(ChunkEntry, Instant)>,
    hand: TokenBucket,
}

impl ChunkState {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            cache: [ChunkEntry::default(); 9],
            asked: false,
            sent: VecDeque::new(),
            hand: TokenBucket::new(CHUNK_RATE, CHUNK_BURST, now),
        }
    }

    /// Takes the cache list of an ActionPacket.
    pub(crate) const fn ask(&mut self, cache: [ChunkEntry; 9]) {
        self.cache = cache;
        self.asked = true;
    }

    /// The chunks to send in this tick, nearest first; they count as sent (R11, R12).
    pub(crate) fn take_missing(
        &mut self,
        now: Instant,
        pos: Pos,
        manifest: &[ChunkEntry; 9],
        out: &mut VecDeque<ChunkPos>,
    ) {
        if !std::mem::take(&mut self.asked) {
            return;
        }
        self.sent.retain(|(_, at)| now.saturating_since(*at) < SAME_CHUNK);
        let mut nearest = pos.chunk().around().map(|chunk| (distance(pos, chunk), chunk));
        nearest.sort_by_key(|(distance, _)| *distance);
        for (_, chunk) in nearest {
            let id = chunk_to_wire(chunk);
            let Some(entry) = manifest.iter().find(|entry| entry.id == id) else { continue };
            let known = self.cache.contains(entry) || self.sent.iter().any(|(of, _)| of == entry);
            if !known && self.hand.take(now) {
                self.sent.push_back((*entry, now));
                out.push_back(chunk);
            }
        }
    }
}

/// Tiles from a position to the nearest tile of a chunk.
fn distance(pos: Pos, chunk: ChunkPos) -> i32 {
    let origin = chunk.origin();
    let last = origin.offset(CHUNK_SIDE - 1, CHUNK_SIDE - 1);
    let axis = |at: i32, from: i32, to: i32| (from - at).max(at - to).max(0);
    axis(pos.x, origin.x, last.x).max(axis(pos.y, origin.y, last.y))
}

/// The 3x3 around a player and their shown versions (R9).
pub(crate) fn manifest(world: &World, offset: VersionOffset, pos: Pos) -> [ChunkEntry; 9] {
    pos.chunk().around().map(|chunk| ChunkEntry {
        id: chunk_to_wire(chunk),
        // The world keeps the surroundings of players loaded; what is not is not claimed.
        version: world
            .loaded_chunk(chunk)
            .map_or(ChunkVersion::NOT_HELD, |loaded| offset.shown(loaded.version())),
    })
}

/// Writes a chunk as the world stores it: palette and indices, without a search.
pub(crate) fn emit_chunk(
    world: &World,
    offset: VersionOffset,
    chunk: ChunkPos,
    torn: bool,
    buf: &mut [u8],
) -> Option<usize> {
    let beside = ChunkPos { x: chunk.x + i32::from(torn), ..chunk };
    let loaded = world.loaded_chunk(beside).or_else(|| world.loaded_chunk(chunk))?;
    let mut palette = [0; caves_wire::caves::MAX_PALETTE];
    let kinds = loaded.palette();
    for (place, tile) in palette.iter_mut().zip(kinds) {
        *place = tile.0;
    }
    let entry = ChunkEntry { id: chunk_to_wire(chunk), version: offset.shown(loaded.version()) };
    let palette = palette.get(..kinds.len())?;
    Chunk { entry, palette, indices: loaded.indices() }.emit(buf).ok()
}

/// The entity update of one tick for one player, ready to send.
#[derive(Debug)]
pub(crate) struct Update {
    packets: Box<[[u8; MAX_DATAGRAM]; MAX_PACKETS]>,
    lens: [usize; MAX_PACKETS],
    count: usize,
    checksum: u32,
    /// Reused from player to player.
    seen: Vec<EntityId>,
    /// Ascending by id.
    entries: Vec<Entry>,
    /// The places of those that are sent.
    order: Vec<usize>,
}

/// One entity's place in an update.
#[derive(Debug, Clone, Copy)]
struct Entry {
    id: EntityId,
    /// 0 for the player itself, which never gives way.
    rank: i32,
    meta: [u8; 256],
    meta_len: usize,
}

impl Entry {
    const fn len(&self) -> usize {
        Entity::BASE_LEN + self.meta_len
    }
}

impl Update {
    pub(crate) fn new() -> Self {
        Self {
            packets: Box::new([[0; MAX_DATAGRAM]; MAX_PACKETS]),
            lens: [0; MAX_PACKETS],
            count: 0,
            checksum: 0,
            seen: Vec::new(),
            entries: Vec::new(),
            order: Vec::new(),
        }
    }

    /// Fills the update with what this player sees (R13, R14, R15).
    pub(crate) fn fill(
        &mut self,
        world: &World,
        tick: Tick,
        viewer: EntityId,
        session: SessionView<'_>,
    ) -> Result<(), EmitError> {
        self.choose(world, viewer, session)?;
        let mut checksum = Fnv32::new();
        let mut entries = self.order.iter().map(|place| &self.entries[*place]).peekable();
        self.count = 0;
        loop {
            let packet = &mut self.packets[self.count];
            let mut builder = EntityBuilder::new(packet, tick, checksum)?;
            while let Some(entry) = entries.peek() {
                let Some(entity) = world.entity(entry.id) else {
                    entries.next();
                    continue;
                };
                if !builder.push(&describe(entity, &entry.meta[..entry.meta_len]))? {
                    break;
                }
                entries.next();
            }
            let more = entries.peek().is_some() && self.count + 1 < MAX_PACKETS;
            (self.lens[self.count], checksum) = builder.finish(more);
            self.count += 1;
            if !more {
                break;
            }
        }
        self.checksum = checksum.finish();
        Ok(())
    }

    /// Chooses the nearest entities that fit, and sorts them by id (R14).
    fn choose(
        &mut self,
        world: &World,
        viewer: EntityId,
        session: SessionView<'_>,
    ) -> Result<(), EmitError> {
        world.in_view(viewer, &mut self.seen);
        self.entries.clear();
        let center = world.entity(viewer).map_or(Pos { x: 0, y: 0 }, |entity| entity.pos);
        for id in &self.seen {
            let Some(entity) = world.entity(*id) else { continue };
            let own = *id == viewer;
            let mut meta = [0; 256];
            let mut tlv = TlvWriter::new(&mut meta[..Entity::MAX_META]);
            inline_tags(&mut tlv, entity, own.then_some(session), session.wants_tags())?;
            let meta_len = tlv.len();
            let rank = if own { 0 } else { 1 + center.distance(entity.pos) };
            self.entries.push(Entry { id: *id, rank, meta, meta_len });
        }
        self.order.clear();
        self.order.extend(0..self.entries.len());
        if packets_needed(&self.entries, &self.order) > MAX_PACKETS {
            self.drop_farthest();
        }
        Ok(())
    }

    /// Leaves the farthest out until the others fit.
    fn drop_farthest(&mut self) {
        let entries = &self.entries;
        self.order.sort_unstable_by_key(|place| (entries[*place].rank, entries[*place].id));
        let mut room = MAX_PACKETS * ENTRY_ROOM;
        let fit = self.order.iter().take_while(|place| {
            let len = entries[**place].len();
            let fits = len <= room;
            room = room.saturating_sub(len);
            fits
        });
        let most = fit.count();
        self.order.truncate(most);
        // What does not fill a packet to its end costs a few more places, one or two a packet. The
        // entries stand by id, so their places do too.
        let mut nearest = self.order.clone();
        self.order.sort_unstable();
        while packets_needed(entries, &self.order) > MAX_PACKETS {
            let farthest = nearest.pop();
            self.order.retain(|place| Some(*place) != farthest);
        }
    }

    /// FNV-1a over the entry bytes of all packets (R13).
    pub(crate) const fn checksum(&self) -> u32 {
        self.checksum
    }

    /// Copies one of the packets into `buf`.
    pub(crate) fn emit(&self, packet: usize, buf: &mut [u8]) -> Option<usize> {
        if packet >= self.count {
            return None;
        }
        let len = self.lens[packet];
        buf.get_mut(..len)?.copy_from_slice(&self.packets[packet][..len]);
        Some(len)
    }
}

/// How many packets the entries at these places take, in this order.
fn packets_needed(entries: &[Entry], places: &[usize]) -> usize {
    let (mut packets, mut room) = (1, ENTRY_ROOM);
    for entry in places.iter().map(|place| &entries[*place]) {
        if entry.len() > room {
            packets += 1;
            room = ENTRY_ROOM;
        }
        room -= entry.len();
    }
    packets
}

fn describe<'m>(entity: &caves_world::Entity, meta: &'m [u8]) -> Entity<'m> {
    let mut flags = EntityFlags::default();
    for (holds, flag) in [
        (entity.is_static(), EntityFlags::STATIC),
        (entity.is_hostile(), EntityFlags::HOSTILE),
        (entity.is_interactable(), EntityFlags::INTERACTABLE),
    ] {
        if holds {
            flags = flags.union(flag);
        }
    }
    Entity {
        id: entity_to_wire(entity.id),
        type_id: entity.kind.0,
        // The ground ends before i16 does (R8).
        x: entity.pos.x as i16,
        y: entity.pos.y as i16,
        hp: entity.hp,
        hp_max: entity.hp_max,
        elo: entity.elo,
        flags,
        meta,
    }
}

/// The tags that every update carries (section 3). A session that speaks only the source's
/// protocol gets 0x01 to 0x03 (R34).
fn inline_tags(
    tlv: &mut TlvWriter<'_>,
    entity: &caves_world::Entity,
    own: Option<SessionView<'_>>,
    all: bool,
) -> Result<(), EmitError> {
    if entity.status() != 0 {
        tlv.put(tag::STATUS_EFFECTS, &entity.status().to_le_bytes())?;
    }
    if !all {
        return Ok(());
    }
    if let Some(name) = entity.name() {
        tlv.put(tag::ENTITY_NAME, name.as_bytes())?;
    }
    if let Some(speech) = entity.speech() {
        tlv.put(tag::SPEECH, speech.as_bytes())?;
    }
    if let Some((sequence, bits)) = own.and_then(SessionView::executed) {
        tlv.put(tag::EXECUTED_SEQUENCE, &sequence.get().to_le_bytes())?;
        tlv.put(tag::EXECUTED_BITS, &bits.to_le_bytes())?;
    }
    Ok(())
}

/// Writes the StatePacket that goes with an update.
pub(crate) fn emit_state(
    tick: Tick,
    chunks: [ChunkEntry; 9],
    player: EntityId,
    entity_checksum: u32,
    buf: &mut [u8],
) -> Option<usize> {
    State { tick, chunks, player: entity_to_wire(player), entity_checksum }.emit(buf).ok()
}

/// Writes what there is to know of an entity: nothing at all where the asker does not see it, known
/// or not (R23).
pub(crate) fn emit_detail(
    world: &World,
    tick: Tick,
    viewer: EntityId,
    of: EntityId,
    buf: &mut [u8],
) -> Option<usize> {
    let mut block = [0; MAX_DETAIL_META];
    let mut tlv = TlvWriter::new(&mut block);
    if let Some(entity) = world.entity(of).filter(|_| world.visible(viewer, of)) {
        detail_tags(&mut tlv, entity, viewer == of).ok()?;
    }
    Detail { tick, entity: entity_to_wire(of), meta: tlv.finish() }.emit(buf).ok()
}

fn detail_tags(
    tlv: &mut TlvWriter<'_>,
    entity: &caves_world::Entity,
    own: bool,
) -> Result<(), EmitError> {
    inline_tags(tlv, entity, None, true)?;
    match &entity.body {
        Body::Sign { text } => {
            // Whole lines or characters, as many as fit (R23).
            let text = caves_wire::text::cut(text, fitting(MAX_DETAIL_META - tlv.len()));
            tlv.put_long(tag::SIGN_TEXT, text.as_bytes())?;
        }
        Body::Chest { inventory } => put_inventory(tlv, inventory)?,
        Body::Player(player) if own => put_inventory(tlv, &player.inventory)?,
        _ => {}
    }
    Ok(())
}

/// The longest value that fits into `room` bytes once it is cut into fields.
const fn fitting(room: usize) -> usize {
    let mut len = room;
    while long_len(len) > room {
        len -= 1;
    }
    len
}

fn put_inventory(
    tlv: &mut TlvWriter<'_>,
    inventory: &caves_world::Inventory,
) -> Result<(), EmitError> {
    let mut bytes = Vec::with_capacity(4 * inventory.len());
    for (kind, count) in inventory.iter() {
        bytes.extend_from_slice(&kind.0.to_le_bytes());
        bytes.extend_from_slice(&count.to_le_bytes());
    }
    // 32 kinds take 128 bytes: an inventory always fits, and one field says that it is empty.
    tlv.put(tag::INVENTORY, &bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_versions_are_never_zero_and_a_circle_of_65535() {
        for offset in [0u64, 1, 65_534, 65_535, 70_000] {
            let versions = VersionOffset::new(offset);
            let mut seen = vec![false; 65_536];
            for version in 1..=65_535u16 {
                let shown = versions.shown(version).0;
                assert_ne!(shown, 0);
                assert!(!std::mem::replace(&mut seen[usize::from(shown)], true));
            }
        }
        assert_eq!(VersionOffset::new(0).shown(1).0, 1);
        assert_eq!(VersionOffset::new(5).shown(65_535).0, 5);
        assert_eq!(VersionOffset::new(65_534).shown(2).0, 1);
    }

    #[test]
    fn chunks_are_asked_for_nearest_first_and_not_twice_within_150_ms() {
        let pos = Pos { x: 31, y: 16 };
        let manifest = pos
            .chunk()
            .around()
            .map(|chunk| ChunkEntry { id: chunk_to_wire(chunk), version: ChunkVersion(3) });
        let mut state = ChunkState::new(Instant::ZERO);
        let take = |state: &mut ChunkState, ms| {
            let mut out = VecDeque::new();
            state.take_missing(Instant::from_millis(ms), pos, &manifest, &mut out);
            Vec::from(out)
        };
        assert_eq!(take(&mut state, 0), [], "nobody asked");
        state.ask([ChunkEntry::default(); 9]);
        let all = take(&mut state, 0);
        assert_eq!(all.len(), 9);
        assert_eq!(all[..2], [ChunkPos { x: 0, y: 0 }, ChunkPos { x: 1, y: 0 }]);
        state.ask([ChunkEntry::default(); 9]);
        assert_eq!(take(&mut state, 149), []);
        // All but the first are held at the current version; that one at another.
        let mut cache = manifest;
        cache[4].version = ChunkVersion(2);
        state.ask(cache);
        assert_eq!(take(&mut state, 150), [ChunkPos { x: 0, y: 0 }]);
    }

    #[test]
    fn a_session_has_eighteen_chunks_in_hand_and_twenty_a_second() {
        let pos = Pos { x: 16, y: 16 };
        let mut state = ChunkState::new(Instant::ZERO);
        let mut sent = Vec::new();
        for tick in 0..30 {
            let manifest = pos.chunk().around().map(|chunk| ChunkEntry {
                id: chunk_to_wire(chunk),
                version: ChunkVersion(tick + 1),
            });
            let mut out = VecDeque::new();
            state.ask([ChunkEntry::default(); 9]);
            let now = Instant::from_millis(u64::from(tick) * 100);
            state.take_missing(now, pos, &manifest, &mut out);
            sent.push(out.len());
        }
        assert_eq!(sent[..3], [9, 9 + 2 - 2, 4]);
        assert_eq!(sent.iter().sum::<usize>(), 18 + 2 * 29);
    }
}
