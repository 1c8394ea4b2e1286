//! The program as a whole: what it prints, how it exits, what it leaves behind.

#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use caves_server::config::ControlConfig;
use caves_server::control::Command as Order;
use caves_server::{Config, Server, StopHandle};

const CAVES: &str = env!("CARGO_BIN_EXE_caves");
/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

fn run(args: &[&str]) -> Output {
    Command::new(CAVES).args(args).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// A server in this process.
struct Running {
    port: u16,
    stop: StopHandle,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn start(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::solo();
        change(&mut config);
        let server = Server::bind(&config).unwrap();
        let (port, stop) = (server.local_addrs()[0].port(), server.handle());
        let thread = std::thread::spawn(move || server.run().map(|_| ()).unwrap());
        Self { port, stop, thread: Some(thread) }
    }
}

/// An address that a server can come back to: no socket with a port of the system's choice, such
/// as those of the tests beside, takes it in between.
fn fixed_address() -> SocketAddr {
    // The system chooses from 32768 on (`ip_local_port_range`).
    let first = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    (first..32_000)
        .map(|port| SocketAddr::from(([127, 0, 0, 1], port)))
        .find(|addr| UdpSocket::bind(addr).is_ok())
        .expect("a free port")
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.stop();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The program in a terminal of its own: `script` makes one.
struct Terminal {
    script: Child,
    keys: ChildStdin,
    output: Receiver<Vec<u8>>,
    /// All that was sent to it.
    sent: String,
    /// What of it is on the screen already.
    played: usize,
    screen: [[char; 80]; 24],
    cursor: (usize, usize),
}

impl Terminal {
    /// Runs the program in 80 columns and 24 rows; the exit status and what the terminal is like
    /// afterwards are shown at the end.
    fn start(args: &str) -> Self {
        let line = format!(
            "stty rows 24 cols 80; sh -c 'echo pid $$ .; exec {CAVES} {args}'; \
             echo status $? .; stty -a; echo over"
        );
        let mut script = Command::new("script")
            .args(["-qfc", &line, "/dev/null"])
            .env("LC_ALL", "C.UTF-8")
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script of util-linux makes terminals for these tests");
        let keys = script.stdin.take().unwrap();
        let mut stdout = script.stdout.take().unwrap();
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut buf = [0; 4096];
            while let Ok(len @ 1..) = stdout.read(&mut buf) {
                if sender.send(buf[..len].to_vec()).is_err() {
                    return;
                }
            }
        });
        let (sent, played, screen, cursor) = (String::new(), 0, [[' '; 80]; 24], (0, 0));
        Self { script, keys, output, sent, played, screen, cursor }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for what is sent next, and for `done` to find it.
    fn wait_until<T>(&mut self, what: &str, done: impl Fn(&Self) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = done(self) {
                return found;
            }
            let left = until.saturating_duration_since(Instant::now());
            let Ok(bytes) = self.output.recv_timeout(left) else {
                panic!("no {what:?}, but:\n{}\n{}", self.shown(), self.sent.escape_debug());
            };
            self.sent.push_str(&String::from_utf8_lossy(&bytes));
            self.play();
        }
    }

    /// Waits until this is in a row of the screen.
    fn wait_for(&mut self, what: &str) {
        self.wait_until(what, |terminal| terminal.shown().contains(what).then_some(()));
    }

    fn shown(&self) -> String {
        self.screen.iter().flat_map(|row| row.iter().chain(&['\n'])).collect()
    }

    /// Does what the complete sequences mean that were sent: moving, clearing, printing.
    fn play(&mut self) {
        while let Some(c) = self.sent[self.played..].chars().next() {
            let rest = &self.sent[self.played..];
            if c != '\u{1b}' {
                self.played += c.len_utf8();
                self.print(c);
                continue;
            }
            let Some(end) = rest[1..].find(|c: char| c.is_ascii_alphabetic()) else { return };
            let sequence = rest[2..=end + 1].to_owned();
            self.played += end + 2;
            if let Some(place) = sequence.strip_suffix('H') {
                let (row, column) = place.split_once(';').unwrap_or(("1", "1"));
                self.cursor = (row.parse().unwrap_or(1) - 1, column.parse().unwrap_or(1) - 1);
            } else if sequence == "2J" {
                self.screen = [[' '; 80]; 24];
            }
        }
    }

    fn print(&mut self, c: char) {
        let (row, column) = self.cursor;
        if let Some(cell) = self.screen.get_mut(row).and_then(|row| row.get_mut(column)) {
            *cell = c;
        }
        self.cursor.1 += 1;
    }

    fn pid(&mut self) -> String {
        self.wait_until("pid", |terminal| {
            let (_, rest) = terminal.sent.split_once("pid ")?;
            rest.split_once(" .").map(|(pid, _)| pid.to_owned())
        })
    }

    /// Waits for the end; the exit status, and all that was shown after the screen was left.
    fn end(mut self) -> (String, String) {
        let shown = self.wait_until("end", |terminal| {
            let (_, rest) = terminal.sent.split_once("\u{1b}[?1049l")?;
            rest.contains("\nover").then(|| rest.to_owned())
        });
        self.script.wait().unwrap();
        assert!(shown.contains("\u{1b}[?25h"), "the cursor is back: {}", shown.escape_debug());
        let words: Vec<_> = shown.split_whitespace().collect();
        for word in ["icanon", "echo", "isig", "icrnl"] {
            assert!(words.contains(&word), "{word} is set again: {words:?}");
        }
        let (_, rest) = shown.split_once("status ").unwrap();
        (rest.split(' ').next().unwrap_or_default().to_owned(), shown)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}

#[test]
fn without_a_terminal_it_says_so_in_one_line_and_exits_with_2() {
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stdout), "");
    assert_eq!(text(&output.stderr).lines().count(), 1, "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("terminal"));
    assert_eq!(run(&["--connect", "127.0.0.1"]).status.code(), Some(2));
}

