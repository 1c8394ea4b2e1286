//! The rules one by one, where captures and a bad network do not show them.

use std::time::Duration;

use caves_link::time::Instant;
use caves_session::teeworlds::{
    Client, ClientConfig, ClientEvent, ClientReceived, Ended, MAX_UNACKED, MAX_UNACKED_BYTES,
    MAX_WAITING, SendError, ServerConfig, ServerEvent, vital_cost,
};
use caves_session::{DropReason, Peer, Random, SplitMix, StrangerLimits};
use caves_wire::teeworlds::{Chunk, Chunks, Envelope, Packet, Sequence, Token, Tokens};

use crate::captures::at;
use crate::drive::{TOKEN, Talk, open_to_all, peer};

const CONNECT: &[u8] = b"\x10\0\0\x01TKEN\xFF\xFF\xFF\xFF";
const ACCEPT: &[u8] = b"\x10\0\0\x03\x01\xA2\x06\xF4";

fn talk() -> Talk {
    Talk::new(ServerConfig::default(), TOKEN, at(0))
}

/// A packet with one vital chunk.
fn vital(sequence: u32, ack: u32) -> Vec<u8> {
    let chunk = Chunk { vital: Some(Sequence::new(sequence)), resend: false, data: b"\x2D" };
    let mut payload = [0; 8];
    let len = chunk.emit(&mut payload).unwrap();
    packet(1, &payload[..len], ack, false)
}

/// A packet without chunks.
fn empty(ack: u32, resend: bool) -> Vec<u8> {
    packet(0, &[], ack, resend)
}

fn packet(num_chunks: u8, payload: &[u8], ack: u32, resend: bool) -> Vec<u8> {
    let envelope = Envelope { ack: Sequence::new(ack), resend, token: Some(TOKEN) };
    let mut buf = [0; 1400];
    let len = Chunks { envelope, num_chunks, payload }.emit(&mut buf).unwrap();
    buf[..len].to_vec()
}

/// The numbers of the chunks in these datagrams, and whether each was sent again.
fn numbers(datagrams: &[Vec<u8>]) -> Vec<(u32, bool)> {
    let mut numbers = Vec::new();
    for bytes in datagrams {
        let mut scratch = [0; 1394];
        if let Packet::Chunks(packet) = Packet::parse(bytes, Tokens::With, &mut scratch).unwrap() {
            let vital =
                packet.chunks().filter_map(|chunk| Some((chunk.vital?.get(), chunk.resend)));
            numbers.extend(vital);
        }
    }
    numbers
}

#[test]
fn old_chunks_are_dropped_in_silence_and_those_ahead_ask_for_what_is_missing() {
    // Rows of section 6, in the order in which a counter comes by.
    let rows: [(u32, &[u32], [u32; 2]); 6] = [
        (1, &[1, 0, 1023, 513], [2, 512]),
        (511, &[511, 0, 1023], [512, 1022]),
        (512, &[512, 0], [513, 1023]),
        (600, &[600, 88], [601, 87]),
        (1023, &[1023, 511], [0, 510]),
        (1024, &[0, 512, 1023], [1, 511]),
    ];
    let mut talk = talk();
    let (from, mut last) = (peer(1), 0);
    let id = talk.join(from);
    for (ack, old, [next, ahead]) in rows {
        for sequence in last + 1..=ack {
            assert_eq!(talk.give(from, &vital(sequence % 1024, 0)).unwrap().len(), 1);
        }
        last = ack;
        talk.pass(600);
        talk.take();
        for &sequence in old {
            assert_eq!(talk.give(from, &vital(sequence, 0)), Ok(vec![]));
            talk.pass(600);
            assert!(talk.take().iter().all(|bytes| bytes[0] & 0x40 == 0), "{ack} {sequence}");
        }
        assert_eq!(talk.give(from, &vital(ahead, 0)), Ok(vec![]));
        talk.pass(600);
        let request = [0x40 | ((ack % 1024) >> 8) as u8, ack as u8, 0, 1, 0xA2, 6, 0xF4];
        assert_eq!(talk.take(), [request], "{ack} {ahead}");
        assert_eq!(talk.server.session(id).unwrap().received, Sequence::new(ack));
        assert_eq!(Sequence::new(ack).next(), Sequence::new(next));
    }
}

