//! Walking over bad links, as a player sees it: the own figure, the others, the server's clock.
//!
//! `cargo test -p caves-game --test walking -- --nocapture` prints the table of
//! `notes/performance.md`.
#![allow(clippy::print_stdout, reason = "the table is the figures of the notes")]

mod common;

use std::collections::BTreeMap;
use std::time::Duration;

use caves_game::Client;
use caves_game::client::ClientEvent;
use caves_game::motion::Place;
use caves_link::time::Instant;
use caves_netsim::{Chance, LinkConfig, SplitMix64};
use caves_wire::caves::Tick;
use caves_world::{Command, Direction, EntityId, Pos, SAFE_RADIUS, SPAWN};
use common::Site;

/// A key whose repeats stay away for this long was let go, as in the terminal client.
const RELEASE: Duration = Duration::from_millis(120);
/// 30 repeats a second, after the pause that keyboards make.
const REPEAT: u64 = 33;
const PAUSE: u64 = 297;
/// How finely what is shown is looked at, in milliseconds: three glances are a frame.
const GLANCE: u64 = 11;
/// How long nobody touches a key after one was let go, in milliseconds.
const REST: u64 = 2_500;

/// Both ways: a delay, up to so much more, in milliseconds, and a loss in percent.
fn link(delay: u64, jitter: u64, loss: u32) -> LinkConfig {
    LinkConfig {
        delay: Duration::from_millis(delay),
        jitter: Duration::from_millis(jitter),
        loss: Chance::percent(loss),
        ..LinkConfig::PERFECT
    }
}

/// A walking key, held and let go as `bins/client` takes it.
#[derive(Default)]
struct Key {
    held: Option<(Direction, Instant, bool)>,
}

impl Key {
    fn press(&mut self, site: &mut Site, seat: usize, way: Direction) {
        let now = site.now;
        let again =
            |(of, last, _): &(Direction, Instant, bool)| *of == way && now < *last + RELEASE;
        let repeats = self.held.as_ref().is_some_and(again);
        self.held = Some((way, now, repeats));
        site.act(seat, Command::Move(way));
    }

    /// Steps that wait are forgotten when the key counts as let go.
    fn tick(&mut self, site: &mut Site, seat: usize) {
        let over = self.held.take_if(|(_, last, _)| *last + RELEASE <= site.now);
        if over.is_some_and(|(_, _, repeats)| repeats) {
            site.seats[seat].client.stop_walking();
        }
    }
}

/// What was seen in one or more walks.
#[derive(Default)]
struct Seen {
    /// Steps shown.
    steps: u32,
    /// Tiles by which the own figure was set right.
    corrections: Vec<u32>,
    /// Tiles between where it was shown when the key was let go and where it came to stand.
    run_on: Vec<u32>,
    /// The farthest it was shown from there.
    shown_on: Vec<u32>,
    /// Milliseconds between two steps shown while a key was held.
    gaps: Vec<u32>,
    /// Hundredths of a tile between where another is shown and where it was at that moment, while
    /// it moved.
    others: Vec<u32>,
    /// Hundredths of a tile by which another moves from frame to frame.
    frames: Vec<u32>,
    /// Milliseconds by which others are shown late.
    late: Vec<u32>,
    /// Hundredths of a tick by which the server's tick is misjudged.
    ticks: Vec<u32>,
    /// Datagrams that the server had from both players, and in how many seconds.
    heard: u64,
    seconds: u64,
}

/// One who walks, and one who watches.
struct Walk<'s> {
    site: Site,
    me: usize,
    watcher: usize,
    /// A moment at which a tick ended, and which.
    start: (Instant, u32),
    /// Where the one who walks was in truth, by tick.
    truth: BTreeMap<u32, Pos>,
    key: Key,
    glances: u64,
    before: Option<Place>,
    seen: &'s mut Seen,
}

