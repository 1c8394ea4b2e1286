use super::*;
use crate::command::Command;
use crate::coord::Direction;
use crate::entity::Body;
use crate::testing::{Arena, MIDDLE};

#[test]
fn every_damage_of_the_range_occurs_and_no_other() {
    let mut arena = Arena::new();
    let mut seen = [0u32; 8];
    for _ in 0..300 {
        arena.set_hp(arena.bob, 20);
        arena.world.strike(arena.ada, arena.bob);
        seen[usize::from(20 - arena.get(arena.bob).hp)] += 1;
        arena.world.tick += 1;
    }
    assert_eq!(seen[0] + seen[1] + seen[5] + seen[6] + seen[7], 0, "{seen:?}");
    assert!(seen[2..=4].iter().all(|&n| n > 60), "{seen:?}");
}

#[test]
fn killed_monster_is_gone_and_ratings_move() {
    let mut arena = Arena::new();
    let rat = arena.monster("core:cave_rat", 1, 0);
    let kind = arena.get(rat).kind;
    arena.set_hp(rat, 2);
    let outcome = arena.world.execute(arena.ada, Command::Attack(Direction::East));
    assert!(outcome.had_effect());
    let events = arena.events();
    // 1000 against 800: 32 / (1 + 10^0.5) = 7.7
    assert_eq!(
        events[1],
        Event::Killed {
            killer: arena.ada,
            victim: rat,
            kind,
            name: None,
            at: MIDDLE.offset(1, 0),
            elo: 8,
        }
    );
    assert!(matches!(events[0], Event::Struck { damage: 2..=4, remaining: 0, .. }));
    assert_eq!(events.len(), 2);
    assert_eq!(arena.get(arena.ada).elo, 1008);
    assert!(arena.world.entity(rat).is_none());
    arena.world.entities.check();
}

#[test]
fn killed_player_is_back_at_the_spawn_in_the_same_tick() {
    let mut arena = Arena::new();
    arena.put(arena.bob, 0, 1);
    let coin = arena.world.content().kind_id("core:coin").unwrap();
    let mut bob = arena.world.entities.get_mut(arena.bob).unwrap();
    bob.elo = 1200;
    bob.hp = 1;
    bob.player_mut().unwrap().inventory.add(coin, 3);
    drop(bob);
    let tick = arena.world.tick();
    let outcome = arena.world.execute(arena.ada, Command::Attack(Direction::South));
    assert!(outcome.had_effect());
    let bob = arena.get(arena.bob);
    assert_eq!((bob.pos, bob.hp, bob.hp_max), (SPAWN, 20, 20));
    assert_eq!(bob.inventory().unwrap().count(coin), 3);
    // 1000 against 1200: 32 / (1 + 10^-0.5) = 24.3
    assert_eq!((arena.get(arena.ada).elo, bob.elo), (1024, 1176));
    for chunk in SPAWN.chunk().around().into_iter().chain(MIDDLE.chunk().around()) {
        assert!(arena.world.loaded_chunk(chunk).is_some());
    }
    let (ada, bob) = (arena.ada, arena.bob);
    let events = arena.events();
    assert!(matches!(&events[1], Event::Killed { killer, victim, name: Some(name), elo: 24, .. }
        if *killer == ada && *victim == bob && name == "Bob"));
    assert_eq!(events[2..], [Event::Respawned { player: bob }]);
    assert_eq!(arena.world.tick(), tick);
}

#[test]
fn killed_monster_leaves_its_loot_at_its_chance() {
    let mut arena = Arena::new();
    let bone = arena.world.content().kind_id("core:bone").unwrap();
    let bread = arena.world.content().kind_id("core:bread").unwrap();
    for _ in 0..400 {
        let rat = arena.monster("core:cave_rat", 3, 0);
        arena.set_hp(rat, 1);
        arena.world.strike(arena.ada, rat);
        arena.events();
    }
    let mut left = (0, 0);
    for entity in arena.world.entities.iter() {
        if let Body::Item { count } = entity.body {
            assert_eq!(entity.pos, MIDDLE.offset(3, 0));
            if entity.kind == bone {
                left.0 += count;
            } else {
                assert_eq!(entity.kind, bread);
                left.1 += count;
            }
        }
    }
    // 35 and 15 in a hundred of 400, four standard deviations around them.
    assert!((102..=178).contains(&left.0) && (32..=88).contains(&left.1), "{left:?}");
}

#[test]
fn events_are_bounded_and_the_rest_is_counted() {
    let mut arena = Arena::new();
    for _ in 0..crate::world::MAX_EVENTS + 5 {
        let _ = arena.world.execute(arena.ada, Command::PickUp);
    }
    assert_eq!(arena.world.dropped_events(), 5);
    let mut taken = Vec::new();
    arena.world.take_events(&mut taken);
    assert_eq!(taken.len(), crate::world::MAX_EVENTS);
    let _ = arena.world.execute(arena.ada, Command::PickUp);
    assert_eq!(arena.events().len(), 1);
    assert_eq!(arena.world.dropped_events(), 5);
}
