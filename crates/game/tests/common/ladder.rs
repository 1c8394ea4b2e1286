//! A run as a ladder of datagrams: who sent what to whom, when, and what became of it.

use caves_link::time::Instant;
use caves_wire::caves::Packet;

pub(crate) struct Ladder {
    start: Instant,
    pub(crate) lines: Vec<String>,
}

/// Which way a datagram goes.
#[derive(Clone, Copy)]
pub(crate) enum Way {
    Up,
    Down,
}

impl Ladder {
    pub(crate) fn new(start: Instant) -> Self {
        Self { start, lines: Vec::new() }
    }

    /// It has arrived.
    pub(crate) fn arrived(
        &mut self,
        now: Instant,
        who: &str,
        way: Way,
        sent: Instant,
        damaged: bool,
        bytes: &[u8],
    ) {
        let took = now.saturating_since(sent).as_millis();
        let damaged = if damaged { ", damaged" } else { "" };
        let rung = match way {
            Way::Up => format!("{who:>8} ------> server"),
            Way::Down => format!("{who:>8} <------ server"),
        };
        self.line(now, &format!("{rung}   {}   ({took} ms{damaged})", describe(bytes)));
    }

    /// The network has lost it, or nobody was there.
    pub(crate) fn lost(&mut self, now: Instant, who: &str, way: Way, why: &str, bytes: &[u8]) {
        let rung = match way {
            Way::Up => format!("{who:>8} ---x    server"),
            Way::Down => format!("{who:>8}    x--- server"),
        };
        self.line(now, &format!("{rung}   {}   ({why})", describe(bytes)));
    }

    /// Something else has happened.
    pub(crate) fn note(&mut self, now: Instant, what: &str) {
        self.line(now, &format!("         ======== {what}"));
    }

    fn line(&mut self, now: Instant, what: &str) {
        let at = now.saturating_since(self.start).as_secs_f64();
        self.lines.push(format!("{at:9.3}  {what}"));
    }
}

fn describe(bytes: &[u8]) -> String {
    match Packet::parse(bytes) {
        Ok(packet) => packet.to_string(),
        Err(error) => format!("{} bytes: {error}", bytes.len()),
    }
}
