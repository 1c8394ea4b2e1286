//! Datagrams from the kernel and to it, many with one call.
//!
//! On Linux `recvmmsg` and `sendmmsg` save a part of what each call costs, and several datagrams to one
//! peer go as one that the kernel (or the network card) cuts again: segmentation offload, which saves
//! a walk through the kernel each. What pays is measured by `cargo bench -p caves-benches --bench wires`.
//! Elsewhere, and where a kernel refuses, each datagram goes by itself.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::ops::Range;

use caves_session::{Peer, Transmit};
use caves_wire::MAX_DATAGRAM;
use mio::net::UdpSocket;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux::{Receiver, Sender};
#[cfg(not(target_os = "linux"))]
mod portable;
#[cfg(not(target_os = "linux"))]
use portable::{Receiver, Sender};

/// Longer than the longest valid datagram of 1200 bytes, so that one too long is seen as such.
const SLOT: usize = 2048;
/// Datagrams that are read with one call.
const SLOTS: usize = 32;
/// Entries that are handed over with one call.
const ENTRIES: usize = 64;
/// Bytes that wait for it: a full datagram and a state for each entry.
const ARENA: usize = ENTRIES * (MAX_DATAGRAM + 128);
/// Datagrams in one entry; the kernel takes up to 64 and 65,507 bytes.
const SEGMENTS: usize = 16;

type Slots = [[u8; SLOT]; SLOTS];

/// What came of asking a socket.
#[derive(Debug)]
pub(crate) enum Received {
    /// So many datagrams are in the inbox.
    Datagrams(usize),
    /// None waits.
    Nothing,
    /// Word that something sent earlier did not arrive; there may be more to read.
    Undelivered,
    /// The socket cannot be read just now.
    Failed(io::Error),
}

/// Datagrams that were read and not yet looked at.
pub(crate) struct Inbox {
    slots: Box<Slots>,
    /// Length and sender of each that was read.
    heads: Vec<(usize, SocketAddr)>,
    receiver: Receiver,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        let slots = Box::new([[0; SLOT]; SLOTS]);
        Self { slots, heads: Vec::with_capacity(SLOTS), receiver: Receiver::new() }
    }

    /// Reads what waits, up to a batch. What was in the inbox is gone.
    pub(crate) fn fill(&mut self, socket: &UdpSocket) -> Received {
        loop {
            self.heads.clear();
            return match self.receiver.receive(socket, &mut self.slots, &mut self.heads) {
                Ok(()) => Received::Datagrams(self.heads.len()),
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => continue,
                    ErrorKind::WouldBlock => Received::Nothing,
                    ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => {
                        Received::Undelivered
                    }
                    _ => Received::Failed(error),
                },
            };
        }
    }

    /// What was read, in order; one that is longer than any valid one is cut.
    pub(crate) fn datagrams(&self) -> impl Iterator<Item = (&[u8], SocketAddr)> + Clone {
        let slots = self.slots.iter().zip(&self.heads);
        slots.map(|(slot, (len, from))| (&slot[..(*len).min(SLOT)], *from))
    }
}

/// One or several datagrams to one peer.
#[derive(Debug, Clone)]
struct Entry {
    to: Peer,
    bytes: Range<usize>,
    /// Each datagram but the last is so long.
    segment: usize,
    segments: usize,
}

impl Entry {
    /// Whether one more of this length may follow: only the last may be shorter.
    fn takes(&self, to: Peer, len: usize) -> bool {
        self.to == to
            && self.segments < SEGMENTS
            && self.bytes.len() == self.segment * self.segments
            && (1..=self.segment).contains(&len)
    }

    fn is_single(&self) -> bool {
        self.segments == 1
    }

    /// Whether one call can hand over both.
    fn goes_with(&self, other: &Self) -> bool {
        let alike = self.is_single() && other.is_single()
            || !self.is_single() && !other.is_single() && self.segment == other.segment;
        self.to.socket == other.to.socket && alike
    }
}

/// Datagrams that wait to be handed over.
pub(crate) struct Outbox {
    arena: Box<[u8]>,
    used: usize,
    entries: Vec<Entry>,
    sender: Sender,
    /// Whether datagrams to one peer are to be one entry.
    joins: bool,
}

impl Outbox {
    pub(crate) fn new() -> Self {
        let arena = vec![0; ARENA].into();
        let entries = Vec::with_capacity(ENTRIES);
        Self { arena, used: 0, entries, sender: Sender::new(), joins: true }
    }

    /// Whether datagrams to one peer go as one from now on. On the machine itself a recording shows them
    /// before they are cut, as one that is too long: with few players that would puzzle more than it saves.
    pub(crate) const fn set_joins(&mut self, joins: bool) {
        self.joins = joins;
    }

    /// Where the next datagram is to be written; `None` when this has to be flushed first.
    pub(crate) fn room(&mut self) -> Option<&mut [u8]> {
        let is_full = self.entries.len() == ENTRIES || ARENA - self.used < MAX_DATAGRAM;
        (!is_full).then(|| &mut self.arena[self.used..])
    }

    /// The datagram that was just written into the room.
    pub(crate) fn push(&mut self, Transmit { to, len }: Transmit) {
        let bytes = self.used..self.used + len;
        self.used = bytes.end;
        match self.entries.last_mut() {
            Some(last) if self.joins && self.sender.offloads() && last.takes(to, len) => {
                last.bytes.end = bytes.end;
                last.segments += 1;
            }
            _ => self.entries.push(Entry { to, bytes, segment: len, segments: 1 }),
        }
    }

    /// Hands everything over, and tells what became of each datagram. One that the kernel does not take
    /// holds up no other.
    pub(crate) fn flush<'s>(
        &mut self,
        socket: impl Fn(u16) -> Option<&'s UdpSocket>,
        mut tell: impl FnMut(&[u8], io::Result<()>),
    ) {
        let mut rest = 0;
        while let Some(first) = self.entries.get(rest) {
            let run = self.entries[rest..].iter().take_while(|next| next.goes_with(first)).count();
            let Some(socket) = socket(first.to.socket) else {
                rest += 1;
                continue;
            };
            let entries = &self.entries[rest..rest + run];
            match self.sender.send(socket, &self.arena, entries) {
                Ok(taken) => {
                    for entry in entries.iter().take(taken.max(1)) {
                        let datagrams = self.arena[entry.bytes.clone()].chunks(entry.segment);
                        datagrams.for_each(|datagram| tell(datagram, Ok(())));
                    }
                    rest += taken.max(1);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if !first.is_single() && is_refusal(&error) => {
                    self.sender.was_refused(&error);
                    for datagram in self.arena[first.bytes.clone()].chunks(first.segment) {
                        tell(datagram, alone(socket, datagram, first.to.addr));
                    }
                    rest += 1;
                }
                Err(error) => {
                    let datagrams = self.arena[first.bytes.clone()].chunks(first.segment);
                    let kind = error.kind();
                    let mut error = Some(error);
                    for datagram in datagrams {
                        tell(datagram, Err(error.take().unwrap_or_else(|| kind.into())));
                    }
                    rest += 1;
                }
            }
        }
        self.entries.clear();
        self.used = 0;
    }
}

/// Whether it is about cutting one entry into datagrams, and not about the peer or the moment.
fn is_refusal(error: &io::Error) -> bool {
    const EIO: i32 = 5;
    let io_error = cfg!(unix) && error.raw_os_error() == Some(EIO);
    io_error || matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported)
}

/// Hands over one datagram.
fn alone(socket: &UdpSocket, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
    loop {
        match socket.send_to(datagram, to) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
