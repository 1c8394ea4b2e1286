//! `kill -9` at random moments, under load: the store opens, what was reported saved is there, and
//! nothing is in two places.
//!
//! A hundred kills; `CAVES_KILLS=1000 cargo test --release -p caves-server --test kill` for more.

#![cfg(unix)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use caves_netsim::SplitMix64;
use caves_wire::caves::Token;
use caves_world::{
    ChunkPos, Command, Content, Direction, EntityId, Pos, SpawnBody, TileId, generate, populate,
};
use serde_json::Value;

use common::visitor::Visitor;
use common::{PATIENCE, ServerProcess, TempDir};

/// Servers that are killed side by side.
const SITES: u64 = 4;
/// Registered players of each; the last one stands still while a save is reported.
const HANDS: usize = 5;
const STATUE: usize = HANDS - 1;
/// Of them, those that dig.
const DIGGERS: usize = 2;
/// Torches that each of them begins with.
const TORCHES: u64 = 20;

#[test]
fn nothing_that_was_reported_saved_is_lost_and_nothing_is_doubled() {
    let kills: u64 = std::env::var("CAVES_KILLS").map_or(100, |n| n.parse().expect("a number"));
    let threads: Vec<_> = (0..SITES)
        .map(|site| std::thread::spawn(move || Caves::new(site).run(kills / SITES)))
        .collect();
    let mut told = Told::default();
    for thread in threads {
        let site = thread.join().expect("its panic says why");
        told.reports += site.reports;
        told.dug += site.dug;
        told.moved += site.moved;
    }
    // Otherwise little was shown.
    assert!(told.reports >= kills / 5, "{told:?}");
    assert!(told.dug > kills / 10 && told.moved > kills / 10, "{told:?}");
}

/// What the kills of a site had to stand up to.
#[derive(Debug, Default)]
struct Told {
    /// Saves that were reported.
    reports: u64,
    /// Tiles that were dug and reported saved.
    dug: u64,
    /// Times that torches had changed hands since the last kill.
    moved: u64,
}

/// One world, and the servers that are killed in it.
struct Caves {
    dir: TempDir,
    seed: u64,
    random: SplitMix64,
    content: Content,
    /// Tiles that were reported saved as floor. Nothing fills them again.
    dug: BTreeSet<(i32, i32)>,
    /// Where the statue stood and what it carried, if nothing happened to it since that was saved.
    statue: Option<(Pos, BTreeMap<String, u64>)>,
    carried: Vec<u64>,
    tick: u64,
    told: Told,
}

impl Caves {
    fn new(seed: u64) -> Self {
        let dir = TempDir::new();
        let mut config = String::from(
            "[server]\nlisten = [\"127.0.0.1:0\"]\nopen = true\n[limits]\nsessions_per_address = 100\n",
        );
        for hand in 0..HANDS {
            let token = token(hand).0;
            config += &format!(
                "[[client]]\nclient_type = 7\nname = \"Hand {hand}\"\ntoken = \"{token:#x}\"\n"
            );
        }
        dir.file("config.toml", &config);
        let mut caves = Self {
            seed: 0,
            dir,
            random: SplitMix64::new(seed),
            content: Content::core(),
            dug: BTreeSet::new(),
            statue: None,
            carried: vec![TORCHES; HANDS],
            tick: 0,
            told: Told::default(),
        };
        caves.begin();
        caves
    }

