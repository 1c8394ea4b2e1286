//! The client's side of a session.

use std::collections::VecDeque;
use std::time::Duration;

use caves_link::retry::Retry;
use caves_link::time::{Deadline, Instant};
use caves_wire::ferravex::{
    Cookie, EventSequence, Hello, InputSequence, Nonce, Packet, PlayerId, SnapshotView, Tick,
    WelcomeView,
};

use super::play::{Controls, Play};
use super::{HELLO_RETRY, SESSION_TIMEOUT, refusal};
use crate::{Counters, DropReason, Random};

/// Hellos at once: 36 bytes pay for the 31 of a Welcome, where a server counts.
const HELLOS: u8 = 2;

/// What a client takes for granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientConfig {
    /// The number of its first input frame; any will do.
    pub first_input: InputSequence,
    /// Silence that ends an attempt or a session.
    pub timeout: Duration,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self { first_input: InputSequence::new(0), timeout: SESSION_TIMEOUT }
    }
}

/// What the layer above should know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// A session began.
    Joined {
        /// Which player one is in the snapshots.
        player: PlayerId,
        /// The server's tick when it wrote the Welcome.
        tick: Tick,
    },
    /// An event of the server; each once and in order.
    Event {
        /// Its number, from 0 up.
        sequence: EventSequence,
        /// At most 900 bytes.
        payload: Box<[u8]>,
    },
    /// It is over.
    Ended(ClientEnd),
}

/// Why a client does nothing any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientEnd {
    /// The player quit.
    Quit,
    /// No Hello was answered: nobody is there, or there is no room.
    NoAnswer,
    /// Nothing new was heard for too long: the server is gone, or has ended the session.
    Silence,
}

/// What a datagram was, for the layer above.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum ClientReceived<'d> {
    /// The newest snapshot.
    Snapshot(SnapshotView<'d>),
    /// Nothing for the layer above, or told by [`Client::poll_event`].
    Handled,
    /// Nothing at all.
    Dropped(DropReason),
}

/// How a client stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientStatus {
    /// It asks for a session.
    Joining,
    /// It has one.
    Playing {
        /// How long nothing new was heard.
        silence: Duration,
    },
    /// It is over.
    Ended(ClientEnd),
}

/// Why an input was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// There is no session.
    #[error("not connected")]
    NotPlaying,
    /// A number that is infinite or none.
    #[error("not a finite number")]
    NotFinite,
    /// Six frames were not sent yet.
    #[error("earlier input still waits")]
    Full,
}

/// One client: joins, plays, ends.
pub struct Client {
    config: ClientConfig,
    random: Box<dyn Random + Send>,
    state: State,
    events: VecDeque<ClientEvent>,
    counters: Counters,
}

enum State {
    Joining(Attempt),
    Playing(Box<Play>),
    Ended(ClientEnd),
}

struct Attempt {
    nonce: Nonce,
    retry: Retry,
    /// Hellos of this turn that are still to be sent.
    hellos: u8,
    until: Instant,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = match &self.state {
            State::Joining(_) => "joining",
            State::Playing(_) => "playing",
            State::Ended(_) => "ended",
        };
        f.debug_struct("Client").field("state", &state).finish_non_exhaustive()
    }
}

impl Client {
    /// A client that begins to join at once. `random` makes the number of its attempt.
    pub fn new(config: ClientConfig, mut random: Box<dyn Random + Send>, now: Instant) -> Self {
        let mut retry = Retry::new(HELLO_RETRY);
        retry.ask(now);
        let nonce = Nonce(random.next_u64());
        let attempt = Attempt { nonce, retry, hellos: 0, until: now + config.timeout };
        Self {
            config,
            random,
            state: State::Joining(attempt),
            events: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Takes what came from the server's address.
    pub fn handle_datagram<'d>(&mut self, now: Instant, datagram: &'d [u8]) -> ClientReceived<'d> {
        let outcome = self.dispatch(now, datagram);
        self.counters.note(outcome, ClientReceived::Dropped)
    }

