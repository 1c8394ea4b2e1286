use super::*;
use crate::command::Command;
use crate::coord::Direction;
use crate::testing::{Arena, MIDDLE};

fn world(seed: u64) -> World {
    World::new(WorldConfig { seed, ..WorldConfig::default() })
}

#[test]
fn players_start_at_the_spawn_with_their_own_ids() {
    let mut world = world(5);
    let ada = world.spawn_player(Some("Ada"));
    let guest = world.spawn_player(None);
    assert_eq!(ada, EntityId(1));
    assert!(guest > ada);
    let entity = world.entity(guest).unwrap();
    assert_eq!(entity.name(), Some(format!("guest-{}", guest.0).as_str()));
    assert_eq!((entity.pos, entity.hp, entity.hp_max, entity.elo), (SPAWN, 20, 20, 1000));
    assert_eq!((entity.kind, entity.status()), (KindId::PLAYER, STATUS_SAFE));
    assert_eq!(world.players().collect::<Vec<_>>(), [ada, guest]);
    assert_eq!(world.entity(ada).unwrap().name(), Some("Ada"));
}

#[test]
fn ids_are_never_used_again() {
    let mut world = world(5);
    let first = world.spawn_player(None);
    let before = world.entities.last_id();
    assert!(world.remove_player(first));
    assert!(!world.remove_player(first));
    assert!(world.entity(first).is_none());
    assert!(world.spawn_player(None).0 > before);
    world.entities.check();
}

#[test]
fn only_players_are_removed() {
    let mut arena = Arena::new();
    let rat = arena.monster("core:cave_rat", 1, 0);
    assert!(!arena.world.remove_player(rat));
    assert!(arena.world.entity(rat).is_some());
}

#[test]
fn all_nine_chunks_around_a_player_are_loaded_wherever_it_goes() {
    let mut arena = Arena::new();
    for step in 0..15 {
        arena.put(arena.ada, step, 0);
        for chunk in arena.get(arena.ada).pos.chunk().around() {
            assert!(arena.world.loaded_chunk(chunk).is_some());
        }
    }
    arena.put(arena.bob, 15, 0);
    for player in [arena.ada, arena.bob] {
        arena.world.remove_player(player);
    }
    assert_eq!(arena.world.terrain.active().count(), 0);
}

#[test]
fn first_load_populates_and_later_loads_do_not() {
    let mut world = World::new(WorldConfig { seed: 3, idle_chunks: 0 });
    let places: Vec<ChunkPos> = (0..12).map(|n| ChunkPos { x: 40 + n, y: 7 }).collect();
    for &pos in &places {
        world.chunk(pos);
    }
    let entities = world.entity_count();
    assert!(entities > 12);
    assert!(world.loaded_chunks() <= 1);
    for &pos in &places {
        let again = world.chunk(pos).clone();
        assert_eq!(again, crate::generation::generate(3, pos, &Content::core()));
    }
    assert_eq!(world.entity_count(), entities);
}

#[test]
fn chunks_beyond_the_ground_are_bedrock() {
    let mut world = world(3);
    for pos in
        [ChunkPos { x: -1024, y: 0 }, ChunkPos { x: 0, y: 1023 }, ChunkPos { x: 5000, y: i32::MIN }]
    {
        assert_eq!(world.chunk(pos), &Chunk::filled(TileId::BEDROCK));
        assert_eq!(world.loaded_chunk(pos), Some(&Chunk::filled(TileId::BEDROCK)));
    }
    assert_eq!(world.loaded_chunks(), 0);
}

#[test]
fn memory_stays_bounded_on_a_long_way() {
    let mut world = World::new(WorldConfig { seed: 3, idle_chunks: 20 });
    let ada = world.spawn_player(None);
    for n in 0..200 {
        world.relocate(ada, Pos { x: n * 32, y: 0 });
        world.step();
        assert!(world.loaded_chunks() <= 20 + 9);
    }
}

#[test]
fn edits_outlive_absence() {
    let mut arena = Arena::new();
    arena.wall(2, 2, "core:bedrock");
    let count = arena.world.loaded_chunks();
    for player in [arena.ada, arena.bob] {
        arena.world.relocate(player, SPAWN);
    }
    for n in 0..2000 {
        arena.world.chunk(ChunkPos { x: 100 + n % 100, y: 100 + n / 100 });
    }
    assert!(arena.world.loaded_chunks() <= count + IDLE_CHUNKS + 18);
    assert_eq!(arena.world.tile(MIDDLE.offset(2, 2)), TileId::BEDROCK);
    assert_eq!(arena.world.tile(MIDDLE.offset(2, 1)), TileId::FLOOR);
}

#[test]
fn how_much_terrain_is_kept_does_not_matter() {
    let run = |idle_chunks| {
        let mut world = World::new(WorldConfig { seed: 8, idle_chunks });
        let players = [world.spawn_player(None), world.spawn_player(None)];
        let mut hashes = Vec::new();
        for tick in 0..300 {
            for (n, &player) in players.iter().enumerate() {
                // Far and wide, back and forth, so that chunks are dropped and made again.
                let at = Pos { x: (tick % 40) * 20 * (n as i32 + 1), y: tick % 7 * 10 };
                world.relocate(player, at);
                let _ = world.execute(player, Command::Dig(Direction::ALL[tick as usize % 4]));
            }
            world.step();
            hashes.push(world.hash());
        }
        hashes
    };
    assert_eq!(run(0), run(10_000));
}

#[test]
fn in_view_is_what_is_visible() {
    let mut world = world(11);
    let players: Vec<EntityId> = (0..40).map(|_| world.spawn_player(None)).collect();
    for (n, &player) in players.iter().enumerate() {
        let n = n as i32;
        // Across chunk borders and the origin, some near each other and some not.
        world.relocate(player, Pos { x: n * 7 % 90 - 45, y: n * 13 % 70 - 35 });
    }
    world.step();
    let mut seen = vec![EntityId(77)];
    for &viewer in &players {
        world.in_view(viewer, &mut seen);
        let all: Vec<EntityId> = world.entities.iter().map(|entity| entity.id).collect();
        let expected: Vec<EntityId> =
            all.into_iter().filter(|&thing| world.visible(viewer, thing)).collect();
        assert!(expected.contains(&viewer));
        assert_eq!(seen, expected);
    }
    world.in_view(EntityId(1_000_000), &mut seen);
    assert!(seen.is_empty());
    assert!(!world.visible(players[0], EntityId(1_000_000)));
    assert!(!world.visible(EntityId::NONE, players[0]));
}

#[test]
fn equal_histories_have_equal_hashes_and_others_do_not() {
    let mut a = world(1);
    let mut b = world(1);
    assert_eq!(a.hash(), b.hash());
    assert_ne!(a.hash(), world(2).hash());
    let (ada, bob) = (a.spawn_player(Some("x")), b.spawn_player(Some("x")));
    assert_eq!(a.hash(), b.hash());
    let _ = a.execute(ada, Command::Say("a".to_owned()));
    assert_ne!(a.hash(), b.hash());
    let _ = b.execute(bob, Command::Say("a".to_owned()));
    assert_eq!(a.hash(), b.hash());
    a.step();
    assert_ne!(a.hash(), b.hash());
}
