//! The control socket and `caves-ctl`, as an operator uses them: real programs, real players.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use caves_game::client::ClientEvent;
use caves_game::mirror::MessageKind;
use caves_session::caves::ClientEnd;
use caves_wire::caves::{LeaveReason, RefuseReason};
use common::visitor::Visitor;
use common::{PATIENCE, ServerProcess, TempDir};
use serde_json::Value;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A configuration with what the test adds to `[server]`.
fn config(server: &str) -> String {
    format!("[server]\nlisten = [\"127.0.0.1:0\"]\n{server}\n[world]\nstore = \"memory\"\n")
}

fn server() -> ServerProcess {
    ServerProcess::spawn(&config(""))
}

fn ctl_in(dir: &Path, args: &[&str]) -> Output {
    let mut ctl = Command::new(env!("CARGO_BIN_EXE_caves-ctl"));
    ctl.current_dir(dir).env_remove("CAVES_SOCKET").args(args).output().expect("it runs")
}

/// What a command that is done prints.
fn ctl(server: &ServerProcess, args: &[&str]) -> String {
    let output = ctl_in(server.dir(), args);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert_eq!((output.status.code(), err), (Some(0), ""), "{args:?}: {out}");
    out.to_owned()
}

/// The same as JSON; it is one line.
fn json(server: &ServerProcess, args: &[&str]) -> Value {
    let line = ctl(server, &[&["--json"], args].concat());
    assert_eq!(line.matches('\n').count(), 1, "{line}");
    let answer: Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!((&answer["ok"], &answer["v"]), (&Value::from(true), &Value::from(1)));
    answer
}

/// What a command is refused with: one line, status 1.
fn no(server: &ServerProcess, args: &[&str]) -> String {
    let output = ctl_in(server.dir(), args);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""), "{args:?}");
    let error = text(&output.stderr);
    error.strip_prefix("caves-ctl: ").unwrap_or_else(|| panic!("{error:?}")).trim_end().to_owned()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

/// A player in the caves.
fn player(server: &ServerProcess, name: &str) -> Visitor {
    let mut visitor = Visitor::new(server.addrs[0], HERE, name);
    visitor.until(PATIENCE, Visitor::is_playable).unwrap_or_else(|| panic!("{name} is not let in"));
    visitor
}

fn end(visitor: &Visitor) -> Option<&ClientEnd> {
    visitor.events.iter().find_map(|event| match event {
        ClientEvent::Ended(end) => Some(end),
        _ => None,
    })
}

fn notices(visitor: &Visitor) -> Vec<String> {
    let messages = visitor.client.mirror().messages().iter();
    let notices = messages.filter(|message| message.kind == MessageKind::Notice);
    notices.map(|message| message.text.clone()).collect()
}

fn wait_for_notice(visitor: &mut Visitor, text: &str) {
    let told = visitor.until(PATIENCE, |visitor| notices(visitor).iter().any(|of| of == text));
    assert!(told.is_some(), "no {text:?} in {:?}", notices(visitor));
}