#[test]
fn a_packet_with_an_ack_of_before_the_last_one_is_dropped_whole() {
    let mut talk = talk();
    let from = peer(1);
    let id = talk.join(from);
    for _ in 0..4 {
        talk.server.send(talk.now, id, true, b"x").unwrap();
    }
    assert_eq!(talk.give(from, &vital(1, 3)).unwrap().len(), 1);
    assert_eq!(talk.give(from, &vital(2, 2)), Err(DropReason::Unasked), "late");
    assert_eq!(talk.give(from, &vital(2, 5)), Err(DropReason::Unasked), "never sent");
    assert_eq!(talk.give(from, &vital(2, 3)).unwrap().len(), 1);
    let view = talk.server.session(id).unwrap();
    assert_eq!((view.unacked, view.acked.get(), view.received.get()), (1, 3, 2));
}

#[test]
fn a_full_buffer_is_an_error_and_nothing_is_forgotten() {
    for (size, fit) in [(0, 455), (8, 455), (9, 341), (906, 33), (1023, 29)] {
        let mut talk = talk();
        let from = peer(1);
        let id = talk.join(from);
        let message = vec![0x55; size];
        for _ in 0..fit {
            assert_eq!(talk.server.send(talk.now, id, true, &message), Ok(()));
        }
        assert_eq!(talk.server.send(talk.now, id, true, &message), Err(SendError::Full), "{size}");
        assert_eq!(talk.server.send(talk.now, id, false, b"not vital"), Ok(()));
        let view = talk.server.session(id).unwrap();
        assert_eq!((view.unacked, view.sent.get()), (fit, fit as u32));
        assert_eq!(view.unacked_bytes, fit * vital_cost(size));
        assert!(view.unacked_bytes <= MAX_UNACKED_BYTES && fit <= MAX_UNACKED);
        // Everything is there when it is asked for, in order.
        talk.server.flush(id);
        talk.take();
        talk.give(from, &empty(0, true)).unwrap();
        talk.server.flush(id);
        let expected: Vec<_> = (1..=fit as u32).map(|number| (number, true)).collect();
        assert_eq!(numbers(&talk.take()), expected, "{size}");
        // And there is room again for as many as were acknowledged.
        talk.give(from, &empty(3, false)).unwrap();
        for _ in 0..3 {
            assert_eq!(talk.server.send(talk.now, id, true, &message), Ok(()));
        }
        assert_eq!(talk.server.send(talk.now, id, true, &message), Err(SendError::Full));
    }
}

#[test]
fn requests_are_answered_at_most_ten_times_a_second() {
    let mut talk = talk();
    let from = peer(1);
    let id = talk.join(from);
    for _ in 0..20 {
        talk.server.send(talk.now, id, true, &[0; 1000]).unwrap();
    }
    talk.server.flush(id);
    talk.take();
    // Seven bytes, a thousand times in a second.
    for _ in 0..1000 {
        talk.give(from, &empty(0, true)).unwrap();
        talk.server.flush(id);
        talk.pass(1);
    }
    talk.server.flush(id);
    let asked = numbers(&talk.take()).len();
    assert_eq!(asked, 20 * 10 + 20, "one at once, and one every 100 ms, the last at the end");
    // One who stops asking in time still gets the answer that was too soon.
    talk.give(from, &empty(0, true)).unwrap();
    talk.pass(99);
    talk.server.flush(id);
    assert_eq!(numbers(&talk.take()).len(), 0);
    talk.pass(1);
    talk.server.flush(id);
    assert_eq!(numbers(&talk.take()).len(), 20);
}

#[test]
fn a_caller_that_fetches_nothing_finds_a_bound() {
    let mut talk = talk();
    let from = peer(1);
    let id = talk.join(from);
    for _ in 0..29 {
        talk.server.send(talk.now, id, true, &[0; 1023]).unwrap();
    }
    for round in 0..50 {
        let now = talk.now + Duration::from_millis(200 * round);
        let mut scratch = [0; 1394];
        let _ = talk.server.handle_datagram(now, from, &empty(0, true), &mut scratch);
        talk.server.flush(id);
        assert!(talk.server.session(id).unwrap().waiting <= MAX_WAITING + 1);
    }
    let mut told = Ok(());
    for _ in 0..3 {
        told = talk.server.send(talk.now, id, false, &[0; 1023]);
    }
    assert_eq!(told, Err(SendError::Waiting));
    talk.take();
    assert_eq!(talk.server.send(talk.now, id, false, &[0; 1023]), Ok(()));
}

