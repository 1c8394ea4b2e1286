//! What goes between an endpoint and its sockets.

use std::net::{IpAddr, SocketAddr};

/// The other end of a path: an address, seen from one of our sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Peer {
    /// Which of our sockets, counted by the caller.
    pub socket: u16,
    /// The remote address and port.
    pub addr: SocketAddr,
}

impl Peer {
    /// The address alone; an IPv4 address in IPv6 clothes is an IPv4 address.
    pub fn ip(&self) -> IpAddr {
        self.addr.ip().to_canonical()
    }
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.addr.fmt(f)
    }
}

/// A datagram to send: its bytes are in the buffer that was handed to `poll_transmit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmit {
    /// Where to.
    pub to: Peer,
    /// How many bytes of the buffer.
    pub len: usize,
}

/// Why a datagram was dropped. Nothing is answered to any of these but what R1 says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum DropReason {
    /// It does not decode (R28).
    Malformed,
    /// Another protocol version (R1).
    Version,
    /// A packet type that nobody knows, or one that only the other side sends (R28).
    PacketType,
    /// Its sender has spent the strangers' budget (R22).
    Budget,
    /// A token that opens nothing (R20).
    Token,
    /// A valid token from another address than the session's (R20).
    Address,
    /// An action that was executed or superseded (R18).
    OldAction,
    /// An action that already waits (R19).
    Repeated,
    /// Two actions wait already (R19).
    Waiting,
    /// A session's own budget of queries or pings is spent (R22, R23).
    Rate,
    /// Other bytes under a nonce in use, or a Welcome repeated too often (section 2).
    Join,
    /// A Join that has to wait until the session's old address is silent (section 2, recovery).
    Wait,
    /// An answer to no attempt under way, or to no question asked.
    Unasked,
    /// A tick too far from the newest one (R31), or older than what is known.
    Tick,
    /// A chunk that is not in the newest manifest (R12).
    Chunk,
    /// A queue is full.
    Full,
}

impl DropReason {
    /// All reasons, in the order of their counters.
    pub const ALL: [Self; 16] = [
        Self::Malformed,
        Self::Version,
        Self::PacketType,
        Self::Budget,
        Self::Token,
        Self::Address,
        Self::OldAction,
        Self::Repeated,
        Self::Waiting,
        Self::Rate,
        Self::Join,
        Self::Wait,
        Self::Unasked,
        Self::Tick,
        Self::Chunk,
        Self::Full,
    ];
}

/// What an endpoint has received, and what it dropped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams handed in.
    pub received: u64,
    dropped: [u64; DropReason::ALL.len()],
}

impl Counters {
    pub(crate) const fn drop(&mut self, reason: DropReason) {
        self.dropped[reason as usize] += 1;
    }

    /// Counts a datagram that was handed in, and why it was dropped, if it was.
    pub(crate) fn note<T>(
        &mut self,
        outcome: Result<T, DropReason>,
        dropped: impl FnOnce(DropReason) -> T,
    ) -> T {
        self.received += 1;
        outcome.unwrap_or_else(|reason| {
            self.drop(reason);
            dropped(reason)
        })
    }

    /// Datagrams dropped for one reason.
    pub const fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped[reason as usize]
    }

    /// Datagrams dropped for any reason.
    pub fn dropped_in_all(&self) -> u64 {
        self.dropped.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_counter() {
        for (place, reason) in DropReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, place);
        }
    }
}
