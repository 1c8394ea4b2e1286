//! Long random runs with a store that answers late, saves late, fails now and then, and of which nothing but the last
//! complete save outlives a crash.

use super::*;
use proptest::prelude::*;

/// A script of its own, so that the runs do not depend on the dice of the world: xorshift64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) % below
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// All that is to be kept, of one moment.
#[derive(Clone)]
struct Saved {
    world: WorldRecord,
    players: BTreeMap<String, PlayerRecord>,
    /// Every chunk that anybody has visited.
    chunks: BTreeMap<ChunkPos, ChunkRecord>,
    /// The world beside it.
    plain: Option<World>,
}

struct Saving {
    done: u64,
    fails: bool,
    changed: Vec<(ChunkPos, ChunkRecord)>,
    expected: Saved,
}

/// What a run has to reach, or it would not show much.
#[derive(Debug, Default)]
struct Reached {
    read_again: u32,
    gone: u32,
    blocked: u32,
    failed: u32,
    crashed: u32,
    killed: u32,
    died: u32,
    emptied: u32,
    dropped: u32,
    picked_up: u32,
    made: u32,
    back: u32,
}

impl Reached {
    fn add(&mut self, other: &Reached) {
        self.read_again += other.read_again;
        self.gone += other.gone;
        self.blocked += other.blocked;
        self.failed += other.failed;
        self.crashed += other.crashed;
        self.killed += other.killed;
        self.died += other.died;
        self.emptied += other.emptied;
        self.dropped += other.dropped;
        self.picked_up += other.picked_up;
        self.made += other.made;
        self.back += other.back;
    }
}

#[derive(Clone, Copy, Debug)]
struct Setting {
    seed: u64,
    idle_chunks: usize,
    /// The most ticks from a question to its answer, and from a save to its end.
    slowness: u64,
    ticks: u64,
    /// With monsters, or beside a world that is not paged.
    monsters: bool,
}

struct Run {
    setting: Setting,
    dice: Dice,
    world: World,
    /// Without monsters, nothing depends on ids but those of players, which are kept the same.
    plain: Option<World>,
    present: BTreeMap<String, (EntityId, Direction)>,
    away: BTreeMap<String, PlayerRecord>,
    asked: Vec<(u64, ChunkPos)>,
    store: BTreeMap<ChunkPos, ChunkRecord>,
    saving: Option<Saving>,
    last: Saved,
    reached: Reached,
}

fn run(setting: Setting) -> Reached {
    let mut run = Run::new(setting);
    for _ in 0..setting.ticks {
        run.tick();
    }
    run.compare_chunks();
    run.reached
}

