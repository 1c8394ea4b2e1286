//! The client within a session.

use std::collections::VecDeque;
use std::time::Duration;

use caves_link::time::{Deadline, Instant};
use caves_link::wide::WideReceiver;
use caves_wire::ferravex::{
    Cookie, EventAck, EventSequence, EventView, Input, InputFrame, InputSequence, MAX_FRAMES,
    PlayerId, SnapshotView, Tick, WelcomeView,
};

use super::client::PushError;
use super::{EVENT_WINDOW, INPUT_REPEAT, KEEPALIVE};
use crate::DropReason;

/// Acknowledgements that wait to be sent. One event asks for one, so this only fills when the caller
/// hands in datagrams and sends nothing; an event whose acknowledgement found no room comes again.
pub(super) const ACKS: usize = 256;
/// Without input from the caller a client shows this soon that its Welcome arrived.
const FIRST_INPUT: Duration = Duration::from_millis(50);

/// What a player does in one step, still without a number.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Controls {
    /// Wished movement to the side, finite.
    pub move_x: f32,
    /// Wished movement ahead, finite.
    pub move_y: f32,
    /// Where the player looks, around the vertical, finite.
    pub yaw: f32,
    /// Where the player looks, up and down, finite.
    pub pitch: f32,
    /// A bit for each button.
    pub buttons: u16,
}

impl Controls {
    const fn numbered(self, sequence: InputSequence) -> InputFrame {
        let Self { move_x, move_y, yaw, pitch, buttons } = self;
        InputFrame { sequence, move_x, move_y, yaw, pitch, buttons }
    }
}

#[derive(Debug)]
pub(super) struct Play {
    pub(super) session: Cookie,
    pub(super) player: PlayerId,
    /// The tick of the newest snapshot.
    pub(super) tick: Option<Tick>,
    /// When something new was heard.
    pub(super) heard: Instant,
    /// The newest frame that the server has.
    pub(super) acked: Option<InputSequence>,
    /// The last frames, the newest at the end; at most [`MAX_FRAMES`].
    frames: VecDeque<InputFrame>,
    /// How many of them were never sent.
    unsent: usize,
    next: InputSequence,
    sent_at: Instant,
    send_at: Instant,
    events: WideReceiver<Box<[u8]>>,
    acks: VecDeque<EventSequence>,
}

impl Play {
    pub(super) fn new(now: Instant, welcome: WelcomeView<'_>, first: InputSequence) -> Self {
        Self {
            session: welcome.session(),
            player: welcome.player(),
            tick: None,
            heard: now,
            acked: None,
            frames: VecDeque::new(),
            unsent: 0,
            next: first,
            sent_at: now,
            send_at: now + FIRST_INPUT,
            events: WideReceiver::new(EVENT_WINDOW, 0),
            acks: VecDeque::new(),
        }
    }

    /// The newest wins: one that is not newer than the last is dropped, and what it acknowledges too.
    pub(super) fn on_snapshot(
        &mut self,
        now: Instant,
        view: SnapshotView<'_>,
    ) -> Result<(), DropReason> {
        self.check(view.session())?;
        if self.tick.is_some_and(|last| !view.tick().is_newer_than(last)) {
            return Err(DropReason::Tick);
        }
        self.tick = Some(view.tick());
        self.heard = now;
        // An acknowledgement of what was never sent says nothing.
        if let Some(ack) = view.ack()
            && self.was_sent(ack)
            && self.acked.is_none_or(|acked| ack.is_newer_than(acked))
        {
            self.acked = Some(ack);
            if self.is_acked() {
                self.send_at = self.sent_at + KEEPALIVE;
            }
        }
        Ok(())
    }

    pub(super) fn on_event(&mut self, now: Instant, view: EventView<'_>) -> Result<(), DropReason> {
        self.check(view.session())?;
        let number = view.sequence();
        if !self.events.receive(number, view.payload().into()).is_acknowledged() {
            // Beyond the window: no acknowledgement, so that it comes again.
            return Err(DropReason::Full);
        }
        self.heard = now;
        if self.acks.len() < ACKS && !self.acks.contains(&number) {
            self.acks.push_back(number);
        }
        Ok(())
    }

    fn check(&self, session: Cookie) -> Result<(), DropReason> {
        if session == self.session { Ok(()) } else { Err(DropReason::Token) }
    }

    /// The next event in order.
    pub(super) fn next_event(&mut self) -> Option<(EventSequence, Box<[u8]>)> {
        self.events.pop()
    }

    /// Takes a frame to be sent at once.
    pub(super) fn push(
        &mut self,
        now: Instant,
        controls: Controls,
    ) -> Result<InputSequence, PushError> {
        let frame = controls.numbered(self.next);
        if !frame.is_finite() {
            return Err(PushError::NotFinite);
        }
        // One packet has room for six, and none may be passed over.
        if self.unsent >= MAX_FRAMES {
            return Err(PushError::Full);
        }
        if self.frames.len() >= MAX_FRAMES {
            self.frames.pop_front();
        }
        self.frames.push_back(frame);
        self.unsent += 1;
        self.next = self.next.next();
        self.send_at = now;
        Ok(frame.sequence)
    }

    /// Writes the next datagram that is due.
    pub(super) fn poll_transmit(&mut self, now: Instant, buf: &mut [u8]) -> Option<usize> {
        let session = self.session;
        if let Some(sequence) = self.acks.pop_front() {
            return EventAck { session, sequence }.emit(buf).ok();
        }
        if self.send_at > now {
            return None;
        }
        if self.frames.is_empty() {
            // Nobody moved yet: one frame of nothing shows that the Welcome arrived.
            self.push(now, Controls::default()).ok()?;
        }
        self.unsent = 0;
        self.sent_at = now;
        self.send_at = now + if self.is_acked() { KEEPALIVE } else { INPUT_REPEAT };
        Input { session, frames: self.frames.make_contiguous() }.emit(buf).ok()
    }

    pub(super) fn deadline(&self, timeout: Duration) -> Option<Instant> {
        Deadline::earliest([Some(self.send_at), Some(self.heard + timeout)])
    }

    /// Whether the server has the newest frame.
    fn is_acked(&self) -> bool {
        self.unsent == 0 && self.acked.is_some() && self.acked == self.newest()
    }

    fn newest(&self) -> Option<InputSequence> {
        self.frames.back().map(|frame| frame.sequence)
    }

    /// Frames that were sent and are not acknowledged, as far as anybody knows; those of the last
    /// packet if none is.
    pub(super) fn unacknowledged(&self) -> u32 {
        match (self.acked, self.newest()) {
            (Some(acked), Some(newest)) => newest.distance_from(acked),
            // At most six.
            _ => self.frames.len() as u32,
        }
    }

    /// Half the circle before the next number was sent, as far as anybody can tell.
    fn was_sent(&self, number: InputSequence) -> bool {
        self.newest().is_some_and(|newest| !number.is_newer_than(newest))
    }
}
