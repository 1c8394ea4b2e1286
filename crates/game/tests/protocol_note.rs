//! `notes/protocol.md` is true: its tables agree with the code, and the session of its appendix
//! happens just like that.
//!
//! When the generator of the caves or anything else changes what the session's bytes are, write the
//! appendix anew and read the difference:
//!
//! ```text
//! CAVES_WRITE_NOTE=1 cargo test -p caves-game --test protocol_note the_appendix_is_what
//! ```

mod note;

use std::time::Duration;

use caves_session::DropReason;
use caves_session::caves::{
    EVENT_WINDOW, KEEPALIVE, LEAVE_GAP, LEAVE_REPEATS, MAX_PACKETS, MOVE_SILENCE, RETRY,
    SESSION_TIMEOUT,
};
use caves_wire::caves::{
    Action, ActionPacket, Challenge, Chunk, ChunkEntry, ClientType, Direction, Echo, Entity,
    EntityFlags, EntityId, EventAck, EventKind, Features, Hello, Info, InfoRequest, Leave,
    LeaveReason, MAGIC, MAX_DETAIL_META, MAX_EVENT_TEXT, Packet, PacketType, Query, Refuse,
    RefuseReason, Sequence, State, Token, VERSION, tag,
};
use caves_wire::{bits, fnv};
use note::play::{self, Passed, Stage};
use note::{BEGIN, Datagram, END, Note, block, number, numbers};

/// Set to write the appendix instead of comparing it.
const WRITE: &str = "CAVES_WRITE_NOTE";

/// What the appendix shows of the session, in order; the rest is counted.
fn is_shown(passed: &[Passed], place: usize) -> bool {
    let Passed { at, from_client, bytes } = &passed[place];
    let first_of_kind = || !passed[..place].iter().any(|before| before.bytes[3] == bytes[3]);
    match PacketType(bytes[3]) {
        PacketType::CHUNK | PacketType::LEAVE => first_of_kind(),
        // After the first tick, and after the step.
        PacketType::STATE | PacketType::ENTITIES => *at <= 200,
        _ => *from_client || first_of_kind(),
    }
}

/// The appendix as the session gives it.
fn appendix(note: &Note) -> String {
    let passed = play::session().passed;
    let mut out = String::new();
    let mut place = 0;
    while place < passed.len() {
        let Passed { at, from_client, bytes } = &passed[place];
        let name = name(bytes);
        out.push('\n');
        if is_shown(&passed, place) {
            out += &block(note, *at, *from_client, name, bytes);
            place += 1;
            continue;
        }
        let alike = |other: &Passed| (other.at, other.bytes[3]) == (*at, bytes[3]);
        let hidden = |i: &usize| *i < passed.len() && alike(&passed[*i]) && !is_shown(&passed, *i);
        let count = (place..).take_while(hidden).count();
        let way = if *from_client { "c->s" } else { "s->c" };
        out += &format!("```datagram\n{at} ms  {way}  {name}  x {count} not shown\n```\n");
        place += count;
    }
    out
}

fn name(bytes: &[u8]) -> &'static str {
    PacketType(bytes[3]).name().expect("a known type")
}

#[test]
fn the_appendix_is_what_a_session_gives() {
    let note = Note::open();
    let fresh = appendix(&note);
    if std::env::var_os(WRITE).is_some() {
        let text = note.text.replace(
            &format!("{BEGIN}{}{END}", note.appendix()),
            &format!("{BEGIN}\n{fresh}\n{END}"),
        );
        std::fs::write(note::root("notes/protocol.md"), text).expect("the note can be written");
        return;
    }
    let differs = fresh.trim().lines().zip(note.appendix().trim().lines()).find(|(a, b)| a != b);
    assert_eq!(differs, None, "see the head of this file for how to write it anew");
    assert_eq!(fresh.trim().lines().count(), note.appendix().trim().lines().count());
}

