//! What happens in a run: a script, drawn from a seed.

use std::fmt;
use std::time::Duration;

use caves_netsim::{Burst, Chance, LinkConfig, SplitMix64};
use caves_world::{Command, Direction, EntityId, KindId};

/// One run: who plays, what happens to them, and how long until the network is whole.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) seats: Vec<Who>,
    /// Clients that speak types 0 to 7 alone.
    pub(crate) plains: usize,
    /// Ascending by time.
    pub(crate) steps: Vec<Step>,
    /// When the network is whole.
    pub(crate) millis: u64,
}

/// How a client comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Guest,
    Named,
    /// With a registered token.
    Registered,
    /// Not at all: left out of a script that was made short.
    Nobody,
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// Milliseconds after the start.
    pub(crate) at: u64,
    pub(crate) what: What,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    /// What the lines of a client do from now on.
    Line {
        who: Place,
        up: LinkConfig,
        down: LinkConfig,
    },
    Act {
        seat: usize,
        command: Command,
    },
    Look {
        seat: usize,
        entity: EntityId,
    },
    LetGo {
        seat: usize,
    },
    /// One step of a plain client.
    Step {
        plain: usize,
        way: Direction,
    },
    /// Another address, as behind a box that forgets.
    Rebind {
        seat: usize,
        port: u16,
    },
    Kill {
        who: Place,
    },
    /// Starts again what was killed or has left, at the same port or another one.
    Start {
        who: Place,
        port: u16,
    },
    Leave {
        seat: usize,
    },
    StopServer {
        says_so: bool,
    },
    StartServer,
    /// `None` is the server's clock.
    Jump {
        seat: Option<usize>,
        millis: u64,
    },
    /// Somebody who is not invited; `seat` is whose address is in its datagram.
    Intrude {
        kind: u8,
        seat: Option<usize>,
        random: u64,
    },
}

/// A client with or without types above 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Seat(usize),
    Plain(usize),
}

impl Scenario {
    /// The run of a seed.
    pub(crate) fn draw(seed: u64) -> Self {
        let mut draw = Draw { random: SplitMix64::new(seed), steps: Vec::new(), lines: 0 };
        draw.scenario(seed)
    }
}

struct Draw {
    random: SplitMix64,
    steps: Vec<Step>,
    /// Lines said so far: each is another one.
    lines: u32,
}

