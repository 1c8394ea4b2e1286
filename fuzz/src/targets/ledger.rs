//! What the session targets of the siblings share: who writes to a server, how many bytes came from
//! there and went there, and a line to an honest client.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

use caves_session::{Peer, StrangerLimits};

use super::script::Script;

/// Steps of one script: what comes after is not looked at, to keep one run short.
pub(super) const STEPS: usize = 300;
/// Datagrams of one flood: more than answers can wait.
pub(super) const FLOOD: usize = 1100;
/// Answers that a server keeps for strangers, or goodbyes.
pub(super) const ANSWERS: usize = 1024;
/// Datagrams under way to or from the honest client.
const UNDER_WAY: usize = 64;

/// Loopback, which has no limit per address, and others, which have. The last is the honest
/// client's, which others forge.
pub(super) fn peers() -> Vec<Peer> {
    let addresses = [
        "127.0.0.1:5000",
        "127.0.0.1:5001",
        "[::1]:5000",
        "192.0.2.1:7",
        "192.0.2.1:8",
        "[::ffff:192.0.2.1]:9",
        "[2001:db8::1]:7",
        "[2001:db8::2]:7",
        "198.51.100.1:7",
    ];
    let parsed = addresses.iter().map(|address| address.parse::<SocketAddr>());
    parsed.map(|addr| Peer { socket: 0, addr: addr.expect("an address") }).collect()
}

/// Budgets that let a script go on: what they keep out is `server_input`'s to check.
pub(super) fn limits(kind: u8) -> StrangerLimits {
    match kind % 3 {
        0 => StrangerLimits::default(),
        _ => StrangerLimits { per_second: 1000, burst: 10_000, ..StrangerLimits::default() },
    }
}

/// Bytes that came from each address and were not answered yet, while it has proven nothing.
#[derive(Default)]
pub(super) struct Ledger {
    credit: BTreeMap<Peer, usize>,
    proven: BTreeSet<Peer>,
}

impl Ledger {
    pub(super) fn came(&mut self, from: Peer, bytes: usize) {
        *self.credit.entry(from).or_default() += bytes;
    }

    /// Somebody there has shown what only the server could tell, or holds a session by its rules.
    pub(super) fn prove(&mut self, peer: Peer) {
        self.proven.insert(peer);
    }

    pub(super) fn is_proven(&self, peer: Peer) -> bool {
        self.proven.contains(&peer)
    }

    /// Panics where an address that never proved itself is sent more than came from it.
    pub(super) fn went(&mut self, to: Peer, bytes: usize) {
        if self.proven.contains(&to) {
            return;
        }
        let credit = self.credit.entry(to).or_default();
        assert!(*credit >= bytes, "{bytes} bytes to {to}, which has {credit} to its credit");
        *credit -= bytes;
    }
}

/// Datagrams between the server and the honest client; what finds no room is lost.
#[derive(Default)]
pub(super) struct Line {
    pub(super) up: VecDeque<Vec<u8>>,
    pub(super) down: VecDeque<Vec<u8>>,
}

impl Line {
    pub(super) fn push_up(&mut self, datagram: &[u8]) {
        push(&mut self.up, datagram);
    }

    pub(super) fn push_down(&mut self, datagram: &[u8]) {
        push(&mut self.down, datagram);
    }

    /// The next one to the server and how often it comes; one in eight is lost.
    pub(super) fn next_up(&mut self, fate: u8) -> Option<(Vec<u8>, usize)> {
        let datagram = self.up.pop_front().filter(|_| fate & 7 != 7)?;
        Some((datagram, 1 + usize::from(fate & 64 != 0)))
    }

    /// The next one to the client; one in eight is lost.
    pub(super) fn next_down(&mut self, fate: u8) -> Option<Vec<u8>> {
        self.down.pop_front().filter(|_| fate & 56 != 56)
    }

    /// A datagram of the server's that was changed, or any bytes.
    pub(super) fn to_client(&self, script: &mut Script<'_>) -> Vec<u8> {
        let place = usize::from(script.byte());
        match self.down.get(place) {
            Some(datagram) => {
                let mut datagram = datagram.clone();
                script.mutate(&mut datagram);
                datagram
            }
            None => script.bytes(place).to_vec(),
        }
    }
}

fn push(queue: &mut VecDeque<Vec<u8>>, datagram: &[u8]) {
    if queue.len() < UNDER_WAY {
        queue.push_back(datagram.to_vec());
    }
}

/// Keeps the last few of what a server told.
pub(super) fn remember<T>(all: &mut Vec<T>, new: T) {
    if all.len() >= 32 {
        all.remove(0);
    }
    all.push(new);
}
