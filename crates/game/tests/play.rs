//! Players in the caves, over a good network and a bad one.

mod common;

use std::time::Duration;

use caves_game::ServerConfig;
use caves_netsim::{Chance, LinkConfig};
use caves_session::Random;
use caves_session::caves::{ClientConfig, ServerConfig as SessionConfig};
use caves_wire::caves::{Features, PacketType};
use caves_world::{Command, Direction, Pos, SPAWN};
use common::Site;

const GOOD: LinkConfig = LinkConfig { delay: Duration::from_millis(20), ..LinkConfig::PERFECT };

fn lossy(percent: u32) -> LinkConfig {
    LinkConfig {
        delay: Duration::from_millis(40),
        jitter: Duration::from_millis(30),
        loss: Chance::percent(percent),
        duplicate: Chance::percent(5),
        reorder: Chance::percent(5),
        ..LinkConfig::PERFECT
    }
}

#[test]
fn a_player_is_in_the_caves_within_half_a_second() {
    let mut site = Site::new(1);
    let ada = site.join("Ada", GOOD);
    let took = site.until(3000, |site| site.is_playable(ada)).expect("playable");
    assert!(took <= Duration::from_millis(500), "{took:?}");
    site.assert_chunks_equal(ada);
    assert_eq!(site.seats[ada].client.mirror().me().unwrap().name.as_deref(), Some("Ada"));
}

#[test]
fn two_players_see_each_other_walk() {
    let mut site = Site::new(2);
    let (ada, bob) = (site.join("Ada", GOOD), site.join("Bob", GOOD));
    site.until(3000, |site| site.is_playable(ada) && site.is_playable(bob)).expect("playable");
    let start = site.true_pos(bob);
    assert!(site.act(bob, Command::Move(Direction::East)));
    site.run(400);
    let bobs = site.seats[bob].client.mirror().me().unwrap().clone();
    assert_eq!(bobs.pos, start.step(Direction::East));
    let seen = site.seats[ada].client.mirror().figure(bobs.id).expect("Ada sees Bob");
    assert_eq!((seen.pos, seen.name.as_deref()), (bobs.pos, Some("Bob")));
}

#[test]
fn a_held_key_walks_a_tile_a_tick_and_stops_when_let_go() {
    let mut site = Site::new(3);
    let ada = site.join("Ada", GOOD);
    site.until(3000, |site| site.is_playable(ada)).expect("playable");
    // Dig a straight way first, so that nothing but the pace decides.
    site.dig_east(ada, 9000);
    let far = site.true_pos(ada);
    let back: Vec<Pos> = (1..=14).map(|n| Pos { x: far.x - n, y: far.y }).collect();
    let open = |pos: &Pos| {
        let world = site.server.world();
        world.content().is_walkable(world.tile(*pos))
    };
    assert!(back.iter().all(open), "the way back is open");
    let start = site.true_pos(ada);
    for _ in 0..30 {
        let _ = site.act(ada, Command::Move(Direction::West));
        site.run(33);
    }
    let let_go = site.true_pos(ada);
    let walked = start.x - let_go.x;
    assert!((8..=10).contains(&walked), "{walked} tiles in 990 ms");
    site.seats[ada].client.stop_walking();
    site.run(1000);
    let ran_on = let_go.x - site.true_pos(ada).x;
    assert!((0..=2).contains(&ran_on), "{ran_on} tiles after the key was let go");
}

#[test]
fn thirty_percent_loss_both_ways_is_playable_within_five_seconds() {
    for seed in 0..20 {
        let mut site = Site::new(100 + seed);
        let ada = site.join("Ada", lossy(30));
        let took = site.until(20_000, |site| site.is_playable(ada)).expect("playable");
        assert!(took <= Duration::from_secs(5), "{took:?}");
        site.assert_chunks_equal(ada);
    }
}

/// No step is taken twice, none is invented: the server moved a player as often as the client knows
/// that steps were executed, and what both show is the same.
#[test]
fn walking_and_digging_under_loss_ends_with_the_same_caves() {
    for seed in 0..6 {
        let mut site = Site::new(200 + seed);
        let ada = site.join("Ada", lossy(20));
        site.until(20_000, |site| site.is_playable(ada)).expect("playable");
        let start = site.true_pos(ada);
        site.dig_east(ada, 40_000);
        site.until(5000, |site| site.seats[ada].client.session().in_flight().next().is_none())
            .expect("everything is covered");
        site.until(5000, |site| site.is_playable(ada)).expect("chunks are current");
        site.run(500);
        site.assert_chunks_equal(ada);
        let end = site.true_pos(ada);
        assert!(end.chunk().x > start.chunk().x, "across a border: {start:?} to {end:?}");
        assert_eq!(end.y, start.y);
    }
}

