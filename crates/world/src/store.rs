//! All entities, by id and by chunk, and who of them lives where.
//!
//! Whatever changes what is kept of a chunk ([`ChunkRecord`](crate::record::ChunkRecord)) goes through here or
//! through the terrain, and is marked here: no caller has to think of it.

use std::ops::{Deref, DerefMut};

use crate::content::{Class, KindId};
use crate::coord::{CHUNK_SIDE, ChunkPos, Pos};
use crate::entity::{Body, Entity, EntityId, Player};
use crate::paging::Marks;
use crate::record::Resident;
use crate::residents::{Dweller, Residents};
use crate::table::{ChunkMap, EntityMap};

/// An entity as its chunk knows it: what everybody who sees it may know of it, players' names, words and status
/// aside. Most questions about what is somewhere are answered from here, without looking the entity up.
///
/// The fields are those of [`Entity`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are those of `Entity`")]
pub struct Spot {
    pub id: EntityId,
    pub pos: Pos,
    pub kind: KindId,
    pub hp: u16,
    pub hp_max: u16,
    pub elo: u16,
    pub class: Class,
    pub is_hostile: bool,
}

impl Spot {
    fn of(entity: &Entity) -> Spot {
        Spot {
            id: entity.id,
            pos: entity.pos,
            kind: entity.kind,
            hp: entity.hp,
            hp_max: entity.hp_max,
            elo: entity.elo,
            class: entity.class(),
            is_hostile: entity.is_hostile(),
        }
    }
}

/// The spots of a chunk, ascending by id.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    spots: Vec<Spot>,
    /// Where in the chunk each of them is, along x and along y: what a view looks at of those that it does not show.
    xs: Vec<u8>,
    ys: Vec<u8>,
    /// How many of them are monsters.
    monsters: usize,
}

/// Room of a new bucket: as many as gather in a chunk of the caves on most days.
const BUCKET_ROOM: usize = 16;

impl Default for Bucket {
    fn default() -> Bucket {
        Bucket {
            spots: Vec::with_capacity(BUCKET_ROOM),
            xs: Vec::with_capacity(BUCKET_ROOM),
            ys: Vec::with_capacity(BUCKET_ROOM),
            monsters: 0,
        }
    }
}

impl Bucket {
    /// Ascending by id.
    pub(crate) fn spots(&self) -> &[Spot] {
        &self.spots
    }

    /// Where in the chunk each spot is: the tiles from its western and from its northern edge.
    pub(crate) fn places(&self) -> (&[u8], &[u8]) {
        (&self.xs, &self.ys)
    }

    fn put(&mut self, spot: Spot) {
        let (x, y) = place(spot.pos);
        match self.spots.binary_search_by_key(&spot.id, |known| known.id) {
            Ok(at) => (self.spots[at], self.xs[at], self.ys[at]) = (spot, x, y),
            Err(at) => {
                self.monsters += usize::from(spot.class == Class::Monster);
                self.spots.insert(at, spot);
                self.xs.insert(at, x);
                self.ys.insert(at, y);
            }
        }
    }

    fn take(&mut self, id: EntityId) {
        if let Ok(at) = self.spots.binary_search_by_key(&id, |known| known.id) {
            let spot = self.spots.remove(at);
            self.xs.remove(at);
            self.ys.remove(at);
            self.monsters -= usize::from(spot.class == Class::Monster);
        }
    }
}

/// Where in its chunk a position is.
fn place(pos: Pos) -> (u8, u8) {
    (pos.x.rem_euclid(CHUNK_SIDE) as u8, pos.y.rem_euclid(CHUNK_SIDE) as u8)
}

/// The entities by id. Players are few and asked for many times a tick, all others are many and hardly ever: players
/// have a table of their own, which stays in the caches however much sleeps.
#[derive(Clone, Debug, Default)]
struct ById {
    players: EntityMap<Entity>,
    others: EntityMap<Entity>,
}

impl ById {
    fn get(&self, id: &EntityId) -> Option<&Entity> {
        self.players.get(id).or_else(|| self.others.get(id))
    }

    fn get_mut(&mut self, id: &EntityId) -> Option<&mut Entity> {
        self.players.get_mut(id).or_else(|| self.others.get_mut(id))
    }

