//! The time until a server stops, and when players are told of it.

use std::time::Duration;

use caves_link::time::Instant;

/// Everybody is told at the start, and when so many seconds are left.
const MARKS: [u64; 8] = [60, 30, 10, 5, 4, 3, 2, 1];
/// A stop farther away than a day is for another tool.
pub(crate) const LONGEST: u64 = 86_400;

#[derive(Debug, Clone)]
pub(crate) struct Countdown {
    ends: Instant,
    reason: String,
    /// Seconds that were left when everybody was told last.
    told: Option<u64>,
}

impl Countdown {
    pub(crate) fn new(now: Instant, seconds: u64, reason: String) -> Self {
        Self { ends: now + Duration::from_secs(seconds.min(LONGEST)), reason, told: None }
    }

    pub(crate) const fn reason(&self) -> &str {
        self.reason.as_str()
    }

    /// Whole seconds that are left, a begun one counted.
    pub(crate) fn left(&self, now: Instant) -> u64 {
        self.ends.saturating_since(now).as_micros().div_ceil(1_000_000) as u64
    }

    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.ends <= now
    }

    /// What everybody should be told now. Of several that are overdue only the last is: it is true.
    pub(crate) fn poll_notice(&mut self, now: Instant) -> Option<String> {
        let left = self.left(now);
        if self.is_over(now) || !self.is_due(left) {
            return None;
        }
        self.told = Some(left);
        let because =
            if self.reason.is_empty() { String::new() } else { format!(": {}", self.reason) };
        Some(format!("The server stops in {}{because}", in_words(left)))
    }

    /// When there is something to be told, or all is over.
    pub(crate) fn poll_timeout(&self) -> Instant {
        let Some(told) = self.told else { return Instant::ZERO };
        let next = MARKS.into_iter().find(|mark| *mark < told).unwrap_or(0);
        self.ends.checked_sub(Duration::from_secs(next)).unwrap_or(Instant::ZERO)
    }

    fn is_due(&self, left: u64) -> bool {
        self.told.is_none_or(|told| MARKS.iter().any(|mark| *mark < told && left <= *mark))
    }
}

/// "1 second", "90 seconds", "5 minutes".
pub(crate) fn in_words(seconds: u64) -> String {
    match seconds {
        1 => "1 second".to_owned(),
        120.. if seconds.is_multiple_of(60) => format!("{} minutes", seconds / 60),
        _ => format!("{seconds} seconds"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told when, by seconds since the start, when it is asked at its own timeouts.
    fn told(seconds: u64) -> Vec<(u64, String)> {
        let start = Instant::from_secs(1000);
        let mut countdown = Countdown::new(start, seconds, "new version".into());
        let (mut now, mut told) = (start, Vec::new());
        while !countdown.is_over(now) {
            if let Some(text) = countdown.poll_notice(now) {
                told.push((now.saturating_since(start).as_secs(), text));
            }
            assert_eq!(countdown.poll_notice(now), None, "told once");
            let next = countdown.poll_timeout();
            assert!(next > now, "it would turn for ever");
            now = next;
        }
        assert_eq!(now.saturating_since(start), Duration::from_secs(seconds));
        told
    }

    #[test]
    fn everybody_is_told_at_the_start_and_at_the_marks_below_it() {
        let at = |of: Vec<(u64, String)>| of.into_iter().map(|(at, _)| at).collect::<Vec<_>>();
        assert_eq!(at(told(90)), [0, 30, 60, 80, 85, 86, 87, 88, 89]);
        assert_eq!(at(told(30)), [0, 20, 25, 26, 27, 28, 29]);
        assert_eq!(at(told(7)), [0, 2, 3, 4, 5, 6]);
        assert_eq!(at(told(1)), [0]);
        assert_eq!(told(0), []);
        let texts: Vec<_> = told(300).into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts[0], "The server stops in 5 minutes: new version");
        assert_eq!(texts[1], "The server stops in 60 seconds: new version");
        assert_eq!(texts.last().unwrap(), "The server stops in 1 second: new version");
    }

    #[test]
    fn what_is_overdue_is_not_told_late() {
        let start = Instant::from_secs(5);
        let mut countdown = Countdown::new(start, 60, String::new());
        assert_eq!(countdown.poll_notice(start).as_deref(), Some("The server stops in 60 seconds"));
        let later = start + Duration::from_millis(56_500);
        assert_eq!(countdown.poll_notice(later).as_deref(), Some("The server stops in 4 seconds"));
        assert_eq!(countdown.poll_timeout(), start + Duration::from_secs(57));
        assert_eq!(countdown.poll_notice(start + Duration::from_secs(60)), None, "over");
    }
}
