//! What the keys do: the state of the screen, and what is asked of the server.
//!
//! Nothing here knows a terminal, a socket or a clock.

mod events;

pub(crate) use events::join as refusal;

use std::time::Duration;

use caves_game::Client;
use caves_link::time::{Deadline, Instant};
use caves_session::caves::ClientStatus;
use caves_world::{Command, Direction, EntityId};

use crate::around;
use crate::keys::{self, Act, Key, Where};
use crate::line::Line;

/// A key whose repeats stay away for this long was let go. Terminals repeat a held key every 30
/// to 90 ms, and none tells of its release.
const RELEASE: Duration = Duration::from_millis(120);
/// How long a remark stays on the bottom line.
const REMARK: Duration = Duration::from_secs(4);
/// What is looked at is asked for again this often.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// After something was dropped the inventory is asked for this much later.
const ASK_SOON: Duration = Duration::from_millis(250);

/// Silence of this length is a lost connection (protocol, section 5).
const LOST: Duration = Duration::from_secs(2);

/// Where the game is played.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Home {
    /// On a server inside this process.
    Alone {
        /// What its world is generated from.
        seed: u64,
        /// Whether it is there again the next time.
        is_kept: bool,
    },
    /// On a server elsewhere.
    Server {
        /// As the player gave it.
        address: String,
    },
}

/// What the player is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mode {
    Walk,
    /// A direction is asked for.
    Aim(Verb),
    Look {
        target: EntityId,
    },
    Bag {
        row: usize,
    },
    Say(Line),
    /// Whether to quit; then, or back to what was before.
    Quit {
        back: Box<Mode>,
    },
    Log {
        /// Lines from the newest one.
        up: usize,
    },
    Help {
        /// Lines from the top.
        down: usize,
    },
}

impl Mode {
    pub(crate) const fn place(&self) -> Where {
        match self {
            Self::Walk => Where::Walk,
            Self::Aim(_) => Where::Aim,
            Self::Look { .. } => Where::Look,
            Self::Bag { .. } => Where::Bag,
            Self::Say(_) => Where::Say,
            Self::Quit { .. } => Where::Quit,
            Self::Log { .. } => Where::Log,
            Self::Help { .. } => Where::Help,
        }
    }
}

/// What is done in a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Dig,
    Attack,
    Interact,
}

impl Verb {
    pub(crate) const fn question(self) -> &'static str {
        match self {
            Self::Dig => "Dig where?",
            Self::Attack => "Attack where?",
            Self::Interact => "Use which?",
        }
    }
}

/// How much of something could be scrolled when it was drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Scroll {
    /// Lines that did not fit.
    pub(crate) limit: usize,
    /// Lines that did.
    pub(crate) page: usize,
}

/// The state of the screen.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) home: Home,
    pub(crate) mode: Mode,
    remark: Option<(String, Instant)>,
    held: Option<Held>,
    ask_at: Deadline,
    scroll: Scroll,
    heard_at: Instant,
    /// Nothing came for so long that its end is worth a line.
    lost: bool,
    /// Why there is no session, where the server said so.
    pub(crate) trouble: Option<String>,
    greeted: bool,
    quit: bool,
}

/// A walking key that is down, as far as one can know.
#[derive(Debug, Clone, Copy)]
struct Held {
    way: Direction,
    last: Instant,
    repeats: bool,
}

impl App {
    pub(crate) fn new(home: Home, now: Instant) -> Self {
        Self {
            home,
            mode: Mode::Walk,
            remark: None,
            held: None,
            ask_at: Deadline::NEVER,
            scroll: Scroll::default(),
            heard_at: now,
            lost: false,
            trouble: None,
            greeted: false,
            quit: false,
        }
    }

    /// Whether the player wants to go, and said so twice.
    pub(crate) const fn wants_to_quit(&self) -> bool {
        self.quit
    }

    /// Something came from the server, and the client has taken it.
    pub(crate) fn heard(&mut self, client: &mut Client, now: Instant) {
        self.lost |= self.greeted && self.silence(now) >= LOST;
        self.heard_at = now;
        let plays =
            |status| matches!(status, ClientStatus::Playing { silence, .. } if silence < LOST);
        if self.lost && plays(client.status(now)) {
            self.lost = false;
            client.tell("The connection is back.");
        }
    }

    /// For how long nothing came.
    pub(crate) const fn silence(&self, now: Instant) -> Duration {
        now.saturating_since(self.heard_at)
    }

    /// A remark for the bottom line.
    pub(crate) fn remark(&self) -> Option<&str> {
        self.remark.as_ref().map(|(text, _)| text.as_str())
    }

    fn say_below(&mut self, text: impl Into<String>, now: Instant) {
        self.remark = Some((text.into(), now + REMARK));
    }

    /// How much could be scrolled in what was drawn last.
    pub(crate) const fn note_scroll(&mut self, scroll: Scroll) {
        self.scroll = scroll;
    }