impl<'s> Walk<'s> {
    fn new(link: LinkConfig, seed: u64, seen: &'s mut Seen) -> Self {
        let mut site = Site::new(seed);
        let start = (site.now, site.server.tick().get());
        let me = site.join("Ada", link);
        let watcher = site.join("Bob", link);
        let ready = |site: &Site| site.is_playable(me) && site.is_playable(watcher);
        site.until(60_000, ready).expect("both join");
        // The first seconds tell the clients what the network is like.
        site.run(6_000);
        let (truth, key) = (BTreeMap::new(), Key::default());
        Self { site, me, watcher, start, truth, key, glances: 0, before: None, seen }
    }

    /// Holds keys and lets go of them, so many times.
    fn run(mut self, seed: u64, times: usize) {
        let mut random = SplitMix64::new(seed);
        let (from, heard) = (self.site.now, self.site.server.counters().received);
        for _ in 0..times {
            for _ in 0..1 + random.below(3) {
                let way = Direction::ALL[random.below(4) as usize];
                let repeats = random.below(40);
                self.hold(way, repeats);
            }
            self.let_go();
        }
        self.seen.heard += self.site.server.counters().received - heard;
        self.seen.seconds += self.site.now.saturating_since(from).as_secs();
    }

    fn hold(&mut self, way: Direction, repeats: u64) {
        let mut last = None;
        for press in 0..=repeats {
            let here = shown(self.client());
            // Within the safe zone, where nobody stands in the way or ends the walk.
            let next = here.step(way);
            if next.distance(SPAWN) > SAFE_RADIUS || !is_open(self.client(), next) {
                return;
            }
            let waits = self.client().session().queued().next().is_some();
            self.key.press(&mut self.site, self.me, way);
            let moved = steps(here, shown(self.client()));
            // Seen in this very frame; a repeat says what waits already.
            assert!(moved == 1 || waits, "a step is not shown");
            if moved > 0 {
                self.seen.steps += 1;
                let since = last.replace((press, self.site.now)).filter(|(press, _)| *press > 0);
                let gap = since.map(|(_, at)| self.site.now.saturating_since(at).as_millis());
                self.seen.gaps.extend(gap.map(|gap| gap as u32));
            }
            self.glance_for(if press == 0 { PAUSE } else { REPEAT });
        }
    }

    fn let_go(&mut self) {
        let at = shown(self.client());
        let mut farthest = 0;
        for _ in 0..REST / GLANCE {
            self.glance();
            farthest = farthest.max(steps(at, shown(self.client())));
        }
        self.seen.shown_on.push(farthest);
        self.seen.run_on.push(steps(at, self.site.true_pos(self.me)));
    }

    fn glance_for(&mut self, millis: u64) {
        (0..millis / GLANCE).for_each(|_| self.glance());
    }

    /// Lets a little time pass, and looks.
    fn glance(&mut self) {
        let before = shown(self.client());
        self.site.run(GLANCE);
        let after = shown(self.client());
        // Nobody has touched a key in between.
        self.seen.corrections.extend((before != after).then(|| steps(before, after)));
        self.key.tick(&mut self.site, self.me);
        self.truth.insert(self.site.server.tick().get(), self.site.true_pos(self.me));
        self.glances += 1;
        if self.glances.is_multiple_of(3) {
            self.frame();
        }
    }

    /// What the watcher's screen has of the one who walks, and its clock of the server.
    fn frame(&mut self) {
        let (now, id) = (self.site.now, self.client().mirror().me().expect("in the caves").id);
        let client = &self.site.seats[self.watcher].client;
        let shown = client.shown_at(now).find(|shown| shown.figure.id == id);
        // A watcher who heard nothing for too long sees nobody until it is back.
        let (Some(shown), Some((tick, part)), Some(judged)) =
            (shown, client.shown_tick(now), client.server_tick(now))
        else {
            return;
        };

        // A tenth of a second has a tick; the server here never misses one.
        let passed = now.saturating_since(self.start.0).as_micros() as f64 / 100_000.0;
        self.seen.late.push(((passed - self.ticks((tick, part))) * 100.0) as u32);
        self.seen.ticks.push(((self.ticks(judged) - passed).abs() * 100.0) as u32);
        let frame = self.before.replace(shown.place).map(|before| hundredths(before, shown.place));
        self.seen.frames.extend(frame);
        let at = |tick: Tick| self.truth.get(&tick.get()).copied();
        let (Some(from), Some(to)) = (at(tick), at(tick.next())) else { return };
        let mix = |a: i32, b: i32| a as f32 + (b - a) as f32 * part;
        let error = hundredths(shown.place, Place { x: mix(from.x, to.x), y: mix(from.y, to.y) });
        self.seen.others.extend((from != to || error > 0).then_some(error));
    }

