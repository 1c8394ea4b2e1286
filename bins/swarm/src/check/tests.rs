//! Each kind of failure is planted by hand and found, and what is no failure is not.

use super::*;
use caves_wire::caves::{
    ActionPacket, Chunk, ClientType, Entity, EntityBuilder, EntityFlags, State, Token,
};

/// One client and what it is told.
#[derive(Default)]
struct Scene {
    check: Check,
    chunks: Chunks,
    failures: Failures,
    incomplete: u64,
}

/// Entities as `(id, x, y)`.
type Shown = [(u32, i16, i16)];

const OWN: EntityId = EntityId(20);

fn entry(x: i16, y: i16, version: u16) -> ChunkEntry {
    ChunkEntry { id: ChunkId { x, y }, version: ChunkVersion(version) }
}

fn around(x: i16, y: i16) -> [ChunkEntry; 9] {
    let mut all = [ChunkEntry::default(); 9];
    let mut place = 0;
    for dy in -1..=1 {
        for dx in -1..=1 {
            all[place] = entry(x + dx, y + dy, 7);
            place += 1;
        }
    }
    all
}

fn state(tick: u32, chunks: [ChunkEntry; 9], entity_checksum: u32) -> Vec<u8> {
    let mut buf = vec![0; 72];
    State { tick: Tick::new(tick), chunks, player: OWN, entity_checksum }.emit(&mut buf).unwrap();
    buf
}

/// A datagram of these entities.
fn entities(tick: u32, entities: &Shown, more: bool) -> Vec<u8> {
    let mut buf = vec![0; 1200];
    let mut builder = EntityBuilder::new(&mut buf, Tick::new(tick), Fnv32::new()).unwrap();
    for &(id, x, y) in entities {
        let flags = EntityFlags::default();
        let (id, type_id) = (EntityId(id), 1);
        let entity = Entity { id, type_id, x, y, hp: 1, hp_max: 1, elo: 1, flags, meta: &[] };
        assert!(builder.push(&entity).unwrap());
    }
    let (len, _) = builder.finish(more);
    buf.truncate(len);
    buf
}

fn chunk(id: ChunkEntry, palette: &[u16], indices: &[u8; TILES]) -> Vec<u8> {
    let mut buf = vec![0; 1200];
    let len = Chunk { entry: id, palette, indices }.emit(&mut buf).unwrap();
    buf.truncate(len);
    buf
}

fn action(sequence: u32) -> Vec<u8> {
    let mut buf = vec![0; 1200];
    let (client_type, token) = (ClientType::OFFICIAL, Token(1));
    let (cache, action) = ([ChunkEntry::default(); 9], caves_wire::caves::Action::<&str>::NoOp);
    let sequence = Sequence::new(sequence);
    let len = ActionPacket { client_type, token, sequence, cache, action }.emit(&mut buf).unwrap();
    buf.truncate(len);
    buf
}

impl Scene {
    /// A datagram that the client takes for what it is.
    fn hears(&mut self, datagram: &[u8]) {
        let outcome = match kind_of(datagram) {
            Some(PacketType::STATE) => ClientReceived::State(StateView::parse(datagram).unwrap()),
            _ => ClientReceived::Handled,
        };
        self.hears_as(datagram, &outcome);
    }

    fn hears_as(&mut self, datagram: &[u8], outcome: &ClientReceived<'_>) {
        let Self { check, chunks, failures, .. } = self;
        self.incomplete += check.received(datagram, outcome, chunks, failures);
    }

    /// The client has all of a tick.
    fn knows(&mut self, tick: u32, shown: &Shown, executed: Option<u32>) -> Sight {
        let datagram = entities(tick, shown, false);
        let all = EntitiesView::parse(&datagram).unwrap().entities();
        let executed = executed.map(Sequence::new);
        self.check.updated(Tick::new(tick), Some(OWN), all, executed, &mut self.failures)
    }

    /// A whole tick as it should be.
    fn plays(&mut self, tick: u32, shown: &Shown) {
        self.hears(&state(tick, around(0, 0), 1));
        self.hears(&entities(tick, shown, false));
        self.knows(tick, shown, None);
    }

    #[track_caller]
    fn found(&self, expected: &[Failure]) {
        let mut naive = Failures::default();
        expected.iter().for_each(|failure| naive.add(*failure));
        assert_eq!(self.failures, naive);
    }
}

const VIEW: &Shown = &[(3, 5, 5), (20, 6, 6), (21, 20, 20)];

#[test]
fn a_good_server_is_found_to_be_good() {
    let mut scene = Scene::default();
    scene.check.sent(&action(9));
    for tick in [u32::MAX - 1, u32::MAX, 0, 1, 2] {
        scene.plays(tick, VIEW);
    }
    scene.hears(&chunk(entry(0, 0, 7), &[4, 9], &[1; TILES]));
    scene.knows(3, VIEW, Some(9));
    scene.found(&[]);
    assert_eq!((scene.incomplete, scene.chunks.checked, scene.chunks.known()), (0, 1, 1));
}

