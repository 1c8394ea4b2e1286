//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};

use crate::protocols::Protocol;
use crate::run::Options;

/// Looks at datagrams of Forgotten Caves and its siblings, one line each.
///
/// Reads pcap and pcapng recordings, text captures (`MS c2s|s2c HEX`) and lines of hex; which of
/// them it is, it finds out. It follows each session and remarks on what was lost and came again.
/// Tokens are never printed.
#[derive(Debug, Clone, Parser)]
#[command(name = "caves-inspect", version, after_help = EXAMPLES)]
pub struct Args {
    /// Asks a server instead of reading a recording.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Recordings; standard input where there are none, and for `-`.
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Takes every datagram for one of this protocol, instead of finding out.
    #[arg(long, value_enum)]
    pub protocol: Option<Protocol>,
    /// Looks at datagrams from and to this port alone, where the server listens; may be repeated.
    #[arg(long = "port", value_name = "PORT")]
    pub ports: Vec<u16>,
    /// Writes JSON, an object a line: datagrams, then {"summary"} for each session and {"totals"}.
    #[arg(long, global = true)]
    pub json: bool,
    /// Shows only datagrams that something is to be said about, and the summary.
    #[arg(long)]
    pub quiet: bool,
    /// Ends with status 1 when a datagram did not decode or could not be read.
    #[arg(long)]
    pub strict: bool,
}

const EXAMPLES: &str = "\
Examples:
  caves-inspect game.pcapng                            a recording
  tcpdump -i lo -w - udp port 21068 | caves-inspect    as it happens
  echo 4c52010600000000000000000000 | caves-inspect    one datagram
  caves-inspect --json game.pcap | jq .packet          for machines
  caves-inspect --quiet --strict game.pcap             is anything wrong?
  caves-inspect query caves caves.example              who is there?

Exit status: 0 all was read, 1 something failed (or --strict found something, or nobody answered a
query), 2 wrong use.";

/// What else can be done.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Asks a living server for its name, map and players; status 1 when nobody answers.
    Query {
        /// What the server speaks.
        #[arg(value_enum)]
        protocol: Asked,
        /// Where it is; the protocol's default port unless given.
        #[arg(value_name = "HOST[:PORT]")]
        server: String,
    },
}

/// The protocols whose servers tell about themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Asked {
    /// Forgotten Caves: InfoRequest.
    Caves,
    /// Teeworlds 0.6: gie3, also in its extended form.
    Teeworlds,
}

impl Args {
    /// Reads a command line.
    ///
    /// # Errors
    /// It makes no sense; the error knows what to print and how to end.
    pub fn read<T: Into<OsString> + Clone>(
        line: impl IntoIterator<Item = T>,
    ) -> Result<Self, clap::Error> {
        let args = Self::try_parse_from(line)?;
        let reading = !args.files.is_empty()
            || args.protocol.is_some()
            || !args.ports.is_empty()
            || args.quiet
            || args.strict;
        if args.command.is_some() && reading {
            let text = "a query takes --json and nothing else of what is for recordings";
            return Err(Self::command().error(ErrorKind::ArgumentConflict, text));
        }
        Ok(args)
    }

    /// How to look. `flush`: somebody may be waiting for each line.
    pub fn options(&self, flush: bool) -> Options {
        Options {
            protocol: self.protocol,
            ports: self.ports.clone(),
            json: self.json,
            quiet: self.quiet,
            flush,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_query_may_be_for_machines() {
        for line in [["--json", "query", "caves", "a:1"], ["query", "--json", "caves", "a:1"]] {
            let args = Args::read([&["caves-inspect"], &line[..]].concat()).unwrap();
            assert!(args.json && args.command.is_some());
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for args in [
            &["--protocol", "quake"][..],
            &["--port", "65536"],
            &["--strict", "query", "caves", "host"],
            &["query", "blank", "host"],
            &["query", "caves"],
            &["query"],
            &["--loud"],
        ] {
            let all = [&["caves-inspect"], args].concat();
            let error = Args::read(all).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{args:?}");
        }
    }
}
