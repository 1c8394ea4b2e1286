//! The rows of one protocol, in interleaved rounds: medians, and medians of the ratios within a round.

use std::fmt;
use std::time::Instant;

use anyhow::ensure;
use caves_benches::goals::Goal;
use caves_benches::measure::median;

use crate::ALLOCATOR;
use crate::site::{Protocol, Site, Tally};

const ROUNDS: usize = 201;
/// Rounds before anything is timed: queues and tables have then the size that they keep.
const WARM_UP: usize = 5;

/// What is done with a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Usual,
    Junk,
    Exchange,
}

impl Work {
    const ALL: [Self; 3] = [Self::Usual, Self::Junk, Self::Exchange];

    const fn name(self) -> &'static str {
        match self {
            Self::Usual => "server, a usual datagram",
            Self::Junk => "server, junk",
            Self::Exchange => "server and clients, ticks",
        }
    }
}

/// One work with one number of sessions.
struct Row<P: Protocol> {
    work: Work,
    sessions: usize,
    site: Site<P>,
    /// Nanoseconds per datagram, by round.
    rounds: Vec<f64>,
    heard: u64,
    sent: u64,
    taken: u64,
    allocations: u64,
}

impl<P: Protocol> Row<P> {
    fn open(work: Work, sessions: usize) -> anyhow::Result<Self> {
        let mut site = Site::open(sessions)?;
        if work == Work::Exchange {
            // The clients do not yet keep the pace of the ticks: the first action waits.
            site.exchange()?;
        }
        let (heard, sent, taken, allocations) = (0, 0, 0, 0);
        Ok(Self { work, sessions, site, rounds: Vec::new(), heard, sent, taken, allocations })
    }

    /// One batch: prepared, timed, and checked.
    fn run(&mut self) -> anyhow::Result<()> {
        match self.work {
            Work::Usual => self.site.prepare_usual()?,
            Work::Junk => self.site.prepare_junk()?,
            Work::Exchange => {}
        }
        let (made, start) = (ALLOCATOR.made(), Instant::now());
        let tally = match self.work {
            Work::Usual => self.site.hear_usual(),
            Work::Junk => self.site.hear_junk(),
            Work::Exchange => self.site.exchange()?,
        };
        let (time, made) = (start.elapsed(), ALLOCATOR.made() - made);
        match self.work {
            Work::Usual => self.site.check_usual(tally)?,
            Work::Junk => self.site.check_junk(tally)?,
            Work::Exchange => self.site.check_exchange(tally)?,
        }
        self.note(time.as_nanos() as f64, made, tally);
        Ok(())
    }

    fn note(&mut self, nanoseconds: f64, made: u64, tally: Tally) {
        self.rounds.push(nanoseconds / tally.heard as f64);
        self.heard += tally.heard;
        self.sent += tally.sent;
        self.taken += tally.taken;
        self.allocations += made;
    }

    fn measured(&self, ratio: Option<f64>) -> Measured {
        Measured {
            work: self.work,
            sessions: self.sessions,
            nanoseconds: median(self.rounds.clone()),
            ratio,
            sent: self.sent as f64 / self.heard as f64,
            allocations: self.allocations as f64 / self.heard as f64,
        }
    }

    fn forget(&mut self) {
        self.rounds.clear();
        (self.heard, self.sent, self.taken, self.allocations) = (0, 0, 0, 0);
    }

    /// Clients say little beside what is usual: one that joins anew again and again says more.
    fn check(&self) -> anyhow::Result<()> {
        let others = self.heard.saturating_sub(self.sent + self.taken);
        let few = self.work != Work::Exchange || others <= self.taken / 5;
        ensure!(few, "{}: {others} others beside {}", P::NAME, self.taken);
        Ok(())
    }
}

/// What was measured of one protocol.
pub(crate) struct Table {
    name: &'static str,
    many: usize,
    rows: Vec<Measured>,
}

struct Measured {
    work: Work,
    sessions: usize,
    nanoseconds: f64,
    /// To the row with one session.
    ratio: Option<f64>,
    sent: f64,
    allocations: f64,
}

impl Table {
    pub(crate) fn measure<P: Protocol>() -> anyhow::Result<Self> {
        let mut rows = Vec::new();
        for work in Work::ALL {
            rows.push(Row::<P>::open(work, 1)?);
            rows.push(Row::<P>::open(work, P::MANY)?);
        }
        for round in 0..WARM_UP + ROUNDS {
            for row in &mut rows {
                if round == WARM_UP {
                    row.forget();
                }
                row.run()?;
            }
        }
        rows.iter().try_for_each(Row::check)?;
        let rows = rows.as_chunks().0.iter().flat_map(|[one, many]| {
            let ratios = many.rounds.iter().zip(&one.rounds).map(|(many, one)| many / one);
            [one.measured(None), many.measured(Some(median(ratios.collect())))]
        });
        let rows = rows.collect();
        Ok(Self { name: P::NAME, many: P::MANY, rows })
    }

    /// No cost of the server may grow with its sessions.
    pub(crate) fn goals(&self, limit: f64) -> impl Iterator<Item = Goal> {
        let server = self.rows.iter().filter(|row| row.work != Work::Exchange);
        server.filter(|row| row.sessions > 1).map(move |row| {
            let (name, work, many) = (self.name, row.work.name(), self.many);
            Goal::new(format!("{name}: {work}, {many} sessions / 1"), limit, row.ratio)
        })
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sessions, ns, ratio) = ("sessions", "ns/datagram", "x one");
        let (sent, made) = ("sent/heard", "blocks made");
        writeln!(f, "{}", self.name)?;
        writeln!(f, "  {:<28} {sessions:>8} {ns:>12} {ratio:>7} {sent:>11} {made:>12}", "")?;
        for row in &self.rows {
            let ratio = row.ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"));
            let Measured { work, sessions, nanoseconds, sent, allocations, .. } = row;
            write!(f, "  {:<28} {sessions:>8} {nanoseconds:>12.1} {ratio:>7}", work.name())?;
            writeln!(f, " {sent:>11.3} {allocations:>12.3}")?;
        }
        Ok(())
    }
}
