//! The program as an operator starts and stops it.

mod common;

use common::{ONE_SOCKET, ServerProcess, TempDir, info, stranger};
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

#[test]
fn it_tells_where_it_listens_and_answers_there() {
    let mut server =
        ServerProcess::spawn("[server]\nlisten = [\"127.0.0.1:0\"]\nmax_players = 7\n");
    assert_eq!(server.addrs.len(), 1);
    assert!(server.addrs[0].ip().is_loopback() && server.addrs[0].port() != 0);
    let answer = info(&stranger(server.addrs[0]));
    assert_eq!((answer.players, answer.max_players), (0, 7));
    let log = server.wait_for_log("started");
    let addr = server.addrs[0].to_string();
    for piece in ["version=\"0.1.0\"", "seed=", "max_players=7", "config.toml", &addr] {
        assert!(log.contains(piece), "{piece} is missing in {log}");
    }
    assert!(!log.contains('\u{1b}'), "no colours where there is no terminal: {log}");
    assert_eq!(server.terminate().code(), Some(0));
    let log = server.wait_for_log("stopped");
    for piece in ["reason=signal", "uptime_s=", "received=1", "sent=1", "dropped=0"] {
        assert!(log.contains(piece), "{piece} is missing in {log}");
    }
}

#[test]
fn two_sockets_are_told_in_order_and_both_answer() {
    let server = ServerProcess::spawn("[server]\nlisten = [\"127.0.0.2:0\", \"127.0.0.1:0\"]\n");
    let hosts: Vec<String> = server.addrs.iter().map(|addr| addr.ip().to_string()).collect();
    assert_eq!(hosts, ["127.0.0.2", "127.0.0.1"]);
    // A connected socket takes answers from that very address alone.
    for addr in &server.addrs {
        assert_eq!(info(&stranger(*addr)).max_players, 64);
    }
}

#[test]
fn ipv6_has_sockets_too() {
    if UdpSocket::bind("[::1]:0").is_err() {
        // A machine without IPv6.
        return;
    }
    let server = ServerProcess::spawn("[server]\nlisten = [\"[::]:0\"]\n");
    let addr = format!("[::1]:{}", server.addrs[0].port()).parse().unwrap();
    assert_eq!(info(&stranger(addr)).max_players, 64);
}

#[test]
fn a_port_in_use_is_one_line_and_status_1() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap();
    let dir = TempDir::new();
    let file = dir.file("x.toml", &format!("[server]\nlisten = [\"{addr}\"]"));
    let output = dir.run(&["--config", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "");
    assert_eq!(
        stderr(&output),
        format!(
            "caves-server: cannot listen on udp {addr}: Address already in use (os error 98)\n"
        )
    );
}

#[test]
fn a_good_configuration_is_checked_without_being_used() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let dir = TempDir::new();
    let addr = taken.local_addr().unwrap();
    dir.file("good.toml", &format!("[server]\nlisten = [\"{addr}\"]"));
    let output = dir.run(&["--check-config", "--config", "good.toml"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!((stdout(&output), stderr(&output)), ("configuration is valid: good.toml\n", ""));
}

#[test]
fn a_bad_configuration_is_shown_with_file_and_line_and_status_2() {
    let dir = TempDir::new();
    dir.file("bad.toml", "[server]\nname = \"x\"\ntick_rate = 50\n");
    let expected = "caves-server: bad.toml:3: server.tick_rate: 50 is not within 1 to 20\n  \
                    |\n3 | tick_rate = 50\n  |             ^^\n";
    for args in [&["--check-config", "--config", "bad.toml"][..], &["--config", "bad.toml"]] {
        let output = dir.run(args);
        assert_eq!(output.status.code(), Some(2));
        assert_eq!((stdout(&output), stderr(&output)), ("", expected));
    }
}

#[test]
fn a_file_that_is_named_and_not_there_is_status_2() {
    let output = TempDir::new().run(&["--config", "missing.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        stderr(&output),
        "caves-server: missing.toml: cannot be read: No such file or directory (os error 2)\n"
    );
}

#[test]
fn config_toml_of_the_directory_is_read_unless_another_is_named() {
    let dir = TempDir::new();
    let output = dir.run(&["--check-config"]);
    assert_eq!(stdout(&output), "configuration is valid: defaults, there is no config.toml\n");
    dir.file("config.toml", "[log]\nlevel = \"loud\"");
    let output = dir.run(&["--check-config"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).starts_with("caves-server: config.toml:2: log.level: "));
    dir.file("other.toml", "");
    assert_eq!(dir.run(&["--check-config", "--config", "other.toml"]).status.code(), Some(0));
}

#[test]
fn wrong_use_is_status_2() {
    let dir = TempDir::new();
    for args in [
        &["--wrong"][..],
        &["--new-token", "--print-config"],
        &["--log-level", "loud"],
        &["--print-config", "--set", "server.open=true"],
        &["--set", "server.open"],
        &["--repair", "export", "x.jsonl"],
        &["export"],
        &["serve"],
    ] {
        let output = dir.run(args);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""), "{args:?}");
    }
}

