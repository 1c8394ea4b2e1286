//! Numbers that must not be taken for one another.

use core::fmt;
use core::num::NonZeroU64;

use caves_link::seq::Seq;

/// A simulation tick of the server; wraps.
pub type Tick = Seq<32>;
/// The number of an input frame; wraps.
pub type InputSequence = Seq<32>;
/// The number of an event within its session: 64 bits, from 0 up, never wraps.
pub type EventSequence = u64;

/// The number of one attempt to join, chosen by the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Nonce(pub u64);

/// A player within its game.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PlayerId(pub u8);

/// The session of one client; never zero. Whoever knows it and has the address speaks for the
/// player, so its debug form hides it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cookie(NonZeroU64);

impl Cookie {
    /// `None` for zero, which is no session.
    ///
    /// ```
    /// use caves_wire::ferravex::Cookie;
    ///
    /// assert_eq!(Cookie::new(0), None);
    /// assert_eq!(Cookie::new(5).map(Cookie::get), Some(5));
    /// ```
    pub const fn new(number: u64) -> Option<Self> {
        match NonZeroU64::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// The number, never zero.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cookie(..)")
    }
}
