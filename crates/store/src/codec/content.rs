//! Which number each content name had when the world was kept.

use caves_world::Content;
use serde::{Deserialize, Serialize};

use super::{Grown, Place, RecordError, RecordKind};
use crate::backend::Table;

/// The key of [`ContentNames`] in [`Table::Meta`].
pub const KEY: &[u8] = b"content";

const KIND: RecordKind = RecordKind::Content;

/// Bytes of a content name, at most.
const MAX_CONTENT_NAME: usize = 128;

/// Numbers and names, ascending by number.
///
/// ```
/// use caves_store::ContentNames;
/// use caves_world::Content;
///
/// let names = ContentNames::of(&Content::core());
/// assert_eq!(names.tiles[1], (1, "core:rock".to_owned()));
/// assert_eq!(names.kinds[0], (0, "core:player".to_owned()));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContentNames {
    /// Tiles.
    pub tiles: Vec<(u16, String)>,
    /// Kinds of creatures, items, chests and signs.
    pub kinds: Vec<(u16, String)>,
}

#[derive(Serialize, Deserialize)]
struct ContentV1 {
    tiles: Grown<(u16, String)>,
    kinds: Grown<(u16, String)>,
}

impl ContentNames {
    /// All that `content` defines.
    pub fn of(content: &Content) -> Self {
        Self {
            tiles: content.tiles().map(|(id, def)| (id.0, def.name.clone())).collect(),
            kinds: content.kinds().map(|(id, def)| (id.0, def.name.clone())).collect(),
        }
    }
}

/// The bytes of the names.
///
/// # Errors
/// [`RecordError`] for a record that [`decode`] would not take.
pub fn encode(names: &ContentNames) -> Result<Vec<u8>, RecordError> {
    check(names)?;
    let ContentNames { tiles, kinds } = names.clone();
    Ok(PLACE.seal(1, &ContentV1 { tiles: Grown(tiles), kinds: Grown(kinds) }))
}

/// The names.
///
/// # Errors
/// [`RecordError`] that says what is wrong.
pub fn decode(bytes: &[u8]) -> Result<ContentNames, RecordError> {
    let ContentV1 { tiles, kinds } = PLACE.open(bytes)?;
    let names = ContentNames { tiles: tiles.0, kinds: kinds.0 };
    check(&names)?;
    Ok(names)
}

const PLACE: Place<'static> = Place { record: KIND, table: Table::Meta, key: KEY };

fn check(names: &ContentNames) -> Result<(), RecordError> {
    for list in [&names.tiles, &names.kinds] {
        if !list.windows(2).all(|pair| pair[0].0 < pair[1].0) {
            return Err(KIND.value("its numbers do not ascend"));
        }
        let mut sorted: Vec<&str> = list.iter().map(|(_, name)| name.as_str()).collect();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(KIND.value("a name has two numbers"));
        }
        if sorted.iter().any(|name| !(1..=MAX_CONTENT_NAME).contains(&name.len())) {
            return Err(KIND.value("a content name is not 1 to 128 bytes"));
        }
    }
    Ok(())
}
