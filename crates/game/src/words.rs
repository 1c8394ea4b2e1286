//! What happened, in words.

use caves_world::{Content, Entity, EntityId, KindId, Notice, TileId, World};

/// "Ada", "the cave rat", "somebody".
pub(crate) fn the(world: &World, id: EntityId) -> String {
    world.entity(id).map_or_else(|| "somebody".into(), |entity| the_entity(world.content(), entity))
}

fn the_entity(content: &Content, entity: &Entity) -> String {
    entity.name().map_or_else(|| format!("the {}", kind(content, entity.kind)), str::to_owned)
}

/// What is called by a name or by its kind.
pub(crate) fn named(content: &Content, name: Option<&str>, of: KindId) -> String {
    name.map_or_else(|| format!("the {}", kind(content, of)), str::to_owned)
}

pub(crate) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn kind(content: &Content, id: KindId) -> String {
    content.kind(id).map_or_else(|| format!("thing #{}", id.0), |def| def.title.clone())
}

fn tile(content: &Content, id: TileId) -> String {
    content.tile(id).map_or_else(|| format!("tile #{}", id.0), |def| def.title.clone())
}

fn stack(content: &Content, item: KindId, count: u16) -> String {
    let title = kind(content, item);
    if count == 1 { title } else { format!("{count} x {title}") }
}

/// What a player is told about its own command.
pub(crate) fn notice(content: &Content, notice: &Notice) -> String {
    match notice {
        Notice::TookFromChest { items, left_behind } => {
            let list: Vec<_> =
                items.iter().map(|(item, count)| stack(content, *item, *count)).collect();
            let rest = if *left_behind { " The rest does not fit." } else { "" };
            format!("You take from the chest: {}.{rest}", list.join(", "))
        }
        Notice::ChestEmpty => "The chest is empty.".into(),
        Notice::SignText(text) => format!("The sign reads: {text}"),
        Notice::PickedUp { item, count } => {
            format!("You pick up {}.", stack(content, *item, *count))
        }
        Notice::NothingToPickUp => "There is nothing here to pick up.".into(),
        Notice::InventoryFull => "You cannot carry any more of that.".into(),
        Notice::Dropped { item, count } => format!("You drop {}.", stack(content, *item, *count)),
        Notice::NothingToDrop { item } => format!("You have no {}.", kind(content, *item)),
        Notice::CannotDig { tile: of } => format!("You cannot dig {}.", tile(content, *of)),
        Notice::Withstood { tile: of } => {
            format!("{} gives a little.", capital(&format!("the {}", tile(content, *of))))
        }
        Notice::TooFar => "That is too far away.".into(),
        Notice::SafeZone => "Nobody fights here, this close to the entrance.".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_and_unknown_ids_are_readable() {
        let content = Content::core();
        let stone = content.kind_id("core:stone").unwrap();
        let text = notice(&content, &Notice::PickedUp { item: stone, count: 3 });
        assert_eq!(text, "You pick up 3 x stone.");
        let text = notice(&content, &Notice::Dropped { item: KindId(60_000), count: 1 });
        assert_eq!(text, "You drop thing #60000.");
        assert_eq!(capital("über"), "Über");
    }
}
