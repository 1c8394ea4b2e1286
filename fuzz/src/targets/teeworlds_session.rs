//! A script of datagrams, from several addresses, into a server of Teeworlds and an honest client.

use std::collections::{BTreeMap, BTreeSet};

use caves_link::time::Instant;
use caves_session::teeworlds::{
    Client, ClientConfig, ClientEvent, MAX_DATAGRAM, MAX_UNACKED, MAX_UNACKED_BYTES, MAX_WAITING,
    Server, ServerConfig, ServerEvent, ServerReceived, SessionId, SessionView, TIMEOUT,
};
use caves_session::{Peer, SplitMix, StrangerLimits};
use caves_wire::teeworlds::{
    Chunk, ChunkBuilder, Connless, Control, ControlMessage, Envelope, Header, Packet, Scratch,
    Sequence, Token, Tokens,
};

use super::ledger::{ANSWERS, FLOOD, Ledger, Line, STEPS, limits, peers};
use super::script::{START, Script};

/// Sessions from one address that is not loopback.
const PER_ADDRESS: usize = 2;
/// Answers, and of each session the packets that wait, one being filled, and a KEEPALIVE.
const AT_ONCE: usize = ANSWERS + 4 * (MAX_WAITING + 2);

/// Reads the bytes as steps: datagrams valid, changed and raw, waits, and what the layers above do.
///
/// After each step both ends come to rest; no unproven address was sent more than came from it.
pub fn teeworlds_session(data: &[u8]) {
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
    max_sessions: usize,
    without_tokens: bool,
    now: Instant,
    peers: Vec<Peer>,
    /// What a server with the same secret tells each of them.
    tokens: BTreeMap<Peer, Token>,
    ledger: Ledger,
    line: Line,
    sessions: BTreeMap<Peer, SessionId>,
    last: Vec<u8>,
    flooded: bool,
    /// What the client was told: at most that it is connected, and that it is over.
    told: usize,
    scratch: Scratch,
}

impl Site {
    fn new(kind: u8) -> Self {
        let max_sessions = 1 + usize::from(kind % 4);
        let without_tokens = kind & 16 != 0;
        let config = ServerConfig {
            max_sessions,
            sessions_per_address: PER_ADDRESS,
            without_tokens,
            strangers: limits(kind),
            ..ServerConfig::default()
        };
        let client = ClientConfig { tokens: kind & 32 == 0, ..ClientConfig::default() };
        let peers = peers();
        Self {
            server: Server::new(config, &mut SplitMix::new(kind.into()), START),
            client: Client::new(client, START),
            home: peers[peers.len() - 1],
            max_sessions,
            without_tokens,
            now: START,
            tokens: tokens(kind, &peers),
            peers,
            ledger: Ledger::default(),
            line: Line::default(),
            sessions: BTreeMap::new(),
            last: Vec::new(),
            flooded: false,
            told: 0,
            scratch: [0; _],
        }
    }