#[test]
fn wrong_use_exits_with_2() {
    for args in [&["--connect", "a b"][..], &["--name", ""], &["--nonsense"], &["--info", ":7"]] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(!output.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn info_needs_no_terminal_and_prints_what_the_server_says() {
    let server = Running::start(|config| {
        config.session.name = "Test Caves".to_owned();
        config.session.motd = "Mind the ghouls.".to_owned();
        config.session.max_players = 12;
    });
    let output = run(&["--info", &format!("localhost:{}", server.port)]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!(lines[0], "name       Test Caves");
    assert_eq!(lines[1], "message    Mind the ghouls.");
    assert_eq!(lines[2], "players    0 of 12");
    assert!(lines[3].starts_with("tick       "), "{shown}");
    assert!(lines[4].starts_with("round trip ") && lines[4].ends_with(" ms"), "{shown}");
}

#[test]
fn info_of_nobody_exits_with_1() {
    // A socket that is read by nobody keeps its port from others.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = format!("127.0.0.1:{}", silent.local_addr().unwrap().port());
    let output = run(&["--info", &server]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stderr), format!("caves: nobody answers at {server}\n"));
}

#[test]
#[ignore = "needs script of bsdutils; .ci/run runs this"]
fn one_plays_alone_and_quits() {
    let mut terminal = Terminal::start("--name Ada");
    terminal.wait_for("in view");
    terminal.press("thello");
    terminal.wait_for("hello");
    terminal.press("\r");
    terminal.wait_for("Ada: hello");
    terminal.press("q");
    terminal.wait_for("Leave the caves?");
    terminal.press("y");
    let (status, shown) = terminal.end();
    assert_eq!(status, "0", "{}", shown.escape_debug());
}

#[test]
#[ignore = "needs script of bsdutils; .ci/run runs this"]
fn half_an_escape_sequence_does_not_stop_the_game() {
    let mut terminal = Terminal::start("--name Ada");
    terminal.wait_for("in view");
    terminal.press("\u{1b}[");
    std::thread::sleep(Duration::from_millis(300));
    // The tick on the first line goes on.
    let before: String = terminal.screen[0].iter().collect();
    terminal.wait_until("another tick", |terminal| {
        let now: String = terminal.screen[0].iter().collect();
        (now != before).then_some(())
    });
    terminal.press("qy");
    assert_eq!(terminal.end().0, "0");
}

#[test]
#[ignore = "needs script of bsdutils; .ci/run runs this"]
fn signals_end_it_in_order() {
    for signal in ["TERM", "INT", "HUP"] {
        let mut terminal = Terminal::start("");
        let pid = terminal.pid();
        terminal.wait_for("in view");
        let killed = Command::new("kill").args(["-s", signal, &pid]).status().unwrap();
        assert!(killed.success());
        let (status, shown) = terminal.end();
        assert_eq!(status, "0", "{signal}: {}", shown.escape_debug());
    }
}

#[test]
#[ignore = "needs script of bsdutils; .ci/run runs this"]
fn two_players_meet_on_a_server() {
    let server = Running::start(|config| config.session.name = "Test Caves".to_owned());
    let connect = format!("--connect localhost:{}", server.port);
    let mut ada = Terminal::start(&format!("{connect} --name Ada"));
    ada.wait_for("You have come to Test Caves.");
    let mut bob = Terminal::start(&format!("{connect} --name Bob"));
    bob.wait_for("You have come to Test Caves.");
    ada.wait_for("Bob");
    bob.press("tgood morning\r");
    ada.wait_for("Bob: good morning");
    bob.press("qy");
    assert_eq!(bob.end().0, "0");
    ada.press("\u{3}\u{3}");
    assert_eq!(ada.end().0, "0");
}

#[test]
#[ignore = "needs script of bsdutils; .ci/run runs this"]
fn who_is_refused_for_good_is_told_why_on_the_restored_terminal() {
    let server = Running::start(|_| {});
    // Kinds of client without an entry are not let in.
    let args = format!("--connect 127.0.0.1:{} --client-type 7", server.port);
    let (status, shown) = Terminal::start(&args).end();
    assert_eq!(status, "1", "{}", shown.escape_debug());
    assert!(shown.contains("caves: not let in: client type not allowed"), "{shown}");
}

#[test]
#[ignore = "needs script of bsdutils; .ci/run runs this"]
fn a_server_that_is_shut_down_is_waited_for() {
    let addr = fixed_address();
    let server = Running::start(|config| config.listen = vec![addr]);
    let mut terminal = Terminal::start(&format!("--connect {addr} --name Ada"));
    terminal.wait_for("in view");
    drop(server);
    terminal.wait_for("The server was shut down");
    let _again = Running::start(|config| {
        config.listen = vec![addr];
        config.session.name = "New Caves".to_owned();
    });
    terminal.wait_for("You have come to New Caves.");
    terminal.press("qy");
    assert_eq!(terminal.end().0, "0");
}

#[test]
#[ignore = "needs script of bsdutils; .ci/run runs this"]
fn a_terminal_that_is_gone_ends_it() {
    let mut terminal = Terminal::start("--name Ada");
    let process = std::path::PathBuf::from(format!("/proc/{}/stat", terminal.pid()));
    terminal.wait_for("in view");
    terminal.script.kill().unwrap();
    terminal.script.wait().unwrap();
    let until = Instant::now() + PATIENCE;
    // A process that ended and was not waited for yet is a zombie.
    while std::fs::read_to_string(&process).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(Instant::now() < until, "still running");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
#[ignore = "needs script of bsdutils; .ci/run runs this"]
fn who_is_thrown_out_reads_why_on_the_restored_terminal() {
    let socket = std::env::temp_dir().join(format!("caves-kick-{}.sock", std::process::id()));
    let control = ControlConfig { socket: socket.clone(), mode: 0o600 };
    let server = Running::start(|config| config.control = Some(control));
    let mut ada = Terminal::start(&format!("--connect 127.0.0.1:{} --name Ada", server.port));
    ada.wait_for("You have come to");
    let mut operator = UnixStream::connect(&socket).unwrap();
    let kick = Order::Kick { name: "ada".into(), reason: "no digging here".into() };
    operator.write_all(kick.line().as_bytes()).unwrap();
    let (status, shown) = ada.end();
    assert_eq!(status, "1", "{}", shown.escape_debug());
    let expected =
        "caves: the server ended the session: kicked (You were thrown out: no digging here)";
    assert!(shown.contains(expected), "{}", shown.escape_debug());
}
