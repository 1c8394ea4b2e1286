//! Servers that restart, addresses that change, networks that break (section 2, recovery).

mod common;

use std::time::Duration;

use caves_game::client::ClientEvent;
use caves_game::{ServerConfig, ServerEvent};
use caves_netsim::{Chance, LinkConfig};
use caves_session::caves::{
    ClientConfig, ClientEnd, ClientEntry, ClientStatus, Left, ServerConfig as SessionConfig,
};
use caves_wire::caves::{
    ChunkEntry, ClientType, EntityBuilder, EntityId, LeaveReason, RefuseReason, State, Tick, Token,
};
use caves_wire::fnv::Fnv32;
use caves_world::{Command, Direction};
use common::{Site, address};

const GOOD: LinkConfig = LinkConfig { delay: Duration::from_millis(20), ..LinkConfig::PERFECT };
const CUT: LinkConfig = LinkConfig { down: true, ..GOOD };

fn playing(seed: u64) -> (Site, usize) {
    let mut site = Site::new(seed);
    let ada = site.join("Ada", GOOD);
    site.until(3000, |site| site.is_playable(ada)).expect("playable");
    site.seats[ada].events.clear();
    (site, ada)
}

fn joined(site: &Site, seat: usize) -> Vec<bool> {
    let resumed = |event: &ClientEvent| match event {
        ClientEvent::Joined { resumed, .. } => Some(*resumed),
        _ => None,
    };
    site.seats[seat].events.iter().filter_map(resumed).collect()
}

#[test]
fn a_short_cut_heals_by_itself_and_an_attempt_resumes_the_session() {
    let (mut site, ada) = playing(1);
    let token = site.seats[ada].client.session().token();
    site.set_link(ada, CUT);
    site.run(5000);
    let status = site.status(ada);
    assert!(
        matches!(status, ClientStatus::Playing { silence, recovering: true } if silence >= Duration::from_secs(4)),
        "{status:?}"
    );
    site.set_link(ada, GOOD);
    site.until(5000, |site| {
        matches!(site.status(ada), ClientStatus::Playing { recovering: false, .. })
    })
    .expect("healed");
    assert_eq!(site.seats[ada].client.session().token(), token);
    assert!(joined(&site, ada).iter().all(|resumed| *resumed));
    site.run(1000);
    site.assert_chunks_equal(ada);
}

#[test]
fn a_long_cut_ends_the_session_and_the_player_comes_back_as_itself() {
    let (mut site, ada) = playing(2);
    site.set_link(ada, CUT);
    site.run(15_000);
    assert_eq!(site.server.players(), 0);
    assert!(site.log.iter().any(|e| matches!(e, ServerEvent::Left { why: Left::Silence, .. })));
    site.set_link(ada, GOOD);
    let took = site.until(10_000, |site| joined(site, ada) == [false] && site.is_playable(ada));
    assert!(took.is_some_and(|took| took <= Duration::from_secs(5)), "{took:?}");
    site.run(200);
    site.assert_chunks_equal(ada);
    assert_eq!(site.seats[ada].client.mirror().me().unwrap().name.as_deref(), Some("Ada"));
}

#[test]
fn a_server_that_restarts_is_found_again_and_no_old_chunk_is_taken_for_a_new_one() {
    for seed in 10..20 {
        let (mut site, ada) = playing(seed);
        site.dig_east(ada, 6000);
        site.restart_server(1500);
        let took = site.until(15_000, |site| joined(site, ada) == [false] && site.is_playable(ada));
        assert!(took.is_some_and(|took| took <= Duration::from_secs(6)), "{took:?}");
        site.run(300);
        // The new server knows nothing of the digs; neither may the client.
        site.assert_chunks_equal(ada);
        let pos = site.true_pos(ada);
        site.act(ada, Command::Move(Direction::West));
        site.run(500);
        assert_ne!(site.true_pos(ada), pos, "actions count from anew");
    }
}

