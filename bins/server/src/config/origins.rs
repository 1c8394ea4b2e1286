//! Where each value comes from.

use std::collections::BTreeMap;
use std::fmt;

use toml::de::{DeTable, DeValue};

use super::error::Source;
use super::keys::KEYS;

/// Where the values of a configuration come from, by key. The last layer that says something about
/// a key is its origin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origins(BTreeMap<&'static str, Origin>);

/// Where one value comes from; shown as `config.toml:12`, or `environment CAVES__SERVER__NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    source: String,
    /// In a file: the key's line, or one for each entry of `[[client]]` or `[[ban]]`.
    lines: Vec<usize>,
}

impl Origins {
    /// Where the value of a key such as `server.listen` comes from; `None` is the default. For
    /// `client` and `ban` it is the place of the first entry.
    pub fn of(&self, key: &str) -> Option<&Origin> {
        self.0.get(key)
    }

    /// The same as a text, with `default` for nothing; `entry` counts the entries of a list of
    /// tables and is 0 elsewhere.
    pub(super) fn shown(&self, key: &str, entry: usize) -> String {
        self.of(key).map_or_else(|| "default".to_owned(), |origin| origin.at(entry))
    }

    /// Notes what a layer says. Its text has been read as TOML before.
    pub(super) fn record(&mut self, source: Source<'_>) {
        let Ok(table) = DeTable::parse(source.text) else { return };
        for key in KEYS {
            let places = places(table.get_ref(), key.name);
            if let Some(places) = places {
                let line = |at: &usize| source.text[..*at].matches('\n').count() + 1;
                let lines = match source.is_file {
                    true => places.iter().map(line).collect(),
                    false => Vec::new(),
                };
                self.0.insert(key.name, Origin { source: source.name.to_owned(), lines });
            }
        }
    }
}

impl Origin {
    fn at(&self, entry: usize) -> String {
        match self.lines.get(entry).or(self.lines.first()) {
            Some(line) => format!("{}:{line}", self.source),
            None => self.source.clone(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.at(0))
    }
}

/// Where a key stands, in bytes: once, or for each entry of a list of tables. `None` if the layer
/// does not say it.
fn places(table: &DeTable<'_>, key: &str) -> Option<Vec<usize>> {
    let Some((outer, inner)) = key.split_once('.') else {
        let (at, value) = table.get_key_value(key)?;
        return Some(match value.get_ref() {
            DeValue::Array(entries) if !entries.is_empty() => {
                entries.iter().map(|entry| entry.span().start).collect()
            }
            _ => vec![at.span().start],
        });
    };
    let DeValue::Table(table) = table.get(outer)?.get_ref() else { return None };
    let (at, _) = table.get_key_value(inner)?;
    Some(vec![at.span().start])
}
