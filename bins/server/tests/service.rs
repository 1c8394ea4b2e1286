//! The real program under a service manager that the test plays: sd_notify, the watchdog, sockets that
//! are passed in.

#![cfg(target_os = "linux")]

mod common;

use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{ONE_SOCKET, PATIENCE, ServerProcess, TempDir, info, stranger};

/// What a service manager listens on.
struct Manager {
    socket: UnixDatagram,
    name: String,
}

impl Manager {
    fn new(name: &str) -> Self {
        let name = format!("caves-service-{}-{name}", std::process::id());
        let addr = SocketAddr::from_abstract_name(&name).expect("a short name");
        let socket = UnixDatagram::bind_addr(&addr).expect("a free name");
        socket.set_read_timeout(Some(PATIENCE)).expect("not zero");
        Self { socket, name }
    }

    /// A server that knows of this manager.
    fn spawn(&self, watchdog_us: Option<u64>) -> ServerProcess {
        let dir = TempDir::new();
        dir.file("config.toml", ONE_SOCKET);
        let mut command = dir.program();
        command.env("NOTIFY_SOCKET", format!("@{}", self.name));
        if let Some(us) = watchdog_us {
            command.env("WATCHDOG_USEC", us.to_string());
        }
        ServerProcess::start(dir, command, 1)
    }

    /// What is said next.
    fn hear(&self) -> String {
        let mut buf = [0; 512];
        let len = self.socket.recv(&mut buf).expect("a word in time");
        String::from_utf8(buf[..len].to_vec()).expect("text")
    }

    /// The next word that is this one, and those before it.
    fn hear_until(&self, word: &str) -> Vec<String> {
        let mut words = Vec::new();
        while words.last().is_none_or(|last| last != word) {
            words.push(self.hear());
        }
        words
    }

    /// Throws away what was said so far.
    fn forget(&self) {
        self.socket.set_nonblocking(true).expect("a socket");
        while self.socket.recv(&mut [0; 512]).is_ok() {}
        self.socket.set_nonblocking(false).expect("a socket");
    }
}

/// Starts the program by a shell that arranges descriptors 3 and up; `$$` is the program's process id.
fn program_by_shell(dir: &TempDir, script: &str) -> Command {
    let program = dir.program();
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).arg(program.get_program()).stdin(Stdio::null());
    command.current_dir(program.get_current_dir().expect("the test's directory"));
    command
}

fn loopback() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").expect("a free port")
}

#[test]
fn the_manager_hears_of_readiness_players_and_the_end() {
    let manager = Manager::new("life");
    let mut server = manager.spawn(None);
    assert_eq!(manager.hear(), "READY=1\n");
    assert_eq!(manager.hear(), "STATUS=0 of 64 players\n");
    server.terminate();
    assert_eq!(manager.hear(), "STOPPING=1\nSTATUS=stopping\n");
    server.wait_for_log("stopped reason=signal");
}

#[test]
fn a_reload_is_told_with_its_moment_and_followed_by_readiness() {
    let manager = Manager::new("reload");
    let server = manager.spawn(None);
    manager.hear_until("STATUS=0 of 64 players\n");
    server.signal("HUP");
    let word = manager.hear();
    let since = word.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").expect("a reload");
    assert!(since.trim_end().parse::<u64>().is_ok_and(|us| us > 0), "{word}");
    assert_eq!(manager.hear(), "READY=1\n");
    info(&stranger(server.addrs[0]));
}

#[test]
fn signs_of_life_come_while_the_loop_turns_and_not_while_it_is_stuck() {
    let manager = Manager::new("watchdog");
    let start = Instant::now();
    let server = manager.spawn(Some(200_000));
    assert_eq!(manager.hear(), "READY=1\n");
    for _ in 0..5 {
        manager.hear_until("WATCHDOG=1\n");
    }
    // Five of them take four halves of the 200 ms, and more on a busy machine.
    assert!(start.elapsed() >= Duration::from_millis(350), "{:?}", start.elapsed());
    server.signal("STOP");
    // What was on its way is thrown away; then nothing comes for five times the watchdog's span.
    std::thread::sleep(Duration::from_millis(50));
    manager.forget();
    manager.socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    assert!(manager.socket.recv(&mut [0; 512]).is_err());
    manager.socket.set_read_timeout(Some(PATIENCE)).unwrap();
    server.signal("CONT");
    manager.hear_until("WATCHDOG=1\n");
}

