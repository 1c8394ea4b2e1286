//! Parse, write through the plain struct, parse again.

use caves_wire::bits::TILES;
use caves_wire::caves::{
    ActionPacket, Challenge, Chunk, Detail, Echo, EntityBuilder, Event, EventAck, HeaderView,
    Hello, Info, InfoRequest, Join, Leave, MAX_DETAIL_META, Packet, PacketType, Query, Refuse,
    State, VERSION, Welcome,
};
use caves_wire::fnv::Fnv32;
use caves_wire::{EmitError, MAX_DATAGRAM};

/// The plain struct of an accepted datagram writes the same bytes again, but for what R1, R3 and R25
/// fix, and needs exactly the room it says.
pub fn roundtrip(data: &[u8]) {
    let Ok(packet) = Packet::parse(data) else { return };
    let mut buf = [0xEE; MAX_DATAGRAM];
    let len = match emit(packet, data, &mut buf) {
        None => return,
        Some(Ok(len)) => len,
        Some(Err(error)) => {
            let long = matches!(packet, Packet::Detail(view)
                if view.meta().as_bytes().len() > MAX_DETAIL_META);
            assert!(long, "{packet}: {error}");
            return;
        }
    };
    let expected = normal(packet, data);
    assert_eq!(buf[..len], expected[..], "{packet}");
    assert!(buf[len..].iter().all(|byte| *byte == 0xEE), "{packet} writes past its end");
    Packet::parse(&buf[..len]).expect("what was written is read");

    let mut exact = vec![0xEE; len];
    assert_eq!(emit(packet, data, &mut exact), Some(Ok(len)), "{packet} fits");
    assert_eq!(exact, expected);
    let mut short = vec![0xEE; len - 1];
    // Entries are pushed until one does not fit; there is no error in that.
    if !matches!(packet, Packet::Entities(_)) {
        assert!(matches!(emit(packet, data, &mut short), Some(Err(_))), "{packet} does not fit");
        assert!(short.iter().all(|byte| *byte == 0xEE), "{packet} writes all or nothing");
    }
}

/// The datagram as its writer would have it.
fn normal(packet: Packet<'_>, data: &[u8]) -> Vec<u8> {
    let mut bytes = data.to_vec();
    let from_client = HeaderView::parse(data).is_ok_and(|header| {
        header.packet_type().is_from_client() || header.packet_type() == PacketType::PONG
    });
    if !from_client {
        // Servers are of client type 0 (R3).
        bytes[4..6].fill(0);
    }
    match packet {
        Packet::Hello(_) | Packet::InfoRequest(_) => bytes[14..].fill(0),
        Packet::Entities(_) => bytes[11] &= 1,
        Packet::Refuse(_) => (bytes[2], bytes[15]) = (VERSION, VERSION),
        _ => {}
    }
    bytes
}

