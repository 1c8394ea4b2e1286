use super::*;
use std::collections::{BTreeMap, BTreeSet};

use crate::combat::RESPAWN_TICKS;
use crate::command::{Command, Outcome};
use crate::content::{Content, KindId, TileId};
use crate::coord::Direction;
use crate::event::{Event, Notice};
use crate::inventory::Inventory;
use crate::testing::MIDDLE;

mod beside;

const NEW: WorldRecord = WorldRecord { seed: 1, generator: 1, tick: 0, last_id: 0 };

/// The chunk of [`MIDDLE`] and its neighbour to the east.
const HERE: ChunkPos = ChunkPos { x: 10, y: 10 };
const EAST: ChunkPos = ChunkPos { x: 11, y: 10 };

/// A world whose store answers at once.
struct Served {
    world: World,
    store: BTreeMap<ChunkPos, ChunkRecord>,
}

impl Served {
    fn new(record: WorldRecord, idle_chunks: usize) -> Served {
        let world = World::restore(record, idle_chunks);
        let mut served = Served { world, store: BTreeMap::new() };
        served.serve();
        served
    }

    /// Ada alone in the middle of a square of floor, 11 by 11 tiles; everything is saved.
    fn quiet(idle_chunks: usize) -> (Served, EntityId) {
        let mut served = Served::new(NEW, idle_chunks);
        let ada = served.world.spawn_player(Some("Ada"));
        served.go(ada, MIDDLE);
        for (dx, dy) in (-5..=5).flat_map(|dx| (-5..=5).map(move |dy| (dx, dy))) {
            served.world.terrain.set(MIDDLE.offset(dx, dy), TileId::FLOOR).unwrap();
        }
        served.world.entities.clear_but_players();
        served.world.step();
        served.save();
        (served, ada)
    }

    fn serve(&mut self) -> Vec<ChunkPos> {
        let mut wanted = Vec::new();
        self.world.take_wanted(&mut wanted);
        for &pos in &wanted {
            self.world.provide(pos, self.store.get(&pos).cloned()).unwrap();
        }
        wanted
    }

    /// Saves and says which chunks there were to be saved.
    fn save(&mut self) -> Vec<ChunkPos> {
        let mut unsaved = Vec::new();
        self.world.take_unsaved(&mut unsaved);
        let chunks = unsaved.iter().map(|(pos, _)| *pos).collect();
        self.store.extend(unsaved);
        self.world.saved();
        assert_eq!(self.world.unsaved_chunks(), 0);
        chunks
    }

    fn go(&mut self, player: EntityId, to: Pos) {
        self.world.want_around(to);
        self.serve();
        assert!(self.world.relocate(player, to));
        self.serve();
    }

    fn tick(&mut self) {
        self.world.step();
        self.save();
        self.serve();
        self.world.entities.check();
    }

    fn kind(&self, name: &str) -> KindId {
        self.world.content.kind_id(name).unwrap()
    }

    fn thing(&mut self, name: &str, pos: Pos, body: Body) -> EntityId {
        let (kind, id) = (self.kind(name), self.world.entities.allot().unwrap());
        assert!(self.world.add(id, kind, pos, body));
        id
    }

    fn monster(&mut self, name: &str, home: Pos) -> EntityId {
        let kind = self.kind(name);
        self.world.add_monster(kind, home);
        EntityId(self.world.entities.last_id())
    }

    fn set_hp(&mut self, id: EntityId, hp: u16) {
        self.world.entities.get_mut(id).unwrap().hp = hp;
    }
}

fn square(middle: ChunkPos, reach: i32) -> Vec<ChunkPos> {
    let side = move |n: i32| n - reach..=n + reach;
    side(middle.x).flat_map(|x| side(middle.y).map(move |y| ChunkPos { x, y })).collect()
}

fn sorted(mut chunks: Vec<ChunkPos>) -> Vec<ChunkPos> {
    chunks.sort_unstable();
    chunks
}

