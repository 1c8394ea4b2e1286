//! A script of a server's datagrams into a client's session.

use std::time::Duration;

use caves_link::time::Instant;
use caves_session::SplitMix;
use caves_session::caves::{
    Client, ClientConfig, ClientEnd, ClientEvent, ClientReceived, ClientStatus,
};
use caves_wire::bits::TILES;
use caves_wire::caves::{
    Challenge, Chunk, ChunkEntry, ClientType, Detail, Echo, Entity, EntityBuilder, EntityFlags,
    EntityId, Event, EventKind, Features, HeaderView, Leave, LeaveReason, Nonce, Packet, Refuse,
    RefuseReason, Sequence, State, Tick, Token, Welcome, tag,
};
use caves_wire::fnv::Fnv32;
use caves_wire::tlv::TlvWriter;
use caves_wire::{MAX_DATAGRAM, text};

use super::script::{START, Script, written};

/// Steps of one script.
const STEPS: usize = 300;
/// Acknowledgements that wait (64), questions (8), and one each of Hello or Join, Action, no-op, Ping,
/// Leave: no run sends more at one moment.
const AT_ONCE: usize = 64 + 8 + 5;
/// The window of events (256), questions that end (8), and one each of what a step can bring; a lost
/// session reports what was under way (16) and what waited (4).
const EVENTS_AT_ONCE: usize = 256 + 8 + 16 + 4 + 8;
/// Entities of a complete update: 8 packets of at most 66 bare entries.
const MAX_ENTITIES: usize = 8 * 66;

/// Reads the bytes as steps: datagrams valid, changed and raw, waits, and what a player does.
///
/// After each step the client comes to rest, whatever the server sent.
pub fn client_input(data: &[u8]) {
    let mut script = Script::new(data);
    let mut site = Site::new(script.byte());
    for _ in 0..STEPS {
        let Some(step) = script.step() else { break };
        site.take_step(step, &mut script);
    }
    site.close();
}

struct Site {
    client: Client,
    now: Instant,
    /// What the client told: the nonces of its newest Hello and Join, its newest ping.
    hello: Nonce,
    join: Nonce,
    ping: u64,
    /// What the server told last.
    token: Token,
    player: EntityId,
    tick: Tick,
    manifest: [ChunkEntry; 9],
    /// Over the entries of the present tick so far.
    checksum: Fnv32,
    event: Sequence,
    last: Vec<u8>,
    handed_in: u64,
    ended: Option<ClientEnd>,
}

impl Site {
    fn new(kind: u8) -> Self {
        let config = ClientConfig {
            client_type: ClientType(u16::from(kind >> 4)),
            name: (kind & 1 != 0).then(|| "Zo\u{eb} of the very deep and cold caves".into()),
            token: (kind & 2 != 0).then_some(Token(1 << 32 | 7)),
            features: Features(u32::from(kind >> 2 & 3)),
        };
        let mut site = Self {
            client: Client::new(config, Box::new(SplitMix::new(kind.into())), START),
            now: START,
            hello: Nonce(0),
            join: Nonce(0),
            ping: 0,
            token: Token(1),
            player: EntityId(1),
            tick: Tick::new(u32::MAX - 2),
            manifest: [ChunkEntry::default(); 9],
            checksum: Fnv32::new(),
            event: Sequence::new(0),
            last: Vec::new(),
            handed_in: 0,
            ended: None,
        };
        site.settle();
        site
    }

    fn take_step(&mut self, step: u8, script: &mut Script<'_>) {
        match step & 31 {
            0 => self.now += script.wait(),
            1 => self.now = self.client.poll_timeout().map_or(self.now, |due| due.max(self.now)),
            2 => {
                let _ = self.client.push(script.action());
            }
            3 => {
                let _ = self.client.query(self.now, EntityId((script.byte() % 16).into()));
            }
            4 => self.client.clear_steps(),
            5 => self.client.forget_chunk(script.chunk().id),
            // Rare: nothing happens afterwards.
            6 if script.byte() == 0xA5 => self.client.leave(self.now),
            7 => self.update(script),
            8 => self.flood(script),
            number => {
                if let Some(mut datagram) = self.datagram(number, script) {
                    script.mutate(&mut datagram);
                    self.deliver(datagram);
                }
            }
        }
        self.settle();
    }

