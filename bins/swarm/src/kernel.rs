//! What the kernel knows and allows: datagrams that it had no room for, and open files.

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr};

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Datagrams to some sockets that the kernel threw away because a buffer was full; `None` where
/// it does not tell, as for IPv6.
pub(crate) fn overruns(ours: impl Iterator<Item = SocketAddr>) -> Option<u64> {
    let ours: HashSet<SocketAddr> = ours.collect();
    let table = std::fs::read_to_string("/proc/net/udp").ok()?;
    ours.iter().all(SocketAddr::is_ipv4).then(|| {
        let lines = table.lines().skip(1).filter_map(line);
        lines.filter(|(addr, _)| ours.contains(addr)).map(|(_, dropped)| dropped).sum()
    })
}

/// The local address of a line of /proc/net/udp, and what was dropped there.
fn line(line: &str) -> Option<(SocketAddr, u64)> {
    let (ip, port) = line.split_whitespace().nth(1)?.split_once(':')?;
    // The address is a number of this machine's own byte order.
    let ip = Ipv4Addr::from(u32::from_str_radix(ip, 16).ok()?.to_ne_bytes());
    let port = u16::from_str_radix(port, 16).ok()?;
    let dropped = line.split_whitespace().last()?.parse().ok()?;
    Some((SocketAddr::from((ip, port)), dropped))
}

/// Lets this process open so many files; how many it may open after that.
pub(crate) fn allow_files(wanted: u64) -> u64 {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return wanted };
    if soft >= wanted {
        return soft;
    }
    let raised = wanted.min(hard);
    match setrlimit(Resource::RLIMIT_NOFILE, raised, hard) {
        Ok(()) => raised,
        Err(_) => soft,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn a_line_of_the_table_tells_address_and_drops() {
        let text = "  421: 0200017F:CB20 0100007F:524C 01 00000000:00000000 00:00000000 00000000 \
                    0        0 12345 2 0000000000000000 17";
        assert_eq!(line(text), Some((([127, 1, 0, 2], 0xCB20).into(), 17)));
        assert_eq!(line("nothing of the kind"), None);
    }

    #[test]
    fn datagrams_that_nobody_reads_are_told_as_overrun() {
        let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let addr = socket.local_addr().unwrap();
        assert_eq!(overruns([addr].into_iter()), Some(0));
        let sent = 100_000 / 10;
        for _ in 0..sent {
            socket.send_to(&[0; 1200], addr).unwrap();
        }
        let mut read = 0;
        socket.set_nonblocking(true).unwrap();
        while socket.recv(&mut [0; 1200]).is_ok() {
            read += 1;
        }
        assert_eq!(overruns([addr].into_iter()), Some(sent - read), "{read} were read");
    }

    #[test]
    fn a_limit_that_is_high_enough_stays() {
        assert!(allow_files(10) >= 10);
    }
}
