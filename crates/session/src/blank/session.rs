//! One connection, from either side: numbers, acknowledgements, timers.

use std::time::Duration;

use caves_link::ack::{Arrival, Judgement, Known, Received};
use caves_link::time::{Deadline, Instant};
use caves_wire::blank::{Ack, HeaderView, Numbers, Seq};

/// How a connection keeps time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    pub(super) ping_every: Duration,
    pub(super) timeout: Duration,
}

/// What a datagram did to a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heard {
    pub(super) arrival: Arrival,
    /// What its acknowledgement adds; only the newest datagram's is looked at (section 4).
    pub(super) judgement: Option<Judgement<16, 32>>,
}

impl Heard {
    /// Whether it is the newest of its connection so far.
    pub(super) const fn is_news(&self) -> bool {
        matches!(self.arrival, Arrival::Newer { .. })
    }

    pub(super) fn is_lost(&self, seq: Option<Seq>) -> bool {
        let judged = self.judgement.zip(seq);
        judged.is_some_and(|(judgement, seq)| judgement.is_lost(seq))
    }

    pub(super) fn is_acked(&self, seq: Option<Seq>) -> bool {
        let judged = self.judgement.zip(seq);
        judged.is_some_and(|(judgement, seq)| judgement.is_acked(seq))
    }
}

/// Both directions of one connection. Every datagram that is sent takes the next number, whatever
/// its type.
#[derive(Debug)]
pub(super) struct Session {
    pace: Pace,
    first: Seq,
    next: Seq,
    sent: u64,
    received: Received<16, 32>,
    has_heard: bool,
    known: Known<16, 32>,
    ping_at: Instant,
    silent_at: Instant,
}

impl Session {
    /// Nothing sent and nothing heard; the first datagram will have the number `first`.
    pub(super) fn new(now: Instant, first: Seq, pace: Pace) -> Self {
        Self {
            pace,
            first,
            next: first,
            sent: 0,
            // Peers start at 0 (section 3).
            received: Received::after(Seq::new(0).prev()),
            has_heard: false,
            known: Known::before(first),
            ping_at: now + pace.ping_every,
            silent_at: now + pace.timeout,
        }
    }

    /// A datagram with the right tag came. Any such restarts the timeout, late and repeated ones
    /// too (section 6).
    pub(super) fn hear(&mut self, now: Instant, header: HeaderView<'_>) -> Heard {
        self.silent_at = now + self.pace.timeout;
        let arrival = self.note(header.seq());
        let mut heard = Heard { arrival, judgement: None };
        if heard.is_news() && self.may_know(header.ack()) {
            heard.judgement = Some(self.known.hear(header.ack()));
        }
        heard
    }

    fn note(&mut self, seq: Seq) -> Arrival {
        let is_first = !std::mem::replace(&mut self.has_heard, true);
        if is_first && !seq.is_newer_than(self.received.ack().latest()) {
            // Somebody who did not start at 0, so the first number sets the base: otherwise all of
            // the peer's numbers were old for half a circle (section 3).
            self.received = Received::after(seq);
            return Arrival::Newer { skipped: 0 };
        }
        self.received.note(seq)
    }

    /// Nobody has a number that was not sent yet. Such an acknowledgement belongs to an earlier
    /// connection of this address, or is a lie.
    const fn may_know(&self, ack: Ack) -> bool {
        !ack.latest().is_newer_than(self.next.prev())
    }

    /// Whether a number has been sent on this connection.
    pub(super) fn has_sent(&self, seq: Seq) -> bool {
        u64::from(seq.distance_from(self.first)) < self.sent
    }

    /// Whether this is the first datagram of a new program behind the same address: one that has
    /// heard nothing yet, with a number from before all that is remembered (section 5).
    pub(super) fn is_restarted_by(&self, header: HeaderView<'_>) -> bool {
        let mut received = self.received;
        self.has_heard
            && header.ack() == Numbers::first().ack
            && received.note(header.seq()) == Arrival::TooOld
    }

    /// The numbers of a datagram that is sent now; that restarts the ping timer (section 6).
    pub(super) fn number(&mut self, now: Instant) -> Numbers {
        let numbers = self.upcoming();
        self.next = self.next.next();
        self.sent = self.sent.saturating_add(1);
        self.ping_at = now + self.pace.ping_every;
        numbers
    }

    /// The numbers that the next datagram would have.
    pub(super) const fn upcoming(&self) -> Numbers {
        Numbers { seq: self.next, ack: self.received.ack() }
    }

    /// Datagrams sent.
    pub(super) const fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether anything came.
    pub(super) const fn has_heard(&self) -> bool {
        self.has_heard
    }

    /// Whether nothing was sent for so long that a ping is due.
    pub(super) fn ping_due(&self, now: Instant) -> bool {
        self.ping_at <= now
    }

