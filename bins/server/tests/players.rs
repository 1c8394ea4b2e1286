//! What the log tells of players, and what becomes of them when the server is held up.

mod common;

use caves_server::{Clock, OsRandom};
use caves_session::caves::{Client, ClientConfig, ClientEnd, ClientEvent};
use caves_wire::caves::{ClientType, Features, RefuseReason};
use common::{ONE_SOCKET, PATIENCE, ServerProcess, info, stranger};
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

/// A client on a real socket that does nothing but be there.
struct Guest {
    client: Client,
    socket: UdpSocket,
    clock: Clock,
}

impl Guest {
    fn new(server: SocketAddr, name: &str) -> Self {
        let clock = Clock::start();
        let config = ClientConfig {
            client_type: ClientType(0),
            name: Some(name.to_owned()),
            token: None,
            features: Features::EVENTS,
        };
        let client = Client::new(config, Box::new(OsRandom::new().unwrap()), clock.now());
        let socket = stranger(server);
        socket.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        Self { client, socket, clock }
    }

    /// Sends what is due.
    fn send(&mut self) {
        let mut buf = [0; 1200];
        self.client.handle_timeout(self.clock.now());
        while let Some(len) = self.client.poll_transmit(self.clock.now(), &mut buf) {
            self.socket.send(&buf[..len]).unwrap();
        }
    }

    /// Plays until something happens that `is_it` knows.
    fn play_until(&mut self, is_it: impl Fn(&ClientEvent) -> bool) -> ClientEvent {
        let deadline = Instant::now() + PATIENCE;
        let mut buf = [0; 2048];
        while Instant::now() < deadline {
            self.send();
            if let Ok(len) = self.socket.recv(&mut buf) {
                self.client.handle_datagram(self.clock.now(), &buf[..len]);
            }
            while let Some(event) = self.client.poll_event() {
                if is_it(&event) {
                    return event;
                }
            }
        }
        panic!("it did not happen; {:?}", self.client.status(self.clock.now()));
    }

    fn join(&mut self) {
        self.play_until(|event| matches!(event, ClientEvent::Joined { .. }));
    }

    /// Three Leaves, 20 ms apart.
    fn leave(&mut self) {
        self.client.leave(self.clock.now());
        while !self.client.is_drained() {
            self.send();
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The line of the log that holds a text.
fn line<'l>(log: &'l str, message: &str) -> &'l str {
    log.lines().find(|line| line.contains(message)).unwrap_or_else(|| panic!("{message}: {log}"))
}

#[test]
fn joins_leaves_and_refusals_have_a_line_each() {
    let mut server = ServerProcess::spawn(&format!(
        "{ONE_SOCKET}[[ban]]\nname = \"Mallory\"\nreason = \"rude\"\n"
    ));
    let mut ada = Guest::new(server.addrs[0], "Ada");
    ada.join();
    let joined = server.wait_for_log("joined");
    let joined = line(&joined, "joined");
    let addr = ada.socket.local_addr().unwrap();
    for piece in ["name=\"Ada\"", "client_type=0", "source_only=false", "returned=false"] {
        assert!(joined.contains(piece), "{piece} is missing in {joined}");
    }
    assert!(joined.contains(&format!("peer={addr}")), "{joined}");

    let mut mallory = Guest::new(server.addrs[0], "mallory");
    let end = mallory.play_until(|event| matches!(event, ClientEvent::Ended(_)));
    let banned =
        ClientEnd::Refused { reason: RefuseReason::BANNED, version: 1, text: "rude".to_owned() };
    assert_eq!(end, ClientEvent::Ended(banned));
    let refused = server.wait_for_log("refused");
    let refused = line(&refused, "refused");
    let addr = mallory.socket.local_addr().unwrap();
    for piece in ["name=\"mallory\"", "reason=banned", &format!("peer={addr}")] {
        assert!(refused.contains(piece), "{piece} is missing in {refused}");
    }

    ada.leave();
    let left = server.wait_for_log("left name");
    let left = line(&left, "left name");
    assert!(left.contains("name=\"Ada\"") && left.contains("why=quit"), "{left}");

    let mut bob = Guest::new(server.addrs[0], "Bob");
    bob.join();
    assert_eq!(info(&stranger(server.addrs[0])).players, 1);
    server.signal("TERM");
    bob.play_until(|event| matches!(event, ClientEvent::ServerGone { .. }));
    assert_eq!(server.wait().code(), Some(0));
    let log = server.wait_for_log("stopped");
    assert!(log.contains("left name=\"Bob\"") && log.contains("why=server shutting down"), "{log}");
}

#[test]
fn what_waited_in_the_socket_while_the_server_was_held_up_came_in_time() {
    let server = ServerProcess::spawn(&format!("{ONE_SOCKET}[session]\ntimeout_s = 3\n"));
    let mut ada = Guest::new(server.addrs[0], "Ada");
    ada.join();
    server.signal("STOP");
    thread::sleep(Duration::from_millis(3300));
    // More than the loop reads before it looks at its timers in better times.
    let noise = stranger(server.addrs[0]);
    for _ in 0..400 {
        noise.send(b"noise").unwrap();
    }
    // Her keepalive is due.
    ada.send();
    server.signal("CONT");
    assert_eq!(info(&stranger(server.addrs[0])).players, 1);
    // By now the timers have had their turn, too.
    let log = server.wait_for_log("ticks dropped");
    assert!(!log.contains("silence"), "{log}");
}
