//! The client's side of a session.

use std::collections::VecDeque;
use std::time::Duration;

use caves_link::retry::{Retry, RetryPolicy};
use caves_link::time::{Deadline, Instant};
use caves_wire::caves::{
    ChallengeView, ChunkEntry, ChunkId, ChunkView, ClientType, DetailView, EntityId, EntityIter,
    EventKind, Features, Leave, LeaveReason, LeaveView, Nonce, Packet, RefuseReason, RefuseView,
    Sequence, StateView, Tick, Token, VERSION, WelcomeView, tag,
};
use caves_wire::text;

use super::attempt::{Attempt, RECOVERY, Wish};
use super::gauges::ClientGauges;
use super::play::Play;
use super::ticks::ServerClock;
use super::{LEAVE_GAP, LEAVE_REPEATS, OwnedAction, RETRY};
use crate::fault::{Fault, Faults};
use crate::{Counters, DropReason, Random};

/// Without a StatePacket for this long the client looks for its session anew (section 2, recovery).
const RECOVER_AFTER: Duration = Duration::from_secs(2);
/// How long a refused client waits: 1 to 8 s (section 2, refusals).
const REFUSED: RetryPolicy = RetryPolicy {
    min: Duration::from_millis(1000),
    max: Duration::from_millis(1500),
    cap: Some(Duration::from_secs(8)),
};
/// How long a client waits whose server was shut down: 1 to 30 s, doubling, jittered.
const SHUT_DOWN: RetryPolicy = RetryPolicy {
    min: Duration::from_millis(1000),
    max: Duration::from_millis(2000),
    cap: Some(Duration::from_secs(30)),
};

/// Who a client is and what it wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientConfig {
    /// Which kind of client it is.
    pub client_type: ClientType,
    /// The player's name, 1 to 32 bytes (a longer one is cut); a guest has none.
    pub name: Option<String>,
    /// A registered token.
    pub token: Option<Token>,
    /// Features wanted.
    pub features: Features,
}

impl Default for ClientConfig {
    /// An official client's guest with events; `burst` costs nothing, any order is taken anyway.
    fn default() -> Self {
        Self {
            client_type: ClientType::OFFICIAL,
            name: None,
            token: None,
            features: Features::BURST.union(Features::EVENTS),
        }
    }
}

/// What the layer above should know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// A session began, or went on.
    Joined {
        /// The same session as before: what was under way goes on.
        resumed: bool,
        /// The server's name, as it may be shown.
        server_name: String,
        /// Its message of the day, as it may be shown.
        motd: String,
    },
    /// All entities of a tick are known: see [`Client::entities`].
    Updated(Tick),
    /// Chat, a notice or combat; once and in order. The text may be shown.
    Text {
        /// What it tells.
        kind: EventKind,
        /// Who is the cause, or entity 0.
        from: EntityId,
        /// What to show.
        text: String,
    },
    /// A query found no answer.
    QueryFailed(EntityId),
    /// An action that had to arrive was under way when its session was lost (R36).
    ActionLost(OwnedAction),
    /// Not let in; the client tries again by itself at the moment given.
    Refused {
        /// Why.
        reason: RefuseReason,
        /// The same in words, as it may be shown.
        text: String,
        /// When it tries again.
        again: Instant,
    },
    /// The server was shut down; the client comes back by itself at the moment given.
    ServerGone {
        /// When it tries again.
        again: Instant,
    },
    /// It is over.
    Ended(ClientEnd),
}

/// Why a client does nothing any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientEnd {
    /// The player quit.
    Quit,
    /// The server does not let this client in.
    Refused {
        /// Why.
        reason: RefuseReason,
        /// The protocol version that the server speaks.
        version: u8,
        /// The reason in words, as it may be shown.
        text: String,
    },
    /// The server ended the session.
    Left(LeaveReason),
}

/// What a datagram was, for the layer above.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum ClientReceived<'d> {
    /// The newest state.
    State(StateView<'d>),
    /// A chunk of the newest manifest.
    Chunk(ChunkView<'d>),
    /// The answer to a query.
    Detail(DetailView<'d>),
    /// Nothing for the layer above, or told by [`Client::poll_event`].
    Handled,
    /// Nothing at all.
    Dropped(DropReason),
}

/// How a client stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientStatus {
    /// An attempt to join is under way.
    Joining,
    /// It waits before the next attempt.
    Waiting {
        /// Until then.
        until: Instant,
    },
    /// In a session.
    Playing {
        /// How long no StatePacket came.
        silence: Duration,
        /// Whether it looks for its session anew.
        recovering: bool,
    },
    /// It is over.
    Ended(ClientEnd),
}

/// An action that was sent and not covered yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InFlight {
    /// Its number.
    pub sequence: Sequence,
    /// What it does.
    pub action: OwnedAction,
}

