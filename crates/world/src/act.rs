//! What the commands of players do.

use crate::command::{Command, Outcome};
use crate::content::{Class, KindId, TileId};
use crate::coord::{Direction, Pos};
use crate::entity::{Body, EntityId};
use crate::event::{Event, Notice};
use crate::generation::is_safe;
use crate::inventory::Inventory;
use crate::rng::Purpose;
use crate::world::World;

impl World {
    /// Executes one command of a player, at once. Whoever calls sees to it that a player acts once a tick
    /// (protocol, R19). A command of anything but a player has no effect.
    pub fn execute(&mut self, actor: EntityId, command: Command) -> Outcome {
        let Some(entity) = self.entities.get(actor).filter(|entity| entity.player().is_some())
        else {
            return Outcome::NoEffect;
        };
        let here = entity.pos;
        match command {
            Command::Move(direction) => self.walk(actor, here.step(direction)),
            Command::Attack(direction) => self.attack(actor, here, direction),
            Command::Dig(direction) => self.dig(actor, here.step(direction)),
            Command::Interact(thing) => self.interact(actor, here, thing),
            Command::PickUp => self.pick_up(actor, here),
            Command::Drop { item, count } => self.drop_items(actor, here, item, count),
            Command::Say(text) => self.say(actor, text),
            Command::Other => Outcome::NoEffect,
        }
    }

    /// Monsters block, and hostile ones are attacked. Players and things are walked through.
    fn walk(&mut self, actor: EntityId, to: Pos) -> Outcome {
        let monster = self.entities.monsters_in(to.chunk()).find(|spot| spot.pos == to);
        if let Some(monster) = monster {
            if monster.is_hostile {
                self.strike(actor, monster.id);
            }
            return monster.is_hostile.into();
        }
        if !to.chunk().is_ground() || !self.content.is_walkable(self.terrain.tile(to)) {
            return Outcome::NoEffect;
        }
        self.relocate(actor, to).into()
    }

    fn attack(&mut self, actor: EntityId, here: Pos, direction: Direction) -> Outcome {
        let there = here.step(direction);
        let standing = |class| self.entities.at(there).find(|spot| spot.class == class);
        if let Some(monster) = standing(Class::Monster) {
            self.strike(actor, monster.id);
            return Outcome::Effect;
        }
        let Some(player) = standing(Class::Player) else {
            return Outcome::NoEffect;
        };
        if is_safe(here) || is_safe(there) {
            self.notice(actor, Notice::SafeZone);
            return Outcome::NoEffect;
        }
        self.strike(actor, player.id);
        Outcome::Effect
    }

    fn dig(&mut self, actor: EntityId, target: Pos) -> Outcome {
        let tile = self.terrain.tile(target);
        let Some(def) = self.content.tile(tile) else {
            return Outcome::NoEffect;
        };
        if def.walkable {
            return Outcome::NoEffect;
        }
        if !def.diggable || !target.chunk().is_ground() {
            self.notice(actor, Notice::CannotDig { tile });
            return Outcome::NoEffect;
        }
        let (drop, percent) = (def.drop, def.drop_percent);
        if self.roll(Purpose::Toughness, actor).below(def.toughness.into()) > 0 {
            self.notice(actor, Notice::Withstood { tile });
            return Outcome::NoEffect;
        }
        // A chunk with 64 other kinds of tiles has no room for floor (protocol, R27).
        if self.terrain.set(target, TileId::FLOOR).is_err() {
            self.notice(actor, Notice::CannotDig { tile });
            return Outcome::NoEffect;
        }
        if let Some(item) = drop
            && self.roll(Purpose::DigDrop, actor).percent(percent.into())
        {
            self.lay_down(item, 1, target);
        }
        Outcome::Effect
    }

