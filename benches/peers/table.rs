//! The rows beside each other, and beside what was wanted.

use std::fmt;

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
        self.lines.iter().filter(own).any(|line| line.good().next().is_none())
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
        let goals = [
            Goal::new(limit("processor time / bare"), 1.15, ratio(Row::Bare)),
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
    /// The runs that count.
    fn good(&self) -> impl Iterator<Item = &Outcome> {
        self.rounds.iter().flatten().filter(|run| run.fault().is_none())
    }

    /// The middle of a figure, of the runs that count.
    fn median(&self, figure: impl Fn(&Outcome) -> f64) -> Option<f64> {
        let values: Vec<_> = self.good().map(figure).collect();
        (!values.is_empty()).then(|| median(values))
    }

    /// How many times the processor time of `base` this takes: the middle of the rounds' ratios, as both
    /// sides of one saw the same neighbours.
    fn ratio(&self, base: &Self) -> Option<f64> {
        let pairs = self.rounds.iter().zip(&base.rounds);
        let ratios: Vec<_> = pairs
            .filter_map(|(ours, base)| Some((ours.as_ref().ok()?, base.as_ref().ok()?)))
            .filter(|(ours, base)| ours.fault().is_none() && base.fault().is_none())
            .map(|(ours, base)| ours.micros() / base.micros())
            .collect();
        (!ratios.is_empty()).then(|| median(ratios))
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

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} clients, for each client and tick", self.clients)?;
        writeln!(
            f,
            "  {:<30} {:>6} {:>6} {:>6} {:>8} {:>5} {:>10} {:>7} {:>7} {:>7} {:>6}",
            "", "us", "x bare", "x GSO", "blocks", "core", "messages", "bytes", "heard", "missed",
            "waits"
        )?;
        for line in &self.lines {
            self.write_line(f, line)?;
        }
        Ok(())
    }
}

impl Table {
    fn write_line(&self, f: &mut fmt::Formatter<'_>, line: &Line) -> fmt::Result {
        let name = line.row.name();
        let Some(micros) = line.median(Outcome::micros) else {
            return writeln!(f, "  {name:<30} {}", line.fault());
        };
        let ratio = |to: Row| {
            let ratio = self.line(to).and_then(|to| line.ratio(to));
            ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
        };
        let percent = |figure: fn(&Outcome) -> f64| {
            format!("{:.1}%", line.median(figure).unwrap_or(f64::NAN) * 100.0)
        };
        write!(
            f,
            "  {name:<30} {micros:>6.2} {:>6} {:>6} {:>8.3} {:>5.0}% {:>9} {:>7} {:>7} {:>7} {:>6}",
            ratio(Row::Bare),
            ratio(Row::Gso),
            line.median(Outcome::blocks_each).unwrap_or(f64::NAN),
            line.median(Outcome::share).unwrap_or(f64::NAN) * 100.0,
            percent(Outcome::arrived_messages),
            percent(Outcome::arrived_bytes),
            percent(Outcome::heard),
            line.median(|run| run.missed() as f64).unwrap_or(f64::NAN),
            percent(Outcome::kept_waiting),
        )?;
        let (good, all) = (line.good().count(), line.rounds.len());
        if good < all {
            write!(f, "  {good} of {all} rounds; {}", line.fault())?;
        }
        writeln!(f)
    }
}
