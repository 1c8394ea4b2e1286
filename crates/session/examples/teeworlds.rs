//! A client of Teeworlds 0.6 on the session's client: it asks a server about itself, or joins it over
//! a network that loses every fourth datagram each way, receives snapshots, and leaves.
//!
//!     cargo run -p caves-session --features teeworlds --example teeworlds -- query 127.0.0.1:8303
//!     cargo run -p caves-session --features teeworlds --example teeworlds -- join 127.0.0.1:8303 30
//!
//! It draws nothing and does not interpret snapshots; it says which of them it has.
#![allow(
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "an example has a socket and a clock, and tells what it does"
)]

use std::error::Error;
use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::Duration;

use caves_link::time::Instant;
use caves_session::teeworlds::{
    Client, ClientConfig, ClientEvent, ClientReceived, Ended, MAX_DATAGRAM,
};
use caves_wire::teeworlds::{
    Connless, InfoRequest, InfoView, InfoWanted, Message, PlayerInput, Scratch, Tick,
};

/// What a client of 0.6 says first.
const VERSION: &str = "0.6 626fce9a778df4d4";
/// Inputs go out this often, as many as there are ticks.
const INPUT: Duration = Duration::from_millis(20);
/// Of so many datagrams one is lost, each way.
const LOSE: u32 = 4;
/// How long a question waits for its answer, and how often it is asked.
const PATIENCE: Duration = Duration::from_secs(1);
const QUESTIONS: u32 = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["query", server] => println!("{:?}", query(server)?),
        ["join", server, seconds] => {
            println!("{:?}", play(server, Duration::from_secs(seconds.parse()?))?);
        }
        _ => return Err("usage: teeworlds query HOST:PORT | join HOST:PORT SECONDS".into()),
    }
    Ok(())
}

/// What a server says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) name: String,
    pub(crate) map: String,
    pub(crate) players: Vec<String>,
}

/// Asks until there is an answer.
pub(crate) fn query(server: &str) -> Result<About, Box<dyn Error>> {
    let socket = open(server)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut buf = [0; MAX_DATAGRAM];
    for token in 1..=QUESTIONS {
        let request = InfoRequest { wanted: InfoWanted::Vanilla, token: token as u8 };
        let len = request.emit(&mut buf)?;
        socket.send(&buf[..len])?;
        let Ok(len) = socket.recv(&mut buf) else { continue };
        let Ok(packet) = Connless::parse(&buf[..len]) else { continue };
        let Ok(info) = InfoView::parse(&packet) else { continue };
        if let Some(about) = info.server().filter(|_| info.token() == request.answered_token()) {
            return Ok(About {
                name: about.name.to_string(),
                map: about.map.to_string(),
                players: info.clients().map(|client| client.name.to_string()).collect(),
            });
        }
    }
    Err("no answer".into())
}

/// What became of a game.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) map: String,
    /// Bytes of the map, as received and as announced.
    pub(crate) map_bytes: (usize, usize),
    pub(crate) snap: u32,
    pub(crate) snap_single: u32,
    pub(crate) snap_empty: u32,
    /// Snapshots of which all parts came.
    pub(crate) complete: u32,
    /// From the first tick of which there is a snapshot to the last.
    pub(crate) ticks: i32,
    /// Inputs of which the server has told when they came.
    pub(crate) inputs_timed: u32,
    /// Datagrams lost on purpose: sent, received.
    pub(crate) lost: (u32, u32),
    /// Why the connection ended before its time.
    pub(crate) ended: Option<Ended>,
}

/// Joins, plays for a while after the first snapshot, and leaves.
pub(crate) fn play(server: &str, time: Duration) -> Result<Figures, Box<dyn Error>> {
    let mut game = Game::new(open(server)?)?;
    // A map and a handshake take a while where one datagram in four is lost.
    let patience = game.now() + Duration::from_secs(60);
    let mut until = None;
    while game.figures.ended.is_none() && until.is_none_or(|until| game.now() < until) {
        if until.is_none() && game.figures.complete > 0 {
            until = Some(game.now() + time);
        }
        if until.is_none() && game.now() > patience {
            return Err(format!("no snapshot: {:?}", game.figures).into());
        }
        game.turn()?;
    }
    game.leave()?;
    Ok(game.figures)
}

fn open(server: &str) -> Result<UdpSocket, Box<dyn Error>> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(server)?;
    Ok(socket)
}

struct Game {
    socket: UdpSocket,
    start: std::time::Instant,
    client: Client,
    scratch: Scratch,
    /// Datagrams sent and received.
    counts: (u32, u32),
    figures: Figures,
    next_input: Option<Instant>,
    first: Option<Tick>,
    newest: Option<Tick>,
    /// The parts that came of the snapshot that is coming in.
    parts: (Option<Tick>, u64),
}

