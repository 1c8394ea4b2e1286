//! What it costs to hand a tick to the kernel and to read what came, in each of the ways there are.
//!
//!     cargo bench -p caves-benches --bench wires
//!
//! A thousand sockets of the loopback are sent 72 and 1200 bytes each, and send 74. Processor time of this
//! thread, which on the loopback holds the way through the kernel to the receiver's queue; medians over
//! rounds in which all ways take turns.

#![allow(clippy::print_stdout, reason = "the table is the purpose")]

use std::io::{IoSlice, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{
    ControlMessage, MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg, sendmmsg, sendmsg,
};
use nix::time::{ClockId, clock_gettime};

const CLIENTS: usize = 1000;
const ROUNDS: usize = 30;
const STATE: [u8; 72] = [3; 72];
const ENTITIES: [u8; 1200] = [7; 1200];
const STEP: [u8; 74] = [5; 74];
/// Messages in one call.
const BATCH: usize = 64;
const READ: usize = 32;
/// Clients that send before the server reads: so many fit its buffer.
const AT_ONCE: usize = 100;

type Headers = MultiHeaders<SockaddrStorage>;

struct Ground {
    server: UdpSocket,
    clients: Vec<UdpSocket>,
    addrs: Vec<SocketAddr>,
    storages: Vec<Option<SockaddrStorage>>,
    /// The entities, and the state behind them.
    both: Vec<u8>,
}

type Way = (&'static str, fn(&Ground) -> Result<Duration>);

const SENDING: [Way; 4] = [
    ("2 x send_to", plain),
    ("sendmmsg of 64", batches),
    ("GSO, sendmsg for each", segments),
    ("GSO in sendmmsg of 64", segments_in_batches),
];
const READING: [Way; 2] = [("recv_from", one_by_one), ("recvmmsg of 32", many)];

fn main() -> Result<()> {
    let ground = Ground::new()?;
    for (title, ways) in [("to send", &SENDING[..]), ("to read", &READING[..])] {
        let mut times = vec![Vec::with_capacity(ROUNDS); ways.len()];
        for _ in 0..ROUNDS {
            for ((_, way), times) in ways.iter().zip(&mut times) {
                times.push(way(&ground)?);
            }
        }
        let medians: Vec<f64> = times.into_iter().map(median).collect();
        println!("us {title} what one client gets in a tick, and the share of the first");
        for ((name, _), median) in ways.iter().zip(&medians) {
            println!("  {name:24} {median:6.2}  {:4.2}", median / medians[0]);
        }
    }
    Ok(())
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e6 / CLIENTS as f64
}

fn cpu() -> Result<Duration> {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
    Ok(Duration::new(time.tv_sec().try_into()?, time.tv_nsec().try_into()?))
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let before = cpu()?;
    work()?;
    Ok(cpu()? - before)
}

fn socket() -> Result<UdpSocket> {
    let socket = UdpSocket::bind(("127.0.0.1", 0))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

impl Ground {
    fn new() -> Result<Self> {
        let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
        setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
        let clients = (0..CLIENTS).map(|_| socket()).collect::<Result<Vec<_>>>()?;
        let addrs = clients.iter().map(UdpSocket::local_addr).collect::<Result<Vec<_>, _>>()?;
        let storages = addrs.iter().map(|addr| Some((*addr).into())).collect();
        let both = [&ENTITIES[..], &STATE[..]].concat();
        Ok(Self { server: socket()?, clients, addrs, storages, both })
    }

    /// Everybody got both datagrams.
    fn drain(&self) -> Result<()> {
        let mut buf = [0; 2048];
        for client in &self.clients {
            let bytes: usize = std::iter::from_fn(|| client.recv(&mut buf).ok()).sum();
            ensure!(bytes == STATE.len() + ENTITIES.len(), "{bytes} bytes came");
        }
        Ok(())
    }

    fn sent(&self, work: impl FnOnce() -> Result<()>) -> Result<Duration> {
        let time = timed(work)?;
        self.drain()?;
        Ok(time)
    }

    /// Some send, then all is read, until everybody has.
    fn read(&self, mut read: impl FnMut() -> Result<usize>) -> Result<Duration> {
        let to = self.server.local_addr()?;
        let mut time = Duration::ZERO;
        for clients in self.clients.chunks(AT_ONCE) {
            for client in clients {
                client.send_to(&STEP, to)?;
            }
            let mut count = 0;
            time += timed(|| {
                count = read()?;
                Ok(())
            })?;
            ensure!(count == clients.len(), "{count} were read");
        }
        Ok(time)
    }
}

fn plain(ground: &Ground) -> Result<Duration> {
    ground.sent(|| {
        for addr in &ground.addrs {
            ground.server.send_to(&STATE, addr)?;
            ground.server.send_to(&ENTITIES, addr)?;
        }
        Ok(())
    })
}

fn segments(ground: &Ground) -> Result<Duration> {
    let (len, slices) = (ENTITIES.len() as u16, [IoSlice::new(&ground.both)]);
    let cut = [ControlMessage::UdpGsoSegments(&len)];
    let socket = ground.server.as_raw_fd();
    ground.sent(|| {
        for addr in &ground.storages {
            sendmsg(socket, &slices, &cut, MsgFlags::empty(), addr.as_ref())?;
        }
        Ok(())
    })
}

fn batches(ground: &Ground) -> Result<Duration> {
    let mut headers = Headers::preallocate(BATCH, None);
    let slices: Vec<_> = [&STATE[..], &ENTITIES].map(|bytes| [IoSlice::new(bytes)]).into();
    let slices: Vec<_> = slices.iter().copied().cycle().take(BATCH).collect();
    let twice: Vec<_> = ground.storages.iter().flat_map(|addr| [*addr, *addr]).collect();
    ground.sent(|| hand_over(ground, &mut headers, &slices, &twice, &[]))
}

fn segments_in_batches(ground: &Ground) -> Result<Duration> {
    let mut headers = Headers::preallocate(BATCH, Some(nix::cmsg_space!(u16)));
    let slices = vec![[IoSlice::new(&ground.both)]; BATCH];
    let len = ENTITIES.len() as u16;
    let cut = [ControlMessage::UdpGsoSegments(&len)];
    ground.sent(|| hand_over(ground, &mut headers, &slices, &ground.storages, &cut))
}

fn hand_over(
    ground: &Ground,
    headers: &mut Headers,
    slices: &[[IoSlice<'_>; 1]],
    addrs: &[Option<SockaddrStorage>],
    control: &[ControlMessage<'_>],
) -> Result<()> {
    let socket = ground.server.as_raw_fd();
    for addrs in addrs.chunks(BATCH) {
        let slices = &slices[..addrs.len()];
        let sent = sendmmsg(socket, headers, slices, addrs, control, MsgFlags::empty())?.count();
        ensure!(sent == addrs.len(), "{sent} of {} were taken", addrs.len());
    }
    Ok(())
}

fn one_by_one(ground: &Ground) -> Result<Duration> {
    let mut buf = [0; 2048];
    ground.read(|| Ok(std::iter::from_fn(|| ground.server.recv_from(&mut buf).ok()).count()))
}

fn many(ground: &Ground) -> Result<Duration> {
    let mut headers = Headers::preallocate(READ, None);
    let mut slots = Box::new([[0; 2048]; READ]);
    let socket = ground.server.as_raw_fd();
    ground
        .read(|| {
            let mut count = 0;
            loop {
                let mut slices = slots.each_mut().map(|slot| [IoSliceMut::new(slot)]);
                let flags = MsgFlags::MSG_DONTWAIT;
                let read = recvmmsg(socket, &mut headers, slices.iter_mut(), flags, None);
                let Ok(read) = read else { return Ok(count) };
                count += read.filter(|message| message.address.is_some()).count();
            }
        })
        .context("reading many at once")
}
