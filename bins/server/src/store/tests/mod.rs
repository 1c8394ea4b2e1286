//! Real files, real threads.

mod bad_disk;
mod damage;
mod full_disk;
mod keeping;
mod kept;
mod moving;
mod opening;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use caves_game::{Save, StoreReply};
use caves_store::BanRecord;
use caves_world::{
    Chunk, ChunkPos, ChunkRecord, EntityId, Inventory, KindId, PlayerRecord, Pos, Resident, Thing,
    ThingBody, TileId, WorldRecord,
};

use super::{Keeper, Opened, Options, READ_QUEUE, Reply, StoreError, Trouble};

/// Longer than anything takes on the busiest machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A folder of a test's own, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("caves-store-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn store(&self) -> PathBuf {
        self.0.join("caves.redb")
    }

    /// The names of the files in it, in order.
    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Above all ids of [`chunk`].
const LAST: u32 = 200_000;

const WORLD: WorldRecord = WorldRecord { seed: 77, generator: 1, tick: 500, last_id: LAST };

/// A chunk that differs for each `(x, y, salt)`: edited for every second salt, a monster, three things.
fn chunk(x: i32, y: i32, salt: u16) -> (ChunkPos, ChunkRecord) {
    let pos = ChunkPos { x, y };
    let mut tiles = Chunk::filled(TileId::ROCK);
    for index in 0..usize::from(salt % 900) {
        tiles.set(index, TileId(2 + (index as u16 + salt) % 9)).unwrap();
    }
    let mut inventory = Inventory::default();
    inventory.add(KindId(8), 1 + salt);
    let first = ((x + 200) * 100 + y + 100).unsigned_abs() * 3 + 1;
    let bodies = [
        (12, ThingBody::Chest(inventory)),
        (13, ThingBody::Sign(format!("Here is {x}, {y}. ({salt})"))),
        (6, ThingBody::Item(1 + salt)),
    ];
    let things = bodies.into_iter().zip(0u16..).map(|((kind, body), place)| Thing {
        id: EntityId(first + u32::from(place)),
        kind: KindId(kind),
        pos: pos.tile(usize::from(place + salt) % 1024),
        body,
    });
    let resident = Resident {
        kind: KindId(1),
        home: pos.tile(usize::from(salt) % 1024),
        elo: 800 + salt % 100,
        dead_until: salt.is_multiple_of(3).then_some(u64::from(salt) * 7),
    };
    let record = ChunkRecord {
        generator: 1,
        edited: (salt % 2 == 1).then_some(tiles),
        residents: vec![resident],
        things: things.collect(),
    };
    (pos, record)
}

fn player(name: &str, hp: u16) -> PlayerRecord {
    let mut inventory = Inventory::default();
    inventory.add(KindId(7), 3);
    PlayerRecord { name: name.to_owned(), pos: Pos { x: -3, y: 5 }, hp, elo: 1010, inventory }
}

fn ban(target: &str) -> BanRecord {
    BanRecord {
        target: target.to_owned(),
        is_name: !target.starts_with(|c: char| c.is_ascii_digit()),
        reason: "floods".to_owned(),
        until_unix_s: Some(2_000_000_000),
        set_unix_s: 1_700_000_000,
    }
}

/// 60 chunks in both senses of each axis, two players.
fn sample() -> Save {
    let chunks = (0..60).map(|n: u16| chunk(i32::from(n) % 8 - 4, i32::from(n) / 8 - 3, n * 13));
    let players = vec![player("Ada", 20), player("Zoë", 7)];
    Save { world: WORLD, chunks: chunks.collect(), players }
}

fn open(path: &Path) -> Result<(Keeper, Opened), StoreError> {
    Keeper::open(path, Options::default())
}

/// A keeper whose threads run; nothing is woken, the tests ask.
fn running(path: &Path) -> (Keeper, Opened) {
    let (mut keeper, opened) = open(path).unwrap();
    keeper.start(|| ()).unwrap();
    (keeper, opened)
}

/// The next answer for the game.
fn next(keeper: &mut Keeper) -> StoreReply {
    loop {
        match wait(keeper) {
            Reply::Stored(reply) => return reply,
            Reply::Trouble(_) => {}
        }
    }
}

fn wait(keeper: &mut Keeper) -> Reply {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(reply) = keeper.poll() {
            return reply;
        }
        assert!(Instant::now() < until, "no answer: {keeper:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn save(keeper: &mut Keeper, save: Save) {
    keeper.save(save, None).unwrap();
    assert_eq!(next(keeper), StoreReply::Saved);
}

fn read(keeper: &mut Keeper, pos: ChunkPos) -> StoreReply {
    assert!(keeper.read(pos));
    next(keeper)
}

/// A store with [`sample`] and two bans in it that was closed in order.
fn sample_store(path: &Path) {
    let (mut keeper, _) = running(path);
    keeper.save(sample(), Some(vec![ban("192.0.2.0/24"), ban("Mallory")])).unwrap();
    assert_eq!(next(&mut keeper), StoreReply::Saved);
    keeper.close(PATIENCE).unwrap();
}
