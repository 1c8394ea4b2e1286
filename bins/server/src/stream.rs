//! Connections that never block: a bounded number of them, with bounded buffers and an end to every
//! wait. What they speak is for the owner to say, in whole inputs (a line, the head of a request) and
//! one answer to each.
//!
//! ```text
//!   reading: until a whole input is there ---> asked: until the owner answers
//!      ^                                          |
//!      +---- the answer is out <---- writing <----+
//!                                       |  the last answer is out
//!                                       v
//!                                    leaving: hung up, what still comes is thrown away
//! ```
//!
//! A connection has one input out at a time, and is not read meanwhile: a peer that sends more than it
//! reads is held up by its own kernel, not by our memory. *Reading*, *writing* and *leaving* have a
//! deadline that a slow drip does not move; *asked* has none, because the owner is to blame there.
//!
//! ```
//! use caves_link::time::Instant;
//! use caves_server::stream::{Input, Limits, Streams, lines};
//! use mio::{Poll, Token, net::TcpListener};
//! use std::io::{Read, Write};
//!
//! let (mut poll, now) = (Poll::new().unwrap(), Instant::ZERO);
//! let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
//! let addr = listener.local_addr().unwrap();
//! let mut streams = Streams::new(listener, poll.registry(), Token(1), lines, Limits::default()).unwrap();
//!
//! let mut peer = std::net::TcpStream::connect(addr).unwrap();
//! peer.write_all(b"hello\n").unwrap();
//! let mut events = mio::Events::with_capacity(8);
//! let (from, input) = loop {
//!     poll.poll(&mut events, None).unwrap();
//!     events.iter().for_each(|event| streams.handle_event(now, event.token()));
//!     if let Some(input) = streams.poll_input(now) {
//!         break input;
//!     }
//! };
//! assert_eq!(input, Input::Whole(b"hello\n".to_vec()));
//! streams.answer(now, from, b"good day\n");
//! streams.hang_up(now, from);
//! let mut said = String::new();
//! peer.read_to_string(&mut said).unwrap();
//! assert_eq!(said, "good day\n");
//! ```

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::time::Duration;

use caves_link::time::{Deadline, Instant};
use mio::event::Source;
use mio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use mio::{Interest, Registry, Token};

/// Bytes read of one connection before the others have their turn.
const READ_BUDGET: usize = 16 << 10;
/// Connections taken from the listener in one turn.
const ACCEPT_BUDGET: usize = 64;
/// After an error of the listener (too many open files) it is asked again this much later.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);
/// How long a peer that was hung up on may take to hang up as well.
const LINGER: Duration = Duration::from_secs(2);

/// A connection that mio can watch.
pub trait Stream: Read + Write + Source {
    /// Tells the peer that no more will be written.
    ///
    /// # Errors
    /// The connection is gone already.
    fn end_writing(&self) -> io::Result<()>;
}

impl Stream for TcpStream {
    fn end_writing(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

impl Stream for UnixStream {
    fn end_writing(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

/// Where connections come from.
pub trait Listener: Source {
    /// What they are.
    type Stream: Stream;

    /// Takes the next one that waits.
    ///
    /// # Errors
    /// None waits, or the system lacks something.
    fn accept_one(&self) -> io::Result<Self::Stream>;
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    fn accept_one(&self) -> io::Result<TcpStream> {
        self.accept().map(|(stream, _)| stream)
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    fn accept_one(&self) -> io::Result<UnixStream> {
        self.accept().map(|(stream, _)| stream)
    }
}

/// Finds the end of the first whole input: how many bytes it has, its end included. `None` while
/// more has to come. It is asked again, from the first byte, whenever more has come.
pub type Framing = fn(&[u8]) -> Option<usize>;

/// An input is a line.
pub fn lines(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n').map(|end| end + 1)
}

/// An input is the head of an HTTP request, up to the empty line (also one that ends in a bare
/// line feed, which RFC 9112 lets a recipient take).
pub fn http_heads(bytes: &[u8]) -> Option<usize> {
    let ends = |at: &usize| {
        let line = &bytes[at + 1..];
        line.starts_with(b"\n") || line.starts_with(b"\r\n")
    };
    let at = (0..bytes.len()).filter(|at| bytes[*at] == b'\n').find(ends)?;
    Some(at + if bytes[at + 1] == b'\n' { 2 } else { 3 })
}

/// What one set of connections may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once; more of them wait in the kernel until one ends.
    pub connections: usize,
    /// Bytes of one input, its end included.
    pub input: usize,
    /// Bytes of one answer.
    pub output: usize,
    /// How long a peer may take to send a whole input, and to read a whole answer.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 16, input: 4096, output: 1 << 20, patience: Duration::from_secs(10) }
    }
}

/// A connection, named so that an answer that comes late reaches no other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    place: usize,
    number: u64,
}

/// What a peer sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A whole input with its end. Until it is [answered](Streams::answer) there is no other from
    /// this peer.
    Whole(Vec<u8>),
    /// More than an input may have, without an end. It may be answered, and there is none after it.
    TooLong,
}

/// What is done with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A whole input is waited for.
    Reading,
    /// Its owner has one and has not answered yet.
    Asked,
    /// The answer goes out.
    Writing,
    /// Hung up. Closing at once, with bytes unread, would take back what the peer has not read yet:
    /// the kernel answers those bytes by a reset.
    Leaving,
}

