//! A script of datagrams, from several addresses, into a server of blank and an honest client.

use std::collections::{BTreeMap, BTreeSet};

use caves_link::time::Instant;
use caves_session::blank::{
    Client, ClientConfig, ClientEvent, ClientStatus, MAX_GUESTS, PART_GAP, Server, ServerConfig,
    ServerEvent, ServerReceived, SessionId,
};
use caves_session::{Peer, SplitMix};
use caves_wire::blank::{
    Ack, EntityId, Header, HeaderView, Join, Login, Name, Numbers, Packet, PacketType, Seq, Spawn,
};

use super::ledger::{ANSWERS, FLOOD, Ledger, Line, STEPS, limits, peers};
use super::script::{START, Script, written};

const DATAGRAM: usize = 500;
/// Goodbyes, and at most a Join and a ping for each connection.
const AT_ONCE: usize = ANSWERS + 2 * (FLOOD + 16);
const NAMES: [&str; 6] = ["ada", "bob", "", "Ada", "a name of thirty-two characters.", "\u{e9}"];

/// Reads the bytes as steps: datagrams valid, changed and raw, waits, and what the layers above do.
///
/// After each step both ends come to rest; no unproven address was sent more than came from it.
pub fn blank_session(data: &[u8]) {
    let mut script = Script::new(data);
    let mut site = Site::new(script.byte());
    for _ in 0..STEPS {
        let Some(step) = script.step() else { break };
        site.take_step(step, &mut script);
    }
    site.close();
}

/// What a peer of the script goes by.
#[derive(Default)]
struct Puppet {
    next: u32,
    /// The numbers that came there, and the last one.
    told: BTreeSet<u32>,
    latest: Option<Seq>,
}

struct Site {
    server: Server,
    client: Client,
    home: Peer,
    us: Peer,
    max_players: usize,
    /// Whether players wait to be admitted until a step says so.
    is_slow: bool,
    now: Instant,
    peers: Vec<Peer>,
    puppets: BTreeMap<Peer, Puppet>,
    ledger: Ledger,
    line: Line,
    players: BTreeMap<SessionId, (Peer, Name)>,
    last: Vec<u8>,
    flooded: bool,
    next_entity: u32,
}

impl Site {
    fn new(kind: u8) -> Self {
        let max_players = 1 + usize::from(kind % 4);
        let config =
            ServerConfig { max_players, strangers: limits(kind), ..ServerConfig::default() };
        let us = Peer { socket: 0, addr: ([192, 0, 2, 99], 12354).into() };
        let peers = peers();
        Self {
            server: Server::new(config, Box::new(SplitMix::new(kind.into())), START),
            client: Client::new(ClientConfig::new(us, Name::new("honest")), START),
            home: peers[peers.len() - 1],
            us,
            max_players,
            is_slow: kind & 16 != 0,
            now: START,
            peers,
            puppets: BTreeMap::new(),
            ledger: Ledger::default(),
            line: Line::default(),
            players: BTreeMap::new(),
            last: Vec::new(),
            flooded: false,
            next_entity: 1,
        }
    }

    fn take_step(&mut self, step: u8, script: &mut Script<'_>) {
        match step & 31 {
            0 => self.now += script.wait(),
            1 => {
                let due = self.server.poll_timeout().into_iter().chain(self.client.poll_timeout());
                self.now = due.min().map_or(self.now, |due| due.max(self.now));
            }
            2 | 3 => {
                if let Some(id) = self.some_player(script) {
                    self.admit(id, NAMES[usize::from(script.byte()) % NAMES.len()]);
                }
            }
            4 => {
                if let Some(id) = self.some_player(script) {
                    self.server.part(self.now, id);
                }
            }
            // Rare: nobody is let in afterwards.
            5 if script.byte() == 0xA5 => self.server.shut_down(self.now),
            6 if !self.flooded => {
                self.flooded = true;
                self.flood(script);
            }
            8..=11 => self.carry(script),
            12 => {
                let datagram = self.line.to_client(script);
                self.client.handle_datagram(self.now, self.us, &datagram);
            }
            13 if script.byte() == 0xA5 => self.client.leave(self.now),
            number => {
                let from = self.peer(script);
                if let Some(mut datagram) = self.datagram(number, from, script) {
                    script.mutate(&mut datagram);
                    self.last = datagram;
                    let times = 1 + usize::from(step == 255);
                    self.deliver(from, times);
                }
            }
        }
        self.settle();
    }