    fn insert(&mut self, id: EntityId, entity: Entity) {
        let is_player = entity.player().is_some();
        let table = if is_player { &mut self.players } else { &mut self.others };
        table.insert(id, entity);
    }

    fn remove(&mut self, id: &EntityId) -> Option<Entity> {
        self.players.remove(id).or_else(|| self.others.remove(id))
    }

    /// In no order.
    fn values(&self) -> impl Iterator<Item = &Entity> {
        self.players.values().chain(self.others.values())
    }

    fn len(&self) -> usize {
        self.players.len() + self.others.len()
    }
}

/// Owns the entities. Every entity has exactly one spot, in the bucket of its chunk, and that agrees with it. A
/// bucket stays when it is empty, until its chunk is put away: who comes back needs it again. Every monster is the
/// body of exactly one dweller of its home's chunk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entities {
    by_id: ById,
    buckets: ChunkMap<Bucket>,
    residents: Residents,
    /// Chunks of which something else is to be kept than when this was last taken.
    pub(crate) marks: Marks,
    last: u32,
}

impl Entities {
    /// None yet, but ids up to `last` were given away; changes are marked.
    pub(crate) fn paged(last: u32) -> Entities {
        Entities { last, marks: Marks::kept(), ..Entities::default() }
    }

    /// A new id; `None` when all four billion are used up, as they are never reused.
    pub(crate) fn allot(&mut self) -> Option<EntityId> {
        self.last = self.last.checked_add(1)?;
        Some(EntityId(self.last))
    }

    /// A new entity. A monster becomes a resident of its home.
    pub(crate) fn insert(&mut self, entity: Entity) {
        if let Body::Monster(monster) = &entity.body {
            let resident = Resident {
                kind: entity.kind,
                home: monster.home,
                elo: entity.elo,
                dead_until: None,
            };
            let dweller = Dweller { resident, body: Some(entity.id) };
            self.residents.add(monster.home.chunk(), dweller);
        }
        self.mark(&entity);
        self.place(entity);
    }

    /// An entity is no more. A monster is no resident any longer.
    pub(crate) fn remove(&mut self, id: EntityId) -> Option<Entity> {
        let entity = self.take_away(id)?;
        if let Body::Monster(monster) = &entity.body {
            self.residents.take_out(monster.home, id);
        }
        self.mark(&entity);
        Some(entity)
    }

    /// A monster dies; its home awaits it from tick `until` on, with rating `elo`.
    pub(crate) fn bury(&mut self, id: EntityId, elo: u16, until: u64) -> Option<Entity> {
        let entity = self.take_away(id)?;
        if let Body::Monster(monster) = &entity.body {
            self.residents.bury(monster.home, id, elo, until);
        }
        self.mark(&entity);
        Some(entity)
    }

    /// The dead dweller number `at` of `chunk` is back, as `monster`.
    pub(crate) fn wake(&mut self, chunk: ChunkPos, at: usize, monster: Entity) {
        self.residents.wake(chunk, at, monster.id);
        self.mark(&monster);
        self.place(monster);
    }

    /// Those who live in a chunk, wherever they are; the dead in the order of their deaths.
    pub(crate) fn dwellers(&self, chunk: ChunkPos) -> &[Dweller] {
        self.residents.of(chunk)
    }

    /// The chunks where somebody waits to come back, ascending.
    pub(crate) fn mourning(&self) -> impl Iterator<Item = ChunkPos> {
        self.residents.mourning()
    }

    /// All that wait to come back, and from when on.
    pub(crate) fn dead(&self) -> impl Iterator<Item = (&Resident, u64)> {
        self.residents.dead()
    }

    /// An id that is in use without having been allotted here.
    pub(crate) fn reserve(&mut self, id: EntityId) {
        self.last = self.last.max(id.0);
    }

    /// A thing as it was kept.
    pub(crate) fn restore_thing(&mut self, thing: Entity) {
        self.place(thing);
    }

    /// A resident as it was kept, and its body if it is to have one.
    pub(crate) fn restore_dweller(
        &mut self,
        chunk: ChunkPos,
        resident: Resident,
        body: Option<Entity>,
    ) {
        self.residents.add(chunk, Dweller { resident, body: body.as_ref().map(|body| body.id) });
        if let Some(body) = body {
            self.place(body);
        }
    }

