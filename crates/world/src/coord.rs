//! Tiles, chunks and directions.
//!
//! x grows to the east and y to the south (protocol, R5 and R6). Arithmetic is 32-bit and saturates: every
//! position of the ground fits an `i16`, so nothing inside the world ever comes near the limits.
//!
//! ```
//! use caves_world::{ChunkPos, Direction, Pos};
//!
//! let tile = Pos { x: -1, y: 33 };
//! assert_eq!(tile.chunk(), ChunkPos { x: -1, y: 1 });
//! assert_eq!(tile.index(), 32 + 31);
//! assert_eq!(tile.step(Direction::East), Pos { x: 0, y: 33 });
//! ```

/// Tiles along one side of a chunk.
pub const CHUNK_SIDE: i32 = 32;

/// Tiles of one chunk.
pub const CHUNK_TILES: usize = 1024;

/// The first chunk of the ground on each axis (protocol, R8).
pub const GROUND_FIRST: i32 = -1023;

/// The last chunk of the ground on each axis, inclusive (protocol, R8).
pub const GROUND_LAST: i32 = 1022;

/// The first chunk of the extent on each axis: a row of bedrock (protocol, R8).
pub const EXTENT_FIRST: i32 = GROUND_FIRST - 1;

/// The last chunk of the extent on each axis, inclusive: a row of bedrock (protocol, R8).
pub const EXTENT_LAST: i32 = GROUND_LAST + 1;

/// An absolute tile position.
///
/// The order (x, then y) means nothing; it only makes iteration deterministic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pos {
    /// Tiles to the east of the origin.
    pub x: i32,
    /// Tiles to the south of the origin.
    pub y: i32,
}

impl Pos {
    /// The neighbouring tile in `direction`.
    pub fn step(self, direction: Direction) -> Pos {
        let (dx, dy) = direction.delta();
        self.offset(dx, dy)
    }

    /// The tile `dx` to the east and `dy` to the south.
    pub fn offset(self, dx: i32, dy: i32) -> Pos {
        Pos { x: self.x.saturating_add(dx), y: self.y.saturating_add(dy) }
    }

    /// The chunk of this tile: floor division, so tile -1 lies in chunk -1 (protocol, R7).
    pub fn chunk(self) -> ChunkPos {
        ChunkPos { x: self.x.div_euclid(CHUNK_SIDE), y: self.y.div_euclid(CHUNK_SIDE) }
    }

    /// The place of this tile within its chunk, `y * 32 + x`, 0..1024 (protocol, R5).
    pub fn index(self) -> usize {
        let x = self.x.rem_euclid(CHUNK_SIDE);
        let y = self.y.rem_euclid(CHUNK_SIDE);
        (y * CHUNK_SIDE + x) as usize
    }

    /// The larger of the distances along x and y, in tiles.
    pub fn distance(self, other: Pos) -> i32 {
        let larger = self.x.abs_diff(other.x).max(self.y.abs_diff(other.y));
        i32::try_from(larger).unwrap_or(i32::MAX)
    }

    /// Whether `other` is this tile or one step away in one of the four directions: the reach of an
    /// interaction (protocol, section 4).
    pub fn is_adjacent_or_same(self, other: Pos) -> bool {
        let (dx, dy) = (self.x.abs_diff(other.x), self.y.abs_diff(other.y));
        dx.saturating_add(dy) <= 1
    }
}

/// A chunk position: the tile positions divided by 32, rounded down.
///
/// The order (x, then y) means nothing; it only makes iteration deterministic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkPos {
    /// Chunks to the east of the origin.
    pub x: i32,
    /// Chunks to the south of the origin.
    pub y: i32,
}

impl ChunkPos {
    /// The north-west tile of this chunk.
    pub fn origin(self) -> Pos {
        Pos { x: self.x.saturating_mul(CHUNK_SIDE), y: self.y.saturating_mul(CHUNK_SIDE) }
    }

    /// The tile at `index` (`y * 32 + x`) of this chunk. Only `index % 1024` counts.
    pub fn tile(self, index: usize) -> Pos {
        let index = (index % CHUNK_TILES) as i32;
        self.origin().offset(index % CHUNK_SIDE, index / CHUNK_SIDE)
    }

    /// The neighbouring chunk in `direction`.
    pub fn step(self, direction: Direction) -> ChunkPos {
        let (dx, dy) = direction.delta();
        self.offset(dx, dy)
    }

    /// This chunk and its eight neighbours, row-major from north-west to south-east; number 4 is this
    /// chunk (protocol, R9).
    pub fn around(self) -> [ChunkPos; 9] {
        std::array::from_fn(|i| self.offset(i as i32 % 3 - 1, i as i32 / 3 - 1))
    }

    /// The 5x5 around this chunk, nearest first: itself, the other eight of its 3x3, the ring around those.
    pub(crate) fn around_wide(self) -> [ChunkPos; 25] {
        NEAREST_FIRST.map(|(dx, dy)| self.offset(dx, dy))
    }

    /// Whether this chunk is ground, which can hold floor (protocol, R8). All others are bedrock.
    pub fn is_ground(self) -> bool {
        let ground = GROUND_FIRST..=GROUND_LAST;
        ground.contains(&self.x) && ground.contains(&self.y)
    }

    fn offset(self, dx: i32, dy: i32) -> ChunkPos {
        ChunkPos { x: self.x.saturating_add(dx), y: self.y.saturating_add(dy) }
    }
}

