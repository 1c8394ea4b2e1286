//! Whoever and whatever stands on a tile.
//!
//! ```
//! use caves_world::{Body, KindId, STATUS_SAFE, World, WorldConfig};
//!
//! let mut world = World::new(WorldConfig::default());
//! let id = world.spawn_player(Some("Ada"));
//! let ada = world.entity(id).unwrap();
//! assert_eq!((ada.kind, ada.hp, ada.hp_max, ada.elo), (KindId::PLAYER, 20, 20, 1000));
//! assert_eq!((ada.name(), ada.status()), (Some("Ada"), STATUS_SAFE));
//! assert!(matches!(&ada.body, Body::Player(player) if player.inventory.is_empty()));
//! ```

use std::fmt;

use crate::content::{Class, KindDef, KindId};
use crate::coord::Pos;
use crate::hash::Fnv;
use crate::inventory::Inventory;

/// Bytes of speech that are shown above an entity (protocol, section 3, tag 0x11).
pub const MAX_SPEECH: usize = 80;

/// Ticks that speech is shown: 3 s at 10 Hz.
pub const SPEECH_TICKS: u64 = 30;

/// Ticks after a blow given or taken until a fight counts as over.
pub const FIGHT_TICKS: u64 = 50;

/// Status bit of a player who gave or took a blow within [`FIGHT_TICKS`].
pub const STATUS_FIGHTING: u16 = 1 << 0;

/// Status bit of a player within the safe zone around the spawn.
pub const STATUS_SAFE: u16 = 1 << 1;

/// Names an entity. From 1, ascending in order of creation, never reused (protocol, R33).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityId(
    /// The number on the wire.
    pub u32,
);

impl EntityId {
    /// No entity.
    pub const NONE: EntityId = EntityId(0);
}

impl fmt::Display for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A player, a monster, or a thing. Only the world changes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entity {
    /// Its name among all entities.
    pub id: EntityId,
    /// Its kind; for an item on the floor, the item's.
    pub kind: KindId,
    /// Where it is.
    pub pos: Pos,
    /// Hit points; 0 for things.
    pub hp: u16,
    /// Hit points when unhurt.
    pub hp_max: u16,
    /// Rating, which acts as level.
    pub elo: u16,
    /// What belongs to what it is.
    pub body: Body,
    pub(crate) hostile: bool,
    pub(crate) speech: Option<Speech>,
    /// The tick of the last blow given or taken.
    pub(crate) last_fight: Option<u64>,
}

/// What belongs to an entity by what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A player's figure.
    Player(Player),
    /// A creature.
    Monster(Monster),
    /// A chest.
    Chest {
        /// What is in it.
        inventory: Inventory,
    },
    /// A sign.
    Sign {
        /// What stands on it.
        text: String,
    },
    /// A stack of one item on the floor.
    Item {
        /// How many, at least 1.
        count: u16,
    },
}

/// What belongs to a player.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Player {
    /// The name as given; the world does not check it.
    pub name: String,
    /// What is carried.
    pub inventory: Inventory,
    /// Bits of [`STATUS_FIGHTING`] and [`STATUS_SAFE`], as of the last tick.
    pub status: u16,
}

/// What belongs to a monster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monster {
    /// Where it lives, and comes back after its death.
    pub home: Pos,
    /// The first tick in which it may walk or strike again.
    pub(crate) next_act_tick: u64,
    /// Who struck it last.
    pub(crate) angry_at: Option<EntityId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Speech {
    pub(crate) text: String,
    /// The tick in which it was said.
    pub(crate) since: u64,
}

impl Entity {
    pub(crate) fn new(id: EntityId, kind: KindId, def: &KindDef, pos: Pos, body: Body) -> Entity {
        Entity {
            id,
            kind,
            pos,
            hp: def.hp,
            hp_max: def.hp,
            elo: def.elo,
            body,
            hostile: def.hostile,
            speech: None,
            last_fight: None,
        }
    }

    /// Whether it never moves: a chest, a sign, an item.
    pub fn is_static(&self) -> bool {
        self.class().is_static()
    }

    /// Whether walking into it is an attack.
    pub fn is_hostile(&self) -> bool {
        self.hostile
    }

    /// Whether an interaction does something: a chest, a sign.
    pub fn is_interactable(&self) -> bool {
        self.class().is_interactable()
    }

    /// What it is.
    pub fn class(&self) -> Class {
        match self.body {
            Body::Player(_) => Class::Player,
            Body::Monster(_) => Class::Monster,
            Body::Chest { .. } => Class::Chest,
            Body::Sign { .. } => Class::Sign,
            Body::Item { .. } => Class::Item,
        }
    }

    /// The name of a player.
    pub fn name(&self) -> Option<&str> {
        self.player().map(|player| player.name.as_str())
    }

