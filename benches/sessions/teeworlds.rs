//! Teeworlds 0.6: a packet with one vital chunk; one that is not vital back.

use std::time::Duration;

use anyhow::Context;
use caves_link::time::Instant;
use caves_session::teeworlds::{
    Client, ClientConfig, Server, ServerConfig, ServerEvent, ServerReceived, SessionId,
};
use caves_session::{Counters, DropReason, Peer, SplitMix, StrangerLimits, Transmit};
use caves_wire::teeworlds::{Chunk, ChunkBuilder, Envelope, Scratch, Sequence, Token};

use crate::site::{Heard, Line, Protocol, place};

/// As long as an input of DDNet.
const MESSAGE: usize = 32;
/// What a server tells a tee each tick, about.
const SNAPSHOT: [u8; 60] = [0x5A; 60];

pub(crate) struct Teeworlds {
    server: Server,
    scratch: Scratch,
    ids: Vec<Option<SessionId>>,
}

impl Protocol for Teeworlds {
    type Client = (Client, Box<Scratch>);
    const NAME: &'static str = "teeworlds";
    const MANY: usize = 1000;
    const PACE: Duration = Duration::from_millis(20);
    const REFUSAL: DropReason = DropReason::Token;

    fn new(sessions: usize, now: Instant) -> Self {
        let config = ServerConfig {
            max_sessions: sessions,
            strangers: crate::open(StrangerLimits::default()),
            ..ServerConfig::default()
        };
        let server = Server::new(config, &mut SplitMix::new(1), now);
        Self { server, scratch: [0; 1394], ids: vec![None; sessions] }
    }

    fn client(_place: usize, now: Instant) -> Self::Client {
        (Client::new(ClientConfig::default(), now), Box::new([0; 1394]))
    }

    fn serve(&mut self, now: Instant, from: Peer, datagram: &[u8]) -> Heard {
        let heard = match self.server.handle_datagram(now, from, datagram, &mut self.scratch) {
            ServerReceived::Messages { messages, .. } => {
                messages.fold(Heard::Other, |_, message| Heard::Taken(number(message.data)))
            }
            ServerReceived::Dropped(reason) => Heard::Dropped(reason),
            _ => Heard::Other,
        };
        while let Some(event) = self.server.poll_event() {
            if let ServerEvent::Joined { session, peer } = event {
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
        self.server.send(now, id, false, &SNAPSHOT)?;
        self.server.flush(id);
        Ok(())
    }

    fn act((client, _): &mut Self::Client, now: Instant) -> anyhow::Result<()> {
        client.send(now, true, &message(7))?;
        client.flush();
        Ok(())
    }

    fn wake_client((client, _): &mut Self::Client, now: Instant) {
        client.handle_timeout(now);
        while client.poll_event().is_some() {}
        std::hint::black_box(client.poll_timeout());
    }

    fn say((client, _): &mut Self::Client, now: Instant, buf: &mut [u8]) -> Option<usize> {
        client.poll_transmit(now, buf)
    }

    fn hear((client, scratch): &mut Self::Client, now: Instant, datagram: &[u8]) {
        let _ = client.handle_datagram(now, datagram, scratch);
    }

    fn is_in((client, _): &Self::Client) -> bool {
        client.is_connected()
    }

    fn counters((client, _): &Self::Client) -> &Counters {
        client.counters()
    }

    fn usual(line: &Line<Self::Client>, number: u32, buf: &mut [u8]) -> anyhow::Result<usize> {
        // What was sent last is the ACCEPT, and the token is its end.
        let token = line.up.last_chunk().copied().map(Token).context("no token")?;
        Ok(packet(token, number, buf)?)
    }

    fn junk(&self, number: u32, buf: &mut [u8]) -> anyhow::Result<usize> {
        Ok(packet(Token(number.to_le_bytes()), number, buf)?)
    }
}

/// A message with a number, as hard to compress as an input.
fn message(number: u32) -> [u8; MESSAGE] {
    let mut data = [0; MESSAGE];
    for (place, byte) in data.iter_mut().enumerate() {
        *byte = (number.wrapping_mul(0x9E37_79B9) >> (place % 4 * 8)) as u8 ^ place as u8;
    }
    data[..4].copy_from_slice(&number.to_le_bytes());
    data
}

fn number(data: &[u8]) -> u64 {
    data.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)).into()
}

fn packet(token: Token, number: u32, buf: &mut [u8]) -> Result<usize, caves_wire::EmitError> {
    let mut builder = ChunkBuilder::new();
    // The first vital chunk of a connection has the number 1.
    let vital = Some(Sequence::new((number + 1) % 1024));
    builder.push(&Chunk { vital, resend: false, data: &message(number) })?;
    let envelope = Envelope { ack: Sequence::new(0), resend: false, token: Some(token) };
    builder.packet(envelope).emit(buf)
}
