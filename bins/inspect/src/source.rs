//! Where datagrams come from: packet recordings, text captures, lines of hex.
//!
//! What it is is told by the first bytes, so that a file and a pipe are read alike. Everything is read
//! as a stream: a source holds one datagram and its own buffers of fixed size.

mod frame;
mod packets;
mod text;

use std::io::{self, BufReader, Read};

use crate::datagram::Datagram;
use packets::Packets;
use text::Text;

pub use text::LONGEST_LINE;

/// Enough to recognise a format; pipes are read in pieces of this size too.
const BUFFER: usize = 64 * 1024;

/// What came next in a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A datagram: it is in the place that was handed in.
    Datagram,
    /// Something that is no UDP datagram, such as TCP or ARP.
    Other,
    /// Something that should be a datagram and cannot be read as one, and why.
    Broken(String),
}

/// A recording that is being read.
///
/// ```
/// use caves_inspect::datagram::{Datagram, Ends, Way};
/// use caves_inspect::source::{Found, Source};
///
/// let text = &b"# a remark\n12 c2s 4c5201060000 lost\n"[..];
/// let mut source = Source::open(Box::new(text))?;
/// let mut datagram = Datagram::default();
/// assert_eq!(source.next(&mut datagram)?, Some(Found::Datagram));
/// assert_eq!(datagram.ends, Ends::Way(Way::ToServer));
/// assert_eq!((datagram.micros, datagram.lost, datagram.bytes.len()), (Some(0), true, 6));
/// assert_eq!(source.next(&mut datagram)?, None);
/// # Ok::<(), anyhow::Error>(())
/// ```
pub struct Source(Kind);

enum Kind {
    Text(Text),
    Packets(Box<Packets>),
}

/// Any stream of bytes.
pub(crate) type Input = BufReader<Box<dyn Read>>;

impl Source {
    /// Begins to read; blocks until the first bytes are there.
    ///
    /// # Errors
    /// The stream cannot be read, or begins like a packet recording and is none.
    pub fn open(input: Box<dyn Read>) -> anyhow::Result<Self> {
        let mut input = BufReader::with_capacity(BUFFER, input);
        let start = first_bytes(&mut input)?;
        Ok(Self(match Packets::recognise(&start) {
            Some(format) => Kind::Packets(Box::new(Packets::open(format, input, &start)?)),
            None => Kind::Text(Text::new(input, start)),
        }))
    }

    /// Reads the next datagram into `place`; `None` at the end.
    ///
    /// # Errors
    /// The recording breaks off or is broken so that nothing behind this place can be read.
    pub fn next(&mut self, place: &mut Datagram) -> anyhow::Result<Option<Found>> {
        match &mut self.0 {
            Kind::Text(text) => Ok(text.next(place)?),
            Kind::Packets(packets) => packets.next(place),
        }
    }
}

/// The first four bytes, or as many as there are. They are taken out of the stream.
fn first_bytes(input: &mut Input) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    input.by_ref().take(4).read_to_end(&mut start)?;
    Ok(start)
}