#[test]
fn what_cannot_be_sent_is_told() {
    let mut talk = talk();
    let id = talk.join(peer(1));
    let now = talk.now;
    assert_eq!(talk.server.send(now, id, true, &[0; 1024]), Err(SendError::TooLong));
    assert_eq!(talk.server.send(now, id, true, &[0; 1023]), Ok(()));
    talk.server.close(id, "kicked");
    assert_eq!(talk.server.send(now, id, true, b"x"), Err(SendError::NotConnected));
    assert_eq!(talk.take(), [b"\x10\0\0\x04kicked\0\x01\xA2\x06\xF4"]);
    let left = ServerEvent::Left { session: id, peer: peer(1), why: Ended::Here };
    assert_eq!(talk.events.last(), Some(&left));
    assert_eq!(talk.give(peer(1), &vital(1, 0)), Err(DropReason::Token));
    let mut client = Client::new(ClientConfig::default(), now);
    assert_eq!(client.send(now, true, b"x"), Err(SendError::NotConnected));
}

#[test]
fn strangers_leave_nothing_and_get_no_more_bytes_than_they_send() {
    let config = ServerConfig {
        strangers: StrangerLimits { total_per_second: u32::MAX, ..StrangerLimits::default() },
        ..ServerConfig::default()
    };
    let mut talk = Talk::new(config, TOKEN, at(0));
    let mut random = SplitMix::new(3);
    let mut answered = 0;
    for round in 0..50_000u32 {
        let number = random.next_u64();
        let mut bytes: Vec<u8> = match number & 3 {
            0 => CONNECT.to_vec(),
            1 => ACCEPT.to_vec(),
            2 => vital(1, 0),
            _ => (0..number >> 8 & 31).map(|_| random.next_u64() as u8).collect(),
        };
        // A token of its own, and one byte that is anything.
        let len = bytes.len();
        if number & 16 == 0 && len > 0 {
            bytes[(number >> 32) as usize % len] = number as u8;
        }
        if let Some(last) = bytes.last_chunk_mut()
            && !number.is_multiple_of(4)
        {
            *last = (number as u32 | 1 << 31).to_be_bytes();
        }
        let [a, b, c, d] = (0x0A00_0000 + round).to_be_bytes();
        let from = Peer { socket: 0, addr: ([a, b, c, d], 9).into() };
        let _ = talk.give(from, &bytes);
        let sent: usize = talk.take().iter().map(Vec::len).sum();
        assert!(sent <= bytes.len(), "{bytes:?}");
        answered += usize::from(sent > 0);
        assert_eq!(talk.server.len(), 0);
    }
    assert!(answered > 5_000, "{answered}");
    assert_eq!((talk.events.len(), talk.server.poll_timeout()), (0, None));
}

#[test]
fn a_client_without_tokens_comes_in_only_where_that_is_allowed() {
    let mut strict = talk();
    assert_eq!(strict.give(peer(1), b"\x10\0\0\x01"), Err(DropReason::Token));
    assert_eq!((strict.take().len(), strict.server.len()), (0, 0));
    let mut open = Talk::new(open_to_all(), TOKEN, at(0));
    assert_eq!(open.give(peer(1), b"\x10\0\0\x01"), Ok(vec![]));
    assert_eq!(open.take(), [b"\x10\0\0\x02"]);
    let id = open.session();
    assert!(!open.server.session(id).unwrap().has_token);
    // Its answer was lost.
    assert_eq!(open.give(peer(1), b"\x10\0\0\x01"), Ok(vec![]));
    assert_eq!(open.take(), [b"\x10\0\0\x02"]);
    assert_eq!(open.give(peer(1), b"\0\0\x01\x40\x01\x01\x2D"), Ok(vec![b"\x2D".to_vec()]));
}

