//! What it costs a server to keep its clients up to date, beside other ways to do that:
//! `cargo bench -p caves-benches --bench peers`.
//!
//! Ten times a second every client gets 72 + 1200 bytes and sends 74. Each row serves from one thread,
//! whose processor time is counted; the clients are in another thread and are not. `-- --help` tells what
//! can be set, `notes/performance.md` how to read the table.

mod args;
mod by_enet;
mod by_hand;
mod by_laminar;
mod by_quinn;
mod by_renet;
mod course;
mod drive;
mod growth;
mod ours;
mod outcome;
mod reader;
mod registered;
mod rows;
mod run;
mod table;

use std::process::ExitCode;

use caves_benches::goals::Goal;
use caves_benches::ground::Ground;
use caves_counting::Counting;
use clap::Parser;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::args::Args;
use crate::table::Table;

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

fn main() -> anyhow::Result<ExitCode> {
    let plan = Args::parse().plan();
    allow_many_sockets()?;
    if plan.growth {
        return growth::run(&plan);
    }
    let mut tables: Vec<_> = plan.clients.iter().map(|clients| Table::new(*clients)).collect();
    // A round takes every row once: what slows the machine down for a while slows all of them.
    for round in 1..=plan.rounds {
        for table in &mut tables {
            for row in &plan.rows {
                progress(round, table.clients(), row.name());
                table.add(*row, run::run(*row, Ground::full(table.clients()), &plan));
            }
        }
    }
    let mut goals = Vec::new();
    for table in &tables {
        print(table);
        goals.extend(table.goals());
    }
    print(format!("goals\n  {:<66} {:<7} {:>6} {:>9}", "", "", "limit", "measured"));
    goals.iter().for_each(print);
    let missed = plan.check && goals.iter().any(Goal::is_missed);
    // A row of ours that did not run is a defect, whatever the machine does meanwhile.
    let broken = tables.iter().any(Table::is_broken);
    Ok(if missed || broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Every client has a socket, and so has a server.
fn allow_many_sockets() -> anyhow::Result<()> {
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, most, most)?)
}

#[expect(clippy::print_stdout, reason = "the output of the bench")]
fn print(what: impl std::fmt::Display) {
    println!("{what}");
}

#[expect(clippy::print_stderr, reason = "minutes without a word look like a fault")]
fn progress(round: usize, clients: usize, row: &str) {
    eprintln!("round {round}, {clients} clients: {row}");
}
