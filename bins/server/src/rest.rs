//! How long the loop rests between two looks at its sockets.

use std::time::Duration;

/// With so many players to be woken by each datagram costs as much as to read it, so the loop rests ...
pub(crate) const CROWD: usize = 50;
/// ... at least so long ...
const SHORTEST: Duration = Duration::from_millis(1);
/// ... and no longer, which is nothing beside a tick: a ping is longer by half of it.
const LONGEST: Duration = Duration::from_millis(8);
/// Of more than so many datagrams in one look a small buffer of the kernel would lose some: Linux gives
/// room for about 270 by default.
const MANY: usize = 128;
/// Of less than so many there may be twice as many the next time.
const FEW: usize = 48;

/// A rest that is longer when little comes and shorter when much does.
#[derive(Debug)]
pub(crate) struct Rest {
    length: Duration,
    /// Whether the look that comes is after a whole one: what others find says nothing.
    was_whole: bool,
}

impl Rest {
    pub(crate) const fn new() -> Self {
        Self { length: SHORTEST, was_whole: false }
    }

    /// A look found so many datagrams.
    pub(crate) fn note(&mut self, datagrams: usize) {
        if !std::mem::take(&mut self.was_whole) {
            return;
        }
        if datagrams > MANY {
            self.length = (self.length / 2).max(SHORTEST);
        } else if datagrams < FEW {
            self.length = (self.length * 2).min(LONGEST);
        }
    }

    /// How long before the next look; the loop has `until` its next deadline.
    pub(crate) fn begin(&mut self, until: Duration, players: usize) -> Duration {
        if players < CROWD {
            return Duration::ZERO;
        }
        self.was_whole = self.length <= until;
        self.length.min(until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    /// The rest after a second in which `rate` datagrams come in each millisecond.
    fn settled(rate: usize) -> u128 {
        let (mut rest, mut left) = (Rest::new(), 1000);
        while left > 0 {
            let millis = rest.begin(HOUR, CROWD).as_millis();
            rest.note(rate * millis as usize);
            left -= millis.min(left);
        }
        rest.length.as_millis()
    }

    #[test]
    fn it_rests_so_long_that_a_look_finds_a_moderate_number() {
        assert_eq!([settled(0), settled(1), settled(11)], [8, 8, 8], "88 in a look");
        assert_eq!(settled(20), 4, "8 ms would bring 160, 2 ms 40");
        assert_eq!([settled(100), settled(1000)], [1, 1]);
    }

    #[test]
    fn it_neither_rests_for_a_few_players_nor_past_a_deadline() {
        assert_eq!(Rest::new().begin(HOUR, CROWD - 1), Duration::ZERO);
        let until = Duration::from_micros(10);
        let mut rest = Rest::new();
        assert_eq!(rest.begin(until, CROWD), until);
        rest.note(0);
        assert_eq!(rest.length, SHORTEST, "nothing comes in so short a time");
    }
}