#[test]
fn a_world_that_is_not_paged_asks_for_nothing_and_has_nothing_to_save() {
    let mut world = World::new(WorldConfig { seed: 1, idle_chunks: 4 });
    assert!(world.is_ready(MIDDLE));
    let ada = world.spawn_player(None);
    world.want_around(MIDDLE);
    world.relocate(ada, MIDDLE);
    world.lay_down(KindId(8), 1, MIDDLE);
    for _ in 0..5 {
        let _ = world.execute(ada, Command::Dig(Direction::North));
        world.step();
    }
    let before = world.hash();
    world.provide(ChunkPos { x: 300, y: 300 }, None).unwrap();
    let (mut wanted, mut unsaved) = (Vec::new(), Vec::new());
    world.take_wanted(&mut wanted);
    world.take_unsaved(&mut unsaved);
    assert_eq!((wanted.len(), unsaved.len(), world.unsaved_chunks()), (0, 0, 0));
    assert_eq!(world.hash(), before);
    assert!(world.loaded_chunk(ChunkPos { x: 300, y: 300 }).is_none());
    assert_eq!(world.entities.marks.iter().count() + world.terrain.marks.iter().count(), 0);
}

#[test]
fn the_surroundings_of_the_spawn_come_first_and_are_told_once() {
    let mut world = World::restore(NEW, 0);
    let mut wanted = Vec::new();
    world.take_wanted(&mut wanted);
    assert_eq!(wanted[0], SPAWN.chunk());
    assert_eq!(sorted(wanted.clone()), square(SPAWN.chunk(), 1));
    let mut again = Vec::new();
    world.take_wanted(&mut again);
    assert_eq!(again, []);
    for (n, &pos) in wanted.iter().enumerate() {
        assert!(!world.is_ready(SPAWN), "{n} of 9");
        assert_eq!(world.spawn_player(None), EntityId::NONE);
        world.provide(pos, None).unwrap();
    }
    assert!(world.is_ready(SPAWN));
    assert_ne!(world.spawn_player(None), EntityId::NONE);
}

#[test]
fn a_player_wants_the_five_by_five_once_and_after_what_somebody_waits_for() {
    let mut served = Served::new(NEW, 1000);
    served.world.spawn_player(None);
    served.world.spawn_player(None);
    served.world.want_around(MIDDLE);
    let wanted = served.serve();
    assert_eq!(wanted[0], HERE);
    assert_eq!(sorted(wanted[..9].to_vec()), square(HERE, 1));
    let ring =
        square(SPAWN.chunk(), 2).into_iter().filter(|pos| !SPAWN.chunk().around().contains(pos));
    assert_eq!(sorted(wanted[9..].to_vec()), ring.collect::<Vec<_>>());
}

#[test]
fn what_nobody_needs_any_more_is_not_told_and_may_be_asked_again() {
    let mut served = Served::new(NEW, 0);
    served.world.want_around(MIDDLE);
    served.world.tick += WANT_TICKS;
    served.world.page_out();
    assert_eq!(served.serve(), []);
    served.world.want_around(MIDDLE);
    assert_eq!(sorted(served.serve()), square(HERE, 1));
}

#[test]
fn nobody_walks_into_the_unknown() {
    let mut served = Served::new(NEW, 1000);
    let ada = served.world.spawn_player(None);
    // At the eastern border of chunk (0,0); what lies beyond is known, but not the column after it.
    let edge = Pos { x: 31, y: 16 };
    assert!(served.world.relocate(ada, edge));
    for dx in 0..2 {
        served.world.terrain.set(edge.offset(dx, 0), TileId::FLOOR).unwrap();
    }
    served.world.entities.clear_but_players();
    let east = Command::Move(Direction::East);
    assert!(!served.world.is_ready(edge.offset(1, 0)));
    assert_eq!(served.world.execute(ada, east.clone()), Outcome::NoEffect);
    assert_eq!(served.world.entity(ada).unwrap().pos, edge);
    served.serve();
    assert_eq!(served.world.execute(ada, east), Outcome::Effect);
    assert_eq!(served.world.entity(ada).unwrap().pos, edge.offset(1, 0));
    assert_eq!(sorted(served.serve()), (-2..=2).map(|y| ChunkPos { x: 3, y }).collect::<Vec<_>>());
}

#[test]
fn at_the_end_of_the_ground_nothing_is_asked_for_beyond_it() {
    let mut served = Served::new(NEW, 1000);
    let ada = served.world.spawn_player(None);
    served.serve();
    served.go(ada, ChunkPos { x: -1023, y: 1022 }.tile(0));
    assert_eq!(served.world.loaded_chunks(), 25 + 9);
    assert!(served.world.is_ready(ChunkPos { x: 5000, y: 5000 }.origin()));
}

#[test]
fn what_was_wanted_is_held_for_a_bounded_while() {
    let mut served = Served::new(NEW, 0);
    served.save();
    served.world.want_around(MIDDLE);
    served.serve();
    served.save();
    for tick in 0..WANT_TICKS {
        assert!(served.world.is_ready(MIDDLE), "tick {tick}");
        served.tick();
    }
    assert_eq!(served.world.loaded_chunks(), 9);
    assert!(served.world.is_ready(SPAWN) && !served.world.is_ready(MIDDLE));
    assert_eq!(served.serve(), []);
}

