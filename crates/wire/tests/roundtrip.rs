//! Any packet that can be written is read back as it was; cut or longer by a byte it is refused.

use caves_wire::caves::{
    Action, ActionPacket, ActionView, Challenge, ChallengeView, Chunk, ChunkEntry, ChunkId,
    ChunkVersion, ChunkView, ClientType, Detail, DetailView, Direction, Echo, EchoView,
    EntitiesView, Entity, EntityBuilder, EntityFlags, EntityId, Event, EventAck, EventAckView,
    EventKind, EventView, Hello, HelloView, Info, InfoRequest, InfoRequestView, InfoView, Join,
    JoinView, Leave, LeaveReason, LeaveView, Nonce, Packet, Query, QueryView, Refuse, RefuseReason,
    RefuseView, Sequence, State, StateView, Tick, Token, Welcome, WelcomeView,
};
use caves_wire::fnv::Fnv32;
use caves_wire::{EmitError, ErrorKind};
use proptest::collection::vec;
use proptest::prelude::*;

/// Every generator of this file.
mod any {
    use super::*;

    pub(super) fn entry() -> impl Strategy<Value = ChunkEntry> {
        (any::<i16>(), any::<i16>(), any::<u16>()).prop_map(|(x, y, version)| ChunkEntry {
            id: ChunkId { x, y },
            version: ChunkVersion(version),
        })
    }

    pub(super) fn entries() -> impl Strategy<Value = [ChunkEntry; 9]> {
        vec(entry(), 9).prop_map(|entries| entries.try_into().expect("nine"))
    }

    pub(super) fn direction() -> impl Strategy<Value = Direction> {
        (1u8..=4).prop_map(|number| Direction::from_number(number).expect("1 to 4"))
    }

    /// UTF-8 of at most so many bytes.
    pub(super) fn text(min: usize, max: usize) -> impl Strategy<Value = String> {
        vec(any::<char>(), min..=max).prop_map(move |chars| {
            let mut text = String::new();
            for c in chars {
                if text.len() + c.len_utf8() <= max {
                    text.push(c);
                }
            }
            if text.len() < min { "x".repeat(min) } else { text }
        })
    }

    pub(super) fn action() -> impl Strategy<Value = Action<String>> {
        prop_oneof![
            Just(Action::NoOp),
            direction().prop_map(Action::Walk),
            any::<u32>().prop_map(|id| Action::Interact(EntityId(id))),
            direction().prop_map(Action::Attack),
            direction().prop_map(Action::Dig),
            (direction(), any::<u16>())
                .prop_map(|(direction, item)| Action::Place { direction, item }),
            Just(Action::PickUp),
            (any::<u16>(), any::<u16>()).prop_map(|(item, count)| Action::Drop { item, count }),
            any::<u16>().prop_map(|item| Action::Use { item }),
            any::<u16>().prop_map(|item| Action::Equip { item }),
            text(1, 200).prop_map(Action::Say),
        ]
    }

    /// A TLV block of unknown tags, of at most so many bytes.
    pub(super) fn meta(max: usize) -> impl Strategy<Value = Vec<u8>> {
        vec((0x80u8.., vec(any::<u8>(), 0..60)), 0..8).prop_map(move |fields| {
            let mut block = Vec::new();
            for (tag, value) in fields {
                if block.len() + 2 + value.len() <= max {
                    block.extend([tag, value.len() as u8]);
                    block.extend(value);
                }
            }
            block
        })
    }

    pub(super) fn entity() -> impl Strategy<Value = (Entity<'static>, Vec<u8>)> {
        let numbers = (any::<u32>(), any::<[u16; 4]>(), any::<[i16; 2]>(), any::<u8>());
        (numbers, meta(255)).prop_map(|((id, [type_id, hp, hp_max, elo], [x, y], flags), meta)| {
            let (id, flags) = (EntityId(id), EntityFlags(flags));
            (Entity { id, type_id, x, y, hp, hp_max, elo, flags, meta: &[] }, meta)
        })
    }
}

/// Writes a packet; it has the announced length, and no cut or longer form of it is taken.
fn written(
    len: usize,
    emit: impl Fn(&mut [u8]) -> Result<usize, EmitError>,
) -> Result<Vec<u8>, TestCaseError> {
    let mut buf = vec![0xEE; 1201];
    let written = emit(&mut buf).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(written, len);
    prop_assert!(buf[len..].iter().all(|byte| *byte == 0xEE), "wrote past its end");
    prop_assert!(emit(&mut vec![0; len - 1]).is_err(), "fits into less than its length");
    let bytes = &buf[..len];
    prop_assert!(Packet::parse(bytes).is_ok(), "{:?}", Packet::parse(bytes));
    // A text of one action may be cut between its characters and be another valid text.
    let says = bytes[3] == 1 && bytes[72] == 13;
    for cut in (0..len).filter(|cut| !says || *cut < 75) {
        let error = Packet::parse(&bytes[..cut]).map(|_| ()).expect_err("cut");
        prop_assert!(error.needed > error.got || error.kind != ErrorKind::TooShort);
    }
    if !says {
        prop_assert!(Packet::parse(&[bytes, &[0]].concat()).is_err(), "one byte longer");
    }
    Ok(bytes.to_vec())
}

