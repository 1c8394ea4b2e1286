//! Reads `notes/protocol.md`: its tables, and the datagrams of its appendix. Knows no packet.
//!
//! The tables of layouts drive [`annotate`], so a wrong row shows as a wrong annotation.

pub(crate) mod play;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// The lines between which the appendix is written by the test.
pub(crate) const BEGIN: &str = "<!-- session: begin -->";
pub(crate) const END: &str = "<!-- session: end -->";
/// Bytes on a line of a dump.
const LINE: usize = 32;

pub(crate) fn root(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path)
}

/// The text of a file of the repository.
pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(root(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The note, by its tables.
pub(crate) struct Note {
    pub(crate) text: String,
}

impl Note {
    pub(crate) fn open() -> Self {
        Self { text: read("notes/protocol.md") }
    }

    /// The rows of the first table below a heading, without its head; code ticks are taken off.
    pub(crate) fn table(&self, heading: &str) -> Vec<Vec<String>> {
        let mut lines = self.text.lines().skip_while(|line| *line != heading).skip(1);
        let cells = |line: &str| -> Vec<String> {
            let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
            inner.split('|').map(|cell| cell.replace('`', "").trim().to_owned()).collect()
        };
        let first = lines
            .by_ref()
            .take_while(|line| !line.starts_with('#'))
            .find(|line| line.starts_with('|'));
        assert!(first.is_some(), "no table below {heading:?}");
        let rows = lines.skip(1).take_while(|line| line.starts_with('|'));
        rows.map(cells).collect()
    }

    /// The rows of the layout of a packet type or of a part.
    pub(crate) fn layout(&self, name: &str) -> Vec<Row> {
        let mut headings = self.text.lines().filter(|line| line.starts_with("### "));
        let heading = headings
            .find(|line| line.split(": ").nth(1).is_some_and(|of| of == name))
            .unwrap_or_else(|| panic!("no layout of {name:?}"));
        let row = |cells: Vec<String>| Row {
            offset: cells[0].parse().ok(),
            size: cells[1].parse().ok(),
            kind: cells[2].clone(),
            field: cells[3].clone(),
        };
        self.table(heading).into_iter().map(row).collect()
    }

    /// Number and name of every TLV tag.
    pub(crate) fn tags(&self) -> BTreeMap<u8, String> {
        let mut rows = self.table("### Tags of joining and info");
        rows.extend(self.table("### Tags of entities"));
        rows.iter().map(|row| (number(&row[0]) as u8, row[1].clone())).collect()
    }

    /// The datagrams of the appendix, in order.
    pub(crate) fn datagrams(&self) -> Vec<Datagram> {
        let appendix = self.appendix();
        let blocks = appendix.split("```datagram\n").skip(1);
        blocks.map(|block| Datagram::parse(block.split("```").next().unwrap_or(""))).collect()
    }

    /// What stands between the marks.
    pub(crate) fn appendix(&self) -> &str {
        let start = self.text.find(BEGIN).expect("the mark where the appendix begins");
        let end = self.text.find(END).expect("the mark where the appendix ends");
        &self.text[start + BEGIN.len()..end]
    }
}

/// A row of a layout's table; offsets and sizes that depend on a field are no numbers.
pub(crate) struct Row {
    pub(crate) offset: Option<usize>,
    pub(crate) size: Option<usize>,
    pub(crate) kind: String,
    pub(crate) field: String,
}

/// A datagram of the appendix, or some that are left out.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Datagram {
    /// Milliseconds after the server's start.
    pub(crate) at: u64,
    pub(crate) from_client: bool,
    pub(crate) name: String,
    /// How many of this kind come here; 1 where it is shown.
    pub(crate) count: usize,
    /// Empty where it is not shown.
    pub(crate) bytes: Vec<u8>,
    pub(crate) fields: Vec<Field>,
}

/// One annotated field.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) offset: usize,
    /// `u16`, `text[3]`, and so on.
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) value: String,
}

