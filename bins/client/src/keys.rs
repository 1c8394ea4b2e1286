//! The one table of keys: what it binds is what the help explains.

use caves_world::Direction;

use Direction::{East, North, South, West};
use Where::{Aim, Bag, Help, Log, Look, Quit, Say, Walk};

/// A key, as far as this client tells keys apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    /// A letter together with Ctrl.
    Ctrl(char),
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    Enter,
    Esc,
    Tab,
    BackTab,
    Backspace,
    Delete,
}

impl Key {
    /// What is written on it.
    pub(crate) fn name(self, ascii: bool) -> String {
        let either = |sign: &str, word: &str| if ascii { word.into() } else { sign.into() };
        match self {
            Self::Char(' ') => "Space".into(),
            Self::Char(c) => c.into(),
            Self::Ctrl(c) => format!("Ctrl-{}", c.to_ascii_uppercase()),
            Self::Up => either("↑", "Up"),
            Self::Down => either("↓", "Down"),
            Self::Left => either("←", "Left"),
            Self::Right => either("→", "Right"),
            Self::Home => "Home".into(),
            Self::End => "End".into(),
            Self::PageUp => "PgUp".into(),
            Self::PageDown => "PgDn".into(),
            Self::Enter => "Enter".into(),
            Self::Esc => "Esc".into(),
            Self::Tab => "Tab".into(),
            Self::BackTab => "Shift-Tab".into(),
            Self::Backspace => "Backspace".into(),
            Self::Delete => "Del".into(),
        }
    }
}

/// Which keys are valid: the state of the keyboard, so to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Where {
    /// Walking about.
    Walk,
    /// A direction is asked for.
    Aim,
    /// Looking around.
    Look,
    /// The inventory.
    Bag,
    /// Typing something to say.
    Say,
    /// The question whether to quit.
    Quit,
    /// The history of messages.
    Log,
    /// The help.
    Help,
}

impl Where {
    /// All, in the order of the help.
    pub(crate) const ALL: [Self; 8] = [Walk, Aim, Look, Bag, Say, Log, Help, Quit];

    /// The heading of its keys in the help.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Walk => "in the caves",
            Aim => "when a direction is asked",
            Look => "looking around",
            Bag => "inventory",
            Say => "saying something",
            Quit => "leave the caves?",
            Log => "messages",
            Help => "this help",
        }
    }
}

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// A step, or the direction that was asked for.
    Go(Direction),
    /// The own tile, where a direction was asked for.
    Here,
    Dig,
    Attack,
    Interact,
    InteractOrSay,
    PickUp,
    Look,
    Bag,
    Say,
    Log,
    Help,
    Quit,
    /// Back to where one was.
    Cancel,
    Next,
    Previous,
    DropOne,
    DropAll,
    Send,
    Edit(Edit),
    /// By so many lines, down where positive.
    Scroll(isize),
    /// By most of a screen, down where positive.
    Page(isize),
    Top,
    Bottom,
    Confirm,
}

/// A change of the line that is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edit {
    Backspace,
    Delete,
    Left,
    Right,
    Home,
    End,
    Clear,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Binding {
    pub(crate) place: Where,
    pub(crate) keys: &'static [Key],
    pub(crate) act: Act,
    /// For the help.
    pub(crate) text: &'static str,
    /// A word or two for the bottom line; empty where that would be too much.
    pub(crate) hint: &'static str,
}

const fn row(
    place: Where,
    keys: &'static [Key],
    act: Act,
    hint: &'static str,
    text: &'static str,
) -> Binding {
    Binding { place, keys, act, text, hint }
}

const UP: &[Key] = &[Key::Up, Key::Char('k'), Key::Char('8')];
const LEFT: &[Key] = &[Key::Left, Key::Char('h'), Key::Char('4')];
const RIGHT: &[Key] = &[Key::Right, Key::Char('l'), Key::Char('6')];
const DOWN: &[Key] = &[Key::Down, Key::Char('j'), Key::Char('2')];
const CTRL_C: Key = Key::Ctrl('c');

