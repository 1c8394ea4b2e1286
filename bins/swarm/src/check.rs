//! What a server says is held against the protocol: each client for itself, and all together.

use std::collections::HashMap;

use caves_session::DropReason;
use caves_session::caves::ClientReceived;
use caves_wire::bits::TILES;
use caves_wire::caves::{
    ActionView, ChunkEntry, ChunkId, ChunkVersion, ChunkView, EntitiesView, EntityId, EntityIter,
    PacketType, Sequence, StateView, Tick,
};
use caves_wire::fnv::Fnv32;

/// Chunks whose tiles are remembered for comparison; those that come when so many are known are
/// counted and not compared.
const KNOWN: usize = 1 << 18;
/// Ticks that are watched at once: the newest, and the one before it until the next.
const WATCHED: usize = 4;
/// The viewport (R15): tiles to the north and west, to the south and east.
const BEFORE: i32 = 15;
const AFTER: i32 = 14;

/// A kind of thing that no server may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Failure {
    /// A datagram that is none of the protocol, or that only clients send.
    Malformed,
    /// A chunk that does not decode, as with an index that its palette does not have (R27).
    Chunk,
    /// One version of a chunk, but other tiles than before, to whichever client (R10).
    Tiles,
    /// A tick that came whole, as far as can be told, and does not have its checksum (R13).
    Checksum,
    /// Two contents for one tick (R17).
    Contradiction,
    /// The nine chunks are not in their order, or one has no version (R9, R10).
    Manifest,
    /// Entities that do not ascend by id (R14).
    Order,
    /// An entity outside the viewport (R15).
    Viewport,
    /// The player's own entity is not there (R15).
    OwnEntity,
    /// A tick that is not newer than the one before it.
    Backwards,
    /// An action counts as executed that was never sent (R18).
    Executed,
    /// An address without a session was sent more bytes than it sent (section 2).
    Amplified,
}

impl Failure {
    /// All kinds with the names that the report has, in the order of their counters.
    pub(crate) const ALL: [(Self, &'static str); 12] = [
        (Self::Malformed, "malformed"),
        (Self::Chunk, "chunk"),
        (Self::Tiles, "tiles"),
        (Self::Checksum, "checksum"),
        (Self::Contradiction, "contradiction"),
        (Self::Manifest, "manifest"),
        (Self::Order, "order"),
        (Self::Viewport, "viewport"),
        (Self::OwnEntity, "own_entity"),
        (Self::Backwards, "backwards"),
        (Self::Executed, "executed"),
        (Self::Amplified, "amplified"),
    ];
}

/// What was found, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Failures([u64; Failure::ALL.len()]);

impl Failures {
    pub(crate) const fn add(&mut self, failure: Failure) {
        self.0[failure as usize] += 1;
    }

    pub(crate) const fn count(&self, failure: Failure) -> u64 {
        self.0[failure as usize]
    }

    pub(crate) fn in_all(&self) -> u64 {
        self.0.iter().sum()
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(count, more)| *count += more);
    }

    /// Counts by name.
    pub(crate) fn by_name(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Failure::ALL.iter().map(|(failure, name)| (*name, self.count(*failure)))
    }
}

/// The tiles of all chunks that came, as a hash of each version.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    hashes: HashMap<(ChunkId, ChunkVersion), u32>,
    /// Chunks that came.
    pub(crate) checked: u64,
    /// Of those, the ones that were compared with nothing: too many are known.
    pub(crate) unknown: u64,
}

impl Chunks {
    /// Versions of chunks that are remembered.
    pub(crate) fn known(&self) -> usize {
        self.hashes.len()
    }

    /// A server that was started again may give the versions of before to other tiles (R10).
    pub(crate) fn forget(&mut self) {
        self.hashes.clear();
    }

    fn take(&mut self, datagram: &[u8], failures: &mut Failures) {
        self.checked += 1;
        let mut tiles = [0; TILES];
        let Ok(view) = ChunkView::decode(datagram, &mut tiles) else {
            return failures.add(Failure::Chunk);
        };
        let mut hash = Fnv32::new();
        for tile in tiles {
            hash.update(&tile.to_le_bytes());
        }
        let ChunkEntry { id, version } = view.entry();
        self.compare((id, version), hash.finish(), failures);
    }

    fn compare(&mut self, key: (ChunkId, ChunkVersion), hash: u32, failures: &mut Failures) {
        match self.hashes.get(&key) {
            Some(known) if *known != hash => failures.add(Failure::Tiles),
            Some(_) => {}
            None if self.hashes.len() >= KNOWN => self.unknown += 1,
            None => {
                self.hashes.insert(key, hash);
            }
        }
    }

