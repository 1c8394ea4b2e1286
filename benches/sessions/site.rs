//! A server with its clients, and what is timed of them. No socket: datagrams go from buffer to buffer.

use std::time::Duration;

use anyhow::{Context, ensure};
use caves_link::time::Instant;
use caves_session::{Counters, DropReason, Peer, Transmit};

/// Datagrams of a batch: one of each session where there are many, all of one where there is one.
pub(crate) const BATCH: usize = 1000;
/// Room for the longest datagram of all protocols.
pub(crate) const ROOM: usize = 1400;
/// Steps until everybody has to be in, and how long each is.
const STEPS: usize = 1000;
const STEP: Duration = Duration::from_millis(5);
/// The first client's port.
const FIRST_PORT: u16 = 10_000;

/// What a server made of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    /// It was what a connected client usually sends; the number is what it was sent with.
    Taken(u64),
    /// It was of another kind: of the handshake, or a question about the line.
    Other,
    Dropped(DropReason),
}

/// One protocol: its server, and how everything is called.
pub(crate) trait Protocol {
    type Client;
    const NAME: &'static str;
    /// As many sessions as its server takes, up to a thousand.
    const MANY: usize;
    /// How often a client sends its usual datagram.
    const PACE: Duration;
    /// Why junk is dropped.
    const REFUSAL: DropReason;

    fn new(sessions: usize, now: Instant) -> Self;
    fn client(place: usize, now: Instant) -> Self::Client;

    /// `handle_datagram`, and all that `poll_event` tells.
    fn serve(&mut self, now: Instant, from: Peer, datagram: &[u8]) -> Heard;
    /// `handle_timeout` and `poll_timeout`.
    fn wake(&mut self, now: Instant);
    /// `poll_transmit`.
    fn send(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit>;
    /// What the game on the server has for a session after a tick, and what it hands to the client itself.
    fn update(
        &mut self,
        now: Instant,
        place: usize,
        deliver: &mut dyn FnMut(&[u8]),
    ) -> anyhow::Result<()>;

    /// What a player does in a tick.
    fn act(client: &mut Self::Client, now: Instant) -> anyhow::Result<()>;
    /// `handle_timeout`, `poll_timeout` and all that `poll_event` tells.
    fn wake_client(client: &mut Self::Client, now: Instant);
    /// `poll_transmit`.
    fn say(client: &mut Self::Client, now: Instant, buf: &mut [u8]) -> Option<usize>;
    /// `handle_datagram`.
    fn hear(client: &mut Self::Client, now: Instant, datagram: &[u8]);
    fn is_in(client: &Self::Client) -> bool;
    fn counters(client: &Self::Client) -> &Counters;

    /// Writes the datagram number `number` that the client of a line sends.
    fn usual(line: &Line<Self::Client>, number: u32, buf: &mut [u8]) -> anyhow::Result<usize>;
    /// What [`Heard::Taken`] then has.
    fn taken(number: u32) -> u64 {
        number.into()
    }
    /// Writes what no session of this server ever sends.
    fn junk(&self, number: u32, buf: &mut [u8]) -> anyhow::Result<usize>;
    /// Datagrams that the server sends while it hears so many usual ones, if that is known.
    fn replies(_heard: u64) -> Option<u64> {
        None
    }
}

/// A client, and what went over its line last.
pub(crate) struct Line<C> {
    pub(crate) client: C,
    /// The last datagram of the client when it was let in.
    pub(crate) up: Vec<u8>,
    /// The last datagram to the client when it was let in.
    pub(crate) down: Vec<u8>,
    /// Usual datagrams so far.
    sent: u32,
}

/// What passed in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tally {
    /// Datagrams that were handed in, on either side.
    pub(crate) heard: u64,
    /// Datagrams that the server sent.
    pub(crate) sent: u64,
    /// Datagrams that the server took for usual ones.
    pub(crate) taken: u64,
    /// Sum of their numbers.
    pub(crate) sum: u64,
    /// Datagrams that the server dropped for the expected reason.
    pub(crate) refused: u64,
}

