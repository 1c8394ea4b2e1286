//! Which session a datagram belongs to.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::datagram::{Datagram, Ends, Way};
use crate::follow::{Figures, Follower, Moment, Remarks};
use crate::protocols::{Decoded, Protocol};

/// Sessions that are followed at once. When one more begins, the one that was silent for longest is
/// closed, and its summary written.
pub const MAX_SESSIONS: usize = 256;
/// Packet types that are counted apart in one session; what a peer makes up beyond that is one sum.
const MAX_KINDS: usize = 48;
/// What stands for the kinds beyond.
const OTHER_KINDS: &str = "other";

/// All datagrams of one protocol between two addresses.
#[derive(Debug)]
pub struct Session {
    /// Counted from 1 in the order of their first datagrams.
    pub number: u64,
    /// What is spoken.
    pub protocol: Protocol,
    /// The two ends in a fixed order, where the recording has addresses.
    ends: Option<[SocketAddr; 2]>,
    /// Which end is the server.
    server: Option<SocketAddr>,
    datagrams: u64,
    bytes: u64,
    problems: u64,
    lost: u64,
    kinds: BTreeMap<String, (u64, u64)>,
    first: Option<u64>,
    last: Option<u64>,
    follower: Follower,
    /// The number of the datagram that came last.
    heard: u64,
}

impl Session {
    fn new(number: u64, protocol: Protocol, ends: Option<[SocketAddr; 2]>) -> Self {
        Self {
            number,
            protocol,
            ends,
            server: None,
            datagrams: 0,
            bytes: 0,
            problems: 0,
            lost: 0,
            kinds: BTreeMap::new(),
            first: None,
            last: None,
            follower: Follower::new(protocol),
            heard: 0,
        }
    }

    /// The direction of a datagram as far as it is known without reading it.
    pub fn way(&self, datagram: &Datagram, ports: &[u16]) -> Option<Way> {
        match datagram.ends {
            Ends::Unknown => None,
            Ends::Way(way) => Some(way),
            Ends::Addrs { from, to } => {
                let known = ports.iter().chain(self.protocol.ports());
                let server = self.server.or_else(|| {
                    let is_server = |addr: &SocketAddr| known.clone().any(|p| *p == addr.port());
                    // Two servers that talk to each other are told by what they say.
                    let mut servers = [to, from].into_iter().filter(is_server);
                    servers.next().filter(|_| servers.next().is_none())
                })?;
                Some(if to == server { Way::ToServer } else { Way::ToClient })
            }
        }
    }

    /// Counts a datagram and follows it. Gives its direction, and puts remarks into `remarks`.
    pub fn take(
        &mut self,
        datagram: &Datagram,
        decoded: &Decoded<'_>,
        way: Option<Way>,
        remarks: &mut Remarks,
    ) -> Option<Way> {
        let way = way.or(decoded.way);
        if let (Ends::Addrs { from, to }, Some(way)) = (datagram.ends, way) {
            self.server.get_or_insert(if way == Way::ToServer { to } else { from });
        }
        self.datagrams += 1;
        self.bytes += datagram.bytes.len() as u64;
        self.problems += u64::from(decoded.problem.is_some());
        self.lost += u64::from(datagram.lost);
        self.count(&decoded.kind, datagram.bytes.len());
        self.first = self.first.or(datagram.micros);
        self.last = datagram.micros.or(self.last);
        // What a receiver drops changes nothing in a session.
        if decoded.problem.is_none() {
            let moment = Moment { micros: datagram.micros, way, lost: datagram.lost };
            self.follower.take(moment, &decoded.facts, remarks);
        }
        way
    }

    fn count(&mut self, kind: &str, bytes: usize) {
        let known = self.kinds.len() < MAX_KINDS || self.kinds.contains_key(kind);
        let kind = if known { kind } else { OTHER_KINDS };
        let (datagrams, sum) = self.kinds.entry(kind.to_owned()).or_default();
        *datagrams += 1;
        *sum += bytes as u64;
    }

