//! Lines of the log.

use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use caves_game::ServerEvent;
use caves_link::time::{Deadline, Instant};
use caves_session::{Counters, DropReason};
use tracing::{info, warn};

use crate::{Config, Server, Summary};

/// Trouble of one kind is told this often at most.
const QUIET: Duration = Duration::from_secs(1);
/// Dropped ticks are told together, this often.
const TOGETHER: Duration = Duration::from_secs(10);

/// Says that a server starts; `source` is where its configuration comes from, `sockets` where its
/// sockets do.
pub fn started(server: &Server, config: &Config, source: &str, sockets: &str) {
    info!(
        version = env!("CARGO_PKG_VERSION"),
        config = source,
        seed = server.seed(),
        listen = ?server.local_addrs(),
        sockets,
        max_players = config.session.max_players,
        "started"
    );
}

/// Says that a server has stopped.
pub fn stopped(summary: &Summary) {
    info!(
        reason = %summary.reason,
        uptime_s = summary.uptime.as_secs(),
        received = summary.counters.received,
        sent = summary.sent,
        unsent = summary.unsent,
        unread = summary.unread,
        dropped = summary.counters.dropped_in_all(),
        why = dropped_by_reason(&summary.counters),
        "stopped"
    );
}

/// "malformed 3, token 1", or nothing.
fn dropped_by_reason(counters: &Counters) -> String {
    let mut text = String::new();
    for reason in DropReason::ALL {
        let count = counters.dropped(reason);
        if count > 0 {
            let comma = if text.is_empty() { "" } else { ", " };
            let name = format!("{reason:?}").to_lowercase();
            let _ = write!(text, "{comma}{name} {count}");
        }
    }
    text
}

/// Tells what happened among the players.
pub(crate) fn event(event: &ServerEvent) {
    match event {
        ServerEvent::Joined { name, peer, entity, client_type, source_only, returned } => {
            info!(name = &**name, %peer, entity, client_type, source_only, returned, "joined");
        }
        ServerEvent::Moved { name, peer } => info!(name = &**name, %peer, "moved"),
        ServerEvent::Left { name, peer, why } => info!(name = &**name, %peer, %why, "left"),
        ServerEvent::Refused { name, peer, reason } => {
            info!(name = &**name, %peer, %reason, "refused");
        }
        // They are told together: see [`Late`].
        ServerEvent::TicksDropped { .. } => {}
        other => info!(event = ?other, "something else"),
    }
}

/// Ticks that never were. Under too much load there is one after the other, and one line for many.
#[derive(Debug)]
pub(crate) struct Late {
    untold: u64,
    quiet_until: Deadline,
}

impl Late {
    pub(crate) const fn new() -> Self {
        Self { untold: 0, quiet_until: Deadline::at(Instant::ZERO) }
    }

    /// How many ticks there were none, lately.
    pub(crate) fn note(&mut self, now: Instant, event: &ServerEvent) {
        if let ServerEvent::TicksDropped { count } = event {
            self.untold += count;
        }
        if self.untold > 0 && self.quiet_until.is_due(now) {
            self.quiet_until.set(now + TOGETHER);
            warn!(count = self.untold, "ticks dropped: the server is late");
            self.untold = 0;
        }
    }
}

/// One kind of trouble: every case is counted, few are told.
#[derive(Debug)]
pub(crate) struct Trouble {
    what: &'static str,
    count: u64,
    quiet_until: Deadline,
}

impl Trouble {
    pub(crate) const fn new(what: &'static str) -> Self {
        Self { what, count: 0, quiet_until: Deadline::at(Instant::ZERO) }
    }

    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// A case that is no news.
    pub(crate) const fn count_only(&mut self) {
        self.count += 1;
    }

    /// A case that the operator may want to know of.
    pub(crate) fn note(&mut self, now: Instant, error: &io::Error) {
        self.count += 1;
        if self.quiet_until.is_due(now) {
            self.quiet_until.set(now + QUIET);
            warn!(%error, so_far = self.count, "{}", self.what);
        }
    }
}
