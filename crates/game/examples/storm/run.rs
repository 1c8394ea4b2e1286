//! Plays a script, and makes a failing one short.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::time::Duration;

use caves_game::{Keep, ServerConfig};
use caves_link::time::Instant;
use caves_netsim::{LinkConfig, SplitMix64};
use caves_session::caves::{ClientConfig, ClientEntry, ClientStatus, ServerConfig as Sessions};
use caves_session::fault::Fault;
use caves_wire::caves::{
    ActionPacket, ChunkEntry, ClientType, Echo, EntityId, EventAck, Hello, InfoRequest, Join,
    Leave, LeaveReason, Nonce, Query, Sequence, Token,
};

use crate::common::plain::Plain;
use crate::common::truth::broken;
use crate::common::{Site, address};
use crate::scenario::{Place, Scenario, Step, What, Who};

/// The network after the storm.
const WHOLE: LinkConfig = LinkConfig { delay: Duration::from_millis(25), ..LinkConfig::PERFECT };
/// From the Welcome, or from when the network was whole, until all nine chunks are current.
const CURRENT: Duration = Duration::from_secs(2);
/// Until everybody is back or told why not: a name is held for 10 s of silence and a refused client
/// waits 8 s, one whose server was shut down 30 s.
const BACK: Duration = Duration::from_secs(50);
/// Registered tokens: of those who join, then of those who do not.
const TOKENS: [Token; 4] = [
    Token(0x1111_0000_0000_0001),
    Token(0x1111_0000_0000_0002),
    Token(0x2222_0000_0000_0001),
    Token(0x2222_0000_0000_0002),
];

/// What a run was.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stats {
    pub(crate) runs: u64,
    /// Datagrams that arrived, timeouts and inputs: after each of them all is checked.
    pub(crate) events: u64,
    pub(crate) simulated_millis: u64,
    pub(crate) sent: u64,
    pub(crate) lost: u64,
    pub(crate) repeated: u64,
    pub(crate) reordered: u64,
    pub(crate) damaged: u64,
    pub(crate) actions: u64,
    pub(crate) bits: u64,
    pub(crate) views: u64,
    pub(crate) chunks: u64,
    pub(crate) texts: u64,
}

impl std::ops::AddAssign for Stats {
    fn add_assign(&mut self, other: Self) {
        self.runs += other.runs;
        self.events += other.events;
        self.simulated_millis += other.simulated_millis;
        self.sent += other.sent;
        self.lost += other.lost;
        self.repeated += other.repeated;
        self.reordered += other.reordered;
        self.damaged += other.damaged;
        self.actions += other.actions;
        self.bits += other.bits;
        self.views += other.views;
        self.chunks += other.chunks;
        self.texts += other.texts;
    }
}

/// What was broken, `[name] what`, or where it panicked.
pub(crate) type Failure = String;

/// The name of the invariant that a failure breaks.
pub(crate) fn name(failure: &Failure) -> &str {
    let inside = failure.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    inside.map_or("panic", |(name, _)| name)
}

/// Plays a script to its end.
pub(crate) fn run(scenario: &Scenario, fault: Option<Fault>) -> Result<Stats, Failure> {
    traced(scenario, fault, false).0
}

/// The same, with the ladder of its datagrams.
pub(crate) fn traced(
    scenario: &Scenario,
    fault: Option<Fault>,
    ladder: bool,
) -> (Result<Stats, Failure>, Vec<String>) {
    let mut site = Site::quiet(scenario.seed, config(scenario.seed));
    if ladder {
        site.draw_ladder();
    }
    if let Some(fault) = fault {
        site.inject(fault);
    }
    let played = quietly(|| play(&mut site, scenario));
    let lines = site.ladder.take().map(|ladder| ladder.lines).unwrap_or_default();
    (played.map(|()| stats(&site)), lines)
}

