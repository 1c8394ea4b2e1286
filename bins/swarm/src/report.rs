//! What is printed in the end, for people and for machines.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::args::Plan;
use crate::busy::{Busy, TOO_BUSY};
use crate::check::{Chunks, Failures};
use crate::fleet::Findings;
use crate::hostile::Harm;
use crate::tally::{Range, Reasons, Tally, Traffic};

/// All that was found out.
#[derive(Debug)]
pub(crate) struct Report {
    plan: Plan,
    wall: Duration,
    tally: Tally,
    chunks: Chunks,
    failures: Failures,
    harm: Option<Harm>,
    busy: Vec<Busy>,
}

impl Report {
    /// Puts together what the threads found.
    pub(crate) fn new(
        plan: &Plan,
        wall: Duration,
        findings: Vec<Findings>,
        hostile: Option<(Harm, Busy)>,
    ) -> Self {
        let (mut chunks, mut failures) = (Chunks::default(), Failures::default());
        let (mut busy, mut tallies) = (Vec::new(), Vec::new());
        for of in findings {
            chunks.merge(of.chunks, &mut failures);
            busy.push(of.busy);
            tallies.push(of.tally);
        }
        let tally = tallies.into_iter().reduce(|mut sum, of| {
            sum.merge(&of);
            sum
        });
        let tally = tally.unwrap_or_default();
        failures.merge(&tally.failures);
        let harm = hostile.map(|(harm, of)| {
            failures.merge(&harm.failures);
            busy.push(of);
            harm
        });
        Self { plan: plan.clone(), wall, tally, chunks, failures, harm, busy }
    }

    /// Whether the server said something wrong.
    pub(crate) fn has_failures(&self) -> bool {
        self.failures.in_all() > 0
    }

