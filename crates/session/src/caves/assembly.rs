//! Entity updates, put together from datagrams in any order (R13, R16).

use caves_wire::caves::{EntitiesView, EntityIter, Tick};
use caves_wire::fnv::Fnv32;

/// EntityPackets of one tick (R14).
pub const MAX_PACKETS: usize = 8;
/// Ticks that are put together at once: the newest ones. Packets of a tick that is four behind
/// come too late to be of use at ten a second.
const MAX_TICKS: usize = 4;

/// Puts the packets of a tick together until they have the checksum of its state.
///
/// ```text
///   entities 7 (ids 40..)  ---+
///   state 7 (checksum) -------+--> complete: update 7 is shown, ticks before it are dropped
///   entities 7 (ids 1..)   ---+
/// ```
///
/// A tick whose packets do not have the checksum yet is never shown, and never mixed with another.
#[derive(Debug, Default)]
pub struct Assembly {
    open: Vec<Open>,
    /// The entry bytes of the last complete update, ascending by id.
    complete: Vec<u8>,
    shown: Option<Shown>,
    /// What ticks before were put together in: a tick makes no blocks.
    spare: Vec<Open>,
}

/// A tick under way.
#[derive(Debug)]
struct Open {
    tick: Tick,
    checksum: Option<u32>,
    /// The first entity's id of each packet, ascending, and where its entries begin; an empty packet
    /// stands first.
    packets: Vec<(u32, usize)>,
    /// The entries of all packets in that order.
    entries: Vec<u8>,
    /// The checksum of these.
    sum: Fnv32,
}

#[derive(Debug, Clone, Copy)]
struct Shown {
    tick: Tick,
    checksum: u32,
}

impl Assembly {
    /// Nothing is known yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the checksum of a tick's StatePacket. `true` when that tick is complete now.
    pub fn state(&mut self, tick: Tick, checksum: u32) -> bool {
        if !self.is_news(tick) {
            return false;
        }
        // Nothing has changed since the last update: its lost packets are not missed (R13).
        if let Some(shown) = &mut self.shown
            && shown.checksum == checksum
        {
            shown.tick = tick;
            self.forget_old(tick);
            return true;
        }
        // An earlier tick whose own state was lost may have just these entities (R16).
        let complete =
            self.open.iter().filter(|open| !open.tick.is_newer_than(tick)).find_map(|open| {
                (open.checksum.is_none_or(|own| own == checksum) && open.sum() == checksum)
                    .then_some(open.tick)
            });
        match complete {
            Some(of) => self.complete(of, tick, checksum),
            None => {
                if let Some(open) = self.open(tick) {
                    open.checksum = Some(checksum);
                }
                false
            }
        }
    }

    /// Takes a packet of entities. `true` when its tick is complete now.
    pub fn entities(&mut self, packet: EntitiesView<'_>) -> bool {
        let tick = packet.tick();
        if !self.is_news(tick) {
            return false;
        }
        let first = packet.entities().next().map_or(0, |entity| entity.id().0);
        let Some(open) = self.open(tick) else { return false };
        if !open.insert(first, packet.entry_bytes()) {
            return false;
        }
        let (own, sum) = (open.checksum, open.sum());
        if own.is_some_and(|own| own != sum) {
            return false;
        }
        // Its own state says so, or, that one lost, the newest later one with the same entities.
        let states = self.open.iter().filter(|open| open.checksum == Some(sum));
        let at = states
            .map(|open| open.tick)
            .filter(|at| *at == tick || at.is_newer_than(tick))
            .reduce(|a, b| if b.is_newer_than(a) { b } else { a });
        at.is_some_and(|at| self.complete(tick, at, sum))
    }

    /// The tick of the last complete update.
    pub fn tick(&self) -> Option<Tick> {
        self.shown.map(|shown| shown.tick)
    }

