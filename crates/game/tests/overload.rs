//! A machine that cannot send a tick within a tick: the game slows for everybody alike.

use std::collections::BTreeMap;
use std::time::Duration;

use caves_game::{Client, Server, ServerConfig, ServerEvent};
use caves_link::time::Instant;
use caves_session::{Peer, SplitMix};
use caves_wire::caves::Packet;

const CLIENTS: u16 = 4;
/// What one datagram takes. Each client gets a state and its entities: 160 ms a tick for four.
const DATAGRAM: Duration = Duration::from_millis(20);

struct Hall {
    server: Server,
    clients: Vec<Client>,
    now: Instant,
    /// The ticks of the states that each was sent.
    ticks: BTreeMap<u16, Vec<u32>>,
    dropped: u64,
}

impl Hall {
    fn open() -> Self {
        let now = Instant::from_secs(1);
        let random = |seed| Box::new(SplitMix::new(seed));
        let server = Server::new(ServerConfig::default(), random(1), now, 0);
        let clients = (0..CLIENTS)
            .map(|place| Client::new(Default::default(), random(10 + u64::from(place)), now));
        Self { server, clients: clients.collect(), now, ticks: BTreeMap::new(), dropped: 0 }
    }

    /// Everybody says what they have to say, and timers are looked at.
    fn turn(&mut self) {
        let mut buf = [0; 1200];
        for (place, client) in self.clients.iter_mut().enumerate() {
            client.handle_timeout(self.now);
            while client.poll_event().is_some() {}
            while let Some(len) = client.poll_transmit(self.now, &mut buf) {
                self.server.handle_datagram(self.now, peer(place as u16), &buf[..len]);
            }
        }
        if self.server.poll_timeout().is_some_and(|due| due <= self.now) {
            self.server.handle_timeout(self.now);
        }
        while let Some(event) = self.server.poll_event() {
            if let ServerEvent::TicksDropped { count } = event {
                self.dropped += count;
            }
        }
    }

    /// Sends one datagram; `false` when there is none.
    fn send(&mut self) -> bool {
        let mut buf = [0; 1200];
        let Some(transmit) = self.server.poll_transmit(self.now, &mut buf) else { return false };
        let (port, datagram) = (transmit.to.addr.port(), &buf[..transmit.len]);
        if let Ok(Packet::State(state)) = Packet::parse(datagram) {
            self.ticks.entry(port).or_default().push(state.tick().get());
        }
        self.clients[usize::from(port) - 1].handle_datagram(self.now, datagram);
        true
    }
}

fn peer(place: u16) -> Peer {
    Peer { socket: 0, addr: ([127, 0, 0, 1], place + 1).into() }
}

#[test]
fn every_tick_is_sent_to_everybody_and_comes_later() {
    let mut hall = Hall::open();
    // At first the machine is fast enough: all are let in, and have their chunks.
    for _ in 0..150 {
        hall.now += DATAGRAM;
        hall.turn();
        while hall.send() {}
    }
    assert_eq!(hall.server.players(), usize::from(CLIENTS));
    hall.ticks.clear();
    assert_eq!(hall.dropped, 0);
    let (seconds, before) = (20, hall.server.tick().get());
    for _ in 0..seconds * 50 {
        hall.now += DATAGRAM;
        hall.turn();
        hall.send();
    }
    let run = hall.server.tick().get() - before;
    // 1000 datagrams, 8 a tick and some in answer to what clients ask.
    assert!((100..=125).contains(&run), "{run} ticks in {seconds} s");
    assert_eq!(hall.ticks.len(), usize::from(CLIENTS));
    for ticks in hall.ticks.values() {
        assert!(
            ticks.windows(2).all(|pair| pair[1] == pair[0] + 1),
            "no tick is left out: {ticks:?}"
        );
        assert!(ticks.len() + 1 >= run as usize, "{} of {run}", ticks.len());
    }
    // What there was no time for is told: ten were due each second.
    let missing = u64::from(10 * seconds - run);
    assert!(hall.dropped.abs_diff(missing) <= 3, "{} told, {missing} missing", hall.dropped);
}
