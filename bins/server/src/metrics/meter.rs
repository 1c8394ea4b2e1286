//! What the loop notes as it goes, and the figures made of it.

use std::time::Duration;

use caves_link::time::Instant;
use caves_wire::caves::Tick;

use super::{About, Figures, Gauges, Process, StoreFigures, Tally, receive_drops};
use crate::traffic::Traffic;

/// Everything that is counted for the metrics outside of sessions and world.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    pub(crate) traffic: Traffic,
    pub(crate) tally: Tally,
    pub(crate) about: About,
    /// Those of the UDP sockets.
    pub(crate) inodes: Vec<u64>,
    /// What the configuration says at the moment.
    pub(crate) max_players: usize,
    /// What ticks take of their period, lately.
    pub(crate) load_percent: u32,
    /// The tick of which not all is sent.
    since: Option<Instant>,
}

impl Meter {
    /// The world went from one tick to another at this moment; the same tick twice says that there was
    /// none.
    pub(crate) fn note_tick(&mut self, began: Instant, before: Tick, after: Tick) {
        let ticks = after.get().wrapping_sub(before.get());
        if ticks > 0 {
            // What the last one had left to send is never sent.
            self.note_sent(began);
            self.tally.ticks += u64::from(ticks);
            self.since = Some(began);
        }
    }

    /// All that there was to send was sent; how long that took, if it ends a tick.
    pub(crate) fn note_sent(&mut self, now: Instant) -> Option<Duration> {
        let took = now.saturating_since(self.since.take()?);
        self.tally.tick_times.note(took);
        Some(took)
    }

    /// All figures of this moment. The files of the kernel are read here, which takes about as long as
    /// a tick with few players.
    pub(crate) fn figures(
        &self,
        game: &caves_game::Server,
        store: Option<StoreFigures>,
        unsent: u64,
        unread: u64,
    ) -> Figures {
        Figures {
            about: self.about.clone(),
            tally: self.tally.clone(),
            traffic: self.traffic.clone(),
            counters: game.counters().clone(),
            unsent,
            unread,
            kernel_drops: receive_drops(&self.inodes),
            gauges: Gauges {
                players: game.players(),
                arriving: game.arriving(),
                max_players: self.max_players,
                load_percent: self.load_percent,
                chunks_loaded: game.world().loaded_chunks(),
                entities: game.world().entity_count(),
                sessions: game.sessions().gauges(),
                round_trips: round_trips(game),
            },
            store,
            process: Process::read(),
        }
    }
}

/// The round trips that are known.
fn round_trips(game: &caves_game::Server) -> Vec<Duration> {
    game.sessions().sessions().filter_map(|(_, session)| session.round_trip()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    #[test]
    fn a_tick_lasts_until_all_of_it_is_sent() {
        let mut meter = Meter::default();
        meter.note_sent(at(5));
        assert_eq!(meter.tally.tick_times.count(), 0);
        meter.note_tick(at(1_000), Tick::new(7), Tick::new(7));
        meter.note_sent(at(2_000));
        assert_eq!((meter.tally.ticks, meter.tally.tick_times.count()), (0, 0));
        meter.note_tick(at(3_000), Tick::new(u32::MAX), Tick::new(1));
        meter.note_sent(at(3_700));
        meter.note_sent(at(9_000));
        assert_eq!((meter.tally.ticks, meter.tally.tick_times.count()), (2, 1));
        assert!((meter.tally.tick_times.sum_s() - 0.000_7).abs() < 1e-12);
    }

    #[test]
    fn a_tick_that_is_overtaken_lasted_until_the_next_one() {
        let mut meter = Meter::default();
        meter.note_tick(at(0), Tick::new(1), Tick::new(2));
        meter.note_tick(at(100_000), Tick::new(2), Tick::new(3));
        meter.note_sent(at(100_300));
        assert_eq!(meter.tally.tick_times.count(), 2);
        assert!((meter.tally.tick_times.sum_s() - 0.100_3).abs() < 1e-12);
    }
}
