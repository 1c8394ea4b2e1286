//! A player who walks, digs now and then, talks and looks about, and what must hold meanwhile.

use std::time::Duration;

use caves_game::mirror::MessageKind;
use caves_netsim::{Chance, LinkConfig, SplitMix64};
use caves_session::caves::ClientStatus;
use caves_wire::caves::Tick;
use caves_world::{Command, Direction, Pos, SPAWN};

use super::{Life, Start};

/// One in a hundred is lost, one in a hundred doubled; 20 to 30 ms.
pub(crate) const FAIR: LinkConfig = LinkConfig {
    delay: Duration::from_millis(20),
    jitter: Duration::from_millis(10),
    loss: Chance::percent(1),
    duplicate: Chance::percent(1),
    ..LinkConfig::PERFECT
};
/// Tiles from the spawn: no monster comes here, so nothing is left lying about.
const HOME: i32 = 7;
/// Ticks between two lines, two questions, two digs.
const TALK: u64 = 50;
const LOOK: u64 = 30;
const DIG: u64 = 20;
/// States in a row that may be lost: at 1 % eight are once in 10^16.
const BEHIND: u32 = 8;

pub(crate) struct Player {
    pub(crate) life: Life,
    start: Start,
    random: SplitMix64,
    pub(crate) said: u64,
    pub(crate) heard: u64,
    pub(crate) asked: u64,
    /// Tiles moved, as the server has it.
    pub(crate) moved: u64,
    /// Ticks whose State had not come when the next one was due.
    pub(crate) late: u64,
    /// Whether it digs; what comes out of a wall may be left lying there.
    pub(crate) digs: bool,
    at: Pos,
}

impl Player {
    pub(crate) fn new(start: Start) -> Self {
        let life = Life::playing(start);
        let (random, at) = (SplitMix64::new(start.seed), life.true_pos());
        let (said, heard, asked, moved, late) = (0, 0, 0, 0, 0);
        Self { life, start, random, said, heard, asked, moved, late, digs: true, at }
    }

    /// Plays one tick and looks whether all is well.
    pub(crate) fn play(&mut self) {
        self.act();
        self.life.tick();
        self.life.event_numbers.clear();
        self.check_time();
        self.check_session();
        self.listen();
        let at = self.life.true_pos();
        self.moved += u64::from(at != self.at);
        // Else the caves would grow by what is generated on the way.
        assert_eq!(at.chunk(), SPAWN.chunk(), "at home");
        self.at = at;
    }

    fn act(&mut self) {
        let ticks = self.life.ticks;
        let way = Direction::ALL[self.random.below(4) as usize];
        let command = match () {
            () if ticks.is_multiple_of(TALK) => Command::Say(format!("line {:010}", self.said + 1)),
            () if self.digs && ticks % DIG == 3 => Command::Dig(way),
            () => Command::Move(self.homeward(way)),
        };
        let talks = matches!(command, Command::Say(_));
        let taken = self.life.client.act(command).is_ok();
        self.said += u64::from(talks && taken);
        if ticks % LOOK == 7 {
            let (me, now) = (self.life.me(), self.life.now);
            self.asked += u64::from(self.life.client.look(now, me).is_ok());
        }
        self.life.pump();
    }

    /// A way, or the one back where it would lead too far away.
    fn homeward(&self, way: Direction) -> Direction {
        let at = self.life.client.position().unwrap_or(SPAWN);
        let opposite = |way| match way {
            Direction::North => Direction::South,
            Direction::East => Direction::West,
            Direction::South => Direction::North,
            Direction::West => Direction::East,
        };
        let next = at.step(way).distance(SPAWN);
        if next > HOME && next > at.distance(SPAWN) { opposite(way) } else { way }
    }

    /// The server counts a tick each 100 ms, the client follows, and the round trip stays.
    fn check_time(&mut self) {
        let Life { server, client, ticks, .. } = &self.life;
        // Wraps as the counter on the wire does.
        assert_eq!(server.tick(), Tick::new((self.start.tick + ticks) as u32));
        assert_eq!(server.world().tick(), *ticks);
        let behind = server.tick().distance_from(client.tick().expect("a tick"));
        assert!(behind <= BEHIND, "{behind} ticks behind at {ticks}");
        self.late += u64::from(behind > 0);
        let LinkConfig { delay, jitter, .. } = self.start.link;
        if let Some(trip) = client.round_trip() {
            assert!((2 * delay..=2 * (delay + jitter)).contains(&trip), "{trip:?} at {ticks}");
        }
    }

    /// One session from the beginning to the end, and nothing is given up.
    fn check_session(&mut self) {
        let Life { server, client, ticks, now, events, log, .. } = &mut self.life;
        let status = client.status(*now);
        assert!(matches!(status, ClientStatus::Playing { recovering: false, .. }), "{status:?}");
        assert_eq!(events, &[], "at {ticks}");
        assert_eq!((log.len(), server.players()), (1, 1), "one has joined: {log:?}");
    }

    /// Every line comes once and in order; those read before are among the last ones.
    fn listen(&mut self) {
        let messages = self.life.client.mirror().messages();
        for message in messages.iter().rev().take(16).rev() {
            let number = message.text.strip_prefix("line ").and_then(|n| n.parse::<u64>().ok());
            let Some(number) = number.filter(|_| message.kind == MessageKind::Chat) else {
                continue;
            };
            if number > self.heard {
                assert_eq!(number, self.heard + 1, "in order");
                self.heard = number;
            }
        }
    }

    /// What is under way comes through, and all that was said was heard.
    pub(crate) fn finish(&mut self) {
        for _ in 0..100 {
            self.life.tick();
            self.check_time();
            self.check_session();
            self.listen();
        }
        assert_eq!(self.heard, self.said);
        assert!(!self.life.client.misses_chunks());
        let own = self.life.client.mirror().me().expect("in the caves");
        assert_eq!(own.pos, self.life.true_pos());
        let details = self.life.client.mirror().details(own.id).expect("asked for");
        assert_eq!(details.name.as_deref(), Some("Ada"));
    }
}
