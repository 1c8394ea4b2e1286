//! A row of wrapping numbers, of which each should come once.

use std::collections::VecDeque;

use caves_link::seq::Seq;
use serde_json::{Value, json};

/// Numbers that are missed at once; the oldest are given up for newer ones.
const MAX_MISSED: usize = 256;

/// Which numbers came, as far as the newest ones go.
#[derive(Debug, Default)]
pub struct Row<const BITS: u32> {
    newest: Option<Seq<BITS>>,
    missed: VecDeque<Seq<BITS>>,
    came: u64,
    skipped: u64,
    late: u64,
    again: u64,
}

/// How a number stands to those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Came {
    /// The next one, or the first one that is seen at all.
    InOrder,
    /// So many before it have not come.
    Ahead(u32),
    /// It was missed until now.
    Late,
    /// It came before, or it is too old to say.
    Again,
}

impl<const BITS: u32> Row<BITS> {
    /// Takes the next number.
    pub fn take(&mut self, number: Seq<BITS>) -> Came {
        let Some(newest) = self.newest else {
            self.newest = Some(number);
            self.came += 1;
            return Came::InOrder;
        };
        if !number.is_newer_than(newest) {
            return self.old(number);
        }
        self.newest = Some(number);
        self.came += 1;
        let skipped = number.distance_from(newest) - 1;
        self.skipped += u64::from(skipped);
        // Only the last ones can be remembered, so only those are walked over.
        let kept = skipped.min(MAX_MISSED as u32);
        let mut missed = newest.advance(skipped - kept);
        for _ in 0..kept {
            missed = missed.next();
            if self.missed.len() >= MAX_MISSED {
                self.missed.pop_front();
            }
            self.missed.push_back(missed);
        }
        if skipped == 0 { Came::InOrder } else { Came::Ahead(skipped) }
    }

    fn old(&mut self, number: Seq<BITS>) -> Came {
        match self.missed.iter().position(|missed| *missed == number) {
            Some(at) => {
                self.missed.remove(at);
                self.late += 1;
                self.came += 1;
                Came::Late
            }
            None => {
                self.again += 1;
                Came::Again
            }
        }
    }

    /// Another connection: its numbers do not follow from these.
    pub fn begin_anew(&mut self) {
        self.newest = None;
        self.missed.clear();
    }

    /// What came, what did not, what came late and what again.
    pub fn figures(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("came", json!(self.came)),
            ("missing", json!(self.skipped - self.late)),
            ("late", json!(self.late)),
            ("again", json!(self.again)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(row: &mut Row<10>, numbers: &[u32]) -> Vec<Came> {
        numbers.iter().map(|number| row.take(Seq::new(*number))).collect()
    }

    #[test]
    fn gaps_are_missed_until_they_are_filled() {
        let mut row = Row::<10>::default();
        let came = took(&mut row, &[1022, 1023, 2, 0, 0, 1, 3, 3]);
        use Came::{Again, Ahead, InOrder, Late};
        assert_eq!(came, [InOrder, InOrder, Ahead(2), Late, Again, Late, InOrder, Again]);
        let values: Vec<_> = row.figures().into_iter().map(|(_, value)| value).collect();
        assert_eq!(values, [json!(6), json!(0), json!(2), json!(2)]);
    }

    #[test]
    fn what_is_missed_is_bounded() {
        let mut row = Row::<16>::default();
        for number in 0..1000u32 {
            row.take(Seq::new(number * 32_000));
            assert!(row.missed.len() <= MAX_MISSED);
        }
        row.begin_anew();
        assert_eq!(row.take(Seq::new(9)), Came::InOrder);
    }
}
