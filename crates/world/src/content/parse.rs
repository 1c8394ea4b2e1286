//! `core.toml`: definitions by name, checked and joined with their numbers.

use std::collections::BTreeMap;

use serde::Deserialize;
use thiserror::Error;
use toml::Spanned;

use super::lock::{self, Numbers, Registry};
use super::{Class, Content, KindDef, KindId, Loot, SpawnRule, TileDef, TileId, Treasure};

pub(super) const TOML_FILE: &str = "core.toml";
pub(super) const LOCK_FILE: &str = "ids.lock";

/// Longest name of a tile or kind, in bytes.
const MAX_NAME: usize = 64;

/// Names whose numbers the protocol fixes (section 3).
const FIXED_TILES: [(&str, u16); 4] =
    [("core:unknown", 0), ("core:rock", 1), ("core:floor", 2), ("core:bedrock", 3)];

/// Why content was refused. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ContentError {
    /// The definitions are no TOML of the expected form.
    #[error("core.toml line {line}: {message}")]
    Toml {
        /// Where.
        line: usize,
        /// What the reader expected.
        message: String,
    },
    /// A line of the lock has another form than `tile 4 core:granite`.
    #[error("ids.lock line {line}: expected \"tile|kind <number> <name>\", found {text:?}")]
    LockLine {
        /// Where.
        line: usize,
        /// The line, without its comment.
        text: String,
    },
    /// A number is given twice; numbers are never reused.
    #[error("ids.lock line {line}: {registry} {id} is given already")]
    DuplicateId {
        /// Where it is given again.
        line: usize,
        /// `tile` or `kind`.
        registry: &'static str,
        /// The number.
        id: u16,
    },
    /// A name stands twice.
    #[error("{file} line {line}: {registry} {name} stands here a second time")]
    DuplicateName {
        /// `core.toml` or `ids.lock`.
        file: &'static str,
        /// Where it stands again.
        line: usize,
        /// `tile` or `kind`.
        registry: &'static str,
        /// The name.
        name: String,
    },
    /// A definition has no number.
    #[error(
        "core.toml line {line}: {name} has no number; append to ids.lock: {registry} {next} {name}"
    )]
    MissingId {
        /// Where it is defined.
        line: usize,
        /// `tile` or `kind`.
        registry: &'static str,
        /// The name.
        name: String,
        /// The number to give.
        next: u32,
    },
    /// A name that the protocol or the rules fix is not defined.
    #[error("core.toml: {name} is not defined, but the rules need it")]
    MissingDefinition {
        /// The name.
        name: &'static str,
    },
    /// A name whose number the protocol fixes has another one.
    #[error("ids.lock: {name} has number {id}, the protocol says {expected}")]
    FixedId {
        /// The name.
        name: &'static str,
        /// Its number in the lock.
        id: u16,
        /// Its number in the protocol.
        expected: u16,
    },
    /// A definition speaks of an item that is not one.
    #[error("core.toml line {line}: {name} leaves {item}, which is no defined item")]
    UnknownItem {
        /// Where the definition stands.
        line: usize,
        /// The definition.
        name: String,
        /// What it speaks of.
        item: String,
    },
    /// A value makes no sense.
    #[error("core.toml line {line}: {name}: {problem}")]
    Value {
        /// Where the definition stands.
        line: usize,
        /// The definition.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    welcome: String,
    signs: Vec<String>,
    #[serde(rename = "tile", default)]
    tiles: Vec<TileEntry>,
    #[serde(rename = "kind", default)]
    kinds: Vec<KindEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TileEntry {
    name: Spanned<String>,
    title: String,
    #[serde(default)]
    walkable: bool,
    #[serde(default)]
    diggable: bool,
    #[serde(default)]
    opaque: bool,
    #[serde(default = "one")]
    toughness: u8,
    drop: Option<String>,
    #[serde(default = "always")]
    drop_percent: u8,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KindEntry {
    name: Spanned<String>,
    title: String,
    class: Class,
    #[serde(default)]
    hp: u16,
    #[serde(default)]
    elo: u16,
    #[serde(default)]
    damage: [u16; 2],
    #[serde(default)]
    hostile: bool,
    #[serde(default)]
    speed: u16,
    #[serde(default)]
    attack_ticks: u16,
    #[serde(default)]
    regen: u16,
    #[serde(default)]
    loot: Vec<LootEntry>,
    spawn: Option<SpawnRule>,
    treasure: Option<Treasure>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LootEntry {
    item: String,
    percent: u8,
}

fn one() -> u8 {
    1
}

fn always() -> u8 {
    100
}

pub(super) fn parse(toml: &str, lock: &str) -> Result<Content, ContentError> {
    let file: File = toml::from_str(toml).map_err(|error| ContentError::Toml {
        line: line_of(toml, error.span().map_or(0, |span| span.start)),
        message: error.message().to_owned(),
    })?;
    let (tile_numbers, kind_numbers) = lock::parse(lock)?;
    let mut reader = Reader { toml, tile_ids: BTreeMap::new(), kind_ids: BTreeMap::new() };
    for entry in &file.tiles {
        let id = reader.number(Registry::Tile, &entry.name, &tile_numbers)?;
        reader.tile_ids.insert(entry.name.get_ref().clone(), TileId(id));
    }
    for entry in &file.kinds {
        let id = reader.number(Registry::Kind, &entry.name, &kind_numbers)?;
        reader.kind_ids.insert(entry.name.get_ref().clone(), KindId(id));
    }
    reader.check_fixed()?;
    reader.finish(file)
}

/// What the definitions are checked against.
struct Reader<'t> {
    toml: &'t str,
    tile_ids: BTreeMap<String, TileId>,
    kind_ids: BTreeMap<String, KindId>,
}

impl Reader<'_> {
    fn number(
        &self,
        registry: Registry,
        name: &Spanned<String>,
        numbers: &Numbers,
    ) -> Result<u16, ContentError> {
        let (line, text) = (self.line(name), name.get_ref());
        if !is_name(text) {
            let problem = "a name is lower case, as core:cave_rat, of at most 64 bytes";
            return Err(ContentError::Value { line, name: text.clone(), problem });
        }
        let known = match registry {
            Registry::Tile => self.tile_ids.contains_key(text),
            Registry::Kind => self.kind_ids.contains_key(text),
        };
        let (registry, name) = (registry.word(), text.clone());
        if known {
            return Err(ContentError::DuplicateName { file: TOML_FILE, line, registry, name });
        }
        let next = numbers.next();
        numbers.get(text).ok_or(ContentError::MissingId { line, registry, name, next })
    }

    fn check_fixed(&self) -> Result<(), ContentError> {
        for (name, expected) in FIXED_TILES {
            let id = self.tile_ids.get(name).ok_or(ContentError::MissingDefinition { name })?.0;
            if id != expected {
                return Err(ContentError::FixedId { name, id, expected });
            }
        }
        let name = "core:player";
        let id = self.kind_ids.get(name).ok_or(ContentError::MissingDefinition { name })?.0;
        if id == KindId::PLAYER.0 {
            Ok(())
        } else {
            Err(ContentError::FixedId { name, id, expected: KindId::PLAYER.0 })
        }
    }

    fn finish(self, file: File) -> Result<Content, ContentError> {
        let items: BTreeMap<&str, KindId> = file
            .kinds
            .iter()
            .filter(|entry| entry.class == Class::Item)
            .filter_map(|entry| {
                let name = entry.name.get_ref().as_str();
                Some((name, *self.kind_ids.get(name)?))
            })
            .collect();
        let (mut tiles, mut kinds) = (Vec::new(), Vec::new());
        for entry in &file.tiles {
            place(&mut tiles, self.tile_ids[entry.name.get_ref()].0, self.tile(entry, &items)?);
        }
        for entry in &file.kinds {
            place(&mut kinds, self.kind_ids[entry.name.get_ref()].0, self.kind(entry, &items)?);
        }
        let Reader { tile_ids, kind_ids, .. } = self;
        Ok(Content { tiles, kinds, tile_ids, kind_ids, welcome: file.welcome, signs: file.signs })
    }

    fn tile(
        &self,
        entry: &TileEntry,
        items: &BTreeMap<&str, KindId>,
    ) -> Result<TileDef, ContentError> {
        self.check(
            &entry.name,
            &[
                (!entry.title.is_empty(), "the title is empty"),
                (!(entry.walkable && entry.diggable), "what is walked on cannot be dug away"),
                (entry.toughness >= 1, "toughness is at least 1"),
                (entry.drop_percent <= 100, "drop_percent is at most 100"),
                (
                    entry.name.get_ref() != "core:floor" || entry.walkable,
                    "the floor must be walkable",
                ),
                (
                    !matches!(
                        entry.name.get_ref().as_str(),
                        "core:rock" | "core:bedrock" | "core:unknown"
                    ) || !entry.walkable,
                    "this tile must not be walkable",
                ),
            ],
        )?;
        let drop = match &entry.drop {
            Some(item) => Some(self.item(&entry.name, item, items)?),
            None => None,
        };
        Ok(TileDef {
            name: entry.name.get_ref().clone(),
            title: entry.title.clone(),
            walkable: entry.walkable,
            diggable: entry.diggable,
            opaque: entry.opaque,
            toughness: entry.toughness,
            drop,
            drop_percent: entry.drop_percent,
        })
    }

    fn kind(
        &self,
        entry: &KindEntry,
        items: &BTreeMap<&str, KindId>,
    ) -> Result<KindDef, ContentError> {
        let is_player = entry.name.get_ref() == "core:player";
        let is_monster = entry.class == Class::Monster;
        let fights = is_monster || is_player;
        let [damage_min, damage_max] = entry.damage;
        self.check(
            &entry.name,
            &[
                (!entry.title.is_empty(), "the title is empty"),
                ((entry.class == Class::Player) == is_player, "core:player alone has class player"),
                (!fights || entry.hp > 0, "what fights has at least 1 hp"),
                (damage_min <= damage_max, "damage is [least, most]"),
                (!is_monster || entry.speed > 0, "speed is at least 1"),
                (!is_monster || entry.attack_ticks > 0, "attack_ticks is at least 1"),
                (!entry.hostile || is_monster, "only monsters are hostile"),
                (entry.spawn.is_none() || is_monster, "only monsters have spawn"),
                (entry.treasure.is_none() || entry.class == Class::Item, "only items are treasure"),
                (entry.treasure.is_none_or(|t| t.most > 0), "most is at least 1"),
                (entry.loot.iter().all(|loot| loot.percent <= 100), "percent is at most 100"),
            ],
        )?;
        let loot = entry
            .loot
            .iter()
            .map(|loot| {
                let item = self.item(&entry.name, &loot.item, items)?;
                Ok(Loot { item, percent: loot.percent })
            })
            .collect::<Result<_, _>>()?;
        Ok(KindDef {
            name: entry.name.get_ref().clone(),
            title: entry.title.clone(),
            class: entry.class,
            hp: entry.hp,
            elo: entry.elo,
            damage_min,
            damage_max,
            hostile: entry.hostile,
            speed: entry.speed,
            attack_ticks: entry.attack_ticks,
            regen: entry.regen,
            loot,
            spawn: entry.spawn,
            treasure: entry.treasure,
        })
    }

    /// The first rule that does not hold is the error.
    fn check(
        &self,
        name: &Spanned<String>,
        rules: &[(bool, &'static str)],
    ) -> Result<(), ContentError> {
        match rules.iter().find(|(holds, _)| !holds) {
            None => Ok(()),
            Some(&(_, problem)) => {
                let (line, name) = (self.line(name), name.get_ref().clone());
                Err(ContentError::Value { line, name, problem })
            }
        }
    }

    fn item(
        &self,
        owner: &Spanned<String>,
        item: &str,
        items: &BTreeMap<&str, KindId>,
    ) -> Result<KindId, ContentError> {
        items.get(item).copied().ok_or_else(|| ContentError::UnknownItem {
            line: self.line(owner),
            name: owner.get_ref().clone(),
            item: item.to_owned(),
        })
    }

    fn line(&self, name: &Spanned<String>) -> usize {
        line_of(self.toml, name.span().start)
    }
}

fn place<T>(list: &mut Vec<Option<T>>, id: u16, def: T) {
    let id = usize::from(id);
    if list.len() <= id {
        list.resize_with(id + 1, || None);
    }
    list[id] = Some(def);
}

fn is_name(name: &str) -> bool {
    let word = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'))
    };
    let parts = name.split_once(':');
    name.len() <= MAX_NAME && parts.is_some_and(|(space, rest)| word(space) && word(rest))
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|&byte| byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOML: &str = include_str!("../../content/core.toml");
    const LOCK: &str = include_str!("../../content/ids.lock");

    fn error(toml: &str, lock: &str) -> String {
        Content::parse(toml, lock).unwrap_err().to_string()
    }

    #[test]
    fn name_without_number_says_which_line_to_append() {
        let toml =
            format!("{TOML}\n[[kind]]\nname = \"core:bat\"\ntitle = \"bat\"\nclass = \"item\"\n");
        let line = TOML.lines().count() + 3;
        assert_eq!(
            error(&toml, LOCK),
            format!(
                "core.toml line {line}: core:bat has no number; append to ids.lock: kind 14 core:bat"
            )
        );
    }

    #[test]
    fn numbers_of_retired_names_are_allowed_and_not_offered_again() {
        let lock = format!("{LOCK}kind 40 core:old_lamp # retired\n");
        let content = Content::parse(TOML, &lock).unwrap();
        assert_eq!(content.kind_id("core:old_lamp"), None);
        assert!(content.kind(KindId(40)).is_none());
        let toml =
            format!("{TOML}\n[[kind]]\nname = \"core:bat\"\ntitle = \"bat\"\nclass = \"item\"\n");
        assert!(error(&toml, &lock).ends_with("kind 41 core:bat"));
    }

    #[test]
    fn numbers_and_names_stand_once() {
        let lines = LOCK.lines().count();
        assert_eq!(
            error(TOML, &format!("{LOCK}tile 4 core:new\n")),
            format!("ids.lock line {}: tile 4 is given already", lines + 1)
        );
        assert_eq!(
            error(TOML, &format!("{LOCK}tile 90 core:granite\n")),
            format!("ids.lock line {}: tile core:granite stands here a second time", lines + 1)
        );
        let twice = format!("{TOML}\n[[tile]]\nname = \"core:rock\"\ntitle = \"rock\"\n");
        assert!(error(&twice, LOCK).ends_with("tile core:rock stands here a second time"));
    }

    #[test]
    fn malformed_lock_lines_are_named() {
        for bad in [
            "tile core:x 4",
            "tyle 40 core:x",
            "tile 70000 core:x",
            "tile -1 core:x",
            "tile 40",
            "tile 40 a b",
        ] {
            let text = format!("# first\n{bad}\n");
            let expected = ContentError::LockLine { line: 2, text: bad.to_owned() };
            assert_eq!(Content::parse(TOML, &text).unwrap_err(), expected);
        }
    }

    #[test]
    fn malformed_definitions_are_named_by_line() {
        let broken = TOML.replacen("walkable = true", "walkable = 7", 1);
        let line = TOML.lines().position(|line| line == "walkable = true").unwrap() + 1;
        assert!(error(&broken, LOCK).starts_with(&format!("core.toml line {line}: ")));
        let unknown = TOML.replacen("walkable = true", "walkabel = true", 1);
        assert!(error(&unknown, LOCK).contains("walkabel"));
    }

    #[test]
    fn fixed_numbers_and_definitions_are_guarded() {
        let swapped = LOCK.replace("tile 1 core:rock", "tile 50 core:rock");
        assert_eq!(error(TOML, &swapped), "ids.lock: core:rock has number 50, the protocol says 1");
        let renamed = TOML.replace("\"core:bedrock\"", "\"core:granite_floor\"");
        let lock = format!("{LOCK}tile 60 core:granite_floor\n");
        assert_eq!(
            error(&renamed, &lock),
            "core.toml: core:bedrock is not defined, but the rules need it"
        );
    }

    #[test]
    fn references_and_values_are_checked() {
        let dangling = TOML.replacen("drop = \"core:stone\"", "drop = \"core:ghoul\"", 1);
        assert!(
            error(&dangling, LOCK)
                .ends_with("core:rock leaves core:ghoul, which is no defined item")
        );
        for (from, to, problem) in [
            ("toughness = 4", "toughness = 0", "core:granite: toughness is at least 1"),
            ("damage = [1, 2]", "damage = [3, 2]", "core:cave_rat: damage is [least, most]"),
            ("speed = 3", "speed = 0", "core:cave_rat: speed is at least 1"),
            (
                "class = \"chest\"",
                "class = \"player\"",
                "core:chest: core:player alone has class player",
            ),
            ("drop_percent = 25", "drop_percent = 101", "core:rock: drop_percent is at most 100"),
            (
                "\"core:ghoul\"",
                "\"Ghoul\"",
                "Ghoul: a name is lower case, as core:cave_rat, of at most 64 bytes",
            ),
        ] {
            let toml = TOML.replacen(from, to, 1);
            assert_ne!(toml, TOML, "{from}");
            assert!(error(&toml, LOCK).ends_with(problem), "{}", error(&toml, LOCK));
        }
    }
}
