//! While threads run: a line on the terminal.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::Ordering;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use crate::args::Plan;
use crate::fleet::Live;

/// Between two looks at the threads.
const LOOK: Duration = Duration::from_millis(100);
/// Looks from one line to the next.
const LOOKS: u32 = 10;

/// Waits for the threads; somebody at a terminal sees how they do.
pub(crate) fn until_over<T>(plan: &Plan, fleets: &[ScopedJoinHandle<'_, T>], lives: &[Live]) {
    let terminal = io::stderr().is_terminal();
    let mut ticks_before = 0;
    for look in 1u32.. {
        if fleets.iter().all(ScopedJoinHandle::is_finished) {
            break;
        }
        thread::sleep(LOOK);
        if terminal && look.is_multiple_of(LOOKS) {
            ticks_before = progress(plan, look / LOOKS, lives, ticks_before);
        }
    }
    if terminal {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
}

/// One line over the one before it; gives the ticks so far.
fn progress(plan: &Plan, second: u32, lives: &[Live], before: u64) -> u64 {
    let total = |count: fn(&Live) -> u64| lives.iter().map(count).sum::<u64>();
    let playing = total(|live| live.playing.load(Ordering::Relaxed));
    let ticks = total(|live| live.ticks.load(Ordering::Relaxed));
    let failures = total(|live| live.failures.load(Ordering::Relaxed));
    let busy: Vec<String> = lives
        .iter()
        .map(|live| format!("{} %", live.busy_per_mille.load(Ordering::Relaxed) / 10))
        .collect();
    let _ = write!(
        io::stderr(),
        "\r\x1b[K{second} s: {playing} of {} play, {} ticks/s, {failures} failures, busy {}",
        plan.clients,
        ticks.saturating_sub(before),
        busy.join(" ")
    );
    ticks
}
