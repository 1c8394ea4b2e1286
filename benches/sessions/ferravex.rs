//! ferravex: an Input with six frames, of which one is new; a snapshot of eight players back.

use std::time::Duration;

use anyhow::Context;
use caves_link::time::Instant;
use caves_session::ferravex::{
    Client, ClientConfig, Controls, Server, ServerConfig, ServerEvent, ServerReceived, SessionId,
};
use caves_session::{Counters, DropReason, Peer, SplitMix, StrangerLimits, Transmit};
use caves_wire::ferravex::{Cookie, Input, InputFrame, InputSequence, Player, PlayerId, Tick};

use crate::site::{Heard, Line, Protocol, place};

const FRAMES: u32 = 6;

pub(crate) struct Ferravex {
    server: Server,
    ids: Vec<Option<SessionId>>,
    players: Vec<Player>,
    started: Instant,
}

impl Protocol for Ferravex {
    type Client = Client;
    const NAME: &'static str = "ferravex";
    /// There are 256 numbers of players, and half of them are for those who are being let in.
    const MANY: usize = 128;
    const PACE: Duration = Duration::from_millis(20);
    const REFUSAL: DropReason = DropReason::Token;

    fn new(sessions: usize, now: Instant) -> Self {
        let config = ServerConfig {
            max_players: sessions,
            strangers: crate::open(StrangerLimits::default()),
            ..ServerConfig::default()
        };
        let player = |id| Player {
            id: PlayerId(id),
            position: [f32::from(id), 2.0, 3.0],
            velocity: [0.5; 3],
            yaw: 1.0,
            health: 100,
        };
        Self {
            server: Server::new(config, Box::new(SplitMix::new(1)), now),
            ids: vec![None; sessions],
            players: (0..8).map(player).collect(),
            started: now,
        }
    }

    fn client(place: usize, now: Instant) -> Client {
        Client::new(ClientConfig::default(), Box::new(SplitMix::new(1000 + place as u64)), now)
    }

    fn serve(&mut self, now: Instant, from: Peer, datagram: &[u8]) -> Heard {
        let heard = match self.server.handle_datagram(now, from, datagram) {
            ServerReceived::Input { frames, .. } => frames
                .iter()
                .fold(Heard::Other, |_, frame| Heard::Taken(frame.sequence.get().into())),
            ServerReceived::Dropped(reason) => Heard::Dropped(reason),
            _ => Heard::Other,
        };
        while let Some(event) = self.server.poll_event() {
            if let ServerEvent::Joined { session, peer, .. } = event {
                self.ids[place(peer)] = Some(session);
            }
        }
        heard
    }

    fn wake(&mut self, now: Instant) {
        self.server.handle_timeout(now);
        std::hint::black_box(self.server.poll_timeout());
    }

    fn send(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        self.server.poll_transmit(now, buf)
    }

    fn update(
        &mut self,
        now: Instant,
        place: usize,
        _deliver: &mut dyn FnMut(&[u8]),
    ) -> anyhow::Result<()> {
        let id = self.ids[place].context("nobody")?;
        let since = now.saturating_since(self.started);
        let tick = Tick::new((since.as_micros() / Self::PACE.as_micros()) as u32);
        self.server.send_snapshot(now, id, tick, &self.players)?;
        Ok(())
    }

    fn act(client: &mut Client, now: Instant) -> anyhow::Result<()> {
        client.push_input(now, Controls { move_x: 1.0, ..Controls::default() })?;
        Ok(())
    }

    fn wake_client(client: &mut Client, now: Instant) {
        client.handle_timeout(now);
        while client.poll_event().is_some() {}
        std::hint::black_box(client.poll_timeout());
    }

    fn say(client: &mut Client, now: Instant, buf: &mut [u8]) -> Option<usize> {
        client.poll_transmit(now, buf)
    }

    fn hear(client: &mut Client, now: Instant, datagram: &[u8]) {
        let _ = client.handle_datagram(now, datagram);
    }

    fn is_in(client: &Client) -> bool {
        client.session().is_some()
    }

    fn counters(client: &Client) -> &Counters {
        client.counters()
    }

    fn usual(line: &Line<Client>, number: u32, buf: &mut [u8]) -> anyhow::Result<usize> {
        Ok(input(line.client.session().context("no session")?, number, buf)?)
    }

    fn taken(number: u32) -> u64 {
        u64::from(number + FRAMES)
    }

    fn junk(&self, number: u32, buf: &mut [u8]) -> anyhow::Result<usize> {
        let cookie = Cookie::new(u64::from(number) + 1).context("zero")?;
        Ok(input(cookie, number, buf)?)
    }
}

/// Frames up to `number + 6`: frame 0 went when the client was let in.
fn input(session: Cookie, number: u32, buf: &mut [u8]) -> Result<usize, caves_wire::EmitError> {
    let frames = [1, 2, 3, 4, 5, 6].map(|place| InputFrame {
        move_x: 1.0,
        ..InputFrame::neutral(InputSequence::new(number + place))
    });
    Input { session, frames: &frames }.emit(buf)
}
