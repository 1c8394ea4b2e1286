//! What a client keeps of its session: newest tick, chunks held, actions under way, questions.

use std::collections::VecDeque;
use std::time::Duration;

use caves_link::clock::RoundTrip;
use caves_link::events::{EventReceiver, Receipt};
use caves_link::retry::Retry;
use caves_link::time::{Deadline, Instant};
use caves_wire::caves::{
    Action, ActionPacket, ClientType, DetailView, Echo, EchoView, EntityId, EventAck, EventKind,
    EventView, MAX_SAY, Packet, Query, Sequence, StateView, Token, WelcomeView, tag,
};
use caves_wire::text;

use super::assembly::Assembly;
use super::client::{ClientEvent, ClientReceived, InFlight, PushError};
use super::copies::{self, Copies};
use super::gauges::ClientGauges;
use super::held::Held;
use super::ticks::{Ticks, Verdict};
use super::{EVENT_WINDOW, KEEPALIVE, OwnedAction, RETRY};
use crate::DropReason;
use crate::fault::{Fault, Faults};

/// Input that waits behind what is under way (R36).
const QUEUE: usize = 4;
/// Actions under way, at most.
const IN_FLIGHT: usize = 16;
/// More actions under way than a round trip explains, before nothing new goes out: one that waits
/// for its tick, two in the gate of the server (R19), updates that were lost. What is under way when
/// a network falls silent is lost, and the player is set back by as many steps.
const UNCOVERED: usize = 8;
/// Questions about entities at once.
const QUERIES: usize = 8;
/// A question without an answer ends after this time.
const QUERY_TIME: Duration = Duration::from_secs(5);
/// Acknowledgements that wait to be sent.
const ACKS: usize = 64;
/// An action that is not covered after this time, while states arrive, is not taken at all.
const UNHEARD: Duration = Duration::from_secs(4);
/// Pings without an answer that are remembered.
const PINGS: usize = 4;
/// Between two pings (section 5).
const PING: Duration = Duration::from_secs(1);
/// States arrive as long as the last one is not older than this (R17).
const FRESH: Duration = Duration::from_millis(300);

#[derive(Debug)]
pub(super) struct Play {
    client_type: ClientType,
    pub(super) token: Token,
    pub(super) player: EntityId,
    /// The name under which the server knows a guest, for recovery.
    pub(super) name: Option<String>,

    pub(super) ticks: Ticks,
    pub(super) state_at: Instant,
    pub(super) held: Held,
    pub(super) assembly: Assembly,
    updated_at: Instant,
    /// How old an update may get before it is asked for (R17), drawn anew with each update.
    stale_after: Duration,
    /// The server tells this figure less than it tells a session that joined (R34): a server that was
    /// started again knows the client by a registered token alone.
    untagged: bool,

    /// The last number used.
    sequence: Sequence,
    pub(super) executed: Option<(Sequence, u32)>,
    pub(super) sent: VecDeque<InFlight>,
    /// When each of those under way got its number, and how often it goes out.
    copies: Copies,
    /// The first number of this session.
    first: Sequence,
    /// Whether this session has given an action a number.
    numbered: bool,
    pub(super) queue: VecDeque<OwnedAction>,
    /// Repeats the newest action under way.
    repeat: Retry,
    /// Asks for chunks and entities that are missing.
    ask: Retry,
    next_number_at: Instant,
    spoke_at: Instant,

    texts: EventReceiver<(EventKind, EntityId, Box<str>)>,
    acks: VecDeque<Sequence>,
    queries: Vec<Question>,
    ping_at: Instant,
    /// The last pings without an answer; the stamp is the moment itself.
    pinged: VecDeque<Instant>,
    pub(super) round_trip: RoundTrip,
    faults: Faults,
}

#[derive(Debug)]
struct Question {
    entity: EntityId,
    retry: Retry,
    until: Instant,
}

