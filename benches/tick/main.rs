//! What a tick of a whole server costs: `cargo bench -p caves-bench-tick`.
//!
//! Everything but sockets: an Action from each player, the tick, and all datagrams of it written. Each case runs
//! once a round, so that a ratio is of one time and one machine; of the ticks of a round the quickest counts, as
//! others may use the machine, and of the rounds the median. The last column is of all ticks: what 99 of 100 take
//! for step and send of everybody. Arguments: `--case N` runs that one alone, for
//! a profile; `--ticks N` says how often.

use std::fmt;
use std::time::{Duration, Instant};

use caves_bench_tick::{Plan, Sent, Stage};
use caves_counting::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

/// Ticks of one case in one round.
const TICKS: u32 = 30;
const ROUNDS: usize = 5;

struct Case {
    name: String,
    players: usize,
    stage: Stage,
    rounds: Vec<Times>,
    /// Step and send of each tick of all rounds.
    ticks: Vec<Duration>,
    sent: Sent,
    made: u64,
}

/// Nanoseconds a player and tick.
#[derive(Clone, Copy, Default)]
struct Times {
    receive: f64,
    step: f64,
    send: f64,
}

impl Case {
    fn open(name: &str, plan: Plan) -> anyhow::Result<Case> {
        let mut stage = Stage::open(plan)?;
        let mut sent = Sent::default();
        // All chunks of a view are sent within a second and a half.
        for _ in 0..30 {
            (sent, ..) = stage.tick();
        }
        let (name, players) = (name.to_owned(), plan.players);
        let (rounds, all) = (Vec::new(), Vec::new());
        Ok(Case { name, players, stage, rounds, ticks: all, sent, made: 0 })
    }

    fn run(&mut self, ticks: u32) {
        let mut best = [Duration::MAX; 3];
        self.ticks.reserve(ticks as usize);
        let made = ALLOCATOR.made();
        for _ in 0..ticks {
            self.stage.write_actions();
            let start = Instant::now();
            self.stage.receive();
            let received = Instant::now();
            self.stage.run_tick();
            let run = Instant::now();
            self.sent = self.stage.send();
            let end = Instant::now();
            for (best, part) in best.iter_mut().zip([received - start, run - received, end - run]) {
                *best = part.min(*best);
            }
            self.ticks.push(end - received);
            self.stage.answer_store();
        }
        self.made = (ALLOCATOR.made() - made) / u64::from(ticks);
        let each = |part: Duration| part.as_nanos() as f64 / self.players as f64;
        let [receive, step, send] = best.map(each);
        self.rounds.push(Times { receive, step, send });
    }

    /// What 99 of 100 ticks are below, step and send for everybody.
    fn slowest(&self) -> Duration {
        let mut ticks = self.ticks.clone();
        ticks.sort_unstable();
        ticks.get(ticks.len() * 99 / 100).copied().unwrap_or_default()
    }

    fn median(&self, of: impl Fn(&Times) -> f64) -> f64 {
        let mut values: Vec<f64> = self.rounds.iter().map(of).collect();
        values.sort_unstable_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entities = self.sent.entities as f64 / self.players as f64;
        let [receive, step, send] =
            [self.median(|t| t.receive), self.median(|t| t.step), self.median(|t| t.send)];
        write!(
            f,
            "{:<46} {receive:>7.0} {step:>7.0} {send:>8.0} {:>8.0} {entities:>7.1} {:>6.1} {:>8} {:>7.2}",
            self.name,
            receive + step + send,
            send / entities,
            self.made,
            self.slowest().as_secs_f64() * 1e3
        )
    }
}

fn main() -> anyhow::Result<()> {
    let plan = |players, together, things, sleeping| Plan {
        players,
        together,
        things,
        sleeping,
        stride: 1,
        kept: Some(Duration::from_secs(100_000)),
    };
    let plans = [
        ("100 players, 11 in view", plan(100, 1, 10, 0)),
        ("100 players, 66 in view", plan(100, 1, 65, 0)),
        ("100 players, 200 in view", plan(100, 1, 199, 0)),
        ("1000 players, 11 in view", plan(1000, 1, 10, 0)),
        ("1000 players, 30 in view", plan(1000, 1, 29, 0)),
        ("1000 players, 66 in view", plan(1000, 1, 65, 0)),
        ("1000 players, 66 in view, 22 of them players", plan(1000, 22, 44, 0)),
        ("1000 players, 200 in view", plan(1000, 1, 199, 0)),
        ("1000 players, 30 in view, 1e5 asleep", plan(1000, 1, 29, 100_000)),
        ("1000 players, 30 in view, 1e6 asleep", plan(1000, 1, 29, 1_000_000)),
        ("5000 players, 30 in view, 5 of them players", plan(5000, 5, 25, 0)),
    ];
    let argument = |name: &str| {
        let mut arguments = std::env::args().skip_while(move |argument| argument != name);
        arguments.nth(1).and_then(|value| value.parse::<usize>().ok())
    };
    let (only, ticks) = (argument("--case"), argument("--ticks").map_or(TICKS, |n| n as u32));
    let chosen = plans.iter().enumerate().filter(|(n, _)| only.is_none_or(|only| only == *n));
    let mut cases = Vec::new();
    for (_, (name, plan)) in chosen {
        cases.push(Case::open(name, *plan)?);
    }
    for _ in 0..ROUNDS {
        cases.iter_mut().for_each(|case| case.run(ticks));
    }
    print(format_args!(
        "{:<46} {:>7} {:>7} {:>8} {:>8} {:>7} {:>6} {:>8} {:>7}",
        "ns a player and tick",
        "receive",
        "step",
        "send",
        "in all",
        "in view",
        "ns/ent",
        "allocs/t",
        "ms, 99%"
    ));
    cases.iter().for_each(|case| print(format_args!("{case}")));
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the output of the bench")]
fn print(line: fmt::Arguments<'_>) {
    println!("{line}");
}