    /// Who talks, for people.
    pub fn title(&self) -> String {
        match (self.ends, self.server) {
            (Some([a, b]), Some(server)) => {
                let client = if a == server { b } else { a };
                format!("{client} with server {server}")
            }
            (Some([a, b]), None) => format!("{a} with {b}"),
            (None, _) => "addresses unknown".to_owned(),
        }
    }

    /// Datagrams, bytes and each packet type's share.
    pub fn counts(&self) -> (u64, u64, &BTreeMap<String, (u64, u64)>) {
        (self.datagrams, self.bytes, &self.kinds)
    }

    /// Datagrams that a receiver would drop, and those that the recording says were lost.
    pub const fn wrong(&self) -> (u64, u64) {
        (self.problems, self.lost)
    }

    /// From the first to the last datagram, in microseconds.
    pub fn duration(&self) -> Option<u64> {
        Some(self.last?.saturating_sub(self.first?))
    }

    /// What following it found.
    pub fn figures(&self) -> Figures {
        self.follower.figures()
    }

    /// The same for machines.
    pub fn to_json(&self) -> Value {
        let kinds: serde_json::Map<String, Value> = (self.kinds.iter())
            .map(|(kind, (datagrams, bytes))| {
                (kind.clone(), json!({ "datagrams": datagrams, "bytes": bytes }))
            })
            .collect();
        let mut value = json!({
            "session": self.number,
            "protocol": self.protocol.name(),
            "server": self.server.map(|addr| addr.to_string()),
            "client": self.client().map(|addr| addr.to_string()),
            "seconds": self.duration().map(|micros| micros as f64 / 1e6),
            "datagrams": self.datagrams,
            "bytes": self.bytes,
            "problems": self.problems,
            "lost": self.lost,
            "packets": kinds,
        });
        for (group, figures) in self.figures() {
            value[group] = figures
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect::<serde_json::Map<_, _>>()
                .into();
        }
        value
    }

    fn client(&self) -> Option<SocketAddr> {
        let ([a, b], server) = (self.ends?, self.server?);
        Some(if a == server { b } else { a })
    }
}

/// The sessions under way.
#[derive(Debug, Default)]
pub struct Sessions {
    open: Vec<Session>,
    begun: u64,
    taken: u64,
}

impl Sessions {
    /// The protocol that was spoken last between these ends.
    pub fn protocol_of(&self, ends: &Ends) -> Option<Protocol> {
        let ends = ordered(ends);
        let here = self.open.iter().filter(|session| session.ends == ends);
        here.max_by_key(|session| session.heard).map(|session| session.protocol)
    }

    /// The session of a datagram, and one that had to be closed for it.
    pub fn of(&mut self, protocol: Protocol, ends: &Ends) -> (&mut Session, Option<Session>) {
        let ends = ordered(ends);
        self.taken += 1;
        let is_it = |session: &Session| session.protocol == protocol && session.ends == ends;
        let mut closed = None;
        let at = match self.open.iter().position(is_it) {
            Some(at) => at,
            None => {
                if self.open.len() >= MAX_SESSIONS {
                    closed = self.close_oldest();
                }
                self.begun += 1;
                self.open.push(Session::new(self.begun, protocol, ends));
                self.open.len() - 1
            }
        };
        let session = &mut self.open[at];
        session.heard = self.taken;
        (session, closed)
    }

    fn close_oldest(&mut self) -> Option<Session> {
        let (at, _) = self.open.iter().enumerate().min_by_key(|(_, session)| session.heard)?;
        Some(self.open.remove(at))
    }

    /// All that are still open, in the order in which they began.
    pub fn into_open(self) -> Vec<Session> {
        self.open
    }
}

fn ordered(ends: &Ends) -> Option<[SocketAddr; 2]> {
    match ends {
        Ends::Addrs { from, to } => Some(if from <= to { [*from, *to] } else { [*to, *from] }),
        _ => None,
    }
}