#[derive(Debug)]
struct Connection<S> {
    stream: S,
    number: u64,
    state: State,
    input: Vec<u8>,
    output: Vec<u8>,
    written: usize,
    /// Something may wait: the kernel tells of it once, and not again until all was read.
    readable: bool,
    /// The peer says no more.
    ended: bool,
    /// It is hung up on once the answer is out.
    last: bool,
    until: Deadline,
}

/// Connections from one listener.
#[derive(Debug)]
pub struct Streams<L: Listener> {
    listener: L,
    registry: Registry,
    first: Token,
    framing: Framing,
    limits: Limits,
    places: Vec<Option<Connection<L::Stream>>>,
    next_number: u64,
    /// The place that is looked at first: those behind a busy one have their turn, too.
    next_place: usize,
    /// Somebody may wait at the listener.
    acceptable: bool,
    accept_at: Deadline,
    /// The moment of the last turn that left something readable: the next one is due at once.
    more_since: Deadline,
    accepted: u64,
    cut_off: u64,
    accept_errors: u64,
}

impl<L: Listener> Streams<L> {
    /// Watches a listener that does not block. It uses `first` and as many tokens after it as there
    /// may be connections.
    ///
    /// # Errors
    /// mio cannot watch it.
    pub fn new(
        mut listener: L,
        registry: &Registry,
        first: Token,
        framing: Framing,
        limits: Limits,
    ) -> io::Result<Self> {
        let registry = registry.try_clone()?;
        registry.register(&mut listener, first, Interest::READABLE)?;
        Ok(Self {
            listener,
            registry,
            first,
            framing,
            limits,
            places: std::iter::repeat_with(|| None).take(limits.connections).collect(),
            next_number: 0,
            next_place: 0,
            acceptable: true,
            accept_at: Deadline::NEVER,
            more_since: Deadline::NEVER,
            accepted: 0,
            cut_off: 0,
            accept_errors: 0,
        })
    }

    /// Where the connections come from.
    pub const fn listener(&self) -> &L {
        &self.listener
    }

