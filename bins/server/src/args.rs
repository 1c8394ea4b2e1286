//! The command line.

use std::path::{Path, PathBuf};

use caves_server::Config;
use caves_server::config::{ConfigError, LogLevel};

/// What is read where no file is named.
const DEFAULT_FILE: &str = "config.toml";

/// The game server of Forgotten Caves.
///
/// The first lines on standard output are "listening udp ADDRESS:PORT", one per socket; the log
/// goes to standard error. Exit status: 0 stopped by a signal, 1 failed, 2 wrong use or
/// configuration.
#[derive(Debug, clap::Parser)]
#[command(version)]
pub(crate) struct Args {
    /// The configuration; config.toml of this directory unless named, or else the defaults.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// How much the log tells, whatever the configuration says.
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log_level: Option<LogLevel>,
    #[command(flatten)]
    pub(crate) instead: Instead,
}

/// What to do instead of being a server.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub(crate) struct Instead {
    /// Checks the configuration and exits.
    #[arg(long)]
    pub(crate) check_config: bool,
    /// Prints a configuration with all keys, their defaults and what they mean, and exits.
    #[arg(long)]
    pub(crate) print_config: bool,
    /// Prints a token for a registered client, and exits.
    #[arg(long)]
    pub(crate) new_token: bool,
}

impl Args {
    /// The configuration and where it comes from.
    pub(crate) fn read_config(&self) -> Result<(Config, String), ConfigError> {
        let named = self.config.as_deref();
        let path = named.unwrap_or(Path::new(DEFAULT_FILE));
        // What is there and cannot be read is an error, named or not.
        if named.is_none() && matches!(path.try_exists(), Ok(false)) {
            return Ok((Config::default(), format!("defaults, there is no {DEFAULT_FILE}")));
        }
        Config::load(path).map(|config| (config, path.display().to_string()))
    }
}
