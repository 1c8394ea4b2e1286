//! One run: a server, its clients, a window of ticks, what was measured in it.

use std::net::SocketAddr;
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use caves_benches::measure::median;
use caves_server::Server;

use crate::fleet::Fleet;
use crate::server;

const PERIOD: Duration = Duration::from_millis(100);
/// Clients begin so long after a tick began ...
const QUIET: Duration = Duration::from_millis(42);
/// ... and have to be done this long after it, or they are in the way of the next.
const LATEST: Duration = Duration::from_millis(95);
/// Ticks after the last client has joined that are not measured.
const WARM_UP: u32 = 20;
/// Ticks in a window.
const WINDOW: u32 = 10;
/// The last steps are read, and what is answered at once is, within this.
const ANSWERS: Duration = Duration::from_millis(4);
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
    /// From a tick's beginning until the kernel has its last datagram.
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

pub(crate) fn run(clients: usize, threads: usize, windows: u32) -> Result<Outcome> {
    let folder = tempfile::tempdir()?;
    let config = server::config(clients, threads, folder.path().join("caves.redb"))?;
    let server = Server::bind(&config)?;
    let (addr, metrics) = (server.local_addrs().first().copied(), server.metrics_addr());
    let (addr, metrics) = addr.zip(metrics).context("it listens nowhere")?;
    let stop = server.handle();
    let serving = Builder::new().name(SERVER.to_owned()).spawn(|| server.run())?;
    let playing = Builder::new()
        .name(CLIENTS.to_owned())
        .spawn(move || play(clients, windows, addr, metrics))?;
    let outcome = playing.join().unwrap_or_else(|_| Err(anyhow!("the clients panicked")));
    stop.stop();
    let summary = serving.join().map_err(|_| anyhow!("the server panicked"))??;
    ensure!(summary.unsent == 0, "{} datagrams were not sent", summary.unsent);
    outcome
}

fn play(clients: usize, windows: u32, addr: SocketAddr, metrics: SocketAddr) -> Result<Outcome> {
    let mut players = Players { fleet: Fleet::new(clients, addr)?, round: 0, late: 0 };
    players.fleet.join()?;
    players.play(WARM_UP)?;
    let measured = (0..windows).map(|_| players.window(metrics)).collect::<Result<Vec<_>>>()?;
    Ok(Outcome::of(&measured))
}

struct Players {
    fleet: Fleet,
    round: u32,
    /// Times that they were not done when the next tick was due.
    late: u64,
}

impl Players {
    fn play(&mut self, ticks: u32) -> Result<()> {
        for _ in 0..ticks {
            self.fleet.wait_for_tick()?;
            let began = Instant::now();
            sleep(QUIET);
            self.fleet.play(self.round)?;
            self.round += 1;
            self.late += u64::from(began.elapsed() > LATEST);
        }
        Ok(())
    }

    /// To tell its figures can take the server longer than a tick: they are asked for before and after a window,
    /// when nothing is being sent, and the tick after that may come late and is not measured.
    fn window(&mut self, metrics: SocketAddr) -> Result<Outcome> {
        self.play(1)?;
        let ticks_before = server::ticks(metrics)?;
        self.play(1)?;
        self.late = 0;
        sleep(ANSWERS);
        let (came, before) = (self.fleet.came, Threads::now()?);
        self.play(WINDOW)?;
        sleep(ANSWERS);
        let (after, ticks) = (Threads::now()?, server::ticks(metrics)?);
        // One more than the threads' times are of.
        let (count, took) = (ticks.0 - ticks_before.0, ticks.1 - ticks_before.1);
        let all = self.fleet.clients() as u64 * u64::from(WINDOW);
        let bytes = (self.fleet.came.bytes - came.bytes) as f64;
        let each = |after: Duration, before: Duration| {
            after.saturating_sub(before).as_secs_f64() * 1e6 / all as f64
        };
        let waited = after.waited.saturating_sub(before.waited).as_secs_f64();
        Ok(Outcome {
            tick_ms: took * 1e3 / count as f64,
            all_us: each(after.all, before.all),
            loop_us: each(after.server, before.server),
            courier_us: each(after.courier, before.courier),
            waited_percent: waited * 100.0 / (PERIOD * WINDOW).as_secs_f64(),
            missed: count.abs_diff(u64::from(WINDOW) + 1)
                + all.saturating_sub(self.fleet.came.states - came.states)
                + u64::from(bytes < ENOUGH * BYTES * all as f64)
                + self.late,
        })
    }
}

impl Outcome {
    /// Medians, since other programs hold up some windows; but nothing is missed in any.
    fn of(windows: &[Self]) -> Self {
        let of = |what: fn(&Self) -> f64| median(windows.iter().map(what).collect());
        Self {
            tick_ms: of(|window| window.tick_ms),
            all_us: of(|window| window.all_us),
            loop_us: of(|window| window.loop_us),
            courier_us: of(|window| window.courier_us),
            waited_percent: of(|window| window.waited_percent),
            missed: windows.iter().map(|window| window.missed).sum(),
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
