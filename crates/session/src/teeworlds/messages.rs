//! What a packet delivers.

use caves_link::window::{Arrival, InOrder};
use caves_wire::teeworlds::{Chunk, ChunkIter};

/// One message, as its sender gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'d> {
    /// Whether it comes once and in order; others may come twice, late or never.
    pub vital: bool,
    /// Its bytes, at most 1023; [`caves_wire::teeworlds::MessageId`] reads them.
    pub data: &'d [u8],
}

/// The messages that a packet delivers, in order.
///
/// They borrow from the datagram, or from the scratch buffer where it was compressed. They count as
/// delivered, whether they are looked at or not.
#[derive(Debug, Clone)]
pub struct Messages<'d> {
    chunks: ChunkIter<'d>,
    window: InOrder<10>,
}

impl<'d> Messages<'d> {
    /// What `chunks` deliver to a receiver that stands at `window`.
    pub(super) const fn new(chunks: ChunkIter<'d>, window: InOrder<10>) -> Self {
        Self { chunks, window }
    }
}

impl<'d> Iterator for Messages<'d> {
    type Item = Message<'d>;

    fn next(&mut self) -> Option<Message<'d>> {
        let window = &mut self.window;
        let Chunk { vital, data, .. } = self.chunks.find(|chunk| match chunk.vital {
            Some(sequence) => window.take(sequence) == Arrival::Next,
            None => true,
        })?;
        Some(Message { vital: vital.is_some(), data })
    }
}

impl std::iter::FusedIterator for Messages<'_> {}