fn stats(site: &Site) -> Stats {
    let (net, compared) = (site.net.total(), &site.truth.compared);
    Stats {
        runs: 1,
        events: site.happened,
        simulated_millis: site.now.saturating_since(Instant::from_secs(1000)).as_millis() as u64,
        sent: net.sent,
        lost: net.lost + net.too_big + net.queue_full,
        repeated: net.duplicated,
        reordered: net.reordered,
        damaged: net.corrupted,
        actions: compared.actions.get(),
        bits: compared.bits.get(),
        views: compared.views.get(),
        chunks: compared.chunks.get(),
        texts: compared.texts.get(),
    }
}

fn config(seed: u64) -> ServerConfig {
    let entry = |place: usize, name: &str| ClientEntry {
        client_type: ClientType(7),
        name: Some(name.into()),
        allow: true,
        token: Some(TOKENS[place]),
        from: vec!["192.0.2.0/24".parse().expect("a network")],
        tags: false,
    };
    let clients = vec![entry(0, "Robo"), entry(1, "Rosa"), entry(2, "Plato"), entry(3, "Pluto")];
    // Every third world is kept: read from a store that is late, sometimes full, and outlives the server.
    let keep = seed.is_multiple_of(3).then(|| Keep {
        world: None,
        players: Vec::new(),
        interval: Duration::from_secs(1),
        idle_chunks: (seed % 9) as usize,
    });
    ServerConfig { session: Sessions { clients, ..Sessions::default() }, seed, keep }
}

fn play(site: &mut Site, scenario: &Scenario) {
    for (place, who) in scenario.seats.iter().enumerate() {
        let seat = site.join_as(client_config(place, *who), LinkConfig::PERFECT);
        site.seats[seat].dead = *who == Who::Nobody;
    }
    for plain in 0..scenario.plains {
        site.join_plain(TOKENS[2 + plain], LinkConfig::PERFECT);
    }
    let start = site.now;
    if let Some(shelf) = &mut site.shelf {
        // The disk is full in the middle third of every other run.
        let full = if scenario.seed.is_multiple_of(2) { scenario.millis * 2 / 3 } else { 0 };
        shelf.full_from = start + Duration::from_millis(scenario.millis / 3);
        shelf.full_until = start + Duration::from_millis(full);
    }
    for Step { at, what } in &scenario.steps {
        let at = start + Duration::from_millis(*at);
        while site.now < at {
            site.step(at);
        }
        happen(site, what);
    }
    let whole = start + Duration::from_millis(scenario.millis);
    while site.now < whole {
        site.step(whole);
    }
    calm(site);
    come_back(site);
}

/// So unlike that no damaged Join takes another's name.
const NAMES: [&str; 8] =
    ["Ada", "Berta", "Cem", "Dorothea", "Emil", "Friederike", "Gu", "Hildegard von B"];

fn client_config(place: usize, who: Who) -> ClientConfig {
    let named = ClientConfig { name: Some(NAMES[place].into()), ..ClientConfig::default() };
    match who {
        Who::Named => named,
        Who::Guest | Who::Nobody => ClientConfig::default(),
        Who::Registered => ClientConfig { token: Some(TOKENS[place]), ..ClientConfig::default() },
    }
}