    fn peer(&mut self, script: &mut Script<'_>) -> Peer {
        self.peers[usize::from(script.byte()) % self.peers.len()]
    }

    fn some_player(&mut self, script: &mut Script<'_>) -> Option<SessionId> {
        let all: Vec<_> = self.players.keys().copied().collect();
        script.pick(&all)
    }

    fn datagram(&mut self, number: u8, from: Peer, script: &mut Script<'_>) -> Option<Vec<u8>> {
        if let 27 | 28 = number {
            return Some(self.last.clone());
        }
        if let 29 | 30 = number {
            let len = usize::from(script.u16()) % (DATAGRAM + 100);
            return Some(script.bytes(len).to_vec());
        }
        let numbers = self.numbers(from, script);
        match number {
            14..=18 => {
                let name = NAMES[usize::from(script.byte()) % NAMES.len()];
                written(|buf| Login { numbers, name: Name::new(name) }.emit(buf))
            }
            19 | 20 => written(|buf| Header::part(numbers).emit(&[], buf)),
            21 => {
                let spawn = Spawn::at_origin(EntityId(1));
                written(|buf| Join { numbers, spawn, world: Name::new("w") }.emit(buf))
            }
            22 => {
                let header = Header { numbers, packet_type: PacketType(script.byte()) };
                let len = script.byte().into();
                let payload = script.bytes(len);
                written(|buf| header.emit(payload, buf))
            }
            _ => written(|buf| Header::ping(numbers).emit(&[], buf)),
        }
    }

    /// Those that a client would have, those of a first datagram, or any.
    fn numbers(&mut self, from: Peer, script: &mut Script<'_>) -> Numbers {
        let puppet = self.puppets.entry(from).or_default();
        match script.byte() {
            0..192 => {
                let seq = Seq::new(puppet.next);
                puppet.next += 1;
                let ack = puppet.latest.map_or(Numbers::first().ack, Ack::all_up_to);
                Numbers { seq, ack }
            }
            192..224 => {
                puppet.next = 1;
                Numbers::first()
            }
            224..240 => {
                // A number is told late, and no other is acknowledged.
                puppet.next += u32::from(script.byte());
                let ack = puppet.latest.map_or(Numbers::first().ack, |latest| Ack::new(latest, 0));
                Numbers { seq: Seq::new(puppet.next), ack }
            }
            _ => {
                let (seq, ack) = (script.u16().into(), script.u16().into());
                let hist = script.u32().into();
                Numbers { seq: Seq::new(seq), ack: Ack::new(Seq::new(ack), hist) }
            }
        }
    }

    fn admit(&mut self, id: SessionId, world: &str) {
        let spawn = Spawn::at_origin(EntityId(self.next_entity));
        self.next_entity += 1;
        let is_here = self.server.name(id).is_some();
        assert_eq!(self.server.admit(id, spawn, Name::new(world)), is_here);
    }

    /// Many beginnings, each from a port of its own.
    fn flood(&mut self, script: &mut Script<'_>) {
        let mut from = self.peer(script);
        let Some(datagram) = self.datagram(script.byte() % 8 + 14, from, script) else { return };
        self.last = datagram;
        for port in 0..FLOOD as u16 {
            from.addr.set_port(20_000 + port);
            self.deliver(from, 1);
        }
    }

    /// Hands over what is under way between the server and the honest client, or loses it.
    fn carry(&mut self, script: &mut Script<'_>) {
        for _ in 0..1 + script.byte() % 16 {
            let fate = script.byte();
            if let Some((datagram, times)) = self.line.next_up(fate) {
                self.last = datagram;
                self.deliver(self.home, times);
                self.settle();
            }
            if let Some(datagram) = self.line.next_down(fate) {
                self.client.handle_datagram(self.now, self.us, &datagram);
                self.settle();
            }
        }
    }

    /// Hands the last datagram in, once or more often before anything is sent.
    fn deliver(&mut self, from: Peer, times: usize) {
        let datagram = std::mem::take(&mut self.last);
        self.look_for_proof(from, &datagram);
        for _ in 0..times {
            self.ledger.came(from, datagram.len());
            let received = self.server.handle_datagram(self.now, from, &datagram);
            if let ServerReceived::Unknown { session, header } = received {
                assert_eq!(self.server.peer(session), Some(from));
                assert!(self.server.name(session).is_some() && header.packet_type().0 > 3);
            }
        }
        self.last = datagram;
    }

