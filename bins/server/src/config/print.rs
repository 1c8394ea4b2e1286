//! A configuration as text.

use std::fmt::Write as _;

use caves_session::caves::{Ban, BanTarget, ClientEntry};

use super::keys::{self, KEYS, Value};
use super::layers::Loaded;

/// What stands where a token was. There is no value, so that nobody reads such a text and has
/// clients without their tokens.
const HIDDEN: &str = "token = # <hidden>";

/// All keys with their values and origins.
pub(super) fn effective(loaded: &Loaded) -> String {
    let Loaded { config, origins, description } = loaded;
    let mut text = format!(
        "# The configuration in effect, each value with where it comes from.\n# Read: {}\n",
        comment(description)
    );
    if config.session.clients.iter().any(|client| client.token.is_some()) {
        text += "# Tokens are hidden: this cannot be read back before they are put in again.\n";
    }
    let mut current = "";
    for key in KEYS {
        let (table, name) = key.name.split_once('.').unwrap_or((key.name, ""));
        if table != current {
            text.push('\n');
            if !name.is_empty() {
                let _ = writeln!(text, "[{table}]");
            }
            current = table;
        }
        let origin = |entry| comment(&origins.shown(key.name, entry));
        let value = match (key.value)(config) {
            Value::Clients(entries) if !entries.is_empty() => {
                for (place, entry) in entries.iter().enumerate() {
                    client(&mut text, entry, &origin(place));
                }
                continue;
            }
            Value::Bans(entries) if !entries.is_empty() => {
                for (place, entry) in entries.iter().enumerate() {
                    ban(&mut text, entry, &origin(place));
                }
                continue;
            }
            Value::Clients(_) | Value::Bans(_) => {
                let _ = writeln!(text, "# no [[{table}]]: {}", origin(0));
                continue;
            }
            Value::Unset => {
                let _ = writeln!(text, "# no {name}: {}", origin(0));
                continue;
            }
            Value::Text(value) => quoted(&value),
            Value::Number(value) => value.to_string(),
            Value::Bool(value) => value.to_string(),
            Value::List(values) => list(&values),
        };
        let _ = writeln!(text, "{name} = {value} # {}", origin(0));
    }
    text
}

/// A text as TOML.
pub(super) fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

/// A list of texts as TOML.
pub(super) fn list(texts: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let all: Vec<String> = texts.into_iter().map(|text| quoted(text.as_ref())).collect();
    format!("[{}]", all.join(", "))
}

fn client(text: &mut String, entry: &ClientEntry, origin: &str) {
    let _ = writeln!(text, "[[client]] # {origin}\nclient_type = {}", entry.client_type.0);
    if let Some(name) = &entry.name {
        let _ = writeln!(text, "name = {}", quoted(name));
    }
    let _ = writeln!(text, "allow = {}", entry.allow);
    if entry.token.is_some() {
        let _ = writeln!(text, "{HIDDEN}");
    }
    let from = list(keys::networks(&entry.from));
    let _ = writeln!(text, "from = {from}\ntags = {}", entry.tags);
}

fn ban(text: &mut String, entry: &Ban, origin: &str) {
    let target = match &entry.target {
        BanTarget::Address(network) => format!("address = {}", quoted(&network.to_string())),
        BanTarget::Name(name) => format!("name = {}", quoted(name)),
    };
    let _ = writeln!(text, "[[ban]] # {origin}\n{target}\nreason = {}", quoted(&entry.reason));
}

/// A text that stays within a comment, whatever a file is called.
fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
