//! What a datagram costs the sessions: `cargo bench -p caves-benches --bench sessions`.
//!
//! * without arguments: the table, in interleaved rounds, then the goals;
//! * `-- --check`: the same, and a goal that is missed is the exit status.

mod blank;
mod caves;
mod ferravex;
mod site;
mod table;
mod teeworlds;

use std::process::ExitCode;

use caves_benches::goals::Goal;
use caves_counting::Counting;
use caves_session::StrangerLimits;

use crate::table::Table;

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

/// How many times as long a datagram may take with many sessions as with one: what is more than caches
/// grows with the sessions.
const LIMIT: f64 = 2.0;

fn main() -> anyhow::Result<ExitCode> {
    let check = std::env::args().any(|argument| argument == "--check");
    let mut goals = Vec::new();
    add(Table::measure::<caves::Caves>()?, &mut goals);
    add(Table::measure::<teeworlds::Teeworlds>()?, &mut goals);
    add(Table::measure::<ferravex::Ferravex>()?, &mut goals);
    add(Table::measure::<blank::Blank>()?, &mut goals);
    print(format!("goals\n  {:<66} {:<7} {:>6} {:>9}", "", "", "limit", "measured"));
    for goal in &goals {
        print(goal);
    }
    let missed = goals.iter().any(Goal::is_missed);
    Ok(if missed && check { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn add(table: Table, goals: &mut Vec<Goal>) {
    print(&table);
    goals.extend(table.goals(LIMIT));
}

#[expect(clippy::print_stdout, reason = "the output of the bench")]
fn print(what: impl std::fmt::Display) {
    println!("{what}");
}

/// Everybody may come in at once: how many strangers may ask is not what is measured.
fn open(limits: StrangerLimits) -> StrangerLimits {
    StrangerLimits { total_per_second: 1_000_000, ..limits }
}
