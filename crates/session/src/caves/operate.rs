//! What an operator does to living sessions.

use std::time::Duration;

use caves_link::time::Instant;
use caves_wire::caves::{EntityId, EventKind, LeaveReason};

use super::join::{self, Ban};
use super::names::fold_name;
use super::server::{Server, ServerConfig};
use super::session::Session;
use crate::Peer;
use crate::peers::SessionId;
use crate::strangers::holds;

/// How long a client that is shown out has to acknowledge the reason before it gets its Leave.
const FAREWELL: Duration = Duration::from_secs(1);

impl Server {
    /// How it treats its clients now.
    pub const fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// Treats its clients in another way from now on; gives how many sessions end by it.
    ///
    /// * Who is banned now, by address or by name, is [shown out](Server::show_out) as banned, with
    ///   the reason of the ban.
    /// * Who would not be let in any more is shown out as kicked: its kind of client is not allowed
    ///   (R37), its registered token is not listed or not allowed, or, for one that did not join, its
    ///   address is not in `from` any more (R30).
    /// * A lower `max_players` or `sessions_per_address` ends nobody: nobody new comes in until there
    ///   is room, and who comes back to its own place gets it.
    /// * A name that is reserved now stays with the guest who plays under it; a registered client
    ///   that has another name now plays under the old one. Both until they go.
    /// * Silence is judged by the new `timeout` at once. Strangers whose rates change have full
    ///   budgets once more.
    /// * `tick_rate` stays as it is: clients were told of it in their Welcome.
    pub fn reconfigure(&mut self, now: Instant, config: ServerConfig) -> usize {
        let tick_rate = self.config.tick_rate;
        self.config = ServerConfig { tick_rate, ..config };
        // They hold places of the old lists.
        (self.registered, self.reserved) = join::listed(&self.config.clients);
        self.banned_names = join::banned_names(&self.config.bans);
        let Self { left, registered, .. } = self;
        left.retain(|token, _| registered.contains_key(token));
        self.strangers.set_limits(now, self.config.strangers.clone());
        self.sessions.set_limit(self.config.max_players);
        for id in self.ids() {
            self.follow_config(now, id);
        }
        self.show_out_unwanted(now)
    }

    /// Other bans from now on, and nothing else; gives how many sessions end by it.
    pub fn set_bans(&mut self, now: Instant, bans: Vec<Ban>) -> usize {
        self.banned_names = join::banned_names(&bans);
        self.config.bans = bans;
        self.show_out_unwanted(now)
    }

    /// Ends a session after telling its client `text` as a notice, so that its player knows more than
    /// the reason's number. Empty text, or a client without events, ends it at once; all others
    /// when the notice is acknowledged, after one second at the latest. Its actions have no effect
    /// meanwhile. `false` when there is no such session.
    ///
    /// A client that speaks only types 0 to 7 is told nothing, and its next action begins another
    /// session, a second later at the earliest (R30): only a ban keeps it out.
    pub fn show_out(
        &mut self,
        now: Instant,
        id: SessionId,
        reason: LeaveReason,
        text: &str,
    ) -> bool {
        let Some(session) = self.sessions.get_mut(id) else { return false };
        if session.leaving.is_some() {
            return true;
        }
        let of = session.account.map(|account| (account, (session.peer, now)));
        self.left.extend(of);
        if text.is_empty() || !self.send_event(id, EventKind::NOTICE, EntityId(0), text) {
            self.end(now, id, reason);
            return true;
        }
        if let Some(session) = self.sessions.get_mut(id) {
            session.leaving = Some((now + FAREWELL, reason));
        }
        self.set_timer(now, id);
        true
    }

    /// The session that plays under a name, compared as names are.
    pub fn find_by_name(&self, name: &str) -> Option<SessionId> {
        self.by_name.get(&fold_name(name)).copied()
    }

    /// A datagram of so many bytes went to an address: the session there counts it. To be called by
    /// whoever sends, since not all of a session's datagrams come from here.
    pub fn note_sent(&mut self, to: Peer, bytes: usize) {
        if let Some(session) = self.by_peer.get(&to).and_then(|id| self.sessions.get_mut(*id)) {
            session.figures.sent.note(bytes);
        }
    }

    /// As [`Server::note_sent`], where it is known whose the datagram is.
    pub fn note_sent_to(&mut self, id: SessionId, bytes: usize) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.figures.sent.note(bytes);
        }
    }

    /// One that is shown out ends as soon as its client has been told everything.
    pub(super) fn end_if_told(&mut self, now: Instant, id: SessionId) {
        if let Some(session) = self.sessions.get(id)
            && let Some((_, reason)) = session.leaving
            && session.events.is_empty()
        {
            self.end(now, id, reason);
        }
    }

    fn ids(&self) -> Vec<SessionId> {
        self.sessions.iter().map(|(id, _)| id).collect()
    }

    /// What a session holds of the configuration.
    fn follow_config(&mut self, now: Instant, id: SessionId) {
        let (timeout, clients) = (self.config.timeout, &self.config.clients);
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.silence_check = session.heard + timeout;
        if session.is_source_only()
            && let Some(place) = self.registered.get(&session.token)
        {
            session.tags = clients[*place].tags;
        }
        self.set_timer(now, id);
    }

    fn show_out_unwanted(&mut self, now: Instant) -> usize {
        let mut ended = 0;
        for id in self.ids() {
            let unwanted = self.sessions.get(id).filter(|session| session.leaving.is_none());
            if let Some((reason, text)) = unwanted.and_then(|session| self.unwanted(session)) {
                ended += usize::from(self.show_out(now, id, reason, &text));
            }
        }
        ended
    }

    /// Why a session would not be let in any more, with the words of its refusal.
    fn unwanted(&self, session: &Session) -> Option<(LeaveReason, String)> {
        let bans = &self.config.bans;
        let ban = join::banned_address(bans, session.peer.ip())
            .or_else(|| self.banned_name(&session.folded));
        if let Some(ban) = ban {
            return Some((LeaveReason::BANNED, ban.reason.clone()));
        }
        let allowed = self.is_allowed(session);
        (!allowed).then(|| (LeaveReason::KICKED, "this client is not allowed".to_owned()))
    }

    fn is_allowed(&self, session: &Session) -> bool {
        let Some(account) = session.account else {
            // A registered token opens nothing but its own session (R20).
            return !self.registered.contains_key(&session.token)
                && join::may_join(&self.config.clients, self.config.open, session.client_type);
        };
        let entry = self.registered.get(&account).map(|place| &self.config.clients[*place]);
        entry.is_some_and(|entry| {
            entry.allow && (!session.is_source_only() || holds(&entry.from, session.peer.ip()))
        })
    }
}
