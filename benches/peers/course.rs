//! What server, clients and the one who measures know in common during one run of a row.
//!
//! ```text
//! Joining    until everybody is in
//! Playing    ticks and steps; a window of ticks is measured
//! Draining   nobody steps any more, so that what was said can be heard
//! Over       all return
//! ```

use std::net::SocketAddr;
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use caves_benches::ground::Ground;
pub(crate) use caves_benches::ground::{ENTITIES, STATE};

/// Bytes of the message up, as an ActionPacket with a step has.
pub(crate) const STEP: usize = 74;
/// From one tick to the next.
pub(crate) const PERIOD: Duration = Duration::from_millis(100);
/// Joining ends after this, done or not.
const LONGEST_JOIN: Duration = Duration::from_secs(120);

/// How exactly the time between two states is counted.
const GAP_STEP_US: u64 = 5_000;
/// What is longer than all these steps counts as so long.
const GAP_STEPS: usize = 400;

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Joining,
    Playing,
    Draining,
    Over,
}

/// One run of a row.
#[derive(Debug)]
pub(crate) struct Course {
    pub(crate) clients: usize,
    /// What there is to be seen, for rows that have a world.
    pub(crate) ground: Ground,
    start: Instant,
    stage: AtomicU8,
    failed: AtomicBool,
    address: OnceLock<SocketAddr>,
    /// The thread that serves, and the one that is all clients.
    server: AtomicI32,
    players: AtomicI32,
    /// Blocks that it made.
    pub(crate) blocks: &'static AtomicU64,
    pub(crate) joined: AtomicUsize,
    /// Ticks that count: from the one to before the other.
    from: AtomicU32,
    until: AtomicU32,
    /// The newest tick that reached a client, and when, in microseconds since the start.
    pub(crate) newest: AtomicU32,
    pub(crate) newest_at: AtomicU64,
    pub(crate) states: AtomicU64,
    pub(crate) messages: AtomicU64,
    pub(crate) bytes: AtomicU64,
    /// When each client had its newest state, in microseconds since the start.
    heard_at: Box<[AtomicU64]>,
    /// Times from one state to the next at a client, by [`GAP_STEP_US`].
    gaps: [AtomicU64; GAP_STEPS],
    pub(crate) steps_sent: AtomicU64,
    pub(crate) steps_heard: AtomicU64,
}

