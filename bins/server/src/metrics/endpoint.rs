//! The pages over HTTP, on connections that cannot hold up the loop.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use caves_link::time::Instant;
use mio::net::TcpListener;
use mio::{Registry, Token};

use super::http::{self, Health, Page, Refused};
use crate::stream::{Input, Limits, Streams, http_heads};

/// Whoever collects needs one; more wait in the kernel.
const CONNECTIONS: usize = 8;
/// The head of a request. Prometheus sends some 400 bytes.
const LONGEST_HEAD: usize = 4096;
/// The text is some 10 kB and does not grow with the players.
const LONGEST_ANSWER: usize = 256 << 10;
/// How long a request may take to come, and an answer to be read.
const PATIENCE: Duration = Duration::from_secs(5);

/// Answers `/metrics`, `/healthz` and `/readyz`.
#[derive(Debug)]
pub(crate) struct Endpoint {
    streams: Streams<TcpListener>,
    addr: SocketAddr,
}

impl Endpoint {
    /// Listens; `first` and some tokens after it are used.
    pub(crate) fn bind(addr: SocketAddr, registry: &Registry, first: Token) -> io::Result<Self> {
        let listener = TcpListener::bind(addr)?;
        let addr = listener.local_addr()?;
        let limits = Limits {
            connections: CONNECTIONS,
            input: LONGEST_HEAD,
            output: LONGEST_ANSWER,
            patience: PATIENCE,
        };
        Ok(Self { streams: Streams::new(listener, registry, first, http_heads, limits)?, addr })
    }

    /// Where it listens; the port is the one it got, if any was wanted.
    pub(crate) const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Takes an event of the poll; those of others change nothing.
    pub(crate) fn handle_event(&mut self, now: Instant, token: Token) {
        self.streams.handle_event(now, token);
    }

    /// When to call [`Endpoint::turn`] at the latest.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.streams.poll_timeout()
    }

    /// Answers what was asked. `text` is asked for once at most: all who ask within a turn get the same.
    pub(crate) fn turn(&mut self, now: Instant, health: Health, text: impl FnOnce() -> String) {
        if self.poll_timeout().is_some_and(|due| due <= now) {
            self.streams.handle_timeout(now);
        }
        let (mut text, mut made) = (Some(text), String::new());
        // As many as there are connections: whoever is answered is hung up on.
        while let Some((from, input)) = self.streams.poll_input(now) {
            let answer = match parse(&input) {
                Err(why) => http::refusal(why),
                Ok(request) => match request.page {
                    Page::Healthz => http::healthz(request.with_body),
                    Page::Readyz => http::readyz(health, request.with_body),
                    Page::Metrics => {
                        if let Some(text) = text.take() {
                            made = text();
                        }
                        http::metrics(&made, request.with_body)
                    }
                },
            };
            self.streams.answer(now, from, &answer);
            self.streams.hang_up(now, from);
        }
    }
}

fn parse(input: &Input) -> Result<http::Request, Refused> {
    match input {
        Input::Whole(head) => http::parse(head),
        Input::TooLong => Err(Refused::TooLong),
    }
}
