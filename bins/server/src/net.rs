//! The loop: sleep, receive, tick when due, send.

mod desk;
mod outcome;

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use caves_game::SaveTicket;
use caves_link::time::{Deadline, Instant};
use caves_session::{Peer, Random};
use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token, Waker};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook_mio::v1_0::Signals;

use crate::clock::{Clock, unix_millis};
use crate::control::{Control, Operator, Reload, SetLogLevel};
use crate::kept::{Beginning, Kept};
use crate::load::Load;
use crate::metrics::{self, About, Endpoint, Meter};
use crate::report::{self, Late, Trouble};
use crate::rest::{CROWD, Rest};
use crate::socket;
use crate::store::{CloseError, Options};
use crate::traffic::Direction;
use crate::wires::{Gone, Inbox, Post, Received};
use crate::{Config, Notifier, OsRandom};

pub use outcome::{BindError, RunError, StopReason, Summary};

/// Datagrams read from one socket before the others and the tick have their turn. Answers to so
/// many fit the session's queue.
const RECEIVE_BUDGET: usize = 512;
/// Datagrams sent before sockets are read again: a tick of many players must not keep their next
/// actions waiting until the kernel drops them.
const SEND_BUDGET: usize = 512;
/// Timers so much overdue mean that something stopped this process.
const STALL: Duration = Duration::from_millis(500);
/// After that, so many rounds of [`RECEIVE_BUDGET`] are read before any timer: what waits in the
/// sockets came in time, and silence is judged by when a datagram arrived.
const ROUNDS_AFTER_STALL: usize = 64;
/// The loop looks around this often even if nothing is due.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// What another thread carries is looked after this often.
const UNDER_WAY: Duration = Duration::from_millis(2);
/// Saying goodbye to everybody ends after this, said or not.
const LONGEST_GOODBYE: Duration = Duration::from_secs(1);
/// The last save ends after this, done or not: a service manager waits for 90 seconds.
const LONGEST_SAVE: Duration = Duration::from_secs(30);

const STOP: Token = Token(1 << 20);
const SIGNALS: Token = Token((1 << 20) + 1);
/// The first of several.
const METRICS: Token = Token(1 << 21);
/// The first of several.
const CONTROL: Token = Token(1 << 22);

/// A server with its sockets open.
///
/// ```
/// use caves_server::{Config, Server};
///
/// let server = Server::bind(&Config::solo()).unwrap();
/// let address = server.local_addrs()[0];
/// let stop = server.handle();
/// let thread = std::thread::spawn(|| server.run());
/// // Here a client would play at `address`.
/// assert_ne!(address.port(), 0);
/// stop.stop();
/// thread.join().unwrap().unwrap();
/// ```
pub struct Server {
    game: caves_game::Server,
    sockets: Vec<Socket>,
    addrs: Vec<SocketAddr>,
    poll: Poll,
    stop: StopHandle,
    signals: Option<Signals>,
    clock: Clock,
    stopping: Option<Stopping>,
    sent: u64,
    unsent: Trouble,
    unread: Trouble,
    meter: Meter,
    endpoint: Option<Endpoint>,
    notifier: Notifier,
    operator: Operator,
    control: Option<Control>,
    started: Instant,
    /// A countdown is over.
    is_over: bool,
    kept: Option<Kept>,
    load: Load,
    late: Late,
    rest: Rest,
    threads: usize,
    /// Something is on its way to the kernel by another thread.
    is_sending: bool,
}

/// Stops a server that runs in another thread.
#[derive(Debug, Clone)]
pub struct StopHandle {
    asked: Arc<AtomicBool>,
    waker: Arc<Waker>,
}

impl StopHandle {
    /// Asks the server to say goodbye and return. Asking twice changes nothing.
    pub fn stop(&self) {
        self.asked.store(true, Ordering::Release);
        // Should it fail, the loop wakes by itself within a second.
        let _ = self.waker.wake();
    }
}

/// Where datagrams rest on their way. They belong to the thread that runs the loop.
struct Wires {
    inbox: Inbox,
    post: Post,
}

struct Socket {
    udp: Arc<UdpSocket>,
    /// Something may wait: the kernel tells of it once, and not again until all was read.
    ready: bool,
}

