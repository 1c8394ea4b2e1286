//! From inputs to lines.

use std::io::{self, Write};

use anyhow::Context;

use crate::datagram::{Datagram, Ends, Way};
use crate::follow::Remarks;
use crate::output::{Entry, Output, Totals};
use crate::protocols::{Decoded, Facts, Protocol, hex_start};
use crate::sessions::Sessions;
use crate::source::{Found, Source};

/// What to look at, and how to show it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Every datagram is of this protocol; otherwise it is found out.
    pub protocol: Option<Protocol>,
    /// Only datagrams from and to these ports, where a recording has ports. Servers listen there.
    pub ports: Vec<u16>,
    /// JSON, an object a line.
    pub json: bool,
    /// Only datagrams with a problem or a remark.
    pub quiet: bool,
    /// Lines reach the reader at once: the input is no file that is complete already.
    pub flush: bool,
}

/// Looks at one recording after the other; sessions end with their recording.
///
/// ```
/// use caves_inspect::run::{Inspector, Options};
///
/// let mut out = Vec::new();
/// let mut inspector = Inspector::new(Options::default(), &mut out);
/// inspector.read(Box::new(&b"4c52010600000700000000000000\n"[..]))?;
/// assert_eq!(inspector.totals()?.problems, 0);
/// assert!(String::from_utf8(out)?.contains("Ping timestamp_ms=7"));
/// # Ok::<(), anyhow::Error>(())
/// ```
pub struct Inspector<'w> {
    options: Options,
    output: Output<'w>,
    totals: Totals,
    place: Datagram,
    remarks: Remarks,
}

impl<'w> Inspector<'w> {
    /// Nothing was read yet.
    pub fn new(options: Options, to: &'w mut dyn Write) -> Self {
        let output = Output::new(to, options.json, options.quiet, options.flush);
        let (totals, place, remarks) = Default::default();
        Self { options, output, totals, place, remarks }
    }

    /// Reads a recording to its end and writes a line a datagram, and its sessions' summaries.
    ///
    /// # Errors
    /// The recording cannot be read on: what came before was written. Or a line cannot be written;
    /// [`is_broken_pipe`] tells whether that is for want of a reader.
    pub fn read(&mut self, input: Box<dyn io::Read>) -> anyhow::Result<()> {
        let mut source = Source::open(input)?;
        let mut sessions = Sessions::default();
        let mut place = std::mem::take(&mut self.place);
        let broken = loop {
            match source.next(&mut place) {
                Ok(Some(found)) => self.found(found, &place, &mut sessions)?,
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        self.place = place;
        for session in sessions.into_open() {
            self.output.session(&session)?;
        }
        broken.map_or(Ok(()), Err)
    }

    /// Writes the sums over everything, and gives them.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn totals(mut self) -> anyhow::Result<Totals> {
        self.output.totals(&self.totals).context("cannot write")?;
        Ok(self.totals)
    }

    fn found(
        &mut self,
        found: Found,
        datagram: &Datagram,
        sessions: &mut Sessions,
    ) -> anyhow::Result<()> {
        match found {
            Found::Datagram if self.is_elsewhere(datagram) => Ok(()),
            Found::Datagram => self.datagram(datagram, sessions),
            Found::Other => {
                self.totals.other += 1;
                Ok(())
            }
            Found::Broken(why) => {
                self.totals.broken += 1;
                Ok(self.output.broken(&why)?)
            }
        }
    }

    fn is_elsewhere(&self, datagram: &Datagram) -> bool {
        let ports = datagram.ends.ports();
        !self.options.ports.is_empty()
            && ports.is_some_and(|ports| ports.iter().all(|p| !self.options.ports.contains(p)))
    }

    fn datagram(&mut self, datagram: &Datagram, sessions: &mut Sessions) -> anyhow::Result<()> {
        self.totals.datagrams += 1;
        self.totals.bytes += datagram.bytes.len() as u64;
        self.remarks.clear();
        let Some(protocol) = self.protocol(datagram, sessions) else {
            return self.stranger(datagram);
        };
        let (session, closed) = sessions.of(protocol, &datagram.ends);
        let way = session.way(datagram, &self.options.ports);
        let decoded = decode(protocol, datagram, way);
        let way = session.take(datagram, &decoded, way, &mut self.remarks);
        let number = Some(session.number);
        self.totals.problems += u64::from(decoded.problem.is_some());
        if let Some(closed) = closed {
            self.output.session(&closed)?;
        }
        Ok(self.output.datagram(&Entry {
            number: self.totals.datagrams,
            datagram,
            protocol: Some(protocol),
            session: number,
            way,
            decoded: &decoded,
            remarks: &self.remarks,
        })?)
    }

    /// What a datagram is of: what was asked for, its first bytes, what is spoken between its ends,
    /// its ports, what it looks like; the surer sign first.
    fn protocol(&self, datagram: &Datagram, sessions: &Sessions) -> Option<Protocol> {
        self.options
            .protocol
            .or_else(|| Protocol::of_header(&datagram.bytes))
            .or_else(|| sessions.protocol_of(&datagram.ends))
            .or_else(|| datagram.ends.ports()?.into_iter().find_map(Protocol::of_port))
            .or_else(|| Protocol::of_structure(&datagram.bytes))
    }

    fn stranger(&mut self, datagram: &Datagram) -> anyhow::Result<()> {
        self.totals.problems += 1;
        let decoded = Decoded {
            kind: "unknown".into(),
            line: hex_start(&datagram.bytes),
            problem: Some("of no known protocol".to_owned()),
            way: None,
            facts: Facts::None,
        };
        let way = match datagram.ends {
            Ends::Way(way) => Some(way),
            _ => None,
        };
        Ok(self.output.datagram(&Entry {
            number: self.totals.datagrams,
            datagram,
            protocol: None,
            session: None,
            way,
            decoded: &decoded,
            remarks: &self.remarks,
        })?)
    }
}

fn decode<'d>(protocol: Protocol, datagram: &'d Datagram, way: Option<Way>) -> Decoded<'d> {
    let mut decoded = protocol.decode(&datagram.bytes, way);
    if datagram.cut > 0 {
        // What the receiver got was longer, so nothing can be said about it.
        let why = format!("the recording left out its last {} bytes", datagram.cut);
        decoded.problem = Some(why);
    }
    decoded
}

/// Whether an error says that nobody reads what is written: no reason to complain.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
