//! The tags of all players, written once a tick and not once for each who sees them.

use caves_wire::EmitError;
use caves_wire::caves::{Entity, tag};
use caves_wire::tlv::TlvWriter;
use caves_world::{EntityId, EntityMap, World};

/// Bytes of the tags that a player alone gets of itself (R18, section 3).
pub(super) const OWN_TAGS: usize = 12;

/// What is written behind the entry of each player (section 3). Nothing else has tags.
#[derive(Debug, Default)]
pub(crate) struct Tags {
    /// Asked for each player that somebody sees.
    spans: EntityMap<Span>,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    start: usize,
    /// The tags that everybody gets stand first ...
    plain: usize,
    /// ... before those for clients that want all (R34).
    all: usize,
}

impl Tags {
    /// Writes the tags anew, as the world is now.
    pub(crate) fn write(&mut self, world: &World) {
        self.spans.clear();
        self.bytes.clear();
        for id in world.players() {
            let Some(entity) = world.entity(id) else { continue };
            let mut block = [0; Entity::MAX_META - OWN_TAGS];
            let mut tlv = TlvWriter::new(&mut block);
            // Names and speech are short enough: what would not fit is left out.
            let plain = plain_tags(&mut tlv, entity).map_or(0, |()| tlv.len());
            let _ = more_tags(&mut tlv, entity);
            let tags = tlv.finish();
            self.spans.insert(id, Span { start: self.bytes.len(), plain, all: tags.len() });
            self.bytes.extend_from_slice(tags);
        }
    }

    /// The tags of a player; nothing when it came since they were written.
    pub(super) fn of(&self, id: EntityId, wants_all: bool) -> Option<&[u8]> {
        let span = self.spans.get(&id)?;
        let len = if wants_all { span.all } else { span.plain };
        self.bytes.get(span.start..span.start + len)
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