    /// Ticks since the start.
    fn ticks(&self, (tick, part): (Tick, f32)) -> f64 {
        f64::from(tick.distance_from(Tick::new(self.start.1))) + f64::from(part)
    }

    fn client(&self) -> &Client {
        &self.site.seats[self.me].client
    }
}

fn shown(client: &Client) -> Pos {
    client.position().expect("in the caves")
}

fn is_open(client: &Client, pos: Pos) -> bool {
    let mirror = client.mirror();
    mirror.tile(pos).is_some_and(|tile| mirror.content().is_walkable(tile))
}

fn steps(a: Pos, b: Pos) -> u32 {
    a.x.abs_diff(b.x) + a.y.abs_diff(b.y)
}

fn hundredths(a: Place, b: Place) -> u32 {
    ((a.x - b.x).abs().max((a.y - b.y).abs()) * 100.0).round() as u32
}

/// The smallest that at least so many of a hundred are not above; 0 of none.
fn percentile(values: &[u32], percent: usize) -> u32 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.max(1) - 1).copied().unwrap_or(0)
}

fn print_head() {
    println!(
        "{:14} {:>6} {:>6} {:>5} {:>4} {:>4} {:>11} {:>5} {:>17} {:>6} {:>12} {:>14}",
        "round trip",
        "steps",
        "wrong",
        "99%",
        "most",
        "on",
        "gap 99 most",
        "up/s",
        "others 90 99 most",
        "frame",
        "late 50 most",
        "tick 99 most",
    );
}

fn print_row(name: &str, seen: &Seen) {
    let whole = |values, percent| percentile(values, percent);
    let part = |values, percent| f64::from(percentile(values, percent)) / 100.0;
    println!(
        "{name:14} {:6} {:6} {:5} {:4} {:4} {:6} {:4} {:5.1} {:7.2} {:4.2} {:4.2} {:6.2} {:7} {:4} {:9.2} {:4.2}",
        seen.steps,
        seen.corrections.len(),
        whole(&seen.corrections, 99),
        whole(&seen.corrections, 100),
        whole(&seen.run_on, 100).max(whole(&seen.shown_on, 100)),
        whole(&seen.gaps, 99),
        whole(&seen.gaps, 100),
        seen.heard as f64 / seen.seconds as f64,
        part(&seen.others, 90),
        part(&seen.others, 99),
        part(&seen.others, 100),
        part(&seen.frames, 100),
        whole(&seen.late, 50),
        whole(&seen.late, 100),
        part(&seen.ticks, 99),
        part(&seen.ticks, 100),
    );
}

/// Walks over one kind of link from many seeds.
fn measure(link: LinkConfig, seeds: u64) -> Seen {
    let mut seen = Seen::default();
    (0..seeds).for_each(|seed| Walk::new(link, seed, &mut seen).run(seed, 8));
    seen
}

/// The goals for every network: a player is set right rarely, and by little; nobody runs on.
fn assert_own(name: &str, seen: &Seen) {
    assert!(percentile(&seen.corrections, 100) <= 4, "{name}: {:?}", seen.corrections);
    assert!(seen.corrections.len() * 100 <= seen.steps as usize, "{name}: set right too often");
    assert!(percentile(&seen.run_on, 100) <= 2, "{name}: {:?}", seen.run_on);
    assert!(percentile(&seen.shown_on, 100) <= 2, "{name}: {:?}", seen.shown_on);
    assert!(percentile(&seen.gaps, 99) <= 133, "{name}: steps come unevenly");
}

