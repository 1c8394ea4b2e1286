//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use caves_server::ConfigError;
use caves_server::config::{ConfigSource, LogLevel};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, ValueEnum};

/// What the configuration is made of, for `--help`.
const LAYERS: &str = "\
Configuration:
  Each value comes from the last of these that has it:
    1. the defaults (--print-config shows them),
    2. the file,
    3. the environment: CAVES__SERVER__MAX_PLAYERS=20 for server.max_players,
    4. --set server.max_players=20, and --log-level.
  Outside the file a value is TOML; texts need no quotes, and lists of texts may be written with
  commas: --set server.listen=0.0.0.0:21068,[::]:21068
  --print-effective shows what it all comes to.";

/// The game server of Forgotten Caves. Without a command it serves.
///
/// The first lines on standard output are "listening udp ADDRESS:PORT", one per socket, then
/// "listening metrics ADDRESS:PORT" where there are metrics; the log goes to standard error. Exit status: 0 stopped by a signal or done, 1 failed, 2 wrong use or
/// configuration.
#[derive(Debug, clap::Parser)]
#[command(version, after_help = LAYERS, disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(flatten)]
    layers: Layers,
    #[command(flatten)]
    pub(crate) mode: Mode,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// What goes over the configuration's file, and which file that is.
///
/// Commands have the same options again, and not as global ones: of those that stand before and
/// behind a command clap would forget the first.
#[derive(Debug, clap::Args)]
pub(crate) struct Layers {
    /// The configuration; config.toml of this directory unless named, or else the defaults.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Sets a value, whatever the file and the environment say; may be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_and_value)]
    set: Vec<(String, String)>,
    /// How much the log tells, whatever the configuration says.
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<LogLevel>,
}

/// What to do beside serving, or instead of it.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub(crate) struct Mode {
    /// Checks the configuration and exits.
    #[arg(long)]
    pub(crate) check_config: bool,
    /// Prints a configuration with all keys, their defaults and what they mean, and exits.
    #[arg(long, conflicts_with_all = ["config", "set", "log_level"])]
    pub(crate) print_config: bool,
    /// Prints the configuration in effect, each value with where it comes from, and exits.
    #[arg(long)]
    pub(crate) print_effective: bool,
    /// Prints a token for a registered client, and exits.
    #[arg(long, conflicts_with_all = ["config", "set", "log_level"])]
    pub(crate) new_token: bool,
    /// Repairs a damaged store, which loses what cannot be read, and then serves.
    #[arg(long)]
    pub(crate) repair: bool,
}

/// What to do with a store while no server uses it.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Writes the world of the configured store into a file, as lines of JSON.
    Export {
        /// Where to; "-" is standard output.
        file: PathBuf,
        #[command(flatten)]
        layers: Layers,
    },
    /// Makes the configured store from a file that `export` wrote.
    Import {
        /// Where from; "-" is standard input.
        file: PathBuf,
        #[command(flatten)]
        layers: Layers,
    },
}

impl Args {
    /// Reads the command line; wrong use, and `--help`, end the program here.
    pub(crate) fn read() -> Self {
        Self::parse().checked().unwrap_or_else(|error| error.exit())
    }

    /// Refuses what the derived parser cannot: it knows no conflict of options with commands.
    fn checked(self) -> Result<Self, clap::Error> {
        if self.command.is_none() || !self.mode.is_any() {
            return Ok(self);
        }
        let message = "--check-config, --print-config, --print-effective, --new-token and \
                       --repair are not for commands";
        Err(Self::command().error(ErrorKind::ArgumentConflict, message))
    }

    /// Where the configuration is read from.
    pub(crate) fn source(
        &self,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<ConfigSource, ConfigError> {
        let inner = self.command.as_ref().map(Command::layers);
        let layers = || std::iter::once(&self.layers).chain(inner);
        let path = layers().filter_map(|layers| layers.config.clone()).next_back();
        let mut source = ConfigSource::new(path).with_env(environment)?;
        for (key, value) in layers().flat_map(|layers| &layers.set) {
            source = source.with_set(key, value)?;
        }
        let level = layers().filter_map(|layers| layers.log_level).next_back();
        if let Some(level) = level.and_then(|level| level.to_possible_value()) {
            source = source.with_value("--log-level", "log.level", level.get_name())?;
        }
        Ok(source)
    }
}

impl Command {
    const fn layers(&self) -> &Layers {
        match self {
            Self::Export { layers, .. } | Self::Import { layers, .. } => layers,
        }
    }
}

impl Mode {
    const fn is_any(&self) -> bool {
        self.check_config
            || self.print_config
            || self.print_effective
            || self.new_token
            || self.repair
    }
}

/// Reads what stands behind `--set`.
fn key_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) => Ok((key.trim().to_owned(), value.to_owned())),
        None => Err("KEY=VALUE is needed, as in server.max_players=20".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Args, ErrorKind> {
        let all = std::iter::once("caves-server").chain(args.iter().copied());
        Args::try_parse_from(all).and_then(Args::checked).map_err(|error| error.kind())
    }

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn settings_are_taken_in_order_before_and_behind_a_command() {
        let (first, second) = ("server.motd=a", "server.motd=x=y");
        for args in [
            &["--set", first, "--set", second, "export", "f"][..],
            &["export", "--set", first, "f", "--set", second],
            &["--set", first, "export", "f", "--set", second],
        ] {
            let args = parse(args).unwrap();
            let told = format!("{:?}", args.source([]).unwrap());
            assert_eq!(told.matches("--set server.motd").count(), 2, "{told}");
            let loaded = args.source([]).unwrap().load().unwrap();
            assert_eq!(loaded.config.session.motd, "x=y");
        }
    }

    #[test]
    fn what_makes_no_sense_together_is_refused() {
        let conflict = Some(ErrorKind::ArgumentConflict);
        let cases = [
            (&["--check-config", "--repair"][..], conflict),
            (&["--print-effective", "--print-config"], conflict),
            (&["--print-config", "--set", "server.open=true"], conflict),
            (&["--new-token", "--config", "f"], conflict),
            (&["--repair", "export", "f"], conflict),
            (&["--check-config", "import", "f"], conflict),
            (&["--set", "server.open"], Some(ErrorKind::ValueValidation)),
            (&["export"], Some(ErrorKind::MissingRequiredArgument)),
            (&["export", "--repair", "f"], Some(ErrorKind::UnknownArgument)),
            (&["exprot", "f"], Some(ErrorKind::InvalidSubcommand)),
            (&["--repair", "--set", "server.open=true"], None),
            (&["--print-effective", "--log-level", "debug"], None),
        ];
        for (args, expected) in cases {
            assert_eq!(parse(args).err(), expected, "{args:?}");
        }
    }
}
