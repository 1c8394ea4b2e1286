//! The program: arguments, exit status, pipes, queries.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::thread;

use caves_server::{Config, Server};
use common::{ethernet, ipv4, pcap, program, unhex};
use serde_json::Value;

const PING: &str = "4c52010600000700000000000000";

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[test]
fn a_line_of_hex_on_standard_input_is_shown() {
    for args in [&[][..], &["-"]] {
        let output = program(args, PING.as_bytes());
        assert_eq!(output.status.code(), Some(0));
        let shown = text(&output.stdout);
        assert!(shown.contains("c2s caves     #1  Ping timestamp_ms=7\n"), "{shown}");
        assert!(shown.ends_with("1 datagrams, 14 bytes, 0 with a problem; 0 broken, 0 not UDP\n"));
        assert_eq!(text(&output.stderr), "");
    }
}

#[test]
fn strict_ends_with_1_where_a_datagram_does_not_decode_and_all_are_shown() {
    let input = format!("4c52\n{PING}\n");
    for (args, input, status) in [
        (&[][..], &input, 0),
        (&["--strict"], &input, 1),
        (&["--strict"], &PING.to_owned(), 0),
        (&["--strict"], &"no datagram".to_owned(), 1),
        (&["--strict"], &"0102030405".to_owned(), 1),
        (&["--strict", "--json", "--quiet"], &input, 1),
    ] {
        let output = program(args, input.as_bytes());
        assert_eq!(output.status.code(), Some(status), "{args:?} {input}");
    }
    let shown = text(&program(&["--strict"], input.as_bytes()).stdout);
    assert!(shown.contains("!! Header: too short at byte 2: needed 6, got 2"), "{shown}");
    assert!(shown.contains("Ping"), "{shown}");
    let quiet = text(&program(&["--quiet"], input.as_bytes()).stdout);
    assert!(quiet.contains("too short") && !quiet.contains("Ping timestamp"), "{quiet}");
}

#[test]
fn every_line_of_json_is_an_object() {
    let input = format!("0 c2s {PING}\n1 s2c 4c52\nnonsense\n");
    let output = program(&["--json"], input.as_bytes());
    let shown = text(&output.stdout);
    let lines: Vec<Value> =
        shown.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 5, "{shown}");
    assert_eq!((&lines[0]["packet"], &lines[0]["direction"]), (&"Ping".into(), &"c2s".into()));
    assert!(lines[1]["problem"].is_string() && lines[2]["broken"].is_string());
    assert_eq!(lines[3]["summary"]["problems"], 1);
    assert_eq!(lines[4]["totals"]["broken"], 1);
}

#[test]
fn wrong_use_ends_with_2_and_what_fails_with_1() {
    for args in [&["--nonsense"][..], &["--protocol", "chess"], &["query", "caves"]] {
        let output = program(args, b"");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).starts_with("error: "), "{args:?}");
    }
    let output = program(&["/no/such\u{1b}[1mfile"], b"");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("cannot open it"));
    assert!(!text(&output.stderr).contains('\u{1b}'));
    let whole = pcap(1, &[ethernet(&ipv4((1, 21_068), &unhex(PING)))]);
    let output = program(&[], &[&whole[..], &[0; 7]].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("Ping"), "what came before is shown");
    let expected = "caves-inspect: -: at packet 2: the recording breaks off\n";
    assert_eq!(text(&output.stderr), expected);
}

#[test]
fn help_has_examples() {
    let output = program(&["--help"], b"");
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("tcpdump -i lo -w - udp port 21068 | caves-inspect"));
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_caves-inspect"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    // Far more than pipes hold; it stops reading, so this ends.
    for _ in 0..100_000 {
        if writeln!(stdin, "{PING}").is_err() {
            break;
        }
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
}

#[test]
fn a_recording_under_way_is_shown_datagram_by_datagram() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_caves-inspect"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let recording = pcap(1, &[ethernet(&ipv4((1, 21_068), &unhex(PING)))]);
    stdin.write_all(&recording[..24]).unwrap();
    for _ in 0..3 {
        stdin.write_all(&recording[24..]).unwrap();
        stdin.flush().unwrap();
        // It blocks until the line is there: standard input is still open.
        assert!(lines.next().unwrap().unwrap().contains("Ping"));
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_server_of_ours_tells_about_itself() {
    let server = Server::bind(&Config::solo()).unwrap();
    let addr = server.local_addrs()[0].to_string();
    let stop = server.handle();
    let thread = thread::spawn(|| server.run());
    let output = program(&["query", "caves", &addr], b"");
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(shown.contains("players    0 of "), "{shown}");
    let output = program(&["--json", "query", "caves", &addr], b"");
    let value: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_eq!(value["players"], 0);
    assert!(value["name"].is_string() && value["round_trip_ms"].is_number(), "{value}");
    stop.stop();
    thread.join().unwrap().unwrap();
}

/// A server that drops the first question, answers the second one with rubbish and only then well.
#[test]
fn a_teeworlds_server_is_asked_until_it_answers() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let addr = server.local_addr().unwrap().to_string();
    let thread = thread::spawn(move || {
        let mut buf = [0; 64];
        server.recv_from(&mut buf).unwrap();
        let (len, from) = server.recv_from(&mut buf).unwrap();
        assert_eq!((len, &buf[..2], &buf[6..14]), (15, &b"xe"[..], &b"\xff\xff\xff\xffgie3"[..]));
        let token = u32::from_be_bytes([0, buf[2], buf[3], buf[14]]);
        let answer = |token: u32| {
            let head = [&[0xFF; 10][..], b"iext"].concat();
            let fields = format!(
                "{token}\x000.6.4\0A \x1b[1mname\0dm1\x00-1\x007\0DM\x000\x001\x008\x002\x0016\0\0"
            );
            [head, fields.into_bytes()].concat()
        };
        for datagram in [b"rubbish".to_vec(), answer(token ^ 1), answer(token)] {
            server.send_to(&datagram, from).unwrap();
        }
    });
    let output = program(&["query", "teeworlds", &addr], b"");
    thread.join().unwrap();
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        shown.starts_with("name       A  [1mname\nmap        dm1\nplayers    2 of 16\n"),
        "{shown}"
    );
}

#[test]
fn a_query_that_nobody_answers_ends_with_1() {
    // Somebody listens there and says nothing.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let addr = silent.local_addr().unwrap().to_string();
    for protocol in ["caves", "teeworlds"] {
        let output = program(&["query", protocol, &addr], b"");
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains("nobody answers at 127.0.0.1:"));
        assert_eq!(text(&output.stdout), "");
    }
    let output = program(&["query", "caves", "no such host"], b"");
    assert_eq!(output.status.code(), Some(1));
}
