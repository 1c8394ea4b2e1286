//! Figures of a running server, in Prometheus' text format.
//!
//! While the server runs it counts in plain arrays and numbers ([`Tally`], [`Traffic`]); names, labels
//! and text come into being when somebody asks ([`Figures::text`]). No label has a player's name or
//! address, and each has a fixed set of values: what is kept by whoever collects does not grow with the
//! visitors.
//!
//! ```
//! use caves_server::metrics::{Figures, Gauges, Tally, TickTimes, About};
//! use caves_server::traffic::{Direction, Traffic};
//!
//! let mut traffic = Traffic::default();
//! traffic.note(Direction::In, &[0x4C, 0x52, 1, 6, 0, 0, 9, 9]);
//! let figures = Figures { traffic, gauges: Gauges { players: 3, ..Gauges::default() }, ..Figures::default() };
//! let text = figures.text();
//! assert!(text.contains("\ncaves_datagrams_total{direction=\"in\",type=\"ping\"} 1\n"));
//! assert!(text.contains("\n# TYPE caves_players gauge\ncaves_players 3\n"));
//! ```

mod endpoint;
mod http;
mod meter;
mod system;
mod text;
mod ticks;

use std::time::Duration;

use caves_game::ServerEvent;
use caves_session::Counters;
use caves_session::caves::{Left, ServerGauges};
use caves_wire::caves::LeaveReason;
use caves_wire::fnv::Fnv32;
use caves_world::{Content, GENERATOR_VERSION};

use crate::store;
use crate::traffic::Traffic;

pub(crate) use endpoint::Endpoint;
pub(crate) use http::Health;
pub(crate) use meter::Meter;
pub(crate) use system::inode;
pub use system::{Process, receive_drops};
pub use text::CONTENT_TYPE;
pub use ticks::{BOUNDS_US, TickTimes};

/// Why sessions end, and by what label that is called.
const LEAVES: [(Left, &str); 9] = [
    (Left::Quit, "quit"),
    (Left::Silence, "silence"),
    (Left::Ended(LeaveReason::KICKED), "kicked"),
    (Left::Ended(LeaveReason::BANNED), "banned"),
    (Left::Ended(LeaveReason::IDLE), "idle"),
    (Left::Ended(LeaveReason::SHUTTING_DOWN), "shutting_down"),
    (Left::Ended(LeaveReason::REPLACED), "replaced"),
    (Left::Ended(LeaveReason::PROTOCOL_ERROR), "protocol_error"),
    (Left::Ended(LeaveReason::EVENTS_UNREAD), "events_unread"),
];

/// What the loop counts as it goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Ticks that were run.
    pub ticks: u64,
    /// Ticks there were none of because the server was held up.
    pub ticks_dropped: u64,
    /// From the beginning of a tick until the last datagram of it was handed to the kernel. Ticks
    /// that are made up for together count as one.
    pub tick_times: TickTimes,
    /// Players who came with a new entity.
    pub joined: u64,
    /// Players who went on with the entity of an earlier session.
    pub returned: u64,
    left: [u64; LEAVES.len() + 1],
}

impl Tally {
    /// Counts what happened among the players.
    pub fn note(&mut self, event: &ServerEvent) {
        match event {
            ServerEvent::Joined { returned: true, .. } => self.returned += 1,
            ServerEvent::Joined { .. } => self.joined += 1,
            ServerEvent::Left { why, .. } => {
                let known = LEAVES.iter().position(|(left, _)| left == why);
                self.left[known.unwrap_or(LEAVES.len())] += 1;
            }
            ServerEvent::TicksDropped { count } => self.ticks_dropped += count,
            _ => {}
        }
    }

    /// Sessions that ended, by the label of the reason.
    pub fn left(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let labels = LEAVES.iter().map(|(_, label)| *label).chain(["other"]);
        labels.zip(self.left)
    }
}

/// Which program this is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct About {
    /// The program's version.
    pub version: &'static str,
    /// The protocol's version (R1).
    pub protocol: u8,
    /// The version of the caves' generator.
    pub generator: u32,
    /// FNV-1a of all names of tiles and kinds with their numbers: it is another one when something was
    /// added or renamed.
    pub content: u32,
    /// When the program started, in seconds since 1970.
    pub started_unix_s: f64,
}

impl About {
    /// This program with that content, started then (milliseconds since 1970).
    pub fn this(content: &Content, started_unix_ms: u64) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            protocol: caves_wire::caves::VERSION,
            generator: GENERATOR_VERSION,
            content: content_version(content),
            started_unix_s: started_unix_ms as f64 / 1e3,
        }
    }
}

