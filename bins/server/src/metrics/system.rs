//! What the kernel knows of this process and its sockets. Linux only: elsewhere nothing is told.
//!
//! Everything is read at a scrape and below `/proc/self`, which is there in a sandbox, too
//! (`ProcSubset=pid`).

use std::time::Duration;

/// `/proc` counts processor time in hundredths of a second on every architecture that Rust's
/// standard library knows (`USER_HZ`).
const TICKS_PER_SECOND: u64 = 100;

/// Memory, processor time and open files of this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Process {
    /// Bytes of memory that are in use.
    pub resident_bytes: Option<u64>,
    /// Processor time, of user and kernel.
    pub cpu: Option<Duration>,
    /// Open file descriptors.
    pub open_fds: Option<u64>,
}

impl Process {
    /// What is known now.
    pub fn read() -> Self {
        let file = |name: &str| std::fs::read_to_string(format!("/proc/self/{name}")).ok();
        Self {
            resident_bytes: file("status").as_deref().and_then(resident_bytes),
            cpu: file("stat").as_deref().and_then(cpu),
            // The directory that is being read is one of them.
            open_fds: std::fs::read_dir("/proc/self/fd").ok().map(|dir| dir.count() as u64 - 1),
        }
    }
}

/// Datagrams that the kernel dropped before we could read them, because a socket's buffer was full.
/// `inodes` are those of our sockets. `None` where the kernel does not tell.
pub fn receive_drops(inodes: &[u64]) -> Option<u64> {
    let tables = ["udp", "udp6"].map(|name| {
        // A kernel without IPv6 has no second table.
        std::fs::read_to_string(format!("/proc/self/net/{name}")).unwrap_or_default()
    });
    let found: Vec<u64> = tables.iter().flat_map(|table| drops(table, inodes)).collect();
    (!found.is_empty()).then(|| found.iter().sum())
}

/// The number by which the kernel's tables call a socket.
#[cfg(target_os = "linux")]
pub(crate) fn inode(socket: &impl std::os::fd::AsRawFd) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;

    let path = format!("/proc/self/fd/{}", socket.as_raw_fd());
    std::fs::metadata(path).ok().map(|data| data.ino())
}

/// The number by which the kernel's tables call a socket; not known on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn inode<T>(_socket: &T) -> Option<u64> {
    None
}

/// The line "VmRSS:      4908 kB", which unlike `stat` needs no page size.
fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// Fields 14 and 15, utime and stime. Field 2 is a name in parentheses that may hold anything.
fn cpu(stat: &str) -> Option<Duration> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let kernel: u64 = fields.next()?.parse().ok()?;
    Some(Duration::from_millis((user + kernel) * (1_000 / TICKS_PER_SECOND)))
}

/// The last column of those lines whose tenth is one of `inodes`.
fn drops<'t>(table: &'t str, inodes: &'t [u64]) -> impl Iterator<Item = u64> + 't {
    table.lines().skip(1).filter_map(move |line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let inode: u64 = fields.get(9)?.parse().ok()?;
        inodes.contains(&inode).then(|| fields.get(12)?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_status() {
        let status =
            "Name:\tcaves-server\nVmPeak:\t   90000 kB\nVmRSS:\t    4908 kB\nThreads:\t1\n";
        assert_eq!(resident_bytes(status), Some(5_025_792));
        assert_eq!(resident_bytes("Name:\tkthreadd\n"), None);
    }

    #[test]
    fn processor_time_is_read_from_stat_whatever_the_name_is() {
        let stat = "77 (a) b (c) S 1 77 77 0 -1 4194560 900 0 3 0 123 45 0 0 20 0 1 0 999 1 2 3";
        assert_eq!(cpu(stat), Some(Duration::from_millis(1_680)));
        assert_eq!(cpu("77 (short) S 1"), None);
    }

    #[test]
    fn drops_of_our_sockets_alone_are_counted() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
   14: 0100007F:524C 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4711 2 0000000000000000 17
   15: 00000000:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4712 2 0000000000000000 900
   16: 0100007F:524D 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4713 2 0000000000000000 5
   17: broken
";
        assert_eq!(drops(table, &[4711, 4713, 4714]).collect::<Vec<_>>(), [17, 5]);
        assert_eq!(drops(table, &[]).count(), 0);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_kernel_tells_of_datagrams_that_a_full_socket_lost() {
        let full = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let inodes = [inode(&full).unwrap()];
        assert_eq!(receive_drops(&inodes), Some(0));
        let other = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        // The kernel keeps at least 2 kB of buffer, and never 10 MB of it for one that asked for 1.
        socket2::SockRef::from(&full).set_recv_buffer_size(1).unwrap();
        for _ in 0..10_000 {
            other.send_to(&[0; 1_000], full.local_addr().unwrap()).unwrap();
        }
        assert!(receive_drops(&inodes).unwrap() > 9_000);
        assert_eq!(receive_drops(&[inode(&other).unwrap()]), Some(0));
        assert_eq!(receive_drops(&[]), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_has_memory_time_and_files() {
        let file = std::fs::File::open("/proc/self/stat").unwrap();
        let process = Process::read();
        assert!(process.resident_bytes.unwrap() > 100_000, "{process:?}");
        assert!(process.cpu.is_some() && process.open_fds.unwrap() >= 4, "{process:?}");
        drop(file);
    }
}
