//! A script of datagrams, from several addresses, into a server's sessions.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use caves_link::time::Instant;
use caves_session::caves::{
    Ban, BanTarget, ClientEntry, LEAVE_GAP, Server, ServerConfig, ServerEvent, ServerReceived,
    SessionId, fold_name,
};
use caves_session::{IpNet, Peer, SplitMix, StrangerLimits};
use caves_wire::caves::{
    ActionPacket, ChunkEntry, ClientType, Echo, EntityId, EventAck, EventKind, HeaderView, Hello,
    InfoRequest, Join, Leave, LeaveReason, Nonce, Packet, Query, Sequence, Tick, Token, tag,
};
use caves_wire::tlv::TlvWriter;
use caves_wire::{MAX_DATAGRAM, text};

use super::script::{START, Script, written};

/// Few, so that the table is full at times.
const MAX_PLAYERS: usize = 4;
/// Steps of one script: what comes after is not looked at, to keep one run short.
const STEPS: usize = 300;
/// Datagrams of one flood: more than answers can wait.
const FLOOD: usize = 1100;
/// Answers that wait (1024), goodbyes and events of all sessions: no run sends more at one moment.
const AT_ONCE: usize = 1024 + STEPS + 8 * MAX_PLAYERS;
/// Kept of what the server told: cookies, tokens, events to acknowledge.
const REMEMBERED: usize = 32;

/// Silence that ends a session.
const TIMEOUT: Duration = Duration::from_secs(10);

const REGISTERED: Token = Token(1 << 32 | 7);

/// Reads the bytes as steps: datagrams valid, changed and raw, waits, and what the layer above does.
///
/// After each step the server comes to rest; no unproven address was sent more than came from it.
pub fn server_input(data: &[u8]) {
    let mut script = Script::new(data);
    let mut site = Site::new(script.byte());
    for _ in 0..STEPS {
        let Some(step) = script.step() else { break };
        site.take_step(step, &mut script);
    }
    site.close();
}

struct Site {
    server: Server,
    now: Instant,
    tick: Tick,
    peers: Vec<Peer>,
    cookies: Vec<(Peer, Nonce, [u8; 16])>,
    tokens: Vec<(Peer, Token)>,
    events: Vec<(Peer, Sequence)>,
    last_join: Vec<u8>,
    last: Vec<u8>,
    next_entity: u32,
    flooded: bool,
    handed_in: u64,
    /// Those that held a session at some time: goodbyes go to no others.
    ever: BTreeSet<Peer>,
    /// Those that hold one.
    here: BTreeSet<Peer>,
    /// Those that hold one, or did before the last step.
    proven: BTreeSet<Peer>,
    executed: BTreeMap<SessionId, Sequence>,
}

impl Site {
    fn new(kind: u8) -> Self {
        let server = Server::new(config(kind), Box::new(SplitMix::new(kind.into())), START);
        Self {
            server,
            now: START,
            tick: Tick::new(u32::MAX - 2),
            peers: peers(),
            cookies: Vec::new(),
            tokens: Vec::new(),
            events: Vec::new(),
            last_join: Vec::new(),
            last: Vec::new(),
            next_entity: 1,
            flooded: false,
            handed_in: 0,
            ever: BTreeSet::new(),
            here: BTreeSet::new(),
            proven: BTreeSet::new(),
            executed: BTreeMap::new(),
        }
    }

    fn take_step(&mut self, step: u8, script: &mut Script<'_>) {
        // The upper half of the numbers are datagrams: they are what matters most.
        match step & 31 {
            0 => {
                self.now += script.wait();
                self.settle(None);
            }
            1 => {
                self.now = self.server.poll_timeout().map_or(self.now, |due| due.max(self.now));
                self.settle(None);
            }
            2 => self.tick(),
            3 => self.send_event(script),
            4 => {
                if let Some(id) = self.some_session(script) {
                    self.server.end(self.now, id, LeaveReason(script.byte() % 9));
                    self.settle(None);
                }
            }
            // Rare: little is let in afterwards.
            5 if script.byte() == 0xA5 => {
                self.server.shut_down(self.now);
                assert_eq!(self.server.len(), 0);
                self.settle(None);
            }
            6 if !self.flooded => {
                self.flooded = true;
                let from = self.peer(script);
                self.deliver(from, FLOOD);
            }
            number => {
                let from = self.peer(script);
                if let Some(mut datagram) = self.datagram(number, from, script) {
                    script.mutate(&mut datagram);
                    self.last = datagram;
                    self.deliver(from, 1);
                }
            }
        }
    }

