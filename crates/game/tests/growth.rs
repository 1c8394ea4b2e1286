//! Nothing grows with time. The only test of its file: the count is of the whole process.

mod life;

use caves_counting::Counting;
use life::Start;
use life::player::{FAIR, Player};

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

/// What is on the way differs from tick to tick, so the least of some ticks counts.
fn least(player: &mut Player) -> usize {
    let play = |_| {
        player.play();
        ALLOCATOR.live()
    };
    (0..200).map(play).min().expect("ticks")
}

#[test]
fn no_memory_is_kept_from_tick_to_tick() {
    let mut player = Player::new(Start { link: FAIR, ..Start::default() });
    let mut live = Vec::new();
    for _ in 0..6 {
        // After the first round the message log is full. What is dug out may lie about, so digging ends
        // with it, too.
        (0..10_000 - 200).for_each(|_| player.play());
        live.push(least(&mut player));
        player.digs = false;
    }
    player.finish();
    let (early, late) = (live[1], live[5]);
    assert!(late <= early + 512, "bytes in use each 10,000 ticks: {live:?}");
}
