//! Somebody who means no good: junk from many addresses, at a steady rate.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use caves_session::{Random, SplitMix};
use caves_wire::EmitError;
use caves_wire::caves::{
    Action, ActionPacket, ChunkEntry, ClientType, Direction, Echo, EntityId, Hello, InfoRequest,
    Join, Leave, LeaveReason, Nonce, Query, Sequence, Token,
};
use serde::Serialize;

use crate::args::{Plan, any_like, is_here};
use crate::busy::{Busy, Meter};
use crate::check::{Failure, Failures};
use crate::tally::Traffic;

/// Sockets at once.
const SOCKETS: usize = 64;
/// Datagrams after which a socket is closed and another opened, at the next address.
const RENEWED_AFTER: u64 = 64;
/// Addresses before the first one comes again, from 127.250.0.0 on.
const ADDRESSES: u32 = 1 << 16;
const FIRST_ADDRESS: u32 = 0x7FFA_0000;
/// Between two bursts, so that a burst is a thousandth of a second's rate.
const REST: Duration = Duration::from_millis(1);
/// What was missed for longer than that is not made up for.
const LONGEST_BURST: Duration = Duration::from_millis(50);

/// The kinds of junk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Junk {
    /// Random bytes, half of them with a true header.
    Random,
    /// A true packet, cut somewhere.
    Cut,
    Hello,
    /// A Join whose cookie nobody made.
    Join,
    /// A packet with a token that is no session's.
    Token,
}

impl Junk {
    const ALL: [Self; 5] = [Self::Random, Self::Cut, Self::Hello, Self::Join, Self::Token];
}

/// What was sent, and what came back.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Harm {
    pub(crate) random: u64,
    pub(crate) cut: u64,
    pub(crate) hellos: u64,
    pub(crate) joins: u64,
    pub(crate) tokens: u64,
    pub(crate) sent: Traffic,
    pub(crate) answers: Traffic,
    pub(crate) unsent: u64,
    /// Addresses used.
    pub(crate) sources: u64,
    #[serde(skip)]
    pub(crate) failures: Failures,
}

/// The one who sends it.
pub(crate) struct Hostile {
    server: SocketAddr,
    rate: u32,
    random: SplitMix,
    sources: Vec<Source>,
    opened: u32,
    next: usize,
    harm: Harm,
    buf: Box<[u8]>,
}

/// One address.
struct Source {
    socket: UdpSocket,
    datagrams: u64,
    sent: u64,
    answered: u64,
}

impl Hostile {
    /// # Errors
    /// The system gives no sockets.
    pub(crate) fn new(plan: &Plan, seed: u64) -> io::Result<Self> {
        let mut hostile = Self {
            server: plan.server,
            rate: plan.hostile,
            random: SplitMix::new(seed),
            sources: Vec::new(),
            opened: 0,
            next: 0,
            harm: Harm::default(),
            buf: vec![0; 2048].into(),
        };
        for _ in 0..SOCKETS {
            let source = hostile.open()?;
            hostile.sources.push(source);
        }
        Ok(hostile)
    }

    fn open(&mut self) -> io::Result<Source> {
        let ip: IpAddr = match is_here(self.server) {
            true => Ipv4Addr::from_bits(FIRST_ADDRESS + self.opened % ADDRESSES).into(),
            false => any_like(self.server),
        };
        let socket = UdpSocket::bind((ip, 0))?;
        socket.connect(self.server)?;
        socket.set_nonblocking(true)?;
        self.opened += 1;
        self.harm.sources += 1;
        Ok(Source { socket, datagrams: 0, sent: 0, answered: 0 })
    }

    /// Sends until it is told to stop.
    pub(crate) fn run(mut self, stop: &AtomicBool) -> (Harm, Busy) {
        let mut meter = Meter::start();
        let (mut since, mut sent) = (Instant::now(), 0u64);
        while !stop.load(Ordering::Relaxed) {
            let due = (since.elapsed().as_secs_f64() * f64::from(self.rate)) as u64;
            if (due - sent) as f64 > LONGEST_BURST.as_secs_f64() * f64::from(self.rate) + 1.0 {
                (since, sent) = (Instant::now(), 0);
                continue;
            }
            (sent..due).for_each(|_| self.send());
            sent = due;
            meter.look();
            thread::sleep(REST);
        }
        for mut source in std::mem::take(&mut self.sources) {
            self.listen(&mut source);
        }
        (self.harm, meter.finish("hostile".to_owned()))
    }

    fn send(&mut self) {
        let junk = Junk::ALL[self.random.next_u64() as usize % Junk::ALL.len()];
        let mut buf = [0; 1200];
        // All of it fits.
        let len = self.write(junk, &mut buf).unwrap_or(0);
        self.next = (self.next + 1) % self.sources.len();
        let source = &mut self.sources[self.next];
        match source.socket.send(&buf[..len]) {
            Ok(_) => {
                source.sent += len as u64;
                source.datagrams += 1;
                self.harm.sent.add(len);
                *self.harm.of(junk) += 1;
            }
            Err(_) => self.harm.unsent += 1,
        }
        if source.datagrams >= RENEWED_AFTER {
            self.renew(self.next);
        }
    }

    /// Another address takes the place of one.
    fn renew(&mut self, place: usize) {
        if let Ok(fresh) = self.open() {
            let mut old = std::mem::replace(&mut self.sources[place], fresh);
            self.listen(&mut old);
        }
    }