/// Why an action was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// There is no session.
    #[error("not connected")]
    NotPlaying,
    /// Earlier input still waits (R36).
    #[error("earlier input still waits")]
    Full,
    /// A text that is empty or longer than 200 bytes (section 4).
    #[error("a text has 1 to 200 bytes")]
    Text,
}

/// One client: joins, plays, recovers, leaves.
pub struct Client {
    config: ClientConfig,
    random: Box<dyn Random + Send>,
    attempt: Option<Attempt>,
    play: Option<Play>,
    wait: Deadline,
    /// Waits since the last Welcome, so that they grow.
    waits: u32,
    goodbye: Option<Goodbye>,
    ended: Option<ClientEnd>,
    events: VecDeque<ClientEvent>,
    counters: Counters,
    faults: Faults,
}

#[derive(Debug)]
struct Goodbye {
    token: Token,
    due: Instant,
    left: u8,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("attempt", &self.attempt)
            .field("playing", &self.play.is_some())
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// A client that begins to join at once.
    pub fn new(mut config: ClientConfig, random: Box<dyn Random + Send>, now: Instant) -> Self {
        if let Some(name) = &mut config.name {
            name.truncate(text::cut(name, tag::MAX_NAME).len());
        }
        let mut client = Self {
            config,
            random,
            attempt: None,
            play: None,
            wait: Deadline::NEVER,
            waits: 0,
            goodbye: None,
            ended: None,
            events: VecDeque::new(),
            counters: Counters::default(),
            faults: Faults::default(),
        };
        client.begin_attempt(now, None);
        client
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
        let packet = Packet::parse(datagram).map_err(|_| DropReason::Malformed)?;
        match packet {
            Packet::Challenge(challenge) => self.on_challenge(now, challenge)?,
            Packet::Welcome(welcome) => self.on_welcome(now, welcome)?,
            Packet::Refuse(refuse) => self.on_refuse(now, refuse)?,
            Packet::Leave(leave) => self.on_leave(now, leave)?,
            Packet::OtherVersion(_) => return Err(DropReason::Version),
            Packet::State(state) => {
                let random = self.random.next_u64() as u32;
                let play = self.play.as_mut().ok_or(DropReason::Unasked)?;
                play.on_state(now, random, state, &mut self.events)?;
                // The server is there after all. A Join under way goes on: the server may have begun
                // another session for it.
                if !play.is_unheard(now) {
                    self.attempt = self.attempt.take().filter(Attempt::has_joined);
                }
                return Ok(ClientReceived::State(state));
            }
            packet => {
                let random = self.random.next_u64() as u32;
                let play = self.play.as_mut().ok_or(DropReason::Unasked)?;
                return play.on_packet(now, random, packet, &mut self.events);
            }
        }
        Ok(ClientReceived::Handled)
    }

    fn on_challenge(&mut self, now: Instant, view: ChallengeView<'_>) -> Result<(), DropReason> {
        let wish = self.wish();
        let attempt = self.attempt.as_mut().filter(|attempt| attempt.nonce == view.nonce());
        // Only the first Challenge counts (section 2, attempt).
        match attempt.map(|attempt| attempt.challenge(now, view.cookie(), &wish)) {
            Some(Ok(true)) => Ok(()),
            _ => Err(DropReason::Unasked),
        }
    }

    /// What a Join asks for: a lost session has its token and name.
    fn wish(&self) -> Wish {
        let play = self.play.as_ref();
        Wish {
            client_type: self.config.client_type,
            name: self.config.name.clone().or_else(|| play?.name.clone()),
            features: self.config.features,
            // A registered token opens its living session, and a new one when that is dead.
            token: self.config.token.or_else(|| play.map(|play| play.token)),
        }
    }

    fn on_welcome(&mut self, now: Instant, view: WelcomeView<'_>) -> Result<(), DropReason> {
        let under_way = self
            .attempt
            .as_ref()
            .is_some_and(|attempt| attempt.nonce == view.nonce() && attempt.has_joined());
        if !under_way {
            return Err(DropReason::Unasked);
        }
        self.attempt = None;
        self.wait.clear();
        self.waits = 0;
        let same = self.play.as_ref().is_some_and(|play| play.is_resumed_by(view));
        let resumed = match &mut self.play {
            Some(play) if same => {
                play.resume(now, view);
                true
            }
            _ => {
                let start = Sequence::new(self.random.next_u64() as u32);
                let client_type = self.config.client_type;
                let play = Play::new(now, start, client_type, view, self.faults);
                let old = self.play.replace(play);
                self.report_lost(old);
                false
            }
        };
        let text_of = |tag| clean_text(view.meta().values(tag));
        self.events.push_back(ClientEvent::Joined {
            resumed,
            server_name: text_of(tag::SERVER_NAME),
            motd: text_of(tag::MOTD),
        });
        Ok(())
    }

