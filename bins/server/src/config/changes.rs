//! What a reload changes.

use super::Config;
use super::keys::{KEYS, Reload};

/// The keys that differ between two configurations, as they are written in the file: `server.motd`.
/// `client` and `ban` stand for all their entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// They take effect while the server runs.
    pub applied: Vec<&'static str>,
    /// They wait for a restart.
    pub need_restart: Vec<&'static str>,
}

impl Changes {
    /// Whether the two configurations say the same.
    pub const fn is_empty(&self) -> bool {
        self.applied.is_empty() && self.need_restart.is_empty()
    }
}

impl Config {
    /// What is another way in `new`.
    ///
    /// ```
    /// use caves_server::Config;
    ///
    /// let old = Config::parse("config.toml", "server.open = false").unwrap();
    /// let new = Config::parse("config.toml", "server.open = true\nserver.tick_rate = 5").unwrap();
    /// let changes = old.changes(&new);
    /// assert_eq!(changes.applied, ["server.open"]);
    /// assert_eq!(changes.need_restart, ["server.tick_rate"]);
    /// let reloaded = old.reloaded(&new);
    /// assert!(reloaded.session.open);
    /// assert_eq!(reloaded.session.tick_rate, 10);
    /// ```
    pub fn changes(&self, new: &Self) -> Changes {
        let mut changes = Changes::default();
        for key in KEYS {
            if (key.value)(self) != (key.value)(new) {
                let list = match key.reload {
                    Reload::Applied => &mut changes.applied,
                    Reload::Restart(_) => &mut changes.need_restart,
                };
                list.push(key.name);
            }
        }
        changes
    }

    /// What a server that runs with this configuration has after a reload of `new`: all of `new`
    /// but the keys that need a restart.
    #[must_use]
    pub fn reloaded(&self, new: &Self) -> Self {
        let mut reloaded = new.clone();
        for key in KEYS {
            if let Reload::Restart(keep) = key.reload {
                keep(self, &mut reloaded);
            }
        }
        reloaded
    }
}
