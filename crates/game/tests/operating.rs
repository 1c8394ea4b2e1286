//! What an operator does to a game that runs, as its players see it.

mod common;

use std::time::Duration;

use caves_game::{ServerConfig, Told};
use caves_netsim::{Chance, LinkConfig};
use caves_session::caves::{
    Ban, BanTarget, ClientConfig, ClientEnd, ClientEntry, ClientStatus, ServerConfig as Session,
};
use caves_wire::caves::{ClientType, Features, LeaveReason, RefuseReason, Token};
use common::Site;

const GOOD: LinkConfig = LinkConfig { delay: Duration::from_millis(40), ..LinkConfig::PERFECT };
const TOKEN: Token = Token(0x1234_5678_9ABC);

fn playing(site: &mut Site, seat: usize) {
    site.until(5000, |site| site.is_playable(seat)).expect("playable");
}

fn end(site: &Site, seat: usize) -> Option<ClientEnd> {
    match site.status(seat) {
        ClientStatus::Ended(end) => Some(end),
        _ => None,
    }
}

#[test]
fn what_is_announced_reaches_everybody_who_has_events_and_the_others_are_counted() {
    let mut config = ServerConfig { seed: 5, ..ServerConfig::default() };
    config.session.clients.push(ClientEntry {
        client_type: ClientType(7),
        name: Some("Rob".into()),
        allow: true,
        token: Some(TOKEN),
        from: vec!["0.0.0.0/0".parse().unwrap()],
        tags: false,
    });
    let mut site = Site::with(5, config);
    let ada = site.join("Ada", GOOD);
    let deaf =
        ClientConfig { name: Some("Bob".into()), features: Features(0), ..Default::default() };
    let bob = site.join_as(deaf, GOOD);
    site.join_plain(TOKEN, GOOD);
    playing(&mut site, ada);
    playing(&mut site, bob);
    site.until(5000, |site| site.server.players() == 3).expect("the plain one, too");
    assert_eq!(site.server.announce("New version at nine"), Told { told: 1, missed: 2 });
    site.run(500);
    assert!(site.seats[ada].texts().contains(&"New version at nine"));
    assert!(!site.seats[bob].texts().contains(&"New version at nine"));
}

#[test]
fn who_is_kicked_reads_why_before_it_is_gone_over_a_bad_network_too() {
    let bad = LinkConfig { loss: Chance::percent(20), jitter: Duration::from_millis(30), ..GOOD };
    let mut read = 0;
    for seed in 0..20 {
        let mut site = Site::with(seed, ServerConfig { seed, ..ServerConfig::default() });
        let ada = site.join("Ada", bad);
        playing(&mut site, ada);
        let id = site.server.sessions().find_by_name("ada").expect("she plays");
        assert!(site.server.kick(site.now, id, "no digging here"));
        let figures = site.server.players();
        assert_eq!(figures, 1, "she stands there until she has read it");
        site.until(3000, |site| site.server.players() == 0).expect("gone within its second");
        site.run(500);
        read +=
            usize::from(site.seats[ada].texts().contains(&"You were thrown out: no digging here"));
        // One of three Leaves arrives nearly always; else silence tells.
        assert!(matches!(end(&site, ada), None | Some(ClientEnd::Left(LeaveReason::KICKED))));
        assert!(!site.server.kick(site.now, id, "again"), "gone");
    }
    // Sent at 0, 250 and 750 ms, each of them lost one time in five.
    assert!(read >= 18, "{read} of 20");
}

#[test]
fn a_ban_takes_the_figure_out_and_keeps_the_name_out() {
    let mut site = Site::new(9);
    let (ada, bob) = (site.join("Ada", GOOD), site.join("Bob", GOOD));
    playing(&mut site, ada);
    playing(&mut site, bob);
    let ban = Ban { target: BanTarget::Name("ADA".into()), reason: "griefing".into() };
    assert_eq!(site.server.set_bans(site.now, vec![ban]), 1);
    site.run(2000);
    assert_eq!(end(&site, ada), Some(ClientEnd::Left(LeaveReason::BANNED)));
    assert_eq!(site.server.players(), 1);
    assert_eq!(site.server.sessions().find_by_name("Ada"), None);
    let again = site.join("ada", GOOD);
    site.until(3000, |site| end(site, again).is_some()).expect("refused");
    let Some(ClientEnd::Refused { reason, text, .. }) = end(&site, again) else { panic!() };
    assert_eq!((reason, text.as_str()), (RefuseReason::BANNED, "griefing"));
    assert_eq!(end(&site, bob), None);
}

#[test]
fn figures_of_a_session_are_those_of_its_network() {
    let mut site = Site::new(11);
    let ada = site.join("Ada", GOOD);
    playing(&mut site, ada);
    for _ in 0..20 {
        site.server.announce("tick");
        site.run(300);
    }
    let id = site.server.sessions().find_by_name("Ada").unwrap();
    let view = site.server.sessions().session(id).unwrap();
    // 40 ms each way.
    assert_eq!(view.round_trip(), Some(Duration::from_millis(80)));
    assert_eq!(view.missing().missing, 0);
    // All that the network carried to her but the Challenge, which was before her session.
    let carried = site.net.stats(site.seats[ada].down);
    assert_eq!(view.sent().datagrams + 1, carried.sent);
    assert!(view.sent().bytes > 9 * 500, "nine chunks at least");
}

#[test]
fn other_settings_leave_those_in_peace_who_play() {
    let mut site = Site::new(12);
    let ada = site.join("Ada", GOOD);
    playing(&mut site, ada);
    let config = Session { motd: "new".into(), max_players: 1, ..Session::default() };
    assert_eq!(site.server.reconfigure(site.now, config), 0);
    site.run(3000);
    assert!(site.is_playable(ada));
    let bob = site.join("Bob", GOOD);
    site.run(1000);
    assert!(!site.is_playable(bob), "there is one place");
}