#[test]
fn a_chunk_in_memory_is_not_replaced() {
    let mut served = Served::new(NEW, 10);
    let before = served.world.chunk_record(SPAWN.chunk());
    let count = served.world.entity_count();
    served.world.provide(SPAWN.chunk(), None).unwrap();
    let other = ChunkRecord { generator: 1, edited: None, residents: vec![], things: vec![] };
    served.world.provide(SPAWN.chunk(), Some(other.clone())).unwrap();
    served.world.provide(ChunkPos { x: 2000, y: 0 }, Some(other)).unwrap();
    assert_eq!(served.world.chunk_record(SPAWN.chunk()), before);
    assert_eq!((served.world.entity_count(), served.world.loaded_chunks()), (count, 9));
}

#[test]
fn another_generator_stands_in_for_none() {
    let mut served = Served::new(NEW, 10);
    served.world.want_around(MIDDLE);
    let mut wanted = Vec::new();
    served.world.take_wanted(&mut wanted);
    let strange =
        ChunkRecord { generator: 77, edited: None, residents: Vec::new(), things: Vec::new() };
    for pos in wanted {
        let record = (pos == EAST).then(|| strange.clone());
        let expected = if pos == EAST { Err(UnknownGenerator(77)) } else { Ok(()) };
        assert_eq!(served.world.provide(pos, record), expected);
    }
    assert!(served.world.loaded_chunk(EAST).is_none() && !served.world.is_ready(MIDDLE));
    assert!(served.world.chunk_record(EAST).is_none());
    assert!(!served.save().contains(&EAST));
    served.world.want_around(MIDDLE);
    assert_eq!(served.serve(), [], "it would come to the same");

    let mut newer = World::restore(WorldRecord { generator: 2, ..NEW }, 10);
    assert_eq!(newer.provide(SPAWN.chunk(), None), Err(UnknownGenerator(2)));
    assert_eq!(newer.record().generator, 2);
    assert_eq!((newer.loaded_chunks(), newer.entity_count()), (0, 0));
}

#[test]
fn counters_go_on_from_the_record() {
    let record = WorldRecord { seed: 9, generator: 1, tick: 5_000, last_id: 70_000 };
    let mut served = Served::new(record, 10);
    assert_eq!(served.world.tick(), 5_000);
    let ada = served.world.spawn_player(None);
    assert!(ada.0 > 70_000);
    assert_eq!(served.world.record(), WorldRecord { last_id: ada.0, ..record });
    served.world.step();
    assert_eq!(served.world.tick(), 5_001);
}

#[test]
fn a_first_visit_is_a_change_and_the_record_leads_back_to_it() {
    let mut served = Served::new(NEW, 0);
    assert_eq!(served.world.unsaved_chunks(), 9);
    assert_eq!(served.save(), square(SPAWN.chunk(), 1));
    let content = Content::core();
    for (&pos, record) in &served.store {
        // As it comes out of the generator, whatever the world has made of it.
        let chunk = crate::generate(1, pos, &content);
        let spawns = crate::populate(1, pos, &chunk, &content);
        let monsters = spawns.iter().filter(|spawn| spawn.body == crate::SpawnBody::Monster);
        let homes: Vec<Pos> = monsters.map(|spawn| spawn.pos).collect();
        assert_eq!(record.residents.iter().map(|own| own.home).collect::<Vec<_>>(), homes);
        assert_eq!(record.things.len(), spawns.len() - homes.len());
        assert!(record.edited.is_none() && record.things.is_sorted_by(|a, b| a.id < b.id));
    }
    let mut again = Served { world: World::restore(served.world.record(), 0), ..served };
    again.serve();
    for (&pos, record) in &again.store {
        assert_eq!(again.world.chunk_record(pos).as_ref(), Some(record));
    }
    assert_eq!(again.world.unsaved_chunks(), 0);
}

