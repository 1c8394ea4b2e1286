//! What commands do.

use std::time::Duration;

use caves_game::{SaveTicket, Server as Game};
use caves_link::time::Instant;
use caves_session::DropReason;
use caves_session::caves::{Ban, BanTarget, ServerConfig as SessionConfig, SessionView};
use caves_store::BanRecord;
use caves_wire::caves::MAX_EVENT_TEXT;
use caves_wire::text;
use clap::ValueEnum;
use serde_json::{Map, Value, json};
use tracing::{info, warn};

use super::bans::{self, RuntimeBan, RuntimeBans};
use super::countdown::{self, Countdown};
use super::protocol::{self, Command, no, yes};
use crate::config::LogLevel;
use crate::kept::Kept;
use crate::{Config, ConfigError};

/// Reads the configuration again.
pub type Reload = Box<dyn FnMut() -> Result<Config, ConfigError> + Send>;
/// Makes the log tell more or less.
pub type SetLogLevel = Box<dyn FnMut(LogLevel) + Send>;

/// What commands work on, for one turn of the loop.
pub(crate) struct Desk<'a> {
    pub(crate) game: &'a mut Game,
    pub(crate) kept: Option<&'a Kept>,
    pub(crate) now: Instant,
    /// Bans are for hours and days, also those in which the server was down: wall clock.
    pub(crate) unix_s: u64,
    pub(crate) uptime: Duration,
    pub(crate) sent: u64,
    pub(crate) unsent: u64,
    pub(crate) unread: u64,
}

/// An answer, or when it comes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Now(String),
    /// `saved` once this is safe.
    WhenSaved(SaveTicket),
}

/// The operator's side of a server.
pub(crate) struct Operator {
    /// As it is in effect.
    config: Config,
    bans: RuntimeBans,
    countdown: Option<Countdown>,
    reload: Option<Reload>,
    set_log_level: Option<SetLogLevel>,
    log_level: LogLevel,
}

impl std::fmt::Debug for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the configuration: it holds tokens.
        f.debug_struct("Operator")
            .field("bans", &self.bans)
            .field("countdown", &self.countdown)
            .finish_non_exhaustive()
    }
}

/// Why a command is not done.
type Outcome = Result<Value, String>;

