//! A whole client: a session and what it shows.

use std::time::Duration;

use caves_link::time::Instant;
use caves_session::caves::{
    Client as Session, ClientConfig, ClientEnd, ClientEvent as SessionEvent, ClientReceived,
    ClientStatus, PushError, ServerClock,
};
use caves_session::fault::Fault;
use caves_session::{Counters, Random};
use caves_wire::caves::{EventKind, RefuseReason, Tick};
use caves_world::{Command, Content, Direction, EntityId, Pos};

use crate::convert::{
    action, chunk_to_wire, command, direction_from_wire, entity_from_wire, entity_to_wire,
};
use crate::mirror::{Figure, MessageKind, Mirror};
use crate::motion::{Motion, Place, Update};

/// What a screen should know besides the mirror.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// In a session.
    Joined {
        /// The session of before goes on.
        resumed: bool,
        /// The server's name.
        server_name: String,
        /// Its message of the day.
        motd: String,
    },
    /// Something had to be done and may not have been: the session was lost.
    CommandLost(Command),
    /// A question about an entity found no answer.
    NoAnswer(EntityId),
    /// Not let in; it tries again by itself.
    Refused {
        /// Why.
        reason: RefuseReason,
        /// The same in words.
        text: String,
        /// When it tries again.
        again: Instant,
    },
    /// The server was shut down; it comes back by itself.
    ServerGone {
        /// When it tries again.
        again: Instant,
    },
    /// It is over.
    Ended(ClientEnd),
}

/// Joins a server, and keeps a [`Mirror`] of what it shows.
#[derive(Debug)]
pub struct Client {
    session: Session,
    mirror: Mirror,
    motion: Motion,
    /// When the last datagram came: what is told of it came then.
    heard_at: Instant,
    server_name: String,
}

/// A figure and where it is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shown<'m> {
    /// As the last complete update has it.
    pub figure: &'m Figure,
    /// Where it is at the moment that is shown.
    pub place: Place,
}

impl Client {
    /// A client that begins to join at once.
    pub fn new(config: ClientConfig, random: Box<dyn Random + Send>, now: Instant) -> Self {
        Self {
            session: Session::new(config, random, now),
            mirror: Mirror::new(Content::core()),
            motion: Motion::new(),
            heard_at: now,
            server_name: String::new(),
        }
    }