pub(crate) struct Site<P: Protocol> {
    protocol: P,
    lines: Vec<Line<P::Client>>,
    now: Instant,
    batch: Vec<(Peer, Vec<u8>)>,
    expected: u64,
}

fn peer(place: usize) -> Peer {
    Peer { socket: 0, addr: ([127, 0, 0, 1], FIRST_PORT + place as u16).into() }
}

/// The place of a client that has this address.
pub(crate) fn place(peer: Peer) -> usize {
    usize::from(peer.addr.port() - FIRST_PORT)
}

impl<P: Protocol> Site<P> {
    /// A server with so many sessions, all of them begun by clients.
    pub(crate) fn open(sessions: usize) -> anyhow::Result<Self> {
        let now = Instant::from_secs(1000);
        let line = |place| Line {
            client: P::client(place, now),
            up: Vec::new(),
            down: Vec::new(),
            sent: 0,
        };
        let lines = (0..sessions).map(line).collect();
        let protocol = P::new(sessions, now);
        let mut site = Site { protocol, lines, now, batch: Vec::new(), expected: 0 };
        for _ in 0..STEPS {
            if site.lines.iter().all(|line| P::is_in(&line.client)) {
                site.deliver();
                return Ok(site);
            }
            site.now += STEP;
            site.introduce();
        }
        anyhow::bail!("{}: not everybody was let in", P::NAME)
    }

    /// One step of the handshakes.
    fn introduce(&mut self) {
        let (now, mut buf) = (self.now, [0; ROOM]);
        for (place, line) in self.lines.iter_mut().enumerate() {
            P::wake_client(&mut line.client, now);
            while let Some(len) = P::say(&mut line.client, now, &mut buf) {
                line.up = buf[..len].to_vec();
                self.protocol.serve(now, peer(place), &buf[..len]);
            }
        }
        self.deliver();
        for (place, line) in self.lines.iter_mut().enumerate() {
            // What shows the server that its answer arrived.
            while let Some(len) = P::say(&mut line.client, now, &mut buf) {
                line.up = buf[..len].to_vec();
                self.protocol.serve(now, peer(place), &buf[..len]);
            }
        }
    }

    /// What the server has to send reaches its clients.
    fn deliver(&mut self) {
        let (now, mut buf) = (self.now, [0; ROOM]);
        self.protocol.wake(now);
        while let Some(transmit) = self.protocol.send(now, &mut buf) {
            let line = &mut self.lines[place(transmit.to)];
            line.down = buf[..transmit.len].to_vec();
            P::hear(&mut line.client, now, &buf[..transmit.len]);
            P::wake_client(&mut line.client, now);
        }
    }

    /// Writes the next usual datagrams of everybody in turn.
    pub(crate) fn prepare_usual(&mut self) -> anyhow::Result<()> {
        self.batch.clear();
        self.expected = 0;
        for count in 0..BATCH {
            let place = count % self.lines.len();
            let line = &mut self.lines[place];
            let mut buf = [0; ROOM];
            let len = P::usual(line, line.sent, &mut buf)?;
            self.expected = self.expected.wrapping_add(P::taken(line.sent));
            line.sent += 1;
            self.batch.push((peer(place), buf[..len].to_vec()));
        }
        Ok(())
    }

    /// The server hears the batch, and between two datagrams does what its loop does.
    pub(crate) fn hear_usual(&mut self) -> Tally {
        let step = P::PACE / self.lines.len() as u32;
        self.hear(step)
    }

    pub(crate) fn check_usual(&self, tally: Tally) -> anyhow::Result<()> {
        let heard = BATCH as u64;
        let wanted = Tally { heard, taken: heard, sum: self.expected, refused: 0, ..tally };
        ensure!(tally == wanted, "{}: {tally:?} instead of {wanted:?}", P::NAME);
        let replies = P::replies(heard).unwrap_or(tally.sent);
        ensure!(tally.sent == replies, "{}: sent {} of {replies}", P::NAME, tally.sent);
        Ok(())
    }

