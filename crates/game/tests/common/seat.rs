//! One client of the site, and what it must show.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;

use caves_game::Client;
use caves_game::client::ClientEvent;
use caves_game::mirror::MessageKind;
use caves_link::time::Instant;
use caves_netsim::LinkId;
use caves_session::Peer;
use caves_session::caves::{ClientConfig, OwnedAction};
use caves_wire::caves::PacketType;
use caves_world::{ChunkPos, Command, Direction, EntityId, KindId};

use super::Wakes;
use super::truth::{Seen, Truth, broken, count};

pub(crate) struct Seat {
    pub(crate) client: Client,
    pub(crate) name: String,
    pub(crate) peer: Peer,
    pub(crate) events: Vec<ClientEvent>,
    pub(crate) up: LinkId,
    pub(crate) down: LinkId,
    pub(crate) types_received: BTreeMap<u8, usize>,
    /// A client that was killed neither speaks nor hears.
    pub(crate) dead: bool,
    pub(super) config: ClientConfig,
    pub(super) place: usize,
    /// How often it was started before.
    pub(super) start: u32,
    /// How far its clock is ahead.
    pub(super) clock: Duration,
    pub(super) wakes: Wakes,
    /// When it last came into a session.
    pub(crate) joined_at: Option<Instant>,
    /// What damaged bytes may have told it is not held against it.
    pub(super) tainted: bool,
    /// The network has spoken to the server in its name.
    pub(crate) garbled: bool,
    /// It was sent an event of another session.
    pub(super) misread: bool,
    pub(super) shown: Option<u32>,
    /// The newest tick shown in this session.
    pub(super) newest: Option<u32>,
    /// Chunks that it was sent in this session.
    pub(super) known: HashSet<ChunkPos>,
    pub(super) welcomed_at_event: u32,
    /// How many messages were looked at.
    pub(super) told: u64,
    /// The place of its next event among those of its session.
    pub(super) next_event: usize,
    pub(super) queries_until: VecDeque<Instant>,
    /// What has to arrive: how often it was asked for and not settled.
    pub(crate) owed: HashMap<String, i32>,
}

impl Seat {
    /// Takes what the client has to tell, and holds it against the truth; whether it was anything.
    pub(super) fn hear(&mut self, truth: &Truth, now: Instant) -> bool {
        let (before, told) = (self.events.len(), self.client.mirror().told());
        while let Some(event) = self.client.poll_event() {
            match &event {
                ClientEvent::Joined { resumed, .. } => {
                    self.joined_at = Some(now);
                    // What was known before may be shown again, tick and all.
                    self.shown = None;
                    if !resumed {
                        self.begin(truth);
                    }
                }
                ClientEvent::CommandLost(command) => {
                    *self.owed.entry(format!("{command:?}")).or_default() -= 1;
                }
                _ => {}
            }
            self.events.push(event);
        }
        self.check_texts(truth);
        self.check_update(truth);
        self.events.len() > before || self.client.mirror().told() > told
    }

    /// Another session has begun: nothing of the last one's caves is shown.
    pub(super) fn begin(&mut self, truth: &Truth) {
        if let Some(chunk) = self.known.iter().find(|c| self.client.mirror().chunk(**c).is_some()) {
            broken!("caves", "{chunk:?} of another session is still shown");
        }
        self.known.clear();
        self.newest = None;
        (self.tainted, self.misread) = (false, false);
        if let Some(token) = self.client.session().token() {
            self.next_event = truth.first_event(token, self.welcomed_at_event);
        }
    }

    /// Each text once and in order, as the server has sent it.
    pub(super) fn check_texts(&mut self, truth: &Truth) {
        let mirror = self.client.mirror();
        let new = (mirror.told() - self.told) as usize;
        self.told = mirror.told();
        let Some(token) = self.client.session().token() else { return };
        let messages = mirror.messages();
        for message in messages.iter().skip(messages.len().saturating_sub(new)) {
            if message.kind == MessageKind::Local {
                continue;
            }
            let sent = truth.event(token, self.next_event);
            count(&truth.compared.texts);
            let sure = !self.tainted && !self.misread && !truth.is_tainted(token);
            if sent != Some(&message.text) && sure {
                broken!("events", "{} reads {:?} for {sent:?}", self.name, message.text);
            }
            self.next_event += 1;
        }
    }

