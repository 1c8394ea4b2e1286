//! Blows, deaths and ratings.

use crate::content::KindId;
use crate::coord::Pos;
use crate::elo;
use crate::entity::EntityId;
use crate::event::Event;
use crate::generation::SPAWN;
use crate::rng::Purpose;
use crate::world::World;

/// Ticks from a monster's death until it may come back: a minute at 10 Hz.
pub const RESPAWN_TICKS: u64 = 600;

/// Ticks after the first blow of a fight within which the monster turns to fight back.
const SURPRISE_TICKS: u64 = 2;

impl World {
    /// One blow, whoever strikes whom. Whether it is allowed has been decided.
    pub(crate) fn strike(&mut self, attacker: EntityId, target: EntityId) {
        let now = self.tick;
        let Some(damage) = self.damage(attacker) else {
            return;
        };
        let Some(mut struck) = self.entities.get_mut(target) else {
            return;
        };
        let surprised = !struck.is_fighting(now);
        struck.hp = struck.hp.saturating_sub(damage);
        struck.last_fight = Some(now);
        let remaining = struck.hp;
        if let Some(monster) = struck.monster_mut() {
            monster.angry_at = Some(attacker);
            if surprised {
                monster.next_act_tick = monster.next_act_tick.min(now + SURPRISE_TICKS);
            }
        }
        drop(struck);
        if let Some(mut striker) = self.entities.get_mut(attacker) {
            striker.last_fight = Some(now);
        }
        self.tell(Event::Struck { attacker, target, damage, remaining });
        if remaining == 0 {
            self.decide(attacker, target);
        }
    }

    fn damage(&self, attacker: EntityId) -> Option<u16> {
        let def = self.content.kind(self.entities.get(attacker)?.kind)?;
        let spread = u32::from(def.damage_max) - u32::from(def.damage_min) + 1;
        let more = self.roll(Purpose::Blow, attacker).below(spread);
        Some(def.damage_min.saturating_add(more as u16))
    }

    /// A decided fight: ratings move, and the victim dies.
    fn decide(&mut self, killer: EntityId, victim: EntityId) {
        let Some(dead) = self.entities.get(victim) else {
            return;
        };
        let (kind, at, name) = (dead.kind, dead.pos, dead.name().map(str::to_owned));
        let elo = self.settle(killer, victim);
        self.tell(Event::Killed { killer, victim, kind, name, at, elo });
        if self.players.contains(&victim) {
            self.revive(victim);
        } else {
            self.bury(victim, kind, at);
        }
    }

    fn settle(&mut self, killer: EntityId, victim: EntityId) -> i32 {
        let rating = |id| self.entities.get(id).map(|entity| entity.elo);
        let (Some(mut won), Some(mut lost)) = (rating(killer), rating(victim)) else {
            return 0;
        };
        let moved = elo::settle(&mut won, &mut lost);
        for (id, elo) in [(killer, won), (victim, lost)] {
            if let Some(mut entity) = self.entities.get_mut(id) {
                entity.elo = elo;
            }
        }
        moved.into()
    }

    /// A dead player is at the spawn in the same tick, under the same id, with what it carried (protocol, R33).
    fn revive(&mut self, player: EntityId) {
        self.relocate(player, SPAWN);
        if let Some(mut entity) = self.entities.get_mut(player) {
            entity.hp = entity.hp_max;
            entity.last_fight = None;
        }
        self.tell(Event::Respawned { player });
    }

    fn bury(&mut self, id: EntityId, kind: KindId, at: Pos) {
        let elo = self.content.kind(kind).map_or(0, |def| def.elo);
        // It comes back as a new one.
        if self.entities.bury(id, elo, self.tick + RESPAWN_TICKS).is_none() {
            return;
        }
        let mut roll = self.roll(Purpose::Loot, id);
        let loot = self.content.kind(kind).map_or(&[][..], |def| &def.loot);
        let left: Vec<KindId> = loot
            .iter()
            .filter(|loot| roll.percent(loot.percent.into()))
            .map(|loot| loot.item)
            .collect();
        for item in left {
            self.lay_down(item, 1, at);
        }
    }
}

#[cfg(test)]
mod tests;
