//! A recorded run gives the same world again, tick by tick, and the same as when it was recorded.

use caves_world::{Command, Direction, EntityId, Event, KindId, Notice, World, WorldConfig};

const TICKS: u64 = 3000;

/// The state after the run. A change of the rules, of the content or of the generator changes it: see that the
/// change is meant, raise `GENERATOR_VERSION` when it concerns what is generated, and take the new number from
/// the failure.
const RECORDED: u64 = 0x8f5f_e052_9d3f_8ef8;

/// A script of its own, so that the run does not depend on the dice of the world: xorshift64.
struct Script(u64);

impl Script {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) % below
    }

    fn command(&mut self, heading: Direction, seen: &[EntityId]) -> Command {
        match self.next(20) {
            0..=11 => Command::Move(heading),
            12..=13 => Command::Dig(heading),
            14 => Command::Attack(heading),
            15 => Command::Interact(seen[self.next(seen.len() as u64) as usize]),
            16 => Command::PickUp,
            17 => Command::Drop { item: KindId(self.next(14) as u16), count: self.next(3) as u16 },
            18 => Command::Say(format!("word {}", self.next(1000))),
            _ => Command::Other,
        }
    }

    /// Walks on along one direction, and turns where that goes on no longer.
    fn heading(&mut self, heading: Direction, stopped: bool) -> Direction {
        let turn = if stopped { self.next(3) == 0 } else { self.next(60) == 0 };
        if turn { Direction::ALL[self.next(4) as usize] } else { heading }
    }
}

/// What the run has to reach, or it would not show much.
#[derive(Debug, Default)]
struct Reached {
    struck: u32,
    killed: u32,
    dropped: u32,
    furthest: i32,
}

fn run() -> (Reached, Vec<u64>) {
    let mut world = World::new(WorldConfig { seed: 2024, idle_chunks: 16 });
    let mut script = Script(0x9E37_79B9);
    let mut players: Vec<(EntityId, Direction)> = (0..6)
        .map(|n| (world.spawn_player((n % 2 == 0).then_some("Ada")), Direction::ALL[n % 4]))
        .collect();
    let (mut hashes, mut seen, mut reached) = (Vec::new(), Vec::new(), Reached::default());
    for tick in 0..TICKS {
        if tick % 200 == 199 {
            let (gone, heading) = players.remove(0);
            assert!(world.remove_player(gone));
            players.push((world.spawn_player(None), heading));
        }
        for (player, heading) in &mut players {
            world.in_view(*player, &mut seen);
            let command = script.command(*heading, &seen);
            let stopped = !world.execute(*player, command).had_effect();
            *heading = script.heading(*heading, stopped);
            let pos = world.entity(*player).unwrap().pos;
            reached.furthest = reached.furthest.max(pos.distance(caves_world::SPAWN));
        }
        world.step();
        for event in world.drain_events() {
            match event {
                Event::Struck { .. } => reached.struck += 1,
                Event::Killed { .. } => reached.killed += 1,
                Event::Notice { notice: Notice::Dropped { .. }, .. } => reached.dropped += 1,
                _ => {}
            }
        }
        hashes.push(world.hash());
    }
    (reached, hashes)
}

#[test]
fn the_same_run_gives_the_same_world() {
    let (reached, first) = run();
    let (_, second) = run();
    assert_eq!(first.len(), TICKS as usize);
    for (tick, (a, b)) in first.iter().zip(&second).enumerate() {
        assert_eq!(a, b, "the runs part in tick {tick}");
    }
    assert!(reached.struck > 20 && reached.killed > 2 && reached.dropped > 0, "{reached:?}");
    assert!(reached.furthest > 48, "{reached:?}");
    let last = first.last().copied().unwrap_or_default();
    assert_eq!(last, RECORDED, "the rules changed: {last:#018x}");
}
