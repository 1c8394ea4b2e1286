//! What went over the sockets, counted by packet type in plain arrays.
//!
//! Two additions a datagram and nothing else: no lock, no hash, no allocation. The metrics turn the
//! arrays into text when somebody asks for it.
//!
//! ```
//! use caves_server::traffic::{Direction, Traffic};
//! use caves_wire::caves::PacketType;
//!
//! let mut traffic = Traffic::default();
//! traffic.note(Direction::In, &[0x4C, 0x52, 1, 6, 0, 0, 9, 9]);
//! let pings = traffic.of(Direction::In, Some(PacketType::PING));
//! assert_eq!((pings.datagrams, pings.bytes), (1, 8));
//! assert_eq!(traffic.of(Direction::Out, Some(PacketType::PING)).datagrams, 0);
//! ```

use caves_wire::caves::{HeaderView, PacketType, RefuseReason, RefuseView, VERSION};

/// One above the highest type with a name.
const TYPES: usize = PacketType::INFO.0 as usize + 1;
/// The place of everything that has no name.
const UNKNOWN: usize = TYPES;
/// One above the highest reason with a name; 0 is the place of those that have none.
const REASONS: usize = RefuseReason::SEALED_REQUIRED.0 as usize + 1;

/// Which way a datagram went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Read from a socket.
    In,
    /// Taken by the kernel.
    Out,
}

impl Direction {
    /// Both, in the order of their counters.
    pub const ALL: [Self; 2] = [Self::In, Self::Out];
}

/// So many datagrams, and the bytes of their payload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Datagrams.
    pub datagrams: u64,
    /// Bytes of UDP payload.
    pub bytes: u64,
}

/// Datagrams and bytes since the start, by direction and packet type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traffic {
    counts: [[Count; TYPES + 1]; 2],
    refusals: [u64; REASONS],
}

impl Traffic {
    /// Counts a datagram.
    pub fn note(&mut self, direction: Direction, datagram: &[u8]) {
        let place = place_of(datagram);
        let count = &mut self.counts[direction as usize][place];
        count.datagrams += 1;
        count.bytes += datagram.len() as u64;
        if direction == Direction::Out && place == usize::from(PacketType::REFUSE.0) {
            self.note_refusal(datagram);
        }
    }

    /// What went that way of one type; `None` is all that has no name: other magics, other versions,
    /// types that nobody gave.
    pub fn of(&self, direction: Direction, packet_type: Option<PacketType>) -> Count {
        let known = packet_type.filter(|known| known.name().is_some());
        let place = known.map_or(UNKNOWN, |known| usize::from(known.0));
        self.counts[direction as usize][place]
    }

    /// Refuse packets that were sent for a reason; `None` is all reasons that have no name.
    pub fn refusals(&self, reason: Option<RefuseReason>) -> u64 {
        self.refusals[reason.map_or(0, reason_place)]
    }

    /// Sessions tell of ten refusals a second and of none for a bad cookie: that is for the log. What
    /// is sent is the whole truth.
    fn note_refusal(&mut self, datagram: &[u8]) {
        if let Ok(refuse) = RefuseView::parse(datagram) {
            self.refusals[reason_place(refuse.reason())] += 1;
        }
    }
}

/// All packet types that have a name, ascending.
pub fn packet_types() -> impl Iterator<Item = PacketType> {
    (0..TYPES as u8).map(PacketType).filter(|known| known.name().is_some())
}

/// All reasons to refuse that have a name, ascending.
pub fn refuse_reasons() -> impl Iterator<Item = RefuseReason> {
    (1..REASONS as u8).map(RefuseReason)
}

fn place_of(datagram: &[u8]) -> usize {
    match HeaderView::parse(datagram) {
        Ok(header) if header.version() == VERSION && header.packet_type().name().is_some() => {
            usize::from(header.packet_type().0).min(UNKNOWN)
        }
        _ => UNKNOWN,
    }
}

fn reason_place(reason: RefuseReason) -> usize {
    let place = usize::from(reason.0);
    if place < REASONS { place } else { 0 }
}

#[cfg(test)]
mod tests {
    use caves_wire::caves::{Nonce, Refuse};

    use super::*;

    fn datagram(version: u8, packet_type: u8, len: usize) -> Vec<u8> {
        let mut bytes = vec![0x4C, 0x52, version, packet_type, 0, 0];
        bytes.resize(len, 0xAA);
        bytes
    }

    #[test]
    fn each_type_has_a_counter_of_its_own_each_way() {
        let mut traffic = Traffic::default();
        // Type n comes n + 1 times with 10 + n bytes, and goes once with 6.
        for n in 0..=255_u8 {
            for _ in 0..=n {
                traffic.note(Direction::In, &datagram(1, n, 10 + usize::from(n)));
            }
            traffic.note(Direction::Out, &datagram(1, n, 6));
        }
        let named = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 18, 19];
        assert_eq!(packet_types().map(|known| known.0).collect::<Vec<_>>(), named);
        for n in named {
            let (came, went) = (u64::from(n) + 1, Count { datagrams: 1, bytes: 6 });
            let known = Some(PacketType(n));
            let expected = Count { datagrams: came, bytes: came * (10 + u64::from(n)) };
            assert_eq!(traffic.of(Direction::In, known), expected, "type {n}");
            assert_eq!(traffic.of(Direction::Out, known), went, "type {n}");
        }
        let all: u64 = (1..=256).sum();
        let known: u64 = named.iter().map(|n| u64::from(*n) + 1).sum();
        assert_eq!(traffic.of(Direction::In, None).datagrams, all - known);
        assert_eq!(traffic.of(Direction::In, Some(PacketType(15))).datagrams, all - known);
        assert_eq!(traffic.of(Direction::Out, None), Count { datagrams: 238, bytes: 238 * 6 });
    }

    #[test]
    fn what_is_no_packet_of_ours_counts_as_unknown() {
        let mut traffic = Traffic::default();
        let other_magic = [0x4D, 0x52, 1, 8, 0, 0];
        for bytes in [&[][..], &[0x4C], &other_magic, &datagram(2, 8, 64)] {
            traffic.note(Direction::In, bytes);
        }
        assert_eq!(traffic.of(Direction::In, None), Count { datagrams: 4, bytes: 1 + 6 + 64 });
    }

    #[test]
    fn refusals_are_counted_by_reason_when_they_are_sent() {
        let mut traffic = Traffic::default();
        let mut buf = [0; 64];
        for (reason, times) in [(1, 1), (2, 3), (7, 2), (10, 1), (0, 1), (11, 1), (255, 1)] {
            let refuse = Refuse { nonce: Nonce(5), reason: RefuseReason(reason), text: "no" };
            let len = refuse.emit(&mut buf).unwrap();
            for _ in 0..times {
                traffic.note(Direction::Out, &buf[..len]);
            }
            traffic.note(Direction::In, &buf[..len]);
        }
        let told: Vec<u64> = refuse_reasons().map(|it| traffic.refusals(Some(it))).collect();
        assert_eq!(told, [1, 3, 0, 0, 0, 0, 2, 0, 0, 1]);
        assert_eq!(traffic.refusals(None), 3);
        assert_eq!(traffic.of(Direction::Out, Some(PacketType::REFUSE)).datagrams, 10);
    }
}