#[test]
fn who_is_not_let_in_is_told_why_once_its_address_is_proven() {
    let elsewhere = |last| Peer { socket: 0, addr: ([192, 0, 2, last], 9).into() };
    let config = ServerConfig { max_sessions: 5, without_tokens: true, ..ServerConfig::default() };
    let mut talk = Talk::new(config, TOKEN, at(0));
    for port in 1..=4 {
        let mut from = elsewhere(1);
        from.addr.set_port(port);
        talk.join(from);
    }
    talk.give(elsewhere(1), ACCEPT).unwrap();
    let crowded = b"\x10\0\0\x04Too many connections from your address\0\x01\xA2\x06\xF4";
    assert_eq!(talk.take(), [crowded]);
    talk.join(elsewhere(2));
    talk.give(elsewhere(3), ACCEPT).unwrap();
    assert_eq!(talk.take(), [b"\x10\0\0\x04This server is full\0\x01\xA2\x06\xF4"]);
    talk.give(elsewhere(3), b"\x10\0\0\x01").unwrap();
    assert_eq!(talk.take(), [b"\x10\0\0\x04"], "no longer than the question");
    assert_eq!(talk.server.len(), 5);
}

#[test]
fn a_client_that_begins_anew_from_the_same_port_begins_at_the_first_number() {
    let mut talk = talk();
    let from = peer(1);
    let id = talk.join(from);
    talk.server.send(talk.now, id, true, b"x").unwrap();
    talk.give(from, &vital(1, 1)).unwrap();
    // One that came twice changes nothing.
    talk.give(from, ACCEPT).unwrap();
    assert_eq!(talk.server.session(id).unwrap().received.get(), 1);
    talk.give(from, CONNECT).unwrap();
    assert_eq!(talk.take(), [b"\x10\0\0\x02TKEN\x01\xA2\x06\xF4"]);
    assert_eq!(talk.server.session(id).unwrap().received.get(), 1, "an answer, and no more");
    assert_eq!(talk.give(from, b"\x10\0\0\x03\x01\x02\x03\x04"), Err(DropReason::Token));
    talk.give(from, ACCEPT).unwrap();
    assert_eq!(talk.events.last(), Some(&ServerEvent::Rejoined { session: id }));
    let view = talk.server.session(id).unwrap();
    assert_eq!((view.sent.get(), view.received.get(), view.unacked), (0, 0, 0));
    assert_eq!(talk.give(from, &vital(1, 0)).unwrap().len(), 1);
    // The next one alone is one that came twice again.
    talk.give(from, ACCEPT).unwrap();
    assert_eq!(talk.server.session(id).unwrap().received.get(), 1);
}

#[test]
fn a_connect_that_comes_late_does_not_make_a_second_accept_a_beginning() {
    let mut talk = talk();
    let from = peer(1);
    let id = talk.join(from);
    talk.give(from, CONNECT).unwrap();
    talk.give(from, &vital(1, 0)).unwrap();
    talk.give(from, ACCEPT).unwrap();
    assert_eq!(talk.server.session(id).unwrap().received.get(), 1);
}

fn client(tokens: bool) -> (Client, Instant) {
    let now = at(0);
    let mut client = Client::new(ClientConfig { tokens, ..ClientConfig::default() }, now);
    assert!(sent(&mut client, now).is_some_and(|bytes| bytes.starts_with(b"\x10\0\0\x01")));
    (client, now)
}

fn sent(client: &mut Client, now: Instant) -> Option<Vec<u8>> {
    let mut buf = [0; 1400];
    client.poll_transmit(now, &mut buf).map(|len| buf[..len].to_vec())
}

fn give(client: &mut Client, now: Instant, bytes: &[u8]) -> Option<DropReason> {
    let mut scratch = [0; 1394];
    match client.handle_datagram(now, bytes, &mut scratch) {
        ClientReceived::Dropped(reason) => Some(reason),
        _ => None,
    }
}

