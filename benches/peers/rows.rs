//! The ways to serve that are compared.

use anyhow::Result;
use clap::ValueEnum;

use crate::course::Course;
use crate::{by_enet, by_hand, by_laminar, by_quinn, by_renet, ours};

/// One way to serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Row {
    /// `recv_from` for what came since the last tick, then two `send_to` a client
    Bare,
    /// The same, woken by each datagram that comes, as a server that answers at once is
    BareWoken,
    /// One segmented send a client
    Gso,
    /// The same, 64 clients in one `sendmmsg`
    GsoBatch,
    /// renet over netcode, which always encrypts
    RenetNetcode,
    /// renet over a socket, without encryption
    Renet,
    /// `rusty_enet`
    Enet,
    /// Datagrams of quinn, encrypted
    Quinn,
    /// laminar
    Laminar,
    /// The server of this workspace
    Ours,
}

impl Row {
    /// The floor first.
    pub(crate) const ALL: [Self; 10] = [
        Self::Bare,
        Self::BareWoken,
        Self::Gso,
        Self::GsoBatch,
        Self::RenetNetcode,
        Self::Renet,
        Self::Enet,
        Self::Quinn,
        Self::Laminar,
        Self::Ours,
    ];
    /// Those that are run with thousands of clients.
    pub(crate) const BIG: [Self; 4] = [Self::Bare, Self::BareWoken, Self::GsoBatch, Self::Ours];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare: recv_from, 2 send_to",
            Self::BareWoken => "bare, woken by each datagram",
            Self::Gso => "bare, GSO",
            Self::GsoBatch => "bare, GSO in sendmmsg",
            Self::RenetNetcode => "renet, netcode (encrypts)",
            Self::Renet => "renet, plain UDP",
            Self::Enet => "rusty_enet",
            Self::Quinn => "quinn datagrams (encrypts)",
            Self::Laminar => "laminar",
            Self::Ours => "ours: caves-server",
        }
    }

    /// Why this many clients cannot be.
    pub(crate) fn refuses(self, clients: usize) -> Option<&'static str> {
        match self {
            Self::RenetNetcode if clients > 1024 => Some("takes 1024 clients at most"),
            Self::Enet if clients > 4095 => Some("takes 4095 clients at most"),
            Self::Ours if clients > ours::MOST_CLIENTS => Some("more than the bench has names for"),
            _ => None,
        }
    }

    /// Serves until the course is over; called on a thread of its own.
    pub(crate) fn serve(self, course: &'static Course) -> Result<()> {
        match self {
            Self::Bare => by_hand::serve(course, by_hand::Way::Plain),
            Self::BareWoken => by_hand::serve(course, by_hand::Way::Woken),
            Self::Gso => by_hand::serve(course, by_hand::Way::Gso),
            Self::GsoBatch => by_hand::serve(course, by_hand::Way::GsoBatch),
            Self::RenetNetcode => by_renet::serve_netcode(course),
            Self::Renet => by_renet::serve_plain(course),
            Self::Enet => by_enet::serve(course),
            Self::Quinn => by_quinn::serve(course),
            Self::Laminar => by_laminar::serve(course),
            Self::Ours => ours::serve(course),
        }
    }

    /// Is all clients until the course is over; called on a thread of its own.
    pub(crate) fn play(self, course: &'static Course) -> Result<()> {
        match self {
            Self::Bare | Self::BareWoken | Self::Gso | Self::GsoBatch => by_hand::play(course),
            Self::RenetNetcode => by_renet::play_netcode(course),
            Self::Renet => by_renet::play_plain(course),
            Self::Enet => by_enet::play(course),
            Self::Quinn => by_quinn::play(course),
            Self::Laminar => by_laminar::play(course),
            Self::Ours => ours::play(course),
        }
    }
}
