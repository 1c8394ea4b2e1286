//! A steady tick allocates nothing. The only test of its file: the count is of the whole process.
//!
//! Steady is: a hundred players walk over ground that was walked on before, from chunk to chunk and back, are sent
//! the chunks that they no longer hold, and see each other. What may allocate: a join, a chunk that comes into
//! memory, chat and fights, and a save when it is taken (a bounded number of blocks a player).

#[allow(dead_code, unreachable_pub, reason = "the bench needs all of it")]
#[path = "../../../benches/tick/stage.rs"]
mod stage;

use std::time::Duration;

use caves_counting::Counting;
use stage::{Plan, Stage};

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

const PLAYERS: usize = 100;
const WARM_UP: usize = 60;
const TICKS: usize = 600;
/// Blocks that a save makes for one player: its record and its name, some of them twice.
const SAVED: u64 = 12;

#[test]
fn six_hundred_ticks_allocate_nothing() {
    let plains = Plan {
        players: PLAYERS,
        together: 10,
        things: 20,
        sleeping: 1000,
        stride: 40,
        kept: Some(Duration::from_secs(1)),
    };
    let saves = walk(plains);
    assert_eq!(saves, TICKS / 10, "one a second");
    assert_eq!(walk(Plan { kept: None, stride: 24, ..plains }), 0);
}

/// Counts what is allocated, and how many saves there were.
fn walk(plan: Plan) -> usize {
    let mut stage = Stage::open(plan).expect("everybody is let in");
    (0..WARM_UP).for_each(|_| _ = stage.tick());
    let (mut saves, mut crossings, mut chunks) = (0, 0, 0);
    for tick in 0..TICKS {
        let before = ALLOCATOR.made();
        let (sent, moved, saved) = stage.tick();
        let made = ALLOCATOR.made() - before;
        let most = if saved { SAVED * PLAYERS as u64 } else { 0 };
        assert!(made <= most, "{made} blocks in tick {tick}, a save: {saved}");
        assert_eq!(sent.states, PLAYERS);
        assert!(sent.entities >= 10 * PLAYERS, "they see each other: {sent:?}");
        saves += usize::from(saved);
        crossings += moved;
        chunks += sent.chunks;
    }
    assert!(crossings >= 10 * PLAYERS, "{crossings} times into another chunk");
    assert!(chunks >= 3 * crossings, "{chunks} chunks sent");
    saves
}
