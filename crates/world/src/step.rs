//! The end of a tick: what the world does by itself.

use crate::content::Class;
use crate::coord::{ChunkPos, Direction, Pos};
use crate::entity::{Entity, EntityId, FIGHT_TICKS, SPEECH_TICKS};
use crate::generation::is_safe;
use crate::record::Resident;
use crate::rng::{Purpose, Roll};
use crate::world::{Scratch, World};

/// Tiles (larger of dx, dy) within which a monster notices a player it can see.
pub const MONSTER_SIGHT: i32 = 7;

/// Tiles that a monster strays from its home while it has nothing to do.
const STRAY: i32 = 6;

/// A monster does not come back while a player is within this many tiles of its home: at the edge of the
/// viewport (protocol, R15) it would appear out of nothing.
const RESPAWN_CLEARANCE: i32 = 15;

impl World {
    /// Ends the tick: monsters act, wounds close, the killed come back, speech fades, changed chunks get their
    /// next version. Only what is near a player costs anything.
    pub fn step(&mut self) {
        let Scratch { mut monsters, mut players, mut mourning } = std::mem::take(&mut self.scratch);
        self.list_monsters(&mut monsters);
        for &monster in &monsters {
            self.act(monster);
        }
        players.clear();
        players.extend(&self.players);
        for &id in players.iter().chain(&monsters) {
            self.heal(id);
        }
        mourning.clear();
        mourning.extend(self.entities.mourning().filter(|&chunk| self.terrain.is_active(chunk)));
        for &chunk in &mourning {
            self.respawn(chunk);
        }
        self.terrain.raise_versions();
        self.tick += 1;
        for &id in &players {
            self.fade_speech(id);
            self.refresh_status(id);
        }
        self.page_out();
        self.scratch = Scratch { monsters, players, mourning };
    }

    /// The monsters near players, ascending by id.
    fn list_monsters(&self, out: &mut Vec<EntityId>) {
        let active = self.terrain.active();
        out.clear();
        out.extend(active.flat_map(|chunk| self.entities.monsters_in(chunk)).map(|spot| spot.id));
        out.sort_unstable();
    }

    /// Strikes who is in reach, goes after who is in sight, or wanders.
    fn act(&mut self, id: EntityId) {
        let Some(entity) = self.entities.get(id) else {
            return;
        };
        let ready = entity.monster().is_some_and(|monster| monster.next_act_tick <= self.tick);
        let Some(def) = self.content.kind(entity.kind).filter(|_| ready) else {
            return;
        };
        let (here, speed, attack_ticks) = (entity.pos, def.speed, def.attack_ticks);
        let wait = match self.prey(entity) {
            Some((prey, at)) if here.is_adjacent_or_same(at) => {
                self.strike(id, prey);
                attack_ticks
            }
            Some((_, at)) => {
                self.approach(id, here, at);
                speed
            }
            None => {
                self.wander(id);
                speed
            }
        };
        let next = self.tick + u64::from(wait);
        if let Some(mut entity) = self.entities.get_mut(id)
            && let Some(monster) = entity.monster_mut()
        {
            monster.next_act_tick = next;
        }
    }

    /// Whom a monster is after: who struck it lately, wherever that one stands, or else the nearest player in
    /// sight outside the safe zone.
    fn prey(&self, monster: &Entity) -> Option<(EntityId, Pos)> {
        let angry_at = monster.monster().and_then(|own| own.angry_at);
        let foe = angry_at
            .filter(|_| monster.is_fighting(self.tick))
            .and_then(|id| self.entities.get(id));
        if let Some(foe) = foe
            && monster.pos.distance(foe.pos) <= MONSTER_SIGHT
        {
            return Some((foe.id, foe.pos));
        }
        if !monster.is_hostile() {
            return None;
        }
        let here = monster.pos;
        let (north_west, south_east) = (
            here.offset(-MONSTER_SIGHT, -MONSTER_SIGHT),
            here.offset(MONSTER_SIGHT, MONSTER_SIGHT),
        );
        let near = self.entities.within(north_west, south_east);
        let players = near.filter(|spot| spot.class == Class::Player && !is_safe(spot.pos));
        let mut nearest = None;
        for spot in players {
            let rank = (here.distance(spot.pos), spot.id, spot.pos);
            // Whether it is seen takes the longest to find out.
            if nearest.is_none_or(|nearest| rank < nearest) && self.sees(here, spot.pos) {
                nearest = Some(rank);
            }
        }
        nearest.map(|(_, id, pos)| (id, pos))
    }

