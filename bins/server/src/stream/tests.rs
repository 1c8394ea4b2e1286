//! Real sockets; time is what the test says it is.

use std::net::SocketAddr;
use std::os::unix::net::UnixStream as Unix;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant as Clock;

use mio::{Events, Poll};

use super::*;

const FIRST: Token = Token(40);
/// Far more than a busy machine needs.
const PATIENCE: Duration = Duration::from_secs(30);
const LIMITS: Limits =
    Limits { connections: 4, input: 64, output: 4 << 20, patience: Duration::from_secs(10) };

/// An owner that answers each line by the same line; what came is kept.
struct Desk<L: Listener> {
    poll: Poll,
    streams: Streams<L>,
    now: Instant,
    inputs: Vec<(StreamId, Input)>,
    answers: bool,
}

impl<L: Listener> Desk<L> {
    fn new(listener: L, framing: Framing, limits: Limits) -> Self {
        let poll = Poll::new().unwrap();
        let streams = Streams::new(listener, poll.registry(), FIRST, framing, limits).unwrap();
        Self { poll, streams, now: Instant::from_secs(100), inputs: Vec::new(), answers: true }
    }

    /// One turn of a loop, as the server's.
    fn turn(&mut self) {
        let mut events = Events::with_capacity(16);
        let due = self.streams.poll_timeout().is_some_and(|due| due <= self.now);
        let wait = Duration::from_millis(if due { 0 } else { 5 });
        self.poll.poll(&mut events, Some(wait)).unwrap();
        for event in &events {
            self.streams.handle_event(self.now, event.token());
        }
        if self.streams.poll_timeout().is_some_and(|due| due <= self.now) {
            self.streams.handle_timeout(self.now);
        }
        while let Some((from, input)) = self.streams.poll_input(self.now) {
            if self.answers {
                let answer = match &input {
                    Input::Whole(bytes) => bytes.clone(),
                    Input::TooLong => b"too long\n".to_vec(),
                };
                self.streams.answer(self.now, from, &answer);
            }
            self.inputs.push((from, input));
        }
    }

    fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let begin = Clock::now();
        while !done(self) {
            assert!(begin.elapsed() < PATIENCE, "in vain: {what}");
            self.turn();
        }
    }

    fn lines(&self) -> Vec<String> {
        let text = |input: &Input| match input {
            Input::Whole(bytes) => String::from_utf8(bytes.clone()).unwrap(),
            Input::TooLong => "TOO LONG".into(),
        };
        self.inputs.iter().map(|(_, input)| text(input)).collect()
    }
}

fn tcp(limits: Limits) -> (Desk<TcpListener>, SocketAddr) {
    let listener = TcpListener::bind(([127, 0, 0, 1], 0).into()).unwrap();
    let addr = listener.local_addr().unwrap();
    (Desk::new(listener, lines, limits), addr)
}

fn unix(limits: Limits) -> (Desk<UnixListener>, PathBuf) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("caves-stream-{}-{number}.sock", std::process::id());
    let path = std::env::temp_dir().join(name);
    let _ = std::fs::remove_file(&path);
    (Desk::new(UnixListener::bind(&path).unwrap(), lines, limits), path)
}

fn call(addr: SocketAddr) -> std::net::TcpStream {
    let peer = std::net::TcpStream::connect(addr).unwrap();
    peer.set_nonblocking(true).unwrap();
    peer
}

fn call_unix(path: &PathBuf) -> Unix {
    let peer = Unix::connect(path).unwrap();
    peer.set_nonblocking(true).unwrap();
    peer
}

