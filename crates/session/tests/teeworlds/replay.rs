//! Whole captures: fed with one half, the other half comes out.

use std::collections::VecDeque;
use std::time::Duration;

use caves_link::time::Instant;
use caves_session::teeworlds::{Client, ClientConfig, SendError};
use caves_wire::teeworlds::{ControlMessage, Header, Packet, Sequence, Token, Tokens};

use crate::captures::{self, Line, hex};
use crate::drive::{Talk, open_to_all, peer};

/// The captures tell whole milliseconds, and not when a timer was looked at.
const ROUNDING: Duration = Duration::from_millis(2);

/// What a captured datagram makes its sender's upper layer say: messages that are sent for the first
/// time, or a CLOSE.
enum Said {
    Messages(Vec<(bool, Vec<u8>)>),
    Close(String),
}

/// Reads one half of a capture as the words of the layer above. What was sent again is the
/// connection's own doing.
struct Script {
    tokens: Tokens,
    newest: Sequence,
}

impl Script {
    fn new(token: Option<Token>) -> Self {
        let tokens = if token.is_some() { Tokens::With } else { Tokens::Without };
        Self { tokens, newest: Sequence::new(0) }
    }

    fn read(&mut self, line: &Line) -> Said {
        let mut scratch = [0; 1394];
        match Packet::parse(&line.bytes, self.tokens, &mut scratch).expect("a packet") {
            Packet::Control(packet) => match packet.message {
                ControlMessage::Close(Some(reason)) => Said::Close(reason.to_string()),
                _ => Said::Messages(Vec::new()),
            },
            Packet::Chunks(packet) => {
                let new = packet.chunks().filter(|chunk| match chunk.vital {
                    Some(sequence) => {
                        let new = sequence == self.newest.next();
                        if new {
                            self.newest = sequence;
                        }
                        new
                    }
                    None => true,
                });
                Said::Messages(
                    new.map(|chunk| (chunk.vital.is_some(), chunk.data.to_vec())).collect(),
                )
            }
            Packet::Connless(_) => panic!("no connectionless packets in sessions"),
        }
    }
}

/// What differs between two halves that should be the same, line by line.
fn compare(name: &str, ours: VecDeque<Vec<u8>>, real: &[&Line]) {
    for (place, (ours, real)) in ours.iter().zip(real).enumerate() {
        assert_eq!(hex(ours), hex(&real.bytes), "{name}, datagram {place} at {} ms", real.millis);
    }
    assert_eq!(ours.len(), real.len(), "{name}");
}

/// The same but for acknowledgements: the real server writes a packet while it is still reading the
/// one that asked for it, and acknowledges what it has read by then. Ours has read all.
fn compare_but_acks(name: &str, ours: VecDeque<Vec<u8>>, real: &[&Line]) {
    let ack = |bytes: &[u8]| Header::parse(bytes).unwrap().ack;
    for (ours, real) in ours.iter().zip(real) {
        assert!(!ack(&real.bytes).is_newer_than(ack(ours)), "{name}, {} ms", real.millis);
    }
    let masked = |bytes: &[u8]| match bytes {
        [first, _, rest @ ..] => [&[first & !3, 0], rest].concat(),
        _ => panic!("a header"),
    };
    let lines: Vec<Line> = (real.iter())
        .map(|line| Line { bytes: masked(&line.bytes), ..Line::clone(line) })
        .collect();
    let ours = ours.iter().map(|bytes| masked(bytes)).collect();
    compare(name, ours, &lines.iter().collect::<Vec<_>>());
}

/// When the real server looks at its timers.
#[derive(Clone, Copy)]
enum Looks {
    /// As often as need be: shortly before a datagram, but not while it answers one.
    Often,
    /// Fifty times a second, at milliseconds that leave this rest.
    Ticks(u64),
}

impl Looks {
    fn look(self, talk: &mut Talk, line: &Line) {
        match self {
            Self::Often if !line.from_server => {
                talk.server.handle_timeout(line.now() + ROUNDING / 2);
            }
            Self::Often if answers(line) => {}
            Self::Often => {
                talk.server.handle_timeout(line.now());
                talk.server.handle_timeout(line.now() + ROUNDING);
            }
            Self::Ticks(rest) => {
                let ticks = talk.now.as_millis() + 1..=line.now().as_millis();
                let start = captures::at(0).as_millis();
                for tick in ticks.filter(|millis| millis % 20 == rest) {
                    // Fifty ticks are a little more than a second.
                    let micros = tick * 1000 + (tick - start) / 20;
                    talk.server.handle_timeout(Instant::from_micros(micros));
                }
            }
        }
    }
}