#[test]
fn what_no_server_sends_is_found() {
    for reason in [DropReason::Malformed, DropReason::PacketType, DropReason::Version] {
        let mut scene = Scene::default();
        scene.hears_as(&[0x4C, 0x52, 1, 1, 0, 0], &ClientReceived::Dropped(reason));
        scene.found(&[Failure::Malformed]);
    }
    let mut scene = Scene::default();
    // An answer that comes twice is what networks do.
    scene.hears_as(&[0x4C, 0x52, 1, 5], &ClientReceived::Dropped(DropReason::Unasked));
    scene.found(&[]);
}

#[test]
fn an_index_that_the_palette_has_not_is_found() {
    let mut scene = Scene::default();
    let mut datagram = chunk(entry(0, 0, 7), &[4, 9], &[1; TILES]);
    // The first index of the packed tiles, behind 13 bytes and two of the palette: 63.
    datagram[17] |= 0x3F;
    scene.hears_as(&datagram, &ClientReceived::Dropped(DropReason::Malformed));
    scene.found(&[Failure::Chunk]);
}

#[test]
fn other_tiles_under_a_version_are_found_and_another_palette_is_none() {
    let mut scene = Scene::default();
    let mut indices = [0; TILES];
    indices[1023] = 1;
    scene.hears(&chunk(entry(3, -4, 7), &[4, 9], &indices));
    // The same tiles by other indices.
    let turned = indices.map(|index| 1 - index);
    scene.hears(&chunk(entry(3, -4, 7), &[9, 4], &turned));
    // Another version, and another chunk, may be anything.
    scene.hears(&chunk(entry(3, -4, 8), &[4], &[0; TILES]));
    scene.hears(&chunk(entry(-4, 3, 7), &[4], &[0; TILES]));
    scene.found(&[]);
    scene.hears(&chunk(entry(3, -4, 7), &[4], &[0; TILES]));
    scene.found(&[Failure::Tiles]);
}

#[test]
fn other_tiles_are_found_between_two_threads_too() {
    let [mut one, mut two, mut three] = [(); 3].map(|()| Scene::default());
    one.hears(&chunk(entry(0, 0, 7), &[4], &[0; TILES]));
    two.hears(&chunk(entry(0, 0, 7), &[4], &[0; TILES]));
    two.hears(&chunk(entry(0, 1, 7), &[4], &[0; TILES]));
    three.hears(&chunk(entry(0, 1, 7), &[5], &[0; TILES]));
    let mut failures = Failures::default();
    one.chunks.merge(two.chunks, &mut failures);
    assert_eq!(failures.in_all(), 0);
    one.chunks.merge(three.chunks, &mut failures);
    assert_eq!((failures.count(Failure::Tiles), failures.in_all()), (1, 1));
    assert_eq!((one.chunks.checked, one.chunks.known()), (4, 2));
}

#[test]
fn a_whole_tick_without_its_checksum_is_found_two_ticks_later() {
    let mut scene = Scene::default();
    scene.plays(1, VIEW);
    scene.hears(&state(2, around(0, 0), 99));
    scene.hears(&entities(2, VIEW, false));
    scene.plays(3, VIEW);
    scene.found(&[]);
    scene.plays(4, VIEW);
    scene.found(&[Failure::Checksum]);
    assert_eq!(scene.incomplete, 1);
}

#[test]
fn a_tick_that_may_have_lost_something_is_incomplete_and_no_failure() {
    // The closing datagram is missing; the first one is; all of them are.
    let cases: [&[(&Shown, bool)]; 3] = [&[(&VIEW[..1], true)], &[(&VIEW[1..], false)], &[]];
    for came in cases {
        let mut scene = Scene::default();
        scene.plays(1, VIEW);
        scene.hears(&state(2, around(0, 0), 99));
        for (shown, more) in came {
            scene.hears(&entities(2, shown, *more));
        }
        scene.plays(3, VIEW);
        scene.plays(4, VIEW);
        scene.found(&[]);
        assert_eq!(scene.incomplete, 1);
    }
}

#[test]
fn who_loses_on_purpose_proves_nothing_by_a_checksum() {
    let mut scene = Scene { check: Check::new(true), ..Scene::default() };
    scene.plays(1, VIEW);
    scene.hears(&state(2, around(0, 0), 99));
    scene.hears(&entities(2, VIEW, false));
    scene.plays(3, VIEW);
    scene.plays(4, VIEW);
    scene.found(&[]);
    assert_eq!(scene.incomplete, 1);
}