#[test]
fn every_byte_of_the_appendix_is_annotated_with_its_value() {
    let datagrams = Note::open().datagrams();
    let shown = datagrams.iter().filter(|datagram| datagram.is_shown());
    let names: Vec<_> = shown.map(|datagram| datagram.name.as_str()).collect();
    let joining = "Hello Challenge Join Welcome Action State Entities Chunk";
    let playing = "Action State Entities Ping Pong Action Event EventAck Query Detail Leave";
    assert_eq!(names.join(" "), format!("{joining} {playing}"));
    for datagram in datagrams.iter().filter(|datagram| datagram.is_shown()) {
        let mut at = 0;
        for field in &datagram.fields {
            if field.kind != "tile" {
                assert_eq!(field.offset, at, "{}: {field:?}", datagram.name);
                at += field.width();
            }
            field.check(&datagram.bytes);
        }
        assert_eq!(at, datagram.bytes.len(), "{}: fields to its end", datagram.name);
    }
}

#[test]
fn the_wire_crate_reads_from_the_appendix_what_is_annotated() {
    for datagram in Note::open().datagrams().iter().filter(|datagram| datagram.is_shown()) {
        let packet_type = PacketType(datagram.bytes[3]);
        assert_eq!(packet_type.name(), Some(datagram.name.as_str()));
        assert!(!datagram.from_client || packet_type.is_from_client(), "{}", datagram.name);
        assert!(datagram.from_client || !packet_type.is_from_client(), "{}", datagram.name);
        compare(datagram);
    }
}

/// The accessors of a datagram's view against its annotations.
fn compare(shown: &Datagram) {
    let value = |name: &str| shown.value(name);
    let chunk = |name: &str| {
        let field = shown.fields.iter().find(|field| field.name == name).expect("a chunk");
        let [x, y, version] = numbers(&field.value)[..] else { panic!("{field:?}") };
        (x as i16, y as i16, version as u16)
    };
    let is = |entry: ChunkEntry| (entry.id.x, entry.id.y, entry.version.0);
    match Packet::parse(&shown.bytes).unwrap_or_else(|error| panic!("{}: {error}", shown.name)) {
        Packet::Hello(hello) => assert_eq!(hello.nonce().0, value("client_nonce")),
        Packet::Challenge(challenge) => {
            assert_eq!(challenge.nonce().0, value("client_nonce"));
            assert_eq!(challenge.cookie(), shown.bytes[14..30]);
        }
        Packet::Join(join) => {
            assert_eq!(join.name(), Some(shown.text("name").as_bytes()));
            assert_eq!(u64::from(join.features().0), value("features"));
        }
        Packet::Welcome(welcome) => {
            assert_eq!(welcome.token().0, value("auth_token"));
            assert_eq!(u64::from(welcome.player().0), value("player_entity_id"));
            assert_eq!(u64::from(welcome.tick().get()), value("tick"));
            assert_eq!(u64::from(welcome.tick_rate()), value("tick_rate"));
            assert_eq!(welcome.next_event().map(Sequence::get), Some(value("next_event") as u32));
            assert_eq!(welcome.meta().first(tag::MOTD), Some(shown.text("motd").as_bytes()));
        }
        Packet::Action(action) => {
            assert_eq!(action.token().0, value("auth_token"));
            assert_eq!(u64::from(action.sequence().get()), value("sequence"));
            assert_eq!(u64::from(action.action().number()), value("player_action"));
            for (i, entry) in action.cache().into_iter().enumerate() {
                assert_eq!(is(entry), chunk(&format!("cache[{i}]")));
            }
        }
        Packet::State(state) => {
            assert_eq!(u64::from(state.tick().get()), value("tick"));
            assert_eq!(u64::from(state.player().0), value("player_entity_id"));
            assert_eq!(u64::from(state.entity_checksum()), value("entity_checksum"));
            for (i, entry) in state.chunks().into_iter().enumerate() {
                assert_eq!(is(entry), chunk(&format!("chunks[{i}]")));
            }
        }
        Packet::Chunk(view) => {
            assert_eq!(is(view.entry()), chunk("chunk"));
            let (mut indices, palette) = ([0; 1024], view.palette().collect::<Vec<_>>());
            view.indices(&mut indices);
            for field in shown.fields.iter().filter(|field| field.kind == "tile") {
                let place = numbers(&field.name);
                let index = indices[(32 * place[1] + place[0]) as usize];
                assert_eq!(i128::from(index), number(&field.value));
            }
            for (i, tile) in palette.iter().enumerate() {
                assert_eq!(u64::from(*tile), value(&format!("palette[{i}]")));
            }
        }
        Packet::Entities(entities) => {
            assert_eq!(u64::from(entities.tick().get()), value("tick"));
            let entries = shown.fields.iter().filter(|field| field.kind == "entity");
            assert_eq!(entries.clone().count(), usize::from(entities.count()));
            for (entity, field) in entities.entities().zip(entries) {
                let sides = [entity.id().0.into(), entity.type_id().into(), entity.x().into()];
                let more = [entity.y().into(), entity.hp().into(), entity.hp_max().into()];
                let rest = [entity.elo().into(), entity.flags().0.into()];
                let all = [&sides[..], &more[..], &rest[..]].concat();
                assert_eq!(numbers(&field.value)[..8], all, "{field:?}");
            }
        }
        Packet::Ping(echo) | Packet::Pong(echo) => {
            assert_eq!(echo.timestamp_ms(), value("timestamp_ms"));
        }
        Packet::Event(event) => {
            assert_eq!(u64::from(event.sequence().get()), value("sequence"));
            assert_eq!(u64::from(event.from().0), value("from"));
            assert_eq!(event.text(), shown.text("text"));
        }
        Packet::EventAck(ack) => {
            assert_eq!(ack.token().0, value("auth_token"));
            assert_eq!(u64::from(ack.sequence().get()), value("sequence"));
        }
        Packet::Query(query) => {
            assert_eq!(query.token().0, value("auth_token"));
            assert_eq!(u64::from(query.entity().0), value("entity_id"));
        }
        Packet::Detail(detail) => {
            assert_eq!(u64::from(detail.entity().0), value("entity_id"));
            let text = detail.meta().first(tag::SIGN_TEXT);
            assert_eq!(text, Some(shown.text("sign_text").as_bytes()));
        }
        Packet::Leave(leave) => {
            assert_eq!(leave.token().0, value("auth_token"));
            assert_eq!(u64::from(leave.reason().0), value("reason"));
        }
        other => panic!("not compared: {other:?}"),
    }
}

