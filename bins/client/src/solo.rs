//! A server inside this process, for one player.

use std::net::SocketAddr;
use std::thread::JoinHandle;

use anyhow::Context;
use caves_server::{Config, RunError, Server, StopHandle, Summary};

/// A server that runs in a thread until this is dropped.
#[derive(Debug)]
pub(crate) struct Solo {
    addr: SocketAddr,
    seed: u64,
    stop: StopHandle,
    thread: Option<JoinHandle<Result<Summary, RunError>>>,
}

impl Solo {
    /// Starts one on a free port of the loopback. No file is read.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let server = Server::bind(&Config::solo()).context("the server inside did not start")?;
        let addr = *server.local_addrs().first().context("the server inside has no address")?;
        let (seed, stop) = (server.seed(), server.handle());
        let thread = std::thread::Builder::new()
            .name("server".to_owned())
            .spawn(move || server.run())
            .context("the server inside did not start")?;
        Ok(Self { addr, seed, stop, thread: Some(thread) })
    }

    pub(crate) const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What its world is generated from.
    pub(crate) const fn seed(&self) -> u64 {
        self.seed
    }

    /// Whether it ended, which it should not before it is asked to.
    pub(crate) fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Stops it and waits for its end.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        self.stop.stop();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(Err(error))) => Err(error).context("the server inside failed"),
            // Its message is kept by the panic hook.
            Some(Err(_)) => anyhow::bail!("the server inside crashed"),
            Some(Ok(Ok(_))) | None => Ok(()),
        }
    }
}

impl Drop for Solo {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_of_them_run_side_by_side_and_stop() {
        let (one, two) = (Solo::start().unwrap(), Solo::start().unwrap());
        assert!(one.addr().ip().is_loopback());
        assert_ne!(one.addr().port(), two.addr().port());
        assert_ne!(one.seed(), two.seed(), "drawn at random, equal once in 2^64");
        assert!(!one.is_over() && !two.is_over());
        one.stop().unwrap();
        assert!(!two.is_over());
        two.stop().unwrap();
    }
}
