//! Long lives in short: no drift over many ticks, and every counter over its end, twice.
//!
//! Counters begin three before their end and go on in strides; what is expected is counted beside
//! them in 64 bits, which do not end. The long forms are the example `long`.

mod life;

use std::collections::BTreeSet;
use std::time::Duration;

use caves_netsim::{Chance, LinkConfig};
use caves_session::caves::ClientStatus;
use caves_wire::caves::{
    Action, ActionPacket, ChunkEntry, ChunkVersion, ClientType, Direction as Way, EntityId,
    EventKind, Sequence, Tick,
};
use caves_world::{Command, Direction, Pos, SPAWN, TileId};
use life::player::{FAIR, Player};
use life::{Life, Start, by_hand};

/// The length of a counter of 32 bits.
const LAP: u64 = 1 << 32;
/// The length of the circle of versions: 0 is none of them (R10).
const VERSIONS: u64 = 65_535;
/// The farthest that a number may be ahead and still be newer (R18).
const FARTHEST: u64 = (1 << 31) - 1;

/// What is on the wire of a plain count.
fn wire(count: u64) -> u32 {
    (count % LAP) as u32
}

#[test]
fn a_player_lives_for_an_hour_without_drift() {
    for (seed, link) in [(1, LinkConfig::PERFECT), (2, FAIR)] {
        // The tick passes its end on the way.
        let mut player = Player::new(Start { seed, tick: LAP - 3, link, ..Start::default() });
        for _ in 0..36_000 {
            player.play();
        }
        player.finish();
        let Player { said, asked, moved, late, .. } = player;
        assert_eq!(said, 36_000 / 50);
        assert_eq!(asked, 36_000 / 30);
        // A way that is taken at random is open more often than not.
        assert!(moved > 36_000 / 2, "{moved} tiles");
        let most = if link == LinkConfig::PERFECT { 0 } else { 36_000 * 2 / 100 };
        assert!(late <= most, "{late} ticks late");
    }
}

/// Entities come before their state where the client asked for `burst`. Those that are further ahead than this of
/// the newest state are not taken: after such a leap the second tick is the first that is taken as a whole.
const ENTITIES_AHEAD: u64 = 8;

/// The server's tick is set on, the client's follows: at once up to 600 ticks, farther by three States
/// over 300 ms (R31).
#[test]
fn ticks_pass_their_end_twice() {
    let mut count = LAP - 3;
    let mut life = Life::playing(Start { tick: count, ..Start::default() });
    count += life.ticks;
    let home = life.true_pos();
    let near = [1, 1, 1, 1, 1, 2, 599, 600, 1, 600, 17, 1];
    let far = [601, FARTHEST, 1 << 31, LAP - 601];
    let mut far = far.into_iter().cycle();
    let mut ends = 0;
    while ends < 4 {
        for stride in near {
            ends += stride_of(&mut life, &mut count, stride);
            let newest = Tick::new(wire(count));
            assert_eq!(life.client.session().tick(), Some(newest), "taken at once after {stride}");
            if stride > ENTITIES_AHEAD {
                ends += stride_of(&mut life, &mut count, 1);
            }
            let newest = Tick::new(wire(count));
            assert_eq!(life.client.tick(), Some(newest), "taken as a whole after {stride}");
            assert_eq!(life.client.session().updated_tick(), Some(newest));
        }
        for stride in [far.next().expect("a cycle"), LAP - 3 - count % LAP] {
            ends += stride_of(&mut life, &mut count, stride);
            let is_far = (601..=LAP - 601).contains(&stride);
            let newest = life.client.tick().expect("a tick");
            assert_eq!(newest != Tick::new(wire(count)), is_far, "{stride}");
            // Three States have to say so. The first that is believed comes after its entities (burst), so
            // it is the tick after it that is taken whole.
            for _ in 0..4 {
                ends += stride_of(&mut life, &mut count, 1);
            }
            assert_eq!(life.client.tick(), Some(Tick::new(wire(count))), "after {stride}");
            assert_eq!(life.client.session().updated_tick(), life.client.tick());
        }
        // The player walks as before.
        let steps = [Direction::East, Direction::West];
        for (way, at) in steps.into_iter().zip([home.step(Direction::East), home]) {
            life.client.act(Command::Move(way)).expect("room");
            life.pump();
            ends += stride_of(&mut life, &mut count, 1);
            assert_eq!(life.client.mirror().me().expect("shown").pos, at);
        }
        let status = life.client.status(life.now);
        assert!(matches!(status, ClientStatus::Playing { recovering: false, .. }), "{status:?}");
    }
}

