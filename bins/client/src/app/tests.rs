use std::time::Duration;

use caves_game::ServerConfig;
use caves_session::caves::ServerConfig as SessionConfig;
use caves_world::Pos;

use super::*;
use crate::keys::Key;
use crate::testing::{Caves, Player};

fn press(caves: &mut Caves, keys: &[Key]) {
    let now = caves.now;
    let Player { app, client, .. } = &mut caves.players[0];
    keys.iter().for_each(|key| app.handle_key(*key, client, now));
}

fn type_text(caves: &mut Caves, text: &str) {
    text.chars().for_each(|c| press(caves, &[Key::Char(c)]));
}

fn mode(caves: &Caves) -> &Mode {
    &caves.players[0].app.mode
}

/// Where the server has the first player.
fn truth(caves: &Caves) -> Pos {
    let id = caves.players[0].client.mirror().me().unwrap().id;
    caves.server.world().entity(id).unwrap().pos
}

fn messages(caves: &Caves) -> Vec<&str> {
    caves.players[0]
        .client
        .mirror()
        .messages()
        .iter()
        .map(|message| message.text.as_str())
        .collect()
}

/// A way along which a player at `from` can walk `steps` tiles, nobody being there.
fn free_way(caves: &Caves, from: Pos, steps: i32) -> Direction {
    let mirror = caves.players[0].client.mirror();
    let open = |pos| mirror.tile(pos).is_some_and(|tile| mirror.content().is_walkable(tile));
    Direction::ALL
        .into_iter()
        .find(|way| {
            let (dx, dy) = way.delta();
            (1..=steps).all(|i| open(from.offset(dx * i, dy * i)))
        })
        .expect("the entrance hall is wide")
}

fn key_of(way: Direction) -> Key {
    match way {
        Direction::North => Key::Up,
        Direction::East => Key::Right,
        Direction::South => Key::Down,
        Direction::West => Key::Left,
    }
}

/// Holds a key down: 30 repeats a second after the pause that keyboards make.
fn hold(caves: &mut Caves, key: Key, millis: u64) {
    let until = caves.now + Duration::from_millis(millis);
    press(caves, &[key]);
    caves.run_for(300);
    while caves.now < until {
        press(caves, &[key]);
        caves.run_for(30);
    }
}

#[test]
fn a_step_is_shown_at_once_and_the_server_agrees() {
    let mut caves = Caves::with("Ada");
    let start = truth(&caves);
    let way = free_way(&caves, start, 1);
    press(&mut caves, &[key_of(way)]);
    assert_eq!(caves.players[0].client.position(), Some(start.step(way)), "before any answer");
    assert_eq!(truth(&caves), start);
    caves.run_for(300);
    assert_eq!(truth(&caves), start.step(way));
}

#[test]
fn a_held_key_walks_a_tile_a_tick_and_stops_when_let_go() {
    let mut caves = Caves::with("Ada");
    let start = truth(&caves);
    let way = free_way(&caves, start, 4);
    // One step at once, three more in the 300 ms of repeats.
    hold(&mut caves, key_of(way), 600);
    let let_go = truth(&caves);
    let walked = around::steps(start, let_go);
    assert!((3..=4).contains(&walked), "{walked} steps");
    caves.run_for(2000);
    let more = around::steps(let_go, truth(&caves));
    assert!(more <= 1, "{more} steps after the key was let go");
    assert_eq!(caves.players[0].client.position(), Some(truth(&caves)));
}

#[test]
fn a_held_key_does_not_walk_on_when_the_network_was_away() {
    let mut caves = Caves::with("Ada");
    let start = truth(&caves);
    let way = free_way(&caves, start, 4);
    caves.cut_off = true;
    hold(&mut caves, key_of(way), 900);
    caves.run_for(500);
    let waits = caves.players[0].client.session().queued().count();
    assert_eq!(waits, 0, "the key was let go, nothing waits to be sent");
}

#[test]
fn a_tapped_key_is_a_step_however_late_it_can_be_sent() {
    let mut caves = Caves::with("Ada");
    let start = truth(&caves);
    let way = free_way(&caves, start, 1);
    // Something that must arrive goes before the step, and takes longer than a key is held.
    caves.cut_off = true;
    press(&mut caves, &[Key::Char('g'), key_of(way)]);
    caves.run_for(400);
    caves.cut_off = false;
    caves.run_for(1000);
    assert_eq!(truth(&caves), start.step(way));
}

