//! The server of this workspace, whole: sockets, sessions, world, log calls, a store. Its clients are registered,
//! join by the real handshake, hold their nine chunks, and check what they get; each walks, a step a tick, in a view of
//! 1200 bytes ([`caves_benches::ground`]). Saving comes once an hour, which is after the end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::UdpSocket;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result};
use caves_link::time::Instant;
use caves_server::Server;
use caves_session::SplitMix;
use caves_session::caves::{Client, ClientConfig, OwnedAction};
use caves_wire::caves::{Direction, HeaderView, PacketType};

use crate::by_hand::{ROOM, socket};
use crate::course::{Course, Stage};
use crate::drive::{self, Fleet};
use crate::reader::{Whole, drain};
use crate::registered::{self, token};

/// Bytes before a packet's own fields.
const HEADER: usize = 6;
/// A name has four digits.
pub(crate) const MOST_CLIENTS: usize = 10_000;

pub(crate) fn serve(course: &Course) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let config = registered::config(course.ground, folder.path().join("caves.redb"))?;
    let server = Server::bind(&config)?;
    course.serve_at(*server.local_addrs().first().context("it listens nowhere")?);
    let stop = server.handle();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !course.is_over() {
                std::thread::sleep(Duration::from_millis(10));
            }
            stop.stop();
        });
        server.run()
    })?;
    Ok(())
}

pub(crate) fn play(course: &Course) -> Result<()> {
    let server = course.address()?;
    let player = |client| {
        let socket = socket()?;
        socket.connect(server)?;
        let config = ClientConfig { token: Some(token(client)), ..ClientConfig::default() };
        let random = SplitMix::new(client as u64);
        let client = Client::new(config, Box::new(random), now(course));
        Ok(Player { socket, client, whole: Whole::default(), due: None, executed: None })
    };
    let players = (0..course.clients).map(player).collect::<Result<_>>()?;
    drive::play(course, &mut Players { players, late: BinaryHeap::new(), buf: [0; ROOM] })
}

fn now(course: &Course) -> Instant {
    Instant::from_micros(course.now())
}

struct Players {
    players: Vec<Player>,
    /// Whose step was a bit early for the next number (one a tick) and waits, and until when; the next look may be a
    /// period away.
    late: BinaryHeap<Reverse<(Instant, usize)>>,
    /// What is read and what is sent, of one after the other.
    buf: [u8; ROOM],
}

struct Player {
    socket: UdpSocket,
    client: Client,
    /// The newest update, checked.
    whole: Whole,
    /// When the client has something to do or to say, whatever it hears.
    due: Option<Instant>,
    /// The newest step of which the server said that it was executed.
    executed: Option<u32>,
}

impl Fleet for Players {
    fn is_in(&self, client: usize) -> bool {
        let client = &self.players[client].client;
        client.player().is_some() && !client.misses_chunks()
    }

    fn turn(&mut self, course: &Course, client: usize) -> Result<()> {
        let now = now(course);
        self.send_late(now)?;
        let player = &mut self.players[client];
        let is_due = player.due.is_none_or(|due| due <= now);
        let may_hear = player.whole.is_over(course, now.as_micros());
        let hears = may_hear
            && drain(&player.socket, &mut self.buf, |datagram| {
                note(course, client, datagram);
                let _ = player.client.handle_datagram(now, datagram);
            })?;
        if hears {
            if let Some(tick) = player.client.updated_tick() {
                player.whole.set(tick.get(), now.as_micros());
            }
            player.count_executed(course);
        }
        if hears || is_due {
            player.client.handle_timeout(now);
            while player.client.poll_event().is_some() {}
            player.send(now, &mut self.buf)?;
        }
        Ok(())
    }

    fn step(&mut self, course: &Course, client: usize, round: u32) -> Result<()> {
        let player = &mut self.players[client];
        let way = if round.is_multiple_of(2) { Direction::East } else { Direction::West };
        player.client.push(OwnedAction::Walk(way))?;
        player.send(now(course), &mut self.buf)?;
        self.late.extend(player.waits().map(|until| Reverse((until, client))));
        Ok(())
    }
}

impl Players {
    fn send_late(&mut self, now: Instant) -> Result<()> {
        while let Some(Reverse((until, client))) = self.late.peek().copied()
            && until <= now
        {
            self.late.pop();
            let player = &mut self.players[client];
            player.send(now, &mut self.buf)?;
            // What waits for an answer, and not for its time, is sent at a look.
            let still = player.waits().filter(|until| *until > now);
            self.late.extend(still.map(|until| Reverse((until, client))));
        }
        Ok(())
    }
}

impl Player {
    fn send(&mut self, now: Instant, buf: &mut [u8]) -> Result<()> {
        while let Some(len) = self.client.poll_transmit(now, buf) {
            self.socket.send(&buf[..len])?;
        }
        self.due = self.client.poll_timeout();
        Ok(())
    }

    /// Until when a step waits, if one does.
    fn waits(&self) -> Option<Instant> {
        self.due.filter(|_| self.client.queued().next().is_some())
    }

    /// Steps have numbers without a gap, and the server says how far it is.
    fn count_executed(&mut self, course: &Course) {
        let Some((newest, _)) = self.client.executed() else { return };
        let more = self.executed.map_or(1, |before| newest.get().wrapping_sub(before));
        self.executed = Some(newest.get());
        if course.stage() != Stage::Joining {
            course.steps_heard.fetch_add(more.into(), Ordering::Relaxed);
        }
    }
}

/// Counts what is part of a tick: the tick follows the header in both packets.
fn note(course: &Course, client: usize, datagram: &[u8]) {
    let Ok(header) = HeaderView::parse(datagram) else { return };
    if [PacketType::STATE, PacketType::ENTITIES].contains(&header.packet_type())
        && let Some(tick) = datagram[HEADER..].first_chunk()
    {
        course.note(client, u32::from_le_bytes(*tick), datagram.len());
    }
}
