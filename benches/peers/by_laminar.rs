//! laminar, unreliable and unordered.

use std::net::SocketAddr;
use std::time::Instant;

use anyhow::Result;
use laminar::{Config, Packet, Socket, SocketEvent};

use crate::by_hand::HELLO;
use crate::course::{Course, Messages, STEP, step};
use crate::drive::{self, Fleet, Serve};

fn socket(clients: usize) -> Result<Socket> {
    let max_unestablished_connections = u16::try_from(clients)?;
    let config = Config { max_unestablished_connections, ..Config::default() };
    Ok(Socket::bind_with_config(("127.0.0.1", 0), config)?)
}

pub(crate) fn serve(course: &Course) -> Result<()> {
    let socket = socket(course.clients)?;
    course.serve_at(socket.local_addr()?);
    drive::serve(course, &mut Server { socket, clients: Vec::new(), messages: Messages::new() })
}

struct Server {
    socket: Socket,
    clients: Vec<SocketAddr>,
    messages: Messages,
}

impl Serve for Server {
    fn reads(&self) -> u32 {
        // It opens its socket itself, with the kernel's usual buffer, which holds 277 steps at most.
        self.clients.len().div_ceil(60) as u32
    }

    fn receive(&mut self) -> Result<u64> {
        self.socket.manual_poll(Instant::now());
        let (mut steps, mut answers) = (0, false);
        while let Some(event) = self.socket.recv() {
            match event {
                SocketEvent::Packet(packet) if packet.payload().len() == STEP => steps += 1,
                SocketEvent::Packet(packet) => {
                    let from = packet.addr();
                    self.socket.send(Packet::unreliable(from, HELLO.to_vec()))?;
                    answers = true;
                    if !self.clients.contains(&from) {
                        self.clients.push(from);
                    }
                }
                SocketEvent::Disconnect(who) => self.clients.retain(|client| *client != who),
                SocketEvent::Connect(_) | SocketEvent::Timeout(_) => {}
            }
        }
        if answers {
            self.socket.manual_poll(Instant::now());
        }
        Ok(steps)
    }

    fn tick(&mut self, tick: u32) -> Result<()> {
        for (client, to) in self.clients.iter().enumerate() {
            self.messages.mark(tick, client);
            let Messages { state, entities } = &self.messages;
            self.socket.send(Packet::unreliable(*to, state.to_vec()))?;
            self.socket.send(Packet::unreliable(*to, entities.to_vec()))?;
        }
        self.socket.manual_poll(Instant::now());
        Ok(())
    }
}

pub(crate) fn play(course: &Course) -> Result<()> {
    let server = course.address()?;
    let client = |_| Ok(Client { socket: socket(1)?, is_in: false });
    let clients = (0..course.clients).map(client).collect::<Result<_>>()?;
    drive::play(course, &mut Clients { server, clients })
}

struct Clients {
    server: SocketAddr,
    clients: Vec<Client>,
}

struct Client {
    socket: Socket,
    is_in: bool,
}

impl Fleet for Clients {
    fn is_in(&self, client: usize) -> bool {
        self.clients[client].is_in
    }

    fn turn(&mut self, course: &Course, client: usize) -> Result<()> {
        let Client { socket, is_in } = &mut self.clients[client];
        if !*is_in {
            socket.send(Packet::unreliable(self.server, HELLO.to_vec()))?;
        }
        socket.manual_poll(Instant::now());
        while let Some(event) = socket.recv() {
            if let SocketEvent::Packet(packet) = event {
                *is_in = true;
                course.note_message(client, packet.payload());
            }
        }
        Ok(())
    }

    fn step(&mut self, _: &Course, client: usize, round: u32) -> Result<()> {
        let socket = &mut self.clients[client].socket;
        socket.send(Packet::unreliable(self.server, step(round).to_vec()))?;
        socket.manual_poll(Instant::now());
        Ok(())
    }
}