#[test]
fn digging_asks_for_a_direction_and_says_what_came_of_it() {
    let mut caves = Caves::with("Ada");
    let way = free_way(&caves, truth(&caves), 1);
    press(&mut caves, &[Key::Char('d')]);
    assert_eq!(*mode(&caves), Mode::Aim(Verb::Dig));
    press(&mut caves, &[Key::Esc]);
    assert_eq!(*mode(&caves), Mode::Walk);
    press(&mut caves, &[Key::Char('d'), key_of(way)]);
    assert_eq!(*mode(&caves), Mode::Walk);
    let remark = caves.players[0].app.remark().unwrap_or_default();
    assert!(remark.starts_with("Nothing to dig"), "{remark}");
}

#[test]
fn a_wall_is_dug_and_walked_through() {
    let mut caves = Caves::with("Ada");
    // To the next wall in some direction, and through it.
    for _ in 0..40 {
        press(&mut caves, &[Key::Up]);
        caves.run_for(120);
    }
    let before = truth(&caves);
    for _ in 0..40 {
        press(&mut caves, &[Key::Char('d'), Key::Up]);
        caves.run_for(300);
    }
    press(&mut caves, &[Key::Up]);
    caves.run_for(500);
    assert_eq!(truth(&caves), before.step(Direction::North));
}

#[test]
fn what_is_typed_is_said_and_comes_back() {
    let mut caves = Caves::with("Ada");
    press(&mut caves, &[Key::Char('t')]);
    type_text(&mut caves, "quick, hide");
    press(&mut caves, &[Key::Enter]);
    assert_eq!(*mode(&caves), Mode::Walk);
    caves.run_for(500);
    assert_eq!(messages(&caves).last(), Some(&"quick, hide"));
}

#[test]
fn what_cannot_be_said_now_stays_in_the_line() {
    let mut caves = Caves::with("Ada");
    caves.cut_off = true;
    for _ in 0..4 {
        press(&mut caves, &[Key::Char('g')]);
    }
    press(&mut caves, &[Key::Char('t'), Key::Char('x'), Key::Enter]);
    let Mode::Say(line) = mode(&caves) else { panic!("{:?}", mode(&caves)) };
    assert_eq!(line.text(), "x");
    assert_eq!(caves.players[0].app.remark(), Some("Earlier input still waits."));
}

#[test]
fn pasted_text_is_never_a_command() {
    let mut caves = Caves::with("Ada");
    let (start, now) = (truth(&caves), caves.now);
    caves.players[0].app.handle_paste("qy\nhjkl", now);
    caves.run_for(300);
    assert_eq!((mode(&caves), truth(&caves)), (&Mode::Walk, start));
    press(&mut caves, &[Key::Char('t')]);
    caves.players[0].app.handle_paste("two\nlines", now);
    let Mode::Say(line) = mode(&caves) else { panic!("{:?}", mode(&caves)) };
    assert_eq!(line.text(), "two lines");
}

#[test]
fn quitting_is_asked_twice_and_a_no_goes_back_to_what_was() {
    let mut caves = Caves::with("Ada");
    press(&mut caves, &[Key::Char('t'), Key::Char('x'), Key::Ctrl('c'), Key::Char('n')]);
    assert!(matches!(mode(&caves), Mode::Say(line) if line.text() == "x"));
    press(&mut caves, &[Key::Esc, Key::Char('q')]);
    assert!(!caves.players[0].app.wants_to_quit());
    press(&mut caves, &[Key::Enter]);
    assert!(caves.players[0].app.wants_to_quit());
}

#[test]
fn the_only_thing_beside_one_is_used_without_a_question() {
    let mut caves = Caves::with("Ada");
    // The sign stands two tiles north of the entrance.
    press(&mut caves, &[Key::Char('e')]);
    assert_eq!(caves.players[0].app.remark(), Some("There is nothing to use beside you."));
    press(&mut caves, &[Key::Up]);
    caves.run_for(300);
    press(&mut caves, &[Key::Char('e')]);
    caves.run_for(500);
    let last = *messages(&caves).last().unwrap();
    assert!(last.starts_with("The sign reads: Welcome to the caves."), "{last}");
    press(&mut caves, &[Key::Enter]);
    assert_eq!(*mode(&caves), Mode::Walk, "there is something to use, so nothing is typed");
}

#[test]
fn enter_begins_to_talk_where_nothing_can_be_used() {
    let mut caves = Caves::with("Ada");
    press(&mut caves, &[Key::Enter]);
    assert!(matches!(mode(&caves), Mode::Say(_)));
}

