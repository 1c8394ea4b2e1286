//! The program against a real server in this process.

use std::net::SocketAddr;
use std::process::{Command, Output, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use caves_server::{Config, RunError, Server, StopHandle, Summary};
use serde_json::Value;

/// Stops with the test, whether that failed or not.
struct Running {
    addr: SocketAddr,
    stop: StopHandle,
    thread: Option<JoinHandle<Result<Summary, RunError>>>,
}

impl Running {
    fn start(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::solo();
        config.session.max_players = 100;
        config.session.sessions_per_address = 100;
        config.seed = Some(1);
        change(&mut config);
        let server = Server::bind(&config).expect("a free port");
        let (addr, stop) = (server.local_addrs()[0], server.handle());
        Self { addr, stop, thread: Some(std::thread::spawn(|| server.run())) }
    }

    fn swarm(&self, args: &str) -> Output {
        let addr = self.addr.to_string();
        program(&["--connect", &addr].into_iter().chain(args.split(' ')).collect::<Vec<_>>())
    }

    /// Runs twenty clients for some seconds; all of them come in, and nothing is wrong.
    fn twenty(&self, seconds: u32, more: &str) -> Value {
        let output = self.swarm(&format!("--clients 20 --seconds {seconds} --json {more}"));
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let json = json(&output);
        assert_eq!(output.status.code(), Some(0), "{told}\n{json}");
        assert_eq!((&json["clients"], &json["joined"]), (&20.into(), &20.into()), "{told}\n{json}");
        assert_eq!(json["failures_in_all"], 0, "{json}");
        assert_eq!(json["not_joined"].as_object().map(serde_json::Map::len), Some(0), "{json}");
        json
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.stop();
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || matches!(ended, Some(Ok(Ok(_)))), "{ended:?}");
    }
}

fn program(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_caves-swarm"));
    command.args(args).stdin(Stdio::null()).output().expect("the program runs")
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!("{error}: {text:?}; {}", String::from_utf8_lossy(&output.stderr))
    })
}

fn number(json: &Value, pointer: &str) -> u64 {
    let value = json.pointer(pointer).and_then(Value::as_u64);
    value.unwrap_or_else(|| panic!("no {pointer} in {json}"))
}

#[test]
fn twenty_clients_play_for_three_seconds_and_nothing_is_wrong() {
    let server = Running::start(|_| {});
    let json = server.twenty(3, "--sources 4");
    // Thirty are sent each; fewer come where the machine is busy, and more where it holds us up.
    let (min, max) = (number(&json, "/ticks/each/min"), number(&json, "/ticks/each/max"));
    assert!(min >= 5 && max <= 100, "{json}");
    assert_eq!(number(&json, "/join_ms/count"), 20);
    assert!(number(&json, "/updates/complete") >= 100);
    assert!(number(&json, "/steps") > 100 && number(&json, "/questions/answered") > 0, "{json}");
    // Nine chunks each, at least.
    assert!(number(&json, "/chunks/checked") >= 180 && number(&json, "/chunks/versions") >= 9);
    assert!(number(&json, "/down/bytes") > number(&json, "/chunks/checked") * 783);
    assert_eq!(json["lost_on_purpose"]["up"], 0);
    let busy = json["busy"].as_array().expect("a list");
    assert!(busy.len() == 1 && busy[0]["share"].as_f64() > Some(0.0), "{json}");
}

#[test]
fn nothing_is_wrong_either_where_a_fifth_is_lost_each_way() {
    let server = Running::start(|_| {});
    // Each try to join succeeds two times in five: in six seconds there are some twenty tries.
    let json = server.twenty(6, "--loss 20 --walk crowd");
    let (lost, came) = (number(&json, "/lost_on_purpose/down"), number(&json, "/down/datagrams"));
    // A fifth of some thousands.
    let share = lost as f64 / (lost + came) as f64;
    assert!((0.15..0.25).contains(&share), "{json}");
    assert!(number(&json, "/ticks/missed") > 0 && number(&json, "/lost_on_purpose/up") > 0);
}

