//! The layers of a configuration: the defaults, the file, the environment, the command line.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::check::Draft;
use super::error::{ConfigError, Source};
use super::keys::{self, Key, Kind};
use super::origins::Origins;
use super::{Config, print};

/// What is read where no file is named.
const DEFAULT_FILE: &str = "config.toml";
/// What a variable of ours begins with, whatever its case.
const PREFIX: &str = "CAVES__";
/// What stands for the dot of a key, because a shell takes no dot in a name.
const SEPARATOR: &str = "__";

/// Where a configuration is read from, at the start and at each reload. What was said at the start,
/// by the environment and the command line, is said again then; the file is read anew.
///
/// Later layers go over earlier ones, key by key. A list of `[[client]]` or `[[ban]]` is one key:
/// all its entries come from the last layer that has any.
///
/// ```
/// use caves_server::config::ConfigSource;
///
/// let source = ConfigSource::new(None)
///     .with_env([("CAVES__SERVER__NAME".into(), "My caves".into())])
///     .unwrap()
///     .with_set("server.max_players", "20")
///     .unwrap();
/// let loaded = source.load().unwrap();
/// assert_eq!(loaded.config.session.name, "My caves");
/// assert_eq!(loaded.config.session.max_players, 20);
/// let origin = loaded.origins.of("server.name").unwrap();
/// assert_eq!(origin.to_string(), "environment CAVES__SERVER__NAME");
/// ```
#[derive(Debug, Clone)]
pub struct ConfigSource {
    path: Option<PathBuf>,
    settings: Vec<Setting>,
}

/// A configuration that was read.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// What it says.
    pub config: Config,
    /// Where each value comes from.
    pub origins: Origins,
    /// All places that say something, for a line of the log.
    pub description: String,
}

impl Loaded {
    /// The whole configuration as TOML, each value with a comment that says where it comes from.
    /// Reading it gives the same configuration, unless clients have tokens: those are hidden, and
    /// until they are put in, the text is refused.
    pub fn effective(&self) -> String {
        print::effective(self)
    }
}

impl ConfigSource {
    /// A file and nothing else; if none is named, `config.toml` of the working directory, which
    /// need not be there.
    pub const fn new(path: Option<PathBuf>) -> Self {
        Self { path, settings: Vec::new() }
    }

    /// Adds the variables that begin with `CAVES__`: `CAVES__SERVER__MAX_PLAYERS` is
    /// `server.max_players`. Others are ignored.
    ///
    /// # Errors
    /// Such a variable names no key, or one that another names too, or is not UTF-8.
    pub fn with_env(
        mut self,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, ConfigError> {
        let mut ours: Vec<_> = variables.into_iter().filter(|(name, _)| is_ours(name)).collect();
        // The order of an environment means nothing; that of complaints should not change.
        ours.sort();
        let mut seen: Vec<(&'static str, String)> = Vec::new();
        for (name, value) in ours {
            let origin = format!("environment {}", name.to_string_lossy());
            let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else {
                return Err(ConfigError::NotText { origin });
            };
            let key = name[PREFIX.len()..].to_ascii_lowercase().replace(SEPARATOR, ".");
            let setting = Setting::new(origin, &key, value)?;
            if let Some((_, first)) = seen.iter().find(|(key, _)| *key == setting.key) {
                let (key, first) = (setting.key.to_owned(), first.clone());
                return Err(ConfigError::Twice { origin: setting.origin, key, first });
            }
            seen.push((setting.key, name.to_owned()));
            self.settings.push(setting);
        }
        Ok(self)
    }

    /// Adds one value, as `--set KEY=VALUE` does.
    ///
    /// # Errors
    /// There is no such key.
    pub fn with_set(self, key: &str, value: &str) -> Result<Self, ConfigError> {
        self.with_value(&format!("--set {key}"), key, value)
    }

    /// Adds one value from somewhere else; errors name `origin`.
    ///
    /// # Errors
    /// There is no such key.
    pub fn with_value(mut self, origin: &str, key: &str, value: &str) -> Result<Self, ConfigError> {
        self.settings.push(Setting::new(origin.to_owned(), key, value)?);
        Ok(self)
    }

    /// Reads the file and puts the layers together. Nothing is kept from an earlier time, so a
    /// running server can call this again.
    ///
    /// # Errors
    /// The file cannot be read, or a layer says something that cannot be. The first such place is
    /// shown.
    pub fn load(&self) -> Result<Loaded, ConfigError> {
        let mut draft = Draft::new();
        let mut origins = Origins::default();
        let mut description = format!("defaults, there is no {DEFAULT_FILE}");
        if let Some((name, text)) = self.file()? {
            Source::file(&name, &text).put(&mut draft, &mut origins)?;
            description = name;
        }
        for setting in &self.settings {
            Source::setting(&setting.origin, &setting.text).put(&mut draft, &mut origins)?;
            description += ", ";
            description += &setting.origin;
        }
        Ok(Loaded { config: draft.finish(), origins, description })
    }

    /// The file's name and text, if there is one.
    fn file(&self) -> Result<Option<(String, String)>, ConfigError> {
        let path = self.path.as_deref().unwrap_or(Path::new(DEFAULT_FILE));
        let name = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Ok(Some((name, text))),
            // What is there and cannot be read is an error, named or not.
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.path.is_none() => {
                Ok(None)
            }
            Err(error) => Err(ConfigError::Unreadable { file: name, reason: error.to_string() }),
        }
    }
}

impl Source<'_> {
    /// Puts this layer over the earlier ones.
    pub(super) fn put(self, draft: &mut Draft, origins: &mut Origins) -> Result<(), ConfigError> {
        let said = toml::from_str(self.text).map_err(|error| self.parse_error(error))?;
        draft.apply(self, said)?;
        origins.record(self);
        Ok(())
    }
}

/// One value of a layer that is no file.
#[derive(Clone)]
struct Setting {
    origin: String,
    key: &'static str,
    /// A line of TOML.
    text: String,
}

impl Setting {
    fn new(origin: String, key: &str, value: &str) -> Result<Self, ConfigError> {
        match keys::find(key) {
            Some(Key { name, kind, .. }) => Ok(Self {
                origin,
                key: name,
                text: format!("{name} = {}\n", in_toml(*kind, value)),
            }),
            None => Err(ConfigError::NoSuchKey { origin, key: key.to_owned() }),
        }
    }
}

impl fmt::Debug for Setting {
    /// Without the value: it may hold a token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Setting").field(&self.origin).finish()
    }
}

fn is_ours(name: &OsString) -> bool {
    let name = name.as_encoded_bytes();
    name.get(..PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(PREFIX.as_bytes()))
}

/// The value as TOML. What is TOML of the right kind stays as it is.
fn in_toml(kind: Kind, value: &str) -> String {
    match (kind, alone(value)) {
        (Kind::Text, Some(toml::Value::String(_)))
        | (Kind::List, Some(toml::Value::Array(_)))
        | (Kind::Toml, Some(_)) => value.trim().to_owned(),
        (Kind::List, Some(toml::Value::String(list))) => print::list(split(&list)),
        (Kind::List, _) => print::list(split(value)),
        (Kind::Text, _) | (Kind::Toml, None) => print::quoted(value),
    }
}

/// Reads a value, which must not be more than one: what follows it in lines of its own would set
/// other keys.
fn alone(value: &str) -> Option<toml::Value> {
    let mut table: toml::Table = toml::from_str(&format!("x = {}", value.trim())).ok()?;
    let value = table.remove("x");
    value.filter(|_| table.is_empty())
}

/// The texts between commas; nothing between two is nothing.
fn split(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|text| !text.is_empty())
}
