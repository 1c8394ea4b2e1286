//! `caves-swarm`: many real clients at one server, in a few threads.
//!
//! ```text
//!             main: arguments, threads, the report        hostile: junk from other addresses
//!               |
//!  >  datagram  fleet: a loop around many sockets  ---  alarms: who is due; mail: what waits
//!     wire        member: one socket, one client   ---  check: is it true? pace: is it in time?
//!     session       caves::Client                  ---  walker: what it does
//! ```

mod alarms;
mod args;
mod busy;
mod check;
mod fleet;
mod histogram;
mod hostile;
mod kernel;
mod mail;
mod member;
mod pace;
mod report;
mod tally;
mod walker;
mod watch;

use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};

use anyhow::{Context, Result, anyhow};
use clap::Parser;
use signal_hook::consts::{SIGINT, SIGTERM};

use args::{Args, Plan};
use fleet::{Findings, Fleet, Live};
use hostile::Hostile;
use member::Clock;
use report::Report;

/// Files that are open beside the clients' sockets.
const OTHER_FILES: u64 = 128;

fn main() -> ExitCode {
    let args = Args::parse();
    let plan = match args.plan() {
        Ok(plan) => plan,
        Err(error) => return fail(2, &error),
    };
    match run(&plan) {
        Ok(report) => tell(&report, args.json),
        Err(error) => fail(1, &error),
    }
}

fn fail(status: u8, error: &anyhow::Error) -> ExitCode {
    // Where standard error is gone there is nobody to tell.
    let _ = writeln!(io::stderr(), "caves-swarm: {error:#}");
    ExitCode::from(status)
}

fn tell(report: &Report, json: bool) -> ExitCode {
    for warning in report.warnings() {
        let _ = writeln!(io::stderr(), "caves-swarm: {warning}");
    }
    let text = if json { format!("{}\n", report.to_json()) } else { report.to_text() };
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::from(u8::from(report.has_failures())),
        Err(error) => fail(1, &anyhow!(error).context("cannot write the report")),
    }
}

fn run(plan: &Plan) -> Result<Report> {
    let wanted = u64::from(plan.clients) + OTHER_FILES;
    let files = kernel::allow_files(wanted);
    if files < wanted {
        let _ = writeln!(
            io::stderr(),
            "caves-swarm: {files} open files are allowed, {wanted} are wanted: raise ulimit -n"
        );
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The first one ends the run politely, the second one at once.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .context("cannot wait for signals")?;
    }
    play(plan, &stop)
}

/// Runs the threads to their end.
fn play(plan: &Plan, stop: &AtomicBool) -> Result<Report> {
    let clock = Clock::start();
    let peace = AtomicBool::new(false);
    let lives: Vec<Live> = (0..plan.threads).map(|_| Live::default()).collect();
    let hostile = (plan.hostile > 0)
        .then(|| Hostile::new(plan, RandomState::new().hash_one(0)))
        .transpose()
        .context("cannot open sockets for --hostile")?;
    thread::scope(|scope| {
        let hostile = hostile.map(|hostile| scope.spawn(|| hostile.run(&peace)));
        let fleets: Vec<_> = (0..plan.threads)
            .zip(&lives)
            .map(|(thread, live)| {
                scope.spawn(move || Fleet::new(plan, thread, clock)?.run(live, stop))
            })
            .collect();
        watch::until_over(plan, &fleets, &lives);
        let found: Result<Vec<Findings>> = fleets.into_iter().map(joined).collect();
        peace.store(true, Ordering::Relaxed);
        let harm = hostile.map(ScopedJoinHandle::join).transpose();
        let harm = harm.map_err(|_| anyhow!("the hostile thread panicked"))?;
        Ok(Report::new(plan, clock.elapsed(), found?, harm))
    })
}

fn joined(thread: ScopedJoinHandle<'_, io::Result<Findings>>) -> Result<Findings> {
    let findings = thread.join().map_err(|_| anyhow!("a thread panicked"))?;
    findings.context("cannot wait for datagrams")
}
