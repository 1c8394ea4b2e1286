//! What loss and distance cost a player: a table over loss by round trip, kept beside this file and in
//! `notes/performance.md`.
//!
//! Simulated networks and seeds, so the table is the same on every machine. When the behaviour of either
//! side changes, write it anew and read the difference:
//!
//! ```text
//! CAVES_WRITE_GRID=1 cargo test -p caves-game --test loss_grid
//! ```

mod common;
mod walk;

use std::sync::OnceLock;
use std::time::Duration;

use caves_netsim::{Chance, LinkConfig, LinkId};
use caves_session::caves::{ClientEnd, ClientStatus};
use caves_wire::caves::{LeaveReason, Sequence};
use caves_world::{Command, Direction, Pos, SPAWN};
use common::Site;
use walk::Field;

/// Set to write the table instead of comparing it.
const WRITE: &str = "CAVES_WRITE_GRID";
const SNAPSHOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/loss_grid.txt");
const NOTE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../notes/performance.md");
const BEGIN: &str = "<!-- loss grid: begin -->\n```text\n";
const END: &str = "```\n<!-- loss grid: end -->";
const HEAD: &str = "\
 loss   round    playable, ms    heals, ms          up, B/s          down, B/s      steps  sessions
each    trip    median  worst    median  worst      UDP with IP      UDP with IP     lost  ended
";

/// Percent of the datagrams that are lost on each way.
const LOSSES: [u32; 7] = [0, 1, 5, 10, 20, 30, 50];
/// Milliseconds, half on each way.
const ROUND_TRIPS: [u64; 4] = [0, 50, 150, 300];
/// Runs of each cell, each with caves and a network of its own.
const SEEDS: u64 = 30;
/// Steps that a run presses, one a tick.
const STEPS: u64 = 100;
/// Chunks that are dug in a run.
const HEALS: usize = 3;
const TICK: Duration = Duration::from_millis(100);
/// Steps from the spawn within which there is something to dig.
const NEAR: u32 = 16;
/// Headers of IPv4 and UDP.
const HEADERS: u64 = 28;
/// Passes everything but chunks, which have 783 bytes and more.
const NO_CHUNKS: usize = 782;

/// What one player met.
#[derive(Default)]
struct Run {
    playable: Duration,
    healed: Vec<Duration>,
    up: Flow,
    down: Flow,
    executed: u64,
    /// The session was there to the end.
    lasted: bool,
}

/// What was sent on one way, lost or not.
#[derive(Clone, Copy, Default)]
struct Flow {
    bytes: u64,
    datagrams: u64,
}

impl Flow {
    fn of(site: &Site, link: LinkId) -> Self {
        let link = site.net.link(link);
        Self { bytes: link.bytes_sent(), datagrams: link.stats().sent }
    }

    fn since(self, before: Self) -> Self {
        Self { bytes: self.bytes - before.bytes, datagrams: self.datagrams - before.datagrams }
    }
}

fn run(loss: u32, round_trip: Duration, seed: u64) -> Run {
    let link =
        LinkConfig { delay: round_trip / 2, loss: Chance::percent(loss), ..LinkConfig::PERFECT };
    let mut site = Site::new(seed);
    // Players know nothing of the ticks.
    site.run(seed * 37 % 100);
    let ada = site.join("Ada", link);
    let playable = site.until(60_000, |site| site.is_playable(ada)).expect("playable");
    let mut run = Run { playable, ..Run::default() };
    for _ in 0..HEALS {
        run.healed.extend(heal(&mut site, ada, link));
    }
    site.run(seed * 53 % 100);
    walk(&mut site, ada, &mut run);
    run.lasted = match site.status(ada) {
        ClientStatus::Playing { .. } => true,
        // Where events are not acknowledged for 10 s (section 2, events).
        ClientStatus::Ended(ClientEnd::Left(LeaveReason::EVENTS_UNREAD)) => false,
        other => panic!("{loss} %, {round_trip:?}, seed {seed}: {other:?}"),
    };
    run
}

