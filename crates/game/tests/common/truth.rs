//! What the server did, tick by tick, and what must hold of what clients show: kept beside the code
//! under test and calculated in another way, from what was executed and what the world held.
//!
//! Each invariant has a name in brackets, by which a failure is told from another.

use std::cell::Cell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use caves_game::{Client, Executed, Server};
use caves_link::time::Instant;
use caves_session::Peer;
use caves_session::caves::{ClientStatus, SessionId};
use caves_wire::caves::{Packet, Sequence, Token};
use caves_wire::text;
use caves_world::{ChunkPos, Command, EntityId, Pos, World};

/// Ticks that are remembered: no datagram is under way for longer.
const TICKS: usize = 128;
/// The age at which a session ends by silence (R21).
const SILENCE: Duration = Duration::from_secs(10);

/// Fails with the name of the invariant in front.
macro_rules! broken {
    ($name:literal, $($what:tt)*) => { panic!("[{}] {}", $name, format!($($what)*)) };
}
pub(crate) use broken;

/// An entity as a client must show it.
pub(crate) type Seen = (EntityId, Pos, u16, u16);

#[derive(Default)]
pub(crate) struct Truth {
    /// Counts servers: one that is started again is another one.
    pub(crate) life: u32,
    ticks: VecDeque<TickTruth>,
    chunks: HashMap<ChunkPos, ChunkTruth>,
    sessions: HashMap<(u32, SessionId), SessionTruth>,
    by_token: HashMap<Token, (u32, SessionId)>,
    issued: HashMap<(Token, u32), Issued>,
    /// Tokens in whose name something damaged has come to the server.
    tainted: HashSet<Token>,
    accounts: HashMap<Peer, Account>,
    /// How often something was held against the truth.
    pub(crate) compared: Compared,
    seen: Vec<EntityId>,
}

/// How often each of these was compared: a check that is never made finds nothing.
#[derive(Default)]
pub(crate) struct Compared {
    /// Actions that took effect, each with what its client asked for.
    pub(crate) actions: Cell<u64>,
    /// What clients say was executed.
    pub(crate) bits: Cell<u64>,
    /// What clients show of a tick.
    pub(crate) views: Cell<u64>,
    /// Chunks shown, tile for tile.
    pub(crate) chunks: Cell<u64>,
    /// Texts read.
    pub(crate) texts: Cell<u64>,
}

/// One more.
pub(crate) fn count(counter: &Cell<u64>) {
    counter.set(counter.get() + 1);
}

struct TickTruth {
    tick: u32,
    /// What each player saw, ascending by id.
    views: Vec<(EntityId, Vec<Seen>)>,
    /// Whose sessions there were.
    tokens: Vec<Token>,
}

/// All that a chunk ever was.
#[derive(Default)]
struct ChunkTruth {
    now: (u32, u16),
    versions: Vec<u64>,
}

#[derive(Default)]
struct SessionTruth {
    executed: Vec<(u32, u32)>,
    /// Number and text, in the order in which they were sent first.
    events: Vec<(u32, String)>,
}

/// A number that was given out, by whom and for what. A process that goes on with the session of one
/// before it may give out a number of which the server has not heard; one of the two takes effect.
#[derive(Default)]
struct Issued {
    of: Vec<(Issuer, Command)>,
    done_in: Option<u32>,
}

/// Which start of which client.
pub(crate) type Issuer = (usize, u32);

/// Bytes of UDP payload from and to an address.
#[derive(Default)]
struct Account {
    got: usize,
    sent: usize,
    proven: bool,
}

impl Truth {
    /// Another server begins.
    pub(crate) fn next_life(&mut self) {
        self.life += 1;
        self.accounts.clear();
        self.chunks.values_mut().for_each(|chunk| chunk.now = (0, 0));
    }