    /// Reads what an address was answered, and holds it against what it sent.
    fn listen(&mut self, source: &mut Source) {
        // An error is word of something that did not arrive; there are not more of those than sent.
        for _ in 0..2 * RENEWED_AFTER {
            match source.socket.recv(&mut self.buf) {
                Ok(len) => {
                    source.answered += len as u64;
                    self.harm.answers.add(len);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {}
            }
        }
        if source.answered > source.sent {
            self.harm.failures.add(Failure::Amplified);
        }
    }

    fn write(&mut self, junk: Junk, buf: &mut [u8]) -> Result<usize, EmitError> {
        let random = self.random.next_u64();
        let (client_type, nonce) = (ClientType::OFFICIAL, Nonce(random));
        match junk {
            Junk::Random => Ok(self.scribble(buf)),
            Junk::Hello => Hello { client_type, nonce }.emit(buf),
            Junk::Join => self.forge(buf),
            Junk::Token => self.try_token(Token(random | 1), buf),
            Junk::Cut => {
                let len = match random % 4 {
                    0 => Hello { client_type, nonce }.emit(buf)?,
                    1 => self.forge(buf)?,
                    2 => InfoRequest { client_type, nonce }.emit(buf)?,
                    _ => self.try_token(Token(random | 1), buf)?,
                };
                Ok(self.random.next_u64() as usize % len)
            }
        }
    }

    fn scribble(&mut self, buf: &mut [u8]) -> usize {
        for bytes in buf.chunks_mut(8) {
            bytes.copy_from_slice(&self.random.next_u64().to_le_bytes()[..bytes.len()]);
        }
        let random = self.random.next_u64();
        if random.is_multiple_of(2) {
            buf[..3].copy_from_slice(&[0x4C, 0x52, 1]);
            buf[3] %= 24;
        }
        (random >> 8) as usize % buf.len()
    }

    fn forge(&mut self, buf: &mut [u8]) -> Result<usize, EmitError> {
        let halves = [self.random.next_u64(), self.random.next_u64()];
        let cookie = u128::from(halves[0]) << 64 | u128::from(halves[1]);
        let (client_type, nonce) = (ClientType::OFFICIAL, Nonce(self.random.next_u64()));
        Join { client_type, nonce, cookie: cookie.to_le_bytes(), meta: &[] }.emit(buf)
    }

    fn try_token(&mut self, token: Token, buf: &mut [u8]) -> Result<usize, EmitError> {
        let random = self.random.next_u64();
        let client_type = ClientType::OFFICIAL;
        let (sequence, entity) = (Sequence::new(random as u32), EntityId((random >> 32) as u32));
        let cache = [ChunkEntry::default(); 9];
        match random % 4 {
            0 => Query { client_type, token, entity }.emit(buf),
            1 => Leave { client_type, token, reason: LeaveReason::QUIT }.emit(buf),
            2 => Echo::ping(client_type, token.0).emit(buf),
            _ => {
                let action: Action<&str> = Action::Walk(Direction::East);
                ActionPacket { client_type, token, sequence, cache, action }.emit(buf)
            }
        }
    }
}

impl Harm {
    const fn of(&mut self, junk: Junk) -> &mut u64 {
        match junk {
            Junk::Random => &mut self.random,
            Junk::Cut => &mut self.cut,
            Junk::Hello => &mut self.hellos,
            Junk::Join => &mut self.joins,
            Junk::Token => &mut self.tokens,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caves_wire::caves::{JoinView, Packet};
    use std::net::ToSocketAddrs;

    fn hostile(server: SocketAddr) -> Hostile {
        let plan = Plan {
            server,
            clients: 1,
            play: Duration::from_secs(1),
            walk: crate::args::Walk::Still,
            sources: None,
            ramp: 1,
            loss: 0,
            hostile: 1000,
            threads: 1,
        };
        Hostile::new(&plan, 5).unwrap()
    }

    #[test]
    fn each_kind_of_junk_is_what_it_is_called() {
        let mut hostile = hostile("127.0.0.1:9".to_socket_addrs().unwrap().next().unwrap());
        let (mut parsed, mut random) = ([0; 5], 0);
        for _ in 0..200 {
            for (place, junk) in Junk::ALL.into_iter().enumerate() {
                let mut buf = [0; 1200];
                let len = hostile.write(junk, &mut buf).expect("it fits");
                let packet = Packet::parse(&buf[..len]);
                parsed[place] += u32::from(packet.is_ok());
                match junk {
                    Junk::Hello => assert!(matches!(packet, Ok(Packet::Hello(_)))),
                    Junk::Join => assert!(JoinView::parse(&buf[..len]).is_ok()),
                    Junk::Random => random += u32::from(buf[..3] == [0x4C, 0x52, 1]),
                    _ => {}
                }
            }
        }
        let [_, cut, hello, join, token] = parsed;
        assert_eq!((cut, hello, join, token), (0, 200, 200, 200));
        assert!((50..150).contains(&random), "{random} with a true header");
    }

    #[test]
    fn an_address_that_is_answered_more_than_it_sent_is_a_failure() {
        let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut hostile = hostile(server.local_addr().unwrap());
        let mut answer = |bytes: usize| {
            let mut source = hostile.open().unwrap();
            source.sent = 100;
            server.send_to(&vec![1; bytes], source.socket.local_addr().unwrap()).unwrap();
            hostile.listen(&mut source);
            hostile.harm.failures.count(Failure::Amplified)
        };
        assert_eq!(answer(100), 0, "as much as was sent");
        assert_eq!(answer(101), 1);
    }
}
