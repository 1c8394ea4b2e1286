//! Servers that restart, addresses that change, networks that break (section 2, recovery).

mod common;

use std::time::Duration;

use caves_game::ServerEvent;
use caves_game::client::ClientEvent;
use caves_netsim::{Chance, LinkConfig};
use caves_session::caves::{ClientEnd, ClientStatus, Left};
use caves_wire::caves::{ChunkEntry, EntityId, LeaveReason, RefuseReason, State, Tick};
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
    caves_wire::caves::Leave {
        client_type: caves_wire::caves::ClientType(0),
        token,
        reason: LeaveReason::KICKED,
    }
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
    site.net.set_corruption(caves_netsim::flip_bits);
    site.set_link(ada, corrupt);
    site.run(20_000);
    assert_eq!(site.server.players(), 1);
    assert!(matches!(site.status(ada), ClientStatus::Playing { .. }));
}
