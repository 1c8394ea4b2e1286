//! Who lives where: every monster by the chunk of its home, alive or dead.

use std::collections::{BTreeMap, BTreeSet};

use crate::coord::{ChunkPos, Pos};
use crate::entity::EntityId;
use crate::record::Resident;

/// A monster as its home knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dweller {
    /// As it will be found here. While it has a body, that one knows its rating.
    pub(crate) resident: Resident,
    /// The entity that it is. `None` for a dead one, and for one that this program cannot give a body: its kind
    /// is retired, or all ids are used up.
    pub(crate) body: Option<EntityId>,
}

/// Owns the dwellers. The dead of a chunk stand in the order of their deaths.
#[derive(Clone, Debug, Default)]
pub(crate) struct Residents {
    by_home: BTreeMap<ChunkPos, Vec<Dweller>>,
    /// Chunks with at least one dead: all that has to be looked at in every tick.
    mourning: BTreeSet<ChunkPos>,
}

impl Residents {
    pub(crate) fn of(&self, chunk: ChunkPos) -> &[Dweller] {
        self.by_home.get(&chunk).map_or(&[], Vec::as_slice)
    }

    /// All that wait to come back, by chunk and then in the order of their deaths.
    pub(crate) fn dead(&self) -> impl Iterator<Item = (&Resident, u64)> {
        let all = self.mourning.iter().flat_map(|&chunk| self.of(chunk));
        all.filter_map(|dweller| Some((&dweller.resident, dweller.resident.dead_until?)))
    }

    /// The chunks where somebody waits to come back, ascending.
    pub(crate) fn mourning(&self) -> impl Iterator<Item = ChunkPos> {
        self.mourning.iter().copied()
    }

    pub(crate) fn add(&mut self, chunk: ChunkPos, dweller: Dweller) {
        if dweller.resident.dead_until.is_some() {
            self.mourning.insert(chunk);
        }
        self.by_home.entry(chunk).or_default().push(dweller);
    }

    /// The dweller number `at` of `chunk` lives again.
    pub(crate) fn wake(&mut self, chunk: ChunkPos, at: usize, body: EntityId) {
        if let Some(dweller) = self.by_home.get_mut(&chunk).and_then(|all| all.get_mut(at)) {
            dweller.resident.dead_until = None;
            dweller.body = Some(body);
        }
        if !self.of(chunk).iter().any(|dweller| dweller.resident.dead_until.is_some()) {
            self.mourning.remove(&chunk);
        }
    }

    /// The dweller of this body is dead, and will come back with rating `elo`.
    pub(crate) fn bury(&mut self, home: Pos, body: EntityId, elo: u16, until: u64) {
        let Some(mut dweller) = self.take_out(home, body) else {
            return;
        };
        dweller.resident.elo = elo;
        dweller.resident.dead_until = Some(until);
        dweller.body = None;
        self.add(home.chunk(), dweller);
    }

    /// The dweller of this body lives here no longer.
    pub(crate) fn take_out(&mut self, home: Pos, body: EntityId) -> Option<Dweller> {
        let dwellers = self.by_home.get_mut(&home.chunk())?;
        let at = dwellers.iter().position(|dweller| dweller.body == Some(body))?;
        let dweller = dwellers.remove(at);
        if dwellers.is_empty() {
            self.by_home.remove(&home.chunk());
        }
        Some(dweller)
    }

    pub(crate) fn remove_all(&mut self, chunk: ChunkPos) -> Vec<Dweller> {
        self.mourning.remove(&chunk);
        self.by_home.remove(&chunk).unwrap_or_default()
    }

    #[cfg(test)]
    pub(crate) fn clear(&mut self) {
        self.by_home.clear();
        self.mourning.clear();
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Dweller> {
        self.by_home.values().flatten()
    }
}
