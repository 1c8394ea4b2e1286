//! The codec's goals, from the measured tables.

use caves_benches::goals::{Goal, worst};
use caves_benches::measure::{Measured, Row};
use caves_benches::samples::Sample;
use caves_sixbit::Path;
use caves_wire::bits::TILES;

use crate::{chunks, hash, peers, six_bits};

/// Every goal that this processor can be asked for.
pub(crate) fn goals(measured: &[Measured]) -> Vec<Goal> {
    let tables = Tables { measured, samples: Sample::all().map(|sample| sample.name) };
    let mut goals = tables.six_bits();
    goals.extend(tables.encode());
    goals.extend(tables.decode());
    goals.extend(tables.hash());
    goals
}

struct Tables<'a> {
    measured: &'a [Measured],
    samples: [String; 3],
}

impl Tables<'_> {
    fn six_bits(&self) -> Vec<Goal> {
        use six_bits::{BASE64, MEMCPY, PACK, PORTABLE, UNPACK, by};
        let ratio = |table: &str, row: &str, base| self.table(table)?.ratio(row, base);
        let mut goals = vec![
            Goal::new("pack, portable / base64-simd decode", 1.0, ratio(PACK, PORTABLE, BASE64)),
            Goal::new(
                "unpack, portable / base64-simd encode",
                1.4,
                ratio(UNPACK, PORTABLE, BASE64),
            ),
        ];
        if Path::Avx2.is_available() {
            let row = by(Path::Avx2);
            let (pack, unpack) = (ratio(PACK, &row, MEMCPY), ratio(UNPACK, &row, MEMCPY));
            goals.push(Goal::new("pack, AVX2 / memcpy(1024)", 2.5, pack));
            goals.push(Goal::new("unpack and check, AVX2 / memcpy(1024)", 5.0, unpack));
        }
        if Path::Vbmi.is_available() {
            let row = by(Path::Vbmi);
            let (pack, unpack) = (ratio(PACK, &row, MEMCPY), ratio(UNPACK, &row, MEMCPY));
            goals.push(Goal::stretch("pack, VBMI / memcpy(1024)", 1.25, pack));
            goals.push(Goal::stretch("unpack and check, VBMI / memcpy(1024)", 1.7, unpack));
        }
        goals
    }

    fn encode(&self) -> Vec<Goal> {
        use chunks::{CACHED, CHOSEN, MEMCPY, RAW, encode_title};
        let ratio = |row: &str, base: &str| {
            self.worst(|sample| self.table(&encode_title(sample))?.ratio(row, base))
        };
        let raw = |sample: &str| {
            Some(self.table(&encode_title(sample))?.row(RAW)?.nanoseconds() / TILES as f64)
        };
        let [few, ..] = &self.samples;
        vec![
            Goal::new(
                "encode, palette and indices kept / memcpy(2048)",
                1.9,
                ratio(CHOSEN, MEMCPY),
            ),
            Goal::new("encode, palette and indices kept / rkyv", 1.0, ratio(CHOSEN, peers::RKYV)),
            Goal::new("encode, raw tiles, ns a tile", 1.0, self.worst(raw)),
            Goal::stretch("encode, raw tiles of 6 kinds, ns a tile", 0.4, raw(few)),
            Goal::stretch("encode, packet kept / memcpy(2048)", 0.5, ratio(CACHED, MEMCPY)),
        ]
    }

    fn decode(&self) -> Vec<Goal> {
        use chunks::{CHOSEN, MEMCPY, PORTABLE, decode_title};
        let ratio = |row: &str, base: &str| {
            self.worst(|sample| self.table(&decode_title(sample))?.ratio(row, base))
        };
        let avx2 = self.worst(|sample| self.decode_by(Path::Avx2, sample));
        let mut goals = vec![Goal::new(
            "decode, all checks, portable / memcpy(2048)",
            41.0,
            ratio(PORTABLE, MEMCPY),
        )];
        if Path::Avx2.is_available() {
            goals.push(Goal::new("decode, all checks, AVX2 (derived) / memcpy(2048)", 10.0, avx2));
        }
        let best = ratio(CHOSEN, MEMCPY);
        goals.push(Goal::stretch("decode, all checks, as chosen / memcpy(2048)", 3.0, best));
        goals
    }

    fn hash(&self) -> Vec<Goal> {
        let Some(table) = self.table(hash::TITLE) else { return Vec::new() };
        let together = table.ratio(hash::TOGETHER, hash::SERIAL);
        vec![Goal::new("FNV-1a, four together, a message / the serial loop", 0.3, together)]
    }

    /// A decode with a path that is not this processor's best, which the library cannot be told to take:
    /// what the choice takes, and the difference of the paths where the tiles are decoded.
    fn decode_by(&self, path: Path, sample: &str) -> Option<f64> {
        use six_bits::{CHOSEN, LOOK_UP, by};
        let tiles = self.table(LOOK_UP)?;
        let tiles = |row: &str| tiles.row(row).map(Row::nanoseconds);
        let decode = self.table(&chunks::decode_title(sample))?;
        let decode = |row| decode.row(row).map(Row::nanoseconds);
        let time = decode(chunks::CHOSEN)? + tiles(&by(path))? - tiles(CHOSEN)?;
        Some(time / decode(chunks::MEMCPY)?)
    }

    fn table(&self, title: &str) -> Option<&Measured> {
        self.measured.iter().find(|table| table.title() == title)
    }

    /// Over several samples the worst counts.
    fn worst(&self, measured: impl Fn(&str) -> Option<f64>) -> Option<f64> {
        worst(self.samples.iter().map(|sample| measured(sample)))
    }
}
