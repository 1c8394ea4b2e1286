//! A script of datagrams, from several addresses, into a server of ferravex and an honest client.

use std::collections::{BTreeMap, BTreeSet};

use caves_link::time::Instant;
use caves_session::ferravex::{
    Client, ClientConfig, ClientEvent, ClientReceived, Controls, EVENTS_PENDING, SESSION_TIMEOUT,
    Server, ServerConfig, ServerEvent, ServerReceived, SessionId,
};
use caves_session::{Peer, SplitMix};
use caves_wire::ferravex::{
    Cookie, EventAck, EventSequence, Hello, Input, InputFrame, InputSequence, MAX_FRAMES, Nonce,
    Packet, Player, PlayerId, Tick,
};

use super::ledger::{ANSWERS, FLOOD, Ledger, Line, STEPS, limits, peers, remember};
use super::script::{START, Script, written};

const DATAGRAM: usize = 1200;
/// Sessions from one address that is not loopback.
const PER_ADDRESS: usize = 2;

/// Reads the bytes as steps: datagrams valid, changed and raw, waits, and what the layers above do.
///
/// After each step both ends come to rest; no unproven address was sent more than came from it.
pub fn ferravex_session(data: &[u8]) {
    let mut script = Script::new(data);
    let mut site = Site::new(script.byte());
    for _ in 0..STEPS {
        let Some(step) = script.step() else { break };
        site.take_step(step, &mut script);
    }
}

struct Site {
    server: Server,
    client: Client,
    home: Peer,
    max_players: usize,
    now: Instant,
    tick: Tick,
    peers: Vec<Peer>,
    ledger: Ledger,
    line: Line,
    /// What Welcomes told, and to whom.
    cookies: Vec<(Peer, Cookie)>,
    told: BTreeSet<Peer>,
    events: Vec<EventSequence>,
    last: Vec<u8>,
    flooded: bool,
    /// The newest frame of each session.
    newest: BTreeMap<SessionId, InputSequence>,
    /// The next event of the client.
    next_event: EventSequence,
}

impl Site {
    fn new(kind: u8) -> Self {
        let max_players = 1 + usize::from(kind % 4);
        let config = ServerConfig {
            max_players,
            sessions_per_address: PER_ADDRESS,
            strangers: limits(kind),
            ..ServerConfig::default()
        };
        let first_input = InputSequence::new(u32::from(kind).wrapping_sub(3));
        let client = ClientConfig { first_input, ..ClientConfig::default() };
        let peers = peers();
        Self {
            server: Server::new(config, Box::new(SplitMix::new(kind.into())), START),
            client: Client::new(client, Box::new(SplitMix::new(99)), START),
            home: peers[peers.len() - 1],
            max_players,
            now: START,
            tick: Tick::new(u32::MAX - 2),
            peers,
            ledger: Ledger::default(),
            line: Line::default(),
            cookies: Vec::new(),
            told: BTreeSet::new(),
            events: Vec::new(),
            last: Vec::new(),
            flooded: false,
            newest: BTreeMap::new(),
            next_event: 0,
        }
    }

    fn take_step(&mut self, step: u8, script: &mut Script<'_>) {
        match step & 31 {
            0 => self.now += script.wait(),
            1 => {
                let due = self.server.poll_timeout().into_iter().chain(self.client.poll_timeout());
                self.now = due.min().map_or(self.now, |due| due.max(self.now));
            }
            2 | 3 => self.send_snapshots(script),
            4 => self.send_events(script),
            5 => {
                if let Some(id) = self.some_session(script) {
                    assert!(self.server.end(id) && !self.server.end(id));
                }
            }
            6 if !self.flooded => {
                self.flooded = true;
                let from = self.peer(script);
                self.deliver(from, FLOOD);
            }
            7 => self.push_inputs(script),
            8..=11 => self.carry(script),
            12 => {
                let datagram = self.line.to_client(script);
                self.hand_to_client(&datagram);
            }
            13 if script.byte() == 0xA5 => self.client.leave(),
            number => {
                let from = self.peer(script);
                if let Some(mut datagram) = self.datagram(number, from, script) {
                    script.mutate(&mut datagram);
                    self.last = datagram;
                    self.deliver(from, 1);
                }
            }
        }
        self.settle();
    }

