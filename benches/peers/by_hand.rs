//! Sockets alone: the floors. No session is looked up, nothing is checked, nothing encoded.

use std::io::{ErrorKind, IoSlice};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Instant;

use anyhow::{Context, Result};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    ControlMessage, MsgFlags, MultiHeaders, SockaddrStorage, sendmmsg, sendmsg,
};

use crate::course::{Course, ENTITIES, Messages, STATE, STEP, step};
use crate::drive::{self, Fleet, Serve};
use crate::reader::{Whole, drain};

/// A client says so to be let in, and is answered the same.
pub(crate) const HELLO: [u8; 1] = [b'?'];
/// Clients that one `sendmmsg` serves.
const BATCH: usize = 64;
/// What is asked of the kernel, as the server of this workspace does.
const KERNEL_BUFFER: usize = 4 << 20;
/// Those of a tick for a client.
const MESSAGES: u8 = 2;
/// Longer than any datagram here.
pub(crate) const ROOM: usize = 2048;

/// How the floor sends and waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Plain,
    Woken,
    Gso,
    GsoBatch,
}

/// A socket of the loopback that never blocks.
pub(crate) fn socket() -> Result<UdpSocket> {
    let socket = UdpSocket::bind(("127.0.0.1", 0))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// The same for a server, with room for what comes between two ticks.
pub(crate) fn server_socket() -> Result<UdpSocket> {
    let socket = socket()?;
    let options = socket2::SockRef::from(&socket);
    options.set_recv_buffer_size(KERNEL_BUFFER)?;
    options.set_send_buffer_size(KERNEL_BUFFER)?;
    Ok(socket)
}

/// The next datagram and where it came from, if one waits.
pub(crate) fn receive_from(
    socket: &UdpSocket,
    buf: &mut [u8],
) -> Result<Option<(usize, SocketAddr)>> {
    match socket.recv_from(buf) {
        Ok(received) => Ok(Some(received)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn serve(course: &Course, way: Way) -> Result<()> {
    let socket = server_socket()?;
    course.serve_at(socket.local_addr()?);
    let clients = Vec::with_capacity(course.clients);
    let segmented = vec![[0; ENTITIES + STATE]; BATCH];
    drive::serve(course, &mut Bare { socket, way, clients, messages: Messages::new(), segmented })
}

struct Bare {
    socket: UdpSocket,
    way: Way,
    clients: Vec<SocketAddr>,
    messages: Messages,
    /// For each client of a batch the larger message, then the smaller: segments of one send but the
    /// last are of one length.
    segmented: Vec<[u8; ENTITIES + STATE]>,
}

impl Serve for Bare {
    fn reads(&self) -> u32 {
        // The buffer holds about 6000 steps, and a machine with other work lets some of them wait for longer.
        self.clients.len().div_ceil(1000) as u32
    }

    fn receive(&mut self) -> Result<u64> {
        let (mut buf, mut steps) = ([0; ROOM], 0);
        while let Some((len, from)) = receive_from(&self.socket, &mut buf)? {
            if len == STEP {
                steps += 1;
            } else if !self.clients.contains(&from) {
                self.socket.send_to(&HELLO, from)?;
                self.clients.push(from);
            }
        }
        Ok(steps)
    }

    fn tick(&mut self, tick: u32) -> Result<()> {
        match self.way {
            Way::Plain | Way::Woken => self.send(tick),
            Way::Gso => self.send_segmented(tick),
            Way::GsoBatch => self.send_batches(tick),
        }
    }

    fn wait(&mut self, until: Instant) -> Result<()> {
        let left = until.saturating_duration_since(Instant::now());
        if self.way != Way::Woken {
            std::thread::sleep(left);
            return Ok(());
        }
        // Rather late than twice.
        let left = PollTimeout::try_from(left.as_micros().div_ceil(1000) as i32)?;
        match poll(&mut [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)], left) {
            Err(nix::errno::Errno::EINTR) => Ok(()),
            polled => Ok(polled.map(drop)?),
        }
    }
}

impl Bare {
    fn send(&mut self, tick: u32) -> Result<()> {
        for (client, to) in self.clients.iter().enumerate() {
            self.messages.mark(tick, client);
            self.socket.send_to(&self.messages.state, to)?;
            self.socket.send_to(&self.messages.entities, to)?;
        }
        Ok(())
    }

    fn send_segmented(&mut self, tick: u32) -> Result<()> {
        let segments = [ControlMessage::UdpGsoSegments(&(ENTITIES as u16))];
        for (client, to) in self.clients.iter().enumerate() {
            mark(&mut self.segmented[0], tick, client);
            let slices = [IoSlice::new(&self.segmented[0])];
            let to = SockaddrStorage::from(*to);
            sendmsg(self.socket.as_raw_fd(), &slices, &segments, MsgFlags::empty(), Some(&to))?;
        }
        Ok(())
    }

    fn send_batches(&mut self, tick: u32) -> Result<()> {
        let segments = [ControlMessage::UdpGsoSegments(&(ENTITIES as u16))];
        for (batch, clients) in self.clients.chunks(BATCH).enumerate() {
            for (place, buf) in self.segmented[..clients.len()].iter_mut().enumerate() {
                mark(buf, tick, batch * BATCH + place);
            }
            let slices = self.segmented[..clients.len()].iter().map(|buf| [IoSlice::new(buf)]);
            let slices: Vec<_> = slices.collect();
            let to: Vec<_> = clients.iter().map(|to| Some(SockaddrStorage::from(*to))).collect();
            // The headers point at what is gone after the call, so they are made anew.
            let mut headers = MultiHeaders::preallocate(clients.len(), Some(nix::cmsg_space!(u16)));
            let (socket, flags) = (self.socket.as_raw_fd(), MsgFlags::empty());
            let sent = sendmmsg(socket, &mut headers, &slices, &to, segments, flags)?;
            anyhow::ensure!(sent.count() == clients.len(), "the kernel took a part of a batch");
        }
        Ok(())
    }
}

fn mark(segmented: &mut [u8; ENTITIES + STATE], tick: u32, client: usize) {
    for start in [0, ENTITIES] {
        segmented[start..start + 4].copy_from_slice(&tick.to_le_bytes());
        segmented[start + 4..start + 8].copy_from_slice(&(client as u32).to_le_bytes());
    }
}

pub(crate) fn play(course: &Course) -> Result<()> {
    drive::play(course, &mut Sockets::new(course)?)
}

/// A socket for each client.
struct Sockets {
    clients: Vec<Client>,
    buf: [u8; ROOM],
}

struct Client {
    socket: UdpSocket,
    has_joined: bool,
    /// A tick, and the messages of it that came.
    parts: (u32, u8),
    whole: Whole,
}

impl Sockets {
    fn new(course: &Course) -> Result<Self> {
        let server = course.address()?;
        let client = |_| {
            let socket = socket()?;
            socket.connect(server).context("a client's socket")?;
            Ok(Client { socket, has_joined: false, parts: (0, 0), whole: Whole::default() })
        };
        let clients = (0..course.clients).map(client).collect::<Result<_>>()?;
        Ok(Self { clients, buf: [0; ROOM] })
    }
}

impl Fleet for Sockets {
    fn is_in(&self, client: usize) -> bool {
        self.clients[client].has_joined
    }

    fn turn(&mut self, course: &Course, client: usize) -> Result<()> {
        let (number, client, now) = (client, &mut self.clients[client], course.now());
        if client.has_joined && !client.whole.is_over(course, now) {
            return Ok(());
        }
        let Client { has_joined, parts, whole, .. } = client;
        drain(&client.socket, &mut self.buf, |message| {
            *has_joined = true;
            let Some(tick) = course.note_message(number, message) else { return };
            *parts = (tick, if parts.0 == tick { parts.1 + 1 } else { 1 });
            if parts.1 == MESSAGES {
                whole.set(tick, now);
            }
        })?;
        if !client.has_joined {
            client.socket.send(&HELLO)?;
        }
        Ok(())
    }

    fn step(&mut self, _: &Course, client: usize, round: u32) -> Result<()> {
        self.clients[client].socket.send(&step(round))?;
        Ok(())
    }
}