/// Lines such as `tile 3 core:granite`, ascending, hashed.
fn content_version(content: &Content) -> u32 {
    let mut hash = Fnv32::new();
    for (id, def) in content.tiles() {
        hash.update(format!("tile {} {}\n", id.0, def.name).as_bytes());
    }
    for (id, def) in content.kinds() {
        hash.update(format!("kind {} {}\n", id.0, def.name).as_bytes());
    }
    hash.finish()
}

/// How things stand at the moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Players in the caves.
    pub players: usize,
    /// Players who have joined, and whose place is being read from the store.
    pub arriving: usize,
    /// As many there may be.
    pub max_players: usize,
    /// What ticks take of their period, lately, in percent.
    pub load_percent: u32,
    /// Chunks in memory.
    pub chunks_loaded: usize,
    /// Entities in memory: players, monsters, things.
    pub entities: usize,
    /// How full the sessions' tables and queues are.
    pub sessions: ServerGauges,
    /// The round trip of each session of which it is known, in any order.
    pub round_trips: Vec<Duration>,
}

/// How the store is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreFigures {
    /// Chunks and players whose newest state is in memory alone.
    pub unsaved_records: u64,
    /// Their bytes, about.
    pub unsaved_bytes: u64,
    /// Whether the last try to write failed.
    pub failing: bool,
    /// Transactions that were written.
    pub commits: u64,
    /// How long the last of them took.
    pub last_commit: Option<Duration>,
    /// Chunks that were looked up.
    pub reads: u64,
    /// Records that could not be read.
    pub unreadable: u64,
    /// Records that were not written because nobody could read them again.
    pub refused: u64,
}

impl StoreFigures {
    /// Of what the store says, and of how many records the game still has to hand over or hear back of.
    pub fn new(status: &store::Status, unsaved_records: usize) -> Self {
        Self {
            unsaved_records: unsaved_records as u64,
            unsaved_bytes: status.unsaved_bytes as u64,
            failing: status.failing.is_some(),
            commits: status.commits,
            last_commit: status.last_commit_duration,
            reads: status.reads,
            unreadable: status.unreadable,
            refused: status.refused,
        }
    }
}

/// Everything that is told, at one moment.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// Which program.
    pub about: About,
    /// What the loop counted.
    pub tally: Tally,
    /// What went over the sockets.
    pub traffic: Traffic,
    /// What was dropped, and why.
    pub counters: Counters,
    /// Datagrams that the kernel did not take.
    pub unsent: u64,
    /// Times that a socket could not be read.
    pub unread: u64,
    /// Datagrams that the kernel dropped because we read too slowly; `None` where it does not tell.
    pub kernel_drops: Option<u64>,
    /// How things stand.
    pub gauges: Gauges,
    /// How the store is; `None` without one.
    pub store: Option<StoreFigures>,
    /// What the system knows of this process.
    pub process: Process,
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use caves_session::Peer;

    use super::*;

    fn left(why: Left) -> ServerEvent {
        let peer = Peer { socket: 0, addr: SocketAddr::from(([127, 0, 0, 1], 9)) };
        ServerEvent::Left { name: "Ada".to_owned(), peer, why }
    }

    #[test]
    fn each_end_of_a_session_is_counted_under_its_reason() {
        let mut tally = Tally::default();
        for why in [Left::Quit, Left::Silence, Left::Silence] {
            tally.note(&left(why));
        }
        // Section 2: the reasons of a Leave are 0 to 7; 0 is said by clients alone.
        for reason in 0..=9 {
            tally.note(&left(Left::Ended(LeaveReason(reason))));
        }
        tally.note(&ServerEvent::TicksDropped { count: 40 });
        tally.note(&ServerEvent::TicksDropped { count: 2 });
        let expected = [
            ("quit", 1),
            ("silence", 2),
            ("kicked", 1),
            ("banned", 1),
            ("idle", 1),
            ("shutting_down", 1),
            ("replaced", 1),
            ("protocol_error", 1),
            ("events_unread", 1),
            ("other", 3),
        ];
        assert_eq!(tally.left().collect::<Vec<_>>(), expected);
        assert_eq!(tally.ticks_dropped, 42);
    }

    #[test]
    fn the_content_has_another_version_when_a_name_has_another_number() {
        let toml = include_str!("../../../crates/world/content/core.toml");
        let lock = include_str!("../../../crates/world/content/ids.lock");
        let version = |lock: &str| content_version(&Content::parse(toml, lock).unwrap());
        assert_eq!(version(lock), content_version(&Content::core()));
        // A comment is no content.
        assert_eq!(version(&format!("{lock}\n# nothing\n")), version(lock));
        let last = lock.lines().rev().find(|line| !line.is_empty()).unwrap();
        let words: Vec<&str> = last.split(' ').collect();
        let [what, number, name] = words[..] else { panic!("{last}") };
        let next = number.parse::<u16>().unwrap() + 1;
        assert_ne!(version(&lock.replace(last, &format!("{what} {next} {name}"))), version(lock));
    }
}
