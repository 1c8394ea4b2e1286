//! The real program is scraped, and read by a parser that shares nothing with what wrote the text.

mod common;

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::Instant;

use caves_wire::caves::{ClientType, Hello, InfoRequest, Nonce};

use common::visitor::Visitor;
use common::{ONE_SOCKET, PATIENCE, ServerProcess, TempDir, info, stranger};

const WITH_METRICS: &str =
    "[server]\nlisten = [\"127.0.0.1:0\"]\n[metrics]\nlisten = \"127.0.0.1:0\"\n";

/// A server with metrics, and where they are.
fn spawn(more: &str) -> (ServerProcess, SocketAddr) {
    let server = ServerProcess::spawn(&format!("{WITH_METRICS}{more}"));
    let line = server.next_line();
    let addr = line.strip_prefix("listening metrics ").expect("the line after those of UDP");
    (server, addr.parse().expect("an address"))
}

/// Sends bytes and reads all that is answered.
fn exchange(addr: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(addr).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("a whole answer, and the end of the connection");
    answer
}

/// Status, headers and body of an answer.
fn get(addr: SocketAddr, path: &str) -> (u16, BTreeMap<String, String>, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {addr}\r\nAccept: */*\r\n\r\n");
    parts(&exchange(addr, request.as_bytes()))
}

fn parts(answer: &str) -> (u16, BTreeMap<String, String>, String) {
    let (head, body) = answer.split_once("\r\n\r\n").expect("an empty line");
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().strip_prefix("HTTP/1.1 ").expect("HTTP")[..3].parse();
    let header = |line: &str| {
        let (name, value) = line.split_once(": ").expect("a header");
        (name.to_ascii_lowercase(), value.to_owned())
    };
    (status.unwrap(), lines.map(header).collect(), body.to_owned())
}

/// A scrape that was read line by line: each sample under its name with its labels as written.
#[derive(Debug)]
struct Scrape {
    kinds: BTreeMap<String, String>,
    samples: BTreeMap<String, f64>,
}

impl Scrape {
    /// Reads the text; anything that Prometheus would stumble over is a panic.
    fn parse(text: &str) -> Self {
        let (mut helps, mut kinds) = (BTreeMap::new(), BTreeMap::new());
        let mut samples = BTreeMap::new();
        assert!(text.ends_with('\n') && !text.contains("\n\n"));
        let mut current = String::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').expect("a help text");
                assert!(!help.is_empty() && helps.insert(name.to_owned(), ()).is_none(), "{line}");
                current = name.to_owned();
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect("a type");
                assert_eq!(name, current, "HELP comes right before TYPE");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert!(kinds.insert(name.to_owned(), kind.to_owned()).is_none(), "{line}");
            } else {
                let (series, value) = line.rsplit_once(' ').expect("a value");
                let name = series.split('{').next().unwrap();
                let suffixed = ["_bucket", "_sum", "_count"].iter().any(|suffix| {
                    kinds.get(&current).is_some_and(|kind| kind == "histogram")
                        && name == format!("{current}{suffix}")
                });
                assert!(name == current || suffixed, "{line} stands below {current}");
                assert!(kinds.contains_key(&current), "{line} has no type");
                check_labels(&series[name.len()..]);
                let value: f64 = value.parse().expect("a number");
                assert!(value >= 0.0, "{line}");
                assert!(samples.insert(series.to_owned(), value).is_none(), "twice: {line}");
            }
        }
        Self { kinds, samples }
    }

    fn of(addr: SocketAddr) -> Self {
        let (status, headers, body) = get(addr, "/metrics");
        assert_eq!(status, 200);
        assert_eq!(headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
        assert_eq!(headers["content-length"], body.len().to_string());
        Self::parse(&body)
    }

    #[track_caller]
    fn get(&self, series: &str) -> f64 {
        *self.samples.get(series).unwrap_or_else(|| panic!("no {series} in {self:#?}"))
    }

    /// All values of a family together.
    fn sum(&self, name: &str) -> f64 {
        let of_it = |(series, _): &(&String, &f64)| series.split('{').next() == Some(name);
        self.samples.iter().filter(of_it).map(|(_, value)| value).sum()
    }
}

/// `{name="value",...}` or nothing.
fn check_labels(text: &str) {
    if text.is_empty() {
        return;
    }
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).expect("braces");
    for label in inner.split(',') {
        let (name, value) = label.split_once('=').expect("a label");
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{text}");
        let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.+-".contains(&byte);
        assert!(value.expect("quotes").bytes().all(plain), "{text}");
    }
}

fn datagrams(direction: &str, kind: &str) -> String {
    format!("caves_datagrams_total{{direction=\"{direction}\",type=\"{kind}\"}}")
}

fn bytes(direction: &str, kind: &str) -> String {
    format!("caves_datagram_bytes_total{{direction=\"{direction}\",type=\"{kind}\"}}")
}

/// Scrapes until something holds.
fn scrape_until(addr: SocketAddr, holds: impl Fn(&Scrape) -> bool) -> Scrape {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let scrape = Scrape::of(addr);
        if holds(&scrape) {
            return scrape;
        }
        assert!(Instant::now() < deadline, "{scrape:#?}");
    }
}

#[test]
fn what_a_stranger_sends_and_gets_is_counted_to_the_byte() {
    let (server, metrics) = spawn("");
    let socket = stranger(server.addrs[0]);
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    // No packets of ours: 5 bytes, and 700 under our magic but with type 200.
    let mut junk = [0; 700];
    junk[..4].copy_from_slice(&[0x4C, 0x52, 1, 200]);
    socket.send(&junk).unwrap();
    socket.send(b"hello").unwrap();
    let mut buf = [0; 2048];
    for nonce in 1..=3 {
        let hello = Hello { client_type: ClientType(0), nonce: Nonce(nonce) };
        let len = hello.emit(&mut buf).unwrap();
        assert_eq!(len, 64, "a Hello has 64 bytes");
        socket.send(&buf[..len]).unwrap();
        assert_eq!(socket.recv(&mut buf).unwrap(), 62, "a Challenge has 62 bytes");
    }
    let request = InfoRequest { client_type: ClientType(0), nonce: Nonce(9) };
    let len = request.emit(&mut buf).unwrap();
    socket.send(&buf[..len]).unwrap();
    let answered = socket.recv(&mut buf).unwrap();

    let scrape = Scrape::of(metrics);
    assert_eq!(scrape.get(&datagrams("in", "hello")), 3.0);
    assert_eq!(scrape.get(&bytes("in", "hello")), 192.0);
    assert_eq!(scrape.get(&datagrams("out", "challenge")), 3.0);
    assert_eq!(scrape.get(&bytes("out", "challenge")), 186.0);
    assert_eq!(scrape.get(&datagrams("in", "unknown")), 2.0);
    assert_eq!(scrape.get(&bytes("in", "unknown")), 705.0);
    assert_eq!(scrape.get(&datagrams("in", "info_request")), 1.0);
    assert_eq!(scrape.get(&bytes("in", "info_request")), 256.0);
    assert_eq!(scrape.get(&datagrams("out", "info")), 1.0);
    assert_eq!(scrape.get(&bytes("out", "info")), answered as f64);
    // Nothing else was sent, either way.
    assert_eq!(scrape.sum("caves_datagrams_total"), 3.0 + 3.0 + 2.0 + 1.0 + 1.0);
    assert_eq!(scrape.sum("caves_drops_total"), 2.0);
    assert_eq!(scrape.get("caves_drops_total{reason=\"malformed\"}"), 1.0);
    assert_eq!(scrape.get("caves_drops_total{reason=\"packet_type\"}"), 1.0);
    for nothing in ["caves_send_errors_total", "caves_read_errors_total", "caves_sessions"] {
        assert_eq!(scrape.get(nothing), 0.0, "{nothing}");
    }
}

#[test]
fn every_family_is_described_and_named_as_prometheus_wants_it() {
    let (_server, metrics) = spawn("");
    let scrape = scrape_until(metrics, |scrape| scrape.get("caves_ticks_total") >= 2.0);
    for (name, kind) in &scrape.kinds {
        assert!(name.starts_with("caves_") || name.starts_with("process_"), "{name}");
        assert_eq!(kind == "counter", name.ends_with("_total"), "{name} is a {kind}");
        for not_base in ["_ms", "_millis", "_us", "_kb", "_kib", "_percent", "_minutes"] {
            assert!(!name.contains(not_base), "{name}");
        }
    }
    // The histogram: buckets do not fall, the last has everything, and no more ticks than there were.
    let bucket =
        |le: &str| scrape.get(&format!("caves_tick_duration_seconds_bucket{{le=\"{le}\"}}"));
    let bounds = [
        "0.0001", "0.00025", "0.0005", "0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1",
        "0.2",
    ];
    let counts: Vec<f64> = bounds.iter().map(|le| bucket(le)).chain([bucket("+Inf")]).collect();
    assert!(counts.is_sorted(), "{counts:?}");
    let count = scrape.get("caves_tick_duration_seconds_count");
    assert!(count >= 1.0 && count <= scrape.get("caves_ticks_total"));
    assert_eq!(counts.last(), Some(&count));
    assert!(scrape.get("caves_tick_duration_seconds_sum") > 0.0);
    // The process.
    assert!(scrape.get("process_resident_memory_bytes") > 1e6);
    assert!(scrape.get("process_open_fds") >= 5.0);
    let since_start = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64()
        - scrape.get("process_start_time_seconds");
    assert!((0.0..600.0).contains(&since_start), "{since_start}");
    assert_eq!(scrape.get("caves_max_players"), 64.0);
    let build = scrape.samples.iter().find(|(series, _)| series.starts_with("caves_build_info{"));
    let (series, one) = build.expect("a build");
    assert_eq!(*one, 1.0);
    assert!(
        series.contains("version=\"0.1.0\",protocol=\"1\",generator=\"1\",content=\""),
        "{series}"
    );
    // Counters never fall.
    let later = Scrape::of(metrics);
    for (series, before) in &scrape.samples {
        let family = series.split('{').next().unwrap();
        if scrape.kinds.get(family).is_some_and(|kind| kind == "counter") {
            assert!(later.get(series) >= *before, "{series}");
        }
    }
}

#[test]
fn players_who_come_go_and_are_refused_are_counted() {
    let (server, metrics) = spawn("[[ban]]\nname = \"Mallory\"\nreason = \"spam\"\n");
    let here = IpAddr::from(Ipv4Addr::LOCALHOST);
    let mut ada = Visitor::new(server.addrs[0], here, "Ada");
    ada.until(PATIENCE, Visitor::is_playable).expect("Ada comes in");
    let mut mallory = Visitor::new(server.addrs[0], here, "Mallory");
    mallory.until(PATIENCE, |mallory| !mallory.events.is_empty()).expect("Mallory is told");

    let inside = Scrape::of(metrics);
    assert_eq!(inside.get("caves_joins_total{kind=\"new\"}"), 1.0);
    assert_eq!(inside.get("caves_joins_total{kind=\"returned\"}"), 0.0);
    assert_eq!((inside.get("caves_players"), inside.get("caves_sessions")), (1.0, 1.0));
    assert!(inside.get("caves_refusals_total{reason=\"banned\"}") >= 1.0);
    let refuses = inside.get(&datagrams("out", "refuse"));
    assert_eq!(inside.sum("caves_refusals_total"), refuses);
    assert_eq!(inside.get(&datagrams("out", "welcome")), 1.0);
    // Three by three chunks around a player, each of 783 to 909 bytes.
    let chunks = inside.get("caves_chunks_sent_total");
    assert!(chunks >= 9.0);
    assert_eq!(inside.get(&datagrams("out", "chunk")), chunks);
    let size = inside.get(&bytes("out", "chunk")) / chunks;
    assert!((783.0..=909.0).contains(&size), "{size}");
    // A State has 72 bytes.
    let states = inside.get(&datagrams("out", "state"));
    assert!(states >= 1.0);
    assert_eq!(inside.get(&bytes("out", "state")), states * 72.0);
    assert!(inside.get("caves_chunks_loaded") >= 9.0 && inside.get("caves_entities") >= 1.0);
    assert_eq!(inside.sum("caves_leaves_total"), 0.0);
    // Of the loopback a round trip is known once something was acknowledged; a second would be odd.
    let deadline = Instant::now() + PATIENCE;
    let known = loop {
        ada.step();
        let scrape = Scrape::of(metrics);
        if scrape.get("caves_round_trip_sessions") == 1.0 {
            break scrape;
        }
        assert!(Instant::now() < deadline, "{scrape:#?}");
    };
    let trip =
        |quantile: &str| known.get(&format!("caves_round_trip_seconds{{quantile=\"{quantile}\"}}"));
    assert!(trip("0") > 0.0 && trip("1") < PATIENCE.as_secs_f64());
    assert_eq!([trip("0"), trip("0.5")], [trip("0.9"), trip("1")], "there is one session");

    ada.leave();
    let outside = scrape_until(metrics, |scrape| scrape.get("caves_players") == 0.0);
    assert_eq!(outside.get("caves_leaves_total{reason=\"quit\"}"), 1.0);
    assert_eq!(outside.sum("caves_leaves_total"), 1.0);
    assert!(!format!("{outside:?}").contains("Ada"), "no name of a player is a label");
}

#[test]
#[cfg(target_os = "linux")]
fn datagrams_that_the_kernel_dropped_are_told() {
    let (server, metrics) = spawn("");
    assert_eq!(Scrape::of(metrics).get("caves_kernel_receive_drops_total"), 0.0);
    server.signal("STOP");
    // While it stands still nobody reads: no buffer has room for 32 MB, the kernel's limits apart.
    let socket = stranger(server.addrs[0]);
    for _ in 0..32_000 {
        socket.send(&[0; 1_000]).unwrap();
    }
    server.signal("CONT");
    let scrape = Scrape::of(metrics);
    let dropped = scrape.get("caves_kernel_receive_drops_total");
    assert!(dropped >= 1.0);
    // Each was read, or dropped by the kernel.
    scrape_until(metrics, |scrape| scrape.get(&datagrams("in", "unknown")) + dropped == 32_000.0);
}

#[test]
fn requests_that_are_wrong_are_answered_by_what_is_wrong_with_them() {
    let (server, metrics) = spawn("");
    assert_eq!(get(metrics, "/healthz"), parts(&exchange(metrics, b"GET /healthz HTTP/1.0\n\n")));
    let (status, headers, body) = get(metrics, "/healthz");
    assert_eq!((status, body.as_str()), (200, "ok\n"));
    assert_eq!(headers["connection"], "close");
    assert_eq!(get(metrics, "/").0, 404);
    for method in ["POST", "DELETE", "OPTIONS"] {
        let request = format!("{method} /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc");
        let (status, headers, _) = parts(&exchange(metrics, request.as_bytes()));
        assert_eq!((status, headers["allow"].as_str()), (405, "GET, HEAD"));
    }
    let bad: [&[u8]; 4] = [
        b"GET\r\n\r\n",
        b"GET /metrics\r\n\r\n",
        b"\x16\x03\x01\n\n",
        b"GET / HTTP/1.1\r\nx\r\n\r\n",
    ];
    for request in bad {
        assert_eq!(parts(&exchange(metrics, request)).0, 400, "{}", request.escape_ascii());
    }
    // A head of more than 4096 bytes, with and without its end.
    for end in ["", "\r\n\r\n"] {
        let request = format!("GET /metrics HTTP/1.1\r\nX: {}{end}", "x".repeat(5_000));
        assert_eq!(parts(&exchange(metrics, request.as_bytes())).0, 431);
    }
    let (status, headers, body) = parts(&exchange(metrics, b"HEAD /metrics HTTP/1.1\r\n\r\n"));
    assert_eq!((status, body.as_str()), (200, ""));
    assert!(headers["content-length"].parse::<usize>().unwrap() > 1_000);
    // One request a connection: the second is not answered.
    let two = exchange(metrics, b"GET /healthz HTTP/1.1\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n");
    assert_eq!(two.matches("HTTP/1.1").count(), 1);
    info(&stranger(server.addrs[0]));
}

#[test]
fn slow_and_silent_peers_hold_nobody_up_and_are_cut_off() {
    let (server, metrics) = spawn("");
    let mut slow: Vec<TcpStream> =
        (0..4).map(|_| TcpStream::connect(metrics).expect("it listens")).collect();
    for (place, stream) in slow.iter_mut().enumerate() {
        stream.write_all(&b"GET /metrics HTTP/1.1\r\n"[..place * 6]).unwrap();
    }
    assert_eq!(get(metrics, "/healthz").0, 200);
    info(&stranger(server.addrs[0]));
    for mut stream in slow {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let end = stream.read(&mut [0; 16]);
        let reset = |error: &std::io::Error| error.kind() == ErrorKind::ConnectionReset;
        assert!(matches!(&end, Ok(0)) || end.as_ref().is_err_and(reset), "{end:?}");
    }
    // More of them than there are places: who comes after them waits for the end of the first.
    let crowd: Vec<TcpStream> =
        (0..20).map(|_| TcpStream::connect(metrics).expect("it listens")).collect();
    drop(crowd);
    Scrape::of(metrics);
}

#[test]
fn it_is_healthy_and_ready_as_long_as_it_runs() {
    let (mut server, metrics) = spawn("");
    let deadline = Instant::now() + PATIENCE;
    while get(metrics, "/readyz").0 != 200 {
        assert!(Instant::now() < deadline);
    }
    let (status, _, body) = get(metrics, "/readyz");
    assert_eq!((status, body.as_str()), (200, "ready\n"));
    assert!(Scrape::of(metrics).get("caves_ticks_total") >= 1.0);
    assert_eq!(server.terminate().code(), Some(0));
    assert!(TcpStream::connect(metrics).is_err());
}

#[test]
fn an_address_in_use_is_one_clear_line_and_without_one_nothing_listens() {
    let (_server, metrics) = spawn("");
    let dir = TempDir::new();
    dir.file("config.toml", &format!("{ONE_SOCKET}[metrics]\nlisten = \"{metrics}\"\n"));
    let second = dir.run(&[]);
    assert_eq!(second.status.code(), Some(1));
    let error = String::from_utf8(second.stderr).unwrap();
    let expected = format!("caves-server: cannot listen for metrics on tcp {metrics}: ");
    assert!(error.starts_with(&expected) && error.lines().count() == 1, "{error}");
    assert!(second.stdout.is_empty());

    let mut without = ServerProcess::spawn(ONE_SOCKET);
    without.terminate();
    assert_eq!(without.rest_of_stdout(), [""; 0]);
}
