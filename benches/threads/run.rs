//! One run: a server, its clients, a window of ticks, what was measured in it.

use std::net::SocketAddr;
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use caves_benches::measure::median;
use caves_server::Server;

use crate::fleet::{Came, Fleet};
use crate::server;

const PERIOD: Duration = Duration::from_millis(100);
/// Clients begin so long after a tick began ...
const QUIET: Duration = Duration::from_millis(42);
/// ... and have to be done this long after it, or they are in the way of the next.
const LATEST: Duration = Duration::from_millis(95);
/// Ticks after the last client has joined that are not measured.
const WARM_UP: u32 = 20;
/// A state and full entities, as a view of 1200 bytes has; the last group of players may see less.
const BYTES: f64 = 1272.0;
const ENOUGH: f64 = 0.995;

/// The names of threads.
const SERVER: &str = "server";
const COURIER: &str = "courier";
const CLIENTS: &str = "clients";

/// What one run gave.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    /// From a tick's beginning until the kernel has its last datagram: the median, since other programs hold up some.
    pub(crate) tick_ms: f64,
    /// Processor time of all threads of the server, and of two of them, per client and tick.
    pub(crate) all_us: f64,
    pub(crate) loop_us: f64,
    pub(crate) courier_us: f64,
    /// The share of the time that its threads could have run and others did.
    pub(crate) waited_percent: f64,
    /// Ticks that were not, or came late, and states that did not arrive.
    pub(crate) missed: u64,
}

pub(crate) fn run(clients: usize, threads: usize, ticks: u32) -> Result<Outcome> {
    let folder = tempfile::tempdir()?;
    let config = server::config(clients, threads, folder.path().join("caves.redb"))?;
    let server = Server::bind(&config)?;
    let (addr, metrics) = (server.local_addrs().first().copied(), server.metrics_addr());
    let (addr, metrics) = addr.zip(metrics).context("it listens nowhere")?;
    let stop = server.handle();
    let serving = Builder::new().name(SERVER.to_owned()).spawn(|| server.run())?;
    let playing = Builder::new()
        .name(CLIENTS.to_owned())
        .spawn(move || play(clients, ticks, addr, metrics))?;
    let outcome = playing.join().unwrap_or_else(|_| Err(anyhow!("the clients panicked")));
    stop.stop();
    let summary = serving.join().map_err(|_| anyhow!("the server panicked"))??;
    ensure!(summary.unsent == 0, "{} datagrams were not sent", summary.unsent);
    outcome
}

fn play(clients: usize, ticks: u32, addr: SocketAddr, metrics: SocketAddr) -> Result<Outcome> {
    let mut fleet = Fleet::new(clients, addr)?;
    fleet.join()?;
    let (mut late, mut round) = (0, 0);
    let mut play_one = |fleet: &mut Fleet| -> Result<()> {
        fleet.wait_for_tick()?;
        let began = Instant::now();
        sleep(QUIET);
        fleet.play(round)?;
        round += 1;
        late += u64::from(round > WARM_UP && began.elapsed() > LATEST);
        Ok(())
    };
    for _ in 0..WARM_UP {
        play_one(&mut fleet)?;
    }
    let before = Moment::of(&fleet, metrics)?;
    let (mut took, mut sum_s) = (Vec::new(), before.ticks.1);
    for _ in 0..ticks {
        play_one(&mut fleet)?;
        let sum_before = std::mem::replace(&mut sum_s, server::ticks(metrics)?.1);
        took.push((sum_s - sum_before) * 1e3);
    }
    let after = Moment::of(&fleet, metrics)?;
    Ok(Outcome { tick_ms: median(took), ..after.since(&before, clients as u64, ticks, late) })
}

/// Everything that is counted, up to a moment between two ticks.
struct Moment {
    ticks: (u64, f64),
    came: Came,
    threads: Threads,
}

impl Moment {
    fn of(fleet: &Fleet, metrics: SocketAddr) -> Result<Self> {
        // Answers to the last steps are given.
        sleep(Duration::from_millis(4));
        Ok(Self { threads: Threads::now()?, ticks: server::ticks(metrics)?, came: fleet.came })
    }

    fn since(&self, before: &Self, clients: u64, ticks: u32, late: u64) -> Outcome {
        let all = clients * u64::from(ticks);
        let count = self.ticks.0 - before.ticks.0;
        let bytes = (self.came.bytes - before.came.bytes) as f64;
        let missed = count.abs_diff(ticks.into())
            + all.saturating_sub(self.came.states - before.came.states)
            + u64::from(bytes < ENOUGH * BYTES * all as f64);
        let each = |after: Duration, before: Duration| {
            after.saturating_sub(before).as_secs_f64() * 1e6 / all as f64
        };
        let (threads, then) = (&self.threads, &before.threads);
        let waited = threads.waited.saturating_sub(then.waited).as_secs_f64();
        Outcome {
            tick_ms: (self.ticks.1 - before.ticks.1) * 1e3 / count as f64,
            all_us: each(threads.all, then.all),
            loop_us: each(threads.server, then.server),
            courier_us: each(threads.courier, then.courier),
            waited_percent: waited * 100.0 / (PERIOD * ticks).as_secs_f64(),
            missed: missed + late,
        }
    }
}

/// What the kernel says of the server's threads.
#[derive(Debug, Default)]
struct Threads {
    /// Processor time.
    all: Duration,
    server: Duration,
    courier: Duration,
    /// They could have run, and others did.
    waited: Duration,
}

impl Threads {
    fn now() -> Result<Self> {
        let mut threads = Self::default();
        for task in std::fs::read_dir("/proc/self/task")? {
            let path = task?.path();
            let name = std::fs::read_to_string(path.join("comm"))?;
            // The first thread of a process has its number, and only waits here.
            let is_first =
                path.file_name().is_some_and(|id| id == &*std::process::id().to_string());
            if name.trim() == CLIENTS || is_first {
                continue;
            }
            let text = std::fs::read_to_string(path.join("schedstat"))?;
            let mut fields = text.split_whitespace().map(str::parse::<u64>);
            let mut next = || -> Result<Duration> {
                Ok(Duration::from_nanos(fields.next().context("schedstat is short")??))
            };
            let (busy, waited) = (next()?, next()?);
            threads.all += busy;
            threads.waited += waited;
            match name.trim() {
                SERVER => threads.server = busy,
                COURIER => threads.courier = busy,
                _ => {}
            }
        }
        Ok(threads)
    }
}
