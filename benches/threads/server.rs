//! The server that is measured, and what it says of its ticks.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use caves_benches::ground::{self, Ground};
use caves_server::config::StoreConfig;
use caves_server::{Config, store};
use caves_session::caves::ClientEntry;
use caves_wire::caves::{ClientType, Token};
use caves_world::GENERATOR_VERSION;

pub(crate) fn token(client: usize) -> Token {
    Token((1 << 32) + client as u64)
}

/// Everybody may join, and stands where a view is full; saving comes once an hour, which is after the end.
pub(crate) fn config(clients: usize, threads: usize, path: PathBuf) -> Result<Config> {
    store::import(&mut Ground::full(clients).lines(GENERATOR_VERSION).as_bytes(), &path)?;
    let mut config = Config::solo();
    config.store = StoreConfig::File(path);
    config.save_interval = Duration::from_secs(3600);
    config.session.max_players = clients;
    config.session.clients = (0..clients).map(entry).collect();
    config.metrics = Some(([127, 0, 0, 1], 0).into());
    config.threads = threads;
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

/// How many ticks there were, and seconds that all of them took.
pub(crate) fn ticks(metrics: SocketAddr) -> Result<(u64, f64)> {
    let mut stream = TcpStream::connect(metrics)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.with_context(|| format!("no {name}"))
    };
    let count = value("caves_tick_duration_seconds_count")?.trim().parse()?;
    Ok((count, value("caves_tick_duration_seconds_sum")?.trim().parse()?))
}
