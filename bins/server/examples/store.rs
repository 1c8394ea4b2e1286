//! Measures a store on the disk of the current folder: `cargo run --release -p caves-server --example store`.
#![allow(clippy::print_stdout, reason = "figures are its purpose")]

use std::path::Path;
use std::time::{Duration, Instant};

use caves_game::{Save, StoreReply};
use caves_server::store::{Keeper, Options, Reply};
use caves_world::{
    Chunk, ChunkPos, ChunkRecord, EntityId, KindId, Resident, Thing, ThingBody, TileId, WorldRecord,
};

const COMMITS: u32 = 500;
const CHUNKS: i32 = 20;
const SAME: u32 = 10_000;

fn main() {
    let path = Path::new("measured.redb");
    assert!(!path.exists(), "{} is in the way", path.display());
    let (mut keeper, _) = Keeper::open(path, Options::default()).expect("a new store");
    keeper.start(|| ()).expect("threads");

    // Each commit edits 20 chunks of a world that grows.
    let mut times: Vec<Duration> = (0..COMMITS)
        .map(|n| {
            save(&mut keeper, n, n as i32 * CHUNKS % 2000 - 1000);
            keeper.status().last_commit_duration.expect("it has saved")
        })
        .collect();
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100];
    println!(
        "commit of {CHUNKS} edited chunks: p50 {:?}, p99 {:?}, max {:?}",
        at(50),
        at(99),
        at(100)
    );
    println!("file after {COMMITS} commits: {} bytes", len(path));

    let mut times: Vec<Duration> = (0..2000).map(|n| read(&mut keeper, n % 1000)).collect();
    times.sort_unstable();
    println!("read of a chunk, there and back: p50 {:?}, p99 {:?}", times[1000], times[1980]);

    for n in 0..SAME {
        save(&mut keeper, n, 0);
        if [0, 99, 999, 4999, SAME - 1].contains(&n) {
            println!("file after {} more commits of the same chunks: {} bytes", n + 1, len(path));
        }
    }
    let began = Instant::now();
    keeper.close(Duration::from_secs(60)).expect("it closes");
    println!("closed in {:?}: {} bytes", began.elapsed(), len(path));
    let began = Instant::now();
    drop(Keeper::open(path, Options::default()).expect("it opens"));
    println!("opened, all records read, in {:?}", began.elapsed());
    std::fs::remove_file(path).expect("it is ours");
    sizes();
}

fn len(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |data| data.len())
}

fn save(keeper: &mut Keeper, n: u32, first: i32) {
    let chunks = (0..CHUNKS).map(|place| edited(first + place, n)).collect();
    let world = WorldRecord { seed: 1, generator: 1, tick: n.into(), last_id: 1 << 24 };
    keeper.save(Save { world, chunks, players: Vec::new() }, None).expect("one at a time");
    while keeper.poll() != Some(Reply::Stored(StoreReply::Saved)) {
        std::thread::sleep(Duration::from_micros(50));
    }
}

fn read(keeper: &mut Keeper, x: i32) -> Duration {
    let began = Instant::now();
    assert!(keeper.read(ChunkPos { x: x - 500, y: 0 }));
    while keeper.poll().is_none() {
        std::hint::spin_loop();
    }
    began.elapsed()
}

/// A chunk as play leaves it: eight kinds of tiles, two monsters, three things.
fn edited(x: i32, n: u32) -> (ChunkPos, ChunkRecord) {
    let pos = ChunkPos { x, y: 0 };
    let mut tiles = Chunk::filled(TileId(1));
    for index in 0..1024 {
        let tile = TileId(1 + (index as u32 * 31 + n) as u16 % 8);
        tiles.set(index, tile).expect("eight kinds");
    }
    (pos, ChunkRecord { edited: Some(tiles), ..visited(pos) })
}

fn visited(pos: ChunkPos) -> ChunkRecord {
    let resident =
        |place| Resident { kind: KindId(1), home: pos.tile(place), elo: 800, dead_until: None };
    let thing = |id, place| Thing {
        id: EntityId((pos.x + 1024).unsigned_abs() * 8 + id),
        kind: KindId(8),
        pos: pos.tile(place),
        body: ThingBody::Item(3),
    };
    ChunkRecord {
        generator: 1,
        edited: None,
        residents: vec![resident(40), resident(700)],
        things: vec![thing(1, 5), thing(2, 500), thing(3, 900)],
    }
}

fn sizes() {
    let (pos, edited) = edited(100, 1);
    for (what, record) in [("visited", visited(pos)), ("edited", edited)] {
        let bytes = caves_store::chunk::encode(pos, &record).expect("it is valid").len();
        println!("record of a chunk that was {what}: {bytes} bytes");
    }
}
