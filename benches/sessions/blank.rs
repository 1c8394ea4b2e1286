//! blank: a Ping each way.

use std::time::Duration;

use caves_link::time::Instant;
use caves_session::blank::{
    Client, ClientConfig, ClientStatus, Server, ServerConfig, ServerEvent, ServerReceived,
};
use caves_session::{Counters, DropReason, Peer, SplitMix, StrangerLimits, Transmit};
use caves_wire::blank::{Ack, EntityId, Header, HeaderView, Name, Numbers, Seq, Spawn};

use crate::site::{Heard, Line, Protocol, place};

pub(crate) struct Blank {
    server: Server,
}

const SERVER: Peer = Peer {
    socket: 0,
    addr: std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9),
};

impl Protocol for Blank {
    type Client = Client;
    const NAME: &'static str = "blank";
    const MANY: usize = 1000;
    const PACE: Duration = Duration::from_millis(500);
    const REFUSAL: DropReason = DropReason::Malformed;

    fn new(sessions: usize, now: Instant) -> Self {
        let config = ServerConfig {
            max_players: sessions,
            strangers: crate::open(StrangerLimits::default()),
            ..ServerConfig::default()
        };
        Self { server: Server::new(config, Box::new(SplitMix::new(1)), now) }
    }

    fn client(place: usize, now: Instant) -> Client {
        Client::new(ClientConfig::new(SERVER, Name::new(&format!("player {place}"))), now)
    }

    fn serve(&mut self, now: Instant, from: Peer, datagram: &[u8]) -> Heard {
        let heard = match self.server.handle_datagram(now, from, datagram) {
            ServerReceived::Handled => Heard::Taken(1),
            ServerReceived::Dropped(reason) => Heard::Dropped(reason),
            _ => Heard::Other,
        };
        while let Some(event) = self.server.poll_event() {
            if let ServerEvent::Login { session, peer, .. } = event {
                let spawn = Spawn::at_origin(EntityId(place(peer) as u32 + 1));
                self.server.admit(session, spawn, Name::new("default"));
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
        _now: Instant,
        _place: usize,
        _deliver: &mut dyn FnMut(&[u8]),
    ) -> anyhow::Result<()> {
        Ok(())
    }

    fn act(_client: &mut Client, _now: Instant) -> anyhow::Result<()> {
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
        let _ = client.handle_datagram(now, SERVER, datagram);
    }

    fn is_in(client: &Client) -> bool {
        matches!(client.status(), ClientStatus::Playing(_))
    }

    fn counters(client: &Client) -> &Counters {
        client.counters()
    }

    /// Each ping is answered with one, so the number that it acknowledges is known before.
    fn usual(line: &Line<Client>, number: u32, buf: &mut [u8]) -> anyhow::Result<usize> {
        let up = HeaderView::parse(&line.up)?.seq().advance(number + 1);
        let down = HeaderView::parse(&line.down)?.seq().advance(number);
        Ok(ping(up, down, buf)?)
    }

    fn taken(_number: u32) -> u64 {
        1
    }

    fn junk(&self, number: u32, buf: &mut [u8]) -> anyhow::Result<usize> {
        let len = ping(Seq::new(number), Seq::new(number), buf)?;
        // The tag is of another protocol.
        buf[0] ^= 0x55;
        Ok(len)
    }

    fn replies(heard: u64) -> Option<u64> {
        Some(heard)
    }
}

fn ping(seq: Seq, ack: Seq, buf: &mut [u8]) -> Result<usize, caves_wire::EmitError> {
    let numbers = Numbers { seq, ack: Ack::all_up_to(ack) };
    Header::ping(numbers).emit(&[], buf)
}