#[test]
fn looking_goes_through_all_in_view_and_asks_for_details() {
    let mut caves = Caves::with("Ada");
    press(&mut caves, &[Key::Char('x')]);
    let Mode::Look { target: first } = *mode(&caves) else { panic!("{:?}", mode(&caves)) };
    caves.run_for(300);
    let mirror = caves.players[0].client.mirror();
    let in_view = mirror.figures().len() - 1;
    let details = mirror.details(first).expect("asked for and answered");
    assert!(details.sign_text.is_some(), "the sign is nearest");
    for _ in 0..in_view {
        press(&mut caves, &[Key::Tab]);
    }
    assert_eq!(*mode(&caves), Mode::Look { target: first }, "once around");
    press(&mut caves, &[Key::BackTab, Key::Tab, Key::Esc]);
    assert_eq!(*mode(&caves), Mode::Walk);
}

#[test]
fn what_is_picked_up_is_in_the_inventory_and_can_be_dropped() {
    let mut caves = Caves::with("Ada");
    assert!(dig_out_something(&mut caves), "forty walls leave something");
    press(&mut caves, &[Key::Char('i')]);
    caves.run_for(300);
    let carried: u16 = bag(&caves.players[0].client).iter().map(|(_, count)| count).sum();
    assert!(carried > 0);
    press(&mut caves, &[Key::Char('D')]);
    caves.run_for(1000);
    let left: u16 = bag(&caves.players[0].client).iter().map(|(_, count)| count).sum();
    assert!(left < carried, "{left} of {carried} left");
    assert!(messages(&caves).iter().any(|text| text.starts_with("You drop ")));
}

/// Digs north until something is found, and picks it up.
fn dig_out_something(caves: &mut Caves) -> bool {
    (0..80).any(|_| {
        press(caves, &[Key::Char('d'), Key::Up]);
        caves.run_for(250);
        press(caves, &[Key::Up]);
        caves.run_for(250);
        press(caves, &[Key::Char('g')]);
        caves.run_for(250);
        messages(caves).iter().any(|text| text.starts_with("You pick up "))
    })
}

#[test]
fn scrolling_stops_at_both_ends() {
    let mut caves = Caves::with("Ada");
    press(&mut caves, &[Key::Char('?')]);
    caves.players[0].app.note_scroll(Scroll { limit: 5, page: 3 });
    press(&mut caves, &[Key::Up]);
    assert_eq!(*mode(&caves), Mode::Help { down: 0 });
    press(&mut caves, &[Key::PageDown]);
    assert_eq!(*mode(&caves), Mode::Help { down: 2 });
    press(&mut caves, &[Key::PageDown, Key::PageDown, Key::PageDown]);
    assert_eq!(*mode(&caves), Mode::Help { down: 5 });
    // The window became larger.
    caves.players[0].app.note_scroll(Scroll { limit: 3, page: 5 });
    press(&mut caves, &[Key::Up]);
    assert_eq!(*mode(&caves), Mode::Help { down: 2 });
    press(&mut caves, &[Key::Home]);
    assert_eq!(*mode(&caves), Mode::Help { down: 0 });
    press(&mut caves, &[Key::Esc, Key::Char('m')]);
    press(&mut caves, &[Key::Home]);
    assert_eq!(*mode(&caves), Mode::Log { up: 3 }, "older messages are above");
    press(&mut caves, &[Key::Down]);
    assert_eq!(*mode(&caves), Mode::Log { up: 2 });
}

#[test]
fn a_refusal_is_told_once_and_tried_again() {
    let session = SessionConfig { max_players: 1, ..SessionConfig::default() };
    let mut caves = Caves::new(ServerConfig { session, seed: 7, keep: None });
    let home = || Home::Server { address: "caves.example:21068".into() };
    caves.enter("Bob", home());
    caves.run_for(500);
    caves.enter("Ada", home());
    caves.run_for(20_000);
    let ada = &caves.players[1];
    let told: Vec<_> = ada.client.mirror().messages().iter().map(|line| &line.text).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("Not let in: server full"), "{told:?}");
    // Bob leaves, and Ada comes in by herself.
    let now = caves.now;
    caves.players[0].client.leave(now);
    caves.run_for(10_000);
    assert!(caves.players[1].client.mirror().me().is_some());
    assert_eq!(caves.players[1].app.trouble, None);
}

#[test]
fn no_key_in_any_mode_panics_without_a_session() {
    let now = Instant::from_secs(1);
    let mut caves = Caves::with("Ada");
    caves.players.clear();
    caves.cut_off = true;
    caves.enter("Ada", Home::Alone { seed: 1, is_kept: false });
    let all: Vec<Key> = keys::TABLE.iter().flat_map(|row| row.keys).copied().collect();
    for first in &all {
        for second in &all {
            press(&mut caves, &[*first, *second, Key::Tab, Key::Enter]);
            let Player { app, client, .. } = &mut caves.players[0];
            app.handle_timeout(client, now + Duration::from_secs(60));
            app.mode = Mode::Walk;
        }
    }
}
