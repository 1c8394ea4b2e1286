use super::*;
use crate::content::Content;
use crate::coord::{ChunkPos, GROUND_FIRST};
use crate::generation::SPAWN;
use crate::testing::{Arena, MIDDLE, version};
use crate::world::WorldConfig;

const STONE: &str = "core:stone";

fn kind(name: &str) -> KindId {
    Content::core().kind_id(name).unwrap()
}

fn items_at(arena: &Arena, pos: Pos) -> Vec<(KindId, u16)> {
    let spots = arena.world.entities.at(pos).filter(|spot| spot.class == Class::Item);
    spots
        .map(|spot| {
            let entity = arena.get(spot.id);
            match entity.body {
                Body::Item { count } => (entity.kind, count),
                _ => unreachable!(),
            }
        })
        .collect()
}

fn chest(arena: &mut Arena, dx: i32, items: &[(&str, u16)]) -> EntityId {
    let mut inventory = Inventory::default();
    for &(name, count) in items {
        inventory.add(kind(name), count);
    }
    thing(arena, "core:chest", MIDDLE.offset(dx, 0), Body::Chest { inventory })
}

fn thing(arena: &mut Arena, name: &str, pos: Pos, body: Body) -> EntityId {
    let (id, kind) = (arena.world.entities.allot().unwrap(), kind(name));
    let def = arena.world.content.kind(kind).unwrap();
    let entity = crate::entity::Entity::new(id, kind, def, pos, body);
    arena.world.entities.insert(entity);
    id
}

#[test]
fn steps_go_the_way_the_note_says() {
    let mut arena = Arena::new();
    for (direction, dx, dy) in [
        (Direction::North, 0, -1),
        (Direction::East, 1, -1),
        (Direction::South, 1, 0),
        (Direction::West, 0, 0),
    ] {
        assert!(arena.world.execute(arena.ada, Command::Move(direction)).had_effect());
        assert_eq!(arena.get(arena.ada).pos, MIDDLE.offset(dx, dy));
    }
}

#[test]
fn walls_stop_and_players_and_things_do_not() {
    let mut arena = Arena::new();
    arena.wall(0, -1, "core:rock");
    assert!(!arena.world.execute(arena.ada, Command::Move(Direction::North)).had_effect());
    assert_eq!(arena.get(arena.ada).pos, MIDDLE);
    arena.put(arena.bob, 1, 0);
    chest(&mut arena, 1, &[]);
    assert!(arena.world.execute(arena.ada, Command::Move(Direction::East)).had_effect());
    assert_eq!(arena.get(arena.ada).pos, arena.get(arena.bob).pos);
}

#[test]
fn walking_into_a_hostile_strikes_it_and_into_a_peaceful_one_does_nothing() {
    let mut arena = Arena::new();
    let rat = arena.monster("core:cave_rat", 1, 0);
    let beetle = arena.monster("core:glow_beetle", -1, 0);
    assert!(arena.world.execute(arena.ada, Command::Move(Direction::East)).had_effect());
    assert!((2..=4).contains(&(6 - arena.get(rat).hp)));
    assert!(!arena.world.execute(arena.ada, Command::Move(Direction::West)).had_effect());
    assert_eq!((arena.get(arena.ada).pos, arena.get(beetle).hp), (MIDDLE, 4));
    assert!(arena.world.execute(arena.ada, Command::Attack(Direction::West)).had_effect());
    // Two to four of four hit points.
    assert!(arena.world.entity(beetle).is_none_or(|beetle| beetle.hp <= 2));
}

#[test]
fn a_blow_into_the_air_has_no_effect() {
    let mut arena = Arena::new();
    assert!(!arena.world.execute(arena.ada, Command::Attack(Direction::East)).had_effect());
    assert!(arena.events().is_empty());
}