    /// Writes junk of strangers.
    pub(crate) fn prepare_junk(&mut self) -> anyhow::Result<()> {
        self.batch.clear();
        for number in 0..BATCH as u32 {
            let mut buf = [0; ROOM];
            let len = self.protocol.junk(number, &mut buf)?;
            let [_, b, c, d] = number.to_be_bytes();
            let from = Peer { socket: 0, addr: ([10, b, c, d], 9).into() };
            self.batch.push((from, buf[..len].to_vec()));
        }
        Ok(())
    }

    /// The server hears junk. No time passes, so that there is nothing else to do.
    pub(crate) fn hear_junk(&mut self) -> Tally {
        self.hear(Duration::ZERO)
    }

    pub(crate) fn check_junk(&self, tally: Tally) -> anyhow::Result<()> {
        let heard = BATCH as u64;
        let wanted = Tally { heard, refused: heard, ..Tally::default() };
        ensure!(tally == wanted, "{}: {tally:?} instead of {wanted:?}", P::NAME);
        Ok(())
    }

    fn hear(&mut self, step: Duration) -> Tally {
        let (mut tally, mut buf) = (Tally::default(), [0; ROOM]);
        for (from, datagram) in &self.batch {
            self.now += step;
            tally.note::<P>(self.protocol.serve(self.now, *from, datagram));
            self.protocol.wake(self.now);
            while self.protocol.send(self.now, &mut buf).is_some() {
                tally.sent += 1;
            }
        }
        tally
    }

    /// Ticks of everybody, both ways and without loss: about [`BATCH`] usual datagrams.
    pub(crate) fn exchange(&mut self) -> anyhow::Result<Tally> {
        let mut tally = Tally::default();
        for _ in 0..(BATCH / self.lines.len()).max(1) {
            self.now += P::PACE;
            self.tick(&mut tally)?;
        }
        Ok(tally)
    }

    fn tick(&mut self, tally: &mut Tally) -> anyhow::Result<()> {
        let (now, mut buf) = (self.now, [0; ROOM]);
        for (place, line) in self.lines.iter_mut().enumerate() {
            P::act(&mut line.client, now)?;
            P::wake_client(&mut line.client, now);
            while let Some(len) = P::say(&mut line.client, now, &mut buf) {
                tally.note::<P>(self.protocol.serve(now, peer(place), &buf[..len]));
            }
        }
        self.protocol.wake(now);
        for (place, line) in self.lines.iter_mut().enumerate() {
            self.protocol.update(now, place, &mut |datagram| {
                tally.heard += 1;
                tally.sent += 1;
                P::hear(&mut line.client, now, datagram);
            })?;
        }
        while let Some(transmit) = self.protocol.send(now, &mut buf) {
            tally.heard += 1;
            tally.sent += 1;
            let line = self.lines.get_mut(place(transmit.to)).context("a stranger")?;
            P::hear(&mut line.client, now, &buf[..transmit.len]);
        }
        for line in &mut self.lines {
            P::wake_client(&mut line.client, now);
        }
        Ok(())
    }

    pub(crate) fn check_exchange(&self, tally: Tally) -> anyhow::Result<()> {
        let ticks = (BATCH / self.lines.len()).max(1) * self.lines.len();
        let taken = tally.taken;
        ensure!(taken == ticks as u64, "{}: {taken} usual ones in {ticks} ticks", P::NAME);
        ensure!(tally.sent >= taken && tally.refused == 0, "{}: {tally:?}", P::NAME);
        for line in &self.lines {
            ensure!(P::is_in(&line.client), "{}: a client has left", P::NAME);
            let counters = P::counters(&line.client);
            ensure!(
                counters.dropped_in_all() == 0,
                "{}: {counters:?} at {:?}, {tally:?}",
                P::NAME,
                self.now
            );
        }
        Ok(())
    }
}

impl Tally {
    fn note<P: Protocol>(&mut self, heard: Heard) {
        self.heard += 1;
        match heard {
            Heard::Taken(number) => {
                self.taken += 1;
                self.sum = self.sum.wrapping_add(number);
            }
            Heard::Dropped(reason) if reason == P::REFUSAL => self.refused += 1,
            Heard::Dropped(_) | Heard::Other => {}
        }
    }
}
