//! The server inside another program, as a client that plays alone has it.

mod common;

use caves_server::{Clock, Config, Server, StopReason};
use caves_session::caves::{Client, ClientConfig};
use caves_session::{DropReason, SplitMix};
use caves_wire::caves::{ClientType, HeaderView, InfoRequest, Nonce, PacketType};
use common::{info, stranger};
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

fn question() -> [u8; 256] {
    let mut buf = [0; 256];
    let request = InfoRequest { client_type: ClientType(0), nonce: Nonce(1) };
    request.emit(&mut buf).unwrap();
    buf
}

#[test]
fn it_runs_in_a_thread_until_it_is_stopped() {
    let server = Server::bind(&Config::solo()).unwrap();
    let addr = server.local_addrs()[0];
    assert!(addr.ip().is_loopback() && addr.port() != 0);
    let stop = server.handle();
    let thread = thread::spawn(|| server.run());
    info(&stranger(addr));
    let asked = Instant::now();
    stop.stop();
    stop.clone().stop();
    let summary = thread.join().unwrap().unwrap();
    assert!(asked.elapsed() < Duration::from_secs(1), "it woke up at once");
    assert_eq!(summary.reason, StopReason::Asked);
    assert_eq!((summary.counters.received, summary.sent), (1, 1));
    assert_eq!((summary.unsent, summary.unread), (0, 0));
    // The port is free again; a test beside this one may have it for a moment.
    let until = Instant::now() + Duration::from_secs(10);
    while let Err(error) = UdpSocket::bind(addr) {
        assert!(Instant::now() < until, "{error}");
        thread::sleep(Duration::from_millis(20));
    }
    // A handle without a server does nothing.
    stop.stop();
}

#[test]
fn a_wish_to_stop_before_it_runs_is_not_lost() {
    let server = Server::bind(&Config::solo()).unwrap();
    server.handle().stop();
    assert_eq!(server.run().unwrap().reason, StopReason::Asked);
}

#[test]
fn the_seed_is_drawn_unless_it_is_given() {
    let seed = || Server::bind(&Config::solo()).unwrap().seed();
    assert_ne!(seed(), seed());
    let config = Config { seed: Some(42), ..Config::solo() };
    assert_eq!(Server::bind(&config).unwrap().seed(), 42);
}

#[test]
fn an_address_that_cannot_be_had_is_named() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap();
    let config = Config { listen: vec!["127.0.0.1:0".parse().unwrap(), addr], ..Config::solo() };
    assert_eq!(
        Server::bind(&config).unwrap_err().to_string(),
        format!("cannot listen on udp {addr}: Address already in use (os error 98)")
    );
}

#[test]
fn answers_to_those_who_are_gone_do_no_harm() {
    let server = Server::bind(&Config::solo()).unwrap();
    let addr = server.local_addrs()[0];
    let stop = server.handle();
    let thread = thread::spawn(|| server.run());
    // Questions from sockets that do not wait for the answer: port unreachable.
    for _ in 0..10 {
        stranger(addr).send(&question()).unwrap();
    }
    info(&stranger(addr));
    stop.stop();
    let summary = thread.join().unwrap().unwrap();
    assert_eq!(summary.counters.received, 11);
    assert_eq!(summary.sent + summary.unsent, 11);
}

#[test]
fn a_burst_is_read_to_its_end_without_waiting_for_the_tick() {
    let mut config = Config::solo();
    config.session.tick_rate = 1;
    let server = Server::bind(&config).unwrap();
    let socket = stranger(server.local_addrs()[0]);
    // More than two turns read: one before the kernel has told of the datagrams, one because it
    // did. Nothing more comes that would wake the loop.
    for _ in 0..530 {
        socket.send(b"noise").unwrap();
    }
    socket.send(&question()).unwrap();
    let stop = server.handle();
    let start = Instant::now();
    let thread = thread::spawn(|| server.run());
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket.recv(&mut [0; 256]).unwrap();
    let elapsed = start.elapsed();
    assert!(elapsed < Duration::from_millis(500), "{elapsed:?}, the first tick comes after 1 s");
    stop.stop();
    let summary = thread.join().unwrap().unwrap();
    assert_eq!(summary.counters.dropped(DropReason::Malformed), 530);
}

