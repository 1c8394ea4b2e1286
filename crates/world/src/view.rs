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

use crate::coord::{ChunkPos, Pos};
use crate::entity::EntityId;
use crate::store::Spot;
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
                if !again {
                    *run = self.entities.in_chunk(chunk);
                    pick(run, corner, north_west, order);
                }
            }
            order.sort_unstable();
        }
        Seen { runs, order }
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

/// Adds those of a run that lie in the viewport. Each is written, and only counts if it is seen: a branch for each
/// would be guessed wrongly about as often as one is seen.
fn pick(run: &[Spot], number: usize, north_west: Pos, order: &mut Vec<u64>) {
    const SIDE: u32 = (VIEW_BEFORE + VIEW_AFTER + 1).cast_unsigned();
    let before = order.len();
    order.resize(before + run.len(), 0);
    let (room, mut count) = (&mut order[before..], 0);
    let mut place = (number as u32) << PLACE_BITS;
    for spot in run {
        room[count] = u64::from(spot.id.0) << 32 | u64::from(place);
        let dx = spot.pos.x.wrapping_sub(north_west.x).cast_unsigned();
        let dy = spot.pos.y.wrapping_sub(north_west.y).cast_unsigned();
        count += usize::from((dx < SIDE) & (dy < SIDE));
        place += 1;
    }
    order.truncate(before + count);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coord::Direction;
    use crate::{Command, WorldConfig};

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