    /// A world in which everybody carries torches.
    fn begin(&mut self) {
        let mut first = self.start();
        first.terminate();
        drop(first);
        let fresh = self.export().expect("a world");
        let head: Value =
            serde_json::from_str(fresh.lines().next().expect("a line")).expect("JSON");
        self.seed = head["seed"].as_u64().expect("a seed");
        std::fs::remove_file(self.dir.path().join("caves.redb")).expect("it is there");
        let mut lines: Vec<&str> = fresh.lines().collect();
        let players: Vec<String> = (0..HANDS)
            .map(|hand| {
                format!(
                    "{{\"player\":{{\"name\":\"Hand {hand}\",\"x\":16,\"y\":16,\"hp\":20,\"elo\":1000,\
                     \"inventory\":[[\"core:torch\",{TORCHES}]]}}}}"
                )
            })
            .collect();
        // Head and content, then players.
        lines.splice(2..2, players.iter().map(String::as_str));
        self.dir.file("begin.jsonl", &(lines.join("\n") + "\n"));
        let output = self.dir.run(&["import", "begin.jsonl"]);
        assert!(output.status.success(), "{output:?}");
    }

    fn start(&self) -> ServerProcess {
        ServerProcess::start(self.dir.clone(), self.dir.program(), 1)
    }

    fn run(mut self, kills: u64) -> Told {
        for _ in 0..kills {
            if self.random.below(2) == 0 {
                self.die_some_time();
            } else {
                self.die_after_a_report();
            }
            self.check();
        }
        self.told
    }

    /// Killed at any moment: while it starts, opens its store, plays, or saves.
    fn die_some_time(&mut self) {
        let until = Instant::now() + Duration::from_millis(self.random.below(2500));
        self.statue = None;
        let mut server = self.start();
        let mut hands = hands(&server);
        while Instant::now() < until {
            self.turn(&mut hands, true);
        }
        server.kill();
    }

    /// Killed some time after a save was reported.
    fn die_after_a_report(&mut self) {
        let mut server = self.start();
        let mut hands = hands(&server);
        let deadline = Instant::now() + PATIENCE;
        while hands.iter().any(|hand| hand.client.misses_chunks() || is_out(hand)) {
            assert!(Instant::now() < deadline, "not in the caves: {}", server.stderr_so_far());
            self.turn(&mut hands, false);
        }
        self.play(&mut hands, 300, 900, true);
        // The statue comes to rest, and asks what it carries.
        self.play(&mut hands, 400, 401, false);
        let statue = &mut hands[STATUE];
        let (me, now) = (statue.client.mirror().me().expect("in the caves").id, statue.now());
        statue.client.look(now, me).expect("nothing was asked before");
        let known = |hand: &Visitor| hand.client.mirror().details(me).cloned();
        let deadline = Instant::now() + PATIENCE;
        while known(&hands[STATUE]).is_none() {
            assert!(Instant::now() < deadline, "no details");
            self.turn(&mut hands, false);
        }
        let dug = self.dug_tiles(&hands);
        let statue = &hands[STATUE];
        let pos = statue.client.mirror().me().expect("in the caves").pos;
        let carries = known(statue).and_then(|details| details.inventory).unwrap_or_default();
        let mut carried = BTreeMap::new();
        for (kind, count) in carries {
            let name = &self.content.kind(kind).expect("known").name;
            carried.insert(name.clone(), u64::from(count));
        }

        self.save(&mut hands);
        self.told.reports += 1;
        self.told.dug += dug.difference(&self.dug).count() as u64;
        self.dug.extend(dug);
        self.statue = Some((pos, carried));
        self.play(&mut hands, 0, 900, false);
        server.kill();
    }

    /// Says what it sees dug: floor where the seed has none.
    fn dug_tiles(&self, hands: &[Visitor]) -> BTreeSet<(i32, i32)> {
        let mut dug = BTreeSet::new();
        for hand in hands {
            let mirror = hand.client.mirror();
            let Some(me) = mirror.me() else { continue };
            for pos in me.pos.chunk().around() {
                let Some(tiles) = mirror.chunk(pos) else { continue };
                let new = generate(self.seed, pos, &self.content);
                for (index, tile) in tiles.iter().enumerate() {
                    if *tile == TileId::FLOOR.0 && !self.content.is_walkable(new.tile(index)) {
                        let at = pos.tile(index);
                        dug.insert((at.x, at.y));
                    }
                }
            }
        }
        dug
    }

