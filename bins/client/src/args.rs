//! The command line.

use std::path::PathBuf;

use caves_session::caves::{ClientConfig, check_name};
use caves_wire::caves::{ClientType, Token};

/// Forgotten Caves, in a terminal.
///
/// Without --connect it plays alone: a server runs inside, for this one player, and its world is
/// gone afterwards, unless --keep keeps it. Two or more players start caves-server and connect to it.
///
/// Exit status: 0 the player quit, 1 something failed, 2 wrong use or no terminal.
#[derive(Debug, Clone, clap::Parser)]
#[command(name = "caves", version)]
pub(crate) struct Args {
    /// Plays on that server; port 21068 unless given.
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(crate) connect: Option<String>,
    /// Asks that server what it is called, how many play there and how far away it is.
    #[arg(long, value_name = "HOST[:PORT]", conflicts_with_all = ["connect", "name"])]
    pub(crate) info: Option<String>,
    /// Keeps the world that is played alone, and where its player was; in FILE, or else in
    /// forgotten-caves/world.redb below $XDG_DATA_HOME (~/.local/share).
    #[arg(
        long, value_name = "FILE", num_args = 0..=1, require_equals = true,
        conflicts_with_all = ["connect", "info"]
    )]
    pub(crate) keep: Option<Option<PathBuf>>,
    /// The name to play under, 1 to 32 bytes; the server finds one for who has none.
    #[arg(long, value_parser = name)]
    pub(crate) name: Option<String>,
    /// Draws with ASCII alone. Done anyway where the locale is not UTF-8.
    #[arg(long)]
    pub(crate) ascii: bool,
    /// Says that this is another kind of client, as some servers ask for.
    #[arg(long, value_name = "NUMBER", requires = "connect")]
    pub(crate) client_type: Option<u16>,
    /// The token of a registered client, as the server's configuration has it.
    #[arg(long, value_name = "0x...", value_parser = token, requires = "connect")]
    pub(crate) token: Option<u64>,
}

impl Args {
    /// Who joins.
    pub(crate) fn client_config(&self) -> ClientConfig {
        ClientConfig {
            client_type: self.client_type.map_or(ClientType::OFFICIAL, ClientType),
            name: self.name.clone(),
            token: self.token.map(Token),
            ..ClientConfig::default()
        }
    }
}

fn name(text: &str) -> Result<String, String> {
    check_name(text.as_bytes()).map(str::to_owned).map_err(|error| error.to_string())
}

fn token(text: &str) -> Result<u64, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    match number {
        // 0 is never valid (protocol, R20).
        Ok(0) | Err(_) => Err("expected a number like 0x8d3f00c1a5b2e497".to_owned()),
        Ok(token) => Ok(token),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

    fn parsed(args: &[&str]) -> Result<Args, String> {
        let all = [&["caves"], args].concat();
        Args::try_parse_from(all).map_err(|error| error.to_string())
    }

    #[test]
    fn the_definition_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn what_is_asked_for_reaches_the_session() {
        let args = parsed(&[
            "--connect",
            "caves.example:9",
            "--name",
            "Zoë",
            "--client-type",
            "7",
            "--token",
            "0x8d3f00c1a5b2e497",
        ]);
        let config = args.unwrap().client_config();
        assert_eq!(config.client_type, ClientType(7));
        assert_eq!(config.name.as_deref(), Some("Zoë"));
        assert_eq!(config.token, Some(Token(0x8d3f_00c1_a5b2_e497)));
        assert_eq!(parsed(&[]).unwrap().client_config(), ClientConfig::default());
    }

    #[test]
    fn a_world_is_kept_when_asked_for_and_where_asked_for() {
        assert_eq!(parsed(&[]).unwrap().keep, None);
        assert_eq!(parsed(&["--keep"]).unwrap().keep, Some(None));
        assert_eq!(parsed(&["--keep=a b"]).unwrap().keep, Some(Some("a b".into())));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for args in [
            &["--name", ""][..],
            &["--name", " x"],
            &["--name", "123456789012345678901234567890123"],
            &["--connect", "a", "--token", "0"],
            &["--connect", "a", "--token", "0xyz"],
            &["--token", "0x100000000"],
            &["--client-type", "7"],
            &["--connect", "a", "--client-type", "65536"],
            &["--connect", "a", "--info", "b"],
            &["--connect", "a", "--keep"],
            &["--info", "a", "--keep=b"],
            &["--keep", "b"],
            &["somewhere"],
        ] {
            assert!(parsed(args).is_err(), "{args:?}");
        }
    }
}
