//! The command line.

use std::time::Duration;

use clap::Parser;

use crate::rows::Row;

/// Measures what a tick costs a server, beside other ways to carry it.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Numbers of clients, a table for each
    #[arg(long, value_delimiter = ',', default_values_t = [100, 500, 1000])]
    clients: Vec<usize>,
    /// Seconds that are measured of each row and round
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Seconds before that, not measured
    #[arg(long, default_value_t = 0.5)]
    warm_up: f64,
    /// How often each row is run; the table has the median
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Only these rows
    #[arg(long, value_enum, value_delimiter = ',')]
    rows: Vec<Row>,
    /// Only whether everything runs: 50 clients, one second, one round
    #[arg(long)]
    short: bool,
    /// Only the floors and our server, with 1,000, 5,000 and 10,000 clients
    #[arg(long)]
    big: bool,
    /// Only our server, with 10 to 200 entities in view and up to a million in the world
    #[arg(long)]
    growth: bool,
    /// A goal that is missed is the exit status
    #[arg(long)]
    check: bool,
    /// Cargo says so to every bench
    #[arg(long, hide = true)]
    bench: bool,
}

/// What is to be run.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) clients: Vec<usize>,
    pub(crate) rows: Vec<Row>,
    pub(crate) rounds: usize,
    /// Ticks that are measured.
    pub(crate) ticks: u32,
    pub(crate) warm_up: Duration,
    pub(crate) check: bool,
    pub(crate) growth: bool,
}

impl Args {
    pub(crate) fn plan(self) -> Plan {
        let mut rows = self.rows;
        if rows.is_empty() {
            rows = if self.big { Row::BIG.to_vec() } else { Row::ALL.to_vec() };
        }
        let clients = if self.big { vec![1_000, 5_000, 10_000] } else { self.clients };
        let ticks = |seconds: f64| (seconds * 10.0).round().max(1.0) as u32;
        let (clients, rounds, seconds) =
            if self.short { (vec![50], 1, 1.0) } else { (clients, self.rounds, self.seconds) };
        Plan {
            clients,
            rows,
            rounds: rounds.max(1),
            ticks: ticks(seconds),
            warm_up: Duration::from_secs_f64(self.warm_up.clamp(0.0, 60.0)),
            check: self.check,
            growth: self.growth,
        }
    }
}