    /// Whether nothing came for so long that the connection is over.
    pub(super) fn is_silent(&self, now: Instant) -> bool {
        self.silent_at <= now
    }

    /// When the connection is over unless something comes.
    pub(super) const fn silent_at(&self) -> Instant {
        self.silent_at
    }

    /// When a ping is due or the connection over.
    pub(super) fn deadline(&self) -> Option<Instant> {
        Deadline::earliest([Some(self.ping_at), Some(self.silent_at)])
    }

    /// The next datagram has this number.
    #[cfg(feature = "testing")]
    pub(super) const fn number_from(&mut self, first: Seq) {
        self.first = first;
        self.next = first;
        self.known = Known::before(first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caves_wire::blank::Header;

    const PACE: Pace =
        Pace { ping_every: Duration::from_millis(500), timeout: Duration::from_secs(10) };

    fn hear(session: &mut Session, seq: u32, ack: u32, hist: u64) -> Heard {
        let numbers = Numbers { seq: Seq::new(seq), ack: Ack::new(Seq::new(ack), hist) };
        let mut buf = [0; 16];
        Header::ping(numbers).emit(&[], &mut buf).unwrap();
        session.hear(Instant::ZERO, HeaderView::parse(&buf).unwrap())
    }

    fn started(first: u32, sent: u32) -> Session {
        let mut session = Session::new(Instant::ZERO, Seq::new(first), PACE);
        for _ in 0..sent {
            session.number(Instant::ZERO);
        }
        session
    }

    /// Section 9: a first number of 5000 is acknowledged with an empty history.
    #[test]
    fn the_first_number_may_be_any() {
        for (first, hist) in [(0, 0xFFFF_FFFF), (2, 0xFFFF_FFFC), (5000, 0), (32766, 0)] {
            let mut session = started(0, 0);
            assert!(hear(&mut session, first, 0xFFFF, 0xFFFF_FFFF).is_news());
            assert_eq!(session.upcoming().ack, Ack::new(Seq::new(first), hist), "{first}");
        }
        for first in [32767, 40_000, 65_510, 65_535] {
            let mut session = started(0, 0);
            assert!(hear(&mut session, first, 0xFFFF, 0xFFFF_FFFF).is_news());
            assert_eq!(session.upcoming().ack, Ack::all_up_to(Seq::new(first)), "{first}");
            assert!(hear(&mut session, first + 1, 0xFFFF, 0xFFFF_FFFF).is_news());
        }
    }

    #[test]
    fn an_acknowledgement_of_what_was_not_sent_is_not_believed() {
        let mut session = started(10, 3);
        assert!(hear(&mut session, 0, 13, 0xFFFF_FFFF).judgement.is_none());
        assert!(hear(&mut session, 1, 500, 0).judgement.is_none());
        let heard = hear(&mut session, 2, 12, 0xFFFF_FFFE);
        assert!(heard.is_acked(Some(Seq::new(12))) && !heard.is_acked(Some(Seq::new(11))));
        // A late datagram's acknowledgement is not looked at.
        assert!(hear(&mut session, 1, 12, 0xFFFF_FFFF).judgement.is_none());
        assert!(session.has_sent(Seq::new(10)) && session.has_sent(Seq::new(12)));
        assert!(!session.has_sent(Seq::new(9)) && !session.has_sent(Seq::new(13)));
    }

    #[test]
    fn a_new_program_is_told_from_a_repeated_datagram() {
        let mut session = started(0, 1);
        hear(&mut session, 0, 0xFFFF, 0xFFFF_FFFF);
        let restarted = |session: &Session, seq, ack| {
            let numbers = Numbers { seq: Seq::new(seq), ack: Ack::all_up_to(Seq::new(ack)) };
            let mut buf = [0; 16];
            Header::ping(numbers).emit(&[], &mut buf).unwrap();
            session.is_restarted_by(HeaderView::parse(&buf).unwrap())
        };
        assert!(!restarted(&session, 0, 0xFFFF));
        hear(&mut session, 32, 0, 0xFFFF_FFFF);
        assert!(!restarted(&session, 0, 0xFFFF), "within the window");
        hear(&mut session, 33, 0, 0xFFFF_FFFF);
        assert!(restarted(&session, 0, 0xFFFF));
        assert!(!restarted(&session, 0, 0), "it has heard something");
        assert!(!restarted(&session, 34, 0xFFFF));
    }

    #[test]
    fn any_sending_puts_the_ping_off_and_any_datagram_the_timeout() {
        let mut session = Session::new(Instant::ZERO, Seq::new(0), PACE);
        assert_eq!(session.deadline(), Some(Instant::from_millis(500)));
        session.number(Instant::from_millis(499));
        assert!(!session.ping_due(Instant::from_millis(998)));
        assert!(session.ping_due(Instant::from_millis(999)));
        assert!(!session.is_silent(Instant::from_millis(9999)));
        assert!(session.is_silent(Instant::from_secs(10)));
    }
}
