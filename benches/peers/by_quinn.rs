//! Datagrams of quinn: QUIC, so each is encrypted, and both messages of a tick fit in one. Each side is one thread,
//! with tokio's runtime of one thread.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bytes::Bytes;
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::PrivatePkcs8KeyDer;
use quinn::{
    ClientConfig, Connection, Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig,
};
use rcgen::{CertifiedKey, KeyPair};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant as Moment, MissedTickBehavior, interval_at, sleep};

use crate::by_hand::{server_socket, socket};
use crate::course::{Course, Messages, PERIOD, STEP, Stage, step};

/// What an Ethernet carries; quinn would find that out after a while.
const MTU: u16 = 1452;
const NAME: &str = "localhost";
/// A look at the course.
const GLANCE: Duration = Duration::from_millis(5);
/// Steps are sent so often.
const NAP: Duration = Duration::from_millis(1);

/// What the server shows and the clients trust.
fn certificate() -> Result<&'static CertifiedKey<KeyPair>> {
    static KEPT: OnceLock<CertifiedKey<KeyPair>> = OnceLock::new();
    if let Some(kept) = KEPT.get() {
        return Ok(kept);
    }
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    Ok(KEPT.get_or_init(|| made))
}

fn transport() -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config.initial_mtu(MTU).mtu_discovery_config(None);
    Arc::new(config)
}

fn runtime() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

fn endpoint(config: Option<ServerConfig>, socket: std::net::UdpSocket) -> Result<Endpoint> {
    let runtime = Arc::new(TokioRuntime);
    Ok(Endpoint::new(EndpointConfig::default(), config, socket, runtime)?)
}

type Connections = Arc<Mutex<Vec<Connection>>>;
type Steps = Arc<AtomicU64>;

pub(crate) fn serve(course: &Course) -> Result<()> {
    let CertifiedKey { cert, signing_key } = certificate()?;
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let mut config = ServerConfig::with_single_cert(vec![cert.der().clone()], key.into())?;
    config.transport_config(transport());
    runtime()?.block_on(async {
        let endpoint = endpoint(Some(config), server_socket()?)?;
        course.serve_at(endpoint.local_addr()?);
        let connections = Connections::default();
        let steps = Steps::default();
        tokio::spawn(accept(endpoint.clone(), Arc::clone(&connections), Arc::clone(&steps)));
        tick(course, &connections).await?;
        course.steps_heard.store(steps.load(Ordering::Relaxed), Ordering::Relaxed);
        endpoint.close(0u32.into(), b"");
        Ok(())
    })
}

async fn accept(endpoint: Endpoint, connections: Connections, steps: Steps) {
    while let Some(incoming) = endpoint.accept().await {
        let (connections, steps) = (Arc::clone(&connections), Arc::clone(&steps));
        tokio::spawn(async move {
            let Ok(connection) = incoming.await else { return };
            if let Ok(mut connections) = connections.lock() {
                connections.push(connection.clone());
            }
            while let Ok(message) = connection.read_datagram().await {
                steps.fetch_add(u64::from(message.len() == STEP), Ordering::Relaxed);
            }
        });
    }
}

async fn tick(course: &Course, connections: &Connections) -> Result<()> {
    while course.stage() == Stage::Joining {
        sleep(GLANCE).await;
    }
    let mut period = interval_at(Moment::now() + PERIOD, PERIOD);
    period.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut messages = Messages::new();
    for tick in 1.. {
        period.tick().await;
        if course.is_over() {
            break;
        }
        let connections = connections.lock().ok().context("a task has panicked")?.clone();
        for (client, connection) in connections.iter().enumerate() {
            messages.mark(tick, client);
            connection.send_datagram(Bytes::copy_from_slice(&messages.state))?;
            connection.send_datagram(Bytes::copy_from_slice(&messages.entities))?;
        }
    }
    Ok(())
}

pub(crate) fn play(course: &'static Course) -> Result<()> {
    let server = course.address()?;
    let mut roots = RootCertStore::empty();
    roots.add(certificate()?.cert.der().clone())?;
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(transport());
    runtime()?.block_on(join_and_play(course, server, config))
}

async fn join_and_play(
    course: &'static Course,
    server: SocketAddr,
    config: ClientConfig,
) -> Result<()> {
    // Without its endpoint a connection has nobody to read its socket.
    let mut clients = Vec::with_capacity(course.clients);
    for _ in 0..course.clients {
        let endpoint = endpoint(None, socket()?)?;
        let connection = endpoint.connect_with(config.clone(), server, NAME)?.await?;
        tokio::spawn(hear(course, clients.len(), connection.clone()));
        clients.push((endpoint, connection));
        course.joined.store(clients.len(), Ordering::Release);
    }
    while course.stage() == Stage::Joining {
        sleep(GLANCE).await;
    }
    let (begin, mut said) = (Instant::now(), 0);
    while !course.is_over() {
        let due = begin.elapsed().as_micros() * course.clients as u128 / PERIOD.as_micros();
        while said < due as usize && course.stage() == Stage::Playing {
            let (client, round) = (said % course.clients, said / course.clients);
            let message = Bytes::copy_from_slice(&step(round as u32));
            clients[client].1.send_datagram(message)?;
            course.steps_sent.fetch_add(1, Ordering::Relaxed);
            said += 1;
        }
        sleep(NAP).await;
    }
    Ok(())
}

async fn hear(course: &'static Course, client: usize, connection: Connection) {
    while let Ok(message) = connection.read_datagram().await {
        course.note_message(client, &message);
    }
}
