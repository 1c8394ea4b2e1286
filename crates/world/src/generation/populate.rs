//! Who and what is in a new chunk.

use crate::chunk::Chunk;
use crate::content::{Class, Content, KindDef, KindId};
use crate::coord::{CHUNK_TILES, ChunkPos, Pos};
use crate::inventory::Inventory;
use crate::rng::{Purpose, Roll, pair};

use super::{SPAWN, is_safe, neighbours};

/// The most monsters of a new chunk.
const MOST_MONSTERS: u32 = 3;

/// Chances of a new chunk in a hundred.
const CHEST: u32 = 30;
const SIGN: u32 = 12;

/// The most items on the floor of a new chunk, and the most kinds in a new chest.
const MOST_ITEMS: u32 = 3;
const MOST_TREASURES: u32 = 4;

/// Places looked at before something is left out.
const TRIES: u32 = 12;

/// The sign that greets players stands here, in sight of the spawn.
const WELCOME: Pos = Pos { x: SPAWN.x, y: SPAWN.y - 2 };

/// Something that a new chunk begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spawn {
    /// Where; always a walkable tile of the chunk, and no two at the same.
    pub pos: Pos,
    /// What kind.
    pub kind: KindId,
    /// What belongs to it.
    pub body: SpawnBody,
}

/// What belongs to a [`Spawn`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpawnBody {
    /// A monster.
    Monster,
    /// A chest and what is in it.
    Chest(Inventory),
    /// A sign and its text.
    Sign(String),
    /// So many of an item.
    Item(u16),
}

/// The inhabitants of [`Generator::First`](super::Generator::First).
pub(super) fn first(seed: u64, pos: ChunkPos, chunk: &Chunk, content: &Content) -> Vec<Spawn> {
    let roll = Roll::new(seed, Purpose::Populate, pair(pos.x, pos.y));
    let mut planner = Planner { pos, chunk, content, roll, taken: Vec::new() };
    planner.welcome();
    planner.monsters();
    planner.chest();
    planner.sign();
    planner.items();
    planner.taken
}

struct Planner<'a> {
    pos: ChunkPos,
    chunk: &'a Chunk,
    content: &'a Content,
    roll: Roll,
    taken: Vec<Spawn>,
}

impl Planner<'_> {
    fn welcome(&mut self) {
        if self.pos == WELCOME.chunk()
            && self.is_free(WELCOME)
            && let Some(kind) = self.content.first_of(Class::Sign)
        {
            let body = SpawnBody::Sign(self.content.welcome().to_owned());
            self.taken.push(Spawn { pos: WELCOME, kind, body });
        }
    }

    fn monsters(&mut self) {
        let away = self.pos.x.unsigned_abs().max(self.pos.y.unsigned_abs());
        let lives_here = |def: &KindDef| {
            def.spawn
                .filter(|rule| u32::from(rule.from) <= away)
                .map_or(0, |rule| rule.weight.into())
        };
        for _ in 0..self.roll.below(MOST_MONSTERS + 1) {
            let Some(kind) = self.choose(lives_here) else {
                return;
            };
            if let Some(pos) = self.place(|_, pos| u32::from(!is_safe(pos))) {
                self.taken.push(Spawn { pos, kind, body: SpawnBody::Monster });
            }
        }
    }

    fn chest(&mut self) {
        if !self.roll.percent(CHEST) {
            return;
        }
        let Some(kind) = self.content.first_of(Class::Chest) else {
            return;
        };
        // Chests like dead ends: the place with the most walls.
        let Some(pos) = self.place(|planner, pos| 1 + planner.walls(pos)) else {
            return;
        };
        let mut inventory = Inventory::default();
        for _ in 0..=self.roll.below(MOST_TREASURES) {
            if let Some((item, count)) = self.treasure() {
                inventory.add(item, count);
            }
        }
        self.taken.push(Spawn { pos, kind, body: SpawnBody::Chest(inventory) });
    }

    fn sign(&mut self) {
        if !self.roll.percent(SIGN) {
            return;
        }
        let Some(kind) = self.content.first_of(Class::Sign) else {
            return;
        };
        let texts = self.content.signs();
        let Some(text) = texts.get(self.roll.below(texts.len() as u32) as usize) else {
            return;
        };
        if let Some(pos) = self.place(|_, _| 1) {
            self.taken.push(Spawn { pos, kind, body: SpawnBody::Sign(text.clone()) });
        }
    }

    fn items(&mut self) {
        for _ in 0..self.roll.below(MOST_ITEMS + 1) {
            let Some((kind, count)) = self.treasure() else {
                return;
            };
            if let Some(pos) = self.place(|_, _| 1) {
                self.taken.push(Spawn { pos, kind, body: SpawnBody::Item(count) });
            }
        }
    }

    fn treasure(&mut self) -> Option<(KindId, u16)> {
        let kind = self.choose(|def| def.treasure.map_or(0, |treasure| treasure.weight.into()))?;
        let most = self.content.kind(kind)?.treasure?.most;
        Some((kind, 1 + self.roll.below(most.into()) as u16))
    }

    fn choose(&mut self, weight: impl Fn(&KindDef) -> u32) -> Option<KindId> {
        let kinds: Vec<_> = self.content.kinds().collect();
        self.roll.weighted(&kinds, |(_, def)| weight(def)).map(|&(id, _)| id)
    }

    /// The best of a few random free tiles by `worth`, where 0 is not good enough. The first of equals.
    fn place(&mut self, worth: impl Fn(&Self, Pos) -> u32) -> Option<Pos> {
        let mut best = None;
        for _ in 0..TRIES {
            let pos = self.pos.tile(self.roll.below(CHUNK_TILES as u32) as usize);
            let own = if self.is_free(pos) { worth(self, pos) } else { 0 };
            if own > best.map_or(0, |(worth, _)| worth) {
                best = Some((own, pos));
            }
        }
        best.map(|(_, pos)| pos)
    }

    fn is_free(&self, pos: Pos) -> bool {
        let walkable = self.content.is_walkable(self.chunk.tile(pos.index()));
        walkable && pos != SPAWN && self.taken.iter().all(|spawn| spawn.pos != pos)
    }

    fn walls(&self, pos: Pos) -> u32 {
        let sides = neighbours(pos.index());
        sides.filter(|&side| !self.content.is_walkable(self.chunk.tile(side))).count() as u32
    }
}
