//! Datagrams from the kernel and to it, many with one call.
//!
//! On Linux `recvmmsg` and `sendmmsg` save a part of what each call costs, and several datagrams to one
//! peer go as one that the kernel (or the network card) cuts again: segmentation offload, which saves
//! a walk through the kernel each. What pays is measured by `cargo bench -p caves-benches --bench wires`.
//! Elsewhere, and where a kernel refuses, each datagram goes by itself.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;

use caves_session::{Peer, Transmit};
use caves_wire::MAX_DATAGRAM;
use mio::net::UdpSocket;

mod cores;
mod post;

pub(crate) use post::{Gone, Post};

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

    const fn is_single(&self) -> bool {
        self.segments == 1
    }

    /// Where it stands among others: what one call can hand over stands together, in the order in which it was
    /// written. So one datagram of a peer may overtake one of another kind, as any network may do.
    const fn place(&self) -> (u16, bool, usize, usize) {
        let is_single = self.is_single();
        let segment = if is_single { 0 } else { self.segment };
        (self.to.socket, is_single, segment, self.bytes.start)
    }

    /// Whether one call can hand over both.
    fn goes_with(&self, other: &Self) -> bool {
        let alike = self.is_single() && other.is_single()
            || !self.is_single() && !other.is_single() && self.segment == other.segment;
        self.to.socket == other.to.socket && alike
    }
}

/// Datagrams that wait to be handed over, or were.
pub(crate) struct Outbox {
    arena: Box<[u8]>,
    used: usize,
    entries: Vec<Entry>,
    /// What the kernel did not take: which entry, which datagram of it, and why.
    failed: Vec<(usize, usize, io::Error)>,
    /// Whether the kernel cuts entries into datagrams, as far as its carrier knows.
    offloads: bool,
    /// Whether datagrams to one peer are to be one entry.
    joins: bool,
}

impl Outbox {
    pub(crate) fn new() -> Self {
        Self {
            arena: vec![0; ARENA].into(),
            used: 0,
            entries: Vec::with_capacity(ENTRIES),
            failed: Vec::new(),
            offloads: Sender::OFFLOADS,
            joins: true,
        }
    }

    /// Whether datagrams to one peer go as one from now on. On the machine itself a recording shows them
    /// before they are cut, as one that is too long: with few players that would puzzle more than it saves.
    pub(crate) const fn set_joins(&mut self, joins: bool) {
        self.joins = joins;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.entries.len() == ENTRIES || ARENA - self.used < MAX_DATAGRAM
    }

    /// Where the next datagram is to be written; `None` when this has to be handed over first.
    pub(crate) fn room(&mut self) -> Option<&mut [u8]> {
        (!self.is_full()).then(|| &mut self.arena[self.used..])
    }

    /// The datagram that was just written into the room.
    pub(crate) fn push(&mut self, Transmit { to, len }: Transmit) {
        let bytes = self.used..self.used + len;
        self.used = bytes.end;
        match self.entries.last_mut() {
            Some(last) if self.joins && self.offloads && last.takes(to, len) => {
                last.bytes.end = bytes.end;
                last.segments += 1;
            }
            _ => self.entries.push(Entry { to, bytes, segment: len, segments: 1 }),
        }
    }

    /// The datagram that was just written into the room is another outbox's, which has room.
    pub(crate) fn copy_to(&self, other: &mut Self, transmit: Transmit) {
        let written = &self.arena[self.used..self.used + transmit.len];
        other.arena[other.used..other.used + transmit.len].copy_from_slice(written);
        other.push(transmit);
    }

    /// Tells what became of each datagram, and is empty then.
    pub(crate) fn settle(&mut self, mut tell: impl FnMut(&[u8], io::Result<()>)) {
        let mut failed = self.failed.drain(..).peekable();
        for (place, entry) in self.entries.iter().enumerate() {
            let datagrams = self.arena[entry.bytes.clone()].chunks(entry.segment);
            for (segment, datagram) in datagrams.enumerate() {
                let error = failed.next_if(|(at, of, _)| (*at, *of) == (place, segment));
                tell(datagram, error.map_or(Ok(()), |(.., error)| Err(error)));
            }
        }
        drop(failed);
        self.entries.clear();
        self.used = 0;
    }
}

/// Hands outboxes to the kernel. It belongs to the thread that does.
pub(crate) struct Carrier {
    sender: Sender,
    /// Whether this kernel cuts entries into datagrams.
    offloads: bool,
}

impl Carrier {
    pub(crate) fn new() -> Self {
        Self { sender: Sender::new(), offloads: Sender::OFFLOADS }
    }

    /// Hands everything over; what was not taken is noted in the outbox. One datagram that the kernel does not
    /// take holds up no other.
    pub(crate) fn carry(&mut self, outbox: &mut Outbox, sockets: &[Arc<UdpSocket>]) {
        let Outbox { arena, entries, failed, .. } = &mut *outbox;
        entries.sort_unstable_by_key(Entry::place);
        let mut rest = 0;
        while let Some(first) = entries.get(rest) {
            let run = entries[rest..].iter().take_while(|next| next.goes_with(first)).count();
            let Some(socket) = sockets.get(usize::from(first.to.socket)) else {
                fail(failed, rest, first, ErrorKind::NotFound.into());
                rest += 1;
                continue;
            };
            match self.sender.send(socket, arena, &entries[rest..rest + run]) {
                Ok(taken) => rest += taken.max(1),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if !first.is_single() && is_refusal(&error) => {
                    self.was_refused(&error);
                    let datagrams = arena[first.bytes.clone()].chunks(first.segment).enumerate();
                    failed.extend(datagrams.filter_map(|(segment, datagram)| {
                        let sent = alone(socket, datagram, first.to.addr);
                        sent.err().map(|error| (rest, segment, error))
                    }));
                    rest += 1;
                }
                Err(error) => {
                    fail(failed, rest, first, error);
                    rest += 1;
                }
            }
        }
        outbox.offloads = self.offloads;
    }

    /// The kernel does not cut this one. Where it says that it never does, no more are tried; where
    /// it minds the length, another peer's path may take it.
    fn was_refused(&mut self, error: &io::Error) {
        if error.kind() != ErrorKind::InvalidInput && self.offloads {
            self.offloads = false;
            tracing::info!(%error, "no segmentation offload here: each datagram goes by itself");
        }
    }
}

/// None of an entry's datagrams went.
fn fail(failed: &mut Vec<(usize, usize, io::Error)>, at: usize, entry: &Entry, error: io::Error) {
    let kind = error.kind();
    failed.push((at, 0, error));
    failed.extend((1..entry.segments).map(|segment| (at, segment, kind.into())));
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