#[test]
fn a_watchdog_of_another_process_is_none_of_ours() {
    let manager = Manager::new("other");
    let dir = TempDir::new();
    dir.file("config.toml", ONE_SOCKET);
    let mut command = dir.program();
    command.env("NOTIFY_SOCKET", format!("@{}", manager.name));
    command.env("WATCHDOG_USEC", "2000").env("WATCHDOG_PID", "1");
    let mut server = ServerProcess::start(dir, command, 1);
    info(&stranger(server.addrs[0]));
    server.terminate();
    let words = manager.hear_until("STOPPING=1\nSTATUS=stopping\n");
    assert!(!words.iter().any(|word| word.contains("WATCHDOG")), "{words:?}");
}

#[test]
fn a_manager_that_is_not_there_is_told_in_the_log_and_players_are_served() {
    let dir = TempDir::new();
    dir.file("config.toml", ONE_SOCKET);
    let mut command = dir.program();
    command.env("NOTIFY_SOCKET", "/nonexistent/notify").env("WATCHDOG_USEC", "1000");
    let server = ServerProcess::start(dir, command, 1);
    server.wait_for_log("cannot speak to the service manager (NOTIFY_SOCKET)");
    info(&stranger(server.addrs[0]));
}

#[test]
fn a_socket_that_was_passed_in_stands_in_place_of_those_of_the_configuration() {
    let (passed, dir) = (loopback(), TempDir::new());
    let addr = passed.local_addr().unwrap();
    // The configuration's own address is in use: it would fail if it were tried.
    let taken = loopback();
    let listen = taken.local_addr().unwrap();
    dir.file("config.toml", &format!("[server]\nlisten = [\"{listen}\"]\n"));
    // What came before the program was there waits in the socket.
    let early = stranger(addr);
    early.send(b"early").unwrap();
    let script = "exec 3<&0 0</dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$1\"";
    let mut command = program_by_shell(&dir, script);
    command.stdin(OwnedFd::from(passed));
    let mut server = ServerProcess::start(dir, command, 1);
    assert_eq!(server.addrs, [addr]);
    info(&early);
    server.terminate();
    let log = server.wait_for_log("stopped reason=signal");
    assert!(log.contains("sockets=\"service manager\""), "{log}");
    assert!(log.contains("received=2") || log.contains("received=3"), "the early one, too: {log}");
}

#[test]
fn two_sockets_keep_their_order() {
    let (first, second, dir) = (loopback(), loopback(), TempDir::new());
    let addrs = [&first, &second].map(|socket| socket.local_addr().unwrap());
    let script = "exec 3<&0 4<&2 0</dev/null 2>log; LISTEN_FDS=2 LISTEN_PID=$$ exec \"$1\"";
    let mut child = program_by_shell(&dir, script)
        .stdin(OwnedFd::from(first))
        .stderr(OwnedFd::from(second))
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    for addr in addrs {
        info(&stranger(addr));
    }
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    let expected: String = addrs.iter().map(|addr| format!("listening udp {addr}\n")).collect();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn sockets_for_another_process_are_left_alone() {
    let (passed, dir) = (loopback(), TempDir::new());
    dir.file("config.toml", ONE_SOCKET);
    let script = "exec 3<&0 0</dev/null; LISTEN_FDS=1 LISTEN_PID=1 exec \"$1\"";
    let addr = passed.local_addr().unwrap();
    let mut command = program_by_shell(&dir, script);
    command.stdin(OwnedFd::from(passed));
    let mut server = ServerProcess::start(dir, command, 1);
    assert_ne!(server.addrs, [addr]);
    server.terminate();
    assert!(server.wait_for_log("stopped").contains("sockets=\"configuration\""));
}

#[test]
fn what_is_no_udp_socket_is_refused_by_one_clear_line() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let null = std::fs::File::open("/dev/null").unwrap();
    for (passed, reason) in [
        (OwnedFd::from(listener), "fd 4 is not a valid udp socket"),
        (OwnedFd::from(null), "fd 4 is not a socket"),
    ] {
        let (first, dir) = (loopback(), TempDir::new());
        dir.file("config.toml", ONE_SOCKET);
        let script = "exec 3<&0 4<&2 0</dev/null 2>log; LISTEN_FDS=2 LISTEN_PID=$$ \"$1\"; status=$?; cat log; exit $status";
        // Not the shell's own process id, but that of the program is wanted: one shell more.
        let script =
            script.replace("LISTEN_PID=$$ \"$1\"", "sh -c 'LISTEN_PID=$$ exec \"$1\"' sh \"$1\"");
        let output = program_by_shell(&dir, &script)
            .stdin(OwnedFd::from(first))
            .stderr(passed)
            .stdout(Stdio::piped())
            .output()
            .expect("a shell");
        let said = String::from_utf8(output.stdout).unwrap();
        let expected = format!(
            "caves-server: socket 2 of the service manager cannot be used: {reason} (UDP is wanted: \
             ListenDatagram=)\n"
        );
        assert_eq!((output.status.code(), said), (Some(1), expected));
    }
}
