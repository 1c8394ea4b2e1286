use super::*;
use crate::content::Class;
use crate::coord::{Direction, GROUND_FIRST, GROUND_LAST};
use crate::hash::Fnv;
use std::collections::BTreeMap;

/// A generator of its own: which tiles of a chunk are walkable, and nothing else is known about it.
fn walkable(seed: u64, pos: ChunkPos, content: &Content) -> Vec<bool> {
    let chunk = generate(seed, pos, content);
    (0..1024).map(|i| content.tile(chunk.tile(i)).unwrap().walkable).collect()
}

/// The number of separate walkable parts, by the four directions within the chunk.
fn parts(open: &[bool]) -> usize {
    let mut left: Vec<bool> = open.to_vec();
    let mut count = 0;
    while let Some(start) = left.iter().position(|&open| open) {
        count += 1;
        let mut todo = vec![start as i32];
        left[start] = false;
        while let Some(at) = todo.pop() {
            let (x, y) = (at % 32, at / 32);
            for (x, y) in [(x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)] {
                let inside = (0..32).contains(&x) && (0..32).contains(&y);
                if inside && left[(y * 32 + x) as usize] {
                    left[(y * 32 + x) as usize] = false;
                    todo.push(y * 32 + x);
                }
            }
        }
    }
    count
}

/// Whether one walks from `a` into `b`, its neighbour to the east (or, `south`, to the south).
fn joined(a: &[bool], b: &[bool], south: bool) -> bool {
    (0..32).any(|i| if south { a[31 * 32 + i] && b[i] } else { a[i * 32 + 31] && b[i * 32] })
}

struct Block {
    open: BTreeMap<ChunkPos, Vec<bool>>,
}

impl Block {
    fn new(seed: u64, x: std::ops::RangeInclusive<i32>, y: std::ops::RangeInclusive<i32>) -> Block {
        let content = Content::core();
        let places = x.flat_map(|x| y.clone().map(move |y| ChunkPos { x, y }));
        Block { open: places.map(|pos| (pos, walkable(seed, pos, &content))).collect() }
    }

    fn neighbours(&self, pos: ChunkPos) -> Vec<ChunkPos> {
        let here = &self.open[&pos];
        let leads = |side: &Direction| {
            let there = self.open.get(&pos.step(*side));
            there.is_some_and(|there| match side {
                Direction::East => joined(here, there, false),
                Direction::West => joined(there, here, false),
                Direction::South => joined(here, there, true),
                Direction::North => joined(there, here, true),
            })
        };
        Direction::ALL.iter().filter(|side| leads(side)).map(|&side| pos.step(side)).collect()
    }
}

#[test]
fn every_chunk_is_one_cave_and_all_caves_are_one() {
    for seed in [1, 0xDEAD_BEEF_0000_0001] {
        let block = Block::new(seed, -32..=31, -32..=31);
        for (pos, open) in &block.open {
            assert_eq!(parts(open), 1, "seed {seed}, {pos:?}");
        }
        let mut reached = vec![ChunkPos { x: 0, y: 0 }];
        let mut seen: std::collections::BTreeSet<_> = reached.iter().copied().collect();
        while let Some(pos) = reached.pop() {
            for next in block.neighbours(pos) {
                if seen.insert(next) {
                    reached.push(next);
                }
            }
        }
        assert_eq!(seen.len(), 64 * 64, "seed {seed}");
    }
}

#[test]
fn far_chunks_are_one_cave_each_and_lead_towards_the_middle() {
    let blocks = [
        (GROUND_FIRST..=GROUND_FIRST + 8, GROUND_FIRST..=GROUND_FIRST + 8),
        (GROUND_LAST - 8..=GROUND_LAST, GROUND_LAST - 8..=GROUND_LAST),
        (GROUND_FIRST..=GROUND_FIRST + 8, GROUND_LAST - 8..=GROUND_LAST),
        (-4..=4, GROUND_FIRST..=GROUND_FIRST + 8),
        (500..=508, -700..=-692),
    ];
    for (x, y) in blocks {
        let block = Block::new(99, x, y);
        for (&pos, open) in &block.open {
            assert_eq!(parts(open), 1, "{pos:?}");
            let away = |pos: ChunkPos| pos.x.abs() + pos.y.abs();
            let parents: Vec<ChunkPos> = Direction::ALL
                .iter()
                .map(|&side| pos.step(side))
                .filter(|&next| away(next) < away(pos))
                .collect();
            // Chunks at the block's rim may lead out of it.
            let known = parents.iter().all(|next| block.open.contains_key(next));
            let leads = block.neighbours(pos).iter().any(|next| parents.contains(next));
            assert!(leads || !known || pos == ChunkPos { x: 0, y: 0 }, "{pos:?}");
        }
    }
}