/// One tick that counts as so many; how often it passed the end.
fn stride_of(life: &mut Life, count: &mut u64, stride: u64) -> u64 {
    life.server.set_tick(Tick::new(wire(*count + stride - 1)));
    life.tick();
    let before = *count / LAP;
    *count += stride;
    assert_eq!(life.server.tick(), Tick::new(wire(*count)));
    *count / LAP - before
}

#[test]
fn a_client_follows_strides_of_ticks_over_their_end() {
    let strides = [1, 1, 1, 1, 8, 600, 7, 599, 3, 600];
    let end = by_hand::stride_along(LAP - 3, 20_000, |step| strides[step as usize % 10]);
    assert_eq!(end, LAP - 3 + 2000 * strides.iter().sum::<u64>());
    // Two whole laps are the example's; here the second end is begun at.
    let end = by_hand::stride_along(2 * LAP - 3, 20_000, |_| by_hand::STRIDE);
    assert_eq!(end, 2 * LAP - 3 + 20_000 * 600);
}

#[test]
fn numbers_of_actions_pass_their_end_twice() {
    // Looked at 99 ms after each tick, an action that takes 60 ms is executed by the next tick but one;
    // the State of the one between must not cover it.
    let slow = LinkConfig { delay: Duration::from_millis(60), ..LinkConfig::PERFECT };
    for (link, late) in [(LinkConfig::PERFECT, 0), (slow, 1)] {
        let mut life = Life::playing(Start { link, ..Start::default() });
        let mut model = Executed { number: LAP - 4, late, ..Executed::default() };
        let small = [1, 1, 1, 1, 1, 2, 31, 32, 33, 1, 34, 1, 1];
        let large = [FARTHEST, FARTHEST - 1, 1 << 30, FARTHEST];
        let start = life.true_pos();
        let mut strides = 0;
        while model.number < 4 * LAP {
            for stride in small.into_iter().chain([large[strides % 4]]) {
                let way = if strides % 2 == 0 { Direction::East } else { Direction::West };
                act_at(&mut life, &mut model, stride, way);
                strides += 1;
                let at = if strides % 2 == 1 { start.step(Direction::East) } else { start };
                assert_eq!(life.true_pos(), at, "one step for one number");
                assert_eq!(life.client.mirror().me().expect("shown").pos, at);
            }
            late_copies(&mut life, &model);
        }
        assert_eq!(life.events, []);
    }
}

/// The numbers that a session executed, as they would be without an end.
#[derive(Default)]
struct Executed {
    number: u64,
    all: BTreeSet<u64>,
    /// Ticks that pass before an action has arrived.
    late: u64,
}

impl Executed {
    /// Tags 0x10 and 0x12 (section 3).
    fn tags(&self) -> (Sequence, u32) {
        let was = |i: u64| u32::from(self.all.contains(&(self.number - 1 - i)));
        let bits = (0..32).map(|i| was(i) << i).sum();
        (Sequence::new(wire(self.number)), bits)
    }
}

/// The client does one thing under the number that is `stride` ahead.
fn act_at(life: &mut Life, model: &mut Executed, stride: u64, way: Direction) {
    let last = Sequence::new(wire(model.number + stride - 1));
    life.client.session_mut().number_actions_after(last);
    life.client.act(Command::Move(way)).expect("room");
    life.pump();
    let number = model.number + stride;
    let before = (!model.all.is_empty()).then(|| model.tags());
    for _ in 0..model.late {
        assert_eq!(under_way(life), [wire(number)]);
        life.tick();
        assert_eq!(executed(life), before, "not yet at {number}");
    }
    assert_eq!(under_way(life), [wire(number)]);
    life.tick();
    model.number = number;
    model.all.insert(number);
    assert_eq!(executed(life), Some(model.tags()), "at {number}");
    assert_eq!(life.client.session().executed(), executed(life), "told to the client");
    assert_eq!(under_way(life), [0; 0], "and covered");
}

/// The numbers that the client waits for.
fn under_way(life: &Life) -> Vec<u32> {
    life.client.session().in_flight().map(|sent| sent.sequence.get()).collect()
}

/// What the server has executed.
fn executed(life: &Life) -> Option<(Sequence, u32)> {
    life.server.sessions().session(life.session()).expect("a session").executed()
}

/// What is not newer than the last number has no effect, on either side of the end.
fn late_copies(life: &mut Life, model: &Executed) {
    let token = life.client.session().token().expect("a session");
    let at = life.true_pos();
    for back in [0, 1, 2, 3, 33, 1 << 30, FARTHEST, 1 << 31] {
        let packet = ActionPacket {
            client_type: ClientType::OFFICIAL,
            token,
            sequence: Sequence::new(wire(model.number - back)),
            cache: [ChunkEntry::default(); 9],
            action: Action::<&str>::Walk(Way::South),
        };
        let mut buf = [0; 200];
        let len = packet.emit(&mut buf).expect("room");
        life.inject(&buf[..len]);
        life.tick();
        assert_eq!(life.true_pos(), at, "{back} back");
        assert_eq!(executed(life), Some(model.tags()), "{back} back");
    }
}