    fn peer(&mut self, script: &mut Script<'_>) -> Peer {
        self.peers[usize::from(script.byte()) % self.peers.len()]
    }

    fn some_session(&mut self, script: &mut Script<'_>) -> Option<SessionId> {
        let all: Vec<_> = self.server.sessions().map(|(id, _)| id).collect();
        script.pick(&all)
    }

    fn datagram(&mut self, number: u8, from: Peer, script: &mut Script<'_>) -> Option<Vec<u8>> {
        match number {
            14..=19 => {
                let nonce = Nonce((script.byte() % 4).into());
                written(|buf| Hello { nonce }.emit(buf))
            }
            20..=25 => {
                let session = self.cookie(from, script);
                let first = script.byte().into();
                let count = 1 + usize::from(script.byte()) % MAX_FRAMES;
                let far = if script.byte() == 0xA5 { script.u32() } else { 0 };
                let frames: Vec<_> = (0..count as u32)
                    .map(|place| InputFrame {
                        sequence: InputSequence::new(
                            u32::wrapping_add(first, far).wrapping_sub(9).wrapping_add(place),
                        ),
                        move_x: 0.5,
                        move_y: -1.0,
                        yaw: 3.0,
                        pitch: 0.0,
                        buttons: 1,
                    })
                    .collect();
                written(|buf| Input { session, frames: &frames }.emit(buf))
            }
            26 | 27 => {
                let session = self.cookie(from, script);
                let sent = script.pick(&self.events);
                let sequence = sent.unwrap_or(script.byte().into());
                written(|buf| EventAck { session, sequence }.emit(buf))
            }
            28 | 29 => Some(self.last.clone()),
            _ => {
                let len = usize::from(script.u16()) % (DATAGRAM + 2);
                Some(script.bytes(len).to_vec())
            }
        }
    }

    /// A cookie that opens this peer's session, another's, or nothing.
    fn cookie(&self, from: Peer, script: &mut Script<'_>) -> Cookie {
        let choice = script.byte();
        let own = self.cookies.iter().rev().find(|(peer, _)| *peer == from);
        let told = match choice {
            0..192 => own.copied(),
            _ => script.pick(&self.cookies),
        };
        told.map_or(Cookie::new(1).expect("not zero"), |(_, cookie)| cookie)
    }

    fn send_snapshots(&mut self, script: &mut Script<'_>) {
        self.tick = self.tick.next();
        self.server.set_tick(self.tick);
        let player = |id: u8| Player {
            id: PlayerId(id),
            position: [1.0; 3],
            velocity: [0.0; 3],
            yaw: 1.0,
            health: 100,
        };
        let players: Vec<_> = (0..script.byte() % 40).map(player).collect();
        let all: Vec<_> = self.server.sessions().map(|(id, _)| id).collect();
        for id in all {
            let taken = self.server.send_snapshot(self.now, id, self.tick, &players);
            let again = self.server.send_snapshot(self.now, id, self.tick, &players);
            assert!(taken.is_err() || again.is_err(), "a tick is told once");
        }
    }

    fn send_events(&mut self, script: &mut Script<'_>) {
        let Some(id) = self.some_session(script) else { return };
        let (times, payload) = (1 + usize::from(script.byte()) * 2, vec![7; script.u16().into()]);
        for _ in 0..times {
            if let Ok(sequence) = self.server.send_event(self.now, id, &payload) {
                remember(&mut self.events, sequence);
            }
        }
    }

