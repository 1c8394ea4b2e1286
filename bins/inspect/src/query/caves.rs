//! Forgotten Caves: InfoRequest and Info (section 2).

use caves_link::time::Instant;
use caves_session::Random;
use caves_session::caves::InfoQuery;

use super::{Answer, Question};

/// The session crate's question.
pub(super) struct Caves(InfoQuery);

impl Caves {
    pub(super) fn new(random: &mut dyn Random, now: Instant) -> Self {
        Self(InfoQuery::new(random, now))
    }
}

impl Question for Caves {
    fn handle_datagram(&mut self, now: Instant, datagram: &[u8]) -> Option<Answer> {
        let info = self.0.handle_datagram(now, datagram)?;
        Some(Answer {
            name: info.name,
            map: None,
            players: info.players.into(),
            max_players: info.max_players.into(),
            round_trip: info.round_trip,
        })
    }

    fn poll_transmit(&mut self, now: Instant, random: u32, buf: &mut [u8]) -> Option<usize> {
        self.0.poll_transmit(now, random, buf)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.0.poll_timeout()
    }

    fn is_over(&self, now: Instant) -> bool {
        self.0.is_over(now)
    }
}
