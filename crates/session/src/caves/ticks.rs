//! Which ticks a client takes (R31), which of them came, and what time it is at the server.
//!
//! ```text
//!             taken when it comes              the newest      taken when its state comes
//!  ..........|--------------------------------|x|-------------------------------|..........
//!            base, or 600 behind                                                 600 ahead
//!
//!  outside: put aside, until three have come in order, over 300 ms; the third is the newest then
//! ```

use std::time::Duration;

use caves_link::clock::{RemoteClock, RemotePolicy};
use caves_link::time::Instant;
use caves_wire::caves::Tick;

/// A tick further than this from the newest is put aside (R31).
const FAR_TICKS: u32 = 600;
/// Far ticks in ascending order that become the base (R31).
const FAR_COUNT: u8 = 3;
/// The time over which they come (R31).
const FAR_SPAN: Duration = Duration::from_millis(300);
/// EntityPackets further ahead of the newest state than this are no packets of ours.
const ENTITIES_AHEAD: u32 = 8;

/// The server's clock, from the states of the last three seconds.
pub type ServerClock = RemoteClock<32>;

/// The ticks of one session.
#[derive(Debug)]
pub(super) struct Ticks {
    rate: u8,
    /// This tick and those before it are of a session before this one.
    base: Tick,
    newest: Tick,
    /// The same, counted on where the number wraps.
    count: u64,
    /// Bit i: the state of tick `newest - i` came.
    seen: u64,
    far: Option<Far>,
    clock: ServerClock,
}

/// Ticks far from the newest one.
#[derive(Debug, Clone, Copy)]
struct Far {
    since: Instant,
    newest: Tick,
    count: u8,
}

/// What is to be done with a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is put aside.
    Aside,
    /// It is one of this session, the newest or not.
    Near,
    /// The server counts elsewhere by now: nothing of before is of use.
    Anew,
}

impl Ticks {
    /// After a Welcome at `tick`: its own states are those of later ticks.
    pub(super) fn new(tick: Tick, rate: u8) -> Self {
        Self {
            rate,
            base: tick,
            newest: tick,
            // A lap ahead, so that the one before it can be told from below zero.
            count: (1 << 32) + u64::from(tick.get()),
            seen: 0,
            far: None,
            clock: ServerClock::new(RemotePolicy::DEFAULT),
        }
    }

    /// A Welcome at `tick` goes on with the session, whose state of that very tick may come.
    pub(super) fn resume(&mut self, tick: Tick, rate: u8) {
        self.rate = rate;
        self.rebase(tick.prev());
        self.count = self.newest.widen(self.count);
        self.far = None;
    }

    const fn rebase(&mut self, base: Tick) {
        self.base = base;
        self.newest = base;
        self.seen = 0;
    }

    /// What to do with a state that comes at `now`.
    pub(super) fn judge(&mut self, now: Instant, tick: Tick) -> Verdict {
        let anew = self.is_far(tick);
        if anew && !self.becomes_base(now, tick) {
            return Verdict::Aside;
        }
        match tick.is_newer_than(self.base) {
            false => Verdict::Aside,
            true if anew => Verdict::Anew,
            true => Verdict::Near,
        }
    }

    fn is_far(&self, tick: Tick) -> bool {
        let ahead = tick.distance_from(self.newest);
        ahead > FAR_TICKS && ahead.wrapping_neg() > FAR_TICKS
    }

    /// Three far ticks, ascending, over some time become the base: one that is forged does not
    /// freeze the client, and a server that was started again does (R31).
    fn becomes_base(&mut self, now: Instant, tick: Tick) -> bool {
        let far = match self.far {
            Some(far) if tick.is_newer_than(far.newest) => {
                Far { newest: tick, count: far.count.saturating_add(1), ..far }
            }
            Some(far) if tick == far.newest => far,
            _ => Far { since: now, newest: tick, count: 1 },
        };
        self.far = Some(far);
        if far.count < FAR_COUNT || now.saturating_since(far.since) < FAR_SPAN {
            return false;
        }
        self.far = None;
        self.rebase(tick.prev());
        true
    }

    /// Takes a state that was judged well; whether it is the newest now.
    pub(super) fn take(&mut self, now: Instant, tick: Tick, round_trip: Option<Duration>) -> bool {
        if self.note_seen(tick) {
            self.clock.sample(now, self.stamp(tick), round_trip.unwrap_or_default());
        }
        let newer = tick.is_newer_than(self.newest);
        if newer {
            self.newest = tick;
            self.count = tick.widen(self.count);
            // It goes along, or half the circle of ticks later all would seem to be before it.
            let far = Tick::new(tick.get().wrapping_sub(FAR_TICKS));
            if far.is_newer_than(self.base) {
                self.base = far;
            }
        }
        newer
    }

    /// Whether the state of this tick came for the first time.
    fn note_seen(&mut self, tick: Tick) -> bool {
        let before = self.seen;
        if tick.is_newer_than(self.newest) {
            self.far = None;
            let steps = tick.distance_from(self.newest);
            self.seen = self.seen.checked_shl(steps).unwrap_or(0) | 1;
            return true;
        }
        let back = self.newest.distance_from(tick);
        self.seen |= 1u64.checked_shl(back).unwrap_or(0);
        self.seen != before
    }