    /// What must not be overlooked, a line each.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let out: u64 = self.tally.left_out.values().sum();
        if out > 0 {
            let why = listed(&self.tally.left_out);
            lines.push(format!("{out} of {} clients COULD NOT JOIN: {why}", self.plan.clients));
        }
        if self.has_failures() {
            lines.push(format!("the server said {} WRONG things", self.failures.in_all()));
        }
        for busy in self.busy.iter().filter(|busy| busy.is_too_busy()) {
            lines.push(format!(
                "the thread {} of this program was {} busy ({} over all): above {} its own delays \
                 look like the server's",
                busy.thread,
                percent(busy.busiest_second),
                percent(busy.share),
                percent(TOO_BUSY),
            ));
        }
        if let Some(overrun @ 1..) = self.tally.overrun {
            lines.push(format!(
                "{overrun} datagrams came that this program was too slow to read: they look like \
                 missed ticks"
            ));
        }
        lines
    }

    /// For machines: an object in one line.
    pub(crate) fn to_json(&self) -> Value {
        let Self { plan, wall, tally, chunks, failures, harm, busy } = self;
        let each = (tally.joined > 0).then_some(tally.each);
        let by_name = |(name, count): (&str, u64)| (name.to_owned(), Value::from(count));
        json!({
            "server": plan.server.to_string(),
            "clients": plan.clients,
            "threads": plan.threads,
            "walk": plan.walk.name(),
            "loss_percent": plan.loss,
            "seconds": wall.as_secs_f64(),
            "joined": tally.joined,
            "playing_at_the_end": tally.playing,
            "not_joined": tally.left_out,
            "refused": tally.refused,
            "lost": tally.lost,
            "resumed": tally.resumed,
            "join_ms": tally.join.spread(),
            "ticks": {
                "received": tally.ticks.received,
                "missed": tally.ticks.missed,
                "each": each,
            },
            "jitter_ms": tally.ticks.jitter.spread(),
            "updates": { "complete": tally.updates, "incomplete": tally.incomplete },
            "steady": tally.steady,
            "up": tally.up,
            "down": tally.down,
            "lost_on_purpose": { "up": tally.lost_up, "down": tally.lost_down },
            "unsent": tally.unsent,
            "undelivered": tally.undelivered,
            "overrun": tally.overrun,
            "steps": tally.deeds.steps,
            "digs": tally.deeds.digs,
            "actions_lost": tally.deeds.lost,
            "questions": {
                "asked": tally.deeds.questions,
                "answered": tally.deeds.answers,
                "unanswered": tally.deeds.unanswered,
            },
            "chunks": {
                "checked": chunks.checked,
                "versions": chunks.known(),
                "not_compared": chunks.unknown,
            },
            "failures": failures.by_name().map(by_name).collect::<Map<_, _>>(),
            "failures_in_all": failures.in_all(),
            "hostile": harm,
            "busy": busy,
            "warnings": self.warnings(),
        })
    }

    /// For people.
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: &str| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<10} {value}");
        };
        for (name, value) in self.lines() {
            line(name, &value);
        }
        for busy in &self.busy {
            let [share, most] = [busy.share, busy.busiest_second].map(percent);
            line("busy", &format!("{} {share}, {most} in its busiest second", busy.thread));
        }
        text
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let Self { plan, tally, chunks, failures, .. } = self;
        let deeds = &tally.deeds;
        let seconds = self.wall.as_secs_f64();
        let mut lines = vec![
            (
                "swarm",
                format!(
                    "{} clients in {} threads at {}, walk {}, loss {} %, {seconds:.1} s",
                    plan.clients,
                    plan.threads,
                    plan.server,
                    plan.walk.name(),
                    plan.loss
                ),
            ),
            ("joined", format!("{} in {}", tally.joined, millis(&tally.join.spread()))),
            ("not joined", listed(&tally.left_out)),
            ("refused", listed(&tally.refused)),
            ("lost", format!("{}; {} went on after a silence", listed(&tally.lost), tally.resumed)),
            ("ticks", self.ticks()),
            ("jitter", millis(&tally.ticks.jitter.spread())),
            ("updates", format!("{} complete, {} never", tally.updates, tally.incomplete)),
            ("up", traffic(tally.up, tally.steady.up, tally.steady.seconds)),
            ("down", traffic(tally.down, tally.steady.down, tally.steady.seconds)),
            (
                "drops",
                format!(
                    "{} up and {} down on purpose, {} unsent, {} undelivered, {} overrun",
                    tally.lost_up,
                    tally.lost_down,
                    tally.unsent,
                    tally.undelivered,
                    tally.overrun.map_or("?".to_owned(), |count| count.to_string()),
                ),
            ),
            (
                "did",
                format!(
                    "{} steps, {} digs, {} actions lost; {} questions, {} answered, {} not",
                    deeds.steps,
                    deeds.digs,
                    deeds.lost,
                    deeds.questions,
                    deeds.answers,
                    deeds.unanswered
                ),
            ),
            (
                "chunks",
                format!(
                    "{} checked, {} versions, {} not compared",
                    chunks.checked,
                    chunks.known(),
                    chunks.unknown
                ),
            ),
            ("failures", found(failures)),
        ];
        if let Some(harm) = &self.harm {
            lines.push((
                "hostile",
                format!(
                    "{} random, {} cut, {} Hellos, {} Joins, {} tokens from {} addresses; {} \
                     answers, {} of {} bytes; {} unsent",
                    harm.random,
                    harm.cut,
                    harm.hellos,
                    harm.joins,
                    harm.tokens,
                    harm.sources,
                    harm.answers.datagrams,
                    harm.answers.bytes,
                    harm.sent.bytes,
                    harm.unsent
                ),
            ));
        }
        lines
    }

    fn ticks(&self) -> String {
        let ticks = &self.tally.ticks;
        let of = ticks.received + ticks.missed;
        let share = 100.0 * ticks.missed as f64 / of.max(1) as f64;
        let each = match self.tally.each {
            Range { min, max } if self.tally.joined > 0 => format!("; {min} to {max} a client"),
            _ => String::new(),
        };
        format!("{} received, {} missed ({share:.3} %){each}", ticks.received, ticks.missed)
    }
}

