//! Ticks: fifty a second, and an end to them.

/// The number of a game tick, 0 to [`Tick::LAST`].
///
/// It does not wrap: a server that comes to the last one loads its map anew, and ticks restart.
///
/// ```
/// use caves_wire::teeworlds::Tick;
///
/// let tick = Tick::new(0x6FFF_FFFE).unwrap();
/// assert_eq!(tick.next(), Some(Tick::LAST));
/// assert_eq!(Tick::LAST.next(), None);
/// assert_eq!(Tick::new(-1), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tick(i32);

impl Tick {
    /// Ticks in a second.
    pub const PER_SECOND: u32 = 50;
    /// The first tick.
    pub const FIRST: Self = Self(0);
    /// The last tick: 1 year and 69 days after the first.
    pub const LAST: Self = Self(0x6FFF_FFFF);

    /// The tick of a number from 0 to 1879048191.
    pub const fn new(number: i32) -> Option<Self> {
        if number < Self::FIRST.0 || number > Self::LAST.0 { None } else { Some(Self(number)) }
    }

    /// Its number.
    pub const fn get(self) -> i32 {
        self.0
    }

    /// The tick after this one; none after the last.
    #[must_use]
    pub const fn next(self) -> Option<Self> {
        Self::new(self.0 + 1)
    }
}

impl core::fmt::Display for Tick {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

/// A number as the reference's 32-bit integers hold it: the lowest 32 bits, read as a two's complement.
///
/// ```
/// use caves_wire::teeworlds::to_int32;
///
/// assert_eq!(to_int32(2_147_483_648), -2_147_483_648);
/// assert_eq!(to_int32(-2_147_483_649), 2_147_483_647);
/// ```
pub const fn to_int32(value: i64) -> i32 {
    value as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_end_at_the_last_one() {
        assert_eq!(Tick::new(0), Some(Tick::FIRST));
        assert_eq!(Tick::new(1_879_048_191), Some(Tick::LAST));
        assert_eq!(Tick::new(1_879_048_192), None);
        assert_eq!(Tick::new(i32::MIN), None);
        assert_eq!(Tick::FIRST.next().map(Tick::get), Some(1));
    }

    #[test]
    fn numbers_wrap_at_32_bits() {
        let modulus = 1i64 << 32;
        for value in [0i64, 1, -1, 2_147_483_647, 2_147_483_648, 4_294_967_295, -2_147_483_649] {
            let low = value.rem_euclid(modulus);
            let expected = if low < modulus / 2 { low } else { low - modulus };
            assert_eq!(i64::from(to_int32(value)), expected, "{value}");
            assert_eq!(to_int32(value + 3 * modulus), to_int32(value));
        }
        assert_eq!(to_int32(4_294_967_295), -1);
    }
}
