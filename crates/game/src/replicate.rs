//! The world as packets for one player: manifest, entities and checksum, missing chunks.

mod chunks;
mod tags;
mod update;

use std::collections::VecDeque;
use std::time::Duration;

use caves_link::bucket::TokenBucket;
use caves_link::time::Instant;
use caves_wire::EmitError;
use caves_wire::caves::{ChunkEntry, ChunkVersion, Detail, MAX_DETAIL_META, State, Tick, tag};
use caves_wire::tlv::{TlvWriter, long_len};
use caves_world::{Body, CHUNK_SIDE, ChunkPos, EntityId, Pos, World};

use crate::convert::{chunk_to_wire, entity_to_wire};

pub(crate) use chunks::ChunkPackets;
pub(crate) use tags::Tags;
use tags::{more_tags, plain_tags};
pub(crate) use update::{Audience, Scratch, Update};

/// The same chunk at the same version is not sent to a player again within this time (R12).
const SAME_CHUNK: Duration = Duration::from_millis(150);
/// ChunkPackets that a session has in hand (R12).
const CHUNK_BURST: u32 = 18;
/// ChunkPackets a second (R12).
const CHUNK_RATE: u32 = 20;

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

    /// Whether something may have to be sent in this tick: a cache list has come since the last one, and
    /// is not what it should be.
    pub(crate) fn takes_stock(&mut self, manifest: &[ChunkEntry; 9]) -> bool {
        // Whoever holds all of them lists them as they were listed to it.
        std::mem::take(&mut self.asked) && self.cache != *manifest
    }

    /// The chunks to send to one who asked, nearest first; they count as sent (R11, R12).
    pub(crate) fn take_missing(
        &mut self,
        now: Instant,
        pos: Pos,
        manifest: &[ChunkEntry; 9],
        out: &mut VecDeque<ChunkPos>,
    ) {
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

/// Writes a chunk with the tiles of the one beside it: a fault.
pub(crate) fn emit_torn_chunk(
    world: &World,
    offset: VersionOffset,
    chunk: ChunkPos,
    buf: &mut [u8],
) -> Option<usize> {
    let beside = ChunkPos { x: chunk.x + 1, ..chunk };
    let torn = chunks::emit_chunk(world, offset, beside, chunk, buf);
    torn.or_else(|| chunks::emit_chunk(world, offset, chunk, chunk, buf))
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
    plain_tags(tlv, entity)?;
    more_tags(tlv, entity)?;
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
            if state.takes_stock(&manifest) {
                state.take_missing(Instant::from_millis(ms), pos, &manifest, &mut out);
            }
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
            assert!(state.takes_stock(&manifest));
            state.take_missing(now, pos, &manifest, &mut out);
            sent.push(out.len());
        }
        assert_eq!(sent[..3], [9, 9 + 2 - 2, 4]);
        assert_eq!(sent.iter().sum::<usize>(), 18 + 2 * 29);
    }
}
