//! The same bytes through libtw2, which others wrote.
//!
//! It is more lenient in places; each of them is named where the two are compared.

use caves_wire::ErrorKind;
use caves_wire::teeworlds::{
    Chunk, Cleaning, Connless, ControlMessage, Header, MessageId, Packet, Reader, Text, Tokens,
    Writer, varint,
};
use libtw2_net::protocol::{
    ChunksIter, ConnectedPacket, ConnectedPacketType, ControlPacket, Packet as Theirs,
    PacketReadError, Token as TheirToken,
};
use libtw2_packer::{Unpacker, with_packer};
use libtw2_warn::Ignore;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::captures;
use crate::model;

/// Room for whatever they expand.
fn room() -> Vec<u8> {
    Vec::with_capacity(8192)
}

fn theirs<'a>(
    bytes: &'a [u8],
    with_token: bool,
    buffer: &'a mut Vec<u8>,
) -> Result<Theirs<'a>, PacketReadError> {
    Theirs::read(&mut Ignore, bytes, Some(with_token), buffer)
}

/// Both read a datagram alike, or differ where we are known to be stricter.
fn compare(bytes: &[u8], with_token: bool) {
    let (mut scratch, mut buffer) = ([0; 1394], room());
    let tokens = if with_token { Tokens::With } else { Tokens::Without };
    let ours = Packet::parse(bytes, tokens, &mut scratch);
    let theirs = theirs(bytes, with_token, &mut buffer);
    match (ours, theirs) {
        (Ok(Packet::Connless(ours)), Ok(Theirs::Connless(theirs))) => assert_eq!(ours.data, theirs),
        (Ok(Packet::Chunks(ours)), Ok(Theirs::Connected(theirs))) => {
            let ConnectedPacketType::Chunks(resend, num_chunks, payload) = theirs.type_ else {
                panic!("{ours}: {theirs:?}");
            };
            assert_eq!(ours.header().ack.get(), theirs.ack.into());
            assert_eq!(ours.token().map(|token| token.0), theirs.token.map(|token| token.0));
            assert_eq!(ours.payload(), payload);
            assert_eq!((ours.header().resend, ours.header().num_chunks), (resend, num_chunks));
            // They go on behind the number that is announced.
            let chunks = ChunksIter::new(payload, num_chunks).take(num_chunks.into());
            assert!(ours.chunks().map(parts).eq(chunks.map(|chunk| (chunk.data, chunk.vital))));
        }
        (Ok(Packet::Control(ours)), Ok(Theirs::Connected(theirs))) => {
            assert_eq!(ours.ack.get(), theirs.ack.into());
            let ConnectedPacketType::Control(control) = theirs.type_ else {
                panic!("{ours}: {theirs:?}");
            };
            let same = match (ours.message, control) {
                // Their token is always the end; ours stands behind TKEN.
                (ControlMessage::Connect(_), ControlPacket::Connect)
                | (ControlMessage::ConnectAccept(_), ControlPacket::ConnectAccept) => return,
                (ControlMessage::KeepAlive, ControlPacket::KeepAlive)
                | (ControlMessage::Accept, ControlPacket::Accept) => true,
                (ControlMessage::Close(reason), ControlPacket::Close(text)) => {
                    reason.map_or(&[][..], |reason| reason.as_bytes()) == text
                }
                _ => false,
            };
            assert!(same, "{ours}: {control:?}");
            assert_eq!(ours.token.map(|token| token.0), theirs.token.map(|token| token.0));
        }
        // An unknown message is a value for us.
        (Ok(Packet::Control(ours)), Err(PacketReadError::UnknownControl)) => {
            assert!(matches!(ours.message, ControlMessage::Unknown { .. }));
        }
        // With a token CONNECT is too short for them, but it has its own.
        (Ok(Packet::Control(ours)), Err(PacketReadError::TokenMissing)) => {
            assert!(matches!(ours.message.id(), 1 | 2), "{ours}");
        }
        (Err(error), Ok(theirs)) => assert!(is_stricter(bytes, error.kind), "{error}: {theirs:?}"),
        (Err(_), Err(_)) => {}
        (ours, theirs) => panic!("{ours:?}: {theirs:?}"),
    }
}

fn parts<'a>(chunk: Chunk<'a>) -> (&'a [u8], Option<(u16, bool)>) {
    (chunk.data, chunk.vital.map(|sequence| (sequence.get() as u16, chunk.resend)))
}