#[test]
fn the_environment_and_the_command_line_go_over_the_file() {
    let dir = TempDir::new();
    // Nobody can listen there, so the file alone would not do.
    let file = "[server]\nlisten = [\"192.0.2.1:1\"]\nname = \"file\"\nmax_players = 5\n";
    dir.file("config.toml", file);
    assert_eq!(dir.run(&[]).status.code(), Some(1));
    let mut command = dir.program();
    command.env("CAVES__SERVER__LISTEN", "127.0.0.1:0").env("CAVES__SERVER__MAX_PLAYERS", "6");
    command.args(["--set", "server.max_players=7"]);
    let server = ServerProcess::start(dir, command, 1);
    assert_eq!(info(&stranger(server.addrs[0])).max_players, 7);
    let log = server.wait_for_log("started");
    let from = "config=\"config.toml, environment CAVES__SERVER__LISTEN, \
                environment CAVES__SERVER__MAX_PLAYERS, --set server.max_players\"";
    assert!(log.contains(from), "{log}");
}

#[test]
fn a_mistake_in_the_environment_or_a_setting_is_status_2() {
    let dir = TempDir::new();
    let mut command = dir.program();
    command.env("CAVES__SERVER__NAMES", "x").env("CAVES_SERVER_NAMES", "x").arg("--check-config");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        stderr(&output),
        "caves-server: environment CAVES__SERVER__NAMES: there is no key \"server.names\"; \
         --print-config shows all\n"
    );
    let output = dir.run(&["--check-config", "--set", "session.timeout_s=1"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        stderr(&output),
        "caves-server: --set session.timeout_s: session.timeout_s: 1 is not within 3 to 3600\n  \
         |\n1 | session.timeout_s = 1\n  |                     ^\n"
    );
}

#[test]
fn the_configuration_in_effect_is_printed_without_tokens() {
    let dir = TempDir::new();
    let token = "0x8d3f00c1a5b2e497";
    let entry = format!("[[client]]\nclient_type = 1\nname = \"Ada\"\ntoken = \"{token}\"\n");
    dir.file("config.toml", &entry);
    let mut command = dir.program();
    command.env("CAVES__LOG__LEVEL", "warn").env("CAVES__SERVER__MOTD", "mind the gap");
    command.args(["--print-effective", "--log-level", "debug"]);
    let output = command.output().unwrap();
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
    let text = stdout(&output);
    for line in [
        "[[client]] # config.toml:1",
        "token = # <hidden>",
        "motd = \"mind the gap\" # environment CAVES__SERVER__MOTD",
        "level = \"debug\" # --log-level",
        "tick_rate = 10 # default",
    ] {
        assert!(text.lines().any(|other| other == line), "{line} is missing in {text}");
    }
    assert!(!text.contains("8d3f00c1a5b2e497"), "{text}");
    // Without tokens it is a configuration.
    let printed = dir.run(&["--print-effective", "--set", "client=[]"]);
    dir.file("config.toml", stdout(&printed));
    assert_eq!(dir.run(&["--check-config"]).status.code(), Some(0));
}

#[test]
fn where_nothing_is_kept_there_is_nothing_to_export_or_repair() {
    let dir = TempDir::new();
    dir.file("config.toml", "[world]\nstore = \"memory\"\n");
    for (args, verb) in [
        (&["export", "x.jsonl"][..], "export"),
        (&["import", "x.jsonl"], "import"),
        (&["--repair"], "repair"),
    ] {
        let output = dir.run(args);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""), "{args:?}");
        assert_eq!(
            stderr(&output),
            format!(
                "caves-server: cannot {verb}: world.store is \"memory\", which keeps nothing\n"
            )
        );
    }
}