    fn peer(&mut self, script: &mut Script<'_>) -> Peer {
        self.peers[usize::from(script.byte()) % self.peers.len()]
    }

    fn some_session(&mut self, script: &mut Script<'_>) -> Option<SessionId> {
        let all: Vec<_> = self.server.sessions().map(|(id, _)| id).collect();
        script.pick(&all)
    }

    fn datagram(&mut self, number: u8, from: Peer, script: &mut Script<'_>) -> Option<Vec<u8>> {
        let client_type = ClientType((script.byte() % 4).into());
        match number {
            7..=9 => {
                let nonce = Nonce((script.byte() % 4).into());
                written(|buf| Hello { client_type, nonce }.emit(buf))
            }
            10..=15 => self.join(client_type, from, script),
            16..=20 => {
                let (token, sequence) = (self.token(from, script), Sequence::new(script.u32()));
                let mut cache = [ChunkEntry::default(); 9];
                cache[0] = script.chunk();
                let action = script.action();
                let packet = ActionPacket { client_type, token, sequence, cache, action };
                written(|buf| packet.emit(buf))
            }
            21 => {
                let (token, entity) = (self.token(from, script), EntityId(script.u32()));
                written(|buf| Query { client_type, token, entity }.emit(buf))
            }
            22 => written(|buf| Echo::ping(client_type, script.u64()).emit(buf)),
            23 => {
                let (token, reason) = (self.token(from, script), LeaveReason(script.byte()));
                written(|buf| Leave { client_type, token, reason }.emit(buf))
            }
            24 | 25 => {
                let token = self.token(from, script);
                let sent = script.pick(&self.events).map(|(_, sequence)| sequence);
                let sequence = sent.unwrap_or(Sequence::new(script.u32()));
                written(|buf| EventAck { client_type, token, sequence }.emit(buf))
            }
            26 => {
                let nonce = Nonce(script.u64());
                written(|buf| InfoRequest { client_type, nonce }.emit(buf))
            }
            27 | 28 => Some(self.last.clone()),
            29 => Some(self.last_join.clone()),
            _ => {
                let len = usize::from(script.u16()) % (MAX_DATAGRAM + 2);
                Some(script.bytes(len).to_vec())
            }
        }
    }

    /// A token that opens this peer's session, another's, a registered one, or nothing.
    fn token(&self, from: Peer, script: &mut Script<'_>) -> Token {
        let choice = script.byte();
        let own = self.tokens.iter().rev().find(|(peer, _)| *peer == from);
        match choice {
            0..128 => own.map_or(REGISTERED, |(_, token)| *token),
            128..192 => script.pick(&self.tokens).map_or(Token(0), |(_, token)| token),
            192..240 => REGISTERED,
            _ => Token(choice.into()),
        }
    }

    fn join(
        &mut self,
        client_type: ClientType,
        from: Peer,
        script: &mut Script<'_>,
    ) -> Option<Vec<u8>> {
        let (flags, nonce) = (script.byte(), Nonce((script.byte() % 4).into()));
        let known = self.cookies.iter().rev().find(|(to, of, _)| (*to, *of) == (from, nonce));
        let cookie = known.map_or([flags; 16], |(_, _, cookie)| *cookie);
        let mut block = [0; MAX_DATAGRAM];
        let mut tlv = TlvWriter::new(&mut block);
        if flags & 1 != 0 {
            let names = ["Ada", "ADA", "Robo", "Grimm", " x", "Zo\u{eb}", "", "a\u{202e}b"];
            match script.byte() {
                own if own & 0x80 != 0 => tlv.put(tag::NAME, script.text().as_bytes()).ok()?,
                one => tlv.put(tag::NAME, names[usize::from(one) % names.len()].as_bytes()).ok()?,
            }
        }
        if flags & 2 != 0 {
            tlv.put(tag::FEATURES, &u32::from(script.byte()).to_le_bytes()).ok()?;
        }
        if flags & 4 != 0 {
            tlv.put(tag::TOKEN, &self.token(from, script).0.to_le_bytes()).ok()?;
        }
        if flags & 8 != 0 {
            tlv.put(script.byte(), script.bytes(20)).ok()?;
        }
        let join = Join { client_type, nonce, cookie, meta: tlv.finish() };
        self.last_join = written(|buf| join.emit(buf))?;
        Some(self.last_join.clone())
    }

