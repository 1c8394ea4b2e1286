//! Worlds whose chunks are stored elsewhere: what comes into memory, what goes, what is to be saved.

use crate::content::Class;
use crate::coord::{ChunkPos, Pos};
use crate::entity::{Body, Entity, EntityId, Player};
use crate::generation::{Generator, SPAWN, UnknownGenerator};
use crate::paging::{Paging, WANT_TICKS};
use crate::record::{ChunkRecord, PlayerRecord, Resident, Thing, ThingBody, WorldRecord};
use crate::store::Entities;
use crate::terrain::Terrain;
use crate::world::{World, WorldConfig};

impl World {
    /// A paged world, which goes on where the record was taken: [`World::take_wanted`] names the chunks that it
    /// needs, [`World::provide`] brings them. Beyond those that somebody needs or that are not saved yet, about
    /// `idle_chunks` are kept in memory.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use caves_world::{ChunkPos, ChunkRecord, SPAWN, World, WorldConfig};
    ///
    /// // Here a map is the store; a new world begins like one of the past.
    /// let mut store = BTreeMap::<ChunkPos, ChunkRecord>::new();
    /// let new = World::new(WorldConfig { seed: 7, ..WorldConfig::default() });
    /// let mut world = World::restore(new.record(), 100);
    /// assert!(!world.is_ready(SPAWN));
    ///
    /// let (mut wanted, mut unsaved) = (Vec::new(), Vec::new());
    /// world.take_wanted(&mut wanted);
    /// for pos in wanted.drain(..) {
    ///     world.provide(pos, store.get(&pos).cloned()).unwrap();
    /// }
    /// let ada = world.spawn_player(Some("Ada"));
    /// world.step();
    ///
    /// // Players and counters of the same tick belong into the same save.
    /// world.take_unsaved(&mut unsaved);
    /// store.extend(unsaved.drain(..));
    /// let (record, player) = (world.record(), world.player_record(ada).unwrap());
    /// world.saved();
    /// assert_eq!((store.len(), world.unsaved_chunks()), (9, 0));
    ///
    /// let mut again = World::restore(record, 100);
    /// again.take_wanted(&mut wanted);
    /// for pos in wanted.drain(..) {
    ///     again.provide(pos, store.get(&pos).cloned()).unwrap();
    /// }
    /// let ada = again.spawn_saved(&player).unwrap();
    /// assert_eq!(again.player_record(ada), Some(player));
    /// assert_eq!((again.tick(), again.unsaved_chunks()), (1, 0));
    /// ```
    pub fn restore(record: WorldRecord, idle_chunks: usize) -> World {
        World {
            tick: record.tick,
            terrain: Terrain::paged(record.seed),
            entities: Entities::paged(record.last_id),
            paging: Some(Paging::new(record.generator, idle_chunks)),
            ..World::new(WorldConfig { seed: record.seed, idle_chunks })
        }
    }

    /// Moves the chunks that somebody should look up and [`World::provide`] to the end of `out`: the 3x3 around the
    /// spawn, what [`World::want_around`] asked for, then the 5x5 around each player, the nearest first. Nothing in a
    /// world that is not paged.
    ///
    /// Each is told once: what is provided late is late, and where a chunk is never provided nobody ever goes near it.
    pub fn take_wanted(&mut self, out: &mut Vec<ChunkPos>) {
        if let Some(paging) = &mut self.paging {
            paging.tell(out);
        }
    }

    /// Asks for the 3x3 around a position, as somebody is about to enter there, and keeps it in memory for
    /// [`WANT_TICKS`] from now on; each further call begins them anew.
    pub fn want_around(&mut self, pos: Pos) {
        if let Some(paging) = &mut self.paging {
            paging.hold(pos, self.tick.saturating_add(WANT_TICKS), &self.terrain);
        }
    }

    /// Whether the 3x3 around a position is in memory. Always in a world that is not paged, which generates it.
    pub fn is_ready(&self, pos: Pos) -> bool {
        self.paging.is_none()
            || pos.chunk().around().iter().all(|&chunk| self.terrain.get(chunk).is_some())
    }