/// Presses a step each tick, there and back by what the client shows, and counts what comes of it.
fn walk(site: &mut Site, seat: usize, run: &mut Run) {
    let home = Field::to(site.server.world(), SPAWN, u32::MAX);
    let far = Field::to(site.server.world(), home.farthest(), u32::MAX);
    let mut goals = [far, home];
    let links = [site.seats[seat].up, site.seats[seat].down];
    let before = links.map(|link| Flow::of(site, link));
    let mut last = executed(site);
    for _ in 0..STEPS {
        let at = site.seats[seat].client.position().unwrap_or(SPAWN);
        if goals[0].steps(at) == Some(0) {
            goals.swap(0, 1);
        }
        // Who has strayed off the map walks on all the same.
        let way = goals[0].way(at).unwrap_or(Direction::North);
        site.act(seat, Command::Move(way));
        count_tick(site, &mut last, run);
    }
    [run.up, run.down] = [0, 1].map(|way| Flow::of(site, links[way]).since(before[way]));
    // What is under way is executed, or is found to be overtaken.
    for _ in 0..30 {
        count_tick(site, &mut last, run);
    }
}

/// One tick, in which a session executes one action at most (R19).
fn count_tick(site: &mut Site, last: &mut Option<Sequence>, run: &mut Run) {
    site.run(TICK.as_millis() as u64);
    let now = executed(site);
    run.executed += u64::from(now != *last);
    *last = now;
}

/// The number that the server executed last.
fn executed(site: &Site) -> Option<Sequence> {
    let (_, session) = site.server.sessions().sessions().next()?;
    session.executed().map(|(sequence, _)| sequence)
}

/// Digs, loses the first packet of the changed chunk for sure, and tells how long after the change
/// the client showed it.
fn heal(site: &mut Site, seat: usize, link: LinkConfig) -> Option<Duration> {
    let field = Field::to(site.server.world(), SPAWN, NEAR);
    let (stand, way) = field.nearest_to_dig(site.server.world()).expect("caves have walls");
    let target = stand.step(way);
    let lost = site.net.total().too_big;
    for _ in 0..200 {
        // A rat may have killed the player meanwhile, who wakes up at the entrance.
        site.set_link(seat, link);
        go_to(site, seat, stand)?;
        if is_open(site, target) {
            // A dig of before took effect late, while chunks passed: another wall.
            return heal(site, seat, link);
        }
        site.set_link(seat, LinkConfig { mtu: Some(NO_CHUNKS), ..link });
        let _ = site.act(seat, Command::Dig(way));
        if site.until(2000, |site| is_open(site, target) || is_idle(site, seat)).is_some()
            && is_open(site, target)
        {
            break;
        }
    }
    let changed = site.now;
    site.until(20_000, |site| site.net.total().too_big > lost)?;
    site.set_link(seat, link);
    site.until(20_000, |site| {
        let mirror = site.seats[seat].client.mirror();
        mirror.tile(target).is_some_and(|tile| mirror.content().is_walkable(tile))
    })?;
    Some(site.now.saturating_since(changed))
}

fn is_open(site: &Site, pos: Pos) -> bool {
    site.server.world().content().is_walkable(site.server.world().tile(pos))
}

fn is_idle(site: &Site, seat: usize) -> bool {
    let session = site.seats[seat].client.session();
    session.in_flight().next().is_none() && session.queued().next().is_none()
}

/// Walks until the server has the player there and nothing is under way.
fn go_to(site: &mut Site, seat: usize, goal: Pos) -> Option<()> {
    let field = Field::to(site.server.world(), goal, 2 * NEAR);
    for _ in 0..600 {
        let Some(at) = site.seats[seat].client.position() else {
            // In between two sessions, which heavy loss can bring about.
            site.run(100);
            continue;
        };
        match field.way(at) {
            Some(way) => drop(site.act(seat, Command::Move(way))),
            None if is_idle(site, seat) && at == goal => return Some(()),
            None => {}
        }
        site.run(100);
    }
    None
}

/// All runs of one cell of the table.
struct Cell {
    loss: u32,
    round_trip: Duration,
    /// Ascending, as the next.
    playable: Vec<Duration>,
    healed: Vec<Duration>,
    /// Of the runs whose session lasted, as the next two.
    up: Flow,
    down: Flow,
    executed: u64,
    lasted: u64,
    /// Lost chunks of the runs that lasted that never came.
    unhealed: usize,
}

