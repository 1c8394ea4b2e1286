//! What opening finds out, and what it refuses.

use std::fs;

use caves_store::{Backend, Batch, Meta, Table, content, meta};

use super::super::file::{DiskError, RedbFile};
use super::super::migrate::{Formats, Migration};
use super::*;

#[test]
fn a_second_one_is_refused_and_the_first_goes_on() {
    let folder = Folder::new();
    sample_store(&folder.store());
    let (mut keeper, _) = running(&folder.store());
    let refused = open(&folder.store()).unwrap_err();
    let path = folder.store().display().to_string();
    assert_eq!(refused.to_string(), format!("{path} is in use by another process"));
    save(&mut keeper, sample());
    keeper.close(PATIENCE).unwrap();
    open(&folder.store()).unwrap();
}

#[test]
fn after_an_end_that_was_not_in_order_ids_are_left_out() {
    let folder = Folder::new();
    let path = folder.store();
    sample_store(&path);
    // Opened and dropped without a word: three times, as often as a server crashes early.
    for crashes in 0..3u32 {
        let (_, opened) = open(&path).unwrap();
        assert_eq!(opened.was_clean, crashes == 0);
        assert_eq!(opened.world.unwrap().last_id, LAST + crashes * 65_536);
    }
    let (mut keeper, opened) = running(&path);
    let world = opened.world.unwrap();
    assert_eq!(world.last_id, LAST + 3 * 65_536);
    save(&mut keeper, Save { world, chunks: vec![], players: vec![] });
    keeper.close(PATIENCE).unwrap();
    let (_, opened) = open(&path).unwrap();
    assert!(opened.was_clean);
    assert_eq!(opened.world, Some(world), "an end in order leaves nothing out");
}

#[test]
fn an_end_without_a_save_counts_as_a_crash() {
    let folder = Folder::new();
    sample_store(&folder.store());
    let (keeper, _) = running(&folder.store());
    keeper.close(PATIENCE).unwrap();
    let (_, opened) = open(&folder.store()).unwrap();
    assert!(!opened.was_clean);
    assert_eq!(opened.world.unwrap().last_id, LAST + 65_536);
}

#[test]
fn an_id_in_the_store_is_never_given_again() {
    let folder = Folder::new();
    let (mut keeper, _) = running(&folder.store());
    let world = WorldRecord { last_id: 2, ..WORLD };
    save(&mut keeper, Save { world, chunks: vec![chunk(9, 9, 1)], players: vec![] });
    keeper.close(PATIENCE).unwrap();
    let last = open(&folder.store()).unwrap().1.world.unwrap().last_id;
    assert_eq!(last, (209 * 100 + 109) * 3 + 3, "the highest thing's, by the sample's formula");
}

#[test]
fn a_crash_while_a_store_is_made_leaves_none() {
    let folder = Folder::new();
    fs::write(folder.0.join("caves.redb.new"), b"half of something").unwrap();
    let (_, opened) = open(&folder.store()).unwrap();
    assert_eq!(opened.world, None);
    assert_eq!(folder.files(), ["caves.redb"]);
}

#[test]
fn files_that_are_no_store_are_refused_and_left_alone() {
    let folder = Folder::new();
    let junk: Vec<u8> = (0..50_000u32).map(|n| ((n * n) >> 7) as u8).collect();
    for bytes in [&b""[..], b"redb", b"[world]\nseed = 4\n", &junk] {
        fs::write(folder.store(), bytes).unwrap();
        let refused = open(&folder.store()).unwrap_err().to_string();
        assert!(refused.contains("none of it can be read; nothing was changed"), "{refused}");
        assert_eq!(fs::read(folder.store()).unwrap(), bytes);
        assert_eq!(folder.files(), ["caves.redb"]);
    }
}

#[test]
fn a_folder_that_is_not_there_is_said_so() {
    let folder = Folder::new();
    let refused = open(&folder.0.join("no/caves.redb")).unwrap_err().to_string();
    assert!(refused.starts_with("cannot create "), "{refused}");
    assert!(refused.contains("No such file"), "{refused}");
}

fn edit(path: &Path, batch: &Batch) {
    let mut file = RedbFile::open(path).unwrap();
    file.commit(batch).unwrap();
    file.close().unwrap();
}

fn with_format(path: &Path, format: u32) {
    let mut batch = Batch::default();
    let bytes = meta::encode(&Meta { format, world: WORLD, clean: true }).unwrap();
    batch.put(Table::Meta, meta::KEY.to_vec(), bytes);
    edit(path, &batch);
}

#[test]
fn a_newer_format_is_refused_by_its_number() {
    let folder = Folder::new();
    sample_store(&folder.store());
    with_format(&folder.store(), 9);
    let before = fs::read(folder.store()).unwrap();
    for repair in [false, true] {
        let refused = Keeper::open(&folder.store(), Options { repair }).unwrap_err().to_string();
        assert!(refused.contains("has format 9, this program knows formats up to 1"), "{refused}");
    }
    assert_eq!(fs::read(folder.store()).unwrap(), before);
}

