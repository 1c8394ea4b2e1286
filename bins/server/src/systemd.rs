//! Words for the service manager: ready, reloading, stopping, how many players, and that the loop turns.
//!
//! They go to a Unix datagram socket that the manager names in `NOTIFY_SOCKET` (sd_notify(3)). The socket
//! never blocks: a manager that does not read must not hold up the game. What has to arrive (ready,
//! reloading, stopping) is tried again each turn, the rest is let go.
//!
//! ```
//! use std::os::unix::net::UnixDatagram;
//! use caves_link::time::Instant;
//! use caves_server::Notifier;
//!
//! let path = std::env::temp_dir().join(format!("caves-doc-{}", std::process::id()));
//! let manager = UnixDatagram::bind(&path).unwrap();
//! let mut notifier = Notifier::to(path.as_os_str(), None).unwrap();
//! notifier.ready(Instant::ZERO);
//! let mut buf = [0; 64];
//! let len = manager.recv(&mut buf).unwrap();
//! assert_eq!(&buf[..len], b"READY=1\n");
//! std::fs::remove_file(path).unwrap();
//! ```

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{self, ErrorKind};
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use caves_link::time::{Deadline, Instant};
use sd_notify::NotifyState;

/// Words that wait until the manager reads; the oldest is given up.
const WAITING: usize = 8;
/// A new number of players is told this often at most.
const STATUS_PERIOD: Duration = Duration::from_secs(1);
/// After a word that the manager did not take.
const AGAIN: Duration = Duration::from_millis(100);

/// Speaks to the service manager, if there is one.
#[derive(Debug, Default)]
pub struct Notifier {
    socket: Option<UnixDatagram>,
    waiting: VecDeque<String>,
    /// How often the manager wants to hear of us: half of what it allows.
    watchdog: Option<Duration>,
    ping_at: Deadline,
    status: String,
    status_at: Deadline,
}

impl Notifier {
    /// One that says nothing to nobody.
    pub fn none() -> Self {
        Self::default()
    }

    /// What `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID` say. For a program that is a server and
    /// nothing else.
    ///
    /// # Errors
    /// There is a manager, and it cannot be reached.
    pub fn from_env() -> io::Result<Self> {
        match std::env::var_os("NOTIFY_SOCKET").filter(|path| !path.is_empty()) {
            Some(path) => Self::to(&path, sd_notify::watchdog_enabled()),
            None => Ok(Self::none()),
        }
    }

    /// Speaks to a socket: a path, or `@` and the name of an abstract one. `watchdog` is how long the
    /// manager waits for a sign of life.
    ///
    /// # Errors
    /// Nobody listens there.
    pub fn to(socket: &OsStr, watchdog: Option<Duration>) -> io::Result<Self> {
        let own = UnixDatagram::unbound()?;
        own.connect_addr(&address(socket)?)?;
        own.set_nonblocking(true)?;
        let watchdog = watchdog.filter(|span| !span.is_zero()).map(|span| span / 2);
        Ok(Self { socket: Some(own), watchdog, ..Self::default() })
    }

    /// The loop is about to turn, or does so again after [`Notifier::reloading`].
    pub fn ready(&mut self, now: Instant) {
        self.ping_at.set(now);
        self.tell(&[NotifyState::Ready]);
    }

    /// The configuration is being read again; [`Notifier::ready`] has to follow.
    pub fn reloading(&mut self) {
        // Without the time a manager of version 253 or newer would take the reload for failed.
        match NotifyState::monotonic_usec_now() {
            Ok(moment) => self.tell(&[NotifyState::Reloading, moment]),
            Err(_) => self.tell(&[NotifyState::Reloading]),
        }
    }

    /// The server says goodbye and saves.
    pub fn stopping(&mut self) {
        self.tell(&[NotifyState::Stopping, NotifyState::Status("stopping")]);
    }

    /// The last save is waited for, that long at most, and the loop does not turn meanwhile.
    pub fn saving(&mut self, at_most: Duration) {
        let Some(every) = self.watchdog else { return };
        // Whether a manager listens for signs of life during a stop is left to it, so it gets more time.
        let patience = at_most + 2 * every;
        let us = u32::try_from(patience.as_micros()).unwrap_or(u32::MAX);
        self.tell(&[NotifyState::WatchdogUsec(us), NotifyState::Watchdog]);
    }

    /// Called once a turn of the loop: a sign of life when it is time for one, and the status when it has
    /// changed.
    pub fn turn(&mut self, now: Instant, players: usize, max_players: usize) {
        if self.socket.is_none() {
            return;
        }
        self.flush();
        if let Some(every) = self.watchdog
            && self.ping_at.is_due(now)
        {
            let wait =
                if self.send(&format!("{}\n", NotifyState::Watchdog)) { every } else { AGAIN };
            self.ping_at.set(now + wait.min(every));
        }
        if self.status_at.get().is_none_or(|due| due <= now) {
            let status = format!("{players} of {max_players} players");
            if status != self.status && self.send(&format!("{}\n", NotifyState::Status(&status))) {
                self.status = status;
                self.status_at.set(now + STATUS_PERIOD);
            }
        }
    }

    /// When to call [`Notifier::turn`] at the latest.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.watchdog.and_then(|_| self.ping_at.get())
    }

    /// Words that have to arrive.
    fn tell(&mut self, words: &[NotifyState<'_>]) {
        if self.socket.is_none() {
            return;
        }
        if self.waiting.len() == WAITING {
            self.waiting.pop_front();
        }
        let mut text = String::new();
        for word in words {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{word}");
        }
        self.waiting.push_back(text);
        self.flush();
    }

    fn flush(&mut self) {
        while let Some(text) = self.waiting.pop_front() {
            if !self.send(&text) {
                self.waiting.push_front(text);
                return;
            }
        }
    }

    /// `false` when it is worth another try.
    fn send(&self, text: &str) -> bool {
        let Some(socket) = &self.socket else { return true };
        loop {
            return match socket.send(text.as_bytes()) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => error.kind() != ErrorKind::WouldBlock,
                Ok(_) => true,
            };
        }
    }
}

