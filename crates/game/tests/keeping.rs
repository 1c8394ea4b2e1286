//! A world that is kept: what players find again when they or the server come back.

mod common;

use std::time::Duration;

use caves_game::{Keep, ServerConfig, ServerEvent};
use caves_link::time::Instant;
use caves_netsim::LinkConfig;
use caves_session::caves::{ClientConfig, ClientEntry, ServerConfig as Sessions};
use caves_wire::caves::{ClientType, Token};
use caves_world::{Body, Command, Content, Direction, EntityId, IDLE_CHUNKS, KindId, Pos, SPAWN};

use common::Site;

const ADA: Token = Token(0xADA0_0000_0001);
const BEN: Token = Token(0xBE40_0000_0002);

/// Ada and Ben are registered; the world is saved every second.
fn site(seed: u64, idle_chunks: usize) -> Site {
    let entry = |name: &str, token| ClientEntry {
        client_type: ClientType(7),
        name: Some(name.into()),
        allow: true,
        token: Some(token),
        from: vec!["192.0.2.0/24".parse().unwrap()],
        tags: true,
    };
    let clients = vec![entry("Ada", ADA), entry("Ben", BEN)];
    let session = Sessions { clients, ..Sessions::default() };
    let keep =
        Keep { world: None, players: Vec::new(), interval: Duration::from_secs(1), idle_chunks };
    Site::with(seed, ServerConfig { session, seed, keep: Some(keep) })
}

fn join(site: &mut Site, token: Token) -> usize {
    let config = ClientConfig { token: Some(token), ..ClientConfig::default() };
    let seat = site.join_as(config, LinkConfig::PERFECT);
    enter(site, seat);
    seat
}

/// Waits until somebody is in the caves and sees them.
fn enter(site: &mut Site, seat: usize) {
    site.until(9000, |site| site.is_current(seat) && is_there(site, seat)).expect("in the caves");
}

/// Whether its client is in a session of this server, not of the one before.
fn is_there(site: &Site, seat: usize) -> bool {
    let token = site.seats[seat].client.session().token();
    site.server.sessions().sessions().any(|(_, session)| Some(session.token()) == token)
}

/// Somebody's client starts again, as after an evening at home.
fn come_back(site: &mut Site, seat: usize) {
    let peer = site.seats[seat].peer;
    site.start_again(seat, peer);
    enter(site, seat);
}

fn stones(site: &Site, seat: usize) -> u16 {
    let me = site.seats[seat].client.mirror().me().unwrap().id;
    let inventory = site.server.world().entity(me).unwrap().inventory().unwrap().clone();
    inventory.count(Content::core().kind_id("core:stone").unwrap())
}

/// Digs and takes what falls until something is carried.
fn fetch_a_stone(site: &mut Site, seat: usize) {
    for _ in 0..40 {
        site.dig_east(seat, 1000);
        site.act(seat, Command::PickUp);
        site.run(300);
        if stones(site, seat) > 0 {
            return;
        }
    }
    panic!("no stone in forty seconds of digging");
}

#[test]
fn a_registered_player_finds_its_place_and_its_things_again_after_a_crash() {
    let mut site = site(11, IDLE_CHUNKS);
    let ada = join(&mut site, ADA);
    fetch_a_stone(&mut site, ada);
    // Standing still, it is the same for longer than from one save to the next.
    site.run(3000);
    let (place, carried) = (site.true_pos(ada), stones(&site, ada));
    assert!(carried > 0 && place != SPAWN);
    site.restart_server(500);
    enter(&mut site, ada);
    assert_eq!((site.true_pos(ada), stones(&site, ada)), (place, carried));
}

#[test]
fn a_guest_begins_anew_and_a_registered_player_does_not() {
    let mut site = site(12, IDLE_CHUNKS);
    let ada = join(&mut site, ADA);
    let guest = site.join("Gina", LinkConfig::PERFECT);
    enter(&mut site, guest);
    for seat in [ada, guest] {
        site.dig_east(seat, 4000);
        assert_ne!(site.true_pos(seat), SPAWN);
        site.leave(seat);
    }
    let place = site.shelf.as_ref().unwrap().players.get("Ada").map(|record| record.pos);
    site.run(2000);
    let kept = &site.shelf.as_ref().unwrap().players;
    assert_eq!(kept.keys().collect::<Vec<_>>(), ["Ada"], "guests are forgotten");
    assert!(place.is_none_or(|early| early.distance(kept["Ada"].pos) < 40));
    let place = kept["Ada"].pos;
    come_back(&mut site, ada);
    come_back(&mut site, guest);
    assert_eq!((site.true_pos(ada), site.true_pos(guest)), (place, SPAWN));
}

