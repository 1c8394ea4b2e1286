//! One question, asked again until it is answered.
//!
//! ```text
//!            ask          due                      sent: due again after a wait
//!   idle ----------> due ------> (on the wire) ---------------------------------.
//!    ^                ^                                                         |
//!    |                '------------------------ the wait is over <--------------'
//!    '--- stop: it was answered, or nobody wants to know any more
//!
//!   uniform    |--200..300--|--200..300--|--200..300--|        peers do not fall into step
//!   doubling   |-250-|--500--|---1000---|------2000------|     up to a cap
//! ```
//!
//! The block sends nothing and has no clock: it says when, and is told that it was done. So a
//! datagram that could not be written is simply still due.
//!
//! ```
//! use caves_link::retry::{Retry, RetryPolicy};
//! use caves_link::time::Instant;
//! use core::time::Duration;
//!
//! let policy = RetryPolicy::doubling(Duration::from_millis(250), Duration::from_secs(4));
//! let mut hello = Retry::new(policy);
//! let mut now = Instant::ZERO;
//! hello.ask(now);
//! while hello.attempts() < 3 {
//!     assert!(hello.due(now));
//!     hello.sent(now, 0);
//!     now = hello.deadline().unwrap();
//! }
//! assert_eq!(now, Instant::from_millis(250 + 500 + 1000));
//! hello.stop();
//! assert!(!hello.due(now));
//! ```

use crate::time::{Deadline, Instant, micros};
use core::time::Duration;

/// How long to wait between two attempts.
///
/// A wait is at least a microsecond, so that an attempt is never due again in the moment it was
/// made, whatever the fields say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The shortest first wait.
    pub min: Duration,
    /// The longest first wait, inclusive; taken as `min` if below it.
    pub max: Duration,
    /// With a cap the wait doubles after each attempt, and never exceeds the cap.
    pub cap: Option<Duration>,
}

impl RetryPolicy {
    /// Each wait drawn anew from `min..=max`, so that peers do not fall into step.
    pub const fn uniform(min: Duration, max: Duration) -> Self {
        Self { min, max, cap: None }
    }

    /// `first`, then twice as long after each attempt, up to `cap`.
    pub const fn doubling(first: Duration, cap: Duration) -> Self {
        Self { min: first, max: first, cap: Some(cap) }
    }

    /// The wait after one more attempt when `before` attempts were made before it.
    ///
    /// `random` is uniform over its whole range; it picks the place between `min` and `max`.
    pub fn wait(&self, before: u32, random: u32) -> Duration {
        let (min, max) = (micros(self.min), micros(self.max));
        let span = u128::from(max.saturating_sub(min)) + 1;
        // `random` is below 2^32, so the quotient is below the span.
        let drawn = min + ((u128::from(random) * span) >> 32) as u64;
        let wait = match self.cap {
            Some(cap) => doubled(drawn, before).min(micros(cap)),
            None => drawn,
        };
        Duration::from_micros(wait.max(1))
    }
}

/// One question: idle, or asked and due again at some moment.
///
/// The user sends it when it is [`due`](Self::due), reports that with [`sent`](Self::sent), and
/// calls [`stop`](Self::stop) on the answer. How long to go on in vain is the user's decision.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    policy: RetryPolicy,
    next: Deadline,
    attempts: u32,
}

impl Retry {
    /// Idle, nothing asked yet.
    pub const fn new(policy: RetryPolicy) -> Self {
        Self { policy, next: Deadline::NEVER, attempts: 0 }
    }

    /// Starts a new question, due at once; an earlier one is forgotten with its attempts.
    pub const fn ask(&mut self, now: Instant) {
        self.attempts = 0;
        self.next = Deadline::at(now);
    }

    /// Whether it is to be sent now.
    pub fn due(&self, now: Instant) -> bool {
        self.next.is_due(now)
    }