    /// Whether nothing opaque stands on the straight line between two tiles.
    fn sees(&self, from: Pos, to: Pos) -> bool {
        let (dx, dy) = (to.x - from.x, to.y - from.y);
        let steps = dx.abs().max(dy.abs());
        // The coordinate at step i of the line, rounded to the nearest tile.
        let along = |d: i32, i: i32| (2 * d * i + steps).div_euclid(2 * steps);
        (1..steps).all(|i| {
            !self.content.is_opaque(self.terrain.tile(from.offset(along(dx, i), along(dy, i))))
        })
    }

    fn approach(&mut self, id: EntityId, here: Pos, goal: Pos) {
        let [first, second] = towards(here, goal);
        let roll = self.roll(Purpose::Wander, id);
        let ways = first.into_iter().chain(second).chain([any_direction(roll)]);
        let way = ways.map(|direction| here.step(direction)).find(|&to| self.may_enter(to));
        if let Some(to) = way {
            self.relocate(id, to);
        }
    }

    fn wander(&mut self, id: EntityId) {
        let Some(entity) = self.entities.get(id) else {
            return;
        };
        let Some(home) = entity.monster().map(|monster| monster.home) else {
            return;
        };
        let here = entity.pos;
        let mut roll = self.roll(Purpose::Wander, id);
        if roll.percent(50) {
            return;
        }
        let homewards = if here.distance(home) > STRAY { towards(here, home)[0] } else { None };
        let to = here.step(homewards.unwrap_or_else(|| any_direction(roll)));
        if self.may_enter(to) {
            self.relocate(id, to);
        }
    }

    /// Monsters stay in active chunks (what lies beyond may or may not be in memory, which must not matter), out
    /// of the safe zone, and off each other's and the players' tiles.
    fn may_enter(&self, to: Pos) -> bool {
        let taken = |class| matches!(class, Class::Monster | Class::Player);
        self.terrain.is_active(to.chunk())
            && !is_safe(to)
            && self.content.is_walkable(self.terrain.tile(to))
            && !self.entities.at(to).any(|spot| taken(spot.class))
    }

    fn heal(&mut self, id: EntityId) {
        let now = self.tick;
        let Some(mut entity) = self.entities.get_mut(id) else {
            return;
        };
        if entity.hp >= entity.hp_max {
            return;
        }
        let regen = self.content.kind(entity.kind).map_or(0, |def| u64::from(def.regen));
        let quiet = now.saturating_sub(entity.last_fight.unwrap_or(0)).saturating_sub(FIGHT_TICKS);
        if regen > 0 && quiet > 0 && quiet.is_multiple_of(regen) {
            entity.hp += 1;
        }
    }

    fn respawn(&mut self, chunk: ChunkPos) {
        for at in 0..self.entities.dwellers(chunk).len() {
            let resident = self.entities.dwellers(chunk)[at].resident;
            let due = resident.dead_until.is_some_and(|until| until <= self.tick);
            if due && self.can_live(&resident, chunk) && self.is_clear(resident.home) {
                self.wake(chunk, at, resident);
            }
        }
    }

    fn wake(&mut self, chunk: ChunkPos, at: usize, resident: Resident) {
        if let Some(monster) = self.new_monster(resident.kind, resident.home) {
            self.entities.wake(chunk, at, Entity { elo: resident.elo, ..monster });
        }
    }

    fn is_clear(&self, home: Pos) -> bool {
        let reach = RESPAWN_CLEARANCE;
        let mut around =
            self.entities.within(home.offset(-reach, -reach), home.offset(reach, reach));
        !around.any(|spot| match spot.class {
            Class::Player => true,
            Class::Monster => spot.pos == home,
            _ => false,
        })
    }

    fn fade_speech(&mut self, id: EntityId) {
        let now = self.tick;
        if let Some(mut entity) = self.entities.get_mut(id)
            && entity.speech.as_ref().is_some_and(|speech| now - speech.since > SPEECH_TICKS)
        {
            entity.speech = None;
        }
    }
}

/// The directions that lead nearer, along the longer distance first.
fn towards(from: Pos, to: Pos) -> [Option<Direction>; 2] {
    let (dx, dy) = (to.x - from.x, to.y - from.y);
    let along_x = (dx != 0).then_some(if dx > 0 { Direction::East } else { Direction::West });
    let along_y = (dy != 0).then_some(if dy > 0 { Direction::South } else { Direction::North });
    if dx.abs() >= dy.abs() { [along_x, along_y] } else { [along_y, along_x] }
}

fn any_direction(mut roll: Roll) -> Direction {
    Direction::ALL[roll.below(4) as usize]
}

#[cfg(test)]
mod tests;
