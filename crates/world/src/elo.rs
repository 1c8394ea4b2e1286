//! The rating that serves as level: Elo's formula with K = 32 on the scale of 400, in integers.
//!
//! A won fight is worth `32 / (1 + 10^(d / 400))` rounded, where `d` is how much higher the winner was rated.
//! Powers of ten differ between machines in the last digit, so the result is read off a table.

/// The largest lead of the winner at which a win is worth at least 1, 2, ... 32 points:
/// `floor(400 * log10((32 - (k - 0.5)) / (k - 0.5)))` for k = 1..=32.
const LEAD_FOR_POINTS: [i32; 32] = [
    719, 523, 428, 364, 314, 273, 237, 205, 176, 149, 124, 100, 77, 54, 32, 10, -11, -33, -55, -78,
    -101, -125, -150, -177, -206, -238, -274, -315, -365, -429, -524, -720,
];

/// What a win of `winner` over `loser` is worth, 0..=32.
pub(crate) fn points(winner: u16, loser: u16) -> u16 {
    let lead = i32::from(winner) - i32::from(loser);
    LEAD_FOR_POINTS.partition_point(|&limit| lead <= limit) as u16
}

/// Moves the points of a win and returns how many moved. The sum of both ratings stays, so neither leaves
/// 0..=65535.
pub(crate) fn settle(winner: &mut u16, loser: &mut u16) -> u16 {
    let moved = points(*winner, *loser).min(*loser).min(u16::MAX - *winner);
    *winner += moved;
    *loser -= moved;
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_follow_the_formula() {
        // 32 / (1 + 10^(d/400)): 16; 7.69 and 24.31; 2.91 and 29.09; 11.52 and 20.48; 0.52 and 0.48.
        assert_eq!(points(1000, 1000), 16);
        assert_eq!(points(1200, 1000), 8);
        assert_eq!(points(1000, 1200), 24);
        assert_eq!(points(1400, 1000), 3);
        assert_eq!(points(1000, 1400), 29);
        assert_eq!(points(1100, 1000), 12);
        assert_eq!(points(1000, 1100), 20);
        assert_eq!(points(1719, 1000), 1);
        assert_eq!(points(1720, 1000), 0);
        assert_eq!(points(0, 65535), 32);
        assert_eq!(points(65535, 0), 0);
    }

    #[test]
    fn table_agrees_with_floating_point_everywhere() {
        for lead in -2000i32..=2000 {
            let exact = 32.0 / (1.0 + 10f64.powf(f64::from(lead) / 400.0));
            // No lead within the range lies closer to a half than this, so rounding is not in doubt.
            assert!((exact.fract() - 0.5).abs() > 1e-6, "{lead}");
            let winner = (30_000 + lead) as u16;
            assert_eq!(f64::from(points(winner, 30_000)), exact.round(), "{lead}");
        }
    }

    #[test]
    fn the_sum_stays_and_the_ends_hold() {
        for (winner, loser) in [(1000u16, 1000u16), (0, 5), (65530, 65530), (65535, 65535), (7, 0)]
        {
            let (mut w, mut l) = (winner, loser);
            let moved = settle(&mut w, &mut l);
            assert_eq!(u32::from(w) + u32::from(l), u32::from(winner) + u32::from(loser));
            assert_eq!(w - winner, moved);
        }
        let (mut w, mut l) = (0, 5);
        assert_eq!((settle(&mut w, &mut l), w, l), (5, 5, 0));
        let (mut w, mut l) = (65530, 65530);
        assert_eq!((settle(&mut w, &mut l), w), (5, 65535));
    }
}