/// A flood on one socket must not cost the others their answers: more wait in six sockets than the
/// session keeps answers for.
#[test]
fn answers_to_a_turn_of_many_sockets_are_all_sent() {
    let mut config = Config::solo();
    config.listen = vec!["127.0.0.1:0".parse().unwrap(); 6];
    config.session.strangers.total_per_second = 1_000_000;
    let server = Server::bind(&config).unwrap();
    let sockets: Vec<_> = server.local_addrs().iter().map(|addr| stranger(*addr)).collect();
    for socket in &sockets {
        // Within one turn's budget, and within what any kernel holds for a socket.
        for _ in 0..200 {
            socket.send(&[0x4C, 0x52, 1, 6, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
        }
    }
    let stop = server.handle();
    let thread = thread::spawn(|| server.run());
    for socket in &sockets {
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        for number in 0..200 {
            let pong = socket.recv(&mut [0; 64]);
            assert_eq!(pong.ok(), Some(14), "Pong {number}");
        }
    }
    stop.stop();
    let summary = thread.join().unwrap().unwrap();
    assert_eq!(summary.counters.dropped(DropReason::Full), 0);
    assert_eq!(summary.sent, 6 * 200);
}

/// A client, and the ticks of the states that it got.
struct Guest {
    socket: UdpSocket,
    client: Client,
    ticks: Vec<u32>,
}

impl Guest {
    fn new(server: SocketAddr, clock: Clock, number: u64) -> Self {
        let socket = stranger(server);
        socket.set_nonblocking(true).unwrap();
        let config = ClientConfig { name: Some(format!("p{number}")), ..ClientConfig::default() };
        let client = Client::new(config, Box::new(SplitMix::new(number)), clock.now());
        Self { socket, client, ticks: Vec::new() }
    }

    fn turn(&mut self, clock: Clock) {
        let mut buf = [0; 2048];
        while let Ok(len) = self.socket.recv(&mut buf) {
            let header = HeaderView::parse(&buf[..len]).unwrap();
            if header.packet_type() == PacketType::STATE {
                self.ticks.push(u32::from_le_bytes(buf[6..10].try_into().unwrap()));
            }
            self.client.handle_datagram(clock.now(), &buf[..len]);
        }
        self.client.handle_timeout(clock.now());
        while self.client.poll_event().is_some() {}
        while let Some(len) = self.client.poll_transmit(clock.now(), &mut buf) {
            self.socket.send(&buf[..len]).unwrap();
        }
    }

    fn has_all(&self) -> bool {
        self.client.player().is_some() && !self.client.misses_chunks() && self.ticks.len() >= 10
    }
}

/// More players than an outbox has room for, and those of the other thread alone, too.
#[test]
fn with_two_threads_everybody_gets_all_chunks_and_all_ticks_in_order() {
    const PLAYERS: u64 = 120;
    let mut config = Config::solo();
    config.threads = 2;
    config.session.max_players = PLAYERS as usize;
    let server = Server::bind(&config).unwrap();
    let (addr, stop, clock) = (server.local_addrs()[0], server.handle(), Clock::start());
    let thread = thread::spawn(|| server.run());
    let mut guests: Vec<_> = (0..PLAYERS).map(|number| Guest::new(addr, clock, number)).collect();
    let until = Instant::now() + common::PATIENCE;
    while !guests.iter().all(Guest::has_all) {
        assert!(
            Instant::now() < until,
            "{} have all",
            guests.iter().filter(|g| g.has_all()).count()
        );
        guests.iter_mut().for_each(|guest| guest.turn(clock));
        thread::sleep(Duration::from_millis(2));
    }
    stop.stop();
    let summary = thread.join().unwrap().unwrap();
    assert_eq!((summary.reason, summary.unsent), (StopReason::Asked, 0));
    let states: usize = guests.iter().map(|guest| guest.ticks.len()).sum();
    assert!(summary.sent > states as u64, "all that went is counted");
    for guest in guests {
        let ahead = guest.ticks.windows(2).all(|pair| pair[0] < pair[1]);
        assert!(ahead, "{:?}", guest.ticks);
    }
}