    /// A client shows one tick as it was, never a mix of two, and never goes back.
    pub(super) fn check_update(&mut self, truth: &Truth) {
        let session = self.client.session();
        let Some(tick) = session.updated_tick().map(|tick| tick.get()) else { return };
        if self.shown == Some(tick) {
            return;
        }
        let ahead = self.shown.map_or(1, |shown| tick.wrapping_sub(shown));
        self.shown = Some(tick);
        if self.tainted {
            return;
        }
        // Further back is another server's time (R31).
        if ahead.wrapping_neg() <= 600 {
            broken!("back", "tick {tick} is shown after a newer one");
        }
        let mirror = self.client.mirror();
        let shown: Vec<Seen> = (mirror.figures().iter())
            .map(|figure| (figure.id, figure.pos, figure.hp, figure.hp_max))
            .collect();
        if let (Some(token), Some(me)) = (session.token(), session.player()) {
            truth.check_view(tick, EntityId(me.0), &shown);
            // A Welcome that resumes the session may be older than what was shown before it; what
            // was executed is not forgotten then.
            if self.newest.is_none_or(|newest| tick.wrapping_sub(newest) < 1 << 31) {
                self.newest = Some(tick);
                truth.check_bits(token, tick, session.executed());
            }
        }
    }

    /// Notes to which action the client has given a number.
    pub(super) fn note_issued(&self, truth: &mut Truth) {
        let session = self.client.session();
        let Some(token) = session.token() else { return };
        if let Some(sent) = session.in_flight().last() {
            let (number, by) = (sent.sequence.get(), (self.place, self.start));
            truth.issue(token, number, command(&sent.action), by);
        }
    }

    /// A question ends, answered or not.
    pub(super) fn check_queries(&mut self, now: Instant) {
        while self.queries_until.pop_front_if(|until| *until <= now).is_some() {}
        let open = self.client.session().gauges().queries;
        if open > self.queries_until.len() {
            broken!("queries", "{open} are open, of {} that may be", self.queries_until.len());
        }
    }

    /// Whether everything that the server has sent to this session was read.
    pub(crate) fn has_read_all(&self, truth: &Truth) -> bool {
        let token = self.client.session().token();
        self.misread || token.is_none_or(|token| truth.event(token, self.next_event).is_none())
    }

    pub(crate) const fn is_tainted(&self) -> bool {
        self.tainted
    }

    pub(crate) fn texts(&self) -> Vec<&str> {
        self.client.mirror().messages().iter().map(|message| message.text.as_str()).collect()
    }

    pub(crate) fn received(&self, packet_type: PacketType) -> usize {
        self.types_received.get(&packet_type.0).copied().unwrap_or(0)
    }
}

/// What had to arrive of a client's has arrived.
pub(super) fn settle(seats: &mut [Seat], by: (usize, u32), command: &Command) {
    if let Some(seat) = seats.get_mut(by.0).filter(|seat| seat.start == by.1)
        && must_arrive(command)
    {
        *seat.owed.entry(format!("{command:?}")).or_default() -= 1;
    }
}

/// Section 4 of the protocol, R36.
pub(super) const fn must_arrive(command: &Command) -> bool {
    !matches!(command, Command::Move(_) | Command::Attack(_) | Command::Other)
}

/// What an action asks for, by section 4.
fn command(action: &OwnedAction) -> Command {
    match action {
        OwnedAction::Walk(way) => Command::Move(direction(*way)),
        OwnedAction::Attack(way) => Command::Attack(direction(*way)),
        OwnedAction::Dig(way) => Command::Dig(direction(*way)),
        OwnedAction::Interact(entity) => Command::Interact(EntityId(entity.0)),
        OwnedAction::PickUp => Command::PickUp,
        OwnedAction::Drop { item, count } => Command::Drop { item: KindId(*item), count: *count },
        OwnedAction::Say(text) => Command::Say(text.clone()),
        _ => Command::Other,
    }
}

/// Section 4: North, East, South, West are 0 to 3 on the wire.
pub(super) fn direction(way: caves_wire::caves::Direction) -> Direction {
    match way {
        caves_wire::caves::Direction::North => Direction::North,
        caves_wire::caves::Direction::East => Direction::East,
        caves_wire::caves::Direction::South => Direction::South,
        caves_wire::caves::Direction::West => Direction::West,
    }
}