#[test]
fn a_new_address_takes_the_session_along_after_three_seconds() {
    let (mut site, ada) = playing(3);
    let me = site.seats[ada].client.mirror().me().unwrap().id;
    site.seats[ada].peer = address(77, 777);
    let took = site.until(10_000, |site| !joined(site, ada).is_empty());
    let took = took.expect("resumed");
    assert!(took >= Duration::from_secs(3), "not before the old one was silent: {took:?}");
    assert!(took <= Duration::from_secs(5), "{took:?}");
    assert_eq!(joined(&site, ada), [true]);
    site.run(500);
    assert_eq!(site.seats[ada].client.mirror().me().unwrap().id, me);
    assert!(site.log.iter().any(|e| matches!(e, ServerEvent::Moved { .. })));
    assert_eq!(site.server.players(), 1);
}

#[test]
fn a_server_that_says_goodbye_is_come_back_to_and_one_that_kicks_is_not() {
    let (mut site, ada) = playing(4);
    site.server.shut_down(site.now);
    site.run(500);
    assert!(matches!(site.status(ada), ClientStatus::Waiting { .. }));
    assert!(site.seats[ada].events.iter().any(|e| matches!(e, ClientEvent::ServerGone { .. })));
    site.restart_server(1000);
    site.until(20_000, |site| site.is_playable(ada)).expect("back");

    let kicked = ClientEnd::Left(LeaveReason::KICKED);
    let mut leave = [0; 15];
    let token = site.seats[ada].client.session().token().unwrap();
    caves_wire::caves::Leave { client_type: ClientType(0), token, reason: LeaveReason::KICKED }
        .emit(&mut leave)
        .unwrap();
    site.seats[ada].client.handle_datagram(site.now, &leave);
    assert_eq!(site.status(ada), ClientStatus::Ended(kicked));
}

#[test]
fn a_client_that_quits_is_gone_at_once_and_its_last_words_are_heard() {
    let (mut site, ada) = playing(5);
    site.seats[ada].client.leave(site.now);
    site.run(200);
    assert!(site.seats[ada].client.is_drained());
    assert_eq!(site.status(ada), ClientStatus::Ended(ClientEnd::Quit));
    assert_eq!(site.server.players(), 0);
    assert!(site.log.iter().any(|e| matches!(e, ServerEvent::Left { why: Left::Quit, .. })));
}

#[test]
fn a_killed_client_takes_its_figure_over_when_it_is_started_again() {
    let (mut site, ada) = playing(6);
    let me = site.seats[ada].client.mirror().me().unwrap().id;
    site.seats[ada].dead = true;
    site.run(1000);
    let again = site.join("Ada", GOOD);
    // From the same host: the name is taken until the old one was silent for 3 s.
    site.seats[again].peer = address(1, 5001);
    site.until(15_000, |site| site.is_playable(again)).expect("back");
    assert_eq!(site.seats[again].client.mirror().me().unwrap().id, me);
    assert!(
        site.seats[again]
            .events
            .iter()
            .any(|e| matches!(e, ClientEvent::Refused { reason: RefuseReason::NAME_TAKEN, .. }))
    );
    assert_eq!(site.server.players(), 1);
}

#[test]
fn one_forged_far_tick_does_not_freeze_a_client() {
    let (mut site, ada) = playing(7);
    let client = &mut site.seats[ada].client;
    let player = client.session().player().unwrap();
    let far = client.tick().unwrap().advance(1_000_000);
    let mut buf = [0; 72];
    let chunks = [ChunkEntry::default(); 9];
    State { tick: far, chunks, player, entity_checksum: 0 }.emit(&mut buf).unwrap();
    client.handle_datagram(site.now, &buf);
    let before = client.tick().unwrap();
    site.run(1000);
    let after = site.seats[ada].client.tick().unwrap();
    assert_eq!(after.distance_from(before), 10);
    assert!(site.is_playable(ada));
}