    fn take_step(&mut self, step: u8, script: &mut Script<'_>) {
        match step & 31 {
            0 => self.now += script.wait(),
            1 => {
                let due = self.server.poll_timeout().into_iter().chain(self.client.poll_timeout());
                self.now = due.min().map_or(self.now, |due| due.max(self.now));
            }
            2 | 3 => self.send(script),
            4 => {
                if let Some(id) = self.some_session(script) {
                    self.server.flush(id);
                }
            }
            5 => {
                if let Some(id) = self.some_session(script) {
                    self.server.close(id, &script.text());
                    assert_eq!(self.server.session(id), None);
                }
            }
            6 if !self.flooded => {
                self.flooded = true;
                let from = self.peer(script);
                self.deliver(from, FLOOD);
            }
            7 => self.send_to_server(script),
            8..=11 => self.carry(script),
            12 => {
                let datagram = self.line.to_client(script);
                self.client.handle_datagram(self.now, &datagram, &mut self.scratch);
            }
            13 if script.byte() == 0xA5 => self.client.close(&script.text()),
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

    fn some_session(&mut self, script: &mut Script<'_>) -> Option<SessionId> {
        let all: Vec<_> = self.server.sessions().map(|(id, _)| id).collect();
        script.pick(&all)
    }

    fn datagram(&mut self, number: u8, from: Peer, script: &mut Script<'_>) -> Option<Vec<u8>> {
        match number {
            14..=16 => {
                let token = (script.byte() < 192).then_some(Token::UNKNOWN);
                self.control(from, ControlMessage::Connect(token), None)
            }
            17..=19 => {
                let token = self.token(from, script);
                self.control(from, ControlMessage::Accept, token)
            }
            20..=24 => self.chunks(from, script),
            25 => {
                let token = self.token(from, script);
                let text = script.text();
                let message = match script.byte() {
                    0..128 => ControlMessage::KeepAlive,
                    128..192 => ControlMessage::close(&text),
                    id => ControlMessage::Unknown { id, payload: text.as_bytes() },
                };
                self.control(from, message, token)
            }
            26 => {
                let extra = (script.byte() < 128).then_some([1, 2, 3, 4]);
                let len = script.byte().into();
                let data = script.bytes(len);
                written_long(|buf| Connless { extra, data }.emit(buf))
            }
            27..=29 => Some(self.last.clone()),
            _ => {
                let len = usize::from(script.u16()) % (MAX_DATAGRAM + 2);
                Some(script.bytes(len).to_vec())
            }
        }
    }

    fn view(&self, from: Peer) -> Option<SessionView> {
        self.server.session(*self.sessions.get(&from)?)
    }

    fn control(
        &self,
        from: Peer,
        message: ControlMessage<'_>,
        token: Option<Token>,
    ) -> Option<Vec<u8>> {
        let ack = self.view(from).map_or(Sequence::new(0), |view| view.sent);
        written_long(|buf| Control { ack, resend: false, message, token }.emit(buf))
    }

    /// The right token, none, another one's, or any.
    fn token(&self, from: Peer, script: &mut Script<'_>) -> Option<Token> {
        match script.byte() {
            0..192 => self.tokens.get(&from).copied(),
            192..224 => None,
            224..240 => script.pick(&self.peers).and_then(|peer| self.tokens.get(&peer).copied()),
            _ => Some(Token(script.u32().to_le_bytes())),
        }
    }

    /// Chunks, of which the vital ones come next, again or too early.
    fn chunks(&self, from: Peer, script: &mut Script<'_>) -> Option<Vec<u8>> {
        let token = self.token(from, script);
        let view = self.view(from);
        let (sent, received) = view.map_or(Default::default(), |view| (view.sent, view.received));
        let flags = script.byte();
        let ack = match flags & 3 {
            0 | 1 => sent,
            2 => Sequence::new(sent.get().wrapping_sub(script.byte().into())),
            _ => Sequence::new(script.u16().into()),
        };
        let envelope = Envelope { ack, resend: flags & 4 != 0, token };
        let mut builder = ChunkBuilder::new();
        let mut next = match flags & 24 {
            0 | 8 => received.next(),
            16 => Sequence::new(received.get().wrapping_add(script.byte().into())),
            _ => Sequence::new(received.get().wrapping_sub(script.byte().into())),
        };
        for _ in 0..script.byte() % 20 {
            let len = script.byte().into();
            let data = script.bytes(len);
            let vital = (len & 3 != 3).then_some(next);
            if builder.push(&Chunk { vital, resend: flags & 32 != 0, data }).is_err() {
                break;
            }
            next = if vital.is_some() { next.next() } else { next };
        }
        written_long(|buf| builder.packet(envelope).emit(buf))
    }

    fn send(&mut self, script: &mut Script<'_>) {
        let Some(id) = self.some_session(script) else { return };
        let (vital, times) = (script.byte() & 1 == 0, 1 + 2 * usize::from(script.byte()));
        let data = vec![script.byte(); usize::from(script.u16()) % 1100];
        for _ in 0..times {
            let taken = self.server.send(self.now, id, vital, &data);
            assert!(taken.is_err() || data.len() <= 1023);
        }
        let waiting = self.server.session(id).map(|view| view.waiting);
        assert!(waiting.is_some_and(|waiting| waiting <= MAX_WAITING), "{waiting:?} packets wait");
    }

    fn send_to_server(&mut self, script: &mut Script<'_>) {
        let (vital, times) = (script.byte() & 1 == 0, script.byte());
        let data = vec![script.byte(); script.byte().into()];
        let taken = (0..times).filter(|_| self.client.send(self.now, vital, &data).is_ok()).count();
        assert!(taken == 0 || self.client.is_connected());
        if times & 1 == 0 {
            self.client.flush();
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
                self.client.handle_datagram(self.now, &datagram, &mut self.scratch);
                self.settle();
            }
        }
    }

    /// Hands the last datagram in, once or more often before anything is sent.
    fn deliver(&mut self, from: Peer, times: usize) {
        let datagram = std::mem::take(&mut self.last);
        if let Ok(packet) = Control::parse(&datagram, Tokens::With)
            && packet.message == ControlMessage::Accept
            && packet.token == self.tokens.get(&from).copied()
        {
            self.ledger.prove(from);
        }
        for _ in 0..times {
            self.ledger.came(from, datagram.len());
            let before: BTreeMap<_, _> =
                self.server.sessions().map(|(id, view)| (id, view.received)).collect();
            let received =
                self.server.handle_datagram(self.now, from, &datagram, &mut self.scratch);
            if let ServerReceived::Messages { session, messages } = received {
                let mut vital = 0;
                for message in messages {
                    assert!(message.data.len() <= 1023);
                    vital += u32::from(message.vital);
                }
                let after = self.server.session(session).map(|view| view.received);
                // Each vital message counts one on: none is passed over, none comes twice.
                let due = before.get(&session).map(|last| Sequence::new(last.get() + vital));
                assert_eq!(after, due, "{vital} vital messages");
            }
        }
        self.last = datagram;
    }

    fn settle(&mut self) {
        self.server.handle_timeout(self.now);
        self.follow();
        let mut buf = [0; MAX_DATAGRAM];
        let mut count = 0;
        while let Some(transmit) = self.server.poll_transmit(self.now, &mut buf) {
            count += 1;
            assert!(count <= AT_ONCE, "sending does not come to rest");
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
            match event {
                ServerEvent::Joined { session, peer } => {
                    // Without tokens a session is all the proof there is.
                    assert!(self.without_tokens || self.ledger.is_proven(peer));
                    self.ledger.prove(peer);
                    assert_eq!(self.sessions.insert(peer, session), None);
                }
                ServerEvent::Rejoined { session } => {
                    assert!(self.sessions.values().any(|id| *id == session));
                }
                ServerEvent::Left { session, peer, .. } => {
                    assert_eq!(self.sessions.remove(&peer), Some(session));
                }
                other => panic!("nobody knows {other:?}"),
            }
        }
    }

    fn read(&mut self, to: Peer, datagram: &[u8]) {
        self.ledger.went(to, datagram.len());
        let header = Header::parse(datagram).expect("a server writes headers");
        if header.control {
            Control::parse(datagram, Tokens::Guess).expect("a server writes what can be read");
        } else {
            assert!(self.ledger.is_proven(to), "chunks for a stranger");
            let packet = Packet::parse(datagram, Tokens::Without, &mut self.scratch);
            let Ok(Packet::Chunks(packet)) = packet else { panic!("not chunks: {datagram:?}") };
            let mut chunks = packet.chunks();
            let count = chunks.by_ref().count();
            assert!(count == usize::from(header.num_chunks) && chunks.fault().is_none());
        }
        if to == self.home {
            self.line.push_down(datagram);
        }
    }

    fn check_sessions(&self) {
        let ids: BTreeSet<_> = self.server.sessions().map(|(id, _)| id).collect();
        assert_eq!(ids, self.sessions.values().copied().collect());
        assert!(ids.len() <= self.max_sessions && self.server.len() == ids.len());
        for (_, view) in self.server.sessions() {
            self.check_view(view);
        }
        for peer in self.sessions.keys() {
            let here = self.sessions.keys().filter(|other| other.ip() == peer.ip()).count();
            assert!(peer.ip().is_loopback() || here <= PER_ADDRESS, "{here} sessions from {peer}");
        }
    }

    fn check_view(&self, view: SessionView) {
        assert!(view.unacked <= MAX_UNACKED && view.unacked_bytes <= MAX_UNACKED_BYTES);
        assert!(view.waiting <= MAX_WAITING);
        assert!(self.now.saturating_since(view.heard) <= TIMEOUT, "silence ends a session");
    }

    fn settle_client(&mut self) {
        self.client.handle_timeout(self.now);
        while let Some(event) = self.client.poll_event() {
            self.told += 1;
            assert!(self.told <= 2 && (self.told == 1 || event != ClientEvent::Connected));
        }
        let mut buf = [0; MAX_DATAGRAM];
        let mut count = 0;
        while let Some(len) = self.client.poll_transmit(self.now, &mut buf) {
            count += 1;
            assert!(count <= MAX_WAITING + 3, "a client does not come to rest");
            Header::parse(&buf[..len]).expect("a client writes headers");
            self.line.push_up(&buf[..len]);
        }
        if let Some(due) = self.client.poll_timeout() {
            assert!(due > self.now, "a client's timer is in the future");
        }
        if let Some(view) = self.client.view() {
            self.check_view(view);
        }
    }
}

/// Asks a server of the same secret for the token of each address.
fn tokens(kind: u8, peers: &[Peer]) -> BTreeMap<Peer, Token> {
    let strangers = StrangerLimits { burst: 100, ..StrangerLimits::default() };
    let config = ServerConfig { strangers, ..ServerConfig::default() };
    let mut server = Server::new(config, &mut SplitMix::new(kind.into()), START);
    let mut told = BTreeMap::new();
    let connect = ControlMessage::Connect(Some(Token::UNKNOWN));
    let ask = Control { ack: Sequence::new(0), resend: false, message: connect, token: None };
    let (mut buf, mut scratch) = ([0; MAX_DATAGRAM], [0; _]);
    for peer in peers {
        let len = ask.emit(&mut buf).expect("room");
        server.handle_datagram(START, *peer, &buf[..len], &mut scratch);
        let sent = server.poll_transmit(START, &mut buf).expect("an answer");
        let answer = Control::parse(&buf[..sent.len], Tokens::Guess).expect("a packet");
        let ControlMessage::ConnectAccept(Some(token)) = answer.message else {
            panic!("no token for {peer}: {answer:?}");
        };
        told.insert(*peer, token);
    }
    told
}

/// As `written`, with the room that Teeworlds has.
fn written_long<E>(emit: impl FnOnce(&mut [u8]) -> Result<usize, E>) -> Option<Vec<u8>> {
    let mut buf = vec![0; MAX_DATAGRAM];
    let len = emit(&mut buf).ok()?;
    buf.truncate(len);
    Some(buf)
}