/// What DDNet drops and libtw2 does not.
fn is_stricter(bytes: &[u8], kind: ErrorKind) -> bool {
    let is_connless = bytes[0] & 0x20 != 0;
    match kind {
        // 0.7.
        ErrorKind::Version => is_connless && bytes[0] & 3 == 1,
        // 0.7, and control packets that are compressed.
        ErrorKind::Flags => !is_connless && (bytes[0] & 0x04 != 0 || bytes[0] & 0x90 == 0x90),
        // 1395 to 1397 bytes come out.
        ErrorKind::Compression => {
            model::decode(&bytes[3..], 1397).is_some_and(|plain| plain.len() > 1394)
        }
        _ => false,
    }
}

#[test]
fn every_captured_datagram_is_read_alike() {
    for datagram in captures::all() {
        for with_token in [false, true] {
            compare(&datagram.bytes, with_token);
        }
    }
}

#[test]
fn every_captured_message_is_split_alike() {
    let mut count = 0;
    for datagram in captures::all() {
        let mut scratch = [0; 1394];
        let packet = Packet::parse(&datagram.bytes, Tokens::Guess, &mut scratch);
        let Ok(Packet::Chunks(view)) = packet else { continue };
        for chunk in view.chunks().filter(|chunk| !chunk.data.is_empty()) {
            let Ok((id, len)) = MessageId::parse(chunk.data) else { continue };
            let mut unpacker = Unpacker::new(chunk.data);
            let number = unpacker.read_int(&mut Ignore).unwrap();
            let (system, id) = match id {
                MessageId::System(id) => (1, id),
                MessageId::Game(id) => (0, id),
                MessageId::Extended { system, uuid } => {
                    assert_eq!(unpacker.read_raw(16).unwrap(), uuid);
                    (system.into(), 0)
                }
            };
            assert_eq!(number, i32::from(id) << 1 | system);
            assert_eq!(unpacker.num_bytes_read(), len);
            count += 1;
        }
    }
    assert!(count > 3000, "{count} messages");
}

/// What we write of a capture is what they write, but for the extra zero byte.
#[test]
fn packets_are_written_alike() {
    let (mut same, mut longer) = (0, [0; 2]);
    for datagram in captures::all().iter().filter(|datagram| datagram.from_server) {
        let (mut scratch, mut buffer) = ([0; 1394], room());
        let with_token = datagram.file != "notoken";
        let tokens = if with_token { Tokens::With } else { Tokens::Without };
        // In the probes some connections have none.
        let (Ok(ours), Ok(theirs)) = (
            Packet::parse(&datagram.bytes, tokens, &mut scratch),
            theirs(&datagram.bytes, with_token, &mut buffer),
        ) else {
            continue;
        };
        let mut buf = [0; 1400];
        let len = ours.emit(&mut buf).unwrap();
        let mut out = room();
        let written = theirs.write(&mut out).unwrap();
        if buf[..len] == *written {
            same += 1;
        } else {
            assert_eq!(buf[..len], [written, &[0]].concat(), "{ours}");
            longer[usize::from(datagram.dropped)] += 1;
        }
    }
    assert_eq!(
        longer,
        [30, 4],
        "as many as end exactly at a byte's end, and those that were dropped"
    );
    // Two answers to clients without tokens are too short for them to hold one.
    assert_eq!(same, 516 - 34 - 2);
}