    /// Takes what came from the server's address.
    pub fn handle_datagram(&mut self, now: Instant, datagram: &[u8]) {
        self.heard_at = now;
        match self.session.handle_datagram(now, datagram) {
            ClientReceived::Chunk(chunk) => {
                if let Some(forgotten) = self.mirror.take_chunk(chunk) {
                    self.session.forget_chunk(chunk_to_wire(forgotten));
                }
            }
            ClientReceived::Detail(detail) => self.mirror.take_detail(detail),
            _ => {}
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.session.handle_timeout(now);
    }

    /// What the screen should know next. Updates and texts go into the mirror here, so call it
    /// after each datagram until it gives nothing.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        loop {
            let event = match self.session.poll_event()? {
                SessionEvent::Updated(_) => {
                    self.take_update();
                    continue;
                }
                SessionEvent::Text { kind, from, text } => {
                    self.take_text(kind, entity_from_wire(from), text);
                    continue;
                }
                SessionEvent::Joined { resumed, server_name, motd } => {
                    if !resumed && !self.session.faults().has(Fault::KeepsCaves) {
                        self.mirror.forget_caves();
                        self.motion.clear();
                    }
                    if let Some(player) = self.session.player() {
                        self.mirror.set_me(entity_from_wire(player));
                    }
                    self.server_name.clone_from(&server_name);
                    ClientEvent::Joined { resumed, server_name, motd }
                }
                SessionEvent::QueryFailed(entity) => {
                    ClientEvent::NoAnswer(entity_from_wire(entity))
                }
                SessionEvent::ActionLost(lost) => ClientEvent::CommandLost(command(lost)),
                SessionEvent::Refused { reason, text, again } => {
                    ClientEvent::Refused { reason, text, again }
                }
                SessionEvent::ServerGone { again } => ClientEvent::ServerGone { again },
                SessionEvent::Ended(end) => ClientEvent::Ended(end),
                _ => continue,
            };
            return Some(event);
        }
    }

    fn take_update(&mut self) {
        self.mirror.take_entities(self.session.entities());
        let stamp = self.session.updated_tick().and_then(|tick| self.session.stamp(tick));
        let arrival = self.session.server_clock().and_then(ServerClock::arrival);
        let tick = self.session.tick_time();
        if let (Some(stamp), Some(arrival), Some(tick)) = (stamp, arrival, tick) {
            let update = Update { now: self.heard_at, stamp, arrival, tick };
            let me = self.mirror.me().map_or(EntityId::NONE, |me| me.id);
            self.motion.take(update, me, self.mirror.figures());
        }
    }

    fn take_text(&mut self, kind: EventKind, from: EntityId, text: String) {
        let speaker = self.mirror.figure(from).and_then(|figure| figure.name.clone());
        match kind {
            EventKind::CHAT => self.mirror.tell(MessageKind::Chat, speaker, text),
            EventKind::COMBAT => self.mirror.tell(MessageKind::Combat, None, text),
            _ => self.mirror.tell(MessageKind::Notice, None, text),
        }
    }

    /// When to call [`Client::handle_timeout`] and [`Client::poll_transmit`] at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.session.poll_timeout()
    }

    /// Writes the next datagram for the server into `buf`, and gives its length.
    pub fn poll_transmit(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        self.session.poll_transmit(now, buf)
    }

    /// Asks for a command to be executed.
    ///
    /// # Errors
    /// There is no session, or earlier input still waits.
    pub fn act(&mut self, command: Command) -> Result<(), PushError> {
        action(command).map_or(Ok(()), |action| self.session.push(action))
    }

    /// Forgets steps that have not been sent: the key was let go.
    pub fn stop_walking(&mut self) {
        self.session.clear_steps();
    }

    /// Asks what there is to know of an entity; the answer comes into the mirror's details.
    ///
    /// # Errors
    /// There is no session, or too many questions are open.
    pub fn look(&mut self, now: Instant, entity: EntityId) -> Result<(), PushError> {
        self.session.query(now, entity_to_wire(entity))
    }

    /// Says goodbye. Send until [`Client::is_drained`].
    pub fn leave(&mut self, now: Instant) {
        self.session.leave(now);
    }

    /// Whether everything that was to be said has been sent.
    pub const fn is_drained(&self) -> bool {
        self.session.is_drained()
    }

    /// What the player sees.
    pub const fn mirror(&self) -> &Mirror {
        &self.mirror
    }

    /// Adds a line of the client's own to the message log.
    pub fn tell(&mut self, text: impl Into<String>) {
        self.mirror.tell(MessageKind::Local, None, text.into());
    }

    /// Where the player stands once everything that it did is executed, as far as one can know:
    /// steps are shown at once and corrected by what the server says (section 3, tag 0x10).
    pub fn position(&self) -> Option<Pos> {
        let me = self.mirror.me()?;
        let sent = self.session.in_flight().map(|sent| &sent.action);
        let steps = sent.chain(self.session.queued()).filter_map(|action| match action {
            caves_session::caves::OwnedAction::Walk(way) => Some(direction_from_wire(*way)),
            _ => None,
        });
        Some(steps.fold(me.pos, |pos, way| self.step(me, pos, way)))
    }

    /// All figures and where to draw them at `now`, ascending by id: oneself where
    /// [`Client::position`] has it, and the others between two updates, some time ago, so that they
    /// move evenly. The figures themselves are those of the last complete update.
    pub fn shown_at(&self, now: Instant) -> impl Iterator<Item = Shown<'_>> {
        let me = self.mirror.me().map(|me| me.id);
        let own = self.position();
        self.mirror.figures().iter().map(move |figure| {
            let own = own.filter(|_| me == Some(figure.id)).map(Place::from);
            let other = || self.motion.place(now, figure, |pos| self.is_open(pos));
            Shown { figure, place: own.unwrap_or_else(other) }
        })
    }

    /// When a figure of [`Client::shown_at`] will next be nearest to another tile, if nothing comes
    /// until then. `None` while all stand: nothing has to be drawn on their account.
    pub fn next_step(&self, now: Instant) -> Option<Instant> {
        self.motion.next_step(now, |pos| self.is_open(pos))
    }

    /// The tick that the others are shown at, and what has passed of the next one, 0 to 1.
    pub fn shown_tick(&self, now: Instant) -> Option<(Tick, f32)> {
        self.session.tick_at(self.motion.moment(now)?)
    }

    /// How far the others are shown behind the earliest news of them: a tick or more.
    pub fn delay(&self) -> Duration {
        self.motion.delay()
    }

    /// The tick that the server has at `now`, and what has passed of the next one, 0 to 1.
    pub fn server_tick(&self, now: Instant) -> Option<(Tick, f32)> {
        self.session.server_tick(now)
    }

    /// One step as the server will take it, if nothing moves in between.
    fn step(&self, me: &Figure, pos: Pos, way: Direction) -> Pos {
        let next = pos.step(way);
        let open = self.is_open(next);
        // Creatures stand in the way; players and things do not.
        let mut others = self.mirror.figures().iter().filter(|figure| figure.id != me.id);
        let taken = others.any(|figure| figure.pos == next && self.blocks(figure));
        if open && !taken { next } else { pos }
    }

    fn is_open(&self, pos: Pos) -> bool {
        self.mirror.tile(pos).is_some_and(|tile| self.mirror.content().is_walkable(tile))
    }

    fn blocks(&self, figure: &Figure) -> bool {
        let class = self.mirror.content().kind(figure.kind).map(|kind| kind.class);
        figure.is_hostile || class == Some(caves_world::Class::Monster)
    }

    /// How the session stands.
    pub fn status(&self, now: Instant) -> ClientStatus {
        self.session.status(now)
    }

    /// The server's name, as it said at the last Welcome.
    pub fn server_name(&self) -> &str {
        &self.server_name
    }

    /// The newest tick heard of.
    pub fn tick(&self) -> Option<Tick> {
        self.session.tick()
    }

    /// The smoothed round trip.
    pub fn round_trip(&self) -> Option<Duration> {
        self.session.round_trip()
    }

    /// Ticks of the last 64 that did not come, in percent.
    pub fn loss_percent(&self) -> Option<u32> {
        self.session.loss_percent()
    }

    /// Whether a chunk around the player is missing.
    pub fn misses_chunks(&self) -> bool {
        self.session.misses_chunks()
    }

    /// The session below.
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Does something wrong from now on.
    #[doc(hidden)]
    #[cfg(feature = "faults")]
    pub const fn inject(&mut self, fault: Fault) {
        self.session.inject(fault);
    }

    /// The session below, to be changed by a test.
    #[cfg(feature = "testing")]
    pub const fn session_mut(&mut self) -> &mut Session {
        &mut self.session
    }

    /// What was received and dropped.
    pub const fn counters(&self) -> &Counters {
        self.session.counters()
    }
}