    fn datagram(&mut self, number: u8, script: &mut Script<'_>) -> Option<Vec<u8>> {
        match number {
            9 | 10 => {
                let nonce = self.hello;
                let challenge =
                    Challenge { nonce, cookie: [script.byte(); 16], server_key: [0; 32] };
                written(|buf| challenge.emit(buf))
            }
            11 | 12 => self.welcome(script),
            13 => {
                let (reason, text) = (RefuseReason(script.byte() % 12), script.text());
                let text = text::cut(&text, 255);
                written(|buf| Refuse { nonce: self.join, reason, text }.emit(buf))
            }
            14 => {
                let (token, reason) = (self.token, LeaveReason(script.byte() % 9));
                written(|buf| Leave { client_type: ClientType::OFFICIAL, token, reason }.emit(buf))
            }
            15..=17 => {
                self.move_tick(script);
                self.see(script);
                let entity_checksum = match script.byte() {
                    0..192 => self.checksum.finish(),
                    _ => script.u32(),
                };
                self.state(entity_checksum)
            }
            18..=20 => {
                self.move_tick(script);
                self.entities(script)
            }
            21 | 22 => {
                let mut entry = script.pick(&self.manifest)?;
                entry.version.0 ^= u16::from(script.byte() % 2);
                let kinds = script.byte() % 64 + 1;
                let palette: Vec<u16> = (0..kinds.into()).collect();
                let of = script.bytes(64);
                let indices: [u8; TILES] = std::array::from_fn(|place| {
                    of.get(place % of.len().max(1)).map_or(0, |index| index % kinds)
                });
                written(|buf| Chunk { entry, palette: &palette, indices: &indices }.emit(buf))
            }
            23 => {
                let entity = EntityId((script.byte() % 16).into());
                let mut block = [0; 1024];
                let mut tlv = TlvWriter::new(&mut block);
                for _ in 0..script.byte() % 8 {
                    let (tag, len) = (script.byte() % 8, usize::from(script.byte()));
                    let _ = tlv.put(tag, script.bytes(len));
                }
                let detail = Detail { tick: self.tick, entity, meta: tlv.finish() };
                written(|buf| detail.emit(buf))
            }
            24 => written(|buf| Echo::pong(self.ping).emit(buf)),
            25 | 26 => {
                self.event = match script.byte() {
                    0..128 => self.event.next(),
                    near => self.event.advance(u32::from(near).wrapping_sub(192)),
                };
                self.text_event(&script.text())
            }
            27 => Some(self.last.clone()),
            _ => {
                let len = usize::from(script.u16()) % (MAX_DATAGRAM + 2);
                Some(script.bytes(len).to_vec())
            }
        }
    }

    fn welcome(&mut self, script: &mut Script<'_>) -> Option<Vec<u8>> {
        let flags = script.byte();
        if flags & 1 != 0 {
            self.token = Token((script.byte() % 4).into());
        }
        if flags & 2 != 0 {
            self.player = EntityId((script.byte() % 4).into());
        }
        self.move_tick(script);
        let mut block = [0; 900];
        let mut tlv = TlvWriter::new(&mut block);
        if flags & 4 != 0 {
            tlv.put(tag::NEXT_EVENT, &self.event.get().to_le_bytes()).ok()?;
        }
        if flags & 8 != 0 {
            tlv.put_long(tag::SERVER_NAME, script.bytes(64)).ok()?;
            let len = usize::from(script.u16() % 513);
            tlv.put_long(tag::MOTD, script.bytes(len)).ok()?;
        }
        let (nonce, token, player) = (self.join, self.token, self.player);
        let tick_rate = script.byte();
        let meta = tlv.finish();
        let welcome = Welcome { nonce, token, player, tick: self.tick, tick_rate, meta };
        written(|buf| welcome.emit(buf))
    }