    /// A thing out of sight is answered by nothing at all: ids tell nothing (protocol, R23).
    fn interact(&mut self, actor: EntityId, here: Pos, thing: EntityId) -> Outcome {
        if !self.visible(actor, thing) {
            return Outcome::NoEffect;
        }
        let Some(entity) = self.entities.get(thing) else {
            return Outcome::NoEffect;
        };
        if !entity.is_interactable() {
            return Outcome::NoEffect;
        }
        if !here.is_adjacent_or_same(entity.pos) {
            self.notice(actor, Notice::TooFar);
            return Outcome::NoEffect;
        }
        match &entity.body {
            Body::Sign { text } => {
                let text = text.clone();
                self.notice(actor, Notice::SignText(text));
                Outcome::Effect
            }
            Body::Chest { inventory } if inventory.is_empty() => {
                self.notice(actor, Notice::ChestEmpty);
                Outcome::NoEffect
            }
            Body::Chest { inventory } => {
                let mut chest = inventory.clone();
                let outcome = self.empty_chest(actor, &mut chest);
                if outcome.had_effect()
                    && let Some(mut entity) = self.entities.get_mut(thing)
                {
                    entity.body = Body::Chest { inventory: chest };
                }
                outcome
            }
            _ => Outcome::NoEffect,
        }
    }

    fn empty_chest(&mut self, actor: EntityId, chest: &mut Inventory) -> Outcome {
        let Some(inventory) = self.carried(actor) else {
            return Outcome::NoEffect;
        };
        let items = chest.move_into(inventory);
        if items.is_empty() {
            self.notice(actor, Notice::InventoryFull);
            return Outcome::NoEffect;
        }
        self.notice(actor, Notice::TookFromChest { items, left_behind: !chest.is_empty() });
        Outcome::Effect
    }

    fn pick_up(&mut self, actor: EntityId, here: Pos) -> Outcome {
        let lying = self.entities.at(here).filter(|spot| spot.class == Class::Item);
        let stacks: Vec<EntityId> = lying.map(|spot| spot.id).collect();
        if stacks.is_empty() {
            self.notice(actor, Notice::NothingToPickUp);
        }
        let (mut taken, mut left) = (false, false);
        for stack in stacks {
            let (took, rest) = self.take_stack(actor, stack);
            taken |= took > 0;
            left |= rest > 0;
        }
        if left {
            self.notice(actor, Notice::InventoryFull);
        }
        taken.into()
    }

    /// How many were taken and how many were left.
    fn take_stack(&mut self, actor: EntityId, stack: EntityId) -> (u16, u16) {
        let Some((item, count)) = self.entities.get(stack).and_then(|entity| match entity.body {
            Body::Item { count } => Some((entity.kind, count)),
            _ => None,
        }) else {
            return (0, 0);
        };
        let left = self.carried(actor).map_or(count, |inventory| inventory.add(item, count));
        if left == 0 {
            self.entities.remove(stack);
        } else if left < count
            && let Some(mut entity) = self.entities.get_mut(stack)
        {
            entity.body = Body::Item { count: left };
        }
        if left < count {
            self.notice(actor, Notice::PickedUp { item, count: count - left });
        }
        (count - left, left)
    }

    fn drop_items(&mut self, actor: EntityId, here: Pos, item: KindId, count: u16) -> Outcome {
        let Some(inventory) = self.carried(actor) else {
            return Outcome::NoEffect;
        };
        let count = count.min(inventory.count(item));
        if count == 0 {
            self.notice(actor, Notice::NothingToDrop { item });
            return Outcome::NoEffect;
        }
        if !self.lay_down(item, count, here) {
            return Outcome::NoEffect;
        }
        if let Some(inventory) = self.carried(actor) {
            inventory.remove(item, count);
        }
        self.notice(actor, Notice::Dropped { item, count });
        Outcome::Effect
    }

    fn say(&mut self, actor: EntityId, text: String) -> Outcome {
        let now = self.tick;
        if text.is_empty() {
            return Outcome::NoEffect;
        }
        let Some(mut entity) = self.entities.get_mut(actor) else {
            return Outcome::NoEffect;
        };
        entity.say(&text, now);
        drop(entity);
        self.tell(Event::Said { by: actor, text });
        Outcome::Effect
    }

    fn carried(&mut self, actor: EntityId) -> Option<&mut Inventory> {
        Some(&mut self.entities.player_mut(actor)?.inventory)
    }
}

#[cfg(test)]
mod tests;
