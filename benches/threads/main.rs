//! What a second thread saves the server where it has a core for it:
//! `cargo bench -p caves-benches --bench threads`.
//!
//! The server of this workspace with one thread and with two (`[server] threads`), in turns. Its clients are in one
//! thread that sleeps from before a tick until all of it is out, and reads and steps in one go halfway to the
//! next: on a machine of two cores both are the server's while it ticks. Each client gets 72 + 1200 bytes in a tick
//! and sends a step. What a tick takes, from its beginning until the kernel has its last datagram, is what the server itself
//! says in its metrics.

mod fleet;
#[path = "../peers/registered.rs"]
mod registered;
mod run;
mod server;

use anyhow::Result;
use caves_benches::measure::median;
use clap::Parser;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::run::Outcome;

/// Measures a tick with one thread and with two.
#[derive(Debug, Parser)]
struct Args {
    /// Numbers of clients, a line for each
    #[arg(long, value_delimiter = ',', default_values_t = [1000, 2000])]
    clients: Vec<usize>,
    /// Windows of ten ticks that are measured in a run; a run's figures are their medians
    #[arg(long, default_value_t = 5)]
    windows: u32,
    /// How often each is run; the table has medians of these
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Cargo says so to every bench
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<()> {
    let args = Args::parse();
    // Every client has a socket.
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    let mut lines = vec![Line::default(); args.clients.len()];
    for round in 0..args.rounds {
        for (&clients, line) in args.clients.iter().zip(&mut lines) {
            // Each goes first in every other round.
            let order = if round % 2 == 0 { [1, 2] } else { [2, 1] };
            for threads in order {
                let outcome = run::run(clients, threads, args.windows)?;
                progress(round + 1, clients, threads, &outcome);
                line.runs[threads - 1].push(outcome);
            }
        }
    }
    print(
        "                tick, ms        |      | processor, us a client and tick | kept waiting, % |\n \
         clients     one     two | factor |    one     two (loop + courier) |    one     two | missed",
    );
    for (clients, line) in args.clients.iter().zip(&lines) {
        print(line.text(*clients));
    }
    anyhow::ensure!(lines.iter().all(|line| line.missed() == 0), "what is not sent costs nothing");
    Ok(())
}

/// What was measured with one number of clients: with one thread and with two.
#[derive(Debug, Default, Clone)]
struct Line {
    runs: [Vec<Outcome>; 2],
}

impl Line {
    fn text(&self, clients: usize) -> String {
        let [one, two] = &self.runs;
        let ratios = one.iter().zip(two).map(|(one, two)| one.tick_ms / two.tick_ms).collect();
        let of =
            |runs: &[Outcome], what: fn(&Outcome) -> f64| median(runs.iter().map(what).collect());
        let (tick, all) = (|run: &Outcome| run.tick_ms, |run: &Outcome| run.all_us);
        let (first, second) = (|run: &Outcome| run.loop_us, |run: &Outcome| run.courier_us);
        let waited = |run: &Outcome| run.waited_percent;
        format!(
            "{clients:>8} {:>7.2} {:>7.2} | {:>6.2} | {:>6.2} {:>7.2} ({:>5.2} + {:>5.2})   | {:>6.1} {:>7.1} | {:>6}",
            of(one, tick),
            of(two, tick),
            median(ratios),
            of(one, all),
            of(two, all),
            of(two, first),
            of(two, second),
            of(one, waited),
            of(two, waited),
            self.missed(),
        )
    }

    fn missed(&self) -> u64 {
        self.runs.iter().flatten().map(|run| run.missed).sum()
    }
}

#[expect(clippy::print_stdout, reason = "the output of the bench")]
fn print(what: impl std::fmt::Display) {
    println!("{what}");
}

#[expect(clippy::print_stderr, reason = "minutes without a word look like a fault")]
fn progress(round: usize, clients: usize, threads: usize, outcome: &Outcome) {
    eprintln!("round {round}, {clients} clients, threads = {threads}: {outcome:.2?}");
}