#[test]
fn dug_caves_are_the_same_after_a_crash() {
    let mut site = site(13, 0);
    let ada = join(&mut site, ADA);
    site.dig_east(ada, 20_000);
    site.run(3000);
    let world = site.server.world();
    let chunks = site.true_pos(ada).chunk().around();
    let tiles = chunks.map(|chunk| world.loaded_chunk(chunk).unwrap().clone());
    let fresh = chunks.map(|chunk| caves_world::generate(13, chunk, world.content()));
    assert!(tiles.iter().zip(&fresh).any(|(now, then)| now.version() > then.version()), "it dug");
    site.restart_server(500);
    enter(&mut site, ada);
    for (chunk, before) in chunks.into_iter().zip(&tiles) {
        let now = site.server.world().loaded_chunk(chunk).unwrap();
        assert_eq!(now.version(), before.version());
        let same = |index| now.tile(index) == before.tile(index);
        assert!((0..1024).all(same), "{chunk:?}");
    }
}

#[test]
fn what_changes_while_the_disk_is_full_is_kept_when_there_is_room() {
    let mut site = site(14, 0);
    let ada = join(&mut site, ADA);
    site.run(2000);
    let full = Duration::from_secs(60);
    let before = site.shelf.as_ref().unwrap().clone();
    site.shelf.as_mut().unwrap().full_until = site.now + full;
    site.dig_east(ada, 40_000);
    assert!(site.is_current(ada), "play goes on");
    let shelf = site.shelf.as_ref().unwrap();
    assert_eq!((shelf.saves, &shelf.chunks), (before.saves, &before.chunks), "nothing was written");
    assert!(site.server.unsaved() > 0);
    let place = site.true_pos(ada);
    site.run(25_000);
    assert!(site.server.unsaved() <= 1, "{}", site.server.unsaved());
    assert_eq!(site.shelf.as_ref().unwrap().players["Ada"].pos, place);
    site.restart_server(100);
    enter(&mut site, ada);
    assert_eq!(site.true_pos(ada), place);
}

#[test]
fn there_is_one_save_a_second_and_none_before_the_last_is_safe() {
    let mut site = site(15, IDLE_CHUNKS);
    let ada = join(&mut site, ADA);
    let start = site.shelf.as_ref().unwrap().saves;
    site.dig_east(ada, 30_000);
    let saves = site.shelf.as_ref().unwrap().saves - start;
    assert!((27..=31).contains(&saves), "{saves} in 30 s");
}

#[test]
fn a_ticket_is_safe_once_all_before_it_is_written() {
    let mut site = site(16, IDLE_CHUNKS);
    let ada = join(&mut site, ADA);
    site.dig_east(ada, 1234);
    let ticket = site.server.ask_save().unwrap();
    assert!(!site.server.is_safe(ticket));
    let place = site.true_pos(ada);
    site.until(2000, |site| site.server.is_safe(ticket)).expect("it is written");
    assert_eq!(site.shelf.as_ref().unwrap().players["Ada"].pos, place);
    // Asked while another one is under way, it is the one after that.
    let first = site.server.ask_save().unwrap();
    let second = site.server.ask_save().unwrap();
    assert!(first <= second);
    site.until(2000, |site| site.server.is_safe(second)).expect("it is written, too");
}

#[test]
fn leaving_is_kept_though_the_server_stops_at_once() {
    let mut site = site(17, IDLE_CHUNKS);
    let ada = join(&mut site, ADA);
    site.dig_east(ada, 3000);
    let place = site.true_pos(ada);
    site.shut_down();
    let ticket = site.server.ask_save().unwrap();
    site.until(3000, |site| site.server.is_safe(ticket)).expect("the last save");
    assert_eq!(site.server.unsaved(), 0);
    assert_eq!(site.shelf.as_ref().unwrap().players["Ada"].pos, place);
}

#[test]
fn nobody_comes_in_before_the_entrance_is_read_and_everybody_does_then() {
    let mut site = site(18, IDLE_CHUNKS);
    // The store answers nothing yet: joins wait.
    let shelf = site.shelf.take();
    let ada = site
        .join_as(ClientConfig { token: Some(ADA), ..ClientConfig::default() }, LinkConfig::PERFECT);
    site.run(1500);
    assert!(!site.server.is_ready());
    assert_eq!(site.server.players(), 0);
    site.shelf = shelf;
    enter(&mut site, ada);
    assert_eq!(site.true_pos(ada), SPAWN);
}