#[test]
fn digging_is_seen_by_everybody_around() {
    let mut site = Site::new(4);
    let (ada, bob) = (site.join("Ada", GOOD), site.join("Bob", lossy(20)));
    site.until(20_000, |site| site.is_playable(ada) && site.is_playable(bob)).expect("playable");
    let mut dug = 0;
    for _ in 0..60 {
        let pos = site.true_pos(ada);
        let ahead = pos.step(Direction::South);
        let world = site.server.world();
        let open = world.content().is_walkable(world.tile(ahead));
        dug += usize::from(!open);
        let way = Direction::South;
        site.act(ada, if open { Command::Move(way) } else { Command::Dig(way) });
        site.run(250);
    }
    assert!(dug > 0, "there was something to dig");
    site.until(5000, |site| site.is_playable(bob)).expect("Bob's chunks are current");
    site.assert_chunks_equal(ada);
    site.assert_chunks_equal(bob);
}

#[test]
fn chat_reaches_those_in_view_once_and_in_order() {
    for seed in 0..10 {
        let mut site = Site::new(300 + seed);
        let (ada, bob) = (site.join("Ada", lossy(30)), site.join("Bob", lossy(30)));
        site.until(20_000, |site| site.is_playable(ada) && site.is_playable(bob))
            .expect("playable");
        let said: Vec<String> = (0..5).map(|n| format!("line {n}")).collect();
        for line in &said {
            let line = line.clone();
            assert!(site.act(ada, Command::Say(line)));
            site.run(1500);
        }
        site.run(5000);
        for seat in [ada, bob] {
            let heard: Vec<_> = site.seats[seat]
                .texts()
                .into_iter()
                .filter(|text| text.starts_with("line"))
                .map(str::to_owned)
                .collect();
            assert_eq!(heard, said, "seat {seat}");
        }
    }
}

#[test]
fn what_is_said_is_stripped_shown_above_the_head_and_not_too_often() {
    let mut site = Site::new(5);
    let ada = site.join("Ada", GOOD);
    site.until(3000, |site| site.is_playable(ada)).expect("playable");
    site.act(ada, Command::Say("he\u{202E}llo\u{1b}[31m".into()));
    site.run(500);
    assert!(site.seats[ada].texts().contains(&"hello[31m"));
    let me = site.seats[ada].client.mirror().me().unwrap();
    assert_eq!(me.speech.as_deref(), Some("hello[31m"));
    for n in 0..20 {
        site.act(ada, Command::Say(format!("spam {n}")));
        site.run(200);
    }
    let heard = site.seats[ada].texts().iter().filter(|text| text.starts_with("spam")).count();
    // Three in hand less one, and one a second for four seconds.
    assert!((5..=7).contains(&heard), "{heard}");
    site.run(3100);
    assert_eq!(site.seats[ada].client.mirror().me().unwrap().speech, None);
}

#[test]
fn details_are_told_of_oneself_and_of_what_is_in_view_and_every_question_ends() {
    let mut site = Site::new(6);
    let ada = site.join("Ada", lossy(30));
    site.until(20_000, |site| site.is_playable(ada)).expect("playable");
    let me = site.seats[ada].client.mirror().me().unwrap().id;
    assert!(site.look(ada, me) && site.look(ada, caves_world::EntityId(4_000_000)));
    site.run(6000);
    let mirror = site.seats[ada].client.mirror();
    assert_eq!(mirror.details(me).unwrap().inventory.as_deref(), Some(&[][..]));
    let nobody = mirror.details(caves_world::EntityId(4_000_000)).unwrap();
    assert!(nobody.is_empty, "answered, and told nothing: {nobody:?}");
}

#[test]
fn a_source_only_client_gets_types_0_to_7_alone_and_the_sources_tags() {
    // The official client cannot do without joining, so bytes are written by hand.
    use caves_wire::caves::{
        Action, ActionPacket, ChunkEntry, ClientType, EntitiesView, Sequence, Token,
    };
    let token = Token(0x1234_5678_9ABC);
    let client = caves_session::caves::ClientEntry {
        client_type: ClientType(9),
        name: Some("Robo".into()),
        allow: true,
        token: Some(token),
        from: vec!["192.0.2.0/24".parse().unwrap()],
        tags: false,
    };
    let session = SessionConfig { clients: vec![client], ..SessionConfig::default() };
    let mut site = Site::with(7, ServerConfig { session, seed: 7, keep: None });
    let robo = common::address(99, 7);
    let mut buf = [0; 1200];
    let mut types = std::collections::BTreeSet::new();
    let mut tags = std::collections::BTreeSet::new();
    for sequence in 0..30 {
        let action = Action::<&str>::Walk(caves_wire::caves::Direction::East);
        let cache = [ChunkEntry::default(); 9];
        let sequence = Sequence::new(sequence);
        let packet = ActionPacket { client_type: ClientType(9), token, sequence, cache, action };
        let len = packet.emit(&mut buf).unwrap();
        site.server.handle_datagram(site.now, robo, &buf[..len]);
        site.now += Duration::from_millis(100);
        site.server.handle_timeout(site.now);
        while let Some(transmit) = site.server.poll_transmit(site.now, &mut buf) {
            assert_eq!(transmit.to, robo);
            types.insert(buf[3]);
            if let Ok(entities) = EntitiesView::parse(&buf[..transmit.len]) {
                for entity in entities.entities() {
                    tags.extend(entity.meta().fields().map(|field| field.tag));
                }
            }
        }
    }
    assert!(types.into_iter().eq([0, 2, 3]));
    assert!(tags.iter().all(|tag| (1..=3).contains(tag)), "{tags:?}");
    assert!(site.server.world().entity(caves_world::EntityId(1)).is_some());
    let walked = site.server.world().players().next().unwrap();
    assert!(site.server.world().entity(walked).unwrap().pos.x > SPAWN.x);
}