#[derive(Clone, Copy)]
struct Stopping {
    reason: StopReason,
    since: Instant,
    /// The last save, where the world is kept.
    last: Option<SaveTicket>,
}

impl Server {
    /// Opens the sockets and the store. Nothing is answered before [`Server::run`].
    ///
    /// # Errors
    /// An address or the store cannot be had, or the operating system lacks something.
    pub fn bind(config: &Config) -> Result<Self, BindError> {
        Self::bind_to(config, Vec::new(), Options::default())
    }

    /// As [`Server::bind`], with UDP sockets that somebody else has opened: they stand in place of
    /// those of the configuration, unless there are none.
    ///
    /// # Errors
    /// As [`Server::bind`].
    pub fn bind_to(
        config: &Config,
        passed: Vec<std::net::UdpSocket>,
        options: Options,
    ) -> Result<Self, BindError> {
        let poll = Poll::new().map_err(BindError::Poll)?;
        let opened = if passed.is_empty() { open_all(config)? } else { adopt_all(passed)? };
        let (mut sockets, mut addrs, mut meter) = (Vec::new(), Vec::new(), Meter::default());
        for (place, mut udp) in opened.into_iter().enumerate() {
            let local = watch(&poll, Token(place), &mut udp).map_err(BindError::Poll)?;
            meter.inodes.extend(metrics::inode(&udp));
            sockets.push(Socket { udp: Arc::new(udp), ready: true });
            addrs.push(local);
        }
        let endpoint = config.metrics.map(|addr| {
            Endpoint::bind(addr, poll.registry(), METRICS)
                .map_err(|reason| BindError::Metrics { addr, reason })
        });
        let endpoint = endpoint.transpose()?;
        let control = config.control.as_ref();
        let control =
            control.map(|control| Control::open(control, poll.registry(), CONTROL)).transpose()?;
        let waker = Arc::new(Waker::new(poll.registry(), STOP).map_err(BindError::Poll)?);
        let mut random = OsRandom::new().map_err(BindError::Random)?;
        let seed = config.seed.unwrap_or_else(|| random.next_u64());
        // Last of all: a server that cannot be has not touched the store.
        let (clock, unix_ms) = (Clock::start(), unix_millis());
        let mut operator = Operator::new(config);
        let (kept, keep) = match Kept::open(config, options, Arc::clone(&waker))? {
            Some(Beginning { kept, keep, bans }) => {
                operator.restore_bans(bans, unix_ms / 1000);
                (Some(kept), Some(keep))
            }
            None => (None, None),
        };
        let session = operator.session_config();
        let game = caves_game::ServerConfig { session, seed, keep };
        let game = caves_game::Server::new(game, Box::new(random), clock.now(), unix_ms);
        meter.about = About::this(game.world().content(), unix_ms);
        meter.max_players = config.session.max_players;
        Ok(Self {
            game,
            sockets,
            addrs,
            poll,
            stop: StopHandle { asked: Arc::default(), waker },
            signals: None,
            clock,
            stopping: None,
            sent: 0,
            unsent: Trouble::new("cannot send a datagram"),
            unread: Trouble::new("cannot read a socket"),
            meter,
            endpoint,
            notifier: Notifier::none(),
            operator,
            control,
            started: clock.now(),
            is_over: false,
            kept,
            late: Late::new(),
            rest: Rest::new(),
            threads: config.threads,
            is_sending: false,
            load: Load::new(Duration::from_secs(1) / u32::from(config.session.tick_rate.max(1))),
        })
    }

    /// Tells a service manager how the server is.
    #[must_use]
    pub fn with_notifier(mut self, notifier: Notifier) -> Self {
        self.notifier = notifier;
        self
    }

    /// Lets an operator read the configuration again and change how much the log tells.
    #[must_use]
    pub fn with_operator(mut self, reload: Option<Reload>, log: Option<SetLogLevel>) -> Self {
        self.operator.set_hooks(reload, log);
        self
    }

    /// Lets SIGINT and SIGTERM stop the server, once politely, twice at once, and SIGHUP reload its
    /// configuration. For a program that is a server and nothing else.
    ///
    /// # Errors
    /// The operating system does not let us.
    pub fn with_signals(mut self) -> io::Result<Self> {
        let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
        self.poll.registry().register(&mut signals, SIGNALS, Interest::READABLE)?;
        self.signals = Some(signals);
        Ok(self)
    }

