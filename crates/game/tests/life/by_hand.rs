//! A client whose server is written by hand, so that ticks may go by in strides.

use std::time::Duration;

use caves_link::time::Instant;
use caves_session::SplitMix;
use caves_session::caves::{Client, ClientConfig, ClientEvent};
use caves_wire::caves::{
    Challenge, ChunkEntry, Entity, EntityBuilder, EntityFlags, EntityId, Features, HelloView,
    JoinView, Nonce, State, Tick, Token, Welcome, tag,
};
use caves_wire::fnv::Fnv32;
use caves_wire::tlv::TlvWriter;

const ME: EntityId = EntityId(1);
/// The farthest tick that is taken at once (R31).
pub(crate) const STRIDE: u64 = 600;

/// Joins at tick `start`, a plain count, and takes `count` States in strides that `stride` chooses from
/// the step's number, 1 to 600. After each, the tick shown is that of the plain count, whose lowest 32
/// bits are on the wire. Gives the last count.
pub(crate) fn stride_along(start: u64, count: u64, stride: impl Fn(u64) -> u64) -> u64 {
    let mut now = Instant::from_secs(1000);
    let mut client = welcomed(now, start);
    let mut tick = start;
    for step in 0..count {
        now += Duration::from_millis(100);
        tick += stride(step);
        let on_wire = Tick::new((tick & 0xFFFF_FFFF) as u32);
        let (state, entities) = packets(on_wire, (step % 1000) as u16);
        // Entities that come first are taken up to eight ticks ahead.
        let first = step % 3 == 0 && stride(step) <= 8;
        let pair = if first { [&entities, &state] } else { [&state, &entities] };
        for bytes in pair {
            client.handle_datagram(now, bytes);
        }
        assert_eq!(client.tick().map(Tick::get), Some(on_wire.get()), "step {step}");
        assert_eq!(client.updated_tick(), Some(on_wire), "step {step}");
        let shown: Vec<_> = client.entities().map(|entity| entity.hp()).collect();
        assert_eq!(shown, [(step % 1000) as u16], "step {step}");
        client.handle_timeout(now);
        let told: Vec<_> = std::iter::from_fn(|| client.poll_event()).collect();
        assert_eq!(told, [ClientEvent::Updated(on_wire)], "step {step}");
        let mut buf = [0; 1200];
        while client.poll_transmit(now, &mut buf).is_some() {}
    }
    assert_eq!(client.counters().dropped_in_all(), 0);
    tick
}

/// A client in its session, by an attempt that is answered here.
fn welcomed(now: Instant, tick: u64) -> Client {
    let mut client = Client::new(ClientConfig::default(), Box::new(SplitMix::new(1)), now);
    let (mut asked, mut answer) = ([0; 1200], [0; 1200]);
    let len = client.poll_transmit(now, &mut asked).expect("a Hello");
    let nonce: Nonce = HelloView::parse(&asked[..len]).expect("a Hello").nonce();
    let challenge = Challenge { nonce, cookie: [7; 16], server_key: [0; 32] };
    let len = challenge.emit(&mut answer).expect("a Challenge");
    client.handle_datagram(now, &answer[..len]);
    let len = client.poll_transmit(now, &mut asked).expect("a Join");
    assert_eq!(JoinView::parse(&asked[..len]).expect("a Join").nonce(), nonce);
    let mut block = [0; 64];
    let mut tlv = TlvWriter::new(&mut block);
    tlv.put(tag::FEATURES, &Features::EVENTS.0.to_le_bytes()).expect("room");
    let welcome = Welcome {
        nonce,
        token: Token(5),
        player: ME,
        tick: Tick::new((tick & 0xFFFF_FFFF) as u32),
        tick_rate: 10,
        meta: tlv.finish(),
    };
    let len = welcome.emit(&mut answer).expect("a Welcome");
    client.handle_datagram(now, &answer[..len]);
    assert!(matches!(client.poll_event(), Some(ClientEvent::Joined { .. })));
    client
}

/// A State and its Entities: the player alone, with so many hit points.
fn packets(tick: Tick, hp: u16) -> (Vec<u8>, Vec<u8>) {
    let (mut state, mut entities) = ([0; 72], [0; 1200]);
    let mut builder = EntityBuilder::new(&mut entities, tick, Fnv32::new()).expect("room");
    // A name, 0x04: the server tells this session all.
    let meta = [0x04, 3, b'A', b'd', b'a'];
    let flags = EntityFlags::default();
    let me =
        Entity { id: ME, type_id: 0, x: 0, y: 0, hp, hp_max: 1000, elo: 0, flags, meta: &meta };
    assert!(builder.push(&me).expect("it is valid"));
    let (len, checksum) = builder.finish(false);
    let chunks = [ChunkEntry::default(); 9];
    let entity_checksum = checksum.finish();
    let written = State { tick, chunks, player: ME, entity_checksum }.emit(&mut state);
    (state[..written.expect("room")].to_vec(), entities[..len].to_vec())
}
