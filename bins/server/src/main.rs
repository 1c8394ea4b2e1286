//! The server's program: arguments, configuration, sockets, and then the loop.

mod args;
mod inherit;
mod log;

use std::io::{self, Write};
use std::process::ExitCode;

use args::Args;
use caves_server::{BindError, Config, ConfigError, Notifier, OsRandom, RunError, Server, report};
use caves_session::Random;
use clap::Parser;

/// Registered tokens are at least this large, so that nobody guesses one.
const MIN_TOKEN: u64 = 1 << 32;

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Where standard error is gone there is nobody to tell.
            let _ = writeln!(io::stderr(), "caves-server: {failure}");
            ExitCode::from(failure.status())
        }
    }
}

fn run(args: &Args) -> Result<(), Failure> {
    if args.instead.print_config {
        return print(Config::TEMPLATE);
    }
    if args.instead.new_token {
        return print(&format!("{:#018x}\n", new_token()?));
    }
    let (mut config, source) = args.read_config()?;
    if args.instead.check_config {
        return print(&format!("configuration is valid: {source}\n"));
    }
    config.log.level = args.log_level.unwrap_or(config.log.level);
    serve(&config, &source)
}

fn serve(config: &Config, source: &str) -> Result<(), Failure> {
    let passed = inherit::sockets()?;
    let sockets_from = if passed.is_empty() { "configuration" } else { "service manager" };
    let server = Server::bind_to(config, passed)?.with_signals().map_err(Failure::Signals)?;
    announce(&server);
    log::start(config.log);
    let server = server.with_notifier(notifier());
    report::started(&server, config, source, sockets_from);
    report::stopped(&server.run()?);
    Ok(())
}

/// A service manager that cannot be reached will notice by itself: players are served all the same.
fn notifier() -> Notifier {
    Notifier::from_env().unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot speak to the service manager (NOTIFY_SOCKET)");
        Notifier::none()
    })
}

/// Tells whoever started this where the server is.
fn announce(server: &Server) {
    let mut out = io::stdout().lock();
    for addr in server.local_addrs() {
        // A reader that has read enough and went is no reason to stop.
        let _ = writeln!(out, "listening udp {addr}");
    }
    if let Some(addr) = server.metrics_addr() {
        let _ = writeln!(out, "listening metrics {addr}");
    }
    let _ = out.flush();
}

fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::Output)
}

fn new_token() -> Result<u64, Failure> {
    let mut random = OsRandom::new().map_err(BindError::Random)?;
    loop {
        let token = random.next_u64();
        if token >= MIN_TOKEN {
            return Ok(token);
        }
    }
}

/// Why the program ends other than by a signal.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error(transparent)]
    Inherit(#[from] inherit::WrongSocket),
    #[error("cannot wait for signals: {0}")]
    Signals(io::Error),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
}

impl Failure {
    const fn status(&self) -> u8 {
        match self {
            Self::Config(_) => 2,
            _ => 1,
        }
    }
}
