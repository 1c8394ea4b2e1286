//! Reading at a client's socket, and when there is a reason to.

use std::io::ErrorKind;
use std::net::UdpSocket;

use anyhow::Result;

use crate::by_hand::ROOM;
use crate::course::{Course, PERIOD};

/// A tick may be there this much before a period has passed since the one before it.
const EARLY: u64 = PERIOD.as_micros() as u64 / 10;

/// Reads all that waits at a connected socket into `buf`; `false` if that was nothing.
///
/// `recvmmsg` of three was tried and takes as long as three `recv`: what a call costs here is the socket, which
/// no cache holds.
pub(crate) fn drain(
    socket: &UdpSocket,
    buf: &mut [u8; ROOM],
    mut take: impl FnMut(&[u8]),
) -> Result<bool> {
    let mut is_any = false;
    loop {
        match socket.recv(buf) {
            Ok(len) => take(&buf[..len]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(is_any),
            Err(error) => return Err(error.into()),
        }
        is_any = true;
    }
}

/// The newest tick of which a client has everything.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Whole {
    tick: u32,
    /// When it was read, in microseconds since the start.
    at: u64,
}

impl Whole {
    pub(crate) const fn set(&mut self, tick: u32, now: u64) {
        if tick != self.tick {
            *self = Self { tick, at: now };
        }
    }

    /// Whether a look into the socket can find something that is due: some client has heard of a newer tick, or it is
    /// time for one. Whatever else the server says is found at that look.
    pub(crate) fn is_over(self, course: &Course, now: u64) -> bool {
        self.tick != course.newest() || now + EARLY >= self.at + PERIOD.as_micros() as u64
    }
}