impl Operator {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            config: config.clone(),
            bans: RuntimeBans::default(),
            countdown: None,
            reload: None,
            set_log_level: None,
            log_level: config.log.level,
        }
    }

    pub(crate) fn set_hooks(&mut self, reload: Option<Reload>, level: Option<SetLogLevel>) {
        self.reload = reload;
        self.set_log_level = level;
    }

    /// Bans that a store has kept, before anybody is let in.
    pub(crate) fn restore_bans(&mut self, records: Vec<BanRecord>, unix_s: u64) {
        self.bans = RuntimeBans::from_records(records, unix_s);
    }

    /// The bans that were set at run time, if they have changed since this was last asked: a store
    /// keeps them all.
    pub(crate) fn take_changed_bans(&mut self) -> Option<Vec<BanRecord>> {
        self.bans.take_changed().then(|| self.bans.records())
    }

    /// The configuration that is in effect.
    pub(crate) const fn config(&self) -> &Config {
        &self.config
    }

    /// The configuration for the sessions, with all bans.
    pub(crate) fn session_config(&self) -> SessionConfig {
        SessionConfig { bans: self.all_bans(), ..self.config.session.clone() }
    }

    /// All bans, those of the file first.
    fn all_bans(&self) -> Vec<Ban> {
        let own = self.bans.list().iter().map(|ban| ban.ban.clone());
        self.config.session.bans.iter().cloned().chain(own).collect()
    }

    /// Does what is due: bans that are over end, players are told of a countdown. `true` when the
    /// countdown is over, so that the server has to stop.
    pub(crate) fn turn(&mut self, desk: &mut Desk<'_>) -> bool {
        if self.bans.expire(desk.unix_s) {
            desk.game.set_bans(desk.now, self.all_bans());
        }
        let Some(countdown) = &mut self.countdown else { return false };
        if let Some(text) = countdown.poll_notice(desk.now) {
            desk.game.announce(&text);
        }
        countdown.is_over(desk.now)
    }

    /// When to call [`Operator::turn`] for the countdown. Bans end within a second of their time,
    /// since the loop never sleeps longer.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.countdown.as_ref().map(Countdown::poll_timeout)
    }

    pub(crate) fn obey_line(&mut self, line: &[u8], desk: &mut Desk<'_>) -> Reply {
        match Command::parse(line) {
            Ok(command) => self.obey(command, desk),
            Err(error) => Reply::Now(no(&error)),
        }
    }

    pub(crate) fn obey(&mut self, command: Command, desk: &mut Desk<'_>) -> Reply {
        let outcome = match command {
            Command::Players {} => Ok(players(desk)),
            Command::Sessions {} => Ok(sessions(desk)),
            Command::Kick { name, reason } => kick(&name, &reason, desk),
            Command::Ban { target, is_name, reason, for_s } => bans::target(&target, is_name)
                .and_then(|target| self.ban(target, &reason, for_s, desk)),
            Command::Unban { target, is_name } => {
                bans::target(&target, is_name).and_then(|target| self.unban(&target, desk))
            }
            Command::Bans {} => Ok(self.list_bans()),
            Command::Say { text } => say(&text, desk),
            Command::Save {} => match desk.game.ask_save() {
                Some(ticket) => return Reply::WhenSaved(ticket),
                None => Err("nothing is kept: world.store is \"memory\"".to_owned()),
            },
            Command::Reload {} => self.reload(desk),
            Command::Stats {} => Ok(self.stats(desk)),
            Command::LogLevel { level } => self.log_level(level.as_deref()),
            Command::Shutdown { seconds, reason } => self.shutdown(seconds, &reason, desk),
            Command::ShutdownCancel {} => self.cancel(desk),
            Command::Version {} => Ok(version()),
        };
        Reply::Now(outcome.map_or_else(|error| no(&error), yes))
    }

    fn ban(
        &mut self,
        target: BanTarget,
        reason: &str,
        for_s: Option<u64>,
        desk: &mut Desk<'_>,
    ) -> Outcome {
        let reason = bans::reason(reason)?;
        let until_unix_s = for_s.map(|seconds| desk.unix_s.saturating_add(seconds));
        let shown = bans::shown(&target);
        let ban = Ban { target, reason: reason.clone() };
        self.bans.add(RuntimeBan { ban, until_unix_s, set_unix_s: desk.unix_s })?;
        let ended = desk.game.set_bans(desk.now, self.all_bans());
        info!(target = shown, reason, until_unix_s, ended, "banned");
        Ok(json!({ "banned": shown, "reason": reason, "until": until_unix_s, "ended": ended }))
    }

    fn unban(&mut self, target: &BanTarget, desk: &mut Desk<'_>) -> Outcome {
        let shown = bans::shown(target);
        let in_file = self.config.session.bans.iter().any(|ban| bans::same(&ban.target, target));
        let removed = self.bans.remove(target);
        if removed {
            desk.game.set_bans(desk.now, self.all_bans());
            info!(target = shown, "unbanned");
        }
        match (removed, in_file) {
            (_, true) => Err(format!(
                "a ban of {shown} stands in the configuration: take it out there, then reload"
            )),
            (true, false) => Ok(json!({ "unbanned": shown })),
            (false, false) => {
                Err(format!("no ban of {shown}; \"bans\" lists them as they were set"))
            }
        }
    }

    fn list_bans(&self) -> Value {
        let kind = |target: &BanTarget| match target {
            BanTarget::Address(_) => "address",
            BanTarget::Name(_) => "name",
        };
        let of = |ban: &Ban, from: &str, until: Option<u64>, set: Option<u64>| {
            json!({
                "target": bans::shown(&ban.target), "kind": kind(&ban.target),
                "reason": ban.reason, "from": from, "until": until, "set": set,
            })
        };
        let file = self.config.session.bans.iter().map(|ban| of(ban, "file", None, None));
        let own = self.bans.list().iter();
        let own = own.map(|ban| of(&ban.ban, "command", ban.until_unix_s, Some(ban.set_unix_s)));
        json!({ "bans": file.chain(own).collect::<Vec<_>>() })
    }

    /// Reads the configuration again and does what can be done while players play. A configuration
    /// with an error changes nothing.
    pub(crate) fn reload(&mut self, desk: &mut Desk<'_>) -> Outcome {
        let Some(reload) = &mut self.reload else {
            return Err("this server has no configuration file".to_owned());
        };
        let new = reload().map_err(|error| {
            warn!(%error, "not reloaded, nothing has changed");
            error.to_string()
        })?;
        let changes = self.config.changes(&new);
        let level = (self.config.log.level != new.log.level).then_some(new.log.level);
        self.config = self.config.reloaded(&new);
        let ended = desk.game.reconfigure(desk.now, self.session_config());
        desk.game.set_save_interval(self.config.save_interval);
        if let Some(level) = level {
            self.put_log_level(level);
        }
        let (applied, need_restart) = (changes.applied, changes.need_restart);
        info!(?applied, ?need_restart, ended, "reloaded");
        Ok(json!({ "applied": applied, "need_restart": need_restart, "ended": ended }))
    }

    fn stats(&self, desk: &Desk<'_>) -> Value {
        let (game, counters) = (&desk.game, desk.game.counters());
        let gauges = game.sessions().gauges();
        let dropped: Map<String, Value> = DropReason::ALL
            .into_iter()
            .filter(|reason| counters.dropped(*reason) > 0)
            .map(|reason| (format!("{reason:?}").to_lowercase(), counters.dropped(reason).into()))
            .collect();
        json!({
            "uptime_s": desk.uptime.as_secs(),
            "tick": game.tick().get(),
            "tick_rate": self.config.session.tick_rate,
            "players": game.players(),
            "arriving": game.arriving(),
            "sessions": game.sessions().len(),
            "max_players": self.config.session.max_players,
            "seed": game.seed(),
            "entities": game.world().entity_count(),
            "chunks": game.world().loaded_chunks(),
            "unsaved": game.unsaved(),
            "received": counters.received,
            "dropped": counters.dropped_in_all(),
            "dropped_by_reason": dropped,
            "sent": desk.sent,
            "unsent": desk.unsent,
            "unread": desk.unread,
            "events_waiting": gauges.events_waiting,
            "bans": self.config.session.bans.len() + self.bans.list().len(),
            "log_level": level_name(self.log_level),
            "stops_in_s": self.countdown.as_ref().map(|countdown| countdown.left(desk.now)),
        })
    }

    fn log_level(&mut self, level: Option<&str>) -> Outcome {
        if let Some(level) = level {
            let level = LogLevel::from_str(level, true).map_err(|_| {
                format!("{level:?} is no log level: error, warn, info, debug or trace")
            })?;
            if self.set_log_level.is_none() {
                return Err("this server has no log of its own".to_owned());
            }
            self.put_log_level(level);
            info!(level = level_name(level), "log level set");
        }
        Ok(json!({ "level": level_name(self.log_level) }))
    }

    fn put_log_level(&mut self, level: LogLevel) {
        if let Some(set) = &mut self.set_log_level {
            set(level);
            self.log_level = level;
        }
    }

    fn shutdown(&mut self, seconds: u64, reason: &str, desk: &mut Desk<'_>) -> Outcome {
        if seconds > countdown::LONGEST {
            return Err(format!("a countdown has at most {} seconds", countdown::LONGEST));
        }
        let reason = optional_reason(reason)?;
        info!(seconds, reason, "shutting down");
        // Another countdown takes the place of the one before, and everybody is told anew.
        self.countdown = Some(Countdown::new(desk.now, seconds, reason.clone()));
        Ok(json!({ "stops_in_s": seconds, "reason": reason }))
    }

    fn cancel(&mut self, desk: &mut Desk<'_>) -> Outcome {
        let Some(countdown) = self.countdown.take() else {
            return Err("no shutdown is under way".to_owned());
        };
        let left = countdown.left(desk.now);
        info!(left, reason = countdown.reason(), "shutdown cancelled");
        let told = desk.game.announce("The server goes on: the shutdown was cancelled");
        Ok(json!({ "cancelled": true, "left_s": left, "told": told.told, "missed": told.missed }))
    }
}

