//! Prints a window of the cave as text: `map [--seed N] [--at X,Y] [--size W,H] [--plain] [--chunks]`.
//!
//! `--at` is the tile in the middle, `--size` the window in tiles (default 120,60), `--plain` shows only open
//! and closed, `--chunks` marks the corners of chunks.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::collections::BTreeMap;
use std::process::ExitCode;

use caves_world::{ChunkPos, Class, Content, KindId, Pos, SPAWN, TileId, generate, populate};

struct Args {
    seed: u64,
    at: Pos,
    size: Pos,
    plain: bool,
    chunks: bool,
}

fn main() -> ExitCode {
    match args(std::env::args().skip(1)) {
        Ok(args) => {
            print(&args);
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("map: {message}");
            ExitCode::FAILURE
        }
    }
}

fn args(mut words: impl Iterator<Item = String>) -> Result<Args, String> {
    let size = Pos { x: 120, y: 60 };
    let mut args = Args { seed: 1, at: SPAWN, size, plain: false, chunks: false };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--seed" => args.seed = number(&value()?)?,
            "--at" => args.at = two(&value()?)?,
            "--size" => args.size = two(&value()?)?,
            "--plain" => args.plain = true,
            "--chunks" => args.chunks = true,
            _ => return Err(format!("unknown option {word}")),
        }
    }
    Ok(args)
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected a number, found {text}"))
}

fn two(text: &str) -> Result<Pos, String> {
    let parts = text.split_once(',');
    let numbers = parts.and_then(|(x, y)| Some(Pos { x: x.parse().ok()?, y: y.parse().ok()? }));
    numbers.ok_or(format!("expected X,Y, found {text}"))
}

fn print(args: &Args) {
    let content = Content::core();
    let mut chunks = BTreeMap::new();
    let mut things = BTreeMap::new();
    let (mut open, mut all) = (0u32, 0u32);
    for y in 0..args.size.y {
        let mut line = String::new();
        for x in 0..args.size.x {
            let pos = args.at.offset(x - args.size.x / 2, y - args.size.y / 2);
            let chunk = chunks.entry(pos.chunk()).or_insert_with(|| {
                let chunk = generate(args.seed, pos.chunk(), &content);
                let spawns = populate(args.seed, pos.chunk(), &chunk, &content);
                things.extend(spawns.into_iter().map(|spawn| (spawn.pos, spawn.kind)));
                chunk
            });
            let tile = chunk.tile(pos.index());
            all += 1;
            open += u32::from(content.is_walkable(tile));
            line.push(glyph(args, &content, pos, tile, things.get(&pos).copied()));
        }
        println!("{line}");
    }
    println!("{} % open", 100 * open / all.max(1));
}

fn glyph(args: &Args, content: &Content, pos: Pos, tile: TileId, thing: Option<KindId>) -> char {
    if args.chunks && pos == ChunkPos::origin(pos.chunk()) {
        return '+';
    }
    if args.plain {
        return if content.is_walkable(tile) { ' ' } else { '#' };
    }
    if pos == SPAWN {
        return '@';
    }
    let kind = thing.and_then(|kind| content.kind(kind));
    match kind.map(|def| (def.class, def.title.chars().next())) {
        Some((Class::Monster, first)) => return first.unwrap_or('m').to_ascii_uppercase(),
        Some((Class::Chest, _)) => return '$',
        Some((Class::Sign, _)) => return '?',
        Some((Class::Item, _)) => return '!',
        _ => {}
    }
    match content.tile(tile).map_or("", |def| def.name.as_str()) {
        "core:rock" => '#',
        "core:granite" => '%',
        "core:bedrock" => 'X',
        "core:crystal_vein" => '*',
        "core:coal_seam" => '&',
        "core:stalagmite" => 'o',
        "core:moss" => '"',
        "core:gravel" => ',',
        "core:mushrooms" => 'f',
        "core:shallow_water" => '~',
        _ => ' ',
    }
}