#[test]
fn the_checksums_of_the_appendix_are_fnv_1a_over_the_entries() {
    let shown = Note::open().datagrams();
    let mut compared = 0;
    for state in shown.iter().filter(|datagram| datagram.name == "State" && datagram.is_shown()) {
        let same_tick = |other: &&Datagram| {
            other.name == "Entities"
                && other.is_shown()
                && other.value("tick") == state.value("tick")
        };
        let update = shown.iter().find(same_tick).expect("its entities");
        assert_eq!(update.value("packet_flags"), 0, "the only one of its tick");
        let sum = update.bytes[12..]
            .iter()
            .fold(0x811C_9DC5u32, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
        assert_eq!(u64::from(sum), state.value("entity_checksum"));
        compared += 1;
    }
    assert_eq!(compared, 2);
}

#[test]
fn a_server_that_is_handed_the_clients_datagrams_sends_those_of_the_appendix() {
    let shown = Note::open().datagrams();
    let mut stage = Stage::new();
    // Leave is sent three times, the copies are the first one again.
    let leave = shown.iter().find(|datagram| datagram.name == "Leave" && datagram.is_shown());
    let leave = leave.expect("a Leave");
    for datagram in shown.iter().filter(|datagram| datagram.from_client) {
        if datagram.is_shown() {
            stage.hand(datagram.at, &datagram.bytes);
        } else {
            assert_eq!((datagram.name.as_str(), datagram.count), ("Leave", 1));
            stage.hand(datagram.at, &leave.bytes);
        }
    }
    stage.run_to(1000);
    assert_eq!(stage.players(), 0, "the player has left");
    let mut sent = stage.passed.iter();
    for datagram in &shown {
        for _ in 0..datagram.count {
            let Some(passed) = sent.next() else { panic!("nothing for {datagram:?}") };
            let heading = (passed.at, passed.from_client, name(&passed.bytes));
            assert_eq!(heading, (datagram.at, datagram.from_client, datagram.name.as_str()));
            if datagram.is_shown() {
                assert_eq!(passed.bytes, datagram.bytes, "{heading:?}");
            }
        }
    }
    let more: Vec<_> = sent.map(|passed| (passed.at, name(&passed.bytes))).collect();
    assert_eq!(more, [], "the appendix tells of everything");
}

#[test]
fn the_layouts_of_the_note_have_no_gaps_and_the_lengths_of_the_wire_crate() {
    let note = Note::open();
    let fixed = [
        ("State", State::LEN),
        ("Query", Query::LEN),
        ("Ping", Echo::LEN),
        ("Pong", Echo::LEN),
        ("Hello", Hello::LEN),
        ("Challenge", Challenge::LEN),
        ("Leave", Leave::LEN),
        ("EventAck", EventAck::LEN),
        ("InfoRequest", InfoRequest::LEN),
    ];
    let with_tail = [
        ("Header", 6),
        ("ChunkEntry", 6),
        ("EntityEntry", Entity::BASE_LEN),
        ("Action", caves_wire::caves::MIN_ACTION),
        ("Chunk", Chunk::MAX_LEN - 768 - 128),
        ("Entities", 12),
        ("Detail", 16),
        ("Join", 32),
        ("Welcome", 33),
        ("Refuse", Refuse::MIN_LEN),
        ("Event", 17),
        ("Info", 256 - Info::MAX_META),
    ];
    for (name, len) in fixed.iter().chain(&with_tail) {
        let mut at = 0;
        for row in note.layout(name) {
            if let (Some(offset), Some(size)) = (row.offset, row.size) {
                assert_eq!(offset, at, "{name}: {}", row.field);
                at += size;
            }
        }
        assert_eq!(at, *len, "{name}");
    }
    assert_eq!(fixed.len() + with_tail.len() - 3, known_types().count(), "all packets");
    let types = note.table("### Packet types");
    for (name, len) in fixed {
        let row = types.iter().find(|row| row[1] == name).expect("a packet type");
        assert_eq!(row[3], len.to_string(), "{name}");
    }
}

fn known_types() -> impl Iterator<Item = PacketType> {
    (0..=u8::MAX).map(PacketType).filter(|packet_type| packet_type.name().is_some())
}

#[test]
fn the_packet_types_of_the_note_are_those_of_the_wire_crate() {
    let rows = Note::open().table("### Packet types");
    let implemented = rows.iter().filter(|row| row[1] != "(reserved)");
    let listed: Vec<_> = implemented.map(|row| (number(&row[0]) as u8, &*row[1])).collect();
    let known: Vec<_> = known_types().map(|of| (of.0, of.name().unwrap_or(""))).collect();
    assert_eq!(listed, known);
    for row in &rows {
        let packet_type = PacketType(number(&row[0]) as u8);
        let flow = match (packet_type, packet_type.is_from_client()) {
            (PacketType::LEAVE | PacketType(15) | PacketType(17), _) => "both",
            (_, true) => "client to server",
            (_, false) => "server to client",
        };
        assert_eq!(row[2], flow, "{packet_type}");
    }
}

#[test]
fn reasons_events_and_features_of_the_note_have_the_numbers_of_the_wire_crate() {
    let note = Note::open();
    let refusals = note.table("### Refusals");
    assert_eq!(refusals.len(), 10);
    for row in &refusals {
        let reason = RefuseReason(number(&row[0]) as u8);
        assert_eq!(reason.to_string(), row[1]);
        assert_eq!(reason.may_retry(), row[2] == "1 to 8 s", "{row:?}");
    }
    assert_eq!(refusals.iter().position(|row| row[2] == "new attempt"), Some(6));
    assert_eq!(RefuseReason::BAD_COOKIE.0, 7);
    assert_eq!(RefuseReason(11).to_string(), "reason 11", "there are no more");

    let reasons = note.table("### Reasons to leave");
    assert_eq!(reasons.len(), 8);
    for row in &reasons {
        let reason = LeaveReason(number(&row[0]) as u8);
        assert_eq!(reason.to_string(), row[1]);
        assert_eq!(reason.may_return(), row[2] != "no", "{row:?}");
    }
    assert_eq!(LeaveReason(8).to_string(), "reason 8", "there are no more");

    let kinds = [(EventKind::CHAT, "chat"), (EventKind::NOTICE, "notice")];
    let kinds = [&kinds[..], &[(EventKind::COMBAT, "combat")]].concat();
    let kinds: Vec<_> = kinds.iter().map(|(kind, name)| (kind.0.to_string(), *name)).collect();
    assert_eq!(first_two(&note.table("### Event kinds")), kinds);

    let features = [(Features::BURST.0, "burst"), (Features::EVENTS.0, "events")];
    assert_eq!(first_two(&note.table("### Features")), by_bit(&features));
    let flags = [
        (EntityFlags::STATIC.0.into(), "static"),
        (EntityFlags::HOSTILE.0.into(), "hostile"),
        (EntityFlags::INTERACTABLE.0.into(), "interactable"),
    ];
    assert_eq!(first_two(&note.table("### Entity flags")), by_bit(&flags));
    let status = [
        (caves_world::STATUS_FIGHTING.into(), "fighting"),
        (caves_world::STATUS_SAFE.into(), "safe"),
    ];
    assert_eq!(first_two(&note.table("### Status bits")), by_bit(&status));
}

fn first_two(rows: &[Vec<String>]) -> Vec<(String, &str)> {
    rows.iter().map(|row| (row[0].clone(), row[1].as_str())).collect()
}

fn by_bit<'a>(masks: &[(u32, &'a str)]) -> Vec<(String, &'a str)> {
    masks.iter().map(|(mask, name)| (mask.trailing_zeros().to_string(), *name)).collect()
}

