//! Packets as what a player sees: tiles, figures, texts.

use std::collections::{BTreeMap, HashMap, VecDeque};

use caves_wire::caves::{ChunkView, DetailView, EntityFlags, EntityIter, EntityView, tag};
use caves_wire::text;
use caves_world::{
    CHUNK_SIDE, CHUNK_TILES, ChunkPos, Content, EntityId, KindId, Pos, TileId, VIEW_AFTER,
    VIEW_BEFORE, in_viewport,
};

use crate::convert::{chunk_from_wire, entity_from_wire};

/// Chunks that are remembered; the farthest ones are forgotten first.
const CHUNKS: usize = 1024;
/// Details that are remembered.
const DETAILS: usize = 64;
/// Messages that are kept.
const MESSAGES: usize = 200;

/// What a player sees and remembers of the caves.
#[derive(Debug)]
pub struct Mirror {
    content: Content,
    chunks: HashMap<ChunkPos, Known>,
    /// Ascending by id.
    figures: Vec<Figure>,
    me: EntityId,
    details: BTreeMap<EntityId, Details>,
    messages: VecDeque<Message>,
    told: u64,
}

#[derive(Debug)]
struct Known {
    tiles: Box<[u16; CHUNK_TILES]>,
    /// Which tiles were ever in the viewport: bit x of row y.
    seen: [u32; CHUNK_SIDE as usize],
}

/// How a player knows a tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// It was never seen.
    Unseen,
    /// It was seen; this is how it is remembered.
    Remembered(TileId),
    /// It is in the viewport.
    InView(TileId),
}

/// An entity as the last complete update shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    /// Which entity.
    pub id: EntityId,
    /// What it is; it may be unknown to this client's content.
    pub kind: KindId,
    /// Where it is.
    pub pos: Pos,
    /// Hit points.
    pub hp: u16,
    /// Hit points when unhurt.
    pub hp_max: u16,
    /// Elo rating.
    pub elo: u16,
    /// It does not move.
    pub is_static: bool,
    /// Walking into it is an attack.
    pub is_hostile: bool,
    /// It can be interacted with.
    pub is_interactable: bool,
    /// Bits of [`caves_world::STATUS_FIGHTING`] and the like.
    pub status: u16,
    /// Its name, as it may be shown.
    pub name: Option<String>,
    /// What it said within the last 3 s, as it may be shown.
    pub speech: Option<String>,
}

/// What a query told of an entity.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Details {
    /// Its name, as it may be shown.
    pub name: Option<String>,
    /// What stands on a sign, as it may be shown.
    pub sign_text: Option<String>,
    /// What a chest holds, or what oneself carries.
    pub inventory: Option<Vec<(KindId, u16)>>,
    /// Lines of a dialogue, as they may be shown.
    pub dialogue: Vec<String>,
    /// Nothing was told: it is not in view, or there is nothing to know.
    pub is_empty: bool,
}

/// What a message is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// Somebody said it.
    Chat,
    /// The server tells the player.
    Notice,
    /// A fight.
    Combat,
    /// The client tells the player.
    Local,
}

/// A line for the message log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// What it is about.
    pub kind: MessageKind,
    /// Who said it, where that is known.
    pub from: Option<String>,
    /// What to show.
    pub text: String,
}

impl Mirror {
    /// Nothing is known yet.
    pub fn new(content: Content) -> Self {
        Self {
            content,
            chunks: HashMap::new(),
            figures: Vec::new(),
            me: EntityId::NONE,
            details: BTreeMap::new(),
            messages: VecDeque::new(),
            told: 0,
        }
    }

    /// What the caves are made of, as this client knows it.
    pub const fn content(&self) -> &Content {
        &self.content
    }

    /// How the player knows a tile.
    pub fn sight(&self, pos: Pos) -> Sight {
        let Some(known) = self.chunks.get(&pos.chunk()) else { return Sight::Unseen };
        let index = pos.index();
        let tile = TileId(known.tiles[index]);
        let side = CHUNK_SIDE as usize;
        if self.me().is_some_and(|me| in_viewport(me.pos, pos)) {
            Sight::InView(tile)
        } else if known.seen[index / side] >> (index % side) & 1 == 1 {
            Sight::Remembered(tile)
        } else {
            Sight::Unseen
        }
    }