#[test]
fn a_player_whose_place_cannot_be_read_comes_in_at_the_entrance_with_what_it_carries() {
    let mut site = site(19, 0);
    let ada = join(&mut site, ADA);
    fetch_a_stone(&mut site, ada);
    site.run(3000);
    let carried = stones(&site, ada);
    site.leave(ada);
    site.run(1000);
    // Far from what the entrance needs.
    let far = Pos { x: SPAWN.x + 32 * 40, y: SPAWN.y };
    site.shelf.as_mut().unwrap().players.get_mut("Ada").unwrap().pos = far;
    site.shelf.as_mut().unwrap().unreadable.extend(far.chunk().around());
    site.restart_server(100);
    let peer = site.seats[ada].peer;
    site.start_again(ada, peer);
    site.until(10_000, |site| site.is_current(ada)).expect("in the caves after some patience");
    assert_eq!((site.true_pos(ada), stones(&site, ada)), (SPAWN, carried));
    let told = site.log.iter().filter(|event| matches!(event, ServerEvent::ChunkUnreadable { .. }));
    assert_eq!(told.count(), 9);
}

#[test]
fn things_change_hands_and_are_in_one_place_whenever_the_server_dies() {
    let (mut carried, mut kept) = (0, 0);
    for seed in 100..110 {
        let mut site = site(seed, 0);
        site.shelf.as_mut().unwrap().is_exact = true;
        let seats = [join(&mut site, ADA), join(&mut site, BEN)];
        let torch = Content::core().kind_id("core:torch").unwrap();
        for round in 0..12u64 {
            for seat in seats {
                scatter(&mut site, seat, torch, seed ^ round);
            }
            if (seed + round).is_multiple_of(4) {
                let times = [0, 40, 130, 700];
                site.restart_server(times[(round % 4) as usize]);
                seats.iter().for_each(|seat| enter(&mut site, *seat));
            }
        }
        let shelf = site.shelf.as_ref().unwrap();
        assert!(shelf.saves > 5);
        let players = shelf.players.values();
        carried += players.map(|record| u64::from(record.inventory.count(torch))).sum::<u64>();
        kept += shelf.count(torch);
    }
    assert!(carried > 10 && kept > carried, "{carried} of {kept} torches were carried");
}

/// Goes for the nearest torches, in a chest or on the floor, takes them, and drops one now and then.
fn scatter(site: &mut Site, seat: usize, torch: KindId, random: u64) {
    for _ in 0..25 {
        let Some((id, pos, is_chest)) = nearest(site, seat, torch) else { break };
        let me = site.true_pos(seat);
        if is_chest && me.is_adjacent_or_same(pos) || me == pos {
            let take = if is_chest { Command::Interact(id) } else { Command::PickUp };
            site.act(seat, take);
            site.run(250);
            break;
        }
        let way = match (pos.x - me.x, pos.y - me.y) {
            (1.., _) => Direction::East,
            (..=-1, _) => Direction::West,
            (_, 1..) => Direction::South,
            _ => Direction::North,
        };
        let world = site.server.world();
        let open = world.content().is_walkable(world.tile(me.step(way)));
        site.act(seat, if open { Command::Move(way) } else { Command::Dig(way) });
        site.run(150);
    }
    if random.is_multiple_of(3) {
        site.act(seat, Command::Drop { item: torch, count: 1 });
        site.run(200);
    }
}

/// Where the nearest torches are that nobody carries, and whether they are in a chest.
fn nearest(site: &Site, seat: usize, torch: KindId) -> Option<(EntityId, Pos, bool)> {
    let (me, world) = (site.true_pos(seat), site.server.world());
    let ids = (1..=world.record().last_id).map(EntityId);
    let torches = ids.filter_map(|id| world.entity(id)).filter_map(|entity| match &entity.body {
        Body::Item { .. } if entity.kind == torch => Some((entity.id, entity.pos, false)),
        Body::Chest { inventory } if inventory.count(torch) > 0 => {
            Some((entity.id, entity.pos, true))
        }
        _ => None,
    });
    torches.min_by_key(|(_, pos, _)| pos.distance(me))
}

#[test]
fn an_unkept_world_asks_for_nothing() {
    let mut site = Site::new(20);
    let seat = site.join("Ada", LinkConfig::PERFECT);
    enter(&mut site, seat);
    assert!(site.server.poll_store().is_none());
    assert!(site.server.ask_save().is_none());
    assert_eq!(site.server.unsaved(), 0);
    assert!(Instant::ZERO < site.now);
}