impl Cell {
    fn measure(loss: u32, round_trip: Duration) -> Self {
        let runs: Vec<Run> = (1..=SEEDS).map(|seed| run(loss, round_trip, seed)).collect();
        let mut playable: Vec<_> = runs.iter().map(|run| run.playable).collect();
        let mut healed: Vec<_> = runs.iter().flat_map(|run| run.healed.iter().copied()).collect();
        playable.sort();
        healed.sort();
        let lasted = || runs.iter().filter(|run| run.lasted);
        let sum = |flow: fn(&Run) -> Flow| Flow {
            bytes: lasted().map(|run| flow(run).bytes).sum(),
            datagrams: lasted().map(|run| flow(run).datagrams).sum(),
        };
        Self {
            loss,
            round_trip,
            playable,
            healed,
            up: sum(|run| run.up),
            down: sum(|run| run.down),
            executed: lasted().map(|run| run.executed).sum(),
            lasted: lasted().count() as u64,
            unhealed: lasted().map(|run| HEALS - run.healed.len()).sum(),
        }
    }

    /// Seconds walked in the runs that lasted.
    fn seconds(&self) -> u64 {
        self.lasted * STEPS * TICK.as_millis() as u64 / 1000
    }

    /// Bytes a second: payload, and with headers.
    fn rates(&self, flow: Flow) -> [u64; 2] {
        let rate = |bytes: u64| bytes.checked_div(self.seconds()).unwrap_or(0);
        [rate(flow.bytes), rate(flow.bytes + HEADERS * flow.datagrams)]
    }

    /// In tenths of a percent.
    fn steps_lost(&self) -> u64 {
        let pressed = self.lasted * STEPS;
        ((pressed - self.executed) * 1000).checked_div(pressed).unwrap_or(0)
    }

    fn name(&self) -> String {
        format!("{} % loss, {} ms", self.loss, self.round_trip.as_millis())
    }

    fn line(&self) -> String {
        let [playable, late] = median_and_worst(&self.playable);
        let [healed, slow] = median_and_worst(&self.healed);
        let [up, up_ip] = self.rates(self.up);
        let [down, down_ip] = self.rates(self.down);
        let (lost, ended) = (self.steps_lost(), SEEDS - self.lasted);
        let times = format!("{playable:9} {late:6} {healed:9} {slow:6}");
        let rates = format!("{up:8} {up_ip:6} {down:9} {down_ip:6}");
        let (loss, trip) = (self.loss, self.round_trip.as_millis());
        let (whole, tenth) = (lost / 10, lost % 10);
        format!("{loss:3} % {trip:4} ms {times} {rates} {whole:5}.{tenth} % {ended:5}\n")
    }
}

/// Of an ascending row the one in the middle and the last, in milliseconds.
fn median_and_worst(times: &[Duration]) -> [u128; 2] {
    let at = |place: usize| times.get(place).map_or(0, Duration::as_millis);
    [at(times.len() / 2), at(times.len().saturating_sub(1))]
}

/// Measured once for all tests.
fn cells() -> &'static [Cell] {
    static CELLS: OnceLock<Vec<Cell>> = OnceLock::new();
    let trips = ROUND_TRIPS.map(Duration::from_millis);
    let all = || LOSSES.into_iter().flat_map(|loss| trips.map(|trip| Cell::measure(loss, trip)));
    CELLS.get_or_init(|| all().collect())
}

#[test]
fn the_table_and_the_note_are_what_the_simulation_gives() {
    let lines: String = cells().iter().map(Cell::line).collect();
    let table = format!("{HEAD}{lines}");
    let note = std::fs::read_to_string(NOTE).expect("the note");
    let (before, rest) = note.split_once(BEGIN).expect("the note has the table's beginning");
    let (noted, after) = rest.split_once(END).expect("the note has the table's end");
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(SNAPSHOT, &table).expect("the table can be written");
        let note = format!("{before}{BEGIN}{table}{END}{after}");
        std::fs::write(NOTE, note).expect("the note can be written");
        return;
    }
    let kept = std::fs::read_to_string(SNAPSHOT).expect("the kept table");
    let differs = kept.lines().zip(table.lines()).find(|(kept, fresh)| kept != fresh);
    assert_eq!(differs, None, "kept and fresh; the head of this file says how to write it anew");
    assert_eq!(kept, table);
    assert_eq!(noted, kept, "the note and the kept table");
}