#[test]
fn three_far_ticks_over_some_time_become_the_base() {
    let (mut site, ada) = playing(8);
    let client = &mut site.seats[ada].client;
    let player = client.session().player().unwrap();
    let far = client.tick().unwrap().advance(1_000_000);
    let mut state = |ms: u64, tick: Tick| {
        let mut buf = [0; 72];
        let chunks = [ChunkEntry::default(); 9];
        State { tick, chunks, player, entity_checksum: 0 }.emit(&mut buf).unwrap();
        client.handle_datagram(site.now + Duration::from_millis(ms), &buf);
        client.tick().unwrap()
    };
    assert_ne!(state(0, far), far);
    assert_ne!(state(10, far), far, "the same one again");
    assert_ne!(state(150, far.next()), far.next());
    assert_eq!(state(300, far.advance(3)), far.advance(3));
}

#[test]
fn a_stream_for_another_entity_is_not_ones_own_session() {
    let (mut site, ada) = playing(9);
    let client = &mut site.seats[ada].client;
    let before = client.tick().unwrap();
    let mut buf = [0; 72];
    let chunks = [ChunkEntry::default(); 9];
    let tick = before.next();
    State { tick, chunks, player: EntityId(999), entity_checksum: 0 }.emit(&mut buf).unwrap();
    client.handle_datagram(site.now, &buf);
    assert_eq!(client.tick(), Some(before));
}

#[test]
fn ticks_missed_in_a_pause_are_made_up_for_five_at_most() {
    let (mut site, _) = playing(21);
    let before = site.server.tick();
    site.now += Duration::from_secs(3);
    site.server.handle_timeout(site.now);
    assert_eq!(site.server.tick().distance_from(before), 5);
    let mut dropped = 0;
    while let Some(event) = site.server.poll_event() {
        if let ServerEvent::TicksDropped { count } = event {
            dropped += count;
        }
    }
    assert!((24..=26).contains(&dropped), "{dropped} of 30 dropped");
    let next = site.server.poll_timeout().unwrap();
    assert!(next > site.now, "and it goes on from now");
}

#[test]
fn garbage_on_the_path_ends_nothing() {
    let (mut site, ada) = playing(22);
    let corrupt = LinkConfig { corrupt: Chance::percent(20), ..GOOD };
    site.set_link(ada, corrupt);
    site.run(20_000);
    assert_eq!(site.server.players(), 1);
    assert!(matches!(site.status(ada), ClientStatus::Playing { .. }));
}

/// A registered client inside its `from`, which joined.
fn registered(seed: u64) -> (Site, usize, ClientConfig) {
    let token = Token(0x1234_5678_9ABC);
    let entry = ClientEntry {
        client_type: ClientType(0),
        name: Some("Robo".into()),
        allow: true,
        token: Some(token),
        from: vec!["192.0.2.0/24".parse().unwrap()],
        tags: false,
    };
    let session = SessionConfig { clients: vec![entry], ..SessionConfig::default() };
    let mut site = Site::with(seed, ServerConfig { session, seed, keep: None });
    let config = ClientConfig { token: Some(token), ..ClientConfig::default() };
    let robo = site.join_as(config.clone(), GOOD);
    site.until(3000, |site| site.is_playable(robo)).expect("playable");
    site.seats[robo].events.clear();
    (site, robo, config)
}

fn walks(site: &mut Site, seat: usize) -> bool {
    let before = site.true_pos(seat);
    for way in [Direction::West, Direction::North, Direction::East] {
        site.act(seat, Command::Move(way));
        site.run(400);
    }
    site.true_pos(seat) != before
}

#[test]
fn a_registered_client_whose_process_restarts_can_act_at_once() {
    for seed in 30..42 {
        let (mut site, robo, config) = registered(seed);
        assert!(walks(&mut site, robo), "seed {seed}");
        let me = site.seats[robo].client.mirror().me().unwrap().id;
        site.seats[robo].dead = true;
        site.run(500);
        let again = site.join_as(config, GOOD);
        site.seats[again].peer = address(1, 5001);
        site.until(15_000, |site| site.is_playable(again)).expect("back");
        assert_eq!(site.seats[again].client.mirror().me().unwrap().id, me, "its own figure");
        assert!(walks(&mut site, again), "seed {seed}");
    }
}