#[test]
fn the_tags_of_the_note_have_the_numbers_of_the_wire_crate() {
    let known = [
        (tag::STATUS_EFFECTS, "status_effects"),
        (tag::WEAPON, "weapon"),
        (tag::ARMOR, "armor"),
        (tag::ENTITY_NAME, "name"),
        (tag::SIGN_TEXT, "sign_text"),
        (tag::INVENTORY, "inventory"),
        (tag::DIALOGUE, "dialogue"),
        (tag::EXECUTED_SEQUENCE, "executed_sequence"),
        (tag::SPEECH, "speech"),
        (tag::EXECUTED_BITS, "executed_bits"),
        (tag::NAME, "name"),
        (tag::FEATURES, "features"),
        (tag::SERVER_NAME, "server_name"),
        (tag::MOTD, "motd"),
        (tag::TOKEN, "token"),
        (tag::NEXT_EVENT, "next_event"),
        (tag::NOISE_1, "noise_1"),
        (tag::NOISE_2, "noise_2"),
        // Planned; the code has no name for it yet.
        (0x32, "session_id"),
    ];
    let listed = Note::open().tags();
    let listed: Vec<_> = listed.iter().map(|(tag, name)| (*tag, name.as_str())).collect();
    assert_eq!(listed, known);
}