#[test]
fn changes_of_things_and_tiles_are_marked_and_nothing_else_is() {
    let (mut served, ada) = Served::quiet(1000);
    let coin = served.kind("core:coin");
    assert_eq!(served.save(), []);
    for command in [
        Command::Move(Direction::North),
        Command::Say("hello".to_owned()),
        Command::PickUp,
        Command::Drop { item: coin, count: 1 },
        Command::Dig(Direction::North),
    ] {
        let _ = served.world.execute(ada, command);
        served.world.step();
        assert_eq!(served.save(), []);
    }
    let here = served.world.entity(ada).unwrap().pos;

    assert!(served.world.lay_down(coin, 65_000, here));
    assert_eq!(served.save(), [HERE]);
    assert!(served.world.lay_down(coin, 5, here));
    assert_eq!(served.save(), [HERE], "onto a stack");
    let _ = served.world.execute(ada, Command::PickUp);
    assert_eq!(served.save(), [HERE]);
    assert!(served.world.lay_down(coin, 1000, here));
    served.save();
    let _ = served.world.execute(ada, Command::PickUp);
    assert_eq!(served.save(), [HERE], "530 of 1000 fit");
    let _ = served.world.execute(ada, Command::PickUp);
    assert_eq!(served.save(), [], "nothing fits");
    let _ = served.world.execute(ada, Command::Drop { item: coin, count: 2 });
    assert_eq!(served.save(), [HERE]);

    let sign = served.thing("core:sign", here, Body::Sign { text: "x".to_owned() });
    assert_eq!(served.save(), [HERE]);
    assert_eq!(served.world.execute(ada, Command::Interact(sign)), Outcome::Effect);
    assert_eq!(served.save(), []);
    let mut inventory = Inventory::default();
    inventory.add(served.kind("core:bone"), 2);
    let chest = served.thing("core:chest", here, Body::Chest { inventory });
    served.save();
    assert_eq!(served.world.execute(ada, Command::Interact(chest)), Outcome::Effect);
    assert_eq!(served.save(), [HERE]);
    assert_eq!(served.world.execute(ada, Command::Interact(chest)), Outcome::NoEffect);
    assert_eq!(served.save(), []);

    served.world.terrain.set(here.offset(0, -1), TileId::ROCK).unwrap();
    assert_eq!(served.save(), [HERE]);
    served.world.step();
    assert_eq!(served.save(), [HERE], "its version rose");
    assert_eq!(served.world.execute(ada, Command::Dig(Direction::North)), Outcome::Effect);
    served.world.step();
    assert_eq!(served.save(), [HERE]);
    // The tile lies in the neighbour, so that one changes.
    served.world.terrain.set(EAST.tile(0), TileId::BEDROCK).unwrap();
    served.world.step();
    assert_eq!(served.save(), [EAST]);
    assert_eq!(served.store[&EAST].edited.as_ref().unwrap().tile(0), TileId::BEDROCK);
}

#[test]
fn changes_of_a_monster_are_marked_where_it_lives() {
    let (mut served, ada) = Served::quiet(1000);
    let home = EAST.tile(8 * 32 + 31);
    served.world.terrain.set(home, TileId::FLOOR).unwrap();
    let rat = served.monster("core:cave_rat", home);
    served.world.step();
    assert_eq!(served.save(), [EAST]);
    // Where it is, whom it fights and how it is hurt is nobody's to keep.
    served.world.relocate(rat, MIDDLE.offset(1, 0));
    served.set_hp(rat, 3);
    served.world.strike(rat, ada);
    served.world.step();
    assert_eq!(served.save(), []);

    served.set_hp(ada, 1);
    served.world.strike(rat, ada);
    assert_eq!(served.world.entity(ada).unwrap().pos, SPAWN);
    assert_eq!(served.save(), [EAST]);
    // 800 against 1000: 32 / (1 + 10^-0.5) = 24.3
    assert_eq!(served.store[&EAST].residents[0].elo, 824);

    served.go(ada, MIDDLE);
    served.set_hp(rat, 1);
    served.world.relocate(rat, MIDDLE.offset(1, 0));
    served.world.strike(ada, rat);
    assert!(served.save().contains(&EAST));
    let due = served.world.tick() + RESPAWN_TICKS;
    let dead = Resident { kind: KindId(1), home, elo: 800, dead_until: Some(due) };
    assert_eq!(served.store[&EAST].residents, [dead]);

    while served.world.tick() <= due {
        assert_eq!(served.save(), []);
        served.world.step();
    }
    assert_eq!(served.save(), [EAST]);
    assert_eq!(served.store[&EAST].residents, [Resident { dead_until: None, ..dead }]);
    // Also where the ratings are so far apart that none moves.
    let body = served.world.entities.dwellers(EAST)[0].body.unwrap();
    served.world.entities.bury(body, 800, due + 9);
    assert_eq!(served.save(), [EAST]);
    served.world.entities.check();
}

