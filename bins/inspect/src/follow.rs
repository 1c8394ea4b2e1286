//! Sessions, followed from datagram to datagram.
//!
//! A follower sees what a recording has, in its order, and remarks on what only becomes visible over
//! time: what did not come, what came again, what does not fit. Each keeps a bounded past.

pub mod blank;
pub mod caves;
mod events;
pub mod ferravex;
mod row;
mod span;
pub mod teeworlds;

use serde_json::Value;

use crate::datagram::Way;
use crate::protocols::{Facts, Protocol};

pub use events::Events;
pub use row::{Came, Row};
pub use span::Span;

/// When and how a datagram came.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Microseconds since the recording's first datagram.
    pub micros: Option<u64>,
    /// The direction, where it is known.
    pub way: Option<Way>,
    /// The recording says that it did not arrive.
    pub lost: bool,
}

/// What there is to say about a datagram beside what it says itself.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Remarks {
    /// What is out of the ordinary, in words.
    pub odd: Vec<String>,
    /// Microseconds since the question that it answers.
    pub round_trip: Option<u64>,
}

impl Remarks {
    /// Adds something out of the ordinary.
    pub fn push(&mut self, odd: String) {
        self.odd.push(odd);
    }

    /// For the next datagram.
    pub fn clear(&mut self) {
        self.odd.clear();
        self.round_trip = None;
    }
}

/// Figures of one kind: a name for all of them, and each by its own name.
pub type Figures = Vec<(&'static str, Vec<(&'static str, Value)>)>;

/// What is known of one session.
#[derive(Debug)]
pub enum Follower {
    /// Forgotten Caves.
    Caves(Box<caves::CavesFollower>),
    /// Teeworlds 0.6.
    Teeworlds(Box<teeworlds::TeeworldsFollower>),
    /// ferravex 2.
    Ferravex(Box<ferravex::FerravexFollower>),
    /// blank.
    Blank(Box<blank::BlankFollower>),
}

impl Follower {
    /// A session of which nothing was seen yet.
    pub fn new(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Caves => Self::Caves(Box::default()),
            Protocol::Teeworlds => Self::Teeworlds(Box::default()),
            Protocol::Ferravex => Self::Ferravex(Box::default()),
            Protocol::Blank => Self::Blank(Box::default()),
        }
    }

    /// Takes the next packet, and puts what there is to say about it into `remarks`.
    pub fn take(&mut self, moment: Moment, facts: &Facts<'_>, remarks: &mut Remarks) {
        match (self, facts) {
            (Self::Caves(follower), Facts::Caves(packet)) => {
                follower.take(moment, packet, remarks);
            }
            (Self::Teeworlds(follower), Facts::Teeworlds(packet)) => {
                follower.take(moment, packet, remarks);
            }
            (Self::Ferravex(follower), Facts::Ferravex(packet)) => {
                follower.take(moment, packet, remarks);
            }
            (Self::Blank(follower), Facts::Blank(packet)) => {
                follower.take(moment, packet, remarks);
            }
            // A session has the packets of its protocol, or nothing.
            _ => {}
        }
    }

    /// What was found, for the summary.
    pub fn figures(&self) -> Figures {
        match self {
            Self::Caves(follower) => follower.figures(),
            Self::Teeworlds(follower) => follower.figures(),
            Self::Ferravex(follower) => follower.figures(),
            Self::Blank(follower) => follower.figures(),
        }
    }
}

/// One question at a time, and the time until its answer.
#[derive(Debug, Default)]
struct Asked {
    /// When; the outer `None` is for nothing asked.
    at: Option<Option<u64>>,
    again: u64,
    trip: Span,
}

impl Asked {
    fn question(&mut self, micros: Option<u64>, remarks: &mut Remarks) {
        if self.at.replace(micros).is_some() {
            self.again += 1;
            remarks.push("asked again".to_owned());
        }
    }

    fn answer(&mut self, micros: Option<u64>, remarks: &mut Remarks) {
        if let (Some(Some(asked)), Some(now)) = (self.at.take(), micros) {
            let trip = now.saturating_sub(asked);
            self.trip.add(trip);
            remarks.round_trip = Some(trip);
        }
    }

    fn figures(&self) -> Vec<(&'static str, Value)> {
        let mut figures = vec![("asked_again", self.again.into())];
        figures.extend(self.trip.figures());
        figures
    }
}

/// Puts how a number came into words; `what` is one of those that are numbered.
fn remark(came: Came, what: &str, remarks: &mut Remarks) {
    match came {
        Came::InOrder => {}
        Came::Ahead(1) => remarks.push(format!("one {what} before it did not come")),
        Came::Ahead(skipped) => remarks.push(format!("{skipped} {what}s before it did not come")),
        Came::Late => remarks.push(format!("a {what} that was missed")),
        Came::Again => remarks.push(format!("a {what} that came before")),
    }
}
