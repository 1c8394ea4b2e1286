//! One function per way in. Each takes any bytes and panics when a promise does not hold.
//!
//! An ordinary test of `caves-game` includes this folder to replay the corpora, so it uses nothing
//! but that package's dependencies.

mod blank_packet;
mod blank_session;
mod client_input;
mod datagram;
mod ferravex_packet;
mod ferravex_session;
mod game_input;
mod ledger;
mod names;
mod roundtrip;
mod script;
mod server_input;
mod store_records;
mod teeworlds_packet;
mod teeworlds_session;
pub mod tiles;
mod tlv;

pub use blank_packet::blank_packet;
pub use blank_session::blank_session;
pub use client_input::client_input;
pub use datagram::datagram;
pub use ferravex_packet::ferravex_packet;
pub use ferravex_session::ferravex_session;
pub use game_input::game_input;
pub use names::names;
pub use roundtrip::roundtrip;
pub use server_input::server_input;
pub use store_records::store_records;
pub use teeworlds_packet::teeworlds_packet;
pub use teeworlds_session::teeworlds_session;
pub use tiles::tiles;
pub use tlv::tlv;

/// A target: any bytes go in, and nothing comes out but a panic.
pub type Target = fn(&[u8]);

/// All targets by the names of their corpora.
pub const TARGETS: [(&str, Target); 15] = [
    ("blank_packet", blank_packet),
    ("blank_session", blank_session),
    ("client_input", client_input),
    ("datagram", datagram),
    ("ferravex_packet", ferravex_packet),
    ("ferravex_session", ferravex_session),
    ("game_input", game_input),
    ("names", names),
    ("roundtrip", roundtrip),
    ("server_input", server_input),
    ("store_records", store_records),
    ("teeworlds_packet", teeworlds_packet),
    ("teeworlds_session", teeworlds_session),
    ("tiles", tiles),
    ("tlv", tlv),
];
