//! Which ticks came (R31).

use caves_wire::caves::Tick;
use serde_json::{Value, json};

use crate::follow::Remarks;

/// Ticks behind the newest one that are still told apart.
const PAST: u32 = 64;
/// A client puts a State aside that is further away (R31).
const FAR: u32 = 600;

/// The ticks of a session's States.
#[derive(Debug, Default)]
pub(super) struct Ticks {
    newest: Option<Tick>,
    /// Bit i: tick `newest - i` came.
    came: u64,
    count: u64,
    missing: u64,
    late: u64,
    copies: u64,
    jumps: u64,
}

impl Ticks {
    pub(super) fn take(&mut self, tick: Tick, remarks: &mut Remarks) {
        let Some(newest) = self.newest else {
            return self.start(tick);
        };
        if tick.is_newer_than(newest) {
            self.go_on(tick, tick.distance_from(newest), remarks);
        } else {
            self.come_late(newest.distance_from(tick), remarks);
        }
    }

    /// Another session: its ticks do not follow from these.
    pub(super) const fn begin_anew(&mut self) {
        self.newest = None;
    }

    const fn start(&mut self, tick: Tick) {
        self.newest = Some(tick);
        // What was before the recording is not missed.
        self.came = u64::MAX;
        self.count += 1;
    }

    fn go_on(&mut self, tick: Tick, steps: u32, remarks: &mut Remarks) {
        if steps > FAR {
            self.jumps += 1;
            remarks.push(format!("{steps} ticks ahead of the newest one"));
            return self.start(tick);
        }
        let skipped = steps - 1;
        match skipped {
            0 => {}
            1 => remarks.push("one tick before it did not come".to_owned()),
            _ => remarks.push(format!("{skipped} ticks before it did not come")),
        }
        self.missing += u64::from(skipped);
        self.came = self.came.checked_shl(steps).unwrap_or(0) | 1;
        self.newest = Some(tick);
        self.count += 1;
    }

    fn come_late(&mut self, behind: u32, remarks: &mut Remarks) {
        if behind >= PAST {
            self.jumps += 1;
            return remarks.push(format!("{behind} ticks behind the newest one"));
        }
        if self.came >> behind & 1 == 1 {
            self.copies += 1;
            return remarks.push("this tick came before".to_owned());
        }
        self.came |= 1 << behind;
        self.missing = self.missing.saturating_sub(1);
        self.late += 1;
        self.count += 1;
        remarks.push(format!("late, {behind} behind the newest one"));
    }

    pub(super) fn figures(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("came", json!(self.count)),
            ("missing", json!(self.missing)),
            ("late", json!(self.late)),
            ("again", json!(self.copies)),
            ("jumps", json!(self.jumps)),
        ]
    }
}
