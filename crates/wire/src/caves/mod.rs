//! The packets of Forgotten Caves, version 1: one file a layout.
//!
//! | type | layout | flow | bytes |
//! |---|---|---|---|
//! | 0 | [`State`] | server to client | 72 |
//! | 1 | [`ActionPacket`] | client to server | 74 and the action's data |
//! | 2 | [`Chunk`] | server to client | 783 to 909 |
//! | 3 | [`EntitiesView`], [`EntityBuilder`] | server to client | 12 to 1200 |
//! | 4 | [`Query`] | client to server | 18 |
//! | 5 | [`Detail`] | server to client | 16 to 1200 |
//! | 6, 7 | [`Echo`] | ping and pong | 14 |
//! | 8 | [`Hello`] | client to server | 64 |
//! | 9 | [`Challenge`] | server to client | 62 |
//! | 10 | [`Join`] | client to server | 32 and TLV |
//! | 11 | [`Welcome`] | server to client | 33 and TLV |
//! | 12 | [`Refuse`] | server to client | 17 and text |
//! | 13 | [`Leave`] | both | 15 |
//! | 14 | [`Event`] | server to client | 17 and text |
//! | 16 | [`EventAck`] | client to server | 18 |
//! | 18 | [`InfoRequest`] | client to server | 256 |
//! | 19 | [`Info`] | server to client | 24 and TLV, at most 256 |
//!
//! Types 15 and 17 are kept for sealed sessions (section 6) and read as unknown until then.

mod action;
mod challenge;
mod chunk;
mod detail;
mod echo;
mod entity;
mod event;
mod header;
mod hello;
mod ids;
mod info;
mod join;
mod layout;
mod leave;
mod packet;
mod query;
mod refuse;
mod state;
pub mod tag;
mod welcome;

pub use action::{Action, ActionPacket, ActionView, MAX_SAY, MIN_ACTION};
pub use challenge::{Challenge, ChallengeView};
pub use chunk::{Chunk, ChunkView, MAX_PALETTE, Paletted};
pub use detail::{Detail, DetailView, MAX_DETAIL_META};
pub use echo::{Echo, EchoKind, EchoView};
pub use entity::{
    EntitiesHead, EntitiesView, Entity, EntityBuilder, EntityFlags, EntityIter, EntityView,
};
pub use event::{Event, EventAck, EventAckView, EventKind, EventView, MAX_EVENT_TEXT};
pub use header::{HeaderView, MAGIC, PacketType, VERSION};
pub use hello::{Hello, HelloView};
pub use ids::{
    ChunkEntry, ChunkId, ChunkVersion, ClientType, Direction, EntityId, Features, Nonce, Sequence,
    Tick, Token,
};
pub use info::{Info, InfoRequest, InfoRequestView, InfoView, MAX_INFO};
pub use join::{Join, JoinView};
pub use leave::{Leave, LeaveReason, LeaveView};
pub use packet::Packet;
pub use query::{Query, QueryView};
pub use refuse::{Refuse, RefuseReason, RefuseView};
pub use state::{State, StateView};
pub use welcome::{Welcome, WelcomeView};

debug_as_display! {
    StateView ActionView ChunkView EntitiesView QueryView DetailView EchoView HelloView
    ChallengeView JoinView WelcomeView RefuseView LeaveView EventView EventAckView
    InfoRequestView InfoView Packet
}
