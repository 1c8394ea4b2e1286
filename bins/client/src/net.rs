//! The socket, and which of the server's addresses it speaks to.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use caves_link::time::{Deadline, Instant};
use mio::net::UdpSocket;
use mio::{Interest, Registry, Token};

/// Datagrams read before anything else has its turn.
const RECEIVE_BUDGET: usize = 512;
/// How long the first address is tried; twice as long in each round through all of them.
const FIRST_PATIENCE: Duration = Duration::from_secs(1);
/// The longest that one address is tried.
const LONGEST_PATIENCE: Duration = Duration::from_secs(8);

/// What the kernel gives and takes. It is not connected to its peer: so it goes on when this
/// machine gets another address, as a laptop does.
#[derive(Debug)]
pub(crate) struct Socket {
    udp: UdpSocket,
    token: Token,
    servers: Vec<SocketAddr>,
    at: usize,
    /// When to try the next address; never once one has answered, or where there is only one.
    next: Deadline,
    patience: Duration,
    /// Something may wait: the kernel tells of it once, and not again until all was read.
    ready: bool,
}

impl Socket {
    /// A socket to the first of some addresses that one can be had for.
    ///
    /// # Errors
    /// There is no address, or the kernel gives no socket for any of them.
    pub(crate) fn open(
        servers: Vec<SocketAddr>,
        registry: &Registry,
        token: Token,
        now: Instant,
    ) -> io::Result<Self> {
        let mut last = io::Error::new(ErrorKind::NotFound, "the server has no address");
        for at in 0..servers.len() {
            match bound(servers[at], registry, token) {
                Ok(udp) => {
                    let patience = FIRST_PATIENCE;
                    let next = if servers.len() > 1 {
                        Deadline::at(now + patience)
                    } else {
                        Deadline::NEVER
                    };
                    return Ok(Self { udp, token, servers, at, next, patience, ready: true });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The kernel says that something waits.
    pub(crate) const fn wake(&mut self) {
        self.ready = true;
    }

    /// Whether reading stopped before all was read.
    pub(crate) const fn has_more(&self) -> bool {
        self.ready
    }

    /// Hands what waits to `take`, datagram by datagram, within a budget.
    pub(crate) fn receive(&mut self, buf: &mut [u8], mut take: impl FnMut(&[u8])) {
        for _ in 0..RECEIVE_BUDGET {
            match self.udp.recv_from(buf) {
                Ok((len, from)) if self.is_server(from) => {
                    // Somebody is there.
                    self.next.clear();
                    take(&buf[..len]);
                }
                // Whoever else guesses the port is not heard.
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.ready = false;
                    return;
                }
                // Word of an earlier datagram that did not arrive, or a network that is away:
                // silence tells the player, and time may mend it. What else waits is read at the
                // next wake.
                Err(_) => {
                    self.ready = false;
                    return;
                }
            }
        }
    }

    fn is_server(&self, from: SocketAddr) -> bool {
        let server = self.servers[self.at];
        (from.ip(), from.port()) == (server.ip(), server.port())
    }

    /// Sends a datagram. One that the kernel does not take is lost, as others are underway: what
    /// matters is repeated.
    pub(crate) fn send(&self, datagram: &[u8]) {
        while let Err(error) = self.udp.send_to(datagram, self.servers[self.at]) {
            if error.kind() != ErrorKind::Interrupted {
                return;
            }
        }
    }

    /// Goes on to the next address when this one has had its time.
    pub(crate) fn handle_timeout(&mut self, registry: &Registry, now: Instant) {
        if !self.next.is_due(now) {
            return;
        }
        self.at = (self.at + 1) % self.servers.len();
        if self.at == 0 {
            self.patience = (self.patience * 2).min(LONGEST_PATIENCE);
        }
        self.next.set(now + self.patience);
        // IPv4 and IPv6 need sockets of their own; where there is none this address waits for the
        // next round.
        if let Ok(udp) = bound(self.servers[self.at], registry, self.token) {
            self.udp = udp;
            self.ready = true;
        }
    }

    /// When to call [`Socket::handle_timeout`] at the latest.
    pub(crate) const fn poll_timeout(&self) -> Option<Instant> {
        self.next.get()
    }
}

fn bound(to: SocketAddr, registry: &Registry, token: Token) -> io::Result<UdpSocket> {
    let any: SocketAddr = match to {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let mut udp = UdpSocket::bind(any)?;
    registry.register(&mut udp, token, Interest::READABLE)?;
    Ok(udp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mio::Poll;

    fn server() -> (std::net::UdpSocket, SocketAddr) {
        let udp = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        udp.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let addr = udp.local_addr().unwrap();
        (udp, addr)
    }

    fn received(socket: &mut Socket) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        socket.receive(&mut [0; 100], |datagram| all.push(datagram.to_vec()));
        all
    }

    #[test]
    fn the_next_address_is_tried_until_one_answers() {
        let ((silent, first), (live, second)) = (server(), server());
        let poll = Poll::new().unwrap();
        let now = Instant::from_secs(1);
        let mut socket = Socket::open(vec![first, second], poll.registry(), Token(0), now).unwrap();
        socket.send(b"one");
        let mut buf = [0; 100];
        assert_eq!(silent.recv(&mut buf).unwrap(), 3);

        let due = now + Duration::from_secs(1);
        assert_eq!(socket.poll_timeout(), Some(due));
        socket.handle_timeout(poll.registry(), due);
        socket.send(b"two!");
        let (len, from) = live.recv_from(&mut buf).unwrap();
        assert_eq!(len, 4);
        live.send_to(b"here", from).unwrap();
        assert_eq!(received(&mut socket), [b"here"]);
        assert_eq!(socket.poll_timeout(), None, "it stays with who answered");
        assert!(!socket.has_more());
    }

    #[test]
    fn each_round_waits_longer_and_begins_anew() {
        let ((_one, first), (_two, second)) = (server(), server());
        let poll = Poll::new().unwrap();
        let mut now = Instant::from_secs(1);
        let mut socket = Socket::open(vec![first, second], poll.registry(), Token(0), now).unwrap();
        let mut waits = Vec::new();
        for _ in 0..10 {
            let due = socket.poll_timeout().unwrap();
            waits.push(due.saturating_since(now).as_secs());
            now = due;
            socket.handle_timeout(poll.registry(), now);
        }
        assert_eq!(waits, [1, 1, 2, 2, 4, 4, 8, 8, 8, 8]);
    }

    #[test]
    fn strangers_are_not_heard() {
        let ((live, addr), (stranger, _)) = (server(), server());
        let poll = Poll::new().unwrap();
        let mut socket =
            Socket::open(vec![addr], poll.registry(), Token(0), Instant::ZERO).unwrap();
        socket.send(b"hello");
        let (_, from) = live.recv_from(&mut [0; 10]).unwrap();
        stranger.send_to(b"lies", from).unwrap();
        live.send_to(b"truth", from).unwrap();
        assert_eq!(received(&mut socket), [b"truth"]);
    }

    #[test]
    fn without_an_address_there_is_no_socket() {
        let poll = Poll::new().unwrap();
        assert!(Socket::open(Vec::new(), poll.registry(), Token(0), Instant::ZERO).is_err());
    }
}
