//! The example `ferravex` as two processes on the loopback: this test starts itself twice.
#![cfg(feature = "ferravex")]
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "tests real processes"
)]

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

#[path = "../examples/ferravex/walk.rs"]
mod walk;

/// What the process is to do, its words separated by a space; absent in the test itself.
const ROLE: &str = "CAVES_FERRAVEX_ROLE";
/// In front of what the example prints, since the test harness prints, too.
const MARK: &str = "> ";

/// Not a test of its own: what the two processes run. Without a role it does nothing.
#[test]
fn a_process_of_its_own() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let args: Vec<&str> = role.split(' ').collect();
    walk::run(&args, &mut |line| println!("{MARK}{line}")).unwrap();
}

/// A process that is killed when the test is over, however that ends.
struct Process(Child);

impl Process {
    fn start(role: &str) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["a_process_of_its_own", "--exact", "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self(child)
    }

    /// The rest of what it prints, once it has ended well.
    fn finish(mut self, mut out: impl Read) -> Vec<String> {
        let mut text = String::new();
        out.read_to_string(&mut text).unwrap();
        assert!(self.0.wait().unwrap().success(), "{text}");
        // The first line may stand behind what the harness prints.
        let lines = text.lines().filter_map(|line| line.split_once(MARK));
        lines.map(|(_, line)| line.to_owned()).collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn two_processes_play_over_the_loopback_until_both_know_that_it_is_over() {
    let mut server = Process::start("server 127.0.0.1:0 1");
    let mut out = BufReader::new(server.0.stdout.take().unwrap());
    let address = loop {
        let mut line = String::new();
        assert_ne!(out.read_line(&mut line).unwrap(), 0, "it ended early");
        if let Some((_, address)) = line.trim().split_once("listening on ") {
            break address.to_owned();
        }
    };
    let mut client = Process::start(&format!("client {address} 60"));
    let client_out = client.0.stdout.take().unwrap();
    let told = client.finish(client_out);
    let events: Vec<&String> = told.iter().filter(|line| line.starts_with("event")).collect();
    let expected = [
        "event 0: 10 steps",
        "event 1: 20 steps",
        "event 2: 30 steps",
        "event 3: 40 steps",
        "event 4: 50 steps",
        "event 5: 60 steps",
        "event 6: goodbye",
    ];
    assert_eq!(events, expected, "{told:?}");
    assert!(told.iter().any(|line| line.starts_with("ended after 60 steps, Some(")), "{told:?}");
    let served = server.finish(out);
    assert!(
        served.iter().any(|line| line.starts_with("player 0 left after 60 steps")),
        "{served:?}"
    );
}
