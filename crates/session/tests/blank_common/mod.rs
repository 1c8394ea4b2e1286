//! What the tests of blank share: captures, peers, and a naive form of what a real client acknowledges.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use caves_link::time::Instant;
use caves_session::blank::{Server, ServerConfig, ServerEvent, SessionId};
use caves_session::{Peer, SplitMix};
use caves_wire::blank::{
    Ack, EntityId, Header, HeaderView, Login, Name, Numbers, Packet, PacketType, Seq, Spawn,
};

pub(crate) struct Line {
    pub at: u64,
    pub from_server: bool,
    pub lost: bool,
    pub bytes: Vec<u8>,
}

pub(crate) fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

/// All captures by name; each is what one client and a real server sent.
pub(crate) fn captures() -> Vec<(String, Vec<Line>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/captures");
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut all = Vec::new();
    for path in files {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let Some(name) = name.strip_prefix("blank-") else { continue };
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            Line {
                at: words[0].parse().unwrap(),
                from_server: words[1] == "s2c",
                lost: words.get(3) == Some(&"lost"),
                bytes: hex(words[2]),
            }
        });
        all.push((name.to_owned(), lines.collect()));
    }
    assert_eq!(all.len(), 34);
    all
}

pub(crate) fn peer(host: u32, port: u16) -> Peer {
    Peer { socket: 0, addr: ((0x0A00_0000 + host).to_be_bytes(), port).into() }
}

/// The column "real" of section 3: the latest is what came last. Written from the table of the note,
/// with nothing of `caves_link`.
#[derive(Clone, Copy)]
pub(crate) struct RealAck {
    pub ack: u16,
    pub hist: u32,
}

impl RealAck {
    pub(crate) const START: Self = Self { ack: 0xFFFF, hist: 0xFFFF_FFFF };

    pub(crate) fn receive(&mut self, seq: u16) {
        match i32::from(seq.wrapping_sub(self.ack).cast_signed()) {
            0 => {}
            d @ 1..=31 => self.hist = self.hist << d | 1 << (d - 1),
            d if d >= 32 => self.hist = 0,
            d if d >= -32 => self.hist |= 1 << (-d - 1),
            _ => {}
        }
        self.ack = seq;
    }

    pub(crate) fn wire(self) -> Ack {
        Ack::new(Seq::new(self.ack.into()), self.hist.into())
    }
}

pub(crate) fn seq_of(bytes: &[u8]) -> u16 {
    u16::from_le_bytes([bytes[4], bytes[5]])
}

pub(crate) fn ack_of(bytes: &[u8]) -> (u16, u32) {
    (u16::from_le_bytes([bytes[6], bytes[7]]), u32::from_le_bytes(bytes[8..12].try_into().unwrap()))
}

pub(crate) fn ping(numbers: Numbers) -> Vec<u8> {
    let mut buf = [0; 16];
    Header::ping(numbers).emit(&[], &mut buf).unwrap();
    buf.to_vec()
}

pub(crate) fn bare(numbers: Numbers, packet_type: PacketType) -> Vec<u8> {
    let mut buf = [0; 16];
    Header { numbers, packet_type }.emit(&[], &mut buf).unwrap();
    buf.to_vec()
}

pub(crate) fn login(numbers: Numbers, name: &str) -> Vec<u8> {
    let mut buf = [0; 48];
    Login { numbers, name: Name::new(name) }.emit(&mut buf).unwrap();
    buf.to_vec()
}

/// A server that admits everybody who logs in, talked to datagram by datagram.
pub(crate) struct Talk {
    pub server: Server,
    pub now: Instant,
    pub events: Vec<ServerEvent>,
    /// What the server sent since it was last asked.
    pub sent: Vec<(Instant, Peer, Vec<u8>)>,
    next_entity: u32,
}

pub(crate) const START: Instant = Instant::from_secs(100);

impl Talk {
    pub(crate) fn new(config: ServerConfig) -> Self {
        Self::seeded(config, 42)
    }

    pub(crate) fn seeded(config: ServerConfig, seed: u64) -> Self {
        let server = Server::new(config, Box::new(SplitMix::new(seed)), START);
        Self { server, now: START, events: Vec::new(), sent: Vec::new(), next_entity: 1 }
    }