/// One step of the script. What does not fit how things stand does nothing, so that a script whose
/// steps are left out is still one.
fn happen(site: &mut Site, what: &What) {
    match what {
        What::Line { who, up, down } => {
            let (to_server, to_client) = match who {
                Place::Seat(seat) => (site.seats[*seat].up, site.seats[*seat].down),
                Place::Plain(plain) => (site.plains[*plain].up, site.plains[*plain].down),
            };
            site.net.set_config(to_server, *up);
            site.net.set_config(to_client, *down);
        }
        What::Act { seat, command } if !site.seats[*seat].dead => {
            site.act(*seat, command.clone());
        }
        What::Look { seat, entity } if !site.seats[*seat].dead => {
            site.look(*seat, *entity);
        }
        What::LetGo { seat } => site.seats[*seat].client.stop_walking(),
        What::Step { plain, way } => site.plains[*plain].step = Some(wire(*way)),
        What::Rebind { seat, port } => {
            let host = *seat as u8 + 1;
            site.note(|| format!("seat {seat} has port {port} from now on"));
            site.seats[*seat].peer = address(host, *port);
        }
        What::Kill { who: Place::Seat(seat) } => site.kill(*seat),
        What::Kill { who: Place::Plain(plain) } => site.plains[*plain].dead = true,
        What::Start { who, port } => start(site, *who, *port),
        What::Leave { seat } if !site.seats[*seat].dead => site.leave(*seat),
        What::StopServer { says_so } if !site.down => {
            if *says_so {
                site.shut_down();
                site.run(100);
            }
            site.stop_server();
        }
        What::StartServer if site.down => site.start_server(),
        What::Jump { seat, millis } => site.jump(*seat, *millis),
        What::Intrude { kind, seat, random } => intrude(site, *kind, *seat, *random),
        _ => {}
    }
}

fn start(site: &mut Site, who: Place, port: u16) {
    match who {
        Place::Seat(seat) => {
            let here = &site.seats[seat];
            let over = matches!(site.status(seat), ClientStatus::Ended(_));
            if here.dead || over {
                let port = if port == 0 { here.peer.addr.port() } else { port };
                site.start_again(seat, address(seat as u8 + 1, port));
            }
        }
        Place::Plain(plain) => {
            let (now, seed) = (site.now, site.now.as_micros());
            let here: &mut Plain = &mut site.plains[plain];
            if here.dead {
                let port = if port == 0 { here.peer.addr.port() } else { port };
                let sequence = SplitMix64::new(seed).next_u64() as u32;
                here.start_again(address(plain as u8 + 100, port), sequence, now);
            }
        }
    }
}

/// A datagram from somebody who has nothing to do here, or in the name of a client's address.
fn intrude(site: &mut Site, kind: u8, seat: Option<usize>, random: u64) {
    let mut random = SplitMix64::new(random);
    let client_type = ClientType::OFFICIAL;
    let (nonce, token) = (Nonce(random.next_u64()), Token(random.next_u64()));
    let mut buf = [0; 1200];
    let len = match kind {
        0 => Hello { client_type, nonce }.emit(&mut buf),
        1 => Join { client_type, nonce, cookie: [7; 16], meta: &[] }.emit(&mut buf),
        2 => Echo::ping(client_type, random.next_u64()).emit(&mut buf),
        3 => InfoRequest { client_type, nonce }.emit(&mut buf),
        4 => {
            let (sequence, cache) = (Sequence::new(9), [ChunkEntry::default(); 9]);
            let action = caves_wire::caves::Action::<&str>::PickUp;
            ActionPacket { client_type, token, sequence, cache, action }.emit(&mut buf)
        }
        5 => Leave { client_type, token, reason: LeaveReason::QUIT }.emit(&mut buf),
        6 => EventAck { client_type, token, sequence: Sequence::new(0) }.emit(&mut buf),
        7 => Query { client_type, token, entity: EntityId(1) }.emit(&mut buf),
        _ => Ok(0),
    };
    let mut len = len.expect("room for all of these");
    if kind == 8 {
        // A Hello of another version is answered by a Refuse.
        len = Hello { client_type, nonce }.emit(&mut buf).expect("64 bytes");
        buf[2] = 2;
    }
    if len == 0 {
        len = if random.below(4) == 0 { 13 } else { random.below(1201) as usize };
        buf[..len].fill_with(|| random.next_u64() as u8);
        if kind == 10 && len >= 4 {
            buf[..4].copy_from_slice(&[0x4C, 0x52, 1, random.below(20) as u8]);
        }
    }
    let port = 1 + random.below(65_535) as u16;
    let own = address(200 + random.below(50) as u8, port);
    let from = seat.map_or(own, |seat| site.seats[seat].peer);
    site.intrude(from, buf[..len].to_vec());
    if seat.is_none() && site.truth.is_proven(from) {
        broken!("stranger", "{from} has a session and never proved its address");
    }
}

