//! Who sees what.
//!
//! ```
//! use caves_world::{World, WorldConfig};
//!
//! let mut world = World::new(WorldConfig::default());
//! let (ada, bob) = (world.spawn_player(None), world.spawn_player(None));
//! let mut seen = Vec::new();
//! world.in_view(ada, &mut seen);
//! assert!(seen.contains(&ada) && seen.contains(&bob));
//! assert!(seen.iter().all(|&thing| world.visible(ada, thing)));
//! ```

use std::ops::Range;

use crate::coord::{CHUNK_SIDE, ChunkPos, Pos};
use crate::entity::EntityId;
use crate::store::{Bucket, Spot};
use crate::world::World;

/// Tiles of the viewport to the west and to the north of the viewer (protocol, R15).
pub const VIEW_BEFORE: i32 = 15;

/// Tiles of the viewport to the east and to the south of the viewer (protocol, R15).
pub const VIEW_AFTER: i32 = 14;

/// Whether `thing` lies in the 30x30 viewport of a viewer at `viewer` (protocol, R15).
pub fn in_viewport(viewer: Pos, thing: Pos) -> bool {
    let side = |from: i32, to: i32| (-VIEW_BEFORE..=VIEW_AFTER).contains(&to.saturating_sub(from));
    side(viewer.x, thing.x) && side(viewer.y, thing.y)
}

impl World {
    /// Whether `viewer` may know of `thing`: the one rule for entities shown, queries answered and chat heard.
    /// The viewer itself is always visible to itself; what does not exist never is.
    pub fn visible(&self, viewer: EntityId, thing: EntityId) -> bool {
        match (self.entity(viewer), self.entity(thing)) {
            (Some(viewer), Some(thing)) => in_viewport(viewer.pos, thing.pos),
            _ => false,
        }
    }

    /// All that is visible to `viewer`, ascending by id; nothing when it does not exist. `order` is room that is used
    /// again from viewer to viewer.
    ///
    /// ```
    /// use caves_world::{World, WorldConfig};
    ///
    /// let mut world = World::new(WorldConfig::default());
    /// let ada = world.spawn_player(Some("Ada"));
    /// let mut order = Vec::new();
    /// let seen = world.look(ada, &mut order);
    /// assert!(seen.spots().any(|spot| spot.id == ada && spot.hp == 20));
    /// ```
    pub fn look<'a>(&'a self, viewer: EntityId, order: &'a mut Vec<u64>) -> Seen<'a> {
        order.clear();
        let mut runs: [&[Spot]; 4] = [&[]; 4];
        let mut ends = [0; 4];
        if let Some(here) = self.entity(viewer).map(|entity| entity.pos) {
            let north_west = here.offset(-VIEW_BEFORE, -VIEW_BEFORE);
            let (first, last) = (north_west.chunk(), here.offset(VIEW_AFTER, VIEW_AFTER).chunk());
            // A viewport is narrower than a chunk, so it touches one or two along each axis.
            for (corner, run) in runs.iter_mut().enumerate() {
                let chunk = ChunkPos {
                    x: if corner % 2 == 0 { first.x } else { last.x },
                    y: if corner / 2 == 0 { first.y } else { last.y },
                };
                let again =
                    corner % 2 == 1 && first.x == last.x || corner / 2 == 1 && first.y == last.y;
                if let Some(bucket) = self.entities.bucket(chunk).filter(|_| !again) {
                    *run = bucket.spots();
                    pick(bucket, corner, chunk.origin(), north_west, order);
                }
                ends[corner] = order.len();
            }
        }
        // Each run ascends; the whole is merged behind them, two by two.
        let [a, b, c, d] = ends;
        let north = merge(order, 0..a, a..b);
        let south = merge(order, b..c, c..d);
        let all = merge(order, north, south);
        Seen { runs, order: &order[all] }
    }

    /// Fills `out` with all that is visible to `viewer`, ascending by id; nothing when it does not exist.
    pub fn in_view(&self, viewer: EntityId, out: &mut Vec<EntityId>) {
        out.clear();
        let Some(here) = self.entity(viewer).map(|entity| entity.pos) else {
            return;
        };
        let north_west = here.offset(-VIEW_BEFORE, -VIEW_BEFORE);
        let south_east = here.offset(VIEW_AFTER, VIEW_AFTER);
        out.extend(self.entities.within(north_west, south_east).map(|spot| spot.id));
        out.sort_unstable();
    }

