//! What a player may ask of the world, and whether it had an effect.
//!
//! ```
//! use caves_world::{Command, World, WorldConfig};
//!
//! let mut world = World::new(WorldConfig::default());
//! let ada = world.spawn_player(None);
//! assert!(world.execute(ada, Command::Say("Anybody here?".to_owned())).had_effect());
//! assert!(!world.execute(ada, Command::Other).had_effect());
//! ```

use crate::content::KindId;
use crate::coord::Direction;
use crate::entity::EntityId;

/// One action of a player (protocol, section 4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// One step; into a hostile monster it is a blow.
    Move(Direction),
    /// A blow at who stands there.
    Attack(Direction),
    /// Makes floor of the tile there.
    Dig(Direction),
    /// Opens a chest, reads a sign.
    Interact(EntityId),
    /// Takes what lies on the own tile.
    PickUp,
    /// Puts items on the own tile.
    Drop {
        /// What.
        item: KindId,
        /// How many; what is not held is not dropped.
        count: u16,
    },
    /// Speaks. The text is taken as it is: whoever calls has cleaned it (protocol, R32).
    Say(String),
    /// An action that this world does not know: executed without effect.
    Other,
}

/// Whether a command changed the world or made somebody speak or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// It did.
    Effect,
    /// It did not; a notice may say why. It counts as executed all the same (protocol, R19).
    NoEffect,
}

impl Outcome {
    /// Whether there was an effect.
    pub fn had_effect(self) -> bool {
        self == Outcome::Effect
    }
}

impl From<bool> for Outcome {
    fn from(effect: bool) -> Outcome {
        if effect { Outcome::Effect } else { Outcome::NoEffect }
    }
}
