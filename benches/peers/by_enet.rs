//! ENet, as `rusty_enet` has it. Both messages of a tick travel in one datagram, by its own choice.

use std::net::UdpSocket;

use anyhow::{Result, anyhow};
use rusty_enet::consts::{PEER_PACKET_THROTTLE_ACCELERATION, PEER_PACKET_THROTTLE_INTERVAL};
use rusty_enet::{EventNoRef, Host, HostSettings, Packet, Peer, PeerID};

use crate::by_hand::{server_socket, socket};
use crate::course::{Course, Messages, STEP, step};
use crate::drive::{self, Fleet, Serve};

pub(crate) fn serve(course: &Course) -> Result<()> {
    let socket = server_socket()?;
    let address = socket.local_addr()?;
    let host = host(socket, course.clients)?;
    course.serve_at(address);
    drive::serve(course, &mut Server { host, clients: Vec::new(), messages: Messages::new() })
}

fn host(socket: UdpSocket, peer_limit: usize) -> Result<Host<UdpSocket>> {
    let settings = HostSettings { peer_limit, channel_limit: 1, ..HostSettings::default() };
    Host::new(socket, settings).map_err(|error| anyhow!("no host: {error:?}"))
}

fn packet(message: &[u8]) -> Packet {
    Packet::unreliable(message)
}

/// ENet leaves unreliable packets out while round trips vary; here everything is due. Each side decides what
/// the other one does.
fn send_all(peer: &mut Peer<UdpSocket>) {
    peer.set_throttle(PEER_PACKET_THROTTLE_INTERVAL, PEER_PACKET_THROTTLE_ACCELERATION, 0);
}

struct Server {
    host: Host<UdpSocket>,
    clients: Vec<PeerID>,
    messages: Messages,
}

impl Serve for Server {
    fn receive(&mut self) -> Result<u64> {
        let mut steps = 0;
        while let Some(event) = self.host.service()? {
            match event.no_ref() {
                EventNoRef::Connect { peer, .. } => {
                    send_all(self.host.peer_mut(peer));
                    self.clients.push(peer);
                }
                EventNoRef::Disconnect { peer, .. } => self.clients.retain(|other| *other != peer),
                EventNoRef::Receive { packet, .. } => {
                    steps += u64::from(packet.data().len() == STEP);
                }
            }
        }
        Ok(steps)
    }

    fn tick(&mut self, tick: u32) -> Result<()> {
        for (client, id) in self.clients.iter().enumerate() {
            self.messages.mark(tick, client);
            let peer = self.host.peer_mut(*id);
            peer.send(0, &packet(&self.messages.state))?;
            peer.send(0, &packet(&self.messages.entities))?;
        }
        self.host.flush();
        Ok(())
    }
}

pub(crate) fn play(course: &Course) -> Result<()> {
    let server = course.address()?;
    let client = |_| {
        let mut host = host(socket()?, 1)?;
        let peer = host.connect(server, 1, 0).map_err(|error| anyhow!("{error:?}"))?.id();
        Ok(Client { host, peer, is_in: false })
    };
    let clients = (0..course.clients).map(client).collect::<Result<_>>()?;
    drive::play(course, &mut Clients { clients })
}

struct Clients {
    clients: Vec<Client>,
}

struct Client {
    host: Host<UdpSocket>,
    peer: PeerID,
    is_in: bool,
}

impl Fleet for Clients {
    fn is_in(&self, client: usize) -> bool {
        self.clients[client].is_in
    }

    fn turn(&mut self, course: &Course, place: usize) -> Result<()> {
        let client = &mut self.clients[place];
        while let Some(event) = client.host.service()? {
            match event.no_ref() {
                EventNoRef::Connect { peer, .. } => {
                    send_all(client.host.peer_mut(peer));
                    client.is_in = true;
                }
                EventNoRef::Disconnect { .. } => client.is_in = false,
                EventNoRef::Receive { packet, .. } => {
                    course.note_message(place, packet.data());
                }
            }
        }
        Ok(())
    }

    fn step(&mut self, _: &Course, client: usize, round: u32) -> Result<()> {
        let Client { host, peer, .. } = &mut self.clients[client];
        host.peer_mut(*peer).send(0, &packet(&step(round)))?;
        host.flush();
        Ok(())
    }
}