/// `server full 3, banned 1`, or `none`.
fn listed(reasons: &Reasons) -> String {
    let all: Vec<String> =
        reasons.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

fn found(failures: &Failures) -> String {
    let all: Vec<String> = failures
        .by_name()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

fn millis(spread: &crate::histogram::Spread) -> String {
    let crate::histogram::Spread { p50, p99, max, .. } = spread;
    format!("p50 {p50:.2} ms, p99 {p99:.2} ms, max {max:.2} ms")
}

/// All of it, and the rates of the time in which all clients were there.
fn traffic(all: Traffic, steady: Traffic, seconds: f64) -> String {
    let Traffic { datagrams, bytes } = all;
    let rate = |of: f64| of / seconds.max(1e-6);
    let (per_second, mbit) = (rate(steady.datagrams as f64), rate(steady.bytes as f64 * 8e-6));
    format!("{datagrams} datagrams, {bytes} bytes; {per_second:.0}/s, {mbit:.2} Mbit/s by all")
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Failure;
    use std::collections::BTreeMap;

    fn report(tally: Tally, failures: Failures, busy: Vec<Busy>) -> Report {
        Report {
            plan: Plan {
                server: ([127, 0, 0, 1], 21068).into(),
                clients: 10,
                play: Duration::from_secs(10),
                walk: crate::args::Walk::Crowd,
                sources: None,
                ramp: 100,
                loss: 0,
                hostile: 0,
                threads: 1,
            },
            wall: Duration::from_secs(10),
            tally,
            chunks: Chunks::default(),
            failures,
            harm: None,
            busy,
        }
    }

    #[test]
    fn a_quiet_run_has_no_warning_and_all_its_lines() {
        let mut tally = Tally { joined: 10, playing: 10, ..Tally::default() };
        tally.up = Traffic { datagrams: 600, bytes: 40_000 };
        tally.steady.up = Traffic { datagrams: 500, bytes: 37_000 };
        tally.steady.seconds = 10.0;
        tally.ticks.received = 990;
        tally.ticks.missed = 10;
        tally.each = Range { min: 98, max: 100 };
        let report = report(tally, Failures::default(), Vec::new());
        assert!(report.warnings().is_empty() && !report.has_failures());
        let text = report.to_text();
        assert!(
            text.contains("ticks      990 received, 10 missed (1.000 %); 98 to 100 a client\n")
        );
        // 500 in ten seconds, and 37,000 bytes are 0.0296 Mbit/s.
        assert!(text.contains("up         600 datagrams, 40000 bytes; 50/s, 0.03 Mbit/s by all\n"));
        assert!(text.contains("failures   none\n"));
        assert_eq!(report.to_json()["ticks"]["each"]["min"], 98);
    }

    #[test]
    fn what_must_not_be_overlooked_is_a_warning() {
        let mut failures = Failures::default();
        failures.add(Failure::Tiles);
        failures.add(Failure::Tiles);
        let tally = Tally {
            joined: 7,
            left_out: BTreeMap::from([("server full".to_owned(), 3)]),
            overrun: Some(4),
            ..Tally::default()
        };
        let busy =
            |share, busiest_second| Busy { thread: "clients-0".into(), share, busiest_second };
        let report = report(tally, failures, vec![busy(0.6, 0.69), busy(0.6, 0.71)]);
        assert_eq!(
            report.warnings(),
            [
                "3 of 10 clients COULD NOT JOIN: server full 3",
                "the server said 2 WRONG things",
                "the thread clients-0 of this program was 71 % busy (60 % over all): above 70 % its \
                 own delays look like the server's",
                "4 datagrams came that this program was too slow to read: they look like missed \
                 ticks",
            ]
        );
        assert!(report.has_failures());
        assert!(report.to_text().contains("failures   tiles 2\n"));
        let json = report.to_json();
        assert_eq!((&json["failures"]["tiles"], &json["failures_in_all"]), (&2.into(), &2.into()));
        assert_eq!(json["not_joined"]["server full"], 3);
    }
}
