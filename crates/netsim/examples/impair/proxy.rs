//! A UDP proxy that treats datagrams as a bad line would.
//!
//! ```text
//!   client A --.                        .-- socket of A --.
//!   client B ---> listening socket ---> |-- socket of B --|--> server
//!   client C --'    (up: a Link each)   '-- socket of C --'
//!                                (down: a Link each, the way back)
//! ```
//!
//! Each client has a socket of its own towards the server, so that the server sees as many
//! addresses as there are clients, and a pair of links of its own, so that one line's losses and
//! rate do not touch another's. Only `std` and `caves_netsim` are used: a test of another package
//! takes this file in by its path.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "its purpose is IO")]
#![allow(dead_code, unreachable_pub, reason = "each program that takes this file in uses a part")]

use caves_netsim::{Link, LinkConfig, SplitMix64, Stats, flip_bits};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Clients at once; datagrams of further ones are dropped, and counted as a full queue.
const MAX_CLIENTS: usize = 256;

/// A client that sent nothing for so long is forgotten.
const IDLE: Duration = Duration::from_secs(30);

/// Datagrams taken from one socket before the others have their turn.
const BUDGET: usize = 64;

/// The longest pause between two looks at the sockets.
const PAUSE: Duration = Duration::from_millis(1);

/// The largest UDP payload and a bit.
const BUFFER: usize = 65_536;

/// What the proxy does in each direction.
#[derive(Clone, Copy, Debug)]
pub struct ProxyConfig {
    /// From the clients to the server.
    pub up: LinkConfig,
    /// From the server to the clients.
    pub down: LinkConfig,
    /// The first client's links follow from it, then the second's, and so on.
    pub seed: u64,
}

/// A running proxy; it ends with [`stop`](Self::stop) or when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    commands: Sender<Command>,
    thread: JoinHandle<(Stats, Stats)>,
}

#[derive(Debug)]
enum Command {
    SetLinks { up: LinkConfig, down: LinkConfig },
    Stop,
}

impl Proxy {
    /// Listens on `listen` (port 0 for any) and passes on to `to`, in a thread of its own.
    ///
    /// # Errors
    ///
    /// The socket cannot be opened, or the thread cannot be started.
    pub fn start(listen: SocketAddr, to: SocketAddr, config: ProxyConfig) -> io::Result<Self> {
        let socket = UdpSocket::bind(listen)?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        let (commands, received) = channel();
        let relay = Relay::new(socket, to, config);
        let thread =
            thread::Builder::new().name("impair".into()).spawn(move || relay.run(&received))?;
        Ok(Self { address, commands, thread })
    }

    /// The address that clients talk to.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Other settings for all clients, within some milliseconds; the seed stays.
    pub fn set_config(&self, up: LinkConfig, down: LinkConfig) {
        // Fails only when the thread has panicked, which `stop` reports.
        let _ = self.commands.send(Command::SetLinks { up, down });
    }