#[test]
fn events_pass_their_end_twice_and_come_once_and_in_order() {
    let lossy = LinkConfig { loss: Chance::percent(20), jitter: FAIR.delay, ..FAIR };
    for (seed, link) in [(1, LinkConfig::PERFECT), (2, lossy)] {
        let mut life = Life::playing(Start { seed, link, ..Start::default() });
        let mut told = 0;
        // Ten events each: four times over the end, up to just before it, and from the beginning.
        let far = LAP + (1 << 31);
        for first in [LAP - 3, LAP + 8, far, 2 * LAP - 5, 3 * LAP - 10, 3 * LAP, 4 * LAP - 9] {
            let number = Sequence::new(wire(first));
            let id = life.session();
            life.server.sessions_mut().number_events_from(id, number);
            life.client.session_mut().expect_event(number);
            events_at(&mut life, first, told);
            told += 10;
        }
    }
}

/// Ten events at once, numbered from `first`, after so many others.
fn events_at(life: &mut Life, first: u64, told: u64) {
    let id = life.session();
    life.event_numbers.clear();
    for n in 0..10 {
        let text = format!("event {}", told + n);
        let sent = life.server.sessions_mut().send_event(id, EventKind::NOTICE, EntityId(0), &text);
        assert!(sent, "room");
    }
    // Each is repeated four times and more.
    for _ in 0..80 {
        life.tick();
    }
    let numbers: BTreeSet<_> = life.event_numbers.drain(..).collect();
    assert_eq!(numbers, (0..10).map(|n| wire(first + n)).collect());
    let texts = life.client.mirror().messages().iter().map(|message| message.text.clone());
    let expected: Vec<_> = (0..told + 10).map(|n| format!("event {n}")).collect();
    assert_eq!(texts.collect::<Vec<_>>(), expected, "once and in order");
}

#[test]
fn versions_of_chunks_pass_their_end_twice() {
    let lossy = LinkConfig { loss: Chance::percent(20), ..FAIR };
    for (seed, link, patience) in [(1, LinkConfig::PERFECT, 4), (2, lossy, 60)] {
        // Version 1 of the world is shown as 65533.
        let start = Start { seed, version_offset: VERSIONS - 3, link, ..Start::default() };
        let mut life = Life::playing(start);
        let place = SPAWN.offset(2, 1);
        let mut count = 1;
        let strides =
            [1, 1, 1, 1, 1, 20_000, 1, 20_000, 25_531, 1, 1, 1, 65_534, 2, 40_000, 1, 25_533];
        for stride in strides.into_iter().chain([1, 1, 1, 1, 1]) {
            count += stride;
            change(&mut life, place, stride as u16);
            life.tick();
            check_version(&mut life, place, count, patience);
        }
        assert!(count > 3 * VERSIONS, "over both ends more than twice: {count}");
    }
}

/// Rock becomes floor and floor rock.
fn change(life: &mut Life, pos: Pos, steps: u16) {
    let tile = life.server.world().tile(pos);
    let other = if tile == TileId::ROCK { TileId::FLOOR } else { TileId::ROCK };
    life.server.world_mut().set_tile(pos, other, steps);
}

fn check_version(life: &mut Life, pos: Pos, count: u64, patience: u64) {
    let world = life.server.world();
    let version = world.loaded_chunk(pos.chunk()).expect("loaded").version();
    assert_eq!(u64::from(version), 1 + (count - 1) % VERSIONS);
    let tile = world.tile(pos);
    let shown = ChunkVersion((1 + (count - 1 + VERSIONS - 3) % VERSIONS) as u16);
    let entry = |entries: [ChunkEntry; 9]| {
        let of = |entry: &&ChunkEntry| (entry.id.x, entry.id.y) == (0, 0);
        entries.iter().find(of).map(|entry| entry.version)
    };
    let told = |life: &Life| life.client.session().manifest().and_then(entry);
    let holds = |life: &Life| told(life) == Some(shown) && !life.client.misses_chunks();
    life.ticks_until(patience, holds);
    assert_eq!(life.client.mirror().tile(pos), Some(tile), "at count {count}");
    // The next word lists what is held.
    life.ticks_until(patience + 21, |life| entry(life.cache) == Some(shown));
    assert!(!life.client.misses_chunks());
}