    /// It was sent at `now`; the next attempt is due after a wait picked by `random`.
    ///
    /// Without effect while idle: an answer may have come in between.
    pub fn sent(&mut self, now: Instant, random: u32) {
        if self.is_active() {
            self.next = Deadline::at(now + self.policy.wait(self.attempts, random));
            self.attempts = self.attempts.saturating_add(1);
        }
    }

    /// It was answered, or is not of interest any more.
    ///
    /// The number of attempts stays readable until the next [`ask`](Self::ask).
    pub const fn stop(&mut self) {
        self.next.clear();
    }

    /// When it is due next, `None` while idle.
    pub const fn deadline(&self) -> Option<Instant> {
        self.next.get()
    }

    /// How often it was sent since it was asked.
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Whether it was asked and not stopped.
    pub const fn is_active(&self) -> bool {
        self.next.get().is_some()
    }
}

/// `wait` times two to the power of `times`, at most the largest count.
fn doubled(wait: u64, times: u32) -> u64 {
    if wait == 0 {
        return 0;
    }
    if times > wait.leading_zeros() { u64::MAX } else { wait << times }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn an_unanswered_question_is_due_again_within_200_to_300_ms() {
        let mut retry = Retry::new(RetryPolicy::uniform(ms(200), ms(300)));
        let start = Instant::from_secs(5);
        assert!(!retry.due(start));
        retry.ask(start);
        assert!(retry.due(start));
        retry.sent(start, 0);
        assert_eq!(retry.deadline(), Some(start + ms(200)));
        retry.sent(start, u32::MAX);
        assert_eq!(retry.deadline(), Some(start + ms(300)));
        retry.sent(start, 1 << 31);
        assert_eq!(retry.deadline(), Some(start + ms(250)));
        assert_eq!(retry.attempts(), 3);
        assert!(!retry.due(Instant::from_micros(5_249_999)));
        assert!(retry.due(Instant::from_micros(5_250_000)));
    }

    #[test]
    fn waits_are_drawn_evenly() {
        let policy = RetryPolicy::uniform(ms(200), ms(300));
        // The four quarters of the random range fall into the four quarters of the span.
        for quarter in 0..4u32 {
            let wait = policy.wait(0, quarter * (1 << 30) + (1 << 29));
            let middle = 212_500 + 25_000 * u64::from(quarter);
            assert_eq!(wait.as_micros() as u64, middle, "quarter {quarter}");
        }
    }

    #[test]
    fn doubling_stops_at_the_cap() {
        let mut retry = Retry::new(RetryPolicy::doubling(ms(250), ms(4000)));
        retry.ask(Instant::ZERO);
        for expected in [250, 500, 1000, 2000, 4000, 4000, 4000] {
            retry.sent(Instant::ZERO, 77);
            assert_eq!(retry.deadline(), Some(Instant::from_millis(expected)));
        }
        for _ in 0..200 {
            retry.sent(Instant::ZERO, 77);
        }
        assert_eq!(retry.deadline(), Some(Instant::from_millis(4000)));
    }

    #[test]
    fn a_new_question_starts_with_the_first_wait() {
        let mut retry = Retry::new(RetryPolicy::doubling(ms(250), ms(4000)));
        retry.ask(Instant::ZERO);
        retry.sent(Instant::ZERO, 0);
        retry.sent(Instant::ZERO, 0);
        retry.ask(Instant::from_secs(9));
        assert!(retry.due(Instant::from_secs(9)));
        assert_eq!(retry.attempts(), 0);
        retry.sent(Instant::from_secs(9), 0);
        assert_eq!(retry.deadline(), Some(Instant::from_millis(9250)));
    }

    #[test]
    fn a_stopped_question_stays_silent() {
        let mut retry = Retry::new(RetryPolicy::uniform(ms(1), ms(2)));
        retry.ask(Instant::ZERO);
        retry.sent(Instant::ZERO, 0);
        retry.stop();
        retry.sent(Instant::ZERO, 0);
        assert!(!retry.is_active());
        assert_eq!(retry.deadline(), None);
        assert!(!retry.due(Instant::from_micros(u64::MAX)));
        assert_eq!(retry.attempts(), 1);
    }

    #[test]
    fn odd_policies_neither_spin_nor_overflow() {
        let zero = RetryPolicy::uniform(Duration::ZERO, Duration::ZERO);
        assert_eq!(zero.wait(0, u32::MAX), Duration::from_micros(1));
        let swapped = RetryPolicy::uniform(ms(300), ms(200));
        assert_eq!(swapped.wait(0, u32::MAX), ms(300));
        let endless = RetryPolicy::uniform(Duration::ZERO, Duration::MAX);
        assert!(endless.wait(0, u32::MAX) <= Duration::from_micros(u64::MAX));
        let vast = RetryPolicy { min: ms(1), max: Duration::MAX, cap: Some(Duration::MAX) };
        assert_eq!(vast.wait(u32::MAX, u32::MAX), Duration::from_micros(u64::MAX));
        // 2^17 microseconds doubled 47 times are 2^64, one more than there are.
        let edge = RetryPolicy::doubling(Duration::from_micros(1 << 17), Duration::MAX);
        assert_eq!(edge.wait(46, 0), Duration::from_micros(1 << 63));
        assert_eq!(edge.wait(47, 0), Duration::from_micros(u64::MAX));
        let none = RetryPolicy::doubling(Duration::ZERO, ms(1));
        assert_eq!(none.wait(70, 0), Duration::from_micros(1));
    }

    /// What a question should be: when it is due, if it is asked, and how often it was sent.
    #[derive(Default)]
    struct Model {
        due: Option<u64>,
        attempts: u32,
    }

    proptest! {
        #[test]
        fn agrees_with_a_model_of_two_numbers(
            doubles in any::<bool>(),
            ops in prop::collection::vec((0u32..5, 0u64..400, any::<u32>()), 1..120),
        ) {
            let policy = if doubles {
                RetryPolicy::doubling(ms(40), ms(300))
            } else {
                RetryPolicy::uniform(ms(200), ms(300))
            };
            let (mut retry, mut model, mut now) = (Retry::new(policy), Model::default(), 0);
            for (op, pause, random) in ops {
                now += pause * 1000;
                let moment = Instant::from_micros(now);
                match op {
                    0 => {
                        retry.ask(moment);
                        model = Model { due: Some(now), attempts: 0 };
                    }
                    1 => {
                        retry.stop();
                        model.due = None;
                    }
                    _ => {
                        retry.sent(moment, random);
                        if model.due.is_some() {
                            // 40, 80, 160 and then the cap; or 100,001 waits from 200 ms on.
                            let wait = match model.attempts {
                                n if doubles => [40_000, 80_000, 160_000, 300_000][n.min(3) as usize],
                                _ => 200_000 + ((u64::from(random) * 100_001) >> 32),
                            };
                            model = Model { due: Some(now + wait), attempts: model.attempts + 1 };
                        }
                    }
                }
                prop_assert_eq!(retry.deadline(), model.due.map(Instant::from_micros));
                prop_assert_eq!(retry.due(moment), model.due.is_some_and(|due| due <= now));
                prop_assert_eq!(retry.is_active(), model.due.is_some());
                prop_assert_eq!(retry.attempts(), model.attempts);
            }
        }

        #[test]
        fn every_wait_lies_within_the_policy(
            min in 1u64..1_000_000, more in 0u64..1_000_000, cap in prop::option::of(1u64..10_000_000),
            before in 0u32..40, random in any::<u32>(),
        ) {
            let policy = RetryPolicy {
                min: Duration::from_micros(min),
                max: Duration::from_micros(min + more),
                cap: cap.map(Duration::from_micros),
            };
            let wait = policy.wait(before, random).as_micros();
            // The same in wide arithmetic: a factor of 2^before, then the cap.
            let factor = if cap.is_some() { 1u128 << before } else { 1 };
            let limit = cap.map_or(u128::MAX, u128::from);
            prop_assert!(wait >= (u128::from(min) * factor).min(limit));
            prop_assert!(wait <= (u128::from(min + more) * factor).min(limit));
        }
    }
}