#[test]
fn players_and_sessions_are_listed_with_their_figures() {
    let server = server();
    assert_eq!(ctl(&server, &["players"]), "0 of 64 players\n");
    assert_eq!(ctl(&server, &["sessions"]), "0 sessions\n");
    let mut ada = player(&server, "Ada");
    // An event is what a round trip is measured by, besides the first word.
    ctl(&server, &["say", "hello"]);
    wait_for_notice(&mut ada, "hello");
    ada.play(Duration::from_millis(50));

    let players = ctl(&server, &["players"]);
    assert!(players.starts_with("NAME") && players.ends_with("\n1 of 64 players\n"), "{players}");
    let address = ada.socket.local_addr().unwrap().to_string();
    assert!(players.contains("Ada ") && players.contains(&address), "{players}");
    let listed = json(&server, &["players"]);
    let me = ada.client.mirror().me().unwrap();
    let first = &listed["players"][0];
    assert_eq!(first["name"], "Ada");
    assert_eq!(first["entity"], me.id.0);
    assert_eq!((&first["x"], &first["y"]), (&me.pos.x.into(), &me.pos.y.into()));

    let sessions = json(&server, &["sessions"]);
    let session = &sessions["sessions"][0];
    assert_eq!((&session["name"], &session["address"]), (&"Ada".into(), &address.as_str().into()));
    assert!(session["round_trip_ms"].as_f64().unwrap() < 5000.0, "{session}");
    assert_eq!(session["plain"], false);
    // What the client has sent since its Join (a Hello and a Join at least), all of it, and no more.
    let sent: usize = ada.sent.iter().map(Vec::len).sum();
    let received = session["received"]["bytes"].as_u64().unwrap();
    assert!(received > 0 && received < sent as u64, "{received} of {sent}");
    assert!(session["sent"]["datagrams"].as_u64().unwrap() >= 9, "nine chunks at least: {session}");
    let shown = ctl(&server, &["sessions"]);
    assert!(shown.contains("TRIP") && shown.ends_with("\n1 session\n"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
}

#[test]
fn who_is_kicked_reads_why_and_may_come_back() {
    let server = server();
    let mut ada = player(&server, "Ada");
    assert_eq!(ctl(&server, &["kick", "ada", "no", "digging", "here"]), "Ada was thrown out\n");
    ada.until(PATIENCE, |ada| end(ada).is_some()).expect("an end");
    assert_eq!(end(&ada), Some(&ClientEnd::Left(LeaveReason::KICKED)));
    assert!(notices(&ada).contains(&"You were thrown out: no digging here".to_owned()));
    assert_eq!(no(&server, &["kick", "Ada"]), "nobody plays as \"Ada\"");
    let again = player(&server, "Ada");
    let kicked = json(&server, &["kick", "Ada"]);
    assert_eq!((&kicked["kicked"], &kicked["reason"]), (&"Ada".into(), &"".into()));
    drop(again);
    let log = server.wait_for_log("kicked name=\"Ada\" reason=\"no digging here\"");
    assert!(log.contains("left name=\"Ada\""), "{log}");
}

#[test]
fn a_ban_refuses_the_next_join_until_it_is_lifted() {
    let server = server();
    let mut ada = player(&server, "Ada");
    assert_eq!(
        ctl(&server, &["ban", "ADA", "griefing"]),
        "ADA is banned for good; 1 session ended\n"
    );
    ada.until(PATIENCE, |ada| end(ada).is_some()).expect("an end");
    assert_eq!(end(&ada), Some(&ClientEnd::Left(LeaveReason::BANNED)));
    assert!(notices(&ada).contains(&"griefing".to_owned()), "{:?}", notices(&ada));

    let mut again = Visitor::new(server.addrs[0], HERE, "ada");
    again.until(PATIENCE, |again| end(again).is_some()).expect("an answer");
    let Some(ClientEnd::Refused { reason, text, .. }) = end(&again) else { panic!() };
    assert_eq!((*reason, text.as_str()), (RefuseReason::BANNED, "griefing"));

    let bans = json(&server, &["bans"]);
    let ban = &bans["bans"][0];
    assert_eq!((&ban["target"], &ban["kind"]), (&"ADA".into(), &"name".into()));
    assert_eq!((&ban["until"], &ban["from"]), (&Value::Null, &"command".into()));
    let shown = ctl(&server, &["bans"]);
    assert!(shown.contains("ADA") && shown.contains("never") && shown.ends_with("\n1 ban\n"));
    assert_eq!(ctl(&server, &["unban", "Ada"]), "Ada may come again\n");
    assert!(no(&server, &["unban", "Ada"]).starts_with("no ban of Ada"));
    player(&server, "Ada");
}

#[test]
fn a_ban_of_an_address_ends_by_itself() {
    let server = server();
    let mut ada = player(&server, "Ada");
    let said = ctl(&server, &["ban", "127.0.0.0/8", "--for", "2s"]);
    assert!(said.starts_with("127.0.0.0/8 is banned for "), "{said}");
    assert!(said.ends_with("; 1 session ended\n"), "{said}");
    ada.until(PATIENCE, |ada| end(ada).is_some()).expect("an end");
    let mut refused = 0;
    let start = std::time::Instant::now();
    loop {
        let mut again = Visitor::new(server.addrs[0], HERE, "Ada");
        again.until(PATIENCE, |again| again.is_in() || end(again).is_some()).expect("an answer");
        if again.is_in() {
            break;
        }
        refused += 1;
        again.play(Duration::from_millis(100));
        assert!(start.elapsed() < PATIENCE, "it does not end");
    }
    assert!(refused > 0);
    assert_eq!(json(&server, &["bans"])["bans"], Value::Array(vec![]));
    assert!(no(&server, &["ban", "0.0.0.0/0"]).contains("everybody"));
    assert!(no(&server, &["ban", "a\u{202e}b"]).contains("neither an address nor a name"));
}

#[test]
fn what_is_said_is_a_notice_to_everybody() {
    let server = server();
    let (mut ada, mut bob) = (player(&server, "Ada"), player(&server, "Bob"));
    assert_eq!(ctl(&server, &["say", "New", "version", "at", "nine"]), "told 2 players\n");
    wait_for_notice(&mut ada, "New version at nine");
    wait_for_notice(&mut bob, "New version at nine");
    assert_eq!(json(&server, &["say", "a\u{1b}b"])["told"], 2);
    wait_for_notice(&mut ada, "ab");
    assert_eq!(no(&server, &["say", " "]), "there is nothing to say");
    assert!(no(&server, &["say", &"x".repeat(1001)]).contains("at most 1000 bytes"));
}

#[test]
fn a_reload_does_what_it_can_and_says_what_it_cannot() {
    let server = ServerProcess::spawn(&config("max_players = 7\nmotd = \"old\""));
    let file = server.dir().join("config.toml");
    let mut ada = player(&server, "Ada");
    let nothing = "nothing has changed that can change while the server runs\n";
    assert_eq!(ctl(&server, &["reload"]), nothing);

    // A bad file changes nothing, and the error shows where it is.
    std::fs::write(&file, config("max_players = 0\nmotd = \"new\"")).unwrap();
    let error = no(&server, &["reload"]);
    assert!(error.contains("config.toml:3: server.max_players: 0 is not within"), "{error}");
    assert!(error.contains("3 | max_players = 0"), "{error}");
    assert_eq!(json(&server, &["stats"])["max_players"], 7);

    let new = config("max_players = 9\nmotd = \"new\"\ntick_rate = 20")
        + "[[ban]]\nname = \"Mallory\"\n[log]\nformat = \"json\"\n";
    std::fs::write(&file, new).unwrap();
    let said = json(&server, &["reload"]);
    let keys = |of: &Value| -> Vec<String> {
        of.as_array().unwrap().iter().map(|key| key.as_str().unwrap().to_owned()).collect()
    };
    let mut applied = keys(&said["applied"]);
    applied.sort();
    assert_eq!(applied, ["ban", "server.max_players", "server.motd"]);
    let mut restart = keys(&said["need_restart"]);
    restart.sort();
    assert_eq!(restart, ["log.format", "server.tick_rate"]);
    let stats = json(&server, &["stats"]);
    assert_eq!((&stats["max_players"], &stats["tick_rate"]), (&9.into(), &10.into()));
    assert_eq!(stats["bans"], 1);
    let unban = no(&server, &["unban", "mallory"]);
    assert!(unban.contains("stands in the configuration"), "{unban}");
    // The one who plays is not disturbed; the next one reads the new message.
    ada.play(Duration::from_millis(300));
    assert!(ada.is_in() && end(&ada).is_none());
    let bob = player(&server, "Bob");
    let motd = bob.events.iter().find_map(|event| match event {
        ClientEvent::Joined { motd, .. } => Some(motd.as_str()),
        _ => None,
    });
    assert_eq!(motd, Some("new"));
}

#[test]
fn a_reload_keeps_the_bans_that_were_set_by_commands() {
    let server = server();
    ctl(&server, &["ban", "Ada"]);
    std::fs::write(server.dir().join("config.toml"), config("motd = \"new\"")).unwrap();
    assert_eq!(ctl(&server, &["reload"]), "changed: server.motd\n");
    let mut ada = Visitor::new(server.addrs[0], HERE, "Ada");
    ada.until(PATIENCE, |ada| end(ada).is_some()).expect("an answer");
    let banned = Some(RefuseReason::BANNED);
    let reason = end(&ada).and_then(|end| match end {
        ClientEnd::Refused { reason, .. } => Some(*reason),
        _ => None,
    });
    assert_eq!(reason, banned);
}

#[test]
fn sighup_reloads_and_ends_nothing() {
    let mut server = server();
    let file = server.dir().join("config.toml");
    std::fs::write(&file, config("max_players = 5")).unwrap();
    server.signal("HUP");
    let log = server.wait_for_log("reloaded");
    assert!(log.contains("applied=[\"server.max_players\"]"), "{log}");
    assert_eq!(json(&server, &["stats"])["max_players"], 5);
    std::fs::write(&file, "[server]\nmax_players = x\n").unwrap();
    server.signal("HUP");
    let log = server.wait_for_log("not reloaded, nothing has changed");
    assert!(log.contains("config.toml:2"), "{log}");
    assert_eq!(json(&server, &["stats"])["max_players"], 5);
    assert_eq!(server.terminate().code(), Some(0));
}

#[test]
fn a_shutdown_is_counted_down_and_can_be_cancelled() {
    let mut server = server();
    let mut ada = player(&server, "Ada");
    assert_eq!(no(&server, &["shutdown", "cancel"]), "no shutdown is under way");
    assert_eq!(ctl(&server, &["shutdown", "300", "a", "rest"]), "the server stops in 5m00\n");
    wait_for_notice(&mut ada, "The server stops in 5 minutes: a rest");
    let left = json(&server, &["stats"])["stops_in_s"].as_u64().unwrap();
    assert!((1..=300).contains(&left), "{left}");
    assert_eq!(ctl(&server, &["shutdown", "cancel"]), "the shutdown is cancelled\n");
    wait_for_notice(&mut ada, "The server goes on: the shutdown was cancelled");
    assert_eq!(json(&server, &["stats"])["stops_in_s"], Value::Null);

    assert_eq!(json(&server, &["shutdown", "3", "a", "rest"])["stops_in_s"], 3);
    // Who comes meanwhile is let in, and told as well.
    let mut bob = player(&server, "Bob");
    wait_for_notice(&mut ada, "The server stops in 1 second: a rest");
    ada.until(PATIENCE, |ada| {
        ada.events.iter().any(|event| matches!(event, ClientEvent::ServerGone { .. }))
    })
    .expect("a goodbye");
    let told = notices(&ada);
    for seconds in ["3 seconds", "2 seconds", "1 second"] {
        let notice = format!("The server stops in {seconds}: a rest");
        assert_eq!(told.iter().filter(|of| **of == notice).count(), 1, "{told:?}");
    }
    bob.step();
    assert_eq!(server.wait().code(), Some(0));
    server.wait_for_log("stopped reason=operator");
    assert!(!server.dir().join("caves.sock").exists());
}

#[test]
fn a_shutdown_at_once_is_answered() {
    let mut server = server();
    assert_eq!(ctl(&server, &["shutdown", "0"]), "the server stops in 0s\n");
    assert_eq!(server.wait().code(), Some(0));
    let mut patient = self::server();
    assert!(no(&patient, &["shutdown", "86401"]).contains("at most 86400 seconds"));
    patient.terminate();
}

#[test]
fn figures_the_log_and_the_version_are_told() {
    let server = server();
    let stats = ctl(&server, &["stats"]);
    for piece in ["players", "0 of 64", "tick", "(10 a second)", "log level", "info"] {
        assert!(stats.contains(piece), "{piece} is missing in {stats}");
    }
    assert!(stats.lines().count() <= 24 && stats.lines().all(|line| line.len() <= 80), "{stats}");
    let version = json(&server, &["version"]);
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(version["pid"], server.pid());
    assert!(ctl(&server, &["version"]).starts_with("caves-server 0.1.0, protocol 1"));

    assert_eq!(ctl(&server, &["log-level"]), "info\n");
    ctl(&server, &["say", "loud"]);
    server.wait_for_log("said text=\"loud\"");
    assert_eq!(ctl(&server, &["log-level", "error"]), "error\n");
    ctl(&server, &["say", "silent"]);
    assert_eq!(ctl(&server, &["log-level", "info"]), "info\n");
    ctl(&server, &["say", "loud again"]);
    let log = server.wait_for_log("loud again");
    assert!(!log.contains("silent"), "{log}");
    assert!(no(&server, &["log-level", "loud"]).contains("is no log level"));
}

#[test]
fn a_save_without_a_store_says_so() {
    let server = server();
    assert_eq!(no(&server, &["save"]), "nothing is kept: world.store is \"memory\"");
}

#[test]
fn a_save_returns_when_it_is_on_the_disk_and_bans_of_commands_hold_after_a_restart() {
    let dir = TempDir::new();
    let kept = "[server]\nlisten = [\"127.0.0.1:0\"]\n[world]\nstore = \"STORE\"\nsave_interval_s = 3600\n";
    let store = dir.file("x", "").with_file_name("caves.redb");
    let kept = kept.replace("STORE", store.to_str().unwrap());
    let mut first = ServerProcess::spawn(&kept);
    let ada = player(&first, "Ada");
    assert_eq!(ctl(&first, &["save"]), "saved\n");
    assert_eq!(json(&first, &["save"])["saved"], true);
    ctl(&first, &["ban", "Bob", "--for", "1h", "spam"]);
    ctl(&first, &["ban", "198.51.100.0/24"]);
    ctl(&first, &["ban", "Eve"]);
    ctl(&first, &["unban", "Eve"]);
    let targets = |server: &ServerProcess| -> Vec<(String, bool)> {
        let bans = json(server, &["bans"]);
        let of = |ban: &Value| (ban["target"].as_str().unwrap().to_owned(), ban["until"].is_u64());
        bans["bans"].as_array().unwrap().iter().map(of).collect()
    };
    let expected = [("Bob".to_owned(), true), ("198.51.100.0/24".to_owned(), false)];
    assert_eq!(targets(&first), expected);
    // Safe when the next save is, without a clean end.
    ctl(&first, &["save"]);
    drop(ada);
    first.signal("KILL");
    first.wait();
    let second = ServerProcess::spawn(&kept);
    let mut listed = targets(&second);
    listed.sort_by_key(|(target, _)| target != "Bob");
    assert_eq!(listed, expected);
    let mut bob = Visitor::new(second.addrs[0], HERE, "bob");
    bob.until(PATIENCE, |bob| end(bob).is_some()).expect("an answer");
    assert!(matches!(end(&bob), Some(ClientEnd::Refused { text, .. }) if text == "spam"));
    player(&second, "Ada");
}

#[test]
fn no_as_json_is_the_servers_line_and_status_1() {
    let server = server();
    let output = ctl_in(server.dir(), &["--json", "kick", "nobody"]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(1), ""));
    let expected = "{\"error\":\"nobody plays as \\\"nobody\\\"\",\"ok\":false,\"v\":1}\n";
    assert_eq!(text(&output.stdout), expected);
}

#[test]
fn the_socket_is_as_private_as_configured_and_goes_with_the_server() {
    let mut first = server();
    let socket = first.dir().join("caves.sock");
    let mode = |path: &Path| path.symlink_metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&socket), 0o600);
    first.terminate();
    assert!(!socket.exists());
    let control = "[control]\nsocket = \"ops.sock\"\nmode = \"0660\"\n";
    let second = ServerProcess::spawn(&(config("") + control));
    assert_eq!(mode(&second.dir().join("ops.sock")), 0o660);
    assert!(no(&second, &["players"]).contains("no server runs at caves.sock"));
    assert_eq!(ctl(&second, &["--socket", "ops.sock", "players"]), "0 of 64 players\n");
    let none = ServerProcess::spawn(&(config("") + "[control]\nsocket = \"\"\n"));
    assert!(!none.dir().join("caves.sock").exists());
}

