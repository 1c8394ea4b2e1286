//! How a server that runs is operated: a Unix socket for commands, a reload, bans, a countdown.
//!
//! ```text
//!   caves-ctl --> control socket --> Command --> Operator --> the game, the log, the configuration
//!                                      SIGHUP ------^
//! ```
//!
//! Who may write to the socket's file may command: there is no other authentication. The lines are
//! those of [`Command`]; `notes/control.md` is their page. The socket may be missing
//! ([`Config::control`](crate::Config::control)); a signal can still ask for a reload then, and bans
//! still end.

mod bans;
mod countdown;
mod operator;
mod protocol;
mod socket;

use std::time::Duration;

use caves_game::SaveTicket;
use caves_link::time::Instant;
use mio::net::UnixListener;
use mio::{Registry, Token};

use crate::config::ControlConfig;
use crate::kept::Kept;
use crate::stream::{Input, Limits, StreamId, Streams, lines};

pub(crate) use operator::{Desk, Operator, Reply};
pub use operator::{Reload, SetLogLevel};
pub use protocol::{Command, MAX_LINE, VERSION};
pub use socket::ControlError;

/// Operators at once; there is one, and some programs of its.
const CONNECTIONS: usize = 16;
/// Bytes of an answer: 10,000 sessions with their figures are four million.
const LONGEST_ANSWER: usize = 16 << 20;
/// How long a command may take to come, and an answer to be read.
const PATIENCE: Duration = Duration::from_secs(60);
/// Commands in one turn of the loop: players come first.
const BUDGET: usize = 64;

/// The socket, and those who wait for an answer.
#[derive(Debug)]
pub(crate) struct Control {
    streams: Streams<UnixListener>,
    /// One a connection at most.
    saving: Vec<(StreamId, SaveTicket)>,
    /// The budget was spent, more may wait.
    more: bool,
    _file: socket::SocketFile,
}

impl Control {
    /// Listens; `first` and some tokens after it are used.
    pub(crate) fn open(
        config: &ControlConfig,
        registry: &Registry,
        first: Token,
    ) -> Result<Self, ControlError> {
        let (listener, file) = socket::open(config)?;
        let limits = Limits {
            connections: CONNECTIONS,
            input: MAX_LINE,
            output: LONGEST_ANSWER,
            patience: PATIENCE,
        };
        let streams = Streams::new(listener, registry, first, lines, limits)
            .map_err(|reason| ControlError::Unavailable { path: config.socket.clone(), reason })?;
        Ok(Self { streams, saving: Vec::new(), more: false, _file: file })
    }

    /// Takes an event of the poll; those of others change nothing.
    pub(crate) fn handle_event(&mut self, now: Instant, token: Token) {
        self.streams.handle_event(now, token);
    }

    /// When to call [`Control::turn`] at the latest.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        if self.more { Some(Instant::ZERO) } else { self.streams.poll_timeout() }
    }

    /// Does what was asked.
    pub(crate) fn turn(&mut self, operator: &mut Operator, desk: &mut Desk<'_>) {
        let now = desk.now;
        if self.streams.poll_timeout().is_some_and(|due| due <= now) {
            self.streams.handle_timeout(now);
        }
        self.answer_saved(desk);
        self.more = true;
        for _ in 0..BUDGET {
            let Some((from, input)) = self.streams.poll_input(now) else {
                self.more = false;
                return;
            };
            let reply = match &input {
                Input::Whole(line) => operator.obey_line(line, desk),
                Input::TooLong => {
                    let error = format!("a command has at most {MAX_LINE} bytes");
                    Reply::Now(protocol::no(&error))
                }
            };
            match reply {
                Reply::Now(answer) => {
                    self.streams.answer(now, from, answer.as_bytes());
                }
                Reply::WhenSaved(ticket) => self.saving.push((from, ticket)),
            }
            if input == Input::TooLong {
                self.streams.hang_up(now, from);
            }
        }
    }

    fn answer_saved(&mut self, desk: &Desk<'_>) {
        let streams = &mut self.streams;
        self.saving.retain(|(from, ticket)| {
            let trouble = desk.kept.and_then(Kept::trouble);
            let answer = match (desk.game.is_safe(*ticket), trouble) {
                (true, _) => protocol::yes(serde_json::json!({ "saved": true })),
                (false, Some(reason)) => protocol::no(&format!(
                    "cannot save: {reason}; it is tried again, and play goes on meanwhile"
                )),
                (false, None) => return true,
            };
            streams.answer(desk.now, *from, answer.as_bytes());
            false
        });
    }
}