/// The network is whole, and whoever lives is there.
fn calm(site: &mut Site) {
    site.note(|| "the network is whole".into());
    if site.down {
        site.start_server();
    }
    for seat in 0..site.seats.len() {
        site.set_link(seat, WHOLE);
        site.seats[seat].client.stop_walking();
    }
    for plain in &site.plains {
        site.net.set_config(plain.up, WHOLE);
        site.net.set_config(plain.down, WHOLE);
    }
}

/// Everybody comes back to the same caves, or was told why not.
fn come_back(site: &mut Site) {
    let whole = site.now;
    let mut seats = vec![None; site.seats.len()];
    let mut plains = vec![None; site.plains.len()];
    loop {
        site.run(100);
        let mut all = true;
        for (place, connected) in seats.iter_mut().enumerate() {
            all &= seat_is_back(site, place, connected);
        }
        for (place, connected) in plains.iter_mut().enumerate() {
            all &= plain_is_back(site, place, connected);
        }
        if all {
            return;
        }
        if site.now.saturating_since(whole) > BACK {
            let states: Vec<_> = (0..site.seats.len()).map(|seat| site.status(seat)).collect();
            if let Some(seat) = site.seats.iter().find(|seat| !seat.has_read_all(&site.truth)) {
                broken!("events", "{} was not told everything: {states:?}", seat.name);
            }
            broken!("back again", "not everybody is: {states:?}");
        }
    }
}

/// A client whose session is one that the server knows.
#[derive(Clone, Copy)]
struct Connected {
    /// When it last showed all nine chunks as they were: others may still dig.
    current: Instant,
}

/// Whether a client is where it should be after the storm; fails when it has had time enough.
fn seat_is_back(site: &Site, place: usize, connected: &mut Option<Connected>) -> bool {
    let seat = &site.seats[place];
    if seat.dead || matches!(site.status(place), ClientStatus::Ended(_)) {
        return true;
    }
    let token = seat.client.session().token();
    let mut sessions = site.server.sessions().sessions();
    let here = sessions.any(|(_, view)| Some(view.token()) == token && view.peer() == seat.peer);
    if !here {
        *connected = None;
        return false;
    }
    let now = site.now;
    let connected = connected.get_or_insert(Connected { current: now });
    if site.is_current(place) {
        connected.current = now;
    } else {
        let since = seat.joined_at.map_or(connected.current, |at| at.max(connected.current));
        if now.saturating_since(since) > CURRENT && !seat.is_tainted() {
            broken!("heal", "{} has not all nine chunks as they are", seat.name);
        }
        return false;
    }
    let tainted = seat.is_tainted() || token.is_some_and(|token| site.truth.is_tainted(token));
    let still = seat.client.session().in_flight().next().is_none()
        && seat.client.session().queued().next().is_none();
    let owed = seat.owed.iter().find(|(_, owed)| **owed > 0);
    if let Some((what, _)) = owed.filter(|_| still && !tainted && !seat.garbled) {
        broken!("arrive", "{what} of {} neither took effect nor was told lost", seat.name);
    }
    still && (tainted || seat.has_read_all(&site.truth))
}

fn plain_is_back(site: &Site, place: usize, connected: &mut Option<Connected>) -> bool {
    let plain = &site.plains[place];
    if plain.dead {
        return true;
    }
    let mut sessions = site.server.sessions().sessions();
    if !sessions.any(|(_, view)| view.token() == plain.token && view.peer() == plain.peer) {
        *connected = None;
        return false;
    }
    let now = site.now;
    let connected = connected.get_or_insert(Connected { current: now });
    let world = site.server.world();
    let truth = |chunk| crate::common::truth::world_hash(world, chunk);
    let current = plain.is_tainted() || plain.is_current(truth);
    if current {
        connected.current = now;
    } else if now.saturating_since(connected.current) > CURRENT {
        broken!("heal", "plain client {place} has not all nine chunks as they are");
    }
    current
}