#[test]
fn what_changes_while_it_is_being_saved_is_saved_again() {
    let (mut served, _) = Served::quiet(1000);
    let coin = served.kind("core:coin");
    let mut taken = Vec::new();
    let taken_now = |served: &mut Served, taken: &mut Vec<_>| {
        taken.clear();
        served.world.take_unsaved(taken);
        taken.iter().map(|(pos, _)| *pos).collect::<Vec<ChunkPos>>()
    };
    served.world.lay_down(coin, 1, MIDDLE);
    served.world.lay_down(coin, 1, EAST.tile(5));
    assert_eq!(served.world.unsaved_chunks(), 2);
    assert_eq!(taken_now(&mut served, &mut taken), [HERE, EAST]);
    assert_eq!(served.world.unsaved_chunks(), 2, "being saved is not yet saved");
    served.world.lay_down(coin, 1, MIDDLE);
    assert_eq!(served.world.unsaved_chunks(), 2);
    served.world.step();
    assert_eq!(served.world.unsaved_chunks(), 2);
    served.world.saved();
    assert_eq!(served.world.unsaved_chunks(), 1);
    assert_eq!(taken_now(&mut served, &mut taken), [HERE]);
    assert!(matches!(taken[0].1.things[..], [Thing { body: ThingBody::Item(2), .. }]));
    served.world.not_saved();
    assert_eq!(served.world.unsaved_chunks(), 1);
    assert_eq!(taken_now(&mut served, &mut taken), [HERE]);
    served.world.saved();
    assert_eq!(served.world.unsaved_chunks(), 0);
    served.world.not_saved();
    assert_eq!(taken_now(&mut served, &mut taken), []);
}

#[test]
fn what_is_not_saved_does_not_go() {
    let (mut served, ada) = Served::quiet(0);
    let coin = served.kind("core:coin");
    served.world.lay_down(coin, 1, MIDDLE);
    served.go(ada, SPAWN);
    served.world.tick += WANT_TICKS;
    served.world.step();
    assert!(served.world.loaded_chunk(HERE).is_some());
    assert!(served.world.loaded_chunk(EAST).is_none());
    let mut taken = Vec::new();
    served.world.take_unsaved(&mut taken);
    served.world.step();
    assert!(served.world.loaded_chunk(HERE).is_some(), "it is being saved");
    served.world.not_saved();
    served.world.step();
    assert!(served.world.loaded_chunk(HERE).is_some());
    served.save();
    served.world.step();
    assert!(served.world.loaded_chunk(HERE).is_none());
    assert!(matches!(served.store[&HERE].things[..], [Thing { body: ThingBody::Item(1), .. }]));
}

#[test]
fn things_keep_their_ids_and_monsters_are_found_at_home_unhurt() {
    let (mut served, ada) = Served::quiet(0);
    let coin = served.kind("core:coin");
    served.world.lay_down(coin, 7, MIDDLE);
    let coins = EntityId(served.world.entities.last_id());
    let beetle = served.monster("core:glow_beetle", MIDDLE.offset(4, 0));
    served.world.entities.get_mut(beetle).unwrap().elo = 911;
    served.world.relocate(beetle, MIDDLE.offset(2, 2));
    served.set_hp(beetle, 1);
    served.tick();
    served.go(ada, SPAWN);
    served.world.tick += WANT_TICKS;
    served.tick();
    assert!(served.world.loaded_chunk(HERE).is_none());
    assert!(served.world.entity(coins).is_none() && served.world.entity(beetle).is_none());
    let last = served.world.entities.last_id();

    served.go(ada, MIDDLE);
    let again = served.world.entity(coins).unwrap();
    assert_eq!((again.kind, again.pos, &again.body), (coin, MIDDLE, &Body::Item { count: 7 }));
    let monsters: Vec<&Entity> =
        served.world.entities.iter().filter(|entity| entity.monster().is_some()).collect();
    let found = monsters.iter().find(|entity| entity.pos.chunk() == HERE).unwrap();
    assert!(found.id.0 > last);
    assert_eq!((found.pos, found.elo, found.hp), (MIDDLE.offset(4, 0), 911, found.hp_max));
}

