//! The world's numbers and the wire's, which know nothing of each other.

use caves_session::caves::OwnedAction;
use caves_wire::caves as wire;
use caves_world::{ChunkPos, Command, Direction, EntityId, KindId};

pub(crate) const fn direction_from_wire(direction: wire::Direction) -> Direction {
    match direction {
        wire::Direction::North => Direction::North,
        wire::Direction::East => Direction::East,
        wire::Direction::South => Direction::South,
        wire::Direction::West => Direction::West,
    }
}

pub(crate) const fn direction_to_wire(direction: Direction) -> wire::Direction {
    match direction {
        Direction::North => wire::Direction::North,
        Direction::East => wire::Direction::East,
        Direction::South => wire::Direction::South,
        Direction::West => wire::Direction::West,
    }
}

/// All chunks that a player can come near lie within i16 (R8).
pub(crate) const fn chunk_to_wire(chunk: ChunkPos) -> wire::ChunkId {
    wire::ChunkId { x: chunk.x as i16, y: chunk.y as i16 }
}

pub(crate) const fn chunk_from_wire(chunk: wire::ChunkId) -> ChunkPos {
    ChunkPos { x: chunk.x as i32, y: chunk.y as i32 }
}

pub(crate) const fn entity_to_wire(id: EntityId) -> wire::EntityId {
    wire::EntityId(id.0)
}

pub(crate) const fn entity_from_wire(id: wire::EntityId) -> EntityId {
    EntityId(id.0)
}

/// What an action asks of the world. What the world does not know yet is executed without effect.
pub(crate) fn command(action: OwnedAction) -> Command {
    match action {
        OwnedAction::Walk(direction) => Command::Move(direction_from_wire(direction)),
        OwnedAction::Attack(direction) => Command::Attack(direction_from_wire(direction)),
        OwnedAction::Dig(direction) => Command::Dig(direction_from_wire(direction)),
        OwnedAction::Interact(target) => Command::Interact(entity_from_wire(target)),
        OwnedAction::PickUp => Command::PickUp,
        OwnedAction::Drop { item, count } => Command::Drop { item: KindId(item), count },
        OwnedAction::Say(text) => Command::Say(text),
        OwnedAction::NoOp
        | OwnedAction::Place { .. }
        | OwnedAction::Use { .. }
        | OwnedAction::Equip { .. } => Command::Other,
    }
}

/// The action that asks for a command; `None` for what the protocol has no action for.
pub(crate) fn action(command: Command) -> Option<OwnedAction> {
    Some(match command {
        Command::Move(direction) => OwnedAction::Walk(direction_to_wire(direction)),
        Command::Attack(direction) => OwnedAction::Attack(direction_to_wire(direction)),
        Command::Dig(direction) => OwnedAction::Dig(direction_to_wire(direction)),
        Command::Interact(target) => OwnedAction::Interact(entity_to_wire(target)),
        Command::PickUp => OwnedAction::PickUp,
        Command::Drop { item, count } => OwnedAction::Drop { item: item.0, count },
        Command::Say(text) => OwnedAction::Say(text),
        Command::Other => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_survives_the_way_to_an_action_and_back() {
        for asked in [
            Command::Move(Direction::North),
            Command::Move(Direction::West),
            Command::Attack(Direction::East),
            Command::Dig(Direction::South),
            Command::Interact(EntityId(7)),
            Command::PickUp,
            Command::Drop { item: KindId(3), count: 4 },
            Command::Say("hello".into()),
        ] {
            assert_eq!(action(asked.clone()).map(command), Some(asked));
        }
        assert_eq!(action(Command::Other), None);
    }
}