    /// Asks for a save over the control socket, and plays on until it is reported.
    fn save(&mut self, hands: &mut [Visitor]) {
        let path = self.dir.path().join("caves.sock");
        let mut socket = UnixStream::connect(path).expect("the control socket");
        socket.write_all(b"{\"v\":1,\"command\":\"save\"}\n").expect("it is read");
        let answer = std::thread::spawn(move || {
            let mut line = String::new();
            BufReader::new(socket).read_line(&mut line).expect("an answer");
            line
        });
        let deadline = Instant::now() + PATIENCE;
        while !answer.is_finished() {
            assert!(Instant::now() < deadline, "no answer to save");
            self.turn(hands, false);
        }
        let line = answer.join().expect("no panic");
        let answer: Value = serde_json::from_str(&line).expect("one JSON object");
        assert_eq!(answer["ok"], true, "{line}");
    }

    fn play(&mut self, hands: &mut [Visitor], least: u64, most: u64, all: bool) {
        let length = least + self.random.below(most - least);
        let until = Instant::now() + Duration::from_millis(length);
        while Instant::now() < until {
            self.turn(hands, all);
        }
    }

    /// Everybody who is in the caves does something; the statue only if `all` do.
    fn turn(&mut self, hands: &mut [Visitor], all: bool) {
        let torch = self.content.kind_id("core:torch").expect("there are torches");
        for (place, hand) in hands.iter_mut().enumerate() {
            hand.step();
            let idle = hand.client.session().queued().next().is_none();
            if !idle
                || is_out(hand)
                || place == STATUE && !all
                || place >= DIGGERS && self.random.below(4) > 0
            {
                continue;
            }
            // Two of them dig their way out; the others stay about, and give each other torches.
            let out = Direction::ALL[(self.told.reports as usize + place) % 4];
            let any = Direction::ALL[self.random.below(4) as usize];
            let command = match self.random.below(8) {
                0..=4 if place < DIGGERS => Command::Dig(out),
                5 | 6 if place < DIGGERS => Command::Move(out),
                0 | 1 => Command::Drop { item: torch, count: 1 + self.random.below(4) as u16 },
                2 | 3 => Command::PickUp,
                _ => Command::Move(any),
            };
            // What finds no room is not done.
            let _ = hand.client.act(command);
        }
    }

    fn export(&self) -> Option<String> {
        let output = self.dir.run(&["export", "-"]);
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        text.ends_with("{\"end\":{}}\n").then_some(text)
    }

    /// Reads the store as it was left behind.
    fn check(&mut self) {
        let export = self.export().expect("a whole store");
        let lines: Vec<Value> =
            export.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let tick = lines[0]["tick"].as_u64().expect("a tick");
        assert!(tick >= self.tick, "the world went back from tick {} to {tick}", self.tick);
        self.tick = tick;
        self.check_statue(&lines);
        self.check_dug(&lines);
        self.check_things(&lines);
    }

    fn check_statue(&self, lines: &[Value]) {
        let Some((pos, carried)) = &self.statue else { return };
        let player = players(lines).find(|player| player["name"] == format!("Hand {STATUE}"));
        let player = player.expect("a player who was saved");
        let (x, y) = (player["x"].as_i64(), player["y"].as_i64());
        assert_eq!((x, y), (Some(pos.x.into()), Some(pos.y.into())));
        let kept: BTreeMap<String, u64> = stacks(&player["inventory"]).collect();
        assert_eq!(&kept, carried);
    }

