//! The one place that reads the system's clocks.

use std::time::{SystemTime, UNIX_EPOCH};

use caves_link::time::Instant;

/// A monotonic clock that starts at zero.
///
/// ```
/// let clock = caves_server::Clock::start();
/// assert!(clock.now() <= clock.now());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Clock(std::time::Instant);

impl Clock {
    /// A clock whose origin is now.
    pub fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// The present moment.
    pub fn now(&self) -> Instant {
        Instant::ZERO + self.0.elapsed()
    }
}

/// Milliseconds since 1970, 0 on a machine whose clock says it is earlier.
pub(crate) fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