fn kick(name: &str, reason: &str, desk: &mut Desk<'_>) -> Outcome {
    let reason = optional_reason(reason)?;
    let Some(id) = desk.game.sessions().find_by_name(name) else {
        return Err(format!("nobody plays as {name:?}"));
    };
    let name = desk.game.sessions().session(id).map_or(name, SessionView::name).to_owned();
    info!(name, reason, "kicked");
    desk.game.kick(desk.now, id, &reason);
    Ok(json!({ "kicked": name, "reason": reason }))
}

fn say(said: &str, desk: &mut Desk<'_>) -> Outcome {
    let clean: String = text::clean(said).collect();
    let said = clean.trim();
    match said.len() {
        0 => Err("there is nothing to say".to_owned()),
        len if len > MAX_EVENT_TEXT => {
            Err(format!("a notice has at most {MAX_EVENT_TEXT} bytes, this one has {len}"))
        }
        _ => {
            let told = desk.game.announce(said);
            info!(text = said, told = told.told, missed = told.missed, "said");
            Ok(json!({ "told": told.told, "missed": told.missed }))
        }
    }
}

/// A reason that may be missing.
fn optional_reason(given: &str) -> Result<String, String> {
    if given.trim().is_empty() { Ok(String::new()) } else { bans::reason(given) }
}