#[test]
fn the_actions_of_the_note_have_the_numbers_and_lengths_of_the_wire_crate() {
    let north = Direction::North;
    let actions: [(&str, Action<&str>); 14] = [
        ("NoOp", Action::NoOp),
        ("North", Action::Walk(Direction::North)),
        ("East", Action::Walk(Direction::East)),
        ("South", Action::Walk(Direction::South)),
        ("West", Action::Walk(Direction::West)),
        ("Interact", Action::Interact(EntityId(1))),
        ("Attack", Action::Attack(north)),
        ("Dig", Action::Dig(north)),
        ("Place", Action::Place { direction: north, item: 4 }),
        ("PickUp", Action::PickUp),
        ("Drop", Action::Drop { item: 4, count: 1 }),
        ("Use", Action::Use { item: 4 }),
        ("Equip", Action::Equip { item: 4 }),
        ("Say", Action::Say("a")),
    ];
    let rows = Note::open().table("### Actions");
    assert_eq!(rows.len(), actions.len());
    for (row, (name, action)) in rows.iter().zip(actions) {
        assert_eq!((row[0].as_str(), row[1].as_str()), (&*action.number().to_string(), name));
        let packet = ActionPacket {
            client_type: ClientType::OFFICIAL,
            token: Token(1),
            sequence: Sequence::new(0),
            cache: [ChunkEntry::default(); 9],
            action,
        };
        let least = numbers(&row[3])[0];
        assert_eq!(least, (packet.len() - 74) as i128, "{name}");
        assert_eq!(row[4] == "yes", action.must_arrive(), "{name}");
    }
    assert_eq!(numbers(&rows[13][3]), [1, caves_wire::caves::MAX_SAY as i128]);
}

