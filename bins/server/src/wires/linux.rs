//! The calls of Linux for many messages.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;

use mio::net::UdpSocket;
use nix::sys::socket::{
    ControlMessage, MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg, sendmmsg,
};

use super::{ENTRIES, Entry, SLOTS, Slots, alone};

pub(super) struct Receiver(MultiHeaders<SockaddrStorage>);

impl Receiver {
    pub(super) fn new() -> Self {
        Self(MultiHeaders::preallocate(SLOTS, None))
    }

    /// Reads up to [`SLOTS`] datagrams; at least one, or an error.
    pub(super) fn receive(
        &mut self,
        socket: &UdpSocket,
        slots: &mut Slots,
        heads: &mut Vec<(usize, SocketAddr)>,
    ) -> io::Result<()> {
        let mut slices = slots.each_mut().map(|slot| [IoSliceMut::new(slot)]);
        let flags = MsgFlags::MSG_DONTWAIT;
        let read = recvmmsg(socket.as_raw_fd(), &mut self.0, slices.iter_mut(), flags, None)?;
        // No UDP datagram is without a sender.
        heads.extend(read.map(|message| {
            let from = message.address.as_ref().and_then(address);
            (message.bytes, from.unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0))))
        }));
        Ok(())
    }
}

fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = storage.as_sockaddr_in().map(|v4| SocketAddrV4::from(*v4).into());
    v4.or_else(|| storage.as_sockaddr_in6().map(|v6| SocketAddrV6::from(*v6).into()))
}

pub(super) struct Sender {
    plain: MultiHeaders<SockaddrStorage>,
    /// With room for the length of a segment. Headers that once had it keep it.
    offload: MultiHeaders<SockaddrStorage>,
    addresses: Vec<Option<SockaddrStorage>>,
}

impl Sender {
    /// The kernel cuts one entry into datagrams, until it says otherwise.
    pub(super) const OFFLOADS: bool = true;

    pub(super) fn new() -> Self {
        Self {
            plain: MultiHeaders::preallocate(ENTRIES, None),
            offload: MultiHeaders::preallocate(ENTRIES, Some(nix::cmsg_space!(u16))),
            addresses: Vec::with_capacity(ENTRIES),
        }
    }

    /// Hands over entries that go together; how many were taken, at least one.
    pub(super) fn send(
        &mut self,
        socket: &UdpSocket,
        arena: &[u8],
        entries: &[Entry],
    ) -> io::Result<usize> {
        let [first, rest @ ..] = entries else { return Ok(0) };
        if rest.is_empty() && first.is_single() {
            return alone(socket, &arena[first.bytes.clone()], first.to.addr).map(|()| 1);
        }
        self.addresses.clear();
        self.addresses.extend(entries.iter().map(|entry| Some(entry.to.addr.into())));
        let slices: [[IoSlice<'_>; 1]; ENTRIES] = std::array::from_fn(|place| {
            let bytes = entries.get(place).map_or(&[][..], |entry| &arena[entry.bytes.clone()]);
            [IoSlice::new(bytes)]
        });
        // A segment is no longer than a datagram.
        let segment = first.segment as u16;
        let cut = [ControlMessage::UdpGsoSegments(&segment)];
        let (headers, control) = match first.is_single() {
            true => (&mut self.plain, &cut[..0]),
            false => (&mut self.offload, &cut[..]),
        };
        let slices = &slices[..entries.len()];
        let flags = MsgFlags::MSG_DONTWAIT;
        let sent = sendmmsg(socket.as_raw_fd(), headers, slices, &self.addresses, control, flags)?;
        Ok(sent.count())
    }
}