    /// A server whose connections are all numbered from 0, as those of real servers.
    pub(crate) fn from_zero() -> Self {
        let server = Server::new(ServerConfig::default(), Box::new(|| 0), START);
        Self { server, now: START, events: Vec::new(), sent: Vec::new(), next_entity: 1 }
    }

    pub(crate) fn give(&mut self, from: Peer, bytes: &[u8]) {
        self.server.handle_datagram(self.now, from, bytes);
        self.pump();
    }

    pub(crate) fn pump(&mut self) {
        while let Some(event) = self.server.poll_event() {
            if let ServerEvent::Login { session, .. } = event {
                let spawn = Spawn::at_origin(EntityId(self.next_entity));
                self.next_entity += 1;
                assert!(self.server.admit(session, spawn, Name::new("default")));
            }
            self.events.push(event);
        }
        let mut buf = [0; 500];
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut buf) {
            self.sent.push((self.now, transmit.to, buf[..transmit.len].to_vec()));
        }
        assert!(self.server.poll_timeout().is_none_or(|due| due > self.now));
    }

    /// Lets time go by, from deadline to deadline.
    pub(crate) fn until(&mut self, until: Instant) {
        while let Some(due) = self.server.poll_timeout().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.server.handle_timeout(self.now);
            self.pump();
        }
        self.now = until;
    }

    pub(crate) fn wait(&mut self, millis: u64) {
        self.until(self.now + Duration::from_millis(millis));
    }

    /// Takes what was sent to one peer.
    pub(crate) fn take(&mut self, to: Peer) -> Vec<Vec<u8>> {
        let (own, others) =
            std::mem::take(&mut self.sent).into_iter().partition(|sent| sent.1 == to);
        self.sent = others;
        let own: Vec<(Instant, Peer, Vec<u8>)> = own;
        own.into_iter().map(|(_, _, bytes)| bytes).collect()
    }

    pub(crate) fn session_of(&self, name: &str) -> SessionId {
        let found = self.events.iter().rev().find_map(|event| match event {
            ServerEvent::Login { session, name: other, .. } if *other == Name::new(name) => {
                Some(*session)
            }
            _ => None,
        });
        found.unwrap_or_else(|| panic!("{name} did not log in: {:?}", self.events))
    }
}

/// A client as real ones are, that does what it is told: it numbers, and acknowledges as they do.
pub(crate) struct Puppet {
    pub peer: Peer,
    pub next: u16,
    pub acks: RealAck,
}

impl Puppet {
    pub(crate) const fn new(peer: Peer) -> Self {
        Self { peer, next: 0, acks: RealAck::START }
    }

    pub(crate) fn numbers(&mut self) -> Numbers {
        let numbers = Numbers { seq: Seq::new(self.next.into()), ack: self.acks.wire() };
        self.next = self.next.wrapping_add(1);
        numbers
    }

    /// Gives the server a datagram and takes in what was sent back until now.
    pub(crate) fn say(&mut self, talk: &mut Talk, bytes: &[u8]) -> Vec<Vec<u8>> {
        talk.give(self.peer, bytes);
        self.listen(talk)
    }

    pub(crate) fn listen(&mut self, talk: &mut Talk) -> Vec<Vec<u8>> {
        let sent = talk.take(self.peer);
        sent.iter().for_each(|bytes| self.acks.receive(seq_of(bytes)));
        sent
    }

    pub(crate) fn ping(&mut self, talk: &mut Talk) -> Vec<Vec<u8>> {
        let bytes = ping(self.numbers());
        self.say(talk, &bytes)
    }

    pub(crate) fn login(&mut self, talk: &mut Talk, name: &str) -> Vec<Vec<u8>> {
        let bytes = login(self.numbers(), name);
        self.say(talk, &bytes)
    }

    pub(crate) fn part(&mut self, talk: &mut Talk) -> Vec<Vec<u8>> {
        let bytes = bare(self.numbers(), PacketType::PART);
        self.say(talk, &bytes)
    }

    /// Ping, Login, an echo; gives all the answers.
    pub(crate) fn enter(&mut self, talk: &mut Talk, name: &str) -> Vec<Vec<u8>> {
        let mut answers = self.ping(talk);
        answers.extend(self.login(talk, name));
        answers.extend(self.ping(talk));
        answers
    }
}

