//! The proxy of the example `impair` between real sockets of the loopback.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "tests real sockets")]

#[path = "../examples/impair/proxy.rs"]
mod proxy;

use caves_netsim::{Chance, LinkConfig, Stats};
use proxy::{Proxy, ProxyConfig};
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

const PERFECT: LinkConfig = LinkConfig::PERFECT;
/// Far longer than anything on the loopback should take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Long enough for a datagram that should not come.
const SILENCE: Duration = Duration::from_millis(150);

fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn socket(timeout: Duration) -> UdpSocket {
    let socket = UdpSocket::bind(any_port()).unwrap();
    socket.set_read_timeout(Some(timeout)).unwrap();
    socket
}

/// A client that talks to the proxy only.
fn client(proxy: &Proxy) -> UdpSocket {
    let socket = socket(PATIENCE);
    socket.connect(proxy.local_addr()).unwrap();
    socket
}

fn start(server: &UdpSocket, up: LinkConfig, down: LinkConfig) -> Proxy {
    let config = ProxyConfig { up, down, seed: 1 };
    Proxy::start(any_port(), server.local_addr().unwrap(), config).unwrap()
}

fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut buffer = [0; 2048];
    let length = socket.recv(&mut buffer).expect("a datagram");
    buffer[..length].to_vec()
}

/// Receives at the server and sends the same back, returns whom to.
fn echo(server: &UdpSocket) -> SocketAddr {
    let mut buffer = [0; 2048];
    let (length, from) = server.recv_from(&mut buffer).expect("a datagram");
    server.send_to(&buffer[..length], from).unwrap();
    from
}

/// Calls `send` with 0 to `count - 1`, and gives all that comes to the server meanwhile and until
/// it is silent. Received at the same time, since a socket's buffer holds some hundreds only.
fn collect(server: &UdpSocket, count: u32, send: impl Fn(u32) + Sync) -> Vec<Vec<u8>> {
    let mut arrived = Vec::new();
    let mut buffer = [0; 2048];
    server.set_read_timeout(Some(SILENCE)).unwrap();
    thread::scope(|scope| {
        let sender = scope.spawn(|| {
            for n in 0..count {
                send(n);
                thread::sleep(Duration::from_micros(if n % 20 == 0 { 3_000 } else { 0 }));
            }
        });
        loop {
            match server.recv(&mut buffer) {
                Ok(length) => arrived.push(buffer[..length].to_vec()),
                Err(_) if sender.is_finished() => break,
                Err(_) => {}
            }
        }
    });
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    arrived
}

#[test]
fn datagrams_pass_in_both_directions_unchanged() {
    let server = socket(PATIENCE);
    let proxy = start(&server, PERFECT, PERFECT);
    let client = client(&proxy);
    for size in [0, 1, 1200] {
        let datagram = vec![0xA5; size];
        client.send(&datagram).unwrap();
        echo(&server);
        assert_eq!(receive(&client), datagram);
    }
    let expected = Stats { sent: 3, delivered: 3, ..Stats::default() };
    assert_eq!(proxy.stop(), (expected, expected));
}

#[test]
fn every_client_has_its_own_address_at_the_server() {
    let server = socket(PATIENCE);
    let proxy = start(&server, PERFECT, PERFECT);
    let (a, b) = (client(&proxy), client(&proxy));
    a.send(b"from a").unwrap();
    let address_of_a = echo(&server);
    b.send(b"from b").unwrap();
    let address_of_b = echo(&server);
    assert_ne!(address_of_a, address_of_b);
    assert_eq!(receive(&a), b"from a");
    assert_eq!(receive(&b), b"from b");
    // The way back stays open.
    server.send_to(b"later", address_of_a).unwrap();
    assert_eq!(receive(&a), b"later");
}

#[test]
fn the_delay_is_waited_in_each_direction() {
    let server = socket(PATIENCE);
    let delayed = LinkConfig { delay: Duration::from_millis(60), ..PERFECT };
    let proxy = start(&server, delayed, delayed);
    let client = client(&proxy);
    let sent = Instant::now();
    client.send(b"x").unwrap();
    echo(&server);
    assert!(sent.elapsed() >= Duration::from_millis(60));
    receive(&client);
    assert!(sent.elapsed() >= Duration::from_millis(120));
    // Generous, since the machine may be busy.
    assert!(sent.elapsed() < Duration::from_millis(1200), "{:?}", sent.elapsed());
}