#[test]
fn a_client_that_asks_for_nothing_gets_no_events() {
    let mut site = Site::new(8);
    let plain = ClientConfig { features: Features::NONE, ..ClientConfig::default() };
    let guest = site.join_as(plain, GOOD);
    let ada = site.join("Ada", GOOD);
    site.until(3000, |site| site.is_playable(guest) && site.is_playable(ada)).expect("playable");
    site.act(ada, Command::Say("hello".into()));
    site.run(1000);
    assert_eq!(site.seats[guest].received(PacketType::EVENT), 0);
    let figures = site.seats[guest].client.mirror().figures();
    let speaks = figures.iter().any(|figure| figure.speech.as_deref() == Some("hello"));
    assert!(speaks, "but the speech tag comes");
}

/// R14: at most eight EntityPackets, the own entity first of all, and the rest of the world stays
/// outside; every datagram is valid (the site decodes each of them).
#[test]
fn a_crowd_at_one_place_fits_eight_packets_and_oneself_is_in_it() {
    let session = SessionConfig { max_players: 600, ..SessionConfig::default() };
    let limits = caves_session::StrangerLimits {
        exempt: vec!["192.0.2.0/24".parse().unwrap()],
        ..caves_session::StrangerLimits::default()
    };
    let session = SessionConfig { strangers: limits, ..session };
    let mut site = Site::with(9, ServerConfig { session, seed: 9, keep: None });
    let mut random = caves_session::SplitMix::new(1);
    // 18 bytes, 34 of name and 4 of status make 56: 21 entries in 1188 bytes, 168 in eight packets.
    for port in 1..=400u16 {
        let name = format!("{:032}", random.next_u64());
        let from = common::address(50, port);
        enter(&mut site, from, &name, u64::from(port));
    }
    let ada = site.join("Zoe", GOOD);
    site.until(5000, |site| site.seats[ada].client.mirror().me().is_some()).expect("in the caves");
    site.seats[ada].types_received.clear();
    site.run(1000);
    let seat = &site.seats[ada];
    let (states, entities) =
        (seat.received(PacketType::STATE), seat.received(PacketType::ENTITIES));
    assert_eq!(states, 10);
    assert_eq!(entities, 80, "eight packets a tick");
    let shown = seat.client.mirror().figures().len();
    assert_eq!(shown, 8 * 21);
    assert!(seat.client.mirror().me().is_some());
}

/// Joins by hand: the crowd needs no clients.
fn enter(site: &mut Site, from: caves_session::Peer, name: &str, nonce: u64) {
    use caves_wire::caves::{ChallengeView, ClientType, Hello, Join, Nonce, tag};
    let mut buf = [0; 1200];
    let (client_type, nonce) = (ClientType::OFFICIAL, Nonce(nonce));
    let len = Hello { client_type, nonce }.emit(&mut buf).unwrap();
    let hello = buf[..len].to_vec();
    site.server.handle_datagram(site.now, from, &hello);
    let mut cookie = [0; 16];
    while let Some(transmit) = site.server.poll_transmit(site.now, &mut buf) {
        if let Ok(challenge) = ChallengeView::parse(&buf[..transmit.len]) {
            cookie = challenge.cookie();
        }
    }
    let mut meta = vec![tag::NAME, name.len() as u8];
    meta.extend_from_slice(name.as_bytes());
    let len = Join { client_type, nonce, cookie, meta: &meta }.emit(&mut buf).unwrap();
    let join = buf[..len].to_vec();
    site.server.handle_datagram(site.now, from, &join);
    site.truth.take_bytes(&site.server, from, join.len());
    while site.server.poll_transmit(site.now, &mut buf).is_some() {}
}
