//! Packets on their way out: one that is being filled, and those that are ready.

use std::collections::VecDeque;

use caves_wire::teeworlds::{Chunk, ChunkBuilder, Chunks, Envelope};

/// Packets of one connection that may wait to be fetched. More than the 43 that an answer with all
/// unacknowledged chunks can take, so it only fills when the caller sends nothing.
pub const MAX_WAITING: usize = 64;

/// The chunks of one packet.
#[derive(Debug)]
struct Payload {
    count: u8,
    bytes: Box<[u8]>,
}

/// What a connection is about to send. The envelope is written when a packet goes out, so that its
/// acknowledgement is the newest.
#[derive(Debug, Default)]
pub(super) struct Payloads {
    filling: ChunkBuilder,
    ready: VecDeque<Payload>,
}

impl Payloads {
    /// Whether a chunk with so many bytes of data finds a place.
    pub(super) fn has_room(&self, data: usize) -> bool {
        self.filling.fits(data) || self.ready.len() < MAX_WAITING
    }

    /// Adds a chunk to the packet that is being filled, or to the next one; `false`, and nothing
    /// changes, where it finds no place.
    pub(super) fn push(&mut self, chunk: &Chunk<'_>) -> bool {
        if !self.filling.fits(chunk.data.len()) {
            if self.ready.len() >= MAX_WAITING {
                return false;
            }
            self.flush();
        }
        self.filling.push(chunk).is_ok()
    }

    /// The packet that is being filled is ready. At most one more than [`MAX_WAITING`] are.
    pub(super) fn flush(&mut self) {
        if !self.filling.is_empty() && self.ready.len() <= MAX_WAITING {
            let packet = self.filling.packet(Envelope::default());
            self.ready
                .push_back(Payload { count: packet.num_chunks, bytes: packet.payload.into() });
            self.filling.clear();
        }
    }

    /// Whether a chunk waits in the packet that is being filled.
    pub(super) const fn is_filling(&self) -> bool {
        !self.filling.is_empty()
    }

    /// Whether a packet is ready.
    pub(super) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Packets that are ready.
    pub(super) fn len(&self) -> usize {
        self.ready.len()
    }

    /// Writes the packet that has been ready for the longest time.
    pub(super) fn emit(&mut self, envelope: Envelope, buf: &mut [u8]) -> Option<usize> {
        let Payload { count, bytes } = self.ready.front()?;
        let len = Chunks { envelope, num_chunks: *count, payload: bytes }.emit(buf).ok()?;
        self.ready.pop_front();
        Some(len)
    }
}