impl Play {
    pub(super) fn new(
        now: Instant,
        sequence: Sequence,
        client_type: ClientType,
        welcome: WelcomeView<'_>,
        faults: Faults,
    ) -> Self {
        let next_event = welcome.next_event().unwrap_or(Sequence::new(0));
        let mut play = Self {
            client_type,
            token: welcome.token(),
            player: welcome.player(),
            name: None,
            ticks: Ticks::new(welcome.tick(), welcome.tick_rate()),
            state_at: now,
            held: Held::default(),
            assembly: Assembly::new(),
            updated_at: now,
            stale_after: RETRY.max,
            untagged: false,
            sequence,
            first: sequence.next(),
            executed: None,
            sent: VecDeque::new(),
            copies: Copies::default(),
            numbered: false,
            queue: VecDeque::new(),
            repeat: Retry::new(RETRY),
            ask: Retry::new(RETRY),
            next_number_at: now,
            spoke_at: now,
            texts: EventReceiver::new(EVENT_WINDOW, next_event),
            acks: VecDeque::new(),
            queries: Vec::new(),
            ping_at: now,
            pinged: VecDeque::new(),
            round_trip: RoundTrip::new(),
            faults,
        };
        // The first word tells the server that nothing is held.
        play.ask.ask(now);
        play
    }

    /// Whether a Welcome goes on with this session. A token alone does not show it: one who began as
    /// source-only has its registered token, also with a server that was started again.
    pub(super) fn is_resumed_by(&self, welcome: WelcomeView<'_>) -> bool {
        let expected = self.texts.next_expected();
        // What the server has not seen acknowledged lies behind what was delivered, not far.
        let fits = |next: Sequence| expected.distance_from(next) < EVENT_WINDOW as u32;
        welcome.token() == self.token
            && welcome.player() == self.player
            && welcome.next_event().is_none_or(fits)
    }

    /// The session goes on, but a Welcome clears the cache (R10), and its tick is the base: it came
    /// for this very attempt, which no forged state can say of itself.
    pub(super) fn resume(&mut self, now: Instant, welcome: WelcomeView<'_>) {
        self.ticks.resume(welcome.tick(), welcome.tick_rate());
        self.held = Held::default();
        self.assembly = Assembly::new();
        self.untagged = false;
        self.state_at = now;
        self.updated_at = now;
        // Those under way are given time to be covered by the session that goes on.
        self.copies.renew(now);
        self.ask.ask(now);
    }

    /// Whether the server shows this figure but does not take its actions, or not as this session's.
    pub(super) fn is_unheard(&self, now: Instant) -> bool {
        self.unheard_at().is_some_and(|at| at <= now)
    }

    pub(super) fn unheard_at(&self) -> Option<Instant> {
        let uncovered = self.copies.oldest().map(|at| at + UNHEARD);
        if self.untagged { Some(self.state_at) } else { uncovered }
    }

    pub(super) fn silence(&self, now: Instant) -> Duration {
        now.saturating_since(self.state_at)
    }

    /// Takes a state of this session.
    pub(super) fn on_state(
        &mut self,
        now: Instant,
        random: u32,
        state: StateView<'_>,
        events: &mut VecDeque<ClientEvent>,
    ) -> Result<(), DropReason> {
        // A stream for another entity answers another session, so this one counts as silent.
        if state.player() != self.player {
            return Err(DropReason::Unasked);
        }
        let tick = state.tick();
        match self.ticks.judge(now, tick) {
            Verdict::Aside => return Err(DropReason::Tick),
            Verdict::Anew => self.assembly = Assembly::new(),
            Verdict::Near => {}
        }
        let newer = self.ticks.take(now, tick, self.round_trip.smoothed());
        if newer {
            self.held.name(state.chunks());
            self.state_at = now;
        }
        if self.faults.has(Fault::TakesOldTick) {
            self.assembly.forget_shown();
        }
        if self.assembly.state(tick, state.entity_checksum()) {
            self.updated(now, random, events);
        }
        self.ask_for_missing(now);
        if newer { Ok(()) } else { Err(DropReason::Tick) }
    }

    /// An update is complete: what it says of one's own actions settles those under way.
    fn updated(&mut self, now: Instant, random: u32, events: &mut VecDeque<ClientEvent>) {
        self.updated_at = now;
        self.stale_after = RETRY.wait(0, random);
        let own = self.assembly.shown().of(self.player);
        if let Some(meta) = own.map(|entity| entity.meta()) {
            self.untagged = meta.first(tag::ENTITY_NAME).is_none();
            if self.name.is_none() {
                let name = super::client::clean_text(meta.first(tag::ENTITY_NAME).into_iter());
                self.name = (!name.is_empty()).then_some(name);
            }
            if let Some(sequence) = meta.u32(tag::EXECUTED_SEQUENCE).map(Sequence::new) {
                let bits = meta.u32(tag::EXECUTED_BITS).unwrap_or(0);
                self.executed = Some((sequence, bits));
                self.settle(sequence, bits, events);
            }
        }
        if let Some(tick) = self.assembly.tick() {
            // The newest update is all that anybody wants to know of.
            events.retain(|event| !matches!(event, ClientEvent::Updated(_)));
            events.push_back(ClientEvent::Updated(tick));
        }
    }

