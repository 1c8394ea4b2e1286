//! The command line.

use std::path::PathBuf;

use caves_server::control::Command;

const EXAMPLES: &str = "\
Examples:
  caves-ctl players                        who plays
  caves-ctl sessions                       how far away they are, what they lose
  caves-ctl kick Mallory no digging here   Mallory reads why
  caves-ctl ban Mallory --for 2h griefing  not under this name, for two hours
  caves-ctl ban 198.51.100.0/24            nobody from there, for good
  caves-ctl unban Mallory
  caves-ctl say The server gets a new version at nine
  caves-ctl save                           returns when all is on the disk
  caves-ctl reload                         reads config.toml again
  caves-ctl shutdown 60 a new version      tells everybody, and stops in a minute
  caves-ctl shutdown cancel
  caves-ctl --json sessions | jq '.sessions[].round_trip_ms'

Who may write to the socket's file may command; control.mode of the configuration sets that.
Exit status: 0 done, 1 the server said no or is not there, 2 wrong use.";

/// Commands a running Forgotten Caves server.
#[derive(Debug, clap::Parser)]
#[command(name = "caves-ctl", version, after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct Args {
    /// The server's control socket (control.socket of its configuration).
    #[arg(
        long,
        value_name = "PATH",
        env = "CAVES_SOCKET",
        default_value = "caves.sock",
        global = true
    )]
    pub(crate) socket: PathBuf,
    /// Prints the answer as the server gives it: one line of JSON.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Verb,
}

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Lists who plays, and where.
    Players,
    /// Lists all sessions: addresses, round trip, loss, traffic.
    Sessions,
    /// Throws a player out; it may come back (ban keeps it out).
    Kick {
        /// The player; small and capital letters are the same.
        name: String,
        /// What the player reads.
        reason: Vec<String>,
    },
    /// Keeps a name or an address out, and throws those out who play.
    Ban {
        /// A name, ADDRESS or ADDRESS/BITS.
        target: String,
        /// What they read; "banned" without it.
        reason: Vec<String>,
        /// Until then: 90s, 15m, 2h, 7d, 1w; for good without it.
        #[arg(long = "for", value_name = "TIME", value_parser = seconds)]
        span: Option<u64>,
        /// The target is a name, though it looks like an address.
        #[arg(long = "name")]
        is_name: bool,
    },
    /// Takes a ban back that was set by a command.
    Unban {
        /// As it was banned.
        target: String,
        /// The target is a name, though it looks like an address.
        #[arg(long = "name")]
        is_name: bool,
    },
    /// Lists all bans, those of the configuration first.
    Bans,
    /// Tells everybody in the caves something.
    Say {
        /// What.
        #[arg(required = true)]
        text: Vec<String>,
    },
    /// Writes everything that changed; returns when it is safe on the disk.
    Save,
    /// Reads the configuration again; says what changed and what needs a restart.
    Reload,
    /// Figures of the server.
    Stats,
    /// Shows how much the log tells, or changes it until the next start.
    LogLevel {
        /// error, warn, info, debug or trace.
        level: Option<String>,
    },
    /// Stops the server after a countdown that players see, or takes that back.
    Shutdown {
        /// Seconds from now, or "cancel".
        #[arg(value_name = "SECONDS|cancel", value_parser = when)]
        when: When,
        /// What players read.
        reason: Vec<String>,
    },
    /// Tells which server this is.
    Version,
}

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    In(u64),
    Never,
}

impl Verb {
    /// As the server understands it.
    pub(crate) fn to_command(&self) -> Command {
        let words = |words: &[String]| words.join(" ");
        match self {
            Self::Players => Command::Players {},
            Self::Sessions => Command::Sessions {},
            Self::Kick { name, reason } => {
                Command::Kick { name: name.clone(), reason: words(reason) }
            }
            Self::Ban { target, reason, span, is_name } => Command::Ban {
                target: target.clone(),
                is_name: *is_name,
                reason: words(reason),
                for_s: *span,
            },
            Self::Unban { target, is_name } => {
                Command::Unban { target: target.clone(), is_name: *is_name }
            }
            Self::Bans => Command::Bans {},
            Self::Say { text } => Command::Say { text: words(text) },
            Self::Save => Command::Save {},
            Self::Reload => Command::Reload {},
            Self::Stats => Command::Stats {},
            Self::LogLevel { level } => Command::LogLevel { level: level.clone() },
            Self::Shutdown { when: When::In(seconds), reason } => {
                Command::Shutdown { seconds: *seconds, reason: words(reason) }
            }
            Self::Shutdown { when: When::Never, .. } => Command::ShutdownCancel {},
            Self::Version => Command::Version {},
        }
    }
}

/// "90s", "15m", "2h", "7d", "1w", or plain seconds.
fn seconds(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no time: write 90s, 15m, 2h, 7d or 1w");
    let (number, unit) = match text.char_indices().next_back() {
        Some((at, 's')) => (&text[..at], 1),
        Some((at, 'm')) => (&text[..at], 60),
        Some((at, 'h')) => (&text[..at], 3600),
        Some((at, 'd')) => (&text[..at], 86_400),
        Some((at, 'w')) => (&text[..at], 604_800),
        _ => (text, 1),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(unit).filter(|seconds| *seconds > 0).ok_or_else(wrong)
}

fn when(text: &str) -> Result<When, String> {
    match text {
        "cancel" => Ok(When::Never),
        _ => text.parse().map(When::In).map_err(|_| "write seconds, or cancel".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

    fn command(args: &[&str]) -> Command {
        let args = ["caves-ctl"].iter().chain(args);
        Args::try_parse_from(args).unwrap().command.to_command()
    }

    #[test]
    fn clap_is_content_with_the_command_line() {
        Args::command().debug_assert();
    }

    #[test]
    fn times_are_read_with_their_unit() {
        assert_eq!(seconds("90"), Ok(90));
        assert_eq!(seconds("90s"), Ok(90));
        assert_eq!(seconds("15m"), Ok(900));
        assert_eq!(seconds("2h"), Ok(7200));
        assert_eq!(seconds("7d"), Ok(604_800));
        assert_eq!(seconds("1w"), Ok(604_800));
        for wrong in [
            "",
            "h",
            "0",
            "0h",
            "-1",
            "1.5h",
            "2 h",
            "2x",
            "99999999999999999999",
            "18446744073709551615w",
            "ü",
        ] {
            assert!(seconds(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn words_need_no_quotes() {
        let kick = Command::Kick { name: "Ada".into(), reason: "no digging here".into() };
        assert_eq!(command(&["kick", "Ada", "no", "digging", "here"]), kick);
        let ban = Command::Ban {
            target: "Ada".into(),
            is_name: false,
            reason: "griefing".into(),
            for_s: Some(7200),
        };
        assert_eq!(command(&["ban", "Ada", "--for", "2h", "griefing"]), ban);
        assert_eq!(command(&["ban", "Ada", "griefing", "--for=2h"]), ban);
        assert_eq!(command(&["shutdown", "cancel"]), Command::ShutdownCancel {});
        let stop = Command::Shutdown { seconds: 30, reason: "a new version".into() };
        assert_eq!(command(&["shutdown", "30", "a", "new", "version"]), stop);
    }
}
