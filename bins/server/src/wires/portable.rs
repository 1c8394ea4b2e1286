//! One datagram at a time, as every system can.

use std::io;
use std::net::SocketAddr;

use mio::net::UdpSocket;

use super::{Entry, Slots, alone};

pub(super) struct Receiver;

impl Receiver {
    pub(super) const fn new() -> Self {
        Self
    }

    /// Reads datagrams while there are any; at least one, or an error.
    pub(super) fn receive(
        &mut self,
        socket: &UdpSocket,
        slots: &mut Slots,
        heads: &mut Vec<(usize, SocketAddr)>,
    ) -> io::Result<()> {
        for slot in slots {
            match socket.recv_from(slot) {
                Ok(head) => heads.push(head),
                // It is asked for again.
                Err(_) if !heads.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

pub(super) struct Sender;

impl Sender {
    pub(super) const OFFLOADS: bool = false;

    pub(super) const fn new() -> Self {
        Self
    }

    pub(super) fn send(
        &mut self,
        socket: &UdpSocket,
        arena: &[u8],
        entries: &[Entry],
    ) -> io::Result<usize> {
        let Some(first) = entries.first() else { return Ok(0) };
        alone(socket, &arena[first.bytes.clone()], first.to.addr).map(|()| 1)
    }
}