#[test]
fn a_socket_that_a_killed_server_left_is_replaced() {
    let mut first = server();
    first.signal("KILL");
    first.wait();
    assert!(first.dir().join("caves.sock").exists());
    assert!(no(&first, &["players"]).contains("nobody answers"));
    let second = TempDir::new();
    second.file("config.toml", &config(""));
    let mut command = second.program();
    let socket = first.dir().join("caves.sock");
    command.args(["--set", &format!("control.socket={}", socket.display())]);
    let mut second = ServerProcess::start(second, command, 1);
    assert_eq!(ctl(&first, &["players"]), "0 of 64 players\n");
    second.terminate();
    assert!(!socket.exists());
}

#[test]
fn a_second_server_at_the_same_socket_is_refused_and_the_first_one_goes_on() {
    let first = server();
    let socket = first.dir().join("caves.sock");
    let dir = TempDir::new();
    dir.file("config.toml", &config(""));
    let output = dir.run(&["--set", &format!("control.socket={}", socket.display())]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""));
    assert_eq!(
        text(&output.stderr),
        format!(
            "caves-server: a server answers at the control socket {}: is it running already?\n",
            socket.display()
        )
    );
    assert_eq!(ctl(&first, &["players"]), "0 of 64 players\n");
    // Something else of that name is not ours to remove.
    dir.file("diary", "dear diary");
    let output = dir.run(&["--set", "control.socket=diary"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("diary is there and is no socket"));
}

