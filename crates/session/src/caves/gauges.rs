//! How full tables and queues are, for metrics and for tests of their bounds.

/// The server's tables and queues, in entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServerGauges {
    /// Living sessions.
    pub sessions: usize,
    /// Tokens that open one: as many as there are sessions.
    pub tokens: usize,
    /// Addresses that have one: as many as there are sessions.
    pub peers: usize,
    /// Names that are taken.
    pub names: usize,
    /// Registered clients that are here.
    pub accounts: usize,
    /// Timers, one a session at most.
    pub timers: usize,
    /// Sessions that may have an event to send.
    pub ready: usize,
    /// Small answers that wait to be sent, 1024 at most.
    pub answers: usize,
    /// Sessions to which a Leave is being said, 65,536 at most.
    pub goodbyes: usize,
    /// Cookies that opened a session, 32,768 at most.
    pub used_nonces: usize,
    /// Registered clients whose session has ended.
    pub accounts_left: usize,
    /// What waits for [`Server::poll_event`](super::Server::poll_event).
    pub news: usize,
    /// Events that wait in the fullest session, 256 at most (section 2, events).
    pub events_waiting: usize,
    /// Events unacknowledged in the fullest session, 8 at most (section 2, events).
    pub events_in_flight: usize,
    /// Actions that wait in the fullest session, 2 at most (R19).
    pub actions_waiting: usize,
}

/// A client's tables and queues, in entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientGauges {
    /// What waits for [`Client::poll_event`](super::Client::poll_event), texts apart.
    pub news: usize,
    /// Chunks whose version is remembered, 4096 at most.
    pub chunks_held: usize,
    /// Actions that wait to be sent, 4 at most.
    pub actions_waiting: usize,
    /// Actions that were sent and are not covered, 16 at most.
    pub actions_in_flight: usize,
    /// Acknowledgements that wait to be sent, 64 at most.
    pub acknowledgements: usize,
    /// Open questions about entities, 8 at most.
    pub queries: usize,
    /// Pings without an answer, 4 at most.
    pub pings: usize,
    /// Texts kept until those before them come, 256 at most.
    pub texts_kept: usize,
    /// Ticks that are being put together, 4 at most.
    pub ticks_open: usize,
}
