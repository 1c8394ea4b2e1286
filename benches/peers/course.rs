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
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// Bytes of the smaller message down, as a StatePacket has.
pub(crate) const STATE: usize = 72;
/// Bytes of the larger message down: an EntityPacket of 66 bare entities.
pub(crate) const ENTITIES: usize = 1200;
/// Bytes of the message up, as an ActionPacket with a step has.
pub(crate) const STEP: usize = 74;
/// From one tick to the next.
pub(crate) const PERIOD: Duration = Duration::from_millis(100);
/// Joining ends after this, done or not.
const LONGEST_JOIN: Duration = Duration::from_secs(60);

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
    start: Instant,
    stage: AtomicU8,
    failed: AtomicBool,
    address: OnceLock<SocketAddr>,
    /// The thread that serves.
    server: AtomicI32,
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
    pub(crate) steps_sent: AtomicU64,
    pub(crate) steps_heard: AtomicU64,
}

impl Course {
    /// It stays for good: the threads of a run end when they like, and there are few runs.
    pub(crate) fn new(clients: usize) -> &'static Self {
        Box::leak(Box::new(Self {
            clients,
            start: Instant::now(),
            stage: AtomicU8::new(Stage::Joining as u8),
            failed: AtomicBool::new(false),
            address: OnceLock::new(),
            server: AtomicI32::new(0),
            blocks: Box::leak(Box::default()),
            joined: AtomicUsize::new(0),
            from: AtomicU32::new(u32::MAX),
            until: AtomicU32::new(u32::MAX),
            newest: AtomicU32::new(0),
            newest_at: AtomicU64::new(0),
            states: AtomicU64::new(0),
            messages: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
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

    /// Processor time of the server's thread, and how long it waited for a processor.
    pub(crate) fn server_time(&self) -> Result<(Duration, Duration)> {
        let thread = self.server.load(Ordering::Acquire);
        let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat"))
            .context("the server's thread has no schedstat")?;
        let mut fields = text.split_whitespace().map(str::parse::<u64>);
        let mut next = || fields.next().context("schedstat is short")?.context("no number");
        Ok((Duration::from_nanos(next()?), Duration::from_nanos(next()?)))
    }

    /// Microseconds since the start.
    pub(crate) fn now(&self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }

    /// Counts these ticks from now on.
    pub(crate) fn open_window(&self, from: u32, ticks: u32) {
        self.until.store(from.wrapping_add(ticks), Ordering::Release);
        self.from.store(from, Ordering::Release);
    }

    /// A client got a message of this tick.
    pub(crate) fn note(&self, tick: u32, bytes: usize) {
        // One thread is all clients, so there is no other writer.
        if tick > self.newest.load(Ordering::Relaxed) {
            self.newest_at.store(self.now(), Ordering::Relaxed);
            self.newest.store(tick, Ordering::Release);
        }
        if (self.from.load(Ordering::Relaxed)..self.until.load(Ordering::Relaxed)).contains(&tick) {
            self.states.fetch_add(u64::from(bytes == STATE), Ordering::Relaxed);
            self.messages.fetch_add(1, Ordering::Relaxed);
            self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// A client got a message of ours, which begins with its tick; what is too short is none.
    pub(crate) fn note_message(&self, message: &[u8]) {
        if let Some(tick) = message.first_chunk().filter(|_| message.len() >= STATE) {
            self.note(u32::from_le_bytes(*tick), message.len());
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
