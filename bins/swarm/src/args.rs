//! The command line.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};

/// The first of the addresses that `--sources` takes, each client's group the next one.
const FIRST_SOURCE: u32 = 0x7F01_0001;
/// So many clients are worth a second thread.
const WORTH_A_THREAD: u32 = 500;
/// Datagrams that may be lost, in percent: beyond this nobody gets in.
const MOST_LOSS: i64 = 90;

/// Loads a Forgotten Caves server with many real clients, and checks everything it says.
///
/// Clients join one after the other (--ramp), play for --seconds after the last one began, and
/// say goodbye. The report says what came, when, and what was wrong. It says also how busy this
/// program was itself: what a thread that works all the time sees late is not the server's delay.
#[derive(Debug, Clone, Parser)]
#[command(name = "caves-swarm", version, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The server.
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) connect: String,
    /// Clients, one socket each.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub(crate) clients: u32,
    /// How long all of them play, counted from when the last one begins to join.
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=604_800))]
    pub(crate) seconds: u32,
    /// What they do.
    #[arg(long, value_enum, default_value_t = Walk::Random)]
    pub(crate) walk: Walk,
    /// From how many addresses of 127.0.0.0/8 they come; unless given, the system chooses one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) sources: Option<u32>,
    /// How many begin to join in a second.
    #[arg(long, value_name = "RATE", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) ramp: u32,
    /// Drops so many of 100 datagrams each way.
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=MOST_LOSS))]
    pub(crate) loss: u8,
    /// Sends so many datagrams of junk a second beside them, from many addresses.
    #[arg(long, value_name = "RATE", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub(crate) hostile: u32,
    /// Threads that the clients share; unless given, two from 500 clients on.
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) threads: Option<u32>,
    /// Writes the report as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  caves-swarm --connect 127.0.0.1:21068 --clients 1000 --seconds 60
  caves-swarm --connect 127.0.0.1:21068 --clients 500 --sources 100 --walk crowd --loss 10
  caves-swarm --connect 127.0.0.1:21068 --hostile 5000 --json | jq .failures

Exit status: 0 nothing was wrong with what the server said, 1 something was (or this program
failed), 2 wrong use. Clients that could not join are told loudly, and are no failure.";

/// What clients do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Walk {
    /// A step each 100 ms, now and then another way, a dig, a question.
    Random,
    /// Nothing but keeping the session.
    Still,
    /// As random, but nobody goes far from where it came in: all see all.
    Crowd,
}

impl Walk {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Still => "still",
            Self::Crowd => "crowd",
        }
    }
}

/// A command line that makes sense.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) server: SocketAddr,
    pub(crate) clients: u32,
    pub(crate) play: Duration,
    pub(crate) walk: Walk,
    pub(crate) sources: Option<u32>,
    pub(crate) ramp: u32,
    pub(crate) loss: u8,
    pub(crate) hostile: u32,
    pub(crate) threads: u32,
}

impl Args {
    /// Finds the server.
    ///
    /// # Errors
    /// It has no address, or addresses were asked for that cannot reach it.
    pub(crate) fn plan(&self) -> Result<Plan> {
        let name = &self.connect;
        let mut addrs = name.to_socket_addrs().with_context(|| format!("--connect {name}"))?;
        let server = addrs.next().with_context(|| format!("{name} has no address"))?;
        ensure!(
            self.sources.is_none() || is_here(server),
            "--sources takes addresses of 127.0.0.0/8, which reach no server at {server}"
        );
        let default = if self.clients >= WORTH_A_THREAD { 2 } else { 1 };
        Ok(Plan {
            server,
            clients: self.clients,
            play: Duration::from_secs(self.seconds.into()),
            walk: self.walk,
            sources: self.sources,
            ramp: self.ramp,
            loss: self.loss,
            hostile: self.hostile,
            threads: self.threads.unwrap_or(default).min(self.clients),
        })
    }
}

impl Plan {
    /// Where a client's socket is bound.
    pub(crate) fn source(&self, client: u32) -> IpAddr {
        match self.sources {
            Some(sources) => Ipv4Addr::from_bits(FIRST_SOURCE + client % sources).into(),
            None => any_like(self.server),
        }
    }

    /// When a client begins to join.
    pub(crate) fn begins_after(&self, client: u32) -> Duration {
        Duration::from_secs(client.into()) / self.ramp
    }

    /// When all of them leave.
    pub(crate) fn ends_after(&self) -> Duration {
        self.begins_after(self.clients - 1) + self.play
    }
}

/// Whether all of 127.0.0.0/8 can speak to a server.
pub(crate) fn is_here(server: SocketAddr) -> bool {
    matches!(server.ip(), IpAddr::V4(ip) if ip.is_loopback())
}

/// The address that lets the system choose.
pub(crate) fn any_like(server: SocketAddr) -> IpAddr {
    match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn plan(line: &str) -> Result<Plan> {
        let words = ["caves-swarm"].into_iter().chain(line.split(' '));
        Args::try_parse_from(words)?.plan()
    }

    #[test]
    fn the_definition_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn clients_come_spread_over_sources_and_time() {
        let plan = plan("--connect 127.0.0.1:1 --clients 600 --sources 3 --ramp 100").unwrap();
        let sources = [0, 1, 2, 3].map(|client| plan.source(client).to_string());
        assert_eq!(sources, ["127.1.0.1", "127.1.0.2", "127.1.0.3", "127.1.0.1"]);
        assert_eq!(plan.begins_after(50), Duration::from_millis(500));
        // The last one, 599, begins after 5.99 s, and all play for 10 s from then on.
        assert_eq!(plan.ends_after(), Duration::from_millis(15_990));
        assert_eq!(plan.threads, 2);
    }

    #[test]
    fn a_million_sources_are_all_on_the_loopback() {
        let plan = plan("--connect 127.0.0.1:1 --clients 60000 --sources 1000000").unwrap();
        let IpAddr::V4(last) = plan.source(999_999) else { panic!("IPv6") };
        assert!(last.is_loopback() && last < Ipv4Addr::new(127, 250, 0, 0), "{last}");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "--clients 5",
            "--connect 127.0.0.1",
            "--connect 127.0.0.1:1 --clients 0",
            "--connect 127.0.0.1:1 --loss 91",
            "--connect 127.0.0.1:1 --walk dance",
            "--connect 192.0.2.1:1 --sources 4",
            "--connect [::1]:1 --sources 4",
        ] {
            assert!(plan(line).is_err(), "{line}");
        }
    }
}
