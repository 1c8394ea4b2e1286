//! A storm over sessions: many runs, each with a network and a script of play drawn from its seed,
//! and after each event everything is checked that must always hold.
//!
//!     cargo run --release -p caves-game --example storm -- --runs 100000 --seed 1
//!     cargo run --release -p caves-game --example storm -- --seed 77 --trace
//!
//! A failure prints its seed and the shortest script that still fails. `notes/storm.md` lists what is
//! checked.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program talks")]
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "it has a clock to tell")]

#[path = "../../tests/common/mod.rs"]
mod common;
mod run;
mod scenario;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use caves_session::fault::Fault;
use run::{Stats, name, run, shrink, traced};
use scenario::Scenario;

/// Failures that are made short and printed; there are hardly ever more than one kind.
const SHOWN: usize = 3;

const USAGE: &str = "\
usage: storm [--runs N] [--seed N] [--threads N] [--trace] [--fault NAME]
  --runs N      how many runs, of this seed and those after it (1000)
  --seed N      the first seed (1)
  --threads N   how many at once (2)
  --trace       one run, as a ladder of datagrams
  --fault NAME  with a deliberate fault, one of:";

struct Args {
    runs: u64,
    seed: u64,
    threads: usize,
    trace: bool,
    fault: Option<Fault>,
}

fn main() -> ExitCode {
    let args = match parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(error) => {
            eprintln!("storm: {error}\n{USAGE} {:?}", Fault::ALL);
            return ExitCode::from(2);
        }
    };
    if args.trace { trace(&args) } else { storm(&args) }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Args, String> {
    let mut args = Args { runs: 1000, seed: 1, threads: 2, trace: false, fault: None };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|e| format!("{text}: {e}"));
        match word.as_str() {
            "--runs" => args.runs = number(value()?)?,
            "--seed" => args.seed = number(value()?)?,
            "--threads" => args.threads = number(value()?)?.clamp(1, 64) as usize,
            "--trace" => args.trace = true,
            "--fault" => {
                let wanted = value()?;
                let fault = Fault::ALL.into_iter().find(|fault| format!("{fault:?}") == wanted);
                args.fault = Some(fault.ok_or_else(|| format!("no fault {wanted}"))?);
            }
            _ => return Err(format!("what is {word:?}?")),
        }
    }
    Ok(args)
}

fn trace(args: &Args) -> ExitCode {
    let scenario = Scenario::draw(args.seed);
    let (result, ladder) = traced(&scenario, args.fault, true);
    println!("{scenario}");
    ladder.iter().for_each(|line| println!("{line}"));
    match result {
        Ok(stats) => {
            println!("\nnothing is broken: {stats:?}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            println!("\n{failure}");
            ExitCode::FAILURE
        }
    }
}

fn storm(args: &Args) -> ExitCode {
    let start = Instant::now();
    let next = AtomicU64::new(args.seed);
    let end = args.seed.saturating_add(args.runs);
    let all = Mutex::new((Stats::default(), Vec::new()));
    let work = || loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end {
            return;
        }
        let result = run(&Scenario::draw(seed), args.fault);
        let mut all = all.lock().expect("no thread panics with it");
        match result {
            Ok(stats) => all.0 += stats,
            Err(failure) => {
                all.0.runs += 1;
                all.1.push((seed, failure));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..args.threads {
            scope.spawn(work);
        }
        let mut told = start;
        while std::io::stderr().is_terminal() && next.load(Ordering::Relaxed) < end {
            std::thread::sleep(Duration::from_millis(200));
            if told.elapsed() >= Duration::from_secs(1) {
                told = Instant::now();
                let done = next.load(Ordering::Relaxed).min(end) - args.seed;
                eprint!("\r{done} of {} runs, {:.0?}", args.runs, start.elapsed());
            }
        }
    });
    let (stats, mut failures) = all.into_inner().expect("no thread panics with it");
    failures.sort_by_key(|(seed, _)| *seed);
    report(&stats, start.elapsed());
    for (seed, failure) in failures.iter().take(SHOWN) {
        let short = shrink(&Scenario::draw(*seed), args.fault, name(failure));
        println!(
            "\nseed {seed}: {failure}\nthe shortest script that still breaks [{}]:",
            name(failure)
        );
        print!("{short}");
        println!("its ladder: --seed {seed} --trace");
    }
    for (seed, failure) in failures.iter().skip(SHOWN) {
        println!("seed {seed}: {failure}");
    }
    println!("\n{} runs, {} broken", stats.runs, failures.len());
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn report(stats: &Stats, took: Duration) {
    let Stats { runs, events, simulated_millis, sent, lost, repeated, reordered, damaged, .. } =
        stats;
    let Stats { actions, bits, views, chunks, texts, .. } = stats;
    println!("{runs} runs in {took:.1?}: {} hours of play", simulated_millis / 3_600_000);
    println!("{events} events, and after each of them everything was checked; compared were");
    println!(
        "{views} views, {bits} times what was executed, {actions} actions, {chunks} chunks, {texts} texts"
    );
    println!(
        "{sent} datagrams: {lost} lost, {repeated} repeated, {reordered} passed, {damaged} damaged"
    );
}