    /// Does what a key stands for.
    pub(crate) fn handle_key(&mut self, key: Key, client: &mut Client, now: Instant) {
        if let Some(act) = keys::act(self.mode.place(), key) {
            self.remark = None;
            self.perform(act, client, now);
        } else if let (Mode::Say(line), Key::Char(c)) = (&mut self.mode, key) {
            line.insert(c);
        } else if self.mode == Mode::Walk && key != Key::Esc {
            self.say_below("That key does nothing here; ? explains those that do.", now);
        }
    }

    /// Takes pasted text: words while one is typing, and never commands.
    pub(crate) fn handle_paste(&mut self, text: &str, now: Instant) {
        match &mut self.mode {
            Mode::Say(line) => line.paste(text),
            _ => self.say_below("Pasted text can only be said: t begins.", now),
        }
    }

    /// Does what is due.
    pub(crate) fn handle_timeout(&mut self, client: &mut Client, now: Instant) {
        if let Some(held) = self.held.take_if(|held| held.last + RELEASE <= now)
            && held.repeats
        {
            // A key that was only tapped means its one step, however late that can be sent.
            client.stop_walking();
        }
        self.remark.take_if(|(_, until)| *until <= now);
        if self.ask_at.is_due(now) {
            self.ask(client, now);
        }
    }