impl Course {
    /// It stays for good: the threads of a run end when they like, and there are few runs.
    pub(crate) fn new(ground: Ground) -> &'static Self {
        let clients = ground.clients;
        Box::leak(Box::new(Self {
            clients,
            ground,
            start: Instant::now(),
            stage: AtomicU8::new(Stage::Joining as u8),
            failed: AtomicBool::new(false),
            address: OnceLock::new(),
            server: AtomicI32::new(0),
            players: AtomicI32::new(0),
            blocks: Box::leak(Box::default()),
            joined: AtomicUsize::new(0),
            from: AtomicU32::new(u32::MAX),
            until: AtomicU32::new(u32::MAX),
            newest: AtomicU32::new(0),
            newest_at: AtomicU64::new(0),
            states: AtomicU64::new(0),
            messages: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            heard_at: (0..clients).map(|_| AtomicU64::new(0)).collect(),
            gaps: [const { AtomicU64::new(0) }; GAP_STEPS],
            steps_sent: AtomicU64::new(0),
            steps_heard: AtomicU64::new(0),
        }))
    }

    pub(crate) fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Acquire) {
            0 => Stage::Joining,
            1 => Stage::Playing,
            2 => Stage::Draining,
            _ => Stage::Over,
        }
    }

    pub(crate) fn enter(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Release);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.stage() == Stage::Over
    }

    /// Somebody cannot go on: nobody is waited for.
    pub(crate) fn fail(&self) {
        self.failed.store(true, Ordering::Release);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// The calling thread is the server's from now on, and listens there.
    pub(crate) fn serve_at(&self, address: SocketAddr) {
        self.server.store(nix::unistd::gettid().as_raw(), Ordering::Release);
        caves_counting::watch(self.blocks);
        let _ = self.address.set(address);
    }

    /// The calling thread is all clients from now on.
    pub(crate) fn play_here(&self) {
        self.players.store(nix::unistd::gettid().as_raw(), Ordering::Release);
    }

    /// Waits for the server's address.
    pub(crate) fn address(&self) -> Result<SocketAddr> {
        while self.start.elapsed() < LONGEST_JOIN && !self.has_failed() {
            if let Some(address) = self.address.get() {
                return Ok(*address);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        anyhow::bail!("no server")
    }

    /// Waits until everybody is in.
    pub(crate) fn wait_for_all(&self) -> Result<()> {
        let begin = Instant::now();
        loop {
            let joined = self.joined.load(Ordering::Acquire);
            if joined == self.clients {
                return Ok(());
            }
            anyhow::ensure!(!self.has_failed(), "failed while {joined} had joined");
            anyhow::ensure!(begin.elapsed() < LONGEST_JOIN, "{joined} of {} joined", self.clients);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Processor time of the server's thread and of the clients'.
    pub(crate) fn times(&self) -> Result<(ThreadTime, ThreadTime)> {
        Ok((ThreadTime::of(&self.server)?, ThreadTime::of(&self.players)?))
    }

    /// What 99 of 100 times from one state to the next are below, and all.
    pub(crate) fn gaps(&self) -> (Duration, Duration) {
        let counts: Vec<_> = self.gaps.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let all: u64 = counts.iter().sum();
        let below = |share: u64| {
            let mut sum = 0;
            let place = counts.iter().position(|count| {
                sum += count;
                sum * 100 >= all * share
            });
            Duration::from_micros((place.unwrap_or(0) as u64 + 1) * GAP_STEP_US)
        };
        (below(99), below(100))
    }

    /// Microseconds since the start.
    pub(crate) fn now(&self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }

    /// The newest tick that reached a client.
    pub(crate) fn newest(&self) -> u32 {
        self.newest.load(Ordering::Relaxed)
    }

    /// Counts these ticks from now on.
    pub(crate) fn open_window(&self, from: u32, ticks: u32) {
        self.until.store(from.wrapping_add(ticks), Ordering::Release);
        self.from.store(from, Ordering::Release);
    }

    /// A client got a message of this tick.
    pub(crate) fn note(&self, client: usize, tick: u32, bytes: usize) {
        if tick > self.newest() {
            self.newest_at.store(self.now(), Ordering::Relaxed);
            self.newest.store(tick, Ordering::Release);
        }
        if (self.from.load(Ordering::Relaxed)..self.until.load(Ordering::Relaxed)).contains(&tick) {
            if bytes == STATE {
                add(&self.states, 1);
                self.note_gap(client);
            }
            add(&self.messages, 1);
            add(&self.bytes, bytes as u64);
        }
    }

    /// A client got a message of ours, which begins with its tick: that one. What is too short is none.
    pub(crate) fn note_message(&self, client: usize, message: &[u8]) -> Option<u32> {
        let tick = message.first_chunk().filter(|_| message.len() >= STATE)?;
        let tick = u32::from_le_bytes(*tick);
        self.note(client, tick, message.len());
        Some(tick)
    }

    fn note_gap(&self, client: usize) {
        let now = self.now();
        let before = self.heard_at[client].load(Ordering::Relaxed);
        self.heard_at[client].store(now, Ordering::Relaxed);
        if before != 0 {
            let step = ((now - before) / GAP_STEP_US) as usize;
            add(&self.gaps[step.min(GAP_STEPS - 1)], 1);
        }
    }
}

/// One thread is all clients and there is no other writer, so nothing is locked for it.
fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

/// What the kernel says of a thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadTime {
    /// It had a processor for so long.
    pub(crate) busy: Duration,
    /// It could have run, and others did.
    pub(crate) waited: Duration,
}

impl ThreadTime {
    fn of(thread: &AtomicI32) -> Result<Self> {
        let thread = thread.load(Ordering::Acquire);
        let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat"))
            .context("a thread has no schedstat")?;
        let mut fields = text.split_whitespace().map(str::parse::<u64>);
        let mut next = || -> Result<Duration> {
            Ok(Duration::from_nanos(fields.next().context("schedstat is short")??))
        };
        Ok(Self { busy: next()?, waited: next()? })
    }

    /// What came on top since `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            busy: self.busy.saturating_sub(before.busy),
            waited: self.waited.saturating_sub(before.waited),
        }
    }
}

/// The two messages that a client gets in a tick.
#[derive(Debug)]
pub(crate) struct Messages {
    pub(crate) state: [u8; STATE],
    pub(crate) entities: [u8; ENTITIES],
}

impl Messages {
    pub(crate) const fn new() -> Self {
        Self { state: [0; STATE], entities: [0; ENTITIES] }
    }

    /// Writes what marks them as this tick's for this client.
    pub(crate) fn mark(&mut self, tick: u32, client: usize) {
        for message in [&mut self.state[..], &mut self.entities[..]] {
            message[..4].copy_from_slice(&tick.to_le_bytes());
            message[4..8].copy_from_slice(&(client as u32).to_le_bytes());
        }
    }
}

/// What a client sends, marked as that of this round.
pub(crate) fn step(round: u32) -> [u8; STEP] {
    let mut step = [0; STEP];
    step[..4].copy_from_slice(&round.to_le_bytes());
    step
}