    /// The chunks around a viewer, row-major from north-west to south-east (protocol, R9); all of a player's are
    /// loaded.
    pub fn chunks_around(&self, viewer: EntityId) -> Option<[ChunkPos; 9]> {
        Some(self.entity(viewer)?.pos.chunk().around())
    }
}

/// What somebody sees; see [`World::look`].
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The spots of the chunks that the viewport touches.
    runs: [&'a [Spot]; 4],
    /// For each that is seen its id, in the upper half, and its place: two bits say in which run, thirty where.
    order: &'a [u64],
}

const PLACE_BITS: u32 = 30;

impl<'a> Seen<'a> {
    /// Ascending by id.
    pub fn spots(self) -> impl ExactSizeIterator<Item = &'a Spot> {
        self.order.iter().map(move |&key| {
            let place = key as u32;
            &self.runs[(place >> PLACE_BITS) as usize][(place & ((1 << PLACE_BITS) - 1)) as usize]
        })
    }

    /// How many there are.
    pub fn len(self) -> usize {
        self.order.len()
    }

    /// Whether there is nothing: a viewer that exists sees itself.
    pub fn is_empty(self) -> bool {
        self.order.is_empty()
    }
}

/// Adds those of a chunk that lie in the viewport. A branch for each would be guessed wrongly about as often as one is
/// seen, so there is none: all are compared, many at a time, then each is noted, and only counts if it is seen.
fn pick(bucket: &Bucket, number: usize, origin: Pos, north_west: Pos, order: &mut Vec<u64>) {
    const BLOCK: usize = 64;
    let (x, width) = window(north_west.x - origin.x);
    let (y, height) = window(north_west.y - origin.y);
    let (xs, ys) = bucket.places();
    let blocks = xs.chunks(BLOCK).zip(ys.chunks(BLOCK)).zip(bucket.spots().chunks(BLOCK));
    for (n, ((xs, ys), spots)) in blocks.enumerate() {
        let mut inside = [false; BLOCK];
        for ((inside, at_x), at_y) in inside.iter_mut().zip(xs).zip(ys) {
            *inside = (at_x.wrapping_sub(x) < width) & (at_y.wrapping_sub(y) < height);
        }
        let (mut seen, mut count) = ([0; BLOCK], 0);
        for (place, inside) in inside[..spots.len()].iter().enumerate() {
            // At most as many are seen as were looked at: the remainder changes nothing.
            seen[count % BLOCK] = place as u8;
            count += usize::from(*inside);
        }
        order.extend(seen[..count].iter().map(|&place| {
            let id = spots[usize::from(place)].id;
            let place = number << PLACE_BITS | (n * BLOCK + usize::from(place));
            u64::from(id.0) << 32 | place as u64
        }));
    }
}

/// Where the viewport begins within a chunk, along one axis, and how much of it lies there.
fn window(begin: i32) -> (u8, u8) {
    let first = begin.clamp(0, CHUNK_SIDE);
    let end = (begin + VIEW_BEFORE + VIEW_AFTER + 1).clamp(first, CHUNK_SIDE);
    (first as u8, (end - first) as u8)
}

/// Merges two ascending parts of a list at its end, and says where; nothing is moved where one of them is empty.
fn merge(order: &mut Vec<u64>, a: Range<usize>, b: Range<usize>) -> Range<usize> {
    if a.is_empty() || b.is_empty() {
        return if a.is_empty() { b } else { a };
    }
    let begin = order.len();
    order.resize(begin + a.len() + b.len(), 0);
    let (parts, out) = order.split_at_mut(begin);
    let (mut a, mut b) = (&parts[a], &parts[b]);
    // Things of one chunk have mostly got their ids together.
    if b.last() < a.first() {
        (a, b) = (b, a);
    }
    if a.last() < b.first() {
        let (first, second) = out.split_at_mut(a.len());
        first.copy_from_slice(a);
        second.copy_from_slice(b);
    } else {
        merge_into(a, b, out);
    }
    begin..order.len()
}

