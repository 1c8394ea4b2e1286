//! Teeworlds 0.6: any datagram, read, written and read again.

use caves_wire::teeworlds::{
    Chunk, Chunks, ChunksView, Connless, Control, Header, InfoRequest, InfoView, Message, Packet,
    Tokens, huffman, varint,
};

const MAX_DATAGRAM: usize = 1400;
const MAX_PAYLOAD: usize = 1394;

/// The first byte says whether a token is expected, the rest is a datagram.
pub fn teeworlds_packet(data: &[u8]) {
    let Some((mode, datagram)) = data.split_first() else { return };
    let tokens = [Tokens::Without, Tokens::With, Tokens::Guess][usize::from(mode % 3)];
    let mut scratch = [0xEE; MAX_PAYLOAD];
    let packet = match Packet::parse(datagram, tokens, &mut scratch) {
        Ok(packet) => packet,
        Err(error) => {
            assert!(error.offset <= datagram.len(), "{error} in {} bytes", datagram.len());
            return;
        }
    };
    assert!(!packet.to_string().contains('\n'), "{packet}");
    written_again(&packet);
    let first = datagram[0];
    match packet {
        Packet::Connless(packet) => {
            assert_ne!(first & 0x20, 0);
            connless(&packet);
        }
        Packet::Control(packet) => {
            assert_eq!(first & 0xB4, 0x10, "{packet}");
            assert_eq!(packet.ack.get(), u32::from(first & 3) << 8 | u32::from(datagram[1]));
            control(&packet);
        }
        Packet::Chunks(view) => {
            assert_eq!(first & 0x34, 0, "{view}");
            chunks(view, &datagram[3..], tokens);
        }
    }
    integer(datagram);
}

/// What is written is read as the same, and written as the same bytes.
fn written_again(packet: &Packet<'_>) {
    let mut buf = [0xEE; MAX_DATAGRAM];
    let len = packet.emit(&mut buf).expect("what was read fits");
    let token = match packet {
        Packet::Connless(_) => None,
        Packet::Control(packet) => packet.token,
        Packet::Chunks(view) => view.token(),
    };
    let tokens = if token.is_some() { Tokens::With } else { Tokens::Without };
    let mut scratch = [0xEE; MAX_PAYLOAD];
    let again = Packet::parse(&buf[..len], tokens, &mut scratch).expect("what was written is read");
    match (packet, again) {
        (Packet::Connless(one), Packet::Connless(other)) => assert_eq!(*one, other),
        (Packet::Control(one), Packet::Control(other)) => assert_eq!(*one, other),
        (Packet::Chunks(one), Packet::Chunks(other)) => {
            assert_eq!(one.to_chunks(), other.to_chunks());
            // Compression is used where it is strictly shorter.
            let plain = one.payload().len() + token.map_or(0, |token| token.0.len());
            assert!(len <= 3 + plain);
            assert_eq!(other.header().compressed, len < 3 + plain);
        }
        (one, other) => panic!("{one}: {other}"),
    }
    let mut twice = [0xEE; MAX_DATAGRAM];
    assert_eq!(again.emit(&mut twice), Ok(len));
    assert_eq!(twice, buf);
    let mut short = vec![0xEE; len - 1];
    assert!(packet.emit(&mut short).is_err());
    assert!(short.iter().all(|byte| *byte == 0xEE), "{packet} writes all or nothing");
}

fn connless(packet: &Connless<'_>) {
    let mut buf = [0; 64];
    if let Ok(request) = InfoRequest::parse(packet) {
        let len = request.emit(&mut buf).expect("requests are short");
        let again = Connless::parse(&buf[..len]).and_then(|packet| InfoRequest::parse(&packet));
        assert_eq!(again, Ok(request));
        assert!(InfoView::parse(packet).is_err(), "it asks or it answers");
    }
    match InfoView::parse(packet) {
        Ok(view) => {
            // Five terminators a client.
            assert!(view.clients().count() <= packet.data.len() / 5);
        }
        Err(error) => assert!(error.offset <= packet.len(), "{error}"),
    }
}

fn control(packet: &Control<'_>) {
    let mut buf = [0; MAX_DATAGRAM];
    let len = packet.emit(&mut buf).expect("it was read");
    let header = Header::parse(&buf[..len]).expect("a header");
    assert!(header.control && !header.compressed && header.num_chunks == 0);
}

