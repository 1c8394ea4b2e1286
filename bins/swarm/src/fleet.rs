//! A thread: its share of the clients, one loop around all of their sockets.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use caves_link::time::Instant;
use caves_session::SplitMix;
use caves_wire::MAX_DATAGRAM;
use mio::{Events, Interest, Poll, Token};

use crate::alarms::Alarms;
use crate::args::Plan;
use crate::busy::{Busy, Meter};
use crate::check::Chunks;
use crate::kernel;
use crate::mail::Mail;
use crate::member::{Clock, Common, Member};
use crate::tally::{Steady, Tally};

/// The loop looks around this often even if nothing is due: somebody may have pressed Ctrl-C.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);
/// No client is called again sooner than that.
const SHORTEST_SLEEP: Duration = Duration::from_millis(1);
/// A thread with so many clients or more looks for datagrams once in [`REST`]: the wake-ups between would cost it, and
/// the server that causes them, as much as reading.
const MANY: usize = 250;
const REST: Duration = Duration::from_millis(1);
/// Between two goodbyes, so that the server's socket has room for them.
const GOODBYE_GAP: Duration = Duration::from_micros(200);
/// All goodbyes are said this long after the last one began, or not at all.
const LONGEST_GOODBYE: Duration = Duration::from_secs(1);
/// Events taken from the kernel at once.
const EVENTS: usize = 1024;

/// What a thread tells while it runs, for the line on the terminal.
#[derive(Debug, Default)]
pub(crate) struct Live {
    /// Clients with a session.
    pub(crate) playing: AtomicU64,
    pub(crate) ticks: AtomicU64,
    pub(crate) failures: AtomicU64,
    /// Of a core, in the last second.
    pub(crate) busy_per_mille: AtomicU64,
}

/// What a thread has found out.
pub(crate) struct Findings {
    pub(crate) tally: Tally,
    pub(crate) chunks: Chunks,
    pub(crate) busy: Busy,
}

/// The clients of one thread: those whose number is `thread` modulo the threads.
pub(crate) struct Fleet<'p> {
    plan: &'p Plan,
    thread: u32,
    common: Common,
    poll: Poll,
    members: Vec<Member>,
    alarms: Alarms,
    /// Whose reading stopped before all was read: the kernel does not tell of it again.
    unread: Vec<usize>,
    /// The next client to begin.
    next: u32,
    /// How it stood when the last one had begun.
    begun: Option<Steady>,
    phase: Phase,
    /// When it looked for datagrams last.
    looked: Instant,
    meter: Meter,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Playing,
    Leaving { until: Instant },
}

impl<'p> Fleet<'p> {
    /// # Errors
    /// There is nothing to wait with for datagrams.
    pub(crate) fn new(plan: &'p Plan, thread: u32, clock: Clock) -> io::Result<Self> {
        let common = Common {
            clock,
            tally: Tally { overrun: Some(0), ..Tally::default() },
            chunks: Chunks::default(),
            loss: plan.loss,
            random: SplitMix::new(RandomState::new().hash_one(thread)),
            mail: Mail::new(),
            buf: [0; MAX_DATAGRAM],
        };
        Ok(Self {
            plan,
            thread,
            common,
            poll: Poll::new()?,
            members: Vec::new(),
            alarms: Alarms::default(),
            unread: Vec::new(),
            next: thread,
            begun: None,
            phase: Phase::Playing,
            looked: Instant::ZERO,
            meter: Meter::start(),
        })
    }

    /// Plays until the end of the plan, or until it is asked to stop.
    ///
    /// # Errors
    /// Waiting for datagrams failed.
    pub(crate) fn run(mut self, live: &Live, stop: &AtomicBool) -> io::Result<Findings> {
        let mut events = Events::with_capacity(EVENTS);
        loop {
            let now = self.common.clock.now();
            self.begin(now);
            while let Some(who) = self.alarms.pop_due(now) {
                self.turn(who);
            }
            for who in std::mem::take(&mut self.unread) {
                self.receive(who);
            }
            self.publish(live);
            if self.is_over(now, stop) {
                return Ok(self.finish());
            }
            self.sleep(&mut events)?;
            for event in &events {
                self.receive(event.token().0);
            }
        }
    }

