//! Forgotten Caves.

use std::borrow::Cow;

use caves_wire::caves::{
    Action, ActionView, ChunkEntry, ChunkView, EntityView, HeaderView, Packet, PacketType,
};
use caves_wire::tlv::TlvBlock;
use serde_json::{Map, Value, json};

use super::{Decoded, Facts, hex};
use crate::datagram::Way;

/// The first two bytes of every datagram (R2).
pub const MAGIC: [u8; 2] = caves_wire::caves::MAGIC.to_le_bytes();
/// The default port is the magic as a number (section 1).
pub const PORTS: [u16; 1] = [caves_wire::caves::MAGIC];

/// Reads a datagram. One that only the other side sends is invalid (R28).
pub fn decode(datagram: &[u8], way: Option<Way>) -> Decoded<'_> {
    let packet = match Packet::parse(datagram) {
        Ok(packet) => packet,
        Err(error) => return malformed(datagram, error),
    };
    // The header was read, so it is there.
    let Ok(header) = HeaderView::parse(datagram) else {
        return Decoded::malformed(datagram, "no header".to_owned());
    };
    let sent_by = sender(header.packet_type());
    let problem = match packet {
        Packet::UnknownType(_) => Some("a type that version 1 does not know".to_owned()),
        Packet::OtherVersion(header) => Some(format!("version {} (R1)", header.version())),
        _ if sent_by.is_some() && way.is_some() && sent_by != way => {
            Some("a type that only the other side sends (R28)".to_owned())
        }
        _ => None,
    };
    Decoded {
        kind: kind(header.packet_type()),
        line: packet.to_string(),
        way: sent_by.filter(|_| problem.is_none()),
        problem,
        facts: Facts::Caves(packet),
    }
}

/// The type is counted where the header can still be read.
fn malformed(datagram: &[u8], error: caves_wire::ParseError) -> Decoded<'_> {
    let kind = match HeaderView::parse(datagram) {
        Ok(header) => Cow::Owned(format!("malformed {}", header.packet_type())),
        Err(_) => Cow::Borrowed("malformed"),
    };
    Decoded { kind, ..Decoded::malformed(datagram, error.to_string()) }
}

fn kind(packet_type: PacketType) -> Cow<'static, str> {
    match packet_type.name() {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(packet_type.to_string()),
    }
}

/// Who sends a type; `None` for Leave, which both do, and for what nobody knows.
fn sender(packet_type: PacketType) -> Option<Way> {
    match packet_type {
        PacketType::LEAVE => None,
        known if known.is_from_client() => Some(Way::ToServer),
        known if known.name().is_some() => Some(Way::ToClient),
        _ => None,
    }
}

/// The fields by their names in the note; 64-bit numbers as hex. Tokens are left out: whoever has
/// one can take the session over, and this output is passed around.
pub fn fields(packet: &Packet<'_>) -> Map<String, Value> {
    let value = match packet {
        Packet::State(state) => json!({
            "tick": state.tick().get(),
            "chunks": state.chunks().map(entry),
            "player_entity_id": state.player().0,
            "entity_checksum": state.entity_checksum(),
        }),
        Packet::Action(action) => action_fields(action),
        Packet::Chunk(chunk) => chunk_fields(chunk),
        Packet::Entities(entities) => json!({
            "tick": entities.tick().get(),
            "entity_count": entities.count(),
            "more": entities.more_follow(),
            "entities": entities.entities().map(entity).collect::<Vec<_>>(),
        }),
        Packet::Query(query) => json!({ "entity_id": query.entity().0 }),
        Packet::Detail(detail) => json!({
            "tick": detail.tick().get(),
            "entity_id": detail.entity().0,
            "meta": tags(detail.meta()),
        }),
        Packet::Ping(echo) | Packet::Pong(echo) => {
            json!({ "timestamp_ms": wide(echo.timestamp_ms()) })
        }
        Packet::Hello(hello) => {
            json!({ "client_type": hello.client_type().0, "client_nonce": wide(hello.nonce().0) })
        }
        Packet::Challenge(challenge) => json!({ "client_nonce": wide(challenge.nonce().0) }),
        Packet::Join(join) => json!({
            "client_type": join.client_type().0,
            "client_nonce": wide(join.nonce().0),
            "name": join.name().map(text),
            "features": join.features().0,
            "resumes": join.token().is_some(),
        }),
        Packet::Welcome(welcome) => json!({
            "client_nonce": wide(welcome.nonce().0),
            "player_entity_id": welcome.player().0,
            "tick": welcome.tick().get(),
            "tick_rate": welcome.tick_rate(),
            "features": welcome.features().0,
            "next_event": welcome.next_event().map(|sequence| sequence.get()),
            "meta": tags(welcome.meta()),
        }),
        Packet::Refuse(refuse) => json!({
            "client_nonce": wide(refuse.nonce().0),
            "reason": refuse.reason().0,
            "version": refuse.version(),
            "text": refuse.text(),
        }),
        Packet::Leave(leave) => json!({ "reason": leave.reason().0 }),
        Packet::Event(event) => json!({
            "sequence": event.sequence().get(),
            "kind": event.kind().0,
            "from": event.from().0,
            "text": event.text(),
        }),
        Packet::EventAck(ack) => json!({ "sequence": ack.sequence().get() }),
        Packet::InfoRequest(request) => json!({ "client_nonce": wide(request.nonce().0) }),
        Packet::Info(info) => json!({
            "client_nonce": wide(info.nonce().0),
            "tick": info.tick().get(),
            "players": info.players(),
            "max_players": info.max_players(),
            "meta": tags(info.meta()),
        }),
        Packet::UnknownType(header) | Packet::OtherVersion(header) => {
            json!({ "version": header.version(), "packet_type": header.packet_type().0 })
        }
        _ => json!({}),
    };
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn action_fields(action: &ActionView<'_>) -> Value {
    let mut fields = json!({
        "sequence": action.sequence().get(),
        "cache": action.cache().map(entry),
        "player_action": action.action().number(),
    });
    match action.action() {
        Action::NoOp | Action::Walk(_) | Action::PickUp => {}
        Action::Interact(target) => fields["target"] = target.0.into(),
        Action::Attack(direction) | Action::Dig(direction) => {
            fields["direction"] = (direction as u8).into();
        }
        Action::Place { direction, item } => {
            fields["direction"] = (direction as u8).into();
            fields["item"] = item.into();
        }
        Action::Drop { item, count } => {
            fields["item"] = item.into();
            fields["count"] = count.into();
        }
        Action::Use { item } | Action::Equip { item } => fields["item"] = item.into(),
        Action::Say(said) => fields["text"] = said.into(),
    }
    fields
}

fn chunk_fields(chunk: &ChunkView<'_>) -> Value {
    json!({ "chunk": entry(chunk.entry()), "palette": chunk.palette().collect::<Vec<_>>() })
}

fn entity(entity: EntityView<'_>) -> Value {
    json!({
        "id": entity.id().0,
        "type_id": entity.type_id(),
        "pos_x": entity.x(),
        "pos_y": entity.y(),
        "hp": entity.hp(),
        "hp_max": entity.hp_max(),
        "elo": entity.elo(),
        "entity_flags": entity.flags().0,
        "meta": tags(entity.meta()),
    })
}

fn entry(entry: ChunkEntry) -> Value {
    json!([entry.id.x, entry.id.y, entry.version.0])
}

/// Tag and value of each field, the value as hex.
fn tags(block: TlvBlock<'_>) -> Value {
    block.fields().map(|field| json!([field.tag, hex(field.value)])).collect()
}

fn wide(number: u64) -> String {
    format!("{number:#018x}")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
