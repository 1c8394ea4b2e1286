//! The tags of all players, written once a tick and not once for each who sees them.

use caves_wire::EmitError;
use caves_wire::caves::{Entity, tag};
use caves_wire::tlv::TlvWriter;
use caves_world::{EntityId, World};

/// Bytes of the tags that a player alone gets of itself (R18, section 3).
pub(super) const OWN_TAGS: usize = 12;

/// What is written behind the entry of each player (section 3). Nothing else has tags.
#[derive(Debug, Default)]
pub(crate) struct Tags {
    /// Where the tags of each player stand, in a table with a place for each id (see [`Tags::place`]) and at least
    /// three empty places for each that is taken: every update asks for each player in it, and so a lookup
    /// is one load and a comparison.
    table: Vec<Span>,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    /// [`EntityId::NONE`] where there is nobody.
    id: EntityId,
    start: u32,
    /// The tags that everybody gets stand first ...
    plain: u8,
    /// ... before those for clients that want all (R34).
    all: u8,
}

const NOBODY: Span = Span { id: EntityId::NONE, start: 0, plain: 0, all: 0 };

impl Tags {
    /// Writes the tags anew, as the world is now.
    pub(crate) fn write(&mut self, world: &World) {
        let places = (4 * world.players().len()).next_power_of_two();
        self.table.clear();
        self.table.resize(places, NOBODY);
        self.bytes.clear();
        for id in world.players() {
            let Some(entity) = world.entity(id) else { continue };
            let mut block = [0; Entity::MAX_META - OWN_TAGS];
            let mut tlv = TlvWriter::new(&mut block);
            // Names and speech are short enough: what would not fit is left out.
            let plain = plain_tags(&mut tlv, entity).map_or(0, |()| tlv.len());
            let _ = more_tags(&mut tlv, entity);
            let tags = tlv.finish();
            let (start, place) = (self.bytes.len() as u32, self.place(id));
            self.table[place] = Span { id, start, plain: plain as u8, all: tags.len() as u8 };
            self.bytes.extend_from_slice(tags);
        }
    }

    /// The tags of a player; nothing when it came since they were written.
    #[inline]
    pub(super) fn of(&self, id: EntityId, wants_all: bool) -> Option<&[u8]> {
        let span = self.table.get(self.place(id)).filter(|span| span.id == id)?;
        let (start, len) = (span.start as usize, if wants_all { span.all } else { span.plain });
        self.bytes.get(start..start + usize::from(len))
    }

    /// Where an id is, or would be.
    #[inline]
    fn place(&self, id: EntityId) -> usize {
        let last = self.table.len().wrapping_sub(1);
        // 2^64 divided by the golden ratio: the upper half depends on all of the id.
        let mixed = u64::from(id.0).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let mut place = mixed as usize & last;
        while self.table.get(place).is_some_and(|span| span.id != id && span.id != EntityId::NONE) {
            place = (place + 1) & last;
        }
        place
    }
}

/// The tags that even a session gets which speaks only the source's protocol (R34).
pub(super) fn plain_tags(
    tlv: &mut TlvWriter<'_>,
    entity: &caves_world::Entity,
) -> Result<(), EmitError> {
    if entity.status() != 0 {
        tlv.put(tag::STATUS_EFFECTS, &entity.status().to_le_bytes())?;
    }
    Ok(())
}

/// The tags that others get too.
pub(super) fn more_tags(
    tlv: &mut TlvWriter<'_>,
    entity: &caves_world::Entity,
) -> Result<(), EmitError> {
    if let Some(name) = entity.name() {
        tlv.put(tag::ENTITY_NAME, name.as_bytes())?;
    }
    if let Some(speech) = entity.speech() {
        tlv.put(tag::SPEECH, speech.as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use caves_world::WorldConfig;

    /// The fields of section 3, by hand.
    fn name_tag(name: &str) -> Vec<u8> {
        [&[tag::ENTITY_NAME, name.len() as u8], name.as_bytes()].concat()
    }

    #[test]
    fn everybody_has_tags_of_his_own_and_nobody_else_any() {
        let mut world = World::new(WorldConfig::default());
        let names: Vec<_> = (0..100).map(|n| format!("P{n}")).collect();
        let ids: Vec<_> = names.iter().map(|name| world.spawn_player(Some(name))).collect();
        let mut tags = Tags::default();
        assert_eq!(tags.of(ids[0], true), None, "nothing is written yet");
        tags.write(&world);
        assert_eq!(tags.table.len(), 512);
        for (id, name) in ids.iter().zip(&names) {
            let of = tags.of(*id, true).unwrap();
            assert!(of.ends_with(&name_tag(name)), "{of:?}");
            let plain = tags.of(*id, false).unwrap();
            assert_eq!(plain, &of[..of.len() - name_tag(name).len()], "a name is not plain");
        }
        for stranger in (1..5000).map(EntityId).filter(|id| !ids.contains(id)) {
            assert_eq!(tags.of(stranger, true), None);
        }
        assert!(ids[1..].iter().all(|id| world.remove_player(*id)));
        tags.write(&world);
        assert!(tags.of(ids[0], true).is_some() && tags.of(ids[1], true).is_none());
    }
}