    /// What the layer above does in a tick: each session executes at most one action (R19).
    fn tick(&mut self) {
        self.tick = self.tick.next();
        self.server.set_tick(self.tick);
        let all: Vec<_> = self.server.sessions().map(|(id, _)| id).collect();
        for id in all {
            let Some((sequence, _)) = self.server.next_action(id) else { continue };
            let executed = self.server.session(id).and_then(|view| view.executed());
            assert_eq!(executed.map(|(last, _)| last), Some(sequence));
            let before = self.executed.insert(id, sequence);
            assert_ne!(before, Some(sequence), "{id:?} executes an action twice");
        }
        self.settle(None);
    }

    fn send_event(&mut self, script: &mut Script<'_>) {
        let Some(id) = self.some_session(script) else { return };
        let times = 1 + usize::from(script.byte());
        let text = "\u{e9}".repeat(usize::from(script.u16()) % 600);
        let kind = EventKind(script.byte());
        let sent =
            (0..times).filter(|_| self.server.send_event(id, kind, EntityId(1), &text)).count();
        // 8 under way and 256 behind them (section 2, events).
        assert!(sent <= 264, "{sent} events are kept");
        self.settle(None);
    }

    /// Hands the last datagram in, once or more often before anything is sent.
    fn deliver(&mut self, from: Peer, times: usize) {
        let datagram = std::mem::take(&mut self.last);
        for _ in 0..times {
            let received = self.server.handle_datagram(self.now, from, &datagram);
            if let ServerReceived::Action { session, .. } | ServerReceived::Query { session, .. } =
                received
            {
                let peer = self.server.session(session).map(|view| view.peer());
                assert_eq!(peer, Some(from), "a session speaks from its own address alone");
            }
        }
        self.handed_in += times as u64;
        assert_eq!(self.server.counters().received, self.handed_in);
        self.settle(Some((from, times * datagram.len())));
        self.last = datagram;
    }

    /// Does what the caller of a server does after each step, and checks what is promised. `came` are
    /// the bytes that were handed in, and from where.
    fn settle(&mut self, came: Option<(Peer, usize)>) {
        self.server.handle_timeout(self.now);
        self.follow();
        let mut sent = BTreeMap::new();
        let mut buf = [0; MAX_DATAGRAM];
        let mut count = 0;
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut buf) {
            count += 1;
            assert!(count <= AT_ONCE, "sending does not come to rest");
            self.read(transmit.to, &buf[..transmit.len], &mut sent);
        }
        let room = |to: Peer| came.filter(|(from, _)| *from == to).map_or(0, |(_, len)| len);
        for (to, bytes) in sent {
            let proven = self.proven.contains(&to);
            assert!(proven || bytes <= room(to), "{bytes} bytes for {} to {to}", room(to));
        }
        if let Some(due) = self.server.poll_timeout() {
            assert!(due > self.now, "what was due is done");
        }
        self.check_sessions();
    }

    /// Lets those in whose sessions began; their addresses have proven themselves.
    fn follow(&mut self) {
        // Those of before still count for what is sent now.
        self.proven = std::mem::take(&mut self.here);
        while let Some(event) = self.server.poll_event() {
            match event {
                ServerEvent::Joined(joined) => {
                    let entity = joined.takes_over.unwrap_or_else(|| {
                        self.next_entity += 1;
                        EntityId(self.next_entity)
                    });
                    self.server.admit(self.now, joined.session, entity);
                    self.ever.insert(joined.peer);
                }
                ServerEvent::Moved { peer, .. } => {
                    self.ever.insert(peer);
                }
                ServerEvent::Refused { name, .. } => assert!(text::is_clean(&name)),
                _ => {}
            }
        }
        self.here = self.server.sessions().map(|(_, view)| view.peer()).collect();
        self.proven.extend(&self.here);
    }

    /// A datagram of the server: it is read by its own rules, and what it tells is remembered.
    fn read(&mut self, to: Peer, datagram: &[u8], sent: &mut BTreeMap<Peer, usize>) {
        let header = HeaderView::parse(datagram).expect("a server writes headers");
        assert_eq!(header.client_type(), ClientType::OFFICIAL);
        let packet = Packet::parse(datagram).expect("a server writes what can be read");
        if let Packet::Leave(_) = packet {
            assert!(self.ever.contains(&to), "goodbye to {to}, which was never here");
            return;
        }
        *sent.entry(to).or_default() += datagram.len();
        match packet {
            Packet::Challenge(view) => {
                remember(&mut self.cookies, (to, view.nonce(), view.cookie()));
            }
            Packet::Welcome(view) => {
                assert!(self.proven.contains(&to) && view.token().0 != 0 && view.player().0 != 0);
                remember(&mut self.tokens, (to, view.token()));
            }
            Packet::Event(view) => {
                assert!(self.proven.contains(&to));
                remember(&mut self.events, (to, view.sequence()));
            }
            Packet::Pong(_) | Packet::Refuse(_) | Packet::Info(_) => {}
            other => panic!("a server's sessions do not send {other}"),
        }
    }

    fn check_sessions(&self) {
        let all: Vec<_> = self.server.sessions().map(|(_, view)| view).collect();
        assert!(all.len() <= MAX_PLAYERS && all.len() == self.server.len());
        let distinct = |count: usize, of: &str| assert_eq!(count, all.len(), "one {of} each");
        distinct(all.iter().map(|view| view.peer()).collect::<BTreeSet<_>>().len(), "address");
        distinct(all.iter().map(|view| view.entity().0).collect::<BTreeSet<_>>().len(), "entity");
        let names: BTreeSet<_> = all.iter().map(|view| fold_name(view.name())).collect();
        distinct(names.len(), "name");
        for view in all {
            assert!(view.entity().0 != 0 && !view.name().is_empty());
            assert!(text::is_clean(view.name()));
            assert!(view.silence(self.now) < TIMEOUT, "silence ends a session");
        }
    }

    /// A server that shuts down says what it has to say, and then nothing.
    fn close(&mut self) {
        self.server.shut_down(self.now);
        self.settle(None);
        // Three Leaves, 20 ms apart (section 2): the second and the third are left.
        for _ in 0..2 {
            self.now += LEAVE_GAP;
            self.settle(None);
        }
        assert!(self.server.is_drained() && self.server.is_empty());
        assert_eq!(self.server.poll_timeout(), None);
    }
}