    /// Clients whose time has come begin to join.
    fn begin(&mut self, now: Instant) {
        while self.phase == Phase::Playing
            && let Some(at) = self.begins_at()
            && at <= now
        {
            let from = self.plan.source(self.next);
            let (server, walk) = (self.plan.server, self.plan.walk);
            self.next += self.plan.threads;
            let member =
                Member::new(from, server, walk, &mut self.common).and_then(|mut member| {
                    let token = Token(self.members.len());
                    self.poll.registry().register(&mut member.socket, token, Interest::READABLE)?;
                    Ok(member)
                });
            match member {
                Ok(member) => {
                    self.members.push(member);
                    self.turn(self.members.len() - 1);
                }
                Err(error) => self.common.tally.left_out(&format!("no socket: {error}")),
            }
        }
        if self.begun.is_none() && self.begins_at().is_none() {
            self.begun = Some(self.mark(now));
        }
    }

    fn mark(&self, now: Instant) -> Steady {
        self.common.tally.mark(now.as_micros() as f64 * 1e-6)
    }

    fn begins_at(&self) -> Option<Instant> {
        let left = self.next < self.plan.clients;
        left.then(|| Instant::ZERO + self.plan.begins_after(self.next))
    }

    fn receive(&mut self, who: usize) {
        let member = &mut self.members[who];
        if member.receive(&mut self.common) {
            self.unread.push(who);
        }
        // Most of what comes is nothing to answer.
        let (now, due) = (self.common.clock.now(), member.deadline());
        if due.is_some_and(|due| due <= now) {
            self.turn(who);
        } else if let Some(due) = due {
            self.alarms.set(who, due);
        }
    }

    fn turn(&mut self, who: usize) {
        let member = &mut self.members[who];
        member.turn(&mut self.common);
        if let Some(again) = member.deadline() {
            let soonest = self.common.clock.now() + SHORTEST_SLEEP;
            self.alarms.set(who, again.max(soonest));
        }
    }

    /// Sees to the end of the plan; `true` when all is done.
    fn is_over(&mut self, now: Instant, stop: &AtomicBool) -> bool {
        match self.phase {
            Phase::Playing => {
                let end = Instant::ZERO + self.plan.ends_after();
                if now >= end || stop.load(Ordering::Relaxed) {
                    self.conclude(now);
                }
                false
            }
            Phase::Leaving { until } => now >= until || self.members.iter().all(Member::is_drained),
        }
    }

    /// Everybody is to leave, one after the other.
    fn conclude(&mut self, now: Instant) {
        if let Some(begun) = &self.begun {
            self.common.tally.steady = self.mark(now).since(begun);
        }
        let mut at = now;
        for (who, member) in self.members.iter_mut().enumerate() {
            member.conclude(now, at, &mut self.common.tally);
            self.alarms.set(who, at);
            at += GOODBYE_GAP;
        }
        // Those who had no time to begin.
        while self.next < self.plan.clients {
            self.common.tally.left_out("stopped before it began");
            self.next += self.plan.threads;
        }
        self.phase = Phase::Leaving { until: at + LONGEST_GOODBYE };
    }

    fn publish(&mut self, live: &Live) {
        let Some(share) = self.meter.look() else { return };
        let playing = self.members.iter().filter(|member| member.is_playing()).count();
        live.playing.store(playing as u64, Ordering::Relaxed);
        live.ticks.store(self.common.tally.ticks.received, Ordering::Relaxed);
        live.failures.store(self.common.tally.failures.in_all(), Ordering::Relaxed);
        live.busy_per_mille.store((share * 1000.0) as u64, Ordering::Relaxed);
    }

    fn sleep(&mut self, events: &mut Events) -> io::Result<()> {
        let mut now = self.common.clock.now();
        if self.members.len() >= MANY && self.unread.is_empty() {
            thread::sleep((self.looked + REST).saturating_since(now));
            now = self.common.clock.now();
        }
        let wake = [self.alarms.first(), self.begins_at()].into_iter().flatten().min();
        let timeout = match wake {
            _ if !self.unread.is_empty() => Duration::ZERO,
            Some(at) => at.saturating_since(now).min(LONGEST_SLEEP),
            None => LONGEST_SLEEP,
        };
        match self.poll.poll(events, Some(timeout)) {
            // Its events are not valid then; those of the kernel are told at the next turn.
            Err(error) if error.kind() == ErrorKind::Interrupted => events.clear(),
            done => done?,
        }
        self.looked = self.common.clock.now();
        Ok(())
    }

    fn finish(self) -> Findings {
        let Self { mut common, members, meter, thread, .. } = self;
        let ours = members.iter().filter_map(|member| member.socket.local_addr().ok());
        common.tally.overrun = kernel::overruns(ours);
        let busy = meter.finish(format!("clients-{thread}"));
        Findings { tally: common.tally, chunks: common.chunks, busy }
    }
}
