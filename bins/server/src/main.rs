//! The server's program: arguments, configuration, sockets, and then the loop.

mod args;
mod carry;
mod inherit;
mod log;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use args::{Args, Command};
use caves_server::config::{ConfigSource, Loaded, StoreConfig};
use caves_server::store::Options;
use caves_server::{BindError, Config, ConfigError, Notifier, OsRandom, RunError, Server, report};
use caves_session::Random;

/// Registered tokens are at least this large, so that nobody guesses one.
const MIN_TOKEN: u64 = 1 << 32;

fn main() -> ExitCode {
    match run(&Args::read()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Where standard error is gone there is nobody to tell.
            let _ = writeln!(io::stderr(), "caves-server: {failure}");
            ExitCode::from(failure.status())
        }
    }
}

fn run(args: &Args) -> Result<(), Failure> {
    if args.mode.print_config {
        return print(Config::TEMPLATE);
    }
    if args.mode.new_token {
        return print(&format!("{:#018x}\n", new_token()?));
    }
    // The environment is read once: a reload asks the same source again.
    let source = args.source(std::env::vars_os())?;
    let loaded = source.load()?;
    if args.mode.check_config {
        return print(&format!("configuration is valid: {}\n", loaded.description));
    }
    if args.mode.print_effective {
        return print(&loaded.effective());
    }
    match &args.command {
        Some(command) => without_a_server(command, &loaded.config),
        None => serve(source, &loaded, args.mode.repair),
    }
}

fn serve(source: ConfigSource, loaded: &Loaded, repair: bool) -> Result<(), Failure> {
    let Loaded { config, description, .. } = loaded;
    if repair && config.store == StoreConfig::Memory {
        return Err(Failure::NothingKept { verb: "repair" });
    }
    let passed = inherit::sockets()?;
    let sockets = if passed.is_empty() { "configuration" } else { "service manager" };
    let set_log_level = log::start(config.log);
    let reload = Box::new(move || source.load().map(|loaded| loaded.config));
    let server = Server::bind_to(config, passed, Options { repair })?;
    let server = server.with_signals().map_err(Failure::Signals)?.with_notifier(notifier());
    let server = server.with_operator(Some(reload), Some(set_log_level));
    announce(&server);
    report::started(&server, config, description, sockets);
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

/// Carries the configured store elsewhere, or makes it.
fn without_a_server(command: &Command, config: &Config) -> Result<(), Failure> {
    match command {
        Command::Export { file, .. } => carry::export(store_of(config, "export")?, file)?,
        Command::Import { file, .. } => carry::import(file, store_of(config, "import")?)?,
    }
    Ok(())
}

fn store_of<'c>(config: &'c Config, verb: &'static str) -> Result<&'c Path, Failure> {
    match &config.store {
        StoreConfig::Memory => Err(Failure::NothingKept { verb }),
        StoreConfig::File(path) => Ok(path),
    }
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
    #[error("cannot {verb}: world.store is \"memory\", which keeps nothing")]
    NothingKept { verb: &'static str },
    #[error(transparent)]
    Carry(#[from] carry::CarryError),
}

impl Failure {
    const fn status(&self) -> u8 {
        match self {
            Self::Config(_) | Self::NothingKept { .. } => 2,
            _ => 1,
        }
    }
}
