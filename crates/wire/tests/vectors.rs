//! Replays the vectors of `vectors/`, which an encoder that shares nothing with this crate made.
//!
//! Each case is decoded, turned into the fields that the vectors name, and compared with them;
//! valid ones are then written again through the plain struct and have to give the same bytes.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use caves_wire::bits::{self, PACKED, TILES};
use caves_wire::caves::{self, Action, HeaderView, Packet, Token};
use caves_wire::fnv::Fnv32;
use caves_wire::tlv::{Field, TlvBlock, TlvWriter};
use caves_wire::{EmitError, MAX_DATAGRAM, ParseError};
use serde_json::{Map, Value, json};

/// Tags that may be cut into several fields (R24).
const CUT_TAGS: [u8; 7] = [0x05, 0x06, 0x07, 0x22, 0x23, 0x30, 0x31];
/// With more runs than this, tiles are written as hex.
const MAX_RUNS: usize = 64;
const LAYOUTS: [&str; 21] = [
    "Action",
    "Challenge",
    "Chunk",
    "Detail",
    "Echo",
    "Entities",
    "Event",
    "EventAck",
    "Fnv",
    "Header",
    "Hello",
    "Info",
    "InfoRequest",
    "Join",
    "Leave",
    "Query",
    "Refuse",
    "State",
    "Tiles",
    "Tlv",
    "Welcome",
];

/// What a valid datagram holds, and the bytes that its plain struct writes.
struct Read {
    fields: Value,
    again: Result<Vec<u8>, EmitError>,
}

type Outcome = Result<Read, ParseError>;

struct Case {
    /// File and name, for messages.
    at: String,
    layout: String,
    value: Value,
}

impl Case {
    fn bytes(&self) -> Option<Vec<u8>> {
        self.value.get("hex").map(unhex)
    }

    fn flag(&self, key: &str) -> bool {
        self.value.get(key).is_some_and(|flag| flag == true)
    }

    /// The plain struct does not give the bytes of the datagram, for a reason that is given.
    fn is_lossy(&self) -> bool {
        self.value.get("reemit").is_some_and(|flag| flag == false)
    }

    fn is_packet(&self) -> bool {
        !matches!(self.layout.as_str(), "Header" | "Tiles" | "Tlv" | "Fnv")
    }
}