#[test]
fn a_registered_client_survives_a_server_that_restarts_in_no_time() {
    for seed in 50..60 {
        let (mut site, robo, _) = registered(seed);
        site.act(robo, Command::Say("before".into()));
        site.run(500);
        site.act(robo, Command::Move(Direction::West));
        site.restart_server(30);
        site.act(robo, Command::Move(Direction::East));
        site.until(20_000, |site| joined(site, robo) == [false] && site.is_playable(robo))
            .expect("joined anew");
        site.run(500);
        assert!(walks(&mut site, robo), "seed {seed}");
        site.act(robo, Command::Say("after".into()));
        site.run(1000);
        assert!(site.seats[robo].texts().contains(&"after"), "events count from anew");
    }
}

#[test]
fn a_guest_whose_name_another_guest_has_by_now_comes_back_under_a_new_one() {
    let mut site = Site::new(70);
    let guest = site.join_as(ClientConfig::default(), GOOD);
    site.until(3000, |site| site.is_playable(guest)).expect("playable");
    site.seats[guest].events.clear();
    site.set_link(guest, CUT);
    site.restart_server(100);
    let other = site.join_as(ClientConfig::default(), GOOD);
    site.until(3000, |site| site.is_playable(other)).expect("playable");
    site.set_link(guest, GOOD);
    site.until(15_000, |site| joined(site, guest) == [false] && site.is_playable(guest))
        .expect("back");
}

#[test]
fn forged_entities_of_the_future_do_not_freeze_the_view() {
    let (mut site, ada) = playing(23);
    let newest = site.seats[ada].client.tick().unwrap();
    for ahead in 590..594 {
        let mut buf = [0; 1200];
        let tick = newest.advance(ahead);
        let builder = EntityBuilder::new(&mut buf, tick, Fnv32::new()).unwrap();
        let (len, _) = builder.finish(false);
        site.seats[ada].client.handle_datagram(site.now, &buf[..len]);
    }
    site.run(1000);
    let shown = site.seats[ada].client.session().updated_tick().unwrap();
    assert!(shown.distance_from(newest) >= 9, "{shown} after {newest}");
}

#[test]
fn what_is_late_of_the_session_before_is_not_taken_in_the_new_one() {
    let (mut site, ada) = playing(25);
    site.act(ada, Command::Move(Direction::West));
    site.run(500);
    let old = site.seats[ada].client.tick().unwrap();
    // Started again at the same port: the server lets it take its own place.
    let peer = site.seats[ada].peer;
    site.kill(ada);
    site.start_again(ada, peer);
    site.until(3000, |site| site.seats[ada].client.tick().is_some()).expect("welcome");
    let welcome = site.seats[ada].client.tick().unwrap();
    let player = site.seats[ada].client.session().player().unwrap();
    for tick in [old, welcome] {
        let mut buf = [0; 72];
        let chunks = [ChunkEntry::default(); 9];
        State { tick, chunks, player, entity_checksum: 0x811C_9DC5 }.emit(&mut buf).unwrap();
        site.seats[ada].client.handle_datagram(site.now, &buf);
        assert!(site.seats[ada].client.session().manifest().is_none(), "tick {tick}");
    }
    site.until(3000, |site| site.is_playable(ada)).expect("playable");
}

#[test]
fn a_text_that_does_not_fit_is_refused_and_blocks_nothing() {
    let (mut site, ada) = playing(24);
    assert!(!site.act(ada, Command::Say(String::new())));
    assert!(!site.act(ada, Command::Say("x".repeat(201))));
    assert!(site.act(ada, Command::Say("x".repeat(200))));
    site.run(500);
    assert!(walks(&mut site, ada));
}

#[test]
fn a_lost_update_is_asked_for_by_few_words() {
    let (mut site, ada) = playing(25);
    // States come, entities do not: the worst for a client that asks.
    let received = site.server.counters().received;
    let down = site.seats[ada].down;
    site.net.set_config(down, LinkConfig { mtu: Some(75), ..GOOD });
    site.act(ada, Command::Move(Direction::West));
    site.run(10_000);
    let asked = site.server.counters().received - received;
    // A question every 200 to 300 ms, a ping a second, a step repeated now and then.
    assert!(asked <= 10 * (5 + 5 + 1) + 10, "{asked} datagrams in 10 s");
}