#[test]
fn players_are_attacked_outside_the_safe_zone_only() {
    let mut arena = Arena::new();
    arena.put(arena.bob, 1, 0);
    assert!(arena.world.execute(arena.ada, Command::Attack(Direction::East)).had_effect());
    assert!((16..=18).contains(&arena.get(arena.bob).hp));
    arena.events();
    // Nine tiles from the spawn and eight: one of the two is inside.
    for (ada, bob, direction) in [(9, 8, Direction::West), (8, 9, Direction::East)] {
        arena.world.relocate(arena.ada, SPAWN.offset(ada, 0));
        arena.world.relocate(arena.bob, SPAWN.offset(bob, 0));
        let hp = arena.get(arena.bob).hp;
        assert!(!arena.world.execute(arena.ada, Command::Attack(direction)).had_effect());
        assert_eq!(arena.get(arena.bob).hp, hp);
        assert_eq!(arena.notices(arena.ada), [Notice::SafeZone]);
    }
    arena.world.relocate(arena.ada, SPAWN.offset(10, 0));
    arena.world.relocate(arena.bob, SPAWN.offset(9, 0));
    assert!(arena.world.execute(arena.ada, Command::Attack(Direction::West)).had_effect());
}

#[test]
fn digging_makes_floor_and_raises_the_version_once() {
    let mut arena = Arena::new();
    arena.steps(1);
    arena.wall(1, 0, "core:rock");
    arena.wall(0, 1, "core:rock");
    arena.steps(1);
    let before = version(&arena.world, MIDDLE);
    assert!(arena.world.execute(arena.ada, Command::Dig(Direction::East)).had_effect());
    assert!(arena.world.execute(arena.ada, Command::Dig(Direction::South)).had_effect());
    assert_eq!(arena.world.tile(MIDDLE.offset(1, 0)), TileId::FLOOR);
    assert_eq!(version(&arena.world, MIDDLE), before);
    arena.steps(1);
    assert_eq!(version(&arena.world, MIDDLE), before + 1);
    assert!(!arena.world.execute(arena.ada, Command::Dig(Direction::East)).had_effect());
    arena.steps(1);
    assert_eq!(version(&arena.world, MIDDLE), before + 1);
    assert!(arena.events().is_empty());
}

#[test]
fn bedrock_cannot_be_dug() {
    let mut arena = Arena::new();
    arena.wall(1, 0, "core:bedrock");
    assert!(!arena.world.execute(arena.ada, Command::Dig(Direction::East)).had_effect());
    assert_eq!(arena.notices(arena.ada), [Notice::CannotDig { tile: TileId::BEDROCK }]);
    assert_eq!(arena.world.tile(MIDDLE.offset(1, 0)), TileId::BEDROCK);
}

#[test]
fn digging_leaves_what_the_tile_holds_at_its_chance() {
    let mut arena = Arena::new();
    let (mut stones, mut digs) = (0, 0);
    for _ in 0..400 {
        arena.wall(1, 0, "core:rock");
        digs +=
            u32::from(arena.world.execute(arena.ada, Command::Dig(Direction::East)).had_effect());
        arena.steps(1);
    }
    for (item, count) in items_at(&arena, MIDDLE.offset(1, 0)) {
        assert_eq!(item, kind(STONE));
        stones += count;
    }
    // A quarter of 400, four standard deviations around it.
    assert_eq!(digs, 400);
    assert!((65..=135).contains(&stones), "{stones}");
}

#[test]
fn granite_withstands_three_digs_of_four() {
    let mut arena = Arena::new();
    let granite = arena.world.content.tile_id("core:granite").unwrap();
    let mut digs = 0;
    for _ in 0..400 {
        arena.wall(1, 0, "core:granite");
        let dug = arena.world.execute(arena.ada, Command::Dig(Direction::East)).had_effect();
        let expected = if dug { vec![] } else { vec![Notice::Withstood { tile: granite }] };
        assert_eq!(arena.notices(arena.ada), expected);
        digs += u32::from(dug);
        arena.steps(1);
    }
    assert!((65..=135).contains(&digs), "{digs}");
}