    /// Forgets what is in a chunk and who lives there. Monsters from elsewhere that sleep in it go home.
    pub(crate) fn put_away(&mut self, chunk: ChunkPos) {
        for dweller in self.residents.remove_all(chunk) {
            dweller.body.and_then(|body| self.take_away(body));
        }
        for spot in self.in_chunk(chunk).to_vec() {
            match self.by_id.get(&spot.id).and_then(Entity::monster).map(|monster| monster.home) {
                Some(home) => _ = self.relocate(spot.id, home),
                None => _ = self.take_away(spot.id),
            }
        }
        if self.in_chunk(chunk).is_empty() {
            self.buckets.remove(&chunk);
        }
    }

    /// Moves an entity: the only way its position changes. Returns where it was.
    pub(crate) fn relocate(&mut self, id: EntityId, to: Pos) -> Option<Pos> {
        let entity = self.by_id.get_mut(&id)?;
        let from = std::mem::replace(&mut entity.pos, to);
        if entity.is_static() {
            self.marks.add(from.chunk());
            self.marks.add(to.chunk());
        }
        let spot = Spot::of(entity);
        if from.chunk() != to.chunk() {
            self.take(id, from.chunk());
        }
        self.put(spot);
        Some(from)
    }

    pub(crate) fn get(&self, id: EntityId) -> Option<&Entity> {
        self.by_id.get(&id)
    }

