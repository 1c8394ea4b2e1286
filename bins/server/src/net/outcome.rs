//! Why a server did not start, how it ended, and what it did meanwhile.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::control::ControlError;
use crate::store::{CloseError, StoreError};
use crate::wires::Gone;

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// An address that cannot be had.
    #[error("cannot listen on udp {addr}: {reason}")]
    Listen {
        /// Which.
        addr: SocketAddr,
        /// What the system says.
        reason: io::Error,
    },
    /// A socket that was passed in cannot be used.
    #[error("cannot listen on a socket that was passed in: {0}")]
    Passed(io::Error),
    /// The metrics' address cannot be had.
    #[error("cannot listen for metrics on tcp {addr}: {reason}")]
    Metrics {
        /// Which.
        addr: SocketAddr,
        /// What the system says.
        reason: io::Error,
    },
    /// There is no socket for commands.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// There is nothing to wait with for datagrams.
    #[error("cannot wait for datagrams: {0}")]
    Poll(io::Error),
    /// Tokens could be guessed.
    #[error("no random numbers from the operating system: {0}")]
    Random(getrandom::Error),
    /// The world cannot be had.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store has no threads to work with.
    #[error("cannot start the store's threads: {0}")]
    Threads(io::Error),
    /// The configuration asks for another world than is kept.
    #[error(
        "world.seed is {wanted}, and {} holds the world of seed {stored}: leave the key out, or name \
         another store", path.display()
    )]
    OtherSeed {
        /// The store.
        path: PathBuf,
        /// What the configuration says.
        wanted: u64,
        /// What the store says.
        stored: u64,
    },
}

/// Why a server ended that was not asked to.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Waiting for datagrams failed.
    #[error("cannot wait for datagrams: {0}")]
    Poll(io::Error),
    /// There is no other thread to be had.
    #[error("cannot start a thread: {0}")]
    Threads(io::Error),
    /// The thread that hands datagrams to the kernel has failed, and nobody can be told anything.
    #[error("the thread that sends datagrams failed: {0}")]
    Sending(String),
    /// The server has stopped, and its last moments are not on the disk.
    #[error(transparent)]
    Unsaved(#[from] CloseError),
}

impl From<Gone> for RunError {
    fn from(Gone(what): Gone) -> Self {
        Self::Sending(what)
    }
}

/// Who stopped the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// [`StopHandle::stop`](crate::StopHandle::stop).
    Asked,
    /// SIGINT or SIGTERM.
    Signal,
    /// An operator's `shutdown`.
    Operator,
    /// Another signal, before all was said.
    SecondSignal,
}

impl std::fmt::Display for StopReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Asked => "asked",
            Self::Signal => "signal",
            Self::Operator => "operator",
            Self::SecondSignal => "second signal",
        })
    }
}

/// What a server did while it ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Who stopped it.
    pub reason: StopReason,
    /// How long it ran.
    pub uptime: Duration,
    /// Datagrams received, and those dropped by reason.
    pub counters: caves_session::Counters,
    /// Datagrams handed to the kernel.
    pub sent: u64,
    /// Datagrams that the kernel did not take.
    pub unsent: u64,
    /// Times that a socket could not be read.
    pub unread: u64,
}