proptest! {
    #[test]
    fn state(tick: u32, chunks in any::entries(), player: u32, entity_checksum: u32) {
        let (tick, player) = (Tick::new(tick), EntityId(player));
        let sent = State { tick, chunks, player, entity_checksum };
        let bytes = written(sent.len(), |buf| sent.emit(buf))?;
        let read = StateView::parse(&bytes).unwrap();
        prop_assert_eq!(State {
            tick: read.tick(),
            chunks: read.chunks(),
            player: read.player(),
            entity_checksum: read.entity_checksum(),
        }, sent);
    }

    #[test]
    fn action(
        kind: u16, token: u64, sequence: u32, cache in any::entries(), action in any::action(),
    ) {
        let (client_type, token, sequence) =
            (ClientType(kind), Token(token), Sequence::new(sequence));
        let sent = ActionPacket { client_type, token, sequence, cache, action };
        let bytes = written(sent.len(), |buf| sent.emit(buf))?;
        let read = ActionView::parse(&bytes).unwrap();
        prop_assert_eq!(ActionPacket {
            client_type: read.client_type(),
            token: read.token(),
            sequence: read.sequence(),
            cache: read.cache(),
            action: read.action().map_text(str::to_owned),
        }, sent);
    }

    #[test]
    fn chunk(
        entry in any::entry(),
        palette in vec(any::<u16>(), 1..=64),
        places in vec(any::<u8>(), 1024),
    ) {
        let indices: [u8; 1024] =
            core::array::from_fn(|i| places[i] % palette.len() as u8);
        let sent = Chunk { entry, palette: &palette, indices: &indices };
        let bytes = written(sent.len(), |buf| sent.emit(buf))?;
        let read = ChunkView::parse(&bytes).unwrap();
        prop_assert_eq!(read.entry(), entry);
        prop_assert!(read.palette().eq(palette.iter().copied()));
        let (mut back, mut tiles) = ([0; 1024], [0; 1024]);
        read.indices(&mut back);
        read.tiles(&mut tiles);
        prop_assert_eq!(back, indices);
        prop_assert!((0..1024).all(|i| tiles[i] == palette[usize::from(indices[i])]));
    }

    #[test]
    fn entities(tick: u32, more: bool, all in vec(any::entity(), 0..70)) {
        let mut buf = [0; 1200];
        let mut builder =
            EntityBuilder::new(&mut buf, Tick::new(tick), Fnv32::new()).unwrap();
        let mut fit = Vec::new();
        for (entity, meta) in &all {
            let entity = Entity { meta, ..*entity };
            if !builder.push(&entity).unwrap() {
                break;
            }
            fit.push(entity);
        }
        let (len, checksum) = builder.finish(more);
        let room = 12 + fit.iter().map(Entity::len).sum::<usize>();
        prop_assert_eq!(len, room);
        if let Some((next, meta)) = all.get(fit.len()) {
            let next = Entity { meta, ..*next }.len();
            prop_assert!(room + next > 1200, "the next one had fitted");
        }
        let bytes = written(len, |to| {
            let got = to.len();
            let Some(room) = to.get_mut(..len) else {
                return Err(EmitError::Buffer { packet: "Entities", needed: len, got });
            };
            room.copy_from_slice(&buf[..len]);
            Ok(len)
        })?;
        let read = EntitiesView::parse(&bytes).unwrap();
        prop_assert_eq!((read.tick(), read.more_follow()), (Tick::new(tick), more));
        prop_assert!(read.entities().map(|entity| entity.to_entity()).eq(fit));
        prop_assert_eq!(read.checksum(Fnv32::new()), checksum);
    }

    #[test]
    fn questions(kind: u16, token: u64, number: u32, stamp: u64) {
        let (client_type, token) = (ClientType(kind), Token(token));
        let query = Query { client_type, token, entity: EntityId(number) };
        let bytes = written(18, |buf| query.emit(buf))?;
        let read = QueryView::parse(&bytes).unwrap();
        prop_assert_eq!((read.token(), read.entity()), (token, EntityId(number)));

        let ack = EventAck { client_type, token, sequence: Sequence::new(number) };
        let bytes = written(18, |buf| ack.emit(buf))?;
        let read = EventAckView::parse(&bytes).unwrap();
        prop_assert_eq!((read.token(), read.sequence().get()), (token, number));

        for echo in [Echo::ping(client_type, stamp), Echo::pong(stamp)] {
            let bytes = written(14, |buf| echo.emit(buf))?;
            let read = EchoView::parse(&bytes).unwrap();
            prop_assert_eq!((read.kind(), read.timestamp_ms()), (echo.kind, stamp));
        }

        let reason = LeaveReason(kind as u8);
        let leave = Leave { client_type, token, reason };
        let bytes = written(15, |buf| leave.emit(buf))?;
        let read = LeaveView::parse(&bytes).unwrap();
        prop_assert_eq!((read.token(), read.reason()), (token, reason));
    }

    #[test]
    fn joining(kind: u16, nonce: u64, cookie: [u8; 16], key: [u8; 32], meta in any::meta(1100)) {
        let (client_type, nonce) = (ClientType(kind), Nonce(nonce));
        let bytes = written(64, |buf| Hello { client_type, nonce }.emit(buf))?;
        let read = HelloView::parse(&bytes).unwrap();
        prop_assert_eq!((read.client_type(), read.nonce()), (client_type, nonce));

        let challenge = Challenge { nonce, cookie, server_key: key };
        let bytes = written(62, |buf| challenge.emit(buf))?;
        let read = ChallengeView::parse(&bytes).unwrap();
        prop_assert_eq!((read.nonce(), read.cookie(), *read.server_key()), (nonce, cookie, key));

        let join = Join { client_type, nonce, cookie, meta: &meta };
        let bytes = written(32 + meta.len(), |buf| join.emit(buf))?;
        let read = JoinView::parse(&bytes).unwrap();
        prop_assert_eq!(read.client_type(), client_type);
        prop_assert_eq!((read.nonce(), read.cookie()), (nonce, cookie));
        prop_assert_eq!(read.meta().as_bytes(), &meta[..]);
    }

    #[test]
    fn answers(
        nonce: u64, token: u64, numbers: [u32; 2], rate in 1u8.., reason: u8,
        players: [u16; 2], text in any::text(0, 255), meta in any::meta(232),
    ) {
        let (nonce, token) = (Nonce(nonce), Token(token));
        let (player, tick) = (EntityId(numbers[0]), Tick::new(numbers[1]));
        let welcome = Welcome { nonce, token, player, tick, tick_rate: rate, meta: &meta };
        let bytes = written(33 + meta.len(), |buf| welcome.emit(buf))?;
        let read = WelcomeView::parse(&bytes).unwrap();
        prop_assert_eq!((read.nonce(), read.token()), (nonce, token));
        prop_assert_eq!((read.player(), read.tick(), read.tick_rate()), (player, tick, rate));
        prop_assert_eq!(read.meta().as_bytes(), &meta[..]);

        let refuse = Refuse { nonce, reason: RefuseReason(reason), text: &text };
        let bytes = written(17 + text.len(), |buf| refuse.emit(buf))?;
        let read = RefuseView::parse(&bytes).unwrap();
        prop_assert_eq!((read.nonce(), read.reason().0, read.text()), (nonce, reason, &text[..]));

        let [players, max_players] = players;
        let info = Info { nonce, tick, players, max_players, meta: &meta };
        let bytes = written(24 + meta.len(), |buf| info.emit(buf))?;
        let read = InfoView::parse(&bytes).unwrap();
        prop_assert_eq!((read.nonce(), read.tick()), (nonce, tick));
        prop_assert_eq!((read.players(), read.max_players()), (players, max_players));

        let client_type = ClientType(players);
        let bytes = written(256, |buf| InfoRequest { client_type, nonce }.emit(buf))?;
        prop_assert_eq!(InfoRequestView::parse(&bytes).unwrap().nonce(), nonce);
    }

    #[test]
    fn told(
        numbers: [u32; 2], kind: u8, text in any::text(0, 1000), meta in any::meta(1150),
    ) {
        let (sequence, from) = (Sequence::new(numbers[0]), EntityId(numbers[1]));
        let event = Event { sequence, kind: EventKind(kind), from, text: &text };
        let bytes = written(17 + text.len(), |buf| event.emit(buf))?;
        let read = EventView::parse(&bytes).unwrap();
        prop_assert_eq!((read.sequence(), read.kind().0), (sequence, kind));
        prop_assert_eq!((read.from(), read.text()), (from, &text[..]));

        let detail = Detail { tick: Tick::new(numbers[0]), entity: from, meta: &meta };
        let bytes = written(16 + meta.len(), |buf| detail.emit(buf))?;
        let read = DetailView::parse(&bytes).unwrap();
        prop_assert_eq!((read.tick().get(), read.entity()), (numbers[0], from));
        prop_assert_eq!(read.meta().as_bytes(), &meta[..]);
    }
}
