//! Datagrams for the kernel, many at a time.

use caves_link::time::Instant;
use caves_session::Peer;
use caves_wire::MAX_DATAGRAM;

use super::Server;

/// Datagrams in one [`Batch`]: what one call hands to the kernel. More gain nothing: the call itself is then a small
/// part of the cost.
pub const BATCH: usize = 64;

/// Datagrams that are sent together, written behind each other into one buffer that is used again and again.
///
/// ```
/// use caves_game::{Batch, Server, ServerConfig};
/// use caves_link::time::Instant;
/// use caves_session::SplitMix;
///
/// let now = Instant::from_secs(1);
/// let mut server = Server::new(ServerConfig::default(), Box::new(SplitMix::new(1)), now, 0);
/// let mut batch = Batch::new();
/// while server.poll_transmits(now, &mut batch) {
///     for run in batch.runs() {
///         // One write: the kernel cuts `run.bytes` every `run.segment` bytes.
///         assert!(run.bytes.len() >= run.segment);
///     }
/// }
/// assert!(batch.is_empty());
/// ```
#[derive(Debug)]
pub struct Batch {
    bytes: Box<[u8]>,
    /// To whom each datagram goes, and where it ends.
    datagrams: Vec<(Peer, usize)>,
}

/// Datagrams to one peer, behind each other and all of one length, but for the last, which may be shorter: what a
/// kernel that segments takes as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run<'b> {
    /// Where to.
    pub to: Peer,
    /// The length of each datagram but the last, in bytes.
    pub segment: usize,
    /// The datagrams.
    pub bytes: &'b [u8],
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

impl Batch {
    /// An empty batch, with all the room that it will ever need.
    pub fn new() -> Self {
        let bytes = vec![0; BATCH * MAX_DATAGRAM].into();
        Self { bytes, datagrams: Vec::with_capacity(BATCH) }
    }

    /// Datagrams in it, at most [`BATCH`].
    pub fn len(&self) -> usize {
        self.datagrams.len()
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.datagrams.is_empty()
    }

    /// Each datagram, in the order in which they are to be sent.
    pub fn datagrams(&self) -> impl Iterator<Item = (Peer, &[u8])> {
        let mut begin = 0;
        self.datagrams.iter().map(move |(to, end)| {
            let datagram = &self.bytes[begin..*end];
            begin = *end;
            (*to, datagram)
        })
    }

    /// The same datagrams in as few writes as a kernel that segments needs.
    pub fn runs(&self) -> impl Iterator<Item = Run<'_>> {
        let mut rest = &self.datagrams[..];
        let mut begin = 0;
        std::iter::from_fn(move || {
            let (to, end) = *rest.first()?;
            let segment = end - begin;
            let (mut count, mut last) = (1, end);
            for (next, end) in &rest[1..] {
                // A shorter one is the last of its run, and a longer one begins another.
                let is_open = last == begin + count * segment;
                if *next != to || end - last > segment || !is_open {
                    break;
                }
                (count, last) = (count + 1, *end);
            }
            let run = Run { to, segment, bytes: &self.bytes[begin..last] };
            (rest, begin) = (&rest[count..], last);
            Some(run)
        })
    }

    fn clear(&mut self) {
        self.datagrams.clear();
    }

    fn end(&self) -> usize {
        self.datagrams.last().map_or(0, |(_, end)| *end)
    }
}

impl Server {
    /// Fills a batch with the next datagrams, in the order of [`Server::poll_transmit`]; what was in it is gone. False
    /// when there are none.
    pub fn poll_transmits(&mut self, now: Instant, batch: &mut Batch) -> bool {
        batch.clear();
        while batch.len() < BATCH {
            let begin = batch.end();
            let room = &mut batch.bytes[begin..begin + MAX_DATAGRAM];
            let Some(transmit) = self.poll_transmit(now, room) else { break };
            batch.datagrams.push((transmit.to, begin + transmit.len));
        }
        !batch.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(port: u16) -> Peer {
        Peer { socket: 0, addr: ([127, 0, 0, 1], port).into() }
    }

    fn runs(datagrams: &[(u16, usize)]) -> Vec<(u16, usize, usize)> {
        let mut batch = Batch::new();
        for (port, len) in datagrams {
            let (begin, end) = (batch.end(), batch.end() + len);
            batch.bytes[begin..end].fill(*port as u8);
            batch.datagrams.push((peer(*port), end));
        }
        let whole: Vec<u8> = batch.datagrams().flat_map(|(_, bytes)| bytes.to_vec()).collect();
        let joined: Vec<u8> = batch.runs().flat_map(|run| run.bytes.to_vec()).collect();
        assert_eq!(whole, joined);
        assert!(
            batch
                .datagrams()
                .map(|(to, bytes)| (to.addr.port(), bytes.len()))
                .eq(datagrams.iter().copied())
        );
        batch.runs().map(|run| (run.to.addr.port(), run.segment, run.bytes.len())).collect()
    }

    #[test]
    fn a_run_is_of_one_peer_and_one_length_and_ends_with_a_shorter_one() {
        assert_eq!(runs(&[]), []);
        assert_eq!(runs(&[(1, 72)]), [(1, 72, 72)]);
        assert_eq!(runs(&[(1, 72), (1, 1200)]), [(1, 72, 72), (1, 1200, 1200)]);
        assert_eq!(runs(&[(1, 1200), (1, 72)]), [(1, 1200, 1272)]);
        assert_eq!(runs(&[(1, 900), (1, 900), (1, 90), (1, 90)]), [(1, 900, 1890), (1, 90, 90)]);
        assert_eq!(
            runs(&[(1, 72), (2, 72), (2, 72), (1, 72)]),
            [(1, 72, 72), (2, 72, 144), (1, 72, 72)]
        );
    }
}
