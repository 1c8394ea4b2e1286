//! One attempt to join: Hello until a Challenge, Join until a Welcome (section 2, attempt).

use std::time::Duration;

use caves_link::retry::{Retry, RetryPolicy};
use caves_link::time::{Deadline, Instant};
use caves_wire::EmitError;
use caves_wire::caves::{ClientType, Features, Hello, Join, Nonce, Token, tag};
use caves_wire::tlv::TlvWriter;

use super::RETRY;

/// Without a Welcome by then, a new attempt begins.
const ATTEMPT: Duration = Duration::from_secs(5);
/// How a client whose server fell silent asks: gently, it may be down for long (recovery).
pub(super) const RECOVERY: RetryPolicy =
    RetryPolicy::doubling(Duration::from_millis(250), Duration::from_secs(4));

/// What a Join asks for.
#[derive(Debug, Clone)]
pub(super) struct Wish {
    pub(super) client_type: ClientType,
    pub(super) name: Option<String>,
    pub(super) features: Features,
    pub(super) token: Option<Token>,
}

/// One nonce, one cookie, one Join.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) nonce: Nonce,
    until: Instant,
    /// Repeated byte for byte; empty before the Challenge.
    join: Vec<u8>,
    /// Of the Hello before the Challenge, of the Join after it.
    retry: Retry,
}

impl Attempt {
    pub(super) fn new(now: Instant, nonce: Nonce, hello: Retry) -> Self {
        Self { nonce, until: now + ATTEMPT, join: Vec::new(), retry: hello }
    }

    /// Takes the first Challenge of this attempt.
    pub(super) fn challenge(
        &mut self,
        now: Instant,
        cookie: [u8; 16],
        wish: &Wish,
    ) -> Result<bool, EmitError> {
        if self.has_joined() {
            return Ok(false);
        }
        let mut block = [0; 128];
        let mut tlv = TlvWriter::new(&mut block);
        if let Some(name) = &wish.name {
            tlv.put(tag::NAME, name.as_bytes())?;
        }
        tlv.put(tag::FEATURES, &wish.features.0.to_le_bytes())?;
        if let Some(token) = wish.token {
            tlv.put(tag::TOKEN, &token.0.to_le_bytes())?;
        }
        let client_type = wish.client_type;
        let join = Join { client_type, nonce: self.nonce, cookie, meta: tlv.finish() };
        let mut buf = vec![0; join.len()];
        join.emit(&mut buf)?;
        self.join = buf;
        self.retry = Retry::new(RETRY);
        self.retry.ask(now);
        Ok(true)
    }

    /// Whether its Join has been written.
    pub(super) const fn has_joined(&self) -> bool {
        !self.join.is_empty()
    }

    /// Whether it is over.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        now >= self.until
    }

    /// The Hello's retry, for the next attempt to go on with.
    pub(super) fn hello_retry(&self) -> Option<Retry> {
        (!self.has_joined()).then_some(self.retry)
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        Deadline::earliest([Some(self.until), self.retry.deadline()])
    }

    /// Writes Hello or Join when it is due.
    pub(super) fn poll(
        &mut self,
        now: Instant,
        random: u32,
        client_type: ClientType,
        buf: &mut [u8],
    ) -> Option<usize> {
        if !self.retry.due(now) {
            return None;
        }
        self.retry.sent(now, random);
        if self.has_joined() {
            buf.get_mut(..self.join.len())?.copy_from_slice(&self.join);
            return Some(self.join.len());
        }
        Hello { client_type, nonce: self.nonce }.emit(buf).ok()
    }
}
