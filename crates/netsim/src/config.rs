//! What a link does to datagrams.
//!
//! ```
//! use caves_netsim::{Chance, LinkConfig};
//! use std::time::Duration;
//!
//! let config = LinkConfig {
//!     delay: Duration::from_millis(40),
//!     loss: Chance::percent(5),
//!     ..LinkConfig::PERFECT
//! };
//! assert_eq!(config.loss.to_string(), "5%");
//! assert_eq!("2.5".parse(), Ok(Chance::from_per_10_000(250)));
//! ```

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

/// How often something happens, in parts of 10,000.
///
/// At most all of them; its text is in percent with at most two decimals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chance(u16);

impl Chance {
    /// Does not happen.
    pub const NEVER: Self = Self(0);

    /// Happens each time.
    pub const ALWAYS: Self = Self(10_000);

    /// So many of 100; more than 100 are 100.
    pub const fn percent(percent: u32) -> Self {
        Self::from_per_10_000(percent.saturating_mul(100))
    }

    /// So many of 10,000; more than 10,000 are 10,000.
    pub const fn from_per_10_000(parts: u32) -> Self {
        if parts > 10_000 { Self::ALWAYS } else { Self(parts as u16) }
    }

    /// So many of 10,000.
    pub const fn per_10_000(self) -> u32 {
        self.0 as u32
    }
}

impl fmt::Display for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 100, self.0 % 100);
        match rest {
            0 => write!(f, "{whole}%"),
            rest if rest % 10 == 0 => write!(f, "{whole}.{}%", rest / 10),
            rest => write!(f, "{whole}.{rest:02}%"),
        }
    }
}

/// The text is no percentage from 0 to 100 with at most two decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseChanceError;

impl fmt::Display for ParseChanceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a percentage from 0 to 100 with at most two decimals")
    }
}

impl std::error::Error for ParseChanceError {}

impl FromStr for Chance {
    type Err = ParseChanceError;

    /// Reads a percentage as `20`, `0.5` or `0.25`, with or without `%` behind it.
    fn from_str(text: &str) -> Result<Self, ParseChanceError> {
        let text = text.strip_suffix('%').unwrap_or(text);
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let hundredths = match fraction.len() {
            1 => digits(fraction)? * 10,
            2 => digits(fraction)?,
            _ => return Err(ParseChanceError),
        };
        let parts = digits(whole)?.saturating_mul(100).saturating_add(hundredths);
        if parts > 10_000 {
            return Err(ParseChanceError);
        }
        Ok(Self::from_per_10_000(parts))
    }
}

/// A number of digits alone; `str::parse` would take a sign, too.
fn digits(text: &str) -> Result<u32, ParseChanceError> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ParseChanceError);
    }
    text.parse().map_err(|_| ParseChanceError)
}

/// Loss in runs, after Gilbert and Elliott: a link is in a good or a bad state, and each datagram
/// may change that before it is sent.
///
/// In the good state [`LinkConfig::loss`] holds. A bad state lasts `10,000 / leave` datagrams on
/// average, and the link is in it for `enter / (enter + leave)` of the datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// From good to bad.
    pub enter: Chance,
    /// From bad to good.
    pub leave: Chance,
    /// Loss in the bad state.
    pub loss: Chance,
}

impl Burst {
    /// Everything is lost in the bad state, which lasts `mean_run` datagrams on average (at least
    /// 1) and comes so often that `rate` of all datagrams are lost.
    ///
    /// As exact as parts of 10,000 allow. Runs of 1 cannot come more often than every second time,
    /// so a higher rate needs longer runs.
    pub const fn lasting(rate: Chance, mean_run: u32) -> Self {
        let mean_run = if mean_run == 0 { 1 } else { mean_run };
        let kept = Chance::ALWAYS.per_10_000() - rate.per_10_000();
        if kept == 0 {
            return Self { enter: Chance::ALWAYS, leave: Chance::NEVER, loss: Chance::ALWAYS };
        }
        let leave = Chance::ALWAYS.per_10_000() / mean_run;
        let enter = leave * rate.per_10_000() / kept;
        Self {
            enter: Chance::from_per_10_000(enter),
            leave: Chance::from_per_10_000(leave),
            loss: Chance::ALWAYS,
        }
    }
}

/// What a link does to the datagrams of one direction.
///
/// Each kind of damage draws from its own generator: another delay does not change which datagrams
/// are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// The time that every datagram takes.
    pub delay: Duration,
    /// Up to so much longer, drawn evenly from 0 to this, inclusive. More than the distance
    /// between two datagrams can swap them; with 0 the order is kept.
    pub jitter: Duration,
    /// Loss of single datagrams, each on its own.
    pub loss: Chance,
    /// Loss in runs, in addition.
    pub burst: Option<Burst>,
    /// A second copy arrives, with a delay of its own. Copies are not copied again.
    pub duplicate: Chance,
    /// A datagram is held back by [`reorder_by`](Self::reorder_by), so that later ones pass it.
    pub reorder: Chance,
    /// The time that a datagram is held back.
    pub reorder_by: Duration,
    /// A copy is damaged on the way, see [`Link::set_corruption`](crate::Link::set_corruption).
    pub corrupt: Chance,
    /// Bytes per second; a datagram waits until those before it are through.
    pub rate: Option<NonZeroU32>,
    /// Bytes of the largest datagram that passes.
    pub mtu: Option<usize>,
    /// Datagrams on the way at once; what comes on top is dropped.
    pub max_queue: usize,
    /// The line is cut: all that is sent is lost. What is on the way already still arrives.
    pub down: bool,
}