impl Game {
    fn new(socket: UdpSocket) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            socket,
            start: std::time::Instant::now(),
            client: Client::new(ClientConfig::default(), Instant::ZERO),
            scratch: [0; 1394],
            counts: (0, 0),
            figures: Figures::default(),
            next_input: None,
            first: None,
            newest: None,
            parts: (None, 0),
        })
    }

    fn now(&self) -> Instant {
        Instant::from_micros(u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// Sends what is due, and waits for a datagram or the next deadline.
    fn turn(&mut self) -> Result<(), Box<dyn Error>> {
        self.client.handle_timeout(self.now());
        while let Some(event) = self.client.poll_event() {
            match event {
                ClientEvent::Connected => {
                    let (version, password) = (VERSION.into(), "".into());
                    self.say(&Message::Info { version, password })?;
                }
                ClientEvent::Ended(why) => self.figures.ended = Some(why),
                _ => {}
            }
        }
        self.input()?;
        self.send(true)?;
        self.receive()
    }

    /// Says what the player does: nothing. What counts is which snapshot it has.
    fn input(&mut self) -> Result<(), Box<dyn Error>> {
        let now = self.now();
        let (Some(due), Some(tick)) = (self.next_input.filter(|due| *due <= now), self.newest)
        else {
            return Ok(());
        };
        self.next_input = Some(due.max(now) + INPUT);
        let ahead = Tick::new(tick.get() + 5).unwrap_or(tick);
        let input = PlayerInput { target_x: 100, player_flags: 1, ..PlayerInput::default() };
        let mut buf = [0; 128];
        let len = Message::Input { ack: self.newest, tick: ahead, input }.emit(&mut buf)?;
        self.client.send(now, false, &buf[..len])?;
        self.client.flush();
        Ok(())
    }

    fn say(&mut self, message: &Message<'_>) -> Result<(), Box<dyn Error>> {
        let mut buf = [0; 1023];
        let len = message.emit(&mut buf)?;
        self.client.send(self.now(), true, &buf[..len])?;
        self.client.flush();
        Ok(())
    }

    fn send(&mut self, lossy: bool) -> Result<(), Box<dyn Error>> {
        let mut buf = [0; MAX_DATAGRAM];
        while let Some(len) = self.client.poll_transmit(self.now(), &mut buf) {
            self.counts.0 += 1;
            if lossy && self.counts.0.is_multiple_of(LOSE) {
                self.figures.lost.0 += 1;
            } else {
                self.socket.send(&buf[..len])?;
            }
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<(), Box<dyn Error>> {
        let wait = self.client.poll_timeout().into_iter().chain(self.next_input).min();
        let wait = wait.map_or(INPUT, |due| due.saturating_since(self.now()));
        // Zero would be for ever.
        self.socket.set_read_timeout(Some(wait.clamp(Duration::from_millis(1), INPUT)))?;
        let mut buf = [0; MAX_DATAGRAM + 1];
        let len = match self.socket.recv(&mut buf) {
            Ok(len) => len,
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) =>
            {
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        self.counts.1 += 1;
        if self.counts.1.is_multiple_of(LOSE) {
            self.figures.lost.1 += 1;
            return Ok(());
        }
        let now = self.now();
        let received = self.client.handle_datagram(now, &buf[..len], &mut self.scratch);
        let ClientReceived::Messages(messages) = received else { return Ok(()) };
        // The scratch buffer is wanted again while these are answered.
        let messages: Vec<Vec<u8>> = messages.map(|message| message.data.to_vec()).collect();
        for message in messages {
            self.on_message(&Message::parse(&message)?)?;
        }
        Ok(())
    }

    fn on_message(&mut self, message: &Message<'_>) -> Result<(), Box<dyn Error>> {
        match *message {
            Message::MapChange { name, size, .. } => {
                self.figures.map = name.to_string();
                self.figures.map_bytes = (0, usize::try_from(size)?);
                self.say(&Message::RequestMapData { chunk: 0 })?;
            }
            Message::MapData { last, chunk, data, .. } => {
                self.figures.map_bytes.0 += data.len();
                self.say(&match last {
                    true => Message::Ready,
                    false => Message::RequestMapData { chunk: chunk + 1 },
                })?;
            }
            Message::ConReady => self.say(&Message::StartInfo {
                name: "tester".into(),
                clan: "".into(),
                country: -1,
                skin: "default".into(),
                custom_color: false,
                color_body: 65_408,
                color_feet: 65_408,
            })?,
            Message::ReadyToEnter => self.say(&Message::EnterGame)?,
            Message::Snap { tick, parts, part, .. } => {
                self.figures.snap += 1;
                self.on_part(tick, parts, part);
            }
            Message::SnapSingle { tick, .. } => {
                self.figures.snap_single += 1;
                self.on_snapshot(tick);
            }
            Message::SnapEmpty { tick, .. } => {
                self.figures.snap_empty += 1;
                self.on_snapshot(tick);
            }
            Message::InputTiming { .. } => self.figures.inputs_timed += 1,
            _ => {}
        }
        Ok(())
    }

    /// One of several parts, of which at most 64 are counted.
    fn on_part(&mut self, tick: Tick, parts: i32, part: i32) {
        let (Ok(parts @ 1..=64), Ok(part)) = (u32::try_from(parts), u32::try_from(part)) else {
            return;
        };
        if self.parts.0 != Some(tick) {
            self.parts = (Some(tick), 0);
        }
        self.parts.1 |= 1 << part.min(63);
        if self.parts.1 == u64::MAX >> (64 - parts) {
            self.on_snapshot(tick);
        }
    }

    fn on_snapshot(&mut self, tick: Tick) {
        self.figures.complete += 1;
        let first = *self.first.get_or_insert(tick);
        if self.newest.is_none_or(|newest| newest.get() < tick.get()) {
            self.newest = Some(tick);
            self.figures.ticks = tick.get() - first.get();
        }
        if self.next_input.is_none() {
            self.next_input = Some(self.now());
        }
    }

    /// This one datagram is not to be lost: it would not be repeated.
    fn leave(&mut self) -> Result<(), Box<dyn Error>> {
        self.client.close("that was all");
        self.send(false)
    }
}
