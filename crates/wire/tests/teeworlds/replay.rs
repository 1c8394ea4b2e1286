//! Every captured datagram is read, and written again as it was where it holds no free choice.

use caves_wire::ErrorKind;
use caves_wire::teeworlds::{ChunkBuilder, Message, Packet, Tokens};

use crate::captures::{self, NAMES};

/// What a connection's datagrams are read with.
fn tokens(file: &str) -> Tokens {
    match file {
        "notoken" => Tokens::Without,
        // Each case of the probes has its own connection, and some have none.
        "probes" | "serverinfo" => Tokens::Guess,
        _ => Tokens::With,
    }
}

/// Datagrams that are refused, by file and line: the hand-made ones that the real server drops too.
const REFUSED: [(&str, usize, ErrorKind); 7] = [
    ("probes", 49, ErrorKind::Flags),        // bit 0x04
    ("probes", 253, ErrorKind::Compression), // the end cut off
    ("probes", 262, ErrorKind::Flags),       // a compressed control packet
    ("probes", 306, ErrorKind::TooShort),    // a control packet of three bytes
    ("probes", 327, ErrorKind::TooLong),     // 1401 bytes
    ("serverinfo", 18, ErrorKind::TooShort), // five bytes
    ("serverinfo", 20, ErrorKind::Version),  // 0.7
];

/// Datagrams that are written in another way, by file and line, all hand-made.
const OTHERWISE: [(&str, usize); 13] = [
    ("probes", 39),     // bit 0x08
    ("probes", 224),    // compressed without being shorter
    ("probes", 234),    // the token behind what is compressed
    ("probes", 243),    // bytes behind the end symbol
    ("probes", 273),    // chunks announced in a control packet
    ("probes", 295),    // a control packet of a token alone, guessed to be a CONNECT
    ("probes", 377),    // a connectionless header of other bytes
    ("probes", 406),    // a reason without its terminator
    ("probes", 425),    // without the extra zero byte
    ("probes", 435),    // TKEN and no token
    ("probes", 442),    // another magic than TKEN
    ("probes", 447),    // 508 bytes behind the token
    ("serverinfo", 15), // a connectionless header of other bytes
];

#[test]
fn every_datagram_is_read_and_written_again() {
    let (mut exact, mut refused, mut otherwise) = (0, Vec::new(), Vec::new());
    for datagram in captures::all() {
        let (file, line, bytes) = (datagram.file, datagram.line, &datagram.bytes);
        let mut scratch = [0; 1394];
        let packet = match Packet::parse(bytes, tokens(file), &mut scratch) {
            Ok(packet) => packet,
            Err(error) => {
                refused.push((file, line, error.kind));
                continue;
            }
        };
        let mut buf = [0; 1400];
        let len = packet.emit(&mut buf).unwrap();
        if buf[..len] == bytes[..] {
            exact += 1;
        } else {
            otherwise.push((file, line));
        }
    }
    assert_eq!(refused, REFUSED);
    assert_eq!(otherwise, OTHERWISE);
    assert_eq!(exact, 979 - REFUSED.len() - OTHERWISE.len());
}

#[test]
fn everything_that_the_real_server_sent_is_written_byte_for_byte() {
    let mut counts = Vec::new();
    for name in NAMES {
        let mut count = 0;
        for datagram in captures::read(name).into_iter().filter(|datagram| datagram.from_server) {
            let (mut scratch, mut buf) = ([0; 1394], [0; 1400]);
            let packet = Packet::parse(&datagram.bytes, tokens(name), &mut scratch).unwrap();
            let len = packet.emit(&mut buf).unwrap();
            assert_eq!(buf[..len], datagram.bytes, "{name}, line {}", datagram.line);
            count += 1;
        }
        counts.push(count);
    }
    assert_eq!(counts, [79, 71, 184, 48, 124, 6, 4]);
}

#[test]
fn every_message_is_read_and_written_again() {
    let (mut known, mut other, mut refused) = (0, 0, Vec::new());
    for datagram in captures::all() {
        let (mut scratch, mut buf) = ([0; 1394], [0; 1400]);
        let packet = Packet::parse(&datagram.bytes, tokens(datagram.file), &mut scratch);
        let Ok(Packet::Chunks(view)) = packet else { continue };
        for chunk in view.chunks() {
            let message = match Message::parse(chunk.data) {
                Ok(message) => message,
                Err(error) => {
                    refused.push((datagram.file, datagram.line, chunk.data.len(), error.kind));
                    continue;
                }
            };
            let len = message.emit(&mut buf).unwrap();
            // One probe has a byte behind the message.
            assert!(chunk.data.starts_with(&buf[..len]), "{message:?}");
            let rest = chunk.data.len() - len;
            assert!(rest == 0 || datagram.file == "probes", "{message:?}");
            match message {
                Message::Other { .. } => other += 1,
                _ => known += 1,
            }
        }
    }
    assert_eq!((known, other), (2353, 1365));
    // Filler of a long datagram, and a chunk of no bytes.
    let filler = |len| ("probes", 317, len, ErrorKind::Range);
    assert_eq!(refused, [filler(500), filler(885), ("probes", 336, 0, ErrorKind::Integer)]);
}

/// Chunk by chunk into a builder: what a session does.
#[test]
fn packets_of_a_real_server_are_built_again_from_their_chunks() {
    let (mut built, mut longest) = (0, 0);
    for datagram in captures::all().iter().filter(|datagram| datagram.from_server) {
        let (mut scratch, mut buf) = ([0; 1394], [0; 1400]);
        let packet = Packet::parse(&datagram.bytes, tokens(datagram.file), &mut scratch);
        let Ok(Packet::Chunks(view)) = packet else { continue };
        let mut builder = ChunkBuilder::new();
        for chunk in view.chunks() {
            builder.push(&chunk).unwrap();
        }
        let len = builder.packet(view.envelope()).emit(&mut buf).unwrap();
        assert_eq!(buf[..len], datagram.bytes, "{}, line {}", datagram.file, datagram.line);
        built += 1;
        longest = longest.max(view.payload().len());
    }
    assert_eq!((built, longest), (454, 1385));
}