#[test]
fn a_walk_looks_like_a_walk_over_bad_links() {
    let rows = [
        ("0, 0 %", measure(link(0, 0, 0), 10)),
        ("150 ms, 10 %", measure(link(75, 0, 10), 40)),
        ("300 ms, 20 %", measure(link(150, 0, 20), 20)),
        ("150 +- 50 ms", measure(link(50, 50, 0), 20)),
        ("200 +- 100, 10", measure(link(50, 100, 10), 20)),
    ];
    // Behind the seeds.
    print_head();
    rows.iter().for_each(|(name, seen)| print_row(name, seen));
    for (name, seen) in &rows {
        assert!(seen.steps > 300, "{name}");
        assert_own(name, seen);
        // Half a tick.
        assert!(percentile(&seen.ticks, 99) <= 50, "{name}: {}", percentile(&seen.ticks, 99));
        assert!(percentile(&seen.others, 90) <= 100, "{name}");
        // A tick of delay behind the way here, and four more where half of the updates are lost.
        assert!(percentile(&seen.late, 100) <= 250 + 500, "{name}");
    }
    let [(_, perfect), (_, usual), _, (_, uneven), _] = &rows;
    // Of a hundred times one may be by more than a tile.
    let large = usual.corrections.iter().filter(|size| **size > 1).count();
    assert!(large * 100 <= usual.corrections.len().max(100), "{:?}", usual.corrections);
    assert!(percentile(&uneven.ticks, 100) <= 50);
    assert!(perfect.corrections.is_empty() && uneven.corrections.is_empty());
    // Exactly where it was a tick ago, and a third of a tile from frame to frame.
    assert_eq!((percentile(&perfect.others, 100), percentile(&perfect.late, 100)), (0, 100));
    assert!(percentile(&perfect.frames, 100) <= 34);
    assert!(percentile(&usual.others, 90) <= 50);
}

/// Round trips of 0 to 500 ms and more, losses of 0 to 30 %.
#[test]
fn a_key_that_is_let_go_stops_the_walk_over_any_link() {
    let mut all = Seen::default();
    for seed in 0..60 {
        let mut random = SplitMix64::new(seed);
        let (delay, jitter) = (random.below(251), random.below(51));
        let link = link(delay, jitter, random.below(31) as u32);
        let mut seen = Seen::default();
        Walk::new(link, seed, &mut seen).run(seed, 4);
        let on = percentile(&seen.run_on, 100).max(percentile(&seen.shown_on, 100));
        assert!(on <= 2, "seed {seed}: {on} tiles with {link:?}");
        all.run_on.append(&mut seen.run_on);
        all.corrections.append(&mut seen.corrections);
        all.steps += seen.steps;
    }
    assert!(all.run_on.len() == 240 && all.steps > 1000);
    assert!(percentile(&all.corrections, 100) <= 4, "{:?}", all.corrections);
}

/// The server's clock and the others are found again by themselves.
#[test]
fn a_server_that_is_started_again_is_followed() {
    for (seed, pause) in [(1, 300), (2, 1_550), (3, 7_030)] {
        let mut site = Site::new(seed);
        let seats = ["Ada", "Bob"].map(|name| site.join(name, link(50, 50, 5)));
        let ready = |site: &Site| seats.iter().all(|seat| site.is_playable(*seat));
        site.until(30_000, ready).expect("both join");
        site.run(5_000);
        site.restart_server(pause);
        let start = (site.now, site.server.tick());
        // Nobody is known to the new one until the old session is missed.
        site.run(1_000);
        site.until(30_000, ready).expect("both come back");
        site.run(5_000);
        for _ in 0..50 {
            site.act(1, Command::Move(Direction::North));
            site.run(50);
            let client = &site.seats[0].client;
            let passed = site.now.saturating_since(start.0).as_secs_f64() * 10.0;
            let (tick, part) = client.server_tick(site.now).expect("plays");
            let judged = f64::from(tick.distance_from(start.1)) + f64::from(part);
            assert!((judged - passed).abs() < 0.5, "{judged} for {passed} after {pause} ms");
            let (shown, part) = client.shown_tick(site.now).expect("plays");
            let late = passed - f64::from(shown.distance_from(start.1)) - f64::from(part);
            assert!((1.0..6.0).contains(&late), "{late} ticks late");
        }
        site.run(1_000);
        let id = site.seats[1].client.mirror().me().expect("in the caves").id;
        let bob = site.seats[0].client.shown_at(site.now).find(|shown| shown.figure.id == id);
        assert_eq!(bob.expect("in view").place, site.true_pos(1).into());
    }
}

