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
//!
//! For the growth of the cost there are others: groups of ten players with any number of stones, and stones that nobody
//! is near, which sleep.

use std::fmt::Write;

/// Bytes of a StatePacket.
pub const STATE: usize = 72;
/// Bytes of a full EntityPacket.
pub const ENTITIES: usize = 1200;
/// Players in a group whose views are to be full, and in one whose views are to have a number of entities.
const FULL_GROUP: usize = 24;
const SMALL_GROUP: usize = 10;
/// What is left of 1200 bytes for entries, without the header and the own tags.
const ROOM: usize = ENTITIES - HEAD - OWN_TAGS;
const HEAD: usize = 12;
const OWN_TAGS: usize = 12;
const PLAYER: usize = 25;
const STONE: usize = 18;
/// Stones in a row: all of a group are in view of each of its players.
const STONES: usize = 14;
/// Stones in a chunk in which nobody is.
const ASLEEP: usize = 500;
/// Groups in a row.
const ROW: usize = 21;
/// Chunks from group to group: nobody sees two groups.
const APART: usize = 4;
/// The chunk of the first group, away from where people come into the world.
const FIRST: usize = 10;
/// The first row of chunks in which nobody is, and how many chunks are in a row.
const FAR: usize = 200;
const FAR_ROW: usize = 100;
/// Tiles from a chunk's corner to its group's.
const INSET: usize = 8;
const CHUNK: usize = 32;

/// What everybody has in view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// 1200 bytes.
    Full,
    /// So many entities, the viewer among them.
    Of(usize),
}

/// A world for a run.
#[derive(Debug, Clone, Copy)]
pub struct Ground {
    /// Players, each registered under its [name](name()).
    pub clients: usize,
    /// What each of them has in view.
    pub view: View,
    /// Entities that nobody is near.
    pub asleep: usize,
}

impl Ground {
    /// So many players with full views.
    pub const fn full(clients: usize) -> Self {
        Self { clients, view: View::Full, asleep: 0 }
    }

    const fn group(&self) -> usize {
        match self.view {
            View::Full => FULL_GROUP,
            View::Of(_) => SMALL_GROUP,
        }
    }

    const fn stones(&self, players: usize) -> usize {
        match self.view {
            View::Full => (ROOM - PLAYER * players) / STONE,
            View::Of(entities) => entities - players,
        }
    }

    /// Messages and bytes that a client gets in a tick, by the layout of the packets.
    pub fn due(&self) -> (u64, u64) {
        let View::Of(entities) = self.view else { return (2, (STATE + ENTITIES) as u64) };
        // Ids of stones are lower. An entry is never cut.
        let stones = std::iter::repeat_n(STONE, entities - SMALL_GROUP);
        let entries = stones.chain([PLAYER; SMALL_GROUP - 1]).chain([PLAYER + OWN_TAGS]);
        let (mut packets, mut room, mut bytes) = (1, ENTITIES - HEAD, 0);
        for entry in entries {
            if entry > room {
                (packets, room) = (packets + 1, ENTITIES - HEAD);
            }
            room -= entry;
            bytes += entry;
        }
        (1 + packets, (STATE + bytes) as u64 + packets * HEAD as u64)
    }

    /// The lines of an export: what `caves-server import` reads.
    pub fn lines(&self, generator: u32) -> String {
        let groups = self.clients.div_ceil(self.group());
        let last_id = groups * self.stones(0) + self.asleep;
        let mut text = format!(
            r#"{{"format":"forgotten-caves-world","version":1,"seed":7,"generator":{generator},"tick":1,"last_id":{last_id}}}
{{"content":{{"tiles":[],"kinds":[]}}}}
"#
        );
        for client in 0..self.clients {
            let (x, y) = self.stand(client);
            let name = name(client);
            push(
                &mut text,
                format_args!(
                    r#"{{"player":{{"name":"{name}","x":{x},"y":{y},"hp":20,"elo":1000,"inventory":[]}}}}"#
                ),
            );
        }
        let mut chunks = Chunks { text, generator, id: 0 };
        for group in 0..groups {
            let players = self.group().min(self.clients - group * self.group());
            let (east, south) = chunk(group);
            for (x, y) in around(east, south) {
                let stones = if (x, y) == (east, south) { self.stones(players) } else { 0 };
                chunks.push(x, y, stones);
            }
        }
        for number in 0..self.asleep.div_ceil(ASLEEP) {
            let stones = ASLEEP.min(self.asleep - number * ASLEEP);
            chunks.push(number % FAR_ROW, FAR + number / FAR_ROW, stones);
        }
        let mut text = chunks.text;
        push(&mut text, format_args!(r#"{{"end":{{}}}}"#));
        text
    }

    /// Players on even places, so that the next tile to the east is free.
    fn stand(&self, client: usize) -> (usize, usize) {
        let ((x, y), place) = (corner(chunk(client / self.group())), client % self.group());
        (x + 2 * (place % 5), y + 2 * (place / 5))
    }
}

/// The name of a player, always of five bytes.
pub fn name(client: usize) -> String {
    format!("p{client:04}")
}

/// Chunks of bare floor.
struct Chunks {
    text: String,
    generator: u32,
    /// The last that was given to a stone.
    id: usize,
}

impl Chunks {
    fn push(&mut self, x: usize, y: usize, stones: usize) {
        let (corner, generator) = (corner((x, y)), self.generator);
        let things: Vec<_> =
            (0..stones).map(|stone| thing(corner, stone, self.id + stone + 1)).collect();
        self.id += stones;
        push(
            &mut self.text,
            format_args!(
                r#"{{"chunk":{{"x":{x},"y":{y},"generator":{generator},"edited":{},"residents":[],"things":[{}]}}}}"#,
                floor(),
                things.join(",")
            ),
        );
    }
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

fn corner((x, y): (usize, usize)) -> (usize, usize) {
    (CHUNK * x + INSET, CHUNK * y + INSET)
}

/// Stones lie in rows from the corner on, under the players too; those of a chunk that sleeps begin anew when it is full.
fn thing((x, y): (usize, usize), stone: usize, id: usize) -> String {
    let (x, y) = (x + stone % STONES, y + stone / STONES % STONES);
    format!(r#"{{"id":{id},"kind":"core:stone","x":{x},"y":{y},"item":1}}"#)
}

fn floor() -> String {
    let row = format!("\"{}\"", ".".repeat(CHUNK));
    let rows = vec![row; CHUNK].join(",");
    format!(r#"{{"version":1,"palette":[[".","core:floor"]],"rows":[{rows}]}}"#)
}