#[test]
fn a_server_that_knows_no_tokens_gets_none() {
    for answer in [b"\x10\0\0\x02".as_slice(), b"\x10\0\0\x02TKEN\0\0\0\0"] {
        let (mut client, now) = client(true);
        assert_eq!(give(&mut client, now, answer), None);
        assert_eq!(sent(&mut client, now).as_deref(), Some(b"\x10\0\0\x03".as_slice()));
        assert!(!client.view().unwrap().has_token);
    }
    let (mut client, now) = client(true);
    let unknown = give(&mut client, now, b"\x10\0\0\x02TKEN\xFF\xFF\xFF\xFF");
    assert_eq!(unknown, Some(DropReason::Token));
    assert!(!client.is_connected());
}

#[test]
fn an_accept_is_repeated_until_something_has_come_back_and_never_after() {
    let (mut client, start) = client(true);
    let answer = b"\x10\0\0\x02TKEN\x01\xA2\x06\xF4";
    assert_eq!(give(&mut client, start, answer), None);
    client.send(start, true, b"\x03").unwrap();
    client.flush();
    let (mut accepts, mut now) = (Vec::new(), start);
    let until = start + Duration::from_secs(10);
    while now < until {
        client.handle_timeout(now);
        while let Some(bytes) = sent(&mut client, now) {
            if bytes == ACCEPT {
                accepts.push(now.saturating_since(start).as_millis());
            }
        }
        now = client.poll_timeout().unwrap();
        if accepts.len() == 3 {
            // The same answer again shows nothing; a packet does.
            give(&mut client, now, answer);
        }
        if accepts.len() == 4 {
            assert_eq!(give(&mut client, now, &empty(1, false)), None);
        }
    }
    assert_eq!(accepts, [0, 1500, 3000, 4500]);
}

#[test]
fn a_refusal_while_connecting_ends_it_with_its_reason() {
    let (mut client, now) = client(true);
    assert_eq!(give(&mut client, now, b"\x10\0\0\x04This server is full\0\x01\xA2\x06\xF4"), None);
    let ended = ClientEvent::Ended(Ended::Closed(Some("This server is full".into())));
    assert_eq!(client.poll_event(), Some(ended));
    assert_eq!((sent(&mut client, now), client.poll_timeout()), (None, None));
    assert_eq!(
        give(&mut client, now, b"\x10\0\0\x02TKEN\x01\xA2\x06\xF4"),
        Some(DropReason::Unasked)
    );
}

#[test]
fn a_client_says_goodbye_once() {
    let (mut client, now) = client(true);
    give(&mut client, now, b"\x10\0\0\x02TKEN\x01\xA2\x06\xF4");
    assert!(sent(&mut client, now).is_some_and(|bytes| bytes == ACCEPT));
    client.close("bye");
    client.close("again");
    let goodbye = b"\x10\0\0\x04bye\0\x01\xA2\x06\xF4";
    assert_eq!(sent(&mut client, now).as_deref(), Some(goodbye.as_slice()));
    assert_eq!(sent(&mut client, now), None);
    let events: Vec<_> = std::iter::from_fn(|| client.poll_event()).collect();
    assert_eq!(events, [ClientEvent::Connected, ClientEvent::Ended(Ended::Here)]);
}

#[test]
fn the_token_of_a_server_without_a_fixed_one_opens_only_for_its_address() {
    let now = at(0);
    let config = ServerConfig::default();
    let mut server = caves_session::teeworlds::Server::new(config, &mut SplitMix::new(5), now);
    let (mut scratch, mut buf) = ([0; 1394], [0; 1400]);
    let mut token = |last: u8| {
        let from = Peer { socket: 0, addr: ([127, 0, 0, last], 9).into() };
        let _ = server.handle_datagram(now, from, CONNECT, &mut scratch);
        let transmit = server.poll_transmit(now, &mut buf).unwrap();
        Token(*buf[..transmit.len].last_chunk().unwrap())
    };
    let (one, two) = (token(1), token(2));
    assert_ne!(one, two);
    assert_eq!(one, token(1));
    let accept = [b"\x10\0\0\x03".as_slice(), &one.0].concat();
    let from = |last: u8, port| Peer { socket: 0, addr: ([127, 0, 0, last], port).into() };
    let _ = server.handle_datagram(now, from(2, 9), &accept, &mut scratch);
    assert_eq!(server.len(), 0);
    let _ = server.handle_datagram(now, from(1, 10), &accept, &mut scratch);
    assert_eq!(server.len(), 1);
}
