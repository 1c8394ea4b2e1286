//! ferravex 2.

use std::borrow::Cow;

use caves_wire::ferravex::{HeaderView, Packet};
use serde_json::{Map, Value, json};

use super::{Decoded, Facts};
use crate::datagram::Way;

/// The first eight bytes of every datagram.
pub const MAGIC: [u8; 8] = caves_wire::ferravex::MAGIC;
/// The protocol has no default port.
pub const PORTS: [u16; 0] = [];

/// Reads a datagram.
pub fn decode(datagram: &[u8], way: Option<Way>) -> Decoded<'_> {
    let packet = match Packet::parse(datagram) {
        Ok(packet) => packet,
        Err(error) => return malformed(datagram, error),
    };
    let kind = packet.kind();
    let sent_by = if kind.is_from_client() { Way::ToServer } else { Way::ToClient };
    let wrong = way.is_some_and(|way| way != sent_by);
    Decoded {
        kind: kind.name().map_or_else(|| format!("kind {}", kind.0).into(), Cow::Borrowed),
        line: packet.to_string(),
        problem: wrong.then(|| "a kind that only the other side sends".to_owned()),
        way: (!wrong).then_some(sent_by),
        facts: Facts::Ferravex(packet),
    }
}

/// The kind is counted where the header can still be read.
fn malformed(datagram: &[u8], error: caves_wire::ParseError) -> Decoded<'_> {
    let name = HeaderView::parse(datagram).ok().and_then(|header| header.kind().name());
    let kind = match name {
        Some(name) => Cow::Owned(format!("malformed {name}")),
        None => Cow::Borrowed("malformed"),
    };
    Decoded { kind, ..Decoded::malformed(datagram, error.to_string()) }
}

/// The fields by their names in the note. Session cookies are left out, as tokens are.
pub fn fields(packet: &Packet<'_>) -> Map<String, Value> {
    let value = match packet {
        Packet::Hello(hello) => json!({ "nonce": wide(hello.nonce().0) }),
        Packet::Input(input) => json!({
            "frames": input.frames().map(|frame| json!({
                "sequence": frame.sequence.get(),
                "move_x": frame.move_x,
                "move_y": frame.move_y,
                "yaw": frame.yaw,
                "pitch": frame.pitch,
                "buttons": frame.buttons,
            })).collect::<Vec<_>>(),
        }),
        Packet::Welcome(welcome) => json!({
            "nonce": wide(welcome.nonce().0),
            "player_id": welcome.player().0,
            "tick": welcome.tick().get(),
        }),
        Packet::Snapshot(snapshot) => json!({
            "tick": snapshot.tick().get(),
            "ack_sequence": snapshot.ack().map(|ack| ack.get()),
            "players": snapshot.players().map(|player| json!({
                "player_id": player.id.0,
                "position": player.position,
                "velocity": player.velocity,
                "yaw": player.yaw,
                "health": player.health,
            })).collect::<Vec<_>>(),
        }),
        Packet::Event(event) => {
            json!({ "sequence": event.sequence(), "length": event.payload().len() })
        }
        Packet::EventAck(ack) => json!({ "sequence": ack.sequence() }),
    };
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn wide(number: u64) -> String {
    format!("{number:#018x}")
}
