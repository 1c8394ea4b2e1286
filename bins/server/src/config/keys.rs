//! Every key: how a bare value of it is read, what it says, and whether it can change while a
//! server runs.

use std::time::Duration;

use caves_session::IpNet;
use caves_session::caves::{Ban, ClientEntry};

use super::{Config, ControlConfig, LogFormat, LogLevel, StoreConfig};

/// A key of the file. `client` and `ban` are one key each, with all their entries.
pub(super) struct Key {
    /// The table and the name, as in `server.listen`.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) reload: Reload,
    /// What a configuration says about it.
    pub(super) value: fn(&Config) -> Value,
}

/// What a value outside the file is, unless it is written as TOML.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A text, whatever it looks like.
    Text,
    /// Texts with commas between them.
    List,
    /// Nothing: it has to be TOML.
    Toml,
}

/// What a reload does with a new value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reload {
    /// It takes effect.
    Applied,
    /// The old one stays until a restart; the function puts what the first configuration says
    /// into the second.
    Restart(fn(&Config, &mut Config)),
}

/// What a configuration says about a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Unset,
    Text(String),
    Number(u64),
    Bool(bool),
    List(Vec<String>),
    Clients(Vec<ClientEntry>),
    Bans(Vec<Ban>),
}

/// All keys, in the order of the printed configuration.
pub(super) const KEYS: &[Key] = &[
    text("server.name", Reload::Applied, |config| Value::Text(config.session.name.clone())),
    text("server.motd", Reload::Applied, |config| Value::Text(config.session.motd.clone())),
    Key {
        name: "server.listen",
        kind: Kind::List,
        reload: Reload::Restart(|old, new| new.listen.clone_from(&old.listen)),
        value: |config| Value::List(config.listen.iter().map(ToString::to_string).collect()),
    },
    toml("server.max_players", Reload::Applied, |config| count(config.session.max_players)),
    toml(
        "server.tick_rate",
        Reload::Restart(|old, new| new.session.tick_rate = old.session.tick_rate),
        |config| Value::Number(config.session.tick_rate.into()),
    ),
    toml("server.threads", Reload::Restart(|old, new| new.threads = old.threads), |config| {
        count(config.threads)
    }),
    toml("server.open", Reload::Applied, |config| Value::Bool(config.session.open)),
    toml("world.seed", Reload::Restart(|old, new| new.seed = old.seed), |config| {
        config.seed.map_or(Value::Unset, seed)
    }),
    text("world.store", Reload::Restart(|old, new| new.store.clone_from(&old.store)), |config| {
        Value::Text(match &config.store {
            StoreConfig::Memory => "memory".to_owned(),
            StoreConfig::File(path) => path.to_string_lossy().into_owned(),
        })
    }),
    toml("world.save_interval_s", Reload::Applied, |config| seconds(config.save_interval)),
    toml("session.timeout_s", Reload::Applied, |config| seconds(config.session.timeout)),
    toml("limits.strangers_per_second", Reload::Applied, |config| {
        Value::Number(config.session.strangers.per_second.into())
    }),
    toml("limits.strangers_burst", Reload::Applied, |config| {
        Value::Number(config.session.strangers.burst.into())
    }),
    toml("limits.strangers_total_per_second", Reload::Applied, |config| {
        Value::Number(config.session.strangers.total_per_second.into())
    }),
    toml("limits.sessions_per_address", Reload::Applied, |config| {
        count(config.session.sessions_per_address)
    }),
    Key {
        name: "limits.exempt",
        kind: Kind::List,
        reload: Reload::Applied,
        value: |config| Value::List(networks(&config.session.strangers.exempt)),
    },
    toml("client", Reload::Applied, |config| Value::Clients(config.session.clients.clone())),
    toml("ban", Reload::Applied, |config| Value::Bans(config.session.bans.clone())),
    text("control.socket", Reload::Restart(keep_control), |config| {
        let path = |control: &ControlConfig| control.socket.to_string_lossy().into_owned();
        Value::Text(config.control.as_ref().map(path).unwrap_or_default())
    }),
    text("control.mode", Reload::Restart(keep_control), |config| match &config.control {
        Some(control) => Value::Text(format!("{:04o}", control.mode)),
        None => Value::Unset,
    }),
    text("metrics.listen", Reload::Restart(|old, new| new.metrics = old.metrics), |config| {
        Value::Text(config.metrics.map(|addr| addr.to_string()).unwrap_or_default())
    }),
    text("log.level", Reload::Applied, |config| Value::Text(level(config.log.level).to_owned())),
    text("log.format", Reload::Restart(|old, new| new.log.format = old.log.format), |config| {
        Value::Text(format(config.log.format).to_owned())
    }),
];

/// The key of this name.
pub(super) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// Networks as they are written in the file.
pub(super) fn networks(networks: &[IpNet]) -> Vec<String> {
    networks.iter().map(ToString::to_string).collect()
}

const fn text(name: &'static str, reload: Reload, value: fn(&Config) -> Value) -> Key {
    Key { name, kind: Kind::Text, reload, value }
}

const fn toml(name: &'static str, reload: Reload, value: fn(&Config) -> Value) -> Key {
    Key { name, kind: Kind::Toml, reload, value }
}

/// The socket and its permissions stay together.
fn keep_control(old: &Config, new: &mut Config) {
    new.control.clone_from(&old.control);
}

fn count(count: usize) -> Value {
    Value::Number(count as u64)
}

const fn seconds(time: Duration) -> Value {
    Value::Number(time.as_secs())
}

/// TOML promises no integers above 2^63 - 1.
fn seed(seed: u64) -> Value {
    match i64::try_from(seed) {
        Ok(_) => Value::Number(seed),
        Err(_) => Value::Text(format!("{seed:#x}")),
    }
}

const fn level(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Error => "error",
        LogLevel::Warn => "warn",
        LogLevel::Info => "info",
        LogLevel::Debug => "debug",
        LogLevel::Trace => "trace",
    }
}

const fn format(format: LogFormat) -> &'static str {
    match format {
        LogFormat::Text => "text",
        LogFormat::Json => "json",
    }
}
