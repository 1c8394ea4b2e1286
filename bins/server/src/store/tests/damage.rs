//! Files that are not what was written.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;

use caves_store::{Backend, Batch, Table, chunk as codec, meta};

use super::super::file::RedbFile;
use super::*;

type Contents = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

/// All records but the world's own, which opening changes.
fn contents(path: &Path) -> Contents {
    let file = RedbFile::examine(path, true).unwrap();
    let mut contents = Contents::new();
    for table in Table::ALL {
        file.walk(table, &mut |key, value| {
            if (table, key) != (Table::Meta, meta::KEY) {
                contents.insert((table, key.to_vec()), value.to_vec());
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    }
    contents
}

/// Numbers that do not repeat for long: a linear congruence of Knuth's, its upper half.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

#[derive(Debug, Default)]
struct Tally {
    unharmed: u32,
    repaired: u32,
    hopeless: u32,
    lost: usize,
}

/// Whatever was done to the file: it opens with all that was in it, or is refused unchanged; then a
/// repair opens it with nothing in it that was not, or is refused with the file unchanged.
fn judge(folder: &Folder, original: &Contents, harmed: &[u8], what: &str, tally: &mut Tally) {
    let path = folder.store();
    fs::write(&path, harmed).unwrap();
    let refused = match open(&path) {
        Ok((keeper, opened)) => {
            drop(keeper);
            assert_eq!(opened.world.map(|world| world.seed), Some(77), "{what}");
            assert_eq!(contents(&path), *original, "{what}");
            tally.unharmed += 1;
            return;
        }
        Err(error) => error.to_string(),
    };
    assert!(
        refused.contains("nothing was changed") && refused.contains("--repair"),
        "{what}: {refused}"
    );
    assert_eq!(folder.files(), ["caves.redb"], "{what}");
    assert!(fs::read(&path).unwrap() == harmed, "{what}: it was changed");
    match Keeper::open(&path, Options { repair: true }) {
        Ok((keeper, opened)) => {
            drop(keeper);
            assert_eq!(opened.world.map(|world| world.seed), Some(77), "{what}");
            let left = contents(&path);
            for (place, value) in &left {
                assert_eq!(original.get(place), Some(value), "{what}: {place:?}");
            }
            tally.lost += original.len() - left.len();
            tally.repaired += 1;
        }
        Err(error) => {
            let error = error.to_string();
            assert!(
                error.contains("cannot be repaired") && error.contains("restore"),
                "{what}: {error}"
            );
            assert!(fs::read(&path).unwrap() == harmed, "{what}: it was changed");
            tally.hopeless += 1;
        }
    }
    let mut copies = 0;
    for name in folder.files() {
        assert!(!name.ends_with(".new"), "{what}: {name} is left");
        copies += u32::from(name.starts_with("caves.redb.damaged-") && !name.ends_with(".jsonl"));
        fs::remove_file(folder.0.join(name)).unwrap();
    }
    assert_eq!(copies, 1, "{what}: a copy is kept");
}

fn sample_file(folder: &Folder) -> (Contents, Vec<u8>) {
    sample_store(&folder.store());
    (contents(&folder.store()), fs::read(folder.store()).unwrap())
}

#[test]
fn a_byte_changed_anywhere_is_harmless_or_told_and_repaired() {
    let folder = Folder::new();
    let (original, bytes) = sample_file(&folder);
    let (mut draws, mut tally) = (Draws(1), Tally::default());
    for round in 0..300 {
        let (at, bits) = (draws.below(bytes.len()), 1 + draws.below(255) as u8);
        let mut harmed = bytes.clone();
        harmed[at] ^= bits;
        judge(&folder, &original, &harmed, &format!("{round}: {at} ^ {bits:02x}"), &mut tally);
    }
    assert!(tally.unharmed > 20 && tally.repaired > 20 && tally.hopeless <= 3, "{tally:?}");
    // A record at most for each byte, and mostly none.
    assert!(tally.lost <= tally.repaired as usize * 3, "{tally:?}");
}

#[test]
fn a_bit_changed_in_the_header_is_harmless_or_told() {
    let folder = Folder::new();
    let (original, bytes) = sample_file(&folder);
    let (mut draws, mut tally) = (Draws(2), Tally::default());
    for at in 0..320 {
        let mut harmed = bytes.clone();
        harmed[at] ^= 1 << draws.below(8);
        judge(&folder, &original, &harmed, &format!("header byte {at}"), &mut tally);
    }
    // Hopeless are the 128 bytes of the last commit's root, and the highest bits of a few numbers.
    assert!(tally.hopeless <= 140 && tally.unharmed > 150, "{tally:?}");
}

#[test]
fn pages_that_are_zero_swapped_or_cut_off_are_told_and_repaired() {
    let folder = Folder::new();
    let (original, bytes) = sample_file(&folder);
    let (mut draws, mut tally) = (Draws(3), Tally::default());
    let pages = bytes.len() / 4096;
    for page in 0..pages {
        let mut harmed = bytes.clone();
        harmed[page * 4096..][..4096].fill(0);
        judge(&folder, &original, &harmed, &format!("page {page} zero"), &mut tally);
        let mut harmed = bytes.clone();
        let other = draws.below(pages);
        harmed.copy_within(other * 4096..(other + 1) * 4096, page * 4096);
        judge(&folder, &original, &harmed, &format!("page {other} on {page}"), &mut tally);
        if page % 4 == 0 {
            judge(&folder, &original, &bytes[..page * 4096], &format!("cut at {page}"), &mut tally);
        }
        let cut = draws.below(bytes.len());
        judge(&folder, &original, &bytes[..cut], &format!("cut at byte {cut}"), &mut tally);
    }
    assert!(tally.repaired as usize > pages / 2, "{tally:?}");
}

#[test]
fn a_record_that_is_not_what_was_written_is_named_and_moved_out() {
    let folder = Folder::new();
    let (original, _) = sample_file(&folder);
    // By redb's own hand, so that its checksums are right.
    let key = |x, y| codec::key(ChunkPos { x, y }).to_vec();
    let mut batch = Batch::default();
    let mut flipped = original[&(Table::Chunks, key(-1, 2))].clone();
    flipped[3] ^= 0x10;
    batch.put(Table::Chunks, key(-1, 2), flipped.clone());
    // A whole record in another's place.
    let other = original[&(Table::Chunks, key(0, 0))].clone();
    batch.put(Table::Chunks, key(3, 3), other);
    batch.put(
        Table::Players,
        b"eve".to_vec(),
        original[&(Table::Players, b"ada".to_vec())].clone(),
    );
    let mut file = RedbFile::open(&folder.store()).unwrap();
    file.commit(&batch).unwrap();
    file.close().unwrap();

    let refused = open(&folder.store()).unwrap_err().to_string();
    let start = "is damaged: 2 of 60 records of chunks cannot be read (chunk (-1,2), a chunk's record: \
                 the checksum says ";
    assert!(refused.contains(start), "{refused}");
    assert!(refused.contains("; chunk (3,3), a chunk's record: "), "{refused}");
    assert!(
        refused.contains("1 of 3 records of players cannot be read (player \"eve\", "),
        "{refused}"
    );

    let (mut keeper, opened) = Keeper::open(&folder.store(), Options { repair: true }).unwrap();
    assert_eq!(opened.players, sample().players);
    keeper.start(|| ()).unwrap();
    for (pos, record) in sample().chunks {
        let lost = [(-1, 2), (3, 3)].contains(&(pos.x, pos.y));
        let expected = (!lost).then(|| Box::new(record));
        assert_eq!(read(&mut keeper, pos), StoreReply::Chunk(pos, expected));
    }
    keeper.close(PATIENCE).unwrap();
    let moved = folder.files().into_iter().find(|name| name.ends_with(".jsonl")).unwrap();
    let moved = fs::read_to_string(folder.0.join(moved)).unwrap();
    let lines: Vec<serde_json::Value> =
        moved.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    let hex: String = flipped.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(lines[0]["what"], "chunk (-1,2)");
    assert_eq!((&lines[0]["value"], &lines[0]["key"]), (&hex.into(), &"7fffffff80000002".into()));
}

#[test]
fn a_store_without_its_world_is_not_taken_for_a_new_one() {
    let folder = Folder::new();
    sample_store(&folder.store());
    let mut batch = Batch::default();
    batch.delete(Table::Meta, meta::KEY.to_vec());
    let mut file = RedbFile::open(&folder.store()).unwrap();
    file.commit(&batch).unwrap();
    file.close().unwrap();
    let refused = open(&folder.store()).unwrap_err().to_string();
    assert!(refused.contains("the world's own record is missing"), "{refused}");
    let refused = Keeper::open(&folder.store(), Options { repair: true }).unwrap_err().to_string();
    assert!(refused.contains("cannot be repaired: the world's own record"), "{refused}");
}

#[test]
fn nothing_is_repaired_where_nothing_is_wrong() {
    let folder = Folder::new();
    let (original, _) = sample_file(&folder);
    drop(Keeper::open(&folder.store(), Options { repair: true }).unwrap());
    assert_eq!(contents(&folder.store()), original);
    assert_eq!(folder.files(), ["caves.redb"]);
    let nowhere = folder.0.join("other.redb");
    let refused = Keeper::open(&nowhere, Options { repair: true }).unwrap_err().to_string();
    assert!(refused.ends_with("nothing to repair"), "{refused}");
    assert!(!nowhere.exists());
}
