//! What the caves are made of: tiles and kinds, by name and by number.
//!
//! `content/core.toml` defines everything by name; `content/ids.lock` gives each name its number, append only,
//! so a number that once travelled to a client never changes its meaning. Creatures, items, chests and signs
//! share one registry of kinds (protocol, section 3).
//!
//! ```
//! use caves_world::{Class, Content, TileId};
//!
//! let content = Content::core();
//! let granite = content.tile_id("core:granite").unwrap();
//! assert!(content.tile(granite).unwrap().diggable);
//! assert!(content.tile(TileId::FLOOR).unwrap().walkable);
//! let rat = content.kind(content.kind_id("core:cave_rat").unwrap()).unwrap();
//! assert_eq!((rat.class, rat.title.as_str()), (Class::Monster, "cave rat"));
//! ```

mod lock;
mod parse;

use std::collections::BTreeMap;

use serde::Deserialize;

pub use parse::ContentError;

/// The number of a kind of tile, as in a chunk's palette.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TileId(
    /// The number on the wire.
    pub u16,
);

impl TileId {
    /// `core:unknown`: what is not loaded (protocol, section 3).
    pub const UNKNOWN: TileId = TileId(0);
    /// `core:rock`.
    pub const ROCK: TileId = TileId(1);
    /// `core:floor`.
    pub const FLOOR: TileId = TileId(2);
    /// `core:bedrock`: neither walked nor dug; all beyond the ground (protocol, R8).
    pub const BEDROCK: TileId = TileId(3);
}

/// The number of a kind of creature, item, chest or sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KindId(
    /// The number on the wire.
    pub u16,
);

impl KindId {
    /// `core:player` (protocol, section 3).
    pub const PLAYER: KindId = KindId(0);
}

/// What a kind is, and so how its entities behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// A player's figure; exactly kind 0.
    Player,
    /// A creature that the world moves.
    Monster,
    /// A thing that lies on the floor or in an inventory.
    Item,
    /// A chest with an inventory.
    Chest,
    /// A sign with a text.
    Sign,
}

impl Class {
    /// Whether it never moves: a chest, a sign, an item.
    pub const fn is_static(self) -> bool {
        matches!(self, Class::Chest | Class::Sign | Class::Item)
    }

    /// Whether an interaction does something: a chest, a sign.
    pub const fn is_interactable(self) -> bool {
        matches!(self, Class::Chest | Class::Sign)
    }
}

/// A kind of tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileDef {
    /// Its name, as `core:granite`.
    pub name: String,
    /// What people call it.
    pub title: String,
    /// Whether one can stand on it.
    pub walkable: bool,
    /// Whether digging makes floor of it.
    pub diggable: bool,
    /// Whether it hides what is behind it.
    pub opaque: bool,
    /// One dig in so many succeeds; at least 1.
    pub toughness: u8,
    /// The item that a successful dig may leave.
    pub drop: Option<KindId>,
    /// How often it does, in a hundred.
    pub drop_percent: u8,
}

/// A kind of creature, item, chest or sign. Numbers that make no sense for its class are 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindDef {
    /// Its name, as `core:cave_rat`.
    pub name: String,
    /// What people call it.
    pub title: String,
    /// What it is.
    pub class: Class,
    /// Hit points of a new one.
    pub hp: u16,
    /// Rating of a new one.
    pub elo: u16,
    /// The least damage of a blow.
    pub damage_min: u16,
    /// The most damage of a blow, inclusive.
    pub damage_max: u16,
    /// Whether it attacks players unprovoked, and is attacked by walking into it.
    pub hostile: bool,
    /// Ticks from one step of a monster to its next.
    pub speed: u16,
    /// Ticks from one blow of a monster to its next.
    pub attack_ticks: u16,
    /// Ticks per hit point regained out of fights; 0 for never.
    pub regen: u16,
    /// What a killed monster may leave behind.
    pub loot: Vec<Loot>,
    /// Where new chunks have this monster; `None` for nowhere.
    pub spawn: Option<SpawnRule>,
    /// How new chunks have this item; `None` for not at all.
    pub treasure: Option<Treasure>,
}

/// One chance of a killed monster to leave an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loot {
    /// The item.
    pub item: KindId,
    /// The chance in a hundred.
    pub percent: u8,
}

/// How often a monster lives in new chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpawnRule {
    /// Its share among the monsters of a chunk.
    pub weight: u16,
    /// The least distance of its chunk from chunk (0,0), in chunks.
    pub from: u16,
}

/// How often an item lies in new chests and on new floors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Treasure {
    /// Its share among the items.
    pub weight: u16,
    /// The most of it in one place, at least 1.
    pub most: u16,
}

/// All content of a world. Lookups by number are array accesses.
#[derive(Clone, Debug)]
pub struct Content {
    tiles: Vec<Option<TileDef>>,
    kinds: Vec<Option<KindDef>>,
    tile_ids: BTreeMap<String, TileId>,
    kind_ids: BTreeMap<String, KindId>,
    welcome: String,
    signs: Vec<String>,
}

impl Content {
    /// The content that comes with the game.
    pub fn core() -> Content {
        let toml = include_str!("../content/core.toml");
        let lock = include_str!("../content/ids.lock");
        Content::parse(toml, lock).expect("the built-in content is parsed by a test")
    }

    /// The content defined by `toml` with the numbers of `lock`. The files are called `core.toml` and
    /// `ids.lock` in errors.
    ///
    /// # Errors
    ///
    /// [`ContentError`] for the first fault: a file that cannot be read, a name without a number (it says
    /// which line to append), a number given twice, a reference to nothing, a value out of its range. A number
    /// whose name is not defined is no fault: it is retired.
    pub fn parse(toml: &str, lock: &str) -> Result<Content, ContentError> {
        parse::parse(toml, lock)
    }

