//! Ways through the caves for players that are not at a keyboard.

use std::collections::VecDeque;

use caves_world::{Direction, Pos, World};

/// Tiles on one side of the loaded 3x3 of chunks.
const SIDE: i32 = 96;

/// How many steps each tile of a 3x3 is from one of them, by the tiles as they were.
pub(crate) struct Field {
    origin: Pos,
    steps: Vec<Option<u32>>,
}

impl Field {
    /// Distances to `goal` up to `most`, within the 3x3 around it.
    pub(crate) fn to(world: &World, goal: Pos, most: u32) -> Self {
        let origin = goal.chunk().around()[0].origin();
        let mut field = Self { origin, steps: vec![None; (SIDE * SIDE) as usize] };
        let mut looked_at = vec![false; field.steps.len()];
        let mut next = VecDeque::from([(goal, 0)]);
        while let Some((pos, steps)) = next.pop_front() {
            let Some(place) = field.place(pos) else { continue };
            if std::mem::replace(&mut looked_at[place], true) {
                continue;
            }
            if world.content().is_walkable(world.tile(pos)) {
                field.steps[place] = Some(steps);
                if steps < most {
                    next.extend(Direction::ALL.map(|way| (pos.step(way), steps + 1)));
                }
            }
        }
        field
    }

    fn place(&self, pos: Pos) -> Option<usize> {
        let (x, y) = (pos.x - self.origin.x, pos.y - self.origin.y);
        let inside = (0..SIDE).contains(&x) && (0..SIDE).contains(&y);
        inside.then_some((y * SIDE + x) as usize)
    }

    pub(crate) fn steps(&self, pos: Pos) -> Option<u32> {
        self.steps[self.place(pos)?]
    }

    /// The way on from a tile, `None` at the goal and where none leads to it.
    pub(crate) fn way(&self, pos: Pos) -> Option<Direction> {
        let here = self.steps(pos)?;
        let nearer = |way: &Direction| self.steps(pos.step(*way)).is_some_and(|steps| steps < here);
        Direction::ALL.into_iter().find(nearer)
    }

    /// The tile that is the farthest from the goal.
    pub(crate) fn farthest(&self) -> Pos {
        let reached = self.steps.iter().enumerate().filter_map(|(i, steps)| Some(((*steps)?, i)));
        let (_, place) = reached.max().expect("the goal itself");
        self.origin.offset(place as i32 % SIDE, place as i32 / SIDE)
    }

    /// The nearest tile that can be dug, with the tile to stand on and the way to dig.
    pub(crate) fn nearest_to_dig(&self, world: &World) -> Option<(Pos, Direction)> {
        let content = world.content();
        let can_dig = |pos: Pos| content.tile(world.tile(pos)).is_some_and(|tile| tile.diggable);
        let reached = self.steps.iter().enumerate().filter_map(|(i, steps)| Some(((*steps)?, i)));
        let sites = reached.filter_map(|(steps, place)| {
            let stand = self.origin.offset(place as i32 % SIDE, place as i32 / SIDE);
            let way = Direction::ALL.into_iter().find(|way| can_dig(stand.step(*way)))?;
            Some((steps, place, stand, way))
        });
        let (.., stand, way) = sites.min_by_key(|(steps, place, ..)| (*steps, *place))?;
        Some((stand, way))
    }
}
