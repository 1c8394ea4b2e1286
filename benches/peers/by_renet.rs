//! renet: its messages over netcode, and over a bare socket.
//!
//! netcode encrypts in its mode without authentication, too; "plain" is renet's own channels with a socket in
//! place of netcode.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Result;
use bytes::Bytes;
use renet::{ClientId, ConnectionConfig, DefaultChannel, RenetClient, RenetServer};
use renet_netcode::{
    ClientAuthentication, NetcodeClientTransport, NetcodeServerTransport, ServerAuthentication,
    ServerConfig,
};

use crate::by_hand::{HELLO, ROOM, receive_from, server_socket, socket};
use crate::course::{Course, Messages, STEP, step};
use crate::drive::{self, Fleet, Serve};

const PROTOCOL: u64 = 7;
const CHANNEL: DefaultChannel = DefaultChannel::Unreliable;

/// What carries renet's packets for a server.
trait ServerSocket {
    fn receive(&mut self, passed: Duration, renet: &mut RenetServer) -> Result<()>;
    fn send(&mut self, renet: &mut RenetServer) -> Result<()>;
}

/// What carries renet's packets for a client.
trait ClientSocket {
    fn receive(&mut self, passed: Duration, renet: &mut RenetClient) -> Result<()>;
    fn send(&mut self, renet: &mut RenetClient) -> Result<()>;
}

pub(crate) fn serve_netcode(course: &Course) -> Result<()> {
    let socket = server_socket()?;
    let address = socket.local_addr()?;
    let config = ServerConfig {
        current_time: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?,
        max_clients: course.clients,
        protocol_id: PROTOCOL,
        public_addresses: vec![address],
        authentication: ServerAuthentication::Unsecure,
    };
    let transport = NetcodeServerTransport::new(config, socket)?;
    course.serve_at(address);
    drive::serve(course, &mut Server::new(transport))
}

pub(crate) fn serve_plain(course: &Course) -> Result<()> {
    let socket = server_socket()?;
    course.serve_at(socket.local_addr()?);
    drive::serve(course, &mut Server::new(PlainServer { socket, clients: Vec::new() }))
}

struct Server<T> {
    transport: T,
    renet: RenetServer,
    updated: Instant,
    messages: Messages,
}

impl<T: ServerSocket> Server<T> {
    fn new(transport: T) -> Self {
        let renet = RenetServer::new(ConnectionConfig::default());
        Self { transport, renet, updated: Instant::now(), messages: Messages::new() }
    }
}

impl<T: ServerSocket> Serve for Server<T> {
    fn receive(&mut self) -> Result<u64> {
        let passed = self.updated.elapsed();
        self.updated += passed;
        self.renet.update(passed);
        self.transport.receive(passed, &mut self.renet)?;
        while self.renet.get_event().is_some() {}
        let mut steps = 0;
        for client in self.renet.clients_id() {
            while let Some(message) = self.renet.receive_message(client, CHANNEL) {
                steps += u64::from(message.len() == STEP);
            }
        }
        Ok(steps)
    }

    fn tick(&mut self, tick: u32) -> Result<()> {
        for client in self.renet.clients_id() {
            self.messages.mark(tick, client as usize);
            let Messages { state, entities } = &self.messages;
            self.renet.send_message(client, CHANNEL, Bytes::copy_from_slice(state));
            self.renet.send_message(client, CHANNEL, Bytes::copy_from_slice(entities));
        }
        self.transport.send(&mut self.renet)
    }
}

impl ServerSocket for NetcodeServerTransport {
    fn receive(&mut self, passed: Duration, renet: &mut RenetServer) -> Result<()> {
        Ok(self.update(passed, renet)?)
    }

    fn send(&mut self, renet: &mut RenetServer) -> Result<()> {
        self.send_packets(renet);
        Ok(())
    }
}

/// A client's id is its place; its port tells who it is.
struct PlainServer {
    socket: UdpSocket,
    clients: Vec<Option<(ClientId, SocketAddr)>>,
}