fn emit(packet: Packet<'_>, data: &[u8], buf: &mut [u8]) -> Option<Result<usize, EmitError>> {
    let client_type = HeaderView::parse(data).ok()?.client_type();
    // What is announced is what is written.
    let same = |announced: usize, written: Result<usize, EmitError>| {
        assert_eq!(announced, data.len(), "{packet}");
        Some(written)
    };
    match packet {
        Packet::State(view) => {
            let plain = State {
                tick: view.tick(),
                chunks: view.chunks(),
                player: view.player(),
                entity_checksum: view.entity_checksum(),
            };
            same(State::LEN, plain.emit(buf))
        }
        Packet::Action(view) => {
            let plain = ActionPacket {
                client_type: view.client_type(),
                token: view.token(),
                sequence: view.sequence(),
                cache: view.cache(),
                action: view.action(),
            };
            same(plain.len(), plain.emit(buf))
        }
        Packet::Chunk(view) => {
            let palette: Vec<u16> = view.palette().collect();
            let mut indices = [0; TILES];
            view.indices(&mut indices);
            let plain = Chunk { entry: view.entry(), palette: &palette, indices: &indices };
            same(plain.len(), plain.emit(buf))
        }
        Packet::Entities(view) => {
            let mut builder = match EntityBuilder::new(buf, view.tick(), Fnv32::new()) {
                Ok(builder) => builder,
                Err(error) => return Some(Err(error)),
            };
            for entity in view.entities() {
                match builder.push(&entity.to_entity()) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => return Some(Err(error)),
                }
            }
            let whole = builder.count() == view.count();
            let (len, checksum) = builder.finish(view.more_follow());
            assert!(!whole || checksum == view.checksum(Fnv32::new()));
            Some(Ok(len))
        }
        Packet::Query(view) => {
            let plain = Query { client_type, token: view.token(), entity: view.entity() };
            same(Query::LEN, plain.emit(buf))
        }
        Packet::Detail(view) => {
            let meta = view.meta().as_bytes();
            let plain = Detail { tick: view.tick(), entity: view.entity(), meta };
            same(plain.len(), plain.emit(buf))
        }
        Packet::Ping(view) | Packet::Pong(view) => {
            let (kind, timestamp_ms) = (view.kind(), view.timestamp_ms());
            same(Echo::LEN, Echo { kind, client_type, timestamp_ms }.emit(buf))
        }
        other => emit_joining(other, data, buf),
    }
}

fn emit_joining(
    packet: Packet<'_>,
    data: &[u8],
    buf: &mut [u8],
) -> Option<Result<usize, EmitError>> {
    let client_type = HeaderView::parse(data).ok()?.client_type();
    let (announced, written) = match packet {
        Packet::Hello(view) => {
            let plain = Hello { client_type: view.client_type(), nonce: view.nonce() };
            (Hello::LEN, plain.emit(buf))
        }
        Packet::Challenge(view) => {
            let (nonce, cookie, server_key) = (view.nonce(), view.cookie(), *view.server_key());
            (Challenge::LEN, Challenge { nonce, cookie, server_key }.emit(buf))
        }
        Packet::Join(view) => {
            let (nonce, cookie) = (view.nonce(), view.cookie());
            let meta = view.meta().as_bytes();
            let plain = Join { client_type: view.client_type(), nonce, cookie, meta };
            (plain.len(), plain.emit(buf))
        }
        Packet::Welcome(view) => {
            let plain = Welcome {
                nonce: view.nonce(),
                token: view.token(),
                player: view.player(),
                tick: view.tick(),
                tick_rate: view.tick_rate(),
                meta: view.meta().as_bytes(),
            };
            (plain.len(), plain.emit(buf))
        }
        Packet::Refuse(view) => {
            let (nonce, reason, text) = (view.nonce(), view.reason(), view.text());
            let plain = Refuse { nonce, reason, text };
            (plain.len(), plain.emit(buf))
        }
        Packet::Leave(view) => {
            let (token, reason) = (view.token(), view.reason());
            (Leave::LEN, Leave { client_type, token, reason }.emit(buf))
        }
        Packet::Event(view) => {
            let (sequence, kind, from) = (view.sequence(), view.kind(), view.from());
            let plain = Event { sequence, kind, from, text: view.text() };
            (plain.len(), plain.emit(buf))
        }
        Packet::EventAck(view) => {
            let (token, sequence) = (view.token(), view.sequence());
            (EventAck::LEN, EventAck { client_type, token, sequence }.emit(buf))
        }
        Packet::InfoRequest(view) => {
            (InfoRequest::LEN, InfoRequest { client_type, nonce: view.nonce() }.emit(buf))
        }
        Packet::Info(view) => {
            let plain = Info {
                nonce: view.nonce(),
                tick: view.tick(),
                players: view.players(),
                max_players: view.max_players(),
                meta: view.meta().as_bytes(),
            };
            (plain.len(), plain.emit(buf))
        }
        _ => return None,
    };
    assert_eq!(announced, data.len(), "{packet}");
    Some(written)
}
