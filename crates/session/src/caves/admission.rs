//! How strangers become sessions: Join, recovery, registered tokens (R20, R30, R37, section 2).

use std::time::Duration;

use caves_link::time::Instant;
use caves_wire::caves::{
    ActionView, ClientType, Features, JoinView, LeaveReason, RefuseReason, Token,
};
use caves_wire::text;

use super::actions::ActionGate;
use super::join;
use super::names::{check_name, fold_name};
use super::outbox::Answer;
use super::server::{Joined, Outcome, Server, ServerEvent, ServerReceived};
use super::session::{JoinRecord, Session};
use super::{Left, MOVE_SILENCE};
use crate::fault::Fault;
use crate::peers::SessionId;
use crate::strangers::{holds, host};
use crate::{DropReason, Peer};

/// What this server can grant.
const SUPPORTED: Features = Features::BURST.union(Features::EVENTS);

/// Actions that come this late after a Leave, or after a session has ended by silence, belong to
/// that session.
const LEAVE_ECHO: Duration = Duration::from_secs(1);

/// What becomes of a Join from an address that has proven itself.
enum Verdict {
    /// Its token opens a living session: that one goes on, here.
    Resume(SessionId),
    /// The session's old address has to fall silent first; the client repeats its Join.
    Wait,
    Refuse(RefuseReason, String),
    Admit(Admission),
}

/// A session to be.
struct Admission {
    client_type: ClientType,
    /// `None` for a guest.
    name: Option<String>,
    /// The client's registered token, if it has one.
    account: Option<Token>,
    /// The session whose entity it takes over.
    takes_over: Option<SessionId>,
}

