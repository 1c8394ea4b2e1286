//! A session of Forgotten Caves.
//!
//! Nothing is acknowledged there but events, so loss shows in what is repeated: ticks that are
//! missing (`ticks`), entities without the checksum of their State (`updates`), chunks that a cache
//! list still lacks (`chunks`), actions and events that come again (`repeats`).

mod chunks;
mod repeats;
mod ticks;
mod updates;

use caves_session::caves::LEAVE_REPEATS;
use caves_wire::caves::{Packet, Token, WelcomeView};
use serde_json::json;

use super::{Events, Figures, Moment, Remarks};
use chunks::Chunks;
use repeats::{Actions, Pings};
use ticks::Ticks;
use updates::Updates;

/// One client and its server.
#[derive(Debug, Default)]
pub struct CavesFollower {
    joined: Option<Token>,
    welcomes: u64,
    ticks: Ticks,
    updates: Updates,
    chunks: Chunks,
    actions: Actions,
    events: Events,
    pings: Pings,
    leaves: u64,
    hellos: Repeated,
    joins: Repeated,
}

/// A question with a nonce, asked again until it is answered.
#[derive(Debug, Default)]
struct Repeated {
    nonce: Option<u64>,
    again: u64,
}

impl Repeated {
    fn take(&mut self, nonce: u64, remarks: &mut Remarks) {
        if self.nonce.replace(nonce) == Some(nonce) {
            self.again += 1;
            remarks.push("asked again".to_owned());
        }
    }
}

impl CavesFollower {
    /// Takes the next packet.
    pub fn take(&mut self, moment: Moment, packet: &Packet<'_>, remarks: &mut Remarks) {
        match packet {
            // What tells of the receiver counts only where it arrived.
            Packet::State(_) | Packet::Entities(_) if moment.lost => {}
            Packet::State(state) => {
                self.ticks.take(state.tick(), remarks);
                self.chunks.manifest(state.chunks());
                self.updates.state(state.tick(), state.entity_checksum(), remarks);
            }
            Packet::Entities(entities) => self.updates.entities(*entities, remarks),
            Packet::Chunk(chunk) => self.chunks.sent(moment.micros, chunk.entry(), remarks),
            Packet::Action(action) => {
                self.actions.take(*action, remarks);
                self.chunks.asked(moment.micros, &action.cache(), remarks);
            }
            Packet::Event(event) => self.events.sent(event.sequence().get().into(), remarks),
            Packet::EventAck(ack) => {
                self.events.acknowledged(ack.sequence().get().into(), remarks);
            }
            Packet::Ping(ping) => self.pings.ping(moment.micros, ping.timestamp_ms()),
            Packet::Pong(pong) => {
                self.pings.pong(moment.micros, pong.timestamp_ms(), moment.lost, remarks);
            }
            Packet::Hello(hello) => self.hellos.take(hello.nonce().0, remarks),
            Packet::Join(join) => self.joins.take(join.nonce().0, remarks),
            Packet::Welcome(welcome) => self.welcome(welcome, remarks),
            Packet::Leave(_) => {
                self.leaves += 1;
                if self.leaves > u64::from(LEAVE_REPEATS) {
                    remarks.push(format!("copy {}", self.leaves));
                }
            }
            _ => {}
        }
    }

    /// A token that is new begins everything anew; the same one again is a repetition, or resumes.
    fn welcome(&mut self, welcome: &WelcomeView<'_>, remarks: &mut Remarks) {
        self.welcomes += 1;
        if self.joined == Some(welcome.token()) {
            remarks.push("the same session again".to_owned());
            // What a client holds it holds until the next Welcome (R10).
            self.chunks.forget();
            return;
        }
        if self.joined.replace(welcome.token()).is_some() {
            remarks.push("a new session".to_owned());
            self.ticks.begin_anew();
            self.updates.begin_anew();
            self.chunks.forget();
            self.actions.begin_anew();
            self.events.begin_anew();
            self.leaves = 0;
        }
    }

    /// What was found.
    pub fn figures(&self) -> Figures {
        vec![
            (
                "joining",
                vec![
                    ("hellos_again", json!(self.hellos.again)),
                    ("joins_again", json!(self.joins.again)),
                    ("welcomes", json!(self.welcomes)),
                ],
            ),
            ("ticks", self.ticks.figures()),
            ("updates", self.updates.figures()),
            ("chunks", self.chunks.figures()),
            ("actions", self.actions.figures()),
            ("events", self.events.figures()),
            ("round_trip", self.pings.figures()),
        ]
    }
}
