//! What is repeated by design: actions, pings.

use std::collections::VecDeque;

use caves_wire::caves::{Action, ActionView, Sequence};
use serde_json::{Value, json};

use crate::follow::{Remarks, Span};

/// The last actions, by number: more are never under way (R36).
const ACTIONS: usize = 64;
/// Numbers that may be skipped before it is a new numbering (R29) and not loss.
const FAR: u32 = 1024;
/// Pings without an answer that are remembered.
const PINGS: usize = 16;

/// The numbers of a client's actions (R18, R29, R36).
#[derive(Debug, Default)]
pub(super) struct Actions {
    newest: Option<Sequence>,
    /// Number and copies of the last ones.
    seen: VecDeque<(Sequence, u64)>,
    numbers: u64,
    idle: u64,
    again: u64,
    missing: u64,
    late: u64,
}

impl Actions {
    pub(super) fn take(&mut self, packet: ActionView<'_>, remarks: &mut Remarks) {
        let sequence = packet.sequence();
        // A no-op carries the last number and uses none up (R18).
        if packet.action() == Action::NoOp {
            self.idle += 1;
            return;
        }
        if let Some((_, copies)) = self.seen.iter_mut().find(|(seen, _)| *seen == sequence) {
            *copies += 1;
            self.again += 1;
            return remarks.push(format!("repeated, copy {copies}"));
        }
        if self.seen.len() >= ACTIONS {
            self.seen.pop_front();
        }
        self.seen.push_back((sequence, 1));
        self.numbers += 1;
        self.order(sequence, remarks);
    }

    fn order(&mut self, sequence: Sequence, remarks: &mut Remarks) {
        let Some(newest) = self.newest else {
            self.newest = Some(sequence);
            return;
        };
        if !sequence.is_newer_than(newest) {
            self.late += 1;
            // It was missed when the one behind it came.
            self.missing = self.missing.saturating_sub(1);
            return remarks.push(format!("older than {}", newest.get()));
        }
        let skipped = sequence.distance_from(newest) - 1;
        if (1..FAR).contains(&skipped) {
            self.missing += u64::from(skipped);
            remarks.push(match skipped {
                1 => "one action before it did not come".to_owned(),
                _ => format!("{skipped} actions before it did not come"),
            });
        }
        self.newest = Some(sequence);
    }

    pub(super) fn begin_anew(&mut self) {
        self.newest = None;
        self.seen.clear();
    }

    pub(super) fn figures(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("numbers", json!(self.numbers)),
            ("repeated", json!(self.again)),
            ("missing", json!(self.missing)),
            ("late", json!(self.late)),
            ("no_ops", json!(self.idle)),
        ]
    }
}

/// Pings, and the time until their Pong.
#[derive(Debug, Default)]
pub(super) struct Pings {
    /// Payload and time of those without an answer.
    waiting: VecDeque<(u64, Option<u64>)>,
    asked: u64,
    answered: u64,
    trip: Span,
}

impl Pings {
    pub(super) fn ping(&mut self, micros: Option<u64>, payload: u64) {
        self.asked += 1;
        if self.waiting.len() >= PINGS {
            self.waiting.pop_front();
        }
        self.waiting.push_back((payload, micros));
    }

    pub(super) fn pong(
        &mut self,
        micros: Option<u64>,
        payload: u64,
        lost: bool,
        remarks: &mut Remarks,
    ) {
        // Payloads may all be alike (0 is fine): then the newest question is answered, and the ones
        // before it count as lost.
        let Some(at) = self.waiting.iter().rposition(|(asked, _)| *asked == payload) else {
            return remarks.push("a Ping that this recording does not have".to_owned());
        };
        if lost {
            return;
        }
        self.answered += 1;
        let asked = self.waiting.remove(at).and_then(|(_, asked)| asked);
        self.waiting.retain(|(asked, _)| *asked != payload);
        if let (Some(asked), Some(now)) = (asked, micros) {
            let trip = now.saturating_sub(asked);
            self.trip.add(trip);
            remarks.round_trip = Some(trip);
        }
    }

    pub(super) fn figures(&self) -> Vec<(&'static str, Value)> {
        let mut figures = vec![("pings", json!(self.asked)), ("pongs", json!(self.answered))];
        figures.extend(self.trip.figures());
        figures
    }
}