impl Server {
    pub(super) fn on_join<'d>(
        &mut self,
        now: Instant,
        from: Peer,
        bytes: &'d [u8],
        join: JoinView<'d>,
    ) -> Outcome<'d> {
        if let Some(id) = self.joined_by(from, &join) {
            return self.repeat_welcome(now, id, bytes);
        }
        let (nonce, client_type, cookie) = (join.nonce(), join.client_type(), join.cookie());
        // Looked at before anything is paid: a true cookie has a share of the total for itself, and
        // to check one costs no more than to look up a budget.
        let proven = self.faults.has(Fault::TrustsStrangers)
            || !self.used.contains(now, from, nonce)
                && self.cookies.check(now, &mut *self.random, from, nonce, client_type, cookie);
        let paid = if proven { self.charge_proven(now, from) } else { self.charge(now, from) };
        paid?;
        if !proven {
            let (reason, text) = (RefuseReason::BAD_COOKIE, String::new());
            return self.answer(from, Answer::Refuse { nonce, reason, text, room: bytes.len() });
        }
        match self.judge(now, from, &join) {
            Verdict::Resume(id) => self.resume(now, id, from, bytes, join),
            Verdict::Wait => return Err(DropReason::Wait),
            Verdict::Admit(admission) => self.begin(now, from, admission, Some((bytes, join))),
            Verdict::Refuse(reason, text) => {
                let name = String::from_utf8_lossy(join.name().unwrap_or_default());
                let name = text::clean(&name).collect();
                self.tell_refusal(now, ServerEvent::Refused { peer: from, name, reason });
                return self
                    .answer(from, Answer::Refuse { nonce, reason, text, room: bytes.len() });
            }
        }
        Ok(ServerReceived::Handled)
    }

    /// The session that is keyed by this address and nonce.
    fn joined_by(&self, from: Peer, join: &JoinView<'_>) -> Option<SessionId> {
        let id = *self.by_peer.get(&from)?;
        let record = self.sessions.get(id)?.join.as_ref()?;
        (record.nonce == join.nonce()).then_some(id)
    }

    fn repeat_welcome<'d>(&mut self, now: Instant, id: SessionId, bytes: &'d [u8]) -> Outcome<'d> {
        let session = self.sessions.get_mut(id).ok_or(DropReason::Join)?;
        let peer = session.peer;
        let record = session.join.as_mut().ok_or(DropReason::Join)?;
        if *record.join != *bytes || !record.may_repeat(now) {
            return Err(DropReason::Join);
        }
        self.answer(peer, Answer::Welcome(id))
    }

    fn judge(&self, now: Instant, from: Peer, join: &JoinView<'_>) -> Verdict {
        let live = |token| self.by_token.get(&token).or_else(|| self.by_account.get(&token));
        if let Some(id) = join.token().and_then(live).copied()
            && let Some(session) = self.sessions.get(id)
        {
            let here = session.peer == from || session.silence(now) >= MOVE_SILENCE;
            return if here { Verdict::Resume(id) } else { Verdict::Wait };
        }
        self.admission(now, from, join)
            .map_or_else(|(reason, text)| Verdict::Refuse(reason, text), Verdict::Admit)
    }

    fn admission(
        &self,
        now: Instant,
        from: Peer,
        join: &JoinView<'_>,
    ) -> Result<Admission, (RefuseReason, String)> {
        let refuse = |reason, text: &str| Err((reason, text.to_owned()));
        if self.closing {
            return refuse(RefuseReason::SHUTTING_DOWN, "try again soon");
        }
        if let Some(ban) = join::banned_address(&self.config.bans, from.ip()) {
            return refuse(RefuseReason::BANNED, &ban.reason);
        }
        let registered = join.token().filter(|token| self.registered.contains_key(token));
        let (client_type, name) = match registered {
            Some(token) => {
                let entry = &self.config.clients[self.registered[&token]];
                if !entry.allow {
                    return refuse(RefuseReason::CLIENT_TYPE, "this client is not allowed");
                }
                (entry.client_type, entry.name.clone())
            }
            None => {
                let client_type = join.client_type();
                if !join::may_join(&self.config.clients, self.config.open, client_type) {
                    return refuse(RefuseReason::CLIENT_TYPE, "this client is not allowed");
                }
                (client_type, None)
            }
        };
        let name = match (name, join.name()) {
            (Some(name), _) => Some(name),
            (None, None) => None,
            (None, Some(bytes)) => match check_name(bytes) {
                Ok(name)
                    if registered.is_none() && self.reserved.contains_key(&fold_name(name)) =>
                {
                    return refuse(RefuseReason::BAD_NAME, "this name is reserved");
                }
                Ok(name) => Some(name.to_owned()),
                Err(error) => return refuse(RefuseReason::BAD_NAME, &error.to_string()),
            },
        };
        let takes_over = match &name {
            Some(name) => self.holder(now, from, &fold_name(name))?,
            None => None,
        };
        self.room(from, takes_over)?;
        Ok(Admission { client_type, name, account: registered, takes_over })
    }

    /// Whether a name can be had, and from whom it is taken over.
    fn holder(
        &self,
        now: Instant,
        from: Peer,
        folded: &str,
    ) -> Result<Option<SessionId>, (RefuseReason, String)> {
        if let Some(ban) = self.banned_name(folded) {
            return Err((RefuseReason::BANNED, ban.reason.clone()));
        }
        let Some(id) = self.by_name.get(folded) else { return Ok(None) };
        let Some(session) = self.sessions.get(*id) else { return Ok(None) };
        let left_behind = session.peer.ip() == from.ip() && session.silence(now) >= MOVE_SILENCE;
        if session.peer == from || left_behind {
            return Ok(Some(*id));
        }
        Err((RefuseReason::NAME_TAKEN, "somebody plays under this name".into()))
    }

    /// Whether there is a place, for this address and at all.
    fn room(
        &self,
        from: Peer,
        takes_over: Option<SessionId>,
    ) -> Result<(), (RefuseReason, String)> {
        // Those end with this one's beginning.
        let here = self.by_peer.get(&from).copied();
        let (mut all, mut same) = (0, 0);
        for (id, session) in self.sessions.iter() {
            if Some(id) != takes_over && Some(id) != here {
                all += 1;
                same += usize::from(host(session.peer.ip()) == host(from.ip()));
            }
        }
        let exempt = holds(&self.config.strangers.exempt, from.ip());
        if !exempt && same >= self.config.sessions_per_address {
            return Err((RefuseReason::TOO_MANY, "too many players from here".into()));
        }
        // Whoever takes another's place takes no new one: there may be more than max_players since
        // that was lowered.
        let replaces = takes_over.is_some() || here.is_some();
        if all >= self.config.max_players && !replaces {
            return Err((RefuseReason::FULL, "all places are taken".into()));
        }
        if self.is_busy && !replaces {
            return Err((RefuseReason::FULL, "the server is at its limit".into()));
        }
        Ok(())
    }

    /// A living session goes on at the address that joined with its token.
    fn resume(
        &mut self,
        now: Instant,
        id: SessionId,
        from: Peer,
        bytes: &[u8],
        join: JoinView<'_>,
    ) {
        self.clear_address(now, from, Some(id));
        let Some(session) = self.sessions.get_mut(id) else { return };
        let old = session.peer;
        session.peer = from;
        session.heard = now;
        session.gate.joined_again();
        // The client may be a new process, which has nothing of what came after the lowest that it
        // will be told of.
        session.events.rewind();
        let record = JoinRecord::new(join.nonce(), bytes, now);
        match session.join.replace(record) {
            // The old attempt's Join must not open anything when it comes late.
            Some(record) => self.use_up(now, old, record.nonce),
            // Its first Join: features are fixed by that.
            None => {
                session.features = join.features().intersection(SUPPORTED);
                session.tags = true;
            }
        }
        if self.by_peer.get(&old) == Some(&id) {
            self.by_peer.remove(&old);
        }
        self.by_peer.insert(from, id);
        if old != from {
            self.events.push_back(ServerEvent::Moved { session: id, peer: from });
        }
        // One that was not admitted yet is welcomed then.
        if self.sessions.get(id).is_some_and(|session| session.entity.0 != 0) {
            self.welcome(now, id);
        }
    }

    /// A registered client speaks types 0 to 7 with its token, without joining (R30).
    pub(super) fn start_source_only(
        &mut self,
        now: Instant,
        from: Peer,
        action: ActionView<'_>,
    ) -> Option<SessionId> {
        let token = action.token();
        let entry = &self.config.clients[*self.registered.get(&token)?];
        let allowed = entry.allow
            && !self.closing
            && token.0 != 0
            && holds(&entry.from, from.ip())
            && !self.by_peer.contains_key(&from)
            && !self.has_just_left(now, from, token)
            && join::banned_address(&self.config.bans, from.ip()).is_none();
        if !allowed {
            return None;
        }
        let takes_over = self.by_account.get(&token).copied();
        if let Some(session) = takes_over.and_then(|id| self.sessions.get(id))
            && !(session.is_source_only() && session.silence(now) >= MOVE_SILENCE)
        {
            // A joined session moves by recovery alone, a source-only one after some silence.
            return None;
        }
        self.room(from, takes_over).ok()?;
        // Read in the first packet (R3).
        let (client_type, name) = (action.client_type(), entry.name.clone());
        if let Some(name) = &name {
            self.banned_name(&fold_name(name)).is_none().then_some(())?;
        }
        let admission = Admission { client_type, name, account: Some(token), takes_over };
        self.begin(now, from, admission, None);
        self.by_token.get(&token).copied()
    }

    /// Late Actions of a session that has ended must not start another one, which nobody would end
    /// but silence, and in which they would take effect once more.
    fn has_just_left(&self, now: Instant, from: Peer, token: Token) -> bool {
        let left = self.left.get(&token);
        left.is_some_and(|(peer, at)| *peer == from && now.saturating_since(*at) < LEAVE_ECHO)
    }

    /// Starts a session; those whose place it takes end.
    fn begin(
        &mut self,
        now: Instant,
        from: Peer,
        admission: Admission,
        join: Option<(&[u8], JoinView<'_>)>,
    ) {
        let Admission { client_type, name, account, takes_over } = admission;
        let entity = takes_over.and_then(|id| self.sessions.get(id)).map(|old| old.entity);
        if let Some(old) = takes_over {
            self.replace(now, old, from, join.is_some());
        }
        self.clear_address(now, from, None);
        // Only a source-only session is known by the registered token itself. One that joins gets a
        // token of its own, which dies with the server: the client finds out, and joins again.
        let token = match account.filter(|_| join.is_none()) {
            Some(account) => account,
            None => self.new_token(),
        };
        let mut session = Session::new(now, token, from, client_type);
        session.account = account;
        session.silence_check = now + self.config.timeout;
        let source_only = join.is_none();
        match join {
            Some((bytes, join)) => {
                session.features = join.features().intersection(SUPPORTED);
                session.tags = true;
                session.join = Some(JoinRecord::new(join.nonce(), bytes, now));
            }
            None => {
                session.gate = ActionGate::new(true);
                let place = self.registered.get(&token);
                session.tags = place.is_some_and(|place| self.config.clients[*place].tags);
            }
        }
        if let Some(name) = &name {
            session.name.clone_from(name);
            session.folded = fold_name(name);
        }
        let folded = session.folded.clone();
        let Some(id) = self.sessions.insert(session) else { return };
        self.by_token.insert(token, id);
        self.by_peer.insert(from, id);
        if let Some(account) = account {
            self.by_account.insert(account, id);
        }
        if !folded.is_empty() {
            self.by_name.insert(folded, id);
        }
        self.set_timer(now, id);
        self.events.push_back(ServerEvent::Joined(Joined {
            session: id,
            peer: from,
            name,
            client_type,
            source_only,
            takes_over: entity.filter(|entity| entity.0 != 0),
        }));
    }

    /// Ends a session whose entity goes on in another one.
    fn replace(&mut self, now: Instant, old: SessionId, from: Peer, says_so: bool) {
        let moved = self.sessions.get(old).is_some_and(|session| session.peer != from);
        // A client at another address should know; the one here has just joined anew.
        if says_so && moved {
            self.say_goodbye(now, old, LeaveReason::REPLACED);
        }
        self.remove(now, old, None);
    }

    /// One address holds one session: another one that stands there ends (R20).
    fn clear_address(&mut self, now: Instant, from: Peer, but: Option<SessionId>) {
        if let Some(id) = self.by_peer.get(&from).copied()
            && Some(id) != but
        {
            self.remove(now, id, Some(Left::Ended(LeaveReason::REPLACED)));
        }
    }

    /// A token that nobody holds: never 0, never a registered one (R20).
    fn new_token(&mut self) -> Token {
        loop {
            let token = Token(self.random.next_u64());
            let taken = self.by_token.contains_key(&token) || self.registered.contains_key(&token);
            if token.0 != 0 && !taken {
                return token;
            }
        }
    }
}