    /// Adds what another thread's clients were sent.
    pub(crate) fn merge(&mut self, other: Self, failures: &mut Failures) {
        self.checked += other.checked;
        self.unknown += other.unknown;
        other.hashes.into_iter().for_each(|(key, hash)| self.compare(key, hash, failures));
    }
}

/// A tick that is under way.
#[derive(Debug, Clone, Copy)]
struct Watched {
    tick: Tick,
    checksum: Option<u32>,
    /// Its Entities so far.
    packets: usize,
    /// The lowest id among them.
    lowest: u32,
    /// The one came that says that none follows.
    is_closed: bool,
    is_complete: bool,
}

/// What one client is told.
#[derive(Debug, Default)]
pub(crate) struct Check {
    /// Whether datagrams are dropped on purpose: what is missing proves nothing then.
    loses: bool,
    state: Option<Tick>,
    updated: Option<Tick>,
    /// The highest number that an action was sent with.
    sent: Option<Sequence>,
    watched: Vec<Watched>,
    /// Datagrams and lowest id of the last complete tick.
    last_whole: Option<(usize, u32)>,
}

/// What a client sees of an update.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sight {
    /// Where it stands itself.
    pub(crate) own: Option<(i16, i16)>,
    /// Somebody or something in view, another one at each update.
    pub(crate) other: Option<EntityId>,
}

impl Check {
    pub(crate) fn new(loses: bool) -> Self {
        Self { loses, ..Self::default() }
    }

    /// Another session began: nothing of before says anything of it.
    pub(crate) fn restart(&mut self) {
        *self = Self::new(self.loses);
    }

    /// The session goes on, with ticks from the Welcome's on.
    pub(crate) fn resume(&mut self) {
        let sent = self.sent;
        self.restart();
        self.sent = sent;
    }

    /// A datagram goes to the server.
    pub(crate) fn sent(&mut self, datagram: &[u8]) {
        if kind_of(datagram) != Some(PacketType::ACTION) {
            return;
        }
        if let Ok(action) = ActionView::parse(datagram)
            && self.sent.is_none_or(|sent| action.sequence().is_newer_than(sent))
        {
            self.sent = Some(action.sequence());
        }
    }

    /// A datagram came, and the client took it for `outcome`. Gives the ticks that are over now and
    /// never became complete.
    pub(crate) fn received(
        &mut self,
        datagram: &[u8],
        outcome: &ClientReceived<'_>,
        chunks: &mut Chunks,
        failures: &mut Failures,
    ) -> u64 {
        match kind_of(datagram) {
            Some(PacketType::CHUNK) => chunks.take(datagram, failures),
            _ if is_forbidden(outcome) => failures.add(Failure::Malformed),
            Some(PacketType::STATE) => return self.state(datagram, outcome, failures),
            Some(PacketType::ENTITIES) => self.entities(datagram),
            _ => {}
        }
        0
    }

    fn state(
        &mut self,
        datagram: &[u8],
        outcome: &ClientReceived<'_>,
        failures: &mut Failures,
    ) -> u64 {
        let Ok(state) = StateView::parse(datagram) else { return 0 };
        let (tick, checksum) = (state.tick(), state.entity_checksum());
        if !is_row_by_row(state.chunks()) {
            failures.add(Failure::Manifest);
        }
        if let Some(watched) = self.watched.iter().find(|watched| watched.tick == tick)
            && watched.checksum.is_some_and(|known| known != checksum)
        {
            failures.add(Failure::Contradiction);
        }
        if !matches!(outcome, ClientReceived::State(_)) {
            // It came late, or twice, as networks have it.
            return 0;
        }
        if self.state.is_some_and(|last| !tick.is_newer_than(last)) {
            failures.add(Failure::Backwards);
        }
        self.state = Some(tick);
        self.watch(tick).checksum = Some(checksum);
        self.settle(tick, failures)
    }

    fn entities(&mut self, datagram: &[u8]) {
        let Ok(entities) = EntitiesView::parse(datagram) else { return };
        let first = entities.entities().next().map_or(0, |entity| entity.id().0);
        let watched = self.watch(entities.tick());
        watched.packets += 1;
        watched.lowest = watched.lowest.min(first);
        watched.is_closed |= !entities.more_follow();
    }

