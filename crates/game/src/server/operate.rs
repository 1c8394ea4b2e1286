//! What an operator does to a game that runs.

use caves_link::time::Instant;
use caves_session::caves::{Ban, ServerConfig as SessionConfig, SessionId};
use caves_wire::caves::{EventKind, LeaveReason};
use caves_world::EntityId;

use super::Server;
use crate::convert::entity_to_wire;

/// How many were reached by a notice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Told {
    /// So many will read it.
    pub told: usize,
    /// So many have no events, or too many that wait (section 2, events).
    pub missed: usize,
}

impl Server {
    /// Treats clients in another way from now on; gives how many sessions end by it. What that means
    /// for whom is said at [`caves_session::caves::Server::reconfigure`]. Ticks go on as they were.
    pub fn reconfigure(&mut self, now: Instant, config: SessionConfig) -> usize {
        let ended = self.sessions.reconfigure(now, config);
        self.follow_sessions(now);
        ended
    }

    /// Other bans from now on; gives how many sessions end by it.
    pub fn set_bans(&mut self, now: Instant, bans: Vec<Ban>) -> usize {
        let ended = self.sessions.set_bans(now, bans);
        self.follow_sessions(now);
        ended
    }

    /// Throws a player out, who reads `reason` first where there is one; `false` when nobody is
    /// there. It may come back at once: that is what bans are for.
    pub fn kick(&mut self, now: Instant, session: SessionId, reason: &str) -> bool {
        let text = match reason {
            "" => "You were thrown out.".to_owned(),
            reason => format!("You were thrown out: {reason}"),
        };
        let done = self.sessions.show_out(now, session, LeaveReason::KICKED, &text);
        self.follow_sessions(now);
        done
    }

    /// Whether the machine is at its limit: then nobody else is let in.
    pub const fn set_busy(&mut self, is_busy: bool) {
        self.sessions.set_busy(is_busy);
    }

    /// Tells something to everybody in the caves, as a notice.
    pub fn announce(&mut self, text: &str) -> Told {
        let (mut told, nobody) = (Told::default(), entity_to_wire(EntityId::NONE));
        for player in self.players.iter().flatten() {
            match self.sessions.send_event(player.session, EventKind::NOTICE, nobody, text) {
                true => told.told += 1,
                false => told.missed += 1,
            }
        }
        told
    }
}
