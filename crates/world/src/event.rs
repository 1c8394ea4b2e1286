//! What happened, for whoever turns it into text.
//!
//! ```
//! use caves_world::{Command, Event, Notice, World, WorldConfig};
//!
//! let mut world = World::new(WorldConfig::default());
//! let ada = world.spawn_player(None);
//! let _ = world.execute(ada, Command::PickUp);
//! let events: Vec<Event> = world.drain_events().collect();
//! assert_eq!(events, [Event::Notice { to: ada, notice: Notice::NothingToPickUp }]);
//! ```

use crate::content::{KindId, TileId};
use crate::coord::Pos;
use crate::entity::EntityId;

/// Something that happened since events were last taken, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Somebody spoke.
    Said {
        /// Who.
        by: EntityId,
        /// What, uncut.
        text: String,
    },
    /// A blow was struck.
    Struck {
        /// By whom.
        attacker: EntityId,
        /// Whom it hit.
        target: EntityId,
        /// Hit points taken.
        damage: u16,
        /// Hit points left.
        remaining: u16,
    },
    /// A fight was decided. A killed monster is gone already; a killed player stands at the spawn.
    Killed {
        /// Who won.
        killer: EntityId,
        /// Who lost.
        victim: EntityId,
        /// The victim's kind.
        kind: KindId,
        /// The victim's name, where it has one.
        name: Option<String>,
        /// Where the victim fell.
        at: Pos,
        /// What the killer gained, and the victim lost, in rating.
        elo: i32,
    },
    /// A killed player came back at the spawn, under the same id (protocol, R33).
    Respawned {
        /// Who.
        player: EntityId,
    },
    /// Something that one player alone is told.
    Notice {
        /// Whom.
        to: EntityId,
        /// What.
        notice: Notice,
    },
}

/// What one player alone is told, about its own command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A chest was opened.
    TookFromChest {
        /// What moved into the inventory, ascending by kind.
        items: Vec<(KindId, u16)>,
        /// Whether something did not fit and stayed.
        left_behind: bool,
    },
    /// A chest was opened that holds nothing.
    ChestEmpty,
    /// The text of a sign.
    SignText(String),
    /// Taken from the floor.
    PickedUp {
        /// What.
        item: KindId,
        /// How many.
        count: u16,
    },
    /// Nothing lies here.
    NothingToPickUp,
    /// Something did not fit into the inventory.
    InventoryFull,
    /// Put on the floor.
    Dropped {
        /// What.
        item: KindId,
        /// How many.
        count: u16,
    },
    /// The inventory has none of this.
    NothingToDrop {
        /// Of what.
        item: KindId,
    },
    /// This tile cannot be dug away.
    CannotDig {
        /// The tile.
        tile: TileId,
    },
    /// A dig that the tile withstood this time.
    Withstood {
        /// The tile.
        tile: TileId,
    },
    /// The thing is in sight but not in reach.
    TooFar,
    /// Players are not attacked from or in the safe zone around the spawn.
    SafeZone,
}
