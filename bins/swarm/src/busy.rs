//! How busy a thread was: what a load generator cannot keep up with looks like a slow server.

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use serde::Serialize;

/// A thread that works more than this share of a core tells its own delays as the server's.
pub(crate) const TOO_BUSY: f64 = 0.7;
/// Over which time a thread's busiest moment is measured.
const SPAN: Duration = Duration::from_secs(1);

/// Measures the thread that made it.
#[derive(Debug)]
pub(crate) struct Meter {
    start: (Instant, Duration),
    span: (Instant, Duration),
    busiest: f64,
}

/// A thread's share of one core.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Busy {
    pub(crate) thread: String,
    /// Over its whole life.
    pub(crate) share: f64,
    /// In its busiest second.
    pub(crate) busiest_second: f64,
}

impl Meter {
    pub(crate) fn start() -> Self {
        let now = (Instant::now(), processor_time());
        Self { start: now, span: now, busiest: 0.0 }
    }

    /// To be called now and then; how busy the last whole second was, when one is over.
    pub(crate) fn look(&mut self) -> Option<f64> {
        if self.span.0.elapsed() < SPAN {
            return None;
        }
        let share = share_since(self.span);
        self.busiest = self.busiest.max(share);
        self.span = (Instant::now(), processor_time());
        Some(share)
    }

    pub(crate) fn finish(self, thread: String) -> Busy {
        let share = share_since(self.start);
        Busy { thread, share, busiest_second: self.busiest.max(share) }
    }
}

impl Busy {
    pub(crate) fn is_too_busy(&self) -> bool {
        self.busiest_second > TOO_BUSY
    }
}

fn share_since((wall, processor): (Instant, Duration)) -> f64 {
    let spent = processor_time().saturating_sub(processor);
    spent.as_secs_f64() / wall.elapsed().as_secs_f64().max(1e-6)
}

/// Of the calling thread; zero on a system that does not tell.
fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_works_uses_processor_time_and_who_sleeps_does_not() {
        let works = processor_time();
        let mut sum = 0u64;
        while processor_time() - works < Duration::from_millis(20) {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        let meter = Meter::start();
        let slept = processor_time();
        std::thread::sleep(Duration::from_millis(200));
        assert!(processor_time() - slept < Duration::from_millis(100));
        assert!(meter.finish("x".to_owned()).share < 0.5);
    }
}
