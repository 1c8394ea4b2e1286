//! Any bytes to [`Packet::parse`].

use caves_wire::bits::TILES;
use caves_wire::caves::{
    Action, ActionView, ChallengeView, ChunkView, DetailView, EchoView, EntitiesView, EntityIter,
    EventAckView, EventView, HeaderView, HelloView, Info, InfoRequestView, InfoView, JoinView,
    LeaveView, MAX_EVENT_TEXT, MAX_SAY, Packet, QueryView, RefuseView, StateView, WelcomeView,
};
use caves_wire::fnv::{self, Fnv32};
use caves_wire::tlv::TlvBlock;
use caves_wire::{MAX_DATAGRAM, ParseError};

/// Parses, walks every accessor and iterator, prints. What was accepted keeps what the view promises,
/// and exactly one view accepts what [`Packet::parse`] accepts.
pub fn datagram(data: &[u8]) {
    let accepting = views(data);
    match Packet::parse(data) {
        Err(error) => {
            check_error(error, data);
            assert_eq!(accepting, [""; 0], "a view accepts what was refused as {error}");
        }
        Ok(packet) => {
            let line = format!("{packet}");
            assert!(!line.is_empty() && !line.contains(char::is_control), "one line: {line:?}");
            assert_eq!(format!("{packet:?}"), line);
            let known = !matches!(packet, Packet::UnknownType(_) | Packet::OtherVersion(_));
            assert_eq!(accepting.len(), usize::from(known), "{line}: {accepting:?}");
            walk(packet, data);
        }
    }
    let half = &data[..data.len() / 2];
    assert_eq!(fnv::fnv1a_many([data, half, b""]), [data, half, b""].map(naive_fnv));
}

/// The views that accept these bytes.
fn views(data: &[u8]) -> Vec<&'static str> {
    let outcomes = [
        ("State", StateView::parse(data).err()),
        ("Action", ActionView::parse(data).err()),
        ("Chunk", ChunkView::parse(data).err()),
        ("Entities", EntitiesView::parse(data).err()),
        ("Query", QueryView::parse(data).err()),
        ("Detail", DetailView::parse(data).err()),
        ("Echo", EchoView::parse(data).err()),
        ("Hello", HelloView::parse(data).err()),
        ("Challenge", ChallengeView::parse(data).err()),
        ("Join", JoinView::parse(data).err()),
        ("Welcome", WelcomeView::parse(data).err()),
        ("Refuse", RefuseView::parse(data).err()),
        ("Leave", LeaveView::parse(data).err()),
        ("Event", EventView::parse(data).err()),
        ("EventAck", EventAckView::parse(data).err()),
        ("InfoRequest", InfoRequestView::parse(data).err()),
        ("Info", InfoView::parse(data).err()),
    ];
    if let Ok(hello) = HelloView::parse_any_version(data) {
        assert_eq!((data.len(), data[3]), (64, 8));
        assert_eq!(hello.nonce().0.to_le_bytes(), data[6..14]);
    }
    outcomes.into_iter().filter(|(_, error)| error.is_none()).map(|(name, _)| name).collect()
}

/// The place named lies in the datagram, and what was needed was not there.
fn check_error(error: ParseError, data: &[u8]) {
    assert!(error.offset <= data.len(), "{error} of {} bytes", data.len());
    assert_ne!(error.needed, error.got, "{error}");
    assert!(!error.to_string().contains(char::is_control));
}