/// Offsets of a 5x5 by their distance, row-major among equals. The first nine are the 3x3.
#[rustfmt::skip]
const NEAREST_FIRST: [(i32, i32); 25] = [
    (0, 0),
    (0, -1), (-1, 0), (1, 0), (0, 1),
    (-1, -1), (1, -1), (-1, 1), (1, 1),
    (0, -2), (-2, 0), (2, 0), (0, 2),
    (-1, -2), (1, -2), (-2, -1), (2, -1), (-2, 1), (2, 1), (-1, 2), (1, 2),
    (-2, -2), (2, -2), (-2, 2), (2, 2),
];

/// One of the four directions of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// y - 1
    North,
    /// x + 1
    East,
    /// y + 1
    South,
    /// x - 1
    West,
}

impl Direction {
    /// All four, clockwise from north.
    pub const ALL: [Direction; 4] =
        [Direction::North, Direction::East, Direction::South, Direction::West];

    /// The change of x and y of one step (protocol, R6).
    pub fn delta(self) -> (i32, i32) {
        match self {
            Direction::North => (0, -1),
            Direction::East => (1, 0),
            Direction::South => (0, 1),
            Direction::West => (-1, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tile_minus_one_lies_in_chunk_minus_one() {
        for (tile, chunk, place) in
            [(-33, -2, 31), (-32, -1, 0), (-1, -1, 31), (0, 0, 0), (31, 0, 31), (32, 1, 0)]
        {
            assert_eq!(Pos { x: tile, y: 0 }.chunk(), ChunkPos { x: chunk, y: 0 });
            assert_eq!(Pos { x: 0, y: tile }.chunk(), ChunkPos { x: 0, y: chunk });
            assert_eq!(Pos { x: tile, y: 0 }.index(), place);
            assert_eq!(Pos { x: 0, y: tile }.index(), place * 32);
        }
    }

    #[test]
    fn chunk_and_index_lead_back_to_the_tile() {
        for x in (-70..70).chain([-32768, 32767]) {
            for y in [-32768, -33, -1, 0, 5, 32767] {
                let pos = Pos { x, y };
                assert_eq!(pos.chunk().tile(pos.index()), pos);
            }
        }
    }

    #[test]
    fn directions_follow_the_note() {
        let from = Pos { x: 10, y: 20 };
        assert_eq!(from.step(Direction::North), Pos { x: 10, y: 19 });
        assert_eq!(from.step(Direction::East), Pos { x: 11, y: 20 });
        assert_eq!(from.step(Direction::South), Pos { x: 10, y: 21 });
        assert_eq!(from.step(Direction::West), Pos { x: 9, y: 20 });
    }

    #[test]
    fn around_is_row_major_with_the_own_chunk_fifth() {
        let around = ChunkPos { x: 7, y: -3 }.around();
        assert_eq!(around[0], ChunkPos { x: 6, y: -4 });
        assert_eq!(around[1], ChunkPos { x: 7, y: -4 });
        assert_eq!(around[3], ChunkPos { x: 6, y: -3 });
        assert_eq!(around[4], ChunkPos { x: 7, y: -3 });
        assert_eq!(around[8], ChunkPos { x: 8, y: -2 });
    }

    #[test]
    fn around_wide_is_the_five_by_five_nearest_first() {
        let here = ChunkPos { x: -4, y: 9 };
        let wide = here.around_wide();
        let mut sorted = wide;
        sorted.sort_unstable();
        let all = (-6..=-2).flat_map(|x| (7..=11).map(move |y| ChunkPos { x, y }));
        assert_eq!(sorted.to_vec(), all.collect::<Vec<_>>());
        let square = |pos: &ChunkPos| (pos.x + 4).pow(2) + (pos.y - 9).pow(2);
        assert!(wide.is_sorted_by_key(square));
        assert!(here.around().iter().all(|pos| wide[..9].contains(pos)));
    }

    #[test]
    fn the_extent_fits_sixteen_bits() {
        let north_west = ChunkPos { x: EXTENT_FIRST, y: EXTENT_FIRST }.origin();
        let south_east = ChunkPos { x: EXTENT_LAST, y: EXTENT_LAST }.tile(1023);
        assert_eq!(north_west, Pos { x: -32768, y: -32768 });
        assert_eq!(south_east, Pos { x: 32767, y: 32767 });
        assert!(ChunkPos { x: -1023, y: 1022 }.is_ground());
        assert!(!ChunkPos { x: -1024, y: 0 }.is_ground());
        assert!(!ChunkPos { x: 0, y: 1023 }.is_ground());
    }

    #[test]
    fn distance_is_the_larger_axis_and_reach_has_no_diagonal() {
        let here = Pos { x: 3, y: 3 };
        assert_eq!(here.distance(Pos { x: -2, y: 6 }), 5);
        assert_eq!(here.distance(Pos { x: 4, y: -6 }), 9);
        assert!(here.is_adjacent_or_same(here));
        assert!(here.is_adjacent_or_same(Pos { x: 3, y: 4 }));
        assert!(!here.is_adjacent_or_same(Pos { x: 4, y: 4 }));
        assert!(!here.is_adjacent_or_same(Pos { x: 5, y: 3 }));
    }

    #[test]
    fn the_ends_of_the_numbers_do_not_panic() {
        let far = Pos { x: i32::MAX, y: i32::MIN };
        assert_eq!(far.step(Direction::East), far);
        assert_eq!(far.distance(Pos { x: i32::MIN, y: 0 }), i32::MAX);
        assert!(!far.is_adjacent_or_same(Pos { x: i32::MIN, y: i32::MAX }));
        let chunk = ChunkPos { x: i32::MAX, y: i32::MIN };
        assert_eq!(chunk.around()[2], ChunkPos { x: i32::MAX, y: i32::MIN });
        assert_eq!(chunk.origin(), far);
    }
}