/// Hello and Challenge, Join and Welcome, the first word and the first tick: three round trips, and a
/// tick at most for the server to begin one. All nine chunks come with it (R11).
#[test]
fn without_loss_joining_takes_three_round_trips_and_at_most_a_tick() {
    for cell in cells().iter().filter(|cell| cell.loss == 0) {
        let least = 3 * cell.round_trip;
        let all = cell.playable.iter().all(|took| (least..=least + TICK).contains(took));
        assert!(all && cell.playable.len() == SEEDS as usize, "{:?}", cell.playable);
    }
}

#[test]
fn without_loss_every_step_is_executed_and_no_session_ends() {
    for cell in cells().iter().filter(|cell| cell.loss == 0) {
        assert_eq!((cell.lasted, cell.executed), (SEEDS, SEEDS * STEPS), "{}", cell.name());
    }
}

#[test]
fn at_thirty_percent_all_nine_chunks_are_there_within_five_seconds() {
    for cell in cells().iter().filter(|cell| cell.loss <= 30) {
        let worst = cell.playable.last().expect("runs");
        assert!(*worst <= Duration::from_secs(5), "{}: {worst:?}", cell.name());
    }
}

/// The State of the change tells of it after half a round trip. An ActionPacket with the old version
/// goes out within 300 ms; should it come within 150 ms of the lost chunk (R12), the next does within
/// 300 more. Then the tick, and half a round trip back.
#[test]
fn without_loss_a_lost_chunk_is_there_after_two_questions_at_most() {
    for cell in cells().iter().filter(|cell| cell.loss == 0) {
        let half = cell.round_trip / 2;
        let most = 3 * half + Duration::from_millis(2 * 300) + TICK;
        // The first chunk that is not lost comes in a tick, and 150 ms after the lost one (R12).
        let least = Duration::from_millis(200) + half;
        let all = cell.healed.iter().all(|took| (least..=most).contains(took));
        assert!(all, "{}: {:?}", cell.name(), cell.healed);
    }
}

#[test]
fn every_lost_chunk_comes_in_the_end() {
    for cell in cells() {
        assert_eq!(cell.unhealed, 0, "{}", cell.name());
        assert!(cell.lasted > 0, "{}", cell.name());
    }
}

/// How often a step goes out at most, with what else a client has to say.
fn most_copies(loss: u32) -> u64 {
    if loss == 0 { 2 } else { 5 }
}

/// At ten ticks a second there is one number a tick (R36), which goes out five times at most, and only
/// where something is lost (decision 14). The server sends one State, eight Entities at most (R14; the caves are not crowded, so one), and
/// 20 chunks a second (R12) besides the 18 in hand.
#[test]
fn no_more_bytes_are_sent_than_ten_ticks_a_second_have_use_for() {
    // Of a step and of a State (section 1).
    let (action, state) = (74, 72);
    for cell in cells().iter().filter(|cell| cell.lasted > 0) {
        let ([up, up_ip], [down, down_ip]) = (cell.rates(cell.up), cell.rates(cell.down));
        let name = cell.name();
        assert!(
            (10 * action..=most_copies(cell.loss) * 10 * action).contains(&up),
            "{name}: {up} up"
        );
        assert!((10 * HEADERS..=60 * HEADERS).contains(&(up_ip - up)), "{name}: {up_ip} up");
        let most = 10 * (state + 1200) + (20 + 18 / 10) * 909;
        assert!((10 * (state + 12)..=most).contains(&down), "{name}: {down} down");
        assert!((20 * HEADERS..=50 * HEADERS).contains(&(down_ip - down)), "{name}: {down_ip}");
    }
}

/// A step is sent at least once, so it is lost no more often than a datagram; what is beyond that
/// must be rare.
#[test]
fn steps_are_lost_no_more_often_than_datagrams() {
    for cell in cells() {
        let lost = cell.steps_lost();
        assert!(lost <= u64::from(cell.loss) * 10 + 30, "{}: {lost} in a thousand", cell.name());
    }
}