    fn on_refuse(&mut self, now: Instant, view: RefuseView<'_>) -> Result<(), DropReason> {
        let reason = view.reason();
        let answered = self.attempt.as_ref().is_some_and(|attempt| {
            // All but a refused version answer a Join, never a Hello (section 2); and a server that
            // speaks our version has not refused it, but something that was damaged on the way.
            let expected = match reason {
                RefuseReason::VERSION => view.version() != VERSION,
                _ => attempt.has_joined(),
            };
            attempt.nonce == view.nonce() && expected
        });
        if !answered {
            return Err(DropReason::Unasked);
        }
        self.attempt = None;
        let text: String = text::clean(view.text()).collect();
        if reason == RefuseReason::BAD_COOKIE {
            // A new attempt, but not as fast as a broken server can answer.
            let random = self.random.next_u64() as u32;
            self.wait.set(now + RETRY.wait(0, random));
        } else if reason.may_retry() {
            // A guest's name may be another guest's by now; the server has names enough.
            if reason == RefuseReason::NAME_TAKEN
                && let Some(play) = &mut self.play
            {
                play.name = None;
            }
            let again = self.wait_by(now, REFUSED);
            self.events.push_back(ClientEvent::Refused { reason, text, again });
        } else {
            self.finish(ClientEnd::Refused { reason, version: view.version(), text });
        }
        Ok(())
    }

    fn on_leave(&mut self, now: Instant, view: LeaveView<'_>) -> Result<(), DropReason> {
        if self.play.as_ref().is_none_or(|play| play.token != view.token()) {
            return Err(DropReason::Token);
        }
        self.attempt = None;
        if view.reason().may_return() {
            let old = self.play.take();
            self.report_lost(old);
            let again = self.wait_by(now, SHUT_DOWN);
            self.events.push_back(ClientEvent::ServerGone { again });
        } else {
            self.finish(ClientEnd::Left(view.reason()));
        }
        Ok(())
    }

    fn wait_by(&mut self, now: Instant, policy: RetryPolicy) -> Instant {
        let again = now + policy.wait(self.waits, self.random.next_u64() as u32);
        self.waits = self.waits.saturating_add(1);
        self.wait.set(again);
        again
    }

    fn report_lost(&mut self, old: Option<Play>) {
        if self.faults.has(Fault::LosesActions) {
            return;
        }
        let lost = old.into_iter().flat_map(Play::into_must_arrive);
        self.events.extend(lost.map(ClientEvent::ActionLost));
    }

    fn finish(&mut self, end: ClientEnd) {
        self.attempt = None;
        let old = self.play.take();
        self.report_lost(old);
        self.wait.clear();
        self.events.push_back(ClientEvent::Ended(end.clone()));
        self.ended = Some(end);
    }

    /// One attempt has one nonce. `hello` goes on with the waits of the attempt before.
    fn begin_attempt(&mut self, now: Instant, hello: Option<Retry>) {
        let nonce = Nonce(self.random.next_u64());
        let hello = hello.unwrap_or_else(|| {
            let mut retry = Retry::new(if self.play.is_some() { RECOVERY } else { RETRY });
            retry.ask(now);
            retry
        });
        self.attempt = Some(Attempt::new(now, nonce, hello));
    }