    /// A tile that the server sent, seen or not.
    pub fn tile(&self, pos: Pos) -> Option<TileId> {
        Some(TileId(self.chunks.get(&pos.chunk())?.tiles[pos.index()]))
    }

    /// The tiles of a chunk that the server sent, row by row, as numbers of the content.
    pub fn chunk(&self, chunk: ChunkPos) -> Option<&[u16; CHUNK_TILES]> {
        self.chunks.get(&chunk).map(|known| &*known.tiles)
    }

    /// The player's own figure.
    pub fn me(&self) -> Option<&Figure> {
        self.figure(self.me)
    }

    /// One figure of the last complete update.
    pub fn figure(&self, id: EntityId) -> Option<&Figure> {
        let place = self.figures.binary_search_by_key(&id, |figure| figure.id).ok()?;
        self.figures.get(place)
    }

    /// All figures of the last complete update, ascending by id.
    pub fn figures(&self) -> &[Figure] {
        &self.figures
    }

    /// What was told of an entity.
    pub fn details(&self, id: EntityId) -> Option<&Details> {
        self.details.get(&id)
    }

    /// The messages, oldest first.
    pub const fn messages(&self) -> &VecDeque<Message> {
        &self.messages
    }

    /// How many messages were ever added: those that were kept and those that gave way.
    pub const fn told(&self) -> u64 {
        self.told
    }

    /// Adds a message; the oldest gives way.
    pub fn tell(&mut self, kind: MessageKind, from: Option<String>, text: String) {
        if self.messages.len() >= MESSAGES {
            self.messages.pop_front();
        }
        self.told += 1;
        self.messages.push_back(Message { kind, from, text });
    }

    /// Another session began: nothing of the last one's caves is true any more. Messages stay.
    pub(crate) fn forget_caves(&mut self) {
        self.chunks.clear();
        self.figures.clear();
        self.details.clear();
    }

    pub(crate) const fn set_me(&mut self, me: EntityId) {
        self.me = me;
    }

    /// Takes a chunk, and tells which one had to be forgotten for it.
    pub(crate) fn take_chunk(&mut self, view: ChunkView<'_>) -> Option<ChunkPos> {
        let pos = chunk_from_wire(view.entry().id);
        let known = self
            .chunks
            .entry(pos)
            .or_insert_with(|| Known { tiles: Box::new([0; CHUNK_TILES]), seen: [0; 32] });
        view.tiles(&mut known.tiles);
        self.mark_seen();
        if self.chunks.len() <= CHUNKS {
            return None;
        }
        let here = self.me().map_or(pos, |me| me.pos.chunk());
        let away = |chunk: &ChunkPos| (chunk.x - here.x).abs().max((chunk.y - here.y).abs());
        let farthest = self.chunks.keys().max_by_key(|chunk| (away(chunk), **chunk)).copied()?;
        self.chunks.remove(&farthest);
        Some(farthest)
    }

    /// Takes a complete update.
    pub(crate) fn take_entities(&mut self, entities: EntityIter<'_>) {
        self.figures.clear();
        self.figures.extend(entities.map(figure));
        // Ascending in an honest update; the lookup relies on it.
        self.figures.sort_by_key(|figure| figure.id);
        self.mark_seen();
    }

    pub(crate) fn take_detail(&mut self, view: DetailView<'_>) {
        let id = entity_from_wire(view.entity());
        if self.details.len() >= DETAILS && !self.details.contains_key(&id) {
            self.details.pop_first();
        }
        let meta = view.meta();
        let joined = |tag| -> Option<Vec<u8>> {
            let bytes: Vec<u8> = meta.values(tag).flatten().copied().collect();
            meta.first(tag).map(|_| bytes)
        };
        let lines = |bytes: Vec<u8>| -> Vec<String> {
            String::from_utf8_lossy(&bytes)
                .lines()
                .map(|line| text::clean(line).collect())
                .collect()
        };
        let details = Details {
            name: joined(tag::ENTITY_NAME).map(|bytes| shown(&bytes)),
            sign_text: joined(tag::SIGN_TEXT).map(|bytes| shown(&bytes)),
            inventory: joined(tag::INVENTORY).map(|bytes| pairs(&bytes)),
            dialogue: joined(tag::DIALOGUE).map(lines).unwrap_or_default(),
            is_empty: meta.as_bytes().is_empty(),
        };
        self.details.insert(id, details);
    }

