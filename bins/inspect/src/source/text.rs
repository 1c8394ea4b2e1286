//! Text captures (`<ms> <c2s|s2c> <hex> [lost]`) and lines of bare hex.

use std::io::{self, BufRead, Cursor, Read};

use super::{Found, Input};
use crate::datagram::{Datagram, Ends, Way};

/// The longest line that is read, in bytes: a datagram of the greatest size that UDP has, in hex.
/// What is longer is skipped and told.
pub const LONGEST_LINE: usize = 2 * 65_535 + 64;

/// Lines, one datagram each.
pub(super) struct Text {
    input: io::Chain<Cursor<Vec<u8>>, Input>,
    line: Vec<u8>,
    number: u64,
    first: Option<u64>,
}

impl Text {
    /// Reads `start` and then the rest of the stream.
    pub(super) fn new(input: Input, start: Vec<u8>) -> Self {
        let input = Cursor::new(start).chain(input);
        Self { input, line: Vec::new(), number: 0, first: None }
    }

    pub(super) fn next(&mut self, place: &mut Datagram) -> io::Result<Option<Found>> {
        while let Some(whole) = self.read_line()? {
            if !whole {
                let text = format!("line {}: longer than {LONGEST_LINE} bytes", self.number);
                return Ok(Some(Found::Broken(text)));
            }
            let Some(read) = self.datagram(place) else { continue };
            return Ok(Some(match read {
                Ok(()) => Found::Datagram,
                Err(why) => Found::Broken(format!("line {}: {why}", self.number)),
            }));
        }
        Ok(None)
    }

    /// Reads a line without its end; `Some(false)` when it was too long, and is gone.
    fn read_line(&mut self) -> io::Result<Option<bool>> {
        self.line.clear();
        let limit = LONGEST_LINE as u64 + 1;
        if (&mut self.input).take(limit).read_until(b'\n', &mut self.line)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        if self.line.last() == Some(&b'\n') || self.line.len() <= LONGEST_LINE {
            return Ok(Some(true));
        }
        while self.line.last() != Some(&b'\n') {
            self.line.clear();
            if (&mut self.input).take(limit).read_until(b'\n', &mut self.line)? == 0 {
                break;
            }
        }
        Ok(Some(false))
    }

    /// Reads the line's datagram; `None` for a remark or an empty line.
    fn datagram(&mut self, place: &mut Datagram) -> Option<Result<(), String>> {
        let Ok(line) = std::str::from_utf8(&self.line) else {
            return Some(Err("neither a capture's line nor hex".to_owned()));
        };
        let mut words = line.split_ascii_whitespace();
        let mut first = words.next()?;
        let mut words: Vec<&str> = words.take(4).collect();
        let mut dropped = false;
        if let Some(rest) = first.strip_prefix('#') {
            // `# <ms> dropped <way> <hex>`, with or without a blank behind the sign.
            if rest.is_empty() {
                first = words.first()?;
                words.remove(0);
            } else {
                first = rest;
            }
            if words.first() != Some(&"dropped") {
                return None;
            }
            // A remark that happens to hold the word is one all the same.
            Way::from_name(words.get(1)?)?;
            words.remove(0);
            dropped = true;
        }
        let read = parse(first, &words, place);
        place.lost |= dropped;
        // A capture's times need not begin at zero.
        if let Some(micros) = &mut place.micros {
            let first = *self.first.get_or_insert(*micros);
            *micros = micros.saturating_sub(first);
        }
        Some(read)
    }
}

/// Reads `<ms> <way> [hex] [lost]`, or hex in any number of words.
fn parse(first: &str, words: &[&str], place: &mut Datagram) -> Result<(), String> {
    *place = Datagram { bytes: std::mem::take(&mut place.bytes), ..Datagram::default() };
    place.bytes.clear();
    let Some(way) = words.first().and_then(|word| Way::from_name(word)) else {
        if words.len() >= 4 {
            return Err("neither a capture's line nor hex".to_owned());
        }
        return [first].iter().chain(words).try_for_each(|word| hex(word, &mut place.bytes));
    };
    let millis: u64 =
        first.parse().map_err(|_| format!("{first:?} is no count of milliseconds"))?;
    place.micros = Some(millis.saturating_mul(1000));
    place.ends = Ends::Way(way);
    // An empty datagram has no word of its own.
    match words[1..] {
        [] => {}
        ["lost"] => place.lost = true,
        [bytes] => hex(bytes, &mut place.bytes)?,
        [bytes, "lost"] => {
            place.lost = true;
            hex(bytes, &mut place.bytes)?;
        }
        [_, other, ..] => return Err(format!("unexpected word {other:?}")),
    }
    Ok(())
}