    /// Brings a chunk into memory: what a store knows of it, or `None` where it knows nothing, as nobody was there.
    /// Then it is generated, which is a change to be saved. Monsters are at their homes, unhurt.
    ///
    /// Ignored when the chunk is in memory already, when it is beyond the ground, and in a world that is not paged.
    ///
    /// # Errors
    ///
    /// [`UnknownGenerator`] when the record (or that of the world, for a new chunk) names a generator that this
    /// program does not have. The chunk then stays unavailable, and nobody can go near it.
    pub fn provide(
        &mut self,
        pos: ChunkPos,
        record: Option<ChunkRecord>,
    ) -> Result<(), UnknownGenerator> {
        let Some(paging) = &self.paging else {
            return Ok(());
        };
        if self.terrain.get(pos).is_some() {
            return Ok(());
        }
        let version = record.as_ref().map_or(paging.generator(), |record| record.generator);
        let generator = Generator::by_version(version)?;
        match record {
            Some(record) => self.restore_chunk(pos, generator, record),
            None => {
                self.terrain.discover(pos, generator, self.tick, &self.content);
                self.populate(pos, generator);
            }
        }
        if let Some(paging) = &mut self.paging {
            paging.came(pos);
        }
        Ok(())
    }

    /// A player who comes back where it was, with what it carried. Who would stand in rock or beyond the ground is at
    /// the spawn instead; hit points are at least 1 and at most those of an unhurt one.
    ///
    /// `None` when all ids are used up, and while [`World::is_ready`] does not hold for both that place and the spawn,
    /// where the player would be after a death.
    pub fn spawn_saved(&mut self, record: &PlayerRecord) -> Option<EntityId> {
        if !self.is_ready(record.pos) || !self.is_ready(SPAWN) {
            return None;
        }
        self.load_around(record.pos.chunk());
        let stands = record.pos.chunk().is_ground()
            && self.content.is_walkable(self.terrain.tile(record.pos));
        let pos = if stands { record.pos } else { SPAWN };
        let id = self.entities.allot()?;
        let (name, inventory) = (record.name.clone(), record.inventory.clone());
        self.admit(id, pos, Player { name, inventory, status: 0 });
        let mut entity = self.entities.get_mut(id)?;
        entity.hp = record.hp.min(entity.hp_max).max(1);
        entity.elo = record.elo;
        Some(id)
    }

    /// Moves the chunks that changed since they were last taken to the end of `out`, as they are now. They count as
    /// being saved until [`World::saved`] or [`World::not_saved`]: take no further ones before one of them was called.
    ///
    /// To be called between two ticks, right after [`World::step`], together with [`World::record`] and
    /// [`World::player_record`] of everybody: what is saved together is of one moment. Nothing in a world that is not
    /// paged.
    pub fn take_unsaved(&mut self, out: &mut Vec<(ChunkPos, ChunkRecord)>) {
        self.note_changes();
        let Some(paging) = &mut self.paging else {
            return;
        };
        for chunk in paging.take_changed() {
            if let Some(record) = self.chunk_record(chunk) {
                out.push((chunk, record));
            }
        }
    }

    /// What [`World::take_unsaved`] gave is safe.
    pub fn saved(&mut self) {
        if let Some(paging) = &mut self.paging {
            paging.saved();
        }
    }

    /// What [`World::take_unsaved`] gave is not safe: it counts as changed again.
    pub fn not_saved(&mut self) {
        if let Some(paging) = &mut self.paging {
            paging.not_saved();
        }
    }

    /// How many chunks changed or are being saved: all that a crash could take from them is in these.
    pub fn unsaved_chunks(&self) -> usize {
        let paging = self.paging.as_ref();
        paging.map_or(0, |paging| paging.unsaved(&self.terrain.marks, &self.entities.marks))
    }

    /// What is to be kept of a chunk of the ground that is in memory.
    pub fn chunk_record(&self, pos: ChunkPos) -> Option<ChunkRecord> {
        let (generator, edited) = self.terrain.kept(pos)?;
        let dwellers = self.entities.dwellers(pos).iter();
        let residents = dwellers.map(|dweller| {
            let body = dweller.body.and_then(|body| self.entities.get(body));
            Resident { elo: body.map_or(dweller.resident.elo, |body| body.elo), ..dweller.resident }
        });
        let spots = self.entities.in_chunk(pos).iter();
        let mut things: Vec<Thing> =
            spots.filter_map(|spot| thing(self.entities.get(spot.id)?)).collect();
        if let Some(paging) = &self.paging {
            things.extend_from_slice(paging.carried(pos));
            things.sort_by_key(|thing| thing.id);
        }
        Some(ChunkRecord {
            generator: generator.version(),
            edited: edited.cloned(),
            residents: residents.collect(),
            things,
        })
    }