#[test]
fn losses_and_copies_are_those_that_are_counted() {
    let server = socket(PATIENCE);
    let up = LinkConfig { loss: Chance::percent(20), duplicate: Chance::percent(10), ..PERFECT };
    let proxy = start(&server, up, PERFECT);
    let client = client(&proxy);
    let arrived = collect(&server, 1000, |n| {
        client.send(&n.to_le_bytes()).unwrap();
    });
    let (up, down) = proxy.stop();
    assert_eq!(up.sent, 1000);
    // 200 and 80; the standard deviations are 13 and 9.
    assert!((130..270).contains(&up.lost), "{up:?}");
    assert!((40..150).contains(&up.duplicated), "{up:?}");
    assert_eq!(arrived.len() as u64, up.delivered);
    assert_eq!(up.delivered, 1000 - up.lost + up.duplicated);
    assert_eq!(down, Stats::default());
}

#[test]
fn damage_arrives() {
    let server = socket(PATIENCE);
    let proxy = start(&server, LinkConfig { corrupt: Chance::ALWAYS, ..PERFECT }, PERFECT);
    client(&proxy).send(&[0; 100]).unwrap();
    let arrived = receive(&server);
    assert_eq!(arrived.len(), 100);
    assert_ne!(arrived, [0; 100]);
}

#[test]
fn settings_change_while_it_runs() {
    let server = socket(PATIENCE);
    let proxy = start(&server, PERFECT, PERFECT);
    let client = client(&proxy);
    client.send(b"before").unwrap();
    assert_eq!(receive(&server), b"before");

    proxy.set_config(LinkConfig { down: true, ..PERFECT }, PERFECT);
    thread::sleep(Duration::from_millis(100));
    client.send(b"lost").unwrap();
    thread::sleep(Duration::from_millis(100));
    proxy.set_config(PERFECT, PERFECT);
    thread::sleep(Duration::from_millis(100));
    client.send(b"after").unwrap();
    assert_eq!(receive(&server), b"after");
    let (up, _) = proxy.stop();
    assert_eq!((up.sent, up.lost, up.delivered), (3, 1, 2));
}

#[test]
fn a_server_that_is_not_there_yet_is_no_end() {
    let reserved = socket(PATIENCE);
    let address = reserved.local_addr().unwrap();
    let proxy = start(&reserved, PERFECT, PERFECT);
    drop(reserved);
    let client = client(&proxy);
    for _ in 0..3 {
        client.send(b"anyone?").unwrap();
        thread::sleep(Duration::from_millis(20));
    }
    let server = UdpSocket::bind(address).unwrap();
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    client.send(b"now").unwrap();
    assert_eq!(receive(&server), b"now");
}

#[test]
fn more_clients_than_it_may_have_are_refused_and_counted() {
    let server = socket(PATIENCE);
    let proxy = start(&server, PERFECT, PERFECT);
    let clients: Vec<UdpSocket> = (0..258).map(|_| client(&proxy)).collect();
    let arrived = collect(&server, 258, |n| {
        clients[n as usize].send(&n.to_le_bytes()).unwrap();
    });
    assert_eq!(arrived.len(), 256);
    // Those that are in stay served.
    clients[0].send(b"again").unwrap();
    assert_eq!(receive(&server), b"again");
    let (up, _) = proxy.stop();
    assert_eq!((up.sent, up.queue_full, up.delivered), (259, 2, 257));
}

#[test]
fn a_port_in_use_is_an_error() {
    let taken = socket(PATIENCE);
    let address = taken.local_addr().unwrap();
    let config = ProxyConfig { up: PERFECT, down: PERFECT, seed: 1 };
    let error = Proxy::start(address, address, config).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
}

#[test]
fn a_dropped_proxy_frees_its_port() {
    let server = socket(PATIENCE);
    let proxy = start(&server, PERFECT, PERFECT);
    let address = proxy.local_addr();
    drop(proxy);
    let start = Instant::now();
    while UdpSocket::bind(address).is_err() {
        assert!(start.elapsed() < PATIENCE, "still bound");
        thread::sleep(Duration::from_millis(5));
    }
}
