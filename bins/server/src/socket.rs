//! One UDP socket, and what its errors mean.

use std::io::{self, ErrorKind};
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

/// What came of asking a socket for a datagram.
pub(crate) enum Received {
    /// So many bytes from there.
    Datagram(usize, SocketAddr),
    /// No datagram waits.
    Nothing,
    /// Word that something sent earlier did not arrive; there may be more to read.
    Undelivered,
    /// The socket cannot be read just now.
    Failed(io::Error),
}

/// Reads the next datagram; one that is longer than `buf` is cut.
pub(crate) fn receive(socket: &UdpSocket, buf: &mut [u8]) -> Received {
    loop {
        return match socket.recv_from(buf) {
            Ok((len, from)) => Received::Datagram(len, from),
            Err(error) => match error.kind() {
                ErrorKind::Interrupted => continue,
                ErrorKind::WouldBlock => Received::Nothing,
                ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Received::Undelivered,
                _ => Received::Failed(error),
            },
        };
    }
}

/// Hands a datagram to the kernel.
pub(crate) fn send(socket: &UdpSocket, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
    loop {
        match socket.send_to(datagram, to) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(socket: &UdpSocket) -> SocketAddr {
        socket.local_addr().unwrap()
    }

    #[test]
    fn an_empty_socket_gives_nothing_and_a_datagram_comes_whole() {
        let a = open(([127, 0, 0, 1], 0).into()).unwrap();
        let b = open(([127, 0, 0, 1], 0).into()).unwrap();
        let mut buf = [0; 16];
        assert!(matches!(receive(&b, &mut buf), Received::Nothing));
        send(&a, b"hello", local(&b)).unwrap();
        // On the loopback a datagram is there when the call that sent it returns.
        match receive(&b, &mut buf) {
            Received::Datagram(5, from) => {
                assert_eq!((from, &buf[..5]), (local(&a), &b"hello"[..]));
            }
            _ => panic!("no datagram of five bytes"),
        }
        assert!(matches!(receive(&b, &mut buf), Received::Nothing));
    }

    #[test]
    fn sending_what_cannot_be_sent_is_an_error_and_the_socket_goes_on() {
        let socket = open(([127, 0, 0, 1], 0).into()).unwrap();
        let to = local(&socket);
        assert!(send(&socket, &[0; 65_535], to).is_err(), "more than UDP can carry");
        send(&socket, b"x", to).unwrap();
        assert!(matches!(receive(&socket, &mut [0; 4]), Received::Datagram(1, _)));
    }

    #[test]
    fn a_socket_that_was_passed_in_never_blocks_and_keeps_its_buffers() {
        let passed = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let size = |socket: &UdpSocket| socket2::SockRef::from(socket).recv_buffer_size().unwrap();
        socket2::SockRef::from(&passed).set_recv_buffer_size(50_000).unwrap();
        let adopted = adopt(passed).unwrap();
        // Linux doubles what is asked for, others do not.
        assert!([50_000, 100_000].contains(&size(&adopted)), "{}", size(&adopted));
        assert!(size(&open(([127, 0, 0, 1], 0).into()).unwrap()) > 100_000);
        assert!(matches!(receive(&adopted, &mut [0; 4]), Received::Nothing));
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
