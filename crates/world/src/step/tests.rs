use super::*;
use crate::combat::RESPAWN_TICKS;
use crate::command::Command;
use crate::entity::{STATUS_FIGHTING, STATUS_SAFE};
use crate::event::Event;
use crate::generation::SPAWN;
use crate::testing::{Arena, MIDDLE};

/// Only Ada is near the middle.
fn alone() -> Arena {
    let mut arena = Arena::new();
    arena.world.relocate(arena.bob, SPAWN);
    arena.clear();
    arena
}

#[test]
fn hostile_monster_comes_and_strikes() {
    let mut arena = alone();
    let ghoul = arena.monster("core:ghoul", 5, 3);
    arena.steps(60);
    assert!(arena.get(ghoul).pos.is_adjacent_or_same(MIDDLE));
    let ada = arena.ada;
    let blows: Vec<u16> = arena
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::Struck { attacker, target, damage, .. }
                if (attacker, target) == (ghoul, ada) =>
            {
                Some(damage)
            }
            _ => None,
        })
        .collect();
    // Up to seven ticks of rest, then seven steps of four ticks, then a blow every seven.
    assert!((3..=5).contains(&blows.len()), "{blows:?}");
    assert!(blows.iter().all(|damage| (2..=5).contains(damage)), "{blows:?}");
}

#[test]
fn monster_does_not_see_through_rock_nor_further_than_its_sight() {
    let mut arena = alone();
    for dy in -12..=12 {
        arena.wall(3, dy, "core:rock");
    }
    let hidden = arena.monster("core:cave_rat", 5, 0);
    let far = arena.monster("core:cave_rat", -8, 0);
    let near = arena.monster("core:cave_rat", -7, 5);
    assert_eq!(arena.world.prey(arena.get(hidden)), None);
    assert_eq!(arena.world.prey(arena.get(far)), None);
    assert_eq!(arena.world.prey(arena.get(near)), Some((arena.ada, MIDDLE)));
    // Stalagmites stop feet, not eyes.
    arena.wall(3, 0, "core:stalagmite");
    assert_eq!(arena.world.prey(arena.get(hidden)), Some((arena.ada, MIDDLE)));
}

#[test]
fn peaceful_monster_fights_only_whoever_struck_it() {
    let mut arena = Arena::new();
    let beetle = arena.monster("core:glow_beetle", 1, 0);
    assert_eq!(arena.world.prey(arena.get(beetle)), None);
    arena.world.strike(arena.bob, beetle);
    arena.set_hp(beetle, 4);
    assert_eq!(arena.world.prey(arena.get(beetle)), Some((arena.bob, MIDDLE)));
    arena.world.tick += 50;
    assert_eq!(arena.world.prey(arena.get(beetle)), None);
}

#[test]
fn monsters_stay_out_of_the_safe_zone_and_off_taken_tiles() {
    let mut arena = Arena::new();
    arena.put(arena.bob, 1, 0);
    let rat = arena.monster("core:cave_rat", 2, 0);
    for taken in [MIDDLE, MIDDLE.offset(1, 0), MIDDLE.offset(2, 0)] {
        assert!(!arena.world.may_enter(taken));
    }
    assert!(arena.world.may_enter(MIDDLE.offset(3, 0)));
    arena.world.relocate(rat, MIDDLE.offset(4, 0));
    assert!(arena.world.may_enter(MIDDLE.offset(2, 0)));
    assert!(!arena.world.may_enter(SPAWN));
    assert!(!arena.world.may_enter(SPAWN.offset(3, 0)));
}

#[test]
fn nobody_is_hunted_in_the_safe_zone_but_who_strikes_out_of_it_is_struck_back() {
    let mut arena = Arena::new();
    let rat = arena.monster("core:cave_rat", 0, 0);
    // Open ground east of the spawn, wherever the seed has put walls.
    for dx in 5..=12 {
        let tile = SPAWN.offset(dx, 0);
        arena.world.terrain.set(tile, crate::content::TileId::FLOOR).unwrap();
    }
    arena.world.relocate(arena.ada, SPAWN.offset(8, 0));
    arena.world.relocate(rat, SPAWN.offset(9, 0));
    assert_eq!(arena.world.prey(arena.get(rat)), None);
    arena.world.strike(arena.ada, rat);
    arena.set_hp(rat, 6);
    arena.steps(20);
    assert!(arena.get(arena.ada).hp < 20);
}

#[test]
fn idle_monster_wanders_around_its_home() {
    let mut arena = alone();
    let beetle = arena.monster("core:glow_beetle", 10, 0);
    let home = MIDDLE.offset(10, 0);
    let mut places = std::collections::BTreeSet::new();
    for _ in 0..2000 {
        arena.world.step();
        let pos = arena.get(beetle).pos;
        assert!(home.distance(pos) <= 7);
        places.insert(pos);
    }
    assert!(places.len() > 10, "{places:?}");
}

#[test]
fn monsters_without_players_sleep() {
    let mut arena = alone();
    let rat = arena.monster("core:cave_rat", 10, 0);
    arena.world.relocate(arena.ada, SPAWN);
    let before = arena.get(rat).clone();
    arena.steps(300);
    assert_eq!(arena.get(rat), &before);
}