    /// Ends it, drops what is on the way, and tells what was done up and down.
    ///
    /// # Panics
    ///
    /// If the thread panicked.
    pub fn stop(self) -> (Stats, Stats) {
        let _ = self.commands.send(Command::Stop);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// The thread's state: the sockets and what is on the way between them.
struct Relay {
    socket: UdpSocket,
    to: SocketAddr,
    config: ProxyConfig,
    seeds: SplitMix64,
    clients: BTreeMap<SocketAddr, Client>,
    /// What was done for clients that are forgotten.
    past: (Stats, Stats),
    start: Instant,
    buffer: Vec<u8>,
}

struct Client {
    socket: UdpSocket,
    up: Link<Vec<u8>>,
    down: Link<Vec<u8>>,
    heard: Instant,
}

impl Relay {
    fn new(socket: UdpSocket, to: SocketAddr, config: ProxyConfig) -> Self {
        Self {
            socket,
            to,
            config,
            seeds: SplitMix64::new(config.seed),
            clients: BTreeMap::new(),
            past: (Stats::default(), Stats::default()),
            start: Instant::now(),
            buffer: vec![0; BUFFER],
        }
    }

    fn run(mut self, commands: &Receiver<Command>) -> (Stats, Stats) {
        loop {
            match commands.try_recv() {
                Ok(Command::SetLinks { up, down }) => self.set_links(up, down),
                Ok(Command::Stop) | Err(TryRecvError::Disconnected) => return self.totals(),
                Err(TryRecvError::Empty) => {}
            }
            let busy = self.receive_from_clients() | self.receive_from_server();
            self.deliver();
            self.forget_idle();
            if !busy {
                thread::sleep(self.pause());
            }
        }
    }

    fn set_links(&mut self, up: LinkConfig, down: LinkConfig) {
        (self.config.up, self.config.down) = (up, down);
        for client in self.clients.values_mut() {
            client.up.set_config(up);
            client.down.set_config(down);
        }
    }

    fn totals(&self) -> (Stats, Stats) {
        let (mut up, mut down) = self.past;
        for client in self.clients.values() {
            up += client.up.stats();
            down += client.down.stats();
        }
        (up, down)
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_micros() as u64
    }

    fn receive_from_clients(&mut self) -> bool {
        for _ in 0..BUDGET {
            let Ok((length, from)) = self.socket.recv_from(&mut self.buffer) else {
                return false;
            };
            let now = self.now();
            let Some(client) = self.client(from) else {
                self.past.0.sent += 1;
                self.past.0.queue_full += 1;
                continue;
            };
            client.heard = Instant::now();
            let datagram = self.buffer[..length].to_vec();
            if let Some(client) = self.clients.get_mut(&from) {
                client.up.send(now, length, datagram);
            }
        }
        true
    }

    /// The client behind an address, a new one if need be; `None` if there are too many or no
    /// socket can be opened for it.
    fn client(&mut self, from: SocketAddr) -> Option<&mut Client> {
        if !self.clients.contains_key(&from) {
            if self.clients.len() >= MAX_CLIENTS {
                return None;
            }
            let client = Client::open(self.to, &self.config, &mut self.seeds).ok()?;
            self.clients.insert(from, client);
        }
        self.clients.get_mut(&from)
    }

    fn receive_from_server(&mut self) -> bool {
        let now = self.now();
        let mut busy = false;
        for client in self.clients.values_mut() {
            for turn in 1..=BUDGET {
                // A closed port on the other side is an error here; clients ask again.
                let Ok(length) = client.socket.recv(&mut self.buffer) else {
                    break;
                };
                client.down.send(now, length, self.buffer[..length].to_vec());
                busy |= turn == BUDGET;
            }
        }
        busy
    }

    fn deliver(&mut self) {
        let now = self.now();
        for (address, client) in &mut self.clients {
            // What the system does not take is lost like anything else on the way.
            while let Some(datagram) = client.up.poll(now) {
                let _ = client.send(&datagram);
            }
            while let Some(datagram) = client.down.poll(now) {
                let _ = self.socket.send_to(&datagram, address);
            }
        }
    }

    fn forget_idle(&mut self) {
        let past = &mut self.past;
        self.clients.retain(|_, client| {
            let keep = client.heard.elapsed() < IDLE;
            if !keep {
                past.0 += client.up.stats();
                past.1 += client.down.stats();
            }
            keep
        });
    }

    /// Until the next datagram is to be delivered, but never long: sockets are only looked at.
    fn pause(&self) -> Duration {
        let now = self.now();
        let arrivals = self.clients.values().flat_map(Client::next_arrivals);
        let next = arrivals.min().map(|at| Duration::from_micros(at.saturating_sub(now)));
        next.unwrap_or(PAUSE).min(PAUSE)
    }
}

impl Client {
    fn open(to: SocketAddr, config: &ProxyConfig, seeds: &mut SplitMix64) -> io::Result<Self> {
        let socket = UdpSocket::bind((towards(to.ip()), 0))?;
        socket.set_nonblocking(true)?;
        // Connected: only the server's datagrams come in.
        socket.connect(to)?;
        let mut up = Link::new(config.up, seeds.next_u64());
        let mut down = Link::new(config.down, seeds.next_u64());
        up.set_corruption(flip_bits);
        down.set_corruption(flip_bits);
        Ok(Self { socket, up, down, heard: Instant::now() })
    }

    fn send(&self, datagram: &[u8]) -> io::Result<usize> {
        match self.socket.send(datagram) {
            // The news that an earlier datagram found no server; this one was not sent yet.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                self.socket.send(datagram)
            }
            result => result,
        }
    }

    fn next_arrivals(&self) -> impl Iterator<Item = u64> {
        self.up.next_arrival().into_iter().chain(self.down.next_arrival())
    }
}

/// The local address for talking to `server`.
fn towards(server: IpAddr) -> IpAddr {
    match server {
        // A server that trusts the loopback must not see another address.
        local if local.is_loopback() => local,
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}
