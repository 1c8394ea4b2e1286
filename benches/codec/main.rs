//! The codec beside memcpy and beside others' codecs: `cargo bench -p caves-benches --bench codec`.
//!
//! * without arguments: all tables in interleaved rounds, then the goals;
//! * `-- --check`: the same, and a goal that is missed is the exit status;
//! * `-- --criterion`: the same cases through Criterion, with its statistics instead of ratios.

mod chunks;
mod hash;
mod huffman;
mod peers;
mod six_bits;
mod wanted;

use std::process::ExitCode;
use std::time::Duration;

use caves_benches::goals::Goal;
use caves_benches::measure::{Group, Measured, Mismatch};
use caves_benches::samples::Sample;
use criterion::Criterion;

const ROUNDS: usize = 1001;
/// Long against reading the clock, short against what disturbs a machine.
const SLICE: Duration = Duration::from_micros(80);

fn main() -> anyhow::Result<ExitCode> {
    let has = |flag| std::env::args().any(|argument| argument == flag);
    let groups = groups()?;
    if has("--criterion") {
        criterion(groups);
        return Ok(ExitCode::SUCCESS);
    }
    let measured: Vec<_> = groups.into_iter().map(measure_and_print).collect();
    let goals = wanted::goals(&measured);
    print_goals(&goals);
    let missed = goals.iter().any(Goal::is_missed);
    Ok(if missed && has("--check") { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn groups() -> Result<Vec<Group>, Mismatch> {
    let mut groups = vec![six_bits::pack()?, six_bits::unpack()?, six_bits::look_up()?];
    for sample in &Sample::all() {
        groups.push(chunks::encode(sample)?);
        groups.push(chunks::decode(sample)?);
    }
    groups.push(hash::group()?);
    groups.push(huffman::encode()?);
    groups.push(huffman::decode()?);
    Ok(groups)
}

#[expect(clippy::print_stdout, reason = "the output of the bench")]
fn measure_and_print(group: Group) -> Measured {
    let measured = group.measure(ROUNDS, SLICE);
    println!("{measured}");
    measured
}

#[expect(clippy::print_stdout, reason = "the output of the bench")]
fn print_goals(goals: &[Goal]) {
    println!("goals\n  {:<66} {:<7} {:>6} {:>9}", "", "", "limit", "measured");
    for goal in goals {
        println!("{goal}");
    }
}

fn criterion(groups: Vec<Group>) {
    let mut criterion = Criterion::default()
        .sample_size(50)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(500))
        .without_plots();
    for mut group in groups {
        let mut table = criterion.benchmark_group(group.title());
        for case in group.cases_mut() {
            let name = case.name().to_owned();
            table.bench_function(name, |bencher| bencher.iter_custom(|calls| case.time(calls)));
        }
    }
    criterion.final_summary();
}
