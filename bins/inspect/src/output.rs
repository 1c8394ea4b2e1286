//! What is printed, for people and for machines.
//!
//! Peers write into datagrams what they like. For people all forbidden characters are stripped (R32);
//! for machines they are escaped, so that nothing is lost and a terminal sees none of them either.

use std::fmt::Write as _;
use std::io::{self, Write};

use caves_wire::text;
use serde_json::{Value, json};

use crate::datagram::{Datagram, Ends, Way};
use crate::follow::Remarks;
use crate::protocols::{Decoded, Protocol};
use crate::sessions::Session;

/// The characters of `text` that a terminal may see.
///
/// ```
/// assert_eq!(caves_inspect::output::printable("a\u{1b}[31m\nb\u{202E}"), "a[31mb");
/// ```
pub fn printable(text: &str) -> String {
    text::clean(text).collect()
}

/// JSON in one line, in which forbidden characters are escaped: they stand in strings alone.
///
/// ```
/// use caves_inspect::output::json_line;
///
/// assert_eq!(json_line(&"\u{9b}31m".into()), r#""\u009b31m""#);
/// ```
pub fn json_line(value: &Value) -> String {
    let json = value.to_string();
    if text::is_clean(&json) {
        return json;
    }
    let mut line = String::new();
    for c in json.chars() {
        if text::is_forbidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(line, "\\u{unit:04x}");
            }
        } else {
            line.push(c);
        }
    }
    line
}

/// One datagram and everything that was found out about it.
#[derive(Debug)]
pub struct Entry<'a> {
    /// Counted from 1 over all inputs.
    pub number: u64,
    /// As it was recorded.
    pub datagram: &'a Datagram,
    /// What it is of; `None` where nobody knows.
    pub protocol: Option<Protocol>,
    /// The session's number.
    pub session: Option<u64>,
    /// Its direction.
    pub way: Option<Way>,
    /// What it says.
    pub decoded: &'a Decoded<'a>,
    /// What following its session shows.
    pub remarks: &'a Remarks,
}

/// Sums over everything.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Totals {
    /// UDP datagrams.
    pub datagrams: u64,
    /// Their payload.
    pub bytes: u64,
    /// Those that do not decode, or that nobody knows.
    pub problems: u64,
    /// Packets and lines that should be a datagram and could not be read.
    pub broken: u64,
    /// Packets that are no UDP datagram.
    pub other: u64,
}

/// Writes lines, for people or for machines.
pub struct Output<'w> {
    to: &'w mut dyn Write,
    json: bool,
    quiet: bool,
    flush: bool,
}

impl<'w> Output<'w> {
    /// `json`: objects for machines. `quiet`: only what is wrong or remarked on, and the summary.
    /// `flush`: each line reaches the reader at once.
    pub fn new(to: &'w mut dyn Write, json: bool, quiet: bool, flush: bool) -> Self {
        Self { to, json, quiet, flush }
    }

    /// One datagram.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn datagram(&mut self, entry: &Entry<'_>) -> io::Result<()> {
        let plain = entry.decoded.problem.is_none() && entry.remarks.odd.is_empty();
        if self.quiet && plain && !entry.datagram.lost {
            return Ok(());
        }
        let line = if self.json { json_line(&to_json(entry)) } else { printable(&to_text(entry)) };
        self.line(&line)
    }

    /// Something that could not be read as a datagram.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn broken(&mut self, why: &str) -> io::Result<()> {
        let line = match self.json {
            true => json_line(&json!({ "broken": why })),
            false => printable(&format!("{:>12}  !! {why}", "-")),
        };
        self.line(&line)
    }

    /// A session that is over, or was closed.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn session(&mut self, session: &Session) -> io::Result<()> {
        if self.json {
            return self.line(&json_line(&json!({ "summary": session.to_json() })));
        }
        for line in session_lines(session) {
            self.line(&printable(&line))?;
        }
        Ok(())
    }

    /// The end.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn totals(&mut self, totals: &Totals) -> io::Result<()> {
        let Totals { datagrams, bytes, problems, broken, other } = totals;
        if self.json {
            let totals = json!({
                "datagrams": datagrams,
                "bytes": bytes,
                "problems": problems,
                "broken": broken,
                "not_udp": other,
            });
            return self.line(&json_line(&json!({ "totals": totals })));
        }
        self.line(&format!(
            "{datagrams} datagrams, {bytes} bytes, {problems} with a problem; {broken} broken, \
             {other} not UDP"
        ))
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.to, "{line}")?;
        if self.flush { self.to.flush() } else { Ok(()) }
    }
}

fn to_text(entry: &Entry<'_>) -> String {
    let Entry { datagram, decoded, .. } = entry;
    let time = match datagram.micros {
        Some(micros) => format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000),
        None => "-".to_owned(),
    };
    let way = entry.way.map_or("???", Way::name);
    let protocol = entry.protocol.map_or("unknown", Protocol::name);
    let session = entry.session.map_or(String::new(), |number| format!("#{number}"));
    let mut line = format!("{time:>12} {way} {protocol:<9} {session:<3} {}", decoded.line);
    if let Some(micros) = entry.remarks.round_trip {
        // Writing to a string cannot fail.
        let _ = write!(line, "  after {}.{:03} ms", micros / 1000, micros % 1000);
    }
    if datagram.lost {
        line.push_str("  (lost)");
    }
    if let Some(problem) = &decoded.problem {
        line.push_str("  !! ");
        line.push_str(problem);
    }
    for remark in &entry.remarks.odd {
        line.push_str("  -- ");
        line.push_str(remark);
    }
    line
}

fn to_json(entry: &Entry<'_>) -> Value {
    let Entry { datagram, decoded, .. } = entry;
    let (from, to) = match datagram.ends {
        Ends::Addrs { from, to } => (Some(from.to_string()), Some(to.to_string())),
        _ => (None, None),
    };
    json!({
        "number": entry.number,
        "time": datagram.micros.map(|micros| micros as f64 / 1e6),
        "from": from,
        "to": to,
        "direction": entry.way.map(Way::name),
        "protocol": entry.protocol.map(Protocol::name),
        "session": entry.session,
        "packet": decoded.kind,
        "bytes": datagram.bytes.len(),
        "line": decoded.line,
        "fields": decoded.facts.fields(),
        "lost": datagram.lost,
        "problem": decoded.problem,
        "remarks": entry.remarks.odd,
        "round_trip_ms": entry.remarks.round_trip.map(|micros| micros as f64 / 1e3),
    })
}

fn session_lines(session: &Session) -> Vec<String> {
    let (datagrams, bytes, kinds) = session.counts();
    let (problems, lost) = session.wrong();
    let seconds = match session.duration() {
        Some(micros) => format!(" in {}.{:03} s", micros / 1_000_000, micros / 1000 % 1000),
        None => String::new(),
    };
    let mut lines = vec![
        format!("#{} {}: {}", session.number, session.protocol.name(), session.title()),
        format!(
            "    {datagrams} datagrams, {bytes} bytes{seconds}; {problems} with a problem, \
             {lost} lost as the recording says"
        ),
    ];
    for (kind, (datagrams, bytes)) in kinds {
        lines.push(format!("    {kind:<20} {datagrams:>8} {bytes:>10} bytes"));
    }
    for (group, figures) in session.figures() {
        let figures = figures.iter().map(|(name, value)| format!("{} {value}", spaced(name)));
        let figures: Vec<String> = figures.collect();
        lines.push(format!("    {:<12} {}", spaced(group), figures.join(", ")));
    }
    lines
}

fn spaced(name: &str) -> String {
    name.replace('_', " ")
}