    /// Whether this resident of `chunk` can have a body, as far as this program knows.
    pub(crate) fn can_live(&self, resident: &Resident, chunk: ChunkPos) -> bool {
        resident.home.chunk() == chunk
            && self.content.kind(resident.kind).is_some_and(|def| def.class == Class::Monster)
    }

    /// Lets go of idle chunks beyond the limit, the longest unvisited first.
    pub(crate) fn page_out(&mut self) {
        self.note_changes();
        let Some(paging) = &mut self.paging else {
            return;
        };
        paging.release(self.tick);
        if !paging.is_crowded(self.terrain.loaded()) {
            return;
        }
        let mut idle: Vec<(u64, ChunkPos)> =
            self.terrain.used().filter(|&(_, chunk)| self.is_idle(chunk)).collect();
        let excess = self.paging.as_ref().map_or(0, |paging| paging.excess(idle.len()));
        idle.sort_unstable();
        for &(_, chunk) in &idle[..excess] {
            self.put_away(chunk);
        }
    }

    /// Whether nothing would be lost or missed if this chunk went, nor anybody who lives there.
    fn is_idle(&self, chunk: ChunkPos) -> bool {
        let idle = self.paging.as_ref().is_some_and(|paging| paging.is_idle(chunk));
        let mut bodies = self.entities.dwellers(chunk).iter().filter_map(|dweller| dweller.body);
        idle && !bodies.any(|body| {
            let entity = self.entities.get(body);
            entity.is_some_and(|entity| self.terrain.is_active(entity.pos.chunk()))
        })
    }

    fn put_away(&mut self, chunk: ChunkPos) {
        self.entities.put_away(chunk);
        self.terrain.remove(chunk);
        if let Some(paging) = &mut self.paging {
            paging.forget(chunk);
        }
    }

    fn note_changes(&mut self) {
        if let Some(paging) = &mut self.paging {
            paging.note(&mut self.terrain.marks);
            paging.note(&mut self.entities.marks);
        }
    }

    fn restore_chunk(&mut self, pos: ChunkPos, generator: Generator, record: ChunkRecord) {
        self.terrain.restore(pos, generator, record.edited, self.tick, &self.content);
        for thing in record.things {
            self.entities.reserve(thing.id);
            match self.known(pos, &thing) {
                Some(entity) => self.entities.restore_thing(entity),
                None => self.carry(pos, thing),
            }
        }
        for resident in record.residents {
            let lives = resident.dead_until.is_none() && self.can_live(&resident, pos);
            let body = if lives { self.new_monster(resident.kind, resident.home) } else { None };
            let body = body.map(|body| Entity { elo: resident.elo, ..body });
            self.entities.restore_dweller(pos, resident, body);
        }
    }

    /// The thing as an entity; `None` when it is not one that this program could have made here: its kind is retired
    /// or another class by now, or the record is not sound.
    fn known(&self, pos: ChunkPos, thing: &Thing) -> Option<Entity> {
        let (class, body) = match &thing.body {
            ThingBody::Chest(inventory) => {
                (Class::Chest, Body::Chest { inventory: inventory.clone() })
            }
            ThingBody::Sign(text) => (Class::Sign, Body::Sign { text: text.clone() }),
            ThingBody::Item(count) => (Class::Item, Body::Item { count: *count }),
        };
        let def = self.content.kind(thing.kind).filter(|def| def.class == class)?;
        let sound = thing.pos.chunk() == pos
            && thing.id != EntityId::NONE
            && self.entities.get(thing.id).is_none()
            && thing.body != ThingBody::Item(0);
        sound.then(|| Entity::new(thing.id, thing.kind, def, thing.pos, body))
    }

    fn carry(&mut self, pos: ChunkPos, thing: Thing) {
        if let Some(paging) = &mut self.paging {
            paging.carry(pos, thing);
        }
    }
}

fn thing(entity: &Entity) -> Option<Thing> {
    let body = match &entity.body {
        Body::Player(_) | Body::Monster(_) => return None,
        Body::Chest { inventory } => ThingBody::Chest(inventory.clone()),
        Body::Sign { text } => ThingBody::Sign(text.clone()),
        Body::Item { count } => ThingBody::Item(*count),
    };
    Some(Thing { id: entity.id, kind: entity.kind, pos: entity.pos, body })
}

#[cfg(test)]
mod tests;