#[test]
fn a_chunk_of_64_other_kinds_refuses_floor() {
    let mut arena = Arena::new();
    let chunk = MIDDLE.chunk();
    for index in 0..1024 {
        let tile = TileId(1000 + (index % 63) as u16);
        arena.world.terrain.set(chunk.tile(index), tile).unwrap();
    }
    // Two tiles of rock: digging one away does not make room for floor.
    arena.wall(1, 0, "core:rock");
    arena.wall(5, 5, "core:rock");
    assert!(!arena.world.execute(arena.ada, Command::Dig(Direction::East)).had_effect());
    assert_eq!(arena.notices(arena.ada), [Notice::CannotDig { tile: TileId::ROCK }]);
    assert_eq!(arena.world.tile(MIDDLE.offset(1, 0)), TileId::ROCK);
}

#[test]
fn the_world_ends_in_bedrock() {
    let mut world = World::new(WorldConfig { seed: 4, ..WorldConfig::default() });
    let ada = world.spawn_player(None);
    let corner = ChunkPos { x: GROUND_FIRST, y: GROUND_FIRST }.origin();
    world.relocate(ada, corner);
    for direction in [Direction::North, Direction::West] {
        assert!(!world.execute(ada, Command::Move(direction)).had_effect());
        assert!(!world.execute(ada, Command::Dig(direction)).had_effect());
    }
    world.step();
    let end = Pos { x: -32736, y: -32736 };
    assert_eq!(world.entity(ada).unwrap().pos, end);
    assert_eq!(world.tile(end.step(Direction::North)), TileId::BEDROCK);
    for chunk in end.chunk().around() {
        assert!(world.loaded_chunk(chunk).is_some());
    }
    let notices = world.drain_events().filter(|event| {
        *event == Event::Notice { to: ada, notice: Notice::CannotDig { tile: TileId::BEDROCK } }
    });
    assert_eq!(notices.count(), 2);
}

#[test]
fn chest_gives_what_fits_and_keeps_the_rest() {
    let mut arena = Arena::new();
    let chest = chest(&mut arena, 1, &[("core:torch", 3), ("core:coin", 10)]);
    arena.world.carried(arena.ada).unwrap().add(kind("core:coin"), 65_530);
    assert!(arena.world.execute(arena.ada, Command::Interact(chest)).had_effect());
    let items = vec![(kind("core:torch"), 3), (kind("core:coin"), 5)];
    assert_eq!(arena.notices(arena.ada), [Notice::TookFromChest { items, left_behind: true }]);
    assert_eq!(
        arena.get(chest).inventory().unwrap().iter().collect::<Vec<_>>(),
        [(kind("core:coin"), 5)]
    );
    assert!(!arena.world.execute(arena.ada, Command::Interact(chest)).had_effect());
    assert_eq!(arena.notices(arena.ada), [Notice::InventoryFull]);
    assert!(arena.world.execute(arena.bob, Command::Interact(chest)).had_effect());
    assert!(!arena.world.execute(arena.bob, Command::Interact(chest)).had_effect());
    assert_eq!(arena.notices(arena.bob).last(), Some(&Notice::ChestEmpty));
    assert_eq!(arena.get(arena.ada).inventory().unwrap().count(kind("core:torch")), 3);
    assert_eq!(arena.get(arena.bob).inventory().unwrap().count(kind("core:coin")), 5);
}

#[test]
fn interaction_needs_adjacency_and_sight() {
    let mut arena = Arena::new();
    let text = "north: bread".to_owned();
    let body = Body::Sign { text: text.clone() };
    let sign = thing(&mut arena, "core:sign", MIDDLE.offset(1, 1), body);
    let diagonal = arena.world.execute(arena.ada, Command::Interact(sign));
    assert!(!diagonal.had_effect());
    assert_eq!(arena.notices(arena.ada), [Notice::TooFar]);
    for (dx, dy) in [(1, 0), (1, 1), (2, 1)] {
        arena.put(arena.ada, dx, dy);
        assert!(arena.world.execute(arena.ada, Command::Interact(sign)).had_effect());
        assert_eq!(arena.notices(arena.ada), [Notice::SignText(text.clone())]);
    }
    // Fifteen tiles to the east is out of view: no word about it, as about no thing at all.
    arena.put(arena.ada, 1 - 15, 1);
    for id in [sign, EntityId(99_999), EntityId::NONE, arena.bob, arena.ada] {
        assert!(!arena.world.execute(arena.ada, Command::Interact(id)).had_effect());
    }
    assert!(arena.events().is_empty());
}