#[cfg(target_os = "linux")]
fn address(socket: &OsStr) -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::ffi::OsStrExt;

    match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(socket),
    }
}

#[cfg(not(target_os = "linux"))]
fn address(socket: &OsStr) -> io::Result<SocketAddr> {
    SocketAddr::from_pathname(socket)
}

#[cfg(test)]
mod tests {
    use std::os::linux::net::SocketAddrExt;

    use super::*;

    /// A manager at an abstract address, and one who speaks to it.
    fn pair(name: &str, watchdog: Option<Duration>) -> (UnixDatagram, Notifier) {
        let name = format!("caves-test-{}-{name}", std::process::id());
        let manager = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap());
        let manager = manager.unwrap();
        manager.set_nonblocking(true).unwrap();
        let notifier = Notifier::to(OsStr::new(&format!("@{name}")), watchdog).unwrap();
        (manager, notifier)
    }

    fn heard(manager: &UnixDatagram) -> Vec<String> {
        let mut buf = [0; 256];
        let words =
            std::iter::from_fn(|| manager.recv(&mut buf).ok().map(|len| buf[..len].to_vec()));
        words.map(|word| String::from_utf8(word).unwrap()).collect()
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_sign_of_life_comes_each_half_of_the_watchdogs_time() {
        let (manager, mut notifier) = pair("watchdog", Some(Duration::from_secs(2)));
        assert_eq!(notifier.poll_timeout(), None);
        notifier.ready(at(0));
        assert_eq!(heard(&manager), ["READY=1\n"]);
        let mut pings = Vec::new();
        for ms in (0..=4_500).step_by(50) {
            notifier.turn(at(ms), 0, 64);
            let words = heard(&manager);
            pings.extend(words.iter().filter(|word| *word == "WATCHDOG=1\n").map(|_| ms));
        }
        assert_eq!(pings, [0, 1_000, 2_000, 3_000, 4_000]);
        assert_eq!(notifier.poll_timeout(), Some(at(5_000)));
    }

    #[test]
    fn without_a_watchdog_there_are_no_signs_of_life() {
        let (manager, mut notifier) = pair("none", None);
        notifier.ready(at(0));
        notifier.turn(at(60_000), 1, 2);
        assert_eq!(heard(&manager), ["READY=1\n", "STATUS=1 of 2 players\n"]);
        assert_eq!(notifier.poll_timeout(), None);
    }

    #[test]
    fn the_status_is_told_when_it_changes_and_once_a_second_at_most() {
        let (manager, mut notifier) = pair("status", None);
        for (ms, players) in [(0, 0), (10, 0), (100, 1), (900, 2), (1_000, 3), (5_000, 3)] {
            notifier.turn(at(ms), players, 9);
        }
        assert_eq!(heard(&manager), ["STATUS=0 of 9 players\n", "STATUS=3 of 9 players\n"]);
    }

    #[test]
    fn reloading_says_since_when_and_stopping_is_said() {
        let (manager, mut notifier) = pair("reload", None);
        notifier.reloading();
        notifier.ready(at(0));
        notifier.stopping();
        let words = heard(&manager);
        let since = words[0].strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap();
        assert!(since.trim_end().parse::<u64>().unwrap() > 0);
        assert_eq!(words[1..], ["READY=1\n", "STOPPING=1\nSTATUS=stopping\n"]);
    }

    #[test]
    fn a_manager_that_waits_for_signs_of_life_has_patience_with_the_last_save() {
        let (manager, mut notifier) = pair("saving", Some(Duration::from_secs(30)));
        notifier.saving(Duration::from_secs(45));
        assert_eq!(heard(&manager), ["WATCHDOG_USEC=75000000\nWATCHDOG=1\n"]);
        let (manager, mut notifier) = pair("saving-none", None);
        notifier.saving(Duration::from_secs(45));
        assert_eq!(heard(&manager), [""; 0]);
    }

    #[test]
    fn a_manager_that_does_not_read_holds_nothing_up_and_hears_of_readiness_later() {
        let (manager, mut notifier) = pair("deaf", Some(Duration::from_millis(2)));
        notifier.ready(at(0));
        // A sign of life each millisecond, more than any queue of the kernel holds.
        for ms in 0..100_000 {
            notifier.turn(at(ms), 0, 64);
        }
        assert_eq!(heard(&manager)[0], "READY=1\n");
        for ms in 100_000..200_000 {
            notifier.turn(at(ms), 0, 64);
        }
        notifier.ready(at(200_000));
        assert!(!heard(&manager).iter().any(|word| word == "READY=1\n"));
        notifier.turn(at(200_001), 0, 64);
        assert_eq!(heard(&manager)[0], "READY=1\n");
        // It has gone: nothing is kept for it.
        drop(manager);
        notifier.stopping();
        assert!(notifier.waiting.is_empty());
    }

    #[test]
    fn a_socket_where_nobody_listens_is_an_error_and_none_is_no_error() {
        assert!(Notifier::to(OsStr::new("@caves-test-nobody"), None).is_err());
        let mut nobody = Notifier::none();
        nobody.ready(at(0));
        nobody.turn(at(1), 2, 3);
        assert_eq!(nobody.poll_timeout(), None);
    }
}