#[test]
fn beyond_the_ground_all_is_bedrock() {
    let content = Content::core();
    for pos in [
        ChunkPos { x: -1024, y: -1024 },
        ChunkPos { x: 1023, y: 0 },
        ChunkPos { x: 0, y: 1023 },
        ChunkPos { x: 30_000, y: -2_000_000_000 },
    ] {
        let chunk = generate(1, pos, &content);
        assert!((0..1024).all(|i| chunk.tile(i) == TileId::BEDROCK));
        assert_eq!(populate(1, pos, &chunk, &content), []);
    }
    let last = generate(1, ChunkPos { x: 1022, y: -1023 }, &content);
    assert!((0..1024).all(|i| last.tile(i) != TileId::BEDROCK));
}

#[test]
fn spawn_is_a_safe_room_for_any_seed() {
    let content = Content::core();
    for seed in 0..300u64 {
        let seed = seed.wrapping_mul(0x1234_5678_9ABC_DEF1);
        let open = walkable(seed, SPAWN.chunk(), &content);
        assert_eq!(generate(seed, SPAWN.chunk(), &content).tile(SPAWN.index()), TileId::FLOOR);
        assert_eq!(parts(&open), 1);
        let room = (-3..=3).flat_map(|dx| (-3..=3).map(move |dy| SPAWN.offset(dx, dy)));
        assert!(room.into_iter().all(|pos| open[pos.index()]), "seed {seed}");
        for pos in SPAWN.chunk().around() {
            let chunk = generate(seed, pos, &content);
            for spawn in populate(seed, pos, &chunk, &content) {
                let hostile = content.kind(spawn.kind).unwrap().hostile;
                assert!(!hostile || spawn.pos.distance(SPAWN) > 8, "seed {seed}: {spawn:?}");
            }
        }
    }
}

#[test]
fn about_half_of_the_ground_is_open() {
    for seed in [2, 3, 4] {
        let block = Block::new(seed, 100..=119, -60..=-41);
        let open: usize = block.open.values().flatten().filter(|&&open| open).count();
        let percent = 100 * open / (400 * 1024);
        assert!((45..=55).contains(&percent), "seed {seed}: {percent} %");
        let least = block.open.values().map(|c| c.iter().filter(|&&open| open).count()).min();
        assert!(least > Some(60), "seed {seed}: a chunk with {least:?} open tiles");
    }
}

#[test]
fn inhabitants_stand_on_free_floor_and_fit_their_kind() {
    let content = Content::core();
    let mut classes = BTreeMap::<Class, usize>::new();
    for x in -12..12 {
        for y in -12..12 {
            let pos = ChunkPos { x, y };
            let chunk = generate(6, pos, &content);
            let spawns = populate(6, pos, &chunk, &content);
            let mut places: Vec<Pos> = spawns.iter().map(|spawn| spawn.pos).collect();
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), spawns.len(), "two in one place");
            for spawn in spawns {
                check(&spawn, pos, &chunk, &content);
                *classes.entry(content.kind(spawn.kind).unwrap().class).or_default() += 1;
            }
        }
    }
    // 576 chunks: one and a half monsters and items each; a chest in 30, a sign in 12 of a hundred.
    for (class, least, most) in [
        (Class::Monster, 700, 1000),
        (Class::Item, 700, 1000),
        (Class::Chest, 130, 220),
        (Class::Sign, 40, 110),
    ] {
        assert!((least..=most).contains(&classes[&class]), "{class:?}: {}", classes[&class]);
    }
}

