//! Forgotten Caves: an Action a tick; a state and the own entity back.

use std::time::Duration;

use anyhow::Context;
use caves_link::time::Instant;
use caves_session::caves::{
    Client, ClientConfig, OwnedAction, Server, ServerConfig, ServerEvent, ServerReceived, SessionId,
};
use caves_session::{Counters, DropReason, Peer, SplitMix, StrangerLimits, Transmit};
use caves_wire::caves::{
    Action, ActionPacket, ChunkEntry, ClientType, Direction, Entity, EntityBuilder, EntityFlags,
    EntityId, Sequence, State, Tick, Token, tag,
};
use caves_wire::fnv::Fnv32;
use caves_wire::tlv::TlvWriter;

use crate::site::{Heard, Line, Protocol, ROOM, place};

pub(crate) struct Caves {
    server: Server,
    ids: Vec<Option<SessionId>>,
    started: Instant,
}

impl Protocol for Caves {
    type Client = Client;
    const NAME: &'static str = "Forgotten Caves";
    const MANY: usize = 1000;
    const PACE: Duration = Duration::from_millis(100);
    const REFUSAL: DropReason = DropReason::Token;

    fn new(sessions: usize, now: Instant) -> Self {
        let config = ServerConfig {
            max_players: sessions,
            strangers: crate::open(StrangerLimits::default()),
            ..ServerConfig::default()
        };
        let server = Server::new(config, Box::new(SplitMix::new(1)), now);
        Self { server, ids: vec![None; sessions], started: now }
    }

    fn client(place: usize, now: Instant) -> Client {
        Client::new(ClientConfig::default(), Box::new(SplitMix::new(1000 + place as u64)), now)
    }

    fn serve(&mut self, now: Instant, from: Peer, datagram: &[u8]) -> Heard {
        let heard = match self.server.handle_datagram(now, from, datagram) {
            // A tick executes it.
            ServerReceived::Action { session, .. } => self
                .server
                .next_action(session)
                .map_or(Heard::Other, |(sequence, _)| Heard::Taken(sequence.get().into())),
            ServerReceived::Dropped(reason) => Heard::Dropped(reason),
            _ => Heard::Other,
        };
        while let Some(event) = self.server.poll_event() {
            if let ServerEvent::Joined(joined) = event {
                let place = place(joined.peer);
                self.ids[place] = Some(joined.session);
                self.server.admit(now, joined.session, EntityId(place as u32 + 1));
            }
        }
        heard
    }

    fn wake(&mut self, now: Instant) {
        self.server.set_tick(self.tick(now));
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
        deliver: &mut dyn FnMut(&[u8]),
    ) -> anyhow::Result<()> {
        let session = self.ids[place].and_then(|id| self.server.session(id)).context("nobody")?;
        let tick = self.tick(now);
        let (mut block, mut buf) = ([0; 32], [0; ROOM]);
        let mut tlv = TlvWriter::new(&mut block);
        // Without a name the client would join anew again and again, to be sent all tags.
        tlv.put(tag::ENTITY_NAME, b"player")?;
        if let Some((sequence, bits)) = session.executed() {
            tlv.put(tag::EXECUTED_SEQUENCE, &sequence.get().to_le_bytes())?;
            tlv.put(tag::EXECUTED_BITS, &bits.to_le_bytes())?;
        }
        let player = session.entity();
        let entity = Entity {
            id: player,
            type_id: 0,
            x: 3,
            y: -4,
            hp: 20,
            hp_max: 20,
            elo: 1000,
            flags: EntityFlags::default(),
            meta: tlv.finish(),
        };
        let mut builder = EntityBuilder::new(&mut buf, tick, Fnv32::new())?;
        builder.push(&entity)?;
        let (len, checksum) = builder.finish(false);
        // Chunks of version 0 are nothing that a client would miss.
        let chunks = [ChunkEntry::default(); 9];
        let state = State { tick, chunks, player, entity_checksum: checksum.finish() };
        let mut head = [0; State::LEN];
        state.emit(&mut head)?;
        deliver(&head);
        deliver(&buf[..len]);
        Ok(())
    }

    fn act(client: &mut Client, _now: Instant) -> anyhow::Result<()> {
        client.push(OwnedAction::Walk(Direction::East))?;
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
        client.token().is_some()
    }

    fn counters(client: &Client) -> &Counters {
        client.counters()
    }

    fn usual(line: &Line<Client>, number: u32, buf: &mut [u8]) -> anyhow::Result<usize> {
        Ok(step(line.client.token().context("no token")?, number, buf)?)
    }

    fn junk(&self, number: u32, buf: &mut [u8]) -> anyhow::Result<usize> {
        Ok(step(Token(number.into()), number, buf)?)
    }
}

impl Caves {
    fn tick(&self, now: Instant) -> Tick {
        let since = now.saturating_since(self.started);
        Tick::new((since.as_micros() / Self::PACE.as_micros()) as u32)
    }
}

fn step(token: Token, number: u32, buf: &mut [u8]) -> Result<usize, caves_wire::EmitError> {
    let packet = ActionPacket {
        client_type: ClientType::OFFICIAL,
        token,
        sequence: Sequence::new(number),
        cache: [ChunkEntry::default(); 9],
        action: Action::<&str>::Walk(Direction::East),
    };
    packet.emit(buf)
}