impl Datagram {
    /// The length that the heading announces is checked here.
    fn parse(block: &str) -> Self {
        let mut lines = block.lines();
        let heading = lines.next().unwrap_or_default();
        let words: Vec<&str> = heading.split_whitespace().collect();
        let [at, "ms", way, name, rest @ ..] = &words[..] else { panic!("{heading:?}") };
        let from_client = match *way {
            "c->s" => true,
            "s->c" => false,
            _ => panic!("{heading:?}"),
        };
        let at = at.parse().unwrap_or_else(|_| panic!("{heading:?}"));
        let (mut bytes, mut fields) = (Vec::new(), Vec::new());
        for line in lines {
            match line.strip_prefix('@') {
                Some(field) => fields.push(Field::parse(field)),
                None => take_dump(line, &mut bytes),
            }
        }
        let count = match rest {
            [len, "bytes"] => {
                assert_eq!(len.parse(), Ok(bytes.len()), "{heading}");
                1
            }
            ["x", count, "not", "shown"] => count.parse().expect("a count"),
            _ => panic!("{heading:?}"),
        };
        Self { at, from_client, name: (*name).to_owned(), count, bytes, fields }
    }

    pub(crate) fn is_shown(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// The annotated value of a field, as a number.
    pub(crate) fn value(&self, name: &str) -> u64 {
        let field = self.fields.iter().find(|field| field.name == name);
        number(&field.unwrap_or_else(|| panic!("{} has no {name}", self.name)).value) as u64
    }

    /// The annotated text of a field.
    pub(crate) fn text(&self, name: &str) -> &str {
        let field = self.fields.iter().find(|f| f.name == name && f.kind.starts_with("text"));
        let field = field.unwrap_or_else(|| panic!("{} has no text {name}", self.name));
        field.value.trim_matches('"')
    }
}

/// A line of a dump: its offset, then bytes.
fn take_dump(line: &str, bytes: &mut Vec<u8>) {
    let (offset, hex) = line.split_once("  ").unwrap_or_else(|| panic!("{line:?}"));
    assert_eq!(usize::from_str_radix(offset, 16), Ok(bytes.len()), "{line:?}");
    for byte in hex.split_whitespace() {
        bytes.push(u8::from_str_radix(byte, 16).unwrap_or_else(|_| panic!("{line:?}")));
    }
}

impl Field {
    fn parse(line: &str) -> Self {
        let (what, value) = line.split_once(" = ").unwrap_or_else(|| panic!("{line:?}"));
        let [offset, kind, name] = what.splitn(3, ' ').collect::<Vec<_>>()[..] else {
            panic!("{line:?}")
        };
        let offset = offset.parse().unwrap_or_else(|_| panic!("{line:?}"));
        Self { offset, kind: kind.into(), name: name.into(), value: value.into() }
    }

    /// Bytes that the field takes; a `tile` repeats what the packed field before it covers.
    pub(crate) fn width(&self) -> usize {
        match self.kind.as_str() {
            "u8" => 1,
            "u16" | "tlv" => 2,
            "u32" => 4,
            "u64" => 8,
            "chunk" => 6,
            "entity" => 18,
            "tile" => 0,
            other => {
                let count = other.split(['[', ']']).nth(1).and_then(|count| count.parse().ok());
                count.unwrap_or_else(|| panic!("kind {other:?}"))
            }
        }
    }

