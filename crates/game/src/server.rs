//! A whole server: sessions, a world, and one tick after the other.

mod keep;
mod operate;
mod stream;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use caves_link::bucket::TokenBucket;
use caves_link::time::{Deadline, Instant};
use caves_session::caves::{
    Joined, Left, OwnedAction, Server as Sessions, ServerConfig as SessionConfig,
    ServerEvent as SessionEvent, ServerReceived, SessionId,
};
use caves_session::fault::Fault;
use caves_session::{Counters, Peer, Random, Transmit};
use caves_wire::caves::{EventKind, RefuseReason, Sequence, Tick};
use caves_wire::text;
use caves_world::{
    ChunkPos, Command, Direction, EntityId, Event, SPAWN, World, WorldConfig, WorldRecord,
};

use crate::convert::{command, entity_from_wire, entity_to_wire};
use crate::replicate::{self, ChunkState, VersionOffset};
use crate::save::Keep;
use crate::words;

use keep::Keeping;
pub use keep::SaveTicket;
pub use operate::Told;
use stream::Stream;

/// Ticks that are made up for after a pause; the rest is dropped.
const CATCH_UP: u32 = 5;
/// Questions that wait for their answer. One datagram asks for one answer, so this only fills when
/// the caller hands in datagrams and sends nothing.
const QUESTIONS: usize = 1024;
/// Datagrams whose sessions are looked up before the first of them is handled.
const TOGETHER: usize = 32;
/// What a player may say a second, and at once (R35).
const SAY_RATE: u32 = 1;
const SAY_BURST: u32 = 3;

/// How a server plays.
#[derive(Debug, Clone, Default)]
pub struct ServerConfig {
    /// How it treats its clients.
    pub session: SessionConfig,
    /// Which caves they are; of no meaning for a world that is kept already.
    pub seed: u64,
    /// How the world is kept; `None` forgets it.
    pub keep: Option<Keep>,
}

/// What an operator should know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// Somebody came.
    Joined {
        /// The player's name.
        name: String,
        /// From where.
        peer: Peer,
        /// The player's entity.
        entity: u32,
        /// Which kind of client.
        client_type: u16,
        /// Whether it speaks only types 0 to 7.
        source_only: bool,
        /// Whether it goes on with the entity of an earlier session.
        returned: bool,
    },
    /// A session goes on from another address.
    Moved {
        /// The player's name.
        name: String,
        /// Where it is now.
        peer: Peer,
    },
    /// Somebody went.
    Left {
        /// The player's name.
        name: String,
        /// From where.
        peer: Peer,
        /// Why.
        why: Left,
    },
    /// Somebody was not let in. Told ten times a second at most.
    Refused {
        /// The name that was wanted.
        name: String,
        /// From where.
        peer: Peer,
        /// Why.
        reason: RefuseReason,
    },
    /// The server was held up for longer than it makes up for.
    TicksDropped {
        /// How many ticks there were none.
        count: u64,
    },
    /// What is kept of a chunk cannot be read. Nobody enters it.
    ChunkUnreadable {
        /// Which.
        pos: ChunkPos,
    },
}

/// An action that was executed: for logs, replays and tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed {
    /// In which tick.
    pub tick: Tick,
    /// Whose it was.
    pub session: SessionId,
    /// Whom it moved.
    pub player: EntityId,
    /// The number that its client gave it.
    pub sequence: Sequence,
    /// What was asked of the world.
    pub command: Command,
}

/// One player in the caves.
#[derive(Debug)]
struct Player {
    session: SessionId,
    entity: EntityId,
    chunks: ChunkState,
    says: TokenBucket,
    /// Whether it is kept under its name when it goes.
    is_registered: bool,
}