    fn dispatch<'d>(
        &mut self,
        now: Instant,
        datagram: &'d [u8],
    ) -> Result<ClientReceived<'d>, DropReason> {
        match Packet::parse(datagram).map_err(refusal)? {
            Packet::Welcome(welcome) => self.on_welcome(now, welcome)?,
            Packet::Snapshot(snapshot) => {
                self.play()?.on_snapshot(now, snapshot)?;
                return Ok(ClientReceived::Snapshot(snapshot));
            }
            Packet::Event(event) => self.play()?.on_event(now, event)?,
            // What only clients send.
            Packet::Hello(_) | Packet::Input(_) | Packet::EventAck(_) => {
                return Err(DropReason::PacketType);
            }
        }
        Ok(ClientReceived::Handled)
    }

    fn on_welcome(&mut self, now: Instant, welcome: WelcomeView<'_>) -> Result<(), DropReason> {
        match &self.state {
            State::Joining(attempt) if attempt.nonce == welcome.nonce() => {}
            // Of two Welcomes the first counts.
            _ => return Err(DropReason::Unasked),
        }
        self.state = State::Playing(Box::new(Play::new(now, welcome, self.config.first_input)));
        let (player, tick) = (welcome.player(), welcome.tick());
        self.events.push_back(ClientEvent::Joined { player, tick });
        Ok(())
    }

    fn play(&mut self) -> Result<&mut Play, DropReason> {
        match &mut self.state {
            State::Playing(play) => Ok(play),
            _ => Err(DropReason::Unasked),
        }
    }

    /// Does what is due: an attempt or a session ends by silence.
    pub fn handle_timeout(&mut self, now: Instant) {
        match &self.state {
            State::Joining(attempt) if attempt.until <= now => self.finish(ClientEnd::NoAnswer),
            State::Playing(play) if play.heard + self.config.timeout <= now => {
                self.finish(ClientEnd::Silence);
            }
            _ => {}
        }
    }

    fn finish(&mut self, end: ClientEnd) {
        // What had arrived is told before the end.
        while let Some(event) = self.next_event() {
            self.events.push_back(event);
        }
        self.state = State::Ended(end);
        self.events.push_back(ClientEvent::Ended(end));
    }

    /// What the layer above should know next.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front().or_else(|| self.next_event())
    }

    fn next_event(&mut self) -> Option<ClientEvent> {
        let (sequence, payload) = self.play().ok()?.next_event()?;
        Some(ClientEvent::Event { sequence, payload })
    }

    /// When to call [`Client::handle_timeout`] and [`Client::poll_transmit`] at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match &self.state {
            State::Joining(attempt) => {
                Deadline::earliest([attempt.retry.deadline(), Some(attempt.until)])
            }
            State::Playing(play) => play.deadline(self.config.timeout),
            State::Ended(_) => None,
        }
    }

    /// Writes the next datagram for the server into `buf`, which has room for 1200 bytes, and gives
    /// its length.
    pub fn poll_transmit(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        match &mut self.state {
            State::Joining(attempt) => {
                if attempt.retry.due(now) {
                    attempt.retry.sent(now, self.random.next_u64() as u32);
                    attempt.hellos = HELLOS;
                }
                attempt.hellos = attempt.hellos.checked_sub(1)?;
                Hello { nonce: attempt.nonce }.emit(buf).ok()
            }
            State::Playing(play) => play.poll_transmit(now, buf),
            State::Ended(_) => None,
        }
    }

    /// Takes what the player does in one step, to be sent at once with the five frames before it.
    ///
    /// # Errors
    /// There is no session, a number is not finite, or six frames were not sent yet.
    pub fn push_input(
        &mut self,
        now: Instant,
        controls: Controls,
    ) -> Result<InputSequence, PushError> {
        self.play().map_err(|_| PushError::NotPlaying)?.push(now, controls)
    }

    /// Ends. The server is not told, since the protocol has no way to: it finds silence.
    pub fn leave(&mut self) {
        if !matches!(self.state, State::Ended(_)) {
            self.finish(ClientEnd::Quit);
        }
    }

    /// How it stands.
    pub fn status(&self, now: Instant) -> ClientStatus {
        match &self.state {
            State::Joining(_) => ClientStatus::Joining,
            State::Playing(play) => {
                ClientStatus::Playing { silence: now.saturating_since(play.heard) }
            }
            State::Ended(end) => ClientStatus::Ended(*end),
        }
    }

    fn playing(&self) -> Option<&Play> {
        match &self.state {
            State::Playing(play) => Some(play),
            _ => None,
        }
    }

    /// Which player one is in the snapshots, in a session.
    pub fn player(&self) -> Option<PlayerId> {
        Some(self.playing()?.player)
    }

    /// The session's cookie, in a session. Whoever has it and the address speaks for the player.
    pub fn session(&self) -> Option<Cookie> {
        Some(self.playing()?.session)
    }

    /// The tick of the newest snapshot.
    pub fn tick(&self) -> Option<Tick> {
        self.playing()?.tick
    }

    /// The newest input frame that the server has.
    pub fn acknowledged(&self) -> Option<InputSequence> {
        self.playing()?.acked
    }

    /// Input frames that the server has not said to have.
    pub fn unacknowledged(&self) -> u32 {
        self.playing().map_or(0, Play::unacknowledged)
    }

    /// What was received and dropped.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }
}