/// The server's half, when it is told what the game above it said.
fn server_half(lines: &[Line], looks: Looks) -> VecDeque<Vec<u8>> {
    let token = captures::token(lines);
    let mut script = Script::new(token);
    let mut talk = Talk::new(open_to_all(), token.unwrap_or(Token([9; 4])), lines[0].now());
    let mut sent = VecDeque::new();
    for line in lines.iter().filter(|line| line.from_server || !line.dropped) {
        looks.look(&mut talk, line);
        talk.now = line.now();
        if !line.from_server {
            let _ = talk.give(peer(1), &line.bytes);
            continue;
        }
        match script.read(line) {
            Said::Messages(messages) if !messages.is_empty() => {
                let id = talk.session();
                for (vital, data) in messages {
                    talk.server.send(talk.now, id, vital, &data).unwrap();
                }
                talk.server.flush(id);
            }
            Said::Messages(_) => {}
            Said::Close(reason) => {
                let id = talk.session();
                talk.server.close(id, &reason);
            }
        }
        let mut now = talk.take();
        if now.is_empty() {
            talk.now += ROUNDING;
            now = talk.take();
        }
        sent.extend(now);
    }
    sent
}

/// Whether a packet holds nothing that was sent before.
fn answers(line: &Line) -> bool {
    let mut scratch = [0; 1394];
    let packet = Packet::parse(&line.bytes, Tokens::Guess, &mut scratch);
    matches!(packet, Ok(Packet::Chunks(packet))
        if packet.header().num_chunks > 0 && !packet.chunks().any(|chunk| chunk.resend))
}

/// The client's half, when it is told what the program above it said.
fn client_half(lines: &[Line]) -> VecDeque<Vec<u8>> {
    let token = captures::token(lines);
    let mut script = Script::new(token);
    let config = ClientConfig { tokens: token.is_some(), ..ClientConfig::default() };
    let mut client = Client::new(config, lines[0].now());
    let (mut sent, mut scratch, mut buf) = (VecDeque::new(), [0; 1394], [0; 1400]);
    for line in lines {
        let now = line.now();
        if line.from_server {
            if !line.dropped {
                client.handle_datagram(now, &line.bytes, &mut scratch);
            }
            continue;
        }
        client.handle_timeout(now);
        match script.read(line) {
            Said::Messages(messages) => {
                for (vital, data) in messages {
                    assert_eq!(client.send(now, vital, &data), Ok::<(), SendError>(()));
                }
                client.flush();
            }
            Said::Close(reason) => client.close(&reason),
        }
        let before = sent.len();
        while let Some(len) = client.poll_transmit(now, &mut buf) {
            sent.push_back(buf[..len].to_vec());
        }
        if sent.len() == before
            && let Some(len) = client.poll_transmit(now + ROUNDING, &mut buf)
        {
            sent.push_back(buf[..len].to_vec());
        }
    }
    sent
}

fn half(lines: &[Line], from_server: bool) -> Vec<&Line> {
    // At the end of one capture the scripted client sends packets that say nothing.
    let says = |line: &Line| line.bytes[2] != 0 || line.bytes[0] & 0x50 != 0;
    lines.iter().filter(|line| line.from_server == from_server && says(line)).collect()
}

#[test]
fn the_server_says_what_the_real_one_said_byte_for_byte() {
    for name in ["session", "notoken", "timeout"] {
        let lines = captures::session(name);
        compare(name, server_half(&lines, Looks::Often), &half(&lines, true));
    }
    let lines = captures::session("rollover");
    compare_but_acks("rollover", server_half(&lines, Looks::Often), &half(&lines, true));
}

/// Requests, and chunks that a timer repeats again and again, one by one. Behind these 33 datagrams a
/// timer and a request meet in one millisecond, and the capture does not tell which was first.
#[test]
fn the_server_repeats_what_was_lost_as_the_real_one_did() {
    let lines = captures::session("lossy");
    let mut ours = server_half(&lines, Looks::Ticks(16));
    ours.truncate(33);
    let mut real = half(&lines, true);
    real.truncate(33);
    assert_eq!(real.iter().filter(|line| line.dropped).count(), 8);
    compare_but_acks("lossy", ours, &real);
}

#[test]
fn the_client_says_what_the_scripted_one_said() {
    for name in ["session", "notoken", "rollover", "lossy"] {
        let lines = captures::session(name);
        compare(name, client_half(&lines), &half(&lines, false));
    }
}