fn players(desk: &Desk<'_>) -> Value {
    let of = |view: SessionView<'_>| {
        let entity = desk.game.world().entity(caves_world::EntityId(view.entity().0));
        json!({
            "name": view.name(),
            "entity": view.entity().0,
            "address": view.peer().to_string(),
            "client_type": view.client_type().0,
            "registered": view.is_registered(),
            "age_s": seconds(desk.now.saturating_since(view.started())),
            "x": entity.map(|of| of.pos.x),
            "y": entity.map(|of| of.pos.y),
            "hp": entity.map(|of| of.hp),
            "hp_max": entity.map(|of| of.hp_max),
            "elo": entity.map(|of| of.elo),
        })
    };
    let views = desk.game.sessions().sessions().map(|(_, view)| view);
    let list: Vec<_> = views.filter(|view| view.entity().0 != 0).map(of).collect();
    json!({ "players": list, "max_players": desk.game.sessions().config().max_players })
}

fn sessions(desk: &Desk<'_>) -> Value {
    let traffic =
        |of: caves_session::caves::Traffic| json!({ "datagrams": of.datagrams, "bytes": of.bytes });
    let of = |view: SessionView<'_>| {
        let millis = |span: Duration| (span.as_secs_f64() * 10_000.0).round() / 10.0;
        json!({
            "name": view.name(),
            "entity": view.entity().0,
            "address": view.peer().to_string(),
            "socket": view.peer().socket,
            "client_type": view.client_type().0,
            "registered": view.is_registered(),
            "plain": view.is_source_only(),
            "leaving": view.is_leaving(),
            "age_s": seconds(desk.now.saturating_since(view.started())),
            "silence_s": seconds(view.silence(desk.now)),
            "round_trip_ms": view.round_trip().map(millis),
            "round_trip_age_s": view.round_trip_age(desk.now).map(seconds),
            "actions_missing": view.missing().missing,
            "actions_numbered": view.missing().of,
            "received": traffic(view.received()),
            "sent": traffic(view.sent()),
            "events_waiting": view.events_waiting(),
            "events_in_flight": view.events_in_flight(),
            "events_dropped": view.events_dropped(),
        })
    };
    let list: Vec<_> = desk.game.sessions().sessions().map(|(_, view)| of(view)).collect();
    json!({ "sessions": list })
}

/// In tenths.
fn seconds(span: Duration) -> f64 {
    (span.as_secs_f64() * 10.0).round() / 10.0
}

fn version() -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "protocol": 1,
        "control": protocol::VERSION,
        "generator": caves_world::GENERATOR_VERSION,
        "pid": std::process::id(),
    })
}

