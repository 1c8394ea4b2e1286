//! `ids.lock`: the number of each name.

use std::collections::{BTreeMap, BTreeSet};

use super::parse::{ContentError, LOCK_FILE};

/// The two registries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Registry {
    Tile,
    Kind,
}

impl Registry {
    pub(super) fn word(self) -> &'static str {
        match self {
            Registry::Tile => "tile",
            Registry::Kind => "kind",
        }
    }
}

/// The numbers of one registry, by name.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    by_name: BTreeMap<String, u16>,
    given: BTreeSet<u16>,
}

impl Numbers {
    pub(super) fn get(&self, name: &str) -> Option<u16> {
        self.by_name.get(name).copied()
    }

    /// The number that the next new name gets: above all that were ever given.
    pub(super) fn next(&self) -> u32 {
        self.given.last().map_or(0, |&id| u32::from(id) + 1)
    }
}

/// The numbers of tiles and of kinds.
pub(super) fn parse(text: &str) -> Result<(Numbers, Numbers), ContentError> {
    let (mut tiles, mut kinds) = (Numbers::default(), Numbers::default());
    for (at, line) in text.lines().enumerate() {
        let line_number = at + 1;
        let stated = line.split('#').next().unwrap_or_default().trim();
        if stated.is_empty() {
            continue;
        }
        let (registry, id, name) = parse_line(stated)
            .ok_or_else(|| ContentError::LockLine { line: line_number, text: stated.to_owned() })?;
        let numbers = match registry {
            Registry::Tile => &mut tiles,
            Registry::Kind => &mut kinds,
        };
        if !numbers.given.insert(id) {
            return Err(ContentError::DuplicateId {
                line: line_number,
                registry: registry.word(),
                id,
            });
        }
        if numbers.by_name.insert(name.to_owned(), id).is_some() {
            return Err(ContentError::DuplicateName {
                file: LOCK_FILE,
                line: line_number,
                registry: registry.word(),
                name: name.to_owned(),
            });
        }
    }
    Ok((tiles, kinds))
}

fn parse_line(line: &str) -> Option<(Registry, u16, &str)> {
    let mut words = line.split_whitespace();
    let registry = match words.next()? {
        "tile" => Registry::Tile,
        "kind" => Registry::Kind,
        _ => return None,
    };
    let id = words.next()?.parse().ok()?;
    let name = words.next()?;
    words.next().is_none().then_some((registry, id, name))
}
