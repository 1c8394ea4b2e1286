//! The session of the appendix: a scripted client, and the server that answers it.
//!
//! Everything that the bytes follow from is here: configuration, seeds, the moments.

use std::time::Duration;

use caves_game::{Server, ServerConfig};
use caves_link::time::Instant;
use caves_session::caves::ServerConfig as SessionConfig;
use caves_session::{Peer, SplitMix};
use caves_wire::caves::{
    Action, ActionPacket, ChunkEntry, ClientType, Direction, Echo, EntityId, EventAck, Features,
    Hello, Join, Leave, LeaveReason, Nonce, Packet, PacketType, Query, Sequence, Token, tag,
};
use caves_wire::tlv::TlvWriter;
use caves_world::{Content, KindId};

/// Where the client is.
const CLIENT: ([u8; 4], u16) = ([192, 0, 2, 1], 5000);
/// The caves, the server's randomness, and the time of day at its start.
const WORLD_SEED: u64 = 1;
const RANDOM_SEED: u64 = 1;
const UNIX_MILLIS: u64 = 1_700_000_000_000;
/// When the server starts; the appendix counts from here.
const START: Instant = Instant::from_secs(1000);
/// Ticks end every 100 ms; a client's datagram of the same moment comes before.
const PERIOD: u64 = 100;

/// A datagram at a moment, in milliseconds after the server's start.
#[derive(Debug)]
pub(crate) struct Passed {
    pub(crate) at: u64,
    pub(crate) from_client: bool,
    pub(crate) bytes: Vec<u8>,
}

/// The server of the appendix, driven from moment to moment.
pub(crate) struct Stage {
    server: Server,
    tick_at: u64,
    peer: Peer,
    /// Everything that passed, both ways.
    pub(crate) passed: Vec<Passed>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let session = SessionConfig {
            name: "Example".into(),
            motd: "Mind the rats.".into(),
            ..SessionConfig::default()
        };
        let config = ServerConfig { session, seed: WORLD_SEED, keep: None };
        let random = Box::new(SplitMix::new(RANDOM_SEED));
        Self {
            server: Server::new(config, random, START, UNIX_MILLIS),
            tick_at: PERIOD,
            peer: Peer { socket: 0, addr: CLIENT.into() },
            passed: Vec::new(),
        }
    }

    /// Ticks up to, but not including, this moment.
    pub(crate) fn run_to(&mut self, at: u64) {
        while self.tick_at < at {
            let now = moment(self.tick_at);
            self.server.handle_timeout(now);
            self.pump(self.tick_at);
            self.tick_at += PERIOD;
        }
    }

    /// Hands the server a datagram of the client.
    pub(crate) fn hand(&mut self, at: u64, bytes: &[u8]) {
        self.run_to(at);
        self.passed.push(Passed { at, from_client: true, bytes: bytes.to_vec() });
        self.server.handle_datagram(moment(at), self.peer, bytes);
        self.pump(at);
    }

    fn pump(&mut self, at: u64) {
        let mut buf = [0; 1200];
        while let Some(transmit) = self.server.poll_transmit(moment(at), &mut buf) {
            assert_eq!(transmit.to, self.peer);
            let bytes = buf[..transmit.len].to_vec();
            self.passed.push(Passed { at, from_client: false, bytes });
        }
        while self.server.poll_event().is_some() {}
    }

    pub(crate) fn players(&self) -> usize {
        self.server.players()
    }

    fn newest(&self, packet_type: PacketType) -> &[u8] {
        let mut server = self.passed.iter().rev().filter(|passed| !passed.from_client);
        let newest = server.find(|passed| passed.bytes[3] == packet_type.0);
        &newest.unwrap_or_else(|| panic!("no {packet_type} came")).bytes
    }
}

fn moment(at: u64) -> Instant {
    START + Duration::from_millis(at)
}

/// Plays the session of the appendix once.
pub(crate) fn session() -> Stage {
    let mut stage = Stage::new();
    let nonce = Nonce(0x0123_4567_89AB_CDEF);
    say(&mut stage, 10, |buf| Hello { client_type: ClientType::OFFICIAL, nonce }.emit(buf));
    join(&mut stage, 30, nonce);
    let token = match Packet::parse(stage.newest(PacketType::WELCOME)) {
        Ok(Packet::Welcome(welcome)) => welcome.token(),
        other => panic!("{other:?}"),
    };
    act(&mut stage, 50, token, 7, [ChunkEntry::default(); 9], Action::NoOp);
    stage.run_to(150);
    let held = match Packet::parse(stage.newest(PacketType::STATE)) {
        Ok(Packet::State(state)) => state.chunks(),
        other => panic!("{other:?}"),
    };
    act(&mut stage, 150, token, 8, held, Action::Walk(Direction::East));
    stage.run_to(220);
    say(&mut stage, 220, |buf| Echo::ping(ClientType::OFFICIAL, 1_234).emit(buf));
    act(&mut stage, 240, token, 9, held, Action::Say("Hello?"));
    stage.run_to(320);
    let sequence = Sequence::new(0);
    say(&mut stage, 320, |buf| {
        EventAck { client_type: ClientType::OFFICIAL, token, sequence }.emit(buf)
    });
    let entity = sign(&stage);
    say(&mut stage, 340, |buf| {
        Query { client_type: ClientType::OFFICIAL, token, entity }.emit(buf)
    });
    for at in [360, 380, 400] {
        let reason = LeaveReason::QUIT;
        say(&mut stage, at, |buf| {
            Leave { client_type: ClientType::OFFICIAL, token, reason }.emit(buf)
        });
    }
    stage.run_to(1000);
    stage
}

/// Writes a datagram of the client and hands it to the server.
fn say<E: std::fmt::Debug>(
    stage: &mut Stage,
    at: u64,
    emit: impl FnOnce(&mut [u8]) -> Result<usize, E>,
) {
    let mut buf = [0; 1200];
    let len = emit(&mut buf).expect("the script's packets can be written");
    stage.hand(at, &buf[..len]);
}

fn join(stage: &mut Stage, at: u64, nonce: Nonce) {
    let cookie = match Packet::parse(stage.newest(PacketType::CHALLENGE)) {
        Ok(Packet::Challenge(challenge)) => challenge.cookie(),
        other => panic!("{other:?}"),
    };
    let mut block = [0; 64];
    let mut tlv = TlvWriter::new(&mut block);
    tlv.put(tag::NAME, b"Ada").expect("room");
    tlv.put(tag::FEATURES, &Features::EVENTS.0.to_le_bytes()).expect("room");
    let meta = tlv.finish();
    say(stage, at, |buf| Join { client_type: ClientType::OFFICIAL, nonce, cookie, meta }.emit(buf));
}

fn act(
    stage: &mut Stage,
    at: u64,
    token: Token,
    sequence: u32,
    cache: [ChunkEntry; 9],
    action: Action<&str>,
) {
    let (client_type, sequence) = (ClientType::OFFICIAL, Sequence::new(sequence));
    let packet = ActionPacket { client_type, token, sequence, cache, action };
    say(stage, at, |buf| packet.emit(buf));
}

/// The first sign in view.
fn sign(stage: &Stage) -> EntityId {
    let content = Content::core();
    let is_sign = |kind: u16| {
        content.kind(KindId(kind)).is_some_and(|def| def.class == caves_world::Class::Sign)
    };
    let Ok(Packet::Entities(entities)) = Packet::parse(stage.newest(PacketType::ENTITIES)) else {
        panic!("no entities")
    };
    let found = entities.entities().find(|entity| is_sign(entity.type_id()));
    found.expect("a sign stands near the spawn").id()
}
