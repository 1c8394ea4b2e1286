//! A session of ferravex 2: inputs are repeated within each packet, events until they are acknowledged.

use caves_wire::ferravex::{InputView, Packet, Tick};
use serde_json::json;

use super::{Asked, Came, Events, Figures, Moment, Remarks, Row, remark};

/// One client and its server.
#[derive(Debug, Default)]
pub struct FerravexFollower {
    hello: Asked,
    inputs: Row<32>,
    newest: Option<Tick>,
    snapshots: u64,
    late: u64,
    events: Events,
}

impl FerravexFollower {
    /// Takes the next packet.
    pub fn take(&mut self, moment: Moment, packet: &Packet<'_>, remarks: &mut Remarks) {
        match packet {
            Packet::Hello(_) => self.hello.question(moment.micros, remarks),
            Packet::Event(event) => self.events.sent(event.sequence(), remarks),
            Packet::EventAck(ack) => self.events.acknowledged(ack.sequence(), remarks),
            // What tells of the receiver counts only where it arrived.
            _ if moment.lost => {}
            Packet::Welcome(_) => {
                self.hello.answer(moment.micros, remarks);
                self.newest = None;
                self.inputs.begin_anew();
                self.events.begin_anew();
            }
            Packet::Input(input) => self.input(*input, remarks),
            Packet::Snapshot(snapshot) => self.snapshot(snapshot.tick(), remarks),
        }
    }

    /// Frames that were in a packet before are what the repetition is for.
    fn input(&mut self, input: InputView<'_>, remarks: &mut Remarks) {
        for frame in input.frames() {
            match self.inputs.take(frame.sequence) {
                Came::Again => {}
                came => remark(came, "input frame", remarks),
            }
        }
    }

    fn snapshot(&mut self, tick: Tick, remarks: &mut Remarks) {
        self.snapshots += 1;
        if self.newest.is_some_and(|newest| !tick.is_newer_than(newest)) {
            self.late += 1;
            remarks.push("not newer than the snapshot before it".to_owned());
        } else {
            self.newest = Some(tick);
        }
    }

    /// What was found.
    pub fn figures(&self) -> Figures {
        vec![
            ("hello", self.hello.figures()),
            ("input_frames", self.inputs.figures()),
            ("snapshots", vec![("came", json!(self.snapshots)), ("not_newer", json!(self.late))]),
            ("events", self.events.figures()),
        ]
    }
}