impl Run {
    fn new(setting: Setting) -> Run {
        let record = WorldRecord { seed: setting.seed, ..NEW };
        let newcomer = |name: &str| PlayerRecord {
            name: name.to_owned(),
            pos: SPAWN,
            // Near death, so that some die.
            hp: 3,
            elo: 1000,
            inventory: Inventory::default(),
        };
        let away: BTreeMap<String, PlayerRecord> =
            ["Ada", "Bob", "Cyd"].map(|name| (name.to_owned(), newcomer(name))).into();
        let plain = (!setting.monsters).then(|| {
            let idle_chunks = setting.idle_chunks;
            let mut plain = World::new(WorldConfig { seed: setting.seed, idle_chunks });
            plain.content = peaceful();
            plain
        });
        let mut run = Run {
            setting,
            dice: Dice(setting.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            world: World::restore(record, setting.idle_chunks),
            plain: plain.clone(),
            present: BTreeMap::new(),
            away: away.clone(),
            asked: Vec::new(),
            store: BTreeMap::new(),
            saving: None,
            last: Saved { world: record, players: away, chunks: BTreeMap::new(), plain },
            reached: Reached::default(),
        };
        run.fit_content();
        run
    }

    fn tick(&mut self) {
        self.answer();
        self.come_and_go();
        let names: Vec<String> = self.present.keys().cloned().collect();
        for name in names {
            self.act(&name);
        }
        let (items, loaded) = (self.items(), self.loaded());
        self.world.step();
        self.reached.gone += loaded.iter().filter(|&&pos| !self.holds(pos)).count() as u32;
        assert_eq!(self.items(), items, "a tick makes and loses nothing");
        self.check_memory();
        if let Some(plain) = &mut self.plain {
            plain.step();
            plain.drain_events().for_each(drop);
        }
        self.save();
        self.ask();
        self.check();
        if self.dice.one_in(250) {
            self.crash();
        }
    }

    fn fit_content(&mut self) {
        if !self.setting.monsters {
            self.world.content = peaceful();
        }
    }

    fn holds(&self, pos: ChunkPos) -> bool {
        self.world.loaded_chunk(pos).is_some()
    }

    fn loaded(&self) -> Vec<ChunkPos> {
        self.world.terrain.used().map(|(_, pos)| pos).collect()
    }

    fn later(&mut self) -> u64 {
        self.world.tick() + self.dice.below(self.setting.slowness + 1)
    }

    fn ask(&mut self) {
        let mut wanted = Vec::new();
        self.world.take_wanted(&mut wanted);
        for pos in wanted {
            assert!(!self.holds(pos) && self.asked.iter().all(|&(_, asked)| asked != pos));
            let due = self.later();
            self.asked.push((due, pos));
        }
    }

    fn answer(&mut self) {
        let now = self.world.tick();
        let (due, later) = self.asked.iter().partition(|&&(due, _)| due <= now);
        self.asked = later;
        for (_, pos) in due {
            let items = self.items();
            let record = self.store.get(&pos).cloned();
            self.world.provide(pos, record.clone()).unwrap();
            match record {
                Some(record) => {
                    self.reached.read_again += 1;
                    assert_eq!(self.world.chunk_record(pos), Some(record));
                    assert_eq!(self.items(), items);
                }
                None => {
                    let content = &self.world.content;
                    let chunk = crate::generate(self.setting.seed, pos, content);
                    let spawns = crate::populate(self.setting.seed, pos, &chunk, content);
                    let mut expected = items;
                    for spawn in spawns {
                        match spawn.body {
                            crate::SpawnBody::Item(count) => add(&mut expected, spawn.kind, count),
                            crate::SpawnBody::Chest(chest) => add_all(&mut expected, &chest),
                            _ => {}
                        }
                    }
                    assert_eq!(self.items(), expected);
                }
            }
        }
    }

    fn come_and_go(&mut self) {
        if self.dice.one_in(120)
            && let Some((name, (id, _))) = self.present.pop_first()
        {
            let record = self.world.player_record(id).unwrap();
            if let Some(plain) = &mut self.plain {
                assert_eq!(plain.player_record(id).as_ref(), Some(&record));
                assert!(plain.remove_player(id));
            }
            assert!(self.world.remove_player(id));
            self.away.insert(name, record);
        }
        let names: Vec<String> = self.away.keys().cloned().collect();
        for name in names {
            if !self.dice.one_in(10) {
                continue;
            }
            let record = self.away[&name].clone();
            self.world.want_around(record.pos);
            if let Some(plain) = &mut self.plain {
                // What is generated on the way takes ids too.
                plain.load_around(record.pos.chunk());
                let last = self.world.entities.last_id().max(plain.entities.last_id());
                plain.entities.reserve(EntityId(last));
                self.world.entities.reserve(EntityId(last));
            }
            let Some(id) = self.world.spawn_saved(&record) else {
                assert!(!(self.world.is_ready(record.pos) && self.world.is_ready(SPAWN)));
                continue;
            };
            if let Some(plain) = &mut self.plain {
                assert_eq!(plain.spawn_saved(&record), Some(id));
            }
            assert_eq!(self.world.player_record(id), Some(record));
            self.away.remove(&name);
            let heading = Direction::ALL[self.dice.below(4) as usize];
            self.present.insert(name, (id, heading));
            self.reached.back += 1;
        }
    }

    fn act(&mut self, name: &str) {
        let (id, heading) = self.present[name];
        let here = self.world.entity(id).unwrap().pos;
        let ahead = here.step(heading);
        let near = |world: &World, at: Pos, class| {
            world.entities.at(at).find(|spot| spot.class == class).map(|spot| spot.id)
        };
        let chest = self.full_chest(here, 1).filter(|(_, pos)| here.is_adjacent_or_same(*pos));
        let victim = Direction::ALL.into_iter().find(|&way| {
            near(&self.world, here.step(way), Class::Player).is_some()
                || near(&self.world, here.step(way), Class::Monster).is_some()
        });
        let held: Vec<(KindId, u16)> =
            self.world.entity(id).unwrap().inventory().unwrap().iter().collect();
        let command = match (self.dice.below(12), chest, victim) {
            (_, Some((chest, _)), _) => Command::Interact(chest),
            (1..=8, _, Some(way)) => Command::Attack(way),
            (9..=10, _, _) if near(&self.world, here, Class::Item).is_some() => Command::PickUp,
            (11, _, _) if !held.is_empty() && self.dice.one_in(3) => {
                let (item, count) = held[self.dice.below(held.len() as u64) as usize];
                Command::Drop { item, count: 1 + self.dice.below(count.into()) as u16 }
            }
            _ if self.world.content.is_walkable(self.world.tile(ahead)) => Command::Move(heading),
            _ => Command::Dig(heading),
        };
        let outcome = self.execute(id, command);
        if self.dice.one_in(if outcome.had_effect() { 60 } else { 15 }) {
            let heading = self.heading(here);
            self.present.insert(name.to_owned(), (id, heading));
        }
    }

    /// A chest within `reach` with something in it.
    fn full_chest(&self, here: Pos, reach: i32) -> Option<(EntityId, Pos)> {
        let spots =
            self.world.entities.within(here.offset(-reach, -reach), here.offset(reach, reach));
        let is_full = |id| {
            let inventory = self.world.entity(id).and_then(Entity::inventory);
            inventory.is_some_and(|inventory| !inventory.is_empty())
        };
        let chests = spots.filter(|spot| spot.class == Class::Chest && is_full(spot.id));
        chests.map(|spot| (spot.id, spot.pos)).min()
    }

    /// Anywhere, or to what is near: a chest, or somebody to be met.
    fn heading(&mut self, here: Pos) -> Direction {
        let others = self.world.players().map(|other| self.world.entity(other).unwrap().pos);
        let near = others.filter(|&pos| pos != here && here.distance(pos) < 40).min();
        match self.full_chest(here, 14).map(|(_, pos)| pos).or(near) {
            Some(pos) if self.dice.one_in(2) => {
                let (dx, dy) = (pos.x - here.x, pos.y - here.y);
                match (dx.abs() > dy.abs(), dx > 0, dy > 0) {
                    (true, true, _) => Direction::East,
                    (true, false, _) => Direction::West,
                    (false, _, true) => Direction::South,
                    (false, _, false) => Direction::North,
                }
            }
            _ => Direction::ALL[self.dice.below(4) as usize],
        }
    }

    fn execute(&mut self, id: EntityId, command: Command) -> Outcome {
        let before = self.items();
        let here = self.world.entity(id).unwrap().pos;
        let to = match command {
            Command::Move(way) => here.step(way),
            _ => here,
        };
        let blocked = to.chunk() != here.chunk() && !self.world.is_ready(to);
        let outcome = self.world.execute(id, command.clone());
        let standing = self.world.entity(id).unwrap().pos;
        if blocked && !self.setting.monsters {
            // The world beside it generates what it needs: there, the step is not tried.
            assert_eq!((outcome, standing), (Outcome::NoEffect, here));
            self.reached.blocked += 1;
        } else if let Some(plain) = &mut self.plain {
            let command = match command {
                Command::Interact(thing) => {
                    let pos = self.world.entity(thing).unwrap().pos;
                    let chest = plain.entities.at(pos).find(|spot| spot.class == Class::Chest);
                    Command::Interact(chest.unwrap().id)
                }
                command => command,
            };
            assert_eq!(plain.execute(id, command), outcome);
        }
        self.account(before, outcome);
        outcome
    }

    /// Items are made by digging and by the death of monsters, one of a kind at a time, and are never lost.
    fn account(&mut self, before: BTreeMap<KindId, u64>, outcome: Outcome) {
        let (mut dug, mut most) = (outcome.had_effect(), 0);
        let events: Vec<Event> = self.world.drain_events().collect();
        for event in events {
            match event {
                Event::Killed { kind: KindId::PLAYER, .. } => self.reached.died += 1,
                Event::Killed { kind, .. } => {
                    self.reached.killed += 1;
                    most += self.world.content.kind(kind).unwrap().loot.len() as u64;
                }
                Event::Notice { notice, .. } => {
                    dug = false;
                    match notice {
                        Notice::TookFromChest { .. } => self.reached.emptied += 1,
                        Notice::Dropped { .. } => self.reached.dropped += 1,
                        Notice::PickedUp { .. } => self.reached.picked_up += 1,
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        most += u64::from(dug);
        let after = self.items();
        for (kind, count) in &before {
            assert!(after.get(kind).is_some_and(|now| now >= count), "{kind:?} were lost");
        }
        let made = after.values().sum::<u64>() - before.values().sum::<u64>();
        assert!(made <= most, "{made} came from nowhere");
        self.reached.made += made as u32;
    }

    fn save(&mut self) {
        let now = self.world.tick();
        match self.saving.take() {
            Some(saving) if saving.done > now => self.saving = Some(saving),
            Some(saving) if saving.fails => {
                self.world.not_saved();
                self.reached.failed += 1;
            }
            Some(saving) => {
                self.store.extend(saving.changed);
                self.last = saving.expected;
                self.world.saved();
            }
            None if self.dice.one_in(5) => {
                let expected = self.moment();
                let mut changed = Vec::new();
                self.world.take_unsaved(&mut changed);
                let (done, fails) = (self.later(), self.dice.one_in(3));
                self.saving = Some(Saving { done, fails, changed, expected });
            }
            None => {}
        }
    }

    /// All there is, asked chunk by chunk and whatever anybody marked.
    fn moment(&self) -> Saved {
        let mut chunks = self.store.clone();
        for pos in self.loaded() {
            chunks.insert(pos, self.world.chunk_record(pos).unwrap());
        }
        let mut players = self.away.clone();
        for (name, (id, _)) in &self.present {
            players.insert(name.clone(), self.world.player_record(*id).unwrap());
        }
        Saved { world: self.world.record(), players, chunks, plain: self.plain.clone() }
    }

    fn crash(&mut self) {
        let last = self.last.clone();
        assert_eq!(self.store, last.chunks, "what was saved is all that there was");
        self.world = World::restore(last.world, self.setting.idle_chunks);
        self.fit_content();
        assert_eq!(self.world.record(), last.world);
        self.plain = last.plain;
        if let Some(plain) = &mut self.plain {
            assert_eq!(plain.tick(), self.world.tick());
            for player in plain.players().collect::<Vec<_>>() {
                plain.remove_player(player);
            }
        }
        (self.away, self.present) = (last.players, BTreeMap::new());
        (self.asked, self.saving) = (Vec::new(), None);
        self.reached.crashed += 1;
        self.ask();
    }

    /// Items on floors, in chests and in inventories, in memory and out of it, by kind.
    fn items(&self) -> BTreeMap<KindId, u64> {
        let mut items = BTreeMap::new();
        for entity in self.world.entities.iter() {
            if let Body::Item { count } = entity.body {
                add(&mut items, entity.kind, count);
            }
            if let Some(inventory) = entity.inventory() {
                add_all(&mut items, inventory);
            }
        }
        self.away.values().for_each(|player| add_all(&mut items, &player.inventory));
        for (_, record) in self.store.iter().filter(|(pos, _)| !self.holds(**pos)) {
            for thing in &record.things {
                match &thing.body {
                    ThingBody::Item(count) => add(&mut items, thing.kind, *count),
                    ThingBody::Chest(inventory) => add_all(&mut items, inventory),
                    ThingBody::Sign(_) => {}
                }
            }
        }
        items
    }

    fn check(&self) {
        self.world.entities.check();
        for &(id, _) in self.present.values() {
            let pos = self.world.entity(id).unwrap().pos;
            assert!(pos.chunk().around().iter().all(|&chunk| self.holds(chunk)));
        }
        // No leak: everything is in a chunk that is in memory, and so is the home of everybody.
        for entity in self.world.entities.iter() {
            assert!(self.holds(entity.pos.chunk()), "{entity:?}");
            assert!(entity.monster().is_none_or(|own| self.holds(own.home.chunk())));
        }
        self.compare_players();
        if self.world.tick().is_multiple_of(50) {
            self.compare_chunks();
        }
    }

    /// Right after a tick, which makes room.
    fn check_memory(&self) {
        let loaded = self.loaded();
        let idle = loaded.iter().filter(|&&pos| self.world.is_idle(pos)).count();
        // Homes whose monsters came back without anybody having moved are noticed with the next who moves.
        let (limit, late) = (self.setting.idle_chunks, if self.setting.monsters { 5 } else { 0 });
        let unsaved = self.world.unsaved_chunks();
        assert!(
            idle <= limit + late || loaded.len() <= limit + unsaved,
            "{idle} of {} are idle, {unsaved} are not saved",
            loaded.len()
        );
    }

    fn compare_players(&self) {
        let Some(plain) = &self.plain else {
            return;
        };
        assert!(plain.players().eq(self.world.players()));
        for &(id, _) in self.present.values() {
            assert_eq!(plain.player_record(id), self.world.player_record(id));
            let status = |world: &World| world.entity(id).unwrap().status();
            assert_eq!(status(plain), status(&self.world));
        }
    }

    /// Every chunk that anybody has visited, against the world beside it or the generator.
    fn compare_chunks(&self) {
        let mut plain = self.plain.clone();
        for (pos, record) in self.moment().chunks {
            let content = &self.world.content;
            let first = crate::generate(self.setting.seed, pos, content);
            let spawns = crate::populate(self.setting.seed, pos, &first, content);
            let mut homes: Vec<Pos> = spawns
                .iter()
                .filter(|spawn| spawn.body == crate::SpawnBody::Monster)
                .map(|spawn| spawn.pos)
                .collect();
            let mut residents: Vec<Pos> = record.residents.iter().map(|own| own.home).collect();
            homes.sort_unstable();
            residents.sort_unstable();
            assert_eq!(residents, homes, "nobody is lost or doubled");
            if let Some(plain) = &mut plain {
                assert_eq!(plain.chunk(pos), record.edited.as_ref().unwrap_or(&first));
                let nameless = |things: Vec<Thing>| {
                    let mut things: Vec<String> = things
                        .into_iter()
                        .map(|thing| format!("{:?}", Thing { id: EntityId::NONE, ..thing }))
                        .collect();
                    things.sort_unstable();
                    things
                };
                let expected = plain.chunk_record(pos).unwrap().things;
                assert_eq!(nameless(record.things), nameless(expected), "{pos:?}");
            }
        }
    }
}

fn add(items: &mut BTreeMap<KindId, u64>, kind: KindId, count: u16) {
    *items.entry(kind).or_default() += u64::from(count);
}

fn add_all(items: &mut BTreeMap<KindId, u64>, inventory: &Inventory) {
    inventory.iter().for_each(|(kind, count)| add(items, kind, count));
}

fn peaceful() -> Content {
    content_without(|entry| entry.contains("class = \"monster\""))
}

#[test]
fn a_paged_world_is_the_same_as_one_that_keeps_everything() {
    let mut reached = Reached::default();
    for seed in 1..=4 {
        let slowness = 20 * seed;
        reached.add(&run(Setting { seed, idle_chunks: 3, slowness, ticks: 800, monsters: false }));
    }
    assert!(
        reached.read_again > 50
            && reached.gone > 50
            && reached.blocked > 0
            && reached.failed > 10
            && reached.crashed > 1
            && reached.died > 0
            && reached.emptied > 0
            && reached.dropped > 10
            && reached.picked_up > 10
            && reached.made > 50
            && reached.back > 10,
        "{reached:?}"
    );
}

#[test]
fn with_monsters_nothing_is_lost_or_doubled_either() {
    let mut reached = Reached::default();
    for seed in 11..=14 {
        reached.add(&run(Setting {
            seed,
            idle_chunks: 2,
            slowness: 12,
            ticks: 800,
            monsters: true,
        }));
    }
    assert!(
        reached.read_again > 50
            && reached.gone > 50
            && reached.failed > 10
            && reached.crashed > 1
            && reached.killed > 5
            && reached.died > 0
            && reached.emptied > 0
            && reached.made > 50,
        "{reached:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn any_run_keeps_everything(
        seed in any::<u64>(),
        idle_chunks in 0usize..12,
        slowness in 0u64..90,
        monsters in any::<bool>(),
    ) {
        run(Setting { seed, idle_chunks, slowness, ticks: 300, monsters });
    }
}
