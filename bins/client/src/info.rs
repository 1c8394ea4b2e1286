//! What a server says about itself, without joining.

use std::io::{self, ErrorKind, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use caves_server::{Clock, OsRandom};
use caves_session::Random;
use caves_session::caves::{InfoQuery, ServerInfo};

/// Longer than any valid datagram, so that one too long is seen as such.
const LONGEST_DATAGRAM: usize = 2048;

/// Asks one address after the other, and gives the first answer; `None` when nobody answers.
pub(crate) fn ask(addrs: &[SocketAddr], random: &mut OsRandom) -> Option<ServerInfo> {
    addrs.iter().find_map(|addr| ask_one(*addr, random).ok().flatten())
}

fn ask_one(addr: SocketAddr, random: &mut OsRandom) -> io::Result<Option<ServerInfo>> {
    let socket = match addr {
        SocketAddr::V4(_) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)),
    }?;
    // Then the kernel drops what others send, and tells when nobody listens there.
    socket.connect(addr)?;
    let clock = Clock::start();
    let mut query = InfoQuery::new(random, clock.now());
    let mut buf = [0; LONGEST_DATAGRAM];
    while !query.is_over(clock.now()) {
        let draw = random.next_u64() as u32;
        if let Some(len) = query.poll_transmit(clock.now(), draw, &mut buf) {
            socket.send(&buf[..len])?;
        }
        let wait = query.poll_timeout().map(|due| due.saturating_since(clock.now()));
        // Zero would mean to wait for ever.
        let wait = wait.unwrap_or_default().max(Duration::from_millis(1));
        socket.set_read_timeout(Some(wait))?;
        match socket.recv(&mut buf) {
            Ok(len) => {
                if let Some(info) = query.handle_datagram(clock.now(), &buf[..len]) {
                    return Ok(Some(info));
                }
            }
            Err(error) if is_nothing(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Writes an answer for people, and for `cut -c12-`.
pub(crate) fn write(out: &mut impl Write, info: &ServerInfo) -> io::Result<()> {
    let micros = info.round_trip.as_micros();
    writeln!(out, "name       {}", info.name)?;
    writeln!(out, "message    {}", info.motd)?;
    writeln!(out, "players    {} of {}", info.players, info.max_players)?;
    writeln!(out, "tick       {}", info.tick.get())?;
    writeln!(out, "round trip {}.{:02} ms", micros / 1000, micros % 1000 / 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use caves_wire::caves::Tick;

    #[test]
    fn an_answer_is_five_lines() {
        let info = ServerInfo {
            name: "Forgotten Caves".to_owned(),
            motd: "Mind the ghouls.".to_owned(),
            players: 3,
            max_players: 64,
            tick: Tick::new(123),
            round_trip: Duration::from_micros(23_456),
        };
        let mut out = Vec::new();
        write(&mut out, &info).unwrap();
        insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r"
        name       Forgotten Caves
        message    Mind the ghouls.
        players    3 of 64
        tick       123
        round trip 23.45 ms
        ");
    }
}