/// Merges two ascending lists without a key in common from both ends at once: what comes next waits for what came
/// before it, and so two of these chains take as long as one.
fn merge_into(a: &[u64], b: &[u64], out: &mut [u64]) {
    let (mut a_first, mut b_first, mut a_end, mut b_end) = (0, 0, a.len(), b.len());
    let half = out.len() / 2;
    let (front, back) = out.split_at_mut(half);
    for (low, high) in front.iter_mut().zip(back.iter_mut().rev()) {
        let (x, y) = (a.get(a_first).unwrap_or(&u64::MAX), b.get(b_first).unwrap_or(&u64::MAX));
        *low = *x.min(y);
        a_first += usize::from(x < y);
        b_first += usize::from(x >= y);
        // Place 0 is before the first: no key is 0.
        let (x, y) = (
            a.get(a_end.wrapping_sub(1)).unwrap_or(&0),
            b.get(b_end.wrapping_sub(1)).unwrap_or(&0),
        );
        *high = *x.max(y);
        a_end -= usize::from(x > y);
        b_end -= usize::from(x <= y);
    }
    // One is left in the middle when they are an odd number.
    if let (true, Some(middle)) = (back.len() > half, back.first_mut()) {
        *middle = if a_first < a_end { a[a_first] } else { b[b_first] };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coord::Direction;
    use crate::{Command, WorldConfig};

    proptest::proptest! {
        #[test]
        fn a_merge_is_both_sorted(a: Vec<u32>, b: Vec<u32>) {
            let ascending = |list: Vec<u32>, odd| {
                // No key stands in two runs.
                let mut list: Vec<u64> = list.iter().map(|n| u64::from(*n) * 2 + odd + 2).collect();
                list.sort_unstable();
                list
            };
            let (a, b) = (ascending(a, 0), ascending(b, 1));
            let mut order = [a.clone(), b.clone()].concat();
            let all = merge(&mut order, 0..a.len(), a.len()..a.len() + b.len());
            let mut expected = [a, b].concat();
            expected.sort_unstable();
            proptest::prop_assert_eq!(&order[all], expected);
        }
    }

    #[test]
    fn a_look_is_what_the_one_rule_says_in_every_corner_of_a_chunk() {
        let mut world = World::new(WorldConfig { seed: 3, ..WorldConfig::default() });
        let ada = world.spawn_player(Some("Ada"));
        let (mut ids, mut order, mut counts) = (Vec::new(), Vec::new(), Vec::new());
        for n in 0..40 {
            world.relocate(ada, Pos { x: 200 + n * 7 % 32, y: -100 + n * 5 % 32 });
            let _ = world.execute(ada, Command::Move(Direction::ALL[n as usize % 4]));
            world.step();
            world.in_view(ada, &mut ids);
            let seen = world.look(ada, &mut order);
            assert_eq!((seen.len(), seen.is_empty()), (ids.len(), false));
            assert!(seen.spots().map(|spot| spot.id).eq(ids.iter().copied()));
            assert!(seen.spots().all(|spot| world.visible(ada, spot.id)));
            for spot in seen.spots() {
                let entity = world.entity(spot.id).unwrap();
                let of = |entity: &crate::Entity| (entity.pos, entity.kind, entity.hp, entity.elo);
                assert_eq!((spot.pos, spot.kind, spot.hp, spot.elo), of(entity));
            }
            counts.push(seen.len());
        }
        assert!(counts.iter().max() > Some(&3), "there is something to be seen: {counts:?}");
        assert!(world.look(EntityId(999_999), &mut order).is_empty());
    }

    #[test]
    fn viewport_is_thirty_by_thirty() {
        let here = Pos { x: -3, y: 40 };
        let seen = (-60..60)
            .flat_map(|x| (-20..100).map(move |y| Pos { x, y }))
            .filter(|&pos| in_viewport(here, pos));
        let seen: Vec<Pos> = seen.collect();
        assert_eq!(seen.len(), 900);
        assert_eq!(seen.iter().map(|pos| pos.x).min(), Some(-18));
        assert_eq!(seen.iter().map(|pos| pos.x).max(), Some(11));
        assert_eq!(seen.iter().map(|pos| pos.y).min(), Some(25));
        assert_eq!(seen.iter().map(|pos| pos.y).max(), Some(54));
    }
}
