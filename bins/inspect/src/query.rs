//! Asking living servers about themselves.

mod caves;
mod teeworlds;

use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::Duration;

use anyhow::{Context, bail};
use caves_link::time::Instant;
use serde_json::json;

use crate::args::Asked;
use crate::output::{json_line, printable};
use crate::protocols;

/// Longer than any answer.
const LONGEST_DATAGRAM: usize = 2048;
/// The least time that a socket is waited for: zero would be for ever.
const LEAST_WAIT: Duration = Duration::from_millis(1);

/// What a server says about itself. Texts are as they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// What it is called.
    pub name: String,
    /// The map that is played, where the protocol has maps.
    pub map: Option<String>,
    /// Players there.
    pub players: u32,
    /// The most there can be.
    pub max_players: u32,
    /// From the last question to the answer.
    pub round_trip: Duration,
}

impl Answer {
    /// Writes it for people, or as one object.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, out: &mut dyn Write, json: bool) -> io::Result<()> {
        let Self { name, map, players, max_players, round_trip } = self;
        let micros = round_trip.as_micros();
        if json {
            return writeln!(
                out,
                "{}",
                json_line(&json!({
                    "name": name,
                    "map": map,
                    "players": players,
                    "max_players": max_players,
                    "round_trip_ms": micros as f64 / 1000.0,
                }))
            );
        }
        writeln!(out, "name       {}", printable(name))?;
        if let Some(map) = map {
            writeln!(out, "map        {}", printable(map))?;
        }
        writeln!(out, "players    {players} of {max_players}")?;
        writeln!(out, "round trip {}.{:02} ms", micros / 1000, micros % 1000 / 10)
    }
}

/// One question to a server, repeated until it is answered: driven as all endpoints are.
trait Question {
    /// Takes what came from the server.
    fn handle_datagram(&mut self, now: Instant, datagram: &[u8]) -> Option<Answer>;
    /// Writes the question when it is due.
    fn poll_transmit(&mut self, now: Instant, random: u32, buf: &mut [u8]) -> Option<usize>;
    /// When to ask again, or to give up.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Whether nobody answered.
    fn is_over(&self, now: Instant) -> bool;
}

/// Asks a server; tries its addresses one after the other.
///
/// # Errors
/// It cannot be found, or nobody answers there.
pub fn ask(asked: Asked, server: &str) -> anyhow::Result<Answer> {
    let port = match asked {
        Asked::Caves => protocols::caves::PORTS[0],
        Asked::Teeworlds => protocols::teeworlds::PORTS[0],
    };
    let addrs = resolve(server, port).with_context(|| format!("cannot find {server}"))?;
    let mut failure = None;
    for addr in addrs {
        match ask_one(asked, addr) {
            Ok(Some(answer)) => return Ok(answer),
            Ok(None) => {}
            Err(error) => failure = Some(error),
        }
    }
    match failure {
        Some(error) => Err(error).with_context(|| format!("nobody answers at {server}")),
        None => bail!("nobody answers at {server}"),
    }
}

/// `HOST:PORT`, `[::1]:PORT`, or a host alone.
fn resolve(server: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Ok(addrs) = server.to_socket_addrs() {
        return Ok(addrs.collect());
    }
    let host = server.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(server);
    Ok((host, port).to_socket_addrs()?.collect())
}

fn ask_one(asked: Asked, addr: SocketAddr) -> io::Result<Option<Answer>> {
    let socket = match addr {
        SocketAddr::V4(_) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)),
    }?;
    // Then the kernel drops what others send, and tells when nobody listens there.
    socket.connect(addr)?;
    let start = std::time::Instant::now();
    let now = || Instant::from_micros(start.elapsed().as_micros() as u64);
    let mut question: Box<dyn Question> = match asked {
        Asked::Caves => Box::new(caves::Caves::new(&mut draw, now())),
        Asked::Teeworlds => Box::new(teeworlds::Teeworlds::new(draw(), now())),
    };
    let mut buf = [0; LONGEST_DATAGRAM];
    while !question.is_over(now()) {
        if let Some(len) = question.poll_transmit(now(), draw() as u32, &mut buf) {
            socket.send(&buf[..len])?;
        }
        let wait = question.poll_timeout().map(|due| due.saturating_since(now()));
        socket.set_read_timeout(Some(wait.unwrap_or_default().max(LEAST_WAIT)))?;
        match socket.recv(&mut buf) {
            Ok(len) => {
                if let Some(answer) = question.handle_datagram(now(), &buf[..len]) {
                    return Ok(Some(answer));
                }
            }
            Err(error) if is_nothing(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// A number that whoever does not see the question cannot guess: the standard library draws the keys
/// of its hash tables from the operating system.
fn draw() -> u64 {
    RandomState::new().hash_one(0)
}
