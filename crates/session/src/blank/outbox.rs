//! Parts that are still to be sent on connections that are forgotten already.

use std::collections::BTreeMap;

use caves_link::time::Instant;
use caves_wire::blank::{Header, Numbers};

use super::PART_GAP;
use crate::{Peer, Transmit};

/// Goodbyes that may wait, each up to three datagrams. The one due first gives way: its peer finds out
/// by silence.
pub(super) const GOODBYES: usize = 1024;

#[derive(Debug)]
struct Goodbye {
    to: Peer,
    numbers: Numbers,
    left: u8,
}

#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// By when they are due, then in the order they came.
    goodbyes: BTreeMap<(Instant, u64), Goodbye>,
    count: u64,
}

impl Outbox {
    /// Says goodbye `times` times, beginning now, with the numbers that the connection goes on with.
    pub(super) fn goodbye(&mut self, now: Instant, to: Peer, numbers: Numbers, times: u8) {
        if times > 0 {
            if self.goodbyes.len() >= GOODBYES {
                self.goodbyes.pop_first();
            }
            self.push(now, Goodbye { to, numbers, left: times });
        }
    }

    fn push(&mut self, due: Instant, goodbye: Goodbye) {
        self.goodbyes.insert((due, self.count), goodbye);
        self.count += 1;
    }

    /// Writes the next Part that is due.
    pub(super) fn next_part(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        let first = self.goodbyes.first_entry().filter(|entry| entry.key().0 <= now)?;
        let Goodbye { to, mut numbers, left } = first.remove();
        let len = Header::part(numbers).emit(&[], buf).ok()?;
        if left > 1 {
            numbers.seq = numbers.seq.next();
            self.push(now + PART_GAP, Goodbye { to, numbers, left: left - 1 });
        }
        Some(Transmit { to, len })
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.goodbyes.first_key_value().map(|((due, _), _)| *due)
    }

    pub(super) fn len(&self) -> usize {
        self.goodbyes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caves_wire::blank::{HeaderView, PacketType};

    fn peer(port: u16) -> Peer {
        Peer { socket: 0, addr: ([192, 0, 2, 1], port).into() }
    }

    #[test]
    fn a_goodbye_is_said_three_times_with_a_number_each() {
        let mut outbox = Outbox::default();
        let mut buf = [0; 16];
        let mut now = Instant::from_secs(1);
        outbox.goodbye(now, peer(1), Numbers::first(), 3);
        let mut sent = Vec::new();
        while let Some(due) = outbox.deadline() {
            now = now.max(due);
            while outbox.next_part(now, &mut buf).is_some() {
                let header = HeaderView::parse(&buf).unwrap();
                assert_eq!(header.packet_type(), PacketType::PART);
                sent.push((now.as_millis(), header.seq().get()));
            }
        }
        assert_eq!(sent, [(1000, 0), (1020, 1), (1040, 2)]);
    }

    #[test]
    fn goodbyes_are_bounded() {
        let mut outbox = Outbox::default();
        for port in 0..3000 {
            outbox.goodbye(Instant::ZERO, peer(port), Numbers::first(), 1);
            assert!(outbox.len() <= 1024);
        }
        let sent = std::iter::from_fn(|| outbox.next_part(Instant::ZERO, &mut [0; 16]));
        let ports: Vec<u16> = sent.map(|transmit| transmit.to.addr.port()).collect();
        assert_eq!((ports.len(), ports[0]), (1024, 3000 - 1024));
        outbox.goodbye(Instant::ZERO, peer(1), Numbers::first(), 0);
        assert_eq!(outbox.len(), 0);
    }
}