fn level_name(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Error => "error",
        LogLevel::Warn => "warn",
        LogLevel::Info => "info",
        LogLevel::Debug => "debug",
        LogLevel::Trace => "trace",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caves_session::SplitMix;

    const UNIX_S: u64 = 1_700_000_000;

    fn game(config: &Config) -> Game {
        let session = config.session.clone();
        let config = caves_game::ServerConfig { session, ..caves_game::ServerConfig::default() };
        Game::new(config, Box::new(SplitMix::new(1)), Instant::ZERO, UNIX_S * 1000)
    }

    fn desk(game: &mut Game, seconds: u64) -> Desk<'_> {
        Desk {
            game,
            kept: None,
            now: Instant::from_secs(seconds),
            unix_s: UNIX_S + seconds,
            uptime: Duration::from_secs(seconds),
            sent: 0,
            unsent: 0,
            unread: 0,
        }
    }

    fn obey(operator: &mut Operator, game: &mut Game, seconds: u64, line: &str) -> Value {
        match operator.obey_line(line.as_bytes(), &mut desk(game, seconds)) {
            Reply::Now(answer) => serde_json::from_str(&answer).unwrap(),
            Reply::WhenSaved(_) => panic!("nothing is kept here"),
        }
    }

    fn banned(game: &Game) -> Vec<String> {
        game.sessions().config().bans.iter().map(|ban| bans::shown(&ban.target)).collect()
    }

    #[test]
    fn bans_of_the_file_and_of_commands_hold_together_and_the_latter_are_kept() {
        let config = Config::parse("x", "[[ban]]\nname = \"Eve\"\n").unwrap();
        let (mut game, mut operator) = (game(&config), Operator::new(&config));
        assert_eq!(operator.take_changed_bans(), None);
        let line = r#"{"command":"ban","target":"192.0.2.7","for_s":60}"#;
        assert_eq!(obey(&mut operator, &mut game, 10, line)["until"], UNIX_S + 70);
        obey(&mut operator, &mut game, 10, r#"{"command":"ban","target":"Bob"}"#);
        assert_eq!(banned(&game), ["Eve", "192.0.2.7", "Bob"]);
        let kept = operator.take_changed_bans().unwrap();
        let kept: Vec<_> = kept.iter().map(|of| (of.target.as_str(), of.until_unix_s)).collect();
        assert_eq!(kept, [("192.0.2.7", Some(UNIX_S + 70)), ("Bob", None)]);
        assert_eq!(operator.take_changed_bans(), None, "told once");

        assert!(!operator.turn(&mut desk(&mut game, 69)));
        assert_eq!(banned(&game).len(), 3);
        operator.turn(&mut desk(&mut game, 70));
        assert_eq!(banned(&game), ["Eve", "Bob"]);
        assert_eq!(operator.take_changed_bans().map(|kept| kept.len()), Some(1));
        obey(&mut operator, &mut game, 71, r#"{"command":"unban","target":"bob"}"#);
        assert_eq!(banned(&game), ["Eve"]);
        assert_eq!(operator.take_changed_bans(), Some(Vec::new()));
    }

    #[test]
    fn bans_that_were_kept_hold_again_and_those_over_meanwhile_do_not() {
        let config = Config::solo();
        let mut operator = Operator::new(&config);
        let record = |target: &str, until_unix_s| BanRecord {
            target: target.into(),
            is_name: true,
            reason: "why".into(),
            until_unix_s,
            set_unix_s: UNIX_S,
        };
        let records = vec![record("Ada", None), record("Bob", Some(UNIX_S + 5))];
        operator.restore_bans(records, UNIX_S + 5);
        let names: Vec<_> = operator.all_bans().iter().map(|b| bans::shown(&b.target)).collect();
        assert_eq!(names, ["Ada"]);
    }

    #[test]
    fn the_server_stops_when_the_countdown_is_over_and_not_when_it_was_cancelled() {
        let config = Config::solo();
        let (mut game, mut operator) = (game(&config), Operator::new(&config));
        obey(&mut operator, &mut game, 100, r#"{"command":"shutdown","seconds":30}"#);
        assert!(!operator.turn(&mut desk(&mut game, 100)));
        assert_eq!(operator.poll_timeout(), Some(Instant::from_secs(120)));
        assert!(!operator.turn(&mut desk(&mut game, 129)));
        let left = obey(&mut operator, &mut game, 129, r#"{"command":"shutdown-cancel"}"#);
        assert_eq!(left["left_s"], 1);
        assert!(!operator.turn(&mut desk(&mut game, 131)));
        assert_eq!(operator.poll_timeout(), None);
        obey(&mut operator, &mut game, 140, r#"{"command":"shutdown","seconds":5}"#);
        assert!(operator.turn(&mut desk(&mut game, 145)));
    }

    #[test]
    fn a_reload_with_an_error_changes_nothing_and_one_without_keeps_what_needs_a_restart() {
        let config = Config::parse("x", "server.motd = \"old\"").unwrap();
        let (mut game, mut operator) = (game(&config), Operator::new(&config));
        let answer = obey(&mut operator, &mut game, 1, r#"{"command":"reload"}"#);
        assert_eq!(answer["error"], "this server has no configuration file");
        let mut texts = ["server.motd = 1", "server.motd = \"new\"\nserver.tick_rate = 20"].iter();
        let reload = move || Config::parse("x", texts.next().unwrap());
        operator.set_hooks(Some(Box::new(reload)), None);
        let answer = obey(&mut operator, &mut game, 1, r#"{"command":"reload"}"#);
        assert!(answer["error"].as_str().unwrap().starts_with("x:1"), "{answer}");
        assert_eq!(game.sessions().config().motd, "old");
        let answer = obey(&mut operator, &mut game, 1, r#"{"command":"reload"}"#);
        assert_eq!(answer["applied"], json!(["server.motd"]));
        assert_eq!(answer["need_restart"], json!(["server.tick_rate"]));
        assert_eq!(game.sessions().config().motd, "new");
        assert_eq!(operator.config().session.tick_rate, 10);
    }
}
