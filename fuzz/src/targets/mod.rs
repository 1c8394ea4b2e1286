//! One function per way in. Each takes any bytes and panics when a promise does not hold.
//!
//! An ordinary test of `caves-game` includes this folder to replay the corpora, so it uses nothing
//! but that package's dependencies.

mod client_input;
mod datagram;
mod game_input;
mod names;
mod roundtrip;
mod script;
mod server_input;
mod teeworlds_packet;
pub mod tiles;
mod tlv;

pub use client_input::client_input;
pub use datagram::datagram;
pub use game_input::game_input;
pub use names::names;
pub use roundtrip::roundtrip;
pub use server_input::server_input;
pub use teeworlds_packet::teeworlds_packet;
pub use tiles::tiles;
pub use tlv::tlv;

/// A target: any bytes go in, and nothing comes out but a panic.
pub type Target = fn(&[u8]);

/// All targets by the names of their corpora.
pub const TARGETS: [(&str, Target); 9] = [
    ("client_input", client_input),
    ("datagram", datagram),
    ("game_input", game_input),
    ("names", names),
    ("roundtrip", roundtrip),
    ("server_input", server_input),
    ("teeworlds_packet", teeworlds_packet),
    ("tiles", tiles),
    ("tlv", tlv),
];