    /// What is not newer than the last executed number is covered; what had to arrive and is covered
    /// by another number alone is told to be lost (R36).
    fn settle(&mut self, executed: Sequence, bits: u32, events: &mut VecDeque<ClientEvent>) {
        if !self.numbered {
            // A process before this one has used the session: its numbers are gone on from.
            self.sequence = executed;
            self.first = executed.next();
        }
        let covered = |sent: &mut InFlight| !sent.sequence.is_newer_than(executed);
        while let Some(sent) = self.sent.pop_front_if(covered) {
            self.copies.pop();
            let back = executed.distance_from(sent.sequence);
            let done = back == 0 || bits.checked_shr(back - 1).is_some_and(|bits| bits & 1 == 1);
            if !done && sent.action.must_arrive() && !self.faults.has(Fault::LosesActions) {
                events.push_back(ClientEvent::ActionLost(sent.action));
            }
        }
        if self.sent.is_empty() {
            self.repeat.stop();
        }
    }

    /// Asks with a no-op when a chunk is missing, or when the entities are older than 200 to
    /// 300 ms while states arrive (R17).
    fn ask_for_missing(&mut self, now: Instant) {
        let stale = now.saturating_since(self.updated_at) >= self.stale_after;
        match (self.held.misses() || stale, self.ask.is_active()) {
            (true, false) => self.ask.ask(now),
            (false, true) => self.ask.stop(),
            _ => {}
        }
    }