    /// What a player carries or a chest holds.
    pub fn inventory(&self) -> Option<&Inventory> {
        match &self.body {
            Body::Player(player) => Some(&player.inventory),
            Body::Chest { inventory } => Some(inventory),
            _ => None,
        }
    }

    /// The status bits of a player, 0 for all others.
    pub fn status(&self) -> u16 {
        self.player().map_or(0, |player| player.status)
    }

    /// What it said within the last 30 ticks, at most 80 bytes, cut between characters.
    pub fn speech(&self) -> Option<&str> {
        self.speech.as_ref().map(|speech| speech.text.as_str())
    }

    /// The player that this is.
    pub fn player(&self) -> Option<&Player> {
        match &self.body {
            Body::Player(player) => Some(player),
            _ => None,
        }
    }

    pub(crate) fn player_mut(&mut self) -> Option<&mut Player> {
        match &mut self.body {
            Body::Player(player) => Some(player),
            _ => None,
        }
    }

    pub(crate) fn monster(&self) -> Option<&Monster> {
        match &self.body {
            Body::Monster(monster) => Some(monster),
            _ => None,
        }
    }

    pub(crate) fn monster_mut(&mut self) -> Option<&mut Monster> {
        match &mut self.body {
            Body::Monster(monster) => Some(monster),
            _ => None,
        }
    }

    pub(crate) fn say(&mut self, text: &str, now: u64) {
        let cut = text.floor_char_boundary(MAX_SPEECH);
        self.speech = Some(Speech { text: text[..cut].to_owned(), since: now });
    }

    /// Whether a blow was given or taken within [`FIGHT_TICKS`].
    pub(crate) fn is_fighting(&self, now: u64) -> bool {
        self.last_fight.is_some_and(|last| now.saturating_sub(last) < FIGHT_TICKS)
    }

    pub(crate) fn hash_into(&self, fnv: &mut Fnv) {
        fnv.u64(self.id.0.into());
        fnv.i32(self.pos.x);
        fnv.i32(self.pos.y);
        for value in [self.kind.0, self.hp, self.hp_max, self.elo, self.hostile.into()] {
            fnv.u16(value);
        }
        fnv.option(self.last_fight);
        fnv.option(self.speech.as_ref().map(|speech| speech.since));
        fnv.text(self.speech().unwrap_or_default());
        self.body.hash_into(fnv);
    }
}

impl Body {
    fn hash_into(&self, fnv: &mut Fnv) {
        match self {
            Body::Player(player) => {
                fnv.u16(0);
                fnv.text(&player.name);
                fnv.u16(player.status);
                hash_inventory(&player.inventory, fnv);
            }
            Body::Monster(monster) => {
                fnv.u16(1);
                fnv.i32(monster.home.x);
                fnv.i32(monster.home.y);
                fnv.u64(monster.next_act_tick);
                fnv.option(monster.angry_at.map(|id| id.0.into()));
            }
            Body::Chest { inventory } => {
                fnv.u16(2);
                hash_inventory(inventory, fnv);
            }
            Body::Sign { text } => {
                fnv.u16(3);
                fnv.text(text);
            }
            Body::Item { count } => {
                fnv.u16(4);
                fnv.u16(*count);
            }
        }
    }
}

fn hash_inventory(inventory: &Inventory, fnv: &mut Fnv) {
    fnv.u64(inventory.len() as u64);
    for (item, count) in inventory.iter() {
        fnv.u16(item.0);
        fnv.u16(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::Content;

    fn sign() -> Entity {
        let content = Content::core();
        let kind = content.kind_id("core:sign").unwrap();
        let body = Body::Sign { text: "x".to_owned() };
        Entity::new(EntityId(1), kind, content.kind(kind).unwrap(), Pos::default(), body)
    }

    #[test]
    fn speech_is_cut_between_characters() {
        let mut entity = sign();
        entity.say(&"a".repeat(80), 0);
        assert_eq!(entity.speech().unwrap().len(), 80);
        // 79 bytes and a character of two: it would end at byte 81.
        entity.say(&("a".repeat(79) + "é"), 0);
        assert_eq!(entity.speech().unwrap(), "a".repeat(79));
        entity.say(&"€".repeat(40), 0);
        assert_eq!(entity.speech().unwrap(), "€".repeat(26));
    }

    #[test]
    fn fight_is_over_after_fifty_ticks() {
        let mut entity = sign();
        assert!(!entity.is_fighting(0));
        entity.last_fight = Some(100);
        assert!(entity.is_fighting(149));
        assert!(!entity.is_fighting(150));
    }

    #[test]
    fn flags_follow_the_body() {
        let sign = sign();
        assert!(sign.is_static() && sign.is_interactable() && !sign.is_hostile());
        assert_eq!((sign.class(), sign.name(), sign.status()), (Class::Sign, None, 0));
    }
}
