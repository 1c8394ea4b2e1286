//! What waits at a client's socket, read in as few calls as the system has for it.

use std::io;

use mio::net::UdpSocket;

/// Datagrams that are read at once: a tick of a client that sees a crowd has nine.
pub(crate) const SLOTS: usize = 16;
/// Longer than any valid datagram.
const LONGEST_DATAGRAM: usize = 2048;

type Slots = [[u8; LONGEST_DATAGRAM]; SLOTS];

/// The datagrams that were read last: one memory for all clients of a thread.
pub(crate) struct Mail {
    slots: Box<Slots>,
    lens: [usize; SLOTS],
    reader: system::Reader,
}

impl Mail {
    pub(crate) fn new() -> Self {
        Self {
            slots: Box::new([[0; LONGEST_DATAGRAM]; SLOTS]),
            lens: [0; SLOTS],
            reader: system::Reader::new(),
        }
    }

    /// Reads up to [`SLOTS`] datagrams; how many. Fewer than that were all that waited.
    ///
    /// # Errors
    /// Nothing waits, or the system has word of something sent earlier.
    pub(crate) fn read(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        self.reader.read(socket, &mut self.slots, &mut self.lens)
    }

    /// One of those that were read.
    pub(crate) fn datagram(&self, place: usize) -> &[u8] {
        &self.slots[place][..self.lens[place]]
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::io::{self, IoSliceMut};
    use std::os::fd::AsRawFd;

    use mio::net::UdpSocket;
    use nix::sys::socket::{MsgFlags, MultiHeaders, recvmmsg};

    use super::{SLOTS, Slots};

    /// `recvmmsg`. The sockets are connected: nobody asks where something came from.
    pub(super) struct Reader(MultiHeaders<()>);

    impl Reader {
        pub(super) fn new() -> Self {
            Self(MultiHeaders::preallocate(SLOTS, None))
        }

        pub(super) fn read(
            &mut self,
            socket: &UdpSocket,
            slots: &mut Slots,
            lens: &mut [usize; SLOTS],
        ) -> io::Result<usize> {
            let mut slices = slots.each_mut().map(|slot| [IoSliceMut::new(slot)]);
            let flags = MsgFlags::MSG_DONTWAIT;
            let read = recvmmsg(socket.as_raw_fd(), &mut self.0, &mut slices, flags, None)?;
            Ok(lens.iter_mut().zip(read).map(|(len, message)| *len = message.bytes).count())
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;

    use mio::net::UdpSocket;

    use super::{SLOTS, Slots};

    /// One datagram at a time, as every system can.
    pub(super) struct Reader;

    impl Reader {
        pub(super) const fn new() -> Self {
            Self
        }

        pub(super) fn read(
            &mut self,
            socket: &UdpSocket,
            slots: &mut Slots,
            lens: &mut [usize; SLOTS],
        ) -> io::Result<usize> {
            let mut count = 0;
            for (slot, len) in slots.iter_mut().zip(lens) {
                match socket.recv(slot) {
                    Ok(read) => *len = read,
                    // It is asked for again.
                    Err(_) if count > 0 => break,
                    Err(error) => return Err(error),
                }
                count += 1;
            }
            Ok(count)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket as Sender};

    use super::*;

    #[test]
    fn all_that_waits_is_read_in_order_with_its_length() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let sender = Sender::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        sender.connect(socket.local_addr().unwrap()).unwrap();
        socket.connect(sender.local_addr().unwrap()).unwrap();
        // The loopback delivers within the call. One is empty, and one longer than any that is valid.
        let lens: Vec<usize> = (0..SLOTS + 3).map(|place| [1200, 0, 5, 3000][place % 4]).collect();
        for (place, len) in lens.iter().enumerate() {
            sender.send(&vec![place as u8; *len]).unwrap();
        }
        let (mut mail, mut read) = (Mail::new(), Vec::new());
        for count in [SLOTS, 3] {
            assert_eq!(mail.read(&socket).unwrap(), count);
            read.extend((0..count).map(|place| mail.datagram(place).to_vec()));
        }
        for (place, (len, datagram)) in lens.iter().zip(&read).enumerate() {
            assert_eq!(*datagram, vec![place as u8; (*len).min(LONGEST_DATAGRAM)], "{place}");
        }
        let nothing = mail.read(&socket).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
    }
}
