//! What `notes/operating.md` says is so: its files are those of the repository, its configuration is one,
//! and it knows every metric.

mod common;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use caves_server::Config;
use caves_server::metrics::{Figures, Process, StoreFigures};

use common::TempDir;

const PAGE: &str = include_str!("../../../notes/operating.md");
const SERVICE: &str = include_str!("../systemd/caves-server.service");
const SOCKET: &str = include_str!("../systemd/caves-server.socket");

/// The text of the first block of a language.
fn block(language: &str) -> &'static str {
    let (_, after) = PAGE.split_once(&format!("\n```{language}\n")).expect("such a block");
    after.split_once("```").expect("its end").0
}

/// All words such as `caves_ticks_total`.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let told = |word: &&str| word.starts_with("caves_") || word.starts_with("process_");
    words.filter(told).collect()
}

#[test]
fn the_units_on_the_page_are_those_of_the_repository() {
    for unit in [SERVICE, SOCKET] {
        assert!(PAGE.contains(&format!("```ini\n{unit}```")), "the page has another\n{unit}");
    }
}

#[test]
fn the_configuration_on_the_page_is_valid_and_fits_the_unit() {
    let config = Config::parse("operating.md", block("toml")).unwrap();
    let store =
        caves_server::config::StoreConfig::File(PathBuf::from("/var/lib/caves-server/caves.redb"));
    assert_eq!(config.store, store);
    assert!(SERVICE.contains("\nStateDirectory=caves-server\n"));
    let control = config.control.expect("a control socket");
    let socket = control.socket.display().to_string();
    assert!(
        SERVICE
            .contains(&format!("ExecReload=/usr/local/bin/caves-ctl --socket {socket} reload\n"))
    );
    assert!(SERVICE.contains("\nRuntimeDirectory=caves-server\n"));
    let metrics = config.metrics.expect("metrics").to_string();
    assert!(PAGE.contains(&format!("targets: [\"{metrics}\"]")));
    // The sockets of systemd are those of the configuration.
    for addr in config.listen {
        assert!(SOCKET.contains(&format!("\nListenDatagram={addr}\n")), "{addr}");
    }
}

#[test]
fn the_page_knows_all_metrics_and_no_others() {
    let mut figures = Figures { kernel_drops: Some(0), ..Figures::default() };
    figures.gauges.round_trips = vec![Duration::from_millis(1)];
    figures.store =
        Some(StoreFigures { last_commit: Some(Duration::ZERO), ..StoreFigures::default() });
    figures.process =
        Process { resident_bytes: Some(1), cpu: Some(Duration::ZERO), open_fds: Some(1) };
    let text = figures.text();
    let families = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let families: BTreeSet<&str> = families.map(|line| line.split(' ').next().unwrap()).collect();
    let mut told = metrics_in(PAGE);
    assert!(told.remove("caves_tick_duration_seconds_bucket"), "in an alert");
    assert_eq!(told, families);
}

#[test]
#[ignore = "needs systemd-analyze (Debian: systemd)"]
fn systemd_finds_no_fault_with_the_units() {
    let dir = TempDir::new();
    // It looks whether the programs are there.
    let program = env!("CARGO_BIN_EXE_caves-server");
    let service = ["caves-server", "caves-ctl"].iter().fold(SERVICE.to_owned(), |text, name| {
        text.replace(&format!("/usr/local/bin/{name} "), &format!("{program} "))
    });
    let service = dir.file("caves-server.service", &service);
    let socket = dir.file("caves-server.socket", SOCKET);
    let output = Command::new("systemd-analyze").arg("verify").args([service, socket]).output();
    let output = output.expect("systemd-analyze");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*said), (Some(0), ""));
}
