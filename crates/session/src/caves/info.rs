//! Asking a server about itself without joining (types 18 and 19).

use std::time::Duration;

use caves_link::retry::Retry;
use caves_link::time::{Deadline, Instant};
use caves_wire::caves::{ClientType, InfoRequest, InfoView, Nonce, Tick, tag};

use super::RETRY;
use super::client::clean_text;
use crate::Random;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// What a server says about itself, as it may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    /// Its name.
    pub name: String,
    /// Its message of the day, as much as fits.
    pub motd: String,
    /// Players in the caves.
    pub players: u16,
    /// The most there can be.
    pub max_players: u16,
    /// Its present tick.
    pub tick: Tick,
    /// From the last request to the answer.
    pub round_trip: Duration,
}

/// One question, repeated until it is answered or given up.
#[derive(Debug)]
pub struct InfoQuery {
    nonce: Nonce,
    retry: Retry,
    until: Instant,
    asked: Instant,
}

impl InfoQuery {
    /// A question that is asked at once.
    pub fn new(random: &mut dyn Random, now: Instant) -> Self {
        let mut retry = Retry::new(RETRY);
        retry.ask(now);
        Self { nonce: Nonce(random.next_u64()), retry, until: now + PATIENCE, asked: now }
    }

    /// Takes what came from the server; an answer ends the question.
    pub fn handle_datagram(&self, now: Instant, datagram: &[u8]) -> Option<ServerInfo> {
        let info = InfoView::parse(datagram).ok().filter(|info| info.nonce() == self.nonce)?;
        Some(ServerInfo {
            name: clean_text(info.meta().values(tag::SERVER_NAME)),
            motd: clean_text(info.meta().values(tag::MOTD)),
            players: info.players(),
            max_players: info.max_players(),
            tick: info.tick(),
            round_trip: now.saturating_since(self.asked),
        })
    }

    /// Writes the request when it is due.
    pub fn poll_transmit(&mut self, now: Instant, random: u32, buf: &mut [u8]) -> Option<usize> {
        if !self.retry.due(now) {
            return None;
        }
        self.retry.sent(now, random);
        self.asked = now;
        InfoRequest { client_type: ClientType::OFFICIAL, nonce: self.nonce }.emit(buf).ok()
    }

    /// When to ask again, or to give up.
    pub fn poll_timeout(&self) -> Option<Instant> {
        Deadline::earliest([self.retry.deadline(), Some(self.until)])
    }

    /// Whether nobody answered.
    pub fn is_over(&self, now: Instant) -> bool {
        now >= self.until
    }
}
