//! Interleaved rounds: each case once a round, for a fixed short time; medians over the rounds.
//!
//! Each round finds the state of a case at another place in memory. A ratio is the median of the
//! ratios within a round, not the quotient of two medians: both of its sides then saw the same clock
//! speed and the same neighbours.

use std::fmt;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// A buffer on cache lines of its own, so that no row is lucky.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Aligned<T>(
    /// What is aligned.
    pub T,
);

/// One way to do the work of a [`Group`].
pub struct Case {
    name: String,
    per_call: u32,
    outcome: Outcome,
    run: Box<dyn FnMut(u64)>,
}

/// What a case did, found before it is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Bytes that one operation writes.
    pub bytes: usize,
    /// [`checksum`] of what the written bytes mean.
    pub checksum: u32,
}

impl Case {
    /// A case that does `op` on `state`; `look` decodes what `op` left there, by whatever means are the
    /// inverse of `op`, and is not timed.
    pub fn new<S: Clone + 'static, R>(
        name: impl Into<String>,
        mut state: S,
        op: impl Fn(&mut S) -> R + 'static,
        look: impl FnOnce(&S, R) -> Outcome,
    ) -> Case {
        let result = op(&mut state);
        let outcome = look(&state, result);
        let mut places: Vec<_> =
            (0..PLACES).map(|place| Placed::new(state.clone(), place)).collect();
        let run = move |calls| {
            places.rotate_left(1);
            let state = &mut *places[0].state;
            for _ in 0..calls {
                // The compiler must take the state for changed before each call and for read after it.
                black_box(op(black_box(state)));
            }
        };
        Case { name: name.into(), per_call: 1, outcome, run: Box::new(run) }
    }

    /// The same case, of which one call does `count` operations.
    pub fn operations_per_call(mut self, count: u32) -> Case {
        self.per_call = count;
        self
    }

    /// What the row is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The time of `calls` calls, with the state at the next of its places.
    pub fn time(&mut self, calls: u64) -> Duration {
        let start = Instant::now();
        (self.run)(calls);
        start.elapsed()
    }
}

/// Copies of the state of each case, at different distances from each other and from the stack: where two
/// buffers lie can make the same code twice as slow, and the median is to be of no single place.
const PLACES: usize = 9;

/// A state on the heap, behind a gap of another size each time. The gap parts it from what it owns, too.
struct Placed<S> {
    _gap: Box<[u8]>,
    state: Box<S>,
}

impl<S> Placed<S> {
    fn new(state: S, place: usize) -> Self {
        let gap = 64 * (1 + 11 * place);
        Placed { _gap: vec![0; gap].into(), state: Box::new(state) }
    }
}

/// Cases that do the same work, the floor first.
pub struct Group {
    title: String,
    cases: Vec<Case>,
}

/// Two cases of a group did not do the same.
#[derive(Debug)]
pub struct Mismatch(String);

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Mismatch {}

impl Group {
    /// A group without cases.
    pub fn new(title: impl Into<String>) -> Group {
        Group { title: title.into(), cases: Vec::new() }
    }

    /// Adds a case; the first is the floor.
    ///
    /// # Errors
    ///
    /// [`Mismatch`] when its checksum is not that of the cases before it.
    pub fn add(&mut self, case: Case) -> Result<(), Mismatch> {
        if let Some(first) = self.cases.first()
            && first.outcome.checksum != case.outcome.checksum
        {
            return Err(Mismatch(format!(
                "{}: {:?} gives {:08x}, {:?} gives {:08x}",
                self.title, first.name, first.outcome.checksum, case.name, case.outcome.checksum
            )));
        }
        self.cases.push(case);
        Ok(())
    }

    /// What the table is called.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The cases, the floor first.
    pub fn cases_mut(&mut self) -> &mut [Case] {
        &mut self.cases
    }

    /// Times every case once in each of `rounds` rounds, for about `slice` each time.
    pub fn measure(mut self, rounds: usize, slice: Duration) -> Measured {
        let calls: Vec<_> = self.cases.iter_mut().map(|case| calls_for(case, slice)).collect();
        let mut rows: Vec<_> = self.cases.iter().map(Row::of).collect();
        for _ in 0..rounds {
            for ((case, row), calls) in self.cases.iter_mut().zip(&mut rows).zip(&calls) {
                let operations = *calls as f64 * f64::from(case.per_call);
                row.rounds.push(case.time(*calls).as_nanos() as f64 / operations);
            }
        }
        Measured { title: self.title, rows }
    }
}

/// How many calls take about `slice`.
fn calls_for(case: &mut Case, slice: Duration) -> u64 {
    let mut calls = 1;
    loop {
        let time = case.time(calls);
        if time * 4 >= slice {
            let scale = slice.as_secs_f64() / time.as_secs_f64();
            return ((calls as f64 * scale) as u64).max(1);
        }
        calls *= 2;
    }
}

/// What was measured of one case.
pub struct Row {
    name: String,
    outcome: Outcome,
    /// Nanoseconds per operation, by round.
    rounds: Vec<f64>,
}

impl Row {
    fn of(case: &Case) -> Row {
        Row { name: case.name.clone(), outcome: case.outcome, rounds: Vec::new() }
    }

    /// Nanoseconds per operation: the median over the rounds.
    pub fn nanoseconds(&self) -> f64 {
        median(self.rounds.clone())
    }
}

/// What was measured of a group. Prints as a table.
pub struct Measured {
    title: String,
    rows: Vec<Row>,
}

impl Measured {
    /// What the table is called.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The row of this name.
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// How many times as long as `base` the row `name` takes.
    pub fn ratio(&self, name: &str, base: &str) -> Option<f64> {
        Some(ratio(self.row(name)?, self.row(base)?))
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(floor) = self.rows.first() else { return Ok(()) };
        let base = format!("x {}", floor.name);
        writeln!(f, "{}", self.title)?;
        writeln!(f, "  {:<44} {:>10} {base:>14} {:>6}  checksum", "", "ns/op", "bytes")?;
        for row in &self.rows {
            let Outcome { bytes, checksum } = row.outcome;
            let (name, ns, ratio) = (&row.name, row.nanoseconds(), ratio(row, floor));
            writeln!(f, "  {name:<44} {ns:>10.1} {ratio:>14.2} {bytes:>6}  {checksum:08x}")?;
        }
        Ok(())
    }
}

fn ratio(row: &Row, base: &Row) -> f64 {
    median(row.rounds.iter().zip(&base.rounds).map(|(ours, base)| ours / base).collect())
}

/// The middle one; of an even number the larger of the two.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// CRC-32 (reflected, polynomial 0xEDB88320): not the hash that is measured here.
pub fn checksum(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 }
        })
    })
}

/// [`checksum`] of tiles, each as two bytes in little-endian order.
pub fn checksum_of_tiles(tiles: &[u16]) -> u32 {
    checksum(&tiles.iter().flat_map(|tile| tile.to_le_bytes()).collect::<Vec<_>>())
}
