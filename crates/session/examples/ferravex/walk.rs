//! Both ends of the example, each a loop around the five verbs and one socket.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::hash::{BuildHasher, RandomState};
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::Duration;

use caves_link::time::Instant;
use caves_session::ferravex::{
    Client, ClientConfig, ClientEnd, ClientEvent, ClientReceived, Controls, Server, ServerConfig,
    ServerEvent, ServerReceived, SessionId,
};
use caves_session::{Peer, Random};
use caves_wire::ferravex::{Player, Tick};

/// Twenty ticks a second.
const TICK: Duration = Duration::from_millis(50);
/// Steps after which the server says goodbye.
const ENOUGH: u32 = 60;
/// The last event of a session.
const GOODBYE: &[u8] = b"goodbye";

type Outcome = Result<(), Box<dyn Error>>;
/// Takes a line of output.
pub(crate) type Print<'p> = &'p mut dyn FnMut(String);

/// Reads the command line and runs one end.
pub(crate) fn run(args: &[&str], print: Print<'_>) -> Outcome {
    match args {
        ["server", address, sessions] => serve(address, sessions.parse()?, print),
        ["client", address, steps] => play(address, steps.parse()?, print),
        _ => Err("usage: ferravex server HOST:PORT SESSIONS | client HOST:PORT STEPS".into()),
    }
}

/// A socket with a clock beside it.
struct Line {
    socket: UdpSocket,
    start: std::time::Instant,
}

impl Line {
    fn new(address: &str) -> std::io::Result<Self> {
        Ok(Self { socket: UdpSocket::bind(address)?, start: std::time::Instant::now() })
    }

    fn now(&self) -> Instant {
        // A second in, so that no moment lies before the first.
        Instant::from_secs(1) + self.start.elapsed()
    }

    /// The next datagram, at the latest at `until`.
    fn wait(&self, until: Instant, buf: &mut [u8]) -> std::io::Result<Option<(usize, Peer)>> {
        let time = until.saturating_since(self.now()).max(Duration::from_millis(1));
        self.socket.set_read_timeout(Some(time))?;
        match self.socket.recv_from(buf) {
            Ok((len, addr)) => Ok(Some((len, Peer { socket: 0, addr }))),
            Err(error) => match error.kind() {
                // A peer that is gone may be told of by an error: it is found out by its silence.
                ErrorKind::WouldBlock
                | ErrorKind::TimedOut
                | ErrorKind::Interrupted
                | ErrorKind::ConnectionRefused
                | ErrorKind::ConnectionReset => Ok(None),
                _ => Err(error),
            },
        }
    }
}

/// Numbers that the standard library's keyed hashes make of the operating system's randomness; a
/// program for more than a demonstration asks that directly.
fn random() -> Box<dyn Random + Send> {
    let (state, mut count) = (RandomState::new(), 0u64);
    Box::new(move || {
        count += 1;
        state.hash_one(count)
    })
}

fn serve(address: &str, sessions: usize, print: Print<'_>) -> Outcome {
    let line = Line::new(address)?;
    print(format!("listening on {}", line.socket.local_addr()?));
    let mut arena = Arena::default();
    let mut server = Server::new(ServerConfig::default(), random(), line.now());
    let (mut buf, mut next_tick) = ([0; 1201], line.now());
    while arena.over < sessions {
        let until = server.poll_timeout().map_or(next_tick, |due| due.min(next_tick));
        if let Some((len, from)) = line.wait(until, &mut buf)?
            && let ServerReceived::Input { session, frames } =
                server.handle_datagram(line.now(), from, &buf[..len])
        {
            arena.walk(session, frames.iter().map(|frame| frame.move_x));
        }
        let now = line.now();
        server.handle_timeout(now);
        while let Some(event) = server.poll_event() {
            arena.note(event, print);
        }
        if now >= next_tick {
            arena.tick(&mut server, now)?;
            next_tick = now + TICK;
        }
        while let Some(transmit) = server.poll_transmit(now, &mut buf) {
            // A datagram that cannot be sent is a lost one.
            let _ = line.socket.send_to(&buf[..transmit.len], transmit.to.addr);
        }
    }
    Ok(())
}

/// The game: a line on which everybody walks.
#[derive(Default)]
struct Arena {
    walkers: BTreeMap<SessionId, Walker>,
    tick: u32,
    /// Sessions that have ended.
    over: usize,
}

#[derive(Default)]
struct Walker {
    x: f32,
    steps: u32,
    told: u32,
    done: bool,
}