    /// Whether entities of this tick are of use: they may come before their state.
    pub(super) fn takes_entities(&self, tick: Tick) -> bool {
        let ahead =
            tick.is_newer_than(self.newest) && tick.distance_from(self.newest) > ENTITIES_AHEAD;
        !ahead && !self.is_far(tick) && tick.is_newer_than(self.base)
    }

    /// The newest tick heard of.
    pub(super) const fn newest(&self) -> Tick {
        self.newest
    }

    /// Ticks a second, as the server says.
    pub(super) const fn rate(&self) -> u8 {
        self.rate
    }

    /// Of the last 64 ticks so many did not come, in percent.
    pub(super) fn loss_percent(&self) -> u32 {
        // What came before the first state was not lost.
        let span = 64 - self.seen.leading_zeros();
        ((span - self.seen.count_ones()) * 100).checked_div(span).unwrap_or(0)
    }

    /// How long a tick takes.
    pub(super) fn period(&self) -> Duration {
        Duration::from_secs(1) / u32::from(self.rate.max(1))
    }

    /// The server's clock.
    pub(super) const fn clock(&self) -> &ServerClock {
        &self.clock
    }

    /// A tick as a moment of the server's clock.
    pub(super) fn stamp(&self, tick: Tick) -> Instant {
        let micros = self.period().as_micros() as u64;
        Instant::from_micros(tick.widen(self.count).saturating_mul(micros))
    }

    /// The tick that the server has at a moment of its clock, and what has passed of the next.
    pub(super) fn at(&self, stamp: Instant) -> (Tick, f32) {
        let micros = self.period().as_micros() as u64;
        let (ticks, part) = (stamp.as_micros() / micros, stamp.as_micros() % micros);
        // The lowest bits are the number on the wire.
        (Tick::new(ticks as u32), part as f32 / micros as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(number: u32) -> Tick {
        Tick::new(number)
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn states_of_the_welcomes_tick_and_before_are_of_another_session() {
        let mut ticks = Ticks::new(tick(2), 10);
        for late in [2, 1, 0, u32::MAX, u32::MAX - 500] {
            assert_eq!(ticks.judge(at(0), tick(late)), Verdict::Aside);
            assert!(!ticks.takes_entities(tick(late)));
        }
        assert_eq!(ticks.judge(at(0), tick(3)), Verdict::Near);
        // A Welcome that resumes comes from the same session.
        ticks.resume(tick(2), 10);
        assert_eq!(ticks.judge(at(0), tick(2)), Verdict::Near);
        assert_eq!(ticks.judge(at(0), tick(1)), Verdict::Aside);
    }

    #[test]
    fn six_hundred_ticks_away_is_near_and_one_more_is_put_aside() {
        let mut ticks = Ticks::new(tick(1000), 10);
        assert!(ticks.take(at(0), tick(1001), None));
        assert_eq!(ticks.judge(at(0), tick(1601)), Verdict::Near);
        assert_eq!(ticks.judge(at(0), tick(1602)), Verdict::Aside);
        assert!(ticks.takes_entities(tick(1009)) && !ticks.takes_entities(tick(1010)));
    }

    #[test]
    fn three_far_ticks_in_order_over_300_ms_are_where_the_server_counts_now() {
        let mut ticks = Ticks::new(tick(1000), 10);
        let far = |ticks: &mut Ticks, millis, number| ticks.judge(at(millis), tick(number));
        assert_eq!(far(&mut ticks, 0, 90_000), Verdict::Aside);
        assert_eq!(far(&mut ticks, 100, 90_001), Verdict::Aside);
        assert_eq!(far(&mut ticks, 200, 90_001), Verdict::Aside, "the same one again");
        assert_eq!(far(&mut ticks, 299, 90_002), Verdict::Aside, "too soon");
        assert_eq!(far(&mut ticks, 300, 90_003), Verdict::Anew);
        assert!(ticks.take(at(300), tick(90_003), None));
        assert_eq!(ticks.newest(), tick(90_003));
    }

    #[test]
    fn a_session_outlives_half_the_circle_of_ticks() {
        let mut ticks = Ticks::new(tick(7), 10);
        // 9 strides of 500,000,000 are 4.5e9 ticks, more than the circle has: in steps of 600.
        let mut newest = 7u32;
        for step in 0..7_500_000u64 {
            newest = newest.wrapping_add(600);
            assert_eq!(ticks.judge(at(step), tick(newest)), Verdict::Near, "step {step}");
            assert!(ticks.take(at(step), tick(newest), None));
        }
        // 7 + 7,500,000 * 600, a lap ahead.
        let count = (1u64 << 32) + 7 + 7_500_000 * 600;
        assert_eq!(ticks.stamp(tick(newest)), Instant::from_micros(count * 100_000));
    }

    #[test]
    fn what_did_not_come_of_the_last_64_is_told_in_percent() {
        let mut ticks = Ticks::new(tick(0), 10);
        assert_eq!(ticks.loss_percent(), 0);
        for number in (1..=40).filter(|number| number % 4 != 0) {
            ticks.take(at(u64::from(number)), tick(number), None);
        }
        // 39 is the newest: of 1 to 39 the nine 4, 8, ... 36 are missing.
        assert_eq!(ticks.loss_percent(), 9 * 100 / 39);
        ticks.take(at(50), tick(36), None);
        assert_eq!(ticks.loss_percent(), 8 * 100 / 39, "late, but it came");
    }
}
