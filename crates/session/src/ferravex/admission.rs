//! Those who asked for a session and have not shown that the answer reached them.
//!
//! A Hello has 18 bytes and may have no more, a Welcome has 31: who answered each Hello could be made
//! to send strangers more than came from their address. So bytes are counted, for each attempt alone:
//!
//! ```text
//!   Hello   in  18   36   54   72   90  108
//!   sent         0   31   31   62   62   93     never more than what came in
//! ```
//!
//! Nothing here is a session: no snapshot and no event goes to a caller. All is bounded, and what is
//! over a bound pushes out whoever said nothing for the longest.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use caves_link::time::Instant;
use caves_wire::ferravex::{Cookie, Hello, Nonce, PlayerId, Welcome};

use crate::{DropReason, Peer};

/// Attempts that are remembered.
pub(super) const CALLERS: usize = 1024;
/// Attempts with a Welcome: each holds a number of a player, of which there are 256.
pub(super) const WELCOMED: usize = 128;
/// An attempt is forgotten when no Hello came for so long.
const CALLER_TIMEOUT: Duration = Duration::from_secs(10);

/// One attempt. A nonce from elsewhere is another one: nobody spends the credit of others.
pub(super) type Attempt = (Peer, Nonce);

#[derive(Debug)]
struct Caller {
    /// Its place in the order.
    serial: u64,
    heard: Instant,
    /// Bytes that came and were not answered yet.
    credit: usize,
    welcome: Option<Welcome>,
}

/// All attempts, and which numbers of players are given.
#[derive(Debug, Default)]
pub(super) struct Doorstep {
    callers: HashMap<Attempt, Caller>,
    by_cookie: HashMap<Cookie, Attempt>,
    /// Those heard last are at the end.
    order: BTreeMap<u64, Attempt>,
    next_serial: u64,
    players: Players,
}

impl Doorstep {
    /// A Hello came. Whether there is credit for a Welcome; it is not spent yet.
    pub(super) fn hello(&mut self, now: Instant, attempt: Attempt) -> bool {
        self.forget(now);
        if !self.callers.contains_key(&attempt) && self.callers.len() >= CALLERS {
            self.push_out(|_| true);
        }
        let serial = self.next_serial;
        self.next_serial += 1;
        let caller = self.callers.entry(attempt).or_insert_with(|| Caller {
            serial,
            heard: now,
            credit: 0,
            welcome: None,
        });
        self.order.remove(&caller.serial);
        self.order.insert(serial, attempt);
        caller.serial = serial;
        caller.heard = now;
        // One more Welcome is all that a credit is ever used for at once.
        caller.credit = (caller.credit + Hello::LEN).min(2 * Welcome::LEN);
        caller.credit >= Welcome::LEN
    }

    /// The Welcome of an attempt, if it has one.
    pub(super) fn welcome(&self, attempt: &Attempt) -> Option<Welcome> {
        self.callers.get(attempt)?.welcome
    }

    /// Welcomes an attempt, once; `None` if there is no number left for its player.
    pub(super) fn admit(
        &mut self,
        attempt: Attempt,
        welcome: impl FnOnce(PlayerId) -> Welcome,
    ) -> Option<Welcome> {
        if self.by_cookie.len() >= WELCOMED {
            self.push_out(|caller| caller.welcome.is_some());
        }
        let player = self.players.take()?;
        let welcome = welcome(player);
        let Some(caller) = self.callers.get_mut(&attempt) else {
            self.players.release(player);
            return None;
        };
        caller.welcome = Some(welcome);
        self.by_cookie.insert(welcome.session, attempt);
        Some(welcome)
    }

    /// A Welcome goes out.
    pub(super) fn pay(&mut self, attempt: &Attempt) {
        if let Some(caller) = self.callers.get_mut(attempt) {
            caller.credit = caller.credit.saturating_sub(Welcome::LEN);
        }
    }

    /// Whether a cookie is that of an attempt from this address.
    pub(super) fn proves(&self, from: Peer, cookie: Cookie) -> Result<(), DropReason> {
        match self.by_cookie.get(&cookie) {
            Some((peer, _)) if *peer == from => Ok(()),
            Some(_) => Err(DropReason::Address),
            None => Err(DropReason::Token),
        }
    }

    /// Takes an attempt that was proven; its player's number stays taken.
    pub(super) fn take(&mut self, cookie: Cookie) -> Option<Welcome> {
        let attempt = self.by_cookie.remove(&cookie)?;
        let caller = self.callers.remove(&attempt)?;
        self.order.remove(&caller.serial);
        caller.welcome
    }

    /// A session is over.
    pub(super) const fn release(&mut self, player: PlayerId) {
        self.players.release(player);
    }

    /// Whether some attempt has this cookie.
    pub(super) fn knows(&self, cookie: Cookie) -> bool {
        self.by_cookie.contains_key(&cookie)
    }