#[test]
fn the_drop_reasons_of_the_note_are_those_that_are_counted() {
    let rows = Note::open().table("### Drop reasons");
    let listed: Vec<_> = rows.iter().map(|row| row[0].clone()).collect();
    assert_eq!(listed, DropReason::ALL.map(|reason| format!("{reason:?}")));
}

#[test]
fn the_numbers_of_the_content_are_those_of_its_lock_file() {
    let rows = Note::open().table("### Ids");
    let listed: Vec<_> = rows.iter().map(|row| row.join(" ")).collect();
    let lock = note::read("crates/world/content/ids.lock");
    let lines = lock.lines().map(str::trim).filter(|line| !line.is_empty());
    let locked: Vec<_> = lines.filter(|line| !line.starts_with('#')).collect();
    assert_eq!(listed, locked);
}

#[test]
fn every_rule_has_its_row() {
    let text = Note::open().text;
    let rows = text.lines().filter_map(|line| line.strip_prefix("| R")?.split(' ').next());
    let mut rules: Vec<u32> = rows.filter_map(|rule| rule.parse().ok()).collect();
    rules.sort_unstable();
    assert_eq!(rules, (1..=37).collect::<Vec<_>>());
}

#[test]
fn the_constants_in_the_prose_are_those_of_the_code() {
    let text = Note::open().text;
    let holds = |words: &str| assert!(text.contains(words), "{words:?} is in the note");
    holds(&format!("always `0x{MAGIC:04X}`"));
    holds(&format!("This page is version {VERSION}."));
    holds(&format!("start `0x{:08X}`", fnv::Fnv32::new().finish()));
    holds(&format!("at most {MAX_DETAIL_META} is sent"));
    holds(&format!("at most {MAX_EVENT_TEXT}; a longer one is invalid"));
    holds(&format!("At most {MAX_PACKETS} datagrams a tick"));
    holds(&format!("keeps at most {EVENT_WINDOW} from the next one on"));
    holds(&format!("Sent three times, {} ms apart", LEAVE_GAP.as_millis()));
    assert_eq!(LEAVE_REPEATS, 3);
    assert_eq!((RETRY.min, RETRY.max), (Duration::from_millis(200), Duration::from_millis(300)));
    holds(&format!("sends a no-op every {} s", KEEPALIVE.as_secs()));
    holds(&format!("After {} s of silence (configurable)", SESSION_TIMEOUT.as_secs()));
    holds(&format!("when the old one was silent for {} s", MOVE_SILENCE.as_secs()));
    let mut packed = [0; bits::PACKED];
    let mut tiles = [0; bits::TILES];
    tiles[..4].copy_from_slice(&[1, 2, 3, 4]);
    bits::pack(&tiles, &mut packed);
    let bytes: Vec<_> = packed[..3].iter().map(|byte| format!("{byte:02X}")).collect();
    holds(&format!("1, 2, 3, 4 become `{}`", bytes.join(" ")));
}