fn chunks(view: ChunksView<'_>, body: &[u8], tokens: Tokens) {
    let mut plain = view.payload().to_vec();
    plain.extend(view.token().iter().flat_map(|token| token.0));
    match tokens {
        Tokens::Without => assert_eq!(view.token(), None),
        Tokens::With => assert!(view.token().is_some()),
        Tokens::Guess => {}
    }
    if view.header().compressed {
        // Encoding is one to one, but for zeros and other bytes behind the end.
        let mut packed = vec![0; 2 * plain.len() + 3];
        let len = huffman::encode(plain.iter().copied(), &mut packed).expect("15 bits a byte");
        assert_eq!(len, huffman::encoded_len(plain.iter().copied()));
        let same = body.len().min(len).saturating_sub(2);
        assert_eq!(packed[..same], body[..same]);
    } else {
        assert_eq!(plain, body);
    }
    let expected = naive_chunks(view.payload(), view.header().num_chunks);
    let found: Vec<_> = view
        .chunks()
        .map(|chunk| (chunk.vital.map(|seq| seq.get()), chunk.resend, chunk.data.to_vec()))
        .collect();
    assert_eq!(found, expected);
    view.chunks().for_each(|chunk| message(&chunk));
    let raw = Chunks { num_chunks: 0, payload: &[], ..view.to_chunks() };
    assert!(raw.emit(&mut [0; 7]).is_ok(), "a header and a token");
}

/// Bit by bit, as the sheet draws it.
fn naive_chunks(mut rest: &[u8], announced: u8) -> Vec<(Option<u32>, bool, Vec<u8>)> {
    let bit = |byte: u8, at: u32| u32::from(byte) >> at & 1;
    let mut found = Vec::new();
    while found.len() < usize::from(announced) && rest.len() >= 2 {
        let size = (0..6).fold(0, |size, at| size + (bit(rest[0], at) << (at + 4)))
            + (0..4).fold(0, |size, at| size + (bit(rest[1], at) << at));
        let is_vital = bit(rest[0], 6) == 1;
        let head = if is_vital { 3 } else { 2 };
        let end = head + size as usize;
        if rest.len() < head || rest.len() < end {
            break;
        }
        let vital = is_vital.then(|| {
            let twice = |at| bit(rest[1], at - 2) | bit(rest[2], at);
            let high = bit(rest[1], 7) << 9 | bit(rest[1], 6) << 8;
            high | twice(7) << 7 | twice(6) << 6 | u32::from(rest[2] & 0x3F)
        });
        found.push((vital, bit(rest[0], 7) == 1, rest[head..end].to_vec()));
        rest = &rest[end..];
    }
    found
}

fn message(chunk: &Chunk<'_>) {
    let mut buf = [0; 8];
    if chunk.data.len() < 5 {
        let len = chunk.emit(&mut buf).expect("a short one");
        assert_eq!(Chunk::parse(&buf[..len]), Ok(*chunk));
    }
    let message = match Message::parse(chunk.data) {
        Ok(message) => message,
        Err(error) => {
            assert!(error.offset <= chunk.data.len(), "{error}");
            return;
        }
    };
    // Bytes that are no character become three.
    let (mut one, mut two) = ([0; 4096], [0; 4096]);
    let len = message.emit(&mut one).expect("what was read fits");
    let again = Message::parse(&one[..len]).expect("what was written is read");
    assert_eq!(again.id(), message.id());
    assert_eq!(again.emit(&mut two), Ok(len));
    assert_eq!(one, two);
}

/// Against arithmetic of another kind: digits to base 128 behind one to base 64.
fn integer(bytes: &[u8]) {
    match varint::decode(bytes) {
        Err(error) => {
            assert!(bytes.len() < 5 && error.got == bytes.len());
            assert!(bytes.iter().all(|byte| *byte >= 0x80));
        }
        Ok((value, len)) => {
            let (mut sum, mut unit) = (i64::from(bytes[0] % 64), 64);
            for (at, byte) in bytes[..len].iter().enumerate().skip(1) {
                sum += i64::from(if at == 4 { byte % 16 } else { byte % 128 }) * unit;
                unit *= 128;
            }
            let expected = if bytes[0] / 64 % 2 == 1 { -1 - sum } else { sum };
            assert_eq!(i64::from(value), expected);
            let (written, shortest) = varint::encode(value);
            assert!(shortest <= len);
            assert_eq!(varint::decode(&written[..shortest]), Ok((value, shortest)));
        }
    }
}