    /// Whoever names a number that went to an address has seen what was sent there.
    fn look_for_proof(&mut self, from: Peer, datagram: &[u8]) {
        let Ok(header) = HeaderView::parse(datagram) else { return };
        let latest = header.ack().latest().get();
        if self.puppets.get(&from).is_some_and(|puppet| puppet.told.contains(&latest)) {
            self.ledger.prove(from);
        }
    }

    fn settle(&mut self) {
        self.server.handle_timeout(self.now);
        self.follow();
        let mut buf = [0; DATAGRAM];
        let mut count = 0;
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut buf) {
            count += 1;
            assert!(count <= AT_ONCE, "sending does not come to rest");
            self.read(transmit.to, &buf[..transmit.len]);
        }
        if let Some(due) = self.server.poll_timeout() {
            assert!(due > self.now, "what was due is done");
        }
        self.check_players();
        self.settle_client();
    }

    fn follow(&mut self) {
        while let Some(event) = self.server.poll_event() {
            match event {
                ServerEvent::Login { session, peer, name } => {
                    assert!(self.ledger.is_proven(peer), "{peer} plays, and has proven nothing");
                    let before = self.players.insert(session, (peer, name));
                    assert_eq!(before, None, "who plays has left before it plays anew");
                    if !self.is_slow {
                        self.admit(session, "default");
                    }
                }
                ServerEvent::Left { session, peer, name, .. } => {
                    assert_eq!(self.players.remove(&session), Some((peer, name)));
                }
                other => panic!("nobody knows {other:?}"),
            }
        }
    }

    fn read(&mut self, to: Peer, datagram: &[u8]) {
        self.ledger.went(to, datagram.len());
        let packet = Packet::parse(datagram).expect("a server writes what can be read");
        match packet {
            Packet::Ping(_) | Packet::Part(_) => {}
            Packet::Join(_) => assert!(self.ledger.is_proven(to), "a world for a stranger"),
            other => panic!("a server does not send {other}"),
        }
        let puppet = self.puppets.entry(to).or_default();
        let seq = packet.header().seq();
        puppet.told.insert(seq.get());
        puppet.latest = Some(seq);
        if to == self.home {
            self.line.push_down(datagram);
        }
    }

    fn check_players(&self) {
        assert_eq!(self.server.players(), self.players.len());
        assert!(self.players.len() <= self.max_players && self.server.guests() <= MAX_GUESTS);
        let names: BTreeSet<_> = self.players.values().map(|(_, name)| *name.field()).collect();
        let addresses: BTreeSet<_> = self.players.values().map(|(peer, _)| *peer).collect();
        assert!(names.len() == self.players.len() && addresses.len() == names.len(), "one each");
        for (id, (peer, name)) in &self.players {
            assert_eq!((self.server.peer(*id), self.server.name(*id)), (Some(*peer), Some(*name)));
        }
    }

    fn settle_client(&mut self) {
        self.client.handle_timeout(self.now);
        while let Some(event) = self.client.poll_event() {
            let is_over = matches!(self.client.status(), ClientStatus::Ended(_));
            assert!(is_over || !matches!(event, ClientEvent::Ended(_)));
        }
        let mut buf = [0; DATAGRAM];
        let mut count = 0;
        while let Some(len) = self.client.poll_transmit(self.now, &mut buf) {
            count += 1;
            // A ping and a Login, or a Part.
            assert!(count <= 2, "a client does not come to rest");
            Packet::parse(&buf[..len]).expect("a client writes what can be read");
            self.line.push_up(&buf[..len]);
        }
        if let Some(due) = self.client.poll_timeout() {
            assert!(due > self.now, "a client's timer is in the future");
        }
    }

    /// A server that shuts down says what it has to say, and then nothing.
    fn close(&mut self) {
        self.server.shut_down(self.now);
        self.settle();
        // Three Parts, 20 ms apart: the second and the third are left.
        for _ in 0..2 {
            self.now += PART_GAP;
            self.settle();
        }
        assert!(self.server.is_drained() && self.server.players() == 0);
        assert_eq!(self.server.poll_timeout(), None);
    }
}
