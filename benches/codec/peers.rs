//! The same chunk through general-purpose codecs, each with its buffers kept from call to call.

use bincode::config::{Configuration, Fixint, LittleEndian};
use caves_benches::measure::{Aligned, Case, Group, Mismatch, Outcome, checksum_of_tiles};
use caves_benches::samples::Sample;
use caves_wire::bits::TILES;
use caves_wire::caves::ChunkId;
use rkyv::rancor;
use rkyv::ser::{allocator::SubAllocator, writer::Buffer};

use crate::chunks::{VERSION, X, Y};

pub(crate) const RKYV: &str = "rkyv";

const BINCODE: Configuration<LittleEndian, Fixint> =
    bincode::config::standard().with_fixed_int_encoding();

#[derive(Clone, bincode::Encode, bincode::Decode, bitcode::Encode, bitcode::Decode)]
struct Message {
    id: u32,
    version: u16,
    tiles: [u16; TILES],
}

/// With its tiles in a vector: rkyv copies one at once but walks an array, and serde has no arrays of
/// this length.
#[derive(Clone, rkyv::Archive, rkyv::Serialize, serde::Serialize, serde::Deserialize)]
struct Listed {
    id: u32,
    version: u16,
    tiles: Vec<u16>,
}

/// Bytes of the fields before the tiles.
const HEAD: usize = 6;
const PLAIN: usize = HEAD + 2 * TILES;

/// In this order what is read and what is written lie 2 KiB apart, not 4: see the state of our own rows.
#[derive(Clone)]
#[repr(C)]
struct State {
    /// rkyv asks for alignment.
    bytes: Aligned<[u8; 4096]>,
    plain: Aligned<[u8; PLAIN]>,
    tiles: Aligned<[u16; TILES]>,
    message: Message,
    listed: Listed,
    len: usize,
}

impl State {
    fn new(sample: &Sample) -> State {
        let (id, version) = (ChunkId { x: X, y: Y }.to_u32(), VERSION);
        let mut plain = [0; PLAIN];
        plain[..4].copy_from_slice(&id.to_le_bytes());
        plain[4..HEAD].copy_from_slice(&version.to_le_bytes());
        for (bytes, tile) in plain[HEAD..].as_chunks_mut().0.iter_mut().zip(sample.tiles.iter()) {
            *bytes = tile.to_le_bytes();
        }
        State {
            message: Message { id, version, tiles: *sample.tiles },
            listed: Listed { id, version, tiles: sample.tiles.to_vec() },
            plain: Aligned(plain),
            bytes: Aligned([0; 4096]),
            len: 0,
            tiles: Aligned([0; TILES]),
        }
    }

    /// The state after `encode`.
    fn encoded(sample: &Sample, encode: impl Fn(&mut State) -> usize) -> State {
        let mut state = State::new(sample);
        state.len = encode(&mut state);
        assert_ne!(state.len, 0);
        state
    }

    fn is_of(&self, id: u32, version: u16) -> bool {
        id == self.message.id && version == self.message.version
    }

    fn look_at_tiles(&self, decoded: bool) -> Outcome {
        assert!(decoded);
        Outcome { bytes: 2 * TILES, checksum: checksum_of_tiles(&self.tiles.0) }
    }
}

/// Adds the encoders. What they wrote is decoded for the checksum.
pub(crate) fn encode(sample: &Sample, group: &mut Group) -> Result<(), Mismatch> {
    group.add(encoder(RKYV, sample, rkyv_encode, rkyv_decode))?;
    group.add(bitcode_encode(sample))?;
    group.add(encoder("bincode 2, fixed integers", sample, bincode_encode, bincode_decode))?;
    group.add(encoder("postcard", sample, postcard_encode, postcard_decode))?;
    group.add(encoder("lz4_flex", sample, lz4_encode, lz4_decode))
}

/// Adds the decoders.
pub(crate) fn decode(sample: &Sample, group: &mut Group) -> Result<(), Mismatch> {
    group.add(decoder(RKYV, sample, rkyv_encode, rkyv_decode))?;
    group.add(bitcode_decode(sample))?;
    group.add(decoder("bincode 2, fixed integers", sample, bincode_encode, bincode_decode))?;
    group.add(decoder("postcard", sample, postcard_encode, postcard_decode))?;
    group.add(decoder("lz4_flex", sample, lz4_encode, lz4_decode))
}

fn encoder(
    name: &str,
    sample: &Sample,
    encode: impl Fn(&mut State) -> usize + 'static,
    decode: fn(&mut State) -> bool,
) -> Case {
    Case::new(name, State::new(sample), encode, |state, len| {
        let mut state = State { len, ..state.clone() };
        let decoded = decode(&mut state);
        Outcome { bytes: len, ..state.look_at_tiles(decoded) }
    })
}

