//! The example against a real DDNet server.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    clippy::duplicated_attributes,
    reason = "a real server has sockets, files and a clock"
)]

#[path = "../examples/teeworlds.rs"]
#[allow(dead_code)]
mod example;

use std::fs::{self, File};
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = "/usr/games/DDNet-Server";
/// A busy machine may take its time.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server on loopback, with a home of its own; both are gone at the end.
struct Server {
    child: Child,
    home: PathBuf,
    address: String,
}

impl Server {
    fn start() -> Self {
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let home = std::env::temp_dir().join(format!("teeworlds-{}-{port}", std::process::id()));
        fs::create_dir_all(&home).unwrap();
        let log = File::create(home.join("log")).unwrap();
        let settings = format!(
            "sv_register 0;sv_port {port};sv_ipv4only 1;bindaddr 127.0.0.1;sv_map dm1;\
             sv_name caves;sv_max_clients_per_ip 16;stdout_output_level 2;debug 1"
        );
        let child = Command::new(PROGRAM)
            .arg(settings)
            .env("HOME", &home)
            .current_dir(&home)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("{PROGRAM}: {error}; package ddnet-server"));
        let server = Self { child, home, address: format!("127.0.0.1:{port}") };
        server.wait_for("version");
        server
    }

    fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.home.join("log")).unwrap()).into_owned()
    }

    /// Until the server has said something.
    fn wait_for(&self, words: &str) {
        let start = Instant::now();
        while !self.log().contains(words) {
            assert!(start.elapsed() < PATIENCE, "no {words:?} in {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.home);
    }
}

#[test]
#[ignore = "needs DDNet-Server; .ci/run runs this"]
fn a_real_server_tells_about_itself() {
    let server = Server::start();
    let about = example::query(&server.address).unwrap();
    assert_eq!((about.name.as_str(), about.map.as_str()), ("caves [0/64]", "dm1"));
    assert_eq!(about.players, Vec::<String>::new());
}

#[test]
#[ignore = "needs DDNet-Server; .ci/run runs this"]
fn a_real_server_is_played_with_a_quarter_of_all_datagrams_lost_each_way() {
    let server = Server::start();
    let address = server.address.clone();
    let player =
        std::thread::spawn(move || example::play(&address, Duration::from_secs(30)).unwrap());
    server.wait_for("entered the game");
    let about = example::query(&server.address).unwrap();
    assert_eq!(about.players, ["tester"]);
    let figures = player.join().unwrap();
    assert_eq!(figures.ended, None, "the connection stayed");
    assert_eq!(figures.map, "dm1");
    assert!(
        figures.map_bytes.0 == figures.map_bytes.1 && figures.map_bytes.1 > 5000,
        "{figures:?}"
    );
    // 25 snapshots a second, of which three quarters come.
    assert!(figures.complete >= 300, "{figures:?}");
    assert!(figures.snap + figures.snap_single + figures.snap_empty >= figures.complete);
    // Fifty ticks a second, so at least two thirds of the time.
    assert!(figures.ticks >= 1000, "{figures:?}");
    assert!(figures.inputs_timed >= 100, "{figures:?}");
    assert!(figures.lost.0 >= 100 && figures.lost.1 >= 100, "{figures:?}");
    server.wait_for("closed reason='that was all'");
}