/// Something that must arrive is done once, or the player is told that it may not have been.
#[test]
fn what_must_arrive_is_done_once_or_told_to_be_lost() {
    let (mut done, mut told, mut refused) = (0, 0, 0);
    for seed in 0..12 {
        let mut site = Site::new(seed);
        let me = site.join("Ada", link(75, 20, 30));
        site.until(30_000, |site| site.is_playable(me)).expect("joins");
        let mut random = SplitMix64::new(seed);
        let mut words = Words::default();
        for round in 0..60 {
            match random.below(20) {
                0 => site.set_link(me, LinkConfig { down: true, ..link(75, 20, 30) }),
                1..=6 => site.set_link(me, link(75, 20, 30)),
                7 => {
                    // What it had heard until it stopped was said.
                    words.listen(&site);
                    let pause = random.below(5_000);
                    site.restart_server(pause);
                    words.shown.clear();
                }
                _ => {}
            }
            // The speech of a server allows one a second and three at once (R35).
            let waits = site.seats[me].client.session();
            if waits.in_flight().count() + waits.queued().count() < 3 {
                words.ask(&mut site, me, Command::Say(format!("word {seed} {round}")));
            } else {
                words.ask(&mut site, me, Command::PickUp);
            }
            words.listen_for(&mut site, 1_500);
        }
        site.set_link(me, LinkConfig::PERFECT);
        words.listen_for(&mut site, 40_000);
        let settled = site.seats[me].client.session();
        assert_eq!(settled.in_flight().count() + settled.queued().count(), 0, "seed {seed}");
        for word in &words.taken {
            let lost = site.seats[me].events.iter().filter(|event| is_loss_of(event, word)).count();
            let heard = words.heard.iter().filter(|of| *of == word).count();
            let read = site.seats[me].texts().iter().filter(|text| *text == word).count();
            assert!(lost <= 1 && heard <= 1 && read <= 1, "{word}: {lost}, {heard}, {read}");
            assert!(heard == 1 || lost == 1, "{word} was neither said nor told to be lost");
            done += heard;
            told += lost;
        }
        refused += words.refused;
    }
    // All three happen, or this shows nothing.
    println!("{done} done, {told} told to be lost, {refused} refused");
    assert!(done > 100 && told > 5 && refused > 5);
}

fn is_loss_of(event: &ClientEvent, word: &str) -> bool {
    matches!(event, ClientEvent::CommandLost(Command::Say(lost)) if lost == word)
}

/// What was asked to be said, and what the server heard.
#[derive(Default)]
struct Words {
    taken: Vec<String>,
    refused: usize,
    heard: Vec<String>,
    /// The speech of each player when it was last listened to.
    shown: BTreeMap<EntityId, String>,
}

impl Words {
    fn ask(&mut self, site: &mut Site, me: usize, command: Command) {
        let word = if let Command::Say(word) = &command { Some(word.clone()) } else { None };
        if site.act(me, command) { self.taken.extend(word) } else { self.refused += 1 }
    }

    fn listen_for(&mut self, site: &mut Site, millis: u64) {
        for _ in 0..millis / 50 {
            site.run(50);
            self.listen(site);
        }
    }

    /// A speech lasts three seconds or until the next one, so none is missed.
    fn listen(&mut self, site: &Site) {
        let world = site.server.world();
        for player in world.players() {
            let Some(word) = world.entity(player).and_then(|entity| entity.speech()) else {
                continue;
            };
            let before = self.shown.insert(player, word.to_owned());
            if before.as_deref() != Some(word) {
                self.heard.push(word.to_owned());
            }
        }
    }
}
