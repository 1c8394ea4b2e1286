//! What was counted in one run of a row.

use std::time::Duration;

use crate::course::ThreadTime;

/// A row in which less of what is due arrives, or is heard, does less work than the others.
const ENOUGH: f64 = 0.995;

/// One run's figures.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    /// Clients times ticks: what everything is due for once.
    pub(crate) client_ticks: u64,
    /// Messages and bytes that each is due for.
    pub(crate) due: (u64, u64),
    /// How long the window was.
    pub(crate) time: Duration,
    /// The server's thread.
    pub(crate) server: ThreadTime,
    /// Processor time of the clients' thread, which is not part of the comparison.
    pub(crate) players: Duration,
    /// Blocks that it made.
    pub(crate) blocks: u64,
    /// The smaller messages that arrived.
    pub(crate) states: u64,
    /// All messages that arrived, and their bytes.
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    /// From one state to the next at a client: of 99 in 100, and of all.
    pub(crate) gaps: (Duration, Duration),
    /// Steps of the whole run.
    pub(crate) steps_sent: u64,
    pub(crate) steps_heard: u64,
}

impl Outcome {
    /// Microseconds of processor time per client and tick.
    pub(crate) fn micros(&self) -> f64 {
        self.server.busy.as_secs_f64() * 1e6 / self.client_ticks as f64
    }

    /// Blocks per client and tick.
    pub(crate) fn blocks_each(&self) -> f64 {
        self.blocks as f64 / self.client_ticks as f64
    }

    /// The share of a core that the server's thread took.
    pub(crate) fn share(&self) -> f64 {
        self.server.busy.as_secs_f64() / self.time.as_secs_f64()
    }

    /// The share of a core that all clients took.
    pub(crate) fn players_share(&self) -> f64 {
        self.players.as_secs_f64() / self.time.as_secs_f64()
    }

    /// The share of the time that it was kept waiting.
    pub(crate) fn kept_waiting(&self) -> f64 {
        self.server.waited.as_secs_f64() / self.time.as_secs_f64()
    }

    /// What arrived of the messages that were due.
    pub(crate) fn arrived_messages(&self) -> f64 {
        self.messages as f64 / (self.due.0 * self.client_ticks) as f64
    }

    /// What arrived of the bytes that were due.
    pub(crate) fn arrived_bytes(&self) -> f64 {
        self.bytes as f64 / (self.due.1 * self.client_ticks) as f64
    }

    /// Client-ticks whose smaller message did not come.
    pub(crate) fn missed(&self) -> u64 {
        self.client_ticks.saturating_sub(self.states)
    }

    /// What the server heard of the steps.
    pub(crate) fn heard(&self) -> f64 {
        self.steps_heard as f64 / self.steps_sent as f64
    }

    /// Why it does not count, if it does not.
    pub(crate) fn fault(&self) -> Option<String> {
        let percent = |what: &str, share: f64| {
            // Without any step sent the share is no number.
            let enough = share >= ENOUGH;
            (!enough).then(|| format!("{what} {:.1} %", share * 100.0))
        };
        percent("messages", self.arrived_messages())
            .or_else(|| percent("bytes", self.arrived_bytes()))
            .or_else(|| percent("steps heard", self.heard()))
            .or_else(|| percent("steps sent", self.steps_share()))
    }

    /// What was sent of the steps that are due while the window is open, at least.
    fn steps_share(&self) -> f64 {
        (self.steps_sent as f64 / self.client_ticks as f64).min(1.0)
    }
}