    /// How many connections are open.
    pub fn len(&self) -> usize {
        self.places.iter().flatten().count()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Connections there ever were.
    pub const fn accepted(&self) -> u64 {
        self.accepted
    }

    /// Connections that were ended by us because their peer was too slow.
    pub const fn cut_off(&self) -> u64 {
        self.cut_off
    }

    /// Times that the system could not give us one that waits.
    pub const fn accept_errors(&self) -> u64 {
        self.accept_errors
    }

    /// Takes an event of the poll; those of other tokens are not ours and change nothing.
    ///
    /// Connections are registered once, for reading and writing, edge-triggered: an event says that
    /// something changed, and everything that can be done is then tried until it would block. So
    /// which of the two it was makes no difference, and there is no interest to be renewed.
    pub fn handle_event(&mut self, now: Instant, token: Token) {
        let Some(offset) = token.0.checked_sub(self.first.0) else { return };
        if offset == 0 {
            self.acceptable = true;
            self.accept(now);
        } else if let Some(Some(connection)) = self.places.get_mut(offset - 1) {
            connection.readable = true;
            self.drive(now, offset - 1);
        }
    }

    /// The next input, whoever it is from.
    pub fn poll_input(&mut self, now: Instant) -> Option<(StreamId, Input)> {
        let places = self.places.len();
        for step in 0..places {
            let place = (self.next_place + step) % places;
            if let Some((number, input)) = self.take_input(now, place) {
                self.next_place = (place + 1) % places;
                return Some((StreamId { place, number }, input));
            }
        }
        None
    }

    /// Answers an input; an empty answer only lets the next one come. `false` when the peer has gone,
    /// was not asked, or when the answer is longer than allowed, which ends the connection.
    pub fn answer(&mut self, now: Instant, to: StreamId, bytes: &[u8]) -> bool {
        let most = self.limits.output;
        let patience = self.limits.patience;
        let Some(connection) = self.get(to).filter(|at| at.state == State::Asked) else {
            return false;
        };
        if bytes.len() > most {
            self.close(now, to.place);
            return false;
        }
        connection.output.extend_from_slice(bytes);
        connection.state = State::Writing;
        connection.until.set(now + patience);
        self.drive(now, to.place);
        true
    }

    /// Hangs up, once what was answered is out.
    pub fn hang_up(&mut self, now: Instant, of: StreamId) {
        let Some(connection) = self.get(of) else { return };
        connection.last = true;
        if matches!(connection.state, State::Asked | State::Reading) {
            // With nothing to write that ends at once.
            connection.state = State::Writing;
        }
        self.drive(now, of.place);
    }

    /// When to call [`Streams::handle_timeout`] at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let connections = self.places.iter().flatten().map(|connection| connection.until.get());
        Deadline::earliest(connections.chain([self.accept_at.get(), self.more_since.get()]))
    }

    /// Ends those whose time is over, and goes on with what was left over.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.more_since.clear();
        for place in 0..self.places.len() {
            let Some(connection) = &self.places[place] else { continue };
            if connection.until.is_due(now) {
                self.cut_off += u64::from(connection.state != State::Leaving);
                self.close(now, place);
            } else if connection.readable {
                self.drive(now, place);
            }
        }
        if self.accept_at.is_due(now) {
            self.accept_at.clear();
            self.acceptable = true;
        }
        self.accept(now);
    }

    fn get(&mut self, id: StreamId) -> Option<&mut Connection<L::Stream>> {
        self.places.get_mut(id.place)?.as_mut().filter(|at| at.number == id.number)
    }

    /// Takes those that wait, as long as there is a place.
    fn accept(&mut self, now: Instant) {
        for _ in 0..ACCEPT_BUDGET {
            if !self.acceptable {
                return;
            }
            let Some(place) = self.places.iter().position(Option::is_none) else { return };
            match self.listener.accept_one() {
                Ok(stream) => self.begin(now, place, stream),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => self.acceptable = false,
                    // That one has gone again; others may wait.
                    ErrorKind::Interrupted | ErrorKind::ConnectionAborted => {}
                    _ => {
                        // It goes on waiting there, and the kernel does not tell of it again.
                        self.accept_errors += 1;
                        self.acceptable = false;
                        self.accept_at.set(now + ACCEPT_PAUSE);
                    }
                },
            }
        }
        self.more_since.set(now);
    }

    fn begin(&mut self, now: Instant, place: usize, mut stream: L::Stream) {
        let token = Token(self.first.0 + 1 + place);
        let interest = Interest::READABLE | Interest::WRITABLE;
        if self.registry.register(&mut stream, token, interest).is_err() {
            // Dropping it hangs up.
            self.accept_errors += 1;
            return;
        }
        self.accepted += 1;
        self.next_number += 1;
        self.places[place] = Some(Connection {
            stream,
            number: self.next_number,
            state: State::Reading,
            input: Vec::new(),
            output: Vec::new(),
            written: 0,
            // Registering tells of what is there already, too; this is for other systems' polls.
            readable: true,
            ended: false,
            last: false,
            until: Deadline::at(now + self.limits.patience),
        });
        self.drive(now, place);
    }

    /// Reads and writes what can be read and written.
    fn drive(&mut self, now: Instant, place: usize) {
        let (limits, framing) = (self.limits, self.framing);
        let Some(connection) = &mut self.places[place] else { return };
        let alive = connection.drive(now, limits, framing);
        if alive && connection.has_more() {
            self.more_since.set(now);
        }
        if !alive {
            self.close(now, place);
        }
    }

    fn take_input(&mut self, now: Instant, place: usize) -> Option<(u64, Input)> {
        let (limits, framing) = (self.limits, self.framing);
        let connection = self.places[place].as_mut()?;
        if connection.state != State::Reading {
            return None;
        }
        let taken = connection.take_input(limits, framing).map(|input| (connection.number, input));
        if taken.is_none() && connection.ended {
            // It has said goodbye, and what is left is no whole input.
            self.close(now, place);
        }
        taken
    }

    fn close(&mut self, now: Instant, place: usize) {
        if let Some(mut connection) = self.places[place].take() {
            // Dropping it would do, but mio asks for it.
            let _ = self.registry.deregister(&mut connection.stream);
        }
        if self.acceptable {
            // Somebody may have waited for this place. Not from here: places are being walked over.
            self.more_since.set(now);
        }
    }
}

