//! Entries of whole chunks, each written once a tick for all who see it.

use caves_wire::caves::Entity;
use caves_world::{ChunkPos, EntityId, Seen, Spot};

use super::tags::Tags;
use super::update::describe;

/// Chunks whose entries are kept: a power of two. More are written viewer by viewer.
const PLACES: usize = 2048;
/// A chunk is looked for at its place and at so many after it.
const PROBES: usize = 4;
/// Entries that are kept, of all chunks ...
const MOST_ENTRIES: usize = 32_768;
/// ... and their bytes: 32 each, on average.
const MOST_BYTES: usize = 32 * MOST_ENTRIES;
/// Bytes that are copied of an entry without asking how many it has: as good as all have fewer.
pub(super) const BLOCK: usize = 32;

/// The entries of this tick, by chunk. A chunk is written when it is looked at for the second time: of what
/// one player alone sees, most is out of its view.
#[derive(Debug)]
pub(crate) struct Pages {
    table: Box<[Place]>,
    /// Where each entry begins in `bytes`; behind those of a chunk stands where the last of them ends.
    starts: Vec<u32>,
    bytes: Vec<u8>,
    /// What was written before is of another tick.
    tick: u32,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    chunk: ChunkPos,
    tick: u32,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    LookedAt,
    Written { first: u32, count: u32 },
}

/// The entries of one chunk, with the tags that most clients get (R34).
#[derive(Debug, Clone, Copy)]
pub(super) struct Page<'p> {
    starts: &'p [u32],
    bytes: &'p [u8],
}

impl Default for Pages {
    fn default() -> Self {
        let chunk = ChunkPos { x: 0, y: 0 };
        let nothing = Place { chunk, tick: 0, state: State::LookedAt };
        Self {
            table: vec![nothing; PLACES].into(),
            starts: Vec::with_capacity(MOST_ENTRIES),
            bytes: Vec::with_capacity(MOST_BYTES),
            tick: 1,
        }
    }
}

impl Pages {
    /// Another tick begins.
    pub(crate) fn clear(&mut self) {
        self.starts.clear();
        self.bytes.clear();
        self.tick = self.tick.wrapping_add(1);
    }

    /// The pages of the chunks that somebody sees, where there are any.
    pub(super) fn of<'p>(&'p mut self, seen: Seen<'_>, tags: &Tags) -> [Option<Page<'p>>; 4] {
        let found = std::array::from_fn(|run| self.find(seen.chunk(run), seen.spots_of(run), tags));
        let (starts, bytes) = (&self.starts, &self.bytes);
        found.map(|found: Option<(usize, usize)>| {
            let (first, count) = found?;
            Some(Page { starts: starts.get(first..=first + count)?, bytes })
        })
    }

    /// Where the entries of a chunk stand, and how many there are.
    fn find(&mut self, chunk: ChunkPos, spots: &[Spot], tags: &Tags) -> Option<(usize, usize)> {
        if spots.is_empty() {
            return None;
        }
        let tick = self.tick;
        let mut near = (0..PROBES).map(|probe| (home(chunk) + probe) % PLACES);
        let at = near.find(|&at| self.table[at].tick != tick || self.table[at].chunk == chunk)?;
        let place = self.table[at];
        if place.tick != tick {
            self.table[at] = Place { chunk, tick, state: State::LookedAt };
            return None;
        }
        let state = match place.state {
            State::LookedAt => self.write(spots, tags)?,
            written => written,
        };
        self.table[at].state = state;
        let State::Written { first, count } = state else { return None };
        Some((first as usize, count as usize))
    }

    /// Nothing where there is no room.
    fn write(&mut self, spots: &[Spot], tags: &Tags) -> Option<State> {
        let first = self.starts.len();
        let most = spots.len() * (Entity::BASE_LEN + Entity::MAX_META) + BLOCK;
        if first + spots.len() >= MOST_ENTRIES || self.bytes.len() + most > MOST_BYTES {
            return None;
        }
        for spot in spots {
            self.starts.push(self.bytes.len() as u32);
            // Who came since the tick ended has no entry.
            if let Some(meta) = tags.of_spot(spot, true) {
                self.bytes.extend_from_slice(&describe(spot).base(meta.len() as u8));
                self.bytes.extend_from_slice(meta);
            }
        }
        self.starts.push(self.bytes.len() as u32);
        // So that a whole block can be copied of the last one, too.
        self.bytes.extend_from_slice(&[0; BLOCK]);
        Some(State::Written { first: first as u32, count: spots.len() as u32 })
    }
}

impl<'p> Page<'p> {
    /// The bytes from an entry on, and its length; nothing when it is not the one of this entity: somebody came
    /// or went since the page was written.
    #[inline]
    pub(super) fn entry(self, place: usize, id: EntityId) -> Option<(&'p [u8], usize)> {
        let (start, end) = (*self.starts.get(place)?, *self.starts.get(place + 1)?);
        let tail = self.bytes.get(start as usize..)?;
        let is_it = end > start && *tail.first_chunk()? == id.0.to_le_bytes();
        is_it.then_some((tail, (end - start) as usize))
    }
}

/// Where a chunk is looked for first.
const fn home(chunk: ChunkPos) -> usize {
    let (x, y) = (chunk.x as u32 as u64, chunk.y as u32 as u64);
    // 2^64 divided by the golden ratio: neighbours are spread over the table.
    ((x << 32 | y).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as usize % PLACES
}