    /// The server's tick goes on, stays, or jumps.
    fn move_tick(&mut self, script: &mut Script<'_>) {
        let before = self.tick;
        self.tick = match script.byte() {
            0..128 => self.tick,
            128..224 => self.tick.next(),
            224..248 => self.tick.advance(u32::from(script.byte()).wrapping_sub(128)),
            _ => Tick::new(script.u32()),
        };
        if self.tick != before {
            self.checksum = Fnv32::new();
        }
    }

    /// Another 3x3 now and then.
    fn see(&mut self, script: &mut Script<'_>) {
        let moves = script.byte();
        if moves & 1 != 0 {
            self.manifest[usize::from(moves >> 1) % 9] = script.chunk();
        }
    }

    fn state(&self, entity_checksum: u32) -> Option<Vec<u8>> {
        let (tick, chunks, player) = (self.tick, self.manifest, self.player);
        written(|buf| State { tick, chunks, player, entity_checksum }.emit(buf))
    }

    fn entities(&mut self, script: &mut Script<'_>) -> Option<Vec<u8>> {
        let (count, mut id) = (script.byte() % 8, 0);
        let (tick, before) = (self.tick, self.checksum);
        let mut after = before;
        let datagram = written(|buf| {
            let mut packet = EntityBuilder::new(buf, tick, before)?;
            for _ in 0..count {
                let mut block = [0; 255];
                let mut tlv = TlvWriter::new(&mut block);
                for _ in 0..script.byte() % 4 {
                    let tags = [0x01, 0x02, 0x04, 0x10, 0x11, 0x12, 0x40];
                    let tag = tags[usize::from(script.byte()) % tags.len()];
                    let len = match tag {
                        1 | 2 => 2,
                        0x10 | 0x12 => 4,
                        _ => usize::from(script.byte() % 33),
                    };
                    let _ = tlv.put(tag, script.bytes(len));
                }
                id += u32::from(script.byte() % 4);
                packet.push(&Entity {
                    id: EntityId(id),
                    type_id: script.byte().into(),
                    x: script.u16() as i16,
                    y: script.u16() as i16,
                    hp: 1,
                    hp_max: 2,
                    elo: 3,
                    flags: EntityFlags(script.byte()),
                    meta: tlv.finish(),
                })?;
            }
            let (len, checksum) = packet.finish(false);
            after = checksum;
            Ok::<_, caves_wire::EmitError>(len)
        })?;
        self.checksum = after;
        Some(datagram)
    }

    /// A whole tick as an honest server sends it.
    fn update(&mut self, script: &mut Script<'_>) {
        self.tick = self.tick.next();
        self.checksum = Fnv32::new();
        self.see(script);
        let entities_first = script.byte() & 1 == 1;
        let Some(entities) = self.entities(script) else { return };
        let Some(state) = self.state(self.checksum.finish()) else { return };
        let (one, two) = if entities_first { (entities, state) } else { (state, entities) };
        self.deliver(one);
        self.deliver(two);
    }

    /// Events one after the other before anything is sent.
    fn flood(&mut self, script: &mut Script<'_>) {
        for _ in 0..u16::from(script.byte()) * 2 {
            self.event = self.event.next();
            if let Some(datagram) = self.text_event("x") {
                self.deliver(datagram);
            }
        }
    }

    fn text_event(&self, text: &str) -> Option<Vec<u8>> {
        let (sequence, kind) = (self.event, EventKind((self.event.get() % 4) as u8));
        let event = Event { sequence, kind, from: EntityId(1), text: text::cut(text, 1000) };
        written(|buf| event.emit(buf))
    }

    fn deliver(&mut self, datagram: Vec<u8>) {
        let ended = self.ended.is_some();
        match self.client.handle_datagram(self.now, &datagram) {
            ClientReceived::Chunk(chunk) => {
                let of = chunk.entry().id;
                let manifest = self.client.manifest().expect("a chunk is of a manifest");
                assert!(manifest.iter().any(|entry| entry.id == of));
            }
            ClientReceived::State(state) => {
                assert_eq!(Some(state.tick()), self.client.tick());
                assert_eq!(Some(state.player()), self.client.player());
                assert_eq!(Some(state.chunks()), self.client.manifest());
            }
            ClientReceived::Dropped(_) => {}
            _ => assert!(!ended, "nothing is taken after the end"),
        }
        self.handed_in += 1;
        assert_eq!(self.client.counters().received, self.handed_in);
        self.last = datagram;
    }

