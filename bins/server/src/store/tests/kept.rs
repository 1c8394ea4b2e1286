//! A store that was written when format 1 was new must be read for ever. It and its lines lie in
//! `tests/data`; `CAVES_STORE_DATA=FOLDER cargo test -p caves-server kept` writes such files again, for a
//! new format.

use std::fs;

use super::super::file::RedbFile;
use super::super::{export, import};
use super::*;

const LINES: &str = include_str!("../../../tests/data/format-1.jsonl");

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// What is in it. Everything is written out: nothing that is changed elsewhere changes this.
fn small() -> (Save, Vec<BanRecord>) {
    let mut bag = Inventory::default();
    bag.add(KindId(6), 3);
    bag.add(KindId(8), 65_535);
    let mut tiles = Chunk::filled(TileId(1));
    for (index, tile) in [(0, 2), (1, 2), (31, 7), (1023, 3)] {
        tiles.set(index, TileId(tile)).unwrap();
    }
    let untouched = ChunkRecord { generator: 1, edited: None, residents: vec![], things: vec![] };
    let lived_in = ChunkRecord {
        generator: 1,
        edited: Some(tiles),
        residents: vec![
            Resident { kind: KindId(1), home: Pos { x: -64, y: 32 }, elo: 800, dead_until: None },
            Resident {
                kind: KindId(2),
                home: Pos { x: -33, y: 63 },
                elo: 1172,
                dead_until: Some(700),
            },
        ],
        things: vec![
            Thing {
                id: EntityId(5),
                kind: KindId(12),
                pos: Pos { x: -60, y: 40 },
                body: ThingBody::Chest(bag.clone()),
            },
            Thing {
                id: EntityId(6),
                kind: KindId(13),
                pos: Pos { x: -59, y: 40 },
                body: ThingBody::Sign("Mind the ghoul.".to_owned()),
            },
            Thing {
                id: EntityId(90),
                kind: KindId(9),
                pos: Pos { x: -60, y: 41 },
                body: ThingBody::Item(2),
            },
        ],
    };
    let world =
        WorldRecord { seed: 18_446_744_073_709_551_615, generator: 1, tick: 640, last_id: 90 };
    let chunks = vec![
        (ChunkPos { x: -2, y: 1 }, lived_in),
        (ChunkPos { x: 0, y: 0 }, untouched.clone()),
        (ChunkPos { x: 1022, y: -1023 }, untouched),
    ];
    let ada = PlayerRecord {
        name: "Ada".to_owned(),
        pos: Pos { x: -61, y: 40 },
        hp: 17,
        elo: 1043,
        inventory: bag,
    };
    let zoe = PlayerRecord {
        name: "Zoë".to_owned(),
        pos: Pos { x: 16, y: 16 },
        hp: 20,
        elo: 1000,
        inventory: Inventory::default(),
    };
    let bans = vec![
        BanRecord {
            target: "2001:db8::/32".to_owned(),
            is_name: false,
            reason: "floods".to_owned(),
            until_unix_s: Some(1_800_000_000),
            set_unix_s: 1_764_460_800,
        },
        BanRecord {
            target: "Mallory".to_owned(),
            is_name: true,
            reason: String::new(),
            until_unix_s: None,
            set_unix_s: 1_764_460_801,
        },
    ];
    (Save { world, chunks, players: vec![ada, zoe] }, bans)
}

fn check_it(path: &Path) {
    let (small, bans) = small();
    let (mut keeper, opened) = running(path);
    let expected =
        Opened { world: Some(small.world), players: small.players, bans, was_clean: true };
    assert_eq!(opened, expected);
    for (pos, record) in small.chunks {
        assert_eq!(read(&mut keeper, pos), StoreReply::Chunk(pos, Some(Box::new(record))));
    }
    keeper.close(PATIENCE).unwrap();
}

#[test]
fn a_store_of_format_1_is_read() {
    let folder = Folder::new();
    fs::copy(data("format-1.redb"), folder.store()).unwrap();
    check_it(&folder.store());
}

#[test]
fn lines_of_version_1_are_read() {
    let folder = Folder::new();
    import(&mut LINES.as_bytes(), &folder.store()).unwrap();
    check_it(&folder.store());
}

#[test]
fn a_store_of_format_1_gives_its_lines() {
    let mut lines = Vec::new();
    export(&data("format-1.redb"), &mut lines).unwrap();
    assert_eq!(String::from_utf8(lines).unwrap(), LINES);
}

#[test]
fn the_same_world_gives_the_same_lines_today() {
    let folder = Folder::new();
    let (mut keeper, _) = running(&folder.store());
    let (small, bans) = small();
    keeper.save(small, Some(bans)).unwrap();
    assert_eq!(next(&mut keeper), StoreReply::Saved);
    keeper.close(PATIENCE).unwrap();
    let mut file = RedbFile::open(&folder.store()).unwrap();
    file.compact();
    file.close().unwrap();
    let mut lines = Vec::new();
    export(&folder.store(), &mut lines).unwrap();
    if let Some(into) = std::env::var_os("CAVES_STORE_DATA") {
        fs::copy(folder.store(), Path::new(&into).join("format-1.redb")).unwrap();
        fs::write(Path::new(&into).join("format-1.jsonl"), &lines).unwrap();
    } else {
        assert_eq!(String::from_utf8(lines).unwrap(), LINES);
    }
}
