//! The terminal client of Forgotten Caves: a socket, a keyboard and a screen around `caves-game`.
//!
//! ```text
//!  >  datagram          run, net: the socket and the clock     keyboard: term, input
//!     wire              bytes to views and back                    |
//!     session           who is talking, what was lost              v
//!     game              Client and Mirror      <---   app: what keys do (keys: the table)
//!                          |
//!                          v
//!                       screen: from what is known to cells
//! ```
//!
//! `run` is the loop. `app` and `screen` know neither terminal nor clock, and are tested as text.
//! Who plays alone has a server in a thread (`solo`), and joins it over a real socket.

mod address;
mod app;
mod args;
mod around;
mod glyphs;
mod info;
mod input;
mod keys;
mod line;
mod net;
mod run;
mod screen;
mod solo;
mod term;
#[cfg(test)]
mod testing;
mod text;
mod theme;

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use caves_server::OsRandom;
use caves_session::caves::{ClientConfig, ClientEnd};
use clap::Parser;

use address::Address;
use app::Home;
use args::Args;
use run::{Ending, Game};
use solo::Solo;
use theme::Theme;

fn main() -> ExitCode {
    match start(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // Where standard error is gone there is nobody to tell.
            let _ = writeln!(io::stderr(), "caves: {}", failure.text());
            ExitCode::from(failure.status())
        }
    }
}

/// Why the program ends other than by the player's wish.
enum Failure {
    /// It cannot be used like this.
    Usage(String),
    /// Something went wrong.
    Running(anyhow::Error),
}

impl Failure {
    const fn status(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Running(_) => 1,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Usage(text) => text.clone(),
            Self::Running(error) => format!("{error:#}"),
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Running(error)
    }
}

fn start(args: &Args) -> Result<(), Failure> {
    if let Some(server) = &args.info {
        return Ok(print_info(&parse(server)?)?);
    }
    let server = args.connect.as_deref().map(parse).transpose()?;
    if !term::is_there() {
        let text = "this is a game for a terminal: standard input and output have to be one";
        return Err(Failure::Usage(text.to_owned()));
    }
    let theme = Theme::detect(args.ascii, |name| std::env::var(name).ok());
    match server {
        Some(server) => Ok(play_there(&server, args.client_config(), theme)?),
        None => Ok(play_alone(args, theme)?),
    }
}

fn parse(server: &str) -> Result<Address, Failure> {
    Address::parse(server).ok_or_else(|| {
        Failure::Usage(format!("{server:?} is no server: HOST or HOST:PORT is expected"))
    })
}

fn print_info(server: &Address) -> anyhow::Result<()> {
    let addrs = server.resolve().with_context(|| format!("cannot find {server}"))?;
    let mut random = OsRandom::new().context("no random numbers from the operating system")?;
    let answer = info::ask(&addrs, &mut random);
    let answer = answer.with_context(|| format!("nobody answers at {server}"))?;
    info::write(&mut io::stdout().lock(), &answer).context("cannot write to standard output")
}

fn play_there(server: &Address, config: ClientConfig, theme: Theme) -> anyhow::Result<()> {
    let servers = server.resolve().with_context(|| format!("cannot find {server}"))?;
    let home = Home::Server { address: server.to_string() };
    outcome(run::play(Game { home, servers, config, theme }, None)?)
}

fn play_alone(args: &Args, theme: Theme) -> anyhow::Result<()> {
    let mut config = args.client_config();
    let solo = match &args.keep {
        None => Solo::start()?,
        Some(file) => {
            let usual = || solo::kept_path(|name| std::env::var(name).ok());
            let path = file.clone().or_else(usual);
            let path = path.context("there is no home to keep a world in: name a --keep=FILE")?;
            Solo::start_kept(&path, &mut config)?
        }
    };
    let home = Home::Alone { seed: solo.seed(), is_kept: args.keep.is_some() };
    let game = Game { home, servers: vec![solo.addr()], config, theme };
    let ending = run::play(game, Some(&solo))?;
    let stopped = solo.stop();
    match term::take_crash() {
        Some(crash) => Err(anyhow!("the server inside crashed: {crash}")),
        None => stopped.and_then(|()| outcome(ending)),
    }
}

/// An ending in words, unless the player wanted it.
fn outcome(ending: Ending) -> anyhow::Result<()> {
    match ending {
        Ending::Quit | Ending::Session { end: ClientEnd::Quit, .. } => Ok(()),
        Ending::Session { end: ClientEnd::Refused { reason, version, text }, .. } => {
            let hint = if reason == caves_wire::caves::RefuseReason::VERSION {
                format!(", the server speaks version {version}")
            } else {
                String::new()
            };
            Err(anyhow!("{}{hint}", app::refusal("not let in", &reason.to_string(), &text)))
        }
        Ending::Session { end: ClientEnd::Left(reason), notice } => {
            let notice = notice.unwrap_or_default();
            let what = "the server ended the session";
            Err(anyhow!("{}", app::refusal(what, &reason.to_string(), &notice)))
        }
        Ending::TerminalGone => Err(anyhow!("the terminal is gone")),
        Ending::ServerOver => Err(anyhow!("the server inside ended by itself")),
    }
}
