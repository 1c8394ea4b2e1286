//! How the cost of our server grows with what everybody sees, and with what nobody does.

use std::fmt;
use std::process::ExitCode;

use anyhow::Result;
use caves_benches::ground::{Ground, View};
use caves_benches::measure::median;

use crate::args::Plan;
use crate::outcome::Outcome;
use crate::rows::Row;
use crate::{print, progress, run};

/// Entities in view, with nothing else in the world.
const VIEWS: [usize; 5] = [10, 30, 66, 100, 200];
/// Entities elsewhere in the world, each with 30 in view.
const ASLEEP: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];
const VIEW: usize = 30;

struct Case {
    ground: Ground,
    rounds: Vec<Result<Outcome>>,
}

/// Runs every case once a round. The first of the numbers of clients counts.
pub(crate) fn run(plan: &Plan) -> Result<ExitCode> {
    let clients = plan.clients.first().copied().unwrap_or(1_000);
    let of = |view, asleep| Ground { clients, view: View::Of(view), asleep };
    let grounds = VIEWS.map(|view| of(view, 0)).into_iter().chain(ASLEEP.map(|n| of(VIEW, n)));
    let mut cases: Vec<_> = grounds.map(|ground| Case { ground, rounds: Vec::new() }).collect();
    for round in 1..=plan.rounds {
        for case in &mut cases {
            progress(round, clients, &case.name());
            case.rounds.push(run::run(Row::Ours, case.ground, plan));
        }
    }
    print(format_args!(
        "{clients} clients, for each client and tick\n  {:<34} {:>6} {:>6} {:>8} {:>6} {:>8} {:>6} {:>6} {:>5}",
        "", "bytes", "us", "x first", "core", "blocks", "missed", "gap 99", "most"
    ));
    let first = cases.first().and_then(|case| case.median(Outcome::micros));
    cases.iter().for_each(|case| print(Line { case, first }));
    // A case that did not run is a defect, whatever the machine does meanwhile.
    let broken = cases.iter().any(|case| !case.rounds.iter().any(Result::is_ok));
    Ok(if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

impl Case {
    fn name(&self) -> String {
        let View::Of(view) = self.ground.view else { return String::new() };
        match self.ground.asleep {
            0 => format!("{view} in view"),
            asleep => format!("{view} in view, {asleep} asleep"),
        }
    }

    fn good(&self) -> impl Iterator<Item = &Outcome> {
        self.rounds.iter().flatten().filter(|run| run.fault().is_none())
    }

    fn median(&self, figure: impl Fn(&Outcome) -> f64) -> Option<f64> {
        let values: Vec<_> = self.good().map(figure).collect();
        (!values.is_empty()).then(|| median(values))
    }
}

/// A case, and what the first took.
struct Line<'c> {
    case: &'c Case,
    first: Option<f64>,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { case, first } = self;
        write!(f, "  {:<34} {:>6}", case.name(), case.ground.due().1)?;
        let fault = case.rounds.iter().find_map(|run| match run {
            Ok(run) => run.fault().map(|fault| format!("INVALID: {fault}")),
            Err(error) => Some(format!("NOT RUN: {error:#}")),
        });
        let Some(micros) = case.median(Outcome::micros) else {
            return write!(f, "  {}", fault.unwrap_or_default());
        };
        let told = |figure: fn(&Outcome) -> f64| case.median(figure).unwrap_or(f64::NAN);
        write!(
            f,
            " {micros:>6.2} {:>8.2} {:>5.1}% {:>8.3} {:>6} {:>6.0} {:>5.0}",
            micros / first.unwrap_or(f64::NAN),
            100.0 * told(Outcome::share),
            told(Outcome::blocks_each),
            told(|run| run.missed() as f64),
            told(|run| run.gaps.0.as_secs_f64() * 1e3),
            told(|run| run.gaps.1.as_secs_f64() * 1e3),
        )?;
        match (case.good().count(), case.rounds.len()) {
            (good, all) if good < all => {
                write!(f, "  {good} of {all} rounds; {}", fault.unwrap_or_default())
            }
            _ => Ok(()),
        }
    }
}