#[test]
fn the_help_tells_of_commands_and_layers() {
    let dir = TempDir::new();
    let help = dir.run(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    for piece in ["export", "import", "--repair", "--print-effective", "CAVES__SERVER__MAX_PLAYERS"]
    {
        assert!(stdout(&help).contains(piece), "{piece} is missing");
    }
}

#[test]
fn the_printed_configuration_is_valid() {
    let dir = TempDir::new();
    let printed = dir.run(&["--print-config"]);
    assert_eq!(printed.status.code(), Some(0));
    dir.file("config.toml", stdout(&printed));
    let output = dir.run(&["--check-config"]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
    assert!(stdout(&printed).contains("\nlisten = [\"127.0.0.1:21068\"]\n"));
}

#[test]
fn new_tokens_are_large_and_differ() {
    let dir = TempDir::new();
    let token = || {
        let output = dir.run(&["--new-token"]);
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
        let text = stdout(&output).strip_suffix('\n').unwrap().to_owned();
        assert_eq!(text.len(), 18, "{text}");
        let number = u64::from_str_radix(text.strip_prefix("0x").unwrap(), 16).unwrap();
        assert!(number >= 4_294_967_296, "{text}");
        text
    };
    let (a, b) = (token(), token());
    assert_ne!(a, b);
    let entry = format!("[[client]]\nclient_type = 1\nname = \"Ada\"\ntoken = \"{a}\"\n");
    dir.file("config.toml", &entry);
    assert_eq!(dir.run(&["--check-config"]).status.code(), Some(0));
}

#[test]
fn sigterm_and_sigint_end_it_with_status_0_within_two_seconds() {
    for signal in ["TERM", "INT"] {
        let mut server = ServerProcess::spawn(ONE_SOCKET);
        let start = Instant::now();
        server.signal(signal);
        assert_eq!(server.wait().code(), Some(0), "SIG{signal}");
        assert!(start.elapsed() < Duration::from_secs(2), "SIG{signal}");
        server.wait_for_log("stopped reason=signal");
    }
}

#[test]
fn a_closed_port_can_be_had_again() {
    let mut first = ServerProcess::spawn(ONE_SOCKET);
    let addr = first.addrs[0];
    first.terminate();
    let second = ServerProcess::spawn(&format!("[server]\nlisten = [\"{addr}\"]"));
    assert_eq!(second.addrs, [addr]);
}

#[test]
fn the_log_is_as_loud_and_as_readable_as_asked() {
    let mut quiet = ServerProcess::spawn(&format!("{ONE_SOCKET}[log]\nlevel = \"error\"\n"));
    info(&stranger(quiet.addrs[0]));
    quiet.terminate();
    assert_eq!(quiet.stderr_so_far(), "");

    let dir = TempDir::new();
    let json =
        "[log]\nlevel = \"error\"\nformat = \"json\"\n[world]\nseed = 42\nstore = \"memory\"\n";
    dir.file("config.toml", &format!("{ONE_SOCKET}{json}"));
    let mut command = dir.program();
    command.args(["--log-level", "info"]);
    let mut server = ServerProcess::start(dir, command, 1);
    server.terminate();
    let log = server.wait_for_log("stopped");
    let first = log.lines().next().unwrap();
    assert!(first.starts_with('{') && first.ends_with('}'), "{first}");
    for piece in ["\"level\":\"INFO\"", "\"message\":\"started\"", "\"seed\":42"] {
        assert!(first.contains(piece), "{piece} is missing in {first}");
    }
}

#[test]
fn without_a_configuration_the_defaults_are_said_aloud() {
    let dir = TempDir::new();
    let mut child = (dir.program().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()).unwrap();
    let mut listening = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut listening).unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    // The store has its say before.
    let log = lines.find(|line| line.contains("started") || line.contains("cannot"));
    let log = log.expect("a line of the log");
    child.kill().unwrap();
    child.wait().unwrap();
    if listening.is_empty() {
        // Somebody on this machine has the port already: that it was wanted is all there is to see.
        assert!(log.contains("cannot listen on udp 127.0.0.1:21068: "), "{log}");
    } else {
        assert_eq!(listening, "listening udp 127.0.0.1:21068\n");
        assert!(log.contains("config=\"defaults, there is no config.toml\""), "{log}");
    }
}
