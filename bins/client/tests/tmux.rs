//! Two players in two real terminals of 80x24, as people see it.

use std::process::Command;
use std::time::{Duration, Instant};

use caves_server::{Config, Server};

const CAVES: &str = env!("CARGO_BIN_EXE_caves");
const PATIENCE: Duration = Duration::from_secs(20);

/// A tmux server of this test's own, which ends with it.
struct Tmux {
    socket: String,
}

impl Tmux {
    fn new() -> Self {
        Self { socket: format!("caves-test-{}", std::process::id()) }
    }

    fn run(&self, args: &[&str]) -> String {
        let output = Command::new("tmux")
            .args(["-u", "-L", &self.socket])
            .args(args)
            .env("LC_ALL", "C.UTF-8")
            .env_remove("NO_COLOR")
            .output()
            .expect("tmux is installed for this test");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn start(&self, name: &str, command: &str) {
        self.run(&["new-session", "-d", "-s", name, "-x", "80", "-y", "24", command]);
    }

    fn screen(&self, name: &str) -> String {
        self.run(&["capture-pane", "-p", "-t", name])
    }

    fn keys(&self, name: &str, keys: &[&str]) {
        self.run(&[&["send-keys", "-t", name], keys].concat());
    }

    /// Waits until a screen is as it should be.
    fn wait(&self, name: &str, what: &str, is_it: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen(name);
            if is_it(&screen) {
                return screen;
            }
            assert!(Instant::now() < deadline, "{name}: no {what} on the screen:\n{screen}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

/// The line of the side pane that tells where one stands.
fn position(screen: &str) -> Option<(i32, i32)> {
    let (_, rest) = screen.split_once("  at ")?;
    let (x, rest) = rest.split_once(", ")?;
    let y: String = rest.chars().take_while(|c| c.is_ascii_digit() || *c == '-').collect();
    Some((x.parse().ok()?, y.parse().ok()?))
}

#[test]
#[ignore = "needs tmux; .ci/run installs it and runs this"]
fn two_players_at_80x24_see_each_other_walk_and_hear_each_other() {
    let server = Server::bind(&Config::solo()).expect("a free port");
    let (address, handle) = (server.local_addrs()[0], server.handle());
    let thread = std::thread::spawn(move || server.run().map(|_| ()).expect("it runs"));
    let tmux = Tmux::new();
    for name in ["Ada", "Bob"] {
        let program = format!("{CAVES} --connect {address} --name {name}");
        tmux.start(name, &format!("{program}; echo ended with status $?; sleep 60"));
    }
    let sees_bob = |screen: &str| screen.contains("@ Bob");
    let before = tmux.wait("Ada", "Bob", sees_bob);
    tmux.wait("Bob", "Ada", |screen| screen.contains("@ Ada"));
    assert!(before.lines().count() <= 24 && before.lines().all(|l| l.chars().count() <= 80));

    // Bob walks three steps to the west, each when Ada has seen the one before: taps that are faster
    // than the tick become one step.
    let start = tmux.wait("Bob", "position", |screen| position(screen).is_some());
    let (x, y) = position(&start).expect("waited for");
    let line = |screen: &str| {
        screen.lines().find(|line| line.contains("@ Bob")).map(str::to_owned).unwrap_or_default()
    };
    for step in 1..=3 {
        tmux.keys("Bob", &["Left"]);
        tmux.wait("Bob", "step", |screen| position(screen) == Some((x - step, y)));
        let away = format!("{step} ←");
        tmux.wait("Ada", &format!("Bob {away}"), |screen| line(screen).contains(&away));
    }

    // What one says the other reads.
    tmux.keys("Ada", &["t"]);
    tmux.keys("Ada", &["-l", "good evening"]);
    tmux.keys("Ada", &["Enter"]);
    tmux.wait("Bob", "greeting", |screen| screen.contains("Ada: good evening"));

    // Any size, and back.
    for (width, height) in [("1", "1"), ("20", "5"), ("200", "60"), ("80", "24")] {
        tmux.run(&["resize-window", "-t", "Ada", "-x", width, "-y", height]);
    }
    tmux.wait("Ada", "whole screen", |screen| screen.contains("@ Bob") && screen.contains("hp "));

    // Quit with a question; the terminal is given back.
    tmux.keys("Ada", &["q"]);
    tmux.keys("Ada", &["y"]);
    tmux.wait("Ada", "end", |screen| screen.contains("ended with status 0"));
    tmux.wait("Bob", "empty neighbourhood", |screen| !screen.contains("@ Ada"));

    // The server stops: the last picture stays, and the screen says what is.
    handle.stop();
    thread.join().expect("it stops");
    let alone = tmux.wait("Bob", "word of it", |screen| {
        screen.contains("again in") || screen.contains("trying again")
    });
    assert!(position(&alone).is_some(), "the last picture stays:\n{alone}");
}
