//! One run of a row: the threads, the window, what was counted in it.

use std::sync::atomic::Ordering;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

use crate::args::Plan;
use crate::course::{Course, ENTITIES, PERIOD, STATE, Stage};
use crate::outcome::Outcome;
use crate::rows::Row;

/// A window begins and ends this long after a tick began to arrive: late in the period, when a server is idle.
const QUIET: Duration = Duration::from_millis(85);
/// What is still on its way after the window has this long.
const LONGEST_ARRIVAL: Duration = Duration::from_secs(2);
/// The last steps are executed and told of within this.
const DRAIN: Duration = Duration::from_millis(400);
/// A step of waiting.
const NAP: Duration = Duration::from_millis(1);

/// Runs a row once.
pub(crate) fn run(row: Row, clients: usize, plan: &Plan) -> Result<Outcome> {
    if let Some(reason) = row.refuses(clients) {
        anyhow::bail!(reason);
    }
    let course = Course::new(clients);
    let begin = |what: fn(Row, &'static Course) -> Result<()>| {
        thread::spawn(move || what(row, course).inspect_err(|_| course.fail()))
    };
    let server = begin(Row::serve);
    let players = begin(Row::play);
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
    let (busy, waited) = course.server_time()?;
    // Exactly so many periods later the server is as far in its period as now: there were so many ticks.
    sleep(PERIOD * plan.ticks);
    let (busy_then, waited_then) = course.server_time()?;
    let blocks = course.blocks.load(Ordering::Relaxed) - blocks;
    let time = begin.elapsed();
    let client_ticks = course.clients as u64 * u64::from(plan.ticks);
    wait_for_arrival(course, client_ticks)?;
    course.enter(Stage::Draining);
    sleep(DRAIN);
    Ok(Outcome {
        client_ticks,
        time,
        busy: busy_then.saturating_sub(busy),
        waited: waited_then.saturating_sub(waited),
        blocks,
        states: course.states.load(Ordering::Relaxed),
        messages: course.messages.load(Ordering::Relaxed),
        bytes: course.bytes.load(Ordering::Relaxed),
        steps_sent: course.steps_sent.load(Ordering::Relaxed),
        steps_heard: 0,
    })
}

/// Waits for the next tick to arrive, and then until it must be over. Gives its number.
fn wait_for_quiet(course: &Course) -> Result<u32> {
    let (begin, before) = (Instant::now(), course.newest.load(Ordering::Acquire));
    loop {
        let newest = course.newest.load(Ordering::Acquire);
        if newest != before {
            let since = course.now() - course.newest_at.load(Ordering::Relaxed);
            sleep(QUIET.saturating_sub(Duration::from_micros(since)));
            return Ok(newest);
        }
        anyhow::ensure!(begin.elapsed() < LONGEST_ARRIVAL, "no tick arrives");
        anyhow::ensure!(!course.has_failed(), "failed while it played");
        sleep(NAP);
    }
}

fn wait_for_arrival(course: &Course, client_ticks: u64) -> Result<()> {
    let (begin, due) = (Instant::now(), client_ticks * (STATE + ENTITIES) as u64);
    while course.bytes.load(Ordering::Relaxed) < due && begin.elapsed() < LONGEST_ARRIVAL {
        anyhow::ensure!(!course.has_failed(), "failed while it played");
        sleep(NAP);
    }
    Ok(())
}
