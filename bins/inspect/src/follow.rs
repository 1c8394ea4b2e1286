//! Sessions, followed from datagram to datagram.
//!
//! A follower sees what a recording has, in its order, and remarks on what only becomes visible over
//! time: what did not come, what came again, what does not fit. Each keeps a bounded past.

pub mod caves;
mod span;

use serde_json::Value;

use crate::datagram::Way;
use crate::protocols::{Facts, Protocol};

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
    /// Datagrams are counted and nothing more.
    Plain,
    /// Forgotten Caves.
    Caves(Box<caves::CavesFollower>),
}

impl Follower {
    /// A session of which nothing was seen yet.
    pub fn new(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Caves => Self::Caves(Box::default()),
            _ => Self::Plain,
        }
    }

    /// Takes the next packet, and puts what there is to say about it into `remarks`.
    pub fn take(&mut self, moment: Moment, facts: &Facts<'_>, remarks: &mut Remarks) {
        if let (Self::Caves(follower), Facts::Caves(packet)) = (self, facts) {
            follower.take(moment, packet, remarks);
        }
    }

    /// What was found, for the summary.
    pub fn figures(&self) -> Figures {
        match self {
            Self::Plain => Figures::new(),
            Self::Caves(follower) => follower.figures(),
        }
    }
}