const fn wire(way: caves_world::Direction) -> caves_wire::caves::Direction {
    match way {
        caves_world::Direction::North => caves_wire::caves::Direction::North,
        caves_world::Direction::East => caves_wire::caves::Direction::East,
        caves_world::Direction::South => caves_wire::caves::Direction::South,
        caves_world::Direction::West => caves_wire::caves::Direction::West,
    }
}

/// The shortest script found that still breaks the same invariant: steps are left out in ever
/// smaller groups, then players, then time.
pub(crate) fn shrink(scenario: &Scenario, fault: Option<Fault>, broken: &str) -> Scenario {
    let mut best = scenario.clone();
    let mut runs = 0;
    let mut fails = |candidate: &Scenario| {
        runs += 1;
        runs <= 600 && run(candidate, fault).is_err_and(|failure| name(&failure) == broken)
    };
    let mut group = best.steps.len().div_ceil(2).max(1);
    loop {
        let mut from = 0;
        while from < best.steps.len() {
            let mut shorter = best.clone();
            shorter.steps.drain(from..(from + group).min(best.steps.len()));
            if fails(&shorter) {
                best = shorter;
            } else {
                from += group;
            }
        }
        if group == 1 {
            break;
        }
        group = group.div_ceil(2);
    }
    while best.plains > 0 {
        let last = Place::Plain(best.plains - 1);
        let mut fewer = best.clone();
        fewer.plains -= 1;
        fewer.steps.retain(|step| !concerns(&step.what, last));
        if !fails(&fewer) {
            break;
        }
        best = fewer;
    }
    for seat in 0..best.seats.len() {
        let mut fewer = best.clone();
        fewer.seats[seat] = Who::Nobody;
        fewer.steps.retain(|step| !concerns(&step.what, Place::Seat(seat)));
        if fails(&fewer) {
            best = fewer;
        }
    }
    let last = best.steps.last().map_or(0, |step| step.at);
    for millis in [last, last + 500, last + 2000] {
        let shorter = Scenario { millis, ..best.clone() };
        if millis < best.millis && fails(&shorter) {
            best = shorter;
        }
    }
    best
}

fn concerns(what: &What, place: Place) -> bool {
    let seat = |seat: &usize| place == Place::Seat(*seat);
    match what {
        What::Line { who, .. } | What::Kill { who } | What::Start { who, .. } => *who == place,
        What::Act { seat: of, .. }
        | What::Look { seat: of, .. }
        | What::LetGo { seat: of }
        | What::Rebind { seat: of, .. }
        | What::Leave { seat: of } => seat(of),
        What::Step { plain, .. } => place == Place::Plain(*plain),
        What::Jump { seat: of, .. } | What::Intrude { seat: of, .. } => {
            of.as_ref().is_some_and(seat)
        }
        What::StopServer { .. } | What::StartServer => false,
    }
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs something whose panics are values, and are not printed.
fn quietly(what: impl FnOnce()) -> Result<(), Failure> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                return loud(info);
            }
            let text = info.payload_as_str().unwrap_or("a panic without words");
            let place = info.location().filter(|_| !text.starts_with('['));
            let place = place.map(|at| format!(" at {at}")).unwrap_or_default();
            MESSAGE.with_borrow_mut(|message| *message = format!("{text}{place}"));
        }));
    });
    QUIET.set(true);
    let done = catch_unwind(AssertUnwindSafe(what));
    QUIET.set(false);
    done.map_err(|_| MESSAGE.take())
}
