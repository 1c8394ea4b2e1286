//! A server inside this process, for one player.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use anyhow::Context;
use caves_server::config::StoreConfig;
use caves_server::{Config, OsRandom, RunError, Server, StopHandle, Summary};
use caves_session::Random;
use caves_session::caves::{ClientConfig, ClientEntry};
use caves_wire::caves::Token;

/// Where a kept world is, below the user's data.
const KEPT: &str = "forgotten-caves/world.redb";
/// Whose place and things are kept, unless the player has another name.
const NAME: &str = "you";

/// A server that runs in a thread until this is dropped.
#[derive(Debug)]
pub(crate) struct Solo {
    addr: SocketAddr,
    seed: u64,
    stop: StopHandle,
    thread: Option<JoinHandle<Result<Summary, RunError>>>,
}

impl Solo {
    /// Starts one on a free port of the loopback, with a world that is forgotten.
    pub(crate) fn start() -> anyhow::Result<Self> {
        Self::run(&Config::solo())
    }

    /// Starts one whose world is kept in a file; its player is known by name from one time to the
    /// next, and is given the token that says so.
    pub(crate) fn start_kept(path: &Path, player: &mut ClientConfig) -> anyhow::Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("cannot make {}", folder.display()))?;
        }
        let mut random = OsRandom::new().context("no random numbers from the operating system")?;
        // Below 2^32 it would be no registered token; it is of use to this process alone.
        let token = Token(random.next_u64() | 1 << 63);
        let mut config = Config::solo();
        config.session.clients = vec![ClientEntry {
            client_type: player.client_type,
            name: Some(player.name.take().unwrap_or_else(|| NAME.to_owned())),
            allow: true,
            token: Some(token),
            from: config.session.strangers.exempt.clone(),
            tags: true,
        }];
        config.store = StoreConfig::File(path.to_owned());
        player.token = Some(token);
        Self::run(&config)
    }

    fn run(config: &Config) -> anyhow::Result<Self> {
        let server = Server::bind(config).context("the server inside did not start")?;
        let addr = *server.local_addrs().first().context("the server inside has no address")?;
        let (seed, stop) = (server.seed(), server.handle());
        let thread = std::thread::Builder::new()
            .name("server".to_owned())
            .spawn(move || server.run())
            .context("the server inside did not start")?;
        Ok(Self { addr, seed, stop, thread: Some(thread) })
    }

    pub(crate) const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What its world is generated from.
    pub(crate) const fn seed(&self) -> u64 {
        self.seed
    }

    /// Whether it ended, which it should not before it is asked to.
    pub(crate) fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Stops it and waits for its end.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        self.stop.stop();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(Err(error))) => Err(error).context("the server inside failed"),
            // Its message is kept by the panic hook.
            Some(Err(_)) => anyhow::bail!("the server inside crashed"),
            Some(Ok(Ok(_))) | None => Ok(()),
        }
    }
}

/// Where a world is kept if nothing else is said; `None` without a home.
pub(crate) fn kept_path(env: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = |name| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // A relative path in it is to be ignored (XDG Base Directory Specification).
    let data = set("XDG_DATA_HOME").filter(|path| path.is_absolute());
    let data = data.or_else(|| set("HOME").map(|home| home.join(".local/share")))?;
    Some(data.join(KEPT))
}

impl Drop for Solo {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_world_is_the_same_one_again_and_nobody_else_has_it() {
        let folder = tempfile();
        let path = folder.join("below/world.redb");
        let mut player = ClientConfig::default();
        let one = Solo::start_kept(&path, &mut player).unwrap();
        assert!(player.token.is_some());
        let error = Solo::start_kept(&path, &mut ClientConfig::default()).unwrap_err();
        assert!(format!("{error:#}").contains("is in use by another process"), "{error:#}");
        let seed = one.seed();
        one.stop().unwrap();
        let again = Solo::start_kept(&path, &mut ClientConfig::default()).unwrap();
        assert_eq!(again.seed(), seed);
        again.stop().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }

    fn tempfile() -> PathBuf {
        let path = std::env::temp_dir().join(format!("caves-solo-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        path
    }

    #[test]
    fn a_world_is_kept_below_the_users_data() {
        let path = |vars: &[(&str, &str)]| {
            let vars = vars.to_vec();
            kept_path(|name| {
                vars.iter().find(|(of, _)| *of == name).map(|(_, value)| (*value).to_owned())
            })
        };
        let expected = |text: &str| Some(PathBuf::from(text));
        let home = ("HOME", "/home/ada");
        let below_home = "/home/ada/.local/share/forgotten-caves/world.redb";
        assert_eq!(path(&[home]), expected(below_home));
        assert_eq!(path(&[home, ("XDG_DATA_HOME", "")]), expected(below_home));
        assert_eq!(path(&[home, ("XDG_DATA_HOME", "data")]), expected(below_home));
        let data = ("XDG_DATA_HOME", "/data");
        assert_eq!(path(&[home, data]), expected("/data/forgotten-caves/world.redb"));
        assert_eq!(path(&[]), None);
    }

    #[test]
    fn two_of_them_run_side_by_side_and_stop() {
        let (one, two) = (Solo::start().unwrap(), Solo::start().unwrap());
        assert!(one.addr().ip().is_loopback());
        assert_ne!(one.addr().port(), two.addr().port());
        assert_ne!(one.seed(), two.seed(), "drawn at random, equal once in 2^64");
        assert!(!one.is_over() && !two.is_over());
        one.stop().unwrap();
        assert!(!two.is_over());
        two.stop().unwrap();
    }
}