#[test]
fn without_a_server_there_is_one_line_and_status_1_and_wrong_use_is_2() {
    let dir = TempDir::new();
    let path = dir.file("not-there", "");
    let here = path.parent().unwrap();
    let output = ctl_in(here, &["players"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""));
    assert_eq!(
        text(&output.stderr),
        "caves-ctl: no server runs at caves.sock: there is no such socket (--socket names another one)\n"
    );
    for wrong in [&[][..], &["dance"], &["kick"], &["say"], &["shutdown"], &["shutdown", "soon"]] {
        let output = ctl_in(here, wrong);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), ""), "{wrong:?}");
    }
    let help = ctl_in(here, &["--help"]);
    assert_eq!(help.status.code(), Some(0));
    for piece in ["Examples:", "caves-ctl shutdown 60", "--json", "CAVES_SOCKET"] {
        assert!(text(&help.stdout).contains(piece), "{piece}");
    }
}

#[test]
fn the_socket_of_the_environment_is_used() {
    let server = server();
    let socket = server.dir().join("caves.sock");
    let elsewhere = TempDir::new();
    let mut ctl = Command::new(env!("CARGO_BIN_EXE_caves-ctl"));
    ctl.current_dir(elsewhere.file("x", "").parent().unwrap()).env("CAVES_SOCKET", socket);
    let output = ctl.arg("players").output().unwrap();
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "0 of 64 players\n"));
}

