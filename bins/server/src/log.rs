//! Where the log goes: standard error, as text or JSON.

use std::io::{self, IsTerminal};

use caves_server::config::{LogConfig, LogFormat, LogLevel};
use tracing::level_filters::LevelFilter;

/// Starts the log.
pub(crate) fn start(config: LogConfig) {
    let log = tracing_subscriber::fmt()
        .with_max_level(filter(config.level))
        .with_target(false)
        .with_ansi(is_colourful())
        // Telling standard error that it cannot be written to would end in a panic.
        .log_internal_errors(false)
        .with_writer(io::stderr);
    match config.format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
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