impl Arena {
    fn note(&mut self, event: ServerEvent, print: Print<'_>) {
        match event {
            ServerEvent::Joined { session, player, .. } => {
                print(format!("player {} joined", player.0));
                self.walkers.entry(session).or_default();
            }
            ServerEvent::Left { session, player, why, .. } => {
                let walker = self.walkers.remove(&session).unwrap_or_default();
                print(format!("player {} left after {} steps: {why:?}", player.0, walker.steps));
                self.over += 1;
            }
            _ => {}
        }
    }

    fn walk(&mut self, session: SessionId, moves: impl Iterator<Item = f32>) {
        let walker = self.walkers.entry(session).or_default();
        for move_x in moves.filter(|move_x| *move_x != 0.0) {
            walker.x += move_x.clamp(-1.0, 1.0);
            walker.steps += 1;
        }
    }

    fn tick(&mut self, server: &mut Server, now: Instant) -> Outcome {
        self.tick = self.tick.wrapping_add(1);
        server.set_tick(Tick::new(self.tick));
        let sessions: HashMap<SessionId, _> = server
            .sessions()
            .map(|(id, view)| (id, (view.player(), view.events_pending())))
            .collect();
        let players: Vec<Player> = (self.walkers.iter())
            .filter_map(|(id, walker)| Some((sessions.get(id)?.0, walker)))
            .map(|(id, walker)| Player {
                id,
                position: [walker.x, 0.0, 0.0],
                velocity: [0.0; 3],
                yaw: 0.0,
                health: 100,
            })
            .collect();
        for (id, walker) in &mut self.walkers {
            let Some((_, pending)) = sessions.get(id) else { continue };
            // Whoever has acknowledged everything knows that it is over.
            if walker.done && *pending == 0 {
                server.end(*id);
                continue;
            }
            server.send_snapshot(now, *id, Tick::new(self.tick), &players)?;
            while walker.told + 10 <= walker.steps && !walker.done {
                walker.told += 10;
                server.send_event(now, *id, format!("{} steps", walker.told).as_bytes())?;
                if walker.told >= ENOUGH {
                    server.send_event(now, *id, GOODBYE)?;
                    walker.done = true;
                }
            }
        }
        Ok(())
    }
}

fn play(address: &str, steps: u32, print: Print<'_>) -> Outcome {
    let line = Line::new("127.0.0.1:0")?;
    line.socket.connect(address)?;
    let mut client = Client::new(ClientConfig::default(), random(), line.now());
    let (mut buf, mut next_step, mut made) = ([0; 1201], line.now(), 0);
    loop {
        let now = line.now();
        client.handle_timeout(now);
        if now >= next_step && made < steps {
            next_step = now + TICK / 2;
            let controls = Controls { move_x: 1.0, ..Controls::default() };
            made += u32::from(client.push_input(now, controls).is_ok());
        }
        let mut over = false;
        while let Some(event) = client.poll_event() {
            over |= tell(event, print)?;
        }
        while let Some(len) = client.poll_transmit(now, &mut buf) {
            let _ = line.socket.send(&buf[..len]);
        }
        if over {
            print(format!("ended after {made} steps, {:?} shown", client.tick()));
            return Ok(());
        }
        let until = client.poll_timeout().unwrap_or(now);
        let until = if made < steps { until.min(next_step) } else { until };
        if let Some((len, _)) = line.wait(until, &mut buf)?
            && let ClientReceived::Snapshot(view) = client.handle_datagram(line.now(), &buf[..len])
        {
            let own = view.players().find(|player| Some(player.id) == client.player());
            if let Some(own) = own.filter(|_| view.tick().get() % 20 == 0) {
                print(format!("at {} in tick {}", own.position[0], view.tick()));
            }
        }
    }
}

/// Prints an event; whether it was the last one.
fn tell(event: ClientEvent, print: Print<'_>) -> Result<bool, Box<dyn Error>> {
    match event {
        ClientEvent::Joined { player, tick } => {
            print(format!("player {} in tick {tick}", player.0));
        }
        ClientEvent::Event { sequence, payload } => {
            print(format!("event {sequence}: {}", String::from_utf8_lossy(&payload)));
            return Ok(*payload == *GOODBYE);
        }
        ClientEvent::Ended(ClientEnd::Quit) => return Ok(true),
        ClientEvent::Ended(end) => return Err(format!("{end:?}").into()),
        _ => {}
    }
    Ok(false)
}