fn decoder(
    name: &str,
    sample: &Sample,
    encode: impl Fn(&mut State) -> usize,
    decode: impl Fn(&mut State) -> bool + 'static,
) -> Case {
    Case::new(name, State::encoded(sample, encode), decode, State::look_at_tiles)
}

fn bincode_encode(state: &mut State) -> usize {
    bincode::encode_into_slice(&state.message, &mut state.bytes.0, BINCODE).unwrap_or(0)
}

fn bincode_decode(state: &mut State) -> bool {
    let decoded = bincode::decode_from_slice::<Message, _>(&state.bytes.0[..state.len], BINCODE);
    decoded.is_ok_and(|(message, _)| {
        state.tiles.0 = message.tiles;
        state.is_of(message.id, message.version)
    })
}

fn postcard_encode(state: &mut State) -> usize {
    postcard::to_slice(&state.listed, &mut state.bytes.0).map_or(0, |bytes| bytes.len())
}

fn postcard_decode(state: &mut State) -> bool {
    postcard::from_bytes::<Listed>(&state.bytes.0[..state.len]).is_ok_and(|listed| {
        state.tiles.0.copy_from_slice(&listed.tiles);
        state.is_of(listed.id, listed.version)
    })
}

fn lz4_encode(state: &mut State) -> usize {
    lz4_flex::block::compress_into(&state.plain.0, &mut state.bytes.0).unwrap_or(0)
}

fn lz4_decode(state: &mut State) -> bool {
    let mut plain = [0; PLAIN];
    let bytes = &state.bytes.0[..state.len];
    if lz4_flex::block::decompress_into(bytes, &mut plain).ok() != Some(PLAIN) {
        return false;
    }
    let [i0, i1, i2, i3, v0, v1, ..] = plain;
    for (tile, bytes) in state.tiles.0.iter_mut().zip(plain[HEAD..].as_chunks().0) {
        *tile = u16::from_le_bytes(*bytes);
    }
    state.is_of(u32::from_le_bytes([i0, i1, i2, i3]), u16::from_le_bytes([v0, v1]))
}

/// What bitcode keeps from call to call; a copy starts with none of it.
#[derive(Default)]
struct Buffered(bitcode::Buffer);

impl Clone for Buffered {
    fn clone(&self) -> Self {
        Buffered::default()
    }
}

fn bitcode_encode(sample: &Sample) -> Case {
    let state = (Buffered::default(), State::new(sample));
    let encode =
        |(buffer, state): &mut (Buffered, State)| buffer.0.encode(&state.message).as_ptr_range();
    Case::new("bitcode", state, encode, |(_, state), _| {
        // The buffer lends its bytes to the call alone; a second one writes the same.
        let bytes = bitcode::encode(&state.message);
        let tiles = bitcode::decode::<Message>(&bytes).map(|message| message.tiles);
        let checksum = tiles.map_or(0, |tiles| checksum_of_tiles(&tiles));
        Outcome { bytes: bytes.len(), checksum }
    })
}

fn bitcode_decode(sample: &Sample) -> Case {
    let state = State::new(sample);
    let bytes = bitcode::encode(&state.message);
    let decode = |(bytes, buffer, state): &mut (Vec<u8>, Buffered, State)| {
        buffer.0.decode::<Message>(bytes).is_ok_and(|message| {
            state.tiles.0 = message.tiles;
            state.is_of(message.id, message.version)
        })
    };
    Case::new("bitcode", (bytes, Buffered::default(), state), decode, |(.., state), decoded| {
        state.look_at_tiles(decoded)
    })
}

/// Into the caller's buffer; the allocator has nothing to give, as nothing here asks it.
fn rkyv_encode(state: &mut State) -> usize {
    let (writer, none) = (Buffer::from(&mut state.bytes.0), SubAllocator::new(&mut []));
    rkyv::api::low::to_bytes_in_with_alloc::<_, _, rancor::Error>(&state.listed, writer, none)
        .map_or(0, |written| written.len())
}

/// Checks the archive and copies its tiles out.
fn rkyv_decode(state: &mut State) -> bool {
    let bytes = &state.bytes.0[..state.len];
    let Ok(listed) = rkyv::access::<ArchivedListed, rancor::Error>(bytes) else { return false };
    for (tile, archived) in state.tiles.0.iter_mut().zip(listed.tiles.iter()) {
        *tile = archived.to_native();
    }
    listed.tiles.len() == TILES && state.is_of(listed.id.to_native(), listed.version.to_native())
}