impl Draw {
    fn scenario(mut self: &mut Self, seed: u64) -> Scenario {
        let seats = [1, 1, 1, 2, 2, 2, 2, 3, 3, 4, 6, 8][self.below(12) as usize];
        let plains = [0, 0, 0, 0, 1, 2][self.below(6) as usize];
        let millis = if self.one_in(25) { 40_000 } else { 2000 + self.below(7000) };
        let damage = self.one_in(8);
        let who = |draw: &mut Self, place| match draw.below(4) {
            0 => Who::Guest,
            // Two tokens are registered for those who join.
            1 if place < 2 => Who::Registered,
            _ => Who::Named,
        };
        let who: Vec<Who> = (0..seats).map(|place| who(self, place)).collect();
        for seat in 0..seats {
            self.weather(Place::Seat(seat), millis, damage);
            self.play(seat, millis);
            self.misfortunes(seat, millis);
        }
        for plain in 0..plains {
            self.weather(Place::Plain(plain), millis, damage);
            self.play_plain(plain, millis);
        }
        self.servers_troubles(millis);
        self.strangers(seats, millis);
        let draw = &mut self;
        draw.steps.sort_by_key(|step| step.at);
        let steps = std::mem::take(&mut draw.steps);
        Scenario { seed, seats: who, plains, steps, millis }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random.below(limit)
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    fn add(&mut self, at: u64, what: What) {
        self.steps.push(Step { at, what });
    }

    /// Lines that change now and then.
    fn weather(&mut self, who: Place, millis: u64, damage: bool) {
        let mut at = 0;
        while at < millis {
            let (up, down) = if self.one_in(6) {
                (LinkConfig::PERFECT, LinkConfig::PERFECT)
            } else {
                (self.line(who, damage), self.line(who, damage))
            };
            self.add(at, What::Line { who, up, down });
            // Cut, for up to some seconds.
            let mut next = at + 500 + self.below(4000);
            if self.one_in(7) {
                let cut = LinkConfig { down: true, ..up };
                let from = at + self.below(1500);
                let long = if self.one_in(4) { 13_000 } else { 3500 };
                let until = from + 200 + self.below(long);
                self.add(from, What::Line { who, up: cut, down: cut });
                self.add(until, What::Line { who, up, down });
                next = next.max(until);
            }
            at = next;
        }
    }

    fn line(&mut self, who: Place, damage: bool) -> LinkConfig {
        let loss = [0, 0, 1, 5, 10, 20, 30, 50][self.below(8) as usize];
        // A plain client says nothing of a restart but by old numbers, for which late ones of before
        // must not be taken (R29): its network is a near one.
        let far = matches!(who, Place::Seat(_));
        let delay = if far && self.one_in(6) { 2000 } else { 200 };
        let jitter = if far && self.one_in(6) { 2000 } else { 150 };
        LinkConfig {
            delay: Duration::from_millis(self.below(delay)),
            jitter: Duration::from_millis(self.below(jitter)),
            loss: Chance::percent(loss),
            burst: self.one_in(5).then(|| Burst::lasting(Chance::percent(20), 6)),
            duplicate: Chance::percent([0, 0, 5, 30][self.below(4) as usize]),
            reorder: Chance::percent([0, 0, 5, 30][self.below(4) as usize]),
            reorder_by: Duration::from_millis(1 + self.below(if far { 500 } else { 100 })),
            corrupt: if damage { Chance::percent(5) } else { Chance::NEVER },
            mtu: self.one_in(10).then(|| 60 + self.below(1140) as usize),
            ..LinkConfig::PERFECT
        }
    }

    fn way(&mut self) -> Direction {
        Direction::ALL[self.below(4) as usize]
    }

    fn play(&mut self, seat: usize, millis: u64) {
        let mut at = self.below(1500);
        while at < millis {
            let way = self.way();
            match self.below(14) {
                // A held key, 30 repeats a second.
                0..=1 => {
                    for _ in 0..5 + self.below(25) {
                        self.add(at, What::Act { seat, command: Command::Move(way) });
                        at += 33;
                    }
                    self.add(at, What::LetGo { seat });
                }
                2..=5 => self.add(at, What::Act { seat, command: Command::Move(way) }),
                6..=8 => self.add(at, What::Act { seat, command: Command::Dig(way) }),
                9 => self.add(at, What::Act { seat, command: Command::Attack(way) }),
                10 => {
                    let command = match self.below(3) {
                        0 => Command::PickUp,
                        1 => Command::Drop { item: KindId(self.below(40) as u16), count: 1 },
                        _ => Command::Interact(EntityId(1 + self.below(60) as u32)),
                    };
                    self.add(at, What::Act { seat, command });
                }
                11 => {
                    let entity = EntityId(1 + self.below(60) as u32);
                    self.add(at, What::Look { seat, entity });
                }
                _ => {
                    self.lines += 1;
                    let command = Command::Say(format!("line {seat} {}", self.lines));
                    self.add(at, What::Act { seat, command });
                }
            }
            at += 50 + self.below(450);
        }
    }

    fn play_plain(&mut self, plain: usize, millis: u64) {
        let mut at = self.below(1000);
        while at < millis {
            let way = self.way();
            self.add(at, What::Step { plain, way });
            at += 200 + self.below(600);
        }
        if self.one_in(3) {
            self.kill(Place::Plain(plain), millis);
        }
    }

    fn misfortunes(&mut self, seat: usize, millis: u64) {
        if self.one_in(4) {
            let (at, port) = (self.below(millis), 6000 + self.below(1000) as u16);
            self.add(at, What::Rebind { seat, port });
        }
        if self.one_in(5) {
            self.kill(Place::Seat(seat), millis);
        } else if self.one_in(12) {
            let at = self.below(millis);
            self.add(at, What::Leave { seat });
            if self.one_in(2) {
                let port = self.port();
                let later = at + self.below(3000);
                self.add(later, What::Start { who: Place::Seat(seat), port });
            }
        }
        if self.one_in(8) {
            let at = self.below(millis);
            let by = if self.one_in(2) { 1000 } else { 15_000 };
            let by = 100 + self.below(by);
            self.add(at, What::Jump { seat: Some(seat), millis: by });
        }
    }

    /// Killed without a goodbye, and mostly started again, at the same port or another one.
    fn kill(&mut self, who: Place, millis: u64) {
        let at = self.below(millis);
        self.add(at, What::Kill { who });
        if !self.one_in(4) {
            let (pause, port) = (self.below(5000), self.port());
            self.add(at + pause, What::Start { who, port });
        }
    }

    /// Where a client comes back: 0 is the same port.
    fn port(&mut self) -> u16 {
        if self.one_in(2) { 0 } else { 7000 + self.below(1000) as u16 }
    }

    fn servers_troubles(&mut self, millis: u64) {
        if self.one_in(5) {
            let (at, pause) = (self.below(millis), self.below(4000));
            let says_so = self.one_in(3);
            self.add(at, What::StopServer { says_so });
            self.add(at + pause, What::StartServer);
        }
        if self.one_in(10) {
            let by = if self.one_in(2) { 900 } else { 12_000 };
            let (at, by) = (self.below(millis), 100 + self.below(by));
            self.add(at, What::Jump { seat: None, millis: by });
        }
    }

    fn strangers(&mut self, seats: usize, millis: u64) {
        if self.one_in(2) {
            return;
        }
        for _ in 0..1 + self.below(40) {
            let kind = self.below(12) as u8;
            let seat = self.one_in(3).then(|| self.below(seats as u64) as usize);
            let (at, random) = (self.below(millis), self.random.next_u64());
            self.add(at, What::Intrude { kind, seat, random });
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, seats, plains, steps, millis } = self;
        writeln!(f, "seed {seed}: {seats:?}, {plains} plain, whole again after {millis} ms")?;
        for Step { at, what } in steps {
            match what {
                What::Line { who, up, down } => {
                    writeln!(f, "  {at:>6} ms  {who:?} up {} | down {}", Line(up), Line(down))?;
                }
                what => writeln!(f, "  {at:>6} ms  {what:?}")?,
            }
        }
        Ok(())
    }
}

/// The settings of a line that are not those of a perfect one.
struct Line<'a>(&'a LinkConfig);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.0;
        if line.down {
            return f.write_str("cut");
        }
        write!(f, "{} ms", line.delay.as_millis())?;
        if !line.jitter.is_zero() {
            write!(f, " + {}", line.jitter.as_millis())?;
        }
        let chances = [
            ("lost", line.loss),
            ("twice", line.duplicate),
            ("late", line.reorder),
            ("damaged", line.corrupt),
        ];
        for (what, chance) in chances {
            if chance != Chance::NEVER {
                write!(f, ", {chance} {what}")?;
            }
        }
        if line.burst.is_some() {
            f.write_str(", bursts")?;
        }
        line.mtu.map_or(Ok(()), |mtu| write!(f, ", at most {mtu} bytes"))
    }
}