#[test]
fn somebody_who_means_no_good_changes_nothing() {
    let server = Running::start(|_| {});
    let json = server.twenty(3, "--hostile 2000 --walk still --threads 2");
    let hostile = &json["hostile"];
    assert!(number(hostile, "/sent/datagrams") > 1_000, "{json}");
    for kind in ["random", "cut", "hellos", "joins", "tokens"] {
        assert!(hostile[kind].as_u64() > Some(100), "{kind}: {json}");
    }
    assert!(number(hostile, "/answers/bytes") <= number(hostile, "/sent/bytes"));
    let threads = json["busy"].as_array().expect("a list");
    let threads: Vec<_> = threads.iter().map(|busy| busy["thread"].as_str()).collect();
    assert_eq!(threads, [Some("clients-0"), Some("clients-1"), Some("hostile")]);
}

#[test]
fn clients_that_find_no_room_are_told_of_loudly() {
    let server = Running::start(|config| config.session.max_players = 3);
    let output = server.swarm("--clients 5 --seconds 3 --walk still");
    let (out, told) =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text)).into();
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("2 of 5 clients COULD NOT JOIN: server full 2"), "{told}");
    assert!(out.contains("not joined server full 2") && out.contains("failures   none"), "{out}");
}

#[test]
fn without_a_server_nobody_joins_and_that_is_said() {
    // Nobody else has this port while the socket lives, and nobody answers.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let addr = silent.local_addr().expect("it is bound").to_string();
    let args = ["--connect", &addr, "--clients", "2", "--seconds", "1", "--json"];
    let output = program(&args);
    assert_eq!(output.status.code(), Some(0));
    let json = json(&output);
    assert_eq!((&json["joined"], &json["not_joined"]["no answer"]), (&0.into(), &2.into()));
    assert!(String::from_utf8_lossy(&output.stderr).contains("COULD NOT JOIN"));
}

#[test]
fn wrong_use_is_status_two() {
    for args in [
        &["--clients", "5"][..],
        &["--connect", "nowhere"],
        &["--connect", "[::1]:1", "--sources", "2"],
    ] {
        let output = program(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty());
    }
}

#[test]
fn who_is_interrupted_says_goodbye_and_reports() {
    let server = Running::start(|_| {});
    let addr = server.addr.to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_caves-swarm"));
    command.args(["--connect", &addr, "--clients", "3", "--seconds", "600", "--json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    // Its handlers are there when its sockets are.
    let asks = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    asks.connect(server.addr).expect("a route to ourselves");
    asks.set_read_timeout(Some(Duration::from_secs(1))).expect("not zero");
    while players(&asks) < 3 {}
    // The last Welcome has time to arrive.
    (0..100).for_each(|_| assert_eq!(players(&asks), 3));
    let script = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &script]).status().expect("a shell").success());
    let output = child.wait_with_output().expect("a child of ours");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(json(&output)["playing_at_the_end"], 3);
    // A server forgets silent ones after ten seconds; those who say goodbye at once.
    while players(&asks) > 0 {}
}

/// How many the server says it has.
fn players(asks: &std::net::UdpSocket) -> u16 {
    use caves_wire::caves::{ClientType, InfoRequest, InfoView, Nonce};
    let mut buf = [0; 512];
    let request = InfoRequest { client_type: ClientType::OFFICIAL, nonce: Nonce(1) };
    let len = request.emit(&mut buf).expect("room for 256 bytes");
    let question = buf[..len].to_vec();
    loop {
        std::thread::sleep(Duration::from_millis(20));
        asks.send(&question).expect("a server that is there");
        if let Ok(len) = asks.recv(&mut buf) {
            return InfoView::parse(&buf[..len]).expect("an Info").players();
        }
    }
}