    /// Whoever changes an entity through this leaves its id, position and class alone.
    pub(crate) fn get_mut(&mut self, id: EntityId) -> Option<Change<'_>> {
        let entity = self.by_id.get_mut(&id)?;
        let before = Spot::of(entity);
        let books = (&mut self.marks, &mut self.buckets);
        Some(Change { entity, books, before, touched: false })
    }

    /// A player's own: it belongs to no chunk.
    pub(crate) fn player_mut(&mut self, id: EntityId) -> Option<&mut Player> {
        self.by_id.get_mut(&id)?.player_mut()
    }

    /// The entities of a chunk, ascending by id.
    pub(crate) fn in_chunk(&self, chunk: ChunkPos) -> &[Spot] {
        self.buckets.get(&chunk).map_or(&[], |bucket| &bucket.spots)
    }

    /// The bucket of a chunk, if anything was ever there.
    pub(crate) fn bucket(&self, chunk: ChunkPos) -> Option<&Bucket> {
        self.buckets.get(&chunk)
    }

    /// The monsters of a chunk, ascending by id.
    pub(crate) fn monsters_in(&self, chunk: ChunkPos) -> impl Iterator<Item = Spot> {
        let bucket = self.buckets.get(&chunk).filter(|bucket| bucket.monsters > 0);
        let spots = bucket.map_or(&[][..], |bucket| &bucket.spots);
        spots.iter().copied().filter(|spot| spot.class == Class::Monster)
    }

    /// The entities on a tile, ascending by id.
    pub(crate) fn at(&self, pos: Pos) -> impl Iterator<Item = Spot> {
        self.in_chunk(pos.chunk()).iter().copied().filter(move |spot| spot.pos == pos)
    }

    /// The entities within a rectangle, both corners inclusive; by chunk, not ascending overall.
    pub(crate) fn within(&self, north_west: Pos, south_east: Pos) -> impl Iterator<Item = Spot> {
        let (first, last) = (north_west.chunk(), south_east.chunk());
        let chunks = (first.y..=last.y)
            .flat_map(move |y| (first.x..=last.x).map(move |x| ChunkPos { x, y }));
        chunks.flat_map(|chunk| self.in_chunk(chunk)).copied().filter(move |spot| {
            (north_west.x..=south_east.x).contains(&spot.pos.x)
                && (north_west.y..=south_east.y).contains(&spot.pos.y)
        })
    }

    /// All entities, ascending by id. They are sorted for it: nothing for every tick.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entity> {
        let mut all: Vec<&Entity> = self.by_id.values().collect();
        all.sort_unstable_by_key(|entity| entity.id);
        all.into_iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// The highest id given so far.
    pub(crate) fn last_id(&self) -> u32 {
        self.last
    }

    /// Something else is to be kept of the chunk that this entity belongs to.
    fn mark(&mut self, entity: &Entity) {
        self.marks.add_if(keeper(entity));
    }

    fn place(&mut self, entity: Entity) {
        self.put(Spot::of(&entity));
        self.by_id.insert(entity.id, entity);
    }

    fn take_away(&mut self, id: EntityId) -> Option<Entity> {
        let entity = self.by_id.remove(&id)?;
        self.take(id, entity.pos.chunk());
        Some(entity)
    }

    fn put(&mut self, spot: Spot) {
        self.buckets.entry(spot.pos.chunk()).or_default().put(spot);
    }

    fn take(&mut self, id: EntityId, chunk: ChunkPos) {
        if let Some(bucket) = self.buckets.get_mut(&chunk) {
            bucket.take(id);
        }
    }

    /// Panics unless buckets and entities agree.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        let spots: usize = self.buckets.values().map(|bucket| bucket.spots.len()).sum();
        assert_eq!(spots, self.by_id.len());
        self.buckets.iter().for_each(|(chunk, Bucket { spots, xs, ys, monsters })| {
            let places = xs.iter().copied().zip(ys.iter().copied());
            assert!(places.eq(spots.iter().map(|spot| place(spot.pos))) && xs.len() == ys.len());
            assert!(spots.is_sorted_by(|a, b| a.id < b.id));
            for spot in spots {
                let entity = self.get(spot.id).unwrap();
                assert_eq!(Spot::of(entity), *spot);
                assert_eq!(entity.pos.chunk(), *chunk);
            }
            let living = spots.iter().filter(|spot| spot.class == Class::Monster);
            assert_eq!(living.count(), *monsters);
        });
        let mut bodies: Vec<EntityId> =
            self.residents.iter().filter_map(|dweller| dweller.body).collect();
        bodies.sort_unstable();
        let monsters = self.iter().filter(|entity| entity.monster().is_some());
        assert_eq!(bodies, monsters.map(|entity| entity.id).collect::<Vec<_>>());
        for dweller in self.residents.iter() {
            let home =
                dweller.body.map(|body| self.get(body).unwrap().monster().map(|own| own.home));
            assert!(home.is_none_or(|home| home == Some(dweller.resident.home)));
        }
    }

    /// Removes all but players, and forgets who is yet to come back.
    #[cfg(test)]
    pub(crate) fn clear_but_players(&mut self) {
        self.residents.clear();
        let others = self.iter().filter(|entity| entity.player().is_none());
        for id in others.map(|entity| entity.id).collect::<Vec<_>>() {
            self.take_away(id);
        }
    }
}

/// An entity that is being changed. When this ends, its spot says what it is now, and the chunk whose record it
/// changes is marked.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    entity: &'a mut Entity,
    books: (&'a mut Marks, &'a mut ChunkMap<Bucket>),
    before: Spot,
    touched: bool,
}

impl Deref for Change<'_> {
    type Target = Entity;

    fn deref(&self) -> &Entity {
        self.entity
    }
}

impl DerefMut for Change<'_> {
    fn deref_mut(&mut self) -> &mut Entity {
        self.touched = true;
        self.entity
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        if !self.touched {
            return;
        }
        let (marks, buckets) = &mut self.books;
        let now = Spot::of(self.entity);
        // Monsters change all the time in ways that nobody keeps: where they are, hit points, moods. All that is
        // kept of a living one and can change is its rating.
        if self.entity.is_static() || now.elo != self.before.elo {
            marks.add_if(keeper(self.entity));
        }
        if now != self.before
            && let Some(bucket) = buckets.get_mut(&now.pos.chunk())
        {
            bucket.put(now);
        }
    }
}

/// The chunk in whose record this entity stands: a thing where it lies, a monster where it lives.
fn keeper(entity: &Entity) -> Option<ChunkPos> {
    match &entity.body {
        Body::Player(_) => None,
        Body::Monster(monster) => Some(monster.home.chunk()),
        Body::Chest { .. } | Body::Sign { .. } | Body::Item { .. } => Some(entity.pos.chunk()),
    }
}
