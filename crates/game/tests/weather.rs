//! Any weather: networks drawn from a seed, that change while players walk, dig and talk. Whatever
//! happens on the way, a healed network brings everybody back to the same caves.

mod common;

use std::time::Duration;

use caves_netsim::{Burst, Chance, LinkConfig, SplitMix64};
use caves_session::caves::{ClientEnd, ClientStatus};
use caves_wire::caves::LeaveReason;
use caves_world::{Command, Direction};
use common::{Site, address};

/// Rounds of weather in one run, about a second each.
const ROUNDS: u64 = 25;

fn weather(random: &mut SplitMix64, damage: Chance) -> LinkConfig {
    let loss = Chance::percent(random.below(51) as u32);
    LinkConfig {
        delay: Duration::from_millis(random.below(400)),
        jitter: Duration::from_millis(random.below(300)),
        loss,
        burst: (random.below(4) == 0).then(|| Burst::lasting(Chance::percent(20), 5)),
        duplicate: Chance::percent(random.below(30) as u32),
        reorder: Chance::percent(random.below(30) as u32),
        corrupt: damage,
        mtu: (random.below(8) == 0).then_some(700),
        down: random.below(10) == 0,
        ..LinkConfig::PERFECT
    }
}

/// What happens in one second.
fn round(site: &mut Site, random: &mut SplitMix64, damage: Chance, said: &mut u32) {
    for seat in 0..site.seats.len() {
        if random.below(3) == 0 {
            let sky = weather(random, damage);
            site.set_link(seat, sky);
        }
        // A new address in the middle of play, as behind a box that forgets.
        if random.below(25) == 0 {
            site.seats[seat].peer = address(seat as u8 + 1, 6000 + random.below(1000) as u16);
        }
    }
    for _ in 0..10 {
        let seat = random.below(site.seats.len() as u64) as usize;
        let way = Direction::ALL[random.below(4) as usize];
        let command = match random.below(12) {
            0..=6 => Command::Move(way),
            7..=8 => Command::Dig(way),
            9 => Command::PickUp,
            10 => Command::Attack(way),
            _ => {
                *said += 1;
                Command::Say(format!("line {seat} {said}"))
            }
        };
        site.act(seat, command);
        site.run(100);
    }
    if random.below(20) == 0 {
        let pause = 50 + random.below(3000);
        site.restart_server(pause);
    }
}

/// The numbers of the lines of one speaker that a player read, in the order in which they came.
fn lines(site: &Site, seat: usize, speaker: usize) -> Vec<u32> {
    let start = format!("line {speaker} ");
    let texts = site.seats[seat].texts();
    texts.iter().filter_map(|text| text.strip_prefix(&start)?.parse().ok()).collect()
}

/// In the worst weather no acknowledgement of an event may come through for 10 s: the session ends
/// with that reason, and its client does not return by itself (section 2, events).
fn gone(site: &Site, seat: usize) -> bool {
    site.status(seat) == ClientStatus::Ended(ClientEnd::Left(LeaveReason::EVENTS_UNREAD))
}

fn calm(site: &Site, seat: usize) -> bool {
    let heard = Duration::from_millis(200);
    let status = site.status(seat);
    matches!(status, ClientStatus::Playing { recovering: false, silence } if silence < heard)
        && site.is_playable(seat)
        && site.seats[seat].client.session().in_flight().next().is_none()
}

#[test]
fn whatever_the_weather_everybody_comes_back_to_the_same_caves() {
    for seed in 0..60 {
        let mut site = Site::new(1000 + seed);
        let mut random = SplitMix64::new(seed);
        for player in 0..1 + random.below(3) {
            site.join(&format!("player {player}"), LinkConfig::PERFECT);
        }
        site.run(1000);
        let mut said = 0;
        for _ in 0..ROUNDS {
            round(&mut site, &mut random, Chance::NEVER, &mut said);
        }
        for seat in 0..site.seats.len() {
            site.set_link(
                seat,
                LinkConfig { delay: Duration::from_millis(20), ..LinkConfig::PERFECT },
            );
        }
        // A name may be held by one's own old session for 10 s, and a refused client waits 8 s.
        let all =
            |site: &Site| (0..site.seats.len()).all(|seat| gone(site, seat) || calm(site, seat));
        let healed = site.until(40_000, all);
        let states: Vec<_> = (0..site.seats.len()).map(|seat| site.status(seat)).collect();
        assert!(healed.is_some(), "seed {seed}: not healed, {states:?}");
        site.run(700);
        let there: Vec<_> = (0..site.seats.len()).filter(|seat| !gone(&site, *seat)).collect();
        assert_eq!(site.server.players(), there.len(), "seed {seed}: {:?}", site.log);
        for seat in there {
            site.assert_chunks_equal(seat);
            for speaker in 0..site.seats.len() {
                let read = lines(&site, seat, speaker);
                let once_in_order = read.is_sorted_by(|a, b| a < b);
                assert!(once_in_order, "seed {seed}: seat {seat} read {read:?} of {speaker}");
            }
        }
    }
}

/// Bits that the checksum of UDP would have caught: nothing panics, nothing grows, and whoever was not
/// told to go is there in the end.
#[test]
fn damaged_datagrams_break_nothing() {
    for seed in 0..40 {
        let mut site = Site::new(2000 + seed);
        let mut random = SplitMix64::new(seed);
        for player in 0..3 {
            site.join(&format!("player {player}"), LinkConfig::PERFECT);
        }
        let mut said = 0;
        for _ in 0..ROUNDS {
            round(&mut site, &mut random, Chance::percent(10), &mut said);
        }
        for seat in 0..site.seats.len() {
            site.set_link(seat, LinkConfig::PERFECT);
        }
        let settled = |site: &Site| {
            (0..site.seats.len())
                .all(|seat| matches!(site.status(seat), ClientStatus::Ended(_)) || calm(site, seat))
        };
        assert!(site.until(40_000, settled).is_some(), "seed {seed}");
        // Sessions that a damaged Join has opened under another name end by silence.
        site.run(11_000);
        assert!(site.server.players() <= site.seats.len(), "seed {seed}: {:?}", site.log);
    }
}
