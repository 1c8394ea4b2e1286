//! Which chunks a client holds, beside the nine that the newest state names.

use std::collections::HashMap;

use caves_wire::caves::{ChunkEntry, ChunkId, ChunkVersion};

/// Chunks whose version is remembered; a player who comes back to one need not be sent it again.
const MOST: usize = 4096;

/// The newest manifest, and the versions of all chunks that are held.
///
/// A player stands still or walks within a chunk most of the time, and its manifest is then the one of
/// the tick before: what is held of the nine is looked up once, not for each state and each action.
#[derive(Debug, Default)]
pub(super) struct Held {
    versions: HashMap<ChunkId, ChunkVersion>,
    nine: Option<Nine>,
}

/// A manifest. Of each of its entries, `held` has what `versions` says.
#[derive(Debug)]
struct Nine {
    manifest: [ChunkEntry; 9],
    held: [Option<ChunkVersion>; 9],
    misses: bool,
}

impl Held {
    /// The newest manifest.
    pub(super) fn manifest(&self) -> Option<[ChunkEntry; 9]> {
        self.nine.as_ref().map(|nine| nine.manifest)
    }

    /// A newer state has this manifest.
    pub(super) fn name(&mut self, manifest: [ChunkEntry; 9]) {
        if self.nine.as_ref().is_some_and(|nine| nine.manifest == manifest) {
            return;
        }
        let held = manifest.map(|entry| self.versions.get(&entry.id).copied());
        self.nine = Some(Nine::new(manifest, held));
    }

    /// Holds a chunk of the manifest, whatever its version (R12); `false` if it is none of them.
    #[must_use]
    pub(super) fn hold(&mut self, entry: ChunkEntry) -> bool {
        let Some(nine) = &mut self.nine else { return false };
        if !nine.set(entry.id, Some(entry.version)) {
            return false;
        }
        if self.versions.len() >= MOST {
            self.versions.retain(|id, _| nine.manifest.iter().any(|of| of.id == *id));
        }
        self.versions.insert(entry.id, entry.version);
        true
    }

    /// This chunk is not held any more.
    pub(super) fn forget(&mut self, chunk: ChunkId) {
        self.versions.remove(&chunk);
        if let Some(nine) = &mut self.nine {
            nine.set(chunk, None);
        }
    }

    /// Whether a chunk of the manifest is not held at its version, or there is no manifest yet.
    pub(super) fn misses(&self) -> bool {
        self.nine.as_ref().is_none_or(|nine| nine.misses)
    }

    /// The manifest's chunks at the versions that are held: what an action lists (R11).
    pub(super) fn cache(&self) -> [ChunkEntry; 9] {
        let Some(nine) = &self.nine else { return [ChunkEntry::default(); 9] };
        let mut cache = nine.manifest;
        for (entry, held) in cache.iter_mut().zip(nine.held) {
            entry.version = held.unwrap_or(ChunkVersion::NOT_HELD);
        }
        cache
    }

    /// Chunks held.
    pub(super) fn len(&self) -> usize {
        self.versions.len()
    }
}

impl Nine {
    fn new(manifest: [ChunkEntry; 9], held: [Option<ChunkVersion>; 9]) -> Self {
        let misses = misses(&manifest, &held);
        Self { manifest, held, misses }
    }

    /// `false` if the manifest does not name this chunk.
    fn set(&mut self, chunk: ChunkId, version: Option<ChunkVersion>) -> bool {
        let mut is_named = false;
        // A server may name one twice.
        for (entry, held) in self.manifest.iter().zip(&mut self.held) {
            if entry.id == chunk {
                *held = version;
                is_named = true;
            }
        }
        self.misses = misses(&self.manifest, &self.held);
        is_named
    }
}

fn misses(manifest: &[ChunkEntry; 9], held: &[Option<ChunkVersion>; 9]) -> bool {
    manifest.iter().zip(held).any(|(entry, held)| *held != Some(entry.version))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn id(number: u8) -> ChunkId {
        ChunkId { x: i16::from(number % 4), y: i16::from(number / 4) }
    }

    #[test]
    fn no_version_is_a_version_that_can_be_missing() {
        let mut held = Held::default();
        assert!(held.misses(), "without a manifest");
        let nothing = ChunkEntry { id: id(1), version: ChunkVersion::NOT_HELD };
        held.name([nothing; 9]);
        assert!(held.misses(), "nothing is held, which is not the same as a version that says so");
        assert_eq!(held.cache(), [nothing; 9]);
        assert!(held.hold(nothing));
        assert!(!held.misses());
    }

    #[test]
    fn those_of_the_manifest_stay_when_too_many_are_held() {
        let mut held = Held::default();
        let at =
            |x: u16| ChunkEntry { id: ChunkId { x: x as i16, y: 0 }, version: ChunkVersion(3) };
        for first in (0..9 * 500).step_by(9) {
            held.name(std::array::from_fn(|place| at(first + place as u16)));
            for place in 0..9 {
                assert!(held.hold(at(first + place)));
            }
            assert!(held.len() <= MOST && !held.misses());
        }
    }

    proptest::proptest! {
        /// Against a map that is asked anew each time.
        #[test]
        fn what_is_said_of_the_nine_is_what_a_map_says(
            steps in proptest::collection::vec((0u8..8, 0u8..5, 0u16..2), 1..200),
        ) {
            let (mut held, mut map) = (Held::default(), BTreeMap::new());
            let mut manifest = None;
            for (what, chunk, version) in steps {
                let version = ChunkVersion(version);
                match what {
                    0 => {
                        // Few chunks, each of them named thrice: all nine are held now and then.
                        let nine = std::array::from_fn(|place| ChunkEntry {
                            id: id((chunk + place as u8 % 3) % 5),
                            version,
                        });
                        manifest = Some(nine);
                        held.name(nine);
                    }
                    1..=6 => {
                        let entry = ChunkEntry { id: id(chunk), version };
                        let named = manifest
                            .is_some_and(|nine: [ChunkEntry; 9]| nine.iter().any(|of| of.id == entry.id));
                        proptest::prop_assert_eq!(held.hold(entry), named);
                        if named {
                            map.insert((entry.id.x, entry.id.y), version);
                        }
                    }
                    _ => {
                        held.forget(id(chunk));
                        map.remove(&(id(chunk).x, id(chunk).y));
                    }
                }
                let of = |entry: &ChunkEntry| map.get(&(entry.id.x, entry.id.y)).copied();
                let missing = manifest
                    .is_none_or(|nine| nine.iter().any(|entry| of(entry) != Some(entry.version)));
                proptest::prop_assert_eq!(held.misses(), missing);
                proptest::prop_assert_eq!(held.manifest(), manifest);
                proptest::prop_assert_eq!(held.len(), map.len());
                let cache = manifest.map_or([ChunkEntry::default(); 9], |nine| {
                    nine.map(|entry| ChunkEntry {
                        id: entry.id,
                        version: of(&entry).unwrap_or(ChunkVersion::NOT_HELD),
                    })
                });
                proptest::prop_assert_eq!(held.cache(), cache);
            }
        }
    }
}