    /// Does what the caller of a client does after each step, and checks what is promised.
    fn settle(&mut self) {
        self.client.handle_timeout(self.now);
        let mut count = 0;
        while let Some(event) = self.client.poll_event() {
            count += 1;
            assert!(count <= EVENTS_AT_ONCE, "events do not come to rest");
            self.hear(event);
        }
        let mut buf = [0; MAX_DATAGRAM];
        count = 0;
        while let Some(len) = self.client.poll_transmit(self.now, &mut buf) {
            count += 1;
            assert!(count <= AT_ONCE, "sending does not come to rest");
            self.read(&buf[..len]);
        }
        if let Some(due) = self.client.poll_timeout() {
            assert!(due > self.now, "what was due is done");
        }
        self.check();
    }

    fn hear(&mut self, event: ClientEvent) {
        assert!(self.ended.is_none(), "{event:?} after the end");
        match event {
            ClientEvent::Joined { server_name, motd, .. } => {
                assert!(text::is_clean(&server_name) && text::is_clean(&motd));
            }
            ClientEvent::Text { text, .. } => assert!(text::is_clean(&text)),
            ClientEvent::Updated(tick) => assert_eq!(self.client.updated_tick(), Some(tick)),
            ClientEvent::Refused { text, again, .. } => {
                assert!(text::is_clean(&text));
                assert!(again > self.now && again <= self.now + Duration::from_secs(8));
            }
            ClientEvent::ServerGone { again } => {
                assert!(again > self.now && again <= self.now + Duration::from_secs(30));
            }
            ClientEvent::Ended(end) => self.ended = Some(end),
            _ => {}
        }
    }

    /// A datagram of the client: it is read by its own rules, and what it tells is remembered.
    fn read(&mut self, datagram: &[u8]) {
        let header = HeaderView::parse(datagram).expect("a client writes headers");
        assert!(header.packet_type().is_from_client());
        let packet = Packet::parse(datagram).expect("a client writes what can be read");
        let leave = matches!(packet, Packet::Leave(_));
        assert_eq!(leave, self.ended.is_some(), "{packet}: goodbye, and nothing else, at the end");
        match packet {
            Packet::Hello(hello) => self.hello = hello.nonce(),
            Packet::Join(join) => self.join = join.nonce(),
            Packet::Ping(ping) => self.ping = ping.timestamp_ms(),
            Packet::Action(action) => {
                assert_eq!(Some(action.token()), self.client.token());
                let listed = action.cache().map(|entry| entry.id);
                let shown = self.client.manifest().map(|manifest| manifest.map(|entry| entry.id));
                assert_eq!(listed, shown.unwrap_or_default());
            }
            _ => {}
        }
    }

    fn check(&self) {
        let client = &self.client;
        assert!(client.in_flight().count() <= 16 && client.queued().count() <= 4);
        assert!(client.entities().count() <= MAX_ENTITIES);
        assert!(client.loss_percent().is_none_or(|percent| percent <= 100));
        let ended = match client.status(self.now) {
            ClientStatus::Ended(end) => Some(end),
            ClientStatus::Waiting { until } => {
                assert!(until > self.now);
                None
            }
            _ => None,
        };
        assert_eq!(ended, self.ended);
        let _ =
            (client.round_trip(), client.tick_rate(), client.misses_chunks(), client.executed());
    }

    /// A client that leaves says so three times (section 2), and then nothing.
    fn close(&mut self) {
        self.client.leave(self.now);
        self.settle();
        for _ in 0..2 {
            self.now += Duration::from_millis(20);
            self.settle();
        }
        assert!(self.client.is_drained());
        assert_eq!(self.client.poll_timeout(), None);
    }
}