#[test]
fn the_dead_come_back_when_they_are_due_though_they_were_paged_out() {
    let (mut served, ada) = Served::quiet(0);
    let home = HERE.tile(3 * 32 + 30);
    served.world.terrain.set(home, TileId::FLOOR).unwrap();
    let rat = served.monster("core:cave_rat", home);
    served.set_hp(rat, 1);
    served.world.strike(ada, rat);
    let due = served.world.tick() + RESPAWN_TICKS;
    served.tick();
    served.go(ada, SPAWN);
    served.world.tick += WANT_TICKS;
    served.tick();
    assert!(served.world.loaded_chunk(HERE).is_none());
    // Out of reach of its home, near enough that the chunk is active.
    served.go(ada, MIDDLE.offset(-16, 15));
    let rats = |served: &Served| {
        let dwellers = served.world.entities.dwellers(HERE);
        dwellers.iter().filter(|dweller| dweller.body.is_some()).count()
    };
    assert_eq!(rats(&served), 0);
    while served.world.tick() < due {
        served.tick();
        assert_eq!(rats(&served), 0, "tick {}", served.world.tick());
    }
    served.tick();
    assert_eq!(rats(&served), 1);
}

#[test]
fn a_home_stays_while_somebody_from_it_is_about() {
    let (mut served, ada) = Served::quiet(0);
    let far = ChunkPos { x: 10, y: 14 };
    served.world.want_around(far.tile(0));
    served.serve();
    let rat = served.monster("core:cave_rat", far.tile(100));
    served.save();
    served.world.relocate(rat, MIDDLE.offset(3, 0));
    served.world.tick += WANT_TICKS;
    served.tick();
    assert!(served.world.loaded_chunk(far).is_some());
    assert!(served.world.loaded_chunk(ChunkPos { x: 11, y: 14 }).is_none());
    assert!(served.world.entity(rat).is_some());
    // Now nobody is near either: it goes with its home, wherever it sleeps.
    served.go(ada, SPAWN);
    served.world.tick += WANT_TICKS;
    served.tick();
    assert!(served.world.loaded_chunk(far).is_none() && served.world.entity(rat).is_none());
    served.go(ada, far.tile(0));
    let here = served.world.entities.dwellers(far).iter().filter_map(|dweller| dweller.body);
    let homes: Vec<Pos> = here.map(|body| served.world.entity(body).unwrap().pos).collect();
    assert!(homes.contains(&far.tile(100)));
}

#[test]
fn who_sleeps_in_a_chunk_that_goes_is_sent_home() {
    let (mut served, ada) = Served::quiet(0);
    let rat = served.monster("core:cave_rat", MIDDLE.offset(4, 4));
    let far = ChunkPos { x: 10, y: 13 };
    served.world.want_around(far.tile(0));
    served.serve();
    served.save();
    // It sleeps in a chunk that is not active, while its home is.
    served.world.relocate(rat, far.tile(7));
    served.world.tick += WANT_TICKS;
    served.tick();
    assert!(served.world.loaded_chunk(far).is_none());
    let pos = served.world.entity(rat).unwrap().pos;
    assert!(pos.distance(MIDDLE.offset(4, 4)) <= 1, "it may have taken a step since: {pos:?}");
    assert!(served.world.entity(ada).is_some());
}

#[test]
fn a_long_way_leaves_nothing_behind() {
    let mut served = Served::new(NEW, 8);
    let ada = served.world.spawn_player(None);
    let (mut most, mut visited) = (0, BTreeSet::new());
    for n in 0..150 {
        served.go(ada, Pos { x: 16 + n * 32, y: 16 });
        // As if it had walked: nothing is held.
        served.world.tick += WANT_TICKS;
        served.tick();
        visited.extend(served.store.keys().copied());
        assert!(served.world.loaded_chunks() <= 8 + 25 + 9, "{}", served.world.loaded_chunks());
        most = most.max(served.world.entity_count());
    }
    assert!(visited.len() > 700);
    // About four inhabitants in each chunk: what is in memory, and not what was seen.
    assert!(most < 42 * 6, "{most}");
    let kept: usize = served.store.values().map(|r| r.things.len() + r.residents.len()).sum();
    assert!(kept > 10 * most, "{kept}");
    assert_eq!(served.world.paging.as_ref().unwrap().carried(HERE), []);
}

#[test]
fn a_killed_player_is_at_the_spawn_from_anywhere() {
    let (mut served, ada) = Served::quiet(0);
    served.tick();
    let ghoul = served.monster("core:ghoul", MIDDLE.offset(1, 0));
    served.set_hp(ada, 1);
    served.world.strike(ghoul, ada);
    assert_eq!(served.world.entity(ada).unwrap().pos, SPAWN);
    assert!(served.world.drain_events().any(|event| event == Event::Respawned { player: ada }));
    for chunk in SPAWN.chunk().around() {
        assert!(served.world.loaded_chunk(chunk).is_some());
    }
}

