//! The client's side of a connection.

use std::collections::VecDeque;
use std::time::Duration;

use caves_link::retry::{Retry, RetryPolicy};
use caves_link::time::{Deadline, Instant};
use caves_wire::teeworlds::{
    Connless, Control, ControlMessage, Header, Scratch, Sequence, Token, Tokens,
};

use super::messages::Messages;
use super::outbox::{Goodbye, control};
use super::session::{Ended, Heard, SendError, Session, SessionView};
use super::token::is_none;
use super::{ACCEPT_AGAIN, CONNECT_AGAIN, TIMEOUT, more_than};
use crate::{Counters, DropReason};

const CONNECT: RetryPolicy =
    RetryPolicy::uniform(more_than(CONNECT_AGAIN), more_than(CONNECT_AGAIN));
const ACCEPT: RetryPolicy = RetryPolicy::uniform(more_than(ACCEPT_AGAIN), more_than(ACCEPT_AGAIN));

/// How a client connects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientConfig {
    /// Whether it asks for a token. Vanilla Teeworlds does not.
    pub tokens: bool,
    /// Silence, and age of what is unacknowledged, that end the connection.
    pub timeout: Duration,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self { tokens: true, timeout: TIMEOUT }
    }
}

/// What the layer above should know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The connection stands: messages can be sent.
    Connected,
    /// It has ended, or never stood. Nothing happens any more.
    Ended(Ended),
}