fn walk(packet: Packet<'_>, data: &[u8]) {
    assert!(data.len() <= MAX_DATAGRAM);
    match packet {
        Packet::State(view) => {
            let _ = (view.tick(), view.chunks(), view.player(), view.entity_checksum());
        }
        Packet::Action(view) => {
            let _ = (view.client_type(), view.token(), view.sequence(), view.cache());
            let action = view.action();
            assert!(action.number() <= 13);
            if let Action::Say(text) = action {
                assert!((1..=MAX_SAY).contains(&text.len()));
            }
            assert_eq!(action.map_text(str::to_owned).as_deref(), action);
        }
        Packet::Chunk(view) => chunk(view),
        Packet::Entities(view) => entities(view),
        Packet::Query(view) => {
            let _ = (view.token(), view.entity());
        }
        Packet::Detail(view) => {
            let _ = (view.tick(), view.entity());
            meta(view.meta());
        }
        Packet::Ping(view) | Packet::Pong(view) => {
            assert_eq!(view.timestamp_ms().to_le_bytes(), data[6..14]);
            let _ = view.kind();
        }
        Packet::Hello(view) => {
            let _ = (view.client_type(), view.nonce());
        }
        Packet::Challenge(view) => {
            assert_eq!((&view.cookie()[..], &view.server_key()[..]), (&data[14..30], &data[30..]));
        }
        Packet::Join(view) => {
            let _ =
                (view.client_type(), view.nonce(), view.cookie(), view.features(), view.token());
            let _ = view.name();
            meta(view.meta());
        }
        Packet::Welcome(view) => {
            let _ = (view.nonce(), view.token(), view.player(), view.tick(), view.features());
            let _ = view.next_event();
            assert!(view.tick_rate() > 0);
            meta(view.meta());
        }
        Packet::Refuse(view) => {
            let _ = (view.nonce(), view.reason().may_retry(), view.version());
            assert_eq!(view.text().as_bytes(), &data[17..]);
        }
        Packet::Leave(view) => {
            let _ = (view.token(), view.reason().may_return());
        }
        Packet::Event(view) => {
            let _ = (view.sequence(), view.kind(), view.from());
            assert!(view.text().len() <= MAX_EVENT_TEXT);
        }
        Packet::EventAck(view) => {
            let _ = (view.token(), view.sequence());
        }
        Packet::InfoRequest(view) => {
            let _ = view.nonce();
        }
        Packet::Info(view) => {
            let _ = (view.nonce(), view.tick(), view.players(), view.max_players());
            assert!(view.meta().as_bytes().len() <= Info::MAX_META);
            meta(view.meta());
        }
        Packet::UnknownType(header) | Packet::OtherVersion(header) => {
            let seen = HeaderView::parse(data).expect("it has a header");
            assert_eq!((seen.version(), seen.packet_type()), (data[2], header.packet_type()));
            let _ = (header.client_type(), header.packet_type().is_from_client());
        }
        _ => {}
    }
}

fn chunk(view: ChunkView<'_>) {
    let palette: Vec<u16> = view.palette().collect();
    assert!((1..=64).contains(&palette.len()));
    let (mut indices, mut tiles) = ([0xEE; TILES], [0xEEEE; TILES]);
    view.indices(&mut indices);
    view.tiles(&mut tiles);
    for (index, tile) in indices.iter().zip(tiles) {
        assert_eq!(palette.get(usize::from(*index)), Some(&tile), "index {index}");
    }
    let _ = view.entry();
}

fn entities(view: EntitiesView<'_>) {
    let listed: Vec<_> = view.entities().collect();
    assert_eq!(listed.len(), usize::from(view.count()));
    let again = EntityIter::new(view.entry_bytes());
    assert!(again.map(|entity| entity.id()).eq(listed.iter().map(|entity| entity.id())));
    let bytes: usize = listed.iter().map(|entity| entity.to_entity().len()).sum();
    assert_eq!(bytes, view.entry_bytes().len());
    assert_eq!(view.checksum(Fnv32::new()).finish(), naive_fnv(view.entry_bytes()));
    let _ = (view.tick(), view.more_follow());
    for entity in listed {
        let _ = (entity.type_id(), entity.x(), entity.y(), entity.hp(), entity.hp_max());
        let _ = (entity.elo(), entity.flags(), format!("{entity:?}"));
        meta(entity.meta());
    }
}

/// Bytes of a block whose tags are asked for one by one: more would cost their square.
const ASKED: usize = 64;

/// The fields fill their block, and what is asked by tag is what the fields say.
fn meta(block: TlvBlock<'_>) {
    let mut at = 0;
    for field in block.fields() {
        assert_eq!(block.as_bytes()[at..at + 2], [field.tag, field.value.len() as u8]);
        at += 2 + field.value.len();
        if at > ASKED {
            continue;
        }
        let of_tag = || block.fields().filter(move |other| other.tag == field.tag);
        assert_eq!(block.first(field.tag), of_tag().next().map(|first| first.value));
        assert!(block.values(field.tag).eq(of_tag().map(|other| other.value)));
    }
    assert_eq!(at, block.as_bytes().len());
}

/// FNV-1a as its page has it.
fn naive_fnv(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .fold(0x811C_9DC5, |hash: u32, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}
