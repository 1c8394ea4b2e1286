//! The packets of blank, tag `0xFB1AB1AF`: one file a layout.
//!
//! | type | layout | flow | bytes |
//! |---|---|---|---|
//! | 0 | [`Header`] alone: ping | both | 16 |
//! | 1 | [`Login`] | client to server | 48, read from 16 on |
//! | 2 | [`Join`] | server to client | 116, read from 84 on |
//! | 2 | [`NewestJoin`], of later programs | server to client | 94 |
//! | 3 | [`Header`] alone: part | both | 16 |
//! | others | [`HeaderView`] with its payload | | 16 to 500 |
//!
//! Every datagram begins with a [`HeaderView`], whose [`Numbers`] are those of `caves_link::ack`.
//! There is no version: a Join of the newest programs is told from the older one by its length alone.
//!
//! Receivers of this protocol are lenient, and so is this module. A datagram over 500 bytes is read as
//! if it ended there, bytes behind the end of a layout are ignored, and so is the padding of the
//! header. What is written is always whole, with zeros for padding.
//!
//! Section numbers are those of `notes/siblings/blank.md`.
//!
//! ```
//! use caves_wire::blank::{Login, Name, Numbers, Packet};
//!
//! let login = Login { numbers: Numbers::first(), name: Name::new("Zoë") };
//! let mut buf = [0; 500];
//! let len = login.emit(&mut buf)?;
//! assert_eq!(len, 48);
//! match Packet::parse(&buf[..len])? {
//!     Packet::Login(view) => assert_eq!(view.name(), Name::new("Zoë")),
//!     other => panic!("{other}"),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod header;
mod join;
mod layout;
mod login;
mod name;
mod packet;

pub use header::{Ack, Header, HeaderView, Numbers, PacketType, Seq, TAG};
pub use join::{EntityId, Join, JoinView, NewestJoin, NewestJoinView, Spawn};
pub use login::{Login, LoginView};
pub use name::Name;
pub use packet::Packet;

/// The longest datagram, in bytes; receivers cut a longer one here (section 2).
pub const MAX_DATAGRAM: usize = 500;
/// The longest payload behind a header, in bytes.
pub const MAX_PAYLOAD: usize = MAX_DATAGRAM - Header::LEN;

/// A view's debug form is its printable line: the bytes behind it are rarely what one looks for.
macro_rules! debug_as_display {
    ($($view:ident)*) => {$(
        impl core::fmt::Debug for $view<'_> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(self, f)
            }
        }
    )*};
}

debug_as_display! { HeaderView LoginView JoinView NewestJoinView Packet }