#[test]
fn two_contents_of_a_tick_are_found_and_one_that_comes_twice_is_none() {
    let mut scene = Scene::default();
    scene.plays(1, VIEW);
    let late = ClientReceived::Dropped(DropReason::Tick);
    scene.hears_as(&state(1, around(0, 0), 1), &late);
    scene.found(&[]);
    scene.hears_as(&state(1, around(0, 0), 2), &late);
    scene.found(&[Failure::Contradiction]);
}

#[test]
fn a_manifest_out_of_order_or_without_a_version_is_found() {
    let mut swapped = around(0, 0);
    swapped.swap(0, 1);
    let mut unversioned = around(0, 0);
    unversioned[8].version = ChunkVersion::NOT_HELD;
    for manifest in [swapped, unversioned] {
        let mut scene = Scene::default();
        scene.hears(&state(1, manifest, 1));
        scene.found(&[Failure::Manifest]);
    }
    let mut scene = Scene::default();
    // The outermost ground (R8).
    scene.hears(&state(1, around(-1023, 1022), 1));
    scene.found(&[]);
}

#[test]
fn entities_out_of_order_are_found() {
    for ids in [[3, 20, 19], [3, 20, 20], [0, 20, 21]] {
        let mut scene = Scene::default();
        scene.knows(1, &ids.map(|id| (id, 6, 6)), None);
        scene.found(&[Failure::Order]);
    }
}

#[test]
fn an_entity_outside_the_viewport_is_found() {
    // R15: 15 to the north and west, 14 to the south and east.
    for (x, y, fits) in [
        (-15, -15, true),
        (14, 14, true),
        (-16, 0, false),
        (15, 0, false),
        (0, -16, false),
        (0, 15, false),
    ] {
        let mut scene = Scene::default();
        scene.knows(1, &[(20, 100, -100), (30, 100 + x, -100 + y)], None);
        scene.found(if fits { &[] } else { &[Failure::Viewport] });
    }
}

#[test]
fn a_view_without_oneself_is_found() {
    let mut scene = Scene::default();
    let sight = scene.knows(1, &[(3, 5, 5), (21, 6, 6)], None);
    scene.found(&[Failure::OwnEntity]);
    assert_eq!(sight.own, None);
    assert!(sight.other.is_some());
}

#[test]
fn a_tick_that_goes_backwards_is_found() {
    let mut scene = Scene::default();
    scene.plays(5, VIEW);
    scene.hears(&state(5, around(0, 0), 1));
    scene.found(&[Failure::Backwards]);
    let mut scene = Scene::default();
    scene.knows(5, VIEW, None);
    scene.knows(4, VIEW, None);
    scene.found(&[Failure::Backwards]);
    // Another session counts anew, and a resumed one from its Welcome on.
    scene.check.restart();
    scene.knows(3, VIEW, None);
    scene.check.resume();
    scene.knows(3, VIEW, None);
    scene.found(&[Failure::Backwards]);
}

#[test]
fn an_action_that_was_never_sent_is_found_when_it_counts_as_executed() {
    let mut scene = Scene::default();
    scene.knows(1, VIEW, Some(9));
    scene.found(&[Failure::Executed]);
    let mut scene = Scene::default();
    scene.check.sent(&action(u32::MAX));
    scene.check.sent(&action(1));
    // A repetition of an older one, and something that is no action.
    scene.check.sent(&action(0));
    scene.check.sent(&entities(1, VIEW, false));
    scene.knows(1, VIEW, Some(1));
    scene.check.resume();
    scene.knows(2, VIEW, Some(0));
    scene.found(&[]);
    scene.knows(3, VIEW, Some(2));
    scene.found(&[Failure::Executed]);
}

#[test]
fn chunks_beyond_those_that_are_remembered_are_counted() {
    let (mut chunks, mut failures) = (Chunks::default(), Failures::default());
    for number in 0..KNOWN as u32 {
        let id = ChunkId::from_u32(number);
        chunks.compare((id, ChunkVersion(1)), 5, &mut failures);
    }
    chunks.compare((ChunkId::default(), ChunkVersion(2)), 5, &mut failures);
    assert_eq!((chunks.known(), chunks.unknown), (KNOWN, 1));
    chunks.compare((ChunkId::default(), ChunkVersion(1)), 6, &mut failures);
    assert_eq!(failures.count(Failure::Tiles), 1, "those that are known are still compared");
    chunks.forget();
    assert_eq!(chunks.known(), 0);
}

#[test]
fn a_sight_has_oneself_and_in_time_everybody_else() {
    let mut scene = Scene::default();
    let mut seen = std::collections::BTreeSet::new();
    for tick in 1..200 {
        let sight = scene.knows(tick, &[(3, 5, 5), (20, 6, 6), (21, 7, 7), (22, 8, 8)], None);
        assert_eq!(sight.own, Some((6, 6)));
        seen.extend(sight.other.map(|other| other.0));
    }
    assert!(seen.is_superset(&[3, 21, 22].into()) && !seen.contains(&20), "{seen:?}");
}
