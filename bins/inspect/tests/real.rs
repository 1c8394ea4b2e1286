//! A session of our own server, recorded by tcpdump and read by Wireshark's dissector as well.

mod common;

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use caves_server::{Clock, Config, OsRandom, Server};
use caves_session::caves::{Client, ClientConfig, ClientEvent, OwnedAction};
use caves_wire::caves::Direction;
use common::{Seen, ethernet, inspect, ipv4, pcap, vectors};
use serde_json::Value;

/// Far longer than anything here should take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Ticks that are played.
const TICKS: usize = 30;
const DISSECTOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/wireshark/forgotten_caves.lua");

/// tcpdump on the loopback; it ends with this.
struct Tcpdump(Child);

impl Tcpdump {
    /// Starts it, and waits until it records.
    fn start(file: &Path, port: u16) -> Self {
        let mut child = Command::new("tcpdump")
            // Packet by packet into the file, and a large buffer before it: none is to be lost.
            .args(["-i", "lo", "-n", "-U", "-B", "8192", "-Z", "root", "-w"])
            .arg(file)
            .args(["udp", "port", &port.to_string()])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("tcpdump is needed (apt install tcpdump): {error}"));
        let mut said = String::new();
        let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        while !said.contains("listening on") {
            let more = stderr.read_line(&mut said).expect("text");
            assert!(more > 0, "tcpdump may not capture on lo here (run as root): {said}");
        }
        // What it says at its end must find a reader.
        thread::spawn(move || stderr.read_to_string(&mut said));
        Self(child)
    }
}

impl Drop for Tcpdump {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A recorded session.
struct Recorded {
    file: PathBuf,
    port: u16,
    /// All that the client sent, and all that it received, in order.
    sent: Vec<Vec<u8>>,
    received: Vec<Vec<u8>>,
    seen: Seen,
}

/// Plays for some ticks on a server of its own, with tcpdump beside it.
fn record(name: &str) -> Recorded {
    let server = Server::bind(&Config::solo()).expect("a free port");
    let addr = server.local_addrs()[0];
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.pcap"));
    let tcpdump = Tcpdump::start(&file, addr.port());
    let stop = server.handle();
    let thread = thread::spawn(|| server.run());
    let (sent, received) = play(addr);
    stop.stop();
    thread.join().expect("no panic").expect("it runs");
    let deadline = Instant::now() + PATIENCE;
    let seen = loop {
        // A packet may be half written: then this is not the end.
        let seen = inspect(std::fs::read(&file).expect("a recording"));
        if seen.failure.is_none() && seen.entries.len() >= sent.len() + received.len() {
            break seen;
        }
        let (is, needed) = (seen.entries.len(), sent.len() + received.len());
        assert!(Instant::now() < deadline, "tcpdump has {is} of {needed} datagrams");
        thread::sleep(Duration::from_millis(20));
    };
    drop(tcpdump);
    Recorded { file, port: addr.port(), sent, received, seen }
}

/// Walks, digs, talks, asks, and leaves: most packet types are on the wire then.
fn play(server: SocketAddr) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    socket.connect(server).expect("a route to ourselves");
    socket.set_read_timeout(Some(Duration::from_millis(5))).expect("not zero");
    let clock = Clock::start();
    let random = Box::new(OsRandom::new().expect("random numbers"));
    let mut client = Client::new(ClientConfig::default(), random, clock.now());
    let (mut sent, mut received, mut ticks) = (Vec::new(), Vec::new(), 0);
    let mut buf = [0; 2048];
    let deadline = Instant::now() + PATIENCE;
    while !client.is_drained() {
        assert!(Instant::now() < deadline, "the session takes too long");
        client.handle_timeout(clock.now());
        while let Some(len) = client.poll_transmit(clock.now(), &mut buf) {
            sent.push(buf[..len].to_vec());
            socket.send(&buf[..len]).expect("the server listens");
        }
        // The server may stop before the last Leave; nothing is received then.
        if let Ok(len) = socket.recv(&mut buf) {
            received.push(buf[..len].to_vec());
            client.handle_datagram(clock.now(), &buf[..len]);
        }
        while let Some(event) = client.poll_event() {
            if let ClientEvent::Updated(_) = event {
                ticks += 1;
                act(&mut client, ticks, clock.now());
                if ticks == TICKS {
                    client.leave(clock.now());
                }
            }
        }
    }
    (sent, received)
}

fn act(client: &mut Client, ticks: usize, now: caves_link::time::Instant) {
    // What finds no room is not done; the session is long enough without it.
    let _ = match ticks {
        3 => client.push(OwnedAction::Say("Hello, \u{1b}[31mcaves".to_owned())),
        n if n % 6 == 0 => client.push(OwnedAction::Dig(Direction::East)),
        n if n % 3 == 1 => client.push(OwnedAction::Walk(Direction::West)),
        _ => return,
    };
    if ticks == 6
        && let Some(player) = client.player()
    {
        let _ = client.query(now, player);
    }
}