impl ServerSocket for PlainServer {
    fn receive(&mut self, _: Duration, renet: &mut RenetServer) -> Result<()> {
        let mut buf = [0; ROOM];
        while let Some((len, from)) = receive_from(&self.socket, &mut buf)? {
            let port = usize::from(from.port());
            if self.clients.len() <= port {
                self.clients.resize(port + 1, None);
            }
            if buf[..len] != HELLO {
                if let Some((client, _)) = self.clients[port] {
                    renet.process_packet_from(&buf[..len], client)?;
                }
                continue;
            }
            self.socket.send_to(&HELLO, from)?;
            if self.clients[port].is_none() {
                self.clients[port] = Some((port as ClientId, from));
                renet.add_connection(port as ClientId);
            }
        }
        Ok(())
    }

    fn send(&mut self, renet: &mut RenetServer) -> Result<()> {
        for (client, to) in self.clients.iter().flatten() {
            for packet in renet.get_packets_to_send(*client)? {
                self.socket.send_to(&packet, to)?;
            }
        }
        Ok(())
    }
}

pub(crate) fn play_netcode(course: &Course) -> Result<()> {
    let server_addr = course.address()?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    drive::play(
        course,
        &mut Clients::new(course, |client| {
            let authentication = ClientAuthentication::Unsecure {
                protocol_id: PROTOCOL,
                client_id: client as ClientId,
                server_addr,
                user_data: None,
            };
            Ok(NetcodeClientTransport::new(now, authentication, socket()?)?)
        })?,
    )
}

pub(crate) fn play_plain(course: &Course) -> Result<()> {
    let server = course.address()?;
    drive::play(
        course,
        &mut Clients::new(course, |_| {
            let socket = socket()?;
            socket.connect(server)?;
            Ok(PlainClient { socket })
        })?,
    )
}

struct Clients<T> {
    clients: Vec<Client<T>>,
}

struct Client<T> {
    transport: T,
    renet: RenetClient,
    updated: Instant,
}

impl<T> Clients<T> {
    fn new(course: &Course, transport: impl Fn(usize) -> Result<T>) -> Result<Self> {
        let client = |client| {
            let renet = RenetClient::new(ConnectionConfig::default());
            Ok(Client { transport: transport(client)?, renet, updated: Instant::now() })
        };
        Ok(Self { clients: (0..course.clients).map(client).collect::<Result<_>>()? })
    }
}

impl<T: ClientSocket> Fleet for Clients<T> {
    fn is_in(&self, client: usize) -> bool {
        self.clients[client].renet.is_connected()
    }

    fn turn(&mut self, course: &Course, client: usize) -> Result<()> {
        let Client { transport, renet, updated } = &mut self.clients[client];
        let passed = updated.elapsed();
        *updated += passed;
        renet.update(passed);
        transport.receive(passed, renet)?;
        while let Some(message) = renet.receive_message(CHANNEL) {
            course.note_message(client, &message);
        }
        Ok(())
    }

    fn step(&mut self, _: &Course, client: usize, round: u32) -> Result<()> {
        let Client { transport, renet, .. } = &mut self.clients[client];
        renet.send_message(CHANNEL, Bytes::copy_from_slice(&step(round)));
        transport.send(renet)
    }
}

impl ClientSocket for NetcodeClientTransport {
    fn receive(&mut self, passed: Duration, renet: &mut RenetClient) -> Result<()> {
        Ok(self.update(passed, renet)?)
    }

    fn send(&mut self, renet: &mut RenetClient) -> Result<()> {
        Ok(self.send_packets(renet)?)
    }
}

struct PlainClient {
    socket: UdpSocket,
}

impl ClientSocket for PlainClient {
    fn receive(&mut self, _: Duration, renet: &mut RenetClient) -> Result<()> {
        let mut buf = [0; ROOM];
        while let Some((len, _)) = receive_from(&self.socket, &mut buf)? {
            if buf[..len] == HELLO {
                renet.set_connected();
            } else {
                renet.process_packet(&buf[..len]);
            }
        }
        if !renet.is_connected() {
            self.socket.send(&HELLO)?;
        }
        Ok(())
    }

    fn send(&mut self, renet: &mut RenetClient) -> Result<()> {
        for packet in renet.get_packets_to_send() {
            self.socket.send(&packet)?;
        }
        Ok(())
    }
}
