//! blank.

use std::borrow::Cow;

use caves_wire::blank::{Packet, PacketType, TAG};
use serde_json::{Map, Value, json};

use super::{Decoded, Facts};
use crate::datagram::Way;

/// The first four bytes of every datagram.
pub const MAGIC: [u8; 4] = TAG.to_le_bytes();
/// The default port.
pub const PORTS: [u16; 1] = [12_354];

/// Reads a datagram.
pub fn decode(datagram: &[u8], way: Option<Way>) -> Decoded<'_> {
    let packet = match Packet::parse(datagram) {
        Ok(packet) => packet,
        Err(error) => return Decoded::malformed(datagram, error.to_string()),
    };
    let packet_type = packet.header().packet_type();
    let sent_by = sender(packet_type);
    let wrong = sent_by.is_some() && way.is_some() && sent_by != way;
    Decoded {
        kind: match packet_type.name() {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(packet_type.to_string()),
        },
        line: packet.to_string(),
        problem: wrong.then(|| "a type that only the other side sends".to_owned()),
        way: sent_by.filter(|_| !wrong),
        facts: Facts::Blank(packet),
    }
}

/// Pings and parts go both ways; what later revisions have beside them, servers send.
fn sender(packet_type: PacketType) -> Option<Way> {
    match packet_type {
        PacketType::LOGIN => Some(Way::ToServer),
        PacketType::JOIN => Some(Way::ToClient),
        _ => None,
    }
}

/// Header and, of a login or join, the name and the place.
pub fn fields(packet: &Packet<'_>) -> Map<String, Value> {
    let header = packet.header();
    let mut fields = json!({
        "seq": header.seq().get(),
        "ack": header.ack().latest().get(),
        "hist": format!("{:08x}", header.ack().before()),
        "payload": header.payload().len(),
    });
    match packet {
        Packet::Login(login) => fields["name"] = login.name().to_string().into(),
        Packet::Join(join) => {
            let spawn = join.spawn();
            fields["entity"] = spawn.entity.0.into();
            fields["chunk"] = json!(spawn.chunk);
            fields["world"] = join.world().to_string().into();
        }
        Packet::NewestJoin(join) => {
            let join = join.to_join();
            fields["entity"] = join.entity.0.into();
            fields["chunk"] = json!(join.chunk);
            fields["world"] = join.world.to_string().into();
        }
        _ => {}
    }
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
