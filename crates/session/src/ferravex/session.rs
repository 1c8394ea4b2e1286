//! What the server keeps of one session.

use std::time::Duration;

use caves_link::seq::Age;
use caves_link::time::Instant;
use caves_link::wide::WideSender;
use caves_wire::ferravex::{InputFrame, InputSequence, InputView, Player, PlayerId, Tick, Welcome};

use super::{EVENT_RETRY, EVENTS_PENDING, MAX_AHEAD};
use crate::Peer;

#[derive(Debug)]
pub(super) struct Session {
    pub(super) peer: Peer,
    /// As it was answered, and is answered again to a Hello with its nonce.
    pub(super) welcome: Welcome,
    pub(super) heard: Instant,
    pub(super) inputs: InputGate,
    pub(super) events: WideSender<Box<[u8]>>,
    /// The tick of the newest snapshot, sent or not.
    pub(super) tick: Option<Tick>,
    /// Whether that snapshot waits.
    pub(super) waits: bool,
    /// Its players; the room is used again.
    pub(super) players: Vec<Player>,
    /// Its entry in the server's list of those with something to send.
    pub(super) send_due: Option<Instant>,
}

impl Session {
    pub(super) fn new(now: Instant, peer: Peer, welcome: Welcome) -> Self {
        Self {
            peer,
            welcome,
            heard: now,
            inputs: InputGate::default(),
            events: WideSender::new(0, EVENT_RETRY, EVENTS_PENDING),
            tick: None,
            waits: false,
            players: Vec::new(),
            send_due: None,
        }
    }

    /// When something is to be sent.
    pub(super) fn next_send(&self, now: Instant) -> Option<Instant> {
        if self.waits { Some(now) } else { self.events.deadline(now) }
    }
}

/// Lets each frame through once, in the order of their numbers.
///
/// ```text
///   newest used   5
///   packet        1 2 3 4 5 6      6 is fresh; all others were used, or came too late
///   packet            7 8 9 10 11 12    6 did not come in any packet: it is missed
/// ```
///
/// The first frame seen begins the count, whatever its number.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct InputGate {
    newest: Option<InputSequence>,
    used: u64,
    missed: u64,
}

/// What a packet of inputs was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inputs {
    /// All but the first so many frames are fresh.
    Fresh(usize),
    /// The newest frame is the newest one used.
    Repeated,
    /// Older than that.
    Old,
    /// Too far ahead to be a loss.
    TooFar,
}

impl InputGate {
    pub(super) fn offer(&mut self, first: InputSequence, count: usize) -> Inputs {
        // At most six.
        let count = count as u32;
        let last = first.advance(count.saturating_sub(1));
        let ahead = match self.newest {
            None => count,
            Some(newest) => match last.age(newest) {
                Age::Same => return Inputs::Repeated,
                Age::Older => return Inputs::Old,
                Age::Newer => last.distance_from(newest),
            },
        };
        if ahead > MAX_AHEAD {
            return Inputs::TooFar;
        }
        let fresh = ahead.min(count);
        self.newest = Some(last);
        self.used += u64::from(fresh);
        self.missed += u64::from(ahead - fresh);
        Inputs::Fresh((count - fresh) as usize)
    }

    pub(super) const fn newest(&self) -> Option<InputSequence> {
        self.newest
    }
}

/// The frames of a packet that no packet brought before, the oldest first.
#[derive(Debug, Clone, Copy)]
pub struct FreshFrames<'d> {
    pub(super) view: InputView<'d>,
    pub(super) known: usize,
}

impl<'d> FreshFrames<'d> {
    /// One to six frames; their numbers go up by one.
    pub fn iter(self) -> impl ExactSizeIterator<Item = InputFrame> + 'd {
        self.view.frames().skip(self.known)
    }
}

/// What the layer above may know of a session.
#[derive(Debug, Clone, Copy)]
pub struct SessionView<'s>(pub(super) &'s Session);

impl SessionView<'_> {
    /// Where it is.
    pub const fn peer(self) -> Peer {
        self.0.peer
    }

    /// Which player it is in the snapshots.
    pub const fn player(self) -> PlayerId {
        self.0.welcome.player
    }

    /// How long nothing was heard of it.
    pub fn silence(self, now: Instant) -> Duration {
        now.saturating_since(self.0.heard)
    }

    /// The newest input frame that it sent, as the next snapshot says.
    pub const fn newest_input(self) -> Option<InputSequence> {
        self.0.inputs.newest()
    }

    /// Input frames that were handed on.
    pub const fn inputs_used(self) -> u64 {
        self.0.inputs.used
    }

    /// Input frames that no packet brought in time; all packets that had them were lost.
    pub const fn inputs_missed(self) -> u64 {
        self.0.inputs.missed
    }

    /// Events that it has not acknowledged, at most [`EVENTS_PENDING`].
    pub fn events_pending(self) -> usize {
        self.0.events.pending()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seq(number: u32) -> InputSequence {
        InputSequence::new(number)
    }

    #[test]
    fn each_frame_is_let_through_once() {
        let mut gate = InputGate::default();
        assert_eq!(gate.newest(), None);
        assert_eq!(
            gate.offer(seq(u32::MAX - 2), 1),
            Inputs::Fresh(0),
            "any number may be the first"
        );
        assert_eq!(gate.offer(seq(u32::MAX - 2), 2), Inputs::Fresh(1));
        assert_eq!(gate.offer(seq(u32::MAX - 2), 2), Inputs::Repeated);
        assert_eq!(gate.offer(seq(u32::MAX - 2), 1), Inputs::Old);
        assert_eq!(gate.offer(seq(u32::MAX - 2), 6), Inputs::Fresh(2));
        assert_eq!(gate.newest(), Some(seq(2)));
        assert_eq!(gate.offer(seq(0), 3), Inputs::Repeated);
        // 3 and 4 are missed: they came in no packet.
        assert_eq!(gate.offer(seq(5), 6), Inputs::Fresh(0));
        assert_eq!(gate.offer(seq(0), 6), Inputs::Old);
        assert_eq!((gate.used, gate.missed), (1 + 1 + 4 + 6, 2));
    }

    #[test]
    fn a_number_from_far_ahead_does_not_keep_the_others_out() {
        let mut gate = InputGate::default();
        assert_eq!(gate.offer(seq(10), 1), Inputs::Fresh(0));
        assert_eq!(gate.offer(seq(10 + 4097), 1), Inputs::TooFar);
        assert_eq!(gate.offer(seq(10 + (1 << 31) - 1), 1), Inputs::TooFar);
        assert_eq!(gate.offer(seq(10 + (1 << 31)), 1), Inputs::Old);
        assert_eq!(gate.offer(seq(11), 1), Inputs::Fresh(0));
        assert_eq!(gate.offer(seq(11 + 4096), 1), Inputs::Fresh(0));
        assert_eq!((gate.used, gate.missed), (3, 4095));
    }
}