#[test]
fn every_case_reads_as_its_vector_says() {
    let mut wrong = Vec::new();
    for case in cases() {
        let problem = match &case.value["error"] {
            Value::Null => check_valid(&case),
            error => check_invalid(&case, error),
        };
        if let Err(problem) = problem {
            wrong.push(format!("{}: {problem}", case.at));
        }
    }
    assert!(wrong.is_empty(), "{} cases differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_kind_of_error_occurs_at_least_twice() {
    let mut count: BTreeMap<String, u32> = BTreeMap::new();
    for case in cases() {
        if let Some(kind) = case.value["error"]["kind"].as_str() {
            *count.entry(kind.to_owned()).or_default() += 1;
        }
    }
    let kinds = error_kinds();
    assert!(kinds.len() >= 13, "{kinds:?}");
    for kind in &kinds {
        assert!(count.get(kind).is_some_and(|n| *n >= 2), "{kind} is not covered: {count:?}");
    }
    assert_eq!(count.len(), kinds.len(), "{count:?} names a kind that the crate does not have");
}

#[test]
fn there_are_enough_cases_for_every_layout() {
    let mut count: BTreeMap<String, u32> = BTreeMap::new();
    for case in cases() {
        *count.entry(case.layout).or_default() += 1;
    }
    assert!(count.keys().eq(LAYOUTS.iter()), "{count:?}");
    assert!(count.values().all(|n| *n >= 8), "{count:?}");
    assert!(count.values().sum::<u32>() >= 200, "{count:?}");
}

fn check_valid(case: &Case) -> Result<(), String> {
    let wanted = &case.value["fields"];
    let Some(bytes) = case.bytes() else {
        return same_fields(&tick_checksum(&case.value["datagrams"]), wanted);
    };
    let read = decode(case, &bytes).map_err(|error| error.to_string())?;
    same_fields(&read.fields, wanted)?;
    check_dispatch(case, &bytes)?;
    match (read.again, case.is_lossy()) {
        // A mark without need would hide a difference later.
        (Ok(again), true) if again == bytes => Err("marked, but written as it was read".into()),
        (_, true) if case.value["why"].as_str().is_none_or(str::is_empty) => {
            Err("marked without a reason".into())
        }
        (_, true) => Ok(()),
        (Ok(again), false) if again == bytes => Ok(()),
        (Ok(again), false) => Err(format!("written as {}", hex(&again))),
        (Err(error), false) => Err(error.to_string()),
    }
}

fn check_invalid(case: &Case, wanted: &Value) -> Result<(), String> {
    let bytes = case.bytes().ok_or("no bytes")?;
    match decode(case, &bytes) {
        Ok(read) => return Err(format!("read as {}", read.fields)),
        Err(error) => same_error(error, wanted)?,
    }
    if !case.is_packet() || case.flag("any_version") {
        return Ok(());
    }
    // The one way in finds the same fault, but for what it answers with another value.
    match (wanted["kind"].as_str(), Packet::parse(&bytes)) {
        (Some("Version"), Ok(Packet::OtherVersion(_))) | (Some("PacketType"), _) => Ok(()),
        (_, Ok(packet)) => Err(format!("dispatched as {packet}")),
        (_, Err(error)) => same_error(error, wanted),
    }
}

/// Names the field that differs, not only that one does.
fn same_fields(got: &Value, wanted: &Value) -> Result<(), String> {
    let (Value::Object(got), Value::Object(wanted)) = (got, wanted) else {
        return Err("no fields".into());
    };
    for (key, wanted) in wanted {
        match got.get(key) {
            Some(got) if got == wanted => {}
            Some(got) => return Err(format!("{key} is {got}, not {wanted}")),
            None => return Err(format!("{key} is not there")),
        }
    }
    match got.keys().find(|key| !wanted.contains_key(*key)) {
        Some(key) => Err(format!("{key} is {}, and the vector does not name it", got[key])),
        None => Ok(()),
    }
}

/// The vector names the kind always, the numbers where the notes determine them.
fn same_error(error: ParseError, wanted: &Value) -> Result<(), String> {
    let got = json!({
        "kind": format!("{:?}", error.kind),
        "offset": error.offset,
        "needed": error.needed,
        "got": error.got,
    });
    let fields = wanted.as_object().ok_or("no error")?;
    if !fields.contains_key("kind") || fields.iter().any(|(key, value)| got[key] != *value) {
        return Err(format!("{got}, not {wanted}"));
    }
    Ok(())
}

/// [`Packet::parse`] finds the layout by itself.
fn check_dispatch(case: &Case, bytes: &[u8]) -> Result<(), String> {
    let other_version = case.flag("any_version") && bytes[2] != caves::VERSION;
    let wanted = match case.value["packet"].as_str() {
        Some(wanted) => wanted,
        None if !case.is_packet() => return Ok(()),
        None if other_version => "OtherVersion",
        None => &case.layout,
    };
    let packet = Packet::parse(bytes).map_err(|error| error.to_string())?;
    match packet_name(&packet) {
        name if name == wanted => Ok(()),
        name => Err(format!("dispatched as {name}, not {wanted}")),
    }
}

fn packet_name(packet: &Packet<'_>) -> &'static str {
    match packet {
        Packet::State(_) => "State",
        Packet::Action(_) => "Action",
        Packet::Chunk(_) => "Chunk",
        Packet::Entities(_) => "Entities",
        Packet::Query(_) => "Query",
        Packet::Detail(_) => "Detail",
        Packet::Ping(_) | Packet::Pong(_) => "Echo",
        Packet::Hello(_) => "Hello",
        Packet::Challenge(_) => "Challenge",
        Packet::Join(_) => "Join",
        Packet::Welcome(_) => "Welcome",
        Packet::Refuse(_) => "Refuse",
        Packet::Leave(_) => "Leave",
        Packet::Event(_) => "Event",
        Packet::EventAck(_) => "EventAck",
        Packet::InfoRequest(_) => "InfoRequest",
        Packet::Info(_) => "Info",
        Packet::UnknownType(_) => "UnknownType",
        Packet::OtherVersion(_) => "OtherVersion",
        _ => "a packet that this test does not know",
    }
}

fn decode(case: &Case, bytes: &[u8]) -> Outcome {
    match case.layout.as_str() {
        "Header" => header(bytes),
        "State" => state(bytes),
        "Action" => action(bytes),
        "Chunk" => chunk(bytes),
        "Entities" => entities(bytes),
        "Query" => query(bytes),
        "Detail" => detail(bytes),
        "Echo" => echo(bytes),
        "Hello" => hello(bytes, case.flag("any_version")),
        "Challenge" => challenge(bytes),
        "Join" => join(bytes),
        "Welcome" => welcome(bytes),
        "Refuse" => refuse(bytes),
        "Leave" => leave(bytes),
        "Event" => event(bytes),
        "EventAck" => event_ack(bytes),
        "InfoRequest" => info_request(bytes),
        "Info" => info(bytes),
        "Tlv" => tlv(bytes, case.flag("long")),
        "Tiles" => Ok(tiles(bytes)),
        "Fnv" => Ok(fnv(bytes)),
        other => panic!("{}: no such layout: {other}", case.at),
    }
}

/// The fields with the client type, which is in every packet's header, and the packet written.
fn packet(
    bytes: &[u8],
    mut fields: Value,
    emit: impl FnOnce(&mut [u8]) -> Result<usize, EmitError>,
) -> Outcome {
    fields["client_type"] = client_type(bytes).0.into();
    let mut buf = [0xEE; MAX_DATAGRAM];
    let again = emit(&mut buf).map(|len| buf[..len].to_vec());
    Ok(Read { fields, again })
}

fn client_type(bytes: &[u8]) -> caves::ClientType {
    HeaderView::parse(bytes).unwrap().client_type()
}

fn header(bytes: &[u8]) -> Outcome {
    let view = HeaderView::parse(bytes)?;
    let kind = view.packet_type();
    let mut fields = json!({
        "version": view.version(),
        "packet_type": kind.0,
        "client_type": view.client_type().0,
    });
    if kind.name().is_some() {
        fields["from_client"] = kind.is_from_client().into();
    }
    // A header is written as part of its packet only.
    Ok(Read { fields, again: Ok(bytes.to_vec()) })
}

fn state(bytes: &[u8]) -> Outcome {
    let view = caves::StateView::parse(bytes)?;
    let fields = json!({
        "tick": view.tick().get(),
        "chunks": view.chunks().map(entry),
        "player_entity_id": view.player().0,
        "entity_checksum": view.entity_checksum(),
    });
    let plain = caves::State {
        tick: view.tick(),
        chunks: view.chunks(),
        player: view.player(),
        entity_checksum: view.entity_checksum(),
    };
    packet(bytes, fields, |buf| plain.emit(buf))
}

fn action(bytes: &[u8]) -> Outcome {
    let view = caves::ActionView::parse(bytes)?;
    let action = view.action();
    let mut fields = json!({
        "auth_token": hex64(view.token().0),
        "sequence": view.sequence().get(),
        "cache": view.cache().map(entry),
        "player_action": action.number(),
    });
    for (key, value) in action_data(action) {
        fields[key] = value;
    }
    let plain = caves::ActionPacket {
        client_type: view.client_type(),
        token: view.token(),
        sequence: view.sequence(),
        cache: view.cache(),
        action,
    };
    assert_eq!(plain.len(), bytes.len());
    packet(bytes, fields, |buf| plain.emit(buf))
}

fn action_data(action: Action<&str>) -> Vec<(&'static str, Value)> {
    match action {
        Action::NoOp | Action::PickUp => vec![],
        Action::Walk(way) | Action::Attack(way) | Action::Dig(way) => {
            vec![("direction", (way as u8).into())]
        }
        Action::Interact(target) => vec![("target", target.0.into())],
        Action::Place { direction, item } => {
            vec![("direction", (direction as u8).into()), ("item", item.into())]
        }
        Action::Drop { item, count } => vec![("item", item.into()), ("count", count.into())],
        Action::Use { item } | Action::Equip { item } => vec![("item", item.into())],
        Action::Say(text) => vec![("text", text.into())],
    }
}

fn chunk(bytes: &[u8]) -> Outcome {
    let view = caves::ChunkView::parse(bytes)?;
    let palette: Vec<u16> = view.palette().collect();
    let mut indices = [0xEE; TILES];
    view.indices(&mut indices);
    let mut types = [0xEEEE; TILES];
    view.tiles(&mut types);
    assert!(types.iter().zip(indices).all(|(tile, index)| *tile == palette[usize::from(index)]));
    let fields = json!({
        "chunk": entry(view.entry()),
        "palette": palette,
        "tiles": tile_field(&indices),
    });
    let plain = caves::Chunk { entry: view.entry(), palette: &palette, indices: &indices };
    packet(bytes, fields, |buf| plain.emit(buf))
}

fn entities(bytes: &[u8]) -> Outcome {
    let view = caves::EntitiesView::parse(bytes)?;
    let listed: Vec<Value> = view.entities().map(entity).collect();
    assert_eq!(listed.len(), usize::from(view.count()));
    let fields = json!({
        "tick": view.tick().get(),
        "more": view.more_follow(),
        "entities": listed,
        "checksum": view.checksum(Fnv32::new()).finish(),
    });
    packet(bytes, fields, |buf| {
        let mut builder = caves::EntityBuilder::new(buf, view.tick(), Fnv32::new())?;
        for entity in view.entities() {
            assert!(builder.push(&entity.to_entity())?, "it was in one datagram");
        }
        let (len, checksum) = builder.finish(view.more_follow());
        assert_eq!(checksum, view.checksum(Fnv32::new()));
        Ok(len)
    })
}

fn entity(view: caves::EntityView<'_>) -> Value {
    let fields = json!({
        "id": view.id().0,
        "type_id": view.type_id(),
        "pos_x": view.x(),
        "pos_y": view.y(),
        "hp": view.hp(),
        "hp_max": view.hp_max(),
        "elo": view.elo(),
        "entity_flags": view.flags().0,
    });
    with_meta(fields, view.meta())
}

fn query(bytes: &[u8]) -> Outcome {
    let view = caves::QueryView::parse(bytes)?;
    let fields = json!({ "auth_token": hex64(view.token().0), "entity_id": view.entity().0 });
    let (token, entity) = (view.token(), view.entity());
    let plain = caves::Query { client_type: client_type(bytes), token, entity };
    packet(bytes, fields, |buf| plain.emit(buf))
}

fn detail(bytes: &[u8]) -> Outcome {
    let view = caves::DetailView::parse(bytes)?;
    let fields = json!({ "tick": view.tick().get(), "entity_id": view.entity().0 });
    let meta = view.meta().as_bytes();
    let plain = caves::Detail { tick: view.tick(), entity: view.entity(), meta };
    packet(bytes, with_meta(fields, view.meta()), |buf| plain.emit(buf))
}

fn echo(bytes: &[u8]) -> Outcome {
    let view = caves::EchoView::parse(bytes)?;
    let (kind, timestamp_ms) = (view.kind(), view.timestamp_ms());
    let packet_type = match kind {
        caves::EchoKind::Ping => 6,
        caves::EchoKind::Pong => 7,
    };
    let fields = json!({ "packet_type": packet_type, "timestamp_ms": hex64(timestamp_ms) });
    let plain = caves::Echo { kind, client_type: client_type(bytes), timestamp_ms };
    packet(bytes, fields, |buf| plain.emit(buf))
}

fn hello(bytes: &[u8], any_version: bool) -> Outcome {
    let view = match any_version {
        true => caves::HelloView::parse_any_version(bytes)?,
        false => caves::HelloView::parse(bytes)?,
    };
    let mut fields = json!({ "client_nonce": hex64(view.nonce().0) });
    if any_version {
        fields["version"] = HeaderView::parse(bytes)?.version().into();
    }
    let plain = caves::Hello { client_type: view.client_type(), nonce: view.nonce() };
    packet(bytes, fields, |buf| plain.emit(buf))
}

fn challenge(bytes: &[u8]) -> Outcome {
    let view = caves::ChallengeView::parse(bytes)?;
    let (nonce, cookie, server_key) = (view.nonce(), view.cookie(), *view.server_key());
    let fields = json!({
        "client_nonce": hex64(nonce.0),
        "cookie": hex(&cookie),
        "server_key": hex(&server_key),
    });
    let plain = caves::Challenge { nonce, cookie, server_key };
    packet(bytes, fields, |buf| plain.emit(buf))
}

fn join(bytes: &[u8]) -> Outcome {
    let view = caves::JoinView::parse(bytes)?;
    let fields = json!({
        "client_nonce": hex64(view.nonce().0),
        "cookie": hex(&view.cookie()),
        "name": view.name().map(|name| std::str::from_utf8(name).unwrap()),
        "features": view.features().0,
        "token": view.token().map(|Token(token)| hex64(token)),
    });
    let plain = caves::Join {
        client_type: view.client_type(),
        nonce: view.nonce(),
        cookie: view.cookie(),
        meta: view.meta().as_bytes(),
    };
    packet(bytes, with_meta(fields, view.meta()), |buf| plain.emit(buf))
}

fn welcome(bytes: &[u8]) -> Outcome {
    let view = caves::WelcomeView::parse(bytes)?;
    let fields = json!({
        "client_nonce": hex64(view.nonce().0),
        "auth_token": hex64(view.token().0),
        "player_entity_id": view.player().0,
        "tick": view.tick().get(),
        "tick_rate": view.tick_rate(),
        "features": view.features().0,
        "next_event": view.next_event().map(caves::Sequence::get),
    });
    let plain = caves::Welcome {
        nonce: view.nonce(),
        token: view.token(),
        player: view.player(),
        tick: view.tick(),
        tick_rate: view.tick_rate(),
        meta: view.meta().as_bytes(),
    };
    packet(bytes, with_meta(fields, view.meta()), |buf| plain.emit(buf))
}

fn refuse(bytes: &[u8]) -> Outcome {
    let view = caves::RefuseView::parse(bytes)?;
    let fields = json!({
        "header_version": HeaderView::parse(bytes)?.version(),
        "client_nonce": hex64(view.nonce().0),
        "reason": view.reason().0,
        "version": view.version(),
        "text": view.text(),
    });
    let plain = caves::Refuse { nonce: view.nonce(), reason: view.reason(), text: view.text() };
    packet(bytes, fields, |buf| plain.emit(buf))
}

fn leave(bytes: &[u8]) -> Outcome {
    let view = caves::LeaveView::parse(bytes)?;
    let (token, reason) = (view.token(), view.reason());
    let fields = json!({ "auth_token": hex64(token.0), "reason": reason.0 });
    let plain = caves::Leave { client_type: client_type(bytes), token, reason };
    packet(bytes, fields, |buf| plain.emit(buf))
}

fn event(bytes: &[u8]) -> Outcome {
    let view = caves::EventView::parse(bytes)?;
    let fields = json!({
        "sequence": view.sequence().get(),
        "kind": view.kind().0,
        "from": view.from().0,
        "text": view.text(),
    });
    let plain = caves::Event {
        sequence: view.sequence(),
        kind: view.kind(),
        from: view.from(),
        text: view.text(),
    };
    packet(bytes, fields, |buf| plain.emit(buf))
}

fn event_ack(bytes: &[u8]) -> Outcome {
    let view = caves::EventAckView::parse(bytes)?;
    let (token, sequence) = (view.token(), view.sequence());
    let fields = json!({ "auth_token": hex64(token.0), "sequence": sequence.get() });
    let plain = caves::EventAck { client_type: client_type(bytes), token, sequence };
    packet(bytes, fields, |buf| plain.emit(buf))
}

fn info_request(bytes: &[u8]) -> Outcome {
    let view = caves::InfoRequestView::parse(bytes)?;
    let fields = json!({ "client_nonce": hex64(view.nonce().0) });
    let plain = caves::InfoRequest { client_type: client_type(bytes), nonce: view.nonce() };
    packet(bytes, fields, |buf| plain.emit(buf))
}

fn info(bytes: &[u8]) -> Outcome {
    let view = caves::InfoView::parse(bytes)?;
    let fields = json!({
        "client_nonce": hex64(view.nonce().0),
        "tick": view.tick().get(),
        "players": view.players(),
        "max_players": view.max_players(),
    });
    let plain = caves::Info {
        nonce: view.nonce(),
        tick: view.tick(),
        players: view.players(),
        max_players: view.max_players(),
        meta: view.meta().as_bytes(),
    };
    packet(bytes, with_meta(fields, view.meta()), |buf| plain.emit(buf))
}

/// A block by itself: its form here, the lengths of its tags as the metadata of a detail.
fn tlv(bytes: &[u8], long: bool) -> Outcome {
    const HEAD: usize = 16;
    let block = TlvBlock::parse("Tlv", 0, bytes)?;
    let mut buf = [0; MAX_DATAGRAM];
    let (tick, entity) = (caves::Tick::new(0), caves::EntityId(1));
    let len = caves::Detail { tick, entity, meta: bytes }.emit(&mut buf).unwrap();
    caves::DetailView::parse(&buf[..len])
        .map_err(|error| ParseError { offset: error.offset - HEAD, ..error })?;
    Ok(Read { fields: with_meta(json!({}), block), again: tlv_again(block, long) })
}

/// Field by field; a block that is one long value in one go, so that the writer has to cut it.
fn tlv_again(block: TlvBlock<'_>, long: bool) -> Result<Vec<u8>, EmitError> {
    let mut buf = [0; MAX_DATAGRAM];
    let mut writer = TlvWriter::new(&mut buf);
    match block.fields().next() {
        Some(Field { tag, .. }) if long => writer.put_long(tag, &joined(block, tag))?,
        _ => block.fields().try_for_each(|field| writer.put(field.tag, field.value))?,
    }
    Ok(writer.finish().to_vec())
}

/// The bytes are the start of a chunk's tiles; what follows in the chunk is zero.
fn tiles(bytes: &[u8]) -> Read {
    let mut packed = [0; PACKED];
    packed[..bytes.len()].copy_from_slice(bytes);
    let mut indices = [0xEE; TILES];
    assert!(bits::unpack_below(&packed, 64, &mut indices));
    let largest = indices.iter().copied().max().unwrap();
    assert!(!bits::unpack_below(&packed, largest, &mut indices));
    let (given, rest) = indices.split_at(bytes.len() / 3 * 4);
    assert!(rest.iter().all(|tile| *tile == 0));
    let mut again = [0xEE; PACKED];
    bits::pack(&indices, &mut again);
    let again = Ok(again[..bytes.len()].to_vec());
    Read { fields: json!({ "tiles": tile_field(given) }), again }
}

fn fnv(bytes: &[u8]) -> Read {
    let mut hash = Fnv32::new();
    hash.update(bytes);
    Read { fields: json!({ "fnv": hash.finish() }), again: Ok(bytes.to_vec()) }
}

/// R13: one checksum over the entries of all packets of a tick.
fn tick_checksum(datagrams: &Value) -> Value {
    let hash = datagrams.as_array().unwrap().iter().fold(Fnv32::new(), |before, datagram| {
        caves::EntitiesView::parse(&unhex(datagram)).unwrap().checksum(before)
    });
    json!({ "fnv": hash.finish() })
}

fn entry(entry: caves::ChunkEntry) -> Value {
    json!([entry.id.x, entry.id.y, entry.version.0])
}

/// Adds the fields of a block, and what each tag says where one repeats (R24).
fn with_meta(mut fields: Value, block: TlvBlock<'_>) -> Value {
    let mut listed = Vec::new();
    let mut values = Map::new();
    for Field { tag, value } in block.fields() {
        listed.push(json!([tag, hex(value)]));
        let read = match CUT_TAGS.contains(&tag) {
            true => joined(block, tag),
            false => block.first(tag).unwrap().to_vec(),
        };
        values.insert(format!("0x{tag:02x}"), hex(&read).into());
    }
    if values.len() < listed.len() {
        fields["values"] = values.into();
    }
    fields["meta"] = listed.into();
    fields
}

fn joined(block: TlvBlock<'_>, tag: u8) -> Vec<u8> {
    block.values(tag).flatten().copied().collect()
}

/// Runs of `[index, count]`, or hex where there are many.
fn tile_field(tiles: &[u8]) -> Value {
    let runs: Vec<Value> =
        tiles.chunk_by(|a, b| a == b).map(|run| json!([run[0], run.len()])).collect();
    if runs.len() > MAX_RUNS { hex(tiles).into() } else { runs.into() }
}

fn hex64(number: u64) -> String {
    format!("0x{number:016x}")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(digits: &Value) -> Vec<u8> {
    let digits = digits.as_str().unwrap();
    assert!(digits.is_ascii() && digits.len().is_multiple_of(2), "{digits}");
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    let mut cases = Vec::new();
    for file in fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "json") {
            continue;
        }
        let content: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let layout = content["layout"].as_str().unwrap();
        let file = path.file_name().unwrap().to_string_lossy();
        for value in content["cases"].as_array().unwrap() {
            cases.push(Case {
                at: format!("{file}, {}", value["name"]),
                layout: layout.to_owned(),
                value: value.clone(),
            });
        }
    }
    cases
}

/// The variants of `ErrorKind`, from its source: it is non-exhaustive, so that no `match` here
/// would notice a new one.
fn error_kinds() -> Vec<String> {
    let source = include_str!("../src/error.rs");
    let (_, body) = source.split_once("pub enum ErrorKind {").unwrap();
    let (body, _) = body.split_once("// Only layouts of the siblings").unwrap();
    body.lines()
        .filter_map(|line| line.trim().strip_suffix(','))
        .filter(|name| name.chars().all(char::is_alphanumeric))
        .map(str::to_owned)
        .collect()
}