#[test]
fn the_socket_speaks_lines_of_json_in_order() {
    let server = server();
    let mut stream = UnixStream::connect(server.dir().join("caves.sock")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let lines = [
        r#"{"v":1,"command":"version"}"#,
        r#"{"v":1,"command":"dance"}"#,
        "no json",
        r#"{"v":7,"command":"players"}"#,
        r#"{"command":"players"}"#,
    ];
    stream.write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap() };
    assert_eq!(next()["protocol"], 1);
    let error = next();
    assert_eq!(error["ok"], false);
    assert!(error["error"].as_str().unwrap().contains("unknown variant `dance`"), "{error}");
    assert!(next()["error"].as_str().unwrap().contains("one JSON object"));
    assert!(next()["error"].as_str().unwrap().contains("version 1"));
    assert_eq!(next()["players"], Value::Array(vec![]));
    // A line without an end is too long at some time, and the last one.
    stream.write_all(&vec![b'x'; 9000]).unwrap();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("at most 8192 bytes"), "{rest}");
    assert_eq!(ctl(&server, &["players"]), "0 of 64 players\n", "others are served");
}

#[test]
fn operators_who_hold_every_connection_keep_no_player_waiting() {
    let server = server();
    let path = server.dir().join("caves.sock");
    let silent: Vec<_> = (0..32).map_while(|_| UnixStream::connect(&path).ok()).collect();
    assert!(silent.len() >= 16);
    let mut ada = player(&server, "Ada");
    ada.play(Duration::from_millis(200));
    assert!(ada.is_playable());
}