fn hex(word: &str, bytes: &mut Vec<u8>) -> Result<(), String> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|value| value as u8);
    let (pairs, rest) = word.as_bytes().as_chunks::<2>();
    if let [odd] = rest {
        return Err(match digit(*odd) {
            Some(_) => "an odd number of hex digits".to_owned(),
            None => "neither a capture's line nor hex".to_owned(),
        });
    }
    for [high, low] in pairs {
        match (digit(*high), digit(*low)) {
            (Some(high), Some(low)) => bytes.push(high << 4 | low),
            _ => return Err("neither a capture's line nor hex".to_owned()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Source;
    use super::*;

    fn read(text: &str) -> Vec<Result<Datagram, String>> {
        let mut source = Source::open(Box::new(Cursor::new(text.to_owned()))).unwrap();
        let (mut all, mut place) = (Vec::new(), Datagram::default());
        while let Some(found) = source.next(&mut place).unwrap() {
            all.push(match found {
                Found::Datagram => Ok(place.clone()),
                Found::Broken(why) => Err(why),
                Found::Other => panic!("no text is that"),
            });
        }
        all
    }

    fn one(millis: u64, way: Way, lost: bool, bytes: &[u8]) -> Result<Datagram, String> {
        Ok(Datagram {
            micros: Some(millis * 1000),
            ends: Ends::Way(way),
            lost,
            cut: 0,
            bytes: bytes.to_vec(),
        })
    }

    #[test]
    fn a_capture_has_datagrams_remarks_and_what_was_lost() {
        let text = "# a remark\n100 c2s 4c52\n\n103 s2c 0aFf lost\n# 104 dropped c2s 07\n\
                    # dropped by hand\n105 s2c \n106 c2s lost\r\n";
        assert_eq!(
            read(text),
            [
                one(0, Way::ToServer, false, &[0x4C, 0x52]),
                one(3, Way::ToClient, true, &[0x0A, 0xFF]),
                one(4, Way::ToServer, true, &[7]),
                one(5, Way::ToClient, false, &[]),
                one(6, Way::ToServer, true, &[]),
            ]
        );
    }

    #[test]
    fn bare_hex_may_have_blanks() {
        let bytes = |bytes: &[u8]| Ok(Datagram { bytes: bytes.to_vec(), ..Datagram::default() });
        assert_eq!(
            read("4c520106\n4C 52\n0"),
            [
                bytes(&[0x4C, 0x52, 1, 6]),
                bytes(&[0x4C, 0x52]),
                Err("line 3: an odd number of hex digits".to_owned()),
            ]
        );
    }

    #[test]
    fn a_line_that_is_neither_is_told_and_the_next_one_read() {
        let all = read("hello\n1 c2s zz\nx s2c 00\n1 c2s 00 found\n1 c2s 00\n");
        assert_eq!(all.iter().filter(|one| one.is_err()).count(), 4, "{all:?}");
        assert_eq!(all[2], Err("line 3: \"x\" is no count of milliseconds".to_owned()));
        assert_eq!(all[4], one(0, Way::ToServer, false, &[0]));
    }

    #[test]
    fn the_longest_datagram_is_read_and_a_longer_line_is_skipped() {
        let longest = format!("1 c2s {} lost", "ab".repeat(65_535));
        let longer = "ab".repeat(LONGEST_LINE);
        let all = read(&format!("{longest}\n{longer}\n1 c2s 07\n{longer}"));
        assert_eq!(all[0], one(0, Way::ToServer, true, &[0xAB; 65_535]));
        assert!(all[1].as_ref().unwrap_err().contains("longer than"), "{:?}", all[1]);
        assert_eq!(all[2], one(0, Way::ToServer, false, &[7]));
        assert!(all[3].is_err());
        assert_eq!(all.len(), 4);
    }
}
