//! One question, one answer.

use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use caves_server::control::Command;

/// A server answers within a turn of its loop; this is for one that is stopped or swapped out.
const PATIENCE: Duration = Duration::from_secs(10);
/// A save is answered when it is safe on the disk, and disks can be slow.
const PATIENCE_TO_SAVE: Duration = Duration::from_secs(120);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    #[error("no server runs at {}: there is no such socket (--socket names another one)", path.display())]
    NoSocket { path: PathBuf },
    #[error("no server runs at {}: nobody answers", path.display())]
    NobodyAnswers { path: PathBuf },
    #[error("{} is not yours to use: {reason}", path.display())]
    Forbidden { path: PathBuf, reason: io::Error },
    #[error("cannot connect to {}: {reason}", path.display())]
    Connect { path: PathBuf, reason: io::Error },
    #[error("the server did not answer within {} s", within.as_secs())]
    TooSlow { within: Duration },
    #[error("the server hung up without an answer")]
    HungUp,
    #[error("cannot speak to the server: {0}")]
    Broken(io::Error),
}

/// Asks the server at this socket; gives its line without the line feed.
pub(crate) fn ask(path: &Path, command: &Command) -> Result<String, AskError> {
    let within = match command {
        Command::Save {} => PATIENCE_TO_SAVE,
        _ => PATIENCE,
    };
    let broken = |error: io::Error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => AskError::TooSlow { within },
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => AskError::HungUp,
        _ => AskError::Broken(error),
    };
    let mut stream = UnixStream::connect(path).map_err(|reason| refused(path, reason))?;
    stream.set_read_timeout(Some(within)).map_err(broken)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(broken)?;
    stream.write_all(command.line().as_bytes()).map_err(broken)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).map_err(broken)?;
    match answer.strip_suffix('\n') {
        Some(line) => Ok(line.to_owned()),
        None => Err(AskError::HungUp),
    }
}

fn refused(path: &Path, reason: io::Error) -> AskError {
    let path = path.to_owned();
    match reason.kind() {
        ErrorKind::NotFound => AskError::NoSocket { path },
        ErrorKind::ConnectionRefused => AskError::NobodyAnswers { path },
        ErrorKind::PermissionDenied => AskError::Forbidden { path, reason },
        _ => AskError::Connect { path, reason },
    }
}

/// The time of day, to say how long a ban goes on.
pub(crate) fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