    /// When to call [`App::handle_timeout`] at the latest.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        Deadline::earliest([
            self.held.map(|held| held.last + RELEASE),
            self.remark.as_ref().map(|(_, until)| *until),
            self.ask_at.get(),
        ])
    }

    fn perform(&mut self, act: Act, client: &mut Client, now: Instant) {
        match act {
            Act::Go(way) => self.go(way, client, now),
            Act::Here => self.use_here(client, now),
            Act::Dig => self.mode = Mode::Aim(Verb::Dig),
            Act::Attack => self.mode = Mode::Aim(Verb::Attack),
            Act::Interact => self.interact(client, now),
            Act::InteractOrSay if reach(client).is_empty() => {
                self.mode = Mode::Say(Line::default());
            }
            Act::InteractOrSay => self.interact(client, now),
            Act::PickUp => self.command(Command::PickUp, client, now),
            Act::Look => self.look_around(client, now),
            Act::Bag => {
                self.mode = Mode::Bag { row: 0 };
                self.ask(client, now);
            }
            Act::Say => self.mode = Mode::Say(Line::default()),
            Act::Log => self.mode = Mode::Log { up: 0 },
            Act::Help => self.mode = Mode::Help { down: 0 },
            Act::Quit => {
                let back = Box::new(std::mem::replace(&mut self.mode, Mode::Walk));
                self.mode = Mode::Quit { back };
            }
            Act::Cancel => self.cancel(),
            Act::Next => self.turn(1, client, now),
            Act::Previous => self.turn(-1, client, now),
            Act::DropOne => self.drop_item(false, client, now),
            Act::DropAll => self.drop_item(true, client, now),
            Act::Send => self.send(client, now),
            Act::Edit(edit) => {
                if let Mode::Say(line) = &mut self.mode {
                    line.edit(edit);
                }
            }
            Act::Scroll(lines) => self.scroll_by(lines),
            Act::Page(pages) => {
                let page = isize::try_from(self.scroll.page.saturating_sub(1)).unwrap_or(0);
                self.scroll_by(pages * page.max(1));
            }
            Act::Top => self.scroll_by(isize::MIN),
            Act::Bottom => self.scroll_by(isize::MAX),
            Act::Confirm => self.quit = true,
        }
    }

    /// Asks for a command to be executed; says why if that cannot be.
    fn command(&mut self, command: Command, client: &mut Client, now: Instant) {
        if let Err(error) = client.act(command) {
            self.say_below(capital(&error.to_string()), now);
        }
    }

    fn go(&mut self, way: Direction, client: &mut Client, now: Instant) {
        match self.mode {
            Mode::Walk => self.walk(way, client, now),
            Mode::Aim(verb) => {
                self.mode = Mode::Walk;
                match verb {
                    Verb::Dig if is_open(way, client) => {
                        // The server would say nothing.
                        self.say_below(format!("Nothing to dig {}.", around::way(way)), now);
                    }
                    Verb::Dig => self.command(Command::Dig(way), client, now),
                    Verb::Attack => self.command(Command::Attack(way), client, now),
                    Verb::Interact => self.use_there(way, client, now),
                }
            }
            _ => {}
        }
    }

    /// One step. Where nothing can be taken any more a step is nothing to speak of.
    fn walk(&mut self, way: Direction, client: &mut Client, now: Instant) {
        let again = |held: &Held| held.way == way && now < held.last + RELEASE;
        let repeats = self.held.as_ref().is_some_and(again);
        self.held = Some(Held { way, last: now, repeats });
        let _ = client.act(Command::Move(way));
    }

    fn interact(&mut self, client: &mut Client, now: Instant) {
        match *reach(client) {
            [] => self.say_below("There is nothing to use beside you.", now),
            [only] => self.command(Command::Interact(only), client, now),
            _ => self.mode = Mode::Aim(Verb::Interact),
        }
    }

    fn use_there(&mut self, way: Direction, client: &mut Client, now: Instant) {
        let there = client.position().map(|here| here.step(way));
        let target = reach(client)
            .into_iter()
            .find(|id| client.mirror().figure(*id).map(|of| of.pos) == there);
        match target {
            Some(target) => self.command(Command::Interact(target), client, now),
            None => {
                self.say_below(format!("There is nothing to use {}.", around::way(way)), now);
            }
        }
    }

    fn use_here(&mut self, client: &mut Client, now: Instant) {
        let Mode::Aim(verb) = self.mode else { return };
        self.mode = Mode::Walk;
        let here = client.position();
        let target = reach(client)
            .into_iter()
            .find(|id| client.mirror().figure(*id).map(|of| of.pos) == here);
        match (verb, target) {
            (Verb::Interact, Some(target)) => self.command(Command::Interact(target), client, now),
            (Verb::Interact, None) => self.say_below("There is nothing to use here.", now),
            _ => self.say_below("Not where you stand.", now),
        }
    }

    fn look_around(&mut self, client: &mut Client, now: Instant) {
        match in_view(client).first() {
            Some(&target) => {
                self.mode = Mode::Look { target };
                self.ask(client, now);
            }
            None => self.say_below("There is nobody and nothing in view.", now),
        }
    }

    /// To the next thing in a list, or the one before.
    fn turn(&mut self, by: isize, client: &mut Client, now: Instant) {
        match &mut self.mode {
            Mode::Bag { row } => {
                let rows = bag(client).len().max(1);
                *row = ((*row).min(rows - 1) as isize + by).rem_euclid(rows as isize) as usize;
            }
            Mode::Look { target } => {
                let list = in_view(client);
                // Where it went out of view one begins anew, with the nearest.
                let next = list.iter().position(|id| id == target).map_or(0, |at| {
                    (at as isize + by).rem_euclid(list.len().max(1) as isize) as usize
                });
                if let Some(id) = list.get(next) {
                    *target = *id;
                    self.ask(client, now);
                }
            }
            _ => {}
        }
    }

    fn drop_item(&mut self, all: bool, client: &mut Client, now: Instant) {
        let Mode::Bag { row } = self.mode else { return };
        let items = bag(client);
        let Some(&(item, held)) = items.get(row.min(items.len().saturating_sub(1))) else { return };
        let count = if all { held } else { 1 };
        self.command(Command::Drop { item, count }, client, now);
        self.ask_at.set(now + ASK_SOON);
    }

    fn send(&mut self, client: &mut Client, now: Instant) {
        let Mode::Say(line) = &self.mode else { return };
        let text = line.text().trim();
        if !text.is_empty()
            && let Err(error) = client.act(Command::Say(text.to_owned()))
        {
            // What was typed is kept: it can be sent in a moment.
            return self.say_below(capital(&error.to_string()), now);
        }
        self.mode = Mode::Walk;
    }

    fn cancel(&mut self) {
        let mode = std::mem::replace(&mut self.mode, Mode::Walk);
        if let Mode::Quit { back } = mode {
            self.mode = *back;
        }
        if !matches!(self.mode, Mode::Look { .. } | Mode::Bag { .. }) {
            self.ask_at.clear();
        }
    }

    fn scroll_by(&mut self, lines: isize) {
        let limit = self.scroll.limit;
        let moved = |at: usize, lines: isize| at.min(limit).saturating_add_signed(lines).min(limit);
        match &mut self.mode {
            Mode::Help { down } => *down = moved(*down, lines),
            Mode::Log { up } => *up = moved(*up, lines.saturating_neg()),
            _ => {}
        }
    }

    /// Asks about what is looked at.
    fn ask(&mut self, client: &mut Client, now: Instant) {
        let whom = match self.mode {
            Mode::Look { target } => Some(target),
            Mode::Bag { .. } => client.mirror().me().map(|me| me.id),
            _ => return self.ask_at.clear(),
        };
        if let Some(whom) = whom {
            // Where it cannot be asked now it is asked later.
            let _ = client.look(now, whom);
        }
        self.ask_at.set(now + ASK_AGAIN);
    }
}

/// Whether one could walk there already.
fn is_open(way: Direction, client: &Client) -> bool {
    let tile = client.position().and_then(|here| client.mirror().tile(here.step(way)));
    tile.is_some_and(|tile| client.mirror().content().is_walkable(tile))
}

/// What can be interacted with from here.
fn reach(client: &Client) -> Vec<EntityId> {
    let Some(here) = client.position() else { return Vec::new() };
    around::within_reach(client.mirror(), here).into_iter().map(|of| of.id).collect()
}

fn in_view(client: &Client) -> Vec<EntityId> {
    let Some(here) = client.position() else { return Vec::new() };
    around::nearest(client.mirror(), here).into_iter().map(|of| of.id).collect()
}

/// What the player carries, as far as that was told.
fn bag(client: &Client) -> &[(caves_world::KindId, u16)] {
    let mirror = client.mirror();
    let details = mirror.me().and_then(|me| mirror.details(me.id));
    details.and_then(|details| details.inventory.as_deref()).unwrap_or_default()
}

/// A sentence begins with a capital letter and ends with a full stop.
fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}

#[cfg(test)]
mod tests;
