//! Ten million ticks of one session, eleven and a half days, and two whole laps of the tick.
//!
//! ```text
//! cargo run --release -p caves-game --example long              # 10,000,000 ticks
//! cargo run --release -p caves-game --example long -- 2000000   # fewer
//! ```
//!
//! It looks each tick whether time drifts, whether what is said is heard once and in order, and whether
//! the session lives; each tenth of the way, what memory is in use. A panic is the exit status.
#![allow(clippy::print_stdout, reason = "it tells how far it is")]

#[path = "../tests/life/mod.rs"]
mod life;

use caves_counting::Counting;
use life::player::{FAIR, Player};
use life::{Start, by_hand};

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

/// Bytes by which two looks at what is in use may differ: what waits somewhere for the moment.
const SLACK: usize = 1024;
/// Bytes of one thing that was dug out and left lying, with its places in the tables.
const THING: usize = 512;
/// The length of a counter of 32 bits.
const LAP: u64 = 1 << 32;

fn main() {
    let ticks =
        std::env::args().nth(1).map_or(10_000_000, |n| n.parse().expect("a count of ticks"));
    live(ticks);
    laps();
}

/// One session, which passes the end of the tick at once.
fn live(ticks: u64) {
    let mut player = Player::new(Start { tick: LAP - 3, link: FAIR, ..Start::default() });
    println!("     ticks  bytes in use  entities  blocks a tick     moved     said  late States");
    let part = ticks / 10;
    let (mut early, mut late) = ((0, 0), (0, 0));
    for tenth in 1..=10 {
        let made = ALLOCATOR.made();
        (0..part - 200).for_each(|_| player.play());
        let made = (ALLOCATOR.made() - made) / (part - 200);
        late = (least(&mut player), player.life.server.world().entity_count());
        if tenth == 1 {
            early = late;
        }
        let Player { moved, said, late: states, life, .. } = &player;
        let (ticks, (live, entities)) = (life.ticks, late);
        println!("{ticks:10} {live:13} {entities:9} {made:14} {moved:9} {said:8} {states:12}");
    }
    player.finish();
    println!("every line was heard once and in order; no tick was dropped; the round trip stayed");
    let most = early.0 + SLACK + THING * (late.1 - early.1);
    assert!(late.0 <= most, "{early:?} bytes and entities became {late:?}");
}

/// What is on the way differs from tick to tick, so the least of some ticks counts.
fn least(player: &mut Player) -> usize {
    let play = |_| {
        player.play();
        ALLOCATOR.live()
    };
    (0..200).map(play).min().expect("ticks")
}

/// Two whole laps of the tick by the longest strides that are taken at once (R31), and one more end.
fn laps() {
    let count = 2 * LAP / by_hand::STRIDE + 2;
    let end = by_hand::stride_along(LAP - 3, count, |_| by_hand::STRIDE);
    assert_eq!(end / LAP, 3);
    println!("{count} strides of {} ticks passed the end three times", by_hand::STRIDE);
}