fn saved_player(pos: Pos, hp: u16) -> PlayerRecord {
    let mut inventory = Inventory::default();
    inventory.add(KindId(8), 3);
    // Of a kind that content does not know.
    inventory.add(KindId(9_999), 1);
    PlayerRecord { name: "Ada".to_owned(), pos, hp, elo: 1234, inventory }
}

#[test]
fn a_player_comes_back_where_it_was_with_what_it_carried() {
    let (mut served, _) = Served::quiet(1000);
    for (hp, expected) in [(1, 1), (7, 7), (20, 20), (0, 1), (999, 20)] {
        let record = saved_player(MIDDLE.offset(2, 1), hp);
        let ada = served.world.spawn_saved(&record).unwrap();
        let kept = served.world.player_record(ada).unwrap();
        assert_eq!(kept, PlayerRecord { hp: expected, ..record });
        assert!(served.world.players().any(|player| player == ada));
        assert!(served.world.terrain.is_active(HERE));
    }
}

#[test]
fn who_would_stand_in_rock_or_beyond_the_ground_is_at_the_spawn() {
    let (mut served, _) = Served::quiet(1000);
    served.world.terrain.set(MIDDLE, TileId::ROCK).unwrap();
    let mut plain = World::new(WorldConfig { seed: 1, idle_chunks: 5 });
    for pos in [MIDDLE, ChunkPos { x: -1024, y: 3 }.tile(40), Pos { x: i32::MIN, y: i32::MAX }] {
        served.world.want_around(pos);
        served.serve();
        let ada = served.world.spawn_saved(&saved_player(pos, 5)).unwrap();
        assert_eq!(served.world.entity(ada).unwrap().pos, SPAWN);
        assert_eq!(served.world.entity(ada).unwrap().status(), crate::STATUS_SAFE);
    }
    let solid = (0..1024).map(|index| HERE.tile(index));
    plain.chunk(HERE);
    let rock = solid.clone().find(|&pos| plain.tile(pos) == TileId::ROCK).unwrap();
    let floor = solid.clone().find(|&pos| plain.tile(pos) == TileId::FLOOR).unwrap();
    for (pos, expected) in [(rock, SPAWN), (floor, floor)] {
        let mut plain = World::new(WorldConfig { seed: 1, idle_chunks: 5 });
        let ada = plain.spawn_saved(&saved_player(pos, 5)).unwrap();
        assert_eq!(plain.entity(ada).unwrap().pos, expected);
    }
}

#[test]
fn nobody_comes_back_into_the_unknown() {
    let mut world = World::restore(NEW, 10);
    world.want_around(MIDDLE);
    let mut wanted = Vec::new();
    world.take_wanted(&mut wanted);
    assert_eq!(wanted.len(), 18);
    for pos in wanted {
        assert_eq!(world.spawn_saved(&saved_player(MIDDLE, 5)), None, "before {pos:?}");
        world.provide(pos, None).unwrap();
    }
    assert!(world.spawn_saved(&saved_player(MIDDLE, 5)).is_some());
    world.entities.reserve(EntityId(u32::MAX));
    assert_eq!(world.spawn_saved(&saved_player(MIDDLE, 5)), None);
}

/// The content without what `retired` says of its entry; numbers stay reserved.
fn content_without(retired: impl Fn(&str) -> bool) -> Content {
    let toml = include_str!("../../../content/core.toml");
    let kept: Vec<&str> = toml.split("\n\n").filter(|entry| !retired(entry)).collect();
    Content::parse(&kept.join("\n\n"), include_str!("../../../content/ids.lock")).unwrap()
}

fn retires_some(entry: &str) -> bool {
    ["core:sign", "core:glow_beetle", "core:moss"]
        .iter()
        .any(|name| entry.contains(&format!("]]\nname = \"{name}\"")))
}

