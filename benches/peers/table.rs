//! The rows beside each other, and beside what was wanted.

use std::fmt;
use std::time::Duration;

use anyhow::Result;
use caves_benches::goals::Goal;
use caves_benches::measure::median;

use crate::outcome::Outcome;
use crate::rows::Row;

/// All rounds with one number of clients.
#[derive(Debug)]
pub(crate) struct Table {
    clients: usize,
    lines: Vec<Line>,
}

#[derive(Debug)]
struct Line {
    row: Row,
    rounds: Vec<Result<Outcome>>,
}

impl Table {
    pub(crate) const fn new(clients: usize) -> Self {
        Self { clients, lines: Vec::new() }
    }

    pub(crate) const fn clients(&self) -> usize {
        self.clients
    }

    pub(crate) fn add(&mut self, row: Row, outcome: Result<Outcome>) {
        match self.lines.iter_mut().find(|line| line.row == row) {
            Some(line) => line.rounds.push(outcome),
            None => self.lines.push(Line { row, rounds: vec![outcome] }),
        }
    }

    /// Whether a row of this workspace's own did not run.
    pub(crate) fn is_broken(&self) -> bool {
        let own = |line: &&Line| {
            matches!(line.row, Row::Bare | Row::BareWoken | Row::Gso | Row::GsoBatch | Row::Ours)
        };
        self.lines.iter().filter(own).any(|line| line.measured().next().is_none())
    }

    /// What was wanted of our row.
    pub(crate) fn goals(&self) -> Vec<Goal> {
        let Some(ours) = self.line(Row::Ours) else { return Vec::new() };
        let clients = self.clients;
        let ratio = |to: Row| self.line(to).and_then(|to| ours.ratio(to));
        let limit = |what: &str| format!("ours, {clients} clients: {what}");
        let missed = (clients >= 10_000).then(|| {
            Goal::new(limit("client-ticks missed"), 0.0, ours.median(|run| run.missed() as f64))
        });
        // With few clients it is the loop's waking up that costs, of which the bare one does without.
        let bare = if clients < 1_000 { Goal::stretch } else { Goal::new };
        let goals = [
            bare(limit("processor time / bare"), 1.15, ratio(Row::Bare)),
            Goal::stretch(limit("processor time / bare, woken"), 1.15, ratio(Row::BareWoken)),
            Goal::stretch(limit("processor time / GSO in sendmmsg"), 1.2, ratio(Row::GsoBatch)),
            Goal::new(limit("blocks a tick"), 0.0, ours.median(Outcome::blocks_each)),
        ];
        goals.into_iter().chain(missed).collect()
    }

    fn line(&self, row: Row) -> Option<&Line> {
        self.lines.iter().find(|line| line.row == row)
    }
}

impl Line {
    fn measured(&self) -> impl Iterator<Item = &Outcome> {
        self.rounds.iter().flatten()
    }

    /// The runs that count.
    fn good(&self) -> impl Iterator<Item = &Outcome> {
        self.measured().filter(|run| run.fault().is_none())
    }

    /// The middle of a figure, of the runs that count.
    fn median(&self, figure: impl Fn(&Outcome) -> f64) -> Option<f64> {
        middle(self.good().map(figure))
    }

    /// The same, of all that were measured if none counts: what there is to say about a row that is invalid.
    fn told(&self, figure: impl Fn(&Outcome) -> f64) -> f64 {
        let told = self.median(&figure).or_else(|| middle(self.measured().map(figure)));
        told.unwrap_or(f64::NAN)
    }

    /// How many times the processor time of `base` this takes: the middle of the rounds' ratios, as both
    /// sides of one saw the same neighbours.
    fn ratio(&self, base: &Self) -> Option<f64> {
        let pairs = self.rounds.iter().zip(&base.rounds);
        let ratios = pairs
            .filter_map(|(ours, base)| Some((ours.as_ref().ok()?, base.as_ref().ok()?)))
            .filter(|(ours, base)| ours.fault().is_none() && base.fault().is_none())
            .map(|(ours, base)| ours.micros() / base.micros());
        middle(ratios)
    }

    /// Why there is no figure.
    fn fault(&self) -> String {
        let reason = |run: &Result<Outcome>| match run {
            Ok(run) => run.fault().map(|fault| format!("INVALID: {fault}")),
            Err(error) => Some(format!("NOT RUN: {error:#}")),
        };
        self.rounds.iter().find_map(reason).unwrap_or_default()
    }
}

fn middle(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<_> = values.collect();
    (!values.is_empty()).then(|| median(values))
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} clients, for each client and tick", self.clients)?;
        writeln!(
            f,
            "  {:<30} {:>6} {:>6} {:>6} {:>8} {:>5} {:>6} {:>8} {:>6} {:>6} {:>6} {:>6} {:>5} {:>7}",
            "",
            "us",
            "x bare",
            "x GSO",
            "blocks",
            "core",
            "waits",
            "messages",
            "bytes",
            "heard",
            "missed",
            "gap 99",
            "most",
            "clients"
        )?;
        for line in &self.lines {
            self.write_line(f, line)?;
        }
        Ok(())
    }
}

impl Table {
    fn write_line(&self, f: &mut fmt::Formatter<'_>, line: &Line) -> fmt::Result {
        write!(f, "  {:<30}", line.row.name())?;
        if line.measured().next().is_none() {
            return writeln!(f, " {}", line.fault());
        }
        let or_dash = |figure: Option<f64>, decimals: usize| {
            figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.decimals$}"))
        };
        let ratio = |to: Row| or_dash(self.line(to).and_then(|to| line.ratio(to)), 2);
        let percent = |figure: fn(&Outcome) -> f64| format!("{:.1}%", line.told(figure) * 100.0);
        let millis = |figure: fn(&Outcome) -> Duration| {
            format!("{:.0}", line.told(|run| figure(run).as_secs_f64() * 1e3))
        };
        write!(
            f,
            " {:>6} {:>6} {:>6} {:>8} {:>5} {:>6} {:>8} {:>6} {:>6} {:>6} {:>6} {:>5} {:>7}",
            or_dash(line.median(Outcome::micros), 2),
            ratio(Row::Bare),
            ratio(Row::Gso),
            or_dash(line.median(Outcome::blocks_each), 3),
            percent(Outcome::share),
            percent(Outcome::kept_waiting),
            percent(Outcome::arrived_messages),
            percent(Outcome::arrived_bytes),
            percent(Outcome::heard),
            line.told(|run| run.missed() as f64),
            millis(|run| run.gaps.0),
            millis(|run| run.gaps.1),
            percent(Outcome::players_share),
        )?;
        let (good, all) = (line.good().count(), line.rounds.len());
        match good {
            _ if good == all => writeln!(f),
            0 => writeln!(f, "  {}", line.fault()),
            _ => writeln!(f, "  {good} of {all} rounds; {}", line.fault()),
        }
    }
}