#[test]
#[ignore = "needs tcpdump (apt install tcpdump) and the right to capture on lo; .ci/run runs it"]
fn a_real_session_is_followed_and_nothing_in_it_is_wrong() {
    let recorded = record("followed");
    let Seen { entries, sessions, totals, .. } = &recorded.seen;
    assert_eq!((totals.problems, totals.broken, totals.other), (0, 0, 0));
    for (way, bytes) in [("c2s", &recorded.sent), ("s2c", &recorded.received)] {
        let lengths: Vec<_> = entries
            .iter()
            .filter(|entry| entry["direction"] == way)
            .map(|entry| entry["bytes"].as_u64().unwrap() as usize)
            .collect();
        let expected: Vec<_> = bytes.iter().map(Vec::len).collect();
        // The server goes on for a moment after the client has gone.
        assert_eq!(lengths[..expected.len()], expected, "{way}");
    }
    let session = &sessions[0];
    assert_eq!(session["server"], format!("127.0.0.1:{}", recorded.port));
    for packet in [
        "Hello",
        "Challenge",
        "Join",
        "Welcome",
        "Action",
        "State",
        "Entities",
        "Chunk",
        "Ping",
        "Pong",
        "Query",
        "Detail",
        "Event",
        "EventAck",
        "Leave",
    ] {
        assert!(session["packets"][packet].is_object(), "no {packet}: {session}");
    }
    assert_eq!(session["ticks"]["missing"], 0, "{session}");
    assert_eq!(session["updates"]["incomplete"], 0, "{session}");
    assert!(session["updates"]["complete"].as_u64().unwrap() >= TICKS as u64, "{session}");
    assert_eq!(session["round_trip"]["pings"], session["round_trip"]["pongs"]);
    let program = common::program(&["--strict", recorded.file.to_str().unwrap()], b"");
    assert_eq!(program.status.code(), Some(0));
}

