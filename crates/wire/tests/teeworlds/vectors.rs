//! Bytes that the facts about the protocol name, both ways.

use caves_wire::teeworlds::{
    Chunk, ChunkBuilder, ChunkIter, Connless, Control, ControlMessage, Envelope, InfoKind,
    InfoRequest, InfoView, InfoWanted, Message, MessageId, Packet, Sequence, Text, Token, Tokens,
    varint,
};
use caves_wire::{EmitError, ErrorKind};

use crate::captures::{self, unhex};
use crate::model;

const TOKEN: Token = Token([0x01, 0xA2, 0x06, 0xF4]);

#[test]
fn control_packets_are_those_of_a_real_server() {
    let rows = [
        ("10 03 00 00 01a206f4", 3, ControlMessage::KeepAlive, Some(TOKEN)),
        (
            "10 00 00 01 544b454e ffffffff",
            0,
            ControlMessage::Connect(Some(Token::UNKNOWN)),
            Some(Token::UNKNOWN),
        ),
        ("10 00 00 01", 0, ControlMessage::Connect(None), None),
        (
            "10 00 00 02 544b454e 01a206f4",
            0,
            ControlMessage::ConnectAccept(Some(TOKEN)),
            Some(TOKEN),
        ),
        ("10 00 00 02", 0, ControlMessage::ConnectAccept(None), None),
        ("10 00 00 03 01a206f4", 0, ControlMessage::Accept, Some(TOKEN)),
        ("10 00 00 03", 0, ControlMessage::Accept, None),
        ("10 20 00 04 62796500 01a206f4", 32, ControlMessage::close("bye"), Some(TOKEN)),
        ("10 00 00 04 00", 0, ControlMessage::close(""), None),
        ("10 00 00 04", 0, ControlMessage::Close(None), None),
        ("10 00 00 09 0102", 0, ControlMessage::Unknown { id: 9, payload: &[1, 2] }, None),
    ];
    for (hex, ack, message, token) in rows {
        let bytes = unhex(hex);
        let control = Control { ack: Sequence::new(ack), resend: false, message, token };
        let mut buf = [0xEE; 64];
        assert_eq!(control.emit(&mut buf), Ok(bytes.len()), "{hex}");
        assert_eq!(buf[..bytes.len()], bytes, "{hex}");
        assert!(buf[bytes.len()..].iter().all(|byte| *byte == 0xEE), "{hex}");
        let mut short = vec![0xEE; bytes.len() - 1];
        assert!(control.emit(&mut short).is_err());
        assert!(short.iter().all(|byte| *byte == 0xEE), "{hex}: all or nothing");

        let tokens = if token.is_some() { Tokens::With } else { Tokens::Without };
        assert_eq!(Control::parse(&bytes, tokens), Ok(control), "{hex}");
        assert_eq!(Control::parse(&bytes, Tokens::Guess), Ok(control), "{hex}");
        let own = matches!(message, ControlMessage::Connect(_) | ControlMessage::ConnectAccept(_));
        if token.is_none() && !own {
            let error = Control::parse(&bytes, Tokens::With).unwrap_err();
            assert_eq!(error.kind, ErrorKind::TooShort, "{hex}");
        }
    }
}

#[test]
fn a_control_packet_of_a_token_alone_is_refused() {
    // The real server takes the token's first byte for the message: 04 would be a CLOSE.
    for first in ["00", "01", "02", "03", "04", "09"] {
        let bytes = unhex(&format!("10 00 00 {first}a206f4"));
        let error = Control::parse(&bytes, Tokens::With).unwrap_err();
        assert_eq!((error.kind, error.needed, error.got), (ErrorKind::TooShort, 8, 7), "{first}");
    }
    assert_eq!(Control::parse(&unhex("10 00 00"), Tokens::With).unwrap_err().needed, 4);
}

#[test]
fn a_handshake_without_a_whole_token_is_one_without_tokens() {
    for hex in ["", "544b454e", "544b454effffff", "41424344ffffffff", "ffffffff544b454e"] {
        for id in ["01", "02"] {
            let bytes = unhex(&format!("100000{id}{hex}"));
            for tokens in [Tokens::With, Tokens::Without, Tokens::Guess] {
                let control = Control::parse(&bytes, tokens).unwrap();
                assert_eq!(control.token, None, "{hex}");
                assert_eq!(control.message.id(), bytes[3]);
            }
        }
    }
    // More may follow.
    let long = [&unhex("10000001544b454e01020304")[..], &[0; 508]].concat();
    assert_eq!(Control::parse(&long, Tokens::With).unwrap().token, Some(Token([1, 2, 3, 4])));
}

