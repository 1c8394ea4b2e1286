//! UDP sockets.

use std::io;
use std::net::SocketAddr;

use mio::net::UdpSocket;
use socket2::{Domain, Protocol, Type};

/// What we ask the kernel to hold for us each way. It gives what its limits allow.
const KERNEL_BUFFER: usize = 4 << 20;

/// Opens a socket that never blocks.
pub(crate) fn open(addr: SocketAddr) -> io::Result<UdpSocket> {
    let socket = socket2::Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
    if addr.is_ipv6() {
        // "[::]" means IPv6 on every system, and can stand beside "0.0.0.0" with the same port.
        socket.set_only_v6(true)?;
    }
    // Small buffers lose more datagrams, nothing else.
    let _ = socket.set_recv_buffer_size(KERNEL_BUFFER);
    let _ = socket.set_send_buffer_size(KERNEL_BUFFER);
    socket.bind(&addr.into())?;
    adopt(socket.into())
}

/// Takes a socket that is bound already. Its buffers are as large as whoever opened it wished: a service
/// manager may give more than the kernel's limits let us have, and asking would take that back.
pub(crate) fn adopt(socket: std::net::UdpSocket) -> io::Result<UdpSocket> {
    socket.set_nonblocking(true)?;
    Ok(UdpSocket::from_std(socket))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(socket: &UdpSocket) -> SocketAddr {
        socket.local_addr().unwrap()
    }

    #[test]
    fn the_same_port_can_be_had_for_ipv4_and_ipv6() {
        // Somebody else may have the port for IPv4, but hardly so often.
        let both = (0..20).find_map(|_| {
            let Ok(six) = open((std::net::Ipv6Addr::UNSPECIFIED, 0).into()) else {
                // A machine without IPv6.
                return Some(true);
            };
            let port = local(&six).port();
            let four = open(([0, 0, 0, 0], port).into()).ok()?;
            Some(local(&four).port() == port)
        });
        assert_eq!(both, Some(true));
    }
}
