//! Whether the numbers of a store mean what they mean to this program.

use caves_store::ContentNames;

/// The names that the store lacks, added; or which name or number stands against it.
///
/// A name that this program has no longer keeps its number: nothing else may have it.
pub(super) fn merge(kept: &ContentNames, ours: &ContentNames) -> Result<ContentNames, String> {
    Ok(ContentNames {
        tiles: merge_list("tile", &kept.tiles, &ours.tiles)?,
        kinds: merge_list("kind", &kept.kinds, &ours.kinds)?,
    })
}

type Numbered = (u16, String);

fn merge_list(what: &str, kept: &[Numbered], ours: &[Numbered]) -> Result<Vec<Numbered>, String> {
    let mut merged = kept.to_vec();
    for (number, name) in ours {
        let same_number = kept.iter().find(|(known, _)| known == number);
        let same_name = kept.iter().find(|(_, known)| known == name);
        match (same_number, same_name) {
            (Some((_, known)), _) if known != name => {
                return Err(format!("{what} {number} is {known:?} there and {name:?} here"));
            }
            (_, Some((known, _))) if known != number => {
                return Err(format!("{what} {name:?} has number {known} there and {number} here"));
            }
            (None, _) => merged.push((*number, name.clone())),
            _ => {}
        }
    }
    merged.sort_unstable();
    Ok(merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tiles: &[(u16, &str)]) -> ContentNames {
        let tiles = tiles.iter().map(|&(number, name)| (number, name.to_owned())).collect();
        ContentNames { tiles, kinds: Vec::new() }
    }

    #[test]
    fn new_names_are_added_and_retired_ones_stay() {
        let merged = merge(&names(&[(1, "a"), (4, "gone")]), &names(&[(1, "a"), (2, "b")]));
        assert_eq!(merged, Ok(names(&[(1, "a"), (2, "b"), (4, "gone")])));
    }

    #[test]
    fn a_number_with_another_name_is_refused() {
        let refused = merge(&names(&[(1, "a")]), &names(&[(1, "b")])).unwrap_err();
        assert_eq!(refused, "tile 1 is \"a\" there and \"b\" here");
    }

    #[test]
    fn a_name_with_another_number_is_refused() {
        let refused = merge(&names(&[(1, "a")]), &names(&[(2, "a")])).unwrap_err();
        assert_eq!(refused, "tile \"a\" has number 1 there and 2 here");
    }
}