pub(crate) fn types(datagrams: &[Vec<u8>]) -> Vec<&'static str> {
    let types = datagrams.iter().map(|bytes| HeaderView::parse(bytes).unwrap().packet_type());
    types.map(|packet_type| packet_type.name().unwrap()).collect()
}

/// Numbers that some acknowledgement covered, and the farthest one, as a plain set.
#[derive(Default)]
pub(crate) struct Told {
    pub covered: BTreeSet<u16>,
    pub farthest: Option<u16>,
}

impl Told {
    pub(crate) fn hear(&mut self, bytes: &[u8]) {
        let (ack, hist) = ack_of(bytes);
        self.covered.insert(ack);
        let bits = (0..32).filter(|n| hist >> n & 1 == 1);
        self.covered.extend(bits.map(|n| ack.wrapping_sub(1 + n)));
        let ahead = |last: u16| ack.wrapping_sub(last).cast_signed() > 0;
        if self.farthest.is_none_or(ahead) {
            self.farthest = Some(ack);
        }
    }

    /// Section 4: 33 numbers back, and never covered.
    pub(crate) fn is_lost(&self, seq: u16) -> bool {
        let back = self.farthest.map(|last| last.wrapping_sub(seq).cast_signed());
        back.is_some_and(|back| back >= 33) && !self.covered.contains(&seq)
    }
}

pub(crate) fn parse(bytes: &[u8]) -> Packet<'_> {
    Packet::parse(bytes).unwrap()
}

/// What a server did with a capture.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Names that logged in, in order.
    pub logins: Vec<String>,
    /// Why players left, in order.
    pub left: Vec<String>,
    pub joins: usize,
    pub parts: usize,
    pub pings: usize,
    pub dropped: u64,
}

/// Gives a server the client's half of a capture, at its times. Numbers, types, padding and payloads
/// are the recorded ones; acknowledgements are those that the same client would have written to this
/// server, which numbers its datagrams otherwise than the recorded one.
///
/// With `echoes` the client pings once more, at once, when it hears the server for the first time, and
/// its later numbers move by one.
pub(crate) fn replay(talk: &mut Talk, from: Peer, lines: &[Line], echoes: bool) -> Outcome {
    let start = talk.now;
    let mut acks = RealAck::START;
    let mut numbers = std::collections::BTreeMap::new();
    let mut inserted = 0u16;
    let mut outcome = Outcome::default();
    let before = talk.server.counters().dropped_in_all();
    let mut take_in = |talk: &mut Talk, acks: &mut RealAck| {
        let sent = talk.take(from);
        sent.iter().for_each(|bytes| acks.receive(seq_of(bytes)));
        for name in types(&sent) {
            *match name {
                "Join" => &mut outcome.joins,
                "Part" => &mut outcome.parts,
                _ => &mut outcome.pings,
            } += 1;
        }
        !sent.is_empty()
    };
    for line in lines.iter().filter(|line| !line.from_server && !line.lost) {
        talk.until(start + Duration::from_millis(line.at));
        take_in(talk, &mut acks);
        let mut bytes = line.bytes.clone();
        if HeaderView::parse(&bytes).is_ok() {
            let seq = seq_of(&bytes);
            let seq = *numbers.entry(seq).or_insert(seq.wrapping_add(inserted));
            bytes[4..6].copy_from_slice(&seq.to_le_bytes());
            bytes[6..8].copy_from_slice(&acks.ack.to_le_bytes());
            bytes[8..12].copy_from_slice(&acks.hist.to_le_bytes());
        }
        talk.give(from, &bytes);
        let heard = take_in(talk, &mut acks);
        if echoes && heard && inserted == 0 {
            inserted = 1;
            let seq = Seq::new(u32::from(seq_of(&bytes)) + 1);
            talk.give(from, &ping(Numbers { seq, ack: acks.wire() }));
            take_in(talk, &mut acks);
        }
    }
    talk.wait(100);
    take_in(talk, &mut acks);
    for event in talk.events.drain(..) {
        match event {
            ServerEvent::Login { name, .. } => {
                outcome.logins.push(name.as_bytes().escape_ascii().to_string());
            }
            ServerEvent::Left { why, .. } => outcome.left.push(format!("{why:?}")),
            other => panic!("{other:?}"),
        }
    }
    outcome.dropped = talk.server.counters().dropped_in_all() - before;
    outcome
}