/// What a datagram was, for the layer above.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ClientReceived<'d> {
    /// Messages, perhaps none.
    Messages(Messages<'d>),
    /// A packet without a connection. Anybody can have sent it.
    Connless(Connless<'d>),
    /// Nothing for the layer above.
    Handled,
    /// Nothing at all.
    Dropped(DropReason),
}

/// Where a connection stands.
#[derive(Debug)]
enum State {
    Connecting {
        since: Instant,
        connect: Retry,
    },
    Connected {
        session: Box<Session>,
        accept: Retry,
    },
    /// The CLOSE may still have to go out.
    Ended(Option<Goodbye>),
}

/// A client of one server, whose address the caller knows: datagrams from others are not for it.
#[derive(Debug)]
pub struct Client {
    config: ClientConfig,
    state: State,
    /// Two at most: connected, ended.
    events: VecDeque<ClientEvent>,
    counters: Counters,
}

type Outcome<'d> = Result<ClientReceived<'d>, DropReason>;

impl Client {
    /// A client that begins to connect.
    pub fn new(config: ClientConfig, now: Instant) -> Self {
        let mut connect = Retry::new(CONNECT);
        connect.ask(now);
        let state = State::Connecting { since: now, connect };
        Self { config, state, events: VecDeque::new(), counters: Counters::default() }
    }

    /// Takes what came from the server's address. What is compressed is expanded into `scratch`.
    pub fn handle_datagram<'d>(
        &mut self,
        now: Instant,
        datagram: &'d [u8],
        scratch: &'d mut Scratch,
    ) -> ClientReceived<'d> {
        let outcome = self.dispatch(now, datagram, scratch);
        self.counters.note(outcome, ClientReceived::Dropped)
    }

    fn dispatch<'d>(
        &mut self,
        now: Instant,
        datagram: &'d [u8],
        scratch: &'d mut Scratch,
    ) -> Outcome<'d> {
        if Header::is_connless(datagram) {
            let packet = Connless::parse(datagram).map_err(|_| DropReason::Malformed)?;
            return Ok(ClientReceived::Connless(packet));
        }
        let State::Connected { session, accept } = &mut self.state else {
            return self.on_answer(now, datagram);
        };
        let heard = session.handle(now, datagram, scratch)?;
        if accept.is_active() && !is_handshake(datagram) {
            // Something has come back, so ACCEPT has arrived.
            accept.stop();
        }
        Ok(match heard {
            Heard::Messages(messages) => ClientReceived::Messages(messages),
            Heard::Nothing => ClientReceived::Handled,
            Heard::Closed(reason) => {
                self.end(None, Ended::by_peer(reason));
                ClientReceived::Handled
            }
        })
    }

    /// Takes the answer to a CONNECT: CONNECTACCEPT or CLOSE.
    fn on_answer<'d>(&mut self, now: Instant, datagram: &[u8]) -> Outcome<'d> {
        if matches!(self.state, State::Ended(_)) {
            return Err(DropReason::Unasked);
        }
        let header = Header::parse(datagram).map_err(|_| DropReason::Malformed)?;
        if !header.control {
            return Err(DropReason::Unasked);
        }
        let packet = Control::parse(datagram, Tokens::Guess).map_err(|_| DropReason::Malformed)?;
        match packet.message {
            ControlMessage::ConnectAccept(Some(Token::UNKNOWN)) => Err(DropReason::Token),
            ControlMessage::ConnectAccept(token) => {
                // A server that knows no tokens says so by leaving it out.
                let asked = token.filter(|token| self.config.tokens && !is_none(*token));
                self.connect(now, asked);
                Ok(ClientReceived::Handled)
            }
            ControlMessage::Close(reason) => {
                self.end(None, Ended::by_peer(reason));
                Ok(ClientReceived::Handled)
            }
            _ => Err(DropReason::Unasked),
        }
    }

    fn connect(&mut self, now: Instant, token: Option<Token>) {
        let session = Box::new(Session::new(now, token, self.config.timeout));
        let mut accept = Retry::new(ACCEPT);
        accept.ask(now);
        self.state = State::Connected { session, accept };
        self.events.push_back(ClientEvent::Connected);
    }

    fn end(&mut self, goodbye: Option<Goodbye>, why: Ended) {
        self.state = State::Ended(goodbye);
        self.events.push_back(ClientEvent::Ended(why));
    }

    /// Sends a message, vital ones once and in order. It goes out when a packet is full, by
    /// [`Client::flush`], or half a second after the last datagram.
    ///
    /// # Errors
    /// See [`SendError`]; nothing has changed then.
    pub fn send(&mut self, now: Instant, vital: bool, data: &[u8]) -> Result<(), SendError> {
        match &mut self.state {
            State::Connected { session, .. } => session.send(now, vital, data),
            _ => Err(SendError::NotConnected),
        }
    }

    /// What waits goes out now.
    pub fn flush(&mut self) {
        if let State::Connected { session, .. } = &mut self.state {
            session.flush();
        }
    }

    /// Ends the connection. Messages that wait are lost; the reason is cut to 127 bytes.
    pub fn close(&mut self, reason: &str) {
        let goodbye = match &self.state {
            State::Ended(_) => return,
            State::Connecting { .. } => None,
            State::Connected { session, .. } => Some(session.goodbye(reason)),
        };
        self.end(goodbye, Ended::Here);
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        let over = match &mut self.state {
            State::Connecting { since, .. } => {
                let over = now.saturating_since(*since) > self.config.timeout;
                over.then_some(Ended::Silence)
            }
            State::Connected { session, .. } => session.handle_timeout(now),
            State::Ended(_) => None,
        };
        if let Some(why) = over {
            // As DDNet does: who was silent for so long is not told.
            self.end(None, why);
        }
    }

    /// The next thing that the layer above should know.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    /// Writes the next datagram to send now, and says how long it is. To be called until `None` after
    /// each of the verbs; `buf` has [`MAX_DATAGRAM`](super::MAX_DATAGRAM) bytes.
    pub fn poll_transmit(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        match &mut self.state {
            State::Connecting { connect, .. } => {
                if !connect.due(now) {
                    return None;
                }
                let token = self.config.tokens.then_some(Token::UNKNOWN);
                let len = control(None, ZERO, ControlMessage::Connect(token), buf)?;
                connect.sent(now, 0);
                Some(len)
            }
            State::Connected { session, accept } => {
                if !accept.due(now) {
                    return session.poll_transmit(now, buf);
                }
                let len = control(session.token(), ZERO, ControlMessage::Accept, buf)?;
                accept.sent(now, 0);
                session.note_handshake(now);
                Some(len)
            }
            State::Ended(goodbye) => {
                let len = goodbye.as_ref()?.emit(buf)?;
                *goodbye = None;
                Some(len)
            }
        }
    }

    /// When [`Client::handle_timeout`] is to be called at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match &self.state {
            State::Connecting { since, connect } => {
                let over = *since + more_than(self.config.timeout);
                Deadline::earliest([Some(over), connect.deadline()])
            }
            State::Connected { session, accept } => {
                Deadline::earliest([session.deadline(), accept.deadline()])
            }
            State::Ended(_) => None,
        }
    }

    /// Whether the connection stands.
    pub const fn is_connected(&self) -> bool {
        matches!(self.state, State::Connected { .. })
    }

    /// How it stands, if it does.
    pub fn view(&self) -> Option<SessionView> {
        match &self.state {
            State::Connected { session, .. } => Some(session.view()),
            _ => None,
        }
    }

    /// What was received and dropped.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }
}

const ZERO: Sequence = Sequence::new(0);

/// CONNECTACCEPT comes before there is a connection, and does not show that ACCEPT has arrived.
fn is_handshake(datagram: &[u8]) -> bool {
    Control::parse(datagram, Tokens::Guess)
        .is_ok_and(|packet| matches!(packet.message, ControlMessage::ConnectAccept(_)))
}
