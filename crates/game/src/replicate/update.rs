//! The entity update of one tick for one player.

use caves_session::caves::MAX_PACKETS;
use caves_wire::MAX_DATAGRAM;
use caves_wire::caves::{EntitiesHead, Entity, EntityFlags, Sequence, Tick, tag};
use caves_wire::tlv::TlvWriter;
use caves_world::{Class, EntityId, Pos, Seen, Spot, World};

use super::tags::{OWN_TAGS, Tags};
use crate::convert::entity_to_wire;

/// Bytes of entries in one EntityPacket.
const ENTRY_ROOM: usize = MAX_DATAGRAM - EntitiesHead::LEN;

/// Lists that are made for one player after the other, kept for their room.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    order: Vec<u64>,
    nearest: Vec<Ranked>,
    chosen: Vec<(EntityId, usize)>,
}

/// An entity when not all fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ranked {
    /// 0 for the player itself, which never gives way.
    rank: i32,
    id: EntityId,
    len: usize,
}

/// Who looks, and what it is told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Audience {
    pub(crate) entity: EntityId,
    /// Whether it gets all inline tags (R34).
    pub(crate) wants_all: bool,
    /// Its last executed action and the bits of those before it (R18).
    pub(crate) executed: Option<(Sequence, u32)>,
}

impl Default for Audience {
    fn default() -> Self {
        Self { entity: EntityId::NONE, wants_all: false, executed: None }
    }
}

/// An audience with the tags that it gets.
struct Viewer<'t> {
    id: EntityId,
    wants_all: bool,
    tags: &'t Tags,
    /// What it alone is told, of itself.
    own: [u8; OWN_TAGS],
    own_len: usize,
}

impl<'t> Viewer<'t> {
    fn new(audience: Audience, tags: &'t Tags) -> Self {
        let Audience { entity: id, wants_all, executed } = audience;
        let mut own = [0; OWN_TAGS];
        let mut tlv = TlvWriter::new(&mut own);
        if let Some((sequence, bits)) = executed.filter(|_| wants_all) {
            // Two fields of four bytes: the room is what they take.
            let _ = tlv.put(tag::EXECUTED_SEQUENCE, &sequence.get().to_le_bytes());
            let _ = tlv.put(tag::EXECUTED_BITS, &bits.to_le_bytes());
        }
        let own_len = tlv.len();
        Self { id, wants_all, tags, own, own_len }
    }

    /// What stands behind an entry, in two parts. Who came since the tick ended is seen with the next.
    #[inline]
    fn tags_of(&self, spot: &Spot) -> Option<(&[u8], &[u8])> {
        if spot.class != Class::Player {
            return Some((&[], &[]));
        }
        let own_len = if spot.id == self.id { self.own_len } else { 0 };
        Some((self.tags.of(spot.id, self.wants_all)?, &self.own[..own_len]))
    }
}

/// The entries of one tick for one player, cut into packets.
#[derive(Debug)]
pub(crate) struct Update {
    /// The entries of all packets behind each other: what the checksum runs over (R13).
    entries: Box<[u8; MAX_PACKETS * ENTRY_ROOM]>,
    len: usize,
    cuts: [Cut; MAX_PACKETS],
    packets: usize,
}

/// One packet: where its entries end, and how many they are.
#[derive(Debug, Clone, Copy, Default)]
struct Cut {
    end: usize,
    count: u8,
}

impl Default for Update {
    fn default() -> Self {
        Self {
            entries: Box::new([0; MAX_PACKETS * ENTRY_ROOM]),
            len: 0,
            cuts: [Cut::default(); MAX_PACKETS],
            packets: 0,
        }
    }
}

impl Update {
    /// Fills the update with what this player sees (R13, R14, R15).
    pub(crate) fn fill(
        &mut self,
        world: &World,
        tags: &Tags,
        audience: Audience,
        scratch: &mut Scratch,
    ) {
        let seen = world.look(audience.entity, &mut scratch.order);
        let viewer = Viewer::new(audience, tags);
        if !self.write(seen.spots(), &viewer) {
            let center = world.entity(viewer.id).map_or(Pos::default(), |entity| entity.pos);
            choose(seen, center, &viewer, &mut scratch.nearest, &mut scratch.chosen);
            let chosen = &scratch.chosen;
            let is_chosen =
                |spot: &&Spot| chosen.binary_search_by_key(&spot.id, |(id, _)| *id).is_ok();
            // These fit.
            self.write(seen.spots().filter(is_chosen), &viewer);
        }
    }

    /// Nothing in one packet.
    pub(crate) fn clear(&mut self) {
        (self.len, self.packets) = (0, 1);
        self.cuts[0] = Cut::default();
    }