/// Takes what is there; `true` at the end of the stream, also a rude one.
fn listen(peer: &mut impl Read, heard: &mut Vec<u8>) -> bool {
    let mut bytes = [0; 4096];
    loop {
        match peer.read(&mut bytes) {
            Ok(0) => return true,
            Ok(len) => heard.extend_from_slice(&bytes[..len]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return true,
        }
    }
}

#[test]
fn lines_and_heads_end_where_they_say() {
    assert_eq!(lines(b"ab\ncd\n"), Some(3));
    assert_eq!(lines(b"\n"), Some(1));
    assert_eq!(lines(b"ab"), None);
    assert_eq!(http_heads(b"GET / HTTP/1.1\r\n\r\nrest"), Some(18));
    assert_eq!(http_heads(b"GET / HTTP/1.1\r\nA: b\r\n\r\n"), Some(24));
    assert_eq!(http_heads(b"GET /\n\n"), Some(7));
    assert_eq!(http_heads(b"GET /\n\r\nx"), Some(8));
    for part in [&b"GET / HTTP/1.1\r\n"[..], b"GET / HTTP/1.1\r\n\r", b"a\r\rb", b"\n", b""] {
        assert_eq!(http_heads(part), None, "{part:?}");
    }
}

#[test]
fn lines_sent_ahead_are_answered_one_by_one_in_order() {
    let (mut desk, path) = unix(LIMITS);
    let mut peer = call_unix(&path);
    let sent: String = (0..200).map(|line| format!("line {line}\n")).collect();
    peer.write_all(sent.as_bytes()).unwrap();
    let mut heard = Vec::new();
    desk.until("all answers", |_| {
        listen(&mut peer, &mut heard);
        heard.len() >= sent.len()
    });
    assert_eq!(String::from_utf8(heard).unwrap(), sent);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_line_that_comes_byte_by_byte_is_one_input() {
    let (mut desk, addr) = tcp(LIMITS);
    let mut peer = call(addr);
    for byte in b"slowly\nand " {
        peer.write_all(&[*byte]).unwrap();
        desk.turn();
    }
    peer.write_all(b"again\n").unwrap();
    desk.until("two lines", |desk| desk.inputs.len() == 2);
    assert_eq!(desk.lines(), ["slowly\n", "and again\n"]);
}

#[test]
fn a_peer_with_an_unanswered_input_is_not_heard_and_others_are() {
    let (mut desk, addr) = tcp(LIMITS);
    desk.answers = false;
    let (mut first, mut second) = (call(addr), call(addr));
    first.write_all(b"one\ntwo\n").unwrap();
    desk.until("the first line", |desk| desk.inputs.len() == 1);
    second.write_all(b"three\n").unwrap();
    desk.until("the other peer's", |desk| desk.inputs.len() == 2);
    assert_eq!(desk.lines(), ["one\n", "three\n"]);
    // An owner that takes its time costs nobody a connection.
    desk.now += Duration::from_secs(3600);
    desk.turn();
    let one = desk.inputs[0].0;
    assert!(desk.streams.answer(desk.now, one, b"1\n"));
    assert!(!desk.streams.answer(desk.now, one, b"1\n"), "answered already");
    desk.until("the second line", |desk| desk.inputs.len() == 3);
    assert_eq!(desk.lines()[2], "two\n");
}

#[test]
fn a_megabyte_without_an_end_is_too_long_and_costs_no_memory() {
    let (mut desk, addr) = tcp(LIMITS);
    let mut peer = call(addr);
    let megabyte = vec![b'x'; 1 << 20];
    let (mut sent, mut heard) = (0, Vec::new());
    desk.until("the end", |desk| {
        while sent < megabyte.len() {
            match peer.write(&megabyte[sent..]) {
                Ok(len) => sent += len,
                Err(_) => break,
            }
        }
        let kept = desk.streams.places.iter().flatten().map(|c| c.input.capacity()).max();
        assert!(kept.unwrap_or(0) <= 4096, "{kept:?} bytes kept");
        if sent == megabyte.len() {
            let _ = peer.shutdown(Shutdown::Write);
        }
        listen(&mut peer, &mut heard)
    });
    assert_eq!(desk.lines(), ["TOO LONG"]);
    // The answer was not taken back by a reset, though most of it was still to be read then.
    assert_eq!(heard, b"too long\n");
    desk.until("closed", |desk| desk.streams.is_empty());
}

#[test]
fn an_input_of_the_longest_length_is_taken_and_one_byte_more_is_not() {
    for (len, longest) in [(LIMITS.input, true), (LIMITS.input + 1, false)] {
        let (mut desk, addr) = tcp(LIMITS);
        let mut line = vec![b'x'; len - 1];
        line.push(b'\n');
        call(addr).write_all(&line).unwrap();
        desk.until("an input", |desk| desk.inputs.len() == 1);
        let expected = if longest { Input::Whole(line) } else { Input::TooLong };
        assert_eq!(desk.inputs[0].1, expected);
    }
}

#[test]
fn a_peer_that_does_not_read_gets_all_of_a_long_answer_once_it_does() {
    let (mut desk, path) = unix(LIMITS);
    desk.answers = false;
    let mut peer = call_unix(&path);
    peer.write_all(b"all of it\n").unwrap();
    desk.until("a line", |desk| desk.inputs.len() == 1);
    let long: Vec<u8> = (0..3 << 20).map(|byte: u32| (byte % 251) as u8).collect();
    assert!(desk.streams.answer(desk.now, desk.inputs[0].0, &long));
    for _ in 0..20 {
        desk.turn();
    }
    assert!(!desk.streams.places[0].as_ref().unwrap().output.is_empty(), "the kernel took it all");
    let mut heard = Vec::new();
    desk.until("the answer", |_| {
        listen(&mut peer, &mut heard);
        heard.len() >= long.len()
    });
    assert!(heard == long);
    assert_eq!(desk.streams.len(), 1, "it may ask again");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_peer_that_never_reads_is_cut_off_when_its_time_is_over() {
    let (mut desk, path) = unix(LIMITS);
    desk.answers = false;
    let mut peer = call_unix(&path);
    peer.write_all(b"all of it\n").unwrap();
    desk.until("a line", |desk| desk.inputs.len() == 1);
    desk.now += Duration::from_secs(60);
    // More than the kernel holds for a Unix socket.
    assert!(desk.streams.answer(desk.now, desk.inputs[0].0, &vec![b'x'; LIMITS.output]));
    let due = desk.now + LIMITS.patience;
    desk.until("calm", |desk| desk.streams.poll_timeout() == Some(due));
    // What it reads now and then does not move the deadline.
    let mut few = [0; 1000];
    for _ in 0..9 {
        desk.now += Duration::from_secs(1);
        peer.read_exact(&mut few).unwrap();
        desk.turn();
    }
    assert_eq!((desk.streams.len(), desk.streams.poll_timeout()), (1, Some(due)));
    desk.now = due;
    desk.until("cut off", |desk| desk.streams.is_empty());
    assert_eq!(desk.streams.cut_off(), 1);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_slow_drip_does_not_move_the_deadline_and_a_whole_line_does() {
    let (mut desk, addr) = tcp(LIMITS);
    let mut peer = call(addr);
    desk.until("a connection", |desk| desk.streams.len() == 1);
    let begin = desk.now;
    for second in 1..=9 {
        desk.now = begin + Duration::from_secs(second);
        peer.write_all(b"x").unwrap();
        desk.until("a byte", |desk| {
            desk.streams.places[0].as_ref().unwrap().input.len() == second as usize
        });
    }
    peer.write_all(b"\n").unwrap();
    let mut heard = Vec::new();
    desk.until("an answer", |_| {
        listen(&mut peer, &mut heard);
        !heard.is_empty()
    });
    // Answered in the ninth second: it has ten more.
    let due = begin + Duration::from_secs(19);
    desk.until("calm", |desk| desk.streams.poll_timeout() == Some(due));
    desk.now = begin + Duration::from_micros(18_999_999);
    peer.write_all(b"y").unwrap();
    desk.turn();
    assert_eq!(desk.streams.len(), 1);
    desk.now = begin + Duration::from_secs(19);
    desk.until("cut off", |desk| desk.streams.is_empty());
    assert_eq!(desk.streams.cut_off(), 1);
    desk.until("the peer knows", |_| listen(&mut peer, &mut heard));
}

#[test]
fn a_hundred_at_once_are_all_served_though_four_at_a_time() {
    let (mut desk, path) = unix(LIMITS);
    let mut peers: Vec<(Unix, Vec<u8>)> = Vec::new();
    let mut next = 0;
    let mut most = 0;
    desk.until("a hundred answers", |desk| {
        // The kernel's backlog may be shorter than a hundred.
        while next < 100 {
            let Ok(mut peer) = Unix::connect(&path) else { break };
            peer.set_nonblocking(true).unwrap();
            peer.write_all(format!("peer {next}\n").as_bytes()).unwrap();
            peers.push((peer, Vec::new()));
            next += 1;
            if next % 16 == 0 {
                break;
            }
        }
        most = most.max(desk.streams.len());
        for (place, (peer, heard)) in peers.iter_mut().enumerate() {
            let gone = heard == format!("peer {place}\n").as_bytes();
            if !gone {
                listen(peer, heard);
            } else {
                let _ = peer.shutdown(Shutdown::Both);
            }
        }
        let served = peers.iter().filter(|(_, heard)| !heard.is_empty()).count();
        next == 100 && served == 100
    });
    assert_eq!(most, LIMITS.connections);
    for (place, (_, heard)) in peers.iter().enumerate() {
        assert_eq!(heard, format!("peer {place}\n").as_bytes());
    }
    assert_eq!(desk.streams.accepted(), 100);
    drop(peers);
    desk.until("all closed", |desk| desk.streams.is_empty());
    std::fs::remove_file(path).unwrap();
}

#[test]
fn silent_peers_that_hold_every_place_are_cut_off_and_the_next_one_is_served() {
    let (mut desk, addr) = tcp(LIMITS);
    let _silent: Vec<_> = (0..LIMITS.connections).map(|_| call(addr)).collect();
    desk.until("all places taken", |desk| desk.streams.len() == LIMITS.connections);
    let mut peer = call(addr);
    peer.write_all(b"me too\n").unwrap();
    for _ in 0..10 {
        desk.turn();
    }
    assert_eq!(desk.lines(), [""; 0]);
    desk.now += LIMITS.patience;
    desk.until("served", |desk| desk.inputs.len() == 1);
    assert_eq!(desk.lines(), ["me too\n"]);
    assert_eq!(desk.streams.cut_off(), LIMITS.connections as u64);
}

#[test]
fn a_peer_that_says_no_more_is_answered_and_then_closed() {
    let (mut desk, addr) = tcp(LIMITS);
    let mut peer = call(addr);
    peer.write_all(b"one\ntwo\nhalf a li").unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    let mut heard = Vec::new();
    desk.until("the end", |_| listen(&mut peer, &mut heard));
    assert_eq!(heard, b"one\ntwo\n");
    assert_eq!(desk.lines(), ["one\n", "two\n"]);
    assert!(desk.streams.is_empty());
}

#[test]
fn a_peer_that_vanishes_leaves_nothing() {
    let (mut desk, path) = unix(LIMITS);
    desk.answers = false;
    let mut peer = call_unix(&path);
    peer.write_all(b"one\n").unwrap();
    desk.until("a line", |desk| desk.inputs.len() == 1);
    let id = desk.inputs[0].0;
    drop(peer);
    // Whether the kernel knows already or not: the next word finds out.
    desk.streams.answer(desk.now, id, b"1\n");
    desk.until("closed", |desk| desk.streams.is_empty());
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_late_answer_reaches_nobody_else() {
    let limits = Limits { connections: 1, ..LIMITS };
    let (mut desk, addr) = tcp(limits);
    desk.answers = false;
    let mut old = call(addr);
    old.write_all(b"old\n").unwrap();
    desk.until("the old line", |desk| desk.inputs.len() == 1);
    let id = desk.inputs[0].0;
    desk.streams.hang_up(desk.now, id);
    drop(old);
    let mut new = call(addr);
    new.write_all(b"new\n").unwrap();
    desk.until("the new line", |desk| desk.inputs.len() == 2);
    assert_ne!(desk.inputs[1].0, id);
    assert!(!desk.streams.answer(desk.now, id, b"for the old one\n"));
    assert!(desk.streams.answer(desk.now, desk.inputs[1].0, b"for the new one\n"));
    let mut heard = Vec::new();
    desk.until("an answer", |_| {
        listen(&mut new, &mut heard);
        !heard.is_empty()
    });
    assert_eq!(heard, b"for the new one\n");
}

#[test]
fn one_that_was_hung_up_on_and_stays_is_closed_after_two_seconds() {
    let (mut desk, addr) = tcp(LIMITS);
    desk.answers = false;
    let mut peer = call(addr);
    peer.write_all(b"last\nmore\n").unwrap();
    desk.until("a line", |desk| desk.inputs.len() == 1);
    let id = desk.inputs[0].0;
    desk.streams.answer(desk.now, id, b"bye\n");
    desk.streams.hang_up(desk.now, id);
    let mut heard = Vec::new();
    desk.until("the end", |_| listen(&mut peer, &mut heard));
    assert_eq!(heard, b"bye\n");
    assert_eq!((desk.streams.len(), desk.inputs.len()), (1, 1), "nothing after the last");
    desk.now += Duration::from_secs(2);
    desk.until("closed", |desk| desk.streams.is_empty());
    assert_eq!(desk.streams.cut_off(), 0, "that peer was not too slow for anything");
}

#[test]
fn an_answer_over_the_bound_ends_the_connection_and_takes_no_memory() {
    let limits = Limits { output: 8, ..LIMITS };
    let (mut desk, addr) = tcp(limits);
    let mut peer = call(addr);
    peer.write_all(b"1234567\n12345678\n").unwrap();
    let mut heard = Vec::new();
    desk.until("the end", |_| listen(&mut peer, &mut heard));
    assert_eq!(heard, b"1234567\n");
    assert!(desk.streams.is_empty());
}

#[test]
fn events_of_others_change_nothing() {
    let (mut desk, _) = tcp(LIMITS);
    for token in [0, 39, 45, 1 << 20, usize::MAX] {
        desk.streams.handle_event(desk.now, Token(token));
    }
    assert!(desk.streams.is_empty());
    assert_eq!(desk.streams.poll_input(desk.now), None);
}

#[test]
fn nothing_is_due_while_nothing_is_open() {
    let (mut desk, addr) = tcp(LIMITS);
    desk.turn();
    desk.turn();
    assert_eq!(desk.streams.poll_timeout(), None);
    let peer = call(addr);
    desk.until("a connection", |desk| desk.streams.len() == 1);
    desk.until("calm", |desk| {
        desk.streams.poll_timeout() == Some(Instant::from_secs(100) + LIMITS.patience)
    });
    drop(peer);
    desk.until("closed", |desk| desk.streams.is_empty());
    desk.until("calm again", |desk| desk.streams.poll_timeout().is_none());
}
