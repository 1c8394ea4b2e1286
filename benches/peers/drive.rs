//! The two loops that most rows share: a server's and that of all clients.

use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::course::{Course, PERIOD, Stage};

/// Between two looks at everybody while they join.
const JOINING: Duration = Duration::from_millis(4);
/// Each client is looked after so often in a period; with more clients than these, less often: their thread has less
/// time for each.
const VISITS: usize = 4;
const MANY: (usize, usize) = (2_000, 2);
const VERY_MANY: (usize, usize) = (4_000, 1);
/// The clients' thread wakes so often, and not more.
const NAP: Duration = Duration::from_micros(500);

/// A server, as its loop sees it.
pub(crate) trait Serve {
    /// Times that it reads in a period, the tick included: as seldom as its socket's buffer allows, which is
    /// the cheapest way.
    fn reads(&self) -> u32 {
        1
    }

    /// Reads what came, and answers those who want to join; how many steps it heard.
    fn receive(&mut self) -> Result<u64>;

    /// Sends this tick to everybody.
    fn tick(&mut self, tick: u32) -> Result<()>;

    /// Waits for the next moment to read, or for a datagram if it is one that does.
    fn wait(&mut self, until: Instant) -> Result<()> {
        sleep(until.saturating_duration_since(Instant::now()));
        Ok(())
    }
}

/// Serves until the course is over.
pub(crate) fn serve(course: &Course, server: &mut impl Serve) -> Result<()> {
    while course.stage() == Stage::Joining {
        server.receive()?;
        sleep(JOINING);
    }
    let (mut due, mut tick, reads) = (Instant::now(), 0, server.reads());
    while !course.is_over() {
        for _ in 0..reads {
            due += PERIOD / reads;
            loop {
                server.wait(due)?;
                course.steps_heard.fetch_add(server.receive()?, Ordering::Relaxed);
                if Instant::now() >= due {
                    break;
                }
            }
        }
        tick += 1;
        server.tick(tick)?;
    }
    Ok(())
}

/// All clients, as their loop sees them.
pub(crate) trait Fleet {
    /// Whether this one has joined.
    fn is_in(&self, client: usize) -> bool;

    /// Reads what came, lets timers run; tries to join.
    fn turn(&mut self, course: &Course, client: usize) -> Result<()>;

    /// Sends a step.
    fn step(&mut self, course: &Course, client: usize, round: u32) -> Result<()>;
}

/// Is all clients until the course is over: looks after them one after the other, evenly spread over a period, and so
/// are their steps.
pub(crate) fn play(course: &Course, fleet: &mut impl Fleet) -> Result<()> {
    let (begin, clients, visits) = (Instant::now(), course.clients, visits(course.clients));
    let (mut wake, mut done, mut joined) = (begin, 0, 0);
    // The round in which all begin to step: everybody's first step is its step 0.
    let mut first = None;
    while !course.is_over() {
        let due = begin.elapsed().as_micros() * (clients * visits) as u128 / PERIOD.as_micros();
        for visit in done..due as usize {
            let (client, round) = (visit % clients, visit / clients);
            fleet.turn(course, client)?;
            match course.stage() {
                Stage::Joining => {
                    joined += usize::from(fleet.is_in(client));
                    if client + 1 == clients {
                        course.joined.store(std::mem::take(&mut joined), Ordering::Release);
                    }
                }
                Stage::Playing => {
                    let first = *first.get_or_insert(round + 1);
                    if round >= first && (round - first) % visits == client % visits {
                        fleet.step(course, client, ((round - first) / visits) as u32)?;
                        course.steps_sent.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Stage::Draining | Stage::Over => {}
            }
        }
        done = due as usize;
        // A thread that has no time to sleep does not make up for it.
        wake = (wake + NAP).max(Instant::now());
        sleep(wake.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

/// Times that a client is looked after in a tick's period; in one of them it sends.
const fn visits(clients: usize) -> usize {
    match clients {
        _ if clients > VERY_MANY.0 => VERY_MANY.1,
        _ if clients > MANY.0 => MANY.1,
        _ => VISITS,
    }
}
