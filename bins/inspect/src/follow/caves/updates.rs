//! Whether the entities of a tick have the checksum of its State (R13, R16).

use caves_session::caves::MAX_PACKETS;
use caves_wire::caves::{EntitiesView, Tick};
use caves_wire::fnv::Fnv32;
use serde_json::{Value, json};

use crate::follow::Remarks;

/// Ticks that are kept until they are complete, as a client keeps them.
const MAX_TICKS: usize = 4;

/// Updates under way, and what became of the others.
#[derive(Debug, Default)]
pub(super) struct Updates {
    open: Vec<Open>,
    /// The checksum of the newest complete update, and its tick.
    shown: Option<(Tick, u32)>,
    complete: u64,
    unchanged: u64,
    incomplete: u64,
    again: u64,
    /// Updates under way that were pushed out by newer ones without a State to compare with.
    stateless: u64,
}

#[derive(Debug)]
struct Open {
    tick: Tick,
    checksum: Option<u32>,
    /// By the first entity's id: entries ascend over all of a tick's datagrams (R14).
    parts: Vec<(u32, Vec<u8>)>,
}

impl Open {
    fn sum(&self) -> u32 {
        let mut fnv = Fnv32::new();
        for (_, bytes) in &self.parts {
            fnv.update(bytes);
        }
        fnv.finish()
    }

    fn is_complete(&self) -> bool {
        !self.parts.is_empty() && self.checksum == Some(self.sum())
    }
}

impl Updates {
    pub(super) fn state(&mut self, tick: Tick, checksum: u32, remarks: &mut Remarks) {
        let Some(open) = self.place(tick, remarks) else { return };
        open.checksum = Some(checksum);
        self.look(tick, remarks);
    }

    pub(super) fn entities(&mut self, packet: EntitiesView<'_>, remarks: &mut Remarks) {
        let tick = packet.tick();
        if self.shown.is_some_and(|(shown, _)| shown == tick) {
            // One that is complete has nothing to gain.
            self.again += 1;
            return;
        }
        let first = packet.entities().next().map_or(0, |entity| entity.id().0);
        let Some(open) = self.place(tick, remarks) else { return };
        match open.parts.binary_search_by_key(&first, |(first, _)| *first) {
            Ok(_) => {
                self.again += 1;
                return;
            }
            Err(at) if open.parts.len() < MAX_PACKETS => {
                open.parts.insert(at, (first, packet.entry_bytes().to_vec()));
            }
            Err(_) => {
                remarks.push(format!("more than {MAX_PACKETS} datagrams of one tick (R14)"));
                return;
            }
        }
        self.look(tick, remarks);
    }

    pub(super) fn begin_anew(&mut self) {
        self.open.clear();
        self.shown = None;
    }

    /// Whether a tick is complete by now.
    fn look(&mut self, tick: Tick, remarks: &mut Remarks) {
        let Some(at) = self.open.iter().position(|open| open.tick == tick) else { return };
        if self.open[at].is_complete() {
            let open = self.open.remove(at);
            self.complete += 1;
            // Before this one is shown: what had not changed is what was shown until now.
            self.give_up_before(tick, remarks);
            if self.shown.is_none_or(|(shown, _)| tick.is_newer_than(shown)) {
                self.shown = open.checksum.map(|checksum| (tick, checksum));
            }
        }
    }

    /// The place of a tick; one that is too old has none.
    fn place(&mut self, tick: Tick, remarks: &mut Remarks) -> Option<&mut Open> {
        if let Some(at) = self.open.iter().position(|open| open.tick == tick) {
            return self.open.get_mut(at);
        }
        if self.shown.is_some_and(|(shown, _)| !tick.is_newer_than(shown)) {
            return None;
        }
        if self.open.len() >= MAX_TICKS {
            let oldest = (0..self.open.len()).reduce(|a, b| {
                if self.open[a].tick.is_newer_than(self.open[b].tick) { b } else { a }
            })?;
            if !tick.is_newer_than(self.open[oldest].tick) {
                return None;
            }
            let oldest = self.open.remove(oldest);
            self.give_up(&oldest, remarks);
        }
        self.open.push(Open { tick, checksum: None, parts: Vec::new() });
        self.open.last_mut()
    }

    /// Nothing older is shown any more once a newer tick is complete (R16).
    fn give_up_before(&mut self, tick: Tick, remarks: &mut Remarks) {
        let (old, open) = std::mem::take(&mut self.open)
            .into_iter()
            .partition::<Vec<_>, _>(|open| tick.is_newer_than(open.tick));
        self.open = open;
        for open in &old {
            self.give_up(open, remarks);
        }
    }

    fn give_up(&mut self, open: &Open, remarks: &mut Remarks) {
        let Some(checksum) = open.checksum else {
            self.stateless += 1;
            return;
        };
        if self.shown.is_some_and(|(_, shown)| shown == checksum) {
            // Nothing had changed, so nothing is missed (R13).
            self.unchanged += 1;
            return;
        }
        self.incomplete += 1;
        remarks.push(match open.parts.len() {
            0 => format!("no entities came for tick {}", open.tick.get()),
            parts => format!(
                "entities of tick {} have the checksum {:08x} and not {checksum:08x}: of its \
                 datagrams {parts} came, so one is missing or wrong",
                open.tick.get(),
                open.sum(),
            ),
        });
    }

    pub(super) fn figures(&self) -> Vec<(&'static str, Value)> {
        let waiting = self.open.iter().filter(|open| open.checksum.is_some()).count();
        vec![
            ("complete", json!(self.complete)),
            ("incomplete", json!(self.incomplete)),
            ("unchanged", json!(self.unchanged)),
            ("without_state", json!(self.stateless)),
            ("datagrams_again", json!(self.again)),
            ("open", json!(waiting)),
        ]
    }
}
