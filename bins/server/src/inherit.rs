//! Sockets that the service manager opened for us (sd_listen_fds(3)).

use std::io;
use std::net::UdpSocket;

use listenfd::ListenFd;

/// A socket that cannot be what was wanted.
#[derive(Debug, thiserror::Error)]
#[error(
    "socket {number} of the service manager cannot be used: {reason} (UDP is wanted: ListenDatagram=)"
)]
pub(crate) struct WrongSocket {
    number: usize,
    reason: io::Error,
}

/// The sockets that were passed in, in their order; none without a service manager. The environment
/// says which, and is cleared of it: call this first, and once.
pub(crate) fn sockets() -> Result<Vec<UdpSocket>, WrongSocket> {
    let mut passed = ListenFd::from_env();
    let numbers = 0..passed.len();
    let taken = numbers.map(|place| {
        let socket = passed.take_udp_socket(place);
        socket.map_err(|reason| WrongSocket { number: place + 1, reason })
    });
    taken.filter_map(Result::transpose).collect()
}