/// Datagrams of the captures with some bytes changed, and any bytes.
fn datagram() -> impl Strategy<Value = Vec<u8>> {
    let all: Vec<Vec<u8>> = captures::all().into_iter().map(|datagram| datagram.bytes).collect();
    let changed = (
        proptest::sample::select(all),
        vec((any::<proptest::sample::Index>(), any::<u8>()), 0..4),
        any::<proptest::sample::Index>(),
        any::<bool>(),
    )
        .prop_map(|(mut bytes, changes, cut, is_cut)| {
            for (at, value) in changes {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            if is_cut {
                bytes.truncate(cut.index(bytes.len() + 1));
            }
            bytes
        });
    prop_oneof![3 => changed, 1 => vec(any::<u8>(), 0..80), 1 => vec(any::<u8>(), 0..1402)]
}

fn token() -> impl Strategy<Value = Option<[u8; 4]>> {
    proptest::option::of(any::<[u8; 4]>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_datagram_is_read_alike(bytes in datagram(), with_token: bool) {
        compare(&bytes, with_token);
    }

    /// What they write is read as they meant it.
    #[test]
    fn what_they_write_we_read(
        ack in 0u16..1024,
        resend: bool,
        token in token(),
        sizes in vec((0usize..200, proptest::option::of((0u16..1024, any::<bool>())), any::<u8>()), 0..6),
    ) {
        let mut payload = Vec::new();
        let mut chunks = Vec::new();
        for (size, vital, byte) in sizes {
            let data = vec![byte; size];
            let mut out = room();
            payload.extend_from_slice(
                libtw2_net::protocol::write_chunk(&data, vital, &mut out).unwrap(),
            );
            chunks.push((data, vital));
        }
        let packet = Theirs::Connected(ConnectedPacket {
            ack,
            token: token.map(TheirToken),
            type_: ConnectedPacketType::Chunks(resend, chunks.len() as u8, &payload),
        });
        let mut out = room();
        let bytes = packet.write(&mut out).unwrap();
        let tokens = if token.is_some() { Tokens::With } else { Tokens::Without };
        let mut scratch = [0; 1394];
        let Ok(Packet::Chunks(view)) = Packet::parse(bytes, tokens, &mut scratch) else {
            panic!("chunks");
        };
        prop_assert_eq!(view.header().ack.get(), u32::from(ack));
        prop_assert_eq!(view.header().resend, resend);
        prop_assert_eq!(view.token().map(|token| token.0), token);
        let read: Vec<_> =
            view.chunks().map(parts).map(|(data, vital)| (data.to_vec(), vital)).collect();
        prop_assert_eq!(read, chunks);
    }

    #[test]
    fn compression_is_the_same_but_for_the_extra_byte(plain in vec(any::<u8>(), 0..400)) {
        let (ours, theirs) = (model::encode(&plain), libtw2_huffman::compress(&plain));
        let extra: &[u8] = if ours.len() > theirs.len() { &[0] } else { &[] };
        prop_assert_eq!(&ours, &[&theirs[..], extra].concat());
        let mut buffer = room();
        let reference =
            libtw2_huffman::instances::TEEWORLDS.compress_bug(&plain, &mut buffer).unwrap();
        prop_assert_eq!(&ours, reference);
    }

    #[test]
    fn any_bytes_are_expanded_alike(packed: Vec<u8>, room in 0usize..400) {
        let mut buffer = Vec::with_capacity(room);
        // A vector may have got more than it asked for.
        let room = buffer.capacity();
        let theirs = libtw2_huffman::decompress_into(&packed, &mut buffer).ok().map(<[u8]>::to_vec);
        prop_assert_eq!(model::decode(&packed, room), theirs);
    }

    #[test]
    fn integers_are_packed_alike(value: i32, shift in 0u32..32) {
        let value = value >> shift;
        let mut out = room();
        let theirs = with_packer(&mut out, |mut packer| {
            packer.write_int(value).unwrap();
            packer.written()
        });
        let (ours, len) = varint::encode(value);
        prop_assert_eq!(&ours[..len], theirs);
        prop_assert_eq!(varint::decode(theirs), Ok((value, len)));
    }

    #[test]
    fn any_bytes_are_unpacked_alike(mut bytes in vec(any::<u8>(), 0..12)) {
        // Of a fifth byte the reference takes four bits, and libtw2 one more.
        if let Some(fifth) = bytes.get_mut(4) {
            *fifth &= 0xEF;
        }
        let (mut ours, mut theirs) = (Reader::new("Test", &bytes), Unpacker::new(&bytes));
        let number = theirs.read_int(&mut Ignore).ok();
        prop_assert_eq!(ours.int().ok(), number);
        let text = number.and_then(|_| theirs.read_string().ok());
        prop_assert_eq!(ours.text(Cleaning::Raw).ok().map(Text::as_bytes), text);
        // After an error there is nothing more.
        let rest = text.and_then(|_| theirs.read_rest().ok());
        prop_assert_eq!(ours.rest().ok(), rest);
    }

    #[test]
    fn texts_are_packed_alike(text in "\\PC{0,40}") {
        let (mut out, mut buf) = (room(), [0; 256]);
        let theirs = with_packer(&mut out, |mut packer| {
            packer.write_string(text.as_bytes()).unwrap();
            packer.written()
        });
        let mut writer = Writer::new("Test", &mut buf);
        writer.text(text.as_bytes(), 255).unwrap();
        prop_assert_eq!(writer.finish().unwrap(), theirs);
    }

    #[test]
    fn connectionless_packets_are_written_alike(data in vec(any::<u8>(), 0..1390)) {
        let (mut out, mut buf) = (room(), [0; 1400]);
        let len = Connless { extra: None, data: &data }.emit(&mut buf).unwrap();
        prop_assert_eq!(&buf[..len], Theirs::Connless(&data).write(&mut out).unwrap());
        prop_assert!(Header::is_connless(&buf));
    }
}