#[test]
fn what_content_does_not_know_any_more_is_carried_along() {
    let (mut served, _) = Served::quiet(1000);
    let moss = served.world.content.tile_id("core:moss").unwrap();
    served.world.terrain.set(MIDDLE.offset(0, 3), moss).unwrap();
    served.thing("core:sign", MIDDLE, Body::Sign { text: "still here".to_owned() });
    let sign = EntityId(served.world.entities.last_id());
    served.world.lay_down(KindId(8), 4, MIDDLE);
    served.monster("core:glow_beetle", MIDDLE.offset(2, 0));
    served.monster("core:cave_rat", MIDDLE.offset(3, 0));
    let dead = served.monster("core:glow_beetle", MIDDLE.offset(4, 0));
    served.world.entities.bury(dead, 950, 12);
    served.world.step();
    served.save();
    let before = served.store[&HERE].clone();
    assert_eq!((before.things.len(), before.residents.len()), (2, 3));

    let mut world = World::restore(WorldRecord { last_id: 3, ..served.world.record() }, 0);
    world.content = content_without(retires_some);
    assert!(
        world.content.kind_id("core:sign").is_none() && world.content.kind(KindId(1)).is_some()
    );
    let mut later = Served { world, ..served };
    later.serve();
    later.world.want_around(MIDDLE);
    later.serve();
    assert!(later.world.entity(sign).is_none());
    let ada = later.world.spawn_player(None);
    later.go(ada, HERE.tile(0));
    assert!(ada > sign, "its id stays taken");
    assert_eq!(later.world.chunk_record(HERE), Some(before.clone()));
    assert_eq!(later.world.tile(MIDDLE.offset(0, 3)), moss);
    // Other changes of the chunk leave it alone, and so does time.
    later.world.lay_down(KindId(8), 1, MIDDLE.offset(1, 1));
    (0..50).for_each(|_| later.world.step());
    later.world.entities.check();
    later.save();
    let after = &later.store[&HERE];
    assert_eq!(after.residents, before.residents);
    assert_eq!((&after.edited, &after.things[..2]), (&before.edited, &before.things[..]));
    assert_eq!(after.things.len(), 3);
    // Out of memory and back in, under content that knows it again.
    later.go(ada, SPAWN);
    later.world.tick += WANT_TICKS;
    later.tick();
    assert!(later.world.loaded_chunk(HERE).is_none());
    later.world.content = Content::core();
    later.go(ada, MIDDLE);
    assert_eq!(
        later.world.entity(sign).unwrap().body,
        Body::Sign { text: "still here".to_owned() }
    );
    assert_eq!(later.world.entities.dwellers(HERE).iter().filter(|d| d.body.is_some()).count(), 2);
}

#[test]
fn an_unsound_record_makes_no_entities_and_is_kept_as_it_is() {
    let mut served = Served::new(NEW, 1000);
    served.world.want_around(MIDDLE);
    let here = HERE.tile(40);
    let item = |id, pos, count| Thing {
        id: EntityId(id),
        kind: KindId(8),
        pos,
        body: ThingBody::Item(count),
    };
    let record = ChunkRecord {
        generator: 1,
        edited: None,
        residents: vec![
            Resident { kind: KindId(1), home: EAST.tile(0), elo: 800, dead_until: None },
            Resident { kind: KindId(8), home: here, elo: 800, dead_until: Some(0) },
            Resident { kind: KindId(1), home: here, elo: 801, dead_until: None },
        ],
        things: vec![
            item(0, here, 1),
            item(500, here, 0),
            item(501, EAST.tile(0), 1),
            item(502, here, 9),
            item(502, here, 8),
            Thing { body: ThingBody::Sign("?".to_owned()), ..item(503, here, 1) },
        ],
    };
    served.store.insert(HERE, record.clone());
    served.serve();
    assert_eq!(served.world.chunk_record(HERE), Some(record));
    assert_eq!(served.world.entities.in_chunk(HERE).len(), 2);
    let ada = served.world.spawn_player(None);
    assert!(ada.0 > 503);
    served.go(ada, here);
    let _ = served.world.execute(ada, Command::PickUp);
    assert_eq!(served.world.entity(ada).unwrap().inventory().unwrap().count(KindId(8)), 9);
    assert!(served.world.drain_events().any(|event| matches!(
        event,
        Event::Notice { notice: Notice::PickedUp { count: 9, .. }, .. }
    )));
    (0..20).for_each(|_| served.world.step());
    served.world.entities.check();
}

#[test]
fn a_chunk_of_an_unpaged_world_has_a_record_too() {
    let mut world = World::new(WorldConfig { seed: 1, idle_chunks: 4 });
    world.chunk(HERE);
    let mut served = Served::new(NEW, 4);
    served.world.provide(HERE, None).unwrap();
    let (mut plain, mut paged) =
        (world.chunk_record(HERE).unwrap(), served.world.chunk_record(HERE).unwrap());
    for record in [&mut plain, &mut paged] {
        record.things.iter_mut().for_each(|thing| thing.id = EntityId(1));
    }
    assert_eq!(plain, paged);
    assert_eq!(world.chunk_record(EAST), None);
    assert_eq!(world.chunk_record(ChunkPos { x: -1024, y: 0 }), None);
}