    /// The entities of the last complete update, ascending by id.
    pub fn shown(&self) -> EntityIter<'_> {
        EntityIter::new(&self.complete)
    }

    /// Ticks under way.
    pub fn open_ticks(&self) -> usize {
        self.open.len()
    }

    /// Forgets which tick is shown: only a deliberate fault asks for that.
    pub(super) const fn forget_shown(&mut self) {
        self.shown = None;
    }

    /// Shows what came of a tick, complete or not: only a deliberate fault asks for that.
    pub(super) fn show_anyway(&mut self, packet: EntitiesView<'_>) {
        if self.is_news(packet.tick()) {
            self.complete.extend_from_slice(packet.entry_bytes());
            self.shown = Some(Shown { tick: packet.tick(), checksum: 0 });
        }
    }

    fn is_news(&self, tick: Tick) -> bool {
        self.shown.is_none_or(|shown| tick.is_newer_than(shown.tick))
    }

    /// The place of a tick under way; the oldest one gives way to a newer one.
    fn open(&mut self, tick: Tick) -> Option<&mut Open> {
        if let Some(place) = self.open.iter().position(|open| open.tick == tick) {
            return self.open.get_mut(place);
        }
        if self.open.len() >= MAX_TICKS {
            let oldest = (0..self.open.len()).reduce(|a, b| {
                if self.open[a].tick.is_newer_than(self.open[b].tick) { b } else { a }
            })?;
            if !tick.is_newer_than(self.open[oldest].tick) {
                return None;
            }
            self.spare.push(self.open.swap_remove(oldest));
        }
        let spare = self.spare.pop();
        self.open.push(spare.map_or_else(|| Open::new(tick), |spare| spare.again(tick)));
        self.open.last_mut()
    }

    /// Shows the packets of tick `of`, which are the truth at tick `at`.
    fn complete(&mut self, of: Tick, at: Tick, checksum: u32) -> bool {
        let Some(open) = self.open.iter_mut().find(|open| open.tick == of) else { return false };
        // It is over: `forget_old` sees to what is left of it.
        std::mem::swap(&mut self.complete, &mut open.entries);
        self.shown = Some(Shown { tick: at, checksum });
        self.forget_old(at);
        true
    }

    fn forget_old(&mut self, shown: Tick) {
        let over = self.open.extract_if(.., |open| !open.tick.is_newer_than(shown));
        // Each of them was open, so there are never more than MAX_TICKS.
        self.spare.extend(over);
    }
}

impl Open {
    const fn new(tick: Tick) -> Self {
        Self { tick, checksum: None, packets: Vec::new(), entries: Vec::new(), sum: Fnv32::new() }
    }

    /// Another tick, in the same memory.
    fn again(mut self, tick: Tick) -> Self {
        self.packets.clear();
        self.entries.clear();
        Self { tick, checksum: None, sum: Fnv32::new(), ..self }
    }

    /// Takes a packet; `false` if it came before or there are too many.
    fn insert(&mut self, first: u32, entries: &[u8]) -> bool {
        if self.packets.len() >= MAX_PACKETS {
            return false;
        }
        let Err(place) = self.packets.binary_search_by_key(&first, |(first, _)| *first) else {
            return false;
        };
        match self.packets.get(place) {
            // They come in this order, most of the time: what was hashed is not hashed again.
            None => {
                self.packets.push((first, self.entries.len()));
                self.entries.extend_from_slice(entries);
                self.sum.update(entries);
            }
            Some((_, at)) => {
                let at = *at;
                self.packets.insert(place, (first, at));
                for (_, later) in &mut self.packets[place + 1..] {
                    *later += entries.len();
                }
                self.entries.splice(at..at, entries.iter().copied());
                self.sum = Fnv32::new();
                self.sum.update(&self.entries);
            }
        }
        true
    }

