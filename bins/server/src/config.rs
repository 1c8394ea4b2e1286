//! What the operator may set: `config.toml`, and the environment and the command line over it
//! ([`ConfigSource`]).
//!
//! ```
//! use caves_server::Config;
//!
//! let config = Config::parse("config.toml", "[server]\ntick_rate = 20\n").unwrap();
//! assert_eq!(config.session.tick_rate, 20);
//! let error = Config::parse("config.toml", "[server]\ntick_rate = 50\n").unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "config.toml:2: server.tick_rate: 50 is not within 1 to 20
//!   |
//! 2 | tick_rate = 50
//!   |             ^^"
//! );
//! ```

mod changes;
mod check;
mod error;
mod file;
mod keys;
mod layers;
mod origins;
mod print;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use caves_session::IpNet;
use caves_session::{StrangerLimits, caves};
use serde::Deserialize;

pub use changes::Changes;
pub use error::ConfigError;
pub use layers::{ConfigSource, Loaded};
pub use origins::{Origin, Origins};

/// How a server runs. Every field has a default.
#[derive(Debug, Clone)]
pub struct Config {
    /// Names, limits and who may come in.
    pub session: caves::ServerConfig,
    /// Where to listen, one socket each; port 0 takes a free one.
    pub listen: Vec<SocketAddr>,
    /// 1: the loop does everything; 2: a thread beside it hands most datagrams to the kernel.
    pub threads: usize,
    /// The world to generate; without it a seed is drawn.
    pub seed: Option<u64>,
    /// Where the world is kept.
    pub store: StoreConfig,
    /// What was done is written this often, at the latest.
    pub save_interval: Duration,
    /// Where an operator's commands are taken; nowhere without it.
    pub control: Option<ControlConfig>,
    /// Where figures are told over HTTP; nowhere without it.
    pub metrics: Option<SocketAddr>,
    /// What is told about it all.
    pub log: LogConfig,
}

/// Where the world is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreConfig {
    /// Nowhere: it is gone when the server stops.
    Memory,
    /// In this file; a relative path begins at the working directory.
    File(PathBuf),
}

/// The socket for an operator's commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlConfig {
    /// The Unix socket's path; a relative one begins at the working directory.
    pub socket: PathBuf,
    /// The permissions of the socket's file, 0 to 0o777: who may write to it may command.
    pub mode: u32,
}

impl ControlConfig {
    /// Its owner alone may command.
    pub const DEFAULT_MODE: u32 = 0o600;
}

/// What goes to standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogConfig {
    /// The least severe lines that are shown.
    pub level: LogLevel,
    /// How a line looks.
    pub format: LogFormat,
}

/// How severe a line of the log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Something that the server could not do.
    Error,
    /// Something that the operator should look at.
    Warn,
    /// Starting, stopping, and who comes and goes.
    #[default]
    Info,
    /// More than most want to know.
    Debug,
    /// Everything.
    Trace,
}

/// How a line of the log looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl Default for Config {
    /// What an empty file says.
    fn default() -> Self {
        let strangers = StrangerLimits { exempt: loopback(), ..StrangerLimits::default() };
        Self {
            session: caves::ServerConfig { strangers, ..caves::ServerConfig::default() },
            listen: vec![SocketAddr::from(([127, 0, 0, 1], 21068))],
            threads: 1,
            seed: None,
            store: StoreConfig::File(PathBuf::from("caves.redb")),
            save_interval: Duration::from_secs(1),
            control: Some(ControlConfig {
                socket: PathBuf::from("caves.sock"),
                mode: ControlConfig::DEFAULT_MODE,
            }),
            metrics: None,
            log: LogConfig::default(),
        }
    }
}

impl Config {
    /// A file with all keys, their defaults, and a comment on each. It says what an empty one says.
    pub const TEMPLATE: &str = include_str!("config/default.toml");

    /// A server for one player inside the player's own program: a free port of the loopback, and
    /// a world of its own each time, which is not kept. It touches no file and takes no commands.
    pub fn solo() -> Self {
        let mut config = Self::default();
        config.session.name = "solo".to_owned();
        config.listen = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
        config.store = StoreConfig::Memory;
        config.control = None;
        config.metrics = None;
        config
    }

    /// Reads the text of a file; `file_name` is for the errors alone.
    ///
    /// # Errors
    /// The text is no TOML, or has an unknown key or a value that cannot be. The first such place
    /// is shown.
    pub fn parse(file_name: &str, text: &str) -> Result<Self, ConfigError> {
        let mut draft = check::Draft::new();
        error::Source::file(file_name, text).put(&mut draft, &mut Origins::default())?;
        Ok(draft.finish())
    }

    /// Reads a file, and nothing else.
    ///
    /// # Errors
    /// It cannot be read, or as [`Config::parse`].
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        ConfigSource::new(Some(path.to_owned())).load().map(|loaded| loaded.config)
    }
}

/// The networks of this machine alone.
fn loopback() -> Vec<IpNet> {
    vec![
        IpNet::new_assert([127, 0, 0, 0].into(), 8),
        IpNet::new_assert(std::net::Ipv6Addr::LOCALHOST.into(), 128),
    ]
}
