//! Deliberate faults. A simulation that has never found one proves little, so each invariant that the
//! storm of `caves-game` checks has a fault here which breaks it.
//!
//! Without the feature `faults`, which only dev-dependencies of this workspace ask for, none can be
//! switched on and the questions for them compile to nothing.

#[cfg(feature = "faults")]
use std::time::Duration;

use caves_link::time::Instant;

/// What is done wrong on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Server: an action is executed again in the next tick.
    ActsTwice,
    /// Server: older actions are executed too.
    ForgetsGuard,
    /// Server: says that the action before the last one was executed.
    LiesOfExecuted,
    /// Server: the ChunkPacket of one chunk has the tiles of its neighbour.
    TearsChunks,
    /// Server: a Hello is answered twice.
    AnswersMore,
    /// Server: a session that fell silent stays.
    KeepsDead,
    /// Server: the token of a session that ended stays in its table.
    LeaksSlot,
    /// Server: panics over a datagram of 13 bytes.
    PanicsOnJunk,
    /// Server: any cookie is as good as its own.
    TrustsStrangers,
    /// Server: events go to those, too, who were not granted any.
    TellsEverybody,
    /// Server: whoever goes north goes south.
    TurnsRound,
    /// Client: entities are shown before their checksum says that they are complete.
    MixesTicks,
    /// Client: an update older than the one that is shown is shown as well.
    TakesOldTick,
    /// Client: keeps the caves of the session before.
    KeepsCaves,
    /// Client: notes a chunk as held that it does not hand on.
    HoldsUnseen,
    /// Client: a query that is never answered does not end.
    ForgetsQuery,
    /// Client: acknowledges every eighth event and forgets it.
    SkipsEvents,
    /// Client: any number of actions may be under way.
    FliesUnbounded,
    /// Client: does not tell of what had to arrive and did not.
    LosesActions,
    /// Client: does not look for a session that fell silent.
    NeverRecovers,
    /// Client: does not come back when it has waited.
    GivesUp,
    /// Client: says the same without an end.
    Babbles,
    /// Client: once it recovers, its timeout stands still in the past.
    StandsStill,
    /// Client: wakes up every millisecond for nothing.
    Fidgets,
}

impl Fault {
    /// All there are.
    pub const ALL: [Self; 24] = [
        Self::ActsTwice,
        Self::ForgetsGuard,
        Self::LiesOfExecuted,
        Self::TearsChunks,
        Self::AnswersMore,
        Self::KeepsDead,
        Self::LeaksSlot,
        Self::PanicsOnJunk,
        Self::TrustsStrangers,
        Self::TellsEverybody,
        Self::TurnsRound,
        Self::MixesTicks,
        Self::TakesOldTick,
        Self::KeepsCaves,
        Self::HoldsUnseen,
        Self::ForgetsQuery,
        Self::SkipsEvents,
        Self::FliesUnbounded,
        Self::LosesActions,
        Self::NeverRecovers,
        Self::GivesUp,
        Self::Babbles,
        Self::StandsStill,
        Self::Fidgets,
    ];
}

/// The fault that is switched on, if any.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    #[cfg(feature = "faults")]
    fault: Option<Fault>,
    #[cfg(feature = "faults")]
    woken_at: Instant,
}

impl Faults {
    /// This fault and no other.
    #[cfg(feature = "faults")]
    pub const fn only(fault: Fault) -> Self {
        Self { fault: Some(fault), woken_at: Instant::ZERO }
    }

    /// Notes when its owner was last woken, for [`Fault::Fidgets`].
    pub(crate) const fn woken(&mut self, now: Instant) {
        #[cfg(feature = "faults")]
        {
            self.woken_at = now;
        }
        #[cfg(not(feature = "faults"))]
        let _ = now;
    }

    /// When to wake up for nothing.
    pub(crate) fn next_fidget(self) -> Option<Instant> {
        #[cfg(feature = "faults")]
        return self.has(Fault::Fidgets).then(|| self.woken_at + Duration::from_millis(1));
        #[cfg(not(feature = "faults"))]
        None
    }

    /// Whether this fault is switched on.
    pub fn has(self, fault: Fault) -> bool {
        #[cfg(feature = "faults")]
        return self.fault == Some(fault);
        #[cfg(not(feature = "faults"))]
        {
            let _ = fault;
            false
        }
    }
}
