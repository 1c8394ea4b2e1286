//! One run of a row: the threads, the window, what was counted in it.

use std::sync::atomic::Ordering;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use caves_benches::ground::Ground;

use crate::args::Plan;
use crate::course::{Course, PERIOD, Stage};
use crate::outcome::Outcome;
use crate::rows::Row;

/// A window begins and ends this long after a tick began to arrive: late in the period, when a server is idle.
const QUIET: Duration = Duration::from_millis(85);
/// Looking for such a moment ends after this.
const LONGEST_QUIET: Duration = Duration::from_secs(5);
/// What is still on its way after the window has this long.
const LONGEST_ARRIVAL: Duration = Duration::from_secs(2);
/// The last steps are executed and told of within this.
const DRAIN: Duration = Duration::from_millis(400);
/// A step of waiting.
const NAP: Duration = Duration::from_millis(1);

/// Runs a row once.
pub(crate) fn run(row: Row, ground: Ground, plan: &Plan) -> Result<Outcome> {
    if let Some(reason) = row.refuses(ground.clients) {
        anyhow::bail!(reason);
    }
    let course = Course::new(ground);
    // The names are for profilers.
    let begin = |name: &str, what: fn(Row, &'static Course) -> Result<()>| {
        let body = move || what(row, course).inspect_err(|_| course.fail());
        thread::Builder::new().name(name.to_owned()).spawn(body)
    };
    let server = begin("server", Row::serve)?;
    let players = begin("clients", |row, course| {
        course.play_here();
        row.play(course)
    })?;
    let measured = measure(course, plan);
    course.enter(Stage::Over);
    let ended = |thread: thread::JoinHandle<Result<()>>| {
        thread.join().unwrap_or_else(|_| Err(anyhow!("panicked")))
    };
    let (server, players) = (ended(server), ended(players));
    // Why a thread failed says more than that it did.
    server.context("server")?;
    players.context("clients")?;
    let mut outcome = measured?;
    // A server may know at its end alone.
    outcome.steps_heard = course.steps_heard.load(Ordering::Relaxed);
    Ok(outcome)
}

fn measure(course: &Course, plan: &Plan) -> Result<Outcome> {
    course.wait_for_all()?;
    course.enter(Stage::Playing);
    sleep(plan.warm_up);
    let tick = wait_for_quiet(course)?;
    course.open_window(tick.wrapping_add(1), plan.ticks);
    let (begin, blocks) = (Instant::now(), course.blocks.load(Ordering::Relaxed));
    let (server, players) = course.times()?;
    // Exactly so many periods later the server is as far in its period as now: there were so many ticks.
    sleep(PERIOD * plan.ticks);
    let (server_then, players_then) = course.times()?;
    let blocks = course.blocks.load(Ordering::Relaxed) - blocks;
    let time = begin.elapsed();
    let client_ticks = course.clients as u64 * u64::from(plan.ticks);
    wait_for_arrival(course, client_ticks)?;
    course.enter(Stage::Draining);
    sleep(DRAIN);
    Ok(Outcome {
        client_ticks,
        due: course.ground.due(),
        time,
        server: server_then.since(server),
        players: players_then.since(players).busy,
        blocks,
        states: course.states.load(Ordering::Relaxed),
        messages: course.messages.load(Ordering::Relaxed),
        bytes: course.bytes.load(Ordering::Relaxed),
        gaps: course.gaps(),
        steps_sent: course.steps_sent.load(Ordering::Relaxed),
        steps_heard: 0,
    })
}

/// Waits for the next tick to arrive, and then until it must be over. Gives its number: of the one after it,
/// nothing has arrived.
fn wait_for_quiet(course: &Course) -> Result<u32> {
    let (begin, mut before) = (Instant::now(), course.newest.load(Ordering::Acquire));
    while begin.elapsed() < LONGEST_QUIET {
        let newest = course.newest.load(Ordering::Acquire);
        if newest != before {
            let since = course.now().saturating_sub(course.newest_at.load(Ordering::Relaxed));
            sleep(QUIET.saturating_sub(Duration::from_micros(since)));
            // On a busy machine the next one may be there already.
            before = course.newest.load(Ordering::Acquire);
            if newest == before {
                return Ok(newest);
            }
        }
        anyhow::ensure!(!course.has_failed(), "failed while it played");
        sleep(NAP);
    }
    anyhow::bail!("the ticks do not come evenly enough to be counted")
}

fn wait_for_arrival(course: &Course, client_ticks: u64) -> Result<()> {
    let (begin, due) = (Instant::now(), client_ticks * course.ground.due().1);
    while course.bytes.load(Ordering::Relaxed) < due && begin.elapsed() < LONGEST_ARRIVAL {
        anyhow::ensure!(!course.has_failed(), "failed while it played");
        sleep(NAP);
    }
    Ok(())
}
