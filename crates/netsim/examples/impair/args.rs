//! The command line of `impair`.

#![allow(dead_code, unreachable_pub, reason = "each program that takes this file in uses a part")]

use caves_netsim::{Burst, Chance, LinkConfig};
use std::net::{SocketAddr, ToSocketAddrs};
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

/// What `--help` says.
pub const HELP: &str = "\
Passes UDP datagrams on as a bad line would, and counts what it did.

usage: impair --to HOST:PORT [options]

  --listen ADDRESS:PORT  where clients connect (default 127.0.0.1:0, any free port)
  --to HOST:PORT         the server

Each direction gets:
  --loss P               percent lost (as all percentages: 0 to 100, two decimals)
  --up-loss P            the same from clients to the server only
  --down-loss P          the same from the server to clients only
  --burst N              losses come in runs of N datagrams on average
  --duplicate P          percent that arrive twice
  --delay MS             milliseconds that each datagram takes
  --jitter MS            up to so many milliseconds more
  --reorder P            percent held back, so that later ones pass them
  --reorder-by MS        how long they are held back (default 50)
  --corrupt P            percent with flipped bits
  --rate BYTES           bytes per second and client
  --mtu BYTES            the largest datagram that passes

  --seed N               chances follow from it (default 1)
  --seconds N            end after so long; without it, with Ctrl-C
  --until-eof            end when standard input is closed
  --help                 this text
";

/// [`LinkConfig::reorder_by`] without `--reorder-by`.
const REORDER_BY: Duration = Duration::from_millis(50);

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Show [`HELP`].
    Help,
    /// Run the proxy.
    Run(Box<Options>),
}

/// How the proxy is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where clients connect.
    pub listen: SocketAddr,
    /// The server.
    pub to: SocketAddr,
    /// From clients to the server.
    pub up: LinkConfig,
    /// From the server to clients.
    pub down: LinkConfig,
    /// The seed of all chances.
    pub seed: u64,
    /// How long to run, `None` for until it is stopped.
    pub seconds: Option<u64>,
    /// Whether the end of standard input stops it.
    pub until_eof: bool,
}

/// Reads the words after the program's name.
///
/// # Errors
///
/// A sentence for the user that names the option.
pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Request, String> {
    let mut draft = Draft::default();
    let mut words = words.into_iter();
    while let Some(option) = words.next() {
        match option.as_str() {
            "--help" | "-h" => return Ok(Request::Help),
            "--until-eof" => draft.until_eof = true,
            _ => {
                // Tells an unknown option before it asks for its value.
                let field = draft.field(&option)?;
                let value = words.next().ok_or_else(|| format!("{option} needs a value"))?;
                field(&mut draft, &value).map_err(|error| format!("{option} {value}: {error}"))?;
            }
        }
    }
    draft.finish().map(|options| Request::Run(Box::new(options)))
}

/// The options as far as they were read.
#[derive(Default)]
struct Draft {
    listen: Option<SocketAddr>,
    to: Option<SocketAddr>,
    link: LinkConfig,
    up_loss: Option<Chance>,
    down_loss: Option<Chance>,
    burst: Option<u32>,
    reorder_by: Option<Duration>,
    seed: Option<u64>,
    seconds: Option<u64>,
    until_eof: bool,
}

type Field = fn(&mut Draft, &str) -> Result<(), String>;

impl Draft {
    fn field(&self, option: &str) -> Result<Field, String> {
        Ok(match option {
            "--listen" => |d, v| put(&mut d.listen, address(v)?),
            "--to" => |d, v| put(&mut d.to, address(v)?),
            "--loss" => |d, v| set(&mut d.link.loss, percentage(v)?),
            "--up-loss" => |d, v| put(&mut d.up_loss, percentage(v)?),
            "--down-loss" => |d, v| put(&mut d.down_loss, percentage(v)?),
            "--burst" => |d, v| put(&mut d.burst, positive(v)?.get()),
            "--duplicate" => |d, v| set(&mut d.link.duplicate, percentage(v)?),
            "--delay" => |d, v| set(&mut d.link.delay, millis(v)?),
            "--jitter" => |d, v| set(&mut d.link.jitter, millis(v)?),
            "--reorder" => |d, v| set(&mut d.link.reorder, percentage(v)?),
            "--reorder-by" => |d, v| put(&mut d.reorder_by, millis(v)?),
            "--corrupt" => |d, v| set(&mut d.link.corrupt, percentage(v)?),
            "--rate" => |d, v| put(&mut d.link.rate, positive(v)?),
            "--mtu" => |d, v| put(&mut d.link.mtu, number(v)?),
            "--seed" => |d, v| put(&mut d.seed, number(v)?),
            "--seconds" => |d, v| put(&mut d.seconds, number(v)?),
            _ => return Err(format!("{option} is not an option")),
        })
    }

    fn finish(self) -> Result<Options, String> {
        let to = self.to.ok_or("--to HOST:PORT is missing")?;
        if to.port() == 0 {
            return Err("--to: port 0 is no server".into());
        }
        let reorder_by = self.reorder_by.unwrap_or(REORDER_BY);
        let link = LinkConfig { reorder_by, ..self.link };
        Ok(Options {
            listen: self.listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0))),
            to,
            up: with_loss(link, self.up_loss, self.burst),
            down: with_loss(link, self.down_loss, self.burst),
            seed: self.seed.unwrap_or(1),
            seconds: self.seconds,
            until_eof: self.until_eof,
        })
    }
}

/// One direction's loss, in runs if asked for.
fn with_loss(link: LinkConfig, own: Option<Chance>, burst: Option<u32>) -> LinkConfig {
    let loss = own.unwrap_or(link.loss);
    match burst {
        Some(run) => {
            LinkConfig { loss: Chance::NEVER, burst: Some(Burst::lasting(loss, run)), ..link }
        }
        None => LinkConfig { loss, ..link },
    }
}

fn set<T>(field: &mut T, value: T) -> Result<(), String> {
    *field = value;
    Ok(())
}

fn put<T>(field: &mut Option<T>, value: T) -> Result<(), String> {
    set(field, Some(value))
}

fn percentage(text: &str) -> Result<Chance, String> {
    text.parse().map_err(|error: caves_netsim::config::ParseChanceError| error.to_string())
}

fn millis(text: &str) -> Result<Duration, String> {
    number(text).map(Duration::from_millis)
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "expected a whole number".to_string())
}

fn positive(text: &str) -> Result<NonZeroU32, String> {
    text.parse().map_err(|_| "expected a whole number from 1 on".to_string())
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let mut found = text.to_socket_addrs().map_err(|error| error.to_string())?;
    found.next().ok_or_else(|| "no address of that name".to_string())
}
