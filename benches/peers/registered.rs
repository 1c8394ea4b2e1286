//! A server of this workspace for clients that are registered, and stand where the ground says.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use caves_benches::ground::{self, Ground};
use caves_server::config::StoreConfig;
use caves_server::{Config, store};
use caves_session::caves::ClientEntry;
use caves_wire::caves::{ClientType, Token};
use caves_world::GENERATOR_VERSION;

pub(crate) fn token(client: usize) -> Token {
    Token((1 << 32) + client as u64)
}

/// Makes the world's store at `path`. Everybody may join; saving comes once an hour, which is after the end.
pub(crate) fn config(ground: Ground, path: PathBuf) -> Result<Config> {
    store::import(&mut ground.lines(GENERATOR_VERSION).as_bytes(), &path)?;
    let mut config = Config::solo();
    config.store = StoreConfig::File(path);
    config.save_interval = Duration::from_secs(3600);
    config.session.max_players = ground.clients;
    config.session.clients = (0..ground.clients).map(entry).collect();
    Ok(config)
}

fn entry(client: usize) -> ClientEntry {
    ClientEntry {
        client_type: ClientType::OFFICIAL,
        name: Some(ground::name(client)),
        allow: true,
        token: Some(token(client)),
        from: Vec::new(),
        tags: true,
    }
}