    fn sum(&self) -> u32 {
        let sum = self.sum.finish();
        // A tick without a packet has received nothing, which is not the same as an empty update.
        if self.packets.is_empty() { !sum } else { sum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caves_wire::caves::{Entity, EntityBuilder, EntityFlags, EntityId};

    fn packet(tick: u32, ids: &[u32], hp: u16) -> Vec<u8> {
        let mut buf = [0; 1200];
        let mut builder = EntityBuilder::new(&mut buf, Tick::new(tick), Fnv32::new()).unwrap();
        for id in ids {
            let entity = Entity {
                id: EntityId(*id),
                type_id: 0,
                x: 0,
                y: 0,
                hp,
                hp_max: 20,
                elo: 0,
                flags: EntityFlags::default(),
                meta: &[],
            };
            assert!(builder.push(&entity).unwrap());
        }
        let (len, _) = builder.finish(false);
        buf[..len].to_vec()
    }

    fn checksum(packets: &[&Vec<u8>]) -> u32 {
        packets
            .iter()
            .flat_map(|p| &p[12..])
            .fold(0x811C_9DC5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
    }

    fn give(assembly: &mut Assembly, bytes: &[u8]) -> bool {
        assembly.entities(EntitiesView::parse(bytes).unwrap())
    }

    fn ids(assembly: &Assembly) -> Vec<u32> {
        assembly.shown().map(|entity| entity.id().0).collect()
    }

    #[test]
    fn packets_and_state_come_in_any_order_and_repeat() {
        let parts = [packet(7, &[1, 2], 1), packet(7, &[3], 1), packet(7, &[4, 9], 1)];
        let sum = checksum(&[&parts[0], &parts[1], &parts[2]]);
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 3, 0, 1], [1, 0, 3, 2]] {
            let mut assembly = Assembly::new();
            let mut complete = 0;
            for what in order {
                for _ in 0..2 {
                    complete += u32::from(match what {
                        3 => assembly.state(Tick::new(7), sum),
                        part => give(&mut assembly, &parts[part]),
                    });
                }
            }
            assert_eq!(complete, 1, "{order:?}");
            assert_eq!(ids(&assembly), [1, 2, 3, 4, 9]);
        }
    }

    #[test]
    fn an_incomplete_tick_is_not_shown_and_ticks_are_never_mixed() {
        let mut assembly = Assembly::new();
        let old = [packet(7, &[1], 1), packet(7, &[2], 1)];
        let new = [packet(8, &[1], 2), packet(8, &[2], 2)];
        assert!(!assembly.state(Tick::new(7), checksum(&[&old[0], &old[1]])));
        assert!(!assembly.state(Tick::new(8), checksum(&[&new[0], &new[1]])));
        assert!(!give(&mut assembly, &old[0]));
        assert!(!give(&mut assembly, &new[1]));
        assert_eq!(assembly.tick(), None);
        assert!(give(&mut assembly, &new[0]));
        assert!(!give(&mut assembly, &old[1]), "the older tick is over");
        assert!(assembly.shown().all(|entity| entity.hp() == 2));
    }

    #[test]
    fn a_lost_state_is_replaced_by_a_later_one_with_the_same_entities() {
        let mut assembly = Assembly::new();
        let part = packet(7, &[1, 5], 3);
        assert!(!give(&mut assembly, &part));
        assert!(assembly.state(Tick::new(8), checksum(&[&part])));
        assert_eq!(assembly.tick(), Some(Tick::new(8)));
        assert_eq!(ids(&assembly), [1, 5]);
    }

    #[test]
    fn entities_that_come_after_a_later_state_complete_it() {
        let mut assembly = Assembly::new();
        let part = packet(7, &[1, 5], 3);
        assert!(!assembly.state(Tick::new(8), checksum(&[&part])));
        assert!(give(&mut assembly, &part));
        assert_eq!(assembly.tick(), Some(Tick::new(8)));
    }

    #[test]
    fn lost_entities_that_did_not_change_are_not_missed() {
        let mut assembly = Assembly::new();
        let part = packet(7, &[1], 3);
        assembly.state(Tick::new(7), checksum(&[&part]));
        assert!(give(&mut assembly, &part));
        assert!(assembly.state(Tick::new(8), checksum(&[&part])));
        assert!(!assembly.state(Tick::new(9), 1234));
        assert_eq!(assembly.tick(), Some(Tick::new(8)));
    }

    #[test]
    fn an_empty_update_needs_its_packet() {
        let mut assembly = Assembly::new();
        assert!(!assembly.state(Tick::new(7), 0x811C_9DC5));
        assert!(give(&mut assembly, &packet(7, &[], 0)));
        assert_eq!(ids(&assembly), [0; 0]);
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_newest_ticks_stay() {
        let mut assembly = Assembly::new();
        for tick in 0..100 {
            give(&mut assembly, &packet((u32::MAX - 50).wrapping_add(tick), &[1], 1));
            for first in 0..20 {
                give(&mut assembly, &packet(u32::MAX.wrapping_add(tick), &[first + 2], 1));
            }
        }
        assert!(assembly.open.len() <= MAX_TICKS);
        assert!(assembly.open.iter().all(|open| open.packets.len() <= MAX_PACKETS));
        assert!(assembly.open.iter().any(|open| open.tick == Tick::new(98)));
    }
}