    /// Fails where the value is not what stands in the bytes.
    pub(crate) fn check(&self, datagram: &[u8]) {
        let at = &datagram[self.offset..];
        let own = &at[..self.width()];
        match self.kind.split('[').next().unwrap_or_default() {
            "u8" | "u16" | "u32" | "u64" => assert_eq!(number(&self.value), le(own), "{self:?}"),
            "tlv" => assert_eq!(numbers(&self.value), [le(&own[..1]), le(&own[1..])], "{self:?}"),
            "chunk" => {
                let there = [signed(&own[..2]), signed(&own[2..4]), le(&own[4..])];
                assert_eq!(numbers(&self.value), there, "{self:?}");
            }
            "entity" => assert_eq!(numbers(&self.value), entity_numbers(own), "{self:?}"),
            "text" => assert_eq!(self.value.trim_matches('"').as_bytes(), own, "{self:?}"),
            "bytes" => assert_eq!(self.value, hex(own, ""), "{self:?}"),
            "zero" => assert!(own.iter().all(|byte| *byte == 0), "{self:?}"),
            "packed" => assert_eq!(numbers(&self.value), [1024, 6], "{self:?}"),
            "tile" => {
                let place = numbers(&self.name);
                let index = tile_index(at, place[0] as usize, place[1] as usize);
                assert_eq!(number(&self.value), i128::from(index), "{self:?}");
            }
            _ => panic!("{self:?}"),
        }
    }
}

/// The palette index of a tile: six bits, least significant first, row by row (R4, R5).
fn tile_index(packed: &[u8], x: usize, y: usize) -> u32 {
    let bit = 6 * (32 * y + x);
    (0..6).map(|i| u32::from(packed[(bit + i) / 8] >> ((bit + i) % 8) & 1) << i).sum()
}

fn entity_numbers(entry: &[u8]) -> Vec<i128> {
    let mut at = 0;
    let mut take = |len: usize| {
        at += len;
        &entry[at - len..at]
    };
    let (id, kind, x, y) = (le(take(4)), le(take(2)), signed(take(2)), signed(take(2)));
    let rest = [2, 2, 2, 1, 1].map(|len| le(take(len)));
    [vec![id, kind, x, y], rest.to_vec()].concat()
}

/// Little-endian, unsigned.
pub(crate) fn le(bytes: &[u8]) -> i128 {
    bytes.iter().rev().fold(0, |sum, byte| sum * 256 + i128::from(*byte))
}

/// Little-endian, two's complement.
fn signed(bytes: &[u8]) -> i128 {
    let (value, range) = (le(bytes), 1 << (8 * bytes.len()));
    if value >= range / 2 { value - range } else { value }
}

/// The one number of a text.
pub(crate) fn number(text: &str) -> i128 {
    let [number] = numbers(text)[..] else { panic!("one number in {text:?}") };
    number
}

/// The numbers of a text, decimal or hexadecimal.
pub(crate) fn numbers(text: &str) -> Vec<i128> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let number = |word: &str| match word.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok(),
        None => word.parse().ok(),
    };
    words.filter_map(number).collect()
}

fn hex(bytes: &[u8], between: &str) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(between)
}

/// Writes a block of the appendix.
pub(crate) fn block(note: &Note, at: u64, from_client: bool, name: &str, bytes: &[u8]) -> String {
    let way = if from_client { "c->s" } else { "s->c" };
    let mut out = format!("```datagram\n{at} ms  {way}  {name}  {} bytes\n", bytes.len());
    for (line, part) in bytes.chunks(LINE).enumerate() {
        let _ = writeln!(out, "{:04X}  {}", line * LINE, hex(part, " "));
    }
    for line in annotate(note, name, bytes) {
        let _ = writeln!(out, "@{line}");
    }
    out + "```\n"
}

/// Describes a datagram field by field, as the tables of the note say.
fn annotate(note: &Note, name: &str, bytes: &[u8]) -> Vec<String> {
    let mut walk = Walk { note, bytes, at: 0, lines: Vec::new(), known: BTreeMap::new() };
    for row in note.layout(name) {
        walk.row(&row);
    }
    assert_eq!(walk.at, bytes.len(), "{name}: the layout does not cover it");
    walk.lines
}

struct Walk<'a> {
    note: &'a Note,
    bytes: &'a [u8],
    at: usize,
    lines: Vec<String>,
    known: BTreeMap<String, i128>,
}