    fn check_dug(&self, lines: &[Value]) {
        let chunks: BTreeMap<(i64, i64), &Value> =
            chunks(lines).map(|chunk| (place_of(chunk), &chunk["edited"])).collect();
        for &(x, y) in &self.dug {
            let chunk = (i64::from(x.div_euclid(32)), i64::from(y.div_euclid(32)));
            let edited = chunks.get(&chunk).unwrap_or_else(|| panic!("no chunk {chunk:?}"));
            let row = edited["rows"][y.rem_euclid(32) as usize].as_str().expect("a row");
            let tile = row.chars().nth(x.rem_euclid(32) as usize).expect("a tile").to_string();
            let palette = edited["palette"].as_array().expect("a palette");
            let name = palette.iter().find(|entry| entry[0] == tile).map(|entry| &entry[1]);
            assert_eq!(name, Some(&Value::from("core:floor")), "({x}, {y}) was dug");
        }
    }

    /// Every id once, and every torch that was ever made.
    fn check_things(&mut self, lines: &[Value]) {
        let last = lines[0]["last_id"].as_u64().expect("an id");
        let (mut ids, mut torches, mut made) = (BTreeSet::new(), 0, HANDS as u64 * TORCHES);
        assert_eq!(lines[0]["seed"].as_u64(), Some(self.seed));
        for chunk in chunks(lines) {
            let (x, y) = place_of(chunk);
            made += self.torches_of(ChunkPos { x: x as i32, y: y as i32 });
            for thing in chunk["things"].as_array().expect("things") {
                let id = thing["id"].as_u64().expect("an id");
                assert!(ids.insert(id) && id <= last, "{id} of {last}: {thing}");
                if thing["kind"] == "core:torch" {
                    torches += thing["item"].as_u64().expect("a count");
                }
                torches += torches_in(&thing["chest"]);
            }
        }
        let carried: Vec<u64> =
            players(lines).map(|player| torches_in(&player["inventory"])).collect();
        assert_eq!(torches + carried.iter().sum::<u64>(), made, "{carried:?} are carried");
        self.told.moved += u64::from(carried != self.carried);
        self.carried = carried;
    }

    /// How many a chunk begins with.
    fn torches_of(&self, pos: ChunkPos) -> u64 {
        let torch = self.content.kind_id("core:torch").expect("there are torches");
        let chunk = generate(self.seed, pos, &self.content);
        let begun = populate(self.seed, pos, &chunk, &self.content).into_iter();
        begun
            .map(|spawn| match spawn.body {
                SpawnBody::Item(count) if spawn.kind == torch => u64::from(count),
                SpawnBody::Chest(inventory) => inventory.count(torch).into(),
                _ => 0,
            })
            .sum()
    }
}

fn token(hand: usize) -> Token {
    Token(0x5EED_0000_0001 + hand as u64)
}

fn hands(server: &ServerProcess) -> Vec<Visitor> {
    let from = Ipv4Addr::LOCALHOST.into();
    (0..HANDS).map(|hand| Visitor::registered(server.addrs[0], from, token(hand))).collect()
}

fn is_out(hand: &Visitor) -> bool {
    hand.client.mirror().me().is_none_or(|me| me.id == EntityId::NONE)
}

fn players(lines: &[Value]) -> impl Iterator<Item = &Value> {
    lines.iter().map(|line| &line["player"]).filter(|player| !player.is_null())
}

fn chunks(lines: &[Value]) -> impl Iterator<Item = &Value> {
    lines.iter().map(|line| &line["chunk"]).filter(|chunk| !chunk.is_null())
}

fn place_of(chunk: &Value) -> (i64, i64) {
    (chunk["x"].as_i64().expect("a number"), chunk["y"].as_i64().expect("a number"))
}

fn stacks(inventory: &Value) -> impl Iterator<Item = (String, u64)> {
    let stacks = inventory.as_array().into_iter().flatten();
    stacks.map(|stack| {
        let name = stack[0].as_str().expect("a name").to_owned();
        (name, stack[1].as_u64().expect("a count"))
    })
}

fn torches_in(inventory: &Value) -> u64 {
    stacks(inventory).filter(|(name, _)| name == "core:torch").map(|(_, count)| count).sum()
}
