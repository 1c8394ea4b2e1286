//! Bytes read as a script: the first ones say what to do, the next ones with what.

use std::time::Duration;

use caves_link::time::Instant;
use caves_wire::MAX_DATAGRAM;
use caves_wire::caves::{ChunkEntry, ChunkId, ChunkVersion, Direction};

use caves_session::caves::OwnedAction;

/// What is left of the input.
pub(super) struct Script<'a> {
    rest: &'a [u8],
}

impl<'a> Script<'a> {
    pub(super) const fn new(data: &'a [u8]) -> Self {
        Self { rest: data }
    }

    /// The next step, while there is one.
    pub(super) fn step(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// A number; 0 where the input has ended.
    pub(super) fn byte(&mut self) -> u8 {
        self.step().unwrap_or(0)
    }

    pub(super) fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    pub(super) fn u32(&mut self) -> u32 {
        u32::from(self.u16()) | u32::from(self.u16()) << 16
    }

    pub(super) fn u64(&mut self) -> u64 {
        u64::from(self.u32()) | u64::from(self.u32()) << 32
    }

    /// At most `len` bytes, fewer at the end.
    pub(super) fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(len.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// One of several.
    pub(super) fn pick<T: Copy>(&mut self, of: &[T]) -> Option<T> {
        let place = usize::from(self.byte());
        (!of.is_empty()).then(|| of[place % of.len()])
    }

    /// A text of at most 255 bytes; what is no UTF-8 is replaced.
    pub(super) fn text(&mut self) -> String {
        let len = usize::from(self.byte());
        String::from_utf8_lossy(self.bytes(len)).into_owned()
    }

    /// Up to a bit more than a minute, in steps of a millisecond: short of, at and past all timers.
    pub(super) fn wait(&mut self) -> Duration {
        Duration::from_millis(self.u16().into())
    }

    pub(super) fn chunk(&mut self) -> ChunkEntry {
        let (x, y) = (self.byte() as i8, self.byte() as i8);
        ChunkEntry {
            id: ChunkId { x: x.into(), y: y.into() },
            version: ChunkVersion(self.byte().into()),
        }
    }

    pub(super) fn action(&mut self) -> OwnedAction {
        let kind = self.byte();
        let direction = Direction::from_number(kind >> 4 & 3).unwrap_or(Direction::West);
        match kind & 15 {
            0 => OwnedAction::NoOp,
            1..=4 => OwnedAction::Walk(direction),
            5 => OwnedAction::Interact(caves_wire::caves::EntityId(self.byte().into())),
            6 => OwnedAction::Attack(direction),
            7 => OwnedAction::Dig(direction),
            8 => OwnedAction::Place { direction, item: self.byte().into() },
            9 => OwnedAction::PickUp,
            10 => OwnedAction::Drop { item: self.byte().into(), count: self.u16() },
            11 => OwnedAction::Use { item: self.byte().into() },
            12 => OwnedAction::Equip { item: self.byte().into() },
            _ => OwnedAction::Say(self.text()),
        }
    }

    /// A datagram, changed in one or two places when the script wants so: a byte, or its length.
    pub(super) fn mutate(&mut self, datagram: &mut Vec<u8>) {
        for _ in 0..self.byte() % 3 {
            let (place, value) = (usize::from(self.u16()), self.byte());
            match place % (datagram.len() + 2) {
                place if place < datagram.len() => datagram[place] ^= value,
                place if place == datagram.len() => {
                    let tail = self.bytes(value.into());
                    datagram.extend_from_slice(tail);
                }
                _ => datagram.truncate(datagram.len().saturating_sub(value.into())),
            }
        }
    }
}

/// A datagram as `emit` writes it; `None` when it does not fit.
pub(super) fn written<E>(emit: impl FnOnce(&mut [u8]) -> Result<usize, E>) -> Option<Vec<u8>> {
    let mut buf = vec![0; MAX_DATAGRAM];
    let len = emit(&mut buf).ok()?;
    buf.truncate(len);
    Some(buf)
}

/// Where all clocks start: late enough that a moment before it can be named.
pub(super) const START: Instant = Instant::from_secs(1000);