    /// A tick has run: what everybody sees, and which chunks have changed.
    pub(crate) fn take_tick(&mut self, server: &Server) {
        let world = server.world();
        let mut views = Vec::new();
        for player in world.players() {
            world.in_view(player, &mut self.seen);
            let mut view: Vec<Seen> = (self.seen.iter())
                .filter_map(|id| world.entity(*id))
                .map(|entity| (entity.id, entity.pos, entity.hp, entity.hp_max))
                .collect();
            view.sort_unstable();
            views.push((player, view));
            let Some(pos) = world.entity(player).map(|entity| entity.pos) else { continue };
            for chunk in pos.chunk().around() {
                let Some(loaded) = world.loaded_chunk(chunk) else { continue };
                let truth = self.chunks.entry(chunk).or_default();
                let now = (self.life + 1, loaded.version());
                if truth.now != now {
                    truth.now = now;
                    truth.versions.push(world_hash(world, chunk).expect("loaded"));
                }
            }
        }
        let tick = server.tick().get();
        let tokens = server.sessions().sessions().map(|(_, session)| session.token()).collect();
        self.ticks.push_back(TickTruth { tick, views, tokens });
        if self.ticks.len() > TICKS {
            self.ticks.pop_front();
        }
    }

    /// Which token opens which session.
    pub(crate) fn take_sessions(&mut self, server: &Server) {
        for (id, session) in server.sessions().sessions() {
            self.by_token.insert(session.token(), (self.life, id));
        }
    }

    /// A client has given an action its number.
    pub(crate) fn issue(&mut self, token: Token, number: u32, command: Command, by: Issuer) {
        let issued = self.issued.entry((token, number)).or_default();
        if issued.of.last().is_none_or(|(last, _)| *last != by) {
            issued.of.push((by, command));
        }
    }

    /// An action took effect. Whose it was, if that is known.
    pub(crate) fn take_executed(
        &mut self,
        server: &Server,
        done: &Executed,
    ) -> Option<(Issuer, Command)> {
        let view = server.sessions().session(done.session)?;
        let (token, number) = (view.token(), done.sequence.get());
        let session = self.sessions.entry((self.life, done.session)).or_default();
        let last = session.executed.last().map(|(_, number)| *number);
        session.executed.push((done.tick.get(), number));
        let before = last.and_then(|last| self.issued.get(&(token, last)));
        let before = before.and_then(|issued| Some(issued.of.last()?.0));
        let sure = !self.tainted.contains(&token);
        let Some(issued) = self.issued.get_mut(&(token, number)) else {
            if sure {
                broken!("origin", "nobody gave {number} out, executed was {:?}", done.command);
            }
            return None;
        };
        let done_before = issued.done_in.replace(self.life);
        // A third line within a second is executed without effect (R35).
        let is = |command: &Command| {
            let silenced = matches!(command, Command::Say(_)) && done.command == Command::Other;
            silenced || cleaned(command) == done.command
        };
        let Some((by, command)) = issued.of.iter().rev().find(|(_, command)| is(command)) else {
            if sure {
                broken!("origin", "{:?} became {:?}", issued.of, done.command);
            }
            return None;
        };
        // What a plain client did before the server was started again may come once more (R30).
        let plain = view.features().0 == 0;
        if sure && done_before.is_some_and(|life| life == self.life || !plain) {
            broken!("once", "{command:?} under {number} took effect twice");
        }
        count(&self.compared.actions);
        let ahead = last.map(|last| number.wrapping_sub(last));
        let in_order = ahead.is_none_or(|ahead| (1..1 << 31).contains(&ahead));
        if sure && !in_order && before == Some(*by) {
            broken!("order", "{number} took effect after {last:?}");
        }
        Some((*by, command.clone()))
    }