    fn push_inputs(&mut self, script: &mut Script<'_>) {
        let controls = Controls { yaw: f32::from(script.byte()), ..Controls::default() };
        let times = usize::from(script.byte() % 16);
        let taken = (0..times).filter(|_| self.client.push_input(self.now, controls).is_ok());
        assert!(taken.count() <= MAX_FRAMES, "no frame is passed over");
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
                self.hand_to_client(&datagram);
                self.settle();
            }
        }
    }

    fn hand_to_client(&mut self, datagram: &[u8]) {
        let before = self.client.tick();
        if let ClientReceived::Snapshot(view) = self.client.handle_datagram(self.now, datagram) {
            assert!(before.is_none_or(|before| view.tick().is_newer_than(before)));
        }
    }

    /// Hands the last datagram in, once or more often before anything is sent.
    fn deliver(&mut self, from: Peer, times: usize) {
        let datagram = std::mem::take(&mut self.last);
        for _ in 0..times {
            self.ledger.came(from, datagram.len());
            let received = self.server.handle_datagram(self.now, from, &datagram);
            if let ServerReceived::Input { session, frames } = received {
                let peer = self.server.session(session).map(|view| view.peer());
                assert_eq!(peer, Some(from), "a session speaks from its own address alone");
                assert!((1..=MAX_FRAMES).contains(&frames.iter().len()));
                for frame in frames.iter() {
                    let last = self.newest.insert(session, frame.sequence);
                    assert!(last.is_none_or(|last| frame.sequence.is_newer_than(last)));
                }
            }
        }
        self.last = datagram;
    }

    fn settle(&mut self) {
        self.server.handle_timeout(self.now);
        self.follow();
        let mut buf = [0; DATAGRAM];
        let at_once = ANSWERS + 4 * (1 + EVENTS_PENDING);
        let mut count = 0;
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut buf) {
            count += 1;
            assert!(count <= at_once, "sending does not come to rest");
            self.read(transmit.to, &buf[..transmit.len]);
        }
        if let Some(due) = self.server.poll_timeout() {
            assert!(due > self.now, "what was due is done");
        }
        self.check_sessions();
        self.settle_client();
    }

    fn follow(&mut self) {
        while let Some(event) = self.server.poll_event() {
            if let ServerEvent::Joined { peer, .. } = event {
                assert!(self.told.contains(&peer), "a session without a Welcome");
                self.ledger.prove(peer);
            }
        }
    }

    fn read(&mut self, to: Peer, datagram: &[u8]) {
        self.ledger.went(to, datagram.len());
        match Packet::parse(datagram).expect("a server writes what can be read") {
            Packet::Welcome(view) => {
                remember(&mut self.cookies, (to, view.session()));
                self.told.insert(to);
            }
            Packet::Snapshot(_) | Packet::Event(_) => {
                assert!(self.ledger.is_proven(to), "a session's packet for a stranger");
            }
            other => panic!("a server does not send {other}"),
        }
        if to == self.home {
            self.line.push_down(datagram);
        }
    }

    fn check_sessions(&self) {
        let all: Vec<_> = self.server.sessions().map(|(_, view)| view).collect();
        assert!(all.len() <= self.max_players);
        let addresses: BTreeSet<_> = all.iter().map(|view| view.peer()).collect();
        let players: BTreeSet<_> = all.iter().map(|view| view.player().0).collect();
        assert!(addresses.len() == all.len() && players.len() == all.len(), "one each");
        for view in &all {
            assert!(view.silence(self.now) < SESSION_TIMEOUT, "silence ends a session");
            assert!(view.events_pending() <= EVENTS_PENDING);
            let ip = view.peer().ip();
            let here = all.iter().filter(|other| other.peer().ip() == ip).count();
            assert!(ip.is_loopback() || here <= PER_ADDRESS, "{here} sessions from {ip}");
        }
    }

    fn settle_client(&mut self) {
        self.client.handle_timeout(self.now);
        while let Some(event) = self.client.poll_event() {
            if let ClientEvent::Event { sequence, .. } = event {
                assert_eq!(sequence, self.next_event, "each once and in order");
                self.next_event += 1;
            }
        }
        let mut buf = [0; DATAGRAM];
        let mut count = 0;
        while let Some(len) = self.client.poll_transmit(self.now, &mut buf) {
            count += 1;
            // 256 acknowledgements and what it has to say itself.
            assert!(count <= 256 + 2, "a client does not come to rest");
            let packet = Packet::parse(&buf[..len]).expect("a client writes what can be read");
            assert!(packet.kind().is_from_client());
            self.line.push_up(&buf[..len]);
        }
        if let Some(due) = self.client.poll_timeout() {
            assert!(due > self.now, "a client's timer is in the future");
        }
    }
}