impl Walk<'_> {
    fn take(&mut self, len: usize) -> &[u8] {
        self.at += len;
        &self.bytes[self.at - len..self.at]
    }

    fn line(&mut self, kind: &str, name: &str, value: &str) {
        self.lines.push(format!("{} {kind} {name} = {value}", self.at));
    }

    fn row(&mut self, row: &Row) {
        if let Some(offset) = row.offset {
            assert_eq!(offset, self.at, "{}", row.field);
        }
        let start = self.at;
        match row.kind.as_str() {
            "Header" => self.note.layout("Header").iter().for_each(|row| self.row(row)),
            "u8" | "u16" | "u32" | "u64" => self.number(&row.kind, &row.field),
            "ChunkEntry" => self.chunk(&row.field),
            "[ChunkEntry; 9]" => {
                (0..9).for_each(|i| self.chunk(&format!("{}[{i}]", row.field)));
            }
            "[u16; pal_count]" => {
                let count = self.known["pal_count"];
                (0..count).for_each(|i| self.number("u16", &format!("{}[{i}]", row.field)));
            }
            "[u6; 1024]" => self.tiles(&row.field),
            "EntityEntry" => {
                (0..self.known["entity_count"]).for_each(|i| self.entity(i));
            }
            "TLV" => self.tlv(self.at + self.known["meta_len"] as usize),
            "ActionData" => self.action_data(),
            "UTF-8" => self.text(&row.field, self.bytes.len() - self.at),
            "zero" => {
                let len = self.bytes.len() - self.at;
                self.line(&format!("zero[{len}]"), &row.field, "0");
                self.take(len);
            }
            other => {
                let len = number(other.trim_start_matches("[u8;").trim_end_matches(']')) as usize;
                self.binary(&row.field, len);
            }
        }
        if let Some(size) = row.size {
            assert_eq!(self.at - start, size, "{}", row.field);
        }
    }

    fn number(&mut self, kind: &str, name: &str) {
        let len = kind[1..].parse::<usize>().expect("bits") / 8;
        let value = le(&self.bytes[self.at..self.at + len]);
        let bits = ["magic", "token", "nonce", "checksum", "flags", "features", "status", "bits"];
        let text = match bits.iter().any(|word| name.contains(word)) {
            true => format!("0x{value:0width$X}", width = 2 * len),
            false => value.to_string(),
        };
        self.line(kind, name, &text);
        self.known.insert(name.to_owned(), value);
        self.take(len);
    }

    fn chunk(&mut self, name: &str) {
        let entry = &self.bytes[self.at..self.at + 6];
        let (x, y, version) = (signed(&entry[..2]), signed(&entry[2..4]), le(&entry[4..]));
        self.line("chunk", name, &format!("({x}, {y}) version {version}"));
        self.take(6);
    }

    fn tiles(&mut self, name: &str) {
        self.line("packed[768]", name, "1024 x 6 bits");
        let packed = self.bytes[self.at..self.at + 768].to_vec();
        for (x, y) in [(0, 0), (1, 0), (16, 16), (17, 16), (31, 31)] {
            let index = tile_index(&packed, x, y);
            self.line("tile", &format!("({x}, {y})"), &format!("palette[{index}]"));
        }
        self.take(768);
    }

    fn entity(&mut self, place: i128) {
        let numbers = entity_numbers(&self.bytes[self.at..self.at + 18]);
        let [id, kind, x, y, hp, hp_max, elo, flags, meta] = numbers[..] else { panic!() };
        let value = format!(
            "id {id}, type {kind}, at ({x}, {y}), hp {hp} of {hp_max}, elo {elo}, \
             flags 0x{flags:02X}, meta {meta}"
        );
        self.line("entity", &format!("entities[{place}]"), &value);
        self.take(18);
        self.tlv(self.at + meta as usize);
    }

    fn tlv(&mut self, end: usize) {
        let tags = self.note.tags();
        while self.at < end {
            let [tag, len] = [self.bytes[self.at], self.bytes[self.at + 1]];
            let name = tags.get(&tag).unwrap_or_else(|| panic!("tag {tag:#04x} in no table"));
            self.line("tlv", "tag, length", &format!("0x{tag:02X}, {len}"));
            self.take(2);
            match (tag, len) {
                (0x04 | 0x05 | 0x07 | 0x11 | 0x20 | 0x22 | 0x23, _) => self.text(name, len.into()),
                (_, 2 | 4 | 8) if tag != 0x06 => self.number(&format!("u{}", 8 * len), name),
                _ => self.binary(name, len.into()),
            }
        }
        assert_eq!(self.at, end, "the fields fill the block");
    }

    fn text(&mut self, name: &str, len: usize) {
        let bytes = &self.bytes[self.at..self.at + len];
        let text = std::str::from_utf8(bytes).expect("UTF-8");
        self.line(&format!("text[{len}]"), name, &format!("\"{text}\""));
        self.take(len);
    }

    fn binary(&mut self, name: &str, len: usize) {
        let text = hex(&self.bytes[self.at..self.at + len], "");
        self.line(&format!("bytes[{len}]"), name, &text);
        self.take(len);
    }

    fn action_data(&mut self) {
        let len = self.bytes.len() - self.at;
        match self.known["player_action"] {
            0..=4 => {}
            13 => self.text("action_data", len),
            _ => self.binary("action_data", len),
        }
    }
}
