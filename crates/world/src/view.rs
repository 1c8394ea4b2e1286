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

#[cfg(test)]
mod tests {
    use super::*;

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