    /// False when they do not fit.
    fn write<'s>(&mut self, spots: impl Iterator<Item = &'s Spot>, viewer: &Viewer<'_>) -> bool {
        self.clear();
        spots.into_iter().all(|spot| {
            let Some((tags, own)) = viewer.tags_of(spot) else { return true };
            self.push(spot, tags, own)
        })
    }

    #[inline]
    fn push(&mut self, spot: &Spot, tags: &[u8], own: &[u8]) -> bool {
        let meta_len = tags.len() + own.len();
        let end = self.len + Entity::BASE_LEN + meta_len;
        let begin = if self.packets > 1 { self.cuts[self.packets - 2].end } else { 0 };
        if end - begin > ENTRY_ROOM {
            if self.packets == MAX_PACKETS {
                return false;
            }
            self.cuts[self.packets] = Cut { end: self.len, count: 0 };
            self.packets += 1;
        }
        let Some((base, meta)) = self.entries[self.len..].split_first_chunk_mut() else {
            return false;
        };
        *base = describe(spot).base(meta_len as u8);
        if meta_len > 0 {
            let (first, second) = meta[..meta_len].split_at_mut(tags.len());
            first.copy_from_slice(tags);
            second.copy_from_slice(own);
        }
        let cut = &mut self.cuts[self.packets - 1];
        *cut = Cut { end, count: cut.count + 1 };
        self.len = end;
        true
    }

    /// The bytes that the tick's checksum runs over (R13).
    pub(crate) fn entries(&self) -> &[u8] {
        &self.entries[..self.len]
    }

    /// How many packets there are, at least one.
    pub(crate) const fn packets(&self) -> usize {
        self.packets
    }

    /// Bytes of the first packet.
    pub(crate) fn first_len(&self) -> usize {
        EntitiesHead::LEN + self.cuts.first().map_or(0, |cut| cut.end)
    }

    /// Writes one of the packets into `buf`.
    pub(crate) fn emit(&self, packet: usize, tick: Tick, buf: &mut [u8]) -> Option<usize> {
        let Cut { end, count } = *self.cuts[..self.packets].get(packet)?;
        let begin = if packet > 0 { self.cuts[packet - 1].end } else { 0 };
        let entries = &self.entries[begin..end];
        let more_follow = packet + 1 < self.packets;
        let head = EntitiesHead { tick, count, more_follow }.emit(buf).ok()?;
        buf.get_mut(head..head + entries.len())?.copy_from_slice(entries);
        Some(head + entries.len())
    }
}

/// Chooses the nearest that fit, ascending by id (R14).
fn choose(
    seen: Seen<'_>,
    center: Pos,
    viewer: &Viewer<'_>,
    nearest: &mut Vec<Ranked>,
    chosen: &mut Vec<(EntityId, usize)>,
) {
    nearest.clear();
    nearest.extend(seen.spots().filter_map(|spot| {
        let (tags, own) = viewer.tags_of(spot)?;
        let rank = if spot.id == viewer.id { 0 } else { 1 + center.distance(spot.pos) };
        Some(Ranked { rank, id: spot.id, len: Entity::BASE_LEN + tags.len() + own.len() })
    }));
    nearest.sort_unstable();
    let mut room = MAX_PACKETS * ENTRY_ROOM;
    let fit = nearest.iter().take_while(|ranked| {
        let fits = ranked.len <= room;
        room = room.saturating_sub(ranked.len);
        fits
    });
    let most = fit.count();
    nearest.truncate(most);
    chosen.clear();
    chosen.extend(nearest.iter().map(|ranked| (ranked.id, ranked.len)));
    chosen.sort_unstable();
    // What does not fill a packet to its end costs a few more places, one or two a packet.
    while packets_needed(chosen) > MAX_PACKETS {
        let farthest = nearest.pop().map(|ranked| ranked.id);
        chosen.retain(|(id, _)| Some(*id) != farthest);
    }
}

/// How many packets entries of these lengths take, in this order.
fn packets_needed(entries: &[(EntityId, usize)]) -> usize {
    let (mut packets, mut room) = (1, ENTRY_ROOM);
    for (_, len) in entries {
        if *len > room {
            packets += 1;
            room = ENTRY_ROOM;
        }
        room -= len;
    }
    packets
}

fn describe(spot: &Spot) -> Entity<'static> {
    let bit = |holds: bool, flag: EntityFlags| if holds { flag.0 } else { 0 };
    let flags = bit(spot.class.is_static(), EntityFlags::STATIC)
        | bit(spot.is_hostile, EntityFlags::HOSTILE)
        | bit(spot.class.is_interactable(), EntityFlags::INTERACTABLE);
    Entity {
        id: entity_to_wire(spot.id),
        type_id: spot.kind.0,
        // The ground ends before i16 does (R8).
        x: spot.pos.x as i16,
        y: spot.pos.y as i16,
        hp: spot.hp,
        hp_max: spot.hp_max,
        elo: spot.elo,
        flags: EntityFlags(flags),
        meta: &[],
    }
}