fn reason(bytes: &[u8]) -> Option<Text<'_>> {
    match Control::parse(bytes, Tokens::Without).unwrap().message {
        ControlMessage::Close(reason) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn reasons_are_cleaned_and_have_at_most_127_bytes() {
    let bytes = unhex("10000004 626164011f0a726561736f6e7f00");
    assert_eq!(reason(&bytes).unwrap().to_string(), "bad   reason\x7F");
    assert_eq!(reason(&unhex("10000004 616263")).unwrap().as_bytes(), b"abc", "no terminator");
    assert_eq!(reason(&unhex("10000004 61620063")).unwrap().as_bytes(), b"ab");
    assert_eq!(reason(&unhex("10000004")), None);
    let long = [&unhex("10000004")[..], &[b'x'; 200]].concat();
    assert_eq!(reason(&long).unwrap().as_bytes(), [b'x'; 127]);

    let text = "x".repeat(127);
    let close = |reason| Control {
        ack: Sequence::new(0),
        resend: false,
        message: ControlMessage::close(reason),
        token: None,
    };
    assert_eq!(close(&text).emit(&mut [0; 200]), Ok(4 + 128));
    let text = "x".repeat(128);
    let refused = EmitError::Field { packet: "Control", field: "reason", limit: 127, got: 128 };
    assert_eq!(close(&text).emit(&mut [0; 200]), Err(refused));
    assert!(close("a\0b").emit(&mut [0; 200]).is_err());
}

#[test]
fn chunk_headers_are_those_of_the_table() {
    let rows = [
        ("0001", None, false, 1),
        ("000f", None, false, 15),
        ("0100", None, false, 16),
        ("3f0f", None, false, 1023),
        ("400101", Some(1), false, 1),
        ("41003f", Some(63), false, 16),
        ("401040", Some(64), false, 0),
        ("4030ff", Some(255), false, 0),
        ("404000", Some(256), false, 0),
        ("78aabc", Some(700), false, 906),
        ("7fffff", Some(1023), false, 1023),
        ("c0f1ff", Some(1023), true, 1),
        ("8005", None, true, 5),
    ];
    for (hex, vital, resend, size) in rows {
        let mut bytes = unhex(hex);
        let data = vec![0xAB; size];
        bytes.extend_from_slice(&data);
        let chunk = Chunk { vital: vital.map(Sequence::new), resend, data: &data };
        let mut buf = [0; 1100];
        assert_eq!(chunk.emit(&mut buf), Ok(bytes.len()), "{hex}");
        assert_eq!(buf[..bytes.len()], bytes, "{hex}");
        assert_eq!(chunk.len(), bytes.len());
        assert_eq!(Chunk::parse(&bytes), Ok(chunk), "{hex}");
        for cut in 0..bytes.len() {
            let error = Chunk::parse(&bytes[..cut]).unwrap_err();
            assert_eq!((error.kind, error.got), (ErrorKind::TooShort, cut), "{hex}");
            assert!(error.needed > cut);
            assert!(chunk.emit(&mut buf[..cut]).is_err());
        }
    }
    let long = Chunk { vital: None, resend: false, data: &[0; 1024] };
    assert!(long.emit(&mut [0; 1100]).is_err());
}

#[test]
fn copies_of_sequence_bits_are_ored_and_padding_is_ignored() {
    let vital = |hex: &str| Chunk::parse(&unhex(hex)).unwrap().vital.map(Sequence::get);
    assert_eq!(vital("401102ff"), Some(66));
    assert_eq!(vital("4001c2ff"), Some(194));
    assert_eq!(vital("00f1ff"), None);
    for sequence in 0..1024 {
        let chunk = Chunk { vital: Some(Sequence::new(sequence)), resend: false, data: &[] };
        let mut buf = [0; 3];
        chunk.emit(&mut buf).unwrap();
        assert_eq!(Chunk::parse(&buf), Ok(chunk));
        // Bits 6 and 7 stand in both bytes.
        assert_eq!(u32::from(buf[1] >> 4), sequence >> 6);
        assert_eq!(u32::from(buf[2]), sequence & 0xFF);
    }
}

#[test]
fn chunks_end_where_one_does_not_fit() {
    let payload = unhex("0001aa 400107bb 0208cc");
    let read = |num_chunks, payload| {
        let mut chunks = ChunkIter::new(payload, num_chunks);
        let count = chunks.by_ref().count();
        (count, chunks.left(), chunks.rest().len(), chunks.fault().map(|fault| fault.offset))
    };
    assert_eq!(read(0, &payload), (0, 0, 10, None), "none is announced");
    assert_eq!(read(1, &payload), (1, 0, 7, None), "the rest is ignored");
    assert_eq!(read(3, &payload), (2, 1, 3, Some(10)), "the third says 40 bytes");
    assert_eq!(read(5, &payload[..7]), (2, 3, 0, None), "the present ones are used");
    assert_eq!(read(2, &payload[..5]), (1, 1, 2, Some(5)), "half a header");
    let mut chunks = ChunkIter::new(&payload, 9);
    assert_eq!(chunks.by_ref().count(), 2);
    assert!(chunks.next().is_none(), "it stays at its end");
}

#[test]
fn a_token_is_never_read_as_a_chunk() {
    // The chunk says five bytes; one and the token are there.
    let bytes = unhex("000001 0005aa 01a206f4");
    let mut scratch = [0; 1394];
    let Ok(Packet::Chunks(view)) = Packet::parse(&bytes, Tokens::With, &mut scratch) else {
        panic!("chunks");
    };
    assert_eq!(view.token(), Some(TOKEN));
    assert_eq!(view.chunks().count(), 0);
    let error = Packet::parse(&bytes[..6], Tokens::With, &mut scratch).unwrap_err();
    assert_eq!((error.packet, error.kind, error.got), ("Token", ErrorKind::TooShort, 3));
}

#[test]
fn a_packet_holds_255_chunks_and_1390_bytes_as_the_reference_counts_them() {
    let mut builder = ChunkBuilder::new();
    let empty = Chunk { vital: None, resend: false, data: &[] };
    while builder.fits(0) {
        builder.push(&empty).unwrap();
    }
    assert_eq!(builder.count(), 255);
    assert!(builder.push(&empty).is_err());
    builder.clear();

    // used + size + 5 > 1390 sends first: behind 1026 bytes, 359 more go in.
    let long = Chunk { vital: Some(Sequence::new(1)), resend: false, data: &[1; 1023] };
    builder.push(&long).unwrap();
    assert!(builder.fits(359) && !builder.fits(360));
    let over = Chunk { vital: None, resend: false, data: &[2; 360] };
    assert!(builder.push(&over).is_err());
    assert_eq!(builder.count(), 1, "what does not fit changes nothing");
    builder.push(&Chunk { data: &over.data[..359], ..over }).unwrap();
    assert!(builder.push(&Chunk { data: &[0; 1024], ..over }).is_err());
    let packet = builder.packet(Envelope::default());
    assert_eq!(packet.payload.len(), 1026 + 361);
}

/// No byte of the payload is compressed to fewer bits, and so it is sent as it is, however long.
#[test]
fn datagrams_have_1400_bytes_at_most() {
    let payload = [0x7F; 1397];
    let envelope = Envelope::default();
    let chunks = |payload| caves_wire::teeworlds::Chunks { envelope, num_chunks: 1, payload };
    let mut buf = [0; 1500];
    assert_eq!(chunks(&payload).emit(&mut buf), Ok(1400));
    assert_eq!(buf[0], 0);
    let mut scratch = [0; 1394];
    assert!(Packet::parse(&buf[..1400], Tokens::Without, &mut scratch).is_ok());
    assert!(Packet::parse(&buf[..1401], Tokens::Without, &mut scratch).is_err());
    assert!(chunks(&[0x7F; 1398]).emit(&mut buf).is_err());
    // 1394 zeros are sent in a few bytes; more would not be expanded where they arrive.
    assert_eq!(chunks(&[0; 1394]).emit(&mut buf), Ok(3 + (1394 + 15) / 8 + 1));
    assert_eq!(chunks(&[0; 1395]).emit(&mut buf), Ok(1398));
    assert!(chunks(&[0; 1398]).emit(&mut buf).is_err());
}

#[test]
fn a_payload_expands_to_1394_bytes_at_most() {
    for (len, fits) in [(1394, true), (1395, false)] {
        let plain: Vec<u8> = (0..len).map(|at| u8::from(at > 1390)).collect();
        let bytes = [&[0x80, 0, 0][..], &model::encode(&plain)].concat();
        match Packet::parse(&bytes, Tokens::Without, &mut [0; 1394]) {
            Ok(Packet::Chunks(view)) => assert!(fits && view.payload() == plain, "{len}"),
            Err(error) => assert!(!fits && error.kind == ErrorKind::Compression, "{len}"),
            Ok(other) => panic!("{other}"),
        }
    }
}

#[test]
fn compressed_texts_are_those_of_the_table() {
    let rows: [(&[u8], &str); 9] = [
        (&[], "8a1b"),
        (&[0], "153700"),
        (&[0; 3], "57dc00"),
        (&[0x41], "bc153700"),
        (b"hello", "ae95135c0957c216296e00"),
        (&[0, 1, 2, 3, 4, 5, 6, 7], "515878761b37c50d"),
        (&[0xFF; 4], "929292928a1b"),
        (b"TKEN", "14aa96cd848a1b"),
        (&[0; 64], "ffffffffffffffff8a1b"),
    ];
    for (plain, packed) in rows {
        assert_eq!(model::encode(plain), unhex(packed));
        assert_eq!(model::decode(&unhex(packed), plain.len()).as_deref(), Some(plain));
    }
}

#[test]
fn integers_are_those_of_the_table() {
    let rows = [
        (0, "00"),
        (1, "01"),
        (63, "3f"),
        (64, "8001"),
        (127, "bf01"),
        (128, "8002"),
        (8191, "bf7f"),
        (8192, "808001"),
        (1_048_575, "bfff7f"),
        (1_048_576, "80808001"),
        (134_217_727, "bfffff7f"),
        (134_217_728, "8080808001"),
        (-1, "40"),
        (-2, "41"),
        (-64, "7f"),
        (-65, "c001"),
        (-8192, "ff7f"),
        (-8193, "c08001"),
        (-2_147_483_647, "feffffff0f"),
        (-2_147_483_648, "ffffffff0f"),
        (2_147_483_647, "bfffffff0f"),
        (0x6FFF_FFFF, "bfffffff0d"),
    ];
    for (value, hex) in rows {
        let bytes = unhex(hex);
        let (written, len) = varint::encode(value);
        assert_eq!(written[..len], bytes, "{value}");
        assert_eq!(varint::decode(&bytes), Ok((value, bytes.len())), "{value}");
        for cut in 0..bytes.len() {
            assert_eq!(varint::decode(&bytes[..cut]).unwrap_err().kind, ErrorKind::Integer);
        }
    }
    let decode_only = [
        ("8000", 0),
        ("c000", -1),
        ("8080808000", 0),
        ("80808080f0", 0),
        ("bfffffff7f", 2_147_483_647),
        ("ffffffffff", -2_147_483_648),
    ];
    for (hex, value) in decode_only {
        let mut bytes = unhex(hex);
        bytes.push(0xAA);
        assert_eq!(varint::decode(&bytes), Ok((value, bytes.len() - 1)), "{hex}");
    }
    for hex in ["80", "c0", "8080", ""] {
        assert!(varint::decode(&unhex(hex)).is_err(), "{hex}");
    }
}

#[test]
fn message_ids_are_those_of_the_sheet() {
    let id = |hex: &str| MessageId::parse(&unhex(hex)).unwrap().0;
    assert_eq!(id("03"), MessageId::System(1));
    assert_eq!(id("2d"), MessageId::System(22));
    assert_eq!(id("2f"), MessageId::System(23));
    assert_eq!(id("28"), MessageId::Game(20));
    assert_eq!(id("10"), MessageId::Game(8));
    let uuid = "12810e1fa1db3378b4fb164ed6505926";
    let extended = |system| MessageId::Extended { system, uuid: unhex(uuid).try_into().unwrap() };
    assert_eq!(id(&format!("01{uuid}")), extended(true));
    assert_eq!(id(&format!("00{uuid}")), extended(false));
    let kind = |hex: &str| MessageId::parse(&unhex(hex)).unwrap_err().kind;
    assert_eq!(kind(""), ErrorKind::Integer);
    assert_eq!(kind("40"), ErrorKind::Range, "-1");
    assert_eq!(kind("80 80 10"), ErrorKind::Range, "0x20000, one above the last");
    assert_eq!(id("bf ff 0f"), MessageId::System(0xFFFF));
    assert_eq!(kind("0112810e"), ErrorKind::TooShort);
}

#[test]
fn server_infos_are_those_of_a_real_server() {
    let datagrams = captures::read("serverinfo");
    let requests: Vec<_> = datagrams.iter().filter(|datagram| !datagram.from_server).collect();
    let answers: Vec<_> = datagrams.iter().filter(|datagram| datagram.from_server).collect();
    let read = |at: usize| {
        Connless::parse(&requests[at].bytes).and_then(|packet| InfoRequest::parse(&packet))
    };
    let request = |wanted, token| Ok(InfoRequest { wanted, token });
    assert_eq!(read(0), request(InfoWanted::Vanilla, 0x42));
    assert_eq!(read(1), request(InfoWanted::Extended { token: 0x1234 }, 0x42));
    assert_eq!(read(2), request(InfoWanted::Legacy64, 0x42));
    assert_eq!(read(3).unwrap_err().kind, ErrorKind::TooShort, "no token");
    assert_eq!(read(4), request(InfoWanted::Vanilla, 7));
    for (at, request) in requests.iter().enumerate().take(3) {
        let mut buf = [0; 64];
        let len = read(at).unwrap().emit(&mut buf).unwrap();
        assert_eq!(buf[..len], request.bytes);
    }

    let kinds = [InfoKind::Vanilla, InfoKind::Extended, InfoKind::Legacy64, InfoKind::Vanilla];
    assert_eq!(answers.len(), kinds.len());
    for ((answer, kind), asked) in answers.into_iter().zip(kinds).zip([0, 1, 2, 4]) {
        let view = InfoView::parse(&Connless::parse(&answer.bytes).unwrap()).unwrap();
        assert_eq!(view.kind(), kind);
        assert_eq!(view.token(), read(asked).unwrap().answered_token());
        let server = *view.server().unwrap();
        assert_eq!(server.version.as_bytes(), b"0.6.4, 16.4");
        assert!(server.name.as_bytes().starts_with(b"tw-capture"));
        assert_eq!(server.map.as_bytes(), b"dm1");
        // The server cuts it to 16 characters.
        assert_eq!(server.game_type.as_bytes(), b"TestDDraceNetwor");
        let places = if kind == InfoKind::Vanilla { 16 } else { 64 };
        let numbers = (server.players, server.max_players, server.clients, server.max_clients);
        assert_eq!(numbers, (0, places, 0, places));
        let extended = kind == InfoKind::Extended;
        assert_eq!(server.map_size, if extended { 5805 } else { 0 });
        assert_eq!(view.clients().count(), 0);
        let part = match kind {
            InfoKind::Extended => caves_wire::teeworlds::InfoPart::Extended(server),
            InfoKind::Legacy64 => caves_wire::teeworlds::InfoPart::Legacy64(server, 0),
            _ => caves_wire::teeworlds::InfoPart::Vanilla(server),
        };
        let info = caves_wire::teeworlds::Info { token: view.token(), part, clients: &[] };
        let mut buf = [0; 1400];
        let len = info.emit(&mut buf).unwrap();
        assert_eq!(buf[..len], answer.bytes, "{kind:?}");
    }
}

#[test]
fn the_first_messages_of_a_client_are_those_of_the_capture() {
    let rows: [(&str, Message<'_>); 6] = [
        (
            "03 302e3620363236666365396137373864663464340000",
            Message::Info { version: "0.6 626fce9a778df4d4".into(), password: "".into() },
        ),
        ("27 02", Message::RequestMapData { chunk: 2 }),
        ("1d", Message::Ready),
        (
            "28 74657374657200 00 40 64656661756c7400 00 80fe07 80fe07",
            Message::StartInfo {
                name: "tester".into(),
                clan: "".into(),
                country: -1,
                skin: "default".into(),
                custom_color: false,
                color_body: 65408,
                color_feet: 65408,
            },
        ),
        ("1f", Message::EnterGame),
        (
            "22 00 68656c6c6f2066726f6d2074657374657200",
            Message::Say { team: 0, text: "hello from tester".into() },
        ),
    ];
    for (hex, message) in rows {
        let bytes = unhex(hex);
        assert_eq!(Message::parse(&bytes), Ok(message));
        let mut buf = [0; 64];
        assert_eq!(message.emit(&mut buf), Ok(bytes.len()));
        assert_eq!(buf[..bytes.len()], bytes);
    }
}

#[test]
fn the_printed_form_is_one_line() {
    let print = |hex: &str, tokens| {
        let bytes = unhex(hex);
        Packet::parse(&bytes, tokens, &mut [0; 1394]).unwrap().to_string()
    };
    assert_eq!(print("10200004 62796500 01a206f4", Tokens::With), "CLOSE \"bye\" ack=32 token");
    assert_eq!(
        print("400401 400102 2d 01a206f4", Tokens::With),
        "Chunks ack=4 resend token n=1 [V2 1B PING]"
    );
    assert_eq!(
        print("000402 c01102 2d 0208aa", Tokens::Without),
        "Chunks ack=4 n=2 [V66r 1B PING] [Chunk: too short at byte 7: needed 42, got 3]"
    );
    assert_eq!(print("ffffffffffff ffffffff 67696533 42", Tokens::Guess), "Connless 9B gie3");
}