    pub(super) fn on_packet<'d>(
        &mut self,
        now: Instant,
        random: u32,
        packet: Packet<'d>,
        events: &mut VecDeque<ClientEvent>,
    ) -> Result<ClientReceived<'d>, DropReason> {
        match packet {
            Packet::Entities(entities) => {
                let tick = entities.tick();
                if !self.ticks.takes_entities(tick) {
                    return Err(DropReason::Tick);
                }
                if self.faults.has(Fault::MixesTicks) {
                    self.assembly.show_anyway(entities);
                }
                if self.assembly.entities(entities) {
                    self.updated(now, random, events);
                }
                Ok(ClientReceived::Handled)
            }
            Packet::Chunk(chunk) => {
                // Every chunk of the newest manifest is taken, whatever its version (R12).
                if !self.held.hold(chunk.entry()) {
                    return Err(DropReason::Chunk);
                }
                if self.faults.has(Fault::HoldsUnseen) && chunk.entry().version.0 % 8 == 1 {
                    return Ok(ClientReceived::Handled);
                }
                Ok(ClientReceived::Chunk(chunk))
            }
            Packet::Detail(detail) => self.on_detail(detail),
            Packet::Pong(pong) => self.on_pong(now, pong),
            Packet::Event(event) => self.on_event(event),
            _ => Err(DropReason::PacketType),
        }
    }

    fn on_detail<'d>(&mut self, detail: DetailView<'d>) -> Result<ClientReceived<'d>, DropReason> {
        let place = self.queries.iter().position(|query| query.entity == detail.entity());
        self.queries.swap_remove(place.ok_or(DropReason::Unasked)?);
        Ok(ClientReceived::Detail(detail))
    }

    fn on_pong<'d>(
        &mut self,
        now: Instant,
        pong: EchoView<'d>,
    ) -> Result<ClientReceived<'d>, DropReason> {
        let of = |sent: &Instant| sent.as_micros() == pong.timestamp_ms();
        let place = self.pinged.iter().position(of).ok_or(DropReason::Unasked)?;
        if let Some(sent) = self.pinged.remove(place) {
            self.round_trip.sample(now.saturating_since(sent));
        }
        Ok(ClientReceived::Handled)
    }

    fn on_event<'d>(&mut self, event: EventView<'d>) -> Result<ClientReceived<'d>, DropReason> {
        let item = (event.kind(), event.from(), event.text().into());
        if self.faults.has(Fault::SkipsEvents) && event.sequence().get() % 8 == 7 {
            self.acks.push_back(event.sequence());
            return Ok(ClientReceived::Handled);
        }
        let receipt = self.texts.receive(event.sequence(), item);
        if !receipt.is_acknowledged() {
            return Err(DropReason::Full);
        }
        if self.acks.len() >= ACKS {
            // The server repeats the event, and is answered then.
            return Err(DropReason::Full);
        }
        self.acks.push_back(event.sequence());
        if receipt == Receipt::Duplicate && self.acks.len() < ACKS {
            // An acknowledgement was lost, so the next one goes out twice: an event that is not
            // acknowledged for 10 s ends the session (section 2), after eight tries at most.
            self.acks.push_back(event.sequence());
        }
        Ok(ClientReceived::Handled)
    }

    /// The next text in order.
    pub(super) fn next_text(&mut self) -> Option<ClientEvent> {
        let (_, (kind, from, text)) = self.texts.pop()?;
        Some(ClientEvent::Text { kind, from, text: text::clean(&text).collect() })
    }

    pub(super) fn push(&mut self, action: OwnedAction) -> Result<(), PushError> {
        match &action {
            Action::NoOp => return Ok(()),
            Action::Say(text) if !(1..=MAX_SAY).contains(&text.len()) => {
                return Err(PushError::Text);
            }
            _ => {}
        }
        // A step that waits gives way to a newer one.
        if !action.must_arrive()
            && let Some(last) = self.queue.back_mut()
            && !last.must_arrive()
        {
            *last = action;
            return Ok(());
        }
        if self.queue.len() >= QUEUE {
            return Err(PushError::Full);
        }
        self.queue.push_back(action);
        Ok(())
    }

    pub(super) fn clear_steps(&mut self) {
        self.queue.retain(Action::must_arrive);
    }

    pub(super) fn query(&mut self, now: Instant, entity: EntityId) -> Result<(), PushError> {
        if self.queries.iter().any(|query| query.entity == entity) {
            return Ok(());
        }
        if self.queries.len() >= QUERIES {
            return Err(PushError::Full);
        }
        let mut retry = Retry::new(RETRY);
        retry.ask(now);
        self.queries.push(Question { entity, retry, until: now + QUERY_TIME });
        Ok(())
    }

    pub(super) fn handle_timeout(&mut self, now: Instant, events: &mut VecDeque<ClientEvent>) {
        let forgets = self.faults.has(Fault::ForgetsQuery);
        let over = |query: &mut Question| now >= query.until && !forgets;
        let over = self.queries.extract_if(.., over);
        events.extend(over.map(|query| ClientEvent::QueryFailed(query.entity)));
        if self.silence(now) < FRESH {
            self.ask_for_missing(now);
        }
    }

    pub(super) fn gauges(&self) -> ClientGauges {
        ClientGauges {
            news: 0,
            chunks_held: self.held.len(),
            actions_waiting: self.queue.len(),
            actions_in_flight: self.sent.len(),
            acknowledgements: self.acks.len(),
            queries: self.queries.len(),
            pings: self.pinged.len(),
            texts_kept: self.texts.kept(),
            ticks_open: self.assembly.open_ticks(),
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let queries =
            self.queries.iter().flat_map(|query| [query.retry.deadline(), Some(query.until)]);
        Deadline::earliest(queries.chain([
            self.repeat.deadline(),
            self.copies.deadline(),
            self.ask.deadline(),
            Some(self.spoke_at + KEEPALIVE),
            Some(self.ping_at),
            self.next_is_free().then_some(self.next_number_at),
            (!self.acks.is_empty()).then_some(Instant::ZERO),
        ]))
    }

    /// Whether the action that waits first may get a number, but for the pace of one a tick.
    fn next_is_free(&self) -> bool {
        let Some(next) = self.queue.front() else { return false };
        // Only the first update tells whether an earlier process has used the session.
        if self.assembly.tick().is_none() && !self.numbered {
            return false;
        }
        let waits_for_cover = self.sent.iter().any(|sent| sent.action.must_arrive())
            // What has to arrive is meant where the player stands after the steps before it.
            || next.must_arrive() && !self.sent.is_empty();
        let room = self.sent.len() < self.room() || self.faults.has(Fault::FliesUnbounded);
        !waits_for_cover && room
    }

    pub(super) fn poll_transmit(
        &mut self,
        now: Instant,
        random: u32,
        buf: &mut [u8],
    ) -> Option<usize> {
        let (client_type, token) = (self.client_type, self.token);
        if let Some(sequence) = self.acks.pop_front() {
            return EventAck { client_type, token, sequence }.emit(buf).ok();
        }
        // Before a successor gets its number, so that the server has both to put in order.
        if let Some(sent) = self.copies.poll(now).and_then(|place| self.sent.get(place)) {
            let (sequence, action) = (sent.sequence, sent.action.clone());
            return self.emit_action(now, random, sequence, action.as_deref(), buf);
        }
        if self.next_is_free() && self.next_number_at <= now {
            self.start_next(now);
        }
        if let Some(sent) = self.sent.back().filter(|_| self.repeat.due(now)) {
            let (sequence, action) = (sent.sequence, sent.action.clone());
            self.repeat.sent(now, random);
            return self.emit_action(now, random, sequence, action.as_deref(), buf);
        }
        let keepalive = now.saturating_since(self.spoke_at) >= KEEPALIVE;
        if self.ask.due(now) || keepalive {
            // A no-op has the number of the last action (R18).
            return self.emit_action(now, random, self.sequence, Action::NoOp, buf);
        }
        if let Some(query) = self.queries.iter_mut().find(|query| query.retry.due(now)) {
            query.retry.sent(now, random);
            return Query { client_type, token, entity: query.entity }.emit(buf).ok();
        }
        if self.ping_at <= now {
            self.ping_at = now + PING;
            let stamp = now.as_micros();
            if self.pinged.len() >= PINGS {
                self.pinged.pop_front();
            }
            self.pinged.push_back(now);
            return Echo::ping(client_type, stamp).emit(buf).ok();
        }
        None
    }

    /// Gives the action that waits first its number.
    fn start_next(&mut self, now: Instant) {
        let Some(action) = self.queue.pop_front() else { return };
        let tick = self.ticks.period();
        // On the grid while a key is held, so that neither too many nor too few numbers go out.
        let on_grid = self.next_number_at + tick;
        self.next_number_at = if on_grid > now { on_grid } else { now + tick };
        self.sequence = self.sequence.next();
        self.numbered = true;
        // What has to arrive is not overtaken, and repeated until it is covered.
        let may_be_lost = !action.must_arrive();
        let copies = copies::needed(self.ticks.loss_percent(), self.was_overtaken());
        self.copies.push(now, if may_be_lost { copies } else { 0 }, tick);
        self.sent.push_back(InFlight { sequence: self.sequence, action });
        self.repeat.ask(now);
    }

    /// Whether one of the last numbers was not executed.
    fn was_overtaken(&self) -> bool {
        let Some((last, bits)) = self.executed else { return false };
        // Lower numbers were another process's.
        let own = match last.distance_from(self.first) {
            own if self.numbered && own < 1 << 31 => own.min(32),
            _ => 0,
        };
        bits.trailing_ones() < own
    }

    /// How many actions may be under way.
    fn room(&self) -> usize {
        let Some(round_trip) = self.round_trip.smoothed() else { return IN_FLIGHT };
        let ticks = round_trip.as_micros().div_ceil(self.ticks.period().as_micros());
        usize::try_from(ticks).unwrap_or(IN_FLIGHT).saturating_add(UNCOVERED).min(IN_FLIGHT)
    }

    fn emit_action(
        &mut self,
        now: Instant,
        random: u32,
        sequence: Sequence,
        action: Action<&str>,
        buf: &mut [u8],
    ) -> Option<usize> {
        let cache = self.held.cache();
        let (client_type, token) = (self.client_type, self.token);
        let packet = ActionPacket { client_type, token, sequence, cache, action };
        let len = packet.emit(buf).ok()?;
        // Every ActionPacket lists what is held, so each of them asks for what is missing.
        if !self.faults.has(Fault::Babbles) {
            self.ask.sent(now, random);
        }
        self.spoke_at = now;
        Some(len)
    }

    #[cfg(feature = "testing")]
    pub(super) fn number_actions_after(&mut self, last: Sequence) {
        assert!(self.sent.is_empty(), "an action is under way");
        self.sequence = last;
        self.numbered = true;
    }

    #[cfg(feature = "testing")]
    pub(super) fn expect_event(&mut self, next: Sequence) {
        self.texts = EventReceiver::new(EVENT_WINDOW, next);
    }

    /// What had to arrive and may not have.
    pub(super) fn into_must_arrive(self) -> impl Iterator<Item = OwnedAction> {
        let sent = self.sent.into_iter().map(|sent| sent.action);
        sent.chain(self.queue).filter(Action::must_arrive)
    }
}
