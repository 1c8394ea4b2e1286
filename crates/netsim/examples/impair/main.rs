//! Puts a bad line between real UDP sockets: `impair --to 127.0.0.1:4000 --loss 20 --delay 75`.
//!
//! The first line on standard output is `impair listening ADDRESS:PORT`, so that a script can ask
//! for any free port. At the end comes a line for each direction.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "its purpose is IO")]
#![allow(clippy::print_stderr, reason = "errors are for the user")]

mod args;
mod proxy;

use args::{Options, Request};
use caves_netsim::Stats;
use proxy::{Proxy, ProxyConfig};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How often the end is looked for.
const LOOK: Duration = Duration::from_millis(20);

fn main() -> ExitCode {
    match args::parse(std::env::args().skip(1)) {
        Ok(Request::Help) => say(args::HELP),
        Ok(Request::Run(options)) => match run(&options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("impair: {error}");
                ExitCode::FAILURE
            }
        },
        Err(error) => {
            eprintln!("impair: {error}\nTry --help.");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> io::Result<()> {
    let config = ProxyConfig { up: options.up, down: options.down, seed: options.seed };
    let end = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&end))?;
    }
    let proxy = Proxy::start(options.listen, options.to, config).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot listen on {}: {error}", options.listen))
    })?;
    say(&format!("impair listening {}\n", proxy.local_addr()));
    if options.until_eof {
        end_with_input(Arc::clone(&end));
    }
    wait(&end, options.seconds.map(Duration::from_secs));
    let (up, down) = proxy.stop();
    say(&format!("{}{}", line("up", up), line("down", down)));
    Ok(())
}

fn wait(end: &AtomicBool, limit: Option<Duration>) {
    let start = Instant::now();
    while !end.load(Ordering::Relaxed) && limit.is_none_or(|limit| start.elapsed() < limit) {
        thread::sleep(LOOK);
    }
}

/// Raises the flag when standard input is closed; the thread ends with the program.
fn end_with_input(end: Arc<AtomicBool>) {
    thread::spawn(move || {
        let mut input = io::stdin().lock();
        let mut ignored = [0; 1024];
        loop {
            match input.read(&mut ignored) {
                Ok(0) => break,
                Err(error) if error.kind() != io::ErrorKind::Interrupted => break,
                _ => {}
            }
        }
        end.store(true, Ordering::Relaxed);
    });
}

fn line(direction: &str, stats: Stats) -> String {
    let Stats { sent, lost, duplicated, reordered, too_big, queue_full, delivered, corrupted } =
        stats;
    format!(
        "{direction:<4} received {sent} lost {lost} duplicated {duplicated} reordered {reordered} \
         corrupted {corrupted} too-big {too_big} queue-full {queue_full} delivered {delivered}\n"
    )
}

/// Writes and flushes; a reader that went away is no reason to panic.
fn say(text: &str) -> ExitCode {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
