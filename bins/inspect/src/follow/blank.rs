//! A connection of blank: each datagram has a number, and tells which ones came from the other side.

use caves_wire::blank::Packet;
use serde_json::json;

use super::{Asked, Figures, Moment, Remarks, Row, remark};
use crate::datagram::Way;

/// One client and its server.
#[derive(Debug, Default)]
pub struct BlankFollower {
    from_client: Row<16>,
    from_server: Row<16>,
    login: Asked,
    parts: u64,
}

impl BlankFollower {
    /// Takes the next packet.
    pub fn take(&mut self, moment: Moment, packet: &Packet<'_>, remarks: &mut Remarks) {
        // What was lost leaves a gap, as it does at the receiver.
        if !moment.lost
            && let Some(way) = moment.way
        {
            let row = match way {
                Way::ToServer => &mut self.from_client,
                Way::ToClient => &mut self.from_server,
            };
            remark(row.take(packet.header().seq()), "number", remarks);
        }
        match packet {
            Packet::Login(_) => self.login.question(moment.micros, remarks),
            Packet::Join(_) | Packet::NewestJoin(_) if !moment.lost => {
                self.login.answer(moment.micros, remarks);
            }
            // The next datagram begins a new connection, with numbers from 0 on.
            Packet::Part(_) if !moment.lost => {
                self.parts += 1;
                self.from_client.begin_anew();
                self.from_server.begin_anew();
            }
            _ => {}
        }
    }

    /// What was found.
    pub fn figures(&self) -> Figures {
        vec![
            ("from_client", self.from_client.figures()),
            ("from_server", self.from_server.figures()),
            ("login", self.login.figures()),
            ("connections", vec![("parts", json!(self.parts))]),
        ]
    }
}
