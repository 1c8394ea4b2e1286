//! A bot on the session's client: it joins, wanders, says hello to whom it meets, and leaves.
//!
//!     cargo run -p caves-session --example wanderer -- 127.0.0.1:21068 10
//!
//! Lost datagrams, restarts of the server and new addresses are not its business.
#![allow(
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "an example has a socket and a clock, and tells what it does"
)]

use std::collections::BTreeSet;
use std::error::Error;
use std::hash::{BuildHasher, RandomState};
use std::net::UdpSocket;
use std::time::Duration;

use caves_link::time::Instant;
use caves_session::caves::{Client, ClientConfig, ClientEvent, OwnedAction};
use caves_wire::caves::{Direction, tag};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [server, seconds] = &args[..] else {
        return Err("usage: wanderer HOST:PORT SECONDS".into());
    };
    let (steps, met) = wander(server, Duration::from_secs(seconds.parse()?))?;
    println!("{steps} steps, met {met:?}");
    Ok(())
}

/// Wanders for a while: how many steps it asked for, and whom it met.
pub(crate) fn wander(
    server: &str,
    time: Duration,
) -> Result<(u32, BTreeSet<String>), Box<dyn Error>> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(Duration::from_millis(10)))?;
    let start = std::time::Instant::now();
    let now = || Instant::from_micros(start.elapsed().as_micros() as u64);

    // Good enough for a bot; a program for people takes the operating system's generator.
    let mut asked = 0u64;
    let random = move || {
        asked += 1;
        RandomState::new().hash_one(asked)
    };
    let mut client = Client::new(ClientConfig::default(), Box::new(random), now());
    let (mut steps, mut met) = (0, BTreeSet::new());
    while !client.is_drained() {
        let mut buf = [0; 2048];
        if let Ok(len) = socket.recv(&mut buf) {
            client.handle_datagram(now(), &buf[..len]);
        }
        client.handle_timeout(now());
        while let Some(event) = client.poll_event() {
            match event {
                ClientEvent::Updated(tick) if tick.get() % 5 == 0 => {
                    let ways =
                        [Direction::North, Direction::East, Direction::South, Direction::West];
                    let way = ways[tick.get() as usize / 5 * 7 % 4];
                    steps += u32::from(client.push(OwnedAction::Walk(way)).is_ok());
                    let names = client.entities().filter(|one| Some(one.id()) != client.player());
                    for name in names.filter_map(|one| one.meta().first(tag::ENTITY_NAME)) {
                        let name = String::from_utf8_lossy(name).into_owned();
                        let hello = format!("Hello, {name}!");
                        if met.insert(name) {
                            let _ = client.push(OwnedAction::Say(hello));
                            break;
                        }
                    }
                }
                ClientEvent::Updated(_) => {}
                other => println!("{other:?}"),
            }
        }
        if start.elapsed() >= time {
            client.leave(now());
        }
        while let Some(len) = client.poll_transmit(now(), &mut buf) {
            // A datagram that is not sent is one that is lost.
            let _ = socket.send(&buf[..len]);
        }
    }
    Ok((steps, met))
}
