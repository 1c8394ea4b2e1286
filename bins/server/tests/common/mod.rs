//! A server program that is run by a test, and ends with it.

#![allow(dead_code, reason = "not every test file uses all of it")]

pub(crate) mod visitor;

use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use caves_server::Config;
use caves_wire::caves::{ClientType, InfoRequest, InfoView, Nonce};

/// Far longer than anything here should take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks at something that says nothing by itself.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// One socket on a free port of the loopback, and defaults.
pub(crate) const ONE_SOCKET: &str = "[server]\nlisten = [\"127.0.0.1:0\"]\n";

/// A directory that is removed in the end, when the last of its clones is gone.
#[derive(Clone)]
pub(crate) struct TempDir(Arc<Removed>);

struct Removed(PathBuf);

impl TempDir {
    /// An empty one.
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("server-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).expect("a directory for the test");
        Self(Arc::new(Removed(path)))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0.0
    }

    /// Writes a file into it and gives its path.
    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, text).expect("a file for the test");
        path
    }

    /// The program, to be run in this directory: what it keeps and where it takes commands is
    /// there, too. What the tester's own environment says about a server is not heard.
    pub(crate) fn program(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_caves-server"));
        command.current_dir(self.path()).env_remove("NO_COLOR").stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().to_uppercase().starts_with("CAVES__") {
                command.env_remove(name);
            }
        }
        command
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.program().args(args).output().expect("the program runs")
    }
}

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A server that runs.
pub(crate) struct ServerProcess {
    /// Where it listens, in the order of its configuration.
    pub(crate) addrs: Vec<SocketAddr>,
    child: Child,
    stderr: Arc<Mutex<String>>,
    lines: Receiver<String>,
    dir: TempDir,
}

impl ServerProcess {
    /// Starts a server with this configuration and waits until it listens.
    pub(crate) fn spawn(config: &str) -> Self {
        let dir = TempDir::new();
        let file = dir.file("config.toml", config);
        let mut command = dir.program();
        command.arg("--config").arg(file);
        let sockets = Config::parse("config.toml", config).expect("a valid configuration");
        Self::start(dir, command, sockets.listen.len())
    }

    /// Starts the program as `command` says and waits until it listens on so many sockets.
    pub(crate) fn start(dir: TempDir, mut command: Command, sockets: usize) -> Self {
        let mut child = (command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn())
            .expect("the program starts");
        let stderr = collect(child.stderr.take().expect("a pipe"));
        let lines = lines(child.stdout.take().expect("a pipe"));
        let mut server = Self { addrs: Vec::new(), child, stderr, lines, dir };
        for _ in 0..sockets {
            let line = server.next_line();
            let addr = line.strip_prefix("listening udp ").and_then(|addr| addr.parse().ok());
            server.addrs.push(addr.unwrap_or_else(|| panic!("unexpected line {line:?}")));
        }
        server
    }

    /// What it says next on standard output.
    pub(crate) fn next_line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).unwrap_or_else(|_| {
            panic!("no line on standard output; standard error: {}", self.stderr_so_far())
        })
    }

    /// What it said on standard output until it ended, as far as nobody has read it.
    pub(crate) fn rest_of_stdout(&self) -> Vec<String> {
        std::iter::from_fn(|| self.lines.recv_timeout(PATIENCE).ok()).collect()
    }

    /// The directory it runs in.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The server's process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The log as far as it has come.
    pub(crate) fn stderr_so_far(&self) -> String {
        self.stderr.lock().expect("no panic while it was held").clone()
    }

    /// Waits until the log holds `text`, and gives all of it.
    pub(crate) fn wait_for_log(&self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let log = self.stderr_so_far();
            if log.contains(text) {
                return log;
            }
            assert!(Instant::now() < deadline, "no {text:?} in the log: {log}");
            thread::sleep(LOOK_AGAIN);
        }
    }

    /// Sends a signal: `"TERM"`, `"INT"`, `"STOP"`, `"CONT"`.
    pub(crate) fn signal(&self, name: &str) {
        // The shell has a kill of its own, wherever there is a shell.
        let script = format!("kill -{name} {}", self.pid());
        let status = Command::new("sh").args(["-c", &script]).status().expect("a shell");
        assert!(status.success(), "{script}");
    }

    /// Waits until the server has ended by itself.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child of ours") {
                return status;
            }
            assert!(Instant::now() < deadline, "it does not end: {}", self.stderr_so_far());
            thread::sleep(LOOK_AGAIN);
        }
    }

    /// Ends it at once: it can do nothing about it.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("a child of ours");
        self.child.wait().expect("a child of ours");
    }

    /// Asks the server to end, and waits until it has.
    pub(crate) fn terminate(&mut self) -> ExitStatus {
        self.signal("TERM");
        self.wait()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads a pipe to its end, so that the writer never has to wait.
fn collect(mut pipe: impl Read + Send + 'static) -> Arc<Mutex<String>> {
    let all = Arc::new(Mutex::new(String::new()));
    let place = Arc::clone(&all);
    thread::spawn(move || {
        let mut buf = [0; 4096];
        while let Ok(len @ 1..) = pipe.read(&mut buf) {
            let text = String::from_utf8_lossy(&buf[..len]);
            place.lock().expect("no panic while it was held").push_str(&text);
        }
    });
    all
}

/// The lines of a pipe as they come.
fn lines(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            // Nobody listens any more; the pipe is read to its end all the same.
            let _ = sender.send(line);
        }
    });
    receiver
}

/// What a server tells about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Info {
    pub(crate) tick: u32,
    pub(crate) players: u16,
    pub(crate) max_players: u16,
}

/// A socket of somebody at 127.0.0.1 (or ::1) who asks a server.
pub(crate) fn stranger(server: SocketAddr) -> UdpSocket {
    let here: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::LOCALHOST, 0).into(),
        SocketAddr::V6(_) => (std::net::Ipv6Addr::LOCALHOST, 0).into(),
    };
    let socket = UdpSocket::bind(here).expect("a free port");
    socket.connect(server).expect("a route to ourselves");
    socket
}

/// Asks until an answer to the newest question comes.
pub(crate) fn info(socket: &UdpSocket) -> Info {
    let deadline = Instant::now() + PATIENCE;
    socket.set_read_timeout(Some(Duration::from_millis(250))).expect("not zero");
    let mut buf = [0; 2048];
    for nonce in (1..).map(Nonce) {
        assert!(Instant::now() < deadline, "no answer to an InfoRequest");
        let request = InfoRequest { client_type: ClientType(0), nonce };
        let len = request.emit(&mut buf).expect("room for 256 bytes");
        // A server that is gone is told by the error of a later call.
        let _ = socket.send(&buf[..len]);
        while let Ok(len) = socket.recv(&mut buf) {
            if let Ok(view) = InfoView::parse(&buf[..len])
                && view.nonce() == nonce
            {
                return Info {
                    tick: view.tick().get(),
                    players: view.players(),
                    max_players: view.max_players(),
                };
            }
        }
    }
    unreachable!("nonces do not end")
}
