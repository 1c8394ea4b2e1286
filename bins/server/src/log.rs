//! Where the log goes: standard error, as text or JSON.

use std::io::{self, IsTerminal};

use caves_server::config::{LogConfig, LogFormat, LogLevel};
use caves_server::control::SetLogLevel;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{fmt, reload};

/// Starts the log, and gives what changes its level.
pub(crate) fn start(config: LogConfig) -> SetLogLevel {
    let (level, handle) = reload::Layer::new(filter(config.level));
    let lines = fmt::layer()
        .with_target(false)
        .with_ansi(is_colourful())
        // Telling standard error that it cannot be written to would end in a panic.
        .log_internal_errors(false)
        .with_writer(io::stderr);
    let log = tracing_subscriber::registry().with(level);
    match config.format {
        LogFormat::Text => log.with(lines).init(),
        LogFormat::Json => log.with(lines.json().flatten_event(true)).init(),
    }
    Box::new(move |level| {
        // It fails when there is no log any more.
        let _ = handle.reload(filter(level));
    })
}

/// Colours are for terminals, and for those who did not ask for none (no-color.org).
fn is_colourful() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !refused && io::stderr().is_terminal()
}

const fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}