#[test]
fn wounds_close_thirty_ticks_after_the_fight_and_every_thirty() {
    let mut arena = alone();
    let rat = arena.monster("core:cave_rat", 1, 0);
    arena.world.strike(rat, arena.ada);
    arena.set_hp(arena.ada, 17);
    arena.clear();
    // The blow fell in tick 0; the fight is over in tick 50; one point each in ticks 80, 110, 140.
    for (ticks, hp) in [(80, 17), (1, 18), (29, 18), (1, 19), (29, 19), (1, 20), (100, 20)] {
        arena.steps(ticks);
        assert_eq!(arena.get(arena.ada).hp, hp, "tick {}", arena.world.tick());
    }
}

#[test]
fn monsters_heal_too() {
    let mut arena = alone();
    let rat = arena.monster("core:cave_rat", 15, 0);
    arena.world.strike(arena.ada, rat);
    arena.set_hp(rat, 3);
    arena.steps(81);
    assert_eq!(arena.get(rat).hp, 4);
}

#[test]
fn status_tells_fights_and_safety() {
    let mut arena = alone();
    arena.steps(1);
    assert_eq!(arena.get(arena.ada).status(), 0);
    assert_eq!(arena.get(arena.bob).status(), STATUS_SAFE);
    let rat = arena.monster("core:cave_rat", 1, 0);
    arena.world.strike(rat, arena.ada);
    arena.clear();
    arena.steps(1);
    assert_eq!(arena.get(arena.ada).status(), STATUS_FIGHTING);
    arena.steps(49);
    assert_eq!(arena.get(arena.ada).status(), 0);
}

#[test]
fn killed_monster_comes_back_at_home_when_nobody_is_near() {
    let mut arena = alone();
    let rat = arena.monster("core:cave_rat", 16, 0);
    let (kind, home) = (arena.get(rat).kind, MIDDLE.offset(16, 0));
    let rats = |arena: &Arena| -> Vec<(EntityId, Pos)> {
        let rats = arena.world.entities.iter().filter(|e| e.kind == kind);
        rats.map(|e| (e.id, e.pos)).collect()
    };
    arena.set_hp(rat, 1);
    arena.world.strike(arena.ada, rat);
    arena.steps(RESPAWN_TICKS);
    assert_eq!(rats(&arena), []);
    // Due, but a player stands 15 tiles away.
    arena.put(arena.ada, 1, 0);
    arena.steps(1);
    assert_eq!(rats(&arena), []);
    arena.put(arena.ada, 0, 0);
    arena.steps(1);
    let back = rats(&arena);
    assert_eq!(back.len(), 1);
    assert!(back[0].0 > rat && back[0].1 == home);
    assert_eq!((arena.get(back[0].0).hp, arena.get(back[0].0).elo), (6, 800));
    arena.steps(RESPAWN_TICKS + 10);
    assert_eq!(rats(&arena).len(), 1, "it comes back once");
}

#[test]
fn nobody_comes_back_while_all_sleep() {
    let mut arena = alone();
    let rat = arena.monster("core:cave_rat", 16, 0);
    arena.set_hp(rat, 1);
    arena.world.strike(arena.ada, rat);
    arena.world.relocate(arena.ada, SPAWN);
    let entities = arena.world.entity_count();
    arena.steps(RESPAWN_TICKS + 5);
    let monsters = arena
        .world
        .entities
        .iter()
        .filter(|e| e.monster().is_some_and(|m| m.home == MIDDLE.offset(16, 0)));
    assert_eq!(monsters.count(), 0);
    assert!(arena.world.entity_count() <= entities + 3);
    arena.put(arena.ada, 0, 0);
    arena.steps(1);
    let monsters = arena
        .world
        .entities
        .iter()
        .filter(|e| e.monster().is_some_and(|m| m.home == MIDDLE.offset(16, 0)));
    assert_eq!(monsters.count(), 1);
}

#[test]
fn a_fight_goes_both_ways() {
    let mut arena = alone();
    let ghoul = arena.monster("core:ghoul", 1, 0);
    let mut struck = (false, false);
    for _ in 0..200 {
        let _ = arena.world.execute(arena.ada, Command::Move(Direction::East));
        arena.world.step();
        arena.put(arena.ada, 0, 0);
        for event in arena.events() {
            match event {
                Event::Struck { attacker, .. } if attacker == arena.ada => struck.0 = true,
                Event::Struck { attacker, .. } if attacker == ghoul => struck.1 = true,
                _ => {}
            }
        }
    }
    assert_eq!(struck, (true, true));
    assert!(arena.world.entity(ghoul).is_none());
}

#[test]
fn towards_prefers_the_longer_way() {
    let from = Pos { x: 0, y: 0 };
    assert_eq!(towards(from, Pos { x: 3, y: -1 }), [Some(Direction::East), Some(Direction::North)]);
    assert_eq!(towards(from, Pos { x: -1, y: 4 }), [Some(Direction::South), Some(Direction::West)]);
    assert_eq!(towards(from, Pos { x: 0, y: -2 }), [Some(Direction::North), None]);
    assert_eq!(towards(from, from), [None, None]);
}