    /// Remembers what is in the viewport now; a row of a chunk at a time, since it is done for each update.
    fn mark_seen(&mut self) {
        let Some(center) = self.me().map(|me| me.pos) else { return };
        let first = center.offset(-VIEW_BEFORE, -VIEW_BEFORE);
        let last = center.offset(VIEW_AFTER, VIEW_AFTER);
        for y in first.chunk().y..=last.chunk().y {
            for x in first.chunk().x..=last.chunk().x {
                let chunk = ChunkPos { x, y };
                let Some(known) = self.chunks.get_mut(&chunk) else { continue };
                let origin = chunk.origin();
                let (left, right) = within(first.x - origin.x, last.x - origin.x);
                let (top, bottom) = within(first.y - origin.y, last.y - origin.y);
                let columns = (u32::MAX << left) & (u32::MAX >> (CHUNK_SIDE - 1 - right));
                known.seen[top as usize..=bottom as usize]
                    .iter_mut()
                    .for_each(|row| *row |= columns);
            }
        }
    }
}

/// The part of a span that lies in a chunk.
fn within(from: i32, to: i32) -> (i32, i32) {
    (from.clamp(0, CHUNK_SIDE - 1), to.clamp(0, CHUNK_SIDE - 1))
}

fn shown(bytes: &[u8]) -> String {
    text::clean(&String::from_utf8_lossy(bytes)).collect()
}

fn pairs(bytes: &[u8]) -> Vec<(KindId, u16)> {
    let (pairs, _) = bytes.as_chunks::<4>();
    pairs
        .iter()
        .map(|[a, b, c, d]| (KindId(u16::from_le_bytes([*a, *b])), u16::from_le_bytes([*c, *d])))
        .collect()
}

fn figure(view: EntityView<'_>) -> Figure {
    let (flags, meta) = (view.flags(), view.meta());
    Figure {
        id: entity_from_wire(view.id()),
        kind: KindId(view.type_id()),
        pos: Pos { x: view.x().into(), y: view.y().into() },
        hp: view.hp(),
        hp_max: view.hp_max(),
        elo: view.elo(),
        is_static: flags.contains(EntityFlags::STATIC),
        is_hostile: flags.contains(EntityFlags::HOSTILE),
        is_interactable: flags.contains(EntityFlags::INTERACTABLE),
        status: meta.u16(tag::STATUS_EFFECTS).unwrap_or(0),
        name: meta.first(tag::ENTITY_NAME).map(shown),
        speech: meta.first(tag::SPEECH).map(shown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(id: EntityId, pos: Pos) -> Figure {
        let (hp, elo, is_static) = (1, 0, false);
        let (is_hostile, is_interactable, status) = (false, false, 0);
        let (kind, name, speech) = (KindId(0), None, None);
        Figure {
            id,
            kind,
            pos,
            hp,
            hp_max: hp,
            elo,
            is_static,
            is_hostile,
            is_interactable,
            status,
            name,
            speech,
        }
    }

    /// Against the viewport tile by tile (R15), where its edge and a chunk's meet in every way.
    #[test]
    fn what_was_in_view_is_remembered_and_nothing_else() {
        for (x, y) in [(0, 0), (15, 17), (16, 16), (-1, 31), (47, -33), (-64, 100)] {
            let (me, center) = (EntityId(1), Pos { x, y });
            let mut mirror = Mirror::new(Content::core());
            for chunk in center.chunk().around() {
                let known = Known { tiles: Box::new([1; CHUNK_TILES]), seen: [0; 32] };
                mirror.chunks.insert(chunk, known);
            }
            mirror.set_me(me);
            mirror.figures = vec![figure(me, center)];
            mirror.mark_seen();
            // Far away nothing is in view, only remembered.
            mirror.figures = vec![figure(me, center.offset(200, 0))];
            for (dx, dy) in (-40..40).flat_map(|dx| (-40..40).map(move |dy| (dx, dy))) {
                let was = (-15..=14).contains(&dx) && (-15..=14).contains(&dy);
                let expected = if was { Sight::Remembered(TileId(1)) } else { Sight::Unseen };
                assert_eq!(mirror.sight(center.offset(dx, dy)), expected, "{dx} {dy} of {x} {y}");
            }
        }
    }
}