/// Sessions over a world: datagrams in, ticks, datagrams out.
#[derive(Debug)]
pub struct Server {
    sessions: Sessions,
    world: World,
    /// By the session's slot.
    players: Vec<Option<Player>>,
    by_entity: BTreeMap<EntityId, SessionId>,
    offset: VersionOffset,
    tick: Tick,
    period: Duration,
    next_tick: Option<Instant>,
    /// When the last datagram of a tick was asked for.
    sent_at: Instant,
    stream: Stream,
    questions: VecDeque<(SessionId, EntityId)>,
    events: VecDeque<ServerEvent>,
    happened: Vec<Event>,
    /// The slots of those in the caves, in the order of this tick; reused.
    order: Vec<usize>,
    executed: Vec<Executed>,
    keeping: Option<Keeping>,
}

impl Server {
    /// A server whose first tick comes one period from now.
    ///
    /// `unix_millis` is the time of day; ticks are counted from it, so that a server that is started
    /// again goes forward (R31).
    pub fn new(
        config: ServerConfig,
        mut random: Box<dyn Random + Send>,
        now: Instant,
        unix_millis: u64,
    ) -> Self {
        let period = Duration::from_secs(1) / u32::from(config.session.tick_rate.clamp(1, 20));
        let tick = Tick::new((unix_millis / 100) as u32);
        let offset = VersionOffset::new(random.next_u64());
        let mut sessions = Sessions::new(config.session, random, now);
        sessions.set_tick(tick);
        let world = match &config.keep {
            Some(keep) => World::restore(
                keep.world.unwrap_or_else(|| WorldRecord::new(config.seed)),
                keep.idle_chunks,
            ),
            None => World::new(WorldConfig { seed: config.seed, ..WorldConfig::default() }),
        };
        Self {
            sessions,
            world,
            players: Vec::new(),
            by_entity: BTreeMap::new(),
            offset,
            tick,
            period,
            next_tick: Some(now + period),
            sent_at: Instant::ZERO,
            stream: Stream::new(),
            questions: VecDeque::new(),
            events: VecDeque::new(),
            happened: Vec::new(),
            order: Vec::new(),
            executed: Vec::new(),
            keeping: config.keep.map(|keep| Keeping::new(keep, now)),
        }
    }

    /// Takes what came from a socket.
    pub fn handle_datagram(&mut self, now: Instant, from: Peer, datagram: &[u8]) {
        self.handle_recognized(now, from, datagram, None);
    }

    /// Takes many that came together, one after the other; cheaper than each by itself where there are
    /// many players.
    pub fn handle_datagrams<'d>(
        &mut self,
        now: Instant,
        datagrams: impl Iterator<Item = (Peer, &'d [u8])> + Clone,
    ) {
        let mut rest = datagrams.peekable();
        while rest.peek().is_some() {
            let mut recognized = [None; TOGETHER];
            for (known, (from, datagram)) in recognized.iter_mut().zip(rest.clone()) {
                *known = self.sessions.recognize(from, datagram);
            }
            for (known, (from, datagram)) in recognized.into_iter().zip(rest.by_ref()) {
                self.handle_recognized(now, from, datagram, known);
            }
        }
    }

    fn handle_recognized(
        &mut self,
        now: Instant,
        from: Peer,
        datagram: &[u8],
        recognized: Option<SessionId>,
    ) {
        match self.sessions.handle_recognized(now, from, datagram, recognized) {
            ServerReceived::Action { session, view } => {
                self.follow_sessions(now);
                if let Some(player) = self.player(session) {
                    player.chunks.ask(view.cache());
                }
            }
            ServerReceived::Query { session, entity } if self.questions.len() < QUESTIONS => {
                self.questions.push_back((session, entity_from_wire(entity)));
            }
            _ => {}
        }
        self.follow_sessions(now);
    }