/// [`LinkConfig::max_queue`] of the presets.
pub const MAX_QUEUE: usize = 4096;

impl LinkConfig {
    /// Everything arrives at once, in order.
    pub const PERFECT: Self = Self {
        delay: Duration::ZERO,
        jitter: Duration::ZERO,
        loss: Chance::NEVER,
        burst: None,
        duplicate: Chance::NEVER,
        reorder: Chance::NEVER,
        reorder_by: Duration::ZERO,
        corrupt: Chance::NEVER,
        rate: None,
        mtu: None,
        max_queue: MAX_QUEUE,
        down: false,
    };

    /// One cable: half a millisecond.
    pub const LAN: Self = Self {
        delay: Duration::from_micros(400),
        jitter: Duration::from_micros(200),
        ..Self::PERFECT
    };

    /// A good line to the next country: 25 to 30 ms, one in a thousand lost.
    pub const WAN: Self = Self {
        delay: Duration::from_millis(25),
        jitter: Duration::from_millis(5),
        loss: Chance::from_per_10_000(10),
        mtu: Some(1472),
        ..Self::PERFECT
    };

    /// One in five is lost, one in twenty doubled; 75 to 95 ms.
    pub const LOSSY_20: Self = Self {
        delay: Duration::from_millis(75),
        jitter: Duration::from_millis(20),
        loss: Chance::percent(20),
        duplicate: Chance::percent(5),
        ..Self::PERFECT
    };

    /// As [`LOSSY_20`](Self::LOSSY_20), but lost in runs of eight.
    pub const BURSTY_20: Self = Self {
        loss: Chance::NEVER,
        burst: Some(Burst::lasting(Chance::percent(20), 8)),
        ..Self::LOSSY_20
    };

    /// A telephone in a train: 60 to 180 ms, runs of loss, datagrams held back.
    pub const MOBILE: Self = Self {
        delay: Duration::from_millis(60),
        jitter: Duration::from_millis(120),
        loss: Chance::percent(1),
        burst: Some(Burst::lasting(Chance::percent(4), 12)),
        reorder: Chance::percent(3),
        reorder_by: Duration::from_millis(150),
        rate: NonZeroU32::new(250_000),
        mtu: Some(1400),
        ..Self::PERFECT
    };

    /// Far away: 300 to 320 ms, little loss.
    pub const SATELLITE: Self = Self {
        delay: Duration::from_millis(300),
        jitter: Duration::from_millis(20),
        loss: Chance::percent(1),
        ..Self::PERFECT
    };

    /// Everything at once, damage included.
    pub const CHAOS: Self = Self {
        delay: Duration::from_millis(20),
        jitter: Duration::from_millis(200),
        loss: Chance::percent(10),
        burst: Some(Burst::lasting(Chance::percent(10), 6)),
        duplicate: Chance::percent(20),
        reorder: Chance::percent(10),
        reorder_by: Duration::from_millis(400),
        corrupt: Chance::percent(5),
        ..Self::PERFECT
    };
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self::PERFECT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_read_and_shown() {
        for (text, parts, shown) in [
            ("0", 0, "0%"),
            ("20", 2000, "20%"),
            ("0.5", 50, "0.5%"),
            ("0.05", 5, "0.05%"),
            ("12.34%", 1234, "12.34%"),
            ("100", 10_000, "100%"),
            ("100.00", 10_000, "100%"),
        ] {
            let chance: Chance = text.parse().unwrap();
            assert_eq!(chance.per_10_000(), parts, "{text}");
            assert_eq!(chance.to_string(), shown);
        }
    }

    #[test]
    fn what_is_no_percentage_is_refused() {
        for text in [
            "",
            "%",
            ".",
            "5.",
            ".5",
            "-1",
            "+1",
            "1.-2",
            "101",
            "100.01",
            "0.005",
            "1e2",
            "4294967297",
            " 5",
        ] {
            assert_eq!(text.parse::<Chance>(), Err(ParseChanceError), "{text:?}");
        }
    }

    #[test]
    fn a_chance_is_at_most_always() {
        assert_eq!(Chance::percent(101), Chance::ALWAYS);
        assert_eq!(Chance::percent(u32::MAX), Chance::ALWAYS);
        assert_eq!(Chance::from_per_10_000(10_001), Chance::ALWAYS);
    }

    #[test]
    fn a_burst_is_made_from_its_rate_and_length() {
        // 1 of 5 in the bad state: 0.05 / (0.05 + 0.2).
        let burst = Burst::lasting(Chance::percent(20), 5);
        assert_eq!(burst.leave, Chance::percent(20));
        assert_eq!(burst.enter, Chance::percent(5));
        let all = Burst::lasting(Chance::ALWAYS, 5);
        assert_eq!((all.enter, all.leave), (Chance::ALWAYS, Chance::NEVER));
        assert_eq!(Burst::lasting(Chance::NEVER, 0).enter, Chance::NEVER);
        assert_eq!(Burst::lasting(Chance::from_per_10_000(9_999), 1).enter, Chance::ALWAYS);
    }
}