    /// Attempts, and those of them with a Welcome.
    #[cfg(test)]
    pub(super) fn len(&self) -> (usize, usize) {
        assert_eq!(self.callers.len(), self.order.len());
        (self.callers.len(), self.by_cookie.len())
    }

    fn forget(&mut self, now: Instant) {
        while let Some((_, attempt)) = self.order.first_key_value()
            && let attempt = *attempt
            && self.callers.get(&attempt).is_none_or(|of| of.heard + CALLER_TIMEOUT <= now)
        {
            self.remove(attempt);
        }
    }

    /// Forgets the first in the order that is such a one.
    fn push_out(&mut self, such: impl Fn(&Caller) -> bool) {
        let mut attempts = self.order.values();
        let first = attempts.find(|attempt| self.callers.get(attempt).is_some_and(&such));
        if let Some(attempt) = first.copied() {
            self.remove(attempt);
        }
    }

    fn remove(&mut self, attempt: Attempt) {
        let Some(caller) = self.callers.remove(&attempt) else { return };
        self.order.remove(&caller.serial);
        if let Some(welcome) = caller.welcome {
            self.by_cookie.remove(&welcome.session);
            self.players.release(welcome.player);
        }
    }
}

/// Numbers of players, the lowest first.
#[derive(Debug, Default)]
struct Players([u64; 4]);

impl Players {
    fn take(&mut self) -> Option<PlayerId> {
        let free = (0..=u8::MAX).find(|number| self.word(*number) & Self::bit(*number) == 0)?;
        self.0[usize::from(free / 64)] |= Self::bit(free);
        Some(PlayerId(free))
    }

    const fn release(&mut self, PlayerId(number): PlayerId) {
        self.0[number as usize / 64] &= !Self::bit(number);
    }

    const fn word(&self, number: u8) -> u64 {
        self.0[number as usize / 64]
    }

    const fn bit(number: u8) -> u64 {
        1 << (number % 64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caves_wire::ferravex::Tick;

    fn attempt(number: u16) -> Attempt {
        (Peer { socket: 0, addr: ([192, 0, 2, 1], number).into() }, Nonce(number.into()))
    }

    fn welcome(number: u16) -> impl FnOnce(PlayerId) -> Welcome {
        move |player| Welcome {
            nonce: Nonce(number.into()),
            session: Cookie::new(u64::from(number) + 1).unwrap(),
            player,
            tick: Tick::new(0),
        }
    }

    #[test]
    fn no_more_bytes_go_out_than_came_in() {
        let mut door = Doorstep::default();
        let now = Instant::from_secs(1);
        let (mut received, mut sent, mut answered) = (0, 0, Vec::new());
        for count in 1..=12 {
            received += 18;
            if door.hello(now, attempt(1)) {
                door.pay(&attempt(1));
                sent += 31;
                answered.push(count);
            }
            assert!(sent <= received, "{sent} of {received}");
        }
        // What is left after each: 5, 10, 15, 2, 7, 12.
        assert_eq!(answered, [2, 4, 6, 7, 9, 11]);
    }

    #[test]
    fn an_attempt_is_forgotten_ten_seconds_after_its_last_hello() {
        let mut door = Doorstep::default();
        door.hello(Instant::from_secs(1), attempt(1));
        assert!(door.hello(Instant::from_millis(10_999), attempt(1)));
        door.admit(attempt(1), welcome(1)).unwrap();
        door.hello(Instant::from_millis(20_998), attempt(2));
        assert_eq!(door.len(), (2, 1));
        assert!(!door.hello(Instant::from_millis(20_999), attempt(3)));
        assert_eq!(door.len(), (2, 0));
        assert_eq!(door.proves(attempt(1).0, Cookie::new(2).unwrap()), Err(DropReason::Token));
        assert_eq!(door.admit(attempt(3), welcome(3)).unwrap().player, PlayerId(0));
    }

    #[test]
    fn tables_are_bounded_and_push_out_the_one_silent_for_longest() {
        let mut door = Doorstep::default();
        let now = Instant::from_secs(1);
        for number in 0..3000 {
            door.hello(now, attempt(number));
            door.hello(now, attempt(number));
            let admitted = door.admit(attempt(number), welcome(number));
            assert!(admitted.is_some());
            let (callers, welcomed) = door.len();
            assert!(callers <= CALLERS && welcomed <= WELCOMED);
        }
        assert_eq!(door.len(), (128, 128));
        assert!(door.welcome(&attempt(2999 - 127)).is_some());
        assert!(door.welcome(&attempt(2999 - 128)).is_none());
        for number in 3000..6000 {
            door.hello(now, attempt(number));
        }
        assert_eq!(door.len(), (CALLERS, 0));
    }
}
