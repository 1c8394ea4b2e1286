//! All clients: real ones, joined by the real handshake.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use caves_server::Clock;
use caves_session::SplitMix;
use caves_session::caves::{Client, ClientConfig, OwnedAction};
use caves_wire::caves::{Direction, HeaderView, PacketType};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::registered::token;

/// More than any datagram has.
const ROOM: usize = 2048;
/// Between two looks at everybody while they join.
const JOINING: Duration = Duration::from_millis(4);
const LONGEST_JOIN: Duration = Duration::from_secs(120);
/// Nothing comes for so long from a server that ticks.
const LONGEST_WAIT: u16 = 2000;

pub(crate) struct Fleet {
    clock: Clock,
    players: Vec<Player>,
    /// What came of ticks.
    pub(crate) came: Came,
}

struct Player {
    socket: UdpSocket,
    client: Client,
}

/// States, and the bytes of them and of entities.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Came {
    pub(crate) states: u64,
    pub(crate) bytes: u64,
}

impl Fleet {
    pub(crate) fn new(clients: usize, server: SocketAddr) -> Result<Self> {
        let clock = Clock::start();
        let player = |client| {
            let socket = UdpSocket::bind(("127.0.0.1", 0))?;
            socket.set_nonblocking(true)?;
            socket.connect(server)?;
            let config = ClientConfig { token: Some(token(client)), ..ClientConfig::default() };
            let client = Client::new(config, Box::new(SplitMix::new(client as u64)), clock.now());
            Ok(Player { socket, client })
        };
        let players = (0..clients).map(player).collect::<Result<_>>()?;
        Ok(Self { clock, players, came: Came::default() })
    }

    pub(crate) const fn clients(&self) -> usize {
        self.players.len()
    }

    /// Until everybody is in and has its chunks.
    pub(crate) fn join(&mut self) -> Result<()> {
        let begin = Instant::now();
        loop {
            let mut joined = 0;
            for place in 0..self.players.len() {
                self.turn(place)?;
                let client = &self.players[place].client;
                joined += usize::from(client.player().is_some() && !client.misses_chunks());
            }
            if joined == self.players.len() {
                return Ok(());
            }
            ensure!(begin.elapsed() < LONGEST_JOIN, "{joined} joined");
            std::thread::sleep(JOINING);
        }
    }

    /// Sleeps until the first client gets a state: a tick has begun then.
    pub(crate) fn wait_for_tick(&mut self) -> Result<()> {
        let before = self.came.states;
        while self.came.states == before {
            let socket = self.players[0].socket.as_fd();
            let mut waiting = [PollFd::new(socket, PollFlags::POLLIN)];
            ensure!(poll(&mut waiting, PollTimeout::from(LONGEST_WAIT))? > 0, "no tick comes");
            self.turn(0)?;
        }
        Ok(())
    }

    /// Everybody reads what came, and steps there or back.
    pub(crate) fn play(&mut self, round: u32) -> Result<()> {
        let way = if round.is_multiple_of(2) { Direction::East } else { Direction::West };
        for place in 0..self.players.len() {
            self.turn(place)?;
            self.players[place].client.push(OwnedAction::Walk(way))?;
            self.send(place)?;
        }
        Ok(())
    }

    fn turn(&mut self, place: usize) -> Result<()> {
        let mut buf = [0; ROOM];
        let now = self.clock.now();
        let Player { socket, client } = &mut self.players[place];
        while let Ok(len) = socket.recv(&mut buf) {
            self.came.note(&buf[..len]);
            let _ = client.handle_datagram(now, &buf[..len]);
        }
        client.handle_timeout(now);
        while client.poll_event().is_some() {}
        self.send(place)
    }

    fn send(&mut self, place: usize) -> Result<()> {
        let mut buf = [0; ROOM];
        let Player { socket, client } = &mut self.players[place];
        while let Some(len) = client.poll_transmit(self.clock.now(), &mut buf) {
            socket.send(&buf[..len])?;
        }
        Ok(())
    }
}

impl Came {
    fn note(&mut self, datagram: &[u8]) {
        let Ok(header) = HeaderView::parse(datagram) else { return };
        let is_state = header.packet_type() == PacketType::STATE;
        if is_state || header.packet_type() == PacketType::ENTITIES {
            self.states += u64::from(is_state);
            self.bytes += datagram.len() as u64;
        }
    }
}