fn remember<T>(all: &mut Vec<T>, new: T) {
    if all.len() >= REMEMBERED {
        all.remove(0);
    }
    all.push(new);
}

/// Loopback, which has no limit per address, and others, which have.
fn peers() -> Vec<Peer> {
    let addresses = [
        "127.0.0.1:5000",
        "127.0.0.1:5001",
        "127.0.0.2:5000",
        "[::1]:5000",
        "192.0.2.1:7",
        "192.0.2.1:8",
        "[2001:db8::1]:7",
        "[2001:db8::2]:7",
        "[::ffff:192.0.2.1]:9",
        "198.51.100.1:7",
    ];
    let parsed = addresses.iter().map(|address| address.parse::<SocketAddr>());
    parsed.map(|addr| Peer { socket: 0, addr: addr.expect("an address") }).collect()
}

fn config(kind: u8) -> ServerConfig {
    let net = |ip: [u8; 4], bits| IpNet::new_assert(IpAddr::from(ip), bits);
    let entry = ClientEntry {
        client_type: ClientType(1),
        name: None,
        allow: true,
        token: None,
        from: Vec::new(),
        tags: false,
    };
    ServerConfig {
        motd: "m".repeat(usize::from(kind) * 3),
        max_players: MAX_PLAYERS,
        open: kind & 1 == 1,
        timeout: TIMEOUT,
        strangers: StrangerLimits::default(),
        sessions_per_address: 2,
        clients: vec![
            entry.clone(),
            ClientEntry { client_type: ClientType(2), allow: false, ..entry.clone() },
            ClientEntry {
                client_type: ClientType(3),
                name: Some("Robo".into()),
                token: Some(REGISTERED),
                from: vec![net([127, 0, 0, 0], 8)],
                tags: true,
                ..entry
            },
        ],
        bans: vec![
            Ban { target: BanTarget::Address(net([198, 51, 100, 0], 24)), reason: "away".into() },
            // Longer than the shortest Join has room for: what is told of it has to be cut.
            Ban { target: BanTarget::Name("grimm".into()), reason: "no ".repeat(60) },
        ],
        ..ServerConfig::default()
    }
}