impl<S: Stream> Connection<S> {
    /// Does what can be done; `false` when there is nothing more to be done for ever.
    fn drive(&mut self, now: Instant, limits: Limits, framing: Framing) -> bool {
        let alive = match self.state {
            State::Reading => self.read(limits, framing),
            // Not read: what the peer sends ahead waits in the kernel.
            State::Asked => Ok(()),
            State::Writing => self.write(now, limits, framing),
            State::Leaving => self.discard(),
        };
        alive.is_ok() && !(self.state == State::Leaving && self.ended)
    }

    /// Whether something is left to read that nobody will tell of.
    fn has_more(&self) -> bool {
        self.readable && matches!(self.state, State::Reading | State::Leaving)
    }

    /// Reads until a whole input is there, nothing more comes, or the budget is spent.
    fn read(&mut self, limits: Limits, framing: Framing) -> io::Result<()> {
        let mut budget = READ_BUDGET;
        while self.readable && !self.ended && budget > 0 {
            // Once it is full there is an input, whole or too long.
            let room = limits.input.saturating_sub(self.input.len()).min(budget);
            if room == 0 || framing(&self.input).is_some() {
                // What comes after it is read when this one was answered.
                return Ok(());
            }
            let mut bytes = [0; 2048];
            let want = room.min(bytes.len());
            match self.fill(&mut bytes[..want])? {
                0 => return Ok(()),
                len => self.input.extend_from_slice(&bytes[..len]),
            }
            budget = budget.saturating_sub(want);
        }
        Ok(())
    }

    /// One read; 0 when there is nothing now, or nothing more.
    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.read(bytes) {
                Ok(0) => {
                    self.ended = true;
                    self.readable = false;
                    return Ok(0);
                }
                Ok(len) => return Ok(len),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.readable = false;
                    return Ok(0);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn take_input(&mut self, limits: Limits, framing: Framing) -> Option<Input> {
        let input = match framing(&self.input) {
            Some(len) => Input::Whole(self.input.drain(..len.min(self.input.len())).collect()),
            None if self.input.len() >= limits.input => {
                self.input = Vec::new();
                self.last = true;
                Input::TooLong
            }
            None => return None,
        };
        self.state = State::Asked;
        self.until.clear();
        Some(input)
    }

    /// Writes the answer as far as the peer takes it; then the next input may come.
    fn write(&mut self, now: Instant, limits: Limits, framing: Framing) -> io::Result<()> {
        while self.written < self.output.len() {
            match self.stream.write(&self.output[self.written..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(len) => self.written += len,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // An event comes when there is room.
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        // A long answer is not kept for a short one.
        self.output = Vec::new();
        self.written = 0;
        if self.last {
            self.stream.end_writing()?;
            self.state = State::Leaving;
            self.until.set(now + LINGER);
            return self.discard();
        }
        self.state = State::Reading;
        self.until.set(now + limits.patience);
        self.read(limits, framing)
    }

    /// Throws away what still comes.
    fn discard(&mut self) -> io::Result<()> {
        self.input = Vec::new();
        let mut bytes = [0; 2048];
        for _ in 0..READ_BUDGET / bytes.len() {
            if !self.readable || self.fill(&mut bytes)? == 0 {
                return Ok(());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