/// What tshark's fields of each frame are: a row a frame, a list a column.
fn tshark(file: &Path, more: &[&str], columns: &[&str]) -> Vec<Vec<Vec<String>>> {
    let mut command = Command::new("tshark");
    command.arg("-X").arg(format!("lua_script:{DISSECTOR}")).arg("-r").arg(file);
    command.args(more).args(["-T", "fields"]);
    for column in columns {
        command.args(["-e", column]);
    }
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("tshark is needed (apt install tshark): {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(!errors.contains("lua"), "{errors}");
    let cells = |line: &str| {
        let cell = |cell: &str| {
            let all = cell.split(',').filter(|one| !one.is_empty());
            all.map(str::to_owned).collect::<Vec<_>>()
        };
        line.split('\t').map(cell).collect::<Vec<_>>()
    };
    String::from_utf8_lossy(&output.stdout).lines().map(cells).collect()
}

/// A column of tshark's, and the same from the fields of ours.
type Column = (&'static str, fn(&Value) -> Vec<String>);

fn one(value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::String(text) => vec![text.clone()],
        other => vec![other.to_string()],
    }
}

fn hex32(value: &Value) -> Vec<String> {
    value.as_u64().map(|number| format!("0x{number:08x}")).into_iter().collect()
}

/// Part `at` of all chunk entries of a packet.
fn entries(fields: &Value, at: usize) -> Vec<String> {
    let list = fields["chunks"].as_array().or_else(|| fields["cache"].as_array());
    let single = fields["chunk"].is_array().then(|| vec![fields["chunk"].clone()]);
    let all = single.or_else(|| list.cloned()).unwrap_or_default();
    all.iter().map(|entry| entry[at].to_string()).collect()
}

fn each_entity(fields: &Value, name: &str) -> Vec<String> {
    let all = fields["entities"].as_array().cloned().unwrap_or_default();
    all.iter().map(|entity| entity[name].to_string()).collect()
}

/// The tags of a packet's metadata, or of all its entities'.
fn tag_numbers(fields: &Value) -> Vec<String> {
    let of = |meta: &Value| {
        let fields = meta.as_array().cloned().unwrap_or_default();
        fields
            .iter()
            .map(|field| format!("0x{:02x}", field[0].as_u64().unwrap()))
            .collect::<Vec<_>>()
    };
    match fields["entities"].as_array() {
        Some(entities) => entities.iter().flat_map(|entity| of(&entity["meta"])).collect(),
        None => of(&fields["meta"]),
    }
}

const COLUMNS: [Column; 33] = [
    ("caves.tick", |f| one(&f["tick"])),
    ("caves.sequence", |f| one(&f["sequence"])),
    ("caves.player_entity_id", |f| one(&f["player_entity_id"])),
    ("caves.entity_checksum", |f| hex32(&f["entity_checksum"])),
    ("caves.chunk.x", |f| entries(f, 0)),
    ("caves.chunk.y", |f| entries(f, 1)),
    ("caves.chunk.version", |f| entries(f, 2)),
    ("caves.palette", |f| {
        f["palette"]
            .as_array()
            .map_or_else(Vec::new, |all| all.iter().map(Value::to_string).collect())
    }),
    ("caves.player_action", |f| one(&f["player_action"])),
    ("caves.direction", |f| one(&f["direction"])),
    ("caves.target", |f| one(&f["target"])),
    ("caves.item", |f| one(&f["item"])),
    ("caves.count", |f| one(&f["count"])),
    ("caves.entity_count", |f| one(&f["entity_count"])),
    ("caves.entity.id", |f| each_entity(f, "id")),
    ("caves.entity.type_id", |f| each_entity(f, "type_id")),
    ("caves.entity.pos_x", |f| each_entity(f, "pos_x")),
    ("caves.entity.pos_y", |f| each_entity(f, "pos_y")),
    ("caves.entity.hp", |f| each_entity(f, "hp")),
    ("caves.entity.hp_max", |f| each_entity(f, "hp_max")),
    ("caves.entity.elo", |f| each_entity(f, "elo")),
    ("caves.entity_id", |f| one(&f["entity_id"])),
    ("caves.timestamp_ms", |f| one(&f["timestamp_ms"])),
    ("caves.client_nonce", |f| one(&f["client_nonce"])),
    ("caves.reason", |f| one(&f["reason"])),
    ("caves.server_version", |f| one(&f["version"])),
    ("caves.players", |f| one(&f["players"])),
    ("caves.max_players", |f| one(&f["max_players"])),
    ("caves.event_kind", |f| one(&f["kind"])),
    ("caves.from", |f| one(&f["from"])),
    ("caves.tick_rate", |f| one(&f["tick_rate"])),
    ("caves.client_type", |f| one(&f["client_type"])),
    ("caves.tag.number", tag_numbers),
];

/// Compares all fields of all datagrams that decode. Gives how many those were.
fn compare(file: &Path, more: &[&str], seen: &Seen) -> usize {
    let columns: Vec<_> = COLUMNS.iter().map(|(name, _)| *name).collect();
    let rows = tshark(file, more, &columns);
    assert_eq!(rows.len(), seen.entries.len());
    let mut compared = 0;
    for (row, entry) in rows.iter().zip(&seen.entries) {
        let problem = entry["problem"].as_str();
        if problem.is_some_and(|why| !why.contains("only the other side")) {
            continue;
        }
        compared += 1;
        let (fields, packet) = (&entry["fields"], entry["packet"].as_str().unwrap());
        for ((name, ours), theirs) in COLUMNS.iter().zip(row) {
            // Ours shows what a packet makes of it: its client type where that is looked at (R3),
            // the token's presence in place of a Join's tags.
            let other = match *name {
                "caves.client_type" => !matches!(packet, "Hello" | "Join"),
                "caves.tag.number" => packet == "Join",
                _ => false,
            };
            if !other {
                assert_eq!(*theirs, ours(fields), "{name} of {entry}");
            }
        }
    }
    compared
}

#[test]
#[ignore = "needs tcpdump and tshark (apt install tcpdump tshark) and the right to capture on lo; \
            .ci/run runs it"]
fn the_dissector_reads_a_real_session_as_we_do() {
    let recorded = record("dissected");
    let port = format!("caves.port:{}", recorded.port);
    let compared = compare(&recorded.file, &["-o", &port], &recorded.seen);
    assert!(compared > 2 * TICKS, "{compared} datagrams");
    let complaints = tshark(&recorded.file, &["-o", &port, "-Y", "_ws.expert"], &["frame.number"]);
    assert_eq!(complaints, Vec::<Vec<Vec<String>>>::new());
}

#[test]
#[ignore = "needs tshark (apt install tshark); .ci/run runs it"]
fn the_dissector_reads_all_vectors_as_we_do_and_complains_of_the_invalid_ones() {
    // By port, and by magic and version where the ports say nothing.
    for ports in [(5000, 21_068), (40_001, 40_002)] {
        // Without the magic it is nobody's.
        let all: Vec<_> =
            vectors().into_iter().filter(|one| one.bytes.starts_with(b"\x4C\x52\x01")).collect();
        let frames: Vec<_> = all.iter().map(|one| ethernet(&ipv4(ports, &one.bytes))).collect();
        let name = format!("vectors-{}.pcap", ports.1);
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let recording = pcap(1, &frames);
        std::fs::write(&file, &recording).unwrap();
        let valid = all.iter().filter(|one| one.error.is_none()).count();
        // A datagram with half a header is none for the heuristic.
        let with_header = all.iter().filter(|one| one.bytes.len() >= 6).count();
        let rows = tshark(&file, &[], &["frame.number", "caves.type", "_ws.expert.message"]);
        let known = rows.iter().filter(|row| !row[1].is_empty()).count();
        assert!(known >= with_header, "{known} of {with_header}");
        for (row, one) in rows.iter().zip(&all).filter(|(_, one)| one.bytes.len() >= 6) {
            let complains = !row[2].is_empty();
            // A Lua script can hardly tell what is UTF-8, and does not look at every tile.
            let expected = match one.error.as_deref() {
                Some("Utf8" | "PaletteIndex") => continue,
                error => error.is_some(),
            };
            assert_eq!(complains, expected, "{}, {}: {row:?}", one.layout, one.name);
        }
        let compared = compare(&file, &[], &inspect(recording));
        assert_eq!(compared, valid);
    }
}