    /// The definition of a tile; `None` for numbers never given or retired.
    pub fn tile(&self, id: TileId) -> Option<&TileDef> {
        self.tiles.get(usize::from(id.0))?.as_ref()
    }

    /// The definition of a kind; `None` for numbers never given or retired.
    pub fn kind(&self, id: KindId) -> Option<&KindDef> {
        self.kinds.get(usize::from(id.0))?.as_ref()
    }

    /// The number of a defined tile.
    pub fn tile_id(&self, name: &str) -> Option<TileId> {
        self.tile_ids.get(name).copied()
    }

    /// The number of a defined kind.
    pub fn kind_id(&self, name: &str) -> Option<KindId> {
        self.kind_ids.get(name).copied()
    }

    /// All defined tiles, ascending by number.
    pub fn tiles(&self) -> impl Iterator<Item = (TileId, &TileDef)> {
        let numbered = self.tiles.iter().enumerate();
        numbered.filter_map(|(i, def)| Some((TileId(i as u16), def.as_ref()?)))
    }

    /// All defined kinds, ascending by number.
    pub fn kinds(&self) -> impl Iterator<Item = (KindId, &KindDef)> {
        let numbered = self.kinds.iter().enumerate();
        numbered.filter_map(|(i, def)| Some((KindId(i as u16), def.as_ref()?)))
    }

    /// The text of the sign at the spawn.
    pub fn welcome(&self) -> &str {
        &self.welcome
    }

    /// The texts for the signs of other chunks.
    pub fn signs(&self) -> &[String] {
        &self.signs
    }

    /// Whether one can stand on this tile.
    pub fn is_walkable(&self, id: TileId) -> bool {
        self.tile(id).is_some_and(|def| def.walkable)
    }

    /// Whether this tile hides what is behind it; an undefined one does.
    pub fn is_opaque(&self, id: TileId) -> bool {
        self.tile(id).is_none_or(|def| def.opaque)
    }

    /// The first defined kind of `class`.
    pub(crate) fn first_of(&self, class: Class) -> Option<KindId> {
        self.kinds().find(|(_, def)| def.class == class).map(|(id, _)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that have travelled to clients. Append here what is appended to ids.lock; never change a line.
    const TILES: [(u16, &str); 12] = [
        (0, "core:unknown"),
        (1, "core:rock"),
        (2, "core:floor"),
        (3, "core:bedrock"),
        (4, "core:granite"),
        (5, "core:crystal_vein"),
        (6, "core:coal_seam"),
        (7, "core:moss"),
        (8, "core:gravel"),
        (9, "core:mushrooms"),
        (10, "core:shallow_water"),
        (11, "core:stalagmite"),
    ];
    const KINDS: [(u16, &str); 14] = [
        (0, "core:player"),
        (1, "core:cave_rat"),
        (2, "core:ghoul"),
        (3, "core:glow_beetle"),
        (4, "core:stone"),
        (5, "core:crystal"),
        (6, "core:torch"),
        (7, "core:bread"),
        (8, "core:coin"),
        (9, "core:bone"),
        (10, "core:coal"),
        (11, "core:mushroom"),
        (12, "core:chest"),
        (13, "core:sign"),
    ];

    #[test]
    fn numbers_never_change() {
        let mut lines = include_str!("../content/ids.lock")
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        for (id, name) in TILES {
            assert_eq!(lines.next(), Some(format!("tile {id} {name}").as_str()));
        }
        for (id, name) in KINDS {
            assert_eq!(lines.next(), Some(format!("kind {id} {name}").as_str()));
        }
        assert_eq!(lines.next(), None, "a new line of ids.lock belongs into this test too");
    }

    #[test]
    fn core_content_has_what_the_rules_name() {
        let content = Content::core();
        for (id, name) in TILES {
            assert_eq!(content.tile_id(name), Some(TileId(id)));
            assert_eq!(content.tile(TileId(id)).unwrap().name, name);
        }
        for (id, name) in KINDS {
            assert_eq!(content.kind_id(name), Some(KindId(id)));
            assert_eq!(content.kind(KindId(id)).unwrap().name, name);
        }
        let player = content.kind(KindId::PLAYER).unwrap();
        assert_eq!((player.hp, player.elo), (20, 1000));
        assert_eq!((player.damage_min, player.damage_max), (2, 4));
        let rat = content.kind(KindId(1)).unwrap();
        assert_eq!((rat.hp, rat.elo, rat.hostile), (6, 800, true));
        let ghoul = content.kind(KindId(2)).unwrap();
        assert_eq!((ghoul.hp, ghoul.elo, ghoul.hostile), (14, 1150, true));
        assert!(!content.tile(TileId::BEDROCK).unwrap().diggable);
        assert!(content.tile(TileId::ROCK).unwrap().diggable);
        assert_eq!(content.tile(TileId(5)).unwrap().drop, Some(KindId(5)));
    }

    #[test]
    fn texts_of_signs_fit_a_notice() {
        // An Event carries at most 1000 bytes (protocol, section 2).
        let content = Content::core();
        for text in content.signs().iter().map(String::as_str).chain([content.welcome()]) {
            assert!((1..=1000).contains(&text.len()), "{text}");
            assert!(!text.chars().any(char::is_control), "{text}");
        }
    }

    #[test]
    fn unknown_numbers_are_neither_walked_nor_seen_through() {
        let content = Content::core();
        assert!(content.tile(TileId(65535)).is_none());
        assert!(!content.is_walkable(TileId(65535)));
        assert!(content.is_opaque(TileId(65535)));
        assert!(content.kind(KindId(999)).is_none());
        assert_eq!(content.kind_id("core:granite"), None);
    }
}
