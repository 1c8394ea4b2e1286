//! Events that are resent until each is acknowledged by its own number.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::Remarks;

/// Events that are remembered: the window that receivers have, in both protocols with such events.
const WINDOW: usize = 256;

/// Events and their acknowledgements.
#[derive(Debug, Default)]
pub struct Events {
    /// Number, times it was sent, whether it was acknowledged.
    seen: VecDeque<(u64, u64, bool)>,
    numbers: u64,
    again: u64,
    acknowledged: u64,
    unknown: u64,
}

impl Events {
    /// An event was sent.
    pub fn sent(&mut self, sequence: u64, remarks: &mut Remarks) {
        if let Some((_, times, _)) = self.seen.iter_mut().find(|(seen, ..)| *seen == sequence) {
            *times += 1;
            self.again += 1;
            return remarks.push(format!("resent, time {times}"));
        }
        if self.seen.len() >= WINDOW {
            self.seen.pop_front();
        }
        self.seen.push_back((sequence, 1, false));
        self.numbers += 1;
    }

    /// An event was acknowledged.
    pub fn acknowledged(&mut self, sequence: u64, remarks: &mut Remarks) {
        match self.seen.iter_mut().find(|(seen, ..)| *seen == sequence) {
            None => {
                self.unknown += 1;
                remarks.push("an event that this recording does not have".to_owned());
            }
            Some((_, _, done)) if *done => remarks.push("acknowledged before".to_owned()),
            Some((_, _, done)) => {
                *done = true;
                self.acknowledged += 1;
            }
        }
    }

    /// Another session, with numbers of its own.
    pub fn begin_anew(&mut self) {
        self.seen.clear();
    }

    /// What was found.
    pub fn figures(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("numbers", json!(self.numbers)),
            ("resent", json!(self.again)),
            ("acknowledged", json!(self.acknowledged)),
            ("unknown_acks", json!(self.unknown)),
        ]
    }
}
