//! What the session tells, as the player is told.

use caves_game::Client;
use caves_game::client::ClientEvent;
use caves_world::Command;

use super::{App, Home};
use crate::around;
use crate::keys::{self, Where};

impl App {
    /// Takes an event of the client; what the player should know goes into the message log.
    pub(crate) fn handle_event(&mut self, event: ClientEvent, client: &mut Client) {
        match event {
            // That it goes on shows by what comes: a Join is not always needed.
            ClientEvent::Joined { resumed: true, .. } => self.trouble = None,
            ClientEvent::Joined { resumed: false, server_name, motd } => {
                self.trouble = None;
                self.lost = false;
                self.greet(&server_name, &motd, client);
            }
            ClientEvent::CommandLost(command) => client.tell(lost(&command)),
            ClientEvent::NoAnswer(_) => client.tell("There was no answer about that."),
            ClientEvent::Refused { reason, text, .. } => {
                self.is_in_trouble(join("Not let in", &reason.to_string(), &text), client);
            }
            ClientEvent::ServerGone { .. } => {
                self.is_in_trouble("The server was shut down".to_owned(), client);
            }
            _ => {}
        }
    }

    fn greet(&mut self, server_name: &str, motd: &str, client: &mut Client) {
        match &self.home {
            Home::Alone { .. } => client.tell("You are alone in these caves."),
            Home::Server { address } if server_name.is_empty() => {
                client.tell(format!("You have come to {address}."));
            }
            Home::Server { .. } => client.tell(format!("You have come to {server_name}.")),
        }
        if !motd.is_empty() {
            client.tell(motd);
        }
        if !self.greeted {
            self.greeted = true;
            client.tell(introduction());
        }
    }

    /// The same trouble again, a few seconds later, is no news.
    fn is_in_trouble(&mut self, trouble: String, client: &mut Client) {
        if self.trouble.as_ref() != Some(&trouble) {
            client.tell(format!("{trouble}; trying again."));
            self.trouble = Some(trouble);
        }
    }
}

/// What one might do, from the table of keys.
fn introduction() -> String {
    let hints: Vec<_> =
        keys::hints(Where::Walk, true).map(|(key, hint)| format!("{key} {hint}")).collect();
    format!("The arrow keys walk and fight; {}.", hints.join(", "))
}

/// "Not let in: server full (come back at noon)".
pub(crate) fn join(what: &str, why: &str, text: &str) -> String {
    if text.is_empty() || text == why {
        format!("{what}: {why}")
    } else {
        format!("{what}: {why} ({text})")
    }
}

fn lost(command: &Command) -> String {
    let what = match command {
        Command::Say(text) => return format!("Lost with the connection, unsaid: {text}"),
        Command::Dig(way) => format!("digging {}", around::way(*way)),
        Command::Attack(way) => format!("a blow to the {}", around::way(*way)),
        Command::Interact(_) => "using something".to_owned(),
        Command::PickUp => "picking something up".to_owned(),
        Command::Drop { .. } => "dropping something".to_owned(),
        Command::Move(way) => format!("a step {}", around::way(*way)),
        Command::Other => "something".to_owned(),
    };
    format!("Lost with the connection: {what}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_not_told_twice() {
        assert_eq!(join("Not let in", "banned", "banned"), "Not let in: banned");
        assert_eq!(join("Not let in", "banned", ""), "Not let in: banned");
        assert_eq!(join("Not let in", "banned", "spam"), "Not let in: banned (spam)");
    }

    #[test]
    fn the_introduction_names_keys_of_the_table() {
        let text = introduction();
        for part in ["arrow keys walk", "? help", "d dig", "t talk", "q quit"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