/// All keys, all explanations.
#[rustfmt::skip]
pub(crate) const TABLE: &[Binding] = &[
    row(Walk, UP, Act::Go(North), "", "walk north, fight what stands there"),
    row(Walk, LEFT, Act::Go(West), "", "walk west"),
    row(Walk, RIGHT, Act::Go(East), "", "walk east"),
    row(Walk, DOWN, Act::Go(South), "", "walk south"),
    row(Walk, &[Key::Char('?')], Act::Help, "help", "show this help"),
    row(Walk, &[Key::Char('d')], Act::Dig, "dig", "dig, then a direction"),
    row(Walk, &[Key::Char('a')], Act::Attack, "attack", "attack, then a direction"),
    row(Walk, &[Key::Char('e')], Act::Interact, "use", "open a chest, read a sign beside you"),
    row(Walk, &[Key::Char('g'), Key::Char(',')], Act::PickUp, "take", "pick up what lies here"),
    row(Walk, &[Key::Char('i')], Act::Bag, "bag", "inventory: see and drop things"),
    row(Walk, &[Key::Char('x')], Act::Look, "look", "look around"),
    row(Walk, &[Key::Char('t')], Act::Say, "talk", "say something to all in view"),
    row(Walk, &[Key::Enter], Act::InteractOrSay, "", "use what is beside you, or else talk"),
    row(Walk, &[Key::Char('m')], Act::Log, "log", "read older messages"),
    row(Walk, &[Key::Char('q'), CTRL_C], Act::Quit, "quit", "leave the caves"),

    row(Aim, UP, Act::Go(North), "", "north"),
    row(Aim, LEFT, Act::Go(West), "", "west"),
    row(Aim, RIGHT, Act::Go(East), "", "east"),
    row(Aim, DOWN, Act::Go(South), "", "south"),
    row(Aim, &[Key::Char('.'), Key::Char('5')], Act::Here, "", "here (for what shares your tile)"),
    row(Aim, &[Key::Esc], Act::Cancel, "never mind", "never mind"),
    row(Aim, &[CTRL_C], Act::Quit, "", "leave the caves"),

    row(Look, &[Key::Tab, Key::Right, Key::Down, Key::Char('l'), Key::Char('j')], Act::Next, "next", "the next, further away"),
    row(Look, &[Key::BackTab, Key::Left, Key::Up, Key::Char('h'), Key::Char('k')], Act::Previous, "previous", "the one before"),
    row(Look, &[Key::Esc, Key::Char('x'), Key::Enter], Act::Cancel, "back", "look no more"),
    row(Look, &[CTRL_C], Act::Quit, "", "leave the caves"),

    row(Bag, &[Key::Down, Key::Char('j'), Key::Char('2'), Key::Tab], Act::Next, "next", "the next thing"),
    row(Bag, &[Key::Up, Key::Char('k'), Key::Char('8'), Key::BackTab], Act::Previous, "previous", "the thing before"),
    row(Bag, &[Key::Char('d')], Act::DropOne, "drop one", "drop one of it"),
    row(Bag, &[Key::Char('D')], Act::DropAll, "drop all", "drop all of it"),
    row(Bag, &[Key::Esc, Key::Char('i'), Key::Enter], Act::Cancel, "back", "close the inventory"),
    row(Bag, &[CTRL_C], Act::Quit, "", "leave the caves"),

    row(Say, &[Key::Enter], Act::Send, "say it", "say it"),
    row(Say, &[Key::Esc], Act::Cancel, "never mind", "never mind"),
    row(Say, &[Key::Left], Act::Edit(Edit::Left), "", "move left"),
    row(Say, &[Key::Right], Act::Edit(Edit::Right), "", "move right"),
    row(Say, &[Key::Home, Key::Ctrl('a')], Act::Edit(Edit::Home), "", "move to the start"),
    row(Say, &[Key::End, Key::Ctrl('e')], Act::Edit(Edit::End), "", "move to the end"),
    row(Say, &[Key::Backspace], Act::Edit(Edit::Backspace), "", "erase to the left"),
    row(Say, &[Key::Delete], Act::Edit(Edit::Delete), "", "erase to the right"),
    row(Say, &[Key::Ctrl('u')], Act::Edit(Edit::Clear), "", "erase all"),
    row(Say, &[CTRL_C], Act::Quit, "", "leave the caves"),

    row(Log, &[Key::Up, Key::Char('k'), Key::Char('8')], Act::Scroll(-1), "older", "older"),
    row(Log, &[Key::Down, Key::Char('j'), Key::Char('2')], Act::Scroll(1), "newer", "newer"),
    row(Log, &[Key::PageUp], Act::Page(-1), "", "much older"),
    row(Log, &[Key::PageDown, Key::Char(' ')], Act::Page(1), "", "much newer"),
    row(Log, &[Key::Home], Act::Top, "", "the oldest"),
    row(Log, &[Key::End], Act::Bottom, "", "the newest"),
    row(Log, &[Key::Esc, Key::Char('m'), Key::Enter], Act::Cancel, "back", "back to the caves"),
    row(Log, &[CTRL_C, Key::Char('q')], Act::Quit, "", "leave the caves"),

    row(Help, &[Key::Up, Key::Char('k'), Key::Char('8')], Act::Scroll(-1), "up", "up"),
    row(Help, &[Key::Down, Key::Char('j'), Key::Char('2')], Act::Scroll(1), "down", "down"),
    row(Help, &[Key::PageUp], Act::Page(-1), "", "a page up"),
    row(Help, &[Key::PageDown, Key::Char(' ')], Act::Page(1), "page", "a page down"),
    row(Help, &[Key::Home], Act::Top, "", "to the top"),
    row(Help, &[Key::End], Act::Bottom, "", "to the bottom"),
    row(Help, &[Key::Esc, Key::Char('?'), Key::Enter], Act::Cancel, "back", "back to the caves"),
    row(Help, &[CTRL_C, Key::Char('q')], Act::Quit, "", "leave the caves"),

    row(Quit, &[Key::Char('y'), Key::Enter, CTRL_C], Act::Confirm, "yes", "yes, leave"),
    row(Quit, &[Key::Char('n'), Key::Esc], Act::Cancel, "no", "no, stay"),
];