    /// Where it listens, in the order of the configuration.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.addrs
    }

    /// Where the metrics can be had.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.endpoint.as_ref().map(Endpoint::addr)
    }

    /// What the world is generated from.
    pub fn seed(&self) -> u64 {
        self.game.seed()
    }

    /// Stops the server from elsewhere.
    pub fn handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// Runs until it is stopped, and says goodbye to everybody then.
    ///
    /// # Errors
    /// The operating system fails in a way that no waiting will mend. What goes wrong with one
    /// datagram is counted and told in the log.
    pub fn run(mut self) -> Result<Summary, RunError> {
        let start = self.clock.now();
        let mut wires = self.wires().map_err(RunError::Threads)?;
        self.notifier.ready(start);
        let ended = self.turn_until_stopped(&mut wires);
        // The other thread has ended before anything is told of the end.
        drop(wires);
        let closed = self.close_store();
        let summary = Summary {
            reason: ended?,
            uptime: self.clock.now().saturating_since(start),
            counters: self.game.counters().clone(),
            sent: self.sent,
            unsent: self.unsent.count(),
            unread: self.unread.count(),
        };
        closed?;
        Ok(summary)
    }

    fn turn_until_stopped(&mut self, wires: &mut Wires) -> Result<StopReason, RunError> {
        let mut events = Events::with_capacity(128);
        loop {
            // The timers are judged by the moment before reading: whatever holds this process up
            // after it, what came meanwhile is read before anybody is said to have been silent.
            let turn = self.clock.now();
            let unread = self.receive(turn, wires)?;
            self.tick(turn, &mut wires.post)?;
            self.operate();
            self.keep();
            let unsent = self.send(&mut wires.post)?;
            self.report();
            self.tell_operator();
            if let Some(reason) = self.stopped() {
                self.finish(&mut wires.post)?;
                return Ok(reason);
            }
            self.sleep(&mut events, unread || unsent).map_err(RunError::Poll)?;
        }
    }

    fn close_store(&mut self) -> Result<(), CloseError> {
        let Some(kept) = self.kept.take() else { return Ok(()) };
        // What is left of the time for the last save.
        let since = self.stopping.map_or(self.clock.now(), |stopping| stopping.since);
        let left = (since + LONGEST_SAVE).saturating_since(self.clock.now());
        let left = left.max(LONGEST_GOODBYE);
        self.notifier.saving(left);
        kept.close(left)
    }

    /// Reads what waits, within a budget; `true` when that was spent.
    fn receive(&mut self, turn: Instant, wires: &mut Wires) -> Result<bool, Gone> {
        if self.is_late(turn) {
            return self.receive_after_stall(wires);
        }
        let (mut more, before) = (false, self.game.counters().received);
        for place in 0..self.sockets.len() {
            more |= self.receive_from(place, &mut wires.inbox);
            // The session's queue of answers holds what one budget asks for, and not what all
            // sockets do.
            self.send(&mut wires.post)?;
        }
        self.rest.note((self.game.counters().received - before) as usize);
        Ok(more)
    }

    fn is_late(&self, turn: Instant) -> bool {
        self.game.poll_timeout().is_some_and(|due| due + STALL < turn)
    }

    /// Reads what came while this process was stopped, and answers as it goes: the session's queue
    /// of answers holds what one budget asks for.
    fn receive_after_stall(&mut self, wires: &mut Wires) -> Result<bool, Gone> {
        // A signal that lets a process go on may also end its sleep before the kernel has told
        // which sockets are ready.
        self.sockets.iter_mut().for_each(|socket| socket.ready = true);
        for _ in 0..ROUNDS_AFTER_STALL {
            let mut more = false;
            for place in 0..self.sockets.len() {
                more |= self.receive_from(place, &mut wires.inbox);
                self.send(&mut wires.post)?;
            }
            if !more {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads one socket; `true` when more may wait in it.
    fn receive_from(&mut self, place: usize, inbox: &mut Inbox) -> bool {
        let socket = &mut self.sockets[place];
        let mut read = 0;
        while socket.ready && read < RECEIVE_BUDGET {
            match inbox.fill(&socket.udp) {
                Received::Datagrams(count) => {
                    read += count;
                    // They were read together, and came before that.
                    let now = self.clock.now();
                    let socket = place as u16;
                    let from = |(datagram, addr)| (Peer { socket, addr }, datagram);
                    let datagrams = inbox.datagrams().map(from);
                    let traffic = &mut self.meter.traffic;
                    datagrams.clone().for_each(|(_, bytes)| traffic.note(Direction::In, bytes));
                    self.game.handle_datagrams(now, datagrams);
                }
                Received::Nothing => socket.ready = false,
                // Somebody may cause many of these.
                Received::Undelivered => read += 1,
                Received::Failed(error) => {
                    // Still ready, so that the next turn asks again; but that may take its time.
                    self.unread.note(self.clock.now(), &error);
                    return false;
                }
            }
        }
        socket.ready
    }

    fn tick(&mut self, turn: Instant, post: &mut Post) -> Result<(), Gone> {
        if self.game.poll_timeout().is_some_and(|due| due <= turn) {
            let (began, before) = (self.clock.now(), self.game.tick());
            self.game.handle_timeout(turn);
            let after = self.game.tick();
            if after != before {
                // What is under way still is the last of the tick before.
                self.finish(post)?;
            }
            self.meter.note_tick(began, before, after);
        }
        Ok(())
    }

    fn keep(&mut self) {
        if let Some(kept) = &mut self.kept {
            kept.turn(self.clock.now(), &mut self.game);
        }
    }

    fn wires(&self) -> io::Result<Wires> {
        let sockets = self.sockets.iter().map(|socket| Arc::clone(&socket.udp)).collect();
        Ok(Wires { inbox: Inbox::new(), post: Post::new(self.threads, sockets, self.clock)? })
    }

    /// Sends what is due, within a budget; `true` when that was spent.
    fn send(&mut self, post: &mut Post) -> Result<bool, Gone> {
        post.set_joins(self.game.players() >= CROWD);
        for _ in 0..SEND_BUDGET {
            let now = self.clock.now();
            let Some(room) = post.room() else {
                post.make_room(|datagram, result| self.count(now, datagram, result))?;
                continue;
            };
            match self.game.poll_transmit(now, room) {
                Some(transmit) => post.push(transmit),
                None => {
                    self.dispatch(post)?;
                    self.end_tick(post);
                    return Ok(false);
                }
            }
        }
        self.dispatch(post)?;
        Ok(true)
    }

    /// Sends off what waits, and counts what went.
    fn dispatch(&mut self, post: &mut Post) -> Result<(), Gone> {
        let now = self.clock.now();
        post.dispatch(|datagram, result| self.count(now, datagram, result))?;
        self.is_sending = post.idle_since().is_none();
        Ok(())
    }

    /// Waits until the kernel has all that was sent off.
    fn finish(&mut self, post: &mut Post) -> Result<(), Gone> {
        if self.is_sending {
            let now = self.clock.now();
            post.finish(|datagram, result| self.count(now, datagram, result))?;
            self.is_sending = false;
            self.end_tick(post);
        }
        Ok(())
    }

    /// Counts what became of a datagram.
    fn count(&mut self, now: Instant, datagram: &[u8], result: io::Result<()>) {
        match result {
            Ok(()) => {
                self.sent += 1;
                self.meter.traffic.note(Direction::Out, datagram);
            }
            // Lost, as if the network had lost it: the protocol repeats what matters.
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.unsent.count_only(),
            Err(error) => self.unsent.note(now, &error),
        }
    }

    /// A tick ends when there is nothing left to send and the kernel has all of it.
    fn end_tick(&mut self, post: &Post) {
        let sent = post.idle_since();
        if let Some(took) = sent.and_then(|sent| self.meter.note_sent(sent)) {
            self.load.note(self.clock.now(), took, self.game.players());
            self.meter.load_percent = self.load.percent();
            self.game.set_busy(self.load.is_busy());
        }
    }

    fn report(&mut self) {
        let now = self.clock.now();
        while let Some(event) = self.game.poll_event() {
            self.late.note(now, &event);
            self.meter.tally.note(&event);
            report::event(&event);
        }
    }

    /// Begins to stop when asked to; says why when all is done.
    fn stopped(&mut self) -> Option<StopReason> {
        let now = self.clock.now();
        let (mut signalled, mut reload) = (false, false);
        for signal in self.signals.iter_mut().flat_map(Signals::pending) {
            signalled |= signal != SIGHUP;
            reload |= signal == SIGHUP;
        }
        if reload && self.stopping.is_none() {
            self.reload();
        }
        let asked = self.stop.asked.load(Ordering::Acquire);
        match self.stopping {
            None if signalled => self.begin_to_stop(now, StopReason::Signal),
            None if asked => self.begin_to_stop(now, StopReason::Asked),
            None if self.is_over => self.begin_to_stop(now, StopReason::Operator),
            Some(_) if signalled => return Some(StopReason::SecondSignal),
            _ => {}
        }
        let Stopping { reason, since, last } = self.stopping?;
        let waited = now.saturating_since(since);
        let said = waited >= LONGEST_GOODBYE || self.game.is_drained();
        let saved = waited >= LONGEST_SAVE || last.is_none_or(|last| self.game.is_safe(last));
        (said && saved).then_some(reason)
    }

    fn begin_to_stop(&mut self, now: Instant, reason: StopReason) {
        self.game.shut_down(now);
        let last = self.game.ask_save();
        self.stopping = Some(Stopping { reason, since: now, last });
        self.notifier.stopping();
    }

    /// Waits for a datagram, a signal, a wish to stop, or the next deadline.
    fn sleep(&mut self, events: &mut Events, more: bool) -> io::Result<()> {
        let mut timeout = if more { Duration::ZERO } else { self.until_next_deadline() };
        let rest = self.rest.begin(timeout, self.game.players());
        if !rest.is_zero() {
            std::thread::sleep(rest);
            timeout -= rest;
        }
        match self.poll.poll(events, Some(timeout)) {
            // Its events are not valid then; the next turn asks again.
            Err(error) if error.kind() == ErrorKind::Interrupted => events.clear(),
            done => done?,
        }
        let now = self.clock.now();
        for event in &*events {
            if let Some(socket) = self.sockets.get_mut(event.token().0) {
                socket.ready = true;
            }
            if let Some(endpoint) = &mut self.endpoint {
                endpoint.handle_event(now, event.token());
            }
            if let Some(control) = &mut self.control {
                control.handle_event(now, event.token());
            }
        }
        Ok(())
    }

    fn until_next_deadline(&self) -> Duration {
        let now = self.clock.now();
        let endpoint = self.endpoint.as_ref().and_then(Endpoint::poll_timeout);
        let control = self.control.as_ref().and_then(Control::poll_timeout);
        let operator = self.operator.poll_timeout().filter(|_| self.stopping.is_none());
        let due = [self.game.poll_timeout(), endpoint, self.notifier.poll_timeout()];
        // What another thread carries is looked after soon: there may be more to carry.
        let longest = if self.is_sending { UNDER_WAY } else { LONGEST_SLEEP };
        Deadline::earliest(due.into_iter().chain([control, operator]))
            .map_or(longest, |due| due.saturating_since(now).min(longest))
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("addrs", &self.addrs)
            .field("players", &self.game.players())
            .finish_non_exhaustive()
    }
}

/// Opens the sockets of the configuration.
fn open_all(config: &Config) -> Result<Vec<UdpSocket>, BindError> {
    let open = |addr| socket::open(addr).map_err(|reason| BindError::Listen { addr, reason });
    config.listen.iter().copied().map(open).collect()
}

fn adopt_all(passed: Vec<std::net::UdpSocket>) -> Result<Vec<UdpSocket>, BindError> {
    passed.into_iter().map(|socket| socket::adopt(socket).map_err(BindError::Passed)).collect()
}

/// Lets `poll` watch a socket; gives its address, too, since port 0 takes any.
fn watch(poll: &Poll, token: Token, udp: &mut UdpSocket) -> io::Result<SocketAddr> {
    poll.registry().register(udp, token, Interest::READABLE)?;
    udp.local_addr()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    /// Turns the loop, without ticks, until somebody who asks has his answer.
    fn ask(server: &mut Server, path: &str) -> String {
        let mut stream = TcpStream::connect(server.metrics_addr().unwrap()).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\n\r\n").unwrap();
        let reader = std::thread::spawn(move || {
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        });
        let mut events = Events::with_capacity(16);
        while !reader.is_finished() {
            server.sleep(&mut events, true).unwrap();
            server.tell_operator();
        }
        reader.join().unwrap()
    }

    #[test]
    fn a_server_is_ready_from_its_first_tick_until_it_stops() {
        let config = Config { metrics: Some(([127, 0, 0, 1], 0).into()), ..Config::solo() };
        let mut server = Server::bind(&config).unwrap();
        let starting = ask(&mut server, "/readyz");
        assert!(starting.starts_with("HTTP/1.1 503 ") && starting.ends_with("\r\n\r\nstarting\n"));
        let mut wires = server.wires().unwrap();
        while server.meter.tally.ticks == 0 {
            server.tick(server.clock.now(), &mut wires.post).unwrap();
        }
        assert_eq!(server.meter.tally.tick_times.count(), 0, "nothing of it is sent");
        assert!(!server.send(&mut wires.post).unwrap());
        assert_eq!(server.meter.tally.tick_times.count(), 1);
        let ready = ask(&mut server, "/readyz");
        assert!(ready.starts_with("HTTP/1.1 200 ") && ready.ends_with("\r\n\r\nready\n"));
        server.begin_to_stop(server.clock.now(), StopReason::Asked);
        let stopping = ask(&mut server, "/readyz");
        assert!(stopping.starts_with("HTTP/1.1 503 ") && stopping.ends_with("\r\n\r\nstopping\n"));
        assert!(ask(&mut server, "/healthz").starts_with("HTTP/1.1 200 "), "the loop turns");
    }

    /// A server that has so many Pongs to send, every other one to where nothing can be sent.
    fn with_pongs_to_send(threads: usize, count: u16) -> Server {
        let mut config = Config { threads, ..Config::solo() };
        config.session.strangers.total_per_second = 1_000_000;
        let mut server = Server::bind(&config).unwrap();
        for number in 0..count {
            let [high, low] = number.to_be_bytes();
            let addr = ([127, 0, high, low], if number % 2 == 0 { 0 } else { 9 }).into();
            let from = Peer { socket: 0, addr };
            let ping = [0x4C, 0x52, 1, 6, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
            server.game.handle_datagram(server.clock.now(), from, &ping);
        }
        server
    }

    #[test]
    fn what_the_kernel_does_not_take_is_counted_with_one_thread_and_with_two() {
        for threads in [1, 2] {
            let mut server = with_pongs_to_send(threads, 300);
            let mut wires = server.wires().unwrap();
            assert!(!server.send(&mut wires.post).unwrap());
            server.finish(&mut wires.post).unwrap();
            assert!(!server.is_sending);
            assert_eq!((server.sent, server.unsent.count()), (150, 150), "{threads} threads");
        }
    }

    #[test]
    fn a_tick_has_not_ended_while_another_thread_carries_it() {
        // Three of four are the other thread's, which is more than one outbox.
        let mut server = with_pongs_to_send(1, 200);
        let (go, wait) = std::sync::mpsc::channel();
        let post = Post::held_up(server.clock, move || wait.recv().unwrap());
        let mut wires = Wires { inbox: Inbox::new(), post };
        while server.meter.tally.ticks == 0 {
            server.tick(server.clock.now(), &mut wires.post).unwrap();
        }
        assert!(!server.send(&mut wires.post).unwrap(), "all is sent off");
        assert!(server.is_sending && server.until_next_deadline() <= UNDER_WAY);
        let told = |server: &Server| server.sent + server.unsent.count();
        assert!(told(&server) < 200 - 64);
        assert_eq!(server.meter.tally.tick_times.count(), 0);
        (0..4).for_each(|_| go.send(()).unwrap());
        while server.is_sending {
            assert!(!server.send(&mut wires.post).unwrap());
        }
        assert_eq!((server.meter.tally.tick_times.count(), told(&server)), (1, 200));
    }

    #[test]
    fn a_server_whose_other_thread_fails_ends_with_an_error() {
        let mut server = with_pongs_to_send(1, 200);
        let post = Post::held_up(server.clock, || panic!("no kernel today"));
        let mut wires = Wires { inbox: Inbox::new(), post };
        let error = server.turn_until_stopped(&mut wires).unwrap_err();
        assert_eq!(error.to_string(), "the thread that sends datagrams failed: no kernel today");
    }
}