    /// Runs the ticks that are due and lets silent sessions go.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.sessions.handle_timeout(now);
        self.follow_sessions(now);
        self.executed.clear();
        if !self.stream.is_empty() {
            // Everybody is sent a tick before there is another one: under too much load all ticks come
            // later, and nobody's alone.
            return;
        }
        // One that was due before the last one was sent is not made up for: it would be sent to nobody.
        let was_held = self.next_tick.is_some_and(|due| due <= self.sent_at);
        let mut left = if was_held { 1 } else { CATCH_UP };
        while let Some(due) = self.next_tick.filter(|due| *due <= now) {
            if left == 0 {
                let late = now.saturating_since(due).as_micros() / self.period.as_micros() + 1;
                self.events.push_back(ServerEvent::TicksDropped { count: late as u64 });
                // The first that is not due yet: no more is dropped than is told.
                self.next_tick = Some(due + self.period.saturating_mul(late as u32));
                break;
            }
            left -= 1;
            self.next_tick = Some(due + self.period);
            self.run_tick(now);
        }
    }

    /// What an operator should know next.
    pub fn poll_event(&mut self) -> Option<ServerEvent> {
        self.events.pop_front()
    }

    /// When to call [`Server::handle_timeout`] at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        // While a tick is being sent none is due.
        let tick = self.next_tick.filter(|_| self.stream.is_empty());
        Deadline::earliest([tick, self.sessions.poll_timeout()])
    }

    /// Writes the next datagram into `buf`, which has room for 1200 bytes.
    pub fn poll_transmit(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        let other = self.sessions.poll_transmit(now, buf).or_else(|| self.next_detail(buf));
        if let Some(transmit) = other {
            self.sessions.note_sent(transmit.to, transmit.len);
            return other;
        }
        let was_sending = !self.stream.is_empty();
        let next = self.next_of_stream(now, buf);
        if was_sending && next.is_none() {
            self.sent_at = now;
        }
        next
    }

    /// Ends all sessions; nobody is let in any more. Done when [`Server::is_drained`].
    pub fn shut_down(&mut self, now: Instant) {
        self.sessions.shut_down(now);
        self.follow_sessions(now);
        self.next_tick = None;
        self.stream.clear();
    }

    /// Whether everything that was to be said has been sent.
    pub fn is_drained(&self) -> bool {
        self.sessions.is_drained()
    }

    /// Players in the caves.
    pub fn players(&self) -> usize {
        self.by_entity.len()
    }

    /// Which caves they are.
    pub fn seed(&self) -> u64 {
        self.world.seed()
    }

    /// The present tick.
    pub const fn tick(&self) -> Tick {
        self.tick
    }

    /// The caves.
    pub const fn world(&self) -> &World {
        &self.world
    }

    /// What was executed in the last [`Server::handle_timeout`], in that order: one action a session
    /// and tick (R19).
    pub fn executed(&self) -> &[Executed] {
        &self.executed
    }

    /// Does something wrong from now on.
    #[doc(hidden)]
    #[cfg(feature = "faults")]
    pub const fn inject(&mut self, fault: Fault) {
        self.sessions.inject(fault);
    }

    /// The sessions.
    pub const fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// What was received and dropped.
    pub const fn counters(&self) -> &Counters {
        self.sessions.counters()
    }

    /// The caves, to be changed by a test.
    #[cfg(feature = "testing")]
    pub const fn world_mut(&mut self) -> &mut World {
        &mut self.world
    }

    /// The sessions, to be changed by a test.
    #[cfg(feature = "testing")]
    pub const fn sessions_mut(&mut self) -> &mut Sessions {
        &mut self.sessions
    }

    /// The next tick is the one after this.
    #[cfg(feature = "testing")]
    pub const fn set_tick(&mut self, tick: Tick) {
        self.tick = tick;
    }

    fn player(&mut self, session: SessionId) -> Option<&mut Player> {
        let player = self.players.get_mut(session.slot())?.as_mut()?;
        (player.session == session).then_some(player)
    }

    /// Lets those in whose sessions began, and takes those out whose sessions ended.
    fn follow_sessions(&mut self, now: Instant) {
        while let Some(event) = self.sessions.poll_event() {
            match event {
                SessionEvent::Joined(joined) => self.arrive(now, joined),
                SessionEvent::Left { session, entity, name, peer, why } => {
                    self.go(session, entity_from_wire(entity));
                    self.events.push_back(ServerEvent::Left { name, peer, why });
                }
                SessionEvent::Moved { session, peer } => {
                    let name = self.sessions.session(session).map_or("", |s| s.name()).to_owned();
                    self.events.push_back(ServerEvent::Moved { name, peer });
                }
                SessionEvent::Refused { peer, name, reason } => {
                    self.events.push_back(ServerEvent::Refused { name, peer, reason });
                }
                _ => {}
            }
        }
    }

    fn enter(&mut self, now: Instant, joined: Joined) {
        let Joined { session, peer, name, client_type, source_only, takes_over } = joined;
        let old = takes_over.map(entity_from_wire);
        let entity = match old.filter(|id| self.world.entity(*id).is_some()) {
            Some(entity) => entity,
            None => self.spawn(session, name.as_deref()),
        };
        // The session that had this entity has ended without a word.
        if let Some(before) = self.by_entity.insert(entity, session) {
            self.forget(before);
        }
        self.sessions.admit(now, session, entity_to_wire(entity));
        let view = self.sessions.session(session);
        let (name, is_registered) =
            view.map_or(("", false), |view| (view.name(), view.is_registered()));
        let name = name.to_owned();
        // A guest whose name somebody else holds got another one.
        self.world.rename_player(entity, &name);
        let slot = session.slot();
        if self.players.len() <= slot {
            self.players.resize_with(slot + 1, || None);
        }
        let (chunks, says) = (ChunkState::new(now), TokenBucket::new(SAY_RATE, SAY_BURST, now));
        self.players[slot] = Some(Player { session, entity, chunks, says, is_registered });
        self.events.push_back(ServerEvent::Joined {
            name,
            peer,
            entity: entity.0,
            client_type: client_type.0,
            source_only,
            returned: old == Some(entity),
        });
    }

    /// A player's figure: where and as it was kept, or a new one.
    fn spawn(&mut self, session: SessionId, name: Option<&str>) -> EntityId {
        let Some(mut record) = self.record_of(session).cloned() else {
            return self.world.spawn_player(name);
        };
        if !self.world.is_ready(record.pos) {
            record.pos = SPAWN;
        }
        let kept = self.world.spawn_saved(&record);
        kept.unwrap_or_else(|| self.world.spawn_player(name))
    }

    fn forget(&mut self, session: SessionId) {
        if self.player(session).is_some() {
            self.players[session.slot()] = None;
        }
    }

    fn go(&mut self, session: SessionId, entity: EntityId) {
        let is_registered = self.player(session).is_some_and(|player| player.is_registered);
        self.forget(session);
        self.turn_back(session);
        // Another session may have taken the entity over.
        if self.by_entity.get(&entity) == Some(&session) {
            self.by_entity.remove(&entity);
            if is_registered {
                self.keep_leaving(entity);
            }
            self.world.remove_player(entity);
        }
    }

    fn run_tick(&mut self, now: Instant) {
        self.tick = self.tick.next();
        self.sessions.set_tick(self.tick);
        self.rotate_order();
        self.execute_actions(now);
        self.world.step();
        self.tell_what_happened();
        self.keep(now);
        self.start_stream();
    }

    /// Another player is the first in each tick: to act (R19), and to be sent what happened.
    fn rotate_order(&mut self) {
        self.order.clear();
        let taken = self.players.iter().enumerate().filter(|(_, player)| player.is_some());
        self.order.extend(taken.map(|(slot, _)| slot));
        if !self.order.is_empty() {
            let first = self.tick.get() as usize % self.order.len();
            self.order.rotate_left(first);
        }
    }

    /// One action a session, in an order that rotates each tick (R19).
    fn execute_actions(&mut self, now: Instant) {
        for slot in &self.order {
            let Some(player) = &mut self.players[*slot] else { continue };
            let Some((sequence, action)) = self.sessions.next_action(player.session) else {
                continue;
            };
            let mut command = cleaned(now, action, &mut player.says);
            if self.sessions.faults().has(Fault::TurnsRound)
                && command == Command::Move(Direction::North)
            {
                command = Command::Move(Direction::South);
            }
            let (session, player, tick) = (player.session, player.entity, self.tick);
            for _ in 0..1 + usize::from(self.sessions.faults().has(Fault::ActsTwice)) {
                // An action without effect counts as executed (R19).
                let _ = self.world.execute(player, command.clone());
                let command = command.clone();
                self.executed.push(Executed { tick, session, player, sequence, command });
            }
        }
    }

    fn tell_what_happened(&mut self) {
        let mut happened = std::mem::take(&mut self.happened);
        self.world.take_events(&mut happened);
        for event in happened.drain(..) {
            self.tell(event);
        }
        self.happened = happened;
    }

    fn tell(&mut self, event: Event) {
        let combat = EventKind::COMBAT;
        match event {
            Event::Said { by, text } => self.tell_viewers(by, EventKind::CHAT, &text, |_| true),
            // The blow that decides a fight is told as its end, which follows.
            Event::Struck { remaining: 0, .. } => {}
            Event::Struck { attacker, target, damage, remaining } => {
                let (who, whom) =
                    (words::the(&self.world, attacker), words::the(&self.world, target));
                let text = format!("You hit {whom} for {damage} ({remaining} left).");
                self.tell_one(attacker, combat, attacker, &text);
                let who = words::capital(&who);
                let text = format!("{who} hits you for {damage} ({remaining} left).");
                self.tell_one(target, combat, attacker, &text);
            }
            Event::Killed { killer, victim, kind, name, at: _, elo } => {
                let whom = words::named(self.world.content(), name.as_deref(), kind);
                let who = words::the(&self.world, killer);
                self.tell_one(killer, combat, victim, &format!("You kill {whom}. Elo {elo:+}."));
                let text = format!("{} kills you. Elo {:+}.", words::capital(&who), -elo);
                self.tell_one(victim, combat, killer, &text);
                let text = format!("{} kills {whom}.", words::capital(&who));
                self.tell_viewers(killer, combat, &text, |to| to != killer && to != victim);
            }
            Event::Respawned { player } => {
                let text = "You wake up at the entrance of the caves.";
                self.tell_one(player, EventKind::NOTICE, EntityId::NONE, text);
            }
            Event::Notice { to, notice } => {
                let text = words::notice(self.world.content(), &notice);
                self.tell_one(to, EventKind::NOTICE, EntityId::NONE, &text);
            }
        }
    }

    fn tell_one(&mut self, to: EntityId, kind: EventKind, from: EntityId, text: &str) {
        if let Some(session) = self.by_entity.get(&to) {
            self.sessions.send_event(*session, kind, entity_to_wire(from), text);
        }
    }

    /// Tells those in whose viewport an entity is.
    fn tell_viewers(
        &mut self,
        about: EntityId,
        kind: EventKind,
        text: &str,
        whom: impl Fn(EntityId) -> bool,
    ) {
        for (viewer, session) in &self.by_entity {
            if whom(*viewer) && self.world.visible(*viewer, about) {
                self.sessions.send_event(*session, kind, entity_to_wire(about), text);
            }
        }
    }

    fn next_detail(&mut self, buf: &mut [u8]) -> Option<Transmit> {
        while let Some((session, of)) = self.questions.pop_front() {
            let Some(view) = self.sessions.session(session) else { continue };
            let viewer = entity_from_wire(view.entity());
            if let Some(len) = replicate::emit_detail(&self.world, self.tick, viewer, of, buf) {
                return Some(Transmit { to: view.peer(), len });
            }
        }
        None
    }
}

/// What an action asks of the world; what is said is stripped, and not said too often (R32, R35).
fn cleaned(now: Instant, action: OwnedAction, says: &mut TokenBucket) -> Command {
    match action {
        OwnedAction::Say(said) => {
            let said: String = text::clean(&said).collect();
            if said.trim().is_empty() || !says.take(now) {
                Command::Other
            } else {
                Command::Say(said)
            }
        }
        other => command(other),
    }
}