fn check(spawn: &Spawn, pos: ChunkPos, chunk: &Chunk, content: &Content) {
    assert_eq!(spawn.pos.chunk(), pos);
    assert!(content.tile(chunk.tile(spawn.pos.index())).unwrap().walkable);
    assert_ne!(spawn.pos, SPAWN);
    let def = content.kind(spawn.kind).unwrap();
    match &spawn.body {
        SpawnBody::Monster => {
            assert_eq!(def.class, Class::Monster);
            let near = pos.x.abs().max(pos.y.abs()) < 2;
            assert!(!(near && def.name == "core:ghoul"), "ghouls live further out");
        }
        SpawnBody::Chest(inventory) => {
            assert_eq!(def.class, Class::Chest);
            assert!(!inventory.is_empty());
            assert!(
                inventory.iter().all(|(item, _)| content.kind(item).unwrap().class == Class::Item)
            );
        }
        SpawnBody::Sign(text) => {
            assert_eq!(def.class, Class::Sign);
            assert!(!text.is_empty());
        }
        SpawnBody::Item(count) => {
            assert_eq!(def.class, Class::Item);
            assert!((1..=9).contains(count));
        }
    }
}

#[test]
fn content_without_fancy_tiles_still_makes_caves() {
    let toml = "welcome = 'hi'\nsigns = []\n".to_owned()
        + "[[tile]]\nname = 'core:unknown'\ntitle = 'u'\n[[tile]]\nname = 'core:rock'\ntitle = 'r'\n"
        + "[[tile]]\nname = 'core:floor'\ntitle = 'f'\nwalkable = true\n"
        + "[[tile]]\nname = 'core:bedrock'\ntitle = 'b'\n"
        + "[[kind]]\nname = 'core:player'\ntitle = 'p'\nclass = 'player'\nhp = 1\n";
    let lock = "tile 0 core:unknown\ntile 1 core:rock\ntile 2 core:floor\ntile 3 core:bedrock\n"
        .to_owned()
        + "kind 0 core:player\n";
    let content = Content::parse(&toml, &lock).unwrap();
    let pos = ChunkPos { x: 3, y: -8 };
    let chunk = generate(1, pos, &content);
    assert_eq!(chunk.palette(), [TileId::ROCK, TileId::FLOOR]);
    assert_eq!(populate(1, pos, &chunk, &content), []);
}

#[test]
fn a_generator_is_found_by_its_version_and_no_other_stands_in_for_it() {
    assert_eq!(GENERATOR_VERSION, 1);
    for version in 1..=GENERATOR_VERSION {
        assert_eq!(Generator::by_version(version).map(Generator::version), Ok(version));
    }
    for version in [0, GENERATOR_VERSION + 1, u32::MAX] {
        assert_eq!(Generator::by_version(version), Err(UnknownGenerator(version)));
    }
}

/// The caves of version 1 of the generator, which stay for good: kept worlds name it. Who changes what is
/// generated adds a generator beside it, with numbers of its own here.
#[test]
fn caves_of_the_first_generator_never_change() {
    let content = Content::core();
    let first = Generator::by_version(1).unwrap();
    let found: Vec<u64> = [
        (1, ChunkPos { x: 0, y: 0 }),
        (1, ChunkPos { x: -1, y: 0 }),
        (u64::MAX, ChunkPos { x: 77, y: -300 }),
        (7, ChunkPos { x: GROUND_FIRST, y: GROUND_LAST }),
    ]
    .into_iter()
    .map(|(seed, pos)| {
        let chunk = first.chunk(seed, pos, &content);
        let mut fnv = Fnv::new();
        (0..1024).for_each(|i| fnv.u16(chunk.tile(i).0));
        for spawn in first.inhabitants(seed, pos, &chunk, &content) {
            fnv.u16(spawn.kind.0);
            fnv.i32(spawn.pos.x);
            fnv.i32(spawn.pos.y);
            match spawn.body {
                SpawnBody::Monster => fnv.u16(0),
                SpawnBody::Item(count) => fnv.u16(count),
                SpawnBody::Sign(text) => fnv.text(&text),
                SpawnBody::Chest(inventory) => inventory.iter().for_each(|(item, count)| {
                    fnv.u16(item.0);
                    fnv.u16(count);
                }),
            }
        }
        fnv.finish()
    })
    .collect();
    assert_eq!(
        found,
        [
            0x9a60_4bb3_1f10_ab2a,
            0xa88e_74a1_abc0_a1d8,
            0x7eff_2c74_ef4b_aea2,
            0x9cab_d8a8_b6a1_129b,
        ],
        "{found:#x?}"
    );
}
