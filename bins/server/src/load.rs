//! Whether the machine keeps up with its players.
//!
//! A tick that takes longer than its period, from its start until the kernel has its last datagram, makes
//! the next one late: the game slows, for everybody alike. Before it comes to that nobody else is let in.

use std::time::Duration;

use caves_link::time::{Deadline, Instant};
use tracing::{info, warn};

/// Percent of the period that ticks may take, on average, before nobody else is let in ...
const BUSY: u32 = 80;
/// ... until they take less than this.
const FREE: u32 = 60;
/// The average is over about so many ticks: two seconds at 10 Hz.
const TICKS: u32 = 20;
/// How often the log tells that it is still so.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// How long ticks take, of the time there is.
#[derive(Debug)]
pub(crate) struct Load {
    period: Duration,
    average: Duration,
    busy: bool,
    tell: Deadline,
}

impl Load {
    pub(crate) const fn new(period: Duration) -> Self {
        Self { period, average: Duration::ZERO, busy: false, tell: Deadline::at(Instant::ZERO) }
    }

    /// A tick took so long until all of it was sent.
    pub(crate) fn note(&mut self, now: Instant, took: Duration, players: usize) {
        self.average = (self.average * (TICKS - 1) + took) / TICKS;
        let percent = self.percent();
        let was_busy = self.busy;
        self.busy = percent >= if was_busy { FREE } else { BUSY };
        if self.busy && (!was_busy || self.tell.is_due(now)) {
            self.tell.set(now + TOLD_EVERY);
            warn!(
                percent,
                players,
                "at the limit of this machine: ticks take most of their time; joins are refused"
            );
        }
        if was_busy && !self.busy {
            info!(percent, players, "below the limit again: players may join");
        }
    }

    /// Whether nobody else should be let in.
    pub(crate) const fn is_busy(&self) -> bool {
        self.busy
    }

    /// What ticks take of their period, lately; more than 100 slows the game.
    pub(crate) fn percent(&self) -> u32 {
        let percent = self.average.as_micros() * 100 / self.period.as_micros().max(1);
        u32::try_from(percent).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_millis(100);

    fn after(load: &mut Load, millis: u64, ticks: u32) -> (u32, bool) {
        for _ in 0..ticks {
            load.note(Instant::ZERO, Duration::from_millis(millis), 1);
        }
        (load.percent(), load.is_busy())
    }

    #[test]
    fn it_is_busy_from_80_percent_until_below_60() {
        let mut load = Load::new(PERIOD);
        assert_eq!(after(&mut load, 79, 1000), (78, false));
        assert_eq!(after(&mut load, 85, 1000), (84, true));
        assert_eq!(after(&mut load, 65, 1000), (65, true));
        assert!(!after(&mut load, 55, 1000).1);
        assert!(!after(&mut load, 79, 1000).1, "a little more does not make it busy again");
    }

    #[test]
    fn one_long_tick_changes_nothing_and_two_seconds_of_them_do() {
        let mut load = Load::new(PERIOD);
        assert_eq!(after(&mut load, 1000, 1), (50, false));
        let mut load = Load::new(PERIOD);
        // 1 - 0.95^20 is 0.64: of 150 ms there are 96 after twenty ticks.
        assert_eq!(after(&mut load, 150, 20), (96, true));
    }
}