    /// What a client says of its executed actions is what was executed up to that tick.
    pub(crate) fn check_bits(&self, token: Token, tick: u32, told: Option<(Sequence, u32)>) {
        if self.tainted.contains(&token) {
            return;
        }
        let key = self.by_token.get(&token);
        let Some(session) = key.and_then(|key| self.sessions.get(key)) else { return };
        // The first updates of another session for the same player may come before its Welcome, or
        // without one that is expected; they tell nothing of this session's actions.
        let at = self.ticks.iter().rev().find(|at| at.tick == tick);
        if at.is_none_or(|at| !at.tokens.contains(&token)) {
            return;
        }
        count(&self.compared.bits);
        let until = |at: &(u32, u32)| tick.wrapping_sub(at.0) < 1 << 31;
        let done = || session.executed.iter().rev().filter(|at| until(at)).map(|at| at.1);
        let Some(last) = done().next() else {
            if let Some(told) = told {
                broken!("bits", "nothing was executed up to tick {tick}, but {told:?} is told");
            }
            return;
        };
        // Of another session at the same token, such as a registered one, nothing is known here.
        let mut bits = 0u32;
        for number in done().skip(1).take(40) {
            let back = last.wrapping_sub(number);
            if (1..=32).contains(&back) {
                bits |= 1 << (back - 1);
            }
        }
        if told != Some((Sequence::new(last), bits)) {
            broken!("bits", "tick {tick}: {last} and {bits:032b} were executed, told is {told:?}");
        }
    }

    /// What a player shows of a tick is what the server had in that tick.
    pub(crate) fn check_view(&self, tick: u32, viewer: EntityId, shown: &[Seen]) {
        let Some(at) = self.ticks.iter().rev().find(|at| at.tick == tick) else { return };
        let Some((_, view)) = at.views.iter().find(|(of, _)| *of == viewer) else {
            broken!("mix", "{viewer} was not there at tick {tick}");
        };
        count(&self.compared.views);
        // What does not fit eight datagrams is left out (R14): 168 entities with all their tags do.
        let crowd = view.len() > 168 && shown.iter().all(|seen| view.contains(seen));
        if view != shown && !crowd {
            broken!("mix", "tick {tick} was {view:?}, shown is {shown:?}");
        }
    }

    /// A chunk is shown as it was at some time.
    pub(crate) fn check_chunk(&self, chunk: ChunkPos, shown: u64) {
        count(&self.compared.chunks);
        let was = self.chunks.get(&chunk).is_some_and(|truth| truth.versions.contains(&shown));
        if !was {
            broken!("tiles", "{chunk:?} was never as it is shown");
        }
    }

    /// An event is put on the wire, for the first time or again.
    pub(crate) fn take_event(&mut self, server: &Server, to: Peer, number: u32, said: &str) {
        let mut sessions = server.sessions().sessions();
        let Some((id, _)) = sessions.find(|(_, view)| view.peer() == to) else { return };
        let session = self.sessions.entry((self.life, id)).or_default();
        match session.events.last() {
            Some((last, _)) if number.wrapping_sub(*last) == 1 => {}
            Some((last, _)) if number.wrapping_sub(*last) > 1 << 31 || number == *last => return,
            Some((last, _)) => broken!("events", "number {number} follows {last}"),
            None => {}
        }
        session.events.push((number, text::clean(said).collect()));
    }

    /// The place in a session's events at which a client begins to read.
    pub(crate) fn first_event(&self, token: Token, number: u32) -> usize {
        let session = self.by_token.get(&token).and_then(|key| self.sessions.get(key));
        let events = session.map_or(&[][..], |session| &session.events);
        events.iter().position(|(of, _)| *of == number).unwrap_or(events.len())
    }

    /// The event at this place of a session.
    pub(crate) fn event(&self, token: Token, place: usize) -> Option<&str> {
        let session = self.by_token.get(&token).and_then(|key| self.sessions.get(key))?;
        session.events.get(place).map(|(_, said)| said.as_str())
    }

    /// A datagram has come to the server.
    pub(crate) fn take_bytes(&mut self, server: &Server, from: Peer, len: usize) {
        let account = self.accounts.entry(from).or_default();
        account.got += len;
        account.proven = account.proven
            || server.sessions().sessions().any(|(_, session)| session.peer() == from);
    }

