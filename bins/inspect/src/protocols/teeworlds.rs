//! Teeworlds 0.6, as DDNet speaks it.

use std::borrow::Cow;

use caves_wire::teeworlds::{
    ChunksView, Connless, Control, ControlMessage, InfoRequest, InfoView, MAX_PAYLOAD, MessageId,
    Packet, Sequence, Tokens,
};
use serde_json::{Map, Value, json};

use super::{Decoded, Facts};
use crate::datagram::Way;

/// Where servers listen: the first one, and those that find it taken.
pub const PORTS: [u16; 8] = [8303, 8304, 8305, 8306, 8307, 8308, 8309, 8310];

/// Whether a datagram can be of this protocol. It has no magic, so this is said of those alone that
/// can hardly be something else: connectionless packets and control packets.
pub fn looks_like_it(datagram: &[u8]) -> bool {
    let connless = datagram.starts_with(&[0xFF; 6]) || datagram.starts_with(b"xe");
    let control = matches!(datagram, [first, _, 0, 0..=4, ..] if first & 0xFC == 0x10);
    (connless && datagram.len() >= 6) || control
}

/// What a follower wants of a packet. It is kept apart from the datagram, since a compressed payload is
/// expanded to somewhere else.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TeeworldsFacts {
    /// The control message's id.
    pub control: Option<u8>,
    /// The last vital chunk that the sender has received; `None` without a connection.
    pub ack: Option<Sequence>,
    /// The sender lacks a vital chunk.
    pub resend: bool,
    /// The chunks that are whole.
    pub chunks: Vec<ChunkFact>,
    /// What is odd about the chunks behind them.
    pub fault: Option<String>,
}

/// One chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkFact {
    /// Its number, if it is vital.
    pub vital: Option<Sequence>,
    /// It says that it was sent before.
    pub resend: bool,
    /// Bytes of its message.
    pub bytes: usize,
    /// The message's name.
    pub message: String,
}

/// Reads a datagram.
pub fn decode(datagram: &[u8], _way: Option<Way>) -> Decoded<'_> {
    let mut scratch = [0; MAX_PAYLOAD];
    let packet = match Packet::parse(datagram, Tokens::Guess, &mut scratch) {
        Ok(packet) => packet,
        Err(error) => return Decoded::malformed(datagram, error.to_string()),
    };
    let (kind, way) = match &packet {
        Packet::Connless(packet) => connless(packet),
        Packet::Control(packet) => control(packet.message),
        Packet::Chunks(_) => (Cow::Borrowed("Chunks"), None),
    };
    let facts = match &packet {
        Packet::Connless(_) => TeeworldsFacts::default(),
        Packet::Control(Control { ack, resend, message, .. }) => TeeworldsFacts {
            control: Some(message.id()),
            ack: Some(*ack),
            resend: *resend,
            ..TeeworldsFacts::default()
        },
        Packet::Chunks(packet) => chunks(packet),
    };
    Decoded { kind, line: packet.to_string(), problem: None, way, facts: Facts::Teeworlds(facts) }
}

fn connless(packet: &Connless<'_>) -> (Cow<'static, str>, Option<Way>) {
    if InfoRequest::parse(packet).is_ok() {
        (Cow::Borrowed("InfoRequest"), Some(Way::ToServer))
    } else if InfoView::parse(packet).is_ok() {
        (Cow::Borrowed("Info"), Some(Way::ToClient))
    } else {
        (Cow::Borrowed("Connless"), None)
    }
}

fn control(message: ControlMessage<'_>) -> (Cow<'static, str>, Option<Way>) {
    let (name, way) = match message {
        ControlMessage::KeepAlive => ("KeepAlive", None),
        ControlMessage::Connect(_) => ("Connect", Some(Way::ToServer)),
        ControlMessage::ConnectAccept(_) => ("ConnectAccept", Some(Way::ToClient)),
        ControlMessage::Accept => ("Accept", Some(Way::ToServer)),
        ControlMessage::Close(_) => ("Close", None),
        other => return (Cow::Owned(format!("control {}", other.id())), None),
    };
    (Cow::Borrowed(name), way)
}

fn chunks(packet: &ChunksView<'_>) -> TeeworldsFacts {
    let mut chunks = packet.chunks();
    let all = chunks.by_ref().map(|chunk| ChunkFact {
        vital: chunk.vital,
        resend: chunk.resend,
        bytes: chunk.data.len(),
        message: MessageId::parse(chunk.data)
            .map_or_else(|_| String::new(), |(id, _)| id.to_string()),
    });
    let all = all.collect();
    let header = packet.header();
    TeeworldsFacts {
        control: None,
        ack: Some(header.ack),
        resend: header.resend,
        chunks: all,
        fault: chunks.fault().map(|fault| fault.to_string()),
    }
}

/// Acknowledgement, request and chunks.
pub fn fields(facts: &TeeworldsFacts) -> Map<String, Value> {
    let mut fields = Map::new();
    let Some(ack) = facts.ack else { return fields };
    fields.insert("ack".to_owned(), ack.get().into());
    fields.insert("resend".to_owned(), facts.resend.into());
    match facts.control {
        Some(id) => {
            fields.insert("control".to_owned(), id.into());
        }
        None => {
            let chunks = facts.chunks.iter().map(|chunk| {
                json!({
                    "sequence": chunk.vital.map(|sequence| sequence.get()),
                    "resend": chunk.resend,
                    "bytes": chunk.bytes,
                    "message": chunk.message,
                })
            });
            fields.insert("chunks".to_owned(), chunks.collect());
        }
    }
    fields
}