#[test]
fn dropped_items_merge_and_are_picked_up_again() {
    let mut arena = Arena::new();
    let (stone, bone) = (kind(STONE), kind("core:bone"));
    arena.world.carried(arena.ada).unwrap().add(stone, 10);
    arena.world.carried(arena.ada).unwrap().add(bone, 1);
    for (item, count) in [(stone, 4), (bone, 9), (stone, 3)] {
        assert!(arena.world.execute(arena.ada, Command::Drop { item, count }).had_effect());
    }
    assert_eq!(items_at(&arena, MIDDLE), [(stone, 7), (bone, 1)]);
    assert_eq!(arena.notices(arena.ada)[1], Notice::Dropped { item: bone, count: 1 });
    for (item, count) in [(bone, 1), (stone, 0), (KindId(9999), 1)] {
        assert!(!arena.world.execute(arena.ada, Command::Drop { item, count }).had_effect());
        assert_eq!(arena.notices(arena.ada), [Notice::NothingToDrop { item }]);
    }
    assert!(arena.world.execute(arena.bob, Command::PickUp).had_effect());
    assert_eq!(
        arena.notices(arena.bob),
        [Notice::PickedUp { item: stone, count: 7 }, Notice::PickedUp { item: bone, count: 1 },]
    );
    assert_eq!(items_at(&arena, MIDDLE), []);
    assert!(!arena.world.execute(arena.bob, Command::PickUp).had_effect());
    assert_eq!(arena.notices(arena.bob), [Notice::NothingToPickUp]);
    arena.world.entities.check();
}

#[test]
fn what_does_not_fit_stays_on_the_floor() {
    let mut arena = Arena::new();
    let stone = kind(STONE);
    arena.world.lay_down(stone, 60_000, MIDDLE);
    arena.world.lay_down(stone, 10_000, MIDDLE);
    assert_eq!(items_at(&arena, MIDDLE), [(stone, 60_000), (stone, 10_000)]);
    assert!(arena.world.execute(arena.ada, Command::PickUp).had_effect());
    assert_eq!(items_at(&arena, MIDDLE), [(stone, 4_465)]);
    assert_eq!(
        arena.notices(arena.ada),
        [
            Notice::PickedUp { item: stone, count: 60_000 },
            Notice::PickedUp { item: stone, count: 5_535 },
            Notice::InventoryFull,
        ]
    );
    assert!(!arena.world.execute(arena.ada, Command::PickUp).had_effect());
    assert_eq!(arena.notices(arena.ada), [Notice::InventoryFull]);
}

#[test]
fn speech_is_shown_for_thirty_ticks() {
    let mut arena = Arena::new();
    let text = "x".repeat(200);
    assert!(arena.world.execute(arena.ada, Command::Say(text.clone())).had_effect());
    assert_eq!(arena.events(), [Event::Said { by: arena.ada, text }]);
    for _ in 0..30 {
        arena.world.step();
        assert_eq!(arena.get(arena.ada).speech(), Some("x".repeat(80).as_str()));
    }
    arena.world.step();
    assert_eq!(arena.get(arena.ada).speech(), None);
    assert!(!arena.world.execute(arena.ada, Command::Say(String::new())).had_effect());
    assert!(arena.events().is_empty());
}

#[test]
fn only_players_act() {
    let mut arena = Arena::new();
    let rat = arena.monster("core:cave_rat", 5, 0);
    let hash = arena.world.hash();
    for actor in [rat, EntityId::NONE, EntityId(4_000_000)] {
        for command in [
            Command::Move(Direction::North),
            Command::Say("squeak".to_owned()),
            Command::PickUp,
            Command::Dig(Direction::South),
        ] {
            assert!(!arena.world.execute(actor, command).had_effect());
        }
    }
    assert!(!arena.world.execute(arena.ada, Command::Other).had_effect());
    assert_eq!(arena.world.hash(), hash);
    assert!(arena.events().is_empty());
}