    /// The server sends a datagram: to a stranger never more than came from there.
    pub(crate) fn spend_bytes(&mut self, to: Peer, len: usize) {
        let account = self.accounts.entry(to).or_default();
        account.sent += len;
        if !account.proven && account.sent > account.got {
            broken!("budget", "{} bytes to {to} for {}", account.sent, account.got);
        }
    }

    /// Whether anybody ever spoke for this address.
    pub(crate) fn is_proven(&self, peer: Peer) -> bool {
        self.accounts.get(&peer).is_some_and(|account| account.proven)
    }

    /// Something damaged came in this token's name: the network wrote it, not the client.
    pub(crate) fn taint(&mut self, bytes: &[u8]) -> Option<Token> {
        let token = match Packet::parse(bytes) {
            Ok(Packet::Action(packet)) => packet.token(),
            Ok(Packet::EventAck(packet)) => packet.token(),
            _ => return None,
        };
        self.tainted.insert(token);
        Some(token)
    }

    pub(crate) fn is_tainted(&self, token: Token) -> bool {
        self.tainted.contains(&token)
    }
}

/// What is said is stripped (R32).
fn cleaned(command: &Command) -> Command {
    match command {
        Command::Say(said) => Command::Say(text::clean(said).collect()),
        other => other.clone(),
    }
}

/// After each event: no table and no queue of the server passes its bound, and no session is dead.
pub(crate) fn check_server(server: &Server, now: Instant) {
    let gauges = server.sessions().gauges();
    let sessions = gauges.sessions;
    let (players, arriving) = (server.players(), server.arriving());
    if gauges.tokens != sessions || gauges.peers != sessions || players + arriving != sessions {
        broken!("slots", "{players} players, {arriving} arriving, {gauges:?}");
    }
    let names = gauges.names.max(gauges.accounts).max(gauges.timers).max(gauges.ready);
    if names > sessions {
        broken!("slots", "{gauges:?}");
    }
    // Sections 2 and 3 of the protocol, R19.
    let within = gauges.answers <= 1024
        && gauges.goodbyes <= 65_536
        && gauges.used_nonces <= 32_768
        && gauges.accounts_left <= 8
        && gauges.news == 0
        // 256, and 8 that were in flight when the session was resumed.
        && gauges.events_waiting <= 264
        && gauges.events_in_flight <= 8
        && gauges.actions_waiting <= 2;
    if !within {
        broken!("bounds", "{gauges:?}");
    }
    for (_, session) in server.sessions().sessions() {
        if session.silence(now) >= SILENCE {
            broken!("dead", "{} is silent for {:?}", session.name(), session.silence(now));
        }
    }
}

/// After each event: no queue of a client passes its bound.
pub(crate) fn check_client(client: &Client) {
    let gauges = client.session().gauges();
    let within = gauges.news == 0
        && gauges.chunks_held <= 4096
        && gauges.actions_waiting <= 4
        && gauges.actions_in_flight <= 16
        && gauges.acknowledgements == 0
        && gauges.queries <= 8
        && gauges.pings <= 4
        && gauges.texts_kept <= 256
        && gauges.ticks_open <= 4;
    if !within {
        broken!("bounds", "{gauges:?}");
    }
}

/// After each timeout: a client looks for a session that is silent (section 2, recovery).
pub(crate) fn check_recovery(client: &Client, now: Instant) {
    if let ClientStatus::Playing { silence, recovering: false } = client.status(now)
        && silence >= Duration::from_secs(2)
    {
        broken!("recovery", "silent for {silence:?}, and nothing is done");
    }
}

/// The tiles of a chunk in one number.
pub(crate) fn hash(tiles: impl IntoIterator<Item = u16>) -> u64 {
    tiles.into_iter().fold(0xCBF2_9CE4_8422_2325, |hash, tile| {
        (hash ^ u64::from(tile)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

/// The tiles of a chunk as the world has them, in one number.
pub(crate) fn world_hash(world: &World, chunk: ChunkPos) -> Option<u64> {
    let loaded = world.loaded_chunk(chunk)?;
    Some(hash((0..1024).map(|index| loaded.tile(index).0)))
}
