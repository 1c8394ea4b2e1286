//! A connection of Teeworlds 0.6: vital chunks are numbered, and sent again until they are acknowledged.

use caves_wire::teeworlds::Sequence;
use serde_json::json;

use super::{Asked, Came, Figures, Moment, Remarks, Row, remark};
use crate::datagram::Way;
use crate::protocols::teeworlds::TeeworldsFacts;

const CONNECT: u8 = 1;
const CONNECT_ACCEPT: u8 = 2;

/// One client and its server.
#[derive(Debug, Default)]
pub struct TeeworldsFollower {
    from_client: Side,
    from_server: Side,
    connect: Asked,
}

/// What one side sent.
#[derive(Debug, Default)]
struct Side {
    vital: Row<10>,
    resent: u64,
    requests: u64,
    cut: u64,
}

impl TeeworldsFollower {
    /// Takes the next packet.
    pub fn take(&mut self, moment: Moment, packet: &TeeworldsFacts, remarks: &mut Remarks) {
        match packet.control {
            Some(CONNECT) => {
                self.connect.question(moment.micros, remarks);
                self.from_client.vital.begin_anew();
                self.from_server.vital.begin_anew();
            }
            Some(CONNECT_ACCEPT) if !moment.lost => self.connect.answer(moment.micros, remarks),
            _ => {}
        }
        let side = match moment.way {
            Some(Way::ToServer) => &mut self.from_client,
            Some(Way::ToClient) => &mut self.from_server,
            None => return,
        };
        if packet.resend {
            side.requests += 1;
            remarks.push("asks for what it lacks".to_owned());
        }
        if let Some(fault) = &packet.fault {
            side.cut += 1;
            remarks.push(format!("the chunks behind are lost: {fault}"));
        }
        for chunk in &packet.chunks {
            if let Some(sequence) = chunk.vital {
                side.vital(sequence, chunk.resend, moment.lost, remarks);
            }
        }
    }

    /// What was found.
    pub fn figures(&self) -> Figures {
        vec![
            ("from_client", self.from_client.figures()),
            ("from_server", self.from_server.figures()),
            ("connect", self.connect.figures()),
        ]
    }
}

impl Side {
    /// One vital chunk. One that was lost leaves a gap, as it does at the receiver.
    fn vital(&mut self, sequence: Sequence, resend: bool, lost: bool, remarks: &mut Remarks) {
        self.resent += u64::from(resend);
        if lost {
            return;
        }
        match self.vital.take(sequence) {
            // It says so itself.
            Came::Again if resend => remarks.push(format!("chunk {sequence} resent")),
            came => remark(came, "vital chunk", remarks),
        }
    }

    fn figures(&self) -> Vec<(&'static str, serde_json::Value)> {
        let mut figures = self.vital.figures();
        figures.push(("resent", json!(self.resent)));
        figures.push(("requests", json!(self.requests)));
        figures.push(("cut_short", json!(self.cut)));
        figures
    }
}