    /// Does what is due: a new attempt, recovery, questions that go unanswered.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.ended.is_some() {
            return;
        }
        self.faults.woken(now);
        if self.wait.is_due(now) {
            self.wait.clear();
            if !self.faults.has(Fault::GivesUp) {
                self.begin_attempt(now, None);
            }
        }
        if let Some(over) = self.attempt.take_if(|attempt| attempt.is_over(now)) {
            self.begin_attempt(now, over.hello_retry());
        }
        if let Some(play) = &mut self.play {
            play.handle_timeout(now, &mut self.events);
            let lost = play.silence(now) >= RECOVER_AFTER || play.is_unheard(now);
            let lost = lost && !self.faults.has(Fault::NeverRecovers);
            if lost && self.attempt.is_none() && self.wait.get().is_none() {
                self.begin_attempt(now, None);
            }
        }
    }

    /// What the layer above should know next.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        self.play.as_mut()?.next_text()
    }

    /// When to call [`Client::handle_timeout`] and [`Client::poll_transmit`] at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.ended.is_some() {
            return self.goodbye.as_ref().map(|goodbye| goodbye.due);
        }
        if self.faults.has(Fault::StandsStill) && self.attempt.is_some() && self.play.is_some() {
            return Some(Instant::ZERO);
        }
        let recovers = self.attempt.is_none()
            && self.wait.get().is_none()
            && !self.faults.has(Fault::NeverRecovers);
        Deadline::earliest([
            self.wait.get(),
            self.attempt.as_ref().and_then(Attempt::deadline),
            self.play.as_ref().and_then(Play::deadline),
            self.play.as_ref().filter(|_| recovers).map(|play| play.state_at + RECOVER_AFTER),
            self.play.as_ref().filter(|_| recovers).and_then(Play::unheard_at),
            self.faults.next_fidget(),
        ])
    }

    /// Writes the next datagram for the server into `buf`, which has room for 1200 bytes, and gives
    /// its length.
    pub fn poll_transmit(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        if let Some(len) = self.next_goodbye(now, buf) {
            return Some(len);
        }
        let random = self.random.next_u64() as u32;
        if let Some(attempt) = &mut self.attempt
            && let Some(len) = attempt.poll(now, random, self.config.client_type, buf)
        {
            return Some(len);
        }
        self.play.as_mut()?.poll_transmit(now, random, buf)
    }

    fn next_goodbye(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        let goodbye = self.goodbye.as_mut().filter(|goodbye| goodbye.due <= now)?;
        let (client_type, token) = (self.config.client_type, goodbye.token);
        let leave = Leave { client_type, token, reason: LeaveReason::QUIT };
        goodbye.due = now + LEAVE_GAP;
        goodbye.left -= 1;
        if goodbye.left == 0 {
            self.goodbye = None;
        }
        leave.emit(buf).ok()
    }

    /// Takes an action to be sent as soon as the protocol allows: one new number a tick, and none
    /// before an action that has to arrive is covered (R36). A step that waits gives way to a newer
    /// one, so a held key walks on by no more than what is under way.
    ///
    /// # Errors
    /// There is no session, earlier input still waits, or a text does not fit.
    pub fn push(&mut self, action: OwnedAction) -> Result<(), PushError> {
        self.play.as_mut().ok_or(PushError::NotPlaying)?.push(action)
    }

    /// Forgets the steps that still wait: the player let go of the key.
    pub fn clear_steps(&mut self) {
        if let Some(play) = &mut self.play {
            play.clear_steps();
        }
    }

    /// Asks what there is to know of an entity. The answer is [`ClientReceived::Detail`], or after
    /// some time [`ClientEvent::QueryFailed`].
    ///
    /// # Errors
    /// There is no session, or too many questions are open.
    pub fn query(&mut self, now: Instant, entity: EntityId) -> Result<(), PushError> {
        self.play.as_mut().ok_or(PushError::NotPlaying)?.query(now, entity)
    }

    /// The layer above forgot a chunk: it is asked for again when it is needed.
    pub fn forget_chunk(&mut self, chunk: ChunkId) {
        if let Some(play) = &mut self.play {
            play.held.forget(chunk);
        }
    }

    /// The next action has the number after `last`.
    ///
    /// # Panics
    /// An action is under way, or there is no session.
    #[cfg(feature = "testing")]
    pub fn number_actions_after(&mut self, last: Sequence) {
        self.play.as_mut().expect("a session").number_actions_after(last);
    }

    /// The next event to come has this number.
    ///
    /// # Panics
    /// There is no session.
    #[cfg(feature = "testing")]
    pub fn expect_event(&mut self, next: Sequence) {
        self.play.as_mut().expect("a session").expect_event(next);
    }

    /// Says goodbye and ends. Send until [`Client::is_drained`].
    pub fn leave(&mut self, now: Instant) {
        if self.ended.is_some() {
            return;
        }
        self.goodbye = self.play.as_ref().map(|play| Goodbye {
            token: play.token,
            due: now,
            left: LEAVE_REPEATS,
        });
        self.finish(ClientEnd::Quit);
    }

    /// Whether everything that was to be said has been sent.
    pub const fn is_drained(&self) -> bool {
        self.ended.is_some() && self.goodbye.is_none()
    }

    /// How it stands.
    pub fn status(&self, now: Instant) -> ClientStatus {
        if let Some(end) = &self.ended {
            return ClientStatus::Ended(end.clone());
        }
        match (&self.play, self.wait.get()) {
            (Some(play), wait) => ClientStatus::Playing {
                silence: play.silence(now),
                recovering: self.attempt.is_some() || wait.is_some(),
            },
            (None, Some(until)) => ClientStatus::Waiting { until },
            (None, None) => ClientStatus::Joining,
        }
    }

    /// The player's entity, in a session.
    pub fn player(&self) -> Option<EntityId> {
        self.play.as_ref().map(|play| play.player)
    }

    /// The session's token, in a session.
    pub fn token(&self) -> Option<Token> {
        self.play.as_ref().map(|play| play.token)
    }

    /// The 3x3 of the newest state.
    pub fn manifest(&self) -> Option<[ChunkEntry; 9]> {
        self.play.as_ref()?.held.manifest()
    }

    /// Whether a chunk of the newest manifest is not held at its version.
    pub fn misses_chunks(&self) -> bool {
        self.play.as_ref().is_none_or(|play| play.held.misses())
    }

    /// The newest tick heard of.
    pub fn tick(&self) -> Option<Tick> {
        self.play.as_ref().map(|play| play.ticks.newest())
    }

    /// The tick of the last complete update.
    pub fn updated_tick(&self) -> Option<Tick> {
        self.play.as_ref()?.assembly.tick()
    }

    /// The entities of the last complete update, ascending by id.
    pub fn entities(&self) -> EntityIter<'_> {
        self.play.as_ref().map_or(EntityIter::new(&[]), |play| play.assembly.shown())
    }

    /// What the last complete update says of one's own actions.
    pub fn executed(&self) -> Option<(Sequence, u32)> {
        self.play.as_ref()?.executed
    }

    /// Actions that were sent and are not covered yet, oldest first.
    pub fn in_flight(&self) -> impl Iterator<Item = &InFlight> {
        self.play.iter().flat_map(|play| &play.sent)
    }

    /// Actions that wait to be sent, oldest first.
    pub fn queued(&self) -> impl Iterator<Item = &OwnedAction> {
        self.play.iter().flat_map(|play| &play.queue)
    }

    /// The smoothed round trip.
    pub fn round_trip(&self) -> Option<Duration> {
        self.play.as_ref()?.round_trip.smoothed()
    }

    /// The tick that the server has at `now`, and what has passed of the next one, 0 to 1; as far as
    /// the states that came and half a round trip tell.
    pub fn server_tick(&self, now: Instant) -> Option<(Tick, f32)> {
        let play = self.play.as_ref()?;
        Some(play.ticks.at(play.ticks.clock().now(now)?))
    }

    /// The server's clock as the states tell of it, in a session. Its stamps are those of
    /// [`Client::stamp`].
    pub fn server_clock(&self) -> Option<&ServerClock> {
        self.play.as_ref().map(|play| play.ticks.clock())
    }

    /// A tick near the newest one as a moment of the server's clock, in a session.
    pub fn stamp(&self, tick: Tick) -> Option<Instant> {
        self.play.as_ref().map(|play| play.ticks.stamp(tick))
    }

    /// The tick at a moment of the server's clock, and what has passed of the next one.
    pub fn tick_at(&self, stamp: Instant) -> Option<(Tick, f32)> {
        self.play.as_ref().map(|play| play.ticks.at(stamp))
    }

    /// Ticks of the last 64 whose StatePacket did not come, in percent.
    pub fn loss_percent(&self) -> Option<u32> {
        self.play.as_ref().map(|play| play.ticks.loss_percent())
    }

    /// How long a tick takes, in a session.
    pub fn tick_time(&self) -> Option<Duration> {
        self.play.as_ref().map(|play| play.ticks.period())
    }

    /// Ticks a second, as the server says.
    pub fn tick_rate(&self) -> Option<u8> {
        self.play.as_ref().map(|play| play.ticks.rate())
    }

    /// What was received and dropped.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How full the tables and queues are.
    pub fn gauges(&self) -> ClientGauges {
        let mut gauges = self.play.as_ref().map(Play::gauges).unwrap_or_default();
        gauges.news = self.events.len();
        gauges
    }

    #[doc(hidden)]
    pub const fn faults(&self) -> Faults {
        self.faults
    }

    /// Does something wrong from now on.
    #[doc(hidden)]
    #[cfg(feature = "faults")]
    pub const fn inject(&mut self, fault: Fault) {
        self.faults = Faults::only(fault);
    }
}

/// The parts of a text that a server sent, as they may be shown (R32).
pub(super) fn clean_text<'a>(parts: impl Iterator<Item = &'a [u8]>) -> String {
    let bytes: Vec<u8> = parts.flatten().copied().collect();
    text::clean(&String::from_utf8_lossy(&bytes)).collect()
}