/// What a key does there.
pub(crate) fn act(place: Where, key: Key) -> Option<Act> {
    rows(place).find(|row| row.keys.contains(&key)).map(|row| row.act)
}

/// All rows of one place, in the order of the table.
pub(crate) fn rows(place: Where) -> impl Iterator<Item = &'static Binding> {
    TABLE.iter().filter(move |row| row.place == place)
}

/// The first key of an action and its hint, as "d dig", for each that has one.
pub(crate) fn hints(place: Where, ascii: bool) -> impl Iterator<Item = (String, &'static str)> {
    rows(place)
        .filter(|row| !row.hint.is_empty())
        .filter_map(move |row| Some((row.keys.first()?.name(ascii), row.hint)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_is_bound_twice_in_one_place() {
        for place in Where::ALL {
            let keys: Vec<Key> = rows(place).flat_map(|row| row.keys).copied().collect();
            for (i, key) in keys.iter().enumerate() {
                assert!(!keys[i + 1..].contains(key), "{place:?}: {key:?} is bound twice");
            }
        }
    }

    #[test]
    fn every_row_has_a_key_and_an_explanation() {
        for row in TABLE {
            assert!(!row.keys.is_empty(), "{row:?}");
            assert!(!row.text.is_empty(), "{row:?}");
            assert!(Where::ALL.contains(&row.place), "{row:?}");
        }
    }

    #[test]
    fn there_is_a_way_out_of_every_place() {
        for place in Where::ALL {
            let out = if place == Walk { Act::Quit } else { Act::Cancel };
            assert!(rows(place).any(|row| row.act == out), "{place:?}");
            let ctrl_c = act(place, CTRL_C);
            assert!(matches!(ctrl_c, Some(Act::Quit | Act::Confirm)), "{place:?}: {ctrl_c:?}");
        }
    }

    #[test]
    fn typing_is_not_disturbed_by_letters_that_are_bound() {
        assert!(rows(Say).flat_map(|row| row.keys).all(|key| !matches!(key, Key::Char(_))));
    }

    #[test]
    fn arrows_letters_and_digits_walk_alike() {
        for (keys, way) in [
            ([Key::Up, Key::Char('k'), Key::Char('8')], North),
            ([Key::Down, Key::Char('j'), Key::Char('2')], South),
            ([Key::Left, Key::Char('h'), Key::Char('4')], West),
            ([Key::Right, Key::Char('l'), Key::Char('6')], East),
        ] {
            for key in keys {
                assert_eq!(act(Walk, key), Some(Act::Go(way)));
                assert_eq!(act(Aim, key), Some(Act::Go(way)));
            }
        }
        assert_eq!(act(Walk, Key::Char('z')), None);
    }
}
