//! The server that is measured, and what it says of its ticks.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;

use anyhow::{Context, Result};
use caves_benches::ground::Ground;
use caves_server::Config;

use crate::registered;

/// As the other benches' server, with metrics and a number of threads.
pub(crate) fn config(clients: usize, threads: usize, path: PathBuf) -> Result<Config> {
    let mut config = registered::config(Ground::full(clients), path)?;
    config.metrics = Some(([127, 0, 0, 1], 0).into());
    config.threads = threads;
    Ok(config)
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
