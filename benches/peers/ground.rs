//! A world in which every view is full: 1200 bytes of entities for everybody, to the byte.
//!
//! Players stand in groups of 24 with 32 stones on the floor among them, four chunks from group to
//! group, on bare floor without a monster. What a player sees of its group:
//!
//! ```text
//!   12            header
//! + 24 x (18 + 7) players, a tag with a name of five bytes each
//! + 32 x  18      stones
//! +       12      the tags of what was executed, in the own entry
//! = 1200
//! ```
//!
//! With N not a multiple of 24 the last group has fewer players and more stones, and up to 17 bytes less. Each player
//! has a tile to its east that is its own: it steps there and back.

use std::fmt::Write;

/// Players in a group.
const GROUP: usize = 24;
/// What is left of 1200 bytes for entries, without the header and the own tags.
const ROOM: usize = 1200 - 12 - 12;
const PLAYER: usize = 25;
const STONE: usize = 18;
/// Groups in a row.
const ROW: usize = 21;
/// Chunks from group to group: nobody sees two groups.
const APART: usize = 4;
/// The chunk of the first group, away from where people come into the world.
const FIRST: usize = 10;
/// Tiles from a chunk's corner to its group's.
const INSET: usize = 8;
const CHUNK: usize = 32;

/// The name of a player, always of five bytes.
pub(crate) fn name(client: usize) -> String {
    format!("p{client:04}")
}

/// The lines of an export: what `caves-server import` reads.
pub(crate) fn lines(clients: usize, generator: u32) -> String {
    let groups = clients.div_ceil(GROUP);
    let last_id = groups * ROOM / STONE;
    let mut text = format!(
        r#"{{"format":"forgotten-caves-world","version":1,"seed":7,"generator":{generator},"tick":1,"last_id":{last_id}}}
{{"content":{{"tiles":[],"kinds":[]}}}}
"#
    );
    for client in 0..clients {
        let (x, y) = stand(client);
        let name = name(client);
        push(
            &mut text,
            format_args!(
                r#"{{"player":{{"name":"{name}","x":{x},"y":{y},"hp":20,"elo":1000,"inventory":[]}}}}"#
            ),
        );
    }
    let mut id = 0;
    for group in 0..groups {
        let players = GROUP.min(clients - group * GROUP);
        let stones = (ROOM - PLAYER * players) / STONE;
        let (east, south) = chunk(group);
        for (x, y) in around(east, south) {
            let things = if (x, y) == (east, south) { stones } else { 0 };
            let things: Vec<_> = (0..things).map(|stone| thing(group, stone, &mut id)).collect();
            push(
                &mut text,
                format_args!(
                    r#"{{"chunk":{{"x":{x},"y":{y},"generator":{generator},"edited":{},"residents":[],"things":[{}]}}}}"#,
                    floor(),
                    things.join(",")
                ),
            );
        }
    }
    push(&mut text, format_args!(r#"{{"end":{{}}}}"#));
    text
}

fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{line}");
}

fn chunk(group: usize) -> (usize, usize) {
    (FIRST + APART * (group % ROW), FIRST + APART * (group / ROW))
}

fn around(east: usize, south: usize) -> impl Iterator<Item = (usize, usize)> {
    (south - 1..=south + 1).flat_map(move |y| (east - 1..=east + 1).map(move |x| (x, y)))
}

fn corner(group: usize) -> (usize, usize) {
    let (x, y) = chunk(group);
    (CHUNK * x + INSET, CHUNK * y + INSET)
}

/// Players on even places, so that the next tile to the east is free.
fn stand(client: usize) -> (usize, usize) {
    let ((x, y), place) = (corner(client / GROUP), client % GROUP);
    (x + 2 * (place % 5), y + 2 * (place / 5))
}

/// Stones on the rows between.
fn thing(group: usize, stone: usize, id: &mut usize) -> String {
    let (x, y) = corner(group);
    let (x, y) = (x + stone % 9, y + 1 + 2 * (stone / 9));
    *id += 1;
    format!(r#"{{"id":{id},"kind":"core:stone","x":{x},"y":{y},"item":1}}"#)
}

fn floor() -> String {
    let row = format!("\"{}\"", ".".repeat(CHUNK));
    let rows = vec![row; CHUNK].join(",");
    format!(r#"{{"version":1,"palette":[[".","core:floor"]],"rows":[{rows}]}}"#)
}