    /// The record of a tick; the oldest one gives way.
    fn watch(&mut self, tick: Tick) -> &mut Watched {
        let place = match self.watched.iter().position(|watched| watched.tick == tick) {
            Some(place) => place,
            None => {
                if self.watched.len() >= WATCHED {
                    self.watched.remove(0);
                }
                self.watched.push(Watched {
                    tick,
                    checksum: None,
                    packets: 0,
                    lowest: u32::MAX,
                    is_closed: false,
                    is_complete: false,
                });
                self.watched.len() - 1
            }
        };
        &mut self.watched[place]
    }

    /// Judges what is two ticks old by now: nothing more of it is to be expected.
    fn settle(&mut self, newest: Tick, failures: &mut Failures) -> u64 {
        let (last_whole, loses) = (self.last_whole, self.loses);
        let mut incomplete = 0;
        self.watched.retain(|watched| {
            if !newest.is_newer_than(watched.tick.next()) {
                return true;
            }
            if watched.checksum.is_some() && !watched.is_complete {
                incomplete += 1;
                // A datagram that was lost is no lie. But one that has as many as the last one,
                // from as low an id to the end, has probably lost none.
                let whole = last_whole.is_some_and(|(packets, lowest)| {
                    watched.is_closed && watched.packets >= packets && watched.lowest <= lowest
                });
                if whole && !loses {
                    failures.add(Failure::Checksum);
                }
            }
            false
        });
        incomplete
    }

    /// The client says that it knows all entities of a tick: these.
    pub(crate) fn updated(
        &mut self,
        tick: Tick,
        player: Option<EntityId>,
        entities: EntityIter<'_>,
        executed: Option<Sequence>,
        failures: &mut Failures,
    ) -> Sight {
        if self.updated.replace(tick).is_some_and(|last| !tick.is_newer_than(last)) {
            failures.add(Failure::Backwards);
        }
        let watched = self.watch(tick);
        watched.is_complete = true;
        if watched.is_closed {
            self.last_whole = Some((watched.packets, watched.lowest));
        }
        if executed
            .is_some_and(|executed| self.sent.is_none_or(|sent| executed.is_newer_than(sent)))
        {
            failures.add(Failure::Executed);
        }
        look(tick, player, entities, failures)
    }
}

/// Looks at the entities of an update, in one pass.
fn look(
    tick: Tick,
    player: Option<EntityId>,
    entities: EntityIter<'_>,
    failures: &mut Failures,
) -> Sight {
    let mut sight = Sight::default();
    let (mut ascends, mut last) = (true, EntityId(0));
    let (mut west, mut east) = (i16::MAX, i16::MIN);
    let (mut north, mut south) = (i16::MAX, i16::MIN);
    for (place, entity) in entities.enumerate() {
        ascends &= last < entity.id();
        last = entity.id();
        let (x, y) = (entity.x(), entity.y());
        (west, east) = (west.min(x), east.max(x));
        (north, south) = (north.min(y), south.max(y));
        if Some(entity.id()) == player {
            sight.own = Some((x, y));
        } else if sight.other.is_none() || (tick.get() as usize).is_multiple_of(place + 1) {
            sight.other = Some(entity.id());
        }
    }
    if !ascends {
        failures.add(Failure::Order);
    }
    match sight.own.map(|(x, y)| (i32::from(x), i32::from(y))) {
        None => failures.add(Failure::OwnEntity),
        Some((x, y)) => {
            let fits = |low: i16, high: i16, own: i32| {
                i32::from(low) >= own - BEFORE && i32::from(high) <= own + AFTER
            };
            if !fits(west, east, x) || !fits(north, south, y) {
                failures.add(Failure::Viewport);
            }
        }
    }
    sight
}

/// The packet's type, if the datagram has one.
fn kind_of(datagram: &[u8]) -> Option<PacketType> {
    datagram.get(3).map(|number| PacketType(*number))
}

/// Whether a client calls this a datagram that no server sends.
const fn is_forbidden(outcome: &ClientReceived<'_>) -> bool {
    use DropReason::{Malformed, PacketType, Version};
    matches!(outcome, ClientReceived::Dropped(Malformed | PacketType | Version))
}

/// R9, and no chunk of a manifest is without a version (R10).
fn is_row_by_row(chunks: [ChunkEntry; 9]) -> bool {
    let ChunkId { x, y } = chunks[4].id;
    chunks.iter().zip(0i16..).all(|(entry, place)| {
        let (dx, dy) = (place % 3 - 1, place / 3 - 1);
        entry.id.x == x.wrapping_add(dx)
            && entry.id.y == y.wrapping_add(dy)
            && entry.version != ChunkVersion::NOT_HELD
    })
}

#[cfg(test)]
mod tests;
