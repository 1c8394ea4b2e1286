//! The file of the control socket: made so that nobody comes too early, removed when it is over.

use std::fs::Permissions;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};

use mio::net::{UnixListener, UnixStream};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::config::ControlConfig;

/// Connections that may wait to be taken.
const BACKLOG: i32 = 16;

/// Why there is no control socket.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Another server answers there.
    #[error("a server answers at the control socket {}: is it running already?", path.display())]
    InUse {
        /// Where.
        path: PathBuf,
    },
    /// Something that is no socket has the name; it is not ours to remove.
    #[error("{} is there and is no socket: remove it, or set control.socket", path.display())]
    NoSocket {
        /// Where.
        path: PathBuf,
    },
    /// The system says no.
    #[error("cannot open the control socket {}: {reason}", path.display())]
    Unavailable {
        /// Where.
        path: PathBuf,
        /// What it says.
        reason: io::Error,
    },
}

/// The socket's file; it is removed when this is dropped, if it is still the one that was made.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    identity: Option<(u64, u64)>,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.identity.is_some() && identity(&self.path) == self.identity {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Opens the socket. Its permissions are set between binding and listening: the file is there then,
/// and connecting to it is refused whatever its permissions are, so that nobody who is kept out by
/// `mode` comes in before it is set. The umask, which belongs to the whole process, is not touched.
pub(super) fn open(config: &ControlConfig) -> Result<(UnixListener, SocketFile), ControlError> {
    let path = &config.socket;
    make_room(path)?;
    let unavailable = |reason| ControlError::Unavailable { path: path.clone(), reason };
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None).map_err(unavailable)?;
    socket.set_nonblocking(true).map_err(unavailable)?;
    let address = SockAddr::unix(path).map_err(unavailable)?;
    socket.bind(&address).map_err(unavailable)?;
    // From here on the file is ours, and goes with us whatever fails.
    let file = SocketFile { path: path.clone(), identity: identity(path) };
    std::fs::set_permissions(path, Permissions::from_mode(config.mode)).map_err(unavailable)?;
    socket.listen(BACKLOG).map_err(unavailable)?;
    Ok((UnixListener::from_std(StdListener::from(OwnedFd::from(socket))), file))
}

/// Removes a socket that a server left behind which could not remove it.
fn make_room(path: &Path) -> Result<(), ControlError> {
    let unavailable = |reason| ControlError::Unavailable { path: path.to_owned(), reason };
    let found = match path.symlink_metadata() {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unavailable(error)),
    };
    if !found.file_type().is_socket() {
        return Err(ControlError::NoSocket { path: path.to_owned() });
    }
    match UnixStream::connect(path) {
        // A server that is too busy to take it is a server, too.
        Ok(_) => Err(ControlError::InUse { path: path.to_owned() }),
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            Err(ControlError::InUse { path: path.to_owned() })
        }
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(unavailable)
        }
        Err(error) => Err(unavailable(error)),
    }
}

/// What makes a file this very file.
fn identity(path: &Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream as Client;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn config(mode: u32) -> ControlConfig {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("caves-control-{}-{number}.sock", std::process::id());
        ControlConfig { socket: std::env::temp_dir().join(name), mode }
    }

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn the_mode_is_as_configured_and_the_file_goes_with_its_server() {
        for wanted in [0o600, 0o660, 0o666, 0o000] {
            let config = config(wanted);
            let (_listener, file) = open(&config).unwrap();
            assert_eq!(mode(&config.socket), wanted);
            drop(file);
            assert!(!config.socket.exists());
        }
    }

    #[test]
    fn a_socket_that_nobody_answers_is_replaced_and_one_that_is_answered_is_not() {
        let config = config(0o600);
        let (listener, file) = open(&config).unwrap();
        assert!(matches!(open(&config), Err(ControlError::InUse { .. })));
        assert!(Client::connect(&config.socket).is_ok(), "the first one is not harmed");
        // As after a crash: nobody listens, and the file is still there.
        drop(listener);
        std::mem::forget(file);
        assert!(config.socket.exists());
        let (_listener, _file) = open(&config).unwrap();
        assert!(Client::connect(&config.socket).is_ok());
    }

    #[test]
    fn what_is_no_socket_is_left_alone() {
        let config = config(0o600);
        std::fs::write(&config.socket, "a diary").unwrap();
        let error = open(&config).unwrap_err();
        assert!(error.to_string().contains("is no socket"), "{error}");
        assert_eq!(std::fs::read_to_string(&config.socket).unwrap(), "a diary");
        std::fs::remove_file(&config.socket).unwrap();
    }

    #[test]
    fn a_file_that_is_another_ones_by_now_is_left_alone() {
        let config = config(0o600);
        let (_listener, file) = open(&config).unwrap();
        std::fs::remove_file(&config.socket).unwrap();
        std::fs::write(&config.socket, "another one").unwrap();
        drop(file);
        assert!(config.socket.exists());
        std::fs::remove_file(&config.socket).unwrap();
    }

    #[test]
    fn a_directory_that_is_not_there_is_an_error_with_the_path() {
        let socket = PathBuf::from("/nonexistent/caves.sock");
        let error = open(&ControlConfig { socket, mode: 0o600 }).unwrap_err();
        let expected = "cannot open the control socket /nonexistent/caves.sock: \
                        No such file or directory (os error 2)";
        assert_eq!(error.to_string(), expected);
    }
}