#[test]
fn a_world_of_a_newer_generator_is_refused() {
    let folder = Folder::new();
    sample_store(&folder.store());
    let world = WorldRecord { generator: 40, ..WORLD };
    let mut batch = Batch::default();
    let bytes = meta::encode(&Meta { format: 1, world, clean: true }).unwrap();
    batch.put(Table::Meta, meta::KEY.to_vec(), bytes);
    edit(&folder.store(), &batch);
    let refused = open(&folder.store()).unwrap_err().to_string();
    assert!(refused.contains("was made by generator 40"), "{refused}");
}

/// Makes every player's rating 1.
fn to_2(file: &RedbFile) -> Result<Batch, DiskError> {
    use caves_store::player;
    let mut batch = Batch::default();
    file.walk(Table::Players, &mut |key, bytes| {
        let mut record = player::decode(key, bytes).unwrap();
        record.elo = 1;
        batch.put(Table::Players, key.to_vec(), player::encode(key, &record).unwrap());
        std::ops::ControlFlow::Continue(())
    })?;
    Ok(batch)
}

/// Takes all bans out.
fn to_3(file: &RedbFile) -> Result<Batch, DiskError> {
    let mut batch = Batch::default();
    file.walk(Table::Bans, &mut |key, _| {
        batch.delete(Table::Bans, key.to_vec());
        std::ops::ControlFlow::Continue(())
    })?;
    Ok(batch)
}

const MADE_UP: Formats = Formats {
    newest: 3,
    migrations: &[Migration { to: 2, run: to_2 }, Migration { to: 3, run: to_3 }],
};

#[test]
fn an_older_format_is_migrated_step_by_step_and_a_copy_is_kept() {
    let folder = Folder::new();
    sample_store(&folder.store());
    let (keeper, opened) = Keeper::open_with(&folder.store(), Options::default(), MADE_UP).unwrap();
    drop(keeper);
    assert_eq!(opened.world, Some(WORLD));
    let elos: Vec<u16> = opened.players.iter().map(|player| player.elo).collect();
    assert_eq!((elos, opened.bans), (vec![1, 1], vec![]));
    assert_eq!(folder.files(), ["caves.redb", "caves.redb.v1-backup"]);
    // The copy is the store as it was, for the program as it was.
    let (_, old) = open(&folder.0.join("caves.redb.v1-backup")).unwrap();
    assert_eq!((old.players, old.bans.len()), (sample().players, 2));
    assert!(open(&folder.store()).unwrap_err().to_string().contains("has format 3"));
}

#[test]
fn a_migration_that_fails_changes_nothing_of_its_step() {
    fn fails(_: &RedbFile) -> Result<Batch, DiskError> {
        Err(DiskError::System(std::io::Error::other("no room")))
    }
    let folder = Folder::new();
    sample_store(&folder.store());
    let broken = Formats {
        newest: 3,
        migrations: &[Migration { to: 2, run: to_2 }, Migration { to: 3, run: fails }],
    };
    let failed = Keeper::open_with(&folder.store(), Options::default(), broken).unwrap_err();
    assert!(failed.to_string().ends_with("no room"), "{failed}");
    // From where it stopped, with what works.
    let (_, opened) = Keeper::open_with(&folder.store(), Options::default(), MADE_UP).unwrap();
    assert_eq!((opened.players[0].elo, opened.bans.len()), (1, 0));
    assert_eq!(folder.files(), ["caves.redb", "caves.redb.v1-backup", "caves.redb.v2-backup"]);
}

#[test]
fn a_format_that_no_step_leads_from_is_refused() {
    let folder = Folder::new();
    sample_store(&folder.store());
    let gap = Formats { newest: 3, migrations: &[Migration { to: 3, run: to_3 }] };
    let refused = Keeper::open_with(&folder.store(), Options::default(), gap).unwrap_err();
    assert!(refused.to_string().contains("no way from it to format 3"), "{refused}");
}

fn with_names(path: &Path, change: impl FnOnce(&mut Vec<(u16, String)>)) {
    let mut names = {
        let file = RedbFile::examine(path, false).unwrap();
        content::decode(&file.get(Table::Meta, content::KEY).unwrap().unwrap()).unwrap()
    };
    change(&mut names.tiles);
    let mut batch = Batch::default();
    batch.put(Table::Meta, content::KEY.to_vec(), content::encode(&names).unwrap());
    edit(path, &batch);
}

#[test]
fn a_number_that_means_something_else_is_refused() {
    let folder = Folder::new();
    sample_store(&folder.store());
    with_names(&folder.store(), |tiles| tiles[4].1 = "core:lava".to_owned());
    let refused = open(&folder.store()).unwrap_err().to_string();
    let says = "tile 4 is \"core:lava\" there and \"core:granite\" here; export it with the program \
                that wrote it, and import that with this one";
    assert!(refused.ends_with(says), "{refused}");
}

#[test]
fn names_that_the_store_lacks_are_added() {
    let folder = Folder::new();
    sample_store(&folder.store());
    with_names(&folder.store(), |tiles| {
        assert_eq!(tiles.pop(), Some((11, "core:stalagmite".to_owned())));
        tiles.push((900, "core:retired".to_owned()));
    });
    drop(open(&folder.store()).unwrap());
    with_names(&folder.store(), |tiles| {
        let last: Vec<_> =
            tiles.iter().rev().take(2).map(|(n, name)| (*n, name.as_str())).collect();
        assert_eq!(last, [(900, "core:retired"), (11, "core:stalagmite")]);
    });
}
